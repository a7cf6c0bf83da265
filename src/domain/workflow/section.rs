//! A table of a file, read: each value in its type, each with its place.
//!
//! It knows how tables of several files lie over each other, from the word in the key's row; it does not know what
//! a key means.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::fault::Place;
use super::keys::{self, Level, Merge};
use crate::domain::frozen::Reviews;

/// A value with its place and those of its parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub value: Value,
    pub at: Place,
    /// Places of the members of a list.
    pub parts: Vec<Place>,
}

/// A value as its kind reads it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Texts(Vec<String>),
    Millis(u64),
    Off,
    Count(u32),
    Flag(bool),
    MicroUsd(u64),
    Exits(Vec<i32>),
    Argv(Vec<String>),
    Commands(Vec<Vec<String>>),
    Reviews(Reviews),
    Section(Section),
    Named(BTreeMap<String, Section>),
    List(Vec<Section>),
}

impl Value {
    /// The value as JSON, in the form in which a file could hold it; none for tables.
    pub fn to_json(&self) -> Option<Json> {
        Some(match self {
            Value::Text(text) => json!(text),
            Value::Texts(texts) | Value::Argv(texts) => json!(texts),
            Value::Millis(ms) => json!(duration(*ms)),
            Value::Off => json!("off"),
            Value::Count(count) => json!(count),
            Value::Flag(flag) => json!(flag),
            Value::MicroUsd(amount) => json!(dollars(*amount)),
            Value::Exits(exits) => json!(exits),
            Value::Commands(commands) => json!(commands),
            Value::Reviews(Reviews::Job(name)) => json!(name),
            Value::Reviews(Reviews::Range(range)) => json!({ "range": range }),
            Value::Section(_) | Value::Named(_) | Value::List(_) => return None,
        })
    }
}

/// A duration as a file could hold it: one number, one unit.
pub(super) fn duration(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let fitting = units.into_iter().find(|(length, _)| ms.is_multiple_of(*length));
    let (length, unit) = fitting.unwrap_or((1, "ms"));
    format!("{}{unit}", ms / length)
}

#[expect(clippy::cast_precision_loss, reason = "amounts are at most a billion dollars, shown for people")]
fn dollars(micro: u64) -> f64 {
    micro as f64 / 1e6
}

/// A table of one level.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Section {
    pub level: Level,
    pub at: Place,
    entries: BTreeMap<&'static str, Entry>,
    /// Keys that were given, but not in a way that could be read.
    spoiled: BTreeSet<&'static str>,
}

impl Section {
    pub fn new(level: Level, at: Place) -> Section {
        Section { level, at, entries: BTreeMap::new(), spoiled: BTreeSet::new() }
    }

    pub fn spoil(&mut self, name: &'static str) {
        self.spoiled.insert(name);
    }

    /// Whether somebody meant to give the key; where it can't be read, its fault was told already.
    pub fn meant(&self, name: &str) -> bool {
        self.has(name) || self.spoiled.contains(name)
    }

    /// The part that may also stand in another kind of table.
    pub fn shared_with(&self, level: Level) -> Section {
        let mut part = Section::new(level, self.at.clone());
        for (name, entry) in &self.entries {
            if keys::find(level, name).is_some() {
                part.entries.insert(name, entry.clone());
            }
        }
        part
    }

    pub fn put(&mut self, name: &'static str, entry: Entry) {
        self.entries.insert(name, entry);
    }

    pub fn entries(&self) -> impl Iterator<Item = (&'static str, &Entry)> {
        self.entries.iter().map(|(name, entry)| (*name, entry))
    }

    pub fn entry(&self, name: &str) -> Option<&Entry> {
        debug_assert!(keys::find(self.level, name).is_some(), "{name} is no key of {:?}", self.level);
        self.entries.get(name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// Where a key stands, or else its table.
    pub fn place(&self, name: &str) -> &Place {
        self.entry(name).map_or(&self.at, |entry| &entry.at)
    }

    /// Where a member of a list stands, or else the list.
    pub fn part(&self, name: &str, index: usize) -> &Place {
        self.entry(name).and_then(|entry| entry.parts.get(index)).unwrap_or_else(|| self.place(name))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub fn string(&self, name: &str) -> String {
        self.text(name).unwrap_or_default().to_owned()
    }

    pub fn texts(&self, name: &str) -> Option<&[String]> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::Texts(texts)) => Some(texts),
            _ => None,
        }
    }

    pub fn list(&self, name: &str) -> Vec<String> {
        self.texts(name).unwrap_or_default().to_vec()
    }

    pub fn millis(&self, name: &str) -> Option<u64> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::Millis(ms)) => Some(*ms),
            _ => None,
        }
    }

    pub fn is_off(&self, name: &str) -> bool {
        matches!(self.entry(name).map(|entry| &entry.value), Some(Value::Off))
    }

    pub fn count(&self, name: &str) -> Option<u32> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::Count(count)) => Some(*count),
            _ => None,
        }
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    pub fn micro_usd(&self, name: &str) -> Option<u64> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::MicroUsd(amount)) => Some(*amount),
            _ => None,
        }
    }

    pub fn exits(&self, name: &str) -> Option<&[i32]> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::Exits(exits)) => Some(exits),
            _ => None,
        }
    }

    pub fn argv(&self, name: &str) -> Option<&[String]> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::Argv(argv)) => Some(argv),
            _ => None,
        }
    }

    pub fn commands(&self, name: &str) -> Vec<Vec<String>> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::Commands(commands)) => commands.clone(),
            _ => Vec::new(),
        }
    }

    pub fn reviews(&self, name: &str) -> Option<&Reviews> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::Reviews(reviews)) => Some(reviews),
            _ => None,
        }
    }

    pub fn section(&self, name: &str) -> Option<&Section> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::Section(section)) => Some(section),
            _ => None,
        }
    }

    pub fn named(&self, name: &str) -> impl Iterator<Item = (&String, &Section)> {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::Named(sections)) => Some(sections.iter()),
            _ => None,
        }
        .into_iter()
        .flatten()
    }

    pub fn sections(&self, name: &str) -> &[Section] {
        match self.entry(name).map(|entry| &entry.value) {
            Some(Value::List(sections)) => sections,
            _ => &[],
        }
    }

    /// Lays this table over another of the same meaning, key by key.
    pub fn over(mut self, lower: Section) -> Section {
        self.spoiled.extend(lower.spoiled);
        for (name, below) in lower.entries {
            let merged = match self.entries.remove(name) {
                Some(above) => merge(keys::find(self.level, name), above, below),
                None => below,
            };
            self.entries.insert(name, merged);
        }
        self
    }
}

fn merge(key: Option<&keys::Key>, above: Entry, below: Entry) -> Entry {
    let rule = key.map_or(Merge::Nearest, |key| key.merge);
    match (above.value, below.value) {
        (Value::Section(over), Value::Section(under)) => Entry { value: Value::Section(over.over(under)), ..above },
        (Value::Named(over), Value::Named(under)) => Entry { value: Value::Named(merge_named(over, under)), ..above },
        (Value::Texts(mut over), Value::Texts(under)) if rule == Merge::Union => {
            let fresh = under.into_iter().filter(|text| !over.contains(text)).collect::<Vec<_>>();
            over.extend(fresh);
            Entry { value: Value::Texts(over), ..above }
        }
        (over, under) if rule == Merge::Stricter && amount(&under) < amount(&over) => Entry { value: under, ..below },
        (over, _) => Entry { value: over, ..above },
    }
}

fn merge_named(mut over: BTreeMap<String, Section>, under: BTreeMap<String, Section>) -> BTreeMap<String, Section> {
    for (name, below) in under {
        let merged = match over.remove(&name) {
            Some(above) => above.over(below),
            None => below,
        };
        over.insert(name, merged);
    }
    over
}

fn amount(value: &Value) -> u64 {
    match value {
        Value::Millis(amount) | Value::MicroUsd(amount) => *amount,
        Value::Count(count) => u64::from(*count),
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::duration;
    use crate::domain::time::parse_duration;

    #[test]
    fn a_duration_is_shown_as_it_can_be_read() {
        assert_eq!([90_000, 3_600_000, 604_800_000, 1_250].map(duration), ["90s", "1h", "7d", "1250ms"]);
        for ms in [1, 999, 1_000, 61_000, 86_400_000, 90_061_001] {
            assert_eq!(parse_duration(&duration(ms)), Some(ms));
        }
    }
}
