//! The list of verbs as data: name, request, report, who may ask. Mouths are renderings of it.
//!
//! It does not know any mouth. A verb that a lane may use is also reachable through its helper's socket.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Ctx;
use crate::error::{Code, Error, Result};

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Anybody; it changes nothing.
    Anyone,
    /// The agent of a session.
    Session,
    /// Whoever drives runs here, but no lane of this store.
    Operator,
    /// The same, beyond the control plane: where a run is constrained, only with an escape.
    Admin,
    /// A person.
    Person,
}

/// A verb.
pub trait Verb: Serialize + DeserializeOwned {
    /// What it tells.
    type Report: Serialize + DeserializeOwned;
    /// Its one name: CLI words joined by `_`.
    const NAME: &'static str;
    /// Who may ask.
    const WHO: Who;

    /// Does it.
    fn run(&self, ctx: &Ctx) -> Result<Self::Report>;
}

macro_rules! verbs {
    ($($name:literal $who:ident $request:path => $report:path, $function:path;)*) => {
        $(impl Verb for $request {
            type Report = $report;
            const NAME: &'static str = $name;
            const WHO: Who = Who::$who;

            fn run(&self, ctx: &Ctx) -> Result<Self::Report> {
                $function(ctx, self)
            }
        })*

        /// Every verb with who may ask.
        pub const ALL: &[(&str, Who)] = &[$(($name, Who::$who),)*];

        /// Runs a verb by name under the caller's key, for mouths that get their requests as documents.
        pub fn dispatch(ctx: &Ctx, key: Option<&str>, name: &str, request: Value) -> Result<Value> {
            match name {
                $($name => {
                    let request: $request = serde_json::from_value(request)
                        .map_err(|error| Error::new(Code::Usage, format!("{name}: {error}")))?;
                    Ok(serde_json::to_value(request::ask(ctx, key, &request)?)?)
                })*
                _ => Err(Error::new(Code::Usage, format!("there is no verb {name}"))),
            }
        }
    };
}

use super::run::{amend, check, control, land as run_land, prepare, retry, start};
use super::supervise::{start as supervise_start, stop};
use super::{
    answer, config, decision, gate, gc, give, hook, init, lane, notice, process, proposal, read, repo, request, review,
    scope_check, session, take, trust, uninit, work, workflow,
};

verbs! {
    "init" Admin init::InitRequest => init::InitReport, init::init;
    "trust" Person trust::TrustRequest => trust::TrustReport, trust::trust;
    "trust_show" Anyone trust::ShowRequest => trust::TrustReport, trust::show;
    "run_prepare" Operator prepare::PrepareRequest => prepare::PrepareReport, prepare::prepare;
    "run_check" Operator check::CheckRequest => check::CheckReport, check::check;
    "run_start" Operator start::StartRequest => start::StartReport, start::start;
    "run_pause" Operator control::PauseRequest => control::ControlReport, control::pause;
    "run_resume" Operator control::ResumeRequest => control::ControlReport, control::resume;
    "run_stop" Operator control::StopRequest => control::ControlReport, control::stop;
    "run_cancel" Operator control::CancelRequest => control::ControlReport, control::cancel;
    "run_amend" Admin amend::AmendRequest => amend::AmendReport, amend::amend;
    "run_admit" Person proposal::AdmitRequest => proposal::AdmitReport, proposal::admit;
    "run_dismiss" Person proposal::DismissRequest => proposal::DismissReport, proposal::dismiss;
    "register_session" Operator session::RegisterRequest => session::RegisterReport, session::register;
    "session_list" Anyone session::ListRequest => session::ListReport, session::list;
    "session_close" Operator session::CloseRequest => session::CloseReport, session::close;
    "supervise_start" Operator supervise_start::StartRequest => supervise_start::StartReport, supervise_start::start;
    "supervise_stop" Operator stop::StopRequest => stop::StopReport, stop::stop;
    "supervise_status" Anyone stop::StatusRequest => stop::StatusReport, stop::status;
    "run_retry_job" Admin retry::RetryRequest => retry::RetryReport, retry::retry;
    "gate_list" Anyone gate::ListRequest => gate::ListReport, gate::list;
    "gate_show" Anyone gate::ShowRequest => gate::ShowReport, gate::show;
    "gate_approve" Person gate::ApproveRequest => gate::DecideReport, gate::approve;
    "gate_reject" Person gate::RejectRequest => gate::DecideReport, gate::reject;
    "gate_skip" Person gate::SkipRequest => gate::DecideReport, gate::skip;
    "gate_revise" Person gate::revise::ReviseRequest => gate::revise::ReviseReport, gate::revise::revise;
    "run_land" Person run_land::LandRequest => run_land::LandReport, run_land::land;
    "answer" Person answer::AnswerRequest => answer::AnswerReport, answer::answer;
    "gc" Admin gc::GcRequest => gc::GcReport, gc::gc;
    "uninit" Admin uninit::UninitRequest => uninit::UninitReport, uninit::uninit;
    "take" Person take::TakeRequest => take::TakeReport, take::take;
    "give" Person give::GiveRequest => give::GiveReport, give::give;
    "review_override_verdict" Person review::OverrideRequest => review::OverrideReport, review::override_verdict;
    "notify_test" Operator notice::test::TestRequest => notice::test::TestReport, notice::test::test;
    "decision_record" Operator decision::RecordRequest => decision::RecordReport, decision::record;
    "decision_list" Anyone decision::ListRequest => decision::ListReport, decision::list;
    "lane_list" Anyone lane::ListRequest => lane::ListReport, lane::list;
    "lane_pause" Admin lane::PauseRequest => lane::ChangeReport, lane::pause;
    "lane_resume" Admin lane::ResumeRequest => lane::ChangeReport, lane::resume;
    "work_await" Session work::awaiting::AwaitRequest => work::awaiting::AwaitReport, work::awaiting::look;
    "work_requeue_stale" Admin work::requeue::RequeueRequest => work::requeue::RequeueReport, work::requeue::requeue;
    "work_claim" Session work::claim::ClaimRequest => work::claim::ClaimReport, work::claim::claim;
    "work_ack" Session work::claim::AckRequest => work::claim::AckReport, work::claim::ack;
    "work_heartbeat" Session work::hold::HeartbeatRequest => work::hold::HeartbeatReport, work::hold::heartbeat;
    "work_publish" Session work::publish::PublishRequest => work::publish::PublishReport, work::publish::publish;
    "work_answer" Session work::answer::AnswerRequest => work::answer::AnswerReport, work::answer::answer;
    "repo_write" Session repo::write::WriteRequest => repo::write::WriteReport, repo::write::write;
    "repo_patch_preview" Session repo::patch::PreviewRequest => repo::patch::PreviewReport, repo::patch::preview;
    "repo_patch_apply" Session repo::patch::ApplyRequest => repo::patch::ApplyReport, repo::patch::apply;
    "process_begin" Session process::BeginRequest => process::BeginReport, process::begin;
    "process_mark" Session process::MarkRequest => process::MarkReport, process::mark;
    "status" Anyone read::status::StatusRequest => read::status::StatusReport, read::status::status;
    "inbox" Anyone read::inbox::InboxRequest => read::inbox::InboxReport, read::inbox::inbox;
    "run_list" Anyone read::runs::ListRequest => read::runs::ListReport, read::runs::list;
    "run_summary" Anyone read::summary::SummaryRequest => read::summary::SummaryReport, read::summary::summary;
    "run_graph" Anyone read::graph::GraphRequest => read::graph::GraphReport, read::graph::graph;
    "run_explain" Anyone read::explain::ExplainRequest => read::explain::ExplainReport, read::explain::explain;
    "job_show" Anyone read::job::JobRequest => read::job::JobReport, read::job::show;
    "diff" Anyone read::diff::DiffRequest => read::diff::DiffReport, read::diff::diff;
    "logs" Anyone read::logs::LogsRequest => read::logs::LogsReport, read::logs::logs;
    "supervise_logs" Anyone read::logs::HelperLogsRequest => read::logs::LogsReport, read::logs::helper_logs;
    "events" Anyone read::events::EventsRequest => read::events::EventsReport, read::events::events;
    "dashboard" Anyone read::dashboard::DashboardRequest => read::dashboard::DashboardReport, read::dashboard::dashboard;
    "doctor" Anyone read::doctor::DoctorRequest => read::doctor::DoctorReport, read::doctor::doctor;
    "audit_verify" Anyone read::audit::AuditRequest => read::audit::AuditReport, read::audit::verify;
    "work_show" Session work::show::ShowRequest => work::show::ShowReport, work::show::show;
    "workflow_validate" Anyone workflow::ValidateRequest => workflow::ValidateReport, workflow::validate;
    "workflow_show" Anyone workflow::ShowRequest => workflow::ShowReport, workflow::show;
    "workflow_graph" Anyone workflow::GraphRequest => workflow::GraphReport, workflow::graph;
    "workflow_generate" Anyone workflow::GenerateRequest => workflow::TextReport, workflow::generate;
    "workflow_import" Anyone workflow::ImportRequest => workflow::TextReport, workflow::import;
    "scope_check" Anyone scope_check::ScopeRequest => scope_check::ScopeReport, scope_check::check;
    "hook_install" Admin hook::install::InstallRequest => hook::install::HooksReport, hook::install::install;
    "hook_uninstall" Admin hook::install::UninstallRequest => hook::install::HooksReport, hook::install::uninstall;
    "hook_print" Anyone hook::install::PrintRequest => hook::install::PrintReport, hook::install::print;
    "config_show" Anyone config::ShowRequest => config::ShowReport, config::show;
    "config_schema" Anyone config::SchemaRequest => Value, config::schema;
}

/// The name and owner of a verb.
pub fn who(name: &str) -> Option<Who> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, who)| *who)
}
