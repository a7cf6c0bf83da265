//! Lanes and roles by themselves.

use super::super::fault::Fault;
use super::super::section::Section;
use super::super::settings::Settings;
use super::nearest_hint;
use crate::domain::frozen::{LaneMode, LaneSpec, RunSpec};

/// Every fault of lanes and roles.
pub(in super::super) fn check(merged: &Section, settings: &Settings) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, section) in merged.named("lanes") {
        if let Some(spec) = settings.lanes.get(name) {
            let mut lane = Lane { name, section, spec, faults: &mut faults };
            lane.mode();
            lane.result_from();
            lane.fallback(settings);
        }
    }
    for (name, section) in merged.named("roles") {
        for (index, lane) in section.list("lanes").iter().enumerate() {
            if !settings.lanes.contains_key(lane) {
                let fault = unknown_lane(section, "lanes", index, lane, settings);
                faults.push(Fault { key: format!("roles.{name}.lanes"), ..fault });
            }
        }
        if section.texts("lanes").is_some_and(<[String]>::is_empty) {
            let message = format!("nothing may play the role `{name}`");
            let fault = Fault::new(section.place("lanes"), format!("roles.{name}.lanes"), message);
            faults.push(fault.hint("leave the key out for every lane"));
        }
    }
    faults
}

/// A constrained run puts every lane under a sandbox; who wrote `off` is told, not overruled.
pub(super) fn check_constrained(merged: &Section, run: &RunSpec) -> Vec<Fault> {
    let off = |(_, section): &(&String, &Section)| run.constrained && section.text("sandbox") == Some("off");
    let fault = |(name, section): (&String, &Section)| {
        let message = format!("lane `{name}` has no sandbox, and a constrained run puts every lane under `scope`");
        Fault::new(section.place("sandbox"), format!("lanes.{name}.sandbox"), message).hint("leave the key out")
    };
    merged.named("lanes").filter(off).map(fault).collect()
}

/// A list names a lane that nothing declares.
pub(super) fn unknown_lane(section: &Section, key: &str, index: usize, lane: &str, settings: &Settings) -> Fault {
    let hint = if settings.lanes.is_empty() {
        format!("declare it here or in config.toml: [lanes.{lane}] command = [\"..\"]")
    } else {
        nearest_hint(lane, settings.lanes.keys())
    };
    Fault::new(section.part(key, index), key, format!("unknown lane `{lane}`")).hint(hint)
}

struct Lane<'a> {
    name: &'a str,
    section: &'a Section,
    spec: &'a LaneSpec,
    faults: &'a mut Vec<Fault>,
}

impl Lane<'_> {
    fn fault(&mut self, key: &str, message: String, hint: &str) -> &mut Fault {
        let full = format!("lanes.{}.{key}", self.name);
        self.faults.push(Fault::new(self.section.place(key), full, message).hint(hint));
        let last = self.faults.len() - 1;
        &mut self.faults[last]
    }

    fn mode(&mut self) {
        let name = self.name;
        let has_command = !self.spec.command.is_empty();
        match self.section.text("mode") {
            Some("acp") => {
                let message = "mode `acp` is reserved for a later version".to_owned();
                self.fault("mode", message, "write `oneshot` or `loop`").not_yet = true;
            }
            Some("human") if has_command => {
                let message = format!("lane `{name}` is a person's and has a command");
                self.fault("mode", message, "leave out `mode`, or else `command` and `adapter`");
            }
            Some(mode @ ("oneshot" | "loop")) if !has_command && !self.section.meant("command") => {
                let message = format!("lane `{name}` is `{mode}` and has no command");
                self.fault("mode", message, "write `command = [\"..\"]` or name an `adapter`");
            }
            _ => {}
        }
        if self.spec.tty && self.spec.mode != LaneMode::Loop {
            let message = format!("lane `{name}` wants a terminal, which only a `loop` agent gets");
            self.fault("tty", message, "leave it out, or write `mode = \"loop\"`");
        }
    }

    fn result_from(&mut self) {
        let Some(from) = self.spec.result_from.clone() else { return };
        let pointer = from.strip_prefix("stdout-json").map(|rest| rest.strip_prefix(':').unwrap_or(rest));
        if !pointer.is_some_and(|pointer| pointer.is_empty() || pointer.starts_with('/')) {
            let message = format!("`{from}` is no place of an answer");
            self.fault("result_from", message, "write `stdout-json`, or `stdout-json:/result` for a part of it");
        }
    }

    fn fallback(&mut self, settings: &Settings) {
        for (index, other) in self.spec.fallback.iter().enumerate() {
            let key = format!("lanes.{}.fallback", self.name);
            if other == self.name {
                let message = format!("lane `{other}` can't stand in for itself");
                let fault = Fault::new(self.section.part("fallback", index), key, message);
                self.faults.push(fault.hint("name another lane"));
            } else if !settings.lanes.contains_key(other) {
                let fault = unknown_lane(self.section, "fallback", index, other, settings);
                self.faults.push(Fault { key, ..fault });
            }
        }
    }
}
