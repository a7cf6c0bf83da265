//! The pure centre: values and decisions, no I/O, no clock, no other layer.

pub mod action;
pub mod change;
pub mod contract;
pub mod event;
pub mod freshness;
pub mod frozen;
pub mod gate;
pub mod graph;
pub mod id;
pub mod job;
pub mod notice;
pub mod packet;
pub mod path;
pub mod proposal;
pub mod reconcile;
pub mod run;
pub mod scope;
pub mod session;
pub mod shim;
pub mod template;
pub mod time;
pub mod trailer;
pub mod verdict;
pub mod word;
pub mod workflow;
pub mod world;
