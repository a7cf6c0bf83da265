//! A process dies by SIGKILL while a resource is made, used or destroyed: the next driver destroys what it left, each is
//! made at most once, and the run ends as if nothing had been.

use crate::support::{TestRepo, kill, wait_until};

fn told(mode: &str) -> TestRepo {
    let repo = TestRepo::new();
    let (ephemeral, things) = (repo.ephemeral(), repo.things());
    let text = format!(
        "[lanes.script]\ncommand = \"@agent\"\nmode = \"{mode}\"\ntimeout = \"50s\"\n[[jobs]]\nid = \"try\"\n\
         role = \"author\"\nlane = \"script\"\ntree = \"none\"\n\
         verify = [[\"sh\", \"-c\", \"test -d {}/there/$STRIATUM_RESOURCE\"]]\n{ephemeral}\n",
        things.display()
    );
    repo.workflow("w", &text);
    repo.agent("try", &format!("test -n \"$(ls {}/there)\" || exit 1; complete", things.display()));
    repo
}

/// Drives, again after each death, until a driver ends by itself.
fn drive_on(repo: &TestRepo) -> crate::support::Output {
    for deaths in 0.. {
        let driven = repo.drive();
        if driven.code != -9 {
            return driven;
        }
        assert!(deaths < 3, "{driven}");
    }
    unreachable!()
}

fn ends_well(repo: &TestRepo, run: &str, driven: &crate::support::Output) {
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    assert_eq!(repo.count("job WHERE strikes > 0"), 0, "{}", repo.told());
    repo.check_nobody_left();
    repo.check_nothing_there();
    repo.check_completed(run);
}

fn dies_at(point: &str) {
    let repo = told("oneshot");
    let run = repo.start("w");
    repo.crash_at(point);
    let driven = drive_on(&repo);
    assert!(!repo.is_crash_pending(), "nobody came by {point}\n{driven}");
    ends_well(&repo, &run, &driven);
}

fn resident_dies_at(point: &str) {
    let repo = told("loop");
    let run = repo.start("w");
    repo.crash_at(point);
    let driven = drive_on(&repo);
    assert!(!repo.is_crash_pending(), "nobody came by {point}\n{driven}");
    ends_well(&repo, &run, &driven);
}

/// A helper dies while its resource is being made; whoever destroys what it left dies, too.
fn destroyer_dies_at(point: &str) {
    let repo = told("oneshot");
    let run = repo.start("w");
    repo.thing("waits-create", true);
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("it is being made", || repo.asked() == ["create 1"]);
    repo.crash_at(point);
    kill(repo.one("SELECT pid FROM supervisor WHERE state = 'attached'", ()));
    wait_until("somebody came by", || !repo.is_crash_pending());
    repo.thing("waits-create", false);
    let mut driven = driver.wait();
    if driven.code == -9 {
        driven = drive_on(&repo);
    }
    ends_well(&repo, &run, &driven);
}

macro_rules! points {
    ($dies:ident: $($name:ident: $point:literal,)*) => { $(
        #[test]
        fn $name() {
            $dies($point);
        }
    )* };
}

points! { dies_at:
    a_helper_dies_before_a_resource_is_intended: "resource.uncommitted",
    a_helper_dies_after_a_resource_was_intended: "resource.intended",
    a_helper_dies_while_a_resource_is_made: "verify.spawned",
    a_helper_dies_when_a_resource_is_made: "resource.made",
    a_helper_dies_after_it_told_that_a_resource_is_made: "resource create.committed",
    a_helper_dies_when_a_resource_is_checked: "resource.checked",
    a_helper_dies_when_a_resource_is_ready: "resource.ready",
    a_helper_dies_when_an_agent_with_a_resource_is_intended: "agent.intended",
    a_helper_dies_when_an_agent_with_a_resource_runs: "agent.spawned",
    a_helper_dies_when_an_agent_with_a_resource_ended: "agent.ended",
    a_helper_dies_when_an_answer_with_a_resource_was_checked: "settle.checked",
    a_helper_dies_before_it_intends_to_destroy: "resource destroy.uncommitted",
    a_helper_dies_after_it_intended_to_destroy: "resource.destroying",
    a_helper_dies_when_a_resource_is_gone: "resource.gone",
    a_helper_dies_before_it_tells_that_a_resource_is_gone: "resource destroyed.uncommitted",
    a_helper_dies_after_it_told_that_a_resource_is_gone: "resource.released",
    a_helper_dies_before_the_seal_of_a_job_with_a_resource: "seal.uncommitted",
    a_helper_dies_after_the_seal_of_a_job_with_a_resource: "seal.committed",
}

points! { resident_dies_at:
    a_residents_helper_dies_while_a_resource_is_made: "verify.spawned",
    a_residents_helper_dies_when_a_resource_is_ready: "resource.ready",
    a_residents_helper_dies_when_a_resource_is_gone: "resource.gone",
    a_residents_helper_dies_before_it_seals_without_its_resource: "resource.released",
}

points! { destroyer_dies_at:
    a_driver_dies_before_it_intends_to_have_a_resource_destroyed: "resource begin.uncommitted",
    a_driver_dies_before_somebody_destroys_a_resource: "resource.begun",
    a_destroyer_dies_at_once: "resource.taken",
    a_destroyer_dies_when_a_resource_is_gone: "resource.gone",
    a_destroyer_dies_before_it_tells_that_a_resource_is_gone: "resource destroyed.uncommitted",
    a_destroyer_dies_after_it_told_that_a_resource_is_gone: "resource destroyed.committed",
}

#[test]
fn driver_helper_and_agent_die_at_once_and_the_next_driver_destroys_what_they_had() {
    let repo = told("oneshot");
    repo.agent("try.1", "hold work; complete");
    let run = repo.start("w");
    let mut driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("its agent works", || repo.notes().iter().any(|note| note.word == "holds work"));
    let helper: i32 = repo.one("SELECT pid FROM supervisor WHERE state = 'attached'", ());
    let agent = repo.agent_pid("try").unwrap();
    driver.kill();
    kill(helper);
    kill(agent);
    let driven = drive_on(&repo);
    ends_well(&repo, &run, &driven);
    assert_eq!(repo.attempts().len(), 2, "{:?}", repo.attempts());
}

#[test]
fn nobody_drives_any_more_and_gc_destroys_what_a_dead_worker_had() {
    let repo = told("oneshot");
    repo.thing("waits-create", true);
    repo.start("w");
    let worker = repo.register("author", "script").sharing_process();
    let mut claim = repo.spawn_command(worker.command(&["claim"]));
    wait_until("it is being made", || repo.asked() == ["create 1"]);
    claim.kill();
    repo.striatum(&["run", "cancel", "--reason", "enough"]).ok();
    let listed = repo.striatum(&["gc"]).ok().stdout;
    assert!(listed.contains("of w-1/try"), "{listed}");
    // The command that made it still runs: it is ended first, so that nothing comes after its end.
    repo.striatum(&["gc", "--yes"]).ok();
    repo.thing("waits-create", false);
    repo.check_nobody_left();
    repo.check_nothing_there();
}

#[test]
fn the_next_driver_of_an_ended_run_destroys_what_a_dead_worker_had() {
    let repo = told("oneshot");
    repo.thing("waits-create", true);
    let run = repo.start("w");
    let worker = repo.register("author", "script").sharing_process();
    let mut claim = repo.spawn_command(worker.command(&["claim"]));
    wait_until("it is being made", || repo.asked() == ["create 1"]);
    claim.kill();
    repo.striatum(&["run", "cancel", "--reason", "enough"]).ok();
    let foreseen = repo.striatum(&["run", "drive", "--run-id", &run, "--dry-run"]);
    assert!(foreseen.stdout.contains("would destroy/db-"), "{foreseen}");
    assert_eq!(repo.asked(), ["create 1"]);
    let driven = repo.striatum(&["run", "drive", "--run-id", &run]).exits(1);
    assert!(driven.stdout.contains("of try: its holder is gone"), "{driven}");
    repo.thing("waits-create", false);
    repo.check_nobody_left();
    repo.check_nothing_there();
    repo.check_sound();
}

#[test]
fn one_that_kills_whoever_destroys_it_is_left_to_a_person() {
    let repo = told("oneshot");
    let run = repo.start("w");
    repo.thing("waits-create", true);
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("it is being made", || repo.asked() == ["create 1"]);
    // As three that died over it would have left it.
    let store = rusqlite::Connection::open(repo.db()).unwrap();
    store.execute("UPDATE resource SET tries = 3", ()).unwrap();
    kill(repo.one("SELECT pid FROM supervisor WHERE state = 'attached'", ()));
    wait_until("it is left", || repo.count("resource WHERE state = 'left'") == 1);
    repo.thing("waits-create", false);
    driver.wait().ok();
    assert_eq!(repo.run_state(&run), "completed");
    let inbox = repo.striatum(&["inbox"]).ok().stdout;
    assert!(inbox.contains("could not be destroyed: whoever was to destroy it died"), "{inbox}");
    repo.striatum(&["gc", "--yes"]).ok();
    repo.check_nothing_there();
    repo.check_completed(&run);
}
