//! `run drive`: its lines, its exits, its standbys.

use crate::support::TestRepo;

/// A draft, a fresh review of it.
pub const REVIEWED: &str = r#"
    [lanes.script]
    command = "@agent"
    [lanes.eyes]
    command = "@agent"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "review"
    reviews = "draft"
    lane = "eyes"
    tree = "none"
"#;

#[test]
fn a_draft_and_a_review_with_one_revision_go_to_completed_untouched() {
    let repo = TestRepo::new();
    repo.workflow("w", REVIEWED);
    repo.agent("review.1", "verdict needs_revision --finding 'Title: say more'");
    repo.start("w");
    let driven = repo.drive().ok();
    assert_eq!(repo.effect_lines(), ["draft.1 start", "draft.2 start", "review.1 start", "review.2 start"]);
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    launched author/script for draft (s1)
    launched reviewer/eyes for review (s2)
    launched author/script for draft (s3)
    launched reviewer/eyes for review (s4)
    run w-1 -> completed: every job is settled
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    ");
}
