//! Enumerations whose variants are stored and shown as one fixed word each.

/// A text that is none of the words.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{word}` is no {what}")]
pub struct UnknownWord {
    /// The text.
    pub word: String,
    /// What was wanted.
    pub what: &'static str,
}

/// Declares an enum together with its words, `ALL`, `word()`, `Display`, `FromStr` and serde.
macro_rules! word_enum {
    ($(#[doc = $doc:literal])* $name:ident $what:literal { $($(#[doc = $vdoc:literal])* $variant:ident $word:literal,)* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $vdoc])* $variant,)* }

        impl $name {
            /// Every variant, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word that stands for it everywhere.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.pad(self.word())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::domain::word::UnknownWord;

            fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
                match text {
                    $($word => Ok($name::$variant),)*
                    other => Err($crate::domain::word::UnknownWord { word: other.to_owned(), what: $what }),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
                out.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> std::result::Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(input)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use word_enum;

/// A step that a state machine does not have.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a {what} that is {state} can't {event}")]
pub struct Illegal {
    /// Which machine.
    pub what: &'static str,
    /// Where it is.
    pub state: String,
    /// What was asked of it.
    pub event: String,
}
