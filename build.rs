//! How the binary is linked.
//!
//! Every verb is a process of its own, and most of what a short one costs is its start. At a fixed address the linker
//! settles the 20,000 pointers in the binary's tables once; otherwise each start does it again, and copies every page
//! they stand in. With the C library inside, nothing has to be found, loaded and bound at the start either. What is
//! given up: the addresses of the program's code and of the C library's are no secret (those of the heap and the stack
//! still are). Where the archives are not installed, the shared libraries are used.

use std::path::PathBuf;
use std::process::Command;

/// What the standard library asks the linker for, and the archive that has it.
const LIBRARIES: [(&str, &str); 8] = [
    ("libc.a", "libc.a"),
    ("libm.a", "libm.a"),
    ("librt.a", "librt.a"),
    ("libutil.a", "libutil.a"),
    ("libdl.a", "libdl.a"),
    ("libpthread.a", "libpthread.a"),
    ("libgcc_eh.a", "libgcc_eh.a"),
    // It asks for the shared form of what unwinds stacks.
    ("libgcc_s.a", "libgcc_eh.a"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let is_known = target("OS") == "linux" && target("ENV") == "gnu" && target("ARCH") == "x86_64";
    if !is_known || std::env::var("PROFILE").is_ok_and(|profile| profile != "release") {
        return;
    }
    println!("cargo::rustc-link-arg-bins=-no-pie");
    if let Some(folder) = gathered() {
        println!("cargo::rustc-link-arg-bins=-static");
        println!("cargo::rustc-link-arg-bins=-L{}", folder.display());
    }
}

/// A folder with the archives and nothing else, so that the linker does not see the shared libraries beside them.
fn gathered() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("OUT_DIR")?).join("archives");
    std::fs::create_dir_all(&folder).ok()?;
    for (name, archive) in LIBRARIES {
        let place = folder.join(name);
        let _ = std::fs::remove_file(&place);
        std::os::unix::fs::symlink(installed(archive)?, place).ok()?;
    }
    Some(folder)
}

/// Where the C compiler keeps an archive; it answers with the bare name when it has none.
fn installed(archive: &str) -> Option<PathBuf> {
    let answer = Command::new("cc").arg(format!("-print-file-name={archive}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim());
    (path.is_absolute() && path.is_file()).then_some(path)
}
