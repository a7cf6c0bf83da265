//! `striatum completion` and `striatum man`: renderings of the one tree of commands.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use serde_json::json;

use super::output::Output;
use super::{Cli, help};
use crate::error::{Code, Error, Result};

/// Which shell.
#[derive(Args)]
pub struct Completion {
    /// The shell
    shell: Shell,
}

impl Completion {
    /// Prints the shell's script.
    pub fn run(self, output: &Output) -> Result<u8> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "striatum", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        let report = json!({"shell": self.shell.to_string(), "script": script});
        output.report(&report, |_| script.clone());
        Ok(0)
    }
}

/// Which page, and where to.
#[derive(Args)]
pub struct Man {
    /// The verb; striatum itself when left out
    #[arg(value_name = "VERB")]
    verb: Vec<String>,
    /// A folder for the pages of all verbs, instead of standard output
    #[arg(long, value_name = "FOLDER", conflicts_with = "verb")]
    output: Option<PathBuf>,
}

impl Man {
    /// Prints a page, or writes all of them.
    pub fn run(self, output: &Output) -> Result<u8> {
        let mut root = help::decorate(Cli::command()).help_template("");
        root.build();
        match &self.output {
            Some(folder) => write_all(&root, folder, output),
            None => print_one(&root, &self.verb, output),
        }
    }
}

fn print_one(root: &Command, verb: &[String], output: &Output) -> Result<u8> {
    let words: Vec<&str> = verb.iter().map(String::as_str).collect();
    let command = help::find(root, &words)
        .ok_or_else(|| Error::new(Code::NotFound, format!("there is no verb {}", words.join(" "))))?;
    let page = page(command)?;
    output.report(&json!({"name": name(command), "page": page}), |_| page.clone());
    Ok(0)
}

fn write_all(root: &Command, folder: &Path, output: &Output) -> Result<u8> {
    std::fs::create_dir_all(folder)?;
    let mut written = Vec::new();
    collect(root, &mut |command| {
        let path = folder.join(format!("{}.1", name(command)));
        std::fs::write(&path, page(command)?)?;
        written.push(path);
        Ok(())
    })?;
    let text = format!("wrote {} pages to {}", written.len(), folder.display());
    output.report(&json!({"written": written}), |_| text.clone());
    Ok(0)
}

fn collect(command: &Command, each: &mut dyn FnMut(&Command) -> Result<()>) -> Result<()> {
    each(command)?;
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| collect(below, each))
}

/// The name of a page: the verb's words joined by `-`.
fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page(command: &Command) -> Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name(command)).section("1").render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
