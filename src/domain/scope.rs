//! The one matcher: which paths a job may change.
//!
//! Validation, scope-check, repo write, patches, the seal and hooks all ask here. Globs are globset's with literal
//! separators (`*` stays within a folder, `**` does not); a pattern without glob characters, or with a `/` at its
//! end, also means everything below. It knows paths as words and never looks at a file; what a symlink leads to,
//! modes and hard links are the business of who does.

mod overlap;

use std::path::{Component, Path};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

pub use overlap::{Reach, may_overlap};

/// Names that no glob takes in, at any depth and in any case: what git, editors and agents obey without asking.
pub const PROTECTED: &[&str] = &[
    ".git",
    ".gitmodules",
    ".gitattributes",
    ".claude",
    ".codex",
    ".gemini",
    ".opencode",
    ".agents",
    ".mcp.json",
    "opencode.json",
    ".vscode",
    ".envrc",
    ".striatum",
];

/// Why a change is refused: one vocabulary for every place that refuses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Violation {
    /// No `writes` glob covers it.
    PathOutsideScope,
    /// A `forbids` glob covers it.
    PathForbidden,
    /// Absolute, or leads upward.
    PathTraversal,
    /// Never in a scope by a glob.
    ProtectedPath,
    /// A symlink where none may be followed or made.
    SymlinkRefused,
    /// A submodule.
    SubmoduleRefused,
    /// A file mode that git does not keep, or that changed.
    ModeRefused,
    /// A file with other names.
    HardLinkRefused,
    /// Differs from another path only by case.
    CaseCollision,
    /// Changed outside the job's tree.
    ForeignWrite,
    /// The base moved on.
    StaleBase,
    /// The scope is not the one that was frozen.
    WriteScopeDrift,
    /// A change without a worktree of its own.
    WorktreeRequired,
}

impl Violation {
    /// The frozen word.
    pub const fn word(self) -> &'static str {
        match self {
            Violation::PathOutsideScope => "path_outside_scope",
            Violation::PathForbidden => "path_forbidden",
            Violation::PathTraversal => "path_traversal",
            Violation::ProtectedPath => "protected_path",
            Violation::SymlinkRefused => "symlink_refused",
            Violation::SubmoduleRefused => "submodule_refused",
            Violation::ModeRefused => "mode_refused",
            Violation::HardLinkRefused => "hard_link_refused",
            Violation::CaseCollision => "case_collision",
            Violation::ForeignWrite => "foreign_write",
            Violation::StaleBase => "stale_base",
            Violation::WriteScopeDrift => "write_scope_drift",
            Violation::WorktreeRequired => "worktree_required",
        }
    }
}

/// A pattern that can't be part of a scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGlob {
    /// Nothing there.
    #[error("an empty pattern matches nothing")]
    Empty,
    /// Begins at the root or at home.
    #[error("`{0}` is absolute; patterns are relative to the work tree")]
    Absolute(String),
    /// Has `..` in it.
    #[error("`{0}` leads upward")]
    Parent(String),
    /// Has `.` or nothing between two separators.
    #[error("`{0}` has an empty or `.` component")]
    Crooked(String),
    /// Names what no scope may name.
    #[error("`{glob}` names the protected path `{name}`")]
    Protected {
        /// The pattern.
        glob: String,
        /// The name in it.
        name: String,
    },
    /// globset does not understand it.
    #[error("`{glob}` is no glob: {reason}")]
    Syntax {
        /// The pattern.
        glob: String,
        /// In globset's words.
        reason: String,
    },
}

/// A compiled scope.
#[derive(Clone, Debug)]
pub struct Scope {
    writes: GlobSet,
    forbids: GlobSet,
}

impl Scope {
    /// Compiles the globs of a job.
    ///
    /// # Errors
    /// The first pattern that [`check`] refuses; a frozen scope has none.
    pub fn new(writes: &[String], forbids: &[String]) -> Result<Scope, BadGlob> {
        Ok(Scope { writes: compile(writes, true)?, forbids: compile(forbids, false)? })
    }

    /// Why a change of this path (relative to the work tree) is refused; none when it is in scope.
    pub fn refuses(&self, path: &Path) -> Option<Violation> {
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || path.as_os_str().is_empty() {
            return Some(Violation::PathTraversal);
        }
        if protected_part(path).is_some() {
            return Some(Violation::ProtectedPath);
        }
        if self.forbids.is_match(path) {
            return Some(Violation::PathForbidden);
        }
        if !self.writes.is_match(path) {
            return Some(Violation::PathOutsideScope);
        }
        None
    }

    /// Whether a change of this path is in scope.
    pub fn covers(&self, path: &Path) -> bool {
        self.refuses(path).is_none()
    }
}

/// A set of globs with no rule about protected paths, for `discard` and the like.
///
/// # Errors
/// The first pattern that is malformed.
pub fn glob_set(patterns: &[String]) -> Result<GlobSet, BadGlob> {
    compile(patterns, false)
}

/// Whether a pattern may stand in `writes` (or, with `may_name_protected`, in `forbids` and `discard`).
///
/// # Errors
/// Why not.
pub fn check(pattern: &str, may_name_protected: bool) -> Result<(), BadGlob> {
    compile(&[pattern.to_owned()], !may_name_protected).map(|_| ())
}

/// The patterns that match none of the paths: probably misspelt, or meant for files yet to come.
///
/// # Errors
/// The first pattern that is malformed.
pub fn unmatched<'a>(patterns: &'a [String], paths: &[&Path]) -> Result<Vec<&'a str>, BadGlob> {
    let mut unmatched = Vec::new();
    for pattern in patterns {
        let set = compile(std::slice::from_ref(pattern), false)?;
        if !paths.iter().any(|path| set.is_match(path)) {
            unmatched.push(pattern.as_str());
        }
    }
    Ok(unmatched)
}

/// The first component of a path that is protected.
pub fn protected_part(path: &Path) -> Option<&'static str> {
    path.components().find_map(|part| protected_name(part.as_os_str().to_str()?))
}

/// The literal folder or file that everything a pattern matches lies at or below; empty for the whole tree.
pub fn literal_prefix(pattern: &str) -> String {
    let parts: Vec<&str> = pattern.trim_end_matches('/').split('/').take_while(|part| !has_meta(part)).collect();
    parts.join("/")
}

/// Where a pattern lets somebody write, as far as whole folders tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its literal beginning, without the last slash; empty for the whole tree.
    pub path: String,
    /// It is a folder for certain; else a folder or a file.
    pub is_folder: bool,
}

/// The literal beginnings of patterns.
pub fn writable_roots(patterns: &[String]) -> Vec<Root> {
    let root = |pattern: &String| Root {
        path: literal_prefix(pattern),
        is_folder: pattern.ends_with('/') || pattern.split('/').any(has_meta),
    };
    patterns.iter().map(root).collect()
}

/// Whether some pattern may match a path in this folder.
pub fn reaches(patterns: &[String], folder: &Path) -> bool {
    patterns.iter().any(|pattern| {
        let prefix = literal_prefix(pattern);
        let below = folder.strip_prefix(&prefix).map(|rest| rest.components().count());
        match below {
            // The pattern begins in the folder, or at it.
            Ok(0) => true,
            // A plain folder takes in all below; of a glob only what may cross slashes does.
            Ok(_) => !has_meta(pattern) || pattern.contains("**") || pattern.trim_end_matches('/') == prefix,
            Err(_) => Path::new(&prefix).starts_with(folder),
        }
    })
}

/// What is wrong with a folder in a lane's `write_paths`, as far as its words tell.
///
/// Whether it holds the store, a git directory or the principal checkout is [`folder_holds`]'s question, for those
/// who know where they are.
pub fn write_path_problem(folder: &str) -> Option<&'static str> {
    if folder.starts_with('@') {
        return super::workflow::adapters::preset_of(folder)
            .is_none()
            .then_some("is no known set: @cargo @npm @pip @go");
    }
    let below_home = folder.strip_prefix("~/");
    let Some(rest) = below_home.or_else(|| folder.strip_prefix('/')) else {
        return Some("is neither absolute nor below `~/`");
    };
    let parts: Vec<&str> = rest.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.is_empty() {
        return Some("contains every repository");
    }
    if parts.contains(&"..") {
        return Some("leads upward");
    }
    if parts.iter().any(|part| matches!(protected_name(part), Some(".git" | ".striatum"))) {
        return Some("lies in a store or a git directory");
    }
    None
}

/// Whether a writable folder contains a kept one, or lies in it; both absolute and resolved.
pub fn folder_holds(folder: &Path, kept: &Path) -> bool {
    folder.starts_with(kept) || kept.starts_with(folder)
}

fn protected_name(part: &str) -> Option<&'static str> {
    PROTECTED.iter().copied().find(|name| name.eq_ignore_ascii_case(part))
}

fn compile(patterns: &[String], refuse_protected: bool) -> Result<GlobSet, BadGlob> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        look(pattern, refuse_protected)?;
        for glob in meanings(pattern) {
            let syntax =
                |error: globset::Error| BadGlob::Syntax { glob: pattern.clone(), reason: error.kind().to_string() };
            set.add(GlobBuilder::new(&glob).literal_separator(true).build().map_err(syntax)?);
        }
    }
    let syntax = |error: globset::Error| BadGlob::Syntax { glob: patterns.join(" "), reason: error.kind().to_string() };
    set.build().map_err(syntax)
}

fn look(pattern: &str, refuse_protected: bool) -> Result<(), BadGlob> {
    if pattern.is_empty() {
        return Err(BadGlob::Empty);
    }
    if pattern.starts_with('/') || pattern.starts_with('~') {
        return Err(BadGlob::Absolute(pattern.to_owned()));
    }
    let mut parts: Vec<&str> = pattern.split('/').collect();
    if parts.last() == Some(&"") {
        parts.pop();
    }
    for part in parts {
        match part {
            ".." => return Err(BadGlob::Parent(pattern.to_owned())),
            "." | "" => return Err(BadGlob::Crooked(pattern.to_owned())),
            part => {
                if let Some(name) = protected_name(part).filter(|_| refuse_protected) {
                    return Err(BadGlob::Protected { glob: pattern.to_owned(), name: name.to_owned() });
                }
            }
        }
    }
    Ok(())
}

/// The globs that say in globset's words what a pattern means.
fn meanings(pattern: &str) -> Vec<String> {
    match pattern.strip_suffix('/') {
        Some(folder) => vec![format!("{folder}/**")],
        None if has_meta(pattern) => vec![pattern.to_owned()],
        None => vec![pattern.to_owned(), format!("{pattern}/**")],
    }
}

fn has_meta(text: &str) -> bool {
    text.contains(['*', '?', '[', ']', '{', '}', '\\', '!'])
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn scope(writes: &[&str], forbids: &[&str]) -> Scope {
        let owned = |list: &[&str]| list.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
        Scope::new(&owned(writes), &owned(forbids)).unwrap()
    }

    #[test]
    fn a_pattern_lets_write_in_its_literal_folders() {
        let patterns = ["src/", "src/gen/*.rs", "README.md", "*.md", "a/b/**", "docs"].map(str::to_owned);
        let roots = writable_roots(&patterns);
        let said: Vec<String> = roots.iter().map(|root| format!("{}:{}", root.path, root.is_folder)).collect();
        assert_eq!(said, ["src:true", "src/gen:true", "README.md:false", ":true", "a/b:true", "docs:false"]);
    }

    #[test]
    fn a_folder_is_reached_by_patterns_that_may_match_in_it() {
        let reached = |pattern: &str, folder: &str| reaches(&[pattern.to_owned()], Path::new(folder));
        for (pattern, folder) in
            [("src/", "src"), ("src/", "src/deep"), ("src/*.rs", "src"), ("src/a/b.rs", "src"), ("d/**/*.md", "d/x/y")]
        {
            assert!(reached(pattern, folder), "{pattern} {folder}");
        }
        for (pattern, folder) in [("src/", "docs"), ("src/*.rs", "src/deep"), ("*.md", "src"), ("src2/", "src")] {
            assert!(!reached(pattern, folder), "{pattern} {folder}");
        }
    }

    #[test]
    fn a_bare_folder_means_everything_below() {
        for pattern in ["src", "src/"] {
            let scope = scope(&[pattern], &[]);
            assert!(scope.covers(Path::new("src/a/b.rs")), "{pattern}");
            assert!(!scope.covers(Path::new("src2/a.rs")), "{pattern}");
        }
        assert!(scope(&["Cargo.toml"], &[]).covers(Path::new("Cargo.toml")));
    }

    #[test]
    fn a_star_stays_in_its_folder() {
        let scope = scope(&["src/*.rs", "docs/**/*.md", "crates/*/"], &[]);
        assert!(scope.covers(Path::new("src/a.rs")));
        assert!(!scope.covers(Path::new("src/b/a.rs")));
        assert!(scope.covers(Path::new("docs/a.md")));
        assert!(scope.covers(Path::new("docs/x/y/a.md")));
        assert!(scope.covers(Path::new("crates/one/src/lib.rs")));
        assert!(!scope.covers(Path::new("crates/README.md")));
    }

    #[test]
    fn each_refusal_has_its_word() {
        let scope = scope(&["**"], &["src/secret/"]);
        let word = |path: &str| scope.refuses(Path::new(path)).map(Violation::word);
        assert_eq!(word("src/main.rs"), None);
        assert_eq!(word("src/secret/key"), Some("path_forbidden"));
        assert_eq!(word("../x"), Some("path_traversal"));
        assert_eq!(word("/etc/passwd"), Some("path_traversal"));
        assert_eq!(word("a/../b"), Some("path_traversal"));
        assert_eq!(word(".git/hooks/pre-commit"), Some("protected_path"));
        assert_eq!(word("sub/.GIT/config"), Some("protected_path"));
        assert_eq!(word(".striatum-example/config.toml"), None);
        let narrow = Scope::new(&["src/".into()], &[]).unwrap();
        assert_eq!(narrow.refuses(Path::new("README.md")).map(Violation::word), Some("path_outside_scope"));
    }

    #[test]
    fn a_scope_can_not_name_what_is_protected_absolute_or_above() {
        let said: Vec<String> = ["", "/src", "~/x", "a/../b", "./src", "a//b", ".git/**", "**/.claude/", "src/[", "**"]
            .iter()
            .map(|glob| check(glob, false).map_or_else(|error| error.to_string(), |()| "fine".into()))
            .collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        an empty pattern matches nothing
        `/src` is absolute; patterns are relative to the work tree
        `~/x` is absolute; patterns are relative to the work tree
        `a/../b` leads upward
        `./src` has an empty or `.` component
        `a//b` has an empty or `.` component
        `.git/**` names the protected path `.git`
        `**/.claude/` names the protected path `.claude`
        `src/[` is no glob: unclosed character class; missing ']'
        fine
        ");
    }

    #[test]
    fn patterns_that_match_nothing_are_found() {
        let patterns = ["src/".to_owned(), "scr/".to_owned()];
        assert_eq!(unmatched(&patterns, &[Path::new("src/main.rs")]).unwrap(), ["scr/"]);
    }

    #[test]
    fn words_are_the_serialized_names() {
        for violation in [Violation::PathOutsideScope, Violation::ModeRefused, Violation::WorktreeRequired] {
            assert_eq!(serde_json::to_value(violation).unwrap(), violation.word());
        }
    }

    #[test]
    fn the_literal_prefix_ends_before_the_first_glob() {
        assert_eq!(literal_prefix("src/a/*.rs"), "src/a");
        assert_eq!(literal_prefix("src/"), "src");
        assert_eq!(literal_prefix("**"), "");
    }
}
