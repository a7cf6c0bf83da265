//! What state a repository and its principal checkout are in: an operation in progress, dirt, settings that lead git
//! to run things.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Git, GitError, path};

/// An uncommitted path: how git sees it, and a trace of its content that costs no read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dirt {
    /// git's two letters, or `?`.
    pub status: String,
    /// Size, modification time in nanoseconds, inode; none when nothing is there.
    pub trace: Option<(u64, i64, u64)>,
}

/// A checkout and a repository's settings at one moment, for comparing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The commit that was checked out.
    pub head: Option<String>,
    /// Uncommitted paths, as text that may have lost bytes: it is only for comparing and showing.
    pub dirt: BTreeMap<String, Dirt>,
    /// Every local setting but those of branches, by key; values as hashes.
    pub settings: BTreeMap<String, String>,
    /// Hooks and attributes of the repository: file name to a trace.
    pub obeyed: BTreeMap<String, (u64, i64, u64)>,
    /// Traces of the files that the settings were read from; none where one of them names others.
    #[serde(default)]
    pub read_from: Option<Vec<Traced>>,
}

/// A file of settings: size, changes of content and of anything (nanoseconds; nobody can set the latter), inode. None when
/// it is not there.
type Traced = Option<(u64, i64, i64, u64)>;

impl Baseline {
    /// What git obeys and differs in a later look, as paths to show.
    pub fn other_rules(&self, later: &Baseline) -> Vec<String> {
        let settings = differing(&self.settings, &later.settings).into_iter();
        let mut rules: Vec<String> = settings.map(|key| format!(".git/config ({key})")).collect();
        rules.extend(differing(&self.obeyed, &later.obeyed).into_iter().map(|name| format!(".git/{name}")));
        rules
    }

    /// Whether a later look shows other commands that git would run on the files that it takes in.
    pub fn has_other_filters(&self, later: &Baseline) -> bool {
        differing(&self.settings, &later.settings)
            .iter()
            .any(|key| ["filter.", "include.", "includeif."].iter().any(|name| key.starts_with(name)))
    }

    /// Paths of the checkout that differ in a later look.
    pub fn other_paths(&self, later: &Baseline) -> Vec<String> {
        let has_moved = self.head != later.head;
        let paths = differing(&self.dirt, &later.dirt).into_iter().filter(|path| {
            match (self.dirt.get(path), later.dirt.get(path)) {
                // Staged or not, it is the same file.
                (Some(before), Some(after)) => before.trace != after.trace,
                // Committed as it was.
                (Some(_), None) => !has_moved,
                _ => true,
            }
        });
        paths.collect()
    }
}

/// Keys whose values differ, or that only one side has.
fn differing<V: PartialEq>(before: &BTreeMap<String, V>, after: &BTreeMap<String, V>) -> Vec<String> {
    let changed = before.iter().filter(|(key, value)| after.get(*key) != Some(*value)).map(|(key, _)| key.clone());
    let added = after.keys().filter(|key| !before.contains_key(*key)).cloned();
    let mut all: Vec<String> = changed.chain(added).collect();
    all.sort();
    all
}

/// What git leaves in its directory while it is in the middle of something, and the word for that.
const IN_PROGRESS: &[(&str, &str)] = &[
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase or am"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
];

impl Git {
    /// What the principal checkout is in the middle of.
    pub fn in_progress(&self) -> Option<&'static str> {
        IN_PROGRESS.iter().find(|(name, _)| self.git_dir.join(name).exists()).map(|(_, word)| *word)
    }

    /// The branch that is checked out, as a full name; `None` when none is (a detached HEAD).
    ///
    /// # Errors
    /// git is missing.
    pub fn branch(&self) -> Result<Option<String>, GitError> {
        let output = self.run(&["symbolic-ref", "--quiet", "HEAD"])?;
        let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.status.success() && !name.is_empty()).then_some(name))
    }

    /// The principal checkout (without one folder at its top) and the repository's settings, as they are now.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn baseline(&self, without: &str) -> Result<Baseline, GitError> {
        self.with_checkout(self.rules()?, without)
    }

    /// The same, when the rules are known already.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn with_checkout(&self, mut rules: Baseline, without: &str) -> Result<Baseline, GitError> {
        if self.work_tree.is_some() {
            (rules.head, rules.dirt) = self.checkout(without)?;
        }
        Ok(rules)
    }

    /// The part of it that git obeys; reading it runs nothing that it names.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn rules(&self) -> Result<Baseline, GitError> {
        // Before they are read: a change in between makes the traces old, and the next look reads again.
        let traced = self.traced();
        let settings = self.settings()?;
        let has_others = settings.keys().any(|key| key.starts_with("include"));
        let read_from = (!has_others).then_some(traced);
        Ok(Baseline { settings, obeyed: self.obeyed(), read_from, ..Baseline::default() })
    }

    /// The same, compared with an earlier look: files of settings that nobody touched say what they said.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn rules_since(&self, before: &Baseline) -> Result<Baseline, GitError> {
        if before.read_from.is_none() || before.read_from != Some(self.traced()) {
            return self.rules();
        }
        let (settings, read_from) = (before.settings.clone(), before.read_from.clone());
        Ok(Baseline { settings, obeyed: self.obeyed(), read_from, ..Baseline::default() })
    }

    fn traced(&self) -> Vec<Traced> {
        ["config", "config.worktree"].iter().map(|name| traced(&self.git_dir.join(name))).collect()
    }

    /// Every path of the work tree that differs from what is checked out, ignored ones aside.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn changed_paths(&self) -> Result<Vec<PathBuf>, GitError> {
        let args =
            ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty"];
        let listed = self.ask(&args)?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.len() > 3);
        Ok(entries.map(|entry| path(entry.get(3..).unwrap_or_default())).collect())
    }

    /// The commit that is checked out, and every path that differs from it.
    fn checkout(&self, without: &str) -> Result<(Option<String>, BTreeMap<String, Dirt>), GitError> {
        let exclude = format!(":(top,exclude,literal){without}");
        let listed = self.ask(&[
            "status",
            "--porcelain=v2",
            "--branch",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=dirty",
            "--",
            ":(top)",
            &exclude,
        ])?;
        let top = self.work_tree.clone().unwrap_or_default();
        let mut head = None;
        let mut dirt = BTreeMap::new();
        for entry in listed.split(|byte| *byte == 0) {
            if let Some(commit) = entry.strip_prefix(b"# branch.oid ") {
                head = Some(String::from_utf8_lossy(commit).into_owned()).filter(|commit| commit != "(initial)");
            } else if let Some((status, name)) = differs(entry) {
                let name = path(name);
                let trace = trace(&top.join(&name));
                dirt.insert(name.to_string_lossy().into_owned(), Dirt { status, trace });
            }
        }
        Ok((head, dirt))
    }

    /// The repository's settings by key, with what they include and those of its main work tree; those of branches are
    /// left out: a push or a checkout by the user writes them.
    fn settings(&self) -> Result<BTreeMap<String, String>, GitError> {
        let mut listed = self.ask(&["config", "--local", "--includes", "--null", "--list"])?;
        if self.git_dir.join("config.worktree").exists() {
            let path = self.git_dir.join("config.worktree");
            listed.push(0);
            let args = ["config", "--includes", "--null", "--list", "--file"].map(OsStr::new);
            listed.extend(self.ask(&[&args[..], &[path.as_os_str()]].concat())?);
        }
        let mut settings: BTreeMap<String, Sha256> = BTreeMap::new();
        for entry in listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let end = entry.iter().position(|byte| *byte == b'\n').unwrap_or(entry.len());
            let (key, value) = entry.split_at(end);
            let key = String::from_utf8_lossy(key).into_owned();
            if !key.starts_with("branch.") {
                settings.entry(key).or_default().update(value);
            }
        }
        let hashed = |hash: Sha256| hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(settings.into_iter().map(|(key, hash)| (key, hashed(hash))).collect())
    }

    /// What git obeys beside its settings. Other files in `info` are git's own, written by its upkeep.
    fn obeyed(&self) -> BTreeMap<String, (u64, i64, u64)> {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(self.git_dir.join("hooks")).into_iter().flatten().flatten() {
            let name = format!("hooks/{}", String::from_utf8_lossy(entry.file_name().as_bytes()));
            if let Some(trace) = trace(&entry.path()).filter(|_| !name.ends_with(".sample")) {
                found.insert(name, trace);
            }
        }
        // git itself writes other files there.
        for name in ["info/attributes", "info/exclude"] {
            if let Some(trace) = trace(&self.git_dir.join(name)) {
                found.insert(name.to_owned(), trace);
            }
        }
        found
    }
}

/// The letters and the path of an entry of `status --porcelain=v2`.
fn differs(entry: &[u8]) -> Option<(String, &[u8])> {
    // Fields before the path: of a changed path, of one in conflict, of one that is not tracked.
    let before = match entry.first()? {
        b'1' => 8,
        b'u' => 10,
        b'?' => return Some(("?".to_owned(), entry.get(2..)?)),
        _ => return None,
    };
    let mut fields = entry.splitn(before + 1, |byte| *byte == b' ');
    let letters = String::from_utf8_lossy(fields.nth(1)?).replace('.', "");
    Some((letters, fields.last()?))
}

fn traced(path: &Path) -> Traced {
    let found = std::fs::symlink_metadata(path).ok()?;
    let ns = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    let (modified, changed) = (ns(found.mtime(), found.mtime_nsec()), ns(found.ctime(), found.ctime_nsec()));
    Some((found.len(), modified, changed, found.ino()))
}

fn trace(path: &Path) -> Option<(u64, i64, u64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    let ns = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
    Some((found.len(), ns, found.ino()))
}
