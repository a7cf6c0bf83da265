//! The table of keys as text for readers: one section a level, one line a key.

use std::fmt::Write;

use super::{Key, Kind, Level, of};

/// Markdown with every key of every level; `docs/workflow.md` holds it.
pub fn reference() -> String {
    let mut out = String::new();
    for level in Level::ALL {
        // Writing to a string can't fail.
        let _ = writeln!(out, "### {}\n\n{}\n", title(*level), level.about());
        out.push_str("| key | value | default | meaning |\n| --- | --- | --- | --- |\n");
        for key in of(*level) {
            let _ = writeln!(out, "| `{}` | {} | {} | {} |", key.name, value(key), default(key), meaning(key));
        }
        out.push('\n');
    }
    out.trim_end().to_owned() + "\n"
}

fn title(level: Level) -> String {
    let heading = level.heading();
    if heading.starts_with('[') { format!("`{heading}`") } else { heading.to_owned() }
}

fn value(key: &Key) -> String {
    match key.kind {
        Kind::Word(words) if words.len() == 1 => format!("`{}`", words.join("")),
        Kind::Word(words) => format!("`{}`", words.join("` `")),
        Kind::Words(words) => format!("a list of `{}`", words.join("` `")),
        Kind::Table(level) | Kind::Named(level) | Kind::List(level) => format!("see {}", title(level)),
        Kind::Text(_) | Kind::Flag | Kind::Count { .. } => key.kind.expects(),
        kind => format!("{}, such as `{}`", kind.expects(), kind.example()),
    }
}

fn default(key: &Key) -> String {
    match key.default_value() {
        Some(value) if value != "" => format!("`{}`", key.default),
        _ => key.default.to_owned(),
    }
}

fn meaning(key: &Key) -> String {
    let mut text = key.about.to_owned();
    if key.reserved {
        text.push_str(" *Reserved.*");
    }
    match key.merge {
        super::Merge::Stricter => text.push_str(" The smallest value of all files holds."),
        super::Merge::Union => text.push_str(" Those of all files hold."),
        super::Merge::Nearest => {}
    }
    if key.widens {
        text.push_str(" *Trusted.*");
    }
    text
}
