//! How the binary is linked.
//!
//! Every verb is a process of its own, and most of what a short one costs is its start. At a fixed address the linker
//! settles the 20,000 pointers in the binary's tables once; otherwise each start does it again, and copies every page
//! they stand in. What is given up: the address of the program's own code is no secret (those of the heap, the stack
//! and the libraries still are). The compiler's own support library is taken in, which saves loading a file.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let is_known = target("OS") == "linux" && target("ENV") == "gnu" && target("ARCH") == "x86_64";
    if is_known && std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        if let Some(folder) = support() {
            println!("cargo::rustc-link-search=native={}", folder.display());
            println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
        }
    }
}

/// Where the archive of what unwinds stacks lies, if the C compiler has one.
fn support() -> Option<PathBuf> {
    let answer = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let path = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim());
    path.is_file().then(|| path.parent().map(Path::to_path_buf)).flatten()
}
