//! The environment of a lane: a list of what may go in, everything else stays out.
//!
//! Agents hand their whole environment to their tools, so that what is here is what any of them can read. This
//! file does not read the environment itself, and does not know what the values mean.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Names that always go in.
const NAMES: [&str; 9] = ["HOME", "USER", "LOGNAME", "SHELL", "PATH", "TERM", "LANG", "TZ", "TMPDIR"];
/// Beginnings of names that always go in.
const PREFIXES: [&str; 3] = ["LC_", "XDG_", "SSL_CERT_"];

/// Why a lane gets no environment.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvError {
    /// Listed in `env`, and not set. Set but empty is set.
    #[error("the lane needs the variable {name}, which is not set")]
    Unset {
        /// The name.
        name: String,
    },
    /// Listed in `env`, and never passed on: it leads git to another repository, or is the lane's own.
    #[error("the variable {name} is never passed to a lane")]
    Forbidden {
        /// The name.
        name: String,
    },
}

/// What a lane is given beside what always goes in.
#[derive(Clone, Copy, Debug)]
pub struct LaneEnvironment<'a> {
    /// Names listed in the lane's `env`, passed on with the values they have.
    pub named: &'a [String],
    /// `TMPDIR`, `STRIATUM_*` and the like, with their values; they win.
    pub given: &'a [(String, OsString)],
}

/// Puts a lane's environment together, sorted by name.
///
/// # Errors
/// See [`EnvError`].
pub fn lane_environment(
    inherited: impl Iterator<Item = (OsString, OsString)>,
    lane: LaneEnvironment<'_>,
) -> Result<Vec<(OsString, OsString)>, EnvError> {
    if let Some(name) = lane.named.iter().find(|name| is_forbidden(name)) {
        return Err(EnvError::Forbidden { name: name.clone() });
    }
    let named = |name: &OsStr| lane.named.iter().any(|listed| name == listed.as_str());
    let mut kept: BTreeMap<OsString, OsString> =
        inherited.filter(|(name, _)| is_allowed(name) || named(name)).collect();
    if let Some(name) = lane.named.iter().find(|name| !kept.contains_key(OsStr::new(name))) {
        return Err(EnvError::Unset { name: name.clone() });
    }
    // Whoever gives no folder of the attempt's own wants none, least of all the user's.
    kept.remove(OsStr::new("TMPDIR"));
    kept.extend(lane.given.iter().map(|(name, value)| (name.into(), value.clone())));
    Ok(kept.into_iter().collect())
}

/// The search path with a folder first, so that `striatum` means the same program below as here.
pub fn path_with(bin: &Path) -> OsString {
    let mut path = bin.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os("PATH").filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    path
}

/// Whether a variable goes into every lane.
pub fn is_allowed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.to_ascii_uppercase().ends_with("_PROXY")
}

/// Where git looks, and what makes the lane a lane: neither is anybody's to pass on. Who commits (`GIT_AUTHOR_*`,
/// `GIT_COMMITTER_*`) and how git talks to a host may be listed.
fn is_forbidden(name: &str) -> bool {
    leads_git(name) || name.starts_with("STRIATUM_")
}

/// Whether a variable leads git to another repository, index, set of objects or settings: git sets such for its hooks.
pub fn leads_git(name: &str) -> bool {
    let place = [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_SHALLOW_FILE",
        "GIT_GRAFT_FILE",
        "GIT_REPLACE_REF_BASE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INTERNAL_SUPER_PREFIX",
    ];
    place.contains(&name) || name.starts_with("GIT_CONFIG")
}

/// Whether a variable must not reach a git process of ours: all that git reads.
pub fn is_gits(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("GIT_"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn names(inherited: &[(&str, &str)], named: &[&str]) -> Result<Vec<String>, EnvError> {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        let given = [("TMPDIR".to_owned(), "/attempt/tmp".into()), ("STRIATUM_RUN".to_owned(), "a-1".into())];
        let pairs = inherited.iter().map(|(name, value)| (name.into(), value.into()));
        let made = lane_environment(pairs, LaneEnvironment { named: &named, given: &given })?;
        Ok(made.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect())
    }

    #[test]
    fn only_what_is_listed_goes_in() {
        let inherited = [
            ("HOME", "/home/u"),
            ("LC_ALL", "C"),
            ("https_proxy", "p"),
            ("NO_PROXY", "n"),
            ("XDG_RUNTIME_DIR", "/run"),
            ("SSL_CERT_FILE", "c"),
            ("TMPDIR", "/tmp/user"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("GITHUB_TOKEN", "secret"),
            ("GIT_DIR", "/decoy"),
            ("LD_PRELOAD", "x.so"),
            ("STRIATUM_SESSION", "s1"),
            ("CLAUDECODE", "1"),
        ];
        let expected = [
            "HOME=/home/u",
            "LC_ALL=C",
            "NO_PROXY=n",
            "SSL_CERT_FILE=c",
            "STRIATUM_RUN=a-1",
            "TMPDIR=/attempt/tmp",
            "XDG_RUNTIME_DIR=/run",
            "https_proxy=p",
        ];
        assert_eq!(names(&inherited, &[]).unwrap(), expected);
    }

    #[test]
    fn a_listed_name_must_be_set_and_may_be_empty() {
        let made = names(&[("API_KEY", ""), ("GIT_AUTHOR_NAME", "A")], &["API_KEY", "GIT_AUTHOR_NAME"]).unwrap();
        assert_eq!(made, ["API_KEY=", "GIT_AUTHOR_NAME=A", "STRIATUM_RUN=a-1", "TMPDIR=/attempt/tmp"]);
        assert_eq!(names(&[], &["API_KEY"]), Err(EnvError::Unset { name: "API_KEY".to_owned() }));
    }

    #[test]
    fn what_leads_git_elsewhere_can_not_be_listed() {
        for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "STRIATUM_TOKEN_FILE"] {
            assert_eq!(names(&[(name, "x")], &[name]), Err(EnvError::Forbidden { name: name.to_owned() }));
        }
    }

    #[test]
    fn a_name_that_is_no_text_stays_out() {
        use std::os::unix::ffi::OsStrExt;
        assert!(!is_allowed(OsStr::from_bytes(b"LC_\xff")));
        assert!(is_gits(OsStr::new("GIT_DIR")) && !is_gits(OsStr::new("DIGIT_X")));
    }
}
