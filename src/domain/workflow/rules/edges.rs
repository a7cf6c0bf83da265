//! Jobs beside each other: names, edges, cycles, panels, scopes that meet.

use std::collections::BTreeMap;

use super::super::fault::Fault;
use super::super::jobs::{self, Job, has_no_worker};
use super::{Facts, nearest_hint};
use crate::domain::frozen::{JobType, Reviews};
use crate::domain::graph::{self, Ancestors, Node};
use crate::domain::scope::Reach;

/// Every fault that shows only between jobs.
pub(super) fn check(facts: &Facts<'_>) -> Vec<Fault> {
    let nodes: Vec<Node> = facts.jobs.iter().map(node).collect();
    let ancestors = graph::ancestors(&nodes);
    let mut check = Check { facts, ancestors, positions: BTreeMap::new(), faults: Vec::new() };
    check.names();
    for job in facts.jobs {
        check.needs(job);
        check.subject(job);
        check.quorum(job);
    }
    if check.cycle(&nodes) {
        // Nothing comes before anything: what follows from the order would be noise.
        return check.faults;
    }
    for (at, job) in facts.jobs.iter().enumerate() {
        check.inputs(at, job);
    }
    check.overlaps();
    check.faults
}

/// A job that needs itself is told apart, and is no cycle here.
fn node(job: &Job) -> Node {
    let mut node = Node::of(&job.spec);
    node.needs.retain(|need| *need != node.id);
    node
}

struct Check<'a> {
    facts: &'a Facts<'a>,
    ancestors: Vec<Ancestors>,
    positions: BTreeMap<&'a str, usize>,
    faults: Vec<Fault>,
}

impl<'a> Check<'a> {
    fn fault(&mut self, job: &Job, key: &str, message: String, hint: impl Into<String>) -> &mut Fault {
        self.faults.push(Fault::new(job.place(key), job.key(key), message).hint(hint));
        let last = self.faults.len() - 1;
        &mut self.faults[last]
    }

    fn names(&mut self) {
        for (at, job) in self.facts.jobs.iter().enumerate().filter(|(_, job)| !job.spec.id.is_empty()) {
            match self.positions.get(job.spec.id.as_str()) {
                None => drop(self.positions.insert(&job.spec.id, at)),
                Some(first) => {
                    let first = self.facts.jobs[*first].place("id").to_string();
                    let message = format!("two jobs are named `{}`", job.spec.id);
                    self.fault(job, "id", message, format!("the other stands at {first}"));
                }
            }
        }
    }

    fn find(&self, id: &str) -> Option<&'a Job> {
        self.positions.get(id).map(|at| &self.facts.jobs[*at])
    }

    fn needs(&mut self, job: &Job) {
        for (index, need) in job.section.list("needs").iter().enumerate() {
            let (message, hint) = if *need == job.spec.id {
                (format!("job `{need}` needs itself"), "leave it out".to_owned())
            } else if self.find(need).is_none() {
                (format!("job `{}` needs the unknown job `{need}`", job.spec.id), self.nearest(need, job))
            } else {
                continue;
            };
            self.faults.push(Fault::new(job.section.part("needs", index), job.key("needs"), message).hint(hint));
        }
        if job.spec.kind == JobType::Land && job.spec.needs.is_empty() {
            let message = format!("job `{}` has nothing to land", job.spec.id);
            self.fault(job, "type", message, "add the jobs whose change it lands");
        }
    }

    fn subject(&mut self, job: &'a Job) {
        let Some(Reviews::Job(name)) = &job.spec.reviews else { return };
        let Some(subject) = self.find(name) else {
            let message = format!("job `{}` reviews the unknown job `{name}`", job.spec.id);
            let hint = self.nearest(name, job);
            self.fault(job, "reviews", message, hint);
            return;
        };
        if has_no_worker(subject.spec.kind) || subject.spec.kind == JobType::Review {
            let message = format!("job `{}` reviews `{name}`, which leaves nothing to review", job.spec.id);
            self.fault(job, "reviews", message, "name the job that made the change");
            return;
        }
        self.contamination(job, subject);
    }

    fn contamination(&mut self, job: &Job, subject: &Job) {
        if job.spec.role == subject.spec.role {
            let role = job.spec.role.clone().unwrap_or_default();
            let message = format!("job `{}` is reviewed by the role that wrote it, `{role}`", subject.spec.id);
            self.fault(job, "role", message, "give the review a role of its own").warning = true;
        }
        let authors = &self.facts.run.author_roles;
        if let Some(role) = subject.spec.role.as_ref().filter(|role| job.spec.fresh && !authors.contains(role)) {
            let message = format!(
                "`{}` is fresh of {} only, and `{role}` worked `{}`",
                job.spec.id,
                authors.join(", "),
                subject.spec.id
            );
            let hint = format!("write `author_roles = [{}\"{role}\"]` at the top", quoted(authors));
            self.fault(job, "reviews", message, hint).warning = true;
        }
        if job.spec.same_model {
            let model = jobs::model(&job.spec, &self.facts.settings.lanes).unwrap_or_default().to_owned();
            let message =
                format!("`{}` and its review `{}` declare the same model, {model}", subject.spec.id, job.spec.id);
            let distinct = self.facts.run.require_distinct_models;
            let hint = if distinct {
                "give one of them a lane with another model; `require_distinct_models` asks for it"
            } else {
                "the verdict is stamped `same_model`; another lane would be more independent"
            };
            self.fault(job, "reviews", message, hint).warning = !distinct;
        }
    }

    fn quorum(&mut self, job: &Job) {
        let Some(quorum) = job.spec.quorum else { return };
        let reviews = self.facts.jobs.iter().filter(|other| other.spec.reviewed_job() == Some(&job.spec.id)).count();
        if usize::try_from(quorum).is_ok_and(|quorum| quorum <= reviews) {
            return;
        }
        let message = match reviews {
            0 => format!("`quorum` stands on the reviewed job, and nothing reviews `{}`", job.spec.id),
            reviews => format!("a quorum of {quorum}, and `{}` has {reviews} reviews", job.spec.id),
        };
        self.fault(job, "quorum", message, "leave it out: then every review must accept");
    }

    fn cycle(&mut self, nodes: &[Node]) -> bool {
        let Some(path) = graph::cycle(nodes) else { return false };
        let Some(job) = path.get(1).and_then(|id| self.find(id)) else { return true };
        let key = if job.section.has("needs") { "needs" } else { "reviews" };
        let message = format!("jobs wait for each other: {}", path.join(" -> "));
        self.fault(job, key, message, "take out one of these edges");
        true
    }

    fn inputs(&mut self, at: usize, job: &Job) {
        for (index, input) in job.spec.inputs.iter().enumerate() {
            let (message, hint) = match input.split_once('.') {
                None => (format!("`{input}` is no artifact"), "write `job.name`".to_owned()),
                Some((from, name)) => match self.positions.get(from).copied() {
                    None => (format!("unknown job `{from}`"), self.nearest(from, job)),
                    Some(from_at) if !self.ancestors[at].has(from_at) => {
                        let message = format!("`{from}` does not come before `{}`", job.spec.id);
                        (message, format!("add it to `needs`, or to those of a job that `{}` needs", job.spec.id))
                    }
                    Some(from_at) => {
                        let produces = &self.facts.jobs[from_at].spec.produces;
                        if produces.iter().any(|produce| produce.name == name) {
                            continue;
                        }
                        let names: Vec<String> = produces.iter().map(|produce| produce.name.clone()).collect();
                        (format!("job `{from}` produces no `{name}`"), nearest_hint(name, names.iter()))
                    }
                },
            };
            self.faults.push(Fault::new(job.section.part("inputs", index), job.key("inputs"), message).hint(hint));
        }
    }

    /// Whether jobs that may run side by side can change the same paths.
    fn overlaps(&mut self) {
        let may_meet = |(_, job): &(usize, &Job)| !job.spec.writes.is_empty() && !job.spec.allow_overlap;
        let writers = self.facts.jobs.iter().enumerate().filter(may_meet);
        let writers: Vec<(usize, &Job, Reach<'_>)> =
            writers.map(|(at, job)| (at, job, Reach::new(&job.spec.writes, &job.spec.forbids))).collect();
        for (index, (at, job, reach)) in writers.iter().enumerate() {
            for (other_at, other, other_reach) in &writers[index + 1..] {
                if self.ancestors[*at].has(*other_at) || self.ancestors[*other_at].has(*at) {
                    continue;
                }
                if let Some(patterns) = reach.meets(other_reach) {
                    self.overlap(job, other, patterns);
                }
            }
        }
    }

    fn overlap(&mut self, job: &Job, other: &Job, (first, second): (&str, &str)) {
        let scopes = if first == second { format!("`{first}`") } else { format!("`{first}` and `{second}`") };
        let (one, two) = (&job.spec.id, &other.spec.id);
        let message = format!("`{one}` and `{two}` may run side by side, and their scopes meet: {scopes}");
        let hint =
            format!("order them (`needs = [\"{one}\"]`), narrow one of the scopes, or write `allow_overlap = true`");
        self.fault(other, "writes", message, hint);
    }

    fn nearest(&self, name: &str, job: &Job) -> String {
        let others: Vec<String> =
            self.positions.keys().filter(|id| **id != job.spec.id).map(|id| (*id).to_owned()).collect();
        nearest_hint(name, others.iter())
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}, ")).collect()
}
