//! What every verb is given: where the store is, who asks, what time it is.
//!
//! The store is opened when it is first needed. This file does not know any verb.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::domain::id::SessionId;
use crate::error::{Code, Error, Result};
use crate::os::clock::Clock;
use crate::os::crash;
use crate::os::files;
use crate::os::layout::{Found, Layout, Search, discover};
use crate::os::lock::{WriteGuard, WriteRequest};
use crate::store::request::Asked;
use crate::store::{Connection, Life, Opening, Stamp, Store, Writing};

/// How long a verb waits for the store when nothing says otherwise.
const BUSY_MS: u64 = 10_000;

/// A log that is larger than this is folded into the file by a short verb that writes, and at the clean end of a driver:
/// whoever opens the store next may have to read it.
pub const LOG_AT_REST: u64 = 256 * 1024;

/// A log that is larger than this is folded into the file at the clean end of a helper, beside whom others work.
pub const LOG_AT_WORK: u64 = 32 * 1024 * 1024;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// Whoever runs this process, outside every lane of this store.
    User,
    /// The agent of a session.
    Session(SessionId),
}

impl Actor {
    /// The principal that events bear.
    pub fn principal(&self) -> String {
        match self {
            Actor::User => format!("user:{}", crate::os::user_name()),
            Actor::Session(id) => format!("session:{id}"),
        }
    }
}

/// Where it is said that something takes long.
type Notice = Box<dyn FnMut(&str)>;

/// A caller's key that goes with the first write.
struct Reservation {
    asked: Asked,
    is_made: bool,
}

/// What every verb is given.
pub struct Ctx {
    layout: Layout,
    has_store: bool,
    store: OnceCell<Store>,
    pooled: bool,
    life: Life,
    user_settings: bool,
    busy_ms: Cell<u64>,
    /// The clock.
    pub clock: Clock,
    /// Who asks.
    pub actor: Actor,
    /// This program's file, for helpers.
    pub exe: PathBuf,
    reservation: RefCell<Option<Reservation>>,
    person: Option<String>,
    notices: RefCell<Notice>,
}

impl Ctx {
    /// A context for the store that discovery found.
    pub fn new(found: Found, actor: Actor, exe: PathBuf) -> Ctx {
        let has_store = matches!(found, Found::Store(_));
        Ctx {
            layout: found.into_layout(),
            has_store,
            store: OnceCell::new(),
            pooled: false,
            life: Life::Short,
            user_settings: true,
            busy_ms: Cell::new(BUSY_MS),
            clock: Clock,
            actor,
            exe,
            reservation: RefCell::new(None),
            person: None,
            notices: RefCell::new(Box::new(|_| {})),
        }
    }

    /// The same store for somebody else, on a connection of its own.
    pub fn as_actor(&self, actor: Actor) -> Ctx {
        Ctx {
            layout: self.layout.clone(),
            has_store: self.has_store,
            store: OnceCell::new(),
            pooled: self.pooled,
            life: self.life,
            user_settings: self.user_settings,
            busy_ms: self.busy_ms.clone(),
            clock: self.clock,
            actor,
            exe: self.exe.clone(),
            reservation: RefCell::new(None),
            person: None,
            notices: RefCell::new(Box::new(|_| {})),
        }
    }

    /// Reads through a pool from now on: for the driver, which reads while it watches.
    pub fn pooled(mut self) -> Ctx {
        self.pooled = true;
        self.lasting()
    }

    /// Keeps the store open for long from now on, so that its log may grow.
    pub fn lasting(mut self) -> Ctx {
        self.life = Life::Long;
        self
    }

    /// Looks at the repository's configuration alone from now on.
    pub fn without_user_settings(mut self) -> Ctx {
        self.user_settings = false;
        self
    }

    /// Whether the user's own configuration counts.
    pub fn has_user_settings(&self) -> bool {
        self.user_settings
    }

    /// Uses one plain connection.
    pub fn plain(mut self) -> Ctx {
        self.pooled = false;
        self
    }

    /// Waits this long for a busy store.
    pub fn with_busy(self, ms: u64) -> Ctx {
        self.busy_ms.set(ms);
        self
    }

    /// Waits this long for a busy store from now on.
    pub fn wait_for_store(&self, ms: u64) {
        self.busy_ms.set(ms);
    }

    /// Where to say that something takes long.
    pub fn on_notice(self, notice: impl FnMut(&str) + 'static) -> Ctx {
        *self.notices.borrow_mut() = Box::new(notice);
        self
    }

    /// Reserves a caller's key with the next write.
    pub fn reserve(&self, asked: Asked) {
        *self.reservation.borrow_mut() = Some(Reservation { asked, is_made: false });
    }

    /// Whether a write has reserved the caller's key; it is forgotten here.
    pub fn is_reserved(&self) -> bool {
        self.reservation.borrow_mut().take().is_some_and(|reservation| reservation.is_made)
    }

    /// A person asks; `how` that is known goes into what they decide.
    pub fn with_person(mut self, how: String) -> Ctx {
        self.person = Some(how);
        self
    }

    /// How it is known that a person asks. No document can say so: only a mouth that looked.
    pub fn person(&self) -> Result<&str> {
        self.person
            .as_deref()
            .ok_or_else(|| Error::new(Code::PersonRequired, "only a person may do this").hint("type it in a terminal"))
    }

    /// Says that something takes long.
    pub fn notice(&self, text: &str) {
        (self.notices.borrow_mut())(text);
    }

    /// The paths of the store.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether there is a database yet.
    pub fn has_store(&self) -> bool {
        self.has_store || self.store.get().is_some()
    }

    /// The open store.
    pub fn store(&self) -> Result<&Store> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let path = self.layout.db();
        let store =
            if self.pooled { Store::open_pool(&path, self.opening())? } else { Store::open(&path, self.opening())? };
        Ok(self.store.get_or_init(|| store))
    }

    /// Makes the database where configuration exists and the database does not (a fresh clone, CI).
    pub fn ensure_store(&self) -> Result<()> {
        if self.has_store() {
            return Ok(());
        }
        if !self.layout.config().exists() {
            return Err(no_store(self.layout.project()));
        }
        if let Some(lock) = self.held_lock()? {
            return Err(Error::new(Code::StoreReplaced, "the store is gone while a run of it lives")
                .cause(format!("{} is held", lock.display()))
                .hint("bring striatum.db back; what lives ends by itself when it needs it"));
        }
        self.create_store()
    }

    /// The lock of a driver, a helper or an agent that lives.
    fn held_lock(&self) -> Result<Option<PathBuf>> {
        let entries =
            |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_drivers =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("drive-"));
        let lanes = entries(&self.layout.scratches())
            .flat_map(|folder| ["helper.lock", "lane.lock"].map(|lock| folder.join(lock)));
        for lock in entries(&self.layout.locks()).filter(is_drivers).chain(lanes) {
            if crate::os::lock::probe(&lock)? == crate::os::lock::Held::Held {
                return Ok(Some(lock));
            }
        }
        Ok(None)
    }

    /// Makes folders and database.
    pub fn create_store(&self) -> Result<()> {
        for folder in [self.layout.locks(), self.layout.scratches(), self.layout.artifacts()] {
            files::create_private_dirs(self.layout.root(), &folder)?;
        }
        let guard = self.guard("init")?;
        let store = Store::create(&self.layout.db(), self.clock.now(), self.opening())?;
        drop(guard);
        let _ = self.store.set(store);
        Ok(())
    }

    /// A consistent read.
    pub fn read<T>(&self, body: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        if !self.has_store() {
            return Err(no_store(self.layout.project()));
        }
        self.store()?.read(body)
    }

    /// One transaction behind the write guard.
    pub fn write<T>(&self, verb: &str, body: impl FnOnce(&Writing<'_>) -> Result<T>) -> Result<T> {
        self.ensure_store()?;
        let store = self.store()?;
        let principal = self.actor.principal();
        let guard = self.guard(verb)?;
        let stamp = Stamp { at: self.clock.now(), principal: &principal };
        let done = store.write(&guard, stamp, |tx| {
            self.reserve_in(tx)?;
            let done = body(tx)?;
            crash::point_of(verb, "uncommitted");
            Ok::<T, Error>(done)
        })?;
        if let Some(reservation) = self.reservation.borrow_mut().as_mut() {
            reservation.is_made = true;
        }
        crash::point_of(verb, "committed");
        if self.life == Life::Short {
            // What is written is safe; a log that could not be cut is cut by the next one.
            let _ = store.checkpoint_over(LOG_AT_REST);
        }
        Ok(done)
    }

    /// The caller's key goes with the first effect, or neither.
    fn reserve_in(&self, tx: &Writing<'_>) -> Result<()> {
        match self.reservation.borrow().as_ref() {
            Some(reservation) if !reservation.is_made => {
                let is_ours = crate::store::request::reserve(tx, &reservation.asked)?;
                if is_ours { Ok(()) } else { Err(super::request::unfinished(&reservation.asked)) }
            }
            _ => Ok(()),
        }
    }

    fn opening(&self) -> Opening {
        Opening { busy: Duration::from_millis(self.busy_ms.get()), life: self.life }
    }

    fn guard(&self, verb: &str) -> Result<WriteGuard> {
        let request = WriteRequest { verb, timeout_ms: self.busy_ms.get() };
        let guard = WriteGuard::acquire(&self.layout.write_lock(), request, &mut |holder| {
            self.notice(&format!("waiting for the store: {holder} is writing"));
        })?;
        Ok(guard)
    }
}

/// Finds the store that this process means, for the user who runs it.
pub fn open(dir: Option<&Path>) -> Result<Ctx> {
    let cwd = std::env::current_dir()?;
    let variable = std::env::var_os("STRIATUM_DIR").map(PathBuf::from);
    let found = discover(Search { flag: dir, variable: variable.as_deref(), cwd: &cwd })?;
    Ok(Ctx::new(found, Actor::User, own_program()))
}

/// This program's file, as helpers are started from it: it survives an upgrade on disk.
pub fn own_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// An operator's verb is refused to a lane of this store: its processes, or whoever bears its marks.
pub fn refuse_lanes(ctx: &Ctx) -> Result<()> {
    super::person::own_lane(ctx)?.map_or(Ok(()), |session| Err(not_for(session)))
}

fn not_for(session: SessionId) -> Error {
    Error::new(Code::CapabilityDenied, format!("this is not for a lane ({session})"))
        .hint("report what you need with `striatum work block --needs-context`")
}

/// An operator's verb is refused to an agent of this store; who works constrained in a session of their own is none.
pub fn refuse_agents(ctx: &Ctx) -> Result<()> {
    match super::person::own_lane(ctx)? {
        Some(own) if super::constrained::of_operator(ctx, own)?.is_none() => Err(not_for(own)),
        Some(_) | None => Ok(()),
    }
}

/// The time, for a mouth that stamps lines.
pub fn now() -> crate::domain::time::Timestamp {
    Clock.now()
}

/// There is no store here, and what makes one.
pub fn no_store(project: &Path) -> Error {
    Error::new(Code::NoStore, format!("there is no striatum store in {} or above it", project.display()))
        .hint("`striatum init` sets one up in this repository")
        .next(crate::error::Next::new("operator", "set up a store here", &["striatum", "init"]))
}
