//! One verb, one name, in all its places: the command line, the table of verbs, a test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use striatum::verbs::api;

use crate::source::files_below;

/// Verbs of the command line that are no request with a report: why they stand in no table.
const NO_REQUEST: [(&str, &str); 11] = [
    ("operator exec", "another program, and the verbs that it asks for"),
    ("process run", "its command runs between two verbs"),
    ("run go", "prepare, start and drive, one after the other"),
    ("run drive", "a loop that tells as it goes"),
    ("quickstart", "a loop that tells as it goes"),
    ("hook pre-commit", "git asks, by its environment"),
    ("hook commit-msg", "git asks, by its environment"),
    ("hook pre-push", "git asks, by its standard input"),
    ("hook pre-tool-use", "a client asks, by its standard input"),
    ("completion", "a rendering of the command line itself"),
    ("man", "a rendering of the command line itself"),
];

/// Several words of the command line for one verb of the table.
const SAME: [(&str, &str); 5] = [
    ("work complete", "work_answer"),
    ("work verdict", "work_answer"),
    ("work fail", "work_answer"),
    ("work block", "work_answer"),
    ("list sessions", "session_list"),
];

/// Verbs of the table that are a flag of another on the command line.
const FLAGS: [(&str, &str); 3] =
    [("trust_show", "trust --show"), ("process_begin", "process run"), ("process_mark", "process run")];

/// The leaves of the command line, from its manual: `run drive`.
fn typed() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_striatum"))
        .args(["man", "--output"])
        .arg(folder.path())
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names: BTreeSet<String> = files_below(folder.path(), "1")
        .iter()
        .map(|page| page.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    // A page whose name begins another's is a noun with verbs below it.
    let is_leaf = |name: &&String| {
        !names.iter().any(|other| other.starts_with(&format!("{name}-")) && is_below(&names, name, other))
    };
    names.iter().filter(is_leaf).filter_map(|name| Some(words(&names, name.strip_prefix("striatum-")?))).collect()
}

/// `run-retry-job` lies below `run`, `register-session` below nothing.
fn is_below(names: &BTreeSet<String>, name: &str, other: &str) -> bool {
    name == "striatum" || names.contains(name) && other.starts_with(&format!("{name}-"))
}

/// `run-retry-job` as `run retry-job`: the noun is a page of its own.
fn words(names: &BTreeSet<String>, name: &str) -> String {
    match name.split_once('-') {
        Some((noun, verb)) if names.contains(&format!("striatum-{noun}")) => format!("{noun} {verb}"),
        _ => name.to_owned(),
    }
}

fn in_table(words: &str) -> String {
    SAME.iter()
        .find(|(typed, _)| *typed == words)
        .map_or_else(|| words.replace([' ', '-'], "_"), |(_, verb)| (*verb).to_owned())
}

#[test]
fn the_command_line_and_the_table_of_verbs_know_each_other() {
    let typed = typed();
    let table: BTreeSet<String> = api::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(table.len(), api::ALL.len(), "a name stands once");
    let is_request = |words: &&String| !NO_REQUEST.iter().any(|(name, _)| name == words);
    let told: BTreeSet<String> = typed.iter().filter(is_request).map(|words| in_table(words)).collect();
    let flags: BTreeSet<String> = FLAGS.iter().map(|(verb, _)| (*verb).to_owned()).collect();
    let missing: Vec<&String> = told.difference(&table).collect();
    assert_eq!(missing, Vec::<&String>::new(), "typed, but in no table");
    let silent: Vec<&String> = table.difference(&told).filter(|verb| !flags.contains(*verb)).collect();
    assert_eq!(silent, Vec::<&String>::new(), "in the table, but nobody can type it");
    for (words, _) in NO_REQUEST {
        assert!(typed.contains(words), "{words} is gone: strike it from the list");
    }
}

#[test]
fn every_verb_is_typed_in_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut texts = BTreeMap::new();
    for file in files_below(&root, "rs") {
        if !file.starts_with(root.join("tidy")) && !file.starts_with(root.join("os")) {
            texts.insert(file.clone(), std::fs::read_to_string(&file).unwrap());
        }
    }
    let mut untested = Vec::new();
    for words in typed() {
        let (quoted, spaced) = (format!("\"{}\"", words.replace(' ', "\", \"")), words.clone());
        // Where the noun stands in a function of its own, the verb stands alone.
        let verb = words.split(' ').next_back().unwrap().to_owned();
        let noun = words.split(' ').next().unwrap().to_owned();
        let is_typed = |(file, text): (&std::path::PathBuf, &String)| {
            let own_file = file.file_stem().is_some_and(|stem| stem.to_string_lossy() == noun);
            text.contains(&quoted) || text.contains(&spaced) || (own_file && text.contains(&format!("\"{verb}\"")))
        };
        if !texts.iter().any(is_typed) {
            untested.push(words);
        }
    }
    assert_eq!(untested, Vec::<String>::new());
}
