//! A helper's side of the socket.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use serde_json::Value;

use super::{Call, Reply};
use crate::error::{Code, Error, Result};
use crate::os::socket;
use crate::verbs::Ctx;
use crate::verbs::api::{self, Who};
use crate::verbs::settle::SettleReport;
use crate::verbs::supervise::inbox::{Desk, Inbox};

/// How long one request or reply may take on the wire; a client that stalls must not hold up its own helper.
const WIRE_MS: u64 = 2_000;

/// The listening socket of a session.
pub struct Server {
    listener: UnixListener,
    waiting: Vec<(UnixStream, Value)>,
}

/// A socket of one's own at this path.
pub fn listen(path: &Path) -> Result<UnixListener> {
    Ok(socket::bind(path)?)
}

impl Server {
    /// Listens at the session's path.
    pub fn bind(path: &Path) -> Result<Server> {
        let listener = socket::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener, waiting: Vec::new() })
    }

    fn answer(&mut self, ctx: &Ctx, desk: &Desk, stream: UnixStream) -> Result<()> {
        stream.set_nonblocking(false)?;
        if !is_of_agent(&stream, desk) {
            let error = Error::new(Code::CapabilityDenied, "this socket serves the agent of its own lane only");
            return reply(&stream, &Reply::Error(error.to_json()));
        }
        let line = socket::read_line(&stream, WIRE_MS)?;
        let call: Call = match serde_json::from_slice(&line) {
            Ok(call) => call,
            Err(error) => {
                let error = Error::new(Code::Usage, format!("the request is no call: {error}"));
                return reply(&stream, &Reply::Error(error.to_json()));
            }
        };
        let waits = desk.waits_for_settling && call.verb == "work_answer";
        match run(ctx, desk, call) {
            Ok(report) if waits => self.waiting.push((stream, report)),
            Ok(report) => reply(&stream, &Reply::Report(report))?,
            Err(error) => reply(&stream, &Reply::Error(error.to_json()))?,
        }
        Ok(())
    }
}

impl Inbox for Server {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.listener.as_fd())
    }

    fn serve(&mut self, ctx: &Ctx, desk: &Desk) -> usize {
        let mut served = 0;
        while let Ok((stream, _)) = self.listener.accept() {
            if let Err(error) = self.answer(ctx, desk, stream) {
                tracing::debug!("a request was dropped: {error}");
            }
            served += 1;
        }
        served
    }

    fn settled(&mut self, report: &SettleReport) {
        for (stream, mut answer) in self.waiting.drain(..) {
            if let Some(map) = answer.as_object_mut() {
                map.insert("settled".to_owned(), serde_json::to_value(report).unwrap_or_default());
                map.insert("message".to_owned(), Value::String(report.message.clone()));
            }
            if let Err(error) = reply(&stream, &Reply::Report(answer)) {
                tracing::debug!("a reply was dropped: {error}");
            }
        }
    }
}

/// Runs what a lane may ask; an operator's and a person's verbs are refused.
fn run(ctx: &Ctx, desk: &Desk, call: Call) -> Result<Value> {
    match api::who(&call.verb) {
        None => Err(Error::new(Code::Usage, format!("there is no verb {}", call.verb))),
        Some(Who::Operator | Who::Admin | Who::Person) => Err(Error::new(
            Code::CapabilityDenied,
            format!("{} is not for a lane ({})", call.verb.replace('_', " "), desk.session),
        )
        .hint("report what you need with `striatum work block --needs-context`")),
        Some(Who::Anyone | Who::Session) => api::dispatch(ctx, call.key.as_deref(), &call.verb, call.request),
    }
}

fn reply(stream: &UnixStream, reply: &Reply) -> Result<()> {
    Ok(socket::write_line(stream, &serde_json::to_vec(reply)?, WIRE_MS)?)
}

/// Whether the other end descends from the agent, by the kernel's credentials and the process table.
fn is_of_agent(stream: &UnixStream, desk: &Desk) -> bool {
    socket::peer_pid(stream).is_ok_and(|peer| desk.is_of_agent(peer))
}
