//! Where a call goes: to the store, or, in a lane, through its helper's socket.

use std::cell::Cell;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Globals;
use crate::broker::client;
use crate::error::{Code, Error, Result};
use crate::verbs::api::{Verb, Who};
use crate::verbs::constrained;
use crate::verbs::ctx::{self, Ctx};
use crate::verbs::person::{self, Caller};
use crate::verbs::request;

/// One invocation of the command line.
pub struct Session {
    /// Flags that every verb takes.
    pub globals: Globals,
    words_on_stdin: Cell<bool>,
}

impl Session {
    /// An invocation with these flags.
    pub fn new(globals: Globals) -> Session {
        Session { globals, words_on_stdin: Cell::new(false) }
    }

    /// The same invocation without the caller's key: for the second verb of one command.
    pub fn unkeyed(&self) -> Session {
        Session::new(Globals { request_id: None, ..self.globals.clone() })
    }

    /// Calls a verb.
    pub fn call<V: Verb>(&self, request: &V) -> Result<V::Report> {
        match (self.lane_socket(), V::WHO) {
            (Some(socket), _) => through(&socket, request, self.globals.request_id.clone()),
            (None, Who::Person) => self.call_as_person(request),
            (None, Who::Operator) => self.ask(self.operator_ctx()?, request),
            (None, Who::Admin) => self.call_as_admin(request),
            (None, Who::Anyone | Who::Session) => self.ask(self.ctx()?, request),
        }
    }

    /// Calls a verb beyond the control plane: in a constrained run an escape must open it.
    fn call_as_admin<V: Verb>(&self, request: &V) -> Result<V::Report> {
        let ctx = self.operator_ctx()?;
        constrained::pass(&ctx, V::NAME, &serde_json::to_value(request)?, &typed())?;
        self.ask(ctx, request)
    }

    /// Calls an operator's verb in a way that changes nothing.
    pub fn call_to_look<V: Verb>(&self, request: &V) -> Result<V::Report> {
        self.ask(self.operator_ctx()?, request)
    }

    /// Calls a verb in a way that only a person may.
    pub fn call_as_person<V: Verb>(&self, request: &V) -> Result<V::Report> {
        let ctx = self.operator_ctx()?;
        ctx::refuse_lanes(&ctx)?;
        let how = person::require(&self.caller())?;
        self.ask(ctx.with_person(how), request)
    }

    /// Asks under the caller's key. This process is about to end, and the store stays open until then: the kernel
    /// closes it at the exit, quicker than SQLite would free all that it has read of the schema.
    fn ask<V: Verb>(&self, ctx: Ctx, request: &V) -> Result<V::Report> {
        let report = request::ask(&ctx, self.globals.request_id.as_deref(), request);
        std::mem::forget(ctx);
        report
    }

    fn caller(&self) -> Caller {
        let own = words();
        Caller {
            as_person: self.globals.as_person,
            words: std::iter::once("striatum".to_owned()).chain(own).collect(),
            words_on_stdin: self.words_on_stdin.get(),
        }
    }

    /// Everything that comes through standard input, as the words to act on; at most `limit` bytes.
    pub fn read_stdin(&self, limit: u64) -> Result<String> {
        self.words_on_stdin.set(true);
        let mut text = String::new();
        std::io::stdin().lock().take(limit + 1).read_to_string(&mut text)?;
        if text.len() as u64 > limit {
            return Err(Error::new(Code::TooLarge, format!("standard input has more than {limit} bytes")));
        }
        Ok(text)
    }

    /// Whether this process speaks through the socket of a lane.
    pub fn is_in_lane(&self) -> bool {
        self.lane_socket().is_some()
    }

    /// The store, for verbs that are more than a request and a report.
    pub fn ctx(&self) -> Result<Ctx> {
        let ctx = ctx::open(self.globals.dir.as_deref())?;
        let json = self.globals.json;
        Ok(ctx.on_notice(move |text| super::output::notice(text, json)))
    }

    /// The store, for verbs that an operator alone may use.
    pub fn operator_ctx(&self) -> Result<Ctx> {
        if self.lane_socket().is_some() {
            return Err(Error::new(Code::CapabilityDenied, "this is not for a lane")
                .hint("report what you need with `striatum work block --needs-context`"));
        }
        let ctx = self.ctx()?;
        ctx::refuse_agents(&ctx)?;
        Ok(ctx)
    }

    /// The helper's socket, when this process is in a lane of the store that it means.
    fn lane_socket(&self) -> Option<PathBuf> {
        let socket = std::env::var_os("STRIATUM_SOCKET").filter(|path| !path.is_empty())?;
        let own = std::env::var_os("STRIATUM_DIR")?;
        match &self.globals.dir {
            Some(dir) if !same(dir, Path::new(&own)) => None,
            _ => Some(PathBuf::from(socket)),
        }
    }
}

/// What was typed behind the program's name.
fn words() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// The words that an escape names: how a report is shown makes no other act of it.
fn typed() -> Vec<String> {
    words().filter(|word| word != "--json").collect()
}

fn same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

fn through<V: Verb>(socket: &Path, request: &V, key: Option<String>) -> Result<V::Report> {
    let report = client::call(socket, V::NAME, serde_json::to_value(request)?, key)?;
    Ok(serde_json::from_value(report)?)
}
