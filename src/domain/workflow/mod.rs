//! The workflow format: read, validate, freeze.
//!
//! A file goes through four hands: `reader` types each value by the table of keys, `section` lays the files over
//! each other, `settings` and `jobs` say what follows, `rules` refuse what makes no sense. [`freeze`] puts
//! parameters in place. Nothing here opens a file.

pub mod adapters;
pub mod amend;
mod definition;
mod fault;
mod freeze;
pub mod generate;
pub mod import;
mod jobs;
pub mod keys;
mod origin;
mod reader;
mod rules;
mod section;
mod settings;
mod surroundings;
pub mod trusted;
pub mod words;

pub use definition::{Config, Definition, Inputs, Param, read, read_config};
pub use fault::{Fault, Faults, Place};
pub use freeze::{SNAPSHOT_SCHEMA, Texts, canonical_bytes, freeze, hash};
pub use origin::Setting;
pub use reader::Source;

#[cfg(test)]
mod tests;
