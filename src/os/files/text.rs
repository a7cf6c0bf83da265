//! An agent's output, made fit to be shown: whatever it printed, a reader's terminal stays as it is.
//!
//! It does not know where the text is shown.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::super::Fault;

/// The end of a file as text: at most `most` bytes, from a whole character on, escape sequences dropped, other
/// control characters escaped, bytes that are no UTF-8 replaced.
///
/// # Errors
/// What the system says. A missing file is one.
pub fn tail_text(path: &Path, most: u64) -> Result<String, Fault> {
    let read = || {
        let mut file = open_plain(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>((bytes, length > most))
    };
    let (bytes, is_cut) = read().map_err(Fault::at("read", path))?;
    let start = if is_cut { bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count() } else { 0 };
    Ok(escape(&String::from_utf8_lossy(bytes.get(start..).unwrap_or_default())))
}

/// Opens a file that somebody else may have put another thing in the place of: never through a link, never waiting for
/// the other end of a pipe.
fn open_plain(path: &Path) -> std::io::Result<File> {
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::Error::other("it is no regular file")) }
}

/// Text without any power over a terminal: escape sequences are dropped, carriage returns become line ends, and
/// what else controls or hides (C0, C1, bidirectional and zero-width characters) is written out.
pub fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => skip_sequence(&mut letters),
            '\u{9b}' => skip_csi(&mut letters),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut letters),
            '\r' if letters.peek() == Some(&'\n') => {}
            '\r' => shown.push('\n'),
            '\n' | '\t' => shown.push(letter),
            hidden if hidden.is_control() || is_invisible(hidden) => shown.extend(hidden.escape_unicode()),
            plain => shown.push(plain),
        }
    }
    shown
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// After ESC: a control sequence, a string up to its terminator, or a short one.
fn skip_sequence(letters: &mut Letters<'_>) {
    match letters.peek() {
        Some('[') => {
            letters.next();
            skip_csi(letters);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            letters.next();
            skip_string(letters);
        }
        _ => {
            while letters.next_if(|letter| matches!(letter, ' '..='/')).is_some() {}
            letters.next_if(|letter| matches!(letter, '0'..='~'));
        }
    }
}

/// Parameters and intermediates, then one final letter. Anything else ends the sequence and stays.
fn skip_csi(letters: &mut Letters<'_>) {
    while letters.next_if(|letter| matches!(letter, ' '..='?')).is_some() {}
    letters.next_if(|letter| matches!(letter, '@'..='~'));
}

/// Up to BEL, ST, or the end of the line: an agent that never ends its string can't hide what follows.
fn skip_string(letters: &mut Letters<'_>) {
    while let Some(letter) = letters.next_if(|letter| *letter != '\n') {
        match letter {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                letters.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// What changes the order of letters or takes no room: zero-width, bidirectional, tags.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn sequences_go_and_their_text_stays() {
        assert_eq!(escape("\u{1b}[1;31mred\u{1b}[0m plain"), "red plain");
        assert_eq!(escape("\u{1b}]52;c;aGVsbG8=\u{7}after"), "after");
        assert_eq!(escape("\u{1b}]0;title\u{1b}\\after"), "after");
        assert_eq!(escape("\u{1b}Pq#0\u{1b}\\x"), "x");
        assert_eq!(escape("\u{1b}(Bx\u{1b}7y\u{1b}=z"), "xyz");
        assert_eq!(escape("\u{9b}2Jx"), "x");
        assert_eq!(escape("\u{1b}"), "");
        assert_eq!(escape("\u{1b}["), "");
    }

    #[test]
    fn a_string_without_an_end_hides_one_line_only() {
        assert_eq!(escape("\u{1b}]0;never ends\nnext line"), "\nnext line");
    }

    #[test]
    fn other_control_characters_are_written_out() {
        assert_eq!(escape("a\u{0}b\u{8}c\u{7f}"), "a\\u{0}b\\u{8}c\\u{7f}");
        assert_eq!(escape("10%\r20%\r\n30%\n\tx"), "10%\n20%\n30%\n\tx");
        assert_eq!(escape("abc\u{202e}fed\u{200b}"), "abc\\u{202e}fed\\u{200b}");
        assert_eq!(escape("grüße 日本 🦀"), "grüße 日本 🦀");
    }

    #[test]
    fn a_tail_starts_with_a_whole_character_and_survives_binary() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        std::fs::write(&path, "xü12").unwrap();
        assert_eq!(tail_text(&path, 3).unwrap(), "12");
        assert_eq!(tail_text(&path, 4).unwrap(), "ü12");
        assert_eq!(tail_text(&path, 100).unwrap(), "xü12");
        std::fs::write(&path, [b'a', 0xff, 0xfe, b'b']).unwrap();
        assert_eq!(tail_text(&path, 100).unwrap(), "a\u{fffd}\u{fffd}b");
        assert!(tail_text(&folder.path().join("none"), 1).is_err());
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_is_shown_controls_a_terminal(text in proptest::string::string_regex("[\\x00-\\x{10ffff}]{0,64}").unwrap()) {
            let shown = escape(&text);
            proptest::prop_assert!(shown.chars().all(|letter| matches!(letter, '\n' | '\t') || !(letter.is_control() || is_invisible(letter))));
        }
    }
}
