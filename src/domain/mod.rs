//! The pure centre: values and decisions, no I/O, no clock, no other layer.

pub mod frozen;
pub mod graph;
pub mod id;
pub mod scope;
pub mod template;
pub mod time;
pub mod workflow;
