//! The command line, through the real program: what is typed, what is said, what it exits with.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

#[path = "cli/agreement.rs"]
mod agreement;
#[path = "cli/answer.rs"]
mod answer;
#[path = "cli/attacks.rs"]
mod attacks;
#[path = "cli/audit.rs"]
mod audit;
#[path = "cli/await_work.rs"]
mod await_work;
#[path = "cli/breakers.rs"]
mod breakers;
#[path = "cli/causes.rs"]
mod causes;
#[path = "model/simulation/chance.rs"]
mod chance;
#[path = "cli/check.rs"]
mod check;
#[path = "cli/closed_list.rs"]
mod closed_list;
#[path = "cli/constrained.rs"]
mod constrained;
#[path = "cli/control.rs"]
mod control;
#[path = "cli/decision.rs"]
mod decision;
#[path = "cli/diff.rs"]
mod diff;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/drive.rs"]
mod drive;
#[path = "cli/ends.rs"]
mod ends;
#[path = "cli/freshness.rs"]
mod freshness;
#[path = "cli/gate.rs"]
mod gate;
#[path = "cli/gc.rs"]
mod gc;
#[path = "cli/hook.rs"]
mod hook;
#[path = "cli/in_hook.rs"]
mod in_hook;
#[path = "cli/init.rs"]
mod init;
#[path = "cli/job.rs"]
mod job;
#[path = "cli/land.rs"]
mod land;
#[path = "cli/lanes.rs"]
mod lanes;
#[path = "cli/notify.rs"]
mod notify;
#[path = "cli/operator.rs"]
mod operator;
#[path = "cli/panel.rs"]
mod panel;
#[path = "cli/person.rs"]
mod person;
#[path = "cli/process.rs"]
mod process;
#[path = "cli/proposals.rs"]
mod proposals;
#[path = "cli/repo.rs"]
mod repo;
#[path = "cli/repositories.rs"]
mod repositories;
#[path = "cli/request.rs"]
mod request;
#[path = "cli/rescue.rs"]
mod rescue;
#[path = "cli/resources.rs"]
mod resources;
#[path = "cli/run.rs"]
mod run;
#[path = "cli/sandbox.rs"]
mod sandbox;
#[path = "cli/scope_check.rs"]
mod scope_check;
#[path = "cli/session.rs"]
mod session;
#[path = "cli/status.rs"]
mod status;
#[path = "cli/supervise.rs"]
mod supervise;
#[path = "cli/take.rs"]
mod take;
#[path = "cli/tool_hook.rs"]
mod tool_hook;
#[path = "cli/tree.rs"]
mod tree;
#[path = "cli/trespass.rs"]
mod trespass;
#[path = "cli/trust.rs"]
mod trust;
#[path = "cli/unreadable.rs"]
mod unreadable;
#[path = "cli/work.rs"]
mod work;
#[path = "cli/workflow.rs"]
mod workflow;
