//! A command that runs beside the test, and bounded waits for what it does.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::output::{self, Output};
use super::processes::{is_alive, send};

/// No wait in these tests is longer; nothing that works needs a tenth of it.
const LONGEST: Duration = Duration::from_secs(60);

/// Waits for the thing itself.
#[track_caller]
pub fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    wait_until_within(LONGEST, what, holds);
}

/// Waits for the thing itself, at most so long.
#[track_caller]
pub fn wait_until_within(longest: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < longest, "waited {longest:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A command that runs. It is killed when nobody waits for it any more.
pub struct Running {
    child: Child,
    typed: String,
    stdout: PathBuf,
    stderr: PathBuf,
    root: PathBuf,
}

impl Running {
    /// Starts it; what it says goes to files, so that it never waits for a reader.
    pub fn start(mut command: Command, root: &Path) -> Running {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = |name: &str| root.join(format!("spawned-{number}.{name}"));
        let (stdout, stderr) = (file("out"), file("err"));
        command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
        let typed = output::typed(&command);
        let child = command.spawn().unwrap_or_else(|error| panic!("{typed}: {error}"));
        Running { child, typed, stdout, stderr, root: root.to_owned() }
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// What it wrote so far.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.stdout).unwrap()).into_owned()
    }

    /// What it complained so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.stderr).unwrap()).into_owned()
    }

    /// Waits until a line of standard output contains the words.
    #[track_caller]
    pub fn wait_for_line(&self, words: &str) {
        let said = || self.stdout().lines().any(|line| line.contains(words));
        let is_over = || !is_alive(self.pid());
        wait_until(&format!("{} says {words:?}", self.typed), || said() || is_over());
        assert!(said(), "it ended without {words:?}:\n{}{}", self.stdout(), self.stderr());
    }

    /// Whether it ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        send(self.pid(), signal);
    }

    /// Kills it, and it alone, at once.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    #[must_use = "a command that nobody looks at proves nothing; say .ok() or .exits(code)"]
    #[track_caller]
    pub fn wait(mut self) -> Output {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > LONGEST {
                let said = format!("{}{}", self.stdout(), self.stderr());
                panic!("{} did not end:\n{said}", self.typed);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Output {
            typed: self.typed.clone(),
            stdout: self.stdout(),
            stderr: self.stderr(),
            code: output::code(status),
            root: self.root.display().to_string(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
