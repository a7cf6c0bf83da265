//! Whether two scopes can name the same path.
//!
//! Exact for literals, `*`, `?` and `**`; alternatives are spelled out; a class `[..]` counts as any character. So an
//! overlap may be reported that no file ever has, and one that exists is never missed.

/// How many spellings of `{a,b}` are looked at before the pattern counts as "anything".
const SPELLINGS: usize = 64;

/// A pattern of each side that can name the same path, unless a `forbids` of either side takes it out.
pub fn may_overlap<'a>(
    (writes, forbids): (&'a [String], &[String]),
    (other_writes, other_forbids): (&'a [String], &[String]),
) -> Option<(&'a str, &'a str)> {
    for one in writes.iter().filter(|glob| !is_taken_out(glob, other_forbids)) {
        for other in other_writes.iter().filter(|glob| !is_taken_out(glob, forbids)) {
            if globs_meet(one, other) {
                return Some((one, other));
            }
        }
    }
    None
}

/// Whether everything below a pattern's literal prefix is forbidden by a bare path.
fn is_taken_out(pattern: &str, forbids: &[String]) -> bool {
    let prefix = super::literal_prefix(pattern);
    forbids.iter().filter(|forbid| !super::has_meta(forbid)).any(|forbid| {
        let forbid = forbid.trim_end_matches('/');
        prefix.strip_prefix(forbid).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

fn globs_meet(one: &str, other: &str) -> bool {
    let (ones, others) = (spellings(one), spellings(other));
    ones.iter().any(|one| others.iter().any(|other| paths_meet(&parts(one), &parts(other))))
}

fn spellings(pattern: &str) -> Vec<String> {
    let mut all = Vec::new();
    for meaning in super::meanings(pattern) {
        let mut open = vec![meaning];
        while let Some(text) = open.pop() {
            match innermost_choice(&text) {
                Some((start, end)) => {
                    for choice in text[start + 1..end].split(',') {
                        open.push(format!("{}{choice}{}", &text[..start], &text[end + 1..]));
                    }
                }
                None => all.push(text),
            }
            if all.len() + open.len() > SPELLINGS {
                return vec!["**".to_owned()];
            }
        }
    }
    all
}

fn innermost_choice(text: &str) -> Option<(usize, usize)> {
    let end = text.find('}')?;
    let start = text[..end].rfind('{')?;
    Some((start, end))
}

fn parts(pattern: &str) -> Vec<&str> {
    pattern.split('/').collect()
}

/// Whether two lists of components, each with `**`, share a path.
fn paths_meet(one: &[&str], other: &[&str]) -> bool {
    let fit = |one: &&str, other: &&str| meet(&letters(one), &letters(other), |part| *part == Letter::AnyMany, fits);
    meet(one, other, |part| *part == "**", fit)
}

/// Whether two sequences, in which some members stand for any number of others, can be the same one.
///
/// A table over the suffixes of both, filled from the ends: the cost is the product of the lengths.
fn meet<T>(one: &[T], other: &[T], is_many: impl Fn(&T) -> bool, fit: impl Fn(&T, &T) -> bool) -> bool {
    let width = other.len() + 1;
    let mut met = vec![false; (one.len() + 1) * width];
    for i in (0..=one.len()).rev() {
        for j in (0..=other.len()).rev() {
            let at = i * width + j;
            met[at] = match (one.get(i), other.get(j)) {
                (None, None) => true,
                (Some(first), second) if is_many(first) => met[at + width] || (second.is_some() && met[at + 1]),
                (first, Some(second)) if is_many(second) => met[at + 1] || (first.is_some() && met[at + width]),
                (Some(first), Some(second)) => fit(first, second) && met[at + width + 1],
                (Some(_), None) | (None, Some(_)) => false,
            };
        }
    }
    met[0]
}

/// One step of a component's pattern.
#[derive(Clone, Copy, PartialEq)]
enum Letter {
    This(char),
    AnyOne,
    AnyMany,
}

fn letters(part: &str) -> Vec<Letter> {
    let mut out = Vec::new();
    let mut chars = part.chars();
    while let Some(letter) = chars.next() {
        out.push(match letter {
            '*' => Letter::AnyMany,
            '?' => Letter::AnyOne,
            '[' => {
                // A first `]`, also after `!`, belongs to the class.
                let mut seen = 0;
                for inner in chars.by_ref() {
                    if inner == ']' && seen > 0 {
                        break;
                    }
                    seen += usize::from(!matches!(inner, '!' | '^'));
                }
                Letter::AnyOne
            }
            '\\' => Letter::This(chars.next().unwrap_or('\\')),
            letter => Letter::This(letter),
        });
    }
    out
}

fn fits(one: &Letter, other: &Letter) -> bool {
    one == other || *one == Letter::AnyOne || *other == Letter::AnyOne
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(one: &str, other: &str) -> bool {
        let forth = globs_meet(one, other);
        assert_eq!(forth, globs_meet(other, one), "{one} and {other} must agree both ways");
        forth
    }

    #[test]
    fn folders_meet_what_is_in_them() {
        assert!(both("src/", "src/a.rs"));
        assert!(both("src", "src/**/*.rs"));
        assert!(both("**", "docs/x.md"));
        assert!(!both("src/", "tests/"));
        assert!(!both("src/a/", "src/b/"));
        assert!(!both("src", "src2"));
    }

    #[test]
    fn wildcards_meet_only_where_a_name_fits_both() {
        assert!(both("src/*.rs", "src/a*"));
        assert!(!both("src/*.rs", "src/*.py"));
        assert!(!both("src/*.rs", "src/a/b.rs"));
        assert!(both("*/mod.rs", "src/m?d.rs"));
        assert!(both("{a,b}/x", "b/*"));
        assert!(!both("{a,b}/x", "c/*"));
        assert!(both("src/[ab].rs", "src/b.rs"));
        assert!(both("**/a/**", "x/**/b"));
    }

    #[test]
    fn what_one_side_forbids_is_no_overlap() {
        let own = |list: &[&str]| list.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
        let (src, parser) = (own(&["src/"]), own(&["src/parser/"]));
        assert_eq!(may_overlap((&src, &[]), (&parser, &[])), Some(("src/", "src/parser/")));
        assert_eq!(may_overlap((&src, &parser), (&parser, &[])), None);
        assert_eq!(may_overlap((&parser, &[]), (&src, &parser)), None);
    }
}
