//! What every test of the real binary needs: a repository of its own, an agent that does as it is told, bounded waits.
//!
//! Nothing here stands in for a part of the program: the store is SQLite, the processes are processes. It does not
//! know any verb's meaning.

#![allow(dead_code, unused_imports, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod agent;
mod decoy;
mod output;
mod processes;
mod resources;
mod running;
mod sound;
mod store;
mod trees;
mod worker;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub use agent::Effect;
pub use output::{Output, next_commands};
pub use processes::{Found, is_alive, kill, send, thread_cpu_ms};
pub use running::{Running, wait_until, wait_until_within};
pub use store::{Event, connect};
pub use trees::{DRAFT, REVIEWED};
pub use worker::Worker;

use decoy::Decoy;

/// The program under test.
pub const STRIATUM: &str = env!("CARGO_BIN_EXE_striatum");

/// A repository with a home, an environment and an agent of its own. Whatever it started ends with it.
pub struct TestRepo {
    root: TempDir,
    place: PathBuf,
    decoy: Decoy,
}

impl TestRepo {
    /// A new git repository with an empty `.striatum/config.toml`.
    pub fn new() -> TestRepo {
        TestRepo::at("repo")
    }

    /// The same in a folder of another name, or deeper.
    pub fn at(place: impl AsRef<Path>) -> TestRepo {
        let repo = TestRepo::bare_at(place.as_ref());
        repo.write(".striatum/config.toml", "");
        repo
    }

    /// A new git repository that has never seen striatum.
    pub fn bare() -> TestRepo {
        TestRepo::bare_at(Path::new("repo"))
    }

    fn bare_at(place: &Path) -> TestRepo {
        let root = tempfile::Builder::new().prefix("striatum-test-").tempdir().unwrap();
        std::fs::create_dir_all(root.path().join(place)).unwrap();
        let folders = ["home", "config", "state", "data", "cache", "runtime", "tmp", "agent/do"];
        for folder in folders {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let decoy = Decoy::new(&root.path().join("decoy"));
        let place = root.path().join(place);
        let repo = TestRepo { root, place, decoy };
        repo.install_agent();
        let made = repo.git(&["init", "--quiet", "--initial-branch=main", "."]);
        assert!(made.status.success(), "git init: {}", String::from_utf8_lossy(&made.stderr));
        repo
    }

    /// The folder that holds everything of this test.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The repository's work tree.
    pub fn path(&self) -> PathBuf {
        self.place.clone()
    }

    /// A file or folder in the work tree.
    pub fn file(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    /// The store's folder.
    pub fn dir(&self) -> PathBuf {
        self.file(".striatum")
    }

    /// The database file.
    pub fn db(&self) -> PathBuf {
        self.dir().join("striatum.db")
    }

    /// Writes a file in the work tree, with its folders.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.file(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Reads a file in the work tree.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Writes `.striatum/workflows/NAME.toml`: schema and id come before the text. `@agent` in it is the command line
    /// of the scriptable agent.
    pub fn workflow(&self, name: &str, text: &str) {
        let head = format!("schema = \"striatum.workflow/1\"\nid = \"{name}\"\n");
        let text = text.replace("\"@agent\"", &self.agent_argv());
        self.write(&format!(".striatum/workflows/{name}.toml"), head + &text);
    }

    /// Makes limits shorter for every run prepared from now on: `grace = "100ms"`, ...
    pub fn limits(&self, keys: &str) {
        self.write(".striatum/config.toml", format!("[limits]\n{keys}\n"));
    }

    /// A cleared environment: the private home, and a git environment that points at the decoy.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let at = |folder: &str| self.root.path().join(folder).into_os_string();
        let mut environment: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("HOME".into(), at("home")),
            ("XDG_CONFIG_HOME".into(), at("config")),
            ("XDG_STATE_HOME".into(), at("state")),
            ("XDG_DATA_HOME".into(), at("data")),
            ("XDG_CACHE_HOME".into(), at("cache")),
            ("XDG_RUNTIME_DIR".into(), at("runtime")),
            ("TMPDIR".into(), at("tmp")),
            ("LANG".into(), "C.UTF-8".into()),
            ("STRIATUM_TEST_CLOCK".into(), at("clock")),
            ("STRIATUM_TEST_CRASH".into(), at("crash")),
        ];
        environment.extend(self.decoy.environment());
        environment
    }

    /// The program, in the work tree, with the cleared environment.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        self.command_of(STRIATUM, args)
    }

    /// Any program in the same place with the same environment.
    pub fn command_of<S: AsRef<OsStr>>(&self, program: impl AsRef<OsStr>, args: &[S]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.path()).env_clear().envs(self.environment()).stdin(Stdio::null());
        command
    }

    /// git in the work tree, with an environment that is not poisoned.
    pub fn git(&self, args: &[&str]) -> std::process::Output {
        let mut command = self.command_of("git", args);
        for name in decoy::POISONED {
            command.env_remove(name);
        }
        for (name, value) in [("NAME", "Somebody"), ("EMAIL", "somebody@example.com")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        command.output().unwrap()
    }

    /// Runs striatum to its end.
    #[must_use = "a command that nobody looks at proves nothing; say .ok() or .exits(code)"]
    pub fn striatum<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        self.run(&mut self.command(args))
    }

    /// Runs striatum with `--json`.
    #[must_use = "a command that nobody looks at proves nothing; say .ok() or .exits(code)"]
    pub fn json<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        self.run(self.command(args).arg("--json"))
    }

    /// Runs a command to its end.
    #[must_use = "a command that nobody looks at proves nothing; say .ok() or .exits(code)"]
    pub fn run(&self, command: &mut Command) -> Output {
        Output::of(command, self.root.path())
    }

    /// Starts striatum and lets it run.
    pub fn spawn<S: AsRef<OsStr>>(&self, args: &[S]) -> Running {
        self.spawn_command(self.command(args))
    }

    /// Starts a command and lets it run.
    pub fn spawn_command(&self, command: Command) -> Running {
        Running::start(command, self.root.path())
    }

    /// Trusts the commands of this repository, where this version asks for that.
    pub fn trust(&self) {
        let trusted = self.striatum(&["trust", "--as-person", "--yes"]);
        let is_unknown = trusted.code == 2 && trusted.stderr.contains("unrecognized subcommand");
        assert!(trusted.code == 0 || is_unknown, "{trusted}");
    }

    /// Prepares a run; gives its name.
    pub fn prepare(&self, workflow: &str) -> String {
        self.trust();
        let report = self.json(&["run", "prepare", "--workflow", workflow]).ok().value();
        report["run"].as_str().unwrap().to_owned()
    }

    /// Prepares and starts a run; gives its name.
    pub fn start(&self, workflow: &str) -> String {
        let run = self.prepare(workflow);
        self.json(&["run", "start", "--run-id", &run]).ok();
        run
    }

    /// Drives the only live run to its end.
    #[must_use = "a command that nobody looks at proves nothing; say .ok() or .exits(code)"]
    pub fn drive(&self) -> Output {
        self.striatum(&["run", "drive", "--interval", "500ms"])
    }

    /// Moves the clock of everything that runs here: wall and monotonic milliseconds, and another boot.
    pub fn clock(&self, wall_ms: i64, monotonic_ms: i64, boot: Option<&str>) {
        let text = format!("{wall_ms} {monotonic_ms} {}\n", boot.unwrap_or("-"));
        replace(&self.root.path().join("clock"), &text);
    }

    /// The next process that comes by this crash point dies there.
    pub fn crash_at(&self, point: &str) {
        replace(&self.root.path().join("crash"), point);
    }

    /// The crash point was not reached yet.
    pub fn is_crash_pending(&self) -> bool {
        self.root.path().join("crash").exists()
    }

    /// Fails when anything wrote to the repository that the environment names.
    pub fn check_decoy(&self) {
        self.decoy.check();
    }

    /// The processes that this test started and that live.
    pub fn processes(&self) -> Vec<Found> {
        processes::under_home(&self.root.path().join("home"))
    }
}

impl Drop for TestRepo {
    fn drop(&mut self) {
        processes::end_all(|| self.processes());
        if !std::thread::panicking() {
            self.check_decoy();
        }
    }
}

/// Writes a file that others read at any time.
pub fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}
