//! Panels: every review of one job is waited for, and what they find comes back at once.

use crate::support::{TestRepo, wait_until};

/// A draft and three reviewers side by side; more keys of the draft.
fn panel(draft: &str) -> String {
    let mut text = format!(
        "[lanes.script]\ncommand = \"@agent\"\n[[jobs]]\nid = \"draft\"\nrole = \"author\"\nlane = \"script\"\ntree = \"none\"\n{draft}\n"
    );
    for name in ["one", "two", "three"] {
        text.push_str(&format!("[[jobs]]\nid = \"{name}\"\nreviews = \"draft\"\nlane = \"script\"\ntree = \"none\"\n"));
    }
    text
}

fn started(draft: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", &panel(draft));
    repo.start("w");
    repo
}

#[test]
fn the_first_dissent_waits_for_its_siblings_and_all_findings_come_back_in_one_reopen() {
    let repo = started("");
    repo.agent("draft", "striatum work show --prompt > seen.txt; complete");
    repo.agent("one.1", "verdict needs_revision --finding 'Short: say more'");
    repo.agent("two.1", "hold two; verdict needs_revision --finding 'Wrong: mend it'");
    repo.agent("three.1", "hold three; verdict accept_with_findings --finding 'Style: could be nicer'");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("the first has judged", || repo.job_state("one") == "completed");
    assert_eq!(repo.job_state("draft"), "completed", "its siblings still review");
    repo.go("two");
    wait_until("the second has judged", || repo.job_state("two") == "completed");
    assert_eq!(repo.job_state("draft"), "completed", "one sibling still reviews");
    repo.go("three");
    driver.wait().ok();
    assert_eq!(repo.effects_of("draft", "start"), 2);
    assert_eq!(
        repo.count("event WHERE type = 'job.reopened' AND job_id = (SELECT id FROM job WHERE name = 'draft')"),
        1
    );
    let seen = repo.read(".striatum/scratch/s5/draft.2/work/seen.txt");
    for finding in ["say more", "mend it", "could be nicer"] {
        assert!(seen.contains(finding), "{finding} in {seen}");
    }
    // Everybody judged anew, in sessions of their own.
    assert_eq!(repo.count("verdict"), 6);
    assert_eq!(repo.count("session WHERE role = 'reviewer'"), 6);
}

#[test]
fn enough_accepts_pass_and_the_dissent_is_recorded() {
    let repo = started("quorum = 2");
    repo.agent("one", "verdict needs_revision --finding 'Short: say more'");
    repo.drive().ok();
    assert_eq!(repo.effects_of("draft", "start"), 1);
    assert_eq!(repo.rows("SELECT verdict FROM verdict ORDER BY verdict"), ["accept", "accept", "needs_revision"]);
}

#[test]
fn one_reject_fails_the_run_whatever_the_others_say() {
    let repo = started("quorum = 1");
    repo.agent("one", "verdict reject --finding 'No: not this'");
    repo.drive().exits(1);
    assert_eq!(repo.run_state("w-1"), "failed");
}

#[test]
fn a_review_that_is_out_of_revisions_fails_and_a_person_is_asked() {
    let repo = TestRepo::new();
    let text = panel("").replace("id = \"two\"\nreviews", "id = \"two\"\nrevisions = 1\nreviews");
    repo.workflow("w", &text);
    repo.agent("two", "verdict needs_revision --finding \"Short $ATTEMPT: say more\"");
    repo.start("w");
    let driven = repo.drive().exits(3);
    assert_eq!(driven.lines().last(), Some(&"run w-1 -> needs_operator: two: revisions"));
    assert_eq!(repo.effects_of("draft", "start"), 2);
    assert_eq!(repo.rows("SELECT state, reason FROM job WHERE name = 'two'"), ["failed revisions"]);
}

#[test]
fn an_old_verdict_is_void_after_a_revision() {
    let repo = started("");
    repo.agent("one.1", "verdict needs_revision --finding 'Short: say more'");
    repo.agent("one.2", "hold one; verdict accept");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("the others have judged anew", || {
        repo.count("verdict WHERE generation = 2") == 2 || repo.count("verdict") == 5
    });
    // Five accepts stand there, but only two of this generation: the draft is not through yet.
    assert_eq!(repo.run_state("w-1"), "running");
    repo.go("one");
    driver.wait().ok();
    assert_eq!(repo.count("verdict"), 6);
}
