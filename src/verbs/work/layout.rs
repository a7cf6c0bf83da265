//! Lays out an attempt: its folder, inputs, packet and prompt.
//!
//! Files only; the rows were written before. Laying out the same attempt twice gives the same files.

use std::path::{Path, PathBuf};

use crate::domain::event::sha256_hex;
use crate::domain::frozen::{JobSpec, JobType, LaneMode};
use crate::domain::id::JobId;
use crate::domain::job::JobState;
use crate::domain::packet::{AnswerCommands, Input, OperatorMode, Packet, PacketLimits, SCHEMA, Subject};
use crate::domain::session::ExecutionState;
use crate::domain::template;
use crate::error::Result;
use crate::os::files;
use crate::os::layout::Attempt as Folder;
use crate::store::attempt::Attempt;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::session::Session;
use crate::store::{self, Connection};
use crate::verbs::supervise::confinement;
use crate::verbs::tree::provision::Ground;
use crate::verbs::work::claim::Granted;
use crate::verbs::{Ctx, constrained, operator, person, tree};

/// Whose work is laid out.
pub struct Grant<'a> {
    /// The hold.
    pub granted: &'a Granted,
    /// The run.
    pub run: &'a Run,
    /// The session.
    pub session: &'a Session,
}

/// What was laid out.
pub struct Laid {
    /// The attempt's folder.
    pub folder: Folder,
    /// Where the agent works: the job's tree, or a folder for files.
    pub cwd: PathBuf,
    /// The packet.
    pub packet: Packet,
    /// Its hash, for the store.
    pub packet_hash: String,
    /// The frozen job.
    pub job: Job,
}

struct Facts {
    job: Job,
    attempt: Attempt,
    inputs: Vec<Wanted>,
    subject: Option<Subject>,
    ground: Option<Ground>,
    resource: Option<String>,
}

/// An artifact to lay out, or one that is missing.
struct Wanted {
    job: String,
    name: String,
    sha256: Option<String>,
}

/// Makes the folder with everything in it; the tree is there already.
pub fn lay_out(ctx: &Ctx, grant: &Grant<'_>, ground: Option<Ground>) -> Result<Laid> {
    let mut facts = ctx.read(|read| facts(read, grant))?;
    let folder = ctx.layout().scratch(&grant.session.id.to_string()).attempt(&facts.job.name, grant.granted.attempt);
    for path in [folder.folder(), &folder.work(), &folder.tmp()] {
        files::create_private_dirs(ctx.layout().root(), path)?;
    }
    let inputs = place_inputs(ctx, &folder, &facts.inputs)?;
    if let (Some(subject), Some(id)) = (&mut facts.subject, facts.job.reviews) {
        show_change(ctx, &folder, id, subject)?;
    }
    if let Some((from, to)) = facts.job.spec.reviewed_range() {
        facts.subject = Some(show_range(ctx, &folder, from, to)?);
    }
    let cwd = ground.as_ref().map_or_else(|| folder.work(), |ground| ground.path.clone());
    facts.ground = ground;
    let packet = packet(grant, &facts, (&folder, &cwd), inputs);
    let bytes = serde_json::to_vec_pretty(&packet)?;
    // Laid out anew after a crash, so nothing here needs to survive a power cut.
    files::write_scratch(&folder.packet(), &bytes)?;
    files::write_scratch(&folder.prompt(), packet.to_prompt().as_bytes())?;
    Ok(Laid { folder, cwd, packet_hash: sha256_hex(&bytes), packet, job: facts.job })
}

fn facts(read: &Connection, grant: &Grant<'_>) -> Result<Facts> {
    let job = store::job::get(read, grant.granted.job)?;
    let attempt = store::attempt::get(read, job.id, grant.granted.attempt)?;
    let mut inputs = Vec::new();
    for needed in store::job::needs(read, job.id)? {
        collect(read, needed, None, &mut inputs)?;
    }
    for wanted in &job.spec.inputs {
        let Some((from, name)) = wanted.split_once('.') else { continue };
        if inputs.iter().any(|have| have.job == from && have.name == name) {
            continue;
        }
        if let Some(other) = store::job::by_name(read, job.run, from)? {
            collect(read, other.id, Some(name), &mut inputs)?;
        }
    }
    let subject = match job.reviews {
        Some(id) => Some(subject(read, id)?),
        None => None,
    };
    let resource = match job.spec.ephemeral {
        Some(_) => store::resource::open(read, job.run, job.id, attempt.number)?.map(|row| row.name),
        None => None,
    };
    Ok(Facts { job, attempt, inputs, subject, ground: None, resource })
}

fn collect(read: &Connection, from: JobId, only: Option<&str>, inputs: &mut Vec<Wanted>) -> Result<()> {
    let job = store::job::get(read, from)?;
    let published = store::artifact::of_newest_sealed(read, job.id)?;
    let is_missing = matches!(job.state, JobState::Failed | JobState::Skipped);
    for artifact in published.iter().filter(|artifact| only.is_none_or(|name| artifact.name == name)) {
        inputs.push(Wanted {
            job: job.name.clone(),
            name: artifact.name.clone(),
            sha256: (!is_missing).then(|| artifact.sha256.clone()),
        });
    }
    if is_missing && published.is_empty() {
        for produce in job.spec.produces.iter().filter(|produce| only.is_none_or(|name| produce.name == name)) {
            inputs.push(Wanted { job: job.name.clone(), name: produce.name.clone(), sha256: None });
        }
    }
    Ok(())
}

fn subject(read: &Connection, id: JobId) -> Result<Subject> {
    let job = store::job::get(read, id)?;
    let sealed = store::attempt::of_job(read, id, u32::MAX)?
        .into_iter()
        .find(|attempt| attempt.outcome == Some(crate::domain::job::Outcome::Sealed));
    Ok(Subject {
        attempt: sealed.as_ref().map_or(0, |attempt| attempt.number),
        answer: sealed
            .and_then(|attempt| attempt.answer)
            .map_or(serde_json::Value::Null, |answer| serde_json::to_value(answer).unwrap_or_default()),
        objective: template::fill(&job.spec.objective, &|name| (name == "job").then(|| job.name.clone())),
        job: job.name,
        ..Subject::default()
    })
}

/// What the reviewed job changed, as a patch beside the inputs.
fn show_change(ctx: &Ctx, folder: &Folder, job: JobId, subject: &mut Subject) -> Result<()> {
    let Some(shown) = tree::shown::of_job(ctx, job)? else { return Ok(()) };
    let place = folder.inputs().join(&subject.job).join("change.patch");
    if let Some(parent) = place.parent() {
        files::create_private_dirs(ctx.layout().root(), parent)?;
    }
    files::write_scratch(&place, &shown.patch)?;
    subject.patch = Some(place.display().to_string());
    subject.base = Some(shown.from);
    subject.head = Some(shown.to);
    subject.verified = ctx.read(|read| verified(read, job, subject.attempt))?;
    Ok(())
}

/// A range of commits under review, as a patch beside the inputs.
fn show_range(ctx: &Ctx, folder: &Folder, from: &str, to: &str) -> Result<Subject> {
    let patch = tree::repository(ctx)?.patch(from, to, &[])?;
    let place = folder.inputs().join("range").join("change.patch");
    if let Some(parent) = place.parent() {
        files::create_private_dirs(ctx.layout().root(), parent)?;
    }
    files::write_scratch(&place, &patch)?;
    Ok(Subject {
        job: "range".to_owned(),
        patch: Some(place.display().to_string()),
        base: Some(from.to_owned()),
        head: Some(to.to_owned()),
        ..Subject::default()
    })
}

/// What each verification command of an attempt came to.
fn verified(read: &Connection, job: JobId, attempt: u32) -> Result<Vec<String>> {
    let commands = store::job::get(read, job)?.spec.verify;
    let ran: Vec<_> =
        store::execution::checks(read, job, attempt)?.into_iter().filter(|run| run.kind == "verify").collect();
    let newest = ran.iter().skip(ran.len().saturating_sub(commands.len()));
    let word = |run: &store::execution::Execution| match (run.state, run.exit_code) {
        (ExecutionState::Exited, Some(0)) => "passed",
        (ExecutionState::Exited, Some(_)) => "failed",
        _ => "not run",
    };
    Ok(commands.iter().zip(newest).map(|(argv, run)| format!("{}: {}", argv.join(" "), word(run))).collect())
}

fn place_inputs(ctx: &Ctx, folder: &Folder, wanted: &[Wanted]) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for want in wanted {
        let place = folder.inputs().join(&want.job).join(&want.name);
        if let (Some(sha256), Some(parent)) = (&want.sha256, place.parent()) {
            files::create_private_dirs(ctx.layout().root(), parent)?;
            files::place_input(&ctx.layout().artifact(sha256), sha256, &place)?;
        }
        inputs.push(Input {
            job: want.job.clone(),
            name: want.name.clone(),
            path: want.sha256.as_ref().map(|_| place.display().to_string()),
            sha256: want.sha256.clone(),
        });
    }
    Ok(inputs)
}

fn packet(grant: &Grant<'_>, facts: &Facts, (folder, cwd): (&Folder, &Path), inputs: Vec<Input>) -> Packet {
    let (job, spec) = (&facts.job, &facts.job.spec);
    let lane = grant.run.spec.lanes.get(&grant.session.lane);
    let role = grant.run.spec.roles.get(&grant.session.role);
    let late = |text: &str| bind_late(text, job, folder);
    Packet {
        schema: SCHEMA.to_owned(),
        run: grant.run.name.clone(),
        job: job.name.clone(),
        kind: kind_word(spec.kind),
        attempt: grant.granted.attempt,
        session: grant.session.id,
        lease: grant.granted.lease,
        fence: grant.granted.fence,
        role: grant.session.role.clone(),
        lane: grant.session.lane.clone(),
        instructions: role.map(|role| late(&role.instructions)).unwrap_or_default(),
        objective: late(&spec.objective),
        prompt: late(&spec.prompt),
        cwd: cwd.display().to_string(),
        base: facts.ground.as_ref().map(|ground| ground.base.clone()),
        conflicts: facts.ground.as_ref().map(|ground| ground.conflicts.clone()).unwrap_or_default(),
        resource: facts.resource.clone(),
        operator_mode: operator_mode(grant),
        inputs,
        subject: facts.subject.clone(),
        produces: spec.produces.clone(),
        writes: spec.writes.clone(),
        forbids: spec.forbids.clone(),
        verify: spec.verify.clone(),
        context: facts.attempt.context.clone(),
        limits: PacketLimits {
            timeout_s: spec.timeout_ms.or(lane.map(|lane| lane.timeout_ms)).unwrap_or(0) / 1_000,
            idle_timeout_s: lane.and_then(|lane| lane.idle_timeout_ms).map(|ms| ms / 1_000),
        },
        result_file: folder.result().display().to_string(),
        commands: commands(grant, spec, folder),
    }
}

fn operator_mode(grant: &Grant<'_>) -> Option<OperatorMode> {
    let operated = operator::enforcement().filter(|_| !grant.session.supervised);
    if !grant.run.spec.constrained && !grant.session.constrained && operated.is_none() {
        return None;
    }
    let lane = grant.run.spec.lanes.get(&grant.session.lane);
    let of_lane = || lane.map_or(confinement::ADVISORY, confinement::word_of);
    let enforcement = operated.unwrap_or_else(of_lane).to_owned();
    Some(OperatorMode { mode: constrained::CONSTRAINED.to_owned(), enforcement })
}

fn kind_word(kind: JobType) -> String {
    serde_json::to_value(kind).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// In prompts, objectives and role files `${job}` and `${inputs.*}` are replaced at launch, everything else is left.
fn bind_late(text: &str, job: &Job, folder: &Folder) -> String {
    template::fill(text, &|name| match name {
        "job" => Some(job.name.clone()),
        _ => name
            .strip_prefix("inputs.")
            .map(|input| folder.inputs().join(input.replacen('.', "/", 1)).display().to_string()),
    })
}

/// The exact commands to answer with. The environment of a hosted agent names session and fence; a resident one
/// was started before its claim and names the fence, an unsupervised one names both, and the file with its token.
fn commands(grant: &Grant<'_>, spec: &JobSpec, folder: &Folder) -> AnswerCommands {
    if grant.session.lane == person::LANE {
        return commands_of_person(grant, spec);
    }
    let lane = grant.run.spec.lanes.get(&grant.session.lane);
    let is_resident = lane.is_some_and(|lane| lane.mode == LaneMode::Loop);
    let words = if grant.session.supervised && is_resident {
        format!(" --fence {}", grant.granted.fence)
    } else if grant.session.supervised {
        String::new()
    } else {
        let token = folder.folder().with_file_name("token").display().to_string();
        format!(" --session-id {} --token-file {} --fence {}", grant.session.id, quoted(&token), grant.granted.fence)
    };
    AnswerCommands {
        complete: format!("striatum work complete{words}"),
        verdict: (spec.kind == JobType::Review).then(|| {
            format!("striatum work verdict{words} accept|accept_with_findings|needs_revision|reject --finding 'TITLE: DETAIL'")
        }),
        needs_context: format!(
            "striatum work block{words} --needs-context --awaiting WHAT --who-can WHO --action WHAT_TO_DO"
        ),
        fail: format!("striatum work fail{words} --reason WHY"),
    }
}

/// A path as a shell reads it.
fn quoted(path: &str) -> String {
    let is_plain = path.chars().all(|letter| letter.is_alphanumeric() || "-_./+:@%=".contains(letter));
    if is_plain { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// A person who took the job gives it back.
fn commands_of_person(grant: &Grant<'_>, spec: &JobSpec) -> AnswerCommands {
    let give = format!("striatum give {} --run-id {}", spec.id, grant.run.name);
    AnswerCommands {
        complete: format!("{give} --done"),
        verdict: (spec.kind == JobType::Review).then(|| {
            format!("{give} --verdict accept|accept_with_findings|needs_revision|reject --finding 'TITLE: DETAIL'")
        }),
        needs_context: give.clone(),
        fail: format!("{give} --note WHY"),
    }
}

/// Whether something was ever started for an attempt: its output file is made just before.
pub fn was_spawned(folder: &Folder) -> bool {
    Path::new(&folder.output()).exists()
}
