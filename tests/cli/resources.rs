//! Ephemeral resources: made and checked before a job's agent, named to it, destroyed after it whatever it came to, and
//! listed when they can't be.

use crate::support::{TestRepo, wait_until};

/// One job with a thing of its own, and more keys.
fn one(keys: &str) -> TestRepo {
    with_mode("oneshot", keys)
}

fn with_mode(mode: &str, keys: &str) -> TestRepo {
    let repo = TestRepo::new();
    let ephemeral = repo.ephemeral();
    let keys = keys.replace("THINGS", repo.things().to_str().unwrap());
    let text = format!(
        "[lanes.script]\ncommand = \"@agent\"\nmode = \"{mode}\"\ntimeout = \"50s\"\n[[jobs]]\nid = \"try\"\n\
         role = \"author\"\nlane = \"script\"\ntree = \"none\"\n{keys}\n{ephemeral}\n"
    );
    repo.workflow("w", &text);
    repo
}

/// An agent's line that fails unless its thing is there.
fn uses(repo: &TestRepo) -> String {
    format!("test -d {}/there/$STRIATUM_RESOURCE || fail 'it is not there'", repo.things().display())
}

#[test]
fn a_resource_is_there_for_its_agent_and_its_verification_and_gone_with_the_seal() {
    let repo = one("verify = [[\"sh\", \"-c\", \"test -d THINGS/there/$STRIATUM_RESOURCE\"]]");
    repo.agent("try", &format!("{}; hold on; complete", uses(&repo)));
    repo.start("w");
    let driver = repo.spawn(&["run", "drive"]);
    wait_until("its agent works", || repo.notes().iter().any(|note| note.word == "holds on"));
    let name: String = repo.one("SELECT name FROM resource", ());
    assert_eq!(repo.there(), std::slice::from_ref(&name));
    assert!(name.starts_with("db-") && name.len() == 15, "{name}");
    let packet = repo.rows("SELECT name, state, tries FROM resource").concat();
    assert_eq!(packet, format!("{name} ready 0"));
    let scratch = repo.dir().join("scratch/s1/try.1");
    let prompt = std::fs::read_to_string(scratch.join("prompt.md")).unwrap();
    assert!(prompt.contains(&format!("`{name}` (also in `STRIATUM_RESOURCE`)")), "{prompt}");
    repo.go("on");
    driver.wait().ok();
    // It reaches nothing of others': nobody was asked.
    assert_eq!(repo.count("gate"), 0);
    assert_eq!(repo.asked(), ["create 1", "check 1", "destroy 1"]);
    assert_eq!(
        repo.story(&["ephemeral.", "job.sealed", "verify."]),
        [
            "ephemeral.created try",
            "ephemeral.checked try",
            "verify.ended try",
            "ephemeral.destroyed try",
            "job.sealed try"
        ]
    );
    repo.check_nothing_there();
    repo.check_completed("w-1");
}

#[test]
fn every_attempt_has_one_of_its_own_and_each_goes_whatever_its_end() {
    let repo = one("max_strikes = 3");
    repo.agent("try.1", &format!("{}; fail 'not today'", uses(&repo)));
    repo.agent("try.2", &format!("{}; exit 1", uses(&repo)));
    repo.agent("try.3", &format!("{}; complete", uses(&repo)));
    repo.start("w");
    repo.drive().ok();
    let each = |number: u32| ["create", "check", "destroy"].map(|word| format!("{word} {number}"));
    assert_eq!(repo.asked(), [each(1), each(2), each(3)].concat());
    assert_eq!(repo.attempts(), ["try.1 failed: not today", "try.2 failed: exit 1 without an answer", "try.3 sealed"]);
    repo.check_nothing_there();
    repo.check_completed("w-1");
}

#[test]
fn one_that_can_not_be_made_or_used_is_a_persons_matter_and_nothing_of_it_stays() {
    for word in ["create", "check"] {
        let repo = one("");
        repo.agent("try", "complete");
        repo.thing(&format!("fails-{word}"), true);
        repo.start("w");
        repo.drive().exits(3);
        let detail = repo.rows("SELECT outcome, detail FROM attempt").concat();
        assert!(detail.starts_with(&format!("environment {word} of db-")), "{detail}");
        assert!(detail.ends_with(&format!(": it failed: {word} is stuck")), "{detail}");
        assert_eq!(repo.effects().len(), 0, "an agent was started");
        assert_eq!(repo.asked().last().map(String::as_str), Some("destroy 1"));
        repo.check_nothing_there();
        repo.thing(&format!("fails-{word}"), false);
        repo.striatum(&["run", "retry-job", "try", "--reason", "mended"]).ok();
        repo.drive().ok();
        repo.check_nothing_there();
        repo.check_completed("w-1");
    }
}

#[test]
fn one_that_can_not_be_destroyed_is_listed_until_it_is_and_undoes_nothing() {
    let repo = one("");
    repo.agent("try", "complete");
    repo.thing("fails-destroy", true);
    repo.start("w");
    repo.drive().ok();
    assert_eq!(repo.run_state("w-1"), "completed");
    let name: String = repo.one("SELECT name FROM resource WHERE state = 'left'", ());
    let inbox = repo.json(&["inbox"]).ok().value();
    let item = &inbox["items"][0];
    assert_eq!((&item["id"], &item["kind"], &item["run"]), (&name.clone().into(), &"resource".into(), &"w-1".into()));
    assert_eq!(item["text"], "could not be destroyed: it failed: destroy is stuck");
    let by_hand = format!("striatum gc --discard {name} --reason ... --yes");
    assert_eq!(crate::support::next_commands(item), ["striatum gc --yes".to_owned(), by_hand]);
    let doctor = repo.json(&["doctor"]).value();
    let codes = doctor["checks"].as_array().unwrap().iter().flat_map(|check| check["findings"].as_array().unwrap());
    assert!(codes.clone().any(|finding| finding["code"] == "resource_left"), "{doctor}");
    let listed = repo.striatum(&["gc"]).ok().stdout;
    assert!(listed.contains(&format!("resource {name} of w-1/try")), "{listed}");
    assert_eq!(repo.asked().len(), 3, "to list is not to try");
    let tried = repo.striatum(&["gc", "--yes"]).ok().stdout;
    assert!(tried.contains("stays:") && tried.contains("it failed: destroy is stuck"), "{tried}");
    repo.thing("fails-destroy", false);
    let tried = repo.striatum(&["gc", "--yes"]).ok().stdout;
    assert!(tried.contains(&format!("resource {name} of w-1/try")) && !tried.contains("stays:"), "{tried}");
    assert_eq!(repo.striatum(&["inbox"]).ok().stdout, "inbox: empty\n");
    assert_eq!(repo.rows("SELECT state, tries FROM resource"), ["destroyed 3"]);
    assert_eq!(repo.story(&["ephemeral.left", "ephemeral.destroyed"]).len(), 3);
    repo.check_nothing_there();
    repo.check_sound();
}

#[test]
fn one_that_was_destroyed_by_hand_is_listed_until_somebody_says_so() {
    let repo = one("");
    repo.agent("try", "complete");
    repo.thing("fails-destroy", true);
    repo.start("w");
    repo.drive().ok();
    let name: String = repo.one("SELECT name FROM resource WHERE state = 'left'", ());
    std::fs::remove_dir(repo.things().join("there").join(&name)).unwrap();
    let refused = repo.striatum(&["uninit", "--yes"]).exits(5).stderr;
    assert!(refused.contains("destroyed by hand: `gc --discard NAME"), "{refused}");
    repo.json(&["gc", "--discard", "db-other", "--reason", "gone", "--yes"]).refused(2, "not_found");
    repo.json(&["gc", "--discard", &name, "--yes"]).exits(2);
    repo.striatum(&["gc", "--discard", &name, "--reason", "by hand"]).ok();
    assert_eq!(repo.count("resource WHERE state = 'left'"), 1, "to list is not to do");
    repo.striatum(&["gc", "--discard", &name, "--reason", "by hand", "--yes"]).ok();
    assert_eq!(repo.rows("SELECT state, reason FROM resource"), ["destroyed by hand"]);
    assert_eq!(repo.striatum(&["inbox"]).ok().stdout, "inbox: empty\n");
    repo.check_sound();
}

#[test]
fn commands_that_are_not_trusted_any_more_destroy_nothing() {
    let repo = one("");
    repo.agent("try", "complete");
    repo.thing("fails-destroy", true);
    repo.start("w");
    repo.drive().ok();
    repo.thing("fails-destroy", false);
    let trust = repo.root().join("state/striatum/trust");
    let trust = if trust.exists() { trust } else { repo.root().join("home/.local/state/striatum/trust") };
    let aside = trust.with_file_name("aside");
    std::fs::rename(&trust, &aside).unwrap();
    let tried = repo.striatum(&["gc", "--yes"]).ok().stdout;
    assert!(tried.contains("its commands are not trusted any more"), "{tried}");
    assert_eq!(repo.there().len(), 1);
    let _ = std::fs::remove_dir_all(&trust);
    std::fs::rename(&aside, &trust).unwrap();
    repo.striatum(&["gc", "--yes"]).ok();
    repo.check_nothing_there();
}

#[test]
fn a_resource_that_is_a_process_outlives_commands_and_agent_and_ends_with_its_attempt() {
    let sees = "[\"sh\", \"-c\", \"kill -0 $(cat THINGS/there/$STRIATUM_RESOURCE/pid)\"]";
    let repo = one(&format!("verify = [{sees}, {sees}]"));
    repo.thing("lives", true);
    let pid = format!("$(cat {}/there/$STRIATUM_RESOURCE/pid)", repo.things().display());
    repo.agent("try", &format!("until kill -0 {pid}; do sleep 0.02; done; effect sees {pid}; complete"));
    repo.start("w");
    repo.drive().ok();
    let seen = repo.effects().into_iter().find_map(|effect| effect.word.strip_prefix("sees ").map(str::to_owned));
    let pid: i32 = seen.unwrap().parse().unwrap();
    assert!(!crate::support::is_alive(pid), "it lives on");
    repo.check_nothing_there();
    repo.check_completed("w-1");
}

#[test]
fn a_resident_agent_has_one_for_each_piece_of_work() {
    let repo = with_mode("loop", "max_strikes = 3");
    let things = repo.things().display().to_string();
    let uses = format!("test -n \"$(ls {things}/there)\" || exit 1");
    repo.agent("try.1", &format!("{uses}; fail 'not today'"));
    repo.agent("try.2", &format!("{uses}; complete"));
    repo.start("w");
    repo.drive().ok();
    let each = |number: u32| ["create", "check", "destroy"].map(|word| format!("{word} {number}"));
    assert_eq!(repo.asked(), [each(1), each(2)].concat());
    repo.check_nothing_there();
    repo.check_completed("w-1");
}

#[test]
fn who_claims_without_a_helper_makes_and_destroys_it() {
    let repo = one("");
    repo.start("w");
    let mut worker = repo.register("author", "script");
    worker.claim();
    let shown = worker.work(&["show"]).ok().value();
    let name: String = repo.one("SELECT name FROM resource WHERE state = 'ready'", ());
    assert_eq!(shown["packet"]["resource"], name);
    assert_eq!(repo.asked(), ["create 1", "check 1"], "to look again makes nothing");
    worker.work(&["ack"]).ok();
    worker.work(&["complete"]).ok();
    assert_eq!(repo.asked(), ["create 1", "check 1", "destroy 1"]);
    repo.check_nothing_there();
    repo.check_completed("w-1");
}

#[test]
fn an_answer_is_refused_while_something_made_for_its_attempt_is_open() {
    let repo = one("");
    repo.start("w");
    let mut worker = repo.register("author", "script");
    worker.claim();
    worker.work(&["ack"]).ok();
    // Another one of the same attempt, which nobody gives back.
    let columns = "run_id, job_id, attempt, session_id, maker, state, tries, made_at";
    let twin = format!("INSERT INTO resource (id, name, {columns}) SELECT 0, 'db-twin', {columns} FROM resource");
    rusqlite::Connection::open(repo.db()).unwrap().execute(&twin, ()).unwrap();
    worker.work(&["complete"]).refused(5, "still_held");
    assert_eq!(repo.job_state("try"), "running");
    rusqlite::Connection::open(repo.db())
        .unwrap()
        .execute("UPDATE resource SET state = 'destroyed' WHERE id = 0", ())
        .unwrap();
    worker.work(&["complete"]).ok();
    assert_eq!(repo.job_state("try"), "completed");
}

#[test]
fn a_person_who_takes_the_job_has_one_too() {
    let repo = one("");
    repo.start("w");
    repo.striatum(&["take", "try", "--as-person"]).ok();
    assert_eq!(repo.asked(), ["create 1", "check 1"]);
    repo.striatum(&["give", "try", "--note", "another day", "--as-person"]).ok();
    repo.agent("try", "complete");
    repo.drive().ok();
    repo.check_nothing_there();
    assert_eq!(repo.count("resource"), 2);
    repo.check_completed("w-1");
}

#[test]
fn a_canceled_run_leaves_nothing_behind() {
    let repo = one("");
    repo.agent("try", "hold on; complete");
    repo.start("w");
    let driver = repo.spawn(&["run", "drive"]);
    wait_until("its agent works", || repo.notes().iter().any(|note| note.word == "holds on"));
    repo.striatum(&["run", "cancel", "--reason", "enough"]).ok();
    driver.wait().exits(1);
    wait_until("it is gone", || repo.there().is_empty());
    repo.check_nobody_left();
    repo.check_nothing_there();
    repo.check_sound();
}

#[test]
fn what_another_run_made_is_never_touched() {
    let repo = one("");
    repo.agent("try", "hold $RUN; complete");
    let first = repo.start("w");
    let one = repo.spawn(&["run", "drive", "--run-id", &first]);
    wait_until("the first has its own", || repo.there().len() == 1);
    let of_first = repo.there();
    let second = repo.start("w");
    repo.go(&second);
    repo.striatum(&["run", "drive", "--run-id", &second]).ok();
    assert_eq!(repo.there(), of_first);
    repo.striatum(&["gc", "--yes"]).ok();
    assert_eq!(repo.there(), of_first, "gc took what somebody works with");
    repo.go(&first);
    one.wait().ok();
    repo.check_nothing_there();
}

#[test]
fn its_commands_can_not_name_what_is_not_there_yet() {
    let repo = one("");
    let text = repo.read(".striatum/workflows/w.toml").replacen("${resource}", "${packet_file}", 1);
    repo.write(".striatum/workflows/w.toml", text);
    let refused = repo.striatum(&["workflow", "validate", "w"]);
    assert_ne!(refused.code, 0, "{refused}");
    assert!(refused.stderr.contains("unknown template `${packet_file}`"), "{refused}");
    assert!(refused.stderr.contains("resource, run, job, attempt"), "{refused}");
}
