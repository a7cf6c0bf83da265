//! Escapes: acts that a person's recorded judgement lets leave the constrained surface, exactly and a counted number of
//! times.
//!
//! Pure words. It does not know who asks, nor what an act does.

use super::event::sha256_hex;
use super::word::word_enum;

word_enum! {
    /// Where an act leaves the constrained surface.
    Surface "surface" {
        /// A command that the job does not declare.
        ProcessRun "process.run",
        /// A write that the job's scope does not cover.
        RepoWrite "repo.write",
        /// A patch that the job's scope does not cover.
        RepoPatchApply "repo.patch-apply",
        /// Putting back work without looking what it did.
        RequeueStale "admin:work-requeue-stale",
        /// Giving a failed job its tries back.
        RetryJob "admin:run-retry-job",
        /// Changing what a run was prepared with.
        Amend "admin:run-amend",
        /// Taking away what ended runs have left.
        Gc "admin:gc",
        /// Taking the store away.
        Uninit "admin:uninit",
        /// Setting up files of a store.
        Init "admin:init",
        /// Putting git hooks in place.
        HookInstall "admin:hook-install",
        /// Taking git hooks away.
        HookUninstall "admin:hook-uninstall",
        /// Keeping a lane from launches.
        LanePause "admin:lane-pause",
        /// Giving a lane launches again.
        LaneResume "admin:lane-resume",
    }
}

/// The longest life of an escape that names none: a day, in milliseconds.
pub const LIFE_MS: u64 = 24 * 60 * 60 * 1_000;

/// How often one escape may be used at most.
pub const MOST_USES: u32 = 100;

impl Surface {
    /// A surface as people and older files write it.
    pub fn read(text: &str) -> Option<Surface> {
        let known = || text.parse().ok();
        if text == "shell_command" { Some(Surface::ProcessRun) } else { known() }
    }

    /// The surface of a verb that an operator of a constrained run needs an escape for; `name` joins words by `_`.
    pub fn of_verb(name: &str) -> Option<Surface> {
        format!("admin:{}", name.replace('_', "-")).parse().ok()
    }
}

/// What an escape may say for a command: its words joined by spaces, or the hash that tells words with spaces apart.
pub fn actions(argv: &[String]) -> [String; 2] {
    [argv.join(" "), format!("sha256:{}", sha256_hex(argv.join("\0").as_bytes()))]
}

/// What a refusal tells a person to write: the words where they mean one command only, else the hash.
pub fn action(argv: &[String]) -> String {
    let is_plain = |word: &String| !word.is_empty() && !word.contains(char::is_whitespace);
    let [words, hash] = actions(argv);
    if argv.iter().all(is_plain) { words } else { hash }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_surface_is_read_by_its_word_and_by_its_older_one() {
        assert_eq!(Surface::read("process.run"), Some(Surface::ProcessRun));
        assert_eq!(Surface::read("shell_command"), Some(Surface::ProcessRun));
        assert_eq!(Surface::read("admin:gc"), Some(Surface::Gc));
        assert_eq!(Surface::read("admin:run-start"), None);
        assert_eq!(Surface::of_verb("run_retry_job"), Some(Surface::RetryJob));
        assert_eq!(Surface::of_verb("run_start"), None);
    }

    #[test]
    fn words_with_spaces_are_told_apart_by_their_hash() {
        assert_eq!(action(&argv(&["cargo", "test"])), "cargo test");
        let [one, other] = [argv(&["sh", "-c", "a b"]), argv(&["sh", "-c", "a", "b"])].map(|argv| action(&argv));
        assert!(one.starts_with("sha256:") && other == "sh -c a b");
        assert_ne!(actions(&argv(&["a b"]))[1], actions(&argv(&["a", "b"]))[1]);
    }
}
