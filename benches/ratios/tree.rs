//! What work trees cost: making one, and settling and integrating what was changed in it, beside bare git doing the
//! same in the same repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::measure::{median, time};
use crate::table::{AtMost, Table, Unit};
use crate::trial::{Trial, succeed};
use crate::{Outcome, Plan, progress};

/// The most that it may cost beside bare git, as this project sets itself: a process, a few commits of the store, and
/// the comparison of the checkout come on top of what git does.
const LIMIT: f64 = 3.0;

/// Measures.
pub fn compare(plan: &Plan, table: &mut Table) -> Outcome<()> {
    let sizes: &[(usize, usize)] =
        if plan.quick { &[(100, 4), (10_000, 3)] } else { &[(100, 8), (10_000, 4), (100_000, 2)] };
    for (files, trees) in sizes {
        progress(&format!("TREE: a repository of {files} files"));
        one(table, *files, *trees)?;
    }
    Ok(())
}

fn one(table: &mut Table, files: usize, trees: usize) -> Outcome<()> {
    let trial = Trial::new()?;
    fill(&trial, files)?;
    let sessions = begin(&trial, trees)?;
    let bare = |number: usize| trial.path().join(".striatum/bare").join(number.to_string());
    let (mut made, mut added) = (Vec::new(), Vec::new());
    for (number, session) in sessions.iter().enumerate() {
        made.push(time(&mut trial.striatum(session.words("claim")))?);
        let mut add = trial.cleared(Command::new("git"));
        added.push(time(add.args(["worktree", "add", "--quiet", "--detach"]).arg(bare(number)).arg("HEAD"))?);
    }
    let (mut settled, mut committed) = (Vec::new(), Vec::new());
    for (number, session) in sessions.iter().enumerate() {
        change(&tree(&trial, number), number)?;
        change(&bare(number), number)?;
        settled.push(time(&mut trial.striatum(session.words("complete")))?);
        committed.push(commit(&trial, &bare(number))?);
    }
    row(table, format!("provision, {files} files / git worktree add"), &made, &added);
    row(table, format!("settle, {files} files / git add, commit, merge-tree"), &settled, &committed);
    Ok(())
}

fn row(table: &mut Table, what: String, ours: &[f64], bare: &[f64]) {
    let absolute = format!("{:.1} ms; git {:.1} ms", median(ours), median(bare));
    let measured = median(ours) / median(bare);
    table.at_most("TREE", what, AtMost { limit: LIMIT, measured, unit: Unit::Times, absolute });
}

/// Small files in folders of a hundred, committed.
fn fill(trial: &Trial, files: usize) -> Outcome<()> {
    for number in 0..files {
        let folder = trial.path().join(format!("src/{}", number / 100));
        if number % 100 == 0 {
            std::fs::create_dir_all(&folder)?;
        }
        std::fs::write(folder.join(format!("{number}.txt")), format!("file {number}\n"))?;
    }
    std::fs::write(trial.path().join(".striatum/.gitignore"), "*\n")?;
    for words in [["config", "user.name", "bench"], ["config", "user.email", "bench@localhost"]] {
        succeed(trial.cleared(Command::new("git")).args(words))?;
    }
    succeed(trial.cleared(Command::new("git")).args(["add", "--all"]))?;
    succeed(trial.cleared(Command::new("git")).args(["commit", "--quiet", "-m", "files"]))?;
    Ok(())
}

/// A session by hand and the fence of its claim.
struct Seat {
    id: String,
    token: PathBuf,
}

impl Seat {
    fn words(&self, verb: &str) -> Vec<String> {
        let token = self.token.display().to_string();
        let mut words = vec!["work".to_owned(), verb.to_owned(), "--session-id".to_owned(), self.id.clone()];
        words.extend(["--token-file".to_owned(), token]);
        if verb == "complete" {
            words.extend(["--fence".to_owned(), "1".to_owned()]);
        }
        words
    }
}

/// A started run with a job for each tree, and a session for each.
fn begin(trial: &Trial, trees: usize) -> Outcome<Vec<Seat>> {
    let mut text = "schema = \"striatum.workflow/1\"\nid = \"w\"\n[parallelism]\nmax_active_jobs = 64\n\
        [lanes.hand]\nmode = \"human\"\nmax_sessions = 64\n"
        .to_owned();
    for number in 0..trees {
        text.push_str(&format!(
            "[[jobs]]\nid = \"j{number}\"\nrole = \"worker\"\nlane = \"hand\"\nobjective = \"x\"\n\
             writes = [\"out/{number}/\"]\n"
        ));
    }
    std::fs::write(trial.path().join(".striatum/workflows/w.toml"), text)?;
    succeed(&mut trial.striatum(["trust", "--as-person", "--yes"]))?;
    succeed(&mut trial.striatum(["run", "prepare", "-w", "w"]))?;
    succeed(&mut trial.striatum(["run", "start"]))?;
    let register = ["register-session", "--run-id", "w-1", "--role", "worker", "--lane", "hand", "--json"];
    let mut seats = Vec::new();
    for _ in 0..trees {
        let output = succeed(&mut trial.striatum(register))?;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let id = report["session"].as_str().ok_or("a session's id")?.to_owned();
        let token = trial.path().join(".striatum/scratch").join(&id).join("token");
        seats.push(Seat { id, token });
    }
    Ok(seats)
}

fn tree(trial: &Trial, number: usize) -> PathBuf {
    trial.path().join(format!(".striatum/worktrees/w-1/j{number}.1"))
}

fn change(tree: &Path, number: usize) -> Outcome<()> {
    std::fs::create_dir_all(tree.join(format!("out/{number}")))?;
    Ok(std::fs::write(tree.join(format!("out/{number}/new.txt")), "new\n")?)
}

/// The same with bare git: add, commit, merge with the branch as it is.
fn commit(trial: &Trial, tree: &Path) -> Outcome<f64> {
    let git = |words: &[&str]| {
        let mut git = trial.cleared(Command::new("git"));
        git.arg("-C").arg(tree).args(words);
        time(&mut git)
    };
    Ok(git(&["add", "--all"])? + git(&["commit", "--quiet", "-m", "new"])? + git(&["merge-tree", "main", "HEAD"])?)
}
