//! Each setting with its value and where that comes from, for people who ask why.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::adapters;
use super::fault::Place;
use super::keys::{self, Key, Kind, Level};
use super::section::{Section, Value, duration};

/// A key of the configuration with the value that holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The full name, as in `lanes.claude.timeout`.
    pub key: String,
    /// The value in the form in which a file could hold it; null where nothing is set.
    pub value: Json,
    /// `path:line:column` of the value; `default`; or `default: ..` with the rule, where the default is no value.
    pub origin: String,
    /// It is set in a file.
    pub is_set: bool,
}

/// Every key that may stand in a configuration, in the order of the table.
pub(super) fn settings(merged: &Section) -> Vec<Setting> {
    let mut out = Vec::new();
    walk(merged, "", None, &mut out);
    out
}

fn walk(section: &Section, path: &str, adapter: Option<&'static adapters::Adapter>, out: &mut Vec<Setting>) {
    let adapter = match section.level {
        Level::Lane => section.text("adapter").and_then(adapters::find),
        _ => adapter,
    };
    for key in keys::of(section.level).filter(|key| !key.reserved) {
        let full = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
        match (key.kind, section.entry(key.name).map(|entry| (&entry.value, &entry.at))) {
            (_, Some((Value::Section(inner), _))) => walk(inner, &full, adapter, out),
            (_, Some((Value::Named(named), _))) => {
                for (name, inner) in named {
                    walk(inner, &format!("{full}.{name}"), adapter, out);
                }
            }
            (Kind::Table(level), None) => walk(&Section::new(level, section.at.clone()), &full, adapter, out),
            (Kind::Named(_) | Kind::List(_), _) => {}
            (_, Some((value, at))) => out.push(set(full, value, at)),
            (_, None) => out.push(unset(full, key, adapter)),
        }
    }
}

fn set(key: String, value: &Value, at: &Place) -> Setting {
    Setting { key, value: value.to_json().unwrap_or_default(), origin: at.to_string(), is_set: true }
}

fn unset(full: String, key: &Key, adapter: Option<&'static adapters::Adapter>) -> Setting {
    if let Some((adapter, value)) = adapter.and_then(|it| Some((it, from_adapter(it, key)?))) {
        return Setting { key: full, value, origin: format!("adapter {}", adapter.name), is_set: false };
    }
    let (value, origin) = match key.default_value() {
        Some(value) => (value, "default".to_owned()),
        None => (Json::Null, format!("default: {}", key.default)),
    };
    Setting { key: full, value, origin, is_set: false }
}

fn from_adapter(adapter: &adapters::Adapter, key: &Key) -> Option<Json> {
    match (key.level, key.name) {
        (Level::Lane, "command") => Some(json!(adapter.command)),
        (Level::Lane, "stdin") => Some(json!(adapter.stdin)),
        (Level::Lane, "idle_timeout") => Some(json!(duration(adapters::IDLE_TIMEOUT_MS))),
        (Level::Lane, "sandbox") => Some(json!(adapters::SANDBOX)),
        (Level::Unavailable, "patterns") => Some(json!(adapter.patterns)),
        _ => None,
    }
}

impl Key {
    /// The default as a value, where the words in the table are one.
    pub fn default_value(&self) -> Option<Json> {
        let text = self.default.split(';').next().unwrap_or_default().trim();
        match self.kind {
            Kind::Count { .. } => text.parse::<u32>().ok().map(|count| json!(count)),
            Kind::Flag => text.parse::<bool>().ok().map(|flag| json!(flag)),
            Kind::Duration => crate::domain::time::parse_duration(text).map(|_| json!(text)),
            Kind::DurationOrOff if text == "off" => Some(json!("off")),
            Kind::Word(words) if words.contains(&text) => Some(json!(text)),
            Kind::Text(_) if text == "empty" => Some(json!("")),
            Kind::Path | Kind::Text(_) if text.starts_with('.') => Some(json!(text)),
            _ if text.starts_with('[') => serde_json::from_str(text).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::{Source, read_config};

    #[test]
    fn each_value_tells_its_file_and_the_stricter_limit_wins() {
        let source = |name: &str, text: &str| Source { name: name.into(), text: text.into() };
        let config = source(
            ".striatum/config.toml",
            "[lanes.claude]\nadapter = 'claude'\nmax_sessions = 8\n[budget]\nrequeues = 5\n[limits]\ngrace = '2s'\n[stop]\nphrases = ['halt']\n",
        );
        let user = source(
            "~/.config/striatum/config.toml",
            "[lanes.claude]\nmax_sessions = 2\ntimeout = '1h'\n[budget]\nrequeues = 1\n[limits]\ngrace = '9s'\npoll = '1s'\n[stop]\nphrases = ['basta', 'halt']\n",
        );
        let config = read_config(Some(&config), Some(&user)).unwrap();
        let lines: Vec<String> = config
            .settings
            .iter()
            .map(|setting| format!("{} = {}  # {}", setting.key, setting.value, setting.origin))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        budget.requeues = 1  # ~/.config/striatum/config.toml:5:1
        budget.no_progress = "60m"  # default
        budget.next_depth = 2  # default
        budget.active_time = "24h"  # default
        budget.launches = null  # default: 2 x jobs + 10
        budget.cost_usd = null  # default: none
        parallelism.max_active_jobs = 4  # default
        lanes.claude.adapter = "claude"  # .striatum/config.toml:2:1
        lanes.claude.command = ["claude","-p","--output-format","stream-json","--verbose","--permission-mode","acceptEdits","--allowedTools","Bash,Edit,Write,Read","--add-dir","${scratch}"]  # adapter claude
        lanes.claude.mode = null  # default: oneshot with a command, else human
        lanes.claude.stdin = "prompt"  # adapter claude
        lanes.claude.result_from = null  # default: none
        lanes.claude.model = null  # default: none
        lanes.claude.env = []  # default
        lanes.claude.timeout = "1h"  # ~/.config/striatum/config.toml:3:1
        lanes.claude.idle_timeout = "15m"  # adapter claude
        lanes.claude.max_sessions = 2  # ~/.config/striatum/config.toml:2:1
        lanes.claude.fallback = []  # default
        lanes.claude.unavailable.exits = []  # default
        lanes.claude.unavailable.patterns = ["rate_limit","overloaded","usage limit","Invalid API key","Please run /login"]  # adapter claude
        lanes.claude.unavailable.give_up = "8h"  # default
        lanes.claude.sandbox = "prefer-scope"  # adapter claude
        lanes.claude.write_paths = []  # default
        lanes.claude.build_dirs = []  # default
        lanes.claude.tty = false  # default
        lanes.claude.own_sandbox = "none"  # default
        tree.setup = []  # default
        tree.setup_timeout = "15m"  # default
        tree.copy = []  # default
        tree.cache = []  # default
        tree.discard = []  # default
        tree.dir = ".striatum/worktrees"  # default
        tree.foreign_write = "refuse"  # default
        notify.command = null  # default: none
        notify.on = null  # default: all of them
        notify.timeout = "10s"  # default
        stop.phrases = ["halt","basta"]  # .striatum/config.toml:9:1
        limits.grace = "2s"  # .striatum/config.toml:7:1
        limits.starting = "60s"  # default
        limits.lease = "30m"  # default
        limits.cooldown = "1m"  # default
        limits.gate_expiry = "7d"  # default
        limits.poll = "1s"  # ~/.config/striatum/config.toml:8:1
        limits.busy = "10s"  # default
        "#);
    }
}
