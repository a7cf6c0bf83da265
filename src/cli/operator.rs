//! `striatum operator ...`

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Subcommand;

use super::call::Session;
use super::output::{Output, complain};
use crate::broker::operator::{forward, socket_here};
use crate::broker::server::listen;
use crate::error::Result;
use crate::verbs::operator::serve::serve;
use crate::verbs::operator::{ExecRequest, UNPREPARED, become_harness, prepare};

/// Run the operator's own program so that the kernel holds it
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Operator {
    /// Run a program that can read everything here and write nothing; its `striatum` verbs are run for it
    Exec {
        /// Register a session of this role for it, on a person's lane
        #[arg(long, value_name = "ROLE")]
        role: Option<String>,
        /// The lane of that session; the only one for people when left out
        #[arg(long, value_name = "LANE", requires = "role")]
        lane: Option<String>,
        /// The run of that session; the only live one when left out
        #[arg(long, value_name = "RUN", requires = "role")]
        run_id: Option<String>,
        /// A folder outside the repository that it may write, or @cargo, @npm, @pip, @go (can be repeated)
        #[arg(long, value_name = "FOLDER")]
        write_path: Vec<String>,
        /// Go on where this kernel can't hold it
        #[arg(long)]
        prefer_scope: bool,
        /// The program and its words
        #[arg(value_name = "PROGRAM", required = true, last = true)]
        argv: Vec<OsString>,
    },
}

impl Operator {
    /// Runs the program to its end; its exit code is the verb's.
    pub fn run(self, session: &Session, _output: &Output) -> Result<u8> {
        let Operator::Exec { role, lane, run_id, write_path, prefer_scope, argv } = self;
        let ctx = session.operator_ctx()?;
        let request =
            ExecRequest { run: run_id, role, lane, write_paths: write_path, prefers_scope: prefer_scope, argv };
        let prepared = prepare(&ctx, &request)?;
        let listener = listen(&prepared.socket())?;
        let session = prepared.session.as_ref().map_or(String::new(), |made| format!("; session {}", made.session));
        complain(&format!("operator exec: {}{session}\n", prepared.held()));
        let child = prepared.start(&ctx)?;
        let code = serve(&ctx, &prepared, &listener, child)?;
        prepared.finish(&ctx)?;
        Ok(code)
    }
}

/// The step between: becomes the program.
pub fn step(words: &[OsString]) -> ExitCode {
    let error = become_harness(words.iter().skip(2).cloned());
    complain(&format!("striatum: {error}: {}\n", error.causes.join(": ")));
    ExitCode::from(UNPREPARED)
}

/// Under `operator exec` every verb is the parent's to run; none when this process stands elsewhere.
pub fn forwarded(words: &[OsString]) -> Option<Result<u8>> {
    const OWN: [&str; 6] = ["--help", "-h", "--version", "-V", "completion", "man"];
    let socket = socket_here()?;
    let words: Vec<String> = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let is_own = words.is_empty() || words.iter().take_while(|word| *word != "--").any(|word| OWN.contains(&&**word));
    let is_hook = words.first().is_some_and(|word| word == "hook");
    let ended = (!is_own).then(|| forward(&socket, words))?;
    // A client takes every other code of a hook for a yes.
    Some(match ended {
        Err(error) if is_hook => {
            complain(&format!("striatum: not judged: {error}\n"));
            Ok(super::hook::STOPPED)
        }
        ended => ended,
    })
}
