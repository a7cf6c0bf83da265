//! The tail that sets good houses apart: the longest function, the longest file.

use crate::source::{closing, sources};

/// Lines of the longest function (house: about 90).
const LONGEST_FUNCTION: usize = 90;

/// Lines of the longest file.
const LONGEST_FILE: usize = 600;

/// Parameters after which a struct is wanted; `self` counts.
const MOST_PARAMETERS: usize = 6;

struct Function {
    name: String,
    line: usize,
    lines: usize,
    parameters: usize,
}

/// The functions of a file's code that have a body.
fn functions(code: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let is_word = !code[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let name: String =
            code[at + 3..].chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        if !is_word || name.is_empty() {
            continue;
        }
        let Some(open) = code[at..].find(['{', ';']).map(|found| at + found) else { continue };
        if code[open..].starts_with(';') {
            continue;
        }
        let end = closing(code, open);
        functions.push(Function {
            name,
            line: code[..at].matches('\n').count() + 1,
            lines: code[at..end].matches('\n').count() + 1,
            parameters: parameters(&code[at..open]),
        });
    }
    functions
}

/// How many parameters a head has: colons and `self` at the depth of its parentheses.
fn parameters(head: &str) -> usize {
    let Some(open) = head.find('(') else { return 0 };
    let (mut depth, mut angle, mut count, mut is_empty) = (0_i32, 0_i32, 0, true);
    let mut before = ' ';
    for letter in head[open..].chars() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '<' => angle += 1,
            '>' if before != '-' && before != '=' => angle -= 1,
            ',' if depth == 1 && angle == 0 => {
                count += usize::from(!is_empty);
                is_empty = true;
            }
            letter if depth == 1 && !letter.is_whitespace() => is_empty = false,
            _ => {}
        }
        before = letter;
        if depth == 0 {
            break;
        }
    }
    count + usize::from(!is_empty)
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let mut long = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        for function in functions(&source.code).iter().filter(|function| function.lines > LONGEST_FUNCTION) {
            long.push(format!("{}:{} {} has {} lines", source.path, function.line, function.name, function.lines));
        }
    }
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn the_median_function_is_short() {
    let mut lines: Vec<usize> = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        lines.extend(functions(&source.code).iter().map(|function| function.lines));
    }
    lines.sort_unstable();
    assert!(lines.len() > 1_000, "{}", lines.len());
    assert!(lines[lines.len() / 2] <= 15, "{}", lines[lines.len() / 2]);
}

#[test]
fn no_file_holds_more_than_one_thought() {
    let long: Vec<String> = sources()
        .iter()
        .map(|source| (source.path.clone(), source.text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(path, lines)| format!("{path} has {lines} lines"))
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn a_long_list_of_parameters_is_a_struct() {
    let mut long = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        for function in functions(&source.code).iter().filter(|function| function.parameters > MOST_PARAMETERS) {
            long.push(format!("{}:{} {} takes {}", source.path, function.line, function.name, function.parameters));
        }
    }
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn parameters_are_counted_as_they_are_read() {
    let head = "fn f<'a, T: Fn(A, B) -> C>(&self, one: &[(A, B)], two: impl Fn(A, B) -> C, three: Vec<A, B>,) -> D ";
    assert_eq!(parameters(head.trim_start_matches("fn f<'a, T: Fn(A, B) -> C>")), 4);
    assert_eq!(parameters("fn f() "), 0);
}
