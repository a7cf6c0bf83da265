//! Trailers at the end of a commit's message: which are there, and the message with those that are missing.
//!
//! It works on bytes, because a message need not be UTF-8, and does not know what the trailers are for.

/// Names the run that a commit comes from.
pub const RUN: &str = "Striatum-Run";

/// Where the commit of an attempt comes from.
pub fn of_attempt(run: &str, job: &str, attempt: u32) -> [(&'static str, String); 3] {
    [(RUN, run.to_owned()), ("Striatum-Job", job.to_owned()), ("Striatum-Attempt", attempt.to_string())]
}

/// A body with trailers below it, whatever it ends with: what it claims itself is no trailer of ours.
pub fn below(body: &str, trailers: &[(&str, String)]) -> String {
    let lines: String = trailers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    format!("{}\n\n{lines}", body.trim_end())
}

/// What git cuts off when it edits a message verbosely, after the comment sign.
const SCISSORS: &[u8] = b" ------------------------ >8 ------------------------";

/// The message with the trailers that it lacks, above trailing comments and a scissors line; none when nothing is
/// missing, or when there is no message at all: git refuses an empty one, and trailers would make it one.
///
/// `comment` is the repository's sign for comments; none where the message holds none.
pub fn added(message: &[u8], comment: Option<&[u8]>, trailers: &[(&str, String)]) -> Option<Vec<u8>> {
    let body = body_end(message, comment);
    let (text, rest) = message.split_at(body);
    let is_comment = |line: &[u8]| comment.is_some_and(|sign| line.starts_with(sign));
    if lines(text).all(|line| is_comment(line) || line.trim_ascii().is_empty()) {
        return None;
    }
    let last = last_paragraph(text);
    let is_there = |name: &str| last.iter().any(|line| is_trailer_of(line, name));
    let missing: Vec<_> = trailers.iter().filter(|(name, _)| !is_there(name)).collect();
    if missing.is_empty() {
        return None;
    }
    let mut out = text.to_vec();
    if !out.ends_with(b"\n") {
        out.push(b'\n');
    }
    // A subject is no trailer, whatever it looks like.
    let is_first = paragraphs(text) == 1;
    if is_first || !last.iter().all(|line| is_trailer(line)) {
        out.push(b'\n');
    }
    for (name, value) in missing {
        out.extend_from_slice(format!("{name}: {value}\n").as_bytes());
    }
    out.extend_from_slice(rest);
    Some(out)
}

/// Where the message ends: before the scissors, and before comments and empty lines at its end.
fn body_end(message: &[u8], comment: Option<&[u8]>) -> usize {
    let (mut at, mut end) = (0, 0);
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        let plain = line.strip_suffix(b"\n").unwrap_or(line);
        let after_sign = comment.and_then(|sign| plain.strip_prefix(sign));
        if after_sign.is_some_and(|after| after.trim_ascii_end() == SCISSORS) {
            break;
        }
        at += line.len();
        if after_sign.is_none() && !plain.trim_ascii().is_empty() {
            end = at;
        }
    }
    end
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

/// The lines of the last paragraph.
fn last_paragraph(text: &[u8]) -> Vec<&[u8]> {
    let all: Vec<&[u8]> = lines(text).collect();
    let filled = |line: &&&[u8]| !line.trim_ascii().is_empty();
    let mut last: Vec<&[u8]> = all.iter().rev().skip_while(|line| !filled(line)).take_while(filled).copied().collect();
    last.reverse();
    last
}

fn paragraphs(text: &[u8]) -> usize {
    let mut was_empty = true;
    lines(text)
        .filter(|line| {
            let is_empty = line.trim_ascii().is_empty();
            let begins = was_empty && !is_empty;
            was_empty = is_empty;
            begins
        })
        .count()
}

/// `Name: value`, or the further lines of one.
fn is_trailer(line: &[u8]) -> bool {
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return true;
    }
    let name: Vec<u8> = line.iter().copied().take_while(|byte| *byte != b':').collect();
    let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    is_name && line.get(name.len()) == Some(&b':')
}

fn is_trailer_of(line: &[u8], name: &str) -> bool {
    let wanted = name.as_bytes();
    line.len() > wanted.len() && line[..wanted.len()].eq_ignore_ascii_case(wanted) && line[wanted.len()] == b':'
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const SIGN: Option<&[u8]> = Some(b"#");

    fn with(message: &str, comment: Option<&[u8]>) -> Option<String> {
        let trailers = [("Run", "w-1".to_owned()), ("Job", "draft".to_owned())];
        added(message.as_bytes(), comment, &trailers).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn trailers_stand_in_a_paragraph_of_their_own() {
        assert_eq!(with("Say it\n", SIGN).unwrap(), "Say it\n\nRun: w-1\nJob: draft\n");
        assert_eq!(with("Say it", SIGN).unwrap(), "Say it\n\nRun: w-1\nJob: draft\n");
        assert_eq!(with("fix: it\n", SIGN).unwrap(), "fix: it\n\nRun: w-1\nJob: draft\n");
        assert_eq!(
            with("Say it\n\nAt length.\n\n\n", SIGN).unwrap(),
            "Say it\n\nAt length.\n\nRun: w-1\nJob: draft\n\n\n"
        );
    }

    #[test]
    fn they_join_trailers_that_are_there_and_none_is_said_twice() {
        let before = "Say it\n\nSigned-off-by: A <a@example.org>\nrun: other\n";
        assert_eq!(with(before, SIGN).unwrap(), format!("{before}Job: draft\n"));
        assert_eq!(with(&with("Say it\n", SIGN).unwrap(), SIGN), None);
    }

    #[test]
    fn comments_and_what_is_cut_off_stay_below() {
        let comments = "\n# Please enter the message\n#\n# Changes:\n";
        assert_eq!(
            with(&format!("Say it\n{comments}"), SIGN).unwrap(),
            format!("Say it\n\nRun: w-1\nJob: draft\n{comments}")
        );
        let verbose = "# ------------------------ >8 ------------------------\n# Do not touch\ndiff --git a/x b/x\n";
        assert_eq!(
            with(&format!("Say it\n\n{verbose}"), SIGN).unwrap(),
            format!("Say it\n\nRun: w-1\nJob: draft\n\n{verbose}")
        );
        assert_eq!(with("Say it\n; note\n", Some(b";")).unwrap(), "Say it\n\nRun: w-1\nJob: draft\n; note\n");
    }

    #[test]
    fn a_line_that_only_looks_like_a_comment_belongs_to_the_message() {
        assert_eq!(with("Say it\n\n#123\n", None).unwrap(), "Say it\n\n#123\n\nRun: w-1\nJob: draft\n");
    }

    #[test]
    fn a_message_that_says_nothing_stays_empty() {
        for empty in
            ["", "\n\n", "# only\n# comments\n", "\n# ------------------------ >8 ------------------------\ndiff\n"]
        {
            assert_eq!(with(empty, SIGN), None, "{empty:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        let message = added(b"caf\xe9\n", SIGN, &[("Run", "w-1".to_owned())]).unwrap();
        assert_eq!(message, b"caf\xe9\n\nRun: w-1\n");
    }
}
