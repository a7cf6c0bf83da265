//! How domain words and ids stand in columns.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};

use crate::domain::escape::Surface;
use crate::domain::event::EventType;
use crate::domain::gate::Tier;
use crate::domain::id::{DecisionId, GateId, JobId, LeaseId, MessageId, ProposalId, RunId, SessionId};
use crate::domain::job::{Cause, JobState, Outcome, Phase};
use crate::domain::proposal::ProposalState;
use crate::domain::resource::ResourceState;
use crate::domain::run::RunState;
use crate::domain::session::{
    ChangeState, ExecutionState, GateState, LandingKind, LandingState, LeaseState, MessageState, SessionState,
    StopKind, SupervisorState, TreeState,
};
use crate::domain::time::Timestamp;
use crate::domain::verdict::Verdict;

macro_rules! words {
    ($($name:ident),*) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::from(self.word()))
            }
        }
        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_str()?.parse().map_err(FromSqlError::other)
            }
        }
    )*};
}

macro_rules! numbers {
    ($($name:ident),*) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::from(self.0))
            }
        }
        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_i64().map($name)
            }
        }
    )*};
}

words!(
    JobState,
    Phase,
    Outcome,
    Cause,
    RunState,
    SessionState,
    MessageState,
    LeaseState,
    SupervisorState,
    ExecutionState,
    GateState,
    StopKind,
    Verdict,
    Tier,
    TreeState,
    ResourceState,
    ChangeState,
    LandingState,
    LandingKind,
    EventType,
    ProposalState,
    Surface
);
numbers!(SessionId, LeaseId, GateId, DecisionId, MessageId, ProposalId, RunId, JobId, Timestamp);

/// A JSON column.
#[derive(Debug, Clone)]
pub struct Json<T>(pub T);

impl<T: serde::de::DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Json).map_err(FromSqlError::other)
    }
}

impl<T: serde::Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        serde_json::to_string(&self.0)
            .map(ToSqlOutput::from)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
    }
}
