//! What `--help` says beyond the flags: the everyday verbs first, how to stop, exit codes, examples.
//!
//! It is put onto the command only when help or a page is asked for, so that no other verb pays for it.

use clap::Command;

/// The verbs that most days need, in the order in which they are needed.
pub const EVERYDAY: [&[&str]; 10] = [
    &["init"],
    &["run", "go"],
    &["status"],
    &["inbox"],
    &["answer"],
    &["gate", "approve"],
    &["job", "show"],
    &["logs"],
    &["run", "drive"],
    &["run", "stop"],
];

/// How to stop, from the gentlest on (design section 7).
pub const STOPS: [(&str, &str); 6] = [
    ("Ctrl-C, TERM, HUP", "the driver ends, lanes live on; `run drive` goes on"),
    ("Ctrl-C twice", "every lane is ended too; so with --stop-lanes"),
    ("run pause", "no new launches, lanes finish; undo with `run resume`"),
    ("run stop", "drivers and lanes end; undo with `run resume`"),
    ("touch .striatum/STOP", "drivers end, nothing starts until the file is gone"),
    ("run cancel", "over, work is kept; only `run retry-job` revives it"),
];

/// What an exit code means (design section 15).
pub const EXITS: [(&str, &str); 14] = [
    ("0", "ok"),
    ("1", "failed"),
    ("2", "wrong words"),
    ("3", "the run needs an operator"),
    ("4", "the run waits for a person"),
    ("5", "refused by state, lease, fence or freshness"),
    ("6", "refused by scope or path"),
    ("7", "refused by capability, trust or constrained mode"),
    ("8", "invalid workflow, configuration, answer or patch"),
    ("9", "store missing, newer, foreign, corrupt, or on an unsuitable file system"),
    ("10", "store busy, or a wait ran out of time"),
    ("11", "environment: git, sandbox, command, disk full"),
    ("70", "a fault of striatum"),
    ("130", "interrupted"),
];

/// Examples of verbs: the verb's words, and lines to type.
#[rustfmt::skip]
pub const EXAMPLES: &[(&[&str], &[&str])] = &[
    (&["quickstart"], &["striatum quickstart", "striatum quickstart ~/try-striatum"]),
    (&["trust"], &["striatum trust --show", "striatum trust", "striatum trust .striatum/workflows/map.toml"]),
    (&["run", "go"], &[
        "striatum run go -w review --task 'Write a note that ends with a full stop'",
        "striatum run go -w .striatum/workflows/map.toml --param depth=2",
    ]),
    (&["run", "prepare"], &["striatum run prepare -w map", "striatum run prepare -w map --json"]),
    (&["run", "start"], &["striatum run start --run-id map-1"]),
    (&["run", "drive"], &[
        "striatum run drive",
        "striatum run drive --run-id map-1 --wait-human",
        "striatum run drive --dry-run",
        "striatum run drive --json",
    ]),
    (&["run", "amend"], &[
        "striatum run amend --set budget.cost_usd=20 --reason 'worth it'",
        "striatum run amend draft --set lane=codex --set timeout=2h --reason 'the other one is down'",
    ]),
    (&["run", "retry-job"], &[
        "striatum run retry-job draft --reason 'the disk is free again'",
        "striatum run retry-job --failed --note 'use the staging server' --reason 'it was the network'",
    ]),
    (&["run", "cancel"], &["striatum run cancel --run-id map-1 --reason 'asked for the wrong thing'"]),
    (&["status"], &["striatum status", "striatum status --json"]),
    (&["job", "show"], &["striatum job show draft", "striatum job show draft --run-id map-1 --json"]),
    (&["logs"], &["striatum logs draft", "striatum logs draft -f", "striatum logs draft --attempt 1 --tail 50"]),
    (&["answer"], &["striatum answer draft 'the rate is 19 %'", "striatum answer draft --file answer.md"]),
    (&["gate", "approve"], &["striatum gate approve g3", "striatum gate approve release --note 'after the freeze'"]),
    (&["give"], &[
        "striatum give draft --done --summary 'written by hand'",
        "striatum give review --verdict needs_revision --finding 'order: the steps are swapped'",
        "striatum give draft --note 'I only looked'",
    ]),
    (&["review", "override-verdict"], &[
        "striatum review override-verdict review --verdict accept --reason 'the finding is about another file'",
    ]),
    (&["register-session"], &["striatum register-session --run-id map-1 --role author --lane mapper"]),
    (&["workflow", "generate"], &[
        "striatum workflow generate panel",
        "striatum workflow generate review --output .striatum/workflows/notes.toml",
    ]),
    (&["work", "complete"], &[
        "striatum work complete --summary 'the total is right now'",
        "striatum work complete --result answer.json",
    ]),
    (&["work", "verdict"], &[
        "striatum work verdict accept",
        "striatum work verdict needs_revision --finding 'wrong total: the discount is added twice'",
    ]),
    (&["work", "block"], &[
        "striatum work block --needs-context --awaiting 'the tax rate' --who-can 'the owner' --action 'name it'",
    ]),
    (&["work", "await"], &[
        "striatum work await --claim",
        "striatum work await --timeout 5m --session-id s3 --token-file token",
    ]),
    (&["gate", "reject"], &["striatum gate reject g3 --note 'the notes are missing'"]),
    (&["take"], &["striatum take review", "striatum take draft --yes"]),
    (&["lane", "pause"], &["striatum lane pause codex --reason 'too dear this month'"]),
    (&["completion"], &["striatum completion bash > ~/.local/share/bash-completion/completions/striatum"]),
    (&["man"], &["striatum man run drive", "striatum man --output ~/.local/share/man/man1"]),
];

/// The command with everything that help says.
pub fn decorate(command: Command) -> Command {
    let verbs = verbs_text(&command);
    let mut command = command
        .mut_args(|arg| if arg.is_global_set() { arg.help_heading("Options of every verb") } else { arg })
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}\nOptions:\n{{options}}{{after-help}}"
        ))
        .after_help(SHORT_END)
        .after_long_help(format!("{}\n{}\n{FILES}", table("How to stop:", &STOPS), table("Exit codes:", &EXITS)));
    for (path, lines) in EXAMPLES {
        command = with_examples(command, path, lines);
    }
    command
}

const SHORT_END: &str = "`striatum --help` also tells how to stop, and what exit codes mean.";

const FILES: &str = "\
Everything is kept in .striatum/ at the top of the repository. STRIATUM_DIR names another such folder.
NO_COLOR switches colour off. Each verb has its own --help.";

fn with_examples(command: Command, path: &[&str], lines: &[&str]) -> Command {
    match path {
        [] => command
            .after_help(format!("Examples:\n{}", lines.iter().map(|line| format!("  {line}\n")).collect::<String>())),
        [first, rest @ ..] if command.find_subcommand(first).is_some() => {
            command.mut_subcommand(first, |below| with_examples(below, rest, lines))
        }
        _ => command,
    }
}

fn table(title: &str, rows: &[(&str, &str)]) -> String {
    let width = rows.iter().map(|(left, _)| left.len()).max().unwrap_or(0);
    let lines: String = rows.iter().map(|(left, right)| format!("  {left:width$}  {right}\n")).collect();
    format!("{title}\n{lines}")
}

fn verbs_text(command: &Command) -> String {
    let everyday: Vec<(String, String)> =
        EVERYDAY.iter().filter_map(|path| Some((path.join(" "), about(find(command, path)?)))).collect();
    let all: Vec<(String, String)> = command
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set() && !EVERYDAY.contains(&[verb.get_name()].as_slice()))
        .map(|verb| (verb.get_name().to_owned(), about(verb)))
        .collect();
    format!("{}\n{}", owned_table("Every day:", &everyday), owned_table("All the rest:", &all))
}

fn owned_table(title: &str, rows: &[(String, String)]) -> String {
    let rows: Vec<(&str, &str)> = rows.iter().map(|(left, right)| (left.as_str(), right.as_str())).collect();
    table(title, &rows)
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// The command of a verb's words.
pub fn find<'a>(command: &'a Command, path: &[&str]) -> Option<&'a Command> {
    path.iter().try_fold(command, |command, word| command.find_subcommand(word))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn the_tree_of_commands_is_sound() {
        decorate(Cli::command()).debug_assert();
    }

    #[test]
    fn every_example_is_accepted_by_its_verb() {
        for (path, lines) in EXAMPLES {
            for line in *lines {
                let words = words(line.split(" > ").next().unwrap());
                let spoken: Vec<&str> = words.iter().skip(1).map(String::as_str).take(path.len()).collect();
                assert_eq!(&spoken, path, "{line}");
                assert!(Cli::try_parse_from(&words).is_ok(), "{line}");
            }
        }
    }

    /// Splits at spaces outside single quotes.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for letter in line.chars() {
            match letter {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                other => words.last_mut().unwrap().push(other),
            }
        }
        words
    }

    #[test]
    fn exit_codes_are_those_of_the_catalog() {
        use crate::error::Code;
        let known: Vec<String> = Code::ALL.iter().map(|code| code.kind().exit().to_string()).collect();
        for (exit, _) in &EXITS[1..] {
            assert!(known.contains(&(*exit).to_owned()), "{exit}");
        }
        for exit in known {
            assert!(EXITS.iter().any(|(told, _)| *told == exit), "{exit}");
        }
    }
}
