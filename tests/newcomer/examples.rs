//! Each example is followed as its page says.

use std::collections::BTreeSet;
use std::path::Path;

use crate::console::follow;

/// One test an example, so that they go side by side and fail by name.
macro_rules! examples {
    ($($test:ident $folder:literal;)*) => {
        $(#[test]
        fn $test() {
            follow(concat!("examples/", $folder, "/README.md"));
        })*

        const FOLDERS: &[&str] = &[$($folder),*];
    };
}

examples! {
    one_agent_does_one_job "one-agent";
    an_author_is_reviewed_by_somebody_fresh "author-and-fresh-reviewer";
    a_panel_decides_by_quorum "panel";
    an_agent_that_stays_is_started_once "resident-agent";
    a_run_goes_on_after_a_crash "crash-and-resume";
    a_change_of_the_code_is_reviewed_and_landed "code-change";
    a_hook_starts_a_run_and_keeps_a_job_within_its_scope "git-hook";
}

#[test]
fn no_example_is_left_untried() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let there: BTreeSet<String> = names.collect();
    assert_eq!(there, FOLDERS.iter().map(|name| (*name).to_owned()).collect());
}
