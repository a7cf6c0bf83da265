//! What a command said, and how it reads in a snapshot.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The end of a command.
#[derive(Clone, Debug)]
pub struct Output {
    /// As it would be typed.
    pub typed: String,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code; minus the signal when one ended it.
    pub code: i32,
    pub(super) root: String,
}

impl Output {
    /// Runs a command to its end.
    #[must_use = "a command that nobody looks at proves nothing; say .ok() or .exits(code)"]
    pub fn of(command: &mut Command, root: &Path) -> Output {
        let typed = typed(command);
        let output = command.output().unwrap_or_else(|error| panic!("{typed}: {error}"));
        Output {
            typed,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: code(output.status),
            root: root.display().to_string(),
        }
    }

    /// It must have ended with 0.
    #[track_caller]
    pub fn ok(self) -> Output {
        self.exits(0)
    }

    /// It must have ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Output {
        assert_eq!(self.code, code, "{self}");
        self
    }

    /// It must have failed with this exit and this code of the catalog; gives the error document.
    #[track_caller]
    pub fn refused(self, exit: i32, code: &str) -> Value {
        assert_eq!(self.code, exit, "{self}");
        let error = self.value();
        assert_eq!(error["schema"], "striatum.error/1", "{self}");
        assert_eq!(error["code"], code, "{self}");
        assert_eq!(error["exit"], exit, "{self}");
        error
    }

    /// Its one JSON document.
    #[track_caller]
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    /// Its JSON documents, one a line.
    #[track_caller]
    pub fn values(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{self}"));
        self.stdout.lines().map(parse).collect()
    }

    /// The lines of standard output.
    pub fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }
}

/// As a terminal would show it, with what differs from run to run replaced.
impl fmt::Display for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("$ {}\n{}", self.typed, self.stdout);
        if !self.stderr.is_empty() {
            text.push_str(&format!("--- stderr\n{}", self.stderr));
        }
        if self.code != 0 {
            text.push_str(&format!("--- exit {}\n", self.code));
        }
        out.write_str(&stable(&text, &self.root))
    }
}

/// The literal commands that a report or an error offers.
pub fn next_commands(document: &Value) -> Vec<String> {
    let command = |next: &Value| {
        let words = next["argv"].as_array().unwrap().iter().map(|word| quoted(word.as_str().unwrap()));
        words.collect::<Vec<_>>().join(" ")
    };
    document["next"].as_array().unwrap().iter().map(command).collect()
}

/// A command as it would be typed.
pub fn typed(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(name).chain(args).map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain =
        !word.is_empty() && !word.contains(|letter: char| letter.is_whitespace() || "'\"$;|".contains(letter));
    if is_plain { word.to_owned() } else { format!("'{word}'") }
}

/// An exit code; minus the signal when one ended it.
pub fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| -status.signal().unwrap_or_default())
}

/// Replaces what differs from run to run: the folder, hashes, times, process ids, the host.
fn stable(text: &str, root: &str) -> String {
    let text = if root.is_empty() { text.to_owned() } else { text.replace(root, "<root>") };
    let text = replace_runs(&text, 64, "<sha256>", |letter| letter.is_ascii_hexdigit());
    let text = after(&text, "pid ", "<pid>", |letter| letter.is_ascii_digit());
    let text = after(&text, "<pid> on ", "<host>", |letter| letter != ')' && letter != ';' && letter != ',');
    times(&text)
}

/// Replaces each run of exactly so many fitting letters.
fn replace_runs(text: &str, length: usize, by: &str, fits: impl Fn(char) -> bool) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(&fits) {
        let run: usize = rest[start..].chars().take_while(|letter| fits(*letter)).map(char::len_utf8).sum();
        out.push_str(&rest[..start]);
        out.push_str(if run == length { by } else { &rest[start..start + run] });
        rest = &rest[start + run..];
    }
    out + rest
}

/// Replaces what follows a mark.
fn after(text: &str, mark: &str, by: &str, fits: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let run: usize = part.chars().take_while(|letter| fits(*letter)).map(char::len_utf8).sum();
        out.push_str(mark);
        out.push_str(if run > 0 { by } else { "" });
        out.push_str(&part[run..]);
    }
    out
}

/// Replaces times as RFC 3339 writes them.
fn times(text: &str) -> String {
    const SHAPE: &str = "0000-00-00T00:00:00.000Z";
    let fits = |window: &str| {
        let same = |(one, shape): (char, char)| if shape == '0' { one.is_ascii_digit() } else { one == shape };
        window.is_ascii() && window.chars().zip(SHAPE.chars()).all(same)
    };
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        match rest.get(..SHAPE.len()) {
            Some(window) if fits(window) => {
                out.push_str("<time>");
                rest = &rest[SHAPE.len()..];
            }
            _ => {
                let letter = rest.chars().next().unwrap_or_default();
                out.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
    }
    out
}
