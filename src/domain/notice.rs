//! What is worth telling a person who is not looking, and in which words.
//!
//! It does not know how they are told.

use super::event::EventType;
use super::word::word_enum;

word_enum! {
    /// An occasion to tell a person something; `notify.on` chooses among them.
    Occasion "occasion" {
        /// Something waits for a person.
        Inbox "inbox",
        /// A run can't go on.
        NeedsOperator "needs_operator",
        /// A run is done.
        Completed "completed",
        /// A run failed.
        Failed "failed",
        /// A lane gets no launches until a person looks at it.
        LaneParked "lane_parked",
        /// Lanes work, and nothing drives their run any more.
        DriverEnded "driver_ended",
    }
}

impl Occasion {
    /// What an event is an occasion for, if for anything.
    pub const fn of(event: EventType) -> Option<Occasion> {
        match event {
            EventType::GateOpened
            | EventType::JobWaiting
            | EventType::JobFailed
            | EventType::JobSurfaced
            | EventType::NextSurfaced
            | EventType::EphemeralLeft
            | EventType::BreakerTripped => Some(Occasion::Inbox),
            EventType::RunNeedsOperator => Some(Occasion::NeedsOperator),
            EventType::RunCompleted => Some(Occasion::Completed),
            EventType::RunFailed => Some(Occasion::Failed),
            EventType::LaneParked => Some(Occasion::LaneParked),
            EventType::DriverEnded => Some(Occasion::DriverEnded),
            _ => None,
        }
    }
}

/// One line for a person: of which run, and about what.
pub fn line(occasion: Occasion, run: &str, subjects: &[String]) -> String {
    let about = match subjects {
        [] => String::new(),
        [only] => format!(": {only}"),
        [first, rest @ ..] => format!(": {first} and {} more", rest.len()),
    };
    match occasion {
        Occasion::Inbox => format!("{run} waits for you{about}"),
        Occasion::NeedsOperator => format!("{run} can't go on without you{about}"),
        Occasion::Completed => format!("{run} is completed"),
        Occasion::Failed => format!("{run} failed{about}"),
        Occasion::LaneParked => format!("a lane of {run} is parked{about}"),
        Occasion::DriverEnded => format!("lanes of {run} work, and nothing drives it any more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occasion_has_its_events_and_its_words() {
        let subjects = ["ship (gate)".to_owned(), "draft (needs_context)".to_owned()];
        let mut lines = Vec::new();
        for occasion in Occasion::ALL {
            let events = EventType::ALL.iter().filter(|event| Occasion::of(**event) == Some(*occasion));
            let events: Vec<&str> = events.map(|event| event.word()).collect();
            lines.push(format!("{occasion}: {}\n  {}", events.join(", "), line(*occasion, "w-1", &subjects)));
        }
        insta::assert_snapshot!("occasion_table", lines.join("\n"));
    }
}
