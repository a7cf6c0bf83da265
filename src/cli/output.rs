//! What people and programs see: text or one JSON document, errors with their way out, quiet ends of pipes.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use super::Globals;
use crate::error::{Code, Error, Next};
use crate::verbs::read::harmless as harmless_lines;

/// How to speak.
pub struct Output {
    json: bool,
}

impl Output {
    /// As the flags say.
    pub fn new(globals: &Globals) -> Output {
        Output { json: globals.json }
    }

    /// Whether one JSON document is wanted.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Shows a report.
    pub fn report<T: Serialize>(&self, report: &T, text: impl FnOnce(&T) -> String) {
        if self.json {
            let document = serde_json::to_string(report).unwrap_or_default();
            print(&format!("{document}\n"));
        } else {
            let text = text(report);
            let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            print(&format!("{text}{line_end}"));
        }
    }

    /// Shows an error; gives its exit code.
    pub fn error(&self, error: &Error) -> ExitCode {
        if self.json {
            print(&format!("{}\n", error.to_json()));
        } else {
            complain(&harmless_lines(&error_text(error)));
        }
        ExitCode::from(error.exit())
    }
}

/// An error for people.
fn error_text(error: &Error) -> String {
    let mut text = format!("error: {}\n", error.message);
    for cause in &error.causes {
        text.push_str(&indented("  ", cause));
    }
    for hint in &error.hints {
        text.push_str(&indented("hint: ", hint));
    }
    text.push_str(&next_text(&error.next));
    text
}

fn indented(lead: &str, text: &str) -> String {
    format!("{lead}{}\n", text.replace('\n', &format!("\n{}", " ".repeat(lead.len()))))
}

/// Next commands for people.
pub fn next_text(next: &[Next]) -> String {
    next.iter().map(|next| format!("next: {}   # {}\n", shell_words(&next.argv), next.why)).collect()
}

/// A command as a shell reads it.
pub fn shell_words(argv: &[String]) -> String {
    argv.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

fn shell_word(word: &str) -> String {
    let is_plain =
        !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./=:,@%+".contains(letter));
    let is_quoted = word.starts_with('\'') && word.ends_with('\'') && word.len() > 1;
    if is_plain || is_quoted { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// A line without any power over a terminal.
pub fn harmless(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for letter in line.chars() {
        if letter.is_control() && letter != '\t' { text.extend(letter.escape_default()) } else { text.push(letter) }
    }
    text
}

/// Writes to standard output; whoever closed it has seen enough.
pub fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Writes to standard output at once; false when nobody reads it any more.
pub fn is_read(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// Writes to standard error.
pub fn complain(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Says on standard error that something takes long or was chosen.
pub fn notice(text: &str, _json: bool) {
    complain(&format!("{text}\n"));
}

/// Wrong words: clap's own text, or the error document.
pub fn usage(error: &clap::Error, words: &[OsString]) -> ExitCode {
    use clap::error::ErrorKind;
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_help {
        let _ = error.print();
        let is_asked = error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        return ExitCode::from(if is_asked { 0 } else { 2 });
    }
    if words.iter().any(|word| word == "--json") {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        print(&format!("{}\n", Error::new(Code::Usage, message).to_json()));
    } else {
        let _ = error.print();
    }
    ExitCode::from(2)
}
