//! First workflows to start from: each valid as it is, each with real agents as comments.
//!
//! The script lanes do real work with `sh` alone, so that a new user sees a run through before any agent is set up.

/// A workflow that can be generated.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// The word for it; also the workflow's id.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    body: &'static str,
    /// Its lanes are scripts, so real agents are shown beside them.
    has_scripts: bool,
}

/// Every workflow that can be generated.
pub const TEMPLATES: &[Template] = &[
    Template { name: "minimal", about: "One job, done by a script.", body: MINIMAL, has_scripts: true },
    Template {
        name: "review",
        about: "A draft that a fresh reviewer may send back, done by scripts.",
        body: REVIEW,
        has_scripts: true,
    },
    Template {
        name: "panel",
        about: "Three reviewers of one draft, of whom two must accept, done by scripts.",
        body: PANEL,
        has_scripts: true,
    },
    Template {
        name: "code-change",
        about: "A change of code by one agent, reviewed by another, landed by you.",
        body: CODE_CHANGE,
        has_scripts: false,
    },
];

/// The TOML text of a workflow to start from; none when nothing has that name.
pub fn generate(name: &str) -> Option<String> {
    let template = TEMPLATES.iter().find(|template| template.name == name)?;
    let agents = if template.has_scripts { AGENTS } else { "" };
    Some(format!("# {}\n{}{agents}", template.about, template.body))
}

const MINIMAL: &str = r#"schema = "striatum.workflow/1"
id = "minimal"
title = "One job"

[params]
task = { default = "Say hello.", title = "what to do" }

[lanes.script]
# The words of a command are never split again, and no shell sees them unless you name one.
command = ["sh", "-c", 'printf "%s\n" "$1" > note.txt', "sh", "${params.task}"]
sandbox = "prefer-scope"

[[jobs]]
id = "hello"
role = "author"
objective = "${params.task}"
# Exit 0 counts as done because this file is new.
produces = [{ name = "note", path = "note.txt" }]
"#;

const REVIEW: &str = r#"schema = "striatum.workflow/1"
id = "review"
title = "A draft and its review"

[params]
task = { default = "Write a note that ends with a full stop", title = "what to write" }

[lanes.writer]
# The first attempt forgets the full stop; the review sends it back.
command = ["sh", "-c", '''
if [ "$STRIATUM_ATTEMPT" -gt 1 ]; then end="."; else end=""; fi
printf "%s%s\n" "$1" "$end" > note.txt
''', "sh", "${params.task}"]
sandbox = "prefer-scope"

[lanes.checker]
# An answer is a file, or a verb such as `striatum work verdict`.
command = ["sh", "-c", '''
if grep -q "\.$" "$1/draft/note"; then
  verdict='"accept", "findings": []'
else
  verdict='"needs_revision", "findings": [{"title": "no full stop", "detail": "The note must end with one."}]'
fi
printf '{"schema": "striatum.result/1", "status": "DONE", "verdict": %s}\n' "$verdict" > "$STRIATUM_RESULT"
''', "sh", "${inputs}"]
sandbox = "prefer-scope"

[[jobs]]
id = "draft"
role = "author"
lane = "writer"
objective = "${params.task}"
produces = [{ name = "note", path = "note.txt" }]

[[jobs]]
id = "review"
lane = "checker"
reviews = "draft"
tree = "none"
objective = "Does the note end with a full stop?"
"#;

const PANEL: &str = r#"schema = "striatum.workflow/1"
id = "panel"
title = "A draft and three reviews"

[params]
task = { default = "Keep it short, and end with a full stop.", title = "what to write" }

[lanes.writer]
command = ["sh", "-c", 'printf "%s\n" "$1" > note.txt', "sh", "${params.task}"]
sandbox = "prefer-scope"

[lanes.checker]
# One lane for all three: the job's name says what to look for.
command = ["sh", "-c", '''
case "$2" in
  length) test "$(wc -c < "$1/draft/note")" -lt 200 ;;
  ending) grep -q "\.$" "$1/draft/note" ;;
  *) test -s "$1/draft/note" ;;
esac
if [ $? -eq 0 ]; then
  verdict='"accept", "findings": []'
else
  verdict='"needs_revision", "findings": [{"title": "not good enough", "detail": "See the objective of the review."}]'
fi
printf '{"schema": "striatum.result/1", "status": "DONE", "verdict": %s}\n' "$verdict" > "$STRIATUM_RESULT"
''', "sh", "${inputs}", "${job}"]
sandbox = "prefer-scope"

[[jobs]]
id = "draft"
role = "author"
lane = "writer"
objective = "${params.task}"
produces = [{ name = "note", path = "note.txt" }]
# Two of three accepts pass; the dissent is recorded.
quorum = 2

[[jobs]]
id = "length"
lane = "checker"
reviews = "draft"
tree = "none"
objective = "Is it shorter than 200 characters?"

[[jobs]]
id = "ending"
lane = "checker"
reviews = "draft"
tree = "none"
objective = "Does it end with a full stop?"

[[jobs]]
id = "content"
lane = "checker"
reviews = "draft"
tree = "none"
objective = "Does it say anything?"
"#;

const CODE_CHANGE: &str = r#"schema = "striatum.workflow/1"
id = "code-change"
title = "A reviewed change"

[params]
task = { required = true, title = "what to change" }

# An adapter knows how its agent is called unattended; any of its keys may be written here instead.
# Lanes that several workflows use may stand in .striatum/config.toml.
[lanes.claude]
adapter = "claude"
fallback = ["codex"]

[lanes.codex]
adapter = "codex"

[[jobs]]
id = "draft"
role = "author"
lane = "claude"
objective = "${params.task}"
# What the change may touch; everything else is refused.
writes = ["**"]
# Must pass before the change is sealed.
# verify = ["make test"]

[[jobs]]
id = "review"
lane = "codex"
reviews = "draft"
objective = "Does the change do what was asked, and nothing else? ${params.task}"

# Nothing lands by itself: this waits for you.
[[jobs]]
id = "land"
type = "land"
needs = ["review"]
into = "main"
"#;

const AGENTS: &str = r#"
# Real agents in place of the scripts: an adapter, or the words yourself. Each gets its prompt by argument or file;
# none is ever given an open pipe, for which some of them would wait for ever.
#
# [lanes.claude]
# command = ["claude", "-p", "--permission-mode", "acceptEdits", "--add-dir", "${scratch}"]
# stdin = "prompt"
# idle_timeout = "15m"
# sandbox = "prefer-scope"
#
# [lanes.codex]
# command = ["codex", "exec", "--sandbox", "workspace-write", "--add-dir", "${scratch}", "-"]
# stdin = "prompt"
#
# [lanes.opencode]
# command = ["opencode", "run", "${prompt}"]
#
# [lanes.aider]
# command = ["aider", "--yes-always", "--no-auto-commits", "--no-gitignore", "--message-file", "${prompt_file}"]
"#;

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::{Inputs, Source, read};
    use super::*;

    fn definition(template: &Template, git: bool, text: String) -> super::super::Definition {
        let workflow = Source { name: template.name.to_owned(), text };
        read(&Inputs { workflow, git, ..Inputs::default() }).unwrap()
    }

    #[test]
    fn each_is_valid_without_a_warning_and_bears_its_name() {
        for template in TEMPLATES {
            for git in [true, !template.has_scripts] {
                let definition = definition(template, git, generate(template.name).unwrap());
                assert_eq!(definition.warnings, [], "{}", template.name);
                assert_eq!(definition.run.workflow, template.name);
            }
        }
        assert_eq!(generate("nonsense"), None);
    }

    #[test]
    fn the_commented_agents_are_valid_too() {
        let text: String = generate("minimal").unwrap();
        let (body, agents) = text.split_once("# [lanes.claude]").unwrap();
        let lanes = format!("[lanes.claude]{agents}").replace("\n# ", "\n").replace("\n#\n", "\n");
        let definition = definition(&TEMPLATES[0], true, format!("{}\nlane = \"script\"\n{lanes}", body.trim_end()));
        let names: Vec<&str> = definition.run.lanes.keys().map(String::as_str).collect();
        assert_eq!(names, ["aider", "claude", "codex", "opencode", "script"]);
    }

    #[test]
    fn script_workflows_need_no_git() {
        for template in TEMPLATES.iter().filter(|template| template.has_scripts) {
            definition(template, false, generate(template.name).unwrap());
        }
    }
}
