//! The texts that `init` writes.

use super::agents::{Agent, NAMES};
use crate::domain::workflow::adapters;

/// Only what is yours to commit is seen by git.
pub const GITIGNORE: &str = "\
# Yours to commit: what stands below. Everything else in this folder is the store's own.
/*
!/.gitignore
!/README.md
!/config.toml
!/workflows/
!/prompts/
!/roles/
!/lanes/
!/decisions/
";

/// `config.toml` with a lane for each agent that was found, the others as comments.
pub fn config(found: &[Agent]) -> String {
    let mut text = HEAD.to_owned();
    for name in NAMES {
        let agent = found.iter().find(|agent| agent.name == name);
        let has_adapter = adapters::find(name).is_some();
        text.push_str(&match (agent, has_adapter) {
            (Some(agent), true) => format!("\n# {}\n[lanes.{name}]\nadapter = \"{name}\"\n", agent.program.display()),
            (None, true) => format!("\n# not found when this was written\n# [lanes.{name}]\n# adapter = \"{name}\"\n"),
            (Some(agent), false) => format!(
                "\n# {} was found; write its own words, for no adapter knows them yet\n# [lanes.{name}]\n# command = [\"{name}\", \"...\"]\n",
                agent.program.display()
            ),
            (None, false) => String::new(),
        });
    }
    text
}

const HEAD: &str = "\
# What holds for every workflow of this repository; each key may be left out.
# `striatum config show` tells what holds now, and where it comes from.
#
# A lane is a named way to execute an agent. A job names the one it goes to: `lane = \"claude\"`.
# An adapter knows how its agent is called unattended; any key written beside it wins.
";

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::domain::workflow::{Source, read_config};

    fn lanes(found: &[&str]) -> Vec<String> {
        let found: Vec<Agent> = found
            .iter()
            .map(|name| Agent {
                name: (*name).to_owned(),
                program: format!("/usr/bin/{name}").into(),
                lane: Some((*name).to_owned()),
            })
            .collect();
        let source = Source { name: "config.toml".into(), text: config(&found) };
        let read = read_config(Some(&source), None).unwrap();
        assert_eq!(read.warnings, []);
        read.lanes.into_keys().collect()
    }

    #[test]
    fn each_found_agent_with_an_adapter_is_a_lane_and_the_rest_are_comments() {
        assert_eq!(lanes(&[]), [""; 0]);
        assert_eq!(lanes(&["codex", "gemini", "claude"]), ["claude", "codex"]);
        assert_eq!(lanes(&NAMES), ["aider", "claude", "codex", "opencode"]);
    }
}
