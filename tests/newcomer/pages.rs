//! The pages that the README leads to.

use std::path::Path;

use striatum::domain::job::Cause;

use crate::console::follow;
use crate::world::{Ended, STRIATUM, World};

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
fn the_readme_can_be_followed_from_top_to_bottom() {
    follow("README.md");
}

#[test]
fn the_readme_tells_each_exit_code_and_way_to_stop_that_help_tells() {
    let (readme, help) = (page("README.md"), World::new().striatum(&["--help"]).ok().stdout);
    let told = |from: &str, to: &str| {
        let rest = help.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned();
        let rows = rest
            .lines()
            .filter_map(|line| line.trim().split_once("  "))
            .map(|(left, right)| (left.to_owned(), right.trim().to_owned()));
        rows.collect::<Vec<_>>()
    };
    for (code, meaning) in told("Exit codes:", "\n\n") {
        assert!(readme.contains(&format!("| {code} | {meaning} |")), "{code} {meaning}");
    }
    for (what, _) in told("How to stop:", "\n\n") {
        let first = what.split(',').next().unwrap();
        assert!(readme.contains(first), "{what}");
    }
}

#[test]
fn everything_that_the_readme_links_to_is_there() {
    for link in page("README.md").split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(link).exists(), "{link}");
    }
}

#[test]
fn git_is_told_the_same_everywhere_about_what_to_leave_alone() {
    let world = World::new();
    world.striatum(&["init"]).ok();
    let written = std::fs::read_to_string(world.path(".striatum/.gitignore")).unwrap();
    assert_eq!(page(".striatum-example/.gitignore"), written);
    assert_eq!(page("src/verbs/quickstart/store/gitignore"), written);
    for example in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap() {
        let path = example.unwrap().path().join(".striatum/.gitignore");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), written, "{}", path.display());
    }
}

/// The folder as somebody would take it over: in a repository of its own, checked by the program.
#[test]
fn the_example_folder_is_valid_where_it_is_copied() {
    let world = World::new();
    world.git(&world.path(""), &["init", "--quiet", "mine"]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(".striatum-example");
    Ended::of(world.command("cp").arg("-R").arg(source).arg("mine/.striatum")).ok();
    let ended = Ended::of(world.command(STRIATUM).current_dir(world.path("mine")).args(["workflow", "validate"])).ok();
    for name in ["code-change", "every-key"] {
        assert!(ended.stdout.contains(&format!("{name}.toml: valid")), "{ended:?}");
    }
}

/// What stands in the folder, and what striatum makes there, is told.
#[test]
fn every_file_of_a_striatum_folder_is_told() {
    let told = page(".striatum-example/README.md");
    let world = World::new();
    world.striatum(&["quickstart", "--json"]).ok();
    let folders = [world.made().join(".striatum"), Path::new(env!("CARGO_MANIFEST_DIR")).join(".striatum-example")];
    for entry in folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let stem = name.trim_end_matches("-wal").trim_end_matches("-shm");
        assert!(name == "README.md" || told.contains(&format!("| `{stem}")), "{name}");
    }
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
fn a_constrained_operator_works_as_told() {
    follow("docs/constrained.md");
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
