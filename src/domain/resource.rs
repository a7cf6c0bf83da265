//! A resource that is made for one attempt alone: its states, its name, what its commands may name.
//!
//! It does not know how a command runs, or what the resource is.

use super::frozen::Ephemeral;
use super::template::{self, UnknownTemplate};
use super::word::{Illegal, word_enum};

word_enum! {
    /// Where a resource is.
    ResourceState "resource state" {
        /// Its `create` is about to run or runs; it may be there, whole or half.
        Creating "creating",
        /// It is there, and its `check` passed.
        Ready "ready",
        /// Its `destroy` is about to run or runs; it may be gone.
        Destroying "destroying",
        /// It is gone.
        Destroyed "destroyed",
        /// It could not be destroyed: it is listed until it is.
        Left "left",
    }
}

word_enum! {
    /// What can happen to a resource.
    ResourceEvent "resource event" {
        /// It was made and checked.
        Make "make",
        /// It is about to be destroyed.
        Destroy "destroy",
        /// Its `destroy` passed.
        Vanish "vanish",
        /// Its `destroy` did not pass.
        Leave "leave",
    }
}

impl ResourceState {
    /// The state after an event.
    ///
    /// # Errors
    /// The event can't happen in this state.
    pub fn next(self, event: ResourceEvent) -> Result<ResourceState, Illegal> {
        use ResourceEvent as E;
        use ResourceState as S;
        match (self, event) {
            (S::Creating, E::Make) => Ok(S::Ready),
            (S::Creating | S::Ready | S::Destroying | S::Left, E::Destroy) => Ok(S::Destroying),
            (S::Destroying, E::Vanish) => Ok(S::Destroyed),
            (S::Destroying, E::Leave) => Ok(S::Left),
            (S::Destroyed, _)
            | (S::Ready | S::Destroying | S::Left, E::Make)
            | (S::Creating | S::Ready | S::Left, E::Vanish | E::Leave) => {
                Err(Illegal { what: "resource state", state: self.to_string(), event: event.to_string() })
            }
        }
    }

    /// Nobody has given it back: an attempt can't be sealed over it.
    pub const fn is_open(self) -> bool {
        matches!(self, ResourceState::Creating | ResourceState::Ready | ResourceState::Destroying)
    }

    /// A command of it may have been cut off, and may still run.
    pub const fn may_be_cut(self) -> bool {
        matches!(self, ResourceState::Creating | ResourceState::Destroying)
    }
}

word_enum! {
    /// A command of a resource.
    Part "ephemeral command" {
        /// Makes it.
        Create "create",
        /// Looks whether it is usable.
        Check "check",
        /// Takes it away; also what is only half there, or not there at all.
        Destroy "destroy",
    }
}

impl Part {
    /// Its words, as the workflow has them.
    pub fn argv(self, of: &Ephemeral) -> &[String] {
        match self {
            Part::Create => &of.create,
            Part::Check => &of.check,
            Part::Destroy => &of.destroy,
        }
    }
}

/// What the commands of a resource may name, beside `params.x`. They run before there is a packet, and after the
/// attempt is over.
pub const NAMES: &[&str] = &["resource", "run", "job", "attempt"];

/// Characters of a token that make a name nobody else has.
const UNIQUE: usize = 12;

/// The name of one resource, which no other has, in this store or in another: what is destroyed by it can't be
/// anybody else's. Short enough for a database.
pub fn name_of(of: &Ephemeral, token: &str) -> String {
    let unique: String = token.chars().take(UNIQUE).collect();
    format!("{}-{unique}", of.resource)
}

/// A command's words with the names put in.
///
/// # Errors
/// The first name that has no value here.
pub fn words(argv: &[String], lookup: &dyn Fn(&str) -> Option<String>) -> Result<Vec<String>, UnknownTemplate> {
    argv.iter().map(|word| template::expand(word, lookup)).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_table_of_states() {
        let mut lines = Vec::new();
        for state in ResourceState::ALL {
            let next = ResourceEvent::ALL.iter().map(|event| match state.next(*event) {
                Ok(next) => format!("{event} -> {next}"),
                Err(_) => format!("{event} -> no"),
            });
            lines.push(format!("{state}: {}", next.collect::<Vec<_>>().join(", ")));
        }
        insta::assert_snapshot!(lines.join("\n"), @r"
        creating: make -> ready, destroy -> destroying, vanish -> no, leave -> no
        ready: make -> no, destroy -> destroying, vanish -> no, leave -> no
        destroying: make -> no, destroy -> destroying, vanish -> destroyed, leave -> left
        destroyed: make -> no, destroy -> no, vanish -> no, leave -> no
        left: make -> no, destroy -> destroying, vanish -> no, leave -> no
        ");
    }

    #[test]
    fn a_name_is_its_own_and_short_enough_for_a_database() {
        let of = Ephemeral {
            resource: "db".to_owned(),
            create: vec!["mk".to_owned(), "${resource}".to_owned()],
            check: Vec::new(),
            destroy: Vec::new(),
        };
        let name = name_of(&of, "0123456789abcdef0123456789abcdef");
        assert_eq!(name, "db-0123456789ab");
        let made = words(Part::Create.argv(&of), &|word| (word == "resource").then(|| name.clone())).unwrap();
        assert_eq!(made, ["mk", "db-0123456789ab"]);
        assert!(words(&["${prompt}".to_owned()], &|_| None).is_err());
    }
}
