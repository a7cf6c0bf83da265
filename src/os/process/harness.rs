//! Recognising that a command was typed by an AI coding agent and not by a person.
//!
//! Advisory: an agent that hides is not found, and a person who started one's terminal is. It does not know which
//! commands are a person's.

use std::ffi::OsString;
use std::path::Path;

use super::carried::words_of;
use super::{Entry, ancestors, own_pid};

/// Programs that are agents, by the name they are started with.
const PROGRAMS: [(&str, &str); 22] = [
    ("claude", "Claude Code"),
    ("codex", "Codex"),
    ("opencode", "opencode"),
    ("gemini", "Gemini CLI"),
    ("gemini-cli", "Gemini CLI"),
    ("aider", "aider"),
    ("cursor-agent", "Cursor"),
    ("amp", "Amp"),
    ("goose", "goose"),
    ("crush", "Crush"),
    ("copilot", "Copilot CLI"),
    ("qwen", "Qwen Code"),
    ("kimi", "Kimi CLI"),
    ("droid", "Factory"),
    ("auggie", "Augment"),
    ("cline", "Cline"),
    ("kilocode", "Kilo Code"),
    ("openhands", "OpenHands"),
    ("kiro-cli", "Kiro"),
    ("devin", "Devin"),
    ("claude-code", "Claude Code"),
    ("codex-cli", "Codex"),
];

/// Variables that agents set for what they start, and their configuration does not.
const VARIABLES: [(&str, &str); 15] = [
    ("CLAUDECODE", "Claude Code"),
    ("CODEX_SANDBOX", "Codex"),
    ("CODEX_SANDBOX_NETWORK_DISABLED", "Codex"),
    ("CODEX_THREAD_ID", "Codex"),
    ("CODEX_CI", "Codex"),
    ("GEMINI_CLI", "Gemini CLI"),
    ("OPENCODE", "opencode"),
    ("CURSOR_AGENT", "Cursor"),
    ("CLINE_ACTIVE", "Cline"),
    ("AUGMENT_AGENT", "Augment"),
    ("COPILOT_CLI", "Copilot CLI"),
    ("QWEN_CODE", "Qwen Code"),
    ("TRAE_AI_SHELL_ID", "Trae"),
    ("GOOSE_TERMINAL", "goose"),
    ("AI_AGENT", "an agent"),
];

/// Programs whose first argument is the program that counts.
const INTERPRETERS: [&str; 12] =
    ["node", "bun", "deno", "python", "python3", "uv", "pipx", "npx", "bunx", "env", "ruby", "node-MainThread"];

/// The agent that this process runs under, if one is known, and by what: `Claude Code (CLAUDECODE is set)`.
pub fn find_harness() -> Option<String> {
    by_environment(std::env::vars_os()).or_else(|| ancestors(own_pid()).iter().find_map(by_program))
}

/// The agent that an environment speaks of. A value of nothing or 0 is none.
pub fn by_environment(environment: impl Iterator<Item = (OsString, OsString)>) -> Option<String> {
    let mut set: Vec<OsString> =
        environment.filter(|(_, value)| !value.is_empty() && value != "0").map(|(name, _)| name).collect();
    set.sort();
    let (name, agent) = VARIABLES.iter().find(|(name, _)| set.iter().any(|found| found == name))?;
    Some(format!("{agent} ({name} is set)"))
}

fn by_program(entry: &Entry) -> Option<String> {
    let agent = by_words(&entry.name, &words_of(entry.pid))?;
    Some(format!("{agent} (pid {})", entry.pid))
}

/// The agent that a process is, by its kernel name or by the words it was started with.
pub fn by_words(name: &str, words: &[OsString]) -> Option<&'static str> {
    let base = |word: &OsString| {
        let base = Path::new(word).file_stem()?.to_str()?.to_owned();
        Some(base)
    };
    let mut bases = words.iter().filter(|word| !word.as_encoded_bytes().starts_with(b"-")).map_while(base);
    let first = bases.next().unwrap_or_default();
    let second = if INTERPRETERS.contains(&first.as_str()) { bases.next() } else { None };
    let known = |wanted: &str| PROGRAMS.iter().find(|(program, _)| *program == wanted).map(|(_, agent)| *agent);
    let by_package = || {
        let script = words.get(1).filter(|_| second.is_some())?.to_str()?;
        let packages = [
            ("@anthropic-ai/claude-code/", "Claude Code"),
            ("@openai/codex/", "Codex"),
            ("@google/gemini-cli/", "Gemini CLI"),
            ("opencode-ai/", "opencode"),
        ];
        packages.iter().find(|(package, _)| script.contains(package)).map(|(_, agent)| *agent)
    };
    known(name).or_else(|| known(&first)).or_else(|| known(second.as_deref()?)).or_else(by_package)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn words(name: &str, words: &[&str]) -> Option<&'static str> {
        by_words(name, &words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn agents_are_known_by_name_by_script_and_by_package() {
        assert_eq!(words("claude", &["claude", "-p", "x"]), Some("Claude Code"));
        assert_eq!(words("node", &["node", "/usr/bin/gemini", "-p"]), Some("Gemini CLI"));
        assert_eq!(words("node-MainThread", &["node", "/x/@openai/codex/bin/main.js"]), Some("Codex"));
        assert_eq!(words("python3", &["/usr/bin/python3", "/home/u/.local/bin/aider", "--yes"]), Some("aider"));
        assert_eq!(words("MainThread", &["/home/u/.opencode/bin/opencode", "run"]), Some("opencode"));
    }

    #[test]
    fn people_and_their_tools_are_not() {
        assert_eq!(words("bash", &["-bash"]), None);
        assert_eq!(words("vim", &["vim", "claude"]), None);
        assert_eq!(words("grep", &["grep", "codex", "gemini"]), None);
        assert_eq!(words("node", &["node", "server.js"]), None);
        assert_eq!(words("make", &[]), None);
    }

    #[test]
    fn a_variable_counts_when_it_says_something() {
        let of = |pairs: &[(&str, &str)]| by_environment(pairs.iter().map(|(name, value)| (name.into(), value.into())));
        assert_eq!(of(&[("HOME", "/home/u"), ("CLAUDECODE", "1")]).unwrap(), "Claude Code (CLAUDECODE is set)");
        assert_eq!(of(&[("CLAUDECODE", "0"), ("GEMINI_CLI", "")]), None);
        assert_eq!(of(&[("CODEX_HOME", "/home/u/.codex"), ("CLAUDE_CONFIG_DIR", "x")]), None);
    }
}
