//! Many processes on one queue, through the real `work claim`.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::support::{Running, STRIATUM, TestRepo, Worker};

/// So many jobs of one slot, each by hand, all of which may be held at once.
fn with_jobs(count: usize) -> TestRepo {
    let repo = TestRepo::new();
    let mut text =
        format!("[parallelism]\nmax_active_jobs = {count}\n[lanes.hand]\nmode = \"human\"\nmax_sessions = {count}\n");
    for number in 0..count {
        write!(text, "[[jobs]]\nid = \"j{number}\"\nrole = \"maker\"\nlane = \"hand\"\ntree = \"none\"\n").unwrap();
    }
    repo.workflow("w", &text);
    repo.start("w");
    repo
}

fn register<'a>(repo: &'a TestRepo, count: usize) -> Vec<Worker<'a>> {
    (0..count).map(|_| repo.register("maker", "hand")).collect()
}

/// No process was ever shown SQLite's own words about locks.
fn says_nothing_raw(text: &str) -> bool {
    !["database is locked", "database table is locked", "SQLITE_", "os error"].iter().any(|raw| text.contains(raw))
}

#[test]
fn sixteen_processes_on_one_queue_claim_each_message_once_and_get_their_share() {
    const JOBS: usize = 160;
    const WORKERS: usize = 16;
    let repo = with_jobs(JOBS);
    let workers = register(&repo, WORKERS);
    // Each worker is a shell that claims and completes until nothing is left.
    let script = r#"
        while :; do
          claimed=$("$1" work claim --json)
          case $claimed in
            *'"status":"claimed"'*) ;;
            # Nothing is left, or the run is over and has closed its sessions.
            *'"status":"no_work"'* | *'"code":"session_ended"'*) exit 0 ;;
            *) echo "claim failed: $claimed" >&2; exit 1 ;;
          esac
          fence=$(printf '%s' "$claimed" | sed 's/.*"fence":\([0-9]*\).*/\1/')
          printf '%s %s\n' "$STRIATUM_SESSION" "$claimed" >> "$2"
          "$1" work complete --fence "$fence" > /dev/null || exit 1
        done"#;
    let log = repo.root().join("claims.log");
    let running: Vec<Running> = workers
        .iter()
        .map(|worker| {
            let mut command = repo.command_of("sh", &["-c", script, "worker", STRIATUM, &log.display().to_string()]);
            command.env("STRIATUM_SESSION", &worker.session).env("STRIATUM_TOKEN_FILE", &worker.token_file);
            repo.spawn_command(command)
        })
        .collect();
    for worker in running {
        let worker = worker.wait().ok();
        assert!(says_nothing_raw(&worker.stderr), "{worker}");
    }

    let mut jobs: BTreeMap<String, usize> = BTreeMap::new();
    let mut shares: BTreeMap<String, usize> = BTreeMap::new();
    for line in std::fs::read_to_string(&log).unwrap().lines() {
        let (session, report) = line.split_once(' ').unwrap();
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        *jobs.entry(report["job"].as_str().unwrap().to_owned()).or_default() += 1;
        *shares.entry(session.to_owned()).or_default() += 1;
    }
    assert_eq!(jobs.len(), JOBS);
    assert!(jobs.values().all(|count| *count == 1), "{jobs:?}");
    // Fair as counts: nobody starves, nobody takes it all. (SQLite's own wait gave one worker of 32 a single claim.)
    assert_eq!(shares.len(), WORKERS);
    let (least, most) = (shares.values().min().unwrap(), shares.values().max().unwrap());
    assert!(*least >= 3 && *most <= 30, "{shares:?}");
    // The transaction that sealed the last job closed the run.
    assert_eq!(repo.run_state("w-1"), "completed");
    assert_eq!(repo.count("job WHERE state <> 'completed'"), 0);
    assert_eq!(repo.count("event WHERE type = 'run.completed'"), 1);
    assert_eq!(repo.rows("PRAGMA integrity_check"), ["ok"]);
}

#[test]
fn fifty_processes_claim_one_message_and_exactly_one_gets_it() {
    const ALL: usize = 50;
    let repo = with_jobs(ALL);
    let mut workers = register(&repo, ALL);
    for number in 0..ALL - 1 {
        assert_eq!(workers[0].claims(), format!("j{number}.1"));
        workers[0].work(&["complete"]).ok();
    }
    assert_eq!(repo.count("message WHERE state = 'pending'"), 1);
    let claims: Vec<Running> = workers.iter().map(|worker| repo.spawn_command(worker.command(&["claim"]))).collect();
    let reports: Vec<_> = claims.into_iter().map(|claim| claim.wait().ok()).collect();
    assert!(reports.iter().all(|report| says_nothing_raw(&report.stderr)));
    let claimed: Vec<_> =
        reports.iter().map(|report| report.value()).filter(|report| report["status"] == "claimed").collect();
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    assert_eq!(claimed[0]["job"], format!("j{}", ALL - 1));
    assert_eq!(repo.count("lease WHERE state = 'active'"), 1);
}

#[test]
fn one_session_that_claims_fifty_times_at_once_gets_one_message() {
    let repo = with_jobs(3);
    let worker = repo.register("maker", "hand");
    let claims: Vec<Running> = (0..50).map(|_| repo.spawn_command(worker.command(&["claim"]))).collect();
    let codes: Vec<i32> = claims.into_iter().map(|claim| claim.wait().code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 5).count(), 49, "{codes:?}");
    assert_eq!(repo.count("lease"), 1);
}

#[test]
fn capacity_is_never_passed_however_many_claim_at_once() {
    let repo = with_jobs(16);
    let narrow = repo.read(".striatum/workflows/w.toml").replace("max_active_jobs = 16", "max_active_jobs = 5");
    repo.write(".striatum/workflows/n.toml", narrow.replace("id = \"w\"", "id = \"n\""));
    repo.json(&["run", "cancel", "--run-id", "w-1", "--reason", "another one", "--yes"]).ok();
    repo.start("n");
    let workers = register(&repo, 16);
    let claims: Vec<Running> = workers.iter().map(|worker| repo.spawn_command(worker.command(&["claim"]))).collect();
    let reports: Vec<_> = claims.into_iter().map(|claim| claim.wait().ok().value()).collect();
    assert_eq!(reports.iter().filter(|report| report["status"] == "claimed").count(), 5);
    assert!(reports.iter().filter(|report| report["status"] == "no_work").all(|report| report["reason"] == "capacity"));
    assert_eq!(repo.count("lease WHERE state = 'active'"), 5);
}

#[test]
fn writers_that_are_killed_at_any_moment_leave_a_sound_store() {
    let repo = with_jobs(2);
    let worker = repo.register("maker", "hand");
    for round in 0..60_u64 {
        let mut writer = repo.spawn_command(worker.command(&[if round % 2 == 0 { "claim" } else { "heartbeat" }]));
        // Another moment of its short life each time, counted in its own reads of the processor's clock.
        for _ in 0..round * 40 {
            if writer.has_ended() {
                break;
            }
        }
        if !writer.has_ended() {
            writer.kill();
        }
    }
    assert_eq!(repo.rows("PRAGMA integrity_check"), ["ok"]);
    // What was acknowledged is there and the chain has no gap; the next writer waits for nobody.
    assert_eq!(repo.rows("SELECT count(*) = max(id) AND min(id) = 1 FROM event"), ["1"]);
    let held = repo.count("lease WHERE state = 'active'");
    assert!(held <= 1, "{held}");
    repo.register("maker", "hand");
}

#[test]
fn the_log_stays_bounded_beside_a_reader_that_never_ends() {
    let repo = with_jobs(8);
    let workers = register(&repo, 8);
    let mut reader = crate::support::connect(&repo.db());
    let reading = reader.transaction().unwrap();
    let count = |reading: &rusqlite::Connection| -> i64 {
        reading.query_row("SELECT count(*) FROM event", (), |row| row.get(0)).unwrap()
    };
    let before = count(&reading);
    let script =
        r#"for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do "$1" work heartbeat --fence "$2" > /dev/null || exit 1; done"#;
    let running: Vec<Running> = workers
        .into_iter()
        .map(|mut worker| {
            worker.claims();
            let fence = worker.fence.unwrap().to_string();
            let mut command = repo.command_of("sh", &["-c", script, "worker", STRIATUM, &fence]);
            command.env("STRIATUM_SESSION", &worker.session).env("STRIATUM_TOKEN_FILE", &worker.token_file);
            repo.spawn_command(command)
        })
        .collect();
    for worker in running {
        worker.wait().ok();
    }
    assert_eq!(count(&reading), before, "a read is of one moment");
    drop(reading);
    drop(reader);
    let log = std::fs::metadata(repo.dir().join("striatum.db-wal")).unwrap().len();
    assert!(log < 32 * 1024 * 1024, "{log} bytes");
    assert_eq!(repo.rows("PRAGMA integrity_check"), ["ok"]);
}
