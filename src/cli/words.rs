//! Reading the words: first against the called noun alone, against the whole tree when that fails.
//!
//! Building the tree of all commands costs each short verb a tenth of a millisecond, and nothing but help and errors
//! need it. What a noun alone reads is what the whole tree would read: both are made by the same derived functions.
//! It does not know what a verb does.

use std::ffi::OsString;
use std::mem::ManuallyDrop;

use clap::{Args, Command, CommandFactory, FromArgMatches, Subcommand};

use super::{
    Cli, Globals, audit, clean, config, dashboard, decision, diff, doctor, events, gate, hook, inbox, init, job, lane,
    logs, notice, person, process, repo, review, run, scope_check, session, status, supervise, trust, work, workflow,
};

/// What gives a noun its flags, or its verbs.
type Grow = fn(Command) -> Command;

/// The nouns that are called while work goes on. One that is missing is only slower.
const NOUNS: &[(&str, Grow)] = &[
    ("init", init::Init::augment_args),
    ("gc", clean::Gc::augment_args),
    ("trust", trust::Trust::augment_args),
    ("status", status::Status::augment_args),
    ("inbox", inbox::Inbox::augment_args),
    ("job", verbs::<job::Job>),
    ("logs", logs::Logs::augment_args),
    ("diff", diff::Diff::augment_args),
    ("events", events::Events::augment_args),
    ("audit", verbs::<audit::Audit>),
    ("doctor", doctor::Doctor::augment_args),
    ("dashboard", dashboard::Dashboard::augment_args),
    ("run", verbs::<run::Run>),
    ("register-session", session::Register::augment_args),
    ("session", verbs::<session::Session>),
    ("supervise", verbs::<supervise::Supervise>),
    ("work", verbs::<work::Work>),
    ("gate", verbs::<gate::Gate>),
    ("answer", person::Answer::augment_args),
    ("take", person::Take::augment_args),
    ("give", person::Give::augment_args),
    ("review", verbs::<review::Review>),
    ("decision", verbs::<decision::Decision>),
    ("repo", verbs::<repo::Repo>),
    ("process", verbs::<process::Process>),
    ("lane", verbs::<lane::Lane>),
    ("notify", verbs::<notice::Notify>),
    ("workflow", verbs::<workflow::Workflow>),
    ("scope-check", scope_check::ScopeCheck::augment_args),
    ("hook", verbs::<hook::Hook>),
    ("config", verbs::<config::Config>),
];

/// Reads the words. The tree of commands is kept until the process ends, which is soon: freeing it is work.
pub fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let alone = words.get(1).and_then(|word| word.to_str()).and_then(alone);
    if let Some(cli) = alone.and_then(|command| read(command, words).ok()) {
        return Ok(cli);
    }
    read(Cli::command(), words)
}

fn read(command: Command, words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = ManuallyDrop::new(command);
    let mut matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// The tree with this noun and no other.
fn alone(noun: &str) -> Option<Command> {
    let (name, grow) = NOUNS.iter().find(|(name, _)| *name == noun)?;
    let tree = Globals::augment_args(Command::new("striatum").disable_help_subcommand(true));
    Some(tree.subcommand_required(true).subcommand(grow(Command::new(*name))))
}

fn verbs<V: Subcommand>(noun: Command) -> Command {
    V::augment_subcommands(noun.subcommand_required(true))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// Every flag and verb below a command, as one text; flags that all verbs share may stand anywhere.
    fn below(command: &Command) -> String {
        let flags = command.get_arguments().map(|arg| {
            let takes = (arg.get_action().takes_values(), arg.is_required_set(), arg.is_global_set());
            format!("{:?}/{:?} {takes:?} {:?}\n", arg.get_long(), arg.get_short(), arg.get_default_values())
        });
        let verbs = command.get_subcommands().map(|verb| format!("{}\n{}", verb.get_name(), below(verb)));
        let mut flags: Vec<String> = flags.collect();
        flags.sort();
        flags.into_iter().chain(verbs).collect()
    }

    #[test]
    fn a_noun_alone_reads_what_the_whole_tree_reads() {
        let mut whole = Cli::command();
        whole.build();
        for (noun, _) in NOUNS {
            let mut alone = alone(noun).unwrap();
            alone.build();
            let find = |tree: &Command| tree.find_subcommand(noun).map(below);
            let wanted = find(&whole).unwrap();
            assert_eq!(find(&alone).unwrap(), wanted, "{noun}");
        }
    }

    #[test]
    fn what_a_noun_alone_does_not_understand_is_told_by_the_whole_tree() {
        let told = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let one = parse(&words).err().unwrap().to_string();
            let other = read(Cli::command(), &words).err().unwrap().to_string();
            (one, other)
        };
        for words in [&["striatum", "session", "lisst"][..], &["striatum", "job"], &["striatum", "status", "--help"]] {
            let (one, other) = told(words);
            assert_eq!(one, other, "{words:?}");
        }
    }
}
