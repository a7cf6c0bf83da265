//! Tests that change their process (its session, its children, its streams) run in one of their own: this program
//! again, with one test and nothing else.

use std::path::PathBuf;
use std::process::Command;

/// Set in the process that a test has for itself.
const ALONE: &str = "OS_TEST_ALONE";

/// Runs `body` in a process of its own, which must end well.
pub fn alone(name: &str, body: impl FnOnce()) {
    if std::env::var(ALONE).as_deref() == Ok(name) {
        return body();
    }
    let out = Command::new(this_program()).args(only(name)).env(ALONE, name).output().unwrap();
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
}

/// A test that is no test but what another one starts: does nothing when the harness comes by.
pub fn as_child(name: &str, body: impl FnOnce()) {
    if std::env::var(ALONE).as_deref() == Ok(name) {
        body();
    }
}

/// The environment that makes [`as_child`] run.
pub fn child_env(name: &str) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    vec![(ALONE.into(), name.into())]
}

/// The arguments that make this program run one test only.
pub fn only(name: &str) -> Vec<std::ffi::OsString> {
    [name, "--exact", "--nocapture", "--test-threads=1"].map(Into::into).to_vec()
}

/// This test program.
pub fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Looks until it is so, at most 20 seconds.
pub fn until(what: &str, mut claim: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !claim() {
        assert!(std::time::Instant::now() < end, "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
