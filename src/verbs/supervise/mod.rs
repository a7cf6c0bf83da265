//! Helpers: the processes that host agents, one a session, and the verbs that start and stop them.
//!
//! `start` and `stop` are an operator's; `host` is what a helper does with its life. A helper obeys rows, not
//! signals: it looks at its orders whenever something was committed, and every 250 ms at the latest.

pub mod confinement;
pub mod ending;
pub mod environment;
pub mod host;
pub mod inbox;
pub mod life;
pub mod orders;
pub mod recover;
pub mod resident;
pub mod start;
pub mod stop;
pub mod wait;

pub use crate::os::process::{SHIM_VERB as LANE_VERB, run_lane_shim as run_lane};
