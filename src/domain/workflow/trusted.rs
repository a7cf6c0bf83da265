//! What of a file or a snapshot runs something or lets something reach further: the part that a person trusts.
//!
//! Canonical lines, and a hash over them. Prompts, objectives, edges, budgets and the order of things change
//! neither. It does not know who trusts or where that is kept.

use serde::Serialize;

use super::definition::Definition;
use super::fault::{Faults, visible};
use super::freeze::sha256;
use super::import;
use super::keys::{self, Level};
use super::reader::{self, Source};
use super::section::{Section, Value};
use crate::domain::frozen::{JobSpec, LaneSpec, Origin, RunSpec, Snapshot};

/// The two kinds of files that are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A workflow.
    Workflow,
    /// `config.toml`.
    Config,
}

/// What a file itself says, whatever it is laid over: `lane author: command = ["sh", ..]`.
///
/// # Errors
/// The faults of a file that can't be read; nobody can trust what nobody can read.
pub fn of_file(source: &Source, kind: FileKind) -> Result<Vec<String>, Faults> {
    let level = match kind {
        FileKind::Workflow => Level::Workflow,
        FileKind::Config => Level::Config,
    };
    let translated = match kind {
        FileKind::Workflow if import::is_json(&source.text) => {
            let text = import::import(&source.name, &source.text)?.text;
            Some(Source { name: source.name.clone(), text })
        }
        FileKind::Workflow | FileKind::Config => None,
    };
    let reading = reader::read(translated.as_ref().unwrap_or(source), level);
    if reading.faults.iter().any(|fault| !fault.warning) {
        return Err(Faults(reading.faults));
    }
    let mut lines = Vec::new();
    walk(&reading.section, "", &mut lines);
    Ok(sorted(lines))
}

/// What a definition says, merged, its parameters without values.
pub fn of_definition(definition: &Definition) -> Vec<String> {
    of_specs(&definition.run, &definition.jobs)
}

/// What a snapshot says: exactly what a driver would launch.
pub fn of_snapshot(snapshot: &Snapshot) -> Vec<String> {
    of_specs(&snapshot.run, &snapshot.jobs)
}

/// `sha256:` over the lines.
pub fn hash(lines: &[String]) -> String {
    let mut text = "striatum.trust/1\n".to_owned();
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    sha256(text.as_bytes())
}

fn walk(section: &Section, owner: &str, lines: &mut Vec<String>) {
    for (name, entry) in section.entries() {
        match &entry.value {
            Value::Section(inner) => walk(inner, &join(owner, name), lines),
            Value::Named(named) => {
                for (id, inner) in named {
                    walk(inner, &join(owner, &format!("{} {id}", singular(name))), lines);
                }
            }
            Value::List(list) => {
                for inner in list.iter().filter(|inner| inner.level == Level::Job) {
                    walk(inner, &join(owner, &format!("job {}", inner.string("id"))), lines);
                }
            }
            value => {
                let widens = keys::find(section.level, name).is_some_and(|key| key.widens);
                if let Some(json) = value.to_json().filter(|_| widens) {
                    lines.push(line(owner, name, &json));
                }
            }
        }
    }
}

fn of_specs(run: &RunSpec, jobs: &[JobSpec]) -> Vec<String> {
    let mut lines = Vec::new();
    if run.constrained {
        lines.push(line("", "operator_mode", "constrained"));
    }
    list(&mut lines, "notify", "command", &run.notify.command);
    list(&mut lines, "tree", "setup", &run.tree.setup);
    list(&mut lines, "tree", "copy", &run.tree.copy);
    list(&mut lines, "tree", "cache", &run.tree.cache);
    if let Some(dir) = &run.tree.dir {
        lines.push(line("tree", "dir", dir));
    }
    for (name, lane) in &run.lanes {
        of_lane(&mut lines, &format!("lane {name}"), lane);
    }
    // A proposed job carries the scope and the commands of a job that is named here already.
    for job in jobs.iter().filter(|job| job.origin == Origin::Planned) {
        of_job(&mut lines, &format!("job {}", job.id), job);
    }
    sorted(lines)
}

fn of_lane(lines: &mut Vec<String>, owner: &str, lane: &LaneSpec) {
    if lane.command.is_empty() {
        return;
    }
    list(lines, owner, "command", &lane.command);
    list(lines, owner, "env", &lane.env);
    lines.push(line(owner, "sandbox", &lane.sandbox));
    list(lines, owner, "write_paths", &lane.write_paths);
    list(lines, owner, "build_dirs", &lane.build_dirs);
    if lane.own_sandbox != Default::default() {
        lines.push(line(owner, "own_sandbox", &lane.own_sandbox));
    }
}

fn of_job(lines: &mut Vec<String>, owner: &str, job: &JobSpec) {
    list(lines, owner, "writes", &job.writes);
    list(lines, owner, "forbids", &job.forbids);
    list(lines, owner, "verify", &job.verify);
    for (class, prefixes) in &job.process {
        list(lines, &format!("{owner} process"), class, prefixes);
    }
    if job.process_execution {
        lines.push(line(owner, "process_execution", &true));
    }
    if let Some(ephemeral) = &job.ephemeral {
        let owner = format!("{owner} ephemeral");
        list(lines, &owner, "create", &ephemeral.create);
        list(lines, &owner, "check", &ephemeral.check);
        list(lines, &owner, "destroy", &ephemeral.destroy);
    }
}

fn list<T: Serialize>(lines: &mut Vec<String>, owner: &str, key: &str, values: &[T]) {
    if !values.is_empty() {
        lines.push(line(owner, key, values));
    }
}

/// One line; line breaks, control characters and what reorders letters are spelled out, for a person reads this.
fn line<T: Serialize + ?Sized>(owner: &str, key: &str, value: &T) -> String {
    let value = serde_json::to_string(value).unwrap_or_default();
    let value = visible(&value);
    if owner.is_empty() { format!("{key} = {value}") } else { format!("{owner}: {key} = {value}") }
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

fn join(owner: &str, part: &str) -> String {
    if owner.is_empty() { part.to_owned() } else { format!("{owner} {part}") }
}

fn singular(name: &str) -> &str {
    name.strip_suffix('s').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const FILE: &str = r#"
schema = "striatum.workflow/1"
id = "w"
[budget]
launches = 9
[notify]
command = ["sh", "-c", "cat\n> /dev/null"]
[tree]
setup = "npm ci"
[lanes.b]
adapter = "claude"
sandbox = "off"
[lanes.a]
command = "agent ${prompt}"
env = ["HTTP_TIMEOUT"]
timeout = "1h"
[[jobs]]
id = "one"
role = "author"
objective = "do it"
writes = ["src/"]
verify = "cargo test"
process = { lint = ["cargo clippy"] }
"#;

    fn lines(text: &str) -> Vec<String> {
        of_file(&Source { name: "w.toml".into(), text: text.into() }, FileKind::Workflow).unwrap()
    }

    #[test]
    fn everything_that_runs_or_widens_is_a_line() {
        insta::assert_snapshot!(lines(FILE).join("\n"), @r#"
        job one process: lint = [["cargo","clippy"]]
        job one: verify = [["cargo","test"]]
        job one: writes = ["src/"]
        lane a: command = ["agent","${prompt}"]
        lane a: env = ["HTTP_TIMEOUT"]
        lane b: adapter = "claude"
        lane b: sandbox = "off"
        notify: command = ["sh","-c","cat\n> /dev/null"]
        tree: setup = [["npm","ci"]]
        "#);
    }

    #[test]
    fn words_for_people_and_budgets_change_nothing_but_commands_do() {
        let before = hash(&lines(FILE));
        let reworded = FILE.replace("do it", "do it well").replace("launches = 9", "launches = 99");
        assert_eq!(hash(&lines(&reworded.replace("timeout = \"1h\"", "timeout = \"2h\""))), before);
        for (from, to) in [("cargo test", "rm -r x"), ("sandbox = \"off\"", ""), ("src/", "**"), ("HTTP_", "AWS_")] {
            assert_ne!(hash(&lines(&FILE.replace(from, to))), before, "{from} -> {to}");
        }
    }

    #[test]
    fn a_snapshot_tells_the_commands_in_force() {
        let workflow = Source { name: "w.toml".into(), text: FILE.into() };
        let inputs = super::super::Inputs { workflow, git: true, ..Default::default() };
        let definition = super::super::read(&inputs).unwrap();
        insta::assert_snapshot!(of_definition(&definition).join("\n"), @r#"
        job one process: lint = [["cargo","clippy"]]
        job one process: test = [["cargo","test"]]
        job one: verify = [["cargo","test"]]
        job one: writes = ["src/"]
        lane a: command = ["agent","${prompt}"]
        lane a: env = ["HTTP_TIMEOUT"]
        lane a: sandbox = "off"
        lane b: command = ["claude","-p","--output-format","stream-json","--verbose","--permission-mode","acceptEdits","--allowedTools","Bash,Edit,Write,Read","--add-dir","${scratch}"]
        lane b: sandbox = "off"
        notify: command = ["sh","-c","cat\n> /dev/null"]
        tree: setup = [["npm","ci"]]
        "#);
    }

    #[test]
    fn a_file_with_faults_has_no_lines() {
        assert!(of_file(&Source { name: "w.toml".into(), text: "id = 3".into() }, FileKind::Workflow).is_err());
    }
}
