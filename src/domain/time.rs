//! Points in time as values. Nothing here reads a clock.
//!
//! Wall time is for people; deadlines are (boot, monotonic milliseconds), so that suspend and
//! wall-clock jumps do not burn them and another boot ends them all.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Wall-clock time in milliseconds since 1970, written as RFC 3339 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub i64);

impl std::fmt::Display for Timestamp {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(out, "{time:.3}"),
            Err(_) => write!(out, "{}ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        let time: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Timestamp(time.as_millisecond()))
    }
}

/// A moment of one boot: comparable only within it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The kernel's boot id.
    pub boot: String,
    /// CLOCK_MONOTONIC in milliseconds.
    pub ms: i64,
}

impl Moment {
    /// The moment `ms` milliseconds later in the same boot.
    pub fn after(&self, ms: u64) -> Moment {
        Moment { boot: self.boot.clone(), ms: self.ms.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)) }
    }

    /// Whether a deadline has passed: in the same boot by the clock, in another boot always.
    pub fn is_past(&self, now: &Moment) -> bool {
        self.boot != now.boot || self.ms <= now.ms
    }
}

/// A duration as people write it: `90s`, `15m`, `2h`, `250ms`, `1m30s`; in milliseconds.
pub fn parse_duration(text: &str) -> Option<u64> {
    let ends_part = |(at, pair): (usize, &[u8])| pair[0].is_ascii_alphabetic() && pair[1].is_ascii_digit() && at > 0;
    let cut = text.as_bytes().windows(2).enumerate().position(ends_part).map(|at| at + 1);
    match cut {
        Some(cut) => parse_part(text.get(..cut)?)?.checked_add(parse_duration(text.get(cut..)?)?),
        None => parse_part(text),
    }
}

fn parse_part(text: &str) -> Option<u64> {
    let split = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (digits, unit) = text.split_at(split);
    let count: u64 = digits.parse().ok()?;
    let factor = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    count.checked_mul(factor)
}

/// A duration in the largest units that tell it: `2h`, `1m30s`, `250ms`.
pub fn show_duration(ms: u64) -> String {
    if ms < 1_000 {
        return format!("{ms}ms");
    }
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    let mut text = String::new();
    for (count, unit) in [(hours, "h"), (minutes, "m"), (seconds, "s")] {
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    text
}

/// How long ago, in its largest unit alone: `3d`, `4m`, `0s`.
pub fn show_age(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m")];
    let largest = units.into_iter().find(|(unit, _)| ms >= *unit);
    largest.map_or_else(|| format!("{}s", ms / 1_000), |(unit, word)| format!("{}{word}", ms / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_write() {
        assert_eq!(parse_duration("250ms"), Some(250));
        assert_eq!(parse_duration("2h"), Some(7_200_000));
        assert_eq!(parse_duration("1m30s"), Some(90_000));
        assert_eq!(parse_duration("1h2"), None);
        assert_eq!(parse_duration("2"), None);
        assert_eq!(parse_duration("h"), None);
        assert_eq!(show_duration(90_000), "1m30s");
        assert_eq!(show_duration(7_200_000), "2h");
    }

    #[test]
    fn an_age_is_told_in_its_largest_unit() {
        let shown = [0, 999, 59_999, 60_000, 7_199_999, 90_000_000].map(show_age);
        assert_eq!(shown, ["0s", "0s", "59s", "1m", "1h", "1d"]);
    }

    #[test]
    fn a_deadline_of_another_boot_is_past() {
        let set = Moment { boot: "a".into(), ms: 1_000 };
        assert!(!set.is_past(&Moment { boot: "a".into(), ms: 999 }));
        assert!(set.is_past(&Moment { boot: "b".into(), ms: 0 }));
    }

    #[test]
    fn times_are_rfc_3339_with_milliseconds() {
        assert_eq!(Timestamp(1_700_000_000_042).to_string(), "2023-11-14T22:13:20.042Z");
    }
}
