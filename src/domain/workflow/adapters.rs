//! Known agents: the words that start each one unattended, and the signs by which it says that it can't work.
//!
//! Facts about other people's programs, as they were seen; each is a default that a lane may overwrite. All of
//! them get their prompt by file or argument and never an open pipe: codex and opencode wait on one for ever.

use crate::domain::frozen::{LaneStdin, Sandbox};

/// What a lane gets when it names the agent instead of a command.
#[derive(Clone, Copy, Debug)]
pub struct Adapter {
    /// The word in `adapter`.
    pub name: &'static str,
    /// The command line.
    pub command: &'static [&'static str],
    /// What it reads on standard input.
    pub stdin: LaneStdin,
    /// Where it keeps logins, sessions and settings: it can't work without writing there.
    pub state: &'static [&'static str],
    /// The words of `command` that switch its own sandbox on, and what they become inside ours.
    pub own_sandbox: Option<(&'static str, &'static str)>,
    /// Substrings of its last output when it is rate limited, overloaded, offline or logged out.
    pub patterns: &'static [&'static str],
}

/// The words of all adapters.
pub const NAMES: &[&str] = &["claude", "codex", "opencode", "aider"];

/// 15 minutes: an agent that has neither written, computed nor spoken for so long is stuck.
pub const IDLE_TIMEOUT_MS: u64 = 15 * 60_000;

/// Agents run other people's text; the kernel confines them where it can.
pub const SANDBOX: Sandbox = Sandbox::PreferScope;

const ADAPTERS: &[Adapter] = &[
    Adapter {
        name: "claude",
        command: &[
            "claude",
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash,Edit,Write,Read",
            "--add-dir",
            "${scratch}",
        ],
        stdin: LaneStdin::Prompt,
        state: &["~/.claude", "~/.claude.json"],
        own_sandbox: None,
        patterns: &["rate_limit", "overloaded", "usage limit", "Invalid API key", "Please run /login"],
    },
    Adapter {
        name: "codex",
        command: &["codex", "exec", "--sandbox", "workspace-write", "--add-dir", "${scratch}", "-"],
        stdin: LaneStdin::Prompt,
        state: &["~/.codex"],
        own_sandbox: Some(("workspace-write", "danger-full-access")),
        patterns: &["rate limit", "usage limit", "Not logged in", "stream disconnected"],
    },
    Adapter {
        name: "opencode",
        command: &["opencode", "run", "${prompt}"],
        stdin: LaneStdin::Null,
        state: &["~/.local/share/opencode", "~/.local/state/opencode", "~/.config/opencode", "~/.cache/opencode"],
        own_sandbox: None,
        patterns: &["rate limit", "overloaded", "Unauthorized"],
    },
    Adapter {
        name: "aider",
        command: &[
            "aider",
            "--yes-always",
            "--no-auto-commits",
            "--no-gitignore",
            "--input-history-file",
            "${tmp}/aider.input.history",
            "--chat-history-file",
            "${tmp}/aider.chat.history.md",
            "--message-file",
            "${prompt_file}",
        ],
        stdin: LaneStdin::Null,
        state: &["~/.aider", "~/.cache/aider"],
        own_sandbox: None,
        patterns: &["RateLimitError", "AuthenticationError", "APIConnectionError"],
    },
];

/// What a toolchain writes outside a project, by the word that stands for it in `write_paths`.
const PRESETS: &[(&str, &[&str])] = &[
    ("@cargo", &["~/.cargo/registry", "~/.cargo/git", "~/.cargo/.package-cache", "~/.cargo/.package-cache-mutate"]),
    ("@npm", &["~/.npm", "~/.cache/npm"]),
    ("@pip", &["~/.cache/pip", "~/.cache/uv"]),
    ("@go", &["~/go/pkg", "~/.cache/go-build"]),
];

/// The folders of a preset, if there is such a one.
pub fn preset_of(word: &str) -> Option<&'static [&'static str]> {
    PRESETS.iter().find(|(name, _)| *name == word).map(|(_, folders)| *folders)
}

/// The folders that an entry of `write_paths` means.
pub fn folders_of(entry: &str) -> Vec<String> {
    match preset_of(entry) {
        Some(folders) => folders.iter().map(|folder| (*folder).to_owned()).collect(),
        None => vec![entry.to_owned()],
    }
}

/// The adapter of a name.
pub fn find(name: &str) -> Option<&'static Adapter> {
    ADAPTERS.iter().find(|adapter| adapter.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_adapter() {
        let known: Vec<&str> = ADAPTERS.iter().map(|adapter| adapter.name).collect();
        assert_eq!(known, NAMES);
    }
}
