//! A command written as one string, split into words without a shell.
//!
//! Quotes and backslashes group as in a shell; whatever only a shell could do is refused. It does not look into
//! `${..}`: those are put in later and never split again.

/// A string that needs a shell, or has no end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCommand {
    /// Nothing to run.
    #[error("an empty command")]
    Empty,
    /// A quote is never closed.
    #[error("the quote {0} is never closed")]
    OpenQuote(char),
    /// Only a shell knows what it means.
    #[error("`{0}` needs a shell, and none is used")]
    Shell(String),
    /// `NAME=value` before a command.
    #[error("`{0}` before a command needs a shell, and none is used")]
    Assignment(String),
}

/// The words of a command.
///
/// # Errors
/// What stands in it that can't be taken literally.
pub fn split(text: &str) -> Result<Vec<String>, BadCommand> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = first_word(rest)?;
        words.push(word);
        rest = after.trim_start();
    }
    match words.first() {
        None => Err(BadCommand::Empty),
        Some(first) if is_assignment(first) => Err(BadCommand::Assignment(first.clone())),
        Some(_) => Ok(words),
    }
}

fn first_word(text: &str) -> Result<(String, &str), BadCommand> {
    let mut word = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, letter)) = chars.next() {
        match letter {
            letter if letter.is_whitespace() => return Ok((word, &text[at..])),
            '\'' | '"' => quoted(letter, &mut chars, &mut word)?,
            '\\' => word.extend(chars.next().map(|(_, letter)| letter)),
            letter => {
                refuse_operator(&text[at..])?;
                word.push(letter);
            }
        }
    }
    Ok((word, ""))
}

fn quoted(
    quote: char,
    chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
    word: &mut String,
) -> Result<(), BadCommand> {
    while let Some((_, letter)) = chars.next() {
        match letter {
            letter if letter == quote => return Ok(()),
            '\\' if quote == '"' && matches!(chars.peek(), Some((_, '"' | '\\' | '$' | '`'))) => {
                word.extend(chars.next().map(|(_, letter)| letter));
            }
            letter => word.push(letter),
        }
    }
    Err(BadCommand::OpenQuote(quote))
}

fn refuse_operator(text: &str) -> Result<(), BadCommand> {
    const OPERATORS: &[&str] = &["&&", "||", "$(", "`", "|", "&", ";", ">>", ">", "<<", "<"];
    if let Some(operator) = OPERATORS.iter().find(|operator| text.starts_with(**operator)) {
        return Err(BadCommand::Shell((*operator).to_owned()));
    }
    let name: String = match text.strip_prefix('$') {
        Some(after) => after.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect(),
        None => String::new(),
    };
    if name.is_empty() { Ok(()) } else { Err(BadCommand::Shell(format!("${name}"))) }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        split(text).map_or_else(|error| error.to_string(), |words| words.join("|"))
    }

    #[test]
    fn strings_split_as_a_shell_would_split_them() {
        assert_eq!(words("cargo test -q"), "cargo|test|-q");
        assert_eq!(words(r#"  a 'b c'"d e"  f\ g "#), "a|b cd e|f g");
        assert_eq!(words(r#"echo "a \"b\" \n" '\'"#), r#"echo|a "b" \n|\"#);
        assert_eq!(words("run ${params.x} --a=${b} $${c}"), "run|${params.x}|--a=${b}|$${c}");
        assert_eq!(words("grep 'a|b' '$(x)'"), "grep|a|b|$(x)");
        assert_eq!(words("''"), "");
    }

    #[test]
    fn what_needs_a_shell_is_refused_by_name() {
        assert_eq!(words("a | b"), "`|` needs a shell, and none is used");
        assert_eq!(words("a && b"), "`&&` needs a shell, and none is used");
        assert_eq!(words("a; b"), "`;` needs a shell, and none is used");
        assert_eq!(words("a $(b)"), "`$(` needs a shell, and none is used");
        assert_eq!(words("a > b"), "`>` needs a shell, and none is used");
        assert_eq!(words("cd $HOME"), "`$HOME` needs a shell, and none is used");
        assert_eq!(words("RUST_LOG=x cargo"), "`RUST_LOG=x` before a command needs a shell, and none is used");
        assert_eq!(words("a 'b"), "the quote ' is never closed");
        assert_eq!(words("  "), "an empty command");
    }
}
