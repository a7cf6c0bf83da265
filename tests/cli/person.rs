//! Who counts as a person: a terminal without an agent above it, or somebody's word that is kept.

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use super::gate::CHECKED;
use crate::support::TestRepo;

fn at_the_gate() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", CHECKED);
    repo.agent("draft", "write notes.txt hello; complete");
    repo.start("w");
    repo.drive().exits(4);
    repo
}

/// A terminal: the near end keeps it open.
fn terminal() -> (OwnedFd, OwnedFd) {
    let near = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&near).unwrap();
    rustix::pty::unlockpt(&near).unwrap();
    let name = rustix::pty::ptsname(&near, Vec::new()).unwrap();
    let far = std::fs::OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (near, far.into())
}

fn at_terminal(mut command: Command) -> (std::process::Output, OwnedFd) {
    let (near, far) = terminal();
    command.stdin(Stdio::from(far.try_clone().unwrap())).stderr(Stdio::from(far));
    (command.output().unwrap(), near)
}

/// An agent's program stands above these tests.
fn is_below_an_agent() -> bool {
    use striatum::os::process::{ancestors, by_words, own_pid, words_of};
    ancestors(own_pid()).iter().any(|entry| by_words(&entry.name, &words_of(entry.pid)).is_some())
}

#[test]
fn without_a_terminal_a_persons_verb_is_refused_with_the_command_for_the_person() {
    let repo = at_the_gate();
    let refused = repo.json(&["gate", "approve", "ship", "--note", "it's fine"]).refused(7, "person_required");
    assert_eq!(refused["next"][0]["who"], "person");
    assert_eq!(
        refused["next"][0]["argv"],
        serde_json::json!(["striatum", "gate", "approve", "ship", "--note", "it's fine", "--json"])
    );
    assert_eq!(repo.count("gate WHERE state = 'pending'"), 1);
}

#[test]
fn every_verb_of_a_person_asks_for_one() {
    let repo = at_the_gate();
    let verbs: [&[&str]; 7] = [
        &["gate", "approve", "ship"],
        &["gate", "reject", "ship"],
        &["gate", "skip", "ship"],
        &["answer", "draft", "yes"],
        &["take", "draft"],
        &["give", "draft"],
        &["review", "override-verdict", "draft", "--verdict", "accept", "--reason", "x"],
    ];
    for verb in verbs {
        repo.json(verb).refused(7, "person_required");
    }
    let force = ["register-session", "--role", "author", "--lane", "script", "--force-non-fresh", "--reason", "x"];
    repo.json(&force).refused(7, "person_required");
}

#[test]
fn an_agent_above_is_seen_by_what_it_sets() {
    let repo = at_the_gate();
    let mut command = repo.command(&["gate", "approve", "ship", "--json"]);
    command.env("CLAUDECODE", "1");
    let refused = repo.run(&mut command).refused(7, "person_required");
    assert!(refused["message"].as_str().unwrap().contains("Claude Code (CLAUDECODE is set)"), "{refused}");
    let mut command = repo.command(&["gate", "approve", "ship", "--as-person"]);
    command.env("CLAUDECODE", "1");
    repo.run(&mut command).ok();
    let how: String = repo.one("SELECT how FROM gate", ());
    assert_eq!(how, "--as-person; detected Claude Code (CLAUDECODE is set)");
}

#[test]
fn whoever_sits_at_a_terminal_is_a_person() {
    let repo = at_the_gate();
    let (output, _near) = at_terminal(repo.command(&["gate", "approve", "ship"]));
    // Where an agent runs these tests, that agent is found among the ancestors, terminal or not.
    if is_below_an_agent() {
        assert_eq!(output.status.code(), Some(7));
    } else {
        assert!(output.status.success());
        assert_eq!(repo.one::<String>("SELECT how FROM gate", ()), "terminal");
    }
}

#[test]
fn a_lane_of_this_store_is_never_a_person_whatever_it_says() {
    let repo = TestRepo::new();
    repo.workflow("w", CHECKED);
    // Its socket aside, the lane is known by its ancestors and by its environment.
    let bare = "env -u STRIATUM_SOCKET striatum gate approve ship --as-person --json > refused.json; note exit $?";
    let marks = "setsid env -u STRIATUM_SOCKET striatum lane pause script --json > marked.json; note exit $?";
    repo.agent("draft", &format!("write notes.txt x; {bare}; {marks}; cp *.json \"$AGENT\"; complete"));
    repo.start("w");
    repo.drive().exits(4);
    for name in ["refused.json", "marked.json"] {
        let refused = std::fs::read_to_string(repo.root().join("agent").join(name)).unwrap();
        let refused: serde_json::Value = serde_json::from_str(&refused).unwrap();
        assert_eq!(refused["code"], "capability_denied", "{name}: {refused}");
    }
    assert_eq!(repo.count("gate WHERE state = 'pending'"), 1);
    assert_eq!(repo.count("lane"), 0);
}

#[test]
fn the_environment_of_an_active_session_marks_a_lane_of_its_own_store_only() {
    let repo = TestRepo::new();
    repo.workflow("w", CHECKED);
    repo.start("w");
    repo.register("author", "script");
    let marked = |dir: Option<&str>, session: &str| {
        let mut command = repo.command(&["lane", "pause", "script", "--json"]);
        command.env("STRIATUM_SESSION", session);
        if let Some(dir) = dir {
            command.env("STRIATUM_DIR", dir).args(["--dir", repo.dir().to_str().unwrap()]);
        }
        repo.run(&mut command)
    };
    marked(None, "s1").refused(7, "capability_denied");
    marked(Some(repo.dir().to_str().unwrap()), "s1").refused(7, "capability_denied");
    // A session that does not exist here, and one of another store.
    marked(None, "s9").ok();
    marked(Some(repo.root().to_str().unwrap()), "s1").ok();
}

#[test]
fn an_inherited_lock_of_a_lane_marks_it() {
    let repo = TestRepo::new();
    repo.workflow("w", CHECKED);
    repo.start("w");
    let script = format!(
        "mkdir -p {dir}/scratch/s7 && exec 9> {dir}/scratch/s7/lane.lock && exec {striatum} lane pause script --json",
        dir = repo.dir().display(),
        striatum = crate::support::STRIATUM
    );
    let refused = repo.run(&mut repo.command_of("sh", &["-c", &script])).refused(7, "capability_denied");
    assert!(refused["message"].as_str().unwrap().contains("s7"), "{refused}");
}
