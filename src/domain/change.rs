//! A change of one path, and whether a scope lets it be: the one judgement that the seal, scope-check, patches and
//! hooks share.
//!
//! It knows paths and modes as git records them and looks at no file. A rename is a removal and an addition.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use super::path::shown;
use super::scope::{Scope, Violation};

/// A commit's name as people read it.
pub fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing.
    Absent,
    /// A file.
    File,
    /// A file that may be executed.
    Executable,
    /// A symbolic link.
    Symlink,
    /// A commit of another repository.
    Submodule,
    /// Something that git does not make.
    Other,
}

impl Mode {
    /// Reads git's octal form; `None` when it is no number.
    pub fn parse(text: &str) -> Option<Mode> {
        Some(match u32::from_str_radix(text, 8).ok()? {
            0 => Mode::Absent,
            0o100_644 | 0o100_664 => Mode::File,
            0o100_755 => Mode::Executable,
            0o120_000 => Mode::Symlink,
            0o160_000 => Mode::Submodule,
            _ => Mode::Other,
        })
    }
}

/// What became of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Relative to the top of the tree.
    pub path: PathBuf,
    /// What stood there.
    pub old: Mode,
    /// What stands there now.
    pub new: Mode,
}

/// A change that a scope refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The path.
    pub path: PathBuf,
    /// Why.
    pub why: Violation,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.why.word(), shown(&self.path))
    }
}

/// Every change that the scope refuses, in the order of the changes.
pub fn refused(scope: &Scope, changes: &[Change]) -> Vec<Refused> {
    let refuse = |change: &Change| Some(Refused { path: change.path.clone(), why: judge(scope, change)? });
    changes.iter().filter_map(refuse).collect()
}

/// Why the scope refuses one change; none when it is in order.
pub fn judge(scope: &Scope, change: &Change) -> Option<Violation> {
    if let Some(why) = scope.refuses(&change.path) {
        return Some(why);
    }
    match change.new {
        Mode::Symlink => Some(Violation::SymlinkRefused),
        Mode::Submodule => Some(Violation::SubmoduleRefused),
        Mode::Other => Some(Violation::ModeRefused),
        // A removed submodule takes a whole repository away.
        Mode::Absent if change.old == Mode::Submodule => Some(Violation::SubmoduleRefused),
        Mode::Absent | Mode::File | Mode::Executable => None,
    }
}

/// Paths that were added and differ from another path of the tree only by case or by how their letters are put together:
/// on some file systems they are one.
pub fn case_collisions(changes: &[Change], all: &[PathBuf]) -> Vec<Refused> {
    let added = changes.iter().filter(|change| change.old == Mode::Absent && change.new != Mode::Absent);
    let added: BTreeSet<&Path> = added.map(|change| change.path.as_path()).collect();
    if added.is_empty() {
        return Vec::new();
    }
    let folded: Vec<(String, &Path)> = all.iter().map(|path| (fold(path), path.as_path())).collect();
    let mut seen: std::collections::HashMap<&str, &Path> = std::collections::HashMap::new();
    let mut collisions = Vec::new();
    for (name, path) in &folded {
        let Some(other) = seen.insert(name, path) else { continue };
        let both = [*path, other];
        let refused = both.iter().filter(|path| added.contains(**path));
        collisions.extend(refused.map(|path| Refused { path: path.to_path_buf(), why: Violation::CaseCollision }));
    }
    collisions
}

/// A name as file systems compare it that keep neither case nor the way in which letters are put together.
pub fn fold(path: &Path) -> String {
    path.to_string_lossy().nfc().flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn change(path: &str, old: Mode, new: Mode) -> Change {
        Change { path: path.into(), old, new }
    }

    #[test]
    fn each_kind_of_change_has_its_word() {
        use Mode::{Absent, Executable, File, Other, Submodule, Symlink};
        let scope = Scope::new(&["src/".to_owned()], &[]).unwrap();
        let changes = [
            change("src/new.rs", Absent, File),
            change("src/run.sh", File, Executable),
            change("src/gone.rs", File, Absent),
            change("src/link", Absent, Symlink),
            change("src/was-a-file", File, Symlink),
            change("src/unlinked", Symlink, Absent),
            change("src/vendor", Absent, Submodule),
            change("src/vendor-gone", Submodule, Absent),
            change("src/odd", Absent, Other),
            change("README.md", File, File),
            change("src/.git/config", Absent, File),
        ];
        let said: Vec<String> = refused(&scope, &changes).iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        symlink_refused: src/link
        symlink_refused: src/was-a-file
        submodule_refused: src/vendor
        submodule_refused: src/vendor-gone
        mode_refused: src/odd
        path_outside_scope: README.md
        protected_path: src/.git/config
        ");
    }

    #[test]
    fn a_new_name_that_differs_only_by_case_collides_and_an_old_pair_does_not() {
        let all: Vec<PathBuf> = ["a/README.md", "a/readme.md", "b/x", "b/X"].iter().map(PathBuf::from).collect();
        let changes = [change("a/readme.md", Mode::Absent, Mode::File)];
        let found = case_collisions(&changes, &all);
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["case_collision: a/readme.md"]);
        assert_eq!(case_collisions(&[change("b/y", Mode::File, Mode::File)], &all), []);
        let all: Vec<PathBuf> = ["caf\u{e9}", "cafe\u{301}"].iter().map(PathBuf::from).collect();
        assert_eq!(case_collisions(&[change("cafe\u{301}", Mode::Absent, Mode::File)], &all).len(), 1);
    }
}
