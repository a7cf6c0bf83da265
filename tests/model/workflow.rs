//! The workflow format under arbitrary files, globs, graphs and values.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use striatum::domain::frozen::Snapshot;
use striatum::domain::graph::{Format, Node, ancestors, cycle, layers, render};
use striatum::domain::scope::{Scope, may_overlap};
use striatum::domain::template;
use striatum::domain::workflow::generate::{TEMPLATES, generate};
use striatum::domain::workflow::keys::{self, Kind, Level};
use striatum::domain::workflow::{
    Definition, Faults, Inputs, Source, Texts, canonical_bytes, freeze, hash, read, read_config, trusted, words,
};

struct NoFiles;

impl Texts for NoFiles {
    fn text(&self, _: &str) -> Result<String, String> {
        Err("no such file".into())
    }
}

fn source(text: &str) -> Source {
    Source { name: "w.toml".into(), text: text.into() }
}

fn read_all(workflow: &str, config: &str) -> Result<Definition, Faults> {
    let config = Source { name: "config.toml".into(), text: config.into() };
    read(&Inputs { workflow: source(workflow), config: Some(config), git: true, ..Inputs::default() })
}

/// Each fault stands on a line that the file has, and says something.
fn check_faults(faults: &Faults, workflow: &str, config: &str) {
    assert!(faults.errors() > 0, "a refusal has a reason");
    for fault in &faults.0 {
        let text = if fault.file == "w.toml" { workflow } else { config };
        assert!(fault.line <= text.split('\n').count(), "{fault} is beyond the end");
        assert!(!fault.message.is_empty());
    }
}

/// Values of every kind, right and wrong.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("true".to_owned()),
        Just("-3".to_owned()),
        Just("2".to_owned()),
        Just("99999999999999999999".to_owned()),
        Just("nan".to_owned()),
        Just("1979-05-27".to_owned()),
        Just("'45m'".to_owned()),
        Just("'99999999999999999999d'".to_owned()),
        Just("'a'".to_owned()),
        Just("'b'".to_owned()),
        Just("'sh'".to_owned()),
        Just("''".to_owned()),
        Just("'${params.x} ${job} ${'".to_owned()),
        Just("['a', 'b']".to_owned()),
        Just("['src/', '**', '/', '..', '[']".to_owned()),
        Just("[['make', '-k'], 'make']".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("{ range = 'A..B' }".to_owned()),
        Just("[{ name = 'a', path = 'p' }, {}]".to_owned()),
        "\"[ -!#-\\[\\]-~é\u{1F600}]{0,12}\"",
    ]
}

/// A table with known keys of its level, each with any value.
fn table(level: Level, heading: &'static str) -> impl Strategy<Value = String> {
    let names: Vec<&'static str> =
        keys::of(level).filter(|key| !matches!(key.kind, Kind::Named(_))).map(|key| key.name).collect();
    proptest::collection::btree_map(proptest::sample::select(names), value(), 0..8).prop_map(move |entries| {
        let lines: Vec<String> = entries.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        format!("{heading}\n{}\n", lines.join("\n"))
    })
}

fn file() -> impl Strategy<Value = String> {
    let head = "schema = 'striatum.workflow/1'\nid = 'w'";
    let jobs = proptest::collection::vec(
        (proptest::sample::select(vec!["a", "b", "c"]), table(Level::Job, "")).prop_map(|(id, keys)| {
            let keys: Vec<&str> = keys.lines().filter(|line| !line.starts_with("id ")).collect();
            format!("[[jobs]]\nid = '{id}'\n{}\n", keys.join("\n"))
        }),
        0..4,
    );
    (
        table(Level::Budget, "[budget]"),
        table(Level::Lane, "[lanes.sh]"),
        table(Level::Role, "[roles.a]"),
        table(Level::Tree, "[tree]"),
        jobs,
    )
        .prop_map(move |(budget, lane, role, tree, jobs)| {
            format!("{head}\n{budget}{lane}{role}{tree}{}", jobs.concat())
        })
}

/// Up to six jobs in a chain or beside each other, each with keys that fit together.
fn valid() -> impl Strategy<Value = String> {
    let extra = proptest::sample::subsequence(
        vec![
            "title = 'about ${params.task}'",
            "objective = 'x ${params.task} ${job} $${y}'",
            "timeout = '90s'",
            "max_strikes = 2",
            "on_failure = 'continue'",
            "next_attempt = 'clean'",
            "outward = true",
            "shared = ['db']",
            "verify = ['make test', ['sh', '-c', 'echo ${tmp} | cat']]",
            "process = { lint = ['make lint'] }",
            "writes = ['src/', 'docs/**/*.md']\nallow_overlap = true",
            "produces = [{ name = 'log', from = 'stdout' }]",
            "commit_message = '${params.task}'",
        ],
        0..13,
    );
    proptest::collection::vec((extra, any::<bool>(), any::<bool>()), 1..6).prop_map(|jobs| {
        let mut text = "schema = 'striatum.workflow/1'\nid = 'w'\nparams = { task = {} }\n\
                        [lanes.sh]\ncommand = ['sh', '-c', '${prompt} ${params.task}']\n"
            .to_owned();
        for (at, (extra, follows, is_review)) in jobs.iter().enumerate() {
            text.push_str(&format!("[[jobs]]\nid = 'j{at}'\n{}\n", extra.join("\n")));
            text.push_str(if *is_review && at > 0 { "reviews = 'j0'\n" } else { "role = 'author'\n" });
            if *follows && at > 0 {
                text.push_str(&format!("needs = ['j{}']\n", at - 1));
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_reading_panic(text in "(?s).{0,200}", config in "(?s).{0,60}") {
        if let Err(faults) = read_all(&text, &config) {
            check_faults(&faults, &text, &config);
        }
        let _ = read_config(Some(&source(&config)), Some(&source(&text)));
        let _ = words::split(&text);
    }

    #[test]
    fn no_mixture_of_known_keys_and_values_makes_reading_panic(text in file(), config in table(Level::Lane, "[lanes.sh]")) {
        match read_all(&text, &config) {
            Err(faults) => check_faults(&faults, &text, &config),
            Ok(definition) => prop_assert!(definition.warnings.iter().all(|fault| fault.warning)),
        }
    }

    #[test]
    fn what_is_valid_by_construction_is_accepted_and_freezes(text in valid(), task in ".{0,20}") {
        let definition = read_all(&text, "").unwrap();
        let params = BTreeMap::from([("task".to_owned(), task)]);
        let snapshot = freeze(&definition, &params, &NoFiles).unwrap();
        let again: Snapshot = serde_json::from_slice(&canonical_bytes(&snapshot)).unwrap();
        prop_assert_eq!(hash(&again), hash(&snapshot));
        prop_assert_eq!(again, snapshot);
        let nodes: Vec<Node> = definition.jobs.iter().map(Node::of).collect();
        prop_assert_eq!(layers(&nodes).concat().len(), nodes.len());
        let file = trusted::of_file(&source(&text), trusted::FileKind::Workflow).unwrap();
        let reworded = text.replace("objective = 'x", "objective = 'y");
        prop_assert_eq!(trusted::of_file(&source(&reworded), trusted::FileKind::Workflow).unwrap(), file);
    }

    #[test]
    fn a_broken_template_is_told_or_still_valid(index in 0..TEMPLATES.len(), at in any::<prop::sample::Index>(), junk in "[\\[\\]\"'=a-z0-9{}.\n]{0,3}") {
        let text = generate(TEMPLATES[index].name).unwrap();
        let mut at = at.index(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let broken = format!("{}{junk}{}", &text[..at], &text[at..]);
        if let Err(faults) = read_all(&broken, "") {
            check_faults(&faults, &broken, "");
        }
    }

    #[test]
    fn a_word_bound_and_expanded_holds_the_value_as_it_was_typed(value in ".{0,40}", around in "[a-z =$]{0,5}") {
        let params = BTreeMap::from([("x".to_owned(), value.clone())]);
        let word = template::bind_argv(&format!("{around} ${{params.x}}"), &params);
        prop_assert_eq!(template::expand(&word, &|_| None).unwrap(), format!("{around} {value}"));
        let prose = template::bind_prose(&format!("{around} ${{params.x}}"), &params);
        prop_assert_eq!(template::fill(&prose, &|_| Some("never".into())), format!("{around} {value}"));
    }

    #[test]
    fn scopes_that_share_a_path_are_never_missed((path, one, other) in path_and_globs()) {
        let covers = |glob: &str| Scope::new(&[glob.to_owned()], &[]).unwrap().covers(Path::new(&path));
        prop_assert!(covers(&one) && covers(&other), "{one} and {other} cover {path}");
        let (one, other) = ([one], [other]);
        prop_assert!(may_overlap((&one, &[]), (&other, &[])).is_some(), "{one:?} and {other:?} share {path}");
    }

    #[test]
    fn every_node_is_in_a_layer_or_behind_a_cycle(edges in proptest::collection::vec((0..7_usize, 0..7_usize), 0..14)) {
        let mut nodes: Vec<Node> = (0..7).map(|at| Node { id: format!("n{at}"), ..Node::default() }).collect();
        for (from, to) in &edges {
            nodes[*to].needs.push(format!("n{from}"));
        }
        let layers = layers(&nodes);
        let depth: BTreeMap<usize, usize> =
            layers.iter().enumerate().flat_map(|(depth, layer)| layer.iter().map(move |node| (*node, depth))).collect();
        let before = ancestors(&nodes);
        for (from, to) in &edges {
            if let (Some(first), Some(second)) = (depth.get(from), depth.get(to)) {
                prop_assert!(first < second);
                prop_assert!(before[*to].has(*from) && !before[*from].has(*to));
            }
        }
        match cycle(&nodes) {
            None => prop_assert_eq!(depth.len(), nodes.len()),
            Some(path) => {
                prop_assert!(depth.len() < nodes.len());
                prop_assert_eq!(path.first(), path.last());
                let position = |id: &String| id[1..].parse::<usize>().unwrap();
                for pair in path.windows(2) {
                    prop_assert!(edges.contains(&(position(&pair[0]), position(&pair[1]))), "{pair:?} is an edge");
                }
            }
        }
        for format in [Format::Text, Format::Mermaid, Format::Dot] {
            let _ = render(&nodes, format);
        }
    }
}

/// A path, and two globs that cover it: each component kept, or made vaguer in a way of its own.
fn path_and_globs() -> impl Strategy<Value = (String, String, String)> {
    let part = proptest::sample::select(vec!["a", "b", "ab", "a.x", "abc"]);
    let ways = || proptest::collection::vec(0..9_usize, 5);
    (proptest::collection::vec(part, 1..5), ways(), ways())
        .prop_map(|(parts, one, other)| (parts.join("/"), vaguer(&parts, &one), vaguer(&parts, &other)))
}

fn vaguer(parts: &[&str], ways: &[usize]) -> String {
    let mut glob: Vec<String> = Vec::new();
    for (part, way) in parts.iter().zip(ways) {
        match way {
            0 => glob.push("*".into()),
            1 => glob.push("?".repeat(part.len())),
            2 => glob.push(format!("[!z]{}", &part[1..])),
            3 => glob.push(format!("{{zz,{part}}}")),
            4 => glob.push(format!("{}*", &part[..1])),
            5 => glob.push(format!("*{}", &part[1..])),
            6 => glob.extend(["**".into(), (*part).into()]),
            // Whatever follows is below this folder.
            7 if glob.len() + 1 < parts.len() => return format!("{}{part}/", prefix(&glob)),
            _ => glob.push((*part).into()),
        }
    }
    glob.join("/")
}

fn prefix(glob: &[String]) -> String {
    glob.iter().map(|part| format!("{part}/")).collect()
}

#[test]
fn freezing_what_is_generated_is_stable() {
    for template in TEMPLATES {
        let definition = read_all(&generate(template.name).unwrap(), "").unwrap();
        let params = BTreeMap::from([("task".to_owned(), "do it".to_owned())]);
        let snapshot = freeze(&definition, &params, &NoFiles).unwrap();
        let again: Snapshot = serde_json::from_slice(&canonical_bytes(&snapshot)).unwrap();
        assert_eq!(again, snapshot, "{}", template.name);
        assert_eq!(hash(&again), hash(&freeze(&definition, &params, &NoFiles).unwrap()), "{}", template.name);
    }
}

/// Run with `UPDATE_DOCS=1` to write the reference anew.
#[test]
fn the_reference_in_the_docs_is_the_table_of_keys() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/workflow.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (head, rest) = text.split_once("<!-- keys -->\n").unwrap();
    let (kept, tail) = rest.split_once("<!-- end of keys -->").unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let fresh = format!("{head}<!-- keys -->\n{}<!-- end of keys -->{tail}", keys::reference());
        std::fs::write(path, fresh).unwrap();
        return;
    }
    assert_eq!(kept, keys::reference(), "write it anew: UPDATE_DOCS=1 cargo test --test model reference");
}

#[test]
fn every_example_in_the_docs_is_valid() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/workflow.md")).unwrap();
    let lanes = "[lanes.claude]\nadapter = 'claude'\n[lanes.codex]\nadapter = 'codex'\n";
    let mut workflows = 0;
    for block in text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        if block.contains("schema = ") {
            let definition = read_all(block, lanes).unwrap();
            assert_eq!(definition.warnings, [], "{block}");
            workflows += 1;
        } else {
            read_config(Some(&source(block)), None).unwrap();
        }
    }
    assert!(workflows > 0);
}

/// The readable example folder.
struct Example;

impl Example {
    fn path(name: &str) -> String {
        format!("{}/.striatum-example/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    fn source(name: &str) -> Source {
        Source { name: name.into(), text: std::fs::read_to_string(Example::path(name)).unwrap() }
    }
}

impl Texts for Example {
    fn text(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(Example::path(path)).map_err(|error| error.to_string())
    }
}

#[test]
fn the_example_folder_is_valid_and_freezes() {
    for (workflow, params) in [("code-change", vec![("task", "t")]), ("every-key", vec![("version", "1.4.0")])] {
        let inputs = Inputs {
            workflow: Example::source(&format!("workflows/{workflow}.toml")),
            config: Some(Example::source("config.toml")),
            git: true,
            ..Inputs::default()
        };
        let definition = read(&inputs).unwrap();
        assert_eq!(definition.warnings, [], "{workflow}");
        let params = params.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        freeze(&definition, &params, &Example).unwrap();
    }
}

#[test]
fn the_example_folder_shows_every_key() {
    let text = ["config.toml", "workflows/every-key.toml"].map(|name| Example::source(name).text).concat();
    let shown = |name: &str| {
        text.contains(&format!("{name} = "))
            || text.contains(&format!("[{name}"))
            || text.contains(&format!("[[{name}"))
    };
    let missing: Vec<&str> =
        keys::KEYS.iter().filter(|key| !key.reserved && !shown(key.name)).map(|key| key.name).collect();
    assert_eq!(missing, [] as [&str; 0]);
}
