//! One file against the table of keys: every value typed, every fault found at once.
//!
//! It checks each value by itself. What one key means for another is the business of `rules`, and how files lie
//! over each other that of `section`.

mod value;

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, Place};
use super::keys::{self, Key, Kind, Level};
use super::section::{Entry, Section, Value};

/// A file as it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The path as it is shown to people.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A parameter that a string of a file names.
#[derive(Clone, Debug)]
pub(super) struct ParamUse {
    pub name: String,
    pub at: Place,
    pub key: String,
}

/// What a file holds.
pub(super) struct Reading {
    pub section: Section,
    /// It is no TOML, so what it does not say means nothing.
    pub is_broken: bool,
    pub faults: Vec<Fault>,
    pub param_uses: Vec<ParamUse>,
}

/// Reads a file whose top is of the given level.
pub(super) fn read(source: &Source, level: Level) -> Reading {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    let mut reader = Reader { lines: Lines::new(source), faults: Vec::new(), param_uses: Vec::new() };
    for error in errors {
        let place = error.span().map_or_else(|| reader.lines.place(0), |span| reader.lines.place(span.start));
        reader.faults.push(Fault::new(&place, "", syntax_message(error.message())));
    }
    let broken: Vec<usize> = reader.faults.iter().map(|fault| fault.line).collect();
    let section = reader.section(level, table.get_ref(), reader.lines.place(0), "");
    if let Some(first) = broken.iter().min() {
        // What the parser had to guess is no ground for faults about keys that are absent or in the wrong table.
        let is_guess = |fault: &Fault| {
            fault.message.starts_with(MISSING)
                || (fault.message.starts_with(UNKNOWN) && fault.line > *first)
                || (!fault.key.is_empty() && broken.contains(&fault.line))
        };
        reader.faults.retain(|fault| !is_guess(fault));
    }
    Reading { section, is_broken: !broken.is_empty(), faults: reader.faults, param_uses: reader.param_uses }
}

const MISSING: &str = "missing key";
const UNKNOWN: &str = "unknown key";

fn syntax_message(message: &str) -> String {
    format!("not TOML: {}", message.lines().collect::<Vec<_>>().join(", "))
}

struct Reader<'a> {
    lines: Lines<'a>,
    faults: Vec<Fault>,
    param_uses: Vec<ParamUse>,
}

impl Reader<'_> {
    fn section(&mut self, level: Level, table: &DeTable<'_>, at: Place, path: &str) -> Section {
        let mut section = Section::new(level, at);
        for (name, value) in table {
            let at = self.lines.place(name.span().start);
            let path = join(path, name.get_ref());
            let Some(key) = keys::find(level, name.get_ref()) else {
                let message = format!("{UNKNOWN} `{}`", name.get_ref());
                self.faults.push(Fault::new(&at, path, message).hint(keys::instead_of(level, name.get_ref())));
                if let Some(meant) = keys::nearest_key(level, name.get_ref()) {
                    section.spoil(meant);
                }
                continue;
            };
            if key.reserved {
                let message = format!("`{}` is reserved for a later version", key.name);
                self.faults.push(Fault::new(&at, path, message).hint("leave it out").as_not_yet());
                continue;
            }
            match self.entry(key, value, &path) {
                Some(entry) => section.put(key.name, Entry { at, ..entry }),
                None => section.spoil(key.name),
            }
        }
        self.missing(&section, path);
        section
    }

    fn missing(&mut self, section: &Section, path: &str) {
        for key in keys::of(section.level).filter(|key| key.is_required() && !section.meant(key.name)) {
            let message = format!("{MISSING} `{}`", key.name);
            let hint = match key.kind {
                Kind::List(_) => format!("begin each with `[[{}]]`", key.name),
                kind => format!("write `{} = {}`", key.name, kind.example()),
            };
            self.faults.push(Fault::new(&section.at, join(path, key.name), message).hint(hint));
        }
    }

    fn entry(&mut self, key: &Key, value: &Spanned<DeValue<'_>>, path: &str) -> Option<Entry> {
        let at = self.lines.place(value.span().start);
        let parts = match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|item| self.lines.place(item.span().start)).collect(),
            _ => Vec::new(),
        };
        let value = match (key.kind, value.get_ref()) {
            (Kind::Table(level), DeValue::Table(table)) => Value::Section(self.section(level, table, at.clone(), path)),
            (Kind::Named(level), DeValue::Table(table)) => self.named(level, table, path),
            (Kind::List(level), DeValue::Array(items)) => Value::List(self.list(level, items, path)?),
            (kind, _) => self.value(kind, value, path)?,
        };
        Some(Entry { value, at, parts })
    }

    fn named(&mut self, level: Level, table: &DeTable<'_>, path: &str) -> Value {
        let mut named = std::collections::BTreeMap::new();
        for (name, value) in table {
            let at = self.lines.place(name.span().start);
            let path = join(path, name.get_ref());
            if !keys::is_id(name.get_ref()) {
                self.faults.push(Fault::new(&at, &path, bad_id(name.get_ref())).hint(ID_HINT));
                continue;
            }
            let section = match value.get_ref() {
                DeValue::Table(inner) => self.section(level, inner, at, &path),
                DeValue::String(text) if level == Level::Param => param_of(text, at),
                other => {
                    let message = format!("`{path}` must be a table, not {}", a(other.type_str()));
                    self.faults.push(Fault::new(&at, &path, message).hint(format!("write it as `[{path}]`")));
                    continue;
                }
            };
            named.insert(name.get_ref().to_string(), section);
        }
        Value::Named(named)
    }

    fn list(&mut self, level: Level, items: &[Spanned<DeValue<'_>>], path: &str) -> Option<Vec<Section>> {
        let mut sections = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let at = self.lines.place(item.span().start);
            let path = match item.get_ref().get("id").and_then(|id| id.get_ref().as_str()) {
                Some(id) if keys::is_id(id) => join(path, id),
                _ => format!("{path}[{index}]"),
            };
            match item.get_ref() {
                DeValue::Table(table) => sections.push(self.section(level, table, at, &path)),
                other => {
                    let message = format!("`{path}` must be a table, not {}", a(other.type_str()));
                    self.faults.push(Fault::new(&at, &path, message));
                }
            }
        }
        (sections.len() == items.len()).then_some(sections)
    }

    fn fault(&mut self, offset: usize, path: &str, message: impl Into<String>, hint: impl Into<String>) {
        let place = self.lines.place(offset);
        self.faults.push(Fault::new(&place, path, message).hint(hint));
    }
}

/// A parameter written as its default alone.
fn param_of(text: &str, at: Place) -> Section {
    let mut section = Section::new(Level::Param, at.clone());
    section.put("default", Entry { value: Value::Text(text.to_owned()), at, parts: Vec::new() });
    section
}

const ID_HINT: &str = "use 1 to 48 of a-z, 0-9, `_` and `-`, beginning with a letter or digit";

fn bad_id(text: &str) -> String {
    format!("`{text}` is no name")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A noun with its article.
fn a(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// Where the lines of a file begin.
struct Lines<'a> {
    file: Arc<str>,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(source: &'a Source) -> Lines<'a> {
        let breaks = source.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines {
            file: Arc::from(source.name.as_str()),
            text: &source.text,
            starts: std::iter::once(0).chain(breaks).collect(),
        }
    }

    fn place(&self, offset: usize) -> Place {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        Place { file: self.file.clone(), line, column: self.text[start..offset].chars().count() + 1 }
    }
}
