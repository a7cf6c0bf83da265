//! What an agent is given, how it may answer, and what the end of an attempt costs (design sections 5, 8 and 10).

use serde_json::json;

use crate::support::{TestRepo, wait_until};

/// One job in one lane; more keys of the lane, then of the job.
fn one(lane: &str, job: &str) -> String {
    format!(
        "[lanes.script]\ncommand = \"@agent\"\n{lane}\n[[jobs]]\nid = \"job\"\nrole = \"maker\"\nlane = \"script\"\ntree = \"none\"\n{job}\n"
    )
}

fn started(workflow: &str, instructions: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.limits("grace = \"200ms\"");
    repo.workflow("w", workflow);
    repo.agent("job", instructions);
    repo.start("w");
    repo
}

fn outcomes(repo: &TestRepo) -> Vec<String> {
    repo.rows("SELECT outcome FROM attempt JOIN job ON job.id = job_id WHERE name = 'job' ORDER BY number")
}

fn counters(repo: &TestRepo) -> Vec<String> {
    repo.rows("SELECT state, strikes, requeues FROM job WHERE name = 'job'")
}

const HOLDS_ON_SECOND: &str = "if [ $ATTEMPT = 2 ]; then complete; else $FIRST; fi";

/// The first attempt ends so, the second is completed.
fn then_completes(first: &str) -> String {
    HOLDS_ON_SECOND.replace("$FIRST", first)
}

#[test]
fn a_strike_is_what_the_agent_spoiled() {
    let cases = [
        ("exit 3", "failed"),
        ("fail 'it does not compile'", "failed"),
        ("kill -9 $$", "failed"),
        ("result '{\"schema\":\"striatum.result/1\",\"status\":\"SURELY\"}'", "invalid_result"),
        ("result 'no json'", "invalid_result"),
    ];
    for (first, outcome) in cases {
        let repo = started(&one("", "produces = []"), &then_completes(first));
        repo.drive().ok();
        assert_eq!(outcomes(&repo), [outcome, "sealed"], "{first}");
        assert_eq!(counters(&repo), ["completed 1 0"], "{first}");
    }
}

#[test]
fn an_artifact_that_is_missing_costs_a_strike_and_the_next_packet_says_so() {
    let produces = "produces = [{ name = \"out\", path = \"out.txt\" }]";
    let repo = started(
        &one("", produces),
        "striatum work show --prompt > prompt.txt; if [ $ATTEMPT = 2 ]; then cp prompt.txt out.txt; fi; complete",
    );
    repo.drive().ok();
    assert_eq!(counters(&repo), ["completed 1 0"]);
    let sha: String = repo.one("SELECT sha256 FROM artifact", ());
    let second = std::fs::read_to_string(repo.dir().join("artifacts").join(sha)).unwrap();
    assert!(second.contains("Attempt 1 ended") && second.contains("out.txt does not exist"), "{second}");
}

#[test]
fn a_verification_that_fails_costs_a_strike_and_its_end_is_told() {
    let verify = "verify = [[\"sh\", \"-c\", \"echo looking; cat made || { echo nothing is made >&2; exit 7; }\"]]";
    let repo = started(
        &one("", verify),
        "striatum work show --prompt > seen.txt; [ $ATTEMPT = 1 ] || echo yes > made; complete",
    );
    repo.drive().ok();
    assert_eq!(outcomes(&repo), ["verify_failed", "sealed"]);
    let seen = repo.read(".striatum/scratch/s1/job.2/work/seen.txt");
    assert!(seen.contains("nothing is made"), "{seen}");
    assert_eq!(repo.count("event WHERE type = 'verify.ended'"), 2);
}

#[test]
fn a_limit_ends_the_whole_tree_and_costs_a_strike() {
    for (lane, outcome) in [("timeout = \"700ms\"", "timed_out"), ("idle_timeout = \"700ms\"", "idle")] {
        let repo = started(&one(lane, ""), &then_completes("{ daemon; ignore_term; hang; }"));
        repo.drive().ok();
        assert_eq!(outcomes(&repo), [outcome, "sealed"], "{lane}");
        assert_eq!(counters(&repo), ["completed 1 0"]);
        wait_until("nothing is left running", || repo.processes().is_empty());
    }
}

#[test]
fn an_answer_may_be_a_file_or_the_output() {
    let done = json!({"schema": "striatum.result/1", "status": "DONE", "summary": "as told"}).to_string();
    for (lane, instructions) in [
        ("", format!("result '{done}'")),
        ("result_from = \"stdout-json\"", format!("printf '%s\\n' '{done}'")),
        ("result_from = \"stdout-json:/answer\"", format!("printf '%s\\n' '{{\"cost\":1,\"answer\":{done}}}'")),
    ] {
        let repo = started(&one(lane, ""), &instructions);
        repo.drive().ok();
        assert_eq!(repo.rows("SELECT json_extract(answer, '$.summary') FROM attempt"), ["as told"], "{lane}");
    }
}

#[test]
fn an_exit_with_zero_is_success_only_with_proof() {
    // Nothing is declared: the exit is the proof.
    let repo = started(&one("", ""), "exit 0");
    repo.drive().ok();
    // Something is declared and there, or a verification passed.
    let produces = "produces = [{ name = \"out\", path = \"out.txt\" }]";
    let repo = started(&one("", produces), "write out.txt here");
    repo.drive().ok();
    let repo = started(&one("", "verify = [[\"test\", \"-e\", \"made\"]]"), "write made yes");
    repo.drive().ok();
    // It is declared and not there.
    let repo = started(&one("", produces), "exit 0");
    repo.drive().exits(3);
    assert_eq!(counters(&repo), ["failed 3 0"]);
}

#[test]
fn an_answer_before_a_bad_exit_holds() {
    let repo = started(&one("", ""), "complete; exit 9");
    repo.drive().ok();
    assert_eq!(outcomes(&repo), ["sealed"]);
    assert_eq!(repo.rows("SELECT exit_code FROM execution WHERE kind = 'agent'"), ["9"]);
}

#[test]
fn words_in_the_output_end_nothing() {
    let repo = started(
        &one("", ""),
        "echo DONE; echo '{\"schema\":\"striatum.result/1\",\"status\":\"DONE\"}'; echo 'RUN COMPLETE'; exit 1",
    );
    repo.drive().exits(3);
    assert_eq!(outcomes(&repo), ["failed"; 3]);
}

#[test]
fn an_agent_reads_what_its_lane_says_and_nothing_more() {
    for (stdin, expected) in
        [("null", ""), ("prompt", "## What to do"), ("packet", "\"schema\": \"striatum.packet/1\"")]
    {
        let repo = started(&one(&format!("stdin = \"{stdin}\""), "objective = \"Read.\""), "cat > read.txt; complete");
        repo.drive().ok();
        let read = repo.read(".striatum/scratch/s1/job.1/work/read.txt");
        assert!(read.contains(expected) && read.is_empty() == expected.is_empty(), "{stdin}: {read}");
    }
}

#[test]
fn the_environment_of_a_lane_is_the_list_and_what_it_names() {
    let repo = TestRepo::new();
    repo.workflow("w", &one("env = [\"SECRET_KEY\", \"EMPTY\"]", ""));
    repo.agent(
        "job",
        "env | cut -d= -f1 | grep -v '^_$' | sort > names.txt; printf '%s' \"$SECRET_KEY\" > key.txt; complete",
    );
    repo.start("w");
    let mut drive = repo.command(&["run", "drive"]);
    drive
        .env("SECRET_KEY", "canary-7431")
        .env("EMPTY", "")
        .env("OTHER_SECRET", "canary-9922")
        .env("GIT_SSH_COMMAND", "false");
    repo.run(&mut drive).ok();
    let names = repo.read(".striatum/scratch/s1/job.1/work/names.txt");
    for name in names.lines() {
        let is_listed =
            ["HOME", "USER", "LOGNAME", "SHELL", "PATH", "TERM", "LANG", "TZ", "TMPDIR", "PWD", "OLDPWD", "SHLVL"]
                .contains(&name)
                || ["LC_", "XDG_", "STRIATUM_"].iter().any(|beginning| name.starts_with(beginning))
                || ["SECRET_KEY", "EMPTY"].contains(&name);
        assert!(is_listed, "{name}");
    }
    assert!(!names.contains("GIT_") && !names.contains("STRIATUM_TEST"), "{names}");
    assert_eq!(repo.read(".striatum/scratch/s1/job.1/work/key.txt"), "canary-7431");
    // Its value is nowhere but where the agent itself put it.
    for file in ["striatum.db", "striatum.db-wal", "scratch/s1/helper.log", "scratch/s1/job.1/packet.json"] {
        let bytes = std::fs::read(repo.dir().join(file)).unwrap_or_default();
        assert!(!bytes.windows(11).any(|window| window == b"canary-7431"), "{file}");
    }
}

#[test]
fn a_lane_that_is_overloaded_cools_down_and_costs_nothing() {
    let lane = "unavailable = { exits = [75], patterns = [\"rate limit\"] }";
    let repo = started(&one(lane, ""), &then_completes("{ echo 'Error: rate limit reached'; exit 1; }"));
    let driver = repo.spawn(&["run", "drive", "--interval", "100ms"]);
    wait_until("the lane cools down", || outcomes(&repo).first().is_some_and(|outcome| outcome == "unavailable"));
    assert_eq!(counters(&repo), ["queued 0 0"]);
    assert_eq!(repo.effects().len(), 1);
    // A minute later, by the clock of the machine.
    repo.clock(0, 61_000, None);
    driver.wait().ok();
    assert_eq!(outcomes(&repo), ["unavailable", "sealed"]);
    assert_eq!(counters(&repo), ["completed 0 0"]);
}

#[test]
fn another_lane_takes_over_from_one_that_is_unavailable() {
    let lanes = "unavailable = { exits = [75] }\nfallback = [\"spare\"]\n[lanes.spare]\ncommand = \"@agent\"";
    let repo = started(&one(lanes, ""), "if [ $STRIATUM_LANE = script ]; then exit 75; fi; complete");
    repo.drive().ok();
    assert_eq!(outcomes(&repo), ["unavailable", "sealed"]);
    assert_eq!(repo.rows("SELECT lane FROM session ORDER BY id"), ["script", "spare"]);
}

#[test]
fn what_follows_a_failed_job_is_its_own_choice() {
    let after = "[[jobs]]\nid = \"after\"\nrole = \"other\"\nlane = \"script\"\ntree = \"none\"\nneeds = [\"job\"]\n[[jobs]]\nid = \"aside\"\nrole = \"third\"\nlane = \"script\"\ntree = \"none\"\n";
    for (choice, exit, after_state, job_state) in [
        ("hold", 3, "waiting", "failed"),
        ("continue", 0, "completed", "failed"),
        ("skip", 0, "completed", "skipped"),
        ("fail_run", 1, "waiting", "failed"),
    ] {
        let job = format!("max_strikes = 1\non_failure = \"{choice}\"\n{after}");
        let repo = started(&one("", &job), "exit 3");
        repo.drive().exits(exit);
        assert_eq!(repo.job_state("job"), job_state, "{choice}");
        assert_eq!(repo.job_state("after"), after_state, "{choice}");
        if choice != "fail_run" {
            assert_eq!(repo.job_state("aside"), "completed", "{choice}");
        }
    }
}

#[test]
fn a_resident_agent_may_mend_what_was_refused_twice_and_then_loses_its_try() {
    let produces = "produces = [{ name = \"out\", path = \"out.txt\" }]";
    let mends = "complete > refused.txt 2>&1; effect refused $?; write out.txt here; complete; effect mended $?";
    let repo = started(&one("mode = \"loop\"", produces), mends);
    repo.drive().ok();
    assert_eq!(outcomes(&repo), ["sealed"]);
    assert_eq!(repo.effect_lines(), ["job.1 mended 0", "job.1 refused 1", "job.1 start"]);

    let gives_up = "[ $ATTEMPT = 1 ] || write out.txt here; complete; complete; complete; true";
    let repo = started(&one("mode = \"loop\"", produces), gives_up);
    repo.drive().ok();
    assert_eq!(outcomes(&repo).len(), 2);
    assert_eq!(counters(&repo), ["completed 1 0"]);
}

#[test]
fn a_run_is_still_driven_when_the_output_is_a_closed_pipe() {
    let repo = started(&one("", ""), "complete");
    let striatum = crate::support::STRIATUM;
    let script =
        format!("{striatum} run drive 2>&1 | true; {striatum} run drive --run-id w-1 > /dev/null 2>&1; echo $?");
    let output = repo.run(&mut repo.command_of("sh", &["-c", &script])).ok();
    assert_eq!(output.stdout, "0\n");
    assert_eq!(repo.effects().len(), 1);
}
