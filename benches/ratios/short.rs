//! Short verbs beside the least process that opens a database (G1, G2, G4, and their memory, G14).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::measure::{Caller, median, peak, race, ratio};
use crate::table::{AtMost, Table, Unit};
use crate::trial::{Trial, cleared, folder, succeed};
use crate::workload::Shape;
use crate::{Outcome, Plan, anchor, progress};

/// Jobs of the run that is looked at.
const JOBS: usize = 1_000;

/// Jobs side by side.
const PARALLEL: usize = 8;

/// A run with some work in it, and the anchors' database.
struct Bench {
    trial: Trial,
    folder: tempfile::TempDir,
}

/// Measures.
pub fn compare(plan: &Plan, table: &mut Table) -> Outcome<()> {
    progress(&format!("short verbs: a run of {JOBS} jobs"));
    let bench = Bench::new(Trial::started(Shape::Fan(JOBS), PARALLEL)?)?;
    // A session that works, so that there is something to see.
    Held::claim(&bench.trial)?;
    if plan.wants("G1") || plan.wants("G4") {
        reads(&bench, plan, table)?;
    }
    if plan.wants("G4") {
        opening(&bench, table)?;
    }
    if plan.wants("G14") {
        memory(&bench, table)?;
    }
    if plan.wants("G2") {
        // A claim each, and still more offers than that.
        let calls = plan.rounds * (plan.calls + 2);
        let queue = Bench::new(Trial::started(Shape::Fan(JOBS + calls), 1_000)?)?;
        writes(&queue, calls, plan, table)?;
    }
    Ok(())
}

impl Bench {
    fn new(trial: Trial) -> Outcome<Bench> {
        let bench = Bench { trial, folder: folder()? };
        anchor::make(&bench.anchor_db())?;
        Ok(bench)
    }

    fn anchor_db(&self) -> PathBuf {
        self.folder.path().join("anchor.db")
    }

    fn anchor(&self, mode: &str) -> Command {
        let mut command = cleared(anchor::command(mode), self.trial.path());
        command.arg(self.anchor_db());
        command
    }

    /// The reading verbs that this binary has.
    fn reads(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        let wanted = [
            ("session list", vec!["session", "list"]),
            ("job show", vec!["job", "show", "j700"]),
            ("run summary", vec!["run", "summary"]),
            ("status", vec!["status"]),
            ("inbox", vec!["inbox"]),
        ];
        wanted
            .into_iter()
            .filter(|(_, words)| self.trial.knows(words.get(..words.len().min(2)).unwrap_or(words)))
            .collect()
    }
}

fn reads(bench: &Bench, plan: &Plan, table: &mut Table) -> Outcome<()> {
    let verbs = bench.reads();
    progress(&format!("G1: {} reading verbs beside R", verbs.len()));
    let mut git = bench.trial.cleared(Command::new("git"));
    git.arg("--version");
    let mut callers: Vec<Caller<'_>> = vec![Box::new(|_| bench.anchor("read")), Box::new(move |_| copy(&git))];
    for (_, words) in &verbs {
        callers.push(Box::new(move |_| bench.trial.striatum(words)));
    }
    let times = race(&mut callers, plan.rounds, plan.calls)?;
    let [anchor, git, verb_times @ ..] = times.as_slice() else { return Ok(()) };
    for ((name, _), times) in verbs.iter().zip(verb_times) {
        let absolute =
            format!("{:.2} ms; R {:.2} ms, git --version {:.2} ms", median(times), median(anchor), median(git));
        if plan.wants("G1") {
            let measured = ratio(times, anchor);
            table.at_most("G1", format!("{name} / R"), AtMost { limit: 1.5, measured, unit: Unit::Times, absolute });
            let measured = ratio(times, git);
            let absolute = String::new();
            table.at_most(
                "G1",
                format!("{name} / git --version"),
                AtMost { limit: 2.0, measured, unit: Unit::Times, absolute },
            );
        }
    }
    if let Some(cheapest) = verb_times.iter().map(|times| median(times)).min_by(f64::total_cmp)
        && plan.wants("G4")
    {
        let measured = cheapest - median(anchor);
        let absolute = format!("{cheapest:.2} ms; R {:.2} ms", median(anchor));
        table.at_most("G4", "opening, over R", AtMost { limit: 0.5, measured, unit: Unit::Ms, absolute });
    }
    Ok(())
}

fn copy(command: &Command) -> Command {
    let mut copy = Command::new(command.get_program());
    copy.args(command.get_args()).env_clear();
    copy.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        copy.current_dir(folder);
    }
    copy
}

/// A session that nothing hosts and that holds a job.
struct Held {
    session: String,
    token: PathBuf,
    fence: String,
}

impl Held {
    fn register(trial: &Trial) -> Outcome<(String, PathBuf)> {
        let words = ["register-session", "--json", "--role", "worker", "--lane", "t"];
        let report: serde_json::Value = serde_json::from_slice(&succeed(&mut trial.striatum(words))?.stdout)?;
        let text = |key: &str| report.get(key).and_then(serde_json::Value::as_str).ok_or(format!("no {key}"));
        Ok((text("session")?.to_owned(), PathBuf::from(text("token_file")?)))
    }

    fn claim(trial: &Trial) -> Outcome<Held> {
        let (session, token) = Held::register(trial)?;
        let mut claim = speak(trial, "claim", &session, &token);
        let report: serde_json::Value = serde_json::from_slice(&succeed(claim.arg("--json"))?.stdout)?;
        let fence = report.get("fence").and_then(serde_json::Value::as_i64).ok_or("no fence")?.to_string();
        Ok(Held { session, token, fence })
    }
}

fn speak(trial: &Trial, verb: &str, session: &str, token: &Path) -> Command {
    let mut command = trial.striatum(["work", verb, "--session-id", session]);
    command.arg("--token-file").arg(token);
    command
}

fn writes(bench: &Bench, calls: usize, plan: &Plan, table: &mut Table) -> Outcome<()> {
    progress("G2: registering a session for each claim");
    let held = Held::claim(&bench.trial)?;
    let sessions = (0..calls).map(|_| Held::register(&bench.trial)).collect::<Outcome<Vec<_>>>()?;
    progress("G2: writing verbs beside W");
    let trial = &bench.trial;
    let mut callers: Vec<Caller<'_>> = vec![
        Box::new(|_| bench.anchor("write")),
        Box::new(|_| {
            let mut command = speak(trial, "heartbeat", &held.session, &held.token);
            command.args(["--fence", &held.fence]);
            command
        }),
        Box::new(|call| match sessions.get(call) {
            Some((session, token)) => speak(trial, "claim", session, token),
            None => Command::new("false"),
        }),
        Box::new(|call| match sessions.get(call) {
            // The fence of a first claim is 1.
            Some((session, token)) => {
                let mut command = speak(trial, "ack", session, token);
                command.args(["--fence", "1"]);
                command
            }
            None => Command::new("false"),
        }),
    ];
    let times = race(&mut callers, plan.rounds, plan.calls)?;
    let [anchor, verbs @ ..] = times.as_slice() else { return Ok(()) };
    for (name, times) in ["work heartbeat", "work claim", "work ack"].iter().zip(verbs) {
        let absolute = format!("{:.2} ms; W {:.2} ms", median(times), median(anchor));
        let measured = ratio(times, anchor);
        table.at_most("G2", format!("{name} / W"), AtMost { limit: 1.5, measured, unit: Unit::Times, absolute });
    }
    Ok(())
}

/// What the kernel is asked by the cheapest reading verb.
fn opening(bench: &Bench, table: &mut Table) -> Outcome<()> {
    let log = bench.folder.path().join("strace.log");
    let mut strace = bench.trial.cleared(Command::new("strace"));
    strace.args(["-f", "-qq", "-e", "trace=clone,clone3,fork,vfork,open,openat", "-o"]).arg(&log);
    strace.arg(crate::trial::STRIATUM).args(["session", "list"]);
    if succeed(&mut strace).is_err() {
        table.not_run("G4", "threads and opens of a short verb", "no strace that works here");
        return Ok(());
    }
    let calls = std::fs::read_to_string(&log)?;
    let count = |what: &dyn Fn(&str) -> bool| calls.lines().filter(|line| what(line)).count() as f64;
    let clones = count(&|line| line.contains("clone") || line.contains("fork("));
    let opens = count(&|line| line.contains("striatum.db\""));
    let all = count(&|line| line.contains("open"));
    let absolute = format!("{all:.0} files opened in all");
    let case = |limit, measured| AtMost { limit, measured, unit: Unit::Count, absolute: absolute.clone() };
    table.at_most("G4", "threads and processes started by a short verb", case(0.0, clones));
    table.at_most("G4", "opens of the database by a short verb", case(1.0, opens));
    Ok(())
}

fn memory(bench: &Bench, table: &mut Table) -> Outcome<()> {
    progress("G14: memory of a short verb");
    let anchor = peak(&bench.anchor("read"))?;
    let (mut name, mut most) = ("", 0.0);
    for (verb, words) in bench.reads() {
        let size = peak(&bench.trial.striatum(words))?;
        if size > most {
            (name, most) = (verb, size);
        }
    }
    let absolute = format!("{most:.1} MiB; R {anchor:.1} MiB");
    let case = AtMost { limit: 2.0, measured: most / anchor, unit: Unit::Times, absolute };
    table.at_most("G14", format!("peak memory, {name} / R"), case);
    Ok(())
}
