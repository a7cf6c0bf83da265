//! From read tables to the values that hold: lanes, roles, limits, trees, with every default in its place.
//!
//! It does not know jobs. The defaults here and the words in the table of keys say the same; a test holds them
//! together.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as WordError, StrDeserializer};

use super::adapters::{self, Adapter};
use super::fault::Place;
use super::keys::Level;
use super::section::Section;
use crate::domain::frozen::{
    Budget, LaneMode, LaneSpec, Limits, Notify, OwnSandbox, RoleContext, RoleSpec, Sandbox, TreeSpec, Unavailable,
};
use crate::domain::notice::Occasion;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A file below `.striatum/` that a key names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileRef {
    pub path: String,
    pub at: Place,
    pub key: String,
}

/// What the tables shared by workflow and configuration say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    pub lanes: BTreeMap<String, LaneSpec>,
    pub roles: BTreeMap<String, RoleSpec>,
    /// Roles whose `context` somebody wrote.
    pub declared_context: BTreeMap<String, RoleContext>,
    pub instructions: BTreeMap<String, FileRef>,
    pub limits: Limits,
    pub notify: Notify,
    pub stop_phrases: Vec<String>,
    pub tree: TreeSpec,
    pub max_active_jobs: u32,
}

/// The value of one of a key's words; the reader lets no other through.
pub(super) fn word<T: DeserializeOwned>(text: &str) -> Option<T> {
    let words: StrDeserializer<'_, WordError> = text.into_deserializer();
    T::deserialize(words).ok()
}

/// Settings of merged tables.
pub(super) fn settings(merged: &Section) -> Settings {
    let lanes: BTreeMap<String, LaneSpec> =
        merged.named("lanes").map(|(name, section)| (name.clone(), lane(section))).collect();
    let mut settings = Settings {
        limits: limits(merged.section("limits")),
        notify: notify(merged.section("notify")),
        stop_phrases: merged.section("stop").map(|stop| stop.list("phrases")).unwrap_or_default(),
        tree: tree(merged.section("tree")),
        max_active_jobs: merged.section("parallelism").and_then(|it| it.count("max_active_jobs")).unwrap_or(4),
        ..Settings::default()
    };
    for (name, section) in merged.named("roles") {
        let declared = section.text("context").and_then(word::<RoleContext>);
        settings.declared_context.extend(declared.map(|context| (name.clone(), context)));
        if let Some(path) = section.text("instructions") {
            let at = section.place("instructions").clone();
            let file = FileRef { path: path.to_owned(), at, key: format!("roles.{name}.instructions") };
            settings.instructions.insert(name.clone(), file);
        }
        let lanes = section.texts("lanes").map_or_else(|| lanes.keys().cloned().collect(), <[String]>::to_vec);
        let role = RoleSpec { context: declared.unwrap_or_default(), lanes, ..RoleSpec::default() };
        settings.roles.insert(name.clone(), role);
    }
    settings.lanes = lanes;
    settings
}

/// Breakers of a run of so many jobs.
pub(super) fn budget(section: Option<&Section>, jobs: usize) -> Budget {
    let jobs = u32::try_from(jobs).unwrap_or(u32::MAX);
    let empty = nothing(Level::Budget);
    let section = section.unwrap_or(&empty);
    Budget {
        requeues: section.count("requeues").unwrap_or(2),
        no_progress_ms: section.millis("no_progress").unwrap_or(60 * MINUTE),
        next_depth: section.count("next_depth").unwrap_or(2),
        active_time_ms: section.millis("active_time").unwrap_or(24 * HOUR),
        launches: section.count("launches").unwrap_or(jobs.saturating_mul(2).saturating_add(10)),
        cost_micro_usd: section.micro_usd("cost_usd"),
    }
}

fn lane(section: &Section) -> LaneSpec {
    let adapter = section.text("adapter").and_then(adapters::find);
    let command = section.argv("command").map_or_else(|| adapter_words(adapter, |it| it.command), <[String]>::to_vec);
    let by_command = if command.is_empty() { LaneMode::Human } else { LaneMode::Oneshot };
    LaneSpec {
        adapter: section.string("adapter"),
        mode: section.text("mode").and_then(word).unwrap_or(by_command),
        command,
        stdin: section.text("stdin").and_then(word).or(adapter.map(|it| it.stdin)).unwrap_or_default(),
        result_from: section.text("result_from").map(str::to_owned),
        model: section.string("model"),
        env: section.list("env"),
        timeout_ms: section.millis("timeout").unwrap_or(45 * MINUTE),
        idle_timeout_ms: idle_timeout(section, adapter),
        max_sessions: section.count("max_sessions").unwrap_or(4),
        fallback: section.list("fallback"),
        unavailable: unavailable(section.section("unavailable"), adapter),
        sandbox: section.text("sandbox").and_then(word).unwrap_or(match adapter {
            Some(_) => adapters::SANDBOX,
            None => Sandbox::Off,
        }),
        write_paths: section.list("write_paths"),
        build_dirs: section.list("build_dirs"),
        tty: section.flag("tty").unwrap_or(false),
        own_sandbox: section.text("own_sandbox").and_then(word).unwrap_or(
            match adapter.and_then(|it| it.own_sandbox) {
                Some(_) => OwnSandbox::OffInside,
                None => OwnSandbox::None,
            },
        ),
    }
}

fn idle_timeout(section: &Section, adapter: Option<&Adapter>) -> Option<u64> {
    if section.is_off("idle_timeout") {
        return None;
    }
    section.millis("idle_timeout").or(adapter.map(|_| adapters::IDLE_TIMEOUT_MS))
}

fn unavailable(section: Option<&Section>, adapter: Option<&Adapter>) -> Unavailable {
    let empty = nothing(Level::Unavailable);
    let section = section.unwrap_or(&empty);
    let patterns = section.texts("patterns");
    Unavailable {
        exits: section.exits("exits").unwrap_or_default().to_vec(),
        patterns: patterns.map_or_else(|| adapter_words(adapter, |it| it.patterns), <[String]>::to_vec),
        give_up_ms: section.millis("give_up").unwrap_or(8 * HOUR),
    }
}

fn adapter_words(adapter: Option<&Adapter>, words: impl Fn(&Adapter) -> &'static [&'static str]) -> Vec<String> {
    adapter.map(words).unwrap_or_default().iter().map(|word| (*word).to_owned()).collect()
}

fn limits(section: Option<&Section>) -> Limits {
    let millis = |name: &str, default: u64| section.and_then(|it| it.millis(name)).unwrap_or(default);
    Limits {
        grace_ms: millis("grace", 5 * SECOND),
        starting_ms: millis("starting", 60 * SECOND),
        lease_ms: millis("lease", 30 * MINUTE),
        cooldown_ms: millis("cooldown", MINUTE),
        gate_expiry_ms: millis("gate_expiry", 7 * DAY),
        poll_ms: millis("poll", 250),
        busy_ms: millis("busy", 10 * SECOND),
    }
}

fn notify(section: Option<&Section>) -> Notify {
    let all = || Occasion::ALL.iter().map(ToString::to_string).collect();
    let on = section.and_then(|it| it.texts("on")).map_or_else(all, <[String]>::to_vec);
    let timeout_ms = section.and_then(|it| it.millis("timeout")).unwrap_or(10 * SECOND);
    Notify { command: section.and_then(|it| it.argv("command")).unwrap_or_default().to_vec(), on, timeout_ms }
}

fn tree(section: Option<&Section>) -> TreeSpec {
    let empty = nothing(Level::Tree);
    let section = section.unwrap_or(&empty);
    TreeSpec {
        setup: section.commands("setup"),
        setup_timeout_ms: section.millis("setup_timeout").unwrap_or(15 * MINUTE),
        copy: section.list("copy"),
        cache: section.list("cache"),
        discard: section.list("discard"),
        dir: section.text("dir").map(str::to_owned),
        foreign_write: section.text("foreign_write").and_then(word).unwrap_or_default(),
    }
}

fn nothing(level: Level) -> Section {
    Section::new(level, Place::whole(""))
}
