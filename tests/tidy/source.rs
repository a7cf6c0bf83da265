//! The source as these tests read it: files, and their code without comments, texts and tests.

use std::path::{Path, PathBuf};

/// A file of the project.
pub struct Source {
    /// Relative to the project: `src/store/run.rs`.
    pub path: String,
    /// All of it.
    pub text: String,
    /// Its code: comments and the insides of texts are blank, and what only tests see is gone. Lines keep their places.
    pub code: String,
}

impl Source {
    /// The room of `src/` it stands in: a folder, or the file's own name at the top.
    pub fn room(&self) -> &str {
        let inside = self.path.trim_start_matches("src/");
        inside.split(['/', '.']).next().unwrap_or_default()
    }

    /// Only tests see it.
    pub fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }
}

/// Every Rust file of `src/`, sorted by path.
pub fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources: Vec<Source> = files_below(&root.join("src"), "rs")
        .into_iter()
        .map(|file| {
            let text = std::fs::read_to_string(&file).unwrap();
            let path = file.strip_prefix(root).unwrap().display().to_string();
            Source { path, code: without_tests(&blank(&text)), text }
        })
        .collect();
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(sources.len() > 100);
    sources
}

/// Files below a folder whose name ends so.
pub fn files_below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                found.push(path);
            }
        }
    }
    found
}

/// Blanks comments and the insides of texts and letters; every other byte and every line stays.
pub fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = if rest.starts_with(b"//") {
            at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            at + find(rest, b"*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(end) = raw_text(rest) {
            at + end
        } else if rest[0] == b'"' {
            at + plain_text(rest)
        } else if let Some(end) = letter(rest) {
            at + end
        } else {
            at += 1;
            continue;
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8(out).unwrap()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Length of a raw text that begins here.
fn raw_text(rest: &[u8]) -> Option<usize> {
    let after = rest.strip_prefix(b"r")?;
    let hashes = after.iter().take_while(|byte| **byte == b'#').count();
    if after.get(hashes) != Some(&b'"') {
        return None;
    }
    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let start = hashes + 2;
    Some(start + find(&rest[start..], &close)? + close.len())
}

/// Length of a text that begins here.
fn plain_text(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Length of a letter like 'x' or '\n' that begins here; a lifetime is none.
fn letter(rest: &[u8]) -> Option<usize> {
    if rest[0] != b'\'' {
        return None;
    }
    if rest.get(1) == Some(&b'\\') {
        return rest.iter().skip(3).position(|byte| *byte == b'\'').map(|end| end + 4);
    }
    let width = std::str::from_utf8(&rest[1..rest.len().min(5)]).ok().and_then(|text| text.chars().next())?.len_utf8();
    (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

/// Blanks what stands under `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(start) = out.find("#[cfg(test)]") {
        let body = out[start..].find(['{', ';']).map_or(out.len(), |at| start + at);
        let end = if out[body..].starts_with('{') { closing(&out, body) } else { body + 1 };
        let blanked: String = out[start..end].chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }).collect();
        out.replace_range(start..end, &blanked);
    }
    out
}

/// Where the brace that opens at `open` closes.
pub fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        depth += match byte {
            b'{' => 1,
            b'}' => -1,
            _ => 0,
        };
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The paths `crate::x::y` that code names, each with its line.
pub fn own_paths(code: &str) -> Vec<(usize, String)> {
    paths(code, "crate::")
}

/// The paths that begin so, each with its line; a list in braces gives one path an entry.
pub fn paths(code: &str, beginning: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(beginning) {
        let is_whole = !code[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        if !is_whole {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let rest = &code[at + beginning.len()..];
        let head: String =
            rest.chars().take_while(|letter| letter.is_alphanumeric() || "_:".contains(*letter)).collect();
        match rest[head.len()..].strip_prefix('{') {
            Some(list) => {
                let list = &list[..list.find('}').unwrap_or(list.len())];
                let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
                found.extend(entries.map(|entry| (line, format!("{head}{entry}"))));
            }
            None => found.push((line, head)),
        }
    }
    found
}

#[test]
fn code_is_told_from_comments_and_texts() {
    let text =
        "let a = \"std::fs // no\"; // std::fs\nlet b = r#\"x\"y\"#; let c = '\"'; fn d<'a>() {}\n/* std::fs\n */ e\n";
    let code = blank(text);
    assert_eq!(code.lines().count(), text.lines().count());
    assert!(!code.contains("std::fs") && !code.contains('"') && code.contains("fn d<'a>() {}"), "{code}");
    assert!(code.ends_with("    e\n"), "{code}");
}
