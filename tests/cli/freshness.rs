//! The rule of fresh reviewers (RFC 0116, verb 3), through `register-session`.

use crate::support::{Output, TestRepo, Worker, next_commands};

/// Two authors' jobs and a fresh review of the first.
const TWO_DRAFTS: &str = r#"
    [lanes.hand]
    mode = "human"
    [lanes.eyes]
    mode = "human"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "hand"
    tree = "none"
    [[jobs]]
    id = "notes"
    role = "author"
    lane = "hand"
    tree = "none"
    needs = ["draft"]
    [[jobs]]
    id = "review"
    reviews = "draft"
    lane = "eyes"
    tree = "none"
"#;

/// One author's job and a fresh review of it.
const ONE_DRAFT: &str = r#"
    [lanes.hand]
    mode = "human"
    [lanes.eyes]
    mode = "human"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "hand"
    tree = "none"
    [[jobs]]
    id = "review"
    reviews = "draft"
    lane = "eyes"
    tree = "none"
"#;

const REVIEWER: [&str; 5] = ["register-session", "--role", "reviewer", "--lane", "eyes"];

fn started(workflow: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", workflow);
    repo.start("w");
    repo
}

fn register_reviewer(repo: &TestRepo, more: &[&str]) -> Output {
    repo.json(&[&REVIEWER[..], more].concat())
}

fn author_with_work(repo: &TestRepo) -> Worker<'_> {
    let mut author = repo.register("author", "hand");
    assert_eq!(author.claims(), "draft.1");
    author
}

#[test]
fn fresh_reviewer_ignores_drained_idle_author() {
    let repo = started(ONE_DRAFT);
    let author = author_with_work(&repo);
    author.work(&["complete"]).ok();
    // The author's session is active, its only job is completed, nothing is pending for its role.
    assert_eq!(repo.rows("SELECT state FROM session"), ["active"]);
    assert_eq!(repo.job_state("draft"), "completed");
    let mut reviewer = repo.register("reviewer", "eyes");
    assert_eq!(reviewer.claims(), "review.1");
    assert_eq!(repo.count("event WHERE type = 'session.forced_non_fresh'"), 0);
}

#[test]
fn fresh_reviewer_still_refuses_working_author() {
    let repo = started(ONE_DRAFT);
    let author = author_with_work(&repo);
    // Claimed, then acked: it holds work in both.
    for _ in 0..2 {
        let error = register_reviewer(&repo, &[]).refused(5, "fresh_refused");
        assert_eq!(
            error["message"],
            format!(
                "an author session ({}) is still holding/eligible for work; close it (supervise stop) and register a \
                 fresh reviewer, or --force-non-fresh --reason to accept contamination",
                author.session
            )
        );
        let way_out = format!("striatum supervise stop --session-id {} --reason 'fresh review'", author.session);
        assert_eq!(next_commands(&error), [way_out]);
        author.work(&["ack"]).ok();
    }
    assert_eq!(repo.count("session WHERE role = 'reviewer'"), 0);
    register_reviewer(&repo, &["--force-non-fresh", "--reason", "a small change", "--as-person"]).ok();
}

#[test]
fn fresh_reviewer_still_refuses_author_with_pending_work() {
    let repo = started(TWO_DRAFTS);
    let author = author_with_work(&repo);
    author.work(&["complete"]).ok();
    // It holds nothing, but `notes` is pending for its role.
    assert_eq!(repo.count("lease WHERE state = 'active'"), 0);
    assert_eq!(repo.job_state("notes"), "queued");
    register_reviewer(&repo, &[]).refused(5, "fresh_refused");
    repo.json(&["session", "close", "--session-id", &author.session, "--reason", "enough"]).ok();
    register_reviewer(&repo, &[]).ok();
}

#[test]
fn force_non_fresh_unchanged_semantics() {
    let repo = started(ONE_DRAFT);
    let author = author_with_work(&repo);
    register_reviewer(&repo, &["--force-non-fresh", "--as-person"]).refused(2, "usage");
    register_reviewer(&repo, &["--force-non-fresh", "--reason", " ", "--as-person"]).refused(2, "usage");
    assert_eq!(repo.count("session WHERE role = 'reviewer'"), 0);

    let forced =
        register_reviewer(&repo, &["--force-non-fresh", "--reason", "a small change", "--as-person"]).ok().value();
    assert_eq!(repo.rows("SELECT non_fresh_reason FROM session WHERE role = 'reviewer'"), ["a small change"]);
    let told = repo.events().into_iter().find(|event| event.kind == "session.forced_non_fresh").unwrap();
    assert_eq!(told.session.as_deref(), forced["session"].as_str());
    assert_eq!(told.body["reason"], "a small change");

    // Nothing genuine to override: the force changes nothing and nothing is recorded.
    repo.json(&["session", "close", "--session-id", forced["session"].as_str().unwrap(), "--reason", "again"]).ok();
    author.work(&["complete"]).ok();
    register_reviewer(&repo, &["--force-non-fresh", "--reason", "not needed", "--as-person"]).ok();
    assert_eq!(repo.count("session WHERE non_fresh_reason = 'not needed'"), 0);
    assert_eq!(repo.count("event WHERE type = 'session.forced_non_fresh'"), 1);
}

#[test]
fn fresh_reviewer_policy_parity_non_fresh_workflow() {
    let repo = started(&format!("{ONE_DRAFT}\n[roles.reviewer]\ncontext = \"any\"\n"));
    author_with_work(&repo);
    // The role says `any`: the rule does not run, whatever the author does.
    let reviewer = register_reviewer(&repo, &[]).ok().value();
    assert_eq!(reviewer["fresh"], false);
    assert_eq!(repo.count("event WHERE type = 'session.forced_non_fresh'"), 0);
}

#[test]
fn the_rule_is_about_author_roles_alone_and_the_workflow_says_which_they_are() {
    let wider = ONE_DRAFT.replace("role = \"author\"", "role = \"designer\"");
    let repo = started(&wider);
    let mut designer = repo.register("designer", "hand");
    designer.claims();
    register_reviewer(&repo, &[]).ok();

    let repo = started(&format!("author_roles = [\"designer\"]\n{wider}"));
    let mut designer = repo.register("designer", "hand");
    designer.claims();
    register_reviewer(&repo, &[]).refused(5, "fresh_refused");
}
