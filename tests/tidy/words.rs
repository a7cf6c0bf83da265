//! How files open, and words that do not stand in this source.

use crate::source::sources;

#[test]
fn every_file_opens_with_what_it_is() {
    let silent: Vec<String> =
        sources().into_iter().filter(|source| !source.text.starts_with("//! ")).map(|source| source.path).collect();
    assert_eq!(silent, Vec::<String>::new());
}

#[test]
fn nothing_in_the_source_may_panic_or_is_left_to_do() {
    const WORDS: [&str; 9] = [
        ".unwrap()",
        ".expect(",
        "panic!(",
        "unreachable!(",
        "todo!(",
        "unimplemented!(",
        "dbg!(",
        "eprintln!(",
        "eprint!(",
    ];
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        for (number, line) in source.code.lines().enumerate() {
            if let Some(word) = WORDS.iter().find(|word| line.contains(**word)) {
                wrong.push(format!("{}:{}: {word}", source.path, number + 1));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn nothing_is_named_by_what_it_could_do_for_anybody() {
    const VAGUE: [&str; 6] = ["Manager", "Util", "Handler", "Service", "Wrapper", "Factory"];
    let mut wrong = Vec::new();
    for source in sources() {
        for (number, line) in source.code.lines().enumerate() {
            let words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect::<Vec<_>>();
            let defined = words.windows(2).filter(|pair| ["struct", "enum", "trait", "mod", "type"].contains(&pair[0]));
            for name in defined.map(|pair| pair[1]) {
                if VAGUE.iter().any(|vague| name.ends_with(vague))
                    || ["util", "utils", "helpers", "misc"].contains(&name)
                {
                    wrong.push(format!("{}:{}: {name}", source.path, number + 1));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_lint_is_switched_off_only_with_a_reason() {
    let mut wrong = Vec::new();
    for source in sources() {
        let mut rest = source.code.as_str();
        let mut from = 0;
        while let Some(at) = rest.find("#[allow(").or_else(|| rest.find("#![allow(")) {
            let start = from + at;
            wrong.push(format!(
                "{}:{}: use #[expect(.., reason = ..)]",
                source.path,
                source.code[..start].matches('\n').count() + 1
            ));
            rest = &rest[at + 8..];
            from = start + 8;
        }
        for (number, line) in source.text.lines().enumerate() {
            let is_expect = line.trim_start().starts_with("#[expect(") || line.trim_start().starts_with("#![expect(");
            let is_whole = line.contains(")]");
            if is_expect && is_whole && !line.contains("reason = ") {
                wrong.push(format!("{}:{}: without a reason", source.path, number + 1));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
