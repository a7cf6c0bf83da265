//! The agent's side: `work await / claim / ack / heartbeat / publish / complete / verdict / fail / block / show`.

pub mod answer;
pub mod awaiting;
pub mod claim;
pub mod hold;
pub mod layout;
pub mod publish;
pub mod requeue;
pub mod show;
