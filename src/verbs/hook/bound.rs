//! `hook pre-tool-use` in a constrained session: the program changes files and runs commands through verbs alone.
//!
//! Reading stays free. What is refused is told with the verb to use instead.

use std::path::{Path, PathBuf};

use super::Said;
use super::tool::{Lane, is_below};
use crate::domain::scope::Violation;
use crate::domain::tool_call::{self, Does, is_own_command};
use crate::error::Result;
use crate::verbs::scope_check::{Name, ScopeReport, ScopeRequest};

/// Judges a tool call of who works constrained; everything but a clear yes refuses.
pub fn pre_tool_use(
    lane: &Lane,
    announced: &[u8],
    scope: &mut dyn FnMut(&ScopeRequest) -> Result<ScopeReport>,
) -> Said {
    let call = match tool_call::read(announced) {
        Ok(call) => call,
        Err(why) => return Said::refuse(format!("striatum: the tool call can't be read: {why}\n")),
    };
    match &call.does {
        Does::Other => Said::default(),
        Does::Runs(Some(line)) if is_own_command(line) => Said::default(),
        Does::Runs(_) => Said::refuse(format!(
            "striatum: {} is refused: this session is constrained\nrun one plain `striatum` command, or a declared one by \
             `striatum process run -- COMMAND`\n",
            call.tool
        )),
        Does::WritesUnknown => Said::refuse(format!(
            "striatum: {} is refused: this session is constrained, and it does not say what it writes\n{}",
            call.tool,
            instead(lane)
        )),
        Does::Writes(paths) => {
            let folder = call.cwd.as_ref().unwrap_or(&lane.cwd);
            let others: Vec<PathBuf> =
                paths.iter().map(|path| folder.join(path)).filter(|path| !is_scratch(lane, path)).collect();
            if others.is_empty() { Said::default() } else { refuse(lane, &call.tool, &others, scope) }
        }
    }
}

/// The program's own folder for temporary files is nobody else's.
fn is_scratch(lane: &Lane, path: &Path) -> bool {
    lane.scratch.as_ref().is_some_and(|folder| is_below(path, folder))
}

/// What to use instead of a tool that writes.
fn instead(lane: &Lane) -> String {
    let own =
        lane.scratch.as_ref().map_or(String::new(), |folder| format!("; a draft may lie in {}", folder.display()));
    format!(
        "use `striatum repo write --path PATH <<'EOF'` with the content behind it, or `--content-file FILE`, or `striatum \
         repo patch-preview`{own}\n"
    )
}

fn refuse(
    lane: &Lane,
    tool: &str,
    paths: &[PathBuf],
    scope: &mut dyn FnMut(&ScopeRequest) -> Result<ScopeReport>,
) -> Said {
    let mut text = format!("striatum: {tool} is refused: this session is constrained\n");
    for path in paths {
        let request = ScopeRequest {
            folder: Name::of(path.parent().unwrap_or(&lane.cwd)),
            job: None,
            run: None,
            paths: vec![Name::of(path)],
            staged: false,
            index: None,
            git_dir: None,
        };
        // Which tree it is tells the word; where that can't be known, the refusal stands without one.
        let word = match scope(&request) {
            Ok(report) if report.job.is_none() => Violation::ForeignWrite.word().to_owned(),
            Ok(report) => report.violations.first().map_or("in scope".to_owned(), |line| line.word.clone()),
            Err(_) => "not judged".to_owned(),
        };
        text.push_str(&format!("  {word}: {}\n", path.display()));
    }
    text.push_str(&instead(lane));
    Said::refuse(text)
}
