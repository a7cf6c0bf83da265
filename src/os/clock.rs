//! The clock: wall time for people, (boot, monotonic milliseconds) for deadlines.
//!
//! It does not know what waits for a time.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::domain::time::{Moment, Timestamp};

/// Reads the time. Copies are the same clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// Wall-clock time. It may step; nothing is ordered or ended by it.
    pub fn now(self) -> Timestamp {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        Timestamp(i64::try_from(wall).unwrap_or(i64::MAX).saturating_add(shift().wall_ms))
    }

    /// The moment in this boot, by CLOCK_MONOTONIC: suspend does not count on Linux.
    pub fn moment(self) -> Moment {
        Moment { boot: boot_id(), ms: monotonic_ms().saturating_add(shift().monotonic_ms) }
    }
}

/// What names this boot. Two boots never share it; containers share that of their host.
pub fn boot_id() -> String {
    shift().boot.unwrap_or_else(real_boot_id)
}

/// CLOCK_MONOTONIC in milliseconds, untouched by any test: what bounded waits inside this process count by.
pub(crate) fn monotonic_ms() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.saturating_mul(1_000).saturating_add(time.tv_nsec / 1_000_000)
}

#[cfg(target_os = "linux")]
fn real_boot_id() -> String {
    static BOOT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let read = || std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    BOOT.get_or_init(|| read().map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())).clone()
}

/// Elsewhere the kernel's boot time stands for the boot; it is asked once a process.
#[cfg(not(target_os = "linux"))]
fn real_boot_id() -> String {
    static BOOT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let ask = || std::process::Command::new("/usr/sbin/sysctl").args(["-n", "kern.boottime"]).output();
    BOOT.get_or_init(|| {
        ask().map_or_else(|_| "unknown".to_owned(), |out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    })
    .clone()
}

/// How far a test has moved the clock.
#[derive(Default)]
struct Shift {
    wall_ms: i64,
    monotonic_ms: i64,
    boot: Option<String>,
}

/// The only seam: `STRIATUM_TEST_CLOCK` names a file with "wall_ms monotonic_ms boot|-", read at each look.
/// It does not exist in a release build, where an agent could set it.
#[cfg(debug_assertions)]
fn shift() -> Shift {
    std::env::var_os("STRIATUM_TEST_CLOCK")
        .and_then(|path| std::fs::read_to_string(path).ok())
        .map(|text| parse_shift(&text))
        .unwrap_or_default()
}

#[cfg(not(debug_assertions))]
fn shift() -> Shift {
    Shift::default()
}

#[cfg(debug_assertions)]
fn parse_shift(text: &str) -> Shift {
    let mut words = text.split_whitespace();
    let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let (wall_ms, monotonic_ms) = (number(), number());
    Shift { wall_ms, monotonic_ms, boot: words.next().filter(|word| *word != "-").map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_one_process_are_of_one_boot_and_do_not_step_back() {
        let (first, second) = (Clock.moment(), Clock.moment());
        assert_eq!(first.boot, second.boot);
        assert!(!first.boot.is_empty() && first.boot != "unknown");
        assert!(first.ms <= second.ms);
    }

    #[cfg(debug_assertions)]
    #[test]
    fn a_shift_is_two_numbers_and_a_boot() {
        let shift = parse_shift("-86400000 5000 other\n");
        assert_eq!((shift.wall_ms, shift.monotonic_ms, shift.boot.as_deref()), (-86_400_000, 5_000, Some("other")));
        let shift = parse_shift("1 2 -");
        assert_eq!((shift.wall_ms, shift.monotonic_ms, shift.boot), (1, 2, None));
    }
}
