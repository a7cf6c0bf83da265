//! Breakers: the closed list of what stops a run that spends, repeats or waits too much, and the counting behind
//! those that are no plain column.
//!
//! It reads no clock and knows no store: moments, budgets and what was seen are handed in.

use std::collections::BTreeMap;

use super::frozen::Budget;
use super::id::SessionId;
use super::job::Cause;
use super::time::{Moment, Timestamp};

/// A breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Its name, as events and summaries tell it.
    pub name: &'static str,
    /// What the run then needs an operator for; none when it only ends an attempt or a proposal.
    pub cause: Option<Cause>,
    /// The key that `run amend --set` raises; none when the limit is fixed.
    pub key: Option<&'static str>,
    /// The limit belongs to a job, which `run amend` names.
    pub is_of_job: bool,
    /// The limit where nobody says otherwise.
    pub default: &'static str,
    /// What trips it, and what then happens.
    pub rule: &'static str,
}

const fn row(name: &'static str, cause: Option<Cause>, key: Option<&'static str>, default: &'static str) -> Breaker {
    Breaker { name, cause, key, is_of_job: false, default, rule: "" }
}

impl Breaker {
    const fn of_job(self) -> Breaker {
        Breaker { is_of_job: true, ..self }
    }

    const fn says(self, rule: &'static str) -> Breaker {
        Breaker { rule, ..self }
    }
}

/// Every breaker. `docs/limits.md` is this table in words.
pub const BREAKERS: &[Breaker] = &[
    row("strikes", Some(Cause::Strikes), Some("max_strikes"), "3")
        .of_job()
        .says("Failed attempts of a job; the last one fails it."),
    row("requeues", Some(Cause::Requeues), Some("budget.requeues"), "2")
        .says("Repeats of a job without a strike (holder lost, never started, conflict); one more fails it."),
    row("revisions", Some(Cause::Revisions), Some("revisions"), "2")
        .of_job()
        .says("Times a review may send its job back; one more fails the review."),
    row("launches", Some(Cause::Launches), Some("budget.launches"), "2 x jobs + 10")
        .says("Agents started for the run; then no more is."),
    row("active_time", Some(Cause::ActiveTime), Some("budget.active_time"), "24h")
        .says("Time in which something worked under a driver; then nothing more is launched."),
    row("cost", Some(Cause::Cost), Some("budget.cost_usd"), "none")
        .says("Dollars that the lanes reported; then nothing more is launched."),
    row("no_progress", Some(Cause::NoProgress), Some("budget.no_progress"), "60m")
        .says("Silence of everything in flight: no seal, no verb, no output. Told at once; nothing is ended."),
    row("timeout", None, Some("timeout"), "45m").of_job().says("Length of one attempt; it ends with a strike."),
    row("idle_timeout", None, Some("lanes.LANE.idle_timeout"), "15m with an adapter, else none")
        .says("Silence and stillness of one attempt; it ends with a strike."),
    row("next_depth", None, Some("budget.next_depth"), "2")
        .says("How deep proposals of proposals nest; a deeper one is refused."),
    row("dedupe", None, None, "one").says("Proposals alike in type and inputs; the second is refused."),
    row("confidence", None, None, "0.5").says("A proposal less sure of itself is only shown."),
];

/// The breaker that stops a run for a cause.
pub fn of_cause(cause: Cause) -> Option<&'static Breaker> {
    BREAKERS.iter().find(|breaker| breaker.cause == Some(cause))
}

/// The breaker that a key raises.
pub fn of_key(key: &str) -> Option<&'static Breaker> {
    BREAKERS.iter().find(|breaker| breaker.key == Some(key))
}

/// What a run has used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Reported cost, in micro-dollars.
    pub cost_micro_usd: u64,
    /// Charged working time, in milliseconds.
    pub active_ms: u64,
}

/// Money and working time that are used up: nothing more is launched or claimed, what is in flight finishes.
pub fn spent(budget: &Budget, spending: &Spending) -> Vec<Cause> {
    let cost = budget.cost_micro_usd.is_some_and(|limit| spending.cost_micro_usd >= limit);
    let all = [(Cause::Cost, cost), (Cause::ActiveTime, spending.active_ms >= budget.active_time_ms)];
    all.into_iter().filter(|(_, is_spent)| *is_spent).map(|(cause, _)| cause).collect()
}

/// Working time that a driver has seen and not yet written down.
#[derive(Clone, Debug)]
pub struct Charge {
    /// Since when something works; none while nothing does.
    since: Option<Moment>,
    unsaved_ms: u64,
    /// Longest stretch between two looks that counts: a driver that was stopped saw nothing.
    most_ms: u64,
}

/// At most so much working time is lost with a driver that dies, in milliseconds: one write a minute.
pub const SAVE_EVERY_MS: u64 = 60_000;

impl Charge {
    /// Nothing charged; `most_ms` bounds what one look adds.
    pub fn new(most_ms: u64) -> Charge {
        Charge { since: None, unsaved_ms: 0, most_ms }
    }

    /// Charges what passed since the last look, if something worked then. Suspend is no time of this clock, and another
    /// boot has no time in common with this one.
    pub fn pass(&mut self, now: &Moment) {
        let Some(since) = self.since.take() else { return };
        let passed = if since.boot == now.boot { u64::try_from(now.ms - since.ms).unwrap_or(0) } else { 0 };
        self.unsaved_ms += passed.min(self.most_ms);
        self.since = Some(now.clone());
    }

    /// From now on something works, or nothing does.
    pub fn set_working(&mut self, works: bool, now: &Moment) {
        self.since = works.then(|| now.clone());
    }

    /// Enough has gathered to be written: a minute, or all that is left of the budget.
    pub fn is_due(&self, left_ms: u64) -> bool {
        self.unsaved_ms > 0 && self.unsaved_ms >= left_ms.min(SAVE_EVERY_MS)
    }

    /// When the budget would be used up if work goes on; none while nothing works.
    pub fn ends_at(&self, left_ms: u64) -> Option<Moment> {
        self.since.as_ref().filter(|_| left_ms > 0).map(|since| since.after(left_ms.saturating_sub(self.unsaved_ms)))
    }

    /// Hands out what is unsaved, to be written.
    pub fn take(&mut self) -> u64 {
        std::mem::take(&mut self.unsaved_ms)
    }
}

/// A sign of life of what a session holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The job.
    pub name: String,
    /// Which try.
    pub attempt: u32,
    /// The session's last verb.
    pub active_at: Timestamp,
    /// Bytes of output and when the last one came.
    pub output: Option<(u64, Timestamp)>,
}

impl Beat {
    /// When it last moved, by the wall clock.
    fn at(&self) -> Timestamp {
        self.output.map_or(self.active_at, |(_, at)| at.max(self.active_at))
    }
}

/// Signs of life of everything that agents have in flight. What a person holds is not in it.
pub type Pulse = BTreeMap<SessionId, Beat>;

/// For how long nothing in flight has moved.
#[derive(Clone, Debug, Default)]
pub struct Stillness {
    seen: Option<(Pulse, Moment)>,
    /// It was told before this watch began that nothing moves, and nothing has moved since.
    is_presumed: bool,
}

/// What is known of a stillness beside the pulse.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// How long everything may be silent, in milliseconds.
    pub limit_ms: u64,
    /// When it was told that nothing moves; none when it was not, or when the limit was raised since.
    pub told_at: Option<Timestamp>,
}

impl Stillness {
    /// Looks once more: when everything in flight counts as silent, which may be now. None when nothing is in flight.
    pub fn look(&mut self, pulse: Pulse, now: &Moment, watch: Watch) -> Option<Moment> {
        let is_new = self.seen.as_ref().is_none_or(|(before, since)| *before != pulse || since.boot != now.boot);
        let was_watched = self.seen.is_some();
        if is_new {
            self.is_presumed = !was_watched
                && watch.told_at.is_some_and(|told| !pulse.is_empty() && pulse.values().all(|beat| beat.at() <= told));
            self.seen = Some((pulse, now.clone()));
        } else if self.is_presumed && watch.told_at.is_none() {
            self.is_presumed = false;
            self.seen = Some((pulse, now.clone()));
        }
        let (pulse, since) = self.seen.as_ref()?;
        match (pulse.is_empty(), self.is_presumed) {
            (true, _) => None,
            (false, true) => Some(now.clone()),
            (false, false) => Some(since.after(watch.limit_ms)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Moment {
        Moment { boot: "b".into(), ms }
    }

    fn budget() -> Budget {
        Budget { active_time_ms: 1_000, cost_micro_usd: Some(500), ..Budget::default() }
    }

    #[test]
    fn a_budget_is_spent_when_nothing_is_left_of_it() {
        let under = Spending { cost_micro_usd: 499, active_ms: 999 };
        assert_eq!(spent(&budget(), &under), []);
        let all = Spending { cost_micro_usd: 500, active_ms: 1_000 };
        assert_eq!(spent(&budget(), &all), [Cause::Cost, Cause::ActiveTime]);
        let unlimited = Budget { cost_micro_usd: None, ..budget() };
        assert_eq!(spent(&unlimited, &Spending { cost_micro_usd: u64::MAX, ..under }), []);
    }

    #[test]
    fn only_time_in_which_something_works_is_charged() {
        let mut charge = Charge::new(60_000);
        charge.pass(&at(100));
        charge.set_working(true, &at(100));
        charge.pass(&at(400));
        charge.set_working(false, &at(400));
        charge.pass(&at(9_000));
        charge.set_working(true, &at(9_000));
        charge.pass(&at(9_050));
        assert_eq!((charge.take(), charge.take()), (350, 0));
    }

    #[test]
    fn a_step_back_another_boot_and_a_long_absence_charge_nothing_they_should_not() {
        let mut charge = Charge::new(1_000);
        charge.set_working(true, &at(5_000));
        charge.pass(&at(4_000));
        assert_eq!(charge.take(), 0);
        charge.pass(&Moment { boot: "other".into(), ms: 9_000 });
        assert_eq!(charge.take(), 0);
        charge.set_working(true, &at(0));
        charge.pass(&at(8 * 3_600_000));
        assert_eq!(charge.take(), 1_000);
    }

    #[test]
    fn it_is_written_once_a_minute_and_when_the_budget_ends() {
        let mut charge = Charge::new(600_000);
        charge.set_working(true, &at(0));
        assert!(!charge.is_due(0));
        charge.pass(&at(30_000));
        assert!(!charge.is_due(3_600_000) && charge.is_due(20_000));
        assert_eq!(charge.ends_at(40_000), Some(at(40_000)));
        charge.pass(&at(60_000));
        assert!(charge.is_due(3_600_000));
    }

    fn beat(active: i64, output: Option<(u64, i64)>) -> Beat {
        let output = output.map(|(bytes, at)| (bytes, Timestamp(at)));
        Beat { name: "draft".into(), attempt: 1, active_at: Timestamp(active), output }
    }

    fn pulse(beat: Beat) -> Pulse {
        Pulse::from([(SessionId(1), beat)])
    }

    const WATCH: Watch = Watch { limit_ms: 1_000, told_at: None };

    #[test]
    fn silence_is_counted_from_the_last_sign_of_life() {
        let mut still = Stillness::default();
        assert_eq!(still.look(Pulse::new(), &at(0), WATCH), None);
        assert_eq!(still.look(pulse(beat(1, None)), &at(10), WATCH), Some(at(1_010)));
        assert_eq!(still.look(pulse(beat(1, None)), &at(900), WATCH), Some(at(1_010)));
        assert_eq!(still.look(pulse(beat(1, Some((5, 2)))), &at(950), WATCH), Some(at(1_950)));
        assert_eq!(still.look(pulse(beat(3, Some((5, 2)))), &at(960), WATCH), Some(at(1_960)));
        assert_eq!(still.look(Pulse::new(), &at(970), WATCH), None);
    }

    #[test]
    fn what_was_told_to_be_silent_stays_so_for_the_next_watch_until_it_moves_or_the_limit_is_raised() {
        let told = Watch { told_at: Some(Timestamp(50)), ..WATCH };
        let mut still = Stillness::default();
        assert_eq!(still.look(pulse(beat(1, None)), &at(0), told), Some(at(0)));
        assert_eq!(still.look(pulse(beat(1, None)), &at(7), told), Some(at(7)));
        assert_eq!(still.look(pulse(beat(1, None)), &at(10), WATCH), Some(at(1_010)));
        let mut still = Stillness::default();
        assert_eq!(still.look(pulse(beat(60, None)), &at(0), told), Some(at(1_000)));
    }

    #[test]
    fn every_cause_of_a_breaker_has_its_row_and_a_key_that_raises_it() {
        for breaker in BREAKERS {
            assert!(breaker.cause.is_none() || breaker.key.is_some(), "{}", breaker.name);
            assert!(!breaker.rule.is_empty() && !breaker.default.is_empty(), "{}", breaker.name);
            assert_eq!(breaker.cause.map_or(breaker.name, Cause::word), breaker.name);
        }
    }
}
