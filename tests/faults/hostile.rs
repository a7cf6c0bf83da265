//! Agents that don't behave: they leave processes behind, ignore signals, flood, lie about files, die. Each is a real
//! process in a real lane.

use std::path::Path;

use crate::support::{Output, TestRepo, is_alive, send, wait_until};
use nix::sys::signal::Signal;

/// One job with these keys in a lane with these keys.
fn one(lane: &str, job: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.write(".striatum/config.toml", "[limits]\ngrace = \"200ms\"\nstarting = \"400ms\"\n");
    let text = format!(
        "[lanes.script]\ncommand = \"@agent\"\ntimeout = \"20s\"\n{lane}\n[[jobs]]\nid = \"draft\"\nrole = \"author\"\n\
         lane = \"script\"\ntree = \"none\"\nmax_strikes = 1\n{job}\n"
    );
    repo.workflow("w", &text);
    repo
}

const TEXT: &str = "produces = [{ name = \"text\", path = \"out.txt\" }]";

/// How the attempts of the job ended: `1 sealed sealed`.
fn attempts(repo: &TestRepo) -> Vec<String> {
    repo.rows("SELECT number, outcome, detail FROM attempt ORDER BY job_id, number")
}

#[track_caller]
fn drives(repo: &TestRepo, instructions: &str) -> Output {
    repo.agent("draft", instructions);
    repo.start("w");
    repo.drive()
}

/// The job is sealed in its first attempt, and nobody is left.
#[track_caller]
fn seals(repo: &TestRepo, instructions: &str) {
    let driven = drives(repo, instructions);
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    repo.check_completed("w-1");
    assert_eq!(repo.effects_of("draft", "start"), 1);
}

/// The job's only attempt ends so; the run needs an operator; nobody is left.
#[track_caller]
fn ends(repo: &TestRepo, instructions: &str, outcome: &str, words: &str) {
    let driven = drives(repo, instructions);
    assert_eq!(driven.code, 3, "{driven}\n{}", repo.told());
    let told = attempts(repo);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with(&format!("1 {outcome} ")) && told[0].contains(words), "{told:?}");
    repo.check_nobody_left();
    repo.check_sound();
}

/// Nobody holds the lane's lock any more.
#[track_caller]
fn check_lane_free(repo: &TestRepo) {
    let lock = std::fs::File::open(repo.dir().join("scratch/s1/lane.lock")).unwrap();
    assert!(fs2::FileExt::try_lock_exclusive(&lock).is_ok(), "the lane's lock is still held");
}

#[test]
fn daemons_that_an_agent_leaves_are_ended_and_hold_no_lock() {
    let repo = one("", "");
    seals(&repo, "daemon\ndaemon\nuntil [ \"$(wc -l < \"$AGENT/daemons\")\" = 2 ]; do sleep 0.01; done\ncomplete");
    let daemons = std::fs::read_to_string(repo.root().join("agent/daemons")).unwrap();
    assert_eq!(daemons.lines().filter(|pid| is_alive(pid.parse().unwrap())).count(), 0);
    check_lane_free(&repo);
}

#[test]
fn a_daemon_that_forks_twice_and_sheds_environment_and_descriptors_is_ended() {
    let repo = one("", "");
    let shed = "env -i setsid sh -c 'exec 0<&- 1>&- 2>&- 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; \
                (trap \"\" TERM HUP; echo $$ > \"$0\"; while :; do /bin/sleep 3600; done) & exit' \"$AGENT/shed\" &";
    seals(&repo, &format!("{shed}\nuntil [ -s \"$AGENT/shed\" ]; do sleep 0.01; done\ncomplete"));
    let left = find_by_word(&repo.root().join("agent/shed"));
    assert_eq!(left, Vec::<i32>::new());
}

/// Processes with this word in their command line: they shed everything else.
fn find_by_word(word: &Path) -> Vec<i32> {
    let word = word.display().to_string();
    let has_word = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes()) && is_alive(*pid)
    };
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(has_word).collect()
}

#[test]
fn an_agent_that_ignores_term_and_its_children_are_killed_at_its_deadline() {
    let repo = one("timeout = \"700ms\"", "").replaced("timeout = \"20s\"\n", "");
    ends(&repo, "ignore_term\n(ignore_term; hang) &\nhang", "timed_out", "longer than its limit");
    check_lane_free(&repo);
}

#[test]
fn a_flood_of_output_is_bounded_and_harms_nothing() {
    let repo = one("", "");
    seals(&repo, "flood 50000000\nyes | head -c 5000000\nhead -c 1000000 /dev/urandom\ncomplete");
    let size = std::fs::metadata(repo.dir().join("scratch/s1/draft.1/output.log")).unwrap().len();
    assert!(size <= 9 * 1024 * 1024, "{size} bytes are kept");
}

#[test]
fn words_of_a_failed_agent_are_one_clean_line() {
    let repo = one("", "");
    ends(&repo, "printf 'so\\377 \\033[31mred\\033[0m \\007\\r\\n'\nexit 3", "failed", "exit 3");
    let detail: String = repo.one("SELECT detail FROM attempt", ());
    assert!(!detail.chars().any(char::is_control), "{detail:?}");
    assert!(detail.contains("red"), "{detail:?}");
}

#[test]
fn who_waits_for_input_sees_its_end_at_once() {
    let repo = one("", TEXT);
    seals(&repo, "cat > out.txt\nread line || echo closed >> out.txt\ncomplete");
    let hash: String = repo.one("SELECT sha256 FROM artifact", ());
    assert_eq!(std::fs::read_to_string(repo.dir().join("artifacts").join(hash)).unwrap(), "closed\n");
}

#[test]
fn an_agent_that_closed_every_descriptor_is_still_watched_and_settled() {
    let repo = one("", "");
    seals(&repo, "exec 0<&- 1>&- 2>&- 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-\ncomplete");
}

#[test]
fn an_agent_that_closed_its_lock_survives_its_helper_and_is_taken_over() {
    let repo = one("", "");
    repo.agent("draft", "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-\nhold work\ncomplete");
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive"]);
    wait_until("the agent holds", || repo.notes().len() == 1 && repo.count("execution WHERE state = 'running'") == 1);
    crate::support::kill(repo.one("SELECT pid FROM supervisor", ()));
    repo.go("work");
    let driven = driver.wait();
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    repo.check_completed(&run);
    assert_eq!(repo.effect_lines(), ["draft.1 start"]);
}

#[test]
fn an_agent_that_kills_its_helper_is_taken_over() {
    let repo = one("", "");
    seals(&repo, "kill -9 $PPID\ncomplete");
}

#[test]
fn an_agent_that_takes_its_folders_away_is_settled_once() {
    let repo = one("", "");
    seals(&repo, "complete\nrm -rf \"$STRIATUM_SCRATCH\"");
}

#[test]
fn an_agent_that_unlinks_the_locks_does_nothing_twice() {
    let repo = one("", "");
    seals(&repo, "rm -f \"$STRIATUM_DIR\"/scratch/\"$STRIATUM_SESSION\"/*.lock\necho loud\nsleep 1\ncomplete");
}

macro_rules! bad_outputs {
    ($($name:ident: $makes:literal,)*) => { $(
        #[test]
        fn $name() {
            let repo = one("", "");
            ends(&repo, concat!("out=\"$STRIATUM_SCRATCH/output.log\"\n", $makes, "\nexit 3"), "failed", "exit 3");
            let detail: String = repo.one("SELECT detail FROM attempt", ());
            assert!(!detail.contains("secret"), "{detail}");
            assert_eq!(repo.count("supervisor"), 1, "{}", repo.told());
        }
    )* };
}

bad_outputs! {
    an_agent_that_puts_a_pipe_in_the_place_of_its_output_holds_up_nobody: "rm \"$out\"; mkfifo \"$out\"; sleep 0.4",
    an_agent_that_puts_a_link_in_the_place_of_its_output_shows_nothing_else: "echo secret > \"$AGENT/s\"; rm \"$out\"; ln -s \"$AGENT/s\" \"$out\"; sleep 0.4",
    an_agent_that_puts_a_folder_in_the_place_of_its_output_is_watched_on: "rm \"$out\"; mkdir \"$out\"; sleep 0.4",
    an_agent_that_takes_its_output_away_is_watched_on: "rm \"$out\"; sleep 0.4",
    an_agent_that_takes_its_folder_away_without_a_word_has_failed: "rm -rf \"$STRIATUM_SCRATCH\"",
}

#[test]
fn a_pipe_in_the_place_of_output_that_is_read_as_an_answer_is_none() {
    let repo = one("result_from = \"stdout-json\"", "on_exit_zero = \"unsealed\"");
    ends(&repo, "out=\"$STRIATUM_SCRATCH/output.log\"; rm \"$out\"; mkfifo \"$out\"", "unsealed", "");
}

#[test]
fn a_link_in_the_place_of_output_that_is_an_artifact_is_refused() {
    let repo = one("", "produces = [{ name = \"text\", from = \"stdout\" }]");
    let links =
        "out=\"$STRIATUM_SCRATCH/output.log\"; echo secret > \"$AGENT/s\"; rm \"$out\"; ln -s \"$AGENT/s\" \"$out\"";
    ends(&repo, &format!("{links}\ncomplete"), "scope_failed", "symlink_refused");
}

#[test]
fn output_written_until_the_very_end_is_bounded() {
    let repo = one("timeout = \"600ms\"", "").replaced("timeout = \"20s\"\n", "");
    ends(&repo, "ignore_term\ntrap '' TERM\nhead -c 40000000 /dev/zero\nhang", "timed_out", "longer");
    let size = std::fs::metadata(repo.dir().join("scratch/s1/draft.1/output.log")).unwrap().len();
    assert!(size <= 9 * 1024 * 1024, "{size} bytes are kept");
}

#[test]
fn exit_0_without_an_answer_is_not_success() {
    let repo = one("", "on_exit_zero = \"unsealed\"");
    ends(&repo, "true", "unsealed", "exit 0 without an answer");
}

#[test]
fn an_answer_holds_whatever_the_exit() {
    let repo = one("", "");
    seals(&repo, "complete\nexit 1");
    assert_eq!(repo.rows("SELECT exit_code FROM execution"), ["1"]);
}

#[test]
fn an_answer_holds_when_a_signal_ends_the_agent() {
    let repo = one("", "");
    seals(&repo, "complete\nkill -SEGV $$");
}

#[test]
fn an_agent_that_answered_and_hangs_is_ended_and_its_answer_holds() {
    let repo = one("", "");
    seals(&repo, "complete\nignore_term\nhang");
}

macro_rules! bad_results {
    ($($name:ident: $makes:literal, $words:literal,)*) => { $(
        #[test]
        fn $name() {
            ends(&one("", ""), $makes, "invalid_result", $words);
        }
    )* };
}

bad_results! {
    a_result_that_is_no_json_is_invalid: "echo '{' > \"$STRIATUM_RESULT\"", "no JSON",
    a_result_that_breaks_the_contract_is_invalid: "result '{\"schema\":\"striatum.result/1\"}'", "status",
    a_huge_result_is_invalid: "head -c 3000000 /dev/zero > \"$STRIATUM_RESULT\"", "bytes or more",
    a_result_behind_a_link_is_invalid: "result '{}'; mv \"$STRIATUM_RESULT\" r; ln -s \"$PWD/r\" \"$STRIATUM_RESULT\"", "symbolic link",
    a_pipe_for_a_result_is_invalid: "mkfifo \"$STRIATUM_RESULT\"", "no regular file",
    a_folder_for_a_result_is_invalid: "mkdir \"$STRIATUM_RESULT\"", "no regular file",
}

macro_rules! bad_artifacts {
    ($($name:ident: $makes:literal, $word:literal,)*) => { $(
        #[test]
        fn $name() {
            ends(&one("", TEXT), concat!($makes, "\ncomplete"), "scope_failed", $word);
        }
    )* };
}

bad_artifacts! {
    an_artifact_that_is_missing_is_refused: "true", "does not exist",
    an_artifact_that_is_a_link_is_refused: "echo x > x; ln -s x out.txt", "symlink_refused",
    an_artifact_that_is_a_pipe_is_refused: "mkfifo out.txt", "no regular file",
    an_artifact_that_is_a_folder_is_refused: "mkdir out.txt", "no regular file",
    an_artifact_that_is_too_large_is_refused: "truncate -s 68000000 out.txt", "bytes or more",
}

#[test]
fn an_artifact_behind_a_linked_folder_is_refused() {
    let repo = one("", "produces = [{ name = \"text\", path = \"sub/out.txt\" }]");
    ends(&repo, "mkdir real; echo x > real/out.txt; ln -s real sub\ncomplete", "scope_failed", "symlink_refused");
}

#[test]
fn an_artifact_outside_is_refused_by_the_workflow() {
    let repo = one("", "produces = [{ name = \"text\", path = \"../out.txt\" }]");
    let refused = repo.striatum(&["workflow", "validate", ".striatum/workflows/w.toml"]);
    assert_eq!(refused.code, 8, "{refused}");
    assert!(format!("{refused}").contains("../out.txt"), "{refused}");
}

#[test]
fn a_verification_that_changes_what_it_verifies_is_void() {
    let repo = one("", &format!("{TEXT}\nverify = [[\"sh\", \"-c\", \"echo more >> out.txt\"]]"));
    ends(&repo, "echo x > out.txt\ncomplete", "verify_failed", "void");
}

#[test]
fn a_verification_that_forks_away_leaves_nobody() {
    let away = "(setsid sh -c 'trap \\\"\\\" TERM HUP; while :; do sleep 3600; done' &) ; true";
    let repo = one("", &format!("verify = [[\"sh\", \"-c\", \"{away}\"]]"));
    seals(&repo, "complete");
}

#[test]
fn a_verification_that_waits_for_input_sees_its_end() {
    let repo = one("", "verify = [\"cat\"]");
    seals(&repo, "complete");
}

#[test]
fn a_missing_verification_is_not_passed() {
    let repo = one("", "verify = [\"no-such-check\"]");
    ends(&repo, "complete", "verify_failed", "not run");
}

/// The lane can't be started as it is: a person mends it.
#[track_caller]
fn is_not_started(repo: &TestRepo, words: &str) {
    let run = repo.start("w");
    let driven = repo.drive();
    assert_eq!(driven.code, 3, "{driven}\n{}", repo.told());
    let told = attempts(repo);
    assert!(told.len() == 1 && told[0].starts_with("1 environment ") && told[0].contains(words), "{told:?}");
    assert_eq!(repo.job_state("draft"), "waiting_human");
    assert_eq!(repo.run_state(&run), "needs_operator");
    repo.check_nobody_left();
    repo.check_rows();
}

fn with_command(command: &str) -> TestRepo {
    one("", "").replaced("command = ", &format!("command = {command}\n#"))
}

#[test]
fn a_missing_command_waits_for_a_person() {
    is_not_started(&with_command("[\"no-such-agent\"]"), "no-such-agent");
}

#[test]
fn a_command_that_is_not_executable_waits_for_a_person() {
    let repo = with_command("[\"/etc/passwd\"]");
    is_not_started(&repo, "/etc/passwd");
}

#[test]
fn an_unset_variable_refuses_the_launch() {
    is_not_started(&one("env = [\"NOT_SET_ANYWHERE\"]", ""), "NOT_SET_ANYWHERE");
}

#[test]
fn an_argument_that_is_too_long_refuses_the_launch() {
    let repo = with_command("[\"sh\", \"-c\", \"true\", \"${prompt}\"]")
        .replaced("max_strikes = 1", "max_strikes = 1\nprompt = \"prompts/long.md\"");
    repo.write(".striatum/prompts/long.md", "all work ".repeat(15_000));
    is_not_started(&repo, "too long");
}

#[test]
fn a_stopped_agent_is_idle_and_ended() {
    let repo = one("idle_timeout = \"600ms\"", "");
    ends(&repo, "kill -STOP $$\ncomplete", "idle", "nothing happened");
}

#[test]
fn who_burns_time_is_not_idle() {
    let repo = one("idle_timeout = \"400ms\"", "");
    let burns = "end=$(($(date +%s%3N) + 1200)); until [ $(date +%s%3N) -ge $end ]; do :; done";
    seals(&repo, &format!("{burns}\ncomplete"));
}

#[test]
fn a_stopped_driver_holds_up_no_agent_and_goes_on() {
    let repo = one("", "");
    repo.agent("draft", "hold work\ncomplete");
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive"]);
    wait_until("the agent holds", || repo.notes().len() == 1);
    driver.signal(Signal::SIGSTOP);
    repo.go("work");
    wait_until("the run is completed without its driver", || repo.run_state(&run) == "completed");
    driver.signal(Signal::SIGCONT);
    driver.wait().ok();
    repo.check_completed(&run);
}

#[test]
fn a_stopped_helper_is_alive_and_nobody_takes_over() {
    let repo = one("", "");
    repo.agent("draft", "hold work\ncomplete");
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "50ms"]);
    wait_until("the agent holds", || repo.notes().len() == 1 && repo.count("execution WHERE state = 'running'") == 1);
    let helper: i32 = repo.one("SELECT pid FROM supervisor", ());
    send(helper, Signal::SIGSTOP);
    repo.clock(8 * 3_600_000, 0, None);
    for _ in 0..3 {
        repo.striatum(&["run", "drive", "--once"]).ok();
    }
    assert_eq!(repo.count("supervisor"), 1, "{}", repo.told());
    send(helper, Signal::SIGCONT);
    repo.go("work");
    driver.wait().ok();
    repo.check_completed(&run);
    assert_eq!(repo.effect_lines(), ["draft.1 start"]);
}

impl TestRepo {
    /// The workflow with one text in the place of another.
    fn replaced(self, from: &str, to: &str) -> TestRepo {
        let path = ".striatum/workflows/w.toml";
        let text = self.read(path);
        assert!(text.contains(from), "{text}");
        self.write(path, text.replacen(from, to, 1));
        self
    }
}
