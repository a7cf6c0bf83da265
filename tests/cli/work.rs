//! `work ...`: the agent's side, by sessions that no helper hosts and by agents in lanes.

use serde_json::{Value, json};

use crate::support::{STRIATUM, TestRepo, Worker, wait_until};

/// A draft with an artifact and its fresh review, both by hand.
const BY_HAND: &str = r#"
    [lanes.hand]
    mode = "human"
    [lanes.eyes]
    mode = "human"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "hand"
    tree = "none"
    objective = "Write a line."
    produces = [{ name = "out", path = "out.txt" }]
    [[jobs]]
    id = "review"
    reviews = "draft"
    lane = "eyes"
    tree = "none"
"#;

/// A job of one role and its review by the same role, which need not be fresh.
const SAME_ROLE: &str = r#"
    [lanes.hand]
    mode = "human"
    [roles.maker]
    context = "any"
    [[jobs]]
    id = "draft"
    role = "maker"
    lane = "hand"
    tree = "none"
    [[jobs]]
    id = "review"
    role = "maker"
    lane = "hand"
    reviews = "draft"
    tree = "none"
"#;

const MINUTE: i64 = 60_000;

fn started(workflow: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", workflow);
    repo.start("w");
    repo
}

/// An author that holds `draft.1`.
fn author(repo: &TestRepo) -> Worker<'_> {
    let mut author = repo.register("author", "hand");
    assert_eq!(author.claims(), "draft.1");
    author
}

/// The draft is sealed; a reviewer holds its review.
fn reviewer(repo: &TestRepo) -> Worker<'_> {
    let author = author(repo);
    write_work(&author, "out.txt", "a line\n");
    author.work(&["complete"]).ok();
    repo.json(&["session", "close", "--session-id", &author.session, "--reason", "done"]).ok();
    let mut reviewer = repo.register("reviewer", "eyes");
    assert_eq!(reviewer.claims(), "review.1");
    reviewer
}

/// The working directory of what a session holds.
fn work_folder(worker: &Worker<'_>) -> std::path::PathBuf {
    let shown = worker.work(&["show"]).ok().value();
    shown["packet"]["cwd"].as_str().unwrap_or_else(|| panic!("{shown}")).into()
}

fn write_work(worker: &Worker<'_>, name: &str, text: &str) {
    std::fs::write(work_folder(worker).join(name), text).unwrap();
}

/// Everything that a refused verb must not change.
fn frozen(repo: &TestRepo) -> Vec<String> {
    let queries = [
        "SELECT id, type FROM event",
        "SELECT id, state, phase, fence, attempt, strikes FROM job",
        "SELECT id, state, fence FROM lease",
        "SELECT id, state, session_id FROM message",
        "SELECT job_id, number, answer, outcome FROM attempt",
    ];
    queries.iter().flat_map(|sql| repo.rows(sql)).collect()
}

#[test]
fn a_draft_and_its_review_by_hand_read_like_this() {
    let repo = started(BY_HAND);
    let author = repo.register("author", "hand");
    let typed = |args: &[&str]| {
        let credentials = ["--session-id", &author.session, "--token-file", &author.token_file];
        repo.striatum(&[&["work"], args, &credentials].concat()).ok()
    };
    insta::assert_snapshot!(typed(&["claim"]), @r"
    $ striatum work claim --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token
    claimed draft.1 of w-1 (lease l1, fence 1)
    work in <root>/repo/.striatum/scratch/s1/draft.1/work
    packet: <root>/repo/.striatum/scratch/s1/draft.1/packet.json
    next: striatum work ack --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token --fence 1   # say that you start
    next: striatum work complete --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token --fence 1   # say that it is done
    ");
    insta::assert_snapshot!(typed(&["ack", "--fence", "1"]), @r"
    $ striatum work ack --fence 1 --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token
    s1 works on draft.1
    ");
    insta::assert_snapshot!(typed(&["heartbeat", "--fence", "1"]), @r"
    $ striatum work heartbeat --fence 1 --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token
    s1 holds draft (l1)
    ");
    insta::assert_snapshot!(typed(&["show", "--fence", "1", "--prompt"]), @r"
    $ striatum work show --fence 1 --prompt --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token
    # generic (job draft, attempt 1 of run w-1)

    ## What to do

    Write a line.

    ## Leave these files, relative to the working directory

    - `out.txt` (out)

    ## How to answer

    Work in `<root>/repo/.striatum/scratch/s1/draft.1/work`. Do not commit; that happens for you.
    When you are done, run `striatum work complete --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token --fence 1`.
    If something is missing, don't ask in prose: run `striatum work block --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token --fence 1 --needs-context --awaiting WHAT --who-can WHO --action WHAT_TO_DO`. If it can't be done: `striatum work fail --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token --fence 1 --reason WHY`.
    Instead of a command you may write the answer as JSON to `<root>/repo/.striatum/scratch/s1/draft.1/result.json`.
    ");
    std::fs::write(repo.file(".striatum/scratch/s1/draft.1/work/out.txt"), "a line\n").unwrap();
    insta::assert_snapshot!(typed(&["publish", "out", "--fence", "1"]), @r"
    $ striatum work publish out --fence 1 --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token
    published out (7 bytes, sha256 <sha256>)
    ");
    insta::assert_snapshot!(typed(&["complete", "--fence", "1", "--summary", "written"]), @r"
    $ striatum work complete --fence 1 --summary written --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token
    sealed
    ");
    insta::assert_snapshot!(typed(&["claim"]), @r"
    $ striatum work claim --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token
    no_work: no_pending
    ");
}

#[test]
fn the_commands_of_a_packet_work_as_they_stand() {
    let repo = started(BY_HAND);
    let author = author(&repo);
    write_work(&author, "out.txt", "a line\n");
    let shown = author.work(&["show"]).ok().value();
    let complete = shown["packet"]["commands"]["complete"].as_str().unwrap().to_owned();
    assert!(shown["prompt"].as_str().unwrap().contains(&complete));
    let mut command = repo.command_of("sh", &["-c", &complete]);
    let bin = std::path::Path::new(STRIATUM).parent().unwrap();
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    repo.run(&mut command).ok();
    assert_eq!(repo.job_state("draft"), "completed");
}

#[test]
fn a_wrong_token_opens_nothing() {
    let repo = started(BY_HAND);
    let mut author = author(&repo);
    let mut other = repo.register_with(&[
        "--role",
        "reviewer",
        "--lane",
        "eyes",
        "--force-non-fresh",
        "--reason",
        "test",
        "--as-person",
    ]);
    let before = frozen(&repo);
    std::mem::swap(&mut author.token_file, &mut other.token_file);
    for verb in
        [vec!["claim"], vec!["ack"], vec!["heartbeat"], vec!["complete"], vec!["show"], vec!["fail", "--reason", "x"]]
    {
        let error = author.work(&verb).refused(7, "bad_token");
        assert_eq!(error["message"], "the token does not belong to s1");
    }
    repo.write("empty", "");
    author.token_file = repo.file("empty").display().to_string();
    author.work(&["heartbeat"]).refused(7, "bad_token");
    author.token_file = repo.file("missing").display().to_string();
    author.work(&["heartbeat"]).refused(7, "bad_token");
    assert_eq!(frozen(&repo), before);
}

#[test]
fn who_speaks_must_be_said_and_must_exist() {
    let repo = started(BY_HAND);
    repo.json(&["work", "claim"]).refused(2, "usage");
    repo.json(&["work", "claim", "--session-id", "12"]).exits(2);
    repo.json(&["work", "claim", "--session-id", "s99"]).refused(2, "not_found");
    let author = author(&repo);
    let mut command = repo.command(&["work", "heartbeat", "--json"]);
    command.envs([("STRIATUM_SESSION", &author.session), ("STRIATUM_TOKEN_FILE", &author.token_file)]);
    // A fence is named, never guessed.
    repo.run(&mut command).refused(2, "usage");
    repo.run(command.env("STRIATUM_FENCE", "1")).ok();
}

#[test]
fn a_stale_fence_changes_nothing() {
    let repo = started(BY_HAND);
    let mut author = author(&repo);
    write_work(&author, "out.txt", "a line\n");
    let before = frozen(&repo);
    for wrong in [0, 2, 99] {
        author.fence = Some(wrong);
        for verb in
            [vec!["ack"], vec!["heartbeat"], vec!["publish", "out"], vec!["complete"], vec!["fail", "--reason", "x"]]
        {
            author.work(&verb).refused(5, "stale_fence");
        }
    }
    assert_eq!(frozen(&repo), before);
}

#[test]
fn a_session_that_lost_its_work_can_answer_nothing_any_more() {
    let repo = started(BY_HAND);
    let first = author(&repo);
    repo.json(&["session", "close", "--session-id", &first.session, "--reason", "enough"]).ok();
    let mut second = repo.register("author", "hand");
    assert_eq!(second.claims(), "draft.2");
    let before = frozen(&repo);
    for verb in [vec!["ack"], vec!["heartbeat"], vec!["complete"], vec!["fail", "--reason", "x"], vec!["claim"]] {
        first.work(&verb).refused(5, "session_ended");
    }
    assert_eq!(frozen(&repo), before);
    write_work(&second, "out.txt", "a line\n");
    second.work(&["complete"]).ok();
}

#[test]
fn an_expired_holder_is_refused_and_whoever_comes_next_gets_the_work() {
    let repo = started(BY_HAND);
    let author = author(&repo);
    write_work(&author, "out.txt", "a line\n");
    repo.clock(0, 29 * MINUTE, None);
    author.work(&["heartbeat"]).ok();
    // The heartbeat gave it another half hour.
    repo.clock(0, 58 * MINUTE, None);
    author.work(&["ack"]).ok();
    repo.clock(0, 89 * MINUTE, None);
    for verb in [vec!["heartbeat"], vec!["complete"], vec!["fail", "--reason", "late"]] {
        author.work(&verb).refused(5, "lease_ended");
    }
    // Nobody swept yet: whoever registers next in the slot does.
    let mut next = repo.register("author", "hand");
    assert_eq!(next.claims(), "draft.2");
    author.work(&["complete"]).refused(5, "session_ended");
    assert_eq!(repo.rows("SELECT number, outcome FROM attempt"), ["1 lost", "2 -"]);
    assert_eq!(repo.rows("SELECT state FROM session"), ["expired", "active"]);
}

#[test]
fn a_wall_clock_that_jumps_expires_nobody_and_another_boot_everybody() {
    let repo = started(BY_HAND);
    let author = author(&repo);
    for day in [-1, 1, 400] {
        repo.clock(day * 24 * 60 * MINUTE, 0, None);
        author.work(&["heartbeat"]).ok();
    }
    repo.clock(0, 0, Some("another-boot"));
    author.work(&["heartbeat"]).refused(5, "lease_ended");
}

#[test]
fn one_session_holds_one_piece_of_work() {
    let repo = started(BY_HAND);
    let author = author(&repo);
    let error = author.work(&["claim"]).refused(5, "still_held");
    assert_eq!(error["message"], "s1 still holds draft");
}

#[test]
fn the_same_answer_again_is_a_no_op_and_another_is_refused() {
    let repo = started(BY_HAND);
    let author = author(&repo);
    write_work(&author, "out.txt", "a line\n");
    author.work(&["complete", "--summary", "one"]).ok();
    let before = frozen(&repo);
    let again = author.work(&["complete", "--summary", "one"]).ok().value();
    assert_eq!((again["already"].clone(), again["message"].clone()), (json!(true), json!("sealed before")));
    assert_eq!(author.work(&["complete", "--summary", "two"]).exits(5).value()["code"], "lease_ended");
    author.work(&["fail", "--reason", "no"]).refused(5, "lease_ended");
    assert_eq!(frozen(&repo), before);
    assert_eq!(repo.count("event WHERE type = 'job.answered'"), 1);
}

#[test]
fn in_a_lane_the_first_answer_wins_too() {
    let repo = TestRepo::new();
    repo.workflow(
        "w",
        r#"
        [lanes.script]
        command = "@agent"
        [[jobs]]
        id = "job"
        role = "maker"
        lane = "script"
        tree = "none"
    "#,
    );
    repo.agent(
        "job",
        "complete --summary one --json; complete --summary one --json; complete --summary two --json; fail no; true",
    );
    repo.start("w");
    repo.drive().ok();
    let log = repo.read(".striatum/scratch/s1/job.1/output.log");
    let first = |line: usize| {
        log.lines().nth(line).and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default()
    };
    assert_eq!(first(0)["message"], "recorded; settled when you exit", "{log}");
    assert_eq!((&first(0)["already"], &first(1)["already"]), (&json!(false), &json!(true)), "{log}");
    assert_eq!(first(2)["code"], "already_answered", "{log}");
    assert!(log.contains("error: job was answered before"), "{log}");
    assert_eq!(repo.rows("SELECT json_extract(answer, '$.summary') FROM attempt"), ["one"]);
}

#[test]
fn an_answer_that_breaks_the_contract_is_refused_with_every_fault() {
    let repo = started(BY_HAND);
    let author = author(&repo);
    let before = frozen(&repo);
    author.work(&["verdict", "accept"]).refused(8, "invalid_result");
    repo.write("result.json", r#"{"schema":"striatum.result/1","status":"SURELY","produced":7}"#);
    let file = repo.file("result.json").display().to_string();
    let error = author.work(&["complete", "--result", &file]).refused(8, "invalid_result");
    assert!(!error["causes"].as_array().unwrap().is_empty(), "{error}");
    repo.write("result.json", "not json");
    author.work(&["complete", "--result", &file]).refused(8, "invalid_result");
    repo.write("result.json", r#"{"status":"DONE"}"#);
    author.work(&["complete", "--result", &file]).refused(8, "invalid_result");
    assert_eq!(frozen(&repo), before);

    let repo = started(BY_HAND);
    reviewer(&repo).work(&["complete"]).refused(8, "invalid_result");
}

#[test]
fn a_missing_artifact_is_told_and_may_be_mended() {
    let repo = started(BY_HAND);
    let author = author(&repo);
    let refused = author.work(&["complete"]).exits(1).value();
    insta::assert_snapshot!(refused["message"].as_str().unwrap(), @"out.txt (out): not_found: out.txt does not exist; mend it and answer again");
    write_work(&author, "out.txt", "a line\n");
    let sealed = author.work(&["complete"]).ok().value();
    insta::assert_snapshot!(sealed["message"].as_str().unwrap(), @"sealed");
    assert_eq!(repo.job_state("draft"), "completed");
}

#[test]
fn only_declared_plain_files_inside_the_folder_are_published() {
    let repo = started(BY_HAND);
    let author = author(&repo);
    let folder = work_folder(&author);
    repo.write("secret", "secret\n");
    author.work(&["publish", "other"]).refused(2, "usage");
    author.work(&["publish", "out"]).refused(2, "not_found");
    std::os::unix::fs::symlink(repo.file("secret"), folder.join("out.txt")).unwrap();
    author.work(&["publish", "out"]).refused(6, "symlink_refused");
    author.work(&["publish", "out", "--path", "../../../../../secret"]).refused(6, "path_traversal");
    let absolute = repo.file("secret").display().to_string();
    author.work(&["publish", "out", "--path", &absolute]).refused(6, "path_traversal");
    std::os::unix::fs::symlink(repo.path(), folder.join("away")).unwrap();
    author.work(&["publish", "out", "--path", "away/secret"]).refused(6, "symlink_refused");
    std::fs::create_dir(folder.join("dir")).unwrap();
    author.work(&["publish", "out", "--path", "dir"]).refused(6, "not_a_regular_file");
    nix::unistd::mkfifo(&folder.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    author.work(&["publish", "out", "--path", "fifo"]).refused(6, "not_a_regular_file");
    assert_eq!(repo.count("artifact"), 0);
}

#[test]
fn what_was_published_stays_as_it_was() {
    let repo = started(BY_HAND);
    let author = author(&repo);
    write_work(&author, "out.txt", "a line\n");
    let first = author.work(&["publish", "out"]).ok().value();
    assert_eq!(first["already"], false);
    assert_eq!(author.work(&["publish", "out"]).ok().value()["already"], true);
    write_work(&author, "out.txt", "another line\n");
    author.work(&["publish", "out"]).refused(5, "already_answered");
    let kept = repo.dir().join("artifacts").join(first["sha256"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "a line\n");
}

#[test]
fn a_reviewer_gets_what_it_judges_read_only() {
    let repo = started(BY_HAND);
    let reviewer = reviewer(&repo);
    let input = work_folder(&reviewer).parent().unwrap().join("inputs/draft/out");
    assert_eq!(std::fs::read_to_string(&input).unwrap(), "a line\n");
    assert!(std::fs::metadata(&input).unwrap().permissions().readonly());
    let packet = reviewer.work(&["show"]).ok().value()["packet"].clone();
    assert_eq!(
        (&packet["schema"], &packet["job"], &packet["attempt"]),
        (&json!("striatum.packet/1"), &json!("review"), &json!(1))
    );
}

#[test]
fn findings_of_the_attempt_before_are_refused_byte_for_byte() {
    let repo = started(BY_HAND);
    let first = reviewer(&repo);
    first.work(&["verdict", "needs_revision", "--finding", "Short: say more"]).ok();
    let mut author = repo.register("author", "hand");
    assert_eq!(author.claims(), "draft.2");
    write_work(&author, "out.txt", "a longer line\n");
    author.work(&["complete"]).ok();
    let mut second = repo.register("reviewer", "eyes");
    assert_eq!(second.claims(), "review.2");
    let error =
        second.work(&["verdict", "needs_revision", "--finding", "Short: say more"]).refused(5, "finding_repeated");
    assert_eq!(error["message"], "the findings are those of attempt 1, byte for byte");
    second.work(&["verdict", "needs_revision", "--finding", "Short: still, say more"]).ok();
    assert_eq!(repo.job_state("draft"), "queued");
}

#[test]
fn the_next_packet_tells_what_the_review_found() {
    let repo = started(BY_HAND);
    reviewer(&repo).work(&["verdict", "needs_revision", "--finding", "Short: say more"]).ok();
    let mut author = repo.register("author", "hand");
    author.claims();
    let shown = author.work(&["show"]).ok().value();
    assert!(shown["prompt"].as_str().unwrap().contains("say more"), "{shown}");
    assert!(shown["packet"].to_string().contains("say more"), "{shown}");
}

#[test]
fn nobody_reviews_their_own_work() {
    let repo = started(SAME_ROLE);
    let mut maker = repo.register("maker", "hand");
    assert_eq!(maker.claims(), "draft.1");
    maker.work(&["complete"]).ok();
    assert_eq!(maker.gets_no_work(), "own_work");
    repo.json(&["session", "close", "--session-id", &maker.session, "--reason", "done"]).ok();
    let mut other = repo.register("maker", "hand");
    assert_eq!(other.claims(), "review.1");
}

#[test]
fn one_process_does_not_judge_its_work_under_another_name() {
    let repo = started(SAME_ROLE);
    let mut maker = repo.register("maker", "hand").sharing_process();
    maker.claims();
    maker.work(&["complete"]).ok();
    repo.json(&["session", "close", "--session-id", &maker.session, "--reason", "done"]).ok();
    let mut same = repo.register("maker", "hand").sharing_process();
    assert_eq!(same.gets_no_work(), "process_lineage");

    // Nor is a fresh reviewer one that held the author's packet.
    let repo = started(BY_HAND);
    let mut author = repo.register("author", "hand").sharing_process();
    author.claims();
    write_work(&author, "out.txt", "a line\n");
    author.work(&["complete"]).ok();
    let mut reviewer = repo.register("reviewer", "eyes").sharing_process();
    assert_eq!(reviewer.gets_no_work(), "process_lineage");
    assert_eq!(repo.job_state("review"), "queued");
    repo.json(&["session", "close", "--session-id", &reviewer.session, "--reason", "not fresh"]).ok();
    assert_eq!(repo.register("reviewer", "eyes").claims(), "review.1");
}

#[test]
fn a_fresh_session_does_one_job() {
    let repo = started(BY_HAND);
    let mut reviewer = reviewer(&repo);
    reviewer.work(&["verdict", "needs_revision", "--finding", "Short: say more"]).ok();
    assert_eq!(reviewer.gets_no_work(), "one_job_done");
}

#[test]
fn a_claim_without_work_says_why() {
    let repo = TestRepo::new();
    let wide = r#"
    [parallelism]
    max_active_jobs = 2
    [lanes.one]
    mode = "human"
    max_sessions = 1
    [lanes.two]
    mode = "human"
    max_sessions = 4
    [[jobs]]
    id = "a"
    role = "maker"
    lane = "one"
    tree = "none"
    [[jobs]]
    id = "b"
    role = "maker"
    lane = "one"
    tree = "none"
    [[jobs]]
    id = "c"
    role = "maker"
    lane = "two"
    tree = "none"
    [[jobs]]
    id = "d"
    role = "maker"
    lane = "two"
    tree = "none"
    [[jobs]]
    id = "e"
    role = "other"
    lane = "two"
    tree = "none"
    needs = ["a", "b", "c", "d"]
"#;
    repo.workflow("w", wide);
    repo.prepare("w");
    let mut early = repo.register("other", "two");
    assert_eq!(early.gets_no_work(), "run_not_running");
    repo.striatum(&["run", "start"]).ok();
    assert_eq!(early.gets_no_work(), "no_pending");
    let mut one: Vec<_> = (0..2).map(|_| repo.register("maker", "one")).collect();
    let mut two: Vec<_> = (0..2).map(|_| repo.register("maker", "two")).collect();
    assert_eq!(one[0].claims(), "a.1");
    // One at a time in this lane, two at a time in this run.
    assert_eq!(one[1].gets_no_work(), "lane_capacity");
    assert_eq!(two[0].claims(), "c.1");
    assert_eq!(two[1].gets_no_work(), "capacity");
    repo.striatum(&["run", "pause"]).ok();
    one[0].work(&["complete"]).ok();
    assert_eq!(one[1].gets_no_work(), "paused");
    repo.striatum(&["run", "resume"]).ok();
    assert_eq!(one[1].claims(), "b.1");
}

#[test]
fn failing_costs_a_strike_and_the_third_ends_the_job() {
    let repo = started(BY_HAND);
    for attempt in 1..=3 {
        let mut author = repo.register("author", "hand");
        assert_eq!(author.claims(), format!("draft.{attempt}"));
        let said = author.work(&["fail", "--reason", "it does not compile"]).ok().value();
        assert_eq!(said["message"], "recorded; the attempt has failed");
        repo.json(&["session", "close", "--session-id", &author.session, "--reason", "next"]).ok();
    }
    assert_eq!(repo.rows("SELECT state, strikes, reason FROM job WHERE name = 'draft'"), ["failed 3 strikes"]);
}

#[test]
fn blocked_work_waits_for_a_person_with_its_question() {
    for (flag, cause) in [(None, "agent_blocked"), (Some("--needs-context"), "needs_context")] {
        let repo = started(BY_HAND);
        let author = author(&repo);
        let mut words = vec!["block", "--awaiting", "a licence", "--who-can", "the owner", "--action", "choose one"];
        words.extend(flag);
        author.work(&words).ok();
        let rows =
            repo.rows("SELECT state, reason, json_extract(question, '$.awaiting') FROM job WHERE name = 'draft'");
        assert_eq!(rows, [format!("waiting_human {cause} a licence")]);
    }
}

#[test]
fn heartbeats_are_a_column_and_never_an_event() {
    let repo = started(BY_HAND);
    let author = author(&repo);
    let before = repo.count("event");
    for _ in 0..20 {
        author.work(&["heartbeat"]).ok();
    }
    assert_eq!(repo.count("event"), before);
}

#[test]
fn a_lane_may_use_its_own_verbs_and_no_operators() {
    let repo = TestRepo::new();
    repo.workflow(
        "w",
        r#"
        [lanes.script]
        command = "@agent"
        [[jobs]]
        id = "job"
        role = "maker"
        lane = "script"
        tree = "none"
    "#,
    );
    let tries = "
        for words in 'session close --session-id s1 --reason no' 'run drive' 'run cancel --reason no' 'run pause' \\
          'register-session --role maker --lane script' 'supervise stop --session-id s1 --reason no' \\
          'run prepare -w w' 'run start'; do
          striatum $words --as-person > /dev/null 2>&1; effect \"$words -> $?\"
          env -u STRIATUM_SOCKET -u STRIATUM_SESSION striatum $words --as-person > /dev/null 2>&1; effect \"bare $words -> $?\"
        done
        striatum session list > /dev/null; effect \"list -> $?\"
        complete";
    repo.agent("job", tries);
    repo.start("w");
    repo.drive().ok();
    let tried: Vec<_> = repo.effects().into_iter().filter(|effect| effect.word != "start").collect();
    assert_eq!(tried.len(), 17);
    for effect in tried {
        let expected = if effect.word.starts_with("list") { "-> 0" } else { "-> 7" };
        assert!(effect.word.ends_with(expected), "{}", effect.word);
    }
    assert_eq!(repo.run_state("w-1"), "completed");
}

#[test]
fn striatum_in_a_lane_still_works_on_another_store() {
    let repo = TestRepo::new();
    repo.workflow(
        "w",
        r#"
        [lanes.script]
        command = "@agent"
        [[jobs]]
        id = "job"
        role = "maker"
        lane = "script"
        tree = "none"
    "#,
    );
    repo.agent(
        "job",
        "mkdir -p other/.striatum/workflows && cd other && git init -q . && : > .striatum/config.toml
         striatum --dir \"$PWD/.striatum\" session list; effect \"other -> $?\"; cd ..; complete",
    );
    repo.start("w");
    repo.drive().ok();
    let word = repo.effects().pop().unwrap().word;
    // There is no run there; what matters is that it was not taken for this store.
    assert!(["other -> 0", "other -> 2", "other -> 9"].contains(&word.as_str()), "{word}");
}

#[test]
fn many_workers_wait_for_one_another_without_a_raw_lock_error() {
    let repo = started(BY_HAND);
    let author = author(&repo);
    let beats: Vec<_> = (0..16).map(|_| repo.spawn_command(author.command(&["heartbeat"]))).collect();
    for beat in beats {
        let beat = beat.wait().ok();
        assert!(!beat.stderr.contains("lock"), "{beat}");
    }
    wait_until("nothing is left", || repo.processes().is_empty());
}
