//! The application: one function a verb. Owns transactions and the order of effects.
//!
//! A verb takes a request and gives a report, both plain data; it does not know flags, colours or sockets.

pub mod answer;
pub mod api;
pub mod config;
pub mod constrained;
pub mod ctx;
pub mod decision;
pub mod escape;
pub mod flow;
pub mod gate;
pub mod gc;
pub mod give;
pub mod hook;
pub mod init;
pub mod land;
pub mod lane;
pub mod notice;
pub mod operator;
pub mod person;
pub mod process;
pub mod proposal;
pub mod quickstart;
pub mod read;
pub mod repo;
pub mod request;
pub mod resource;
pub mod review;
pub mod run;
pub mod scope_check;
pub mod session;
pub mod settle;
pub mod supervise;
pub mod take;
pub mod tree;
pub mod trust;
pub mod uninit;
pub mod work;
pub mod workflow;

pub use ctx::{Actor, Ctx};
