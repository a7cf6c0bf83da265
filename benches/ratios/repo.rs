//! Mediated changes beside the plain ones: a write, a patch, a look at the scope; and what the kernel's hold costs at a
//! program's start.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::measure::{Caller, median, race, ratio};
use crate::table::{AtMost, Table, Unit};
use crate::trial::{STRIATUM, Trial, cleared, folder, succeed};
use crate::{Outcome, Plan, anchor, progress};

/// Files of the repository.
const FILES: usize = 1_000;

const WORKFLOW: &str = r#"
schema = "striatum.workflow/1"
id = "w"
[lanes.hand]
mode = "human"
[[jobs]]
id = "fix"
role = "owner"
lane = "hand"
writes = ["src/"]
"#;

/// Measures.
pub fn compare(plan: &Plan, table: &mut Table) -> Outcome<()> {
    progress("REPO: a tree of a thousand files");
    let held = Held::new()?;
    writes(plan, table, &held)?;
    looks(plan, table, &held)?;
    patches(plan, table, &held)?;
    starts(plan, table)
}

/// A job in somebody's hands.
struct Held {
    trial: Trial,
    tree: PathBuf,
    who: Vec<String>,
}

impl Held {
    fn new() -> Outcome<Held> {
        let trial = Trial::new()?;
        let top = trial.path().to_owned();
        std::fs::create_dir_all(top.join("src"))?;
        for number in 0..FILES {
            std::fs::write(top.join(format!("src/{number}.txt")), "one\n".repeat(40))?;
        }
        std::fs::write(top.join("src/patched.txt"), "old\n")?;
        std::fs::write(top.join(".gitignore"), ".striatum/\n")?;
        for words in [&["add", "--all"][..], &["commit", "--quiet", "--message", "First"]] {
            let mut git = trial.cleared(Command::new("git"));
            succeed(git.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(words))?;
        }
        std::fs::write(top.join(".striatum/workflows/w.toml"), WORKFLOW)?;
        succeed(&mut trial.striatum(["trust", "--as-person", "--yes"]))?;
        succeed(&mut trial.striatum(["run", "prepare", "-w", "w"]))?;
        succeed(&mut trial.striatum(["run", "start"]))?;
        let asked = |words: &[&str]| -> Outcome<serde_json::Value> {
            Ok(serde_json::from_slice(&succeed(trial.striatum(words).arg("--json"))?.stdout)?)
        };
        let session = asked(&["register-session", "--role", "owner", "--lane", "hand"])?;
        let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let mut who = vec!["--session-id".to_owned(), word(&session["session"])];
        who.extend(["--token-file".to_owned(), word(&session["token_file"])]);
        let mut words = vec!["work", "claim"];
        words.extend(who.iter().map(String::as_str));
        let claimed = asked(&words)?;
        who.extend(["--fence".to_owned(), claimed["fence"].to_string()]);
        Ok(Held { tree: word(&claimed["cwd"]).into(), trial, who })
    }

    fn repo(&self, words: &[&str]) -> Command {
        let mut command = self.trial.striatum(["repo"]);
        command.args(words).args(&self.who);
        command
    }

    fn input(&self, name: &str, text: &str) -> Outcome<String> {
        let path = self.trial.path().join(".git").join(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    }
}

fn writes(plan: &Plan, table: &mut Table, held: &Held) -> Outcome<()> {
    progress("REPO: writes");
    let place = folder()?;
    let db = place.path().join("anchor.db");
    anchor::make(&db)?;
    let contents: Vec<String> = (0..2)
        .map(|number| held.input(&format!("content-{number}"), &format!("{number}\n")))
        .collect::<Outcome<_>>()?;
    let plain = place.path().join("plain.txt");
    let mut callers: Vec<Caller<'_>> = vec![
        Box::new(|_| {
            let mut write = cleared(anchor::command("write"), held.trial.path());
            write.arg(&db);
            write
        }),
        Box::new(|number| {
            let mut dd = held.trial.cleared(Command::new("dd"));
            dd.arg(format!("if={}", contents[number % 2])).arg(format!("of={}", plain.display()));
            dd.args(["conv=fsync", "status=none"]);
            dd
        }),
        Box::new(|number| held.repo(&["write", "--path", "src/written.txt", "--content-file", &contents[number % 2]])),
    ];
    let times = race(&mut callers, plan.rounds, plan.calls)?;
    let [store, plain, ours] = times.as_slice() else { return Ok(()) };
    let both: Vec<f64> = store.iter().zip(plain).map(|(store, plain)| store + plain).collect();
    let absolute = format!("{:.2} ms; W {:.2} ms, dd with fsync {:.2} ms", median(ours), median(store), median(plain));
    let case = AtMost { limit: 2.0, measured: ratio(ours, &both), unit: Unit::Times, absolute };
    table.at_most("REPO", "repo write / (W + a plain write)", case);
    Ok(())
}

fn looks(plan: &Plan, table: &mut Table, held: &Held) -> Outcome<()> {
    progress("REPO: looks at the scope");
    let at = |mut command: Command| {
        command.current_dir(&held.tree);
        command
    };
    let mut callers: Vec<Caller<'_>> = vec![
        Box::new(|_| {
            let mut git = held.trial.cleared(Command::new("git"));
            git.args(["status", "--porcelain"]);
            at(git)
        }),
        Box::new(|_| at(held.trial.striatum(["scope-check", "src/1.txt"]))),
        Box::new(|_| at(held.trial.striatum(["scope-check"]))),
    ];
    let times = race(&mut callers, plan.rounds, plan.calls)?;
    let [status, path, all] = times.as_slice() else { return Ok(()) };
    for (what, times, limit) in [("scope-check PATH", path, 1.0), ("scope-check", all, 5.0)] {
        let absolute = format!("{:.2} ms; git status {:.2} ms", median(times), median(status));
        let case = AtMost { limit, measured: ratio(times, status), unit: Unit::Times, absolute };
        table.at_most("REPO", format!("{what} / git status"), case);
    }
    Ok(())
}

fn patches(plan: &Plan, table: &mut Table, held: &Held) -> Outcome<()> {
    progress("REPO: patches");
    let text = |from: &str, to: &str| {
        let name = "src/patched.txt";
        format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{from}\n+{to}\n")
    };
    let patches = [held.input("there", &text("old", "new"))?, held.input("back", &text("new", "old"))?];
    let git = |words: &[&str], file: &str, top: &Path| {
        let mut git = held.trial.cleared(Command::new("git"));
        git.args(words).arg(file).current_dir(top);
        git
    };
    let mut callers: Vec<Caller<'_>> = vec![
        Box::new(|number| git(&["apply"], &patches[number % 2], held.trial.path())),
        Box::new(|number| {
            held.repo(&[
                "patch-apply",
                "--token",
                &token(held, &patches[number % 2]),
                "--patch-file",
                &patches[number % 2],
            ])
        }),
    ];
    let times = race(&mut callers, plan.rounds, plan.calls)?;
    let [plain, ours] = times.as_slice() else { return Ok(()) };
    let absolute = format!("{:.1} ms; git apply {:.1} ms", median(ours), median(plain));
    let case = AtMost { limit: 20.0, measured: ratio(ours, plain), unit: Unit::Times, absolute };
    table.at_most("REPO", "repo patch-apply / git apply", case);
    Ok(())
}

/// What a preview tells; it is no part of what is measured.
fn token(held: &Held, patch: &str) -> String {
    let shown = held.repo(&["patch-preview", "--patch-file", patch, "--json"]).output();
    let document = shown.ok().and_then(|shown| serde_json::from_slice::<serde_json::Value>(&shown.stdout).ok());
    document.and_then(|document| Some(document["token"].as_str()?.to_owned())).unwrap_or_default()
}

fn starts(plan: &Plan, table: &mut Table) -> Outcome<()> {
    progress("REPO: starts of a held program");
    let place = folder()?;
    let writable = format!("writable={}", place.path().display());
    let start = |words: &[&str]| {
        let mut step = cleared(Command::new(STRIATUM), place.path());
        step.arg("__confined").args(words).args(["--", "/bin/true"]);
        step
    };
    let mut callers: Vec<Caller<'_>> =
        vec![Box::new(|_| start(&[])), Box::new(|_| start(&["confine", &writable, "writable=/tmp"]))];
    let times = race(&mut callers, plan.rounds, plan.calls)?;
    let [free, held] = times.as_slice() else { return Ok(()) };
    let absolute = format!("{:.2} ms; without {:.2} ms", median(held), median(free));
    let case = AtMost { limit: 1.0, measured: median(held) - median(free), unit: Unit::Ms, absolute };
    table.at_most("REPO", "what the kernel's hold costs at a start", case);
    Ok(())
}
