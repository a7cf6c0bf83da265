//! The verbs of runs.

pub mod find;
pub mod prepare;
pub mod start;
