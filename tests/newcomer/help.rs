//! Help, completions and manual pages.

use crate::world::{Ended, World};

#[test]
fn the_long_help_tells_how_to_stop_and_what_exit_codes_mean() {
    let world = World::new();
    let help = world.striatum(&["--help"]).ok().stdout;
    let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text} is not in:\n{help}"));
    assert!(place("Every day:") < place("All the rest:"));
    assert!(place("All the rest:") < place("How to stop:"));
    assert!(place("How to stop:") < place("Exit codes:"));
}

#[test]
fn the_everyday_verbs_come_first() {
    let world = World::new();
    let help = world.striatum(&["-h"]).ok().stdout;
    let everyday = help.split_once("Every day:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let verbs: Vec<&str> = everyday.lines().map(|line| line.trim().split("  ").next().unwrap()).collect();
    let expected =
        ["init", "run go", "status", "inbox", "answer", "gate approve", "job show", "logs", "run drive", "run stop"];
    assert_eq!(verbs, expected);
}

#[test]
fn no_words_are_a_short_help_and_exit_2() {
    let world = World::new();
    let ended = world.striatum(&[]);
    assert_eq!(ended.exit, 2);
    assert!(format!("{}{}", ended.stdout, ended.stderr).contains("Every day:"), "{ended:?}");
}

#[test]
fn every_shell_can_read_its_completions() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = world.striatum(&["completion", shell]).ok().stdout;
        assert!(script.contains("quickstart"), "{shell}");
        if shell == "bash" {
            std::fs::write(world.path("script"), &script).unwrap();
            Ended::of(world.command("bash").arg("-n").arg(world.path("script"))).ok();
        }
    }
}

#[test]
fn every_verb_has_a_page() {
    let world = World::new();
    world.striatum(&["man", "--output", "pages"]).ok();
    for page in ["striatum", "striatum-run", "striatum-run-drive", "striatum-work-verdict"] {
        let text = std::fs::read_to_string(world.path("pages").join(format!("{page}.1"))).unwrap();
        assert!(text.contains(".SH NAME"), "{page}");
    }
    let one = world.striatum(&["man", "run", "drive"]).ok().stdout;
    assert_eq!(one, std::fs::read_to_string(world.path("pages/striatum-run-drive.1")).unwrap());
    assert_eq!(world.striatum(&["man", "no", "such"]).exit, 2);
}

#[test]
fn no_output_bears_colour() {
    let world = World::new();
    for words in [["--help"].as_slice(), &["run", "--help"], &["nonsense"], &["quickstart", "/dev/null"]] {
        let ended = Ended::of(world.command(crate::world::STRIATUM).env("NO_COLOR", "1").args(words));
        assert!(!ended.stdout.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'), "{ended:?}");
    }
}
