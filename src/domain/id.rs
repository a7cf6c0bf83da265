//! Identifiers as people read them: `s12`, `l12`, `g3`, `d4`; numbers in the store.
//!
//! An id is a number with a letter; it does not know whether the thing exists.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is not an id of the wanted kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{text}` is no {what} id (they look like `{letter}12`)")]
pub struct BadId {
    text: String,
    what: &'static str,
    letter: char,
}

macro_rules! id_type {
    ($(#[doc = $doc:literal])* $name:ident $letter:literal $what:literal) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i64);

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(out, "{}{}", $letter, self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                text.strip_prefix($letter)
                    .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
                    .and_then(|digits| digits.parse().ok())
                    .map($name)
                    .ok_or_else(|| BadId { text: text.to_owned(), what: $what, letter: $letter })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                let text = String::deserialize(input)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id_type! {
    /// One life of an agent in a slot.
    SessionId 's' "session"
}
id_type! {
    /// A session's hold on a job.
    LeaseId 'l' "lease"
}
id_type! {
    /// A point where a person decides.
    GateId 'g' "gate"
}
id_type! {
    /// A recorded judgement.
    DecisionId 'd' "decision"
}
id_type! {
    /// A queue entry that offers one attempt.
    MessageId 'm' "message"
}

id_type! {
    /// A proposed job in an answer.
    ProposalId 'p' "proposal"
}

/// The store's number of a run; people see its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub i64);

/// The store's number of a job; people see its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_as_they_are_written() {
        assert_eq!("s12".parse(), Ok(SessionId(12)));
        assert_eq!(SessionId(12).to_string(), "s12");
        assert!("12".parse::<SessionId>().is_err());
        assert!("s-1".parse::<SessionId>().is_err());
        assert!("s".parse::<SessionId>().is_err());
        assert!("g1".parse::<SessionId>().is_err());
    }
}
