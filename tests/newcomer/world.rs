//! A place of its own for each test: a temporary folder with a home, and commands that see nothing else.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The binary under test.
pub const STRIATUM: &str = env!("CARGO_BIN_EXE_striatum");

/// A temporary folder with a home in it.
pub struct World {
    folder: TempDir,
}

impl World {
    /// A new one, in no repository.
    pub fn new() -> World {
        let world = World { folder: TempDir::with_prefix("striatum-newcomer-").unwrap() };
        for folder in ["home", "tmp"] {
            std::fs::create_dir(world.path(folder)).unwrap();
        }
        world
    }

    /// A path below it.
    pub fn path(&self, below: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(below)
    }

    /// A command with an environment of its own, in this folder. `striatum` is on its PATH.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.folder.path());
        command.env("HOME", self.path("home")).env("TMPDIR", self.path("tmp")).env("PATH", path());
        command
    }

    /// Runs striatum with these words.
    pub fn striatum(&self, words: &[&str]) -> Ended {
        Ended::of(self.command(STRIATUM).args(words))
    }

    /// Runs git, with nobody's settings, and expects success.
    pub fn git(&self, folder: &Path, words: &[&str]) -> String {
        let mut command = self.command("git");
        command.current_dir(folder).args(["-c", "user.name=Tester", "-c", "user.email=tester@example.invalid"]);
        let ended = Ended::of(command.args(words));
        assert_eq!(ended.exit, 0, "git {words:?}: {}", ended.stderr);
        ended.stdout
    }

    /// The quickstart's folder: the only one in the folder for temporary files, but for what was trusted without a home.
    pub fn made(&self) -> PathBuf {
        let mut made: Vec<PathBuf> =
            std::fs::read_dir(self.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
        made.retain(|path| !path.file_name().unwrap().to_str().unwrap().starts_with("striatum-trust-"));
        assert_eq!(made.len(), 1, "{made:?}");
        made.remove(0)
    }
}

/// The search path of the tests, with the binary under test in front.
pub fn path() -> std::ffi::OsString {
    let own = Path::new(STRIATUM).parent().unwrap().to_owned();
    let rest = std::env::var_os("PATH").unwrap();
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&rest))).unwrap()
}

/// What a command came to.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; -1 after a signal.
    pub exit: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ended {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Ended {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended { exit: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Its standard output as one JSON document.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The same, when it succeeded.
    pub fn ok(self) -> Ended {
        assert_eq!(self.exit, 0, "{self:?}");
        self
    }
}
