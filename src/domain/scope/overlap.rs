//! Whether two scopes can name the same path.
//!
//! Exact for literals, `*`, `?` and `**`; alternatives are spelled out; a class `[..]` counts as any character. So an
//! overlap may be reported that no file ever has, and one that exists is never missed.

/// How many spellings of `{a,b}` are looked at before the pattern counts as "anything".
const SPELLINGS: usize = 64;

/// A scope made ready for many comparisons.
#[derive(Clone, Debug)]
pub struct Reach<'a> {
    patterns: Vec<Pattern<'a>>,
    forbids: &'a [String],
}

#[derive(Clone, Debug)]
struct Pattern<'a> {
    text: &'a str,
    /// What every path that matches begins with.
    prefix: String,
    spellings: Vec<String>,
}

impl<'a> Reach<'a> {
    /// The reach of a job's globs.
    pub fn new(writes: &'a [String], forbids: &'a [String]) -> Reach<'a> {
        let pattern =
            |text: &'a String| Pattern { text, prefix: super::literal_prefix(text), spellings: spellings(text) };
        Reach { patterns: writes.iter().map(pattern).collect(), forbids }
    }

    /// A pattern of each side that can name the same path, unless a `forbids` of either side takes it out.
    pub fn meets<'b>(&self, other: &Reach<'b>) -> Option<(&'a str, &'b str)> {
        for one in &self.patterns {
            for two in &other.patterns {
                let may_meet = lies_in(&one.prefix, &two.prefix) || lies_in(&two.prefix, &one.prefix);
                if may_meet && !one.is_taken_out(other.forbids) && !two.is_taken_out(self.forbids) && one.meets(two) {
                    return Some((one.text, two.text));
                }
            }
        }
        None
    }
}

impl Pattern<'_> {
    /// Whether everything below the literal prefix is forbidden by a bare path.
    fn is_taken_out(&self, forbids: &[String]) -> bool {
        let bare = forbids.iter().filter(|forbid| !super::has_meta(forbid));
        bare.map(|forbid| forbid.trim_end_matches('/')).any(|forbid| lies_in(&self.prefix, forbid))
    }

    fn meets(&self, other: &Pattern<'_>) -> bool {
        self.spellings.iter().any(|one| other.spellings.iter().any(|other| paths_meet(&parts(one), &parts(other))))
    }
}

/// Whether a path is a folder or lies below it; the empty one holds everything.
fn lies_in(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether two scopes, each of `writes` and `forbids`, can name the same path: a pattern of each that does.
pub fn may_overlap<'a>(
    (writes, forbids): (&'a [String], &'a [String]),
    (other_writes, other_forbids): (&'a [String], &'a [String]),
) -> Option<(&'a str, &'a str)> {
    Reach::new(writes, forbids).meets(&Reach::new(other_writes, other_forbids))
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
        let (one, other) = ([one.to_owned()], [other.to_owned()]);
        let forth = may_overlap((&one, &[]), (&other, &[])).is_some();
        assert_eq!(forth, may_overlap((&other, &[]), (&one, &[])).is_some(), "{one:?} and {other:?} both ways");
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
