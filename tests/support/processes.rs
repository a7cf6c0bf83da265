//! Processes, found by the private home in their environment and ended by their ids.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// A process of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub pid: i32,
    /// Its words.
    pub words: Vec<String>,
}

/// Lives, and is no zombie.
pub fn is_alive(pid: i32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Sends a signal to one process.
pub fn send(pid: i32, signal: Signal) {
    nix::sys::signal::kill(Pid::from_raw(pid), signal).unwrap();
}

/// Kills one process and waits until it is gone.
pub fn kill(pid: i32) {
    // It may have ended by itself in between.
    let _ = nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL);
    super::wait_until("a killed process is gone", || !is_alive(pid));
}

/// Processor time that a process has used, in milliseconds.
pub fn thread_cpu_ms(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks * 10
}

/// Every living process whose environment has this home.
pub fn under_home(home: &Path) -> Vec<Found> {
    let mark = [b"HOME=", home.as_os_str().as_bytes()].concat();
    let has_mark = |environment: Vec<u8>| environment.split(|byte| *byte == 0).any(|variable| variable == mark);
    let mut found: Vec<Found> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(has_mark) && is_alive(*pid))
        .map(|pid| Found { pid, words: words(pid) })
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

fn words(pid: i32) -> Vec<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Kills, by id, until none is left.
pub fn end_all(list: impl Fn() -> Vec<Found>) {
    for _ in 0..50 {
        let left = list();
        if left.is_empty() {
            return;
        }
        for process in &left {
            let _ = nix::sys::signal::kill(Pid::from_raw(process.pid), Signal::SIGKILL);
        }
        for process in &left {
            super::wait_until("a killed process is gone", || !is_alive(process.pid));
        }
    }
}
