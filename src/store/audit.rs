//! What the log must tell of the rows: each statement finds rows that the log does not bear out, or the other way.
//!
//! The chain itself is `event::verify`; it proves that what is told was not changed, this that nothing is left untold.

use rusqlite::Connection;

use super::columns::Json;
use super::invariant::Invariant;
use super::{StoreError, StoreResult};
use crate::domain::frozen::Snapshot;

/// Everything that the log must tell.
pub const ALL: &[Invariant] = &[
    Invariant { code: "seal_untold", what: "each sealed attempt is told", sql: SEAL_UNTOLD },
    Invariant { code: "seal_unmade", what: "each told seal is a sealed attempt", sql: SEAL_UNMADE },
    Invariant { code: "completion_untold", what: "each completed job was sealed", sql: COMPLETION_UNTOLD },
    Invariant { code: "run_untold", what: "where a run is was told last", sql: RUN_UNTOLD },
    Invariant { code: "verdict_untold", what: "each verdict is told once", sql: VERDICT_UNTOLD },
    Invariant { code: "artifact_untold", what: "each artifact is told with its hash", sql: ARTIFACT_UNTOLD },
    Invariant { code: "gate_untold", what: "each gate that a person decided is told", sql: GATE_UNTOLD },
    Invariant { code: "decision_untold", what: "each decision is told", sql: DECISION_UNTOLD },
    Invariant { code: "session_untold", what: "each session's begin and end are told", sql: SESSION_UNTOLD },
    Invariant { code: "lease_untold", what: "each lease is told", sql: LEASE_UNTOLD },
];

const SEAL_UNTOLD: &str = "SELECT run.name AS run, job.name AS subject,
    'attempt ' || attempt.number || ' is sealed, and no event says so' AS found
  FROM attempt JOIN job ON job.id = attempt.job_id JOIN run ON run.id = job.run_id
  WHERE attempt.outcome = 'sealed' AND NOT EXISTS (SELECT 1 FROM event WHERE event.job_id = job.id
    AND event.type = 'job.sealed' AND json_extract(event.body, '$.attempt') = attempt.number) LIMIT :limit";

const SEAL_UNMADE: &str = "SELECT run.name AS run, job.name AS subject,
    'event ' || event.id || ' seals attempt ' || json_extract(event.body, '$.attempt')
      || ', which is ' || coalesce(attempt.outcome, 'open') AS found
  FROM event JOIN job ON job.id = event.job_id JOIN run ON run.id = job.run_id
    LEFT JOIN attempt ON attempt.job_id = job.id AND attempt.number = json_extract(event.body, '$.attempt')
  WHERE event.type = 'job.sealed' AND json_extract(event.body, '$.by') IS NULL
    AND coalesce(attempt.outcome, 'open') <> 'sealed' LIMIT :limit";

const COMPLETION_UNTOLD: &str =
    "SELECT run.name AS run, job.name AS subject, 'completed, and no event seals it' AS found
  FROM job JOIN run ON run.id = job.run_id
  WHERE job.state = 'completed' AND NOT EXISTS (SELECT 1 FROM event WHERE event.job_id = job.id
    AND event.type = 'job.sealed') LIMIT :limit";

const RUN_UNTOLD: &str = "SELECT run.name AS run, run.name AS subject,
    run.state || ', and the log says ' || coalesce(last.type, 'nothing') AS found
  FROM run LEFT JOIN (SELECT run_id, type, max(id) FROM event
    WHERE type IN ('run.prepared', 'run.started', 'run.completed', 'run.failed', 'run.canceled', 'run.needs_operator',
      'run.revived') GROUP BY run_id) AS last ON last.run_id = run.id
  WHERE coalesce(last.type, '') NOT IN (CASE run.state WHEN 'ready' THEN 'run.prepared' WHEN 'running' THEN 'run.started'
    ELSE 'run.' || run.state END, CASE run.state WHEN 'running' THEN 'run.revived' ELSE '-' END) LIMIT :limit";

const VERDICT_UNTOLD: &str = "SELECT run.name AS run, job.name AS subject, given.count || ' verdicts, and '
      || (SELECT count(*) FROM event WHERE event.job_id = job.id
          AND event.type IN ('verdict.recorded', 'verdict.overridden')) || ' told' AS found
  FROM (SELECT job_id, count(*) AS count FROM verdict GROUP BY job_id) AS given
    JOIN job ON job.id = given.job_id JOIN run ON run.id = job.run_id
  WHERE given.count <> (SELECT count(*) FROM event WHERE event.job_id = job.id
    AND event.type IN ('verdict.recorded', 'verdict.overridden')) LIMIT :limit";

const ARTIFACT_UNTOLD: &str = "SELECT run.name AS run, job.name AS subject,
    artifact.name || ' of attempt ' || artifact.attempt || ' is published, and no event says so' AS found
  FROM artifact JOIN job ON job.id = artifact.job_id JOIN run ON run.id = job.run_id
  WHERE NOT EXISTS (SELECT 1 FROM event WHERE event.job_id = job.id AND event.type = 'artifact.published'
    AND json_extract(event.body, '$.sha256') = artifact.sha256 AND json_extract(event.body, '$.name') = artifact.name)
  LIMIT :limit";

const GATE_UNTOLD: &str = "SELECT run.name AS run, job.name AS subject,
    'g' || gate.id || ' is ' || gate.state || ', and no event says so' AS found
  FROM gate JOIN job ON job.id = gate.job_id JOIN run ON run.id = gate.run_id
  WHERE gate.state IN ('approved', 'rejected', 'skipped', 'revised') AND NOT EXISTS (SELECT 1 FROM event
    WHERE event.job_id = job.id AND event.type = 'gate.' || gate.state
      AND json_extract(event.body, '$.gate') = 'g' || gate.id) LIMIT :limit";

const DECISION_UNTOLD: &str =
    "SELECT run.name AS run, coalesce(job.name, 's' || decision.session_id, run.name) AS subject,
    'd' || decision.id || ' (' || decision.kind || ') is told by no event' AS found
  FROM decision LEFT JOIN run ON run.id = decision.run_id LEFT JOIN job ON job.id = decision.job_id
  WHERE 'd' || decision.id NOT IN (SELECT json_extract(body, '$.decision') FROM event
    WHERE json_extract(body, '$.decision') IS NOT NULL) LIMIT :limit";

const SESSION_UNTOLD: &str = "SELECT run.name AS run, 's' || session.id AS subject, session.state || ', and its '
      || CASE WHEN session.id NOT IN (SELECT session_id FROM event WHERE type = 'session.registered' AND session_id IS NOT NULL)
         THEN 'begin' ELSE 'end' END || ' is told by no event' AS found
  FROM session JOIN run ON run.id = session.run_id
  WHERE session.id NOT IN (SELECT session_id FROM event WHERE type = 'session.registered' AND session_id IS NOT NULL)
    OR (session.state <> 'active' AND session.id NOT IN (SELECT session_id FROM event
      WHERE type IN ('session.closed', 'session.lost', 'session.expired') AND session_id IS NOT NULL)) LIMIT :limit";

const LEASE_UNTOLD: &str =
    "SELECT run.name AS run, job.name AS subject, 'l' || lease.id || ' is told by no event' AS found
  FROM lease JOIN job ON job.id = lease.job_id JOIN run ON run.id = lease.run_id
  WHERE NOT EXISTS (SELECT 1 FROM event WHERE event.job_id = job.id AND event.type = 'lease.granted'
    AND json_extract(event.body, '$.lease') = 'l' || lease.id) LIMIT :limit";

const SNAPSHOTS: &str = "SELECT run.name, snapshot.generation, snapshot.hash, snapshot.body
  FROM snapshot JOIN run ON run.id = snapshot.run_id ORDER BY snapshot.run_id, snapshot.generation";

/// Goes through every snapshot: the run's name, the generation, its stored hash and what it holds.
pub fn each_snapshot<E: From<StoreError>>(
    read: &Connection,
    mut look: impl FnMut(String, i64, String, Snapshot) -> Result<(), E>,
) -> Result<(), E> {
    let mut statement = read.prepare(SNAPSHOTS).map_err(StoreError::from)?;
    let mut rows = statement.query([]).map_err(StoreError::from)?;
    while let Some(row) = rows.next().map_err(StoreError::from)? {
        let columns =
            || -> StoreResult<_> { Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, Json<Snapshot>>(3)?.0)) };
        let (run, generation, hash, body) = columns()?;
        look(run, generation, hash, body)?;
    }
    Ok(())
}
