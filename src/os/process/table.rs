//! The kernel's table of processes.
//!
//! A look at it is a picture of the past: whoever acts on it goes through a [`super::Handle`], which checks the
//! start time again. It does not know which processes matter.

use std::collections::HashSet;

use super::Identity;
use crate::os::clock::boot_id;

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub pid: i32,
    /// Its name as the kernel has it, at most 15 bytes.
    pub name: String,
    /// One letter: `R` running, `S` sleeping, `D` in the kernel, `T` stopped, `Z` ended and not reaped.
    pub state: char,
    /// Its parent's number.
    pub parent: i32,
    /// How many threads it has; 0 once it has ended.
    pub threads: u64,
    /// Its session's number.
    pub session: i32,
    /// CPU time it has used, in clock ticks.
    pub cpu_ticks: u64,
    /// CPU time of its children that have ended and been reaped, in clock ticks.
    pub reaped_cpu_ticks: u64,
    /// When it started, in clock ticks since the boot.
    pub start_ticks: u64,
}

impl Entry {
    /// Who it is.
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, start_ticks: self.start_ticks, boot: boot_id() }
    }

    /// Whether it has ended and only waits to be reaped. A process whose first thread alone has ended lives on.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }

    /// The row of one pid, if there is such a process.
    #[cfg(target_os = "linux")]
    pub fn read(pid: i32) -> Option<Entry> {
        let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        parse_stat(&String::from_utf8_lossy(&bytes))
    }

    /// The row of one pid, if there is such a process.
    #[cfg(not(target_os = "linux"))]
    pub fn read(pid: i32) -> Option<Entry> {
        ps(&["-p", &pid.to_string()]).into_iter().next()
    }
}

/// A look at all processes.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: Vec<Entry>,
}

impl Table {
    /// Takes the look. Processes that come or go meanwhile may be missing.
    #[cfg(target_os = "linux")]
    pub fn read() -> Table {
        Table { entries: Table::pids().into_iter().filter_map(Entry::read).collect() }
    }

    /// All numbers that are taken.
    #[cfg(target_os = "linux")]
    pub(super) fn pids() -> Vec<i32> {
        let folder = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        folder.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// All numbers that are taken.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn pids() -> Vec<i32> {
        Table::read().entries.iter().map(|entry| entry.pid).collect()
    }

    /// Takes the look. Processes that come or go meanwhile may be missing.
    #[cfg(not(target_os = "linux"))]
    pub fn read() -> Table {
        Table { entries: ps(&["-A"]) }
    }

    /// All rows.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The row of one pid.
    pub fn get(&self, pid: i32) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.pid == pid)
    }

    /// All that descend from a process, itself not among them.
    pub fn descendants(&self, pid: i32) -> Vec<&Entry> {
        let mut family = HashSet::from([pid]);
        let mut found = Vec::new();
        let mut generation = vec![pid];
        while !generation.is_empty() {
            let children: Vec<&Entry> =
                self.entries.iter().filter(|entry| generation.contains(&entry.parent)).collect();
            let fresh: Vec<&Entry> = children.into_iter().filter(|entry| family.insert(entry.pid)).collect();
            generation = fresh.iter().map(|entry| entry.pid).collect();
            found.extend(fresh);
        }
        found
    }
}

/// Reads a line of `/proc/<pid>/stat`. The name stands in parentheses and may hold anything, these included.
#[cfg(target_os = "linux")]
fn parse_stat(text: &str) -> Option<Entry> {
    let (front, rest) = text.rsplit_once(')')?;
    let (pid, name) = front.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // proc(5) counts from 1; the state, field 3, is the first one here.
    let field = |number: usize| fields.get(number - 3).copied();
    let count = |number: usize| field(number)?.parse::<u64>().ok();
    let id = |number: usize| field(number)?.parse::<i32>().ok();
    Some(Entry {
        pid: pid.trim().parse().ok()?,
        name: name.to_owned(),
        state: field(3)?.chars().next()?,
        parent: id(4)?,
        threads: count(20)?,
        session: id(6)?,
        cpu_ticks: count(14)? + count(15)?,
        reaped_cpu_ticks: count(16)?.saturating_add(count(17)?),
        start_ticks: count(22)?,
    })
}

/// Elsewhere `ps` is asked. Its start times have a resolution of a second.
#[cfg(not(target_os = "linux"))]
fn ps(which: &[&str]) -> Vec<Entry> {
    let columns = ["-o", "pid=,ppid=,sess=,stat=,lstart=,comm="];
    let asked = std::process::Command::new("/bin/ps").args(which).args(columns).env("LC_ALL", "C").output();
    let text = asked.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(parse_ps).collect()
}

/// A line of `ps`: pid, parent, session, state, five words of start time, name. The start time is taken as the
/// number that its digits and letters make: all that is asked of it is to differ.
#[cfg(not(target_os = "linux"))]
fn parse_ps(line: &str) -> Option<Entry> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut start = DefaultHasher::new();
    words.get(4..9)?.hash(&mut start);
    let pid = words.first()?.parse().ok()?;
    let session = rustix::process::Pid::from_raw(pid).and_then(|pid| rustix::process::getsid(Some(pid)).ok());
    Some(Entry {
        pid,
        name: words.get(9..)?.join(" "),
        state: words.get(3)?.chars().next()?,
        parent: words.get(1)?.parse().ok()?,
        threads: 1,
        session: session.map_or(0, |session| session.as_raw_nonzero().get()),
        cpu_ticks: 0,
        reaped_cpu_ticks: 0,
        start_ticks: start.finish() >> 1,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_with_parentheses_and_spaces_is_read() {
        let line = "7 (a) (b) 9 x) S 3 7 5 0 -1 0 0 0 0 0 10 20 30 40 20 0 1 0 12345 1 1";
        let entry = parse_stat(line).unwrap();
        assert_eq!((entry.pid, entry.name.as_str(), entry.state), (7, "a) (b) 9 x", 'S'));
        assert_eq!((entry.parent, entry.session, entry.start_ticks), (3, 5, 12_345));
        assert_eq!((entry.cpu_ticks, entry.reaped_cpu_ticks), (30, 70));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn cut_lines_are_no_entries() {
        assert_eq!(parse_stat(""), None);
        assert_eq!(parse_stat("7 (a) S 3 7"), None);
        assert_eq!(parse_stat("7 (a"), None);
    }

    #[test]
    fn this_process_is_alive_and_descends_from_its_parent() {
        let own = Identity::own().unwrap();
        assert!(own.is_alive());
        let parent = Entry::read(own.pid).unwrap().parent;
        assert!(Table::read().descendants(parent).iter().any(|entry| entry.identity() == own));
    }

    #[test]
    fn another_start_or_another_boot_is_another_process() {
        let own = Identity::own().unwrap();
        assert!(!Identity { start_ticks: own.start_ticks + 1, ..own.clone() }.is_alive());
        assert!(!Identity { boot: "other".to_owned(), ..own }.is_alive());
    }

    #[test]
    fn an_ended_child_is_not_alive_even_before_it_is_reaped() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let identity = Identity::of(i32::try_from(child.id()).unwrap()).unwrap();
        let end = crate::os::wait::Countdown::start(5_000);
        while identity.is_alive() && !end.is_over() {
            std::thread::yield_now();
        }
        assert!(!identity.is_alive());
        assert_eq!(Identity::of(identity.pid), Some(identity));
        child.wait().unwrap();
    }
}
