//! The house keeps its own rules: layers, openings, sizes, and one verb in all its places.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/sizes.rs"]
mod sizes;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/verbs.rs"]
mod verbs;
#[path = "tidy/words.rs"]
mod words;
