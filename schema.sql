-- The store of striatum: everything durable that is not a file. The only place where tables are made.
-- Times (`*_at`) are wall-clock milliseconds since 1970 and are for people; order is by id, never by time.
-- Deadlines are (`*_boot`, `*_ms`): a boot id and milliseconds of the monotonic clock; another boot means past.
-- Documents are JSON text. WITHOUT ROWID is for small rows alone: a search through large ones reads them whole.
-- Tables marked "append-only" refuse UPDATE and DELETE by trigger.

-- One row: what made this file.
CREATE TABLE store (
  id INTEGER PRIMARY KEY CHECK (id = 1),          -- always 1
  made_by TEXT NOT NULL,                          -- version of the program that made the file
  made_at INTEGER NOT NULL                        -- when
) STRICT;

-- One execution of a snapshot.
CREATE TABLE run (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- never shown; people see `name`
  name TEXT NOT NULL UNIQUE,                      -- `<workflow>-<number>`
  workflow TEXT NOT NULL,                         -- the workflow's id
  number INTEGER NOT NULL,                        -- counts the runs of this workflow
  generation INTEGER NOT NULL,                    -- the snapshot in force; rises with `run amend`
  spec TEXT NOT NULL,                             -- the run-level part of that snapshot
  trust TEXT,                                     -- hash over the commands that may run; checked at each launch
  state TEXT NOT NULL                             -- where it is
    CHECK (state IN ('ready', 'running', 'completed', 'failed', 'canceled', 'needs_operator')),
  cause TEXT,                                     -- needs_operator, failed: why, as a word     
  subject TEXT,                                   -- what the cause is about: a job, a lane, a budget
  reason TEXT,                                    -- one line for people
  paused_at INTEGER,                              -- no new launches while set
  stop_requested_at INTEGER,                      -- drivers end and lanes are stopped while set
  launches INTEGER NOT NULL,                      -- agents started so far
  cost_micro_usd INTEGER NOT NULL,                -- cost reported so far
  input_tokens INTEGER NOT NULL,                  -- tokens that agents reported to have read
  output_tokens INTEGER NOT NULL,                 -- and written
  active_ms INTEGER NOT NULL,                     -- working time charged so far, in milliseconds
  tripped TEXT NOT NULL,                          -- breakers that were told to have tripped, each with when
  told INTEGER NOT NULL,                          -- the last event that a person was told of
  base TEXT,                                      -- the commit it starts from; none without git or a commit
  tip TEXT,                                       -- where its branch was left; none before the first change
  created_by TEXT NOT NULL,                       -- principal
  created_at INTEGER NOT NULL,                    -- when prepared
  started_at INTEGER,                             -- when started
  ended_at INTEGER,                               -- when it reached a terminal state
  UNIQUE (workflow, number)
) STRICT;
CREATE INDEX run_live ON run (id) WHERE state IN ('ready', 'running', 'needs_operator'); -- "the only live run"

-- The frozen workflow, one row a generation of a run. Append-only.
CREATE TABLE snapshot (
  run_id INTEGER NOT NULL REFERENCES run (id),    -- whose
  generation INTEGER NOT NULL,                    -- 1 at prepare, one more at each amendment
  hash TEXT NOT NULL,                             -- sha256 of body
  body TEXT NOT NULL,                             -- the whole snapshot
  reason TEXT NOT NULL,                           -- `prepare`, or why it was amended
  created_at INTEGER NOT NULL,                    -- when
  PRIMARY KEY (run_id, generation)
) STRICT;

-- A node of a run.
CREATE TABLE job (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- never shown; people see `name`
  run_id INTEGER NOT NULL REFERENCES run (id),    -- whose
  name TEXT NOT NULL,                             -- its id in the workflow
  position INTEGER NOT NULL,                      -- its place in the workflow
  type TEXT NOT NULL,                             -- generic, draft, review, ...
  role TEXT,                                      -- none for checkpoint and land
  lane TEXT,                                      -- none when the role has several and the job names none
  spec TEXT NOT NULL,                             -- the frozen job
  reviews INTEGER REFERENCES job (id),            -- the job that this one judges
  state TEXT NOT NULL CHECK (state IN ('waiting', 'queued', 'claimed', 'running', 'completed', 'failed',
    'waiting_human', 'stale', 'canceled', 'skipped')), -- where it is
  phase TEXT CHECK (phase IN ('working', 'answered', 'settling')), -- within running
  reason TEXT,                                    -- why it waits, failed or was skipped: a word
  settled INTEGER NOT NULL CHECK (settled IN (0, 1)), -- its successors may go
  unmet INTEGER NOT NULL,                         -- needs that are not settled
  attempt INTEGER NOT NULL,                       -- number of the newest attempt; 0 before the first
  fence INTEGER NOT NULL,                         -- rises at each claim, revoke, expiry and reopen
  strikes INTEGER NOT NULL,                       -- failed attempts that count
  requeues INTEGER NOT NULL,                      -- attempts repeated without a strike
  revisions INTEGER NOT NULL,                     -- reviews: times this edge sent its subject back
  generation INTEGER NOT NULL,                    -- verdicts of older generations are void
  question TEXT,                                  -- waiting_human: what is awaited, who can give it, what to do
  changed_at INTEGER NOT NULL,                    -- when the state last changed
  UNIQUE (run_id, name)
) STRICT;
CREATE INDEX job_tried ON job (run_id)
  WHERE settled = 0 AND (strikes > 0 OR requeues > 0 OR revisions > 0);         -- the tries that open jobs have used
CREATE INDEX job_place ON job (run_id, position);                               -- the first jobs of a run, in the order of the workflow
CREATE INDEX job_open ON job (run_id) WHERE settled = 0;                        -- "is anything left?"
CREATE INDEX job_state ON job (run_id, state, unmet, settled);                  -- in one state; counts; gates to open, held jobs
CREATE INDEX job_reviews ON job (reviews) WHERE reviews IS NOT NULL;            -- the panel of a job

-- An edge: `job_id` needs `needs_id`.
CREATE TABLE need (
  job_id INTEGER NOT NULL REFERENCES job (id),    -- the successor
  needs_id INTEGER NOT NULL REFERENCES job (id),  -- the predecessor
  PRIMARY KEY (job_id, needs_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX need_by_needed ON need (needs_id, job_id);                         -- successors of a sealed job

-- One try of a job.
CREATE TABLE attempt (
  job_id INTEGER NOT NULL REFERENCES job (id),    -- whose
  number INTEGER NOT NULL,                        -- 1, 2, ...
  session_id INTEGER REFERENCES session (id),     -- who holds or held it
  fence INTEGER,                                  -- the fence of its claim
  context TEXT NOT NULL,                          -- what the packet tells of earlier attempts
  packet_hash TEXT,                               -- sha256 of the packet that was given
  answer TEXT,                                    -- the first valid answer; it wins
  answer_hash TEXT,                               -- sha256 of its canonical form
  answered_at INTEGER,                            -- when
  settles INTEGER NOT NULL,                       -- settle tries of a loop agent
  outcome TEXT CHECK (outcome IN ('sealed', 'failed', 'unsealed', 'timed_out', 'idle', 'verify_failed', 'scope_failed',
    'invalid_result', 'lost', 'never_started', 'conflict', 'unavailable', 'interrupted', 'environment', 'blocked',
    'needs_context', 'unknown_outcome', 'plan_disagrees', 'reopened', 'canceled')),    -- how it ended; none while open
  detail TEXT,                                    -- one line about the outcome
  queued_at INTEGER NOT NULL,                     -- when enqueued
  claimed_at INTEGER,                             -- when claimed
  ended_at INTEGER,                               -- when ended
  PRIMARY KEY (job_id, number)
) STRICT;

-- One life of an agent in a (run, role, lane) slot.
CREATE TABLE session (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- shown as s12
  run_id INTEGER NOT NULL REFERENCES run (id),    -- whose
  role TEXT NOT NULL,                             -- the kind of worker
  lane TEXT NOT NULL,                             -- the way to execute
  state TEXT NOT NULL CHECK (state IN ('active', 'closed', 'lost', 'expired')), -- where it is
  fresh INTEGER NOT NULL CHECK (fresh IN (0, 1)), -- does one job only
  driven INTEGER NOT NULL CHECK (driven IN (0, 1)), -- a driver of this run launched or adopted it
  supervised INTEGER NOT NULL CHECK (supervised IN (0, 1)), -- a helper hosts or hosted it
  constrained INTEGER NOT NULL CHECK (constrained IN (0, 1)), -- acts through mediated verbs, whatever its run says
  packets INTEGER NOT NULL,                       -- packets held so far
  last_job INTEGER REFERENCES job (id),           -- the newest job it held
  offered_job INTEGER REFERENCES job (id),        -- the job it was launched for
  offered_attempt INTEGER,                        -- and the attempt: at most one launch each
  deadline_boot TEXT,                             -- with deadline_ms, unsupervised only: extended by any verb
  deadline_ms INTEGER,                            -- monotonic milliseconds
  token_hash TEXT NOT NULL,                       -- sha256 of its token
  non_fresh_reason TEXT,                          -- why a contaminated reviewer was accepted
  pid INTEGER,                                    -- unsupervised: the claiming process, for lineage
  pid_start INTEGER,                              -- its start time in clock ticks
  pid_boot TEXT,                                  -- its boot
  registered_by TEXT NOT NULL,                    -- principal
  created_at INTEGER NOT NULL,                    -- when registered
  active_at INTEGER NOT NULL,                     -- its last verb
  ended_at INTEGER,                               -- when it left `active`
  end_reason TEXT                                 -- why
) STRICT;
CREATE INDEX session_active ON session (run_id, role, lane) WHERE state = 'active'; -- slots of a run
CREATE INDEX session_by_run ON session (run_id, id);                                -- session list
CREATE INDEX session_offered ON session (offered_job, offered_attempt) WHERE offered_job IS NOT NULL; -- launched before?

-- A queue entry that offers one attempt to a slot.
CREATE TABLE message (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- shown as m12; oldest first
  run_id INTEGER NOT NULL REFERENCES run (id),    -- whose
  job_id INTEGER NOT NULL REFERENCES job (id),    -- what it offers
  attempt INTEGER NOT NULL,                       -- which try
  kind TEXT NOT NULL CHECK (kind IN ('work', 'ask')), -- `ask` is reserved
  role TEXT NOT NULL,                             -- who may take it
  lane TEXT,                                      -- none: any lane of the role
  fresh INTEGER NOT NULL CHECK (fresh IN (0, 1)), -- only for a session that holds nothing upstream
  state TEXT NOT NULL CHECK (state IN ('pending', 'claimed', 'acked', 'done', 'canceled')), -- where it is
  session_id INTEGER REFERENCES session (id),     -- who took it
  not_before_boot TEXT,                           -- with not_before_ms: not claimable before (cool-down)
  not_before_ms INTEGER,                          -- monotonic milliseconds
  created_at INTEGER NOT NULL                     -- when
) STRICT;
CREATE UNIQUE INDEX message_live ON message (job_id) WHERE state IN ('pending', 'claimed', 'acked'); -- one live message a job
CREATE INDEX message_pending ON message (run_id, role, lane, id) WHERE state = 'pending';            -- claim, slots
CREATE INDEX message_held ON message (session_id) WHERE state IN ('claimed', 'acked');               -- what a session holds

-- A proposed job of a sealed answer, and what became of it.
CREATE TABLE proposal (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- shown as p3
  run_id INTEGER NOT NULL REFERENCES run (id),    -- whose
  job_id INTEGER NOT NULL REFERENCES job (id),    -- who proposes it
  attempt INTEGER NOT NULL,                       -- in the answer of which try
  depth INTEGER NOT NULL,                         -- 1 from a job of the workflow, one more from a proposed job
  likeness TEXT NOT NULL,                         -- its type and inputs: what makes two the same step
  body TEXT NOT NULL,                             -- what was proposed
  state TEXT NOT NULL                             -- what became of it
    CHECK (state IN ('pending', 'admitted', 'surfaced', 'refused', 'dismissed')),
  why TEXT,                                       -- surfaced, refused: a word; dismissed: the person's
  made_id INTEGER REFERENCES job (id),            -- admitted: the job that it is
  proposed_at INTEGER NOT NULL,                   -- when its answer was sealed
  decided_at INTEGER                              -- when something became of it
) STRICT;
CREATE INDEX proposal_by_run ON proposal (run_id, state);                       -- what no driver has looked at, the inbox

-- A session's exclusive, bounded hold on a job.
CREATE TABLE lease (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- shown as l12
  run_id INTEGER NOT NULL REFERENCES run (id),    -- for counting the active ones of a run
  job_id INTEGER NOT NULL REFERENCES job (id),    -- what is held
  attempt INTEGER NOT NULL,                       -- which try
  session_id INTEGER NOT NULL REFERENCES session (id), -- who holds it
  lane TEXT NOT NULL,                             -- for counting the active ones of a lane
  fence INTEGER NOT NULL,                         -- the job's fence when granted
  state TEXT NOT NULL CHECK (state IN ('active', 'released', 'expired', 'revoked')), -- where it is
  deadline_boot TEXT,                             -- with deadline_ms; none for supervised sessions: a held lock protects
  deadline_ms INTEGER,                            -- monotonic milliseconds
  granted_at INTEGER NOT NULL,                    -- when
  ended_at INTEGER,                               -- when it left `active`
  end_reason TEXT                                 -- why
) STRICT;
CREATE UNIQUE INDEX lease_active ON lease (job_id) WHERE state = 'active';      -- one active lease a job
CREATE INDEX lease_run ON lease (run_id) WHERE state = 'active';                -- capacity of a run; the sweep
CREATE INDEX lease_lane ON lease (lane) WHERE state = 'active';                 -- capacity of a lane over all runs
CREATE INDEX lease_session ON lease (session_id, id);                           -- what a session held, lineage

-- The helper process that hosts a session's agent.
CREATE TABLE supervisor (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- never shown
  session_id INTEGER NOT NULL REFERENCES session (id), -- whom it hosts
  state TEXT NOT NULL CHECK (state IN ('starting', 'attached', 'stopped', 'lost')), -- where it is
  recovers INTEGER NOT NULL CHECK (recovers IN (0, 1)), -- it took over from a dead one
  pid INTEGER,                                    -- the helper
  pid_start INTEGER,                              -- its start time in clock ticks
  pid_boot TEXT,                                  -- its boot
  stop_reason TEXT,                               -- set by supervise stop; the helper obeys
  stop_kind TEXT CHECK (stop_kind IN ('drain', 'now')), -- drain: when idle; now: the agent is ended
  requested_at INTEGER NOT NULL,                  -- when the launch was asked for
  attached_at INTEGER,                            -- when the helper spoke first
  ended_at INTEGER,                               -- when it stopped or was found lost
  end_reason TEXT                                 -- why
) STRICT;
CREATE UNIQUE INDEX supervisor_active ON supervisor (session_id) WHERE state IN ('starting', 'attached'); -- one a session

CREATE INDEX supervisor_session ON supervisor (session_id, id);                 -- the newest helper, recoveries

-- A process started for an attempt.
CREATE TABLE execution (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- never shown
  job_id INTEGER NOT NULL REFERENCES job (id),    -- for what
  attempt INTEGER NOT NULL,                       -- which try
  session_id INTEGER NOT NULL REFERENCES session (id), -- by whom
  kind TEXT NOT NULL CHECK (kind IN ('agent', 'verify', 'setup', 'process')), -- what it is for
  class TEXT,                                     -- process: declared class, any, or the decision that let it pass
  state TEXT NOT NULL                             -- how far it came
    CHECK (state IN ('starting', 'running', 'exited', 'timed_out', 'lost', 'not_run')),
  argv_hash TEXT,                                 -- sha256 of the NUL-joined argv; the values are not kept
  pid INTEGER,                                    -- the process
  pid_start INTEGER,                              -- its start time in clock ticks
  pid_boot TEXT,                                  -- its boot
  deadline_boot TEXT,                             -- with deadline_ms: the end of the attempt
  deadline_ms INTEGER,                            -- monotonic milliseconds
  exit_code INTEGER,                              -- when it exited by itself
  signal INTEGER,                                 -- when a signal ended it
  output_bytes INTEGER,                           -- what it wrote
  output_hash TEXT,                               -- process: sha256 of that; nothing of it is kept
  detail TEXT,                                    -- one line: survivors, why not run
  started_at INTEGER NOT NULL,                    -- intent
  ended_at INTEGER                                -- outcome
) STRICT;
CREATE UNIQUE INDEX execution_agent ON execution (job_id, attempt) WHERE kind = 'agent'; -- at most one launch an attempt
CREATE INDEX execution_by_attempt ON execution (job_id, attempt);               -- what was run for an attempt
CREATE INDEX execution_live ON execution (state) WHERE state IN ('starting', 'running'); -- who is a lane, right now
CREATE INDEX execution_pid ON execution (pid, pid_start) WHERE pid IS NOT NULL;          -- is this caller a lane?

-- A worktree that a job's attempts work in, one after the other.
CREATE TABLE tree (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- never shown
  run_id INTEGER NOT NULL REFERENCES run (id),    -- for cleaning up after a run
  job_id INTEGER NOT NULL REFERENCES job (id),    -- whose
  attempt INTEGER NOT NULL,                       -- the newest attempt that works in it
  kind TEXT NOT NULL CHECK (kind IN ('own', 'tip')), -- with changes that count, or only to look at
  state TEXT NOT NULL                             -- where it is
    CHECK (state IN ('making', 'active', 'released', 'removed', 'kept', 'missing')),
  path TEXT NOT NULL,                             -- its folder; below the store's folder unless absolute
  git_dir TEXT,                                   -- its git directory's name; none while it is being made
  base TEXT NOT NULL,                             -- the commit that its changes are against
  baseline TEXT,                                  -- checkout and settings when its attempt began, for comparing
  carried TEXT,                                   -- what was put on top of newer work: tip, tree, conflicts
  reason TEXT,                                    -- why it is kept or missing
  made_at INTEGER NOT NULL,                       -- intent
  ended_at INTEGER                                -- when it was removed
) STRICT;
CREATE UNIQUE INDEX tree_active ON tree (job_id) WHERE state IN ('making', 'active'); -- one active tree a job
CREATE INDEX tree_by_job ON tree (job_id, id);                                  -- the newest tree of a job
CREATE INDEX tree_there ON tree (run_id) WHERE state <> 'removed';              -- what is left to clean up

-- What an attempt changed: one commit, pinned, on its way to the run's branch.
CREATE TABLE change (
  job_id INTEGER NOT NULL REFERENCES job (id),    -- whose
  attempt INTEGER NOT NULL,                       -- which try
  state TEXT NOT NULL CHECK (state IN ('intended', 'integrated')), -- how far it came
  base TEXT NOT NULL,                             -- the commit that it is against
  commit_id TEXT NOT NULL,                        -- the change, as the pin names it
  tree_hash TEXT NOT NULL,                        -- what was verified
  files INTEGER NOT NULL,                         -- how many paths it changes
  tip_before TEXT,                                -- the run's branch before it; none until that is decided
  tip_after TEXT,                                 -- and after it
  intended_at INTEGER NOT NULL,                   -- intent
  integrated_at INTEGER,                          -- outcome, with the seal
  PRIMARY KEY (job_id, attempt)
) STRICT;
CREATE INDEX change_intended ON change (tip_after) WHERE state = 'intended';    -- was the branch about to be moved there?

-- A resource that is made for one attempt alone. Its row is there before it is.
CREATE TABLE resource (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- never shown; people see `name`
  run_id INTEGER NOT NULL REFERENCES run (id),    -- whose
  job_id INTEGER NOT NULL REFERENCES job (id),    -- for what
  attempt INTEGER NOT NULL,                       -- for which try
  session_id INTEGER NOT NULL REFERENCES session (id), -- whose try that is
  maker TEXT NOT NULL,                            -- the process that made it: pid, start, boot
  name TEXT NOT NULL,                             -- what its commands call it; no other has it, in any store
  state TEXT NOT NULL                             -- where it is
    CHECK (state IN ('creating', 'ready', 'destroying', 'destroyed', 'left')),
  tries INTEGER NOT NULL,                         -- times that somebody set out to destroy it
  reason TEXT,                                    -- left: why it could not be destroyed
  made_at INTEGER NOT NULL,                       -- intent
  ended_at INTEGER                                -- when it was destroyed
) STRICT;
CREATE INDEX resource_there ON resource (run_id) WHERE state <> 'destroyed';    -- what is left to destroy

-- A file that an attempt published; its bytes are under artifacts/. Append-only.
CREATE TABLE artifact (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- never shown
  job_id INTEGER NOT NULL REFERENCES job (id),    -- by which job
  attempt INTEGER NOT NULL,                       -- in which try
  name TEXT NOT NULL,                             -- as `produces` names it
  kind TEXT NOT NULL,                             -- a free word; empty when none
  sha256 TEXT NOT NULL,                           -- of the bytes, and its file name
  bytes INTEGER NOT NULL,                         -- size
  published_at INTEGER NOT NULL,                  -- when
  UNIQUE (job_id, attempt, name)
) STRICT;

-- A judgement of a review. Append-only; those of older generations are void.
CREATE TABLE verdict (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- never shown
  job_id INTEGER NOT NULL REFERENCES job (id),    -- the review
  attempt INTEGER NOT NULL,                       -- its try
  subject_id INTEGER REFERENCES job (id),         -- the job judged; none for a range
  generation INTEGER NOT NULL,                    -- the subject's generation that was judged
  session_id INTEGER REFERENCES session (id),     -- who judged; none for an override
  decision_id INTEGER REFERENCES decision (id),   -- the override
  verdict TEXT NOT NULL                           -- the judgement
    CHECK (verdict IN ('accept', 'accept_with_findings', 'needs_revision', 'reject')),
  findings TEXT NOT NULL,                         -- list of findings
  findings_hash TEXT NOT NULL,                    -- sha256 of it
  same_model INTEGER NOT NULL CHECK (same_model IN (0, 1)), -- author and reviewer declare the same model
  recorded_at INTEGER NOT NULL                    -- when
) STRICT;
CREATE INDEX verdict_by_job ON verdict (job_id, id);                            -- the newest verdict of a review

-- A point where a person decides.
CREATE TABLE gate (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- shown as g3
  run_id INTEGER NOT NULL REFERENCES run (id),    -- whose
  job_id INTEGER NOT NULL REFERENCES job (id),    -- what waits for it
  state TEXT NOT NULL                             -- what was decided
    CHECK (state IN ('pending', 'approved', 'rejected', 'skipped', 'revised', 'expired')),
  tier TEXT NOT NULL CHECK (tier IN ('L0', 'L1', 'L2')), -- why a person is needed
  why TEXT NOT NULL,                              -- in words
  digest TEXT NOT NULL,                           -- sha256 of what was shown
  expires_boot TEXT NOT NULL,                     -- with expires_ms: then it is opened anew
  expires_ms INTEGER NOT NULL,                    -- monotonic milliseconds
  opened_at INTEGER NOT NULL,                     -- when
  decided_at INTEGER,                             -- when
  decided_by TEXT,                                -- principal
  how TEXT,                                       -- terminal, or `--as-person` with what was detected
  note TEXT                                       -- the person's words
) STRICT;
CREATE UNIQUE INDEX gate_pending ON gate (job_id) WHERE state = 'pending';      -- one open gate a job
CREATE INDEX gate_by_job ON gate (job_id, id);                                  -- the newest gate of a job
CREATE INDEX gate_by_run ON gate (run_id, id);                                  -- gate list --all
CREATE INDEX gate_open ON gate (run_id) WHERE state = 'pending';                -- the inbox

-- A recorded judgement of a person or operator. Append-only.
CREATE TABLE decision (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- shown as d4
  run_id INTEGER REFERENCES run (id),             -- about which run
  job_id INTEGER REFERENCES job (id),             -- about which job
  session_id INTEGER REFERENCES session (id),     -- about which session
  kind TEXT NOT NULL,                             -- recorded, answer, override, retry, take, give, non_fresh, ...
  outcome TEXT,                                   -- recorded: accepted, rejected, accepted_with_follow_up
  body TEXT NOT NULL,                             -- the words; recorded: the title
  reason TEXT NOT NULL,                           -- why
  follow_up TEXT,                                 -- recorded: what is to be done later
  principal TEXT NOT NULL,                        -- who
  how TEXT NOT NULL,                              -- terminal, or `--as-person` with what was detected
  decided_at INTEGER NOT NULL                     -- when
) STRICT;
CREATE INDEX decision_by_job ON decision (job_id) WHERE job_id IS NOT NULL;     -- has a person decided this before?
CREATE INDEX decision_by_run ON decision (run_id, id);                          -- decision list

-- One act that a decision lets leave the constrained surface, for its run and, where it names them, job and session.
CREATE TABLE escape_act (
  decision_id INTEGER PRIMARY KEY REFERENCES decision (id), -- which judgement
  run_id INTEGER NOT NULL REFERENCES run (id),    -- in which run only
  surface TEXT NOT NULL,                          -- process.run, repo.write, repo.patch-apply, admin:VERB
  action TEXT NOT NULL,                           -- the words of the act, or sha256: of them
  uses INTEGER NOT NULL CHECK (uses > 0),         -- how often it may be used
  used INTEGER NOT NULL CHECK (used BETWEEN 0 AND uses), -- how often it was
  expires_boot TEXT NOT NULL,                     -- with expires_ms: opens nothing afterwards
  expires_ms INTEGER NOT NULL                     -- monotonic milliseconds
) STRICT;
CREATE INDEX escape_open ON escape_act (run_id, surface) WHERE used < uses;         -- does one open this?

-- What is known of a lane, over all runs.
CREATE TABLE lane (
  name TEXT PRIMARY KEY,                          -- the lane
  parked_at INTEGER,                              -- a person or the give-up limit parked it
  parked_reason TEXT,                             -- why
  cooling_boot TEXT,                              -- with cooling_ms: no launches before
  cooling_ms INTEGER,                             -- monotonic milliseconds
  cooling_since_boot TEXT,                        -- with cooling_since_ms: first failure of this series
  cooling_since_ms INTEGER,                       -- monotonic milliseconds
  cooling_step INTEGER NOT NULL                   -- failures in a row; each doubles the pause
) STRICT, WITHOUT ROWID;

-- First answers of verbs that were called with --request-id.
CREATE TABLE request (
  key TEXT PRIMARY KEY,                           -- the caller's key
  verb TEXT NOT NULL,                             -- what was asked
  words_hash TEXT NOT NULL,                       -- sha256 of the request; the same key must ask the same
  principal TEXT NOT NULL,                        -- who asked; the same key is nobody else's
  reserved_at INTEGER NOT NULL,                   -- when its first effect was recorded, in the same transaction
  reply TEXT,                                     -- the report or error; none until the verb ended, or if that was lost
  replied_at INTEGER                              -- when
) STRICT;

-- What happened, one chain a store. Append-only.
CREATE TABLE event (
  id INTEGER PRIMARY KEY,                         -- dense, from 1
  at INTEGER NOT NULL,                            -- when
  run_id INTEGER REFERENCES run (id),             -- in which run
  job_id INTEGER REFERENCES job (id),             -- about which job
  session_id INTEGER REFERENCES session (id),     -- about which session
  type TEXT NOT NULL,                             -- a frozen word
  principal TEXT NOT NULL,                        -- who did it
  body TEXT NOT NULL,                             -- small JSON: names, numbers, hashes; never content
  previous BLOB NOT NULL,                         -- hash of the event before
  hash BLOB NOT NULL                              -- sha256 over the versioned canonical form
) STRICT;
CREATE INDEX event_by_run ON event (run_id, id);                                -- events of a run
CREATE INDEX event_by_job ON event (job_id, id) WHERE job_id IS NOT NULL;       -- story of a job

-- A landing: a run's change on its way to the branch that a person named.
CREATE TABLE landing (
  id INTEGER PRIMARY KEY AUTOINCREMENT,           -- never shown
  run_id INTEGER NOT NULL REFERENCES run (id),    -- whose
  job_id INTEGER NOT NULL REFERENCES job (id),    -- the land job
  gate_id INTEGER NOT NULL REFERENCES gate (id),  -- the gate that is approved with it
  state TEXT NOT NULL                             -- how far it came
    CHECK (state IN ('intended', 'done', 'refused', 'void')),
  kind TEXT NOT NULL                              -- how it was done, or found to be done
    CHECK (kind IN ('squash', 'merge', 'ff', 'outside', 'nothing', 'branch')),
  target TEXT,                                    -- the branch, as a full name; none when the run ends at its own
  tip TEXT NOT NULL,                              -- the run's newest commit, which lands
  before_id TEXT,                                 -- where the target was
  after_id TEXT,                                  -- where it is moved; none when nothing is
  how TEXT NOT NULL,                              -- how it was known that a person approved
  note TEXT,                                      -- the person's words
  reason TEXT,                                    -- refused: why, one line
  intended_at INTEGER NOT NULL,                   -- intent
  done_at INTEGER                                 -- outcome
) STRICT;
CREATE UNIQUE INDEX landing_intended ON landing (job_id) WHERE state = 'intended'; -- one at a time; what a kill left
CREATE INDEX landing_open ON landing (run_id) WHERE state = 'intended';         -- what a driver has to finish
CREATE INDEX landing_by_job ON landing (job_id, id);                            -- the newest landing of a job
CREATE INDEX landing_refused ON landing (run_id) WHERE state = 'refused';       -- landings that can't be

CREATE TRIGGER event_no_update BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'event is append-only'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'event is append-only'); END;
CREATE TRIGGER snapshot_no_update BEFORE UPDATE ON snapshot BEGIN SELECT RAISE(ABORT, 'snapshot is append-only'); END;
CREATE TRIGGER snapshot_no_delete BEFORE DELETE ON snapshot BEGIN SELECT RAISE(ABORT, 'snapshot is append-only'); END;
CREATE TRIGGER artifact_no_update BEFORE UPDATE ON artifact BEGIN SELECT RAISE(ABORT, 'artifact is append-only'); END;
CREATE TRIGGER artifact_no_delete BEFORE DELETE ON artifact BEGIN SELECT RAISE(ABORT, 'artifact is append-only'); END;
CREATE TRIGGER verdict_no_update BEFORE UPDATE ON verdict BEGIN SELECT RAISE(ABORT, 'verdict is append-only'); END;
CREATE TRIGGER verdict_no_delete BEFORE DELETE ON verdict BEGIN SELECT RAISE(ABORT, 'verdict is append-only'); END;
CREATE TRIGGER decision_no_update BEFORE UPDATE ON decision BEGIN SELECT RAISE(ABORT, 'decision is append-only'); END;
CREATE TRIGGER decision_no_delete BEFORE DELETE ON decision BEGIN SELECT RAISE(ABORT, 'decision is append-only'); END;
