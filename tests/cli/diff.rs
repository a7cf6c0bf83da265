//! `diff`: what a run, a job or one attempt changed.

use crate::support::TestRepo;

const WORKFLOW: &str = r#"
[lanes.author]
command = ["sh", "-c", "printf 'attempt %s\\n' ${attempt} > src/new.txt; rm -f src/main.txt"]
[lanes.critic]
command = ["sh", "-c", "grep -q 'attempt 2' src/new.txt && striatum work verdict accept || striatum work verdict needs_revision --finding 'one: not two'"]
[[jobs]]
id = "draft"
role = "author"
lane = "author"
objective = "Write"
writes = ["src/"]
[[jobs]]
id = "review"
lane = "critic"
reviews = "draft"
objective = "Look"
"#;

fn driven() -> TestRepo {
    let repo = TestRepo::with_code();
    repo.drive_through(WORKFLOW).ok();
    repo
}

#[test]
fn a_job_shows_everything_that_it_changed_and_an_attempt_only_its_own() {
    let repo = driven();
    insta::assert_snapshot!(repo.striatum(&["diff", "draft", "--stat"]).ok().stdout, @r"
        +0     -3  src/main.txt
        +1     -0  src/new.txt
    2 files, +1 -3
    ");
    let patch = repo.striatum(&["diff", "draft"]).ok().stdout;
    assert!(patch.contains("+attempt 2\n") && !patch.contains("attempt 1"), "{patch}");
    let patch = repo.striatum(&["diff", "draft", "--attempt", "2"]).ok().stdout;
    assert!(patch.contains("-attempt 1\n+attempt 2\n") && !patch.contains("main.txt"), "{patch}");
    let whole = repo.striatum(&["diff"]).ok().stdout;
    assert_eq!(whole, repo.striatum(&["diff", "draft"]).ok().stdout);
}

#[test]
fn a_job_that_changed_nothing_is_told_so() {
    let repo = driven();
    let error = repo.striatum(&["diff", "review"]).exits(2).stderr;
    assert!(error.contains("review has changed nothing"), "{error}");
}

#[test]
fn a_review_of_existing_commits_gets_them_as_a_patch_and_checked_out() {
    let repo = TestRepo::with_code();
    repo.said(&["switch", "-qc", "feature"]);
    repo.write("src/main.txt", "changed\n");
    repo.said(&["commit", "-qam", "two"]);
    repo.said(&["switch", "-q", "main"]);
    let driven = repo.drive_through(
        r#"
[lanes.critic]
command = ["sh", "-c", "grep -q changed src/main.txt && grep -q '^+changed' ${inputs}/range/change.patch && striatum work verdict accept"]
[[jobs]]
id = "look"
lane = "critic"
reviews = { range = "main..feature" }
objective = "Look"
"#,
    );
    driven.ok();
    repo.check_untouched();
    repo.check_rules();
    assert_eq!(repo.job_state("look"), "completed");
}

#[test]
fn a_range_that_is_none_is_refused_before_anything_is_made() {
    let repo = TestRepo::with_code();
    repo.workflow(
        "w",
        "[lanes.h]\nmode = \"human\"\n[[jobs]]\nid = \"look\"\nlane = \"h\"\nreviews = { range = \"nowhere..HEAD\" }\nobjective = \"x\"\n",
    );
    repo.trust();
    let error = repo.json(&["run", "prepare", "-w", "w"]).refused(2, "not_found");
    assert!(error["message"].as_str().unwrap().contains("nowhere, which is no commit"), "{error}");
}
