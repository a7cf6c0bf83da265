//! The verbs of runs.

pub mod act;
pub mod agree;
pub mod amend;
pub mod check;
pub mod control;
pub mod detach;
pub mod drive;
pub mod files;
pub mod find;
pub mod land;
pub mod marker;
pub mod metering;
pub mod observe;
pub mod outlook;
pub mod prepare;
pub mod retry;
pub mod start;
pub mod wait;
