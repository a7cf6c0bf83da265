//! A path as people and programs read it on one line.
//!
//! It knows bytes and no file system.

use std::path::Path;

/// A path as one word of a line: as it is when nothing in it could be mistaken, else in double quotes with the
/// escapes that git uses for odd names (`\n`, `\t`, `\"`, `\\`, three octal digits for what is no text).
pub fn shown(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(is_plain) => text.to_owned(),
        _ => quoted(bytes),
    }
}

fn is_plain(letter: char) -> bool {
    !letter.is_control() && letter != '"' && letter != '\\' && !is_invisible(letter)
}

/// Letters that change how the rest of a line looks, or that look like nothing.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            push(&mut out, letter);
        }
        chunk.invalid().iter().for_each(|byte| push_octal(&mut out, *byte));
    }
    out.push('"');
    out
}

fn push(out: &mut String, letter: char) {
    match letter {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        '"' | '\\' => out.extend(['\\', letter]),
        plain if is_plain(plain) => out.push(plain),
        odd => odd.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_octal(out, byte)),
    }
}

fn push_octal(out: &mut String, byte: u8) {
    out.push_str(&format!("\\{byte:03o}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_stays_as_it_is() {
        for plain in ["src/main.rs", "with space", "-dash", "日本/語.txt", "it's", "Cafe\u{301}"] {
            assert_eq!(shown(Path::new(plain)), plain);
        }
    }

    #[test]
    fn what_could_be_mistaken_is_quoted_on_one_line() {
        assert_eq!(shown(Path::new("a\nb\tc")), r#""a\nb\tc""#);
        assert_eq!(shown(Path::new("say \"x\" \\")), r#""say \"x\" \\""#);
        assert_eq!(shown(Path::new("a\u{202e}b\u{7}")), r#""a\342\200\256b\007""#);
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(shown(Path::new(std::ffi::OsStr::from_bytes(b"caf\xe9.txt"))), r#""caf\351.txt""#);
    }
}
