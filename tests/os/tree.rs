//! Ending everything that an agent started, however it hides, and nothing else.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use striatum::os::lock::{Lock, probe};
use striatum::os::process::{
    Ended, Entry, Exit, Handle, Identity, LaneStdin, Launched, Limits, Program, Signal, Table, Tree, become_reaper,
    carriers, end_tree, holders, own_pid, reap_orphans, spawn_command, spawn_lane,
};
use tempfile::TempDir;

use crate::alone::{alone, until};

fn program(folder: &TempDir, text: &str) -> Program {
    Program {
        argv: ["sh", "-c", text].map(OsString::from).to_vec(),
        cwd: folder.path().to_owned(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("MARK".into(), folder.path().into())],
        stdin: LaneStdin::Null,
        output: folder.path().join("output.log"),
        tty: false,
        limits: Limits::default(),
    }
}

/// Starts an agent as its helper does, and waits until it has printed `ready`.
fn agent(folder: &TempDir, text: &str) -> Launched {
    become_reaper().unwrap();
    let launched = spawn_command(Path::new(env!("CARGO_BIN_EXE_striatum")), &program(folder, text)).unwrap();
    until("the agent is ready", || is_ready(folder));
    launched
}

fn is_ready(folder: &TempDir) -> bool {
    std::fs::read_to_string(folder.path().join("output.log")).unwrap_or_default().contains("ready")
}

fn tree(launched: &Launched) -> Tree {
    Tree { root: launched.process.identity().clone(), adopts_orphans: true, spare: Vec::new() }
}

fn end(launched: &Launched, grace_ms: u64) -> Ended {
    let ended = end_tree(&tree(launched), grace_ms, &mut Vec::new);
    assert!(ended.is_clean(), "{ended:?}");
    assert!(launched.process.has_ended());
    let left: Vec<Entry> = Table::read().descendants(own_pid()).into_iter().cloned().collect();
    let left: Vec<&Entry> = left.iter().filter(|entry| entry.pid != launched.process.identity().pid).collect();
    assert!(left.is_empty(), "{} left, such as {:?}", left.len(), left.first());
    ended
}

#[test]
fn an_agent_that_obeys_is_not_killed_and_its_exit_is_left_to_its_holder() {
    alone("tree::an_agent_that_obeys_is_not_killed_and_its_exit_is_left_to_its_holder", || {
        let folder = TempDir::new().unwrap();
        let launched = agent(&folder, "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done");
        assert_eq!(end(&launched, 20_000), Ended::default());
        assert_eq!(launched.process.reap().unwrap(), Some(Exit { code: Some(3), signal: None }));
    });
}

#[test]
fn a_stopped_agent_is_woken_to_obey() {
    alone("tree::a_stopped_agent_is_woken_to_obey", || {
        let folder = TempDir::new().unwrap();
        let launched = agent(&folder, "echo ready; exec sleep 60");
        launched.process.signal(Signal::STOP).unwrap();
        assert_eq!(end(&launched, 20_000), Ended::default());
        assert_eq!(launched.process.reap().unwrap().unwrap().signal, Some(15));
    });
}

#[test]
fn children_that_fork_twice_ignore_signals_and_leave_the_session_are_ended() {
    alone("tree::children_that_fork_twice_ignore_signals_and_leave_the_session_are_ended", || {
        let folder = TempDir::new().unwrap();
        let stubborn = "trap '' HUP TERM INT; while :; do sleep 1; done";
        let text = format!(
            "trap '' TERM; for i in 1 2 3; do (setsid sh -c \"{stubborn}\" </dev/null >/dev/null 2>&1 &) & done; wait; \
             while [ $(pgrep -cf 'trap .. HUP TERM INT; while') -lt 4 ]; do sleep 0.02; done; echo ready; while :; do sleep 1; done"
        );
        let launched = agent(&folder, &text);
        let before = tree(&launched).members();
        assert!(before.iter().filter(|entry| entry.parent == own_pid()).count() >= 4, "{before:?}");
        let ended = end(&launched, 50);
        assert!(ended.rounds >= 1 && ended.killed.len() >= 4, "{ended:?}");
        assert_eq!(launched.process.reap().unwrap().unwrap().signal, Some(9));
    });
}

#[test]
fn a_daemon_that_an_agent_leaves_behind_with_nothing_open_is_ended() {
    alone("tree::a_daemon_that_an_agent_leaves_behind_with_nothing_open_is_ended", || {
        let folder = TempDir::new().unwrap();
        let daemon = "exec 0<&- 1>&- 2>&- 3>&-; trap '' HUP TERM; cd /; exec sleep 600";
        let launched = agent(&folder, &format!("setsid sh -c \"{daemon}\" & echo ready; exit 0"));
        assert!(launched.process.wait_ended(20_000));
        assert!(!tree(&launched).members().is_empty());
        let ended = end(&launched, 20_000);
        assert_eq!(ended.killed.len(), 1, "{ended:?}");
        assert_eq!(launched.process.reap().unwrap().unwrap().code, Some(0));
    });
}

#[test]
fn one_that_keeps_spawning_while_it_is_ended_does_not_get_away() {
    alone("tree::one_that_keeps_spawning_while_it_is_ended_does_not_get_away", || {
        let folder = TempDir::new().unwrap();
        let text = "trap '' TERM; echo ready; while :; do (setsid sleep 60 </dev/null >/dev/null 2>&1 &); done";
        let launched = agent(&folder, text);
        let ended = end(&launched, 100);
        assert!(ended.killed.len() > 2, "{ended:?}");
    });
}

#[test]
fn a_chain_in_which_each_link_forks_the_next_and_ends_is_caught() {
    alone("tree::a_chain_in_which_each_link_forks_the_next_and_ends_is_caught", || {
        let folder = TempDir::new().unwrap();
        let launched = agent(&folder, "trap '' TERM; link() { link & }; echo ready; link");
        end(&launched, 0);
    });
}

#[test]
fn the_helpers_own_children_and_impostors_are_spared() {
    alone("tree::the_helpers_own_children_and_impostors_are_spared", || {
        let folder = TempDir::new().unwrap();
        let launched = agent(&folder, "trap '' TERM; echo ready; while :; do sleep 1; done");
        let mut check = std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let pid = i32::try_from(check.id()).unwrap();
        until("the check has its child", || Table::read().descendants(pid).len() == 1);
        let mut all = Tree { spare: vec![pid], ..tree(&launched) };
        // Whoever has a pid of the tree later is somebody else.
        let impostor = Identity { start_ticks: 1, ..Identity::of(pid).unwrap() };
        let ended =
            end_tree(&all, 0, &mut || vec![impostor.clone(), Identity::own().unwrap(), Identity::of(1).unwrap()]);
        assert_eq!(ended.survivors, []);
        assert!(launched.process.has_ended());
        assert_eq!(check.try_wait().unwrap(), None);
        assert_eq!(Table::read().descendants(pid).len(), 1);

        all.spare.clear();
        all.root = impostor;
        assert_eq!(end_tree(&Tree { adopts_orphans: false, ..all.clone() }, 0, &mut Vec::new), Ended::default());
        assert_eq!(check.try_wait().unwrap(), None);
        assert_eq!(end_tree(&all, 0, &mut Vec::new).killed.len(), 2);
        let _ = check.wait();
    });
}

#[test]
fn whoever_asks_is_in_the_tree_by_descent_or_by_adoption_or_is_not() {
    alone("tree::whoever_asks_is_in_the_tree_by_descent_or_by_adoption_or_is_not", || {
        let folder = TempDir::new().unwrap();
        let launched = agent(&folder, "(setsid sleep 61 &); sleep 62 & echo ready; wait");
        until("both sleep", || tree(&launched).members().iter().filter(|entry| entry.name == "sleep").count() == 2);
        let mut check = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(check.id()).unwrap();
        let with_check = Tree { spare: vec![pid], ..tree(&launched) };
        for entry in with_check.members() {
            assert!(with_check.contains(entry.pid), "{entry:?}");
            let by_descent = Tree { adopts_orphans: false, ..with_check.clone() };
            assert_eq!(by_descent.contains(entry.pid), entry.parent != own_pid() || entry.pid == with_check.root.pid);
        }
        for outside in [pid, own_pid(), 1, 0, -1] {
            assert!(!with_check.contains(outside), "{outside}");
        }
        check.kill().unwrap();
        check.wait().unwrap();
        end(&launched, 0);
    });
}

#[test]
fn orphans_are_reaped_one_by_one_and_the_agent_is_not() {
    alone("tree::orphans_are_reaped_one_by_one_and_the_agent_is_not", || {
        let folder = TempDir::new().unwrap();
        let launched = agent(&folder, "(sh -c 'exit 1' &); (sh -c 'exit 2' &); echo ready; exit 5");
        assert!(launched.process.wait_ended(20_000));
        let mut reaped = 0;
        until("both orphans are reaped", || {
            reaped += reap_orphans(&tree(&launched));
            Table::read().descendants(own_pid()).len() == 1
        });
        assert_eq!(reaped, 2);
        assert_eq!(launched.process.reap().unwrap().unwrap().code, Some(5));
    });
}

#[test]
fn what_carries_the_session_or_holds_its_lock_is_found_and_a_look_at_the_lock_is_not() {
    alone("tree::what_carries_the_session_or_holds_its_lock_is_found_and_a_look_at_the_lock_is_not", || {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("lane.lock");
        let lock = Lock::try_exclusive(&path).unwrap().unwrap();
        let place = lock.place().unwrap();
        // One keeps the lock and drops the environment, the other the other way round.
        let keeps_lock = "setsid env -i sleep 60 <&- >&- 2>&- &";
        let keeps_mark = "setsid sh -c 'exec 3<&-; exec sleep 60' <&- >&- 2>&- &";
        let mut order = program(&folder, &format!("{keeps_lock} {keeps_mark} echo ready"));
        order.env.push(("STRIATUM_SESSION".into(), "s12".into()));
        let launched = spawn_lane(Path::new(env!("CARGO_BIN_EXE_striatum")), &order, &lock).unwrap();
        drop(lock);
        assert!(launched.process.wait_ended(20_000));
        launched.process.reap().unwrap();

        let mark = folder.path().as_os_str().to_owned();
        let marked = || carriers(&[("STRIATUM_SESSION", OsStr::new("s12")), ("MARK", &mark)]);
        let holding = || holders(place, OsStr::new("lane.lock"));
        let is_sleeping = |found: &[Identity]| {
            found.len() == 1 && Entry::read(found[0].pid).is_some_and(|entry| entry.name == "sleep")
        };
        until("each is found in its way", || is_sleeping(&marked()) && is_sleeping(&holding()));
        assert_ne!(marked(), holding());
        assert_eq!(carriers(&[("STRIATUM_SESSION", OsStr::new("s1")), ("MARK", &mark)]), []);

        // Somebody who looks at the lock for a long time.
        let mut looks =
            std::process::Command::new("sleep").arg("60").stdin(std::fs::File::open(&path).unwrap()).spawn().unwrap();
        assert_eq!(holding().len(), 1);

        let gone = Tree { root: launched.process.identity().clone(), adopts_orphans: false, spare: Vec::new() };
        let ended = end_tree(&gone, 1_000, &mut || [marked(), holding()].concat());
        assert_eq!((ended.killed.len(), ended.survivors.len()), (2, 0));
        assert_eq!(looks.try_wait().unwrap(), None);
        looks.kill().unwrap();
        looks.wait().unwrap();
        until("the lock is free", || probe(&path).unwrap() == striatum::os::lock::Held::Free);
    });
}

#[test]
fn cpu_time_grows_while_anything_in_the_tree_computes() {
    alone("tree::cpu_time_grows_while_anything_in_the_tree_computes", || {
        let folder = TempDir::new().unwrap();
        let launched = agent(&folder, "(setsid sh -c 'while :; do :; done' &); echo ready; exec sleep 60");
        let busy = tree(&launched);
        let first = busy.cpu_ticks();
        until("it has used more", || busy.cpu_ticks() > first);
        end(&launched, 1_000);
        let handle = Handle::open(launched.process.identity()).unwrap();
        assert!(handle.reap().unwrap().is_some());
    });
}
