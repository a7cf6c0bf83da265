//! No sequence of changes that passes holds a path outside the scope, by a reading of globs that shares nothing with
//! the matcher.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use striatum::domain::change::{Change, Mode, judge, refused};
use striatum::domain::scope::{self, PROTECTED, Scope};

/// Whether one component fits one component of a pattern: `*` is anything, `?` is one letter.
fn part_fits(pattern: &[u8], part: &[u8]) -> bool {
    match pattern.split_first() {
        None => part.is_empty(),
        Some((b'*', rest)) => (0..=part.len()).any(|taken| part_fits(rest, &part[taken..])),
        Some((b'?', rest)) => !part.is_empty() && part_fits(rest, &part[1..]),
        Some((letter, rest)) => part.first() == Some(letter) && part_fits(rest, &part[1..]),
    }
}

/// Whether components fit; `**` is any number of them, and at the end at least one.
fn parts_fit(pattern: &[&str], parts: &[&str]) -> bool {
    match pattern.split_first() {
        None => parts.is_empty(),
        Some((&"**", [])) => !parts.is_empty(),
        Some((&"**", rest)) => (0..=parts.len()).any(|taken| parts_fit(rest, &parts[taken..])),
        Some((first, rest)) => {
            parts.first().is_some_and(|part| part_fits(first.as_bytes(), part.as_bytes()))
                && parts_fit(rest, &parts[1..])
        }
    }
}

/// What the documentation says that a pattern means.
fn means(pattern: &str, path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let folder = pattern.strip_suffix('/');
    let is_literal = !pattern.contains(['*', '?']);
    let words: Vec<&str> = folder.unwrap_or(pattern).split('/').collect();
    let is_below = || (1..parts.len()).any(|taken| parts_fit(&words, &parts[..taken]));
    match folder {
        Some(_) => is_below(),
        None => parts_fit(&words, &parts) || (is_literal && is_below()),
    }
}

fn is_protected(path: &str) -> bool {
    path.split('/').any(|part| PROTECTED.iter().any(|name| name.to_lowercase() == part.to_lowercase()))
}

/// The scope as it is documented.
fn is_within(writes: &[String], forbids: &[String], path: &str) -> bool {
    let covered = |globs: &[String]| globs.iter().any(|glob| means(glob, path));
    !is_protected(path) && covered(writes) && !covered(forbids)
}

fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "ab", "src", "src2", "x.rs", ".x", "-", "A"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![".git", ".GIT", ".github", ".gitmodules", ".claude", ".envrc2"]).prop_map(str::to_owned),
        1 => "[ab]{1,3}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(part(), 1..4).prop_map(|parts| parts.join("/"))
}

fn glob() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        3 => prop::sample::select(vec!["a", "b", "ab", "src", "x.rs", ".x", "A"]).prop_map(str::to_owned),
        1 => Just("*".to_owned()),
        1 => Just("**".to_owned()),
        1 => prop::sample::select(vec!["a*", "*b", "?", "s?c", "*.rs", "a*b", "src*"]).prop_map(str::to_owned),
    ];
    (prop::collection::vec(word, 1..4), any::<bool>())
        .prop_map(|(words, is_folder)| words.join("/") + if is_folder { "/" } else { "" })
        // What two of them in a row mean is nobody's question.
        .prop_filter("one ** after the other", |glob| !glob.contains("**/**") && !glob.ends_with("**/"))
}

fn globs(most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(glob(), 0..=most)
}

fn mode() -> impl Strategy<Value = Mode> {
    use Mode::{Absent, Executable, File, Other, Submodule, Symlink};
    prop_oneof![
        6 => prop::sample::select(vec![File, Executable, Absent]),
        1 => prop::sample::select(vec![Symlink, Submodule, Other]),
    ]
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = (path(), mode(), mode()).prop_map(|(path, old, new)| Change { path: PathBuf::from(path), old, new });
    prop::collection::vec(change, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_scope_covers_what_its_globs_are_said_to_mean(writes in globs(3), forbids in globs(2), path in path()) {
        let scope = Scope::new(&writes, &forbids).unwrap();
        prop_assert_eq!(
            scope.covers(Path::new(&path)),
            is_within(&writes, &forbids, &path),
            "{:?} without {:?}: {}", writes, forbids, path
        );
    }

    #[test]
    fn changes_that_pass_stay_within_the_scope(writes in globs(3), forbids in globs(2), changes in changes()) {
        let scope = Scope::new(&writes, &forbids).unwrap();
        if refused(&scope, &changes).is_empty() {
            for change in &changes {
                prop_assert!(is_within(&writes, &forbids, change.path.to_str().unwrap()), "{:?}", change);
                prop_assert!(matches!(change.new, Mode::File | Mode::Executable | Mode::Absent), "{:?}", change);
                prop_assert!(change.old != Mode::Submodule || change.new != Mode::Absent, "{:?}", change);
            }
        }
    }

    #[test]
    fn the_list_the_judgement_and_the_matcher_agree(writes in globs(3), forbids in globs(2), changes in changes()) {
        let scope = Scope::new(&writes, &forbids).unwrap();
        let listed = refused(&scope, &changes);
        for change in &changes {
            let judged = judge(&scope, change);
            prop_assert_eq!(judged.is_some(), listed.iter().any(|refused| refused.path == change.path && Some(refused.why) == judged));
            if let Some(why) = scope.refuses(&change.path) {
                prop_assert_eq!(judged, Some(why));
            }
        }
    }

    #[test]
    fn what_passes_validation_matches_at_run_time_as_it_was_judged(glob in "[a.*?/\\[\\]{},!~ -]{0,8}", path in path()) {
        let valid = scope::check(&glob, false);
        prop_assert_eq!(valid.is_ok(), Scope::new(std::slice::from_ref(&glob), &[]).is_ok());
        if valid.is_ok() {
            let scope = Scope::new(std::slice::from_ref(&glob), &[]).unwrap();
            let is_unmatched = !scope::unmatched(std::slice::from_ref(&glob), &[Path::new(&path)]).unwrap().is_empty();
            prop_assert_eq!(scope.covers(Path::new(&path)), !is_unmatched && !is_protected(&path));
        }
    }

    #[test]
    fn a_path_that_leads_out_is_in_no_scope(writes in globs(3), inside in path(), outside in path()) {
        let scope = Scope::new(&[writes, vec!["**".to_owned()]].concat(), &[]).unwrap();
        for crooked in [format!("../{outside}"), format!("/{outside}"), format!("{inside}/../{outside}")] {
            prop_assert!(!scope.covers(Path::new(&crooked)), "{}", crooked);
        }
    }
}
