//! striatum: several AI coding agents through a reviewed workflow, unattended, in one repository.
//!
//! Modules in layer order: mouths (`cli`, `broker`) on top, then `verbs`, then `store`, `domain` and `os`.
//! `src/ARCHITECTURE.md` tells how they fit.

pub mod broker;
pub mod cli;
pub mod domain;
pub mod error;
pub mod os;
pub mod store;
pub mod verbs;

pub use error::{Error, Result};
