//! `striatum repo ...`

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::call::Session;
use super::output::{Output, harmless, next_text};
use super::work::Speaker;
use crate::error::{Code, Error, Result};
use crate::verbs::repo::Content;
use crate::verbs::repo::patch::{self, ApplyReport, ApplyRequest, FileLine, PreviewReport, PreviewRequest};
use crate::verbs::repo::write::{self, WriteReport, WriteRequest};

/// Change a job's work tree, judged before anything is there
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Repo {
    /// Write one file, whole
    Write {
        #[command(flatten)]
        who: Speaker,
        /// The file, relative to the top of the work tree
        #[arg(long, value_name = "PATH")]
        path: String,
        /// A file with the content; standard input when left out
        #[arg(long, value_name = "FILE")]
        content_file: Option<PathBuf>,
        /// What must stand there now: its sha256, or absent
        #[arg(long, value_name = "HASH")]
        expect_sha256: Option<String>,
    },
    /// See what a patch would change, and whether it may
    PatchPreview(Patch),
    /// Apply a patch exactly as it was shown, or not at all
    PatchApply {
        #[command(flatten)]
        patch: Patch,
        /// What the preview told
        #[arg(long, value_name = "TOKEN")]
        token: String,
    },
}

/// A patch, as `git diff` writes it.
#[derive(Args)]
pub struct Patch {
    #[command(flatten)]
    who: Speaker,
    /// A file with the patch; standard input when left out
    #[arg(long, value_name = "FILE")]
    patch_file: Option<PathBuf>,
}

impl Repo {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        match self {
            Repo::Write { who, path, content_file, expect_sha256 } => {
                let content = Content::of(read(content_file.as_deref(), write::LIMIT)?);
                let request = WriteRequest { who: who.credentials()?, path, content, expect_sha256 };
                output.report(&session.call(&request)?, written);
            }
            Repo::PatchPreview(Patch { who, patch_file }) => {
                let patch = Content::of(read(patch_file.as_deref(), patch::LIMIT)?);
                let report = session.call(&PreviewRequest { who: who.credentials()?, patch })?;
                output.report(&report, previewed);
                return Ok(if report.violations.is_empty() { 0 } else { Code::PathOutsideScope.kind().exit() });
            }
            Repo::PatchApply { patch: Patch { who, patch_file }, token } => {
                let patch = Content::of(read(patch_file.as_deref(), patch::LIMIT)?);
                let request = ApplyRequest { who: who.credentials()?, patch, token };
                output.report(&session.call(&request)?, applied);
            }
        }
        Ok(0)
    }
}

/// All of a file or of standard input, at most `limit` bytes.
fn read(file: Option<&Path>, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let name = file.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string());
    let unreadable = |error| Error::new(Code::Usage, format!("{name} can't be read")).cause(error);
    match file {
        Some(path) => std::fs::File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)),
        None => std::io::stdin().lock().take(limit + 1).read_to_end(&mut bytes),
    }
    .map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(Error::new(Code::TooLarge, format!("{name} has more than {limit} bytes")));
    }
    Ok(bytes)
}

fn written(report: &WriteReport) -> String {
    let WriteReport { path, after, bytes, .. } = report;
    match (report.already, &report.before) {
        (true, _) => format!("{path} stood there already ({after})\n"),
        (false, None) => format!("made {path}: {bytes} bytes ({after})\n"),
        (false, Some(before)) => format!("wrote {path}: {bytes} bytes ({before} -> {after})\n"),
    }
}

fn lines(files: &[FileLine]) -> String {
    files.iter().map(|file| format!("  {} {}\n", file.change, file.path)).collect()
}

fn previewed(report: &PreviewReport) -> String {
    let mut text = format!("{} file(s):\n{}", report.files.len(), lines(&report.files));
    if !report.violations.is_empty() {
        text.push_str("refused:\n");
        report.violations.iter().for_each(|line| text.push_str(&format!("  {}\n", harmless(line))));
    }
    if let Some(token) = &report.token {
        text.push_str(&format!("token: {token}\n"));
    }
    text + &next_text(&report.next)
}

fn applied(report: &ApplyReport) -> String {
    format!("applied to {}: {} file(s)\n{}", report.job, report.files.len(), lines(&report.files))
}
