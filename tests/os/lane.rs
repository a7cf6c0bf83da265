//! Starting helpers and agents: what they hold, what they see, and what is known when they can't be started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use striatum::os::lock::{Held, Lock, probe};
use striatum::os::process::{
    Entry, Exit, HelperCommand, Identity, LaneStdin, Launched, Limits, Program, Signal, StartError, adopt_locks,
    own_pid, spawn_command, spawn_helper, spawn_lane,
};
use striatum::os::wait::is_readable_within;
use tempfile::TempDir;

use crate::alone::{alone, as_child, child_env, only, this_program, until};

fn striatum() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_striatum"))
}

fn script(folder: &TempDir, text: &str) -> Program {
    Program {
        argv: ["sh", "-c", text].map(OsString::from).to_vec(),
        cwd: folder.path().to_owned(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("ONLY".into(), "this one".into())],
        stdin: LaneStdin::Null,
        output: folder.path().join("output.log"),
        tty: false,
        limits: Limits::default(),
    }
}

fn finish(launched: &Launched) -> Exit {
    assert!(launched.process.wait_ended(20_000));
    launched.process.reap().unwrap().unwrap()
}

fn run(folder: &TempDir, text: &str) -> String {
    let launched = spawn_command(striatum(), &script(folder, text)).unwrap();
    assert_eq!(finish(&launched), Exit { code: Some(0), signal: None });
    std::fs::read_to_string(folder.path().join("output.log")).unwrap()
}

fn is_asleep(pid: i32) -> bool {
    Entry::read(pid).is_some_and(|entry| entry.name == "sleep" && entry.state == 'S')
}

fn descriptors(pid: i32) -> BTreeMap<i32, PathBuf> {
    let list = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(Result::unwrap);
    let shown = |entry: std::fs::DirEntry| {
        Some((entry.file_name().to_str()?.parse().ok()?, std::fs::read_link(entry.path()).ok()?))
    };
    list.filter_map(shown).collect()
}

fn lock(folder: &TempDir, name: &str) -> (PathBuf, Lock) {
    let path = folder.path().join(name);
    let lock = Lock::try_exclusive(&path).unwrap().unwrap();
    (path, lock)
}

#[test]
fn an_agent_sees_its_streams_and_the_lane_lock_and_no_other_descriptor() {
    alone("lane::an_agent_sees_its_streams_and_the_lane_lock_and_no_other_descriptor", || {
        let folder = TempDir::new().unwrap();
        let (path, lane_lock) = lock(&folder, "lane.lock");
        // A descriptor that somebody leaks on purpose, as a shell's `9>file` does.
        let leaked = std::fs::File::create(folder.path().join("leaked")).unwrap();
        rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
        let launched = spawn_lane(striatum(), &script(&folder, "exec sleep 60"), &lane_lock).unwrap();
        let pid = launched.process.identity().pid;
        until("the agent sleeps", || is_asleep(pid));
        let log = folder.path().join("output.log");
        let expected = [(0, PathBuf::from("/dev/null")), (1, log.clone()), (2, log), (3, path.clone())];
        let expected = BTreeMap::from(expected);
        until("it sleeps with four descriptors", || descriptors(pid) == expected);

        drop(lane_lock);
        assert_eq!(probe(&path).unwrap(), Held::Held);
        launched.process.signal(Signal::KILL).unwrap();
        finish(&launched);
        assert_eq!(probe(&path).unwrap(), Held::Free);
    });
}

#[test]
fn a_check_never_gets_the_lock() {
    let folder = TempDir::new().unwrap();
    let launched = spawn_command(striatum(), &script(&folder, "exec sleep 60")).unwrap();
    let pid = launched.process.identity().pid;
    // What its loader opens for a moment is gone when it sleeps.
    until("the check sleeps with its streams only", || is_asleep(pid) && descriptors(pid).into_keys().eq(0..3));
    launched.process.signal(Signal::KILL).unwrap();
    finish(&launched);
}

#[test]
fn the_environment_is_exactly_what_was_given() {
    let folder = TempDir::new().unwrap();
    let text = run(&folder, "tr '\\0' '\\n' < /proc/$$/environ | cut -d= -f1 | sort | tr '\\n' ' '");
    assert_eq!(text, "ONLY PATH ");
}

#[test]
fn an_agent_leads_a_session_of_its_own_without_a_terminal_and_without_core_dumps() {
    let folder = TempDir::new().unwrap();
    let text =
        run(&folder, "set -- $(cut -d' ' -f1,5,6,7 /proc/$$/stat); echo $(( $1 - $2 )) $(( $1 - $3 )) $4; ulimit -c");
    assert_eq!(text, "0 0 0\n0\n");
}

#[test]
fn signals_are_neither_blocked_nor_ignored_in_an_agent() {
    alone("lane::signals_are_neither_blocked_nor_ignored_in_an_agent", || {
        // As under `nohup`, or in the background of a script.
        let folder = TempDir::new().unwrap();
        let inner = format!(
            "trap '' HUP INT TERM; exec {} __lane cwd=/ -- grep -E '^Sig(Blk|Ign)' /proc/self/status",
            striatum().display()
        );
        let out = folder.path().join("out");
        let status = std::process::Command::new("sh")
            .args(["-c", &inner])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::fs::File::create(&out).unwrap())
            .status();
        assert!(status.unwrap().success());
        let text = std::fs::read_to_string(&out).unwrap();
        // Only the ordinary signals: two of the C library's own may be ignored by whoever started the tests.
        let masks =
            text.lines().map(|line| u64::from_str_radix(line.split('\t').nth(1).unwrap(), 16).unwrap() & 0x7fff_ffff);
        assert_eq!(masks.collect::<Vec<_>>(), [0, 0]);
    });
}

#[test]
fn stdin_is_a_file_from_its_start_or_nothing() {
    let folder = TempDir::new().unwrap();
    assert_eq!(run(&folder, "cat; echo end"), "end\n");
    std::fs::write(folder.path().join("prompt.md"), "do it\n").unwrap();
    let program =
        Program { stdin: LaneStdin::File(folder.path().join("prompt.md")), ..script(&folder, "cat; echo end") };
    finish(&spawn_command(striatum(), &program).unwrap());
    assert_eq!(std::fs::read_to_string(&program.output).unwrap(), "end\ndo it\nend\n");
}

#[test]
fn limits_reach_the_agent() {
    let folder = TempDir::new().unwrap();
    let limits = Limits { open_files: Some(64), file_bytes: Some(1 << 20), ..Limits::default() };
    let program = Program { limits, ..script(&folder, "ulimit -n; ulimit -H -n; ulimit -f") };
    finish(&spawn_command(striatum(), &program).unwrap());
    assert_eq!(std::fs::read_to_string(&program.output).unwrap(), "64\n64\n2048\n");
}

#[test]
fn a_command_that_was_never_started_is_told_apart_from_one_that_failed() {
    let folder = TempDir::new().unwrap();
    let try_start = |argv: &[&str], cwd: &Path| {
        let argv = argv.iter().map(OsString::from).collect();
        let program = Program { argv, cwd: cwd.to_owned(), ..script(&folder, "") };
        spawn_command(striatum(), &program).map(|launched| finish(&launched))
    };
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "no script").unwrap();
    let orphan = folder.path().join("orphan");
    std::fs::write(&orphan, "#!/nonexistent/interpreter\n").unwrap();
    std::fs::set_permissions(&orphan, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();

    let here = folder.path();
    assert_eq!(try_start(&["sh", "-c", "exit 127"], here).unwrap(), Exit { code: Some(127), signal: None });
    assert!(
        matches!(try_start(&["no-such-agent"], here), Err(StartError::NotFound { command }) if command == "no-such-agent")
    );
    assert!(matches!(try_start(&[plain.to_str().unwrap()], here), Err(StartError::NotExecutable { .. })));
    assert!(
        matches!(try_start(&[orphan.to_str().unwrap()], here), Err(StartError::NotExecutable { reason, .. }) if reason.contains("interpreter"))
    );
    assert!(
        matches!(try_start(&["true"], &here.join("gone")), Err(StartError::Unprepared { step, .. }) if step == "working directory")
    );
    assert!(matches!(try_start(&[], here), Err(StartError::Unprepared { step, .. }) if step == "command"));
    let text = std::fs::read_to_string(here.join("output.log")).unwrap();
    assert!(text.starts_with("striatum: no-such-agent: exec: no such command\n"), "{text}");
}

#[test]
fn odd_words_reach_the_command_unchanged() {
    let folder = TempDir::new().unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"a b\n\xff=--").to_owned();
    let argv = vec!["printf".into(), "%s|".into(), "--".into(), odd, "".into(), "lock=stdin".into()];
    let program = Program { argv, ..script(&folder, "") };
    finish(&spawn_command(striatum(), &program).unwrap());
    assert_eq!(std::fs::read(&program.output).unwrap(), b"--|a b\n\xff=--||lock=stdin|");
}

#[test]
fn a_terminal_is_controlling_and_its_output_comes_out_at_the_near_end() {
    let folder = TempDir::new().unwrap();
    let text = "test -t 0 && test -t 1 && test -t 2 && echo yes > /dev/tty; stty size";
    let mut program = Program { tty: true, ..script(&folder, text) };
    program.env.push(("TERM".into(), "dumb".into()));
    let launched = spawn_command(striatum(), &program).unwrap();
    let mut near = std::fs::File::from(launched.terminal.as_ref().unwrap().try_clone().unwrap());
    let mut shown = Vec::new();
    let mut part = [0; 256];
    while is_readable_within(&near, 20_000).unwrap() {
        match std::io::Read::read(&mut near, &mut part) {
            Ok(0) | Err(_) => break,
            Ok(count) => shown.extend_from_slice(&part[..count]),
        }
    }
    assert_eq!(finish(&launched).code, Some(0));
    assert_eq!(String::from_utf8_lossy(&shown), "yes\r\n40 120\r\n");
}

#[test]
fn a_helper_holds_both_locks_from_before_it_exists_until_it_is_dead() {
    alone("lane::a_helper_holds_both_locks_from_before_it_exists_until_it_is_dead", || {
        let folder = TempDir::new().unwrap();
        let (helper_path, helper_lock) = lock(&folder, "helper.lock");
        let (lane_path, lane_lock) = lock(&folder, "lane.lock");
        let mut env = child_env("lane::helper_child");
        env.push(("PLACE".into(), folder.path().into()));
        let command = HelperCommand {
            exe: this_program(),
            args: only("lane::helper_child"),
            cwd: folder.path().to_owned(),
            env,
            log: folder.path().join("helper.log"),
        };
        let helper = spawn_helper(&command, helper_lock, Some(lane_lock)).unwrap();
        assert_eq!(probe(&helper_path).unwrap(), Held::Held);
        assert_eq!(probe(&lane_path).unwrap(), Held::Held);
        let told = folder.path().join("told");
        until("the helper has started its agent", || told.exists());
        let agent: Identity = serde_json::from_slice(&std::fs::read(&told).unwrap()).unwrap();
        assert!(agent.is_alive());

        helper.signal(Signal::KILL).unwrap();
        assert!(helper.wait_ended(20_000));
        helper.reap().unwrap();
        assert_eq!(probe(&helper_path).unwrap(), Held::Free);
        assert_eq!(probe(&lane_path).unwrap(), Held::Held);

        let agent = striatum::os::process::Handle::open(&agent).unwrap();
        agent.signal(Signal::KILL).unwrap();
        assert!(agent.wait_ended(20_000));
        until("the lane lock is free", || probe(&lane_path).unwrap() == Held::Free);
    });
}

#[test]
fn helper_child() {
    as_child("lane::helper_child", || {
        let locks = adopt_locks().unwrap();
        let own = Entry::read(own_pid()).unwrap();
        assert_eq!(own.session, own.pid);
        assert_eq!(std::fs::read_link("/proc/self/fd/0").unwrap(), Path::new("/dev/null"));
        let folder = PathBuf::from(std::env::var_os("PLACE").unwrap());
        let program = Program {
            argv: vec!["sleep".into(), "60".into()],
            cwd: folder.clone(),
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            stdin: LaneStdin::Null,
            output: folder.join("output.log"),
            tty: false,
            limits: Limits::default(),
        };
        let launched = spawn_lane(striatum(), &program, locks.lane.as_ref().unwrap()).unwrap();
        let text = serde_json::to_vec(launched.process.identity()).unwrap();
        striatum::os::files::write_private(&folder.join("told"), &text).unwrap();
        launched.process.wait_ended(60_000);
    });
}

#[test]
fn a_helper_that_was_not_given_its_locks_refuses() {
    alone("lane::a_helper_that_was_not_given_its_locks_refuses", || {
        rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null").unwrap()).unwrap();
        assert!(adopt_locks().is_err());
    });
}
