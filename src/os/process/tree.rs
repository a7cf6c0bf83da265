//! What belongs to an agent, and ending all of it.
//!
//! Agents start their tools in sessions of their own, so that no process group is the tree; parents end before
//! their children, so that descent alone is not either. The tree is what descends from the agent, and, in its
//! helper, from the helper itself, to which orphans go. This file does not know whose tree it is.

use std::collections::{HashMap, HashSet};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::{Entry, Handle, Identity, Table, ancestors, own_pid};
use crate::os::wait::Countdown;

/// Kill rounds before what is left is reported.
const ROUNDS: u32 = 20;
/// How long a round goes on looking while new ones appear, and how often it looks at least on a slow machine.
const STOP_MS: u64 = 1_000;
/// See [`STOP_MS`].
const LOOKS: u32 = 10;
/// Looks in a row without anything new that make a picture believable.
const QUIET_LOOKS: u32 = 2;
/// How long a round waits for the killed to be gone; only the kernel's own waits last that long.
const DEATH_MS: u64 = 250;
/// How long what an ended agent leaves behind may still take to end by itself.
const AFTERMATH_MS: u64 = 500;
/// How often the rest is looked at while it may still end by itself.
const LOOK_MS: u64 = 20;

/// Which processes belong to an agent.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The agent.
    pub root: Identity,
    /// Whether this process is the agent's helper: it is the reaper of orphans, and all its descendants belong.
    pub adopts_orphans: bool,
    /// Children of this process that are not the agent's (a check, git), with all that descends from them.
    pub spare: Vec<i32>,
}

/// What became of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Kill rounds that were needed; 0 when all went by themselves.
    pub rounds: u32,
    /// Who was killed.
    pub killed: Vec<Identity>,
    /// Who is still alive: evidence, and a person's matter.
    pub survivors: Vec<Identity>,
    /// Whether new processes kept appearing to the end, too short-lived to be named.
    pub is_restless: bool,
}

impl Ended {
    /// Whether nothing is left.
    pub fn is_clean(&self) -> bool {
        self.survivors.is_empty() && !self.is_restless
    }
}

impl Tree {
    /// Everything in the tree that has not been reaped, the agent first, by one look at the table.
    pub fn members(&self) -> Vec<Entry> {
        self.members_in(&Table::read())
    }

    /// Whether a process is in the tree: looks upward from it, which is much cheaper than [`Tree::members`].
    pub fn contains(&self, pid: i32) -> bool {
        let own = own_pid();
        let mut line = Entry::read(pid).into_iter().chain(ancestors(pid)).peekable();
        while let Some(entry) = line.next() {
            if self.spare.contains(&entry.pid) || entry.pid == own {
                return false;
            }
            let is_adopted = self.adopts_orphans && line.peek().is_some_and(|parent| parent.pid == own);
            if entry.identity() == self.root || (is_adopted && self.has_adopted(&entry)) {
                return true;
            }
        }
        false
    }

    /// CPU time of the tree in clock ticks, with what its ended children used: whether it grows is what counts.
    pub fn cpu_ticks(&self) -> u64 {
        let table = Table::read();
        let reaped = if self.adopts_orphans { table.get(own_pid()).map_or(0, |own| own.reaped_cpu_ticks) } else { 0 };
        let members = self.members_in(&table);
        members.iter().map(|entry| entry.cpu_ticks.saturating_add(entry.reaped_cpu_ticks)).sum::<u64>() + reaped
    }

    /// Whether a process is a child of this one that the agent or a descendant of it started.
    fn has_adopted(&self, entry: &Entry) -> bool {
        entry.parent == own_pid() && entry.pid != self.root.pid && !self.spare.contains(&entry.pid)
    }

    fn members_in(&self, table: &Table) -> Vec<Entry> {
        let root = table.get(self.root.pid).filter(|entry| entry.identity() == self.root);
        let below = root.map(|entry| table.descendants(entry.pid)).unwrap_or_default();
        let orphans = if self.adopts_orphans { table.descendants(own_pid()) } else { Vec::new() };
        let mut outside: HashSet<i32> = self.spare.iter().copied().collect();
        outside.extend(self.spare.iter().flat_map(|pid| table.descendants(*pid)).map(|entry| entry.pid));
        outside.insert(own_pid());
        let mut seen = HashSet::new();
        let all = root.into_iter().chain(below).chain(orphans);
        all.filter(|entry| !outside.contains(&entry.pid) && seen.insert(entry.pid)).cloned().collect()
    }
}

/// Ends a tree: SIGTERM to the agent, `grace_ms` for it to obey, then rounds of listing, stopping, listing again
/// until nothing new appears, killing and reaping. `strays` is asked in each round for processes that belong
/// although they do not descend (they carry the session, or hold its lock). The agent itself is not reaped: its
/// exit status is for whoever holds it.
///
/// Signals go through a hold that checks the identity; this process and its ancestors never get one.
pub fn end_tree(tree: &Tree, grace_ms: u64, strays: &mut dyn FnMut() -> Vec<Identity>) -> Ended {
    let mut hunt = Hunt { tree, strays, above: ancestors(own_pid()).iter().map(|entry| entry.pid).collect() };
    ask(&mut hunt, grace_ms);
    let mut ended = Ended::default();
    loop {
        let (held, is_quiet) = hunt.stop_all();
        if (held.is_empty() && is_quiet) || ended.rounds == ROUNDS {
            ended.survivors = held.into_keys().collect();
            ended.is_restless = !is_quiet;
            return ended;
        }
        ended.rounds += 1;
        ended.killed.extend(kill(held, &tree.root));
    }
}

/// Takes the exit status of ended children that were adopted and are nobody's: not the agent's own, not `spare`.
/// How many there were.
pub fn reap_orphans(tree: &Tree) -> usize {
    let table = Table::read();
    let orphans = table.entries().iter().filter(|entry| tree.has_adopted(entry) && entry.is_zombie());
    orphans.filter_map(|entry| Handle::open(&entry.identity())?.reap().ok()).count()
}

/// The search for members of a tree.
struct Hunt<'a> {
    tree: &'a Tree,
    strays: &'a mut dyn FnMut() -> Vec<Identity>,
    above: HashSet<i32>,
}

impl Hunt<'_> {
    /// Holds on everything that belongs and lives.
    fn living(&mut self) -> Vec<Handle> {
        let mut found: Vec<Identity> = self.tree.members().iter().map(Entry::identity).collect();
        found.extend((self.strays)());
        let is_fair =
            |identity: &Identity| identity.pid > 1 && identity.pid != own_pid() && !self.above.contains(&identity.pid);
        let mut seen = HashSet::new();
        let fair = found.into_iter().filter(|identity| is_fair(identity) && seen.insert(identity.clone()));
        fair.filter_map(|identity| Handle::open(&identity)).filter(|held| !held.has_ended()).collect()
    }

    /// Stops everything, looking again until nothing new appears: what is stopped can't fork. Whether it came to
    /// rest, and holds on what is stopped.
    fn stop_all(&mut self) -> (HashMap<Identity, Handle>, bool) {
        let mut stopped = HashMap::new();
        let (mut quiet, mut looks) = (0, 0);
        let end = Countdown::start(STOP_MS);
        while quiet < QUIET_LOOKS && (looks < LOOKS || !end.is_over()) {
            looks += 1;
            let known = stopped.len();
            self.stop_adopted(&mut stopped);
            self.living().into_iter().for_each(|held| stop(held, &mut stopped));
            // Links of a chain, each forking the next and ending, may all be missed; what they leave is not.
            let traces = if self.tree.adopts_orphans { reap_orphans(self.tree) } else { 0 };
            quiet = if stopped.len() == known && traces == 0 { quiet + 1 } else { 0 };
        }
        stopped.retain(|_, held| !held.has_ended());
        (stopped, quiet >= QUIET_LOOKS)
    }

    /// Stops adopted children the moment each is seen, the youngest first: some live for less than a whole look.
    fn stop_adopted(&self, stopped: &mut HashMap<Identity, Handle>) {
        if !self.tree.adopts_orphans {
            return;
        }
        let mut pids = Table::pids();
        pids.sort_unstable();
        let adopted = pids.into_iter().rev().filter_map(Entry::read).filter(|entry| self.tree.has_adopted(entry));
        adopted.filter_map(|entry| Handle::open(&entry.identity())).for_each(|held| stop(held, stopped));
    }
}

fn stop(held: Handle, stopped: &mut HashMap<Identity, Handle>) {
    if !stopped.contains_key(held.identity()) && !held.has_ended() {
        // One that can't be signalled (another user's) is a survivor in the end.
        let _ = held.signal(Signal::STOP);
        stopped.insert(held.identity().clone(), held);
    }
}

/// Asks the agent to end and waits, less long for what remains once the agent itself is gone: that was not asked.
fn ask(hunt: &mut Hunt<'_>, grace_ms: u64) {
    let root = Handle::open(&hunt.tree.root).filter(|held| !held.has_ended());
    if let Some(root) = &root {
        let _ = root.signal(Signal::TERM);
        // A stopped agent could not obey.
        let _ = root.signal(Signal::CONT);
    }
    let end = Countdown::start(grace_ms);
    if root.is_some_and(|root| !root.wait_ended(grace_ms)) {
        return;
    }
    let rest = Countdown::start(end.left_ms().min(AFTERMATH_MS));
    loop {
        let living = hunt.living();
        let Some(first) = living.first().filter(|_| !rest.is_over()) else { return };
        first.wait_ended(rest.left_ms().min(LOOK_MS));
    }
}

/// Kills, waits for the deaths, and reaps those that are this process's children; who is dead.
fn kill(held: HashMap<Identity, Handle>, root: &Identity) -> Vec<Identity> {
    for handle in held.values() {
        let _ = handle.signal(Signal::KILL);
    }
    let end = Countdown::start(DEATH_MS);
    let dead = held.into_values().filter(|handle| handle.wait_ended(end.left_ms()));
    let reaped = dead.inspect(|handle| {
        if handle.identity() != root {
            // Only own children can be reaped; the others have a parent that does.
            let _ = handle.reap();
        }
    });
    reaped.map(|handle| handle.identity().clone()).collect()
}
