//! What a client is about to do with a tool, as it tells a hook before: the words of Claude Code, Codex and Gemini CLI.
//!
//! It does not judge anything.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// A tool call that was announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The client's word for the occasion; one that is not known says that the client is newer.
    pub event: String,
    /// The tool.
    pub tool: String,
    /// Where the client stands.
    pub cwd: Option<PathBuf>,
    /// What it would do.
    pub does: Does,
}

/// What a tool does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    /// It writes these paths.
    Writes(Vec<PathBuf>),
    /// It writes by its name, and what is not said in words that are known here.
    WritesUnknown,
    /// It hands this line to a shell, or something that can't be read as one. Nobody can tell what it will do.
    Runs(Option<String>),
    /// Anything else.
    Other,
}

/// Occasions before a tool is used.
const EVENTS: [&str; 2] = ["PreToolUse", "BeforeTool"];

/// Tools that write, and where they say what.
const WRITERS: &[(&str, &str)] = &[
    ("Write", "file_path"),
    ("Edit", "file_path"),
    ("MultiEdit", "file_path"),
    ("NotebookEdit", "notebook_path"),
    ("write_file", "file_path"),
    ("replace", "file_path"),
];

/// Tools that run a command line, and where they say which.
const RUNNERS: &[(&str, &str)] = &[
    ("Bash", "command"),
    ("shell", "command"),
    ("local_shell", "command"),
    ("exec_command", "cmd"),
    ("run_shell_command", "command"),
];

/// What a shell may make something else of.
const SIGNIFICANT: &str = "\n\r;&|<>`$(){}\\!*?[]~#'\"";

/// The tool that takes a patch in its own words.
const PATCHER: &str = "apply_patch";

/// What in a tool's name makes it look like one that writes.
const SIGNS: [&str; 6] = ["write", "edit", "patch", "replace", "delete", "create"];

impl ToolCall {
    /// Whether the occasion is one before a tool is used, in words that are known here.
    pub fn is_known(&self) -> bool {
        EVENTS.contains(&self.event.as_str())
    }
}

/// Reads what a client tells.
///
/// # Errors
/// What is wrong with it, in a few words.
pub fn read(text: &[u8]) -> Result<ToolCall, String> {
    let document: Value = serde_json::from_slice(text).map_err(|error| format!("no JSON: {error}"))?;
    let text = |key: &str| document.get(key).and_then(Value::as_str).map(str::to_owned);
    let tool = text("tool_name").ok_or("it names no tool (tool_name)")?;
    let input = document.get("tool_input").and_then(Value::as_object).cloned().unwrap_or_default();
    Ok(ToolCall {
        event: text("hook_event_name").unwrap_or_default(),
        cwd: text("cwd").map(PathBuf::from),
        does: does(&tool, &input),
        tool,
    })
}

fn does(tool: &str, input: &Map<String, Value>) -> Does {
    if let Some((_, key)) = WRITERS.iter().find(|(name, _)| *name == tool) {
        return match input.get(*key).and_then(Value::as_str) {
            Some(path) => Does::Writes(vec![PathBuf::from(path)]),
            None => Does::WritesUnknown,
        };
    }
    if let Some((_, key)) = RUNNERS.iter().find(|(name, _)| *name == tool) {
        return Does::Runs(input.get(*key).and_then(line));
    }
    if tool == PATCHER {
        let paths: Vec<PathBuf> = input.values().filter_map(Value::as_str).flat_map(patched).collect();
        return if paths.is_empty() { Does::WritesUnknown } else { Does::Writes(paths) };
    }
    let name = tool.to_ascii_lowercase();
    // A server's tool that somebody added: its name is all that is known of it.
    let is_foreign = name.starts_with("mcp_");
    if !is_foreign && SIGNS.iter().any(|sign| name.contains(sign)) { Does::WritesUnknown } else { Does::Other }
}

/// A command line as a shell would get it: one text, or words that a shell would not change.
fn line(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let words: Vec<&str> = value.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    match words.as_slice() {
        ["bash" | "sh" | "/bin/bash" | "/bin/sh", "-c" | "-lc", script] => Some((*script).to_owned()),
        words if words.iter().all(|word| !word.contains(|letter: char| SIGNIFICANT.contains(letter))) => {
            Some(words.join(" "))
        }
        _ => None,
    }
}

/// Whether a command line is one plain call of this program: nothing in it means anything to a shell but quotes, and
/// nothing in quotes does. It may bring its input along, as a text that ends with a quoted word.
pub fn is_own_command(line: &str) -> bool {
    let line = without_input(line.trim());
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (Some('"'), '$' | '`' | '\\' | '!') => return false,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, letter) if SIGNIFICANT.contains(letter) => return false,
            (None, _) => {}
        }
    }
    quote.is_none() && line.split_whitespace().next() == Some("striatum")
}

/// A command without the input that it brings along (`<<'EOF'`, then the text, then `EOF`), which a shell takes as it is.
fn without_input(line: &str) -> &str {
    let Some((command, text)) = line.split_once('\n') else { return line };
    let Some((before, word)) = command.rsplit_once("<<") else { return line };
    let quoted = ['\'', '"'].iter().find_map(|quote| word.trim().strip_prefix(*quote)?.strip_suffix(*quote));
    let Some(word) = quoted.filter(|word| !word.is_empty() && word.chars().all(char::is_alphanumeric)) else {
        return line;
    };
    // The first line that is the word ends the text, and what follows would be a command.
    let ends = text.lines().position(|line| line == word);
    if ends.is_some_and(|at| at + 1 == text.lines().count()) { before } else { line }
}

/// The paths that a patch in Codex's words names.
fn patched(text: &str) -> Vec<PathBuf> {
    const HEADS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    text.lines().filter_map(|line| HEADS.iter().find_map(|head| line.strip_prefix(head))).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn three_clients_say_it_in_their_own_words() {
        let patch = "*** Begin Patch\\n*** Update File: src/a\\n*** Move to: src/b\\n@@\\n*** End Patch";
        let calls = [
            r#"{"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"file_path":"src/a"},"cwd":"/w"}"#
                .to_owned(),
            r#"{"hook_event_name":"PreToolUse","tool_name":"NotebookEdit","tool_input":{"notebook_path":"a.ipynb"}}"#
                .to_owned(),
            format!(
                r#"{{"hook_event_name":"PreToolUse","tool_name":"apply_patch","tool_input":{{"command":"{patch}"}}}}"#
            ),
            r#"{"hook_event_name":"BeforeTool","tool_name":"replace","tool_input":{"file_path":"a"}}"#.to_owned(),
            r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm a"}}"#.to_owned(),
            r#"{"hook_event_name":"PreToolUse","tool_name":"mcp__files__write","tool_input":{}}"#.to_owned(),
            r#"{"hook_event_name":"Later","tool_name":"FileWriter","tool_input":{}}"#.to_owned(),
            r#"{"tool_name":"Write","tool_input":"none"}"#.to_owned(),
        ];
        let said: Vec<String> = calls
            .iter()
            .map(|call| read(call.as_bytes()).unwrap())
            .map(|call| format!("{} {}: {:?}", call.tool, call.is_known(), call.does))
            .collect();
        insta::assert_snapshot!("tool_calls", said.join("\n"));
    }

    #[test]
    fn one_plain_call_of_this_program_is_told_from_what_a_shell_makes_more_of() {
        for line in [
            "striatum status",
            " striatum answer a 'b; c' ",
            "striatum decision record --title \"a (b)\"",
            "striatum",
            "striatum repo write --path a <<'EOF'\nany $(thing); `here`\nEOF",
            "striatum repo write --path a << \"END\"\n\nEND\n",
        ] {
            assert!(is_own_command(line), "{line}");
        }
        for line in [
            "striatum status; rm a",
            "striatum status\nrm a",
            "striatum status > a",
            "striatum status | sh",
            "striatum status && rm a",
            "striatum answer \"$(rm a)\"",
            "striatum answer `rm a`",
            "striatum answer 'a",
            "striatum repo write --path a <<EOF\n$(rm a)\nEOF",
            "striatum repo write --path a <<'EOF'\nx\nEOF\nrm a",
            "striatum repo write --path a <<'EOF'\nEOF\nrm a\nEOF",
            "striatum repo write <<'EOF' > b\nEOF",
            "striatum repo write <<''\nrm a\n",
            "X=1 striatum status",
            "./striatum status",
            "strIatum status",
            "'striatum' status",
            "striatumx",
            "",
        ] {
            assert!(!is_own_command(line), "{line}");
        }
        let runs = |command: &str| {
            let call = format!(r#"{{"tool_name":"shell","tool_input":{{"command":{command}}}}}"#);
            read(call.as_bytes()).unwrap().does
        };
        assert_eq!(runs(r#"["bash","-lc","striatum status"]"#), Does::Runs(Some("striatum status".to_owned())));
        assert_eq!(runs(r#"["striatum","status"]"#), Does::Runs(Some("striatum status".to_owned())));
        assert_eq!(runs(r#"["striatum","a b; c"]"#), Does::Runs(None));
        assert_eq!(runs("7"), Does::Runs(None));
    }

    #[test]
    fn what_is_no_announcement_says_so() {
        assert!(read(b"").unwrap_err().starts_with("no JSON"));
        assert_eq!(read(b"{}").unwrap_err(), "it names no tool (tool_name)");
    }
}
