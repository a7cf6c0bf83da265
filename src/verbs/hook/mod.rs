//! git's hooks: what is said to a commit, its message and a push, and the scripts that ask.
//!
//! They read the store and never write it; what they don't know they allow. In a job's work tree they judge as the
//! seal will, before the commit exists.

pub mod ask;
pub mod bound;
pub mod install;
pub mod push;
pub mod tool;

pub use ask::{Said, Surroundings, commit_msg, pre_commit};
pub use push::pre_push;
pub use tool::{Lane, pre_tool_use};
