//! Ending what an attempt started, and what is told about it.

use std::path::Path;

use crate::domain::id::SessionId;
use crate::os::process::{Identity, Launched, Tree, carriers, end_tree, has_children, holders};
use crate::verbs::Ctx;
use crate::verbs::settle::verify::Runner;

/// What an agent's end spares.
pub struct Spared {
    /// The time it has to end by itself, in milliseconds.
    pub grace_ms: u64,
    /// Processes of this one that are not the agent's.
    pub spare: Vec<i32>,
}

/// Ends an agent's whole tree; returns a line about survivors, if any. The agent itself is reaped by the caller.
pub fn end_agent(ctx: &Ctx, session: SessionId, launched: &Launched, spared: Spared) -> Option<String> {
    let root = launched.process.identity().clone();
    let tree = Tree { root, adopts_orphans: true, spare: spared.spare };
    let ended = end_tree(&tree, spared.grace_ms, &mut || strays(ctx, session));
    crate::os::process::reap_orphans(&tree);
    describe(&ended.survivors, ended.is_restless)
}

/// Whether anything but the agent itself is left to end: one cheap call after it was reaped.
pub fn has_leftovers() -> bool {
    has_children()
}

/// Ends what an agent that is already reaped left behind.
pub fn end_leftovers(ctx: &Ctx, session: SessionId, agent: &Identity, spare: Vec<i32>) -> Option<String> {
    let tree = Tree { root: agent.clone(), adopts_orphans: true, spare };
    let ended = end_tree(&tree, 0, &mut || strays(ctx, session));
    crate::os::process::reap_orphans(&tree);
    describe(&ended.survivors, ended.is_restless)
}

/// Ends what a verification or setup command left, running or not.
pub fn end_command(launched: &Launched, runner: &dyn Runner) {
    let tree =
        Tree { root: launched.process.identity().clone(), adopts_orphans: runner.reaps(), spare: runner.spare() };
    let is_over = launched.process.has_ended() && tree.members().iter().all(|entry| entry.pid == tree.root.pid);
    if !is_over {
        end_tree(&tree, 0, &mut Vec::new);
    }
    crate::os::process::reap_orphans(&tree);
}

/// Processes of this store's session that do not descend from its agent any more.
pub fn strays(ctx: &Ctx, session: SessionId) -> Vec<Identity> {
    let session_word = session.to_string();
    let mut found = carriers(&[
        ("STRIATUM_SESSION", std::ffi::OsStr::new(&session_word)),
        ("STRIATUM_DIR", ctx.layout().root().as_os_str()),
    ]);
    found.extend(lock_holders(ctx, session));
    found
}

/// Ends what has this folder for temporary files: what is left of an attempt whose owner died, its checks among it, or
/// of a resource.
pub fn end_attempt(tmp: &Path) {
    let mut find = || carriers(&[("TMPDIR", tmp.as_os_str())]);
    if let Some(first) = find().first() {
        let tree = Tree { root: first.clone(), adopts_orphans: false, spare: Vec::new() };
        end_tree(&tree, 0, &mut find);
    }
}

/// Processes that hold a session's lane lock, this one left out.
pub fn lock_holders(ctx: &Ctx, session: SessionId) -> Vec<Identity> {
    let lock = ctx.layout().scratch(&session.to_string()).lane_lock();
    let (Ok(about), Some(name)) = (std::fs::metadata(&lock), lock.file_name()) else { return Vec::new() };
    use std::os::unix::fs::MetadataExt;
    let own = crate::os::process::own_pid();
    let mut found = holders((about.dev(), about.ino()), name);
    found.retain(|identity| identity.pid != own);
    found
}

fn describe(survivors: &[Identity], is_restless: bool) -> Option<String> {
    if survivors.is_empty() && !is_restless {
        return None;
    }
    let pids: Vec<String> = survivors.iter().map(|identity| identity.pid.to_string()).collect();
    Some(format!(
        "still alive after the end: {}",
        if pids.is_empty() { "short-lived processes".to_owned() } else { pids.join(", ") }
    ))
}
