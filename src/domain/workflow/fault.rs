//! A fault of a file: where it stands, what is wrong, what to write instead.
//!
//! It does not know the format's rules; whoever finds a fault brings its words.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A spot in a file that a person can go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name as it is shown.
    pub file: Arc<str>,
    /// Counted from 1; 0 when the whole file is meant.
    pub line: usize,
    /// Characters, counted from 1.
    pub column: usize,
}

impl Place {
    /// The file as a whole.
    pub fn whole(file: &str) -> Place {
        Place { file: Arc::from(file), line: 0, column: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => out.write_str(&self.file),
            line => write!(out, "{}:{line}:{}", self.file, self.column),
        }
    }
}

/// One thing that is wrong with a file, or, as a warning, probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file's name as it is shown.
    pub file: String,
    /// Counted from 1; 0 when no line is to blame.
    pub line: usize,
    /// Characters, counted from 1; 0 when no line is to blame.
    pub column: usize,
    /// The key it is about, as in `lanes.claude.timeout`; empty for syntax.
    pub key: String,
    /// A lowercase fragment.
    pub message: String,
    /// What to write instead; empty when the message says it.
    pub hint: String,
    /// The file can be used all the same.
    pub warning: bool,
    /// The key or word is reserved for a later version.
    pub not_yet: bool,
}

impl Fault {
    /// A fault at a place.
    pub fn new(place: &Place, key: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault {
            file: place.file.to_string(),
            line: place.line,
            column: place.column,
            key: key.into(),
            message: message.into(),
            hint: String::new(),
            warning: false,
            not_yet: false,
        }
    }

    /// Adds what to write instead.
    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = hint.into();
        self
    }

    /// Makes it a warning.
    pub fn as_warning(mut self) -> Fault {
        self.warning = true;
        self
    }

    /// Marks it as something that a later version may allow.
    pub fn as_not_yet(mut self) -> Fault {
        self.not_yet = true;
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.file)?;
        if self.line > 0 {
            write!(out, ":{}:{}", self.line, self.column)?;
        }
        out.write_str(if self.warning { ": warning: " } else { ": " })?;
        // Without a line, the key has to say where.
        if self.line == 0 && !self.key.is_empty() && !self.message.contains(&self.key) {
            write!(out, "{}: ", visible(&self.key))?;
        }
        out.write_str(&visible(&self.message))?;
        if !self.hint.is_empty() {
            write!(out, "\n  help: {}", visible(&self.hint))?;
        }
        Ok(())
    }
}

/// Every fault of every file, in the order of the files; never empty, warnings among them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// Whether something here only waits for a later version and nothing else is wrong.
    pub fn is_not_yet(&self) -> bool {
        let mut errors = self.0.iter().filter(|fault| !fault.warning).peekable();
        errors.peek().is_some() && errors.all(|fault| fault.not_yet)
    }

    /// How many are no warnings.
    pub fn errors(&self) -> usize {
        self.0.iter().filter(|fault| !fault.warning).count()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(out, "{line_break}{fault}")?;
        }
        Ok(())
    }
}

/// Text of a file that somebody else may have written, with whatever controls a terminal or hides letters spelled out.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    let hides = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    if !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    let spell = |letter: char| if hides(letter) { letter.escape_unicode().to_string() } else { letter.to_string() };
    Cow::Owned(text.chars().map(spell).collect())
}

/// Sorts faults by file (in the order given), then by position, and drops repeated ones.
pub(super) fn in_reading_order(mut faults: Vec<Fault>, files: &[&str]) -> Vec<Fault> {
    let rank = |fault: &Fault| files.iter().position(|file| *file == fault.file).unwrap_or(files.len());
    faults.sort_by_key(|fault| (rank(fault), fault.line, fault.column));
    faults.dedup();
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_can_not_speak_to_the_terminal() {
        let fault = Fault::new(&Place::whole("w.toml"), "", "unknown key `\u{1b}[2Jx\u{202e}`").hint("a\nb");
        assert_eq!(fault.to_string(), "w.toml: unknown key `\\u{1b}[2Jx\\u{202e}`\n  help: a\\u{a}b");
    }
}
