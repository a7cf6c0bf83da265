//! The arrows of the house: who may name whom.

use crate::source::{Source, own_paths, paths, sources};

/// For each room, what it may name of the crate: a beginning of a path.
const MAY_NAME: [(&str, &[&str]); 6] = [
    ("domain", &["domain"]),
    ("store", &["store", "domain", "os::lock::WriteGuard"]),
    ("os", &["os", "domain"]),
    ("verbs", &["verbs", "store", "os", "domain", "error"]),
    ("cli", &["cli", "verbs", "domain", "error", "broker"]),
    ("broker", &["broker", "verbs", "domain", "error", "os::socket"]),
];

/// Crates that one room alone may name.
const OWNED: [(&str, &[&str]); 10] = [
    ("rusqlite", &["store"]),
    ("r2d2", &["store"]),
    ("r2d2_sqlite", &["store"]),
    ("nix", &["os"]),
    ("fs2", &["os"]),
    ("notify", &["os"]),
    ("rustix", &["os"]),
    ("signal_hook", &["os"]),
    ("landlock", &["os"]),
    ("clap", &["cli"]),
];

fn fits(path: &str, beginning: &str) -> bool {
    path == beginning || path.starts_with(&format!("{beginning}::"))
}

/// Every place where a rule is broken, as `file:line: what`.
fn broken(mut rule: impl FnMut(&Source) -> Vec<(usize, String)>) -> Vec<String> {
    let mut all = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        all.extend(rule(source).into_iter().map(|(line, what)| format!("{}:{line}: {what}", source.path)));
    }
    all
}

#[test]
fn every_room_names_only_what_lies_below_it() {
    let wrong = broken(|source| {
        let Some((_, allowed)) = MAY_NAME.iter().find(|(room, _)| *room == source.room()) else { return Vec::new() };
        let is_wrong = |path: &str| !path.is_empty() && !allowed.iter().any(|beginning| fits(path, beginning));
        own_paths(&source.code).into_iter().filter(|(_, path)| is_wrong(path)).collect()
    });
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_room_has_its_rule() {
    let rooms: std::collections::BTreeSet<String> = sources().iter().map(|source| source.room().to_owned()).collect();
    let known =
        |room: &String| MAY_NAME.iter().any(|(known, _)| known == room) || ["lib", "main", "error"].contains(&&**room);
    let unknown: Vec<&String> = rooms.iter().filter(|room| !known(room)).collect();
    assert_eq!(unknown, Vec::<&String>::new(), "say in MAY_NAME what a new room may name");
}

#[test]
fn a_crate_stands_in_its_own_room() {
    let wrong = broken(|source| {
        let mut wrong = Vec::new();
        for (name, rooms) in OWNED {
            if !rooms.contains(&source.room()) {
                wrong.extend(
                    paths(&source.code, &format!("{name}::"))
                        .into_iter()
                        .map(|(line, path)| (line, format!("{name}::{path}"))),
                );
            }
        }
        wrong
    });
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_centre_is_pure() {
    const IMPURE: [&str; 12] = [
        "std::fs",
        "std::process",
        "std::env",
        "std::net",
        "std::thread",
        "std::io",
        "std::os",
        "SystemTime",
        "Instant",
        "tracing::",
        "jiff::Timestamp::now",
        "rand",
    ];
    let wrong = broken(|source| {
        if source.room() != "domain" {
            return Vec::new();
        }
        let lines = source.code.lines().enumerate();
        lines
            .flat_map(|(number, line)| {
                let found = IMPURE.iter().filter(move |word| line.contains(**word));
                found.map(move |word| (number + 1, (*word).to_owned()))
            })
            .collect()
    });
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn only_main_leaves_and_only_mouths_write_to_standard_output() {
    let wrong = broken(|source| {
        let is_mouth = ["cli", "main"].contains(&source.room());
        // To the operating system it is a descriptor: what a helper inherits its locks by.
        let is_allowed = |word: &str| is_mouth || (source.room() == "os" && word == "io::stdout");
        let words: Vec<&str> = ["process::exit", "print!(", "println!(", "io::stdout", "stdout().lock"]
            .into_iter()
            .filter(|word| !is_allowed(word))
            .collect();
        let lines = source.code.lines().enumerate();
        lines
            .flat_map(|(number, line)| {
                let found = words.iter().filter(move |word| line.contains(**word));
                found.map(move |word| (number + 1, (*word).to_owned()))
            })
            .collect()
    });
    assert_eq!(wrong, Vec::<String>::new());
}
