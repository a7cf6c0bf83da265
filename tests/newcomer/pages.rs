//! The pages that the README leads to.

use std::path::Path;

use striatum::domain::job::Cause;

use crate::console::follow;
use crate::world::World;

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
fn answers_can_be_given_as_told() {
    follow("docs/answers.md");
}

#[test]
fn runs_are_stopped_and_resumed_as_told() {
    follow("docs/recovery.md");
}

#[test]
fn trust_is_asked_for_as_told() {
    follow("docs/trust.md");
}

#[test]
fn every_cause_is_told_with_each_verb_that_ends_it() {
    let page = page("docs/recovery.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    for cause in Cause::ALL {
        let name = format!("`{}`", cause.word());
        let row = rows.iter().find(|row| row.split('|').nth(1).unwrap().contains(&name));
        let row = row.unwrap_or_else(|| panic!("{name} is not told"));
        for verb in cause.ended_by() {
            let words: Vec<&str> = verb.split(' ').take_while(|word| word.starts_with(char::is_alphabetic)).collect();
            assert!(row.contains(&words.join(" ")), "{name} is ended by `{verb}`, which is not told: {row}");
        }
    }
}

/// Every block of TOML with lanes, each as the configuration around a small workflow that uses all of them.
#[test]
fn every_lane_that_is_shown_is_valid() {
    let page = page("docs/agents.md");
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 7);
    for block in blocks {
        let world = World::new();
        std::fs::create_dir_all(world.path(".striatum/workflows")).unwrap();
        std::fs::write(world.path(".striatum/config.toml"), block).unwrap();
        let mut workflow = "schema = \"striatum.workflow/1\"\nid = \"w\"\n".to_owned();
        let lanes = block.lines().filter_map(|line| line.strip_prefix("[lanes.")?.strip_suffix(']'));
        for lane in lanes {
            workflow.push_str(&format!("[[jobs]]\nid = \"j-{lane}\"\nrole = \"author\"\nlane = \"{lane}\"\n"));
        }
        std::fs::write(world.path(".striatum/workflows/w.toml"), workflow).unwrap();
        let ended = world.striatum(&["workflow", "validate"]);
        assert!(ended.exit == 0 && !ended.stdout.contains("warning"), "{block}\n{ended:?}");
    }
}
