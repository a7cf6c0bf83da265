//! The hook that has nothing to say, beside the least process that opens a database, an empty hook and none (G3).

use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;

use crate::measure::{Caller, median, race, ratio};
use crate::table::{AtMost, Table, Unit};
use crate::trial::{STRIATUM, Trial, cleared, folder, succeed};
use crate::workload::Shape;
use crate::{Outcome, Plan, anchor, progress};

/// Jobs of the run in the store.
const JOBS: usize = 1_000;

/// Measures.
pub fn compare(plan: &Plan, table: &mut Table) -> Outcome<()> {
    progress("G3: hooks outside a job's tree");
    let trial = Trial::started(Shape::Fan(JOBS), 8)?;
    let linked = linked(&trial)?;
    let place = folder()?;
    let db = place.path().join("anchor.db");
    anchor::make(&db)?;
    processes(plan, table, &Place { trial: &trial, linked: &linked, db: &db, what: "" })?;
    let writer = Connection::open(trial.db())?;
    writer.execute_batch("BEGIN IMMEDIATE")?;
    processes(plan, table, &Place { trial: &trial, linked: &linked, db: &db, what: ", while somebody writes" })?;
    writer.execute_batch("ROLLBACK")?;
    commits(plan, table, &trial)
}

/// Where hooks are called.
struct Place<'a> {
    trial: &'a Trial,
    linked: &'a Path,
    db: &'a Path,
    what: &'static str,
}

/// A linked work tree of the user's own, beside the repository: there the store has to be asked.
fn linked(trial: &Trial) -> Outcome<PathBuf> {
    git(trial, trial.path(), &["commit", "--quiet", "--allow-empty", "--message", "First"])?;
    git(trial, trial.path(), &["worktree", "add", "--quiet", "--detach", "own"])?;
    Ok(trial.path().join("own"))
}

fn git(trial: &Trial, folder: &Path, words: &[&str]) -> Outcome<()> {
    let mut git = trial.cleared(Command::new("git"));
    git.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(words).current_dir(folder);
    succeed(&mut git).map(|_| ())
}

fn processes(plan: &Plan, table: &mut Table, place: &Place<'_>) -> Outcome<()> {
    let hook = |folder: &Path, words: &[&str]| {
        let mut hook = place.trial.striatum(words);
        hook.current_dir(folder);
        hook
    };
    let mut callers: Vec<Caller<'_>> = vec![
        Box::new(|_| {
            let mut read = cleared(anchor::command("read"), place.trial.path());
            read.arg(place.db);
            read
        }),
        Box::new(|_| place.trial.cleared(Command::new("/bin/true"))),
        Box::new(|_| hook(place.trial.path(), &["hook", "pre-commit"])),
        Box::new(|_| hook(place.linked, &["hook", "pre-commit"])),
        Box::new(|_| hook(place.trial.path(), &["hook", "pre-push", "origin", "nowhere"])),
    ];
    let times = race(&mut callers, plan.rounds, plan.calls)?;
    let [anchor, empty, hooks @ ..] = times.as_slice() else { return Ok(()) };
    let names = ["pre-commit", "pre-commit in a linked tree", "pre-push"];
    for (name, times) in names.iter().zip(hooks) {
        let absolute =
            format!("{:.2} ms; R {:.2} ms, /bin/true {:.2} ms", median(times), median(anchor), median(empty));
        let case = AtMost { limit: 1.2, measured: ratio(times, anchor), unit: Unit::Times, absolute };
        table.at_most("G3", format!("{name}{} / R", place.what), case);
    }
    Ok(())
}

/// Whole commits: with the installed scripts, with an empty hook, without any.
fn commits(plan: &Plan, table: &mut Table, trial: &Trial) -> Outcome<()> {
    progress("G3: commits with and without hooks");
    let home = trial.path().join(".git/empty");
    std::fs::create_dir_all(home.join("none"))?;
    succeed(&mut trial.striatum(["hook", "install"]))?;
    let empty = home.join("empty");
    std::fs::create_dir_all(&empty)?;
    for hook in ["pre-commit", "commit-msg"] {
        std::os::unix::fs::symlink("/bin/true", empty.join(hook))?;
    }
    let commit = |hooks: &Path| {
        let mut git = trial.cleared(Command::new("git"));
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c"]);
        git.arg(format!("core.hooksPath={}", hooks.display()));
        git.args(["commit", "--quiet", "--allow-empty", "--message", "Again"]);
        let own = Path::new(STRIATUM).parent().unwrap_or(Path::new("/"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(own.to_owned()).chain(std::env::split_paths(&path));
        git.env("PATH", std::env::join_paths(all).unwrap_or(path));
        git
    };
    let (none, ours) = (home.join("none"), trial.path().join(".git/hooks"));
    let mut callers: Vec<Caller<'_>> =
        vec![Box::new(|_| commit(&none)), Box::new(|_| commit(&empty)), Box::new(|_| commit(&ours))];
    let times = race(&mut callers, plan.rounds, plan.calls)?;
    let [none, empty, ours] = times.as_slice() else { return Ok(()) };
    let absolute =
        format!("{:.1} ms; with empty hooks {:.1} ms, without any {:.1} ms", median(ours), median(empty), median(none));
    // Two hooks a commit, each a shell and a process.
    let measured = median(ours) - median(empty);
    table.at_most(
        "G3",
        "commit with both hooks, over empty ones",
        AtMost { limit: 8.0, measured, unit: Unit::Ms, absolute },
    );
    Ok(())
}
