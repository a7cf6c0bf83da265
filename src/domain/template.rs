//! `${name}` in strings: which names there are, and putting values in their place.
//!
//! Three times: parameters when a run is prepared ([`bind_text`], [`bind_argv`], [`bind_prose`]), the names of an
//! attempt when a command starts ([`expand`]), and job and inputs when a prompt is written ([`fill`]). A value put
//! in is never looked at again: what looks like a template in it stays as it is. It does not know where values
//! come from, and never splits a string into words.

use std::collections::BTreeMap;

/// What a command's words may name when it starts, beside `params.x`. The token is not among them.
pub const LAUNCH_NAMES: &[&str] = &[
    "prompt",
    "prompt_file",
    "packet_file",
    "result_file",
    "inputs",
    "cwd",
    "scratch",
    "tmp",
    "run",
    "job",
    "attempt",
    "session",
    "role",
    "lane",
    "model",
    "budget.cost_left",
    "resource",
    "striatum",
];

/// A template that names nothing, or has no end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown template `${{{name}}}`")]
pub struct UnknownTemplate {
    /// What stands between the braces.
    pub name: String,
}

/// Puts values in place, for a word of a command line at launch; `$${` becomes a literal `${`.
///
/// # Errors
/// The first name for which `lookup` has nothing.
pub fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, UnknownTemplate> {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Literal => out.push_str("${"),
            Piece::Name(name) => match lookup(name) {
                Some(value) => out.push_str(&value),
                None => return Err(UnknownTemplate { name: name.to_owned() }),
            },
            Piece::Open(rest) => return Err(UnknownTemplate { name: rest.to_owned() }),
        }
    }
    Ok(out)
}

/// Puts job and inputs in place in a prompt, an objective or a role's instructions; all else is left.
pub fn fill(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut pieces = pieces(text).peekable();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Name(name) if is_prose(name) => match lookup(name) {
                Some(value) => out.push_str(&value),
                None => piece.write(&mut out),
            },
            Piece::Literal if matches!(pieces.peek(), Some(Piece::Text(next)) if begins_with_prose(next)) => {
                out.push_str("${");
            }
            piece => piece.write(&mut out),
        }
    }
    out
}

/// The names in a text, in order; an unclosed one is named by the rest of the text.
pub fn names(text: &str) -> Vec<&str> {
    let name = |piece| match piece {
        Piece::Name(name) | Piece::Open(name) => Some(name),
        Piece::Text(_) | Piece::Literal => None,
    };
    pieces(text).filter_map(name).collect()
}

/// Whether a name may stand in prompts and role files.
pub fn is_prose(name: &str) -> bool {
    name == "job" || name.starts_with("inputs.") || name.starts_with("params.")
}

/// Parameters in a string that nobody looks at again.
///
/// # Errors
/// The first name that is no parameter with a value.
pub fn bind_text(text: &str, params: &BTreeMap<String, String>) -> Result<String, UnknownTemplate> {
    expand(text, &|name| param(name, params).cloned())
}

/// Parameters in a word that [`expand`] will see again at launch.
pub fn bind_argv(text: &str, params: &BTreeMap<String, String>) -> String {
    bind(text, params, |value| value.replace("${", "$${"))
}

/// Parameters in a text that [`fill`] will see again.
pub fn bind_prose(text: &str, params: &BTreeMap<String, String>) -> String {
    bind(text, params, escape_prose)
}

/// `$${` becomes a literal `${` where [`fill`] would not take it for a template anyway; a prompt file keeps it as it
/// is, a string of a workflow file does not.
pub fn settle_literals(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut pieces = pieces(text).peekable();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Literal if !matches!(pieces.peek(), Some(Piece::Text(next)) if begins_with_prose(next)) => {
                out.push_str("${");
            }
            piece => piece.write(&mut out),
        }
    }
    out
}

fn bind(text: &str, params: &BTreeMap<String, String>, escape: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Name(name) => match param(name, params) {
                Some(value) => out.push_str(&escape(value)),
                None => piece.write(&mut out),
            },
            piece => piece.write(&mut out),
        }
    }
    out
}

fn param<'a>(name: &str, params: &'a BTreeMap<String, String>) -> Option<&'a String> {
    params.get(name.strip_prefix("params.")?)
}

/// Only what `fill` would take for a template needs a shield; shell text in a task stays as it was typed.
fn escape_prose(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        if begins_with_prose(&after[2..]) {
            out.push('$');
        }
        out.push_str("${");
        rest = &after[2..];
    }
    out.push_str(rest);
    out
}

fn begins_with_prose(text: &str) -> bool {
    text.split_once('}').is_some_and(|(name, _)| is_prose(name))
}

#[derive(Clone, Copy)]
enum Piece<'a> {
    Text(&'a str),
    /// `$${`
    Literal,
    /// `${name}`
    Name(&'a str),
    /// `${` without an end.
    Open(&'a str),
}

impl Piece<'_> {
    fn write(self, out: &mut String) {
        match self {
            Piece::Text(text) => out.push_str(text),
            Piece::Literal => out.push_str("$${"),
            Piece::Name(name) => {
                out.push_str("${");
                out.push_str(name);
                out.push('}');
            }
            Piece::Open(rest) => {
                out.push_str("${");
                out.push_str(rest);
            }
        }
    }
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = first_piece(rest)?;
        rest = after;
        Some(piece)
    })
}

fn first_piece(text: &str) -> Option<(Piece<'_>, &str)> {
    if text.is_empty() {
        return None;
    }
    if let Some(after) = text.strip_prefix("$${") {
        return Some((Piece::Literal, after));
    }
    if let Some(after) = text.strip_prefix("${") {
        return Some(match after.split_once('}') {
            Some((name, after)) => (Piece::Name(name), after),
            None => (Piece::Open(after), ""),
        });
    }
    let end = text.find("${").map_or(text.len(), |at| if text[..at].ends_with('$') { at - 1 } else { at });
    Some((Piece::Text(&text[..end]), &text[end..]))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "job" => Some("draft".into()),
            "prompt" => Some("say ${job} and $${x}".into()),
            "inputs.draft.patch" => Some("inputs/draft/patch".into()),
            _ => None,
        }
    }

    #[test]
    fn whole_and_part_of_a_word_are_replaced_once() {
        assert_eq!(expand("${prompt}", &lookup).unwrap(), "say ${job} and $${x}");
        assert_eq!(expand("--job=${job}!", &lookup).unwrap(), "--job=draft!");
        assert_eq!(expand("", &lookup).unwrap(), "");
    }

    #[test]
    fn a_doubled_dollar_is_literal() {
        assert_eq!(expand("$${job} $$$ $x ${job}$", &lookup).unwrap(), "${job} $$$ $x draft$");
        assert_eq!(expand("$$${job}", &lookup).unwrap(), "$${job}");
    }

    #[test]
    fn an_unknown_or_unclosed_name_is_an_error() {
        assert_eq!(expand("${jop}", &lookup), Err(UnknownTemplate { name: "jop".into() }));
        assert_eq!(expand("a ${job", &lookup), Err(UnknownTemplate { name: "job".into() }));
    }

    #[test]
    fn prose_keeps_what_it_does_not_know() {
        let text = "In ${job}: ${inputs.draft.patch}, ${HOME}, ${inputs.x.y}, $${job}, $${HOME}, ${open";
        let filled = "In draft: inputs/draft/patch, ${HOME}, ${inputs.x.y}, ${job}, $${HOME}, ${open";
        assert_eq!(fill(text, &lookup), filled);
    }

    #[test]
    fn a_value_that_looks_like_a_template_survives_both_steps() {
        let params = BTreeMap::from([("task".to_owned(), "why ${job} and ${HOME}?".to_owned())]);
        let word = bind_argv("${params.task} ${job}", &params);
        assert_eq!(expand(&word, &lookup).unwrap(), "why ${job} and ${HOME}? draft");
        let prose = bind_prose("${params.task} ${job} ${params.other}", &params);
        assert_eq!(fill(&prose, &lookup), "why ${job} and ${HOME}? draft ${params.other}");
        assert_eq!(bind_text("${params.task}", &params).unwrap(), "why ${job} and ${HOME}?");
    }

    #[test]
    fn literals_of_a_toml_string_end_at_prepare_unless_fill_would_replace_them() {
        assert_eq!(settle_literals("$${x} $${job} ${job} $${"), "${x} $${job} ${job} ${");
    }

    #[test]
    fn names_come_in_order() {
        assert_eq!(names("${a}$${b}${c"), ["a", "c"]);
    }
}
