//! `hook pre-push`: a run's branches and pins are not sent anywhere.
//!
//! It reads what git is about to push and looks whether there is a store; the store itself stays closed.

use crate::domain::path::shown;
use crate::os::layout::{Found, Search, discover};

use super::ask::{Said, Surroundings};

/// Branches of runs, and pins of attempts.
const KEPT_HERE: [&[u8]; 2] = [b"refs/heads/striatum/", b"refs/striatum/"];

/// Judges what is about to be pushed: git's lines `LOCAL-REF OBJECT REMOTE-REF OBJECT`.
pub fn pre_push(around: &Surroundings, lines: &[u8]) -> Said {
    let refused: Vec<String> = lines.split(|byte| *byte == b'\n').filter_map(refused).collect();
    if refused.is_empty() || !has_store(around) {
        return Said::default();
    }
    let mut text = "striatum: a run's own branches and pins stay in this repository:\n".to_owned();
    refused.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    text.push_str("way out: land the run (`striatum inbox` shows what waits) and push the branch that it landed on;\n");
    text.push_str("to send it unlanded, name a branch of your own: `git branch NAME striatum/RUN`.\n");
    Said::refuse(text)
}

/// What one line would send, if it is kept here; taking something away elsewhere sends nothing.
fn refused(line: &[u8]) -> Option<String> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [from, _, to, _] = words.as_slice() else { return None };
    let is_kept = |name: &[u8]| KEPT_HERE.iter().any(|kept| name.starts_with(kept));
    let is_removal = *from == b"(delete)";
    (!is_removal && (is_kept(from) || is_kept(to))).then(|| format!("{} -> {}", text(from), text(to)))
}

fn text(bytes: &[u8]) -> String {
    use std::os::unix::ffi::OsStrExt;
    shown(std::path::Path::new(std::ffi::OsStr::from_bytes(bytes)))
}

/// A store that can't be used is one too.
fn has_store(around: &Surroundings) -> bool {
    let start = around.git_dir.as_ref().map_or_else(|| around.cwd.clone(), |git_dir| around.cwd.join(git_dir));
    let Ok(start) = start.canonicalize() else { return false };
    !matches!(discover(Search { flag: None, variable: None, cwd: &start }), Ok(Found::Config(_) | Found::Nothing(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_count_and_a_removal_does_not() {
        let told = [
            ("refs/heads/striatum/w-1 1 refs/heads/main 2", true),
            ("refs/heads/main 1 refs/heads/striatum/w-1 2", true),
            ("refs/striatum/w-1/draft/1 1 refs/striatum/w-1/draft/1 0", true),
            ("refs/heads/striatum 1 refs/heads/striatum 0", false),
            ("refs/heads/striatum-2/x 1 refs/heads/striatum-2/x 0", false),
            ("(delete) 0 refs/heads/striatum/w-1 2", false),
            ("refs/heads/main 1 refs/heads/main 2", false),
            ("", false),
        ];
        for (line, expected) in told {
            assert_eq!(refused(line.as_bytes()).is_some(), expected, "{line}");
        }
    }
}
