//! The `tree` table: worktrees, from the intent to make one until it is gone.

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde::{Deserialize, Serialize};

use super::columns::Json;
use super::{StoreResult, Writing};
use crate::domain::frozen::TreeKind;
use crate::domain::id::{JobId, RunId};
use crate::domain::session::TreeState;
use crate::domain::time::Timestamp;

/// A row of `tree`.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Store number.
    pub id: i64,
    /// In which run.
    pub run: RunId,
    /// Whose.
    pub job: JobId,
    /// The newest attempt that works in it.
    pub attempt: u32,
    /// `own` or `tip`.
    pub kind: TreeKind,
    /// Where it is.
    pub state: TreeState,
    /// Its folder; below the store's folder unless absolute.
    pub path: String,
    /// Its git directory's name below the repository's `worktrees/`.
    pub git_dir: Option<String>,
    /// The commit that its changes are against.
    pub base: String,
    /// Checkout and settings when its attempt began.
    pub baseline: Option<serde_json::Value>,
    /// Its work, put on top of what others have integrated.
    pub carried: Option<Carried>,
    /// Why it is kept or missing.
    pub reason: Option<String>,
    /// Intent.
    pub made_at: Timestamp,
}

/// The work of an earlier attempt on top of what others have integrated meanwhile: intent until the tree's base is the
/// tip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The commit that it was put on.
    pub tip: String,
    /// Everything that the worktree then holds, as a tree object.
    pub tree: String,
    /// Paths that both had changed.
    pub conflicts: Vec<String>,
}

/// A worktree that is about to be made.
pub struct NewTree<'a> {
    /// In which run.
    pub run: RunId,
    /// Whose.
    pub job: JobId,
    /// For which try.
    pub attempt: u32,
    /// `own` or `tip`.
    pub kind: TreeKind,
    /// Its folder.
    pub path: &'a str,
    /// The commit that its changes are against.
    pub base: &'a str,
}

const fn word(kind: TreeKind) -> &'static str {
    match kind {
        TreeKind::Own => "own",
        TreeKind::Tip | TreeKind::None => "tip",
    }
}

const INSERT: &str = "INSERT INTO tree (run_id, job_id, attempt, kind, state, path, base, made_at)
  VALUES (:run, :job, :attempt, :kind, 'making', :path, :base, :at)";

/// Records the intent.
pub fn insert(tx: &Writing<'_>, new: &NewTree<'_>) -> StoreResult<i64> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": new.run, ":job": new.job, ":attempt": new.attempt, ":kind": word(new.kind), ":path": new.path,
        ":base": new.base, ":at": tx.at,
    })?;
    Ok(tx.last_insert_rowid())
}

const ACTIVE: &str = "SELECT * FROM tree WHERE job_id = :job AND state IN ('making', 'active')";

/// The tree that a job's attempts work in.
pub fn active(read: &Connection, job: JobId) -> StoreResult<Option<Tree>> {
    Ok(read.prepare_cached(ACTIVE)?.query_row(named_params! {":job": job}, tree_row).optional()?)
}

const LIVE: &str = "SELECT * FROM tree WHERE state IN ('making', 'active') ORDER BY job_id";

/// Every tree that attempts work in, or will.
pub fn live(read: &Connection) -> StoreResult<Vec<Tree>> {
    let mut statement = read.prepare_cached(LIVE)?;
    let rows = statement.query_map([], tree_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const GET: &str = "SELECT * FROM tree WHERE id = :id";

/// A tree that must exist.
pub fn get(read: &Connection, id: i64) -> StoreResult<Tree> {
    Ok(read.prepare_cached(GET)?.query_row(named_params! {":id": id}, tree_row)?)
}

const NEWEST: &str = "SELECT * FROM tree WHERE job_id = :job ORDER BY id DESC LIMIT 1";

/// The newest tree of a job, whatever became of it.
pub fn newest(read: &Connection, job: JobId) -> StoreResult<Option<Tree>> {
    Ok(read.prepare_cached(NEWEST)?.query_row(named_params! {":job": job}, tree_row).optional()?)
}

const THERE: &str = "SELECT * FROM tree WHERE run_id = :run AND state <> 'removed' ORDER BY id";

/// A run's trees that have not been taken away, oldest first.
pub fn there(read: &Connection, run: RunId) -> StoreResult<Vec<Tree>> {
    let mut statement = read.prepare_cached(THERE)?;
    let rows = statement.query_map(named_params! {":run": run}, tree_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const OF_ENDED: &str = "SELECT tree.* FROM run JOIN tree ON tree.run_id = run.id
  WHERE tree.state <> 'removed' AND run.state IN ('completed', 'failed', 'canceled') ORDER BY tree.id";

/// Trees of runs that have ended, oldest first.
pub fn of_ended_runs(read: &Connection) -> StoreResult<Vec<Tree>> {
    let mut statement = read.prepare_cached(OF_ENDED)?;
    let rows = statement.query_map([], tree_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const PATHS: &str = "SELECT path FROM tree WHERE state <> 'removed'";

/// Where every tree stands that has not been taken away.
pub fn paths(read: &Connection) -> StoreResult<Vec<String>> {
    let mut statement = read.prepare_cached(PATHS)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const SET_GIT_DIR: &str = "UPDATE tree SET git_dir = :dir WHERE id = :id";

/// Its folder and its registration are there; it can't be used yet.
pub fn set_git_dir(tx: &Writing<'_>, id: i64, git_dir: &str) -> StoreResult<()> {
    tx.prepare_cached(SET_GIT_DIR)?.execute(named_params! {":id": id, ":dir": git_dir})?;
    Ok(())
}

const MADE: &str = "UPDATE tree SET state = 'active' WHERE id = :id";

/// It can be used.
pub fn made(tx: &Writing<'_>, id: i64) -> StoreResult<()> {
    tx.prepare_cached(MADE)?.execute(named_params! {":id": id})?;
    Ok(())
}

const CARRY: &str = "UPDATE tree SET carried = :carried WHERE id = :id";

/// Records what its files are about to become.
pub fn carry(tx: &Writing<'_>, id: i64, carried: &Carried) -> StoreResult<()> {
    tx.prepare_cached(CARRY)?.execute(named_params! {":id": id, ":carried": Json(carried)})?;
    Ok(())
}

const TAKE_OVER: &str = "UPDATE tree SET attempt = :attempt, base = :base, baseline = NULL WHERE id = :id";

/// The next attempt works in it, against this commit; it has not begun.
pub fn take_over(tx: &Writing<'_>, id: i64, attempt: u32, base: &str) -> StoreResult<()> {
    tx.prepare_cached(TAKE_OVER)?.execute(named_params! {":id": id, ":attempt": attempt, ":base": base})?;
    Ok(())
}

const SET_BASELINE: &str = "UPDATE tree SET baseline = :baseline WHERE id = :id";

/// Keeps what surrounds it at the beginning of an attempt.
pub fn set_baseline(tx: &Writing<'_>, id: i64, baseline: &serde_json::Value) -> StoreResult<()> {
    tx.prepare_cached(SET_BASELINE)?.execute(named_params! {":id": id, ":baseline": Json(baseline)})?;
    Ok(())
}

const SET_STATE: &str = "UPDATE tree SET state = :state, reason = :reason,
    ended_at = CASE WHEN :state = 'removed' THEN :at ELSE ended_at END WHERE id = :id";

/// Moves it; the caller has asked the machine.
pub fn set_state(tx: &Writing<'_>, id: i64, state: TreeState, reason: Option<&str>) -> StoreResult<()> {
    tx.prepare_cached(SET_STATE)?
        .execute(named_params! {":id": id, ":state": state, ":reason": reason, ":at": tx.at})?;
    Ok(())
}

fn tree_row(row: &Row<'_>) -> rusqlite::Result<Tree> {
    Ok(Tree {
        id: row.get("id")?,
        run: row.get("run_id")?,
        job: row.get("job_id")?,
        attempt: row.get("attempt")?,
        kind: if row.get::<_, String>("kind")? == "own" { TreeKind::Own } else { TreeKind::Tip },
        state: row.get("state")?,
        path: row.get("path")?,
        git_dir: row.get("git_dir")?,
        base: row.get("base")?,
        baseline: row.get::<_, Option<Json<serde_json::Value>>>("baseline")?.map(|json| json.0),
        carried: row.get::<_, Option<Json<Carried>>>("carried")?.map(|json| json.0),
        reason: row.get("reason")?,
        made_at: row.get("made_at")?,
    })
}
