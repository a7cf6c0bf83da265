//! The keys of workflow and configuration files: one table, from which errors, schema and reference follow.
//!
//! It says what may stand where and what it means. It does not read files and does not know how values of
//! several files are put together beyond the word in [`Merge`].

mod reference;
mod schema;
mod table;

pub use reference::reference;
pub use schema::json_schema;
pub use table::KEYS;

/// A kind of table in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The top of a workflow file.
    Workflow,
    /// The top of `config.toml`.
    Config,
    /// `[params.<name>]`.
    Param,
    /// `[budget]`.
    Budget,
    /// `[parallelism]`.
    Parallelism,
    /// `[limits]`.
    Limits,
    /// `[stop]`.
    Stop,
    /// `[notify]`.
    Notify,
    /// `[roles.<name>]`.
    Role,
    /// `[lanes.<name>]`.
    Lane,
    /// `[lanes.<name>.unavailable]`.
    Unavailable,
    /// `[tree]`.
    Tree,
    /// `[[jobs]]`.
    Job,
    /// An entry of a job's `produces`.
    Produce,
    /// A job's `process`.
    Process,
    /// A job's `ephemeral`.
    Ephemeral,
    /// A job's `reviews`, written as a table.
    Reviews,
}

impl Level {
    /// Every level, outermost first.
    pub const ALL: &'static [Level] = &[
        Level::Workflow,
        Level::Param,
        Level::Budget,
        Level::Parallelism,
        Level::Role,
        Level::Lane,
        Level::Unavailable,
        Level::Tree,
        Level::Job,
        Level::Produce,
        Level::Process,
        Level::Ephemeral,
        Level::Reviews,
        Level::Notify,
        Level::Config,
        Level::Limits,
        Level::Stop,
    ];

    /// How the level is written in a file.
    pub const fn heading(self) -> &'static str {
        match self {
            Level::Workflow => "a workflow file",
            Level::Config => "config.toml",
            Level::Param => "[params.NAME]",
            Level::Budget => "[budget]",
            Level::Parallelism => "[parallelism]",
            Level::Limits => "[limits]",
            Level::Stop => "[stop]",
            Level::Notify => "[notify]",
            Level::Role => "[roles.NAME]",
            Level::Lane => "[lanes.NAME]",
            Level::Unavailable => "[lanes.NAME.unavailable]",
            Level::Tree => "[tree]",
            Level::Job => "[[jobs]]",
            Level::Produce => "an entry of produces",
            Level::Process => "process",
            Level::Ephemeral => "ephemeral",
            Level::Reviews => "reviews",
        }
    }

    /// The level's name in the JSON schema.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Workflow => "workflow",
            Level::Config => "config",
            Level::Param => "param",
            Level::Budget => "budget",
            Level::Parallelism => "parallelism",
            Level::Limits => "limits",
            Level::Stop => "stop",
            Level::Notify => "notify",
            Level::Role => "role",
            Level::Lane => "lane",
            Level::Unavailable => "unavailable",
            Level::Tree => "tree",
            Level::Job => "job",
            Level::Produce => "produce",
            Level::Process => "process",
            Level::Ephemeral => "ephemeral",
            Level::Reviews => "reviews",
        }
    }

    /// What a table of this level is for, in a sentence.
    pub const fn about(self) -> &'static str {
        match self {
            Level::Workflow => "The definition of a run: its parameters, jobs, and what they need.",
            Level::Config => "What holds for every workflow of a repository, or of a person.",
            Level::Param => "A value given when a run is prepared; a plain string is short for its default.",
            Level::Budget => "Breakers of a run; when one trips, the run waits for an operator.",
            Level::Parallelism => "How much goes on at once.",
            Level::Limits => "Timings of helpers, leases and gates.",
            Level::Stop => "Words that stop a run.",
            Level::Notify => "How a person is told; never fatal.",
            Level::Role => "A kind of worker. A role needs no declaration.",
            Level::Lane => "A named way to execute: a command line with its limits.",
            Level::Unavailable => "How this agent says that it can't work now.",
            Level::Tree => "What makes a work tree usable.",
            Level::Job => "A node of the run.",
            Level::Produce => "An artifact that a job leaves.",
            Level::Process => {
                "Commands that `process run` may run for this job, by class; each is a prefix of an argv."
            }
            Level::Ephemeral => "A resource that is made for this job alone and destroyed after it.",
            Level::Reviews => "What a review looks at when it is no job of the run.",
        }
    }
}

/// Which `${...}` templates a string may hold, and who replaces them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Templates {
    /// None.
    None,
    /// `${params.x}`, replaced when the run is prepared.
    Params,
    /// `${params.x}` at prepare; `${job}` and `${inputs.job.name}` when the packet is written.
    Prose,
    /// `${params.x}` at prepare; the names of an attempt when the command starts.
    Launch,
    /// `${params.x}` at prepare; what the commands of a resource may name when one starts.
    Resource,
}

/// What a value must look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A string.
    Text(Templates),
    /// One of a few words.
    Word(&'static [&'static str]),
    /// The name of a thing: `[a-z0-9][a-z0-9_-]{0,47}`.
    Id,
    /// A list of names.
    Ids,
    /// A list of strings.
    Texts,
    /// A list of one or more of a few words.
    Words(&'static [&'static str]),
    /// A list of globs below the work tree.
    Globs,
    /// A list of relative paths.
    Paths,
    /// One relative path.
    Path,
    /// A list of folders outside the work tree: absolute, or below `~/`.
    Folders,
    /// A string like `45m`.
    Duration,
    /// A duration, or `off`.
    DurationOrOff,
    /// A whole number in a range.
    Count {
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
    /// `true` or `false`.
    Flag,
    /// Dollars.
    Money,
    /// A list of exit codes, 1 to 255.
    Exits,
    /// A list of names of environment variables.
    EnvNames,
    /// One command: a list of words, or a string that is split without a shell.
    Argv(Templates),
    /// Commands: a list of them, or one as a string.
    Commands(Templates),
    /// A job's name, or a table.
    Reviews,
    /// A table.
    Table(Level),
    /// Tables by name.
    Named(Level),
    /// A list of tables.
    List(Level),
}

/// Which file wins when several give a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Workflow, then repository, then user.
    Nearest,
    /// The smallest value any file gives.
    Stricter,
    /// Every value of every file.
    Union,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Where it stands.
    pub level: Level,
    /// How it is written.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: Kind,
    /// What holds when it is absent, as people read it; `required` where there is no way without.
    pub default: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Which file wins.
    pub merge: Merge,
    /// Known, but not before a later version.
    pub reserved: bool,
    /// It runs something or lets something reach further, so a person has to trust it.
    pub widens: bool,
}

impl Key {
    /// Whether the key must be given.
    pub fn is_required(&self) -> bool {
        self.default == "required"
    }
}

/// The keys of a level, in the order in which they are explained.
pub fn of(level: Level) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.level == level)
}

/// The row of a key.
pub fn find(level: Level, name: &str) -> Option<&'static Key> {
    of(level).find(|key| key.name == name)
}

/// What to write instead of an unknown key: the nearest spelling, its right place, or the list.
pub fn instead_of(level: Level, name: &str) -> String {
    if let Some(nearest) = nearest_key(level, name) {
        return format!("did you mean `{nearest}`?");
    }
    let names: Vec<&str> = of(level).filter(|key| !key.reserved).map(|key| key.name).collect();
    let elsewhere: Vec<&str> = KEYS.iter().filter(|key| key.name == name).map(|key| key.level.heading()).collect();
    if elsewhere.is_empty() {
        return format!("{} has: {}", level.heading(), names.join(", "));
    }
    format!("`{name}` belongs to {}", elsewhere.join(" or "))
}

/// The key of a level that an unknown one was probably meant to be.
pub fn nearest_key(level: Level, name: &str) -> Option<&'static str> {
    nearest(name, of(level).filter(|key| !key.reserved).map(|key| key.name))
}

/// The word most like another, if one is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |candidate: &str| {
        let edits = strsim::normalized_damerau_levenshtein(word, candidate);
        edits.max(if candidate.starts_with(word) && word.len() >= 3 { 0.7 } else { 0.0 })
    };
    candidates
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(score, _)| *score >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Whether a text can name a workflow, job, role, lane, parameter or artifact.
pub fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut bytes = text.bytes();
    bytes.next().is_some_and(plain) && text.len() <= 48 && bytes.all(|byte| plain(byte) || matches!(byte, b'_' | b'-'))
}

impl Kind {
    /// What a value must be, as the end of "must be ..".
    pub fn expects(self) -> String {
        match self {
            Kind::Text(_) => "a string".to_owned(),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Id => "a name".to_owned(),
            Kind::Ids => "a list of names".to_owned(),
            Kind::Texts => "a list of strings".to_owned(),
            Kind::Words(words) => format!("a list of {}", words.join(", ")),
            Kind::Globs => "a list of globs".to_owned(),
            Kind::Paths => "a list of relative paths".to_owned(),
            Kind::Path => "a relative path".to_owned(),
            Kind::Folders => "a list of folders".to_owned(),
            Kind::Duration => "a duration".to_owned(),
            Kind::DurationOrOff => "a duration or `off`".to_owned(),
            Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Flag => "true or false".to_owned(),
            Kind::Money => "an amount of dollars".to_owned(),
            Kind::Exits => "a list of exit codes".to_owned(),
            Kind::EnvNames => "a list of names of environment variables".to_owned(),
            Kind::Argv(_) => "a command".to_owned(),
            Kind::Commands(_) => "a list of commands".to_owned(),
            Kind::Reviews => "a job's name or a table".to_owned(),
            Kind::Table(_) | Kind::Named(_) => "a table".to_owned(),
            Kind::List(_) => "a list of tables".to_owned(),
        }
    }

    /// A value as one could write it.
    pub fn example(self) -> String {
        match self {
            Kind::Text(_) => "\"..\"".to_owned(),
            Kind::Word(words) => format!("\"{}\"", words.first().unwrap_or(&"")),
            Kind::Id => "\"draft\"".to_owned(),
            Kind::Ids => "[\"draft\"]".to_owned(),
            Kind::Texts => "[\"..\"]".to_owned(),
            Kind::Words(words) => format!("[\"{}\"]", words.first().unwrap_or(&"")),
            Kind::Globs => "[\"src/\", \"docs/**/*.md\"]".to_owned(),
            Kind::Paths => "[\"target\"]".to_owned(),
            Kind::Path => "\"prompts/draft.md\"".to_owned(),
            Kind::Folders => "[\"~/.cargo/registry\"]".to_owned(),
            Kind::Duration | Kind::DurationOrOff => "\"45m\"".to_owned(),
            Kind::Count { min, .. } => min.max(1).to_string(),
            Kind::Flag => "true".to_owned(),
            Kind::Money => "20".to_owned(),
            Kind::Exits => "[75]".to_owned(),
            Kind::EnvNames => "[\"HTTP_TIMEOUT\"]".to_owned(),
            Kind::Argv(_) => "[\"make\", \"all\"]".to_owned(),
            Kind::Commands(_) => "[\"cargo test -q\"]".to_owned(),
            Kind::Reviews => "\"draft\"".to_owned(),
            Kind::Table(_) | Kind::Named(_) => "{ .. }".to_owned(),
            Kind::List(_) => "[{ .. }]".to_owned(),
        }
    }
}
