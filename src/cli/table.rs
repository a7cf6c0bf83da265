//! Rows in columns, and the small words that several views share.
//!
//! It does not know what the columns mean.

use crate::domain::time::{Timestamp, show_age, show_duration};

/// Rows with their columns one below the other; the last column is as long as it likes.
pub fn table(indent: &str, rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column).filter(|_| column + 1 < row.len()));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = indent.to_owned();
        for (cell, width) in row.iter().zip(&widths).filter(|(cell, width)| **width > 0 || !cell.is_empty()) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `and 3 more`, when something is left out.
pub fn left_out(count: u32, indent: &str) -> String {
    if count == 0 { String::new() } else { format!("{indent}and {count} more\n") }
}

/// How long ago, in its largest unit.
pub fn ago(ms: u64) -> String {
    show_age(ms)
}

/// A duration without the milliseconds that nobody wants to read.
pub fn took(ms: u64) -> String {
    if ms < 10_000 { format!("{}.{}s", ms / 1_000, ms % 1_000 / 100) } else { show_duration(ms / 1_000 * 1_000) }
}

/// Micro-dollars.
pub fn dollars(micro: u64) -> String {
    format!("${}.{:02}", micro / 1_000_000, micro % 1_000_000 / 10_000)
}

/// The time of day of a moment, in UTC as everywhere.
pub fn clock(at: Timestamp) -> String {
    at.to_string().get(11..19).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_one_below_the_other() {
        let rows = [("a", "long cell", "end"), ("bcd", "x", ""), ("", "", "")];
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| vec![row.0.to_owned(), row.1.to_owned(), row.2.to_owned()]).collect();
        assert_eq!(table("  ", &rows), "  a    long cell  end\n  bcd  x\n\n");
    }

    #[test]
    fn an_empty_column_takes_no_room() {
        let rows = [vec!["a".to_owned(), String::new(), "b".to_owned()]];
        assert_eq!(table("", &rows), "a  b\n");
    }

    #[test]
    fn money_and_time_are_short() {
        assert_eq!(dollars(1_234_567), "$1.23");
        assert_eq!(took(1_290), "1.2s");
        assert_eq!(took(61_500), "1m1s");
    }
}
