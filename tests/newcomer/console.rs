//! Pages that are true: every block of commands in them is typed, and what stands below a command is what it prints.
//!
//! A block opens with "console". A line with `$ ` is a command; lines below it must appear in its output, in that
//! order, other lines between them or not; `[..]` stands for anything within a line. `? 4` says that it exits with 4.
//! A block that opens with "console not run: WHY" is shown and not typed; the test says so. One that opens with
//! "toml file=PATH" is written to that file.

use std::fmt::Write as _;
use std::path::Path;

use crate::world::{Ended, STRIATUM, World};

/// What a block is for.
#[derive(Clone, Copy, Debug)]
enum Block {
    Typed,
    Written,
    Shown,
}

/// A command and what the page says of it.
#[derive(Debug, Default)]
struct Step {
    line: usize,
    command: String,
    input: String,
    expected: Vec<String>,
    exit: i32,
}

/// Types every block of a page, one after the other, in a folder that begins as a copy of what the page is about.
pub fn follow(page: &str) {
    let world = World::new();
    let (source, place) = (Path::new(env!("CARGO_MANIFEST_DIR")), world.path("place"));
    std::fs::create_dir(&place).unwrap();
    for folder in ["examples", ".striatum-example"] {
        std::os::unix::fs::symlink(source.join(folder), place.join(folder)).unwrap();
    }
    let own = place.join("your-repository");
    world.git(&place, &["init", "--quiet", "your-repository"]);
    std::fs::write(own.join("README.md"), "# Yours\n").unwrap();
    world.git(&own, &["add", "."]);
    world.git(&own, &["commit", "--quiet", "--message", "First"]);
    let text = std::fs::read_to_string(source.join(page)).unwrap();
    let steps = steps(page, &text);
    assert!(!steps.is_empty(), "{page} has nothing to type");
    let mut told = String::new();
    for step in &steps {
        let ended = type_in(&world, step);
        let _ = writeln!(told, "$ {}\n{}{}", step.command, ended.stdout, ended.stderr);
        assert_eq!(ended.exit, step.exit, "{page}:{}: exit of `{}`\n{told}", step.line, step.command);
        if let Some(missing) = missing(&step.expected, &ended.stdout) {
            panic!("{page}:{}: `{}` does not print `{missing}`\n{told}", step.line, step.command);
        }
    }
}

/// What a person types at a terminal, which a test has not.
const PERSONS: &[&str] = &[
    "striatum trust",
    "striatum gate approve",
    "striatum answer",
    "striatum take",
    "striatum give",
    "striatum decision",
];

/// Types a command where the one before it ended. `cargo run` stands for the binary that is built already.
fn type_in(world: &World, step: &Step) -> Ended {
    let cwd = world.path("cwd");
    let here = std::fs::read_to_string(&cwd).unwrap_or_else(|_| world.path("place").display().to_string());
    let command = PERSONS.iter().fold(step.command.replace("cargo run --release --", STRIATUM), |command, verb| {
        command.replace(verb, &format!("{verb} --as-person"))
    });
    let script = format!("{{ {command}\n}} 2>&1; code=$?; pwd > '{}'; exit $code", cwd.display());
    std::fs::write(world.path("input"), &step.input).unwrap();
    let input = std::fs::File::open(world.path("input")).unwrap();
    Ended::of(world.command("sh").current_dir(here.trim_end()).args(["-c", &script]).stdin(input))
}

fn steps(page: &str, text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut block, fence) {
            (None, Some(kind)) => block = Some(opens(page, number + 1, kind, &mut steps)),
            (Some(_), Some(_)) => block = None,
            (Some(Block::Typed), None) => read(&mut steps, number + 1, line),
            (Some(Block::Written), None) => steps.last_mut().unwrap().input.push_str(&format!("{line}\n")),
            _ => {}
        }
    }
    steps
}

/// What a block is for. Commands in a block of another kind would be believed and never tried.
fn opens(page: &str, line: usize, kind: &str, steps: &mut Vec<Step>) -> Block {
    if let Some(why) = kind.strip_prefix("console not run: ") {
        eprintln!("not run: {page}:{line}: {why}");
        return Block::Shown;
    }
    if let Some((_, file)) = kind.split_once(" file=") {
        steps.push(Step { line, command: format!("cat > {file}"), ..Step::default() });
        return Block::Written;
    }
    assert!(!["sh", "bash", "shell", ""].contains(&kind), "{page}:{line}: a block of commands opens with `console`");
    if kind == "console" { Block::Typed } else { Block::Shown }
}

fn read(steps: &mut Vec<Step>, number: usize, line: &str) {
    if let Some(command) = line.strip_prefix("$ ") {
        steps.push(Step { line: number, command: command.to_owned(), ..Step::default() });
        return;
    }
    let Some(step) = steps.last_mut() else { return };
    match line.strip_prefix("? ") {
        Some(exit) => step.exit = exit.parse().unwrap(),
        None if line.trim().is_empty() || line == "..." => {}
        None => step.expected.push(line.to_owned()),
    }
}

/// The first expected line that no line of the output is, after those before it.
fn missing<'a>(expected: &'a [String], output: &str) -> Option<&'a str> {
    let mut shown = output.lines();
    expected.iter().map(String::as_str).find(|pattern| !shown.any(|line| fits(pattern, line)))
}

/// Whether a line is what a pattern says, `[..]` being anything.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split("[..]");
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let found = if parts.peek().is_none() {
            rest.ends_with(part).then(|| rest.len() - part.len())
        } else {
            rest.find(part)
        };
        let Some(found) = found else { return false };
        rest = &rest[found + part.len()..];
    }
    rest.is_empty()
}

#[test]
fn a_pattern_fits_the_whole_line() {
    assert!(fits("a [..] c [..]", "a b c d"));
    assert!(fits("[..]", ""));
    assert!(fits("plain", "plain"));
    assert!(!fits("plain", "plain and more"));
    assert!(!fits("a [..] c", "a b c d"));
    assert!(!fits("b", "a b"));
}

#[test]
fn a_page_that_says_what_is_not_printed_is_found_out() {
    let steps = steps("page", "```console\n$ printf 'one\\ntwo\\n'\none\ntwo\n$ exit 3\n? 3\n```\n");
    assert_eq!((steps[0].expected.len(), steps[1].exit), (2, 3));
    assert_eq!(missing(&steps[0].expected, "one\nother\ntwo\n"), None);
    assert_eq!(missing(&steps[0].expected, "two\none\n"), Some("two"));
}
