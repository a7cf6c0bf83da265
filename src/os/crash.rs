//! Places where a debug build kills itself on request, so that tests can see what is left.
//!
//! A release build has none of it: an agent controls its environment.

/// Dies here, by SIGKILL, if the file named by `STRIATUM_TEST_CRASH` holds this point's name; the file is removed
/// first, so that it happens once.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    let Some(path) = std::env::var_os("STRIATUM_TEST_CRASH") else { return };
    if !std::fs::read_to_string(&path).is_ok_and(|wanted| wanted.trim() == name) {
        return;
    }
    if std::fs::remove_file(&path).is_ok() {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}

/// Dies here if the file holds `VERB.PLACE`: every write of every verb has two such places.
#[cfg(debug_assertions)]
pub fn point_of(verb: &str, place: &str) {
    if std::env::var_os("STRIATUM_TEST_CRASH").is_some() {
        point(&format!("{verb}.{place}"));
    }
}

/// Nothing.
#[cfg(not(debug_assertions))]
pub fn point(_name: &str) {}

/// Nothing.
#[cfg(not(debug_assertions))]
pub fn point_of(_verb: &str, _place: &str) {}
