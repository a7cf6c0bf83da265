//! A lane that can't work now cools down: back-off from one to thirty minutes, parked after the give-up limit.

use serde_json::json;

use crate::domain::event::EventType;
use crate::error::Result;
use crate::os::clock::Clock;
use crate::store::event::About;
use crate::store::lane::LaneRow;
use crate::store::{self, Writing};
use crate::verbs::work::hold::Hold;

/// Longest pause, in milliseconds.
const LONGEST_MS: u64 = 30 * 60_000;

/// Notes one more failure; gives the lane that may take the job meanwhile.
pub fn cool(tx: &Writing<'_>, hold: &Hold, why: &str) -> Result<Option<String>> {
    let now = Clock.moment();
    let name = &hold.session.lane;
    let known = store::lane::get(tx, name)?;
    let (first, give_up) = hold
        .run
        .spec
        .lanes
        .get(name)
        .map_or((60_000, u64::MAX), |lane| (hold.run.spec.limits.cooldown_ms, lane.unavailable.give_up_ms));
    let pause = first.saturating_mul(1_u64 << known.cooling_step.min(16)).min(LONGEST_MS.max(first));
    let since = known.cooling_since.clone().filter(|since| since.boot == now.boot).unwrap_or_else(|| now.clone());
    let is_over = known.cooling_step > 0 && since.after(give_up).is_past(&now);
    let row = LaneRow {
        parked_at: if is_over { Some(tx.at) } else { known.parked_at },
        parked_reason: if is_over { Some(why.to_owned()) } else { known.parked_reason },
        cooling_until: Some(now.after(pause)),
        cooling_since: Some(since),
        cooling_step: known.cooling_step + 1,
    };
    store::lane::put(tx, name, &row)?;
    if is_over {
        let about = About { run: Some(hold.run.id), job: Some(hold.job.id), session: Some(hold.session.id) };
        store::event::append(tx, EventType::LaneParked, about, &json!({"lane": name, "why": why}))?;
    }
    fallback(tx, hold)
}

/// The first fallback lane that is well.
fn fallback(tx: &Writing<'_>, hold: &Hold) -> Result<Option<String>> {
    let Some(lane) = hold.run.spec.lanes.get(&hold.session.lane) else { return Ok(None) };
    let now = Clock.moment();
    for name in &lane.fallback {
        let known = store::lane::get(tx, name)?;
        let is_well = known.parked_at.is_none() && known.cooling_until.is_none_or(|until| until.is_past(&now));
        if is_well && hold.run.spec.lanes.contains_key(name) {
            return Ok(Some(name.clone()));
        }
    }
    Ok(None)
}

/// A lane that worked: the next failure starts from the shortest pause.
pub fn warm(tx: &Writing<'_>, name: &str) -> Result<()> {
    let known = store::lane::get(tx, name)?;
    if known.cooling_step == 0 {
        return Ok(());
    }
    store::lane::put(
        tx,
        name,
        &LaneRow { parked_at: known.parked_at, parked_reason: known.parked_reason, ..LaneRow::default() },
    )?;
    Ok(())
}
