//! What only the repository around a workflow can tell: its paths come from those who know them.

use std::path::{Path, PathBuf};

use super::definition::Definition;
use super::fault::{Fault, Faults, Place};
use crate::domain::scope::{folder_holds, unmatched};

impl Definition {
    /// Refuses a lane's write path that contains or lies in a kept folder: the store, a git directory, the principal
    /// checkout. `resolve` makes a written folder absolute.
    ///
    /// # Errors
    /// Every such path.
    pub fn check_write_paths(&self, resolve: &dyn Fn(&str) -> PathBuf, kept: &[PathBuf]) -> Result<(), Faults> {
        let mut faults = Vec::new();
        for (name, lane) in &self.run.lanes {
            for folder in &lane.write_paths {
                let resolved = resolve(folder);
                if let Some(kept) = kept.iter().find(|kept| folder_holds(&resolved, kept)) {
                    let key = format!("lanes.{name}.write_paths");
                    let message = format!("`{folder}` reaches {}, which no lane may write", kept.display());
                    let fault = Fault::new(&self.place(&key), key, message);
                    faults.push(
                        fault.hint("name a folder outside the repository; the tree is writable as `writes` says"),
                    );
                }
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
    }

    /// Warns of globs that match none of the tracked paths: misspelt, or meant for what is yet to come.
    pub fn warn_of_unmatched(&mut self, tracked: &[&Path]) {
        let mut faults = Vec::new();
        for job in &self.jobs {
            for pattern in unmatched(&job.writes, tracked).unwrap_or_default() {
                let key = format!("jobs.{}.writes", job.id);
                let message = format!("`{pattern}` matches no tracked file");
                let fault = Fault::new(&self.place(&key), key, message);
                faults.push(fault.hint("fine if the job makes it; a bare folder means everything below").as_warning());
            }
        }
        self.warnings.extend(faults);
    }

    fn place(&self, key: &str) -> Place {
        self.places.get(key).cloned().unwrap_or_else(|| Place::whole(&self.file))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::{Inputs, Source, read};
    use super::*;

    const FILE: &str = r#"
schema = "striatum.workflow/1"
id = "w"
[lanes.sh]
command = "true"
write_paths = ["~/.cache/x", "/repo/.cache", "/srv"]
[[jobs]]
id = "a"
role = "author"
writes = ["src/", "scr/"]
"#;

    fn definition() -> Definition {
        let workflow = Source { name: "w.toml".into(), text: FILE.into() };
        read(&Inputs { workflow, git: true, ..Inputs::default() }).unwrap()
    }

    #[test]
    fn write_paths_that_reach_a_kept_folder_are_refused() {
        let kept = [PathBuf::from("/repo"), PathBuf::from("/srv/git/repo.git")];
        let resolve = |folder: &str| PathBuf::from(folder.replace('~', "/home/me"));
        let faults = definition().check_write_paths(&resolve, &kept).unwrap_err();
        insta::assert_snapshot!(faults, @r"
        w.toml:6:1: `/repo/.cache` reaches /repo, which no lane may write
          help: name a folder outside the repository; the tree is writable as `writes` says
        w.toml:6:1: `/srv` reaches /srv/git/repo.git, which no lane may write
          help: name a folder outside the repository; the tree is writable as `writes` says
        ");
        assert_eq!(definition().check_write_paths(&resolve, &[]), Ok(()));
    }

    #[test]
    fn globs_that_match_nothing_tracked_are_a_warning() {
        let mut definition = definition();
        definition.warn_of_unmatched(&[Path::new("src/main.rs")]);
        insta::assert_snapshot!(Faults(definition.warnings), @r"
        w.toml:10:1: warning: `scr/` matches no tracked file
          help: fine if the job makes it; a bare folder means everything below
        ");
    }
}
