//! What must hold of a store whatever happened to the processes around it.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use super::{TestRepo, connect, wait_until_within};

/// Queries that find something wrong: each must give no row, at any time.
const NEVER: [(&str, &str); 9] = [
    ("two launches of an attempt", "SELECT job_id, attempt FROM execution WHERE kind = 'agent' GROUP BY 1, 2 HAVING count(*) > 1"),
    ("a job sealed twice in an attempt", "SELECT job_id, json_extract(body, '$.attempt') FROM event WHERE type = 'job.sealed' GROUP BY 1, 2 HAVING count(*) > 1"),
    ("a fence given twice", "SELECT job_id, fence FROM lease GROUP BY 1, 2 HAVING count(*) > 1"),
    ("an attempt held twice", "SELECT job_id, attempt FROM lease GROUP BY 1, 2 HAVING count(*) > 1"),
    ("a hold of an ended session", "SELECT l.id FROM lease l JOIN session s ON s.id = l.session_id WHERE l.state = 'active' AND s.state <> 'active'"),
    ("a lease beside the wrong job state", "SELECT l.id, j.name, j.state FROM lease l JOIN job j ON j.id = l.job_id
        WHERE l.state = 'active' AND j.state NOT IN ('claimed', 'running', 'stale')"),
    ("a held job without a lease", "SELECT j.name, j.state FROM job j WHERE j.state IN ('claimed', 'running')
        AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.job_id = j.id AND l.state = 'active')"),
    ("a queued job without a message", "SELECT j.name FROM job j WHERE j.state = 'queued'
        AND NOT EXISTS (SELECT 1 FROM message m WHERE m.job_id = j.id AND m.state = 'pending')"),
    ("a wrong count of unmet needs", "SELECT j.name, j.unmet FROM job j WHERE j.unmet <>
        (SELECT count(*) FROM need n JOIN job above ON above.id = n.needs_id WHERE n.job_id = j.id AND above.settled = 0)"),
];

/// Queries that must give no row for a run that is over, once its helpers are gone.
const AFTERWARDS: [(&str, &str); 6] = [
    (
        "an active session",
        "SELECT s.id, s.role FROM session s JOIN run r ON r.id = s.run_id WHERE s.state = 'active' AND r.state IN OVER",
    ),
    (
        "an active lease",
        "SELECT l.id, l.job_id FROM lease l JOIN run r ON r.id = l.run_id WHERE l.state = 'active' AND r.state IN OVER",
    ),
    (
        "a helper that has not ended",
        "SELECT v.id, v.state FROM supervisor v JOIN session s ON s.id = v.session_id JOIN run r ON r.id = s.run_id
        WHERE v.state IN ('starting', 'attached') AND r.state IN OVER",
    ),
    (
        "an execution that has not ended",
        "SELECT e.id, e.kind, e.state FROM execution e JOIN job j ON j.id = e.job_id JOIN run r ON r.id = j.run_id
        WHERE e.state IN ('starting', 'running') AND r.state IN OVER",
    ),
    (
        "a resource that nobody has given back",
        "SELECT t.name, t.state FROM resource t JOIN run r ON r.id = t.run_id
        WHERE t.state NOT IN ('destroyed', 'left') AND r.state IN OVER",
    ),
    (
        "a live message",
        "SELECT m.id, m.state FROM message m JOIN run r ON r.id = m.run_id WHERE m.state IN ('claimed', 'acked') AND r.state IN OVER",
    ),
];

impl TestRepo {
    /// Fails unless the store is sound and each side effect happened at most once; what is over must be over whole.
    #[track_caller]
    pub fn check_sound(&self) {
        self.check_rows();
        self.check_verbs();
    }

    /// The same, without asking the program for its opinion: a missing command is a finding of `doctor`.
    #[track_caller]
    pub fn check_rows(&self) {
        let found: Vec<String> = self.rows("PRAGMA integrity_check");
        assert_eq!(found, ["ok"]);
        assert_eq!(self.rows("PRAGMA foreign_key_check"), Vec::<String>::new());
        for (what, sql) in NEVER {
            assert_eq!(self.rows(sql), Vec::<String>::new(), "{what}\n{}", self.told());
        }
        for (what, sql) in AFTERWARDS {
            let sql = sql.replace("OVER", "('completed', 'failed', 'canceled')");
            assert_eq!(self.rows(&sql), Vec::<String>::new(), "{what}\n{}", self.told());
        }
        let (_, broken) = striatum::store::event::verify(&connect(&self.db())).unwrap();
        assert!(broken.is_empty(), "{broken:?}");
        self.check_artifacts();
        self.check_effects();
    }

    /// Fails unless every process of this test ends by itself, and soon.
    #[track_caller]
    pub fn check_nobody_left(&self) {
        let ten = std::time::Duration::from_secs(10);
        let all_gone = || self.processes().is_empty();
        let end = std::time::Instant::now() + ten;
        while !all_gone() {
            assert!(std::time::Instant::now() < end, "left alive: {:#?}\n{}", self.processes(), self.told());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        wait_until_within(ten, "nobody is left", all_gone);
    }

    /// The run is completed, the store sound, and nobody is left.
    #[track_caller]
    pub fn check_completed(&self, run: &str) {
        self.check_done(run);
        self.check_verbs();
    }

    /// The same, without asking the program for its opinion.
    #[track_caller]
    pub fn check_done(&self, run: &str) {
        assert_eq!(self.run_state(run), "completed", "{}", self.told());
        self.check_nobody_left();
        self.check_rows();
    }

    /// Every event as one line, for a failed test.
    pub fn told(&self) -> String {
        let line = |event: super::Event| {
            let about = event.job.or(event.session).unwrap_or_default();
            format!("{:>4} {} {about} {} {}\n", event.id, event.kind, event.principal, event.body)
        };
        let events: String = self.events().into_iter().map(line).collect();
        format!("{events}{}", self.helper_words())
    }

    /// What helpers of this test complained about.
    pub fn helper_words(&self) -> String {
        let mut words = String::new();
        for entry in std::fs::read_dir(self.dir().join("scratch")).into_iter().flatten().flatten() {
            let log = std::fs::read_to_string(entry.path().join("helper.log")).unwrap_or_default();
            if !log.is_empty() {
                words.push_str(&format!("helper of {}: {log}", entry.file_name().display()));
            }
        }
        words
    }

    /// The most jobs that were held at once, by the events, for each lane.
    pub fn most_held(&self) -> BTreeMap<String, usize> {
        let lanes: BTreeMap<String, String> = self
            .rows("SELECT 's' || id, lane FROM session")
            .into_iter()
            .map(|row| row.split_once(' ').map(|(id, lane)| (id.to_owned(), lane.to_owned())).unwrap())
            .collect();
        let (mut held, mut most) = (BTreeMap::<i64, String>::new(), BTreeMap::new());
        for (job, kind, session) in self.holds() {
            if kind == "lease.granted" {
                held.insert(job, lanes[&session].clone());
                let lane = &lanes[&session];
                let now = held.values().filter(|other| *other == lane).count();
                let before = most.entry(lane.clone()).or_insert(0);
                *before = now.max(*before);
            } else {
                held.remove(&job);
            }
        }
        most
    }

    fn holds(&self) -> Vec<(i64, String, String)> {
        const HOLDS: &str = "SELECT job_id, type, coalesce('s' || session_id, '-') FROM event WHERE type IN
            ('lease.granted', 'job.sealed', 'job.requeued', 'job.failed', 'job.skipped', 'job.waiting', 'job.reopened',
             'job.canceled') AND job_id IS NOT NULL ORDER BY id";
        let split = |row: String| {
            let words: Vec<&str> = row.split(' ').collect();
            (words[0].parse().unwrap(), words[1].to_owned(), words[2].to_owned())
        };
        self.rows(HOLDS).into_iter().map(split).collect()
    }

    fn check_artifacts(&self) {
        for row in self.rows("SELECT DISTINCT sha256 FROM artifact") {
            let bytes = std::fs::read(self.dir().join("artifacts").join(&row)).unwrap_or_else(|e| panic!("{row}: {e}"));
            let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hash, row, "an artifact was changed");
        }
    }

    fn check_effects(&self) {
        let mut seen = BTreeSet::new();
        for effect in self.effects() {
            let key = (effect.run, effect.job, effect.attempt, effect.word);
            assert!(seen.insert(key.clone()), "happened twice: {key:?}\n{}", self.told());
        }
    }

    /// The program's own opinion, where this version has the verbs.
    fn check_verbs(&self) {
        for words in [&["doctor"][..], &["audit", "verify"]] {
            let output = self.striatum(words);
            let is_unknown = output.code == 2 && output.stderr.contains("unrecognized subcommand");
            assert!(output.code == 0 || is_unknown, "{output}");
        }
        self.check_rules();
    }

    /// Fails unless every run of the store has kept the rules of a driven run.
    #[track_caller]
    pub fn check_rules(&self) {
        for run in self.rows("SELECT name FROM run") {
            let output = self.striatum(&["audit", "verify", "--run-id", &run]);
            assert_eq!(output.code, 0, "{output}\n{}", self.told());
        }
    }
}
