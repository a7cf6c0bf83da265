//! SQL and nothing else: opening the file, reading, writing, one file a table.
//!
//! Its rules: WAL, `synchronous=FULL`, every write behind the guard of `locks/write.lock` and inside
//! `BEGIN IMMEDIATE`, statements as constants with named parameters. It decides nothing and touches no other file.

pub mod artifact;
pub mod attempt;
pub mod audit;
pub mod change;
pub mod columns;
pub mod decision;
pub mod escape;
pub mod event;
pub mod evidence;
pub mod execution;
pub mod frozen;
pub mod gate;
pub mod invariant;
pub mod job;
pub mod landing;
pub mod lane;
pub mod lease;
pub mod message;
pub mod proposal;
pub mod request;
pub mod resource;
pub mod run;
pub mod schema;
pub mod session;
pub mod snapshot;
pub mod supervisor;
pub mod tally;
pub mod tree;
pub mod verdict;

use std::cell::{Cell, RefCell};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use r2d2_sqlite::SqliteConnectionManager;
pub use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::{ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::domain::time::{Moment, Timestamp};
use crate::os::lock::WriteGuard;

/// What can go wrong with the file or a statement.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No file.
    #[error("there is no store at {}", .0.display())]
    Missing(PathBuf),
    /// The file is newer than this program.
    #[error("the store was made by {made_by} (schema {version}), this is {} (schema {})", env!("CARGO_PKG_VERSION"), schema::USER_VERSION)]
    Newer {
        /// Which program made it.
        made_by: String,
        /// Its schema.
        version: i64,
    },
    /// A file without a single table: cut off, or never filled.
    #[error("{} is empty: it holds no tables at all", .0.display())]
    Empty(PathBuf),
    /// Some other program's database.
    #[error("the file is a database of another program (application id {0:#x})")]
    Foreign(i64),
    /// The file was moved, replaced or deleted.
    #[error("{} was moved, replaced or deleted while in use", .0.display())]
    Replaced(PathBuf),
    /// The linked SQLite has a known fault.
    #[error("SQLite {0} has a fault that loses data; 3.51.3 or newer is needed")]
    OldSqlite(String),
    /// The pool gave no connection.
    #[error(transparent)]
    Pool(#[from] r2d2::Error),
    /// SQLite says no.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The operating system says no.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl StoreError {
    /// Somebody else holds the write lock; trying again makes sense.
    pub fn is_busy(&self) -> bool {
        matches!(self.sqlite_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// What class of error SQLite's is.
    pub fn sqlite_class(&self) -> SqliteClass {
        match self.sqlite_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => SqliteClass::Corrupt,
            Some(ErrorCode::DiskFull) => SqliteClass::Full,
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::SystemIoFailure) => {
                SqliteClass::Unreadable
            }
            Some(ErrorCode::ReadOnly) => SqliteClass::ReadOnly,
            _ => SqliteClass::Other,
        }
    }

    /// SQLite's own code of error, if it is one.
    pub fn sqlite_code(&self) -> Option<ErrorCode> {
        match self {
            StoreError::Sqlite(error) => error.sqlite_error_code(),
            _ => None,
        }
    }
}

/// Classes of SQLite's errors that a user is told differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqliteClass {
    /// Damaged, or no database.
    Corrupt,
    /// The disk is full.
    Full,
    /// Can't be opened or read.
    Unreadable,
    /// Can't be written.
    ReadOnly,
    /// Anything else.
    Other,
}

/// The result of everything in this layer.
pub type StoreResult<T> = Result<T, StoreError>;

enum Connections {
    Plain(Plain),
    Pool(r2d2::Pool<SqliteConnectionManager>),
}

/// One connection, which is told how to write when it first has to: most short verbs only read.
struct Plain {
    connection: RefCell<Connection>,
    life: Life,
    knows_writing: Cell<bool>,
}

/// An open store.
pub struct Store {
    connections: Connections,
    path: PathBuf,
    identity: (u64, u64),
    busy: Duration,
}

/// A write transaction: what it does is told in events with its time and principal.
pub struct Writing<'a> {
    tx: Transaction<'a>,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub principal: &'a str,
}

impl std::ops::Deref for Writing<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.tx
    }
}

/// Who writes, and when.
#[derive(Clone, Copy)]
pub struct Stamp<'a> {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub principal: &'a str,
}

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// How long to wait for a busy file.
    pub busy: Duration,
    /// For how long it will be open.
    pub life: Life,
}

/// For how long a store is open. It decides how much of the log is left behind: whoever opens a store that nobody
/// has open reads the whole log first, about 2 us a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// For one verb.
    Short,
    /// As long as a driver or a helper.
    Long,
}

impl Life {
    /// Pages in the log from which on a commit also folds them into the file. Where nobody else has the file open
    /// that alone is forgotten at the end of the process: short verbs cut the log themselves.
    const fn log_pages(self) -> u32 {
        match self {
            Life::Short => 0,
            Life::Long => 1_024,
        }
    }
}

impl Plain {
    fn learn_writing(&self) -> StoreResult<()> {
        if !self.knows_writing.get() {
            prepare_to_write(&self.connection.borrow(), self.life)?;
            self.knows_writing.set(true);
        }
        Ok(())
    }
}

impl Store {
    /// Opens an existing store with one plain connection: no thread, no migration scan, two numbers are read.
    pub fn open(path: &Path, opening: Opening) -> StoreResult<Store> {
        let identity = identity(path)?;
        let mut connection = Connection::open_with_flags(path, flags())?;
        configure(&mut connection, opening)?;
        match schema::recognise(&connection)? {
            schema::Recognised::Current => {}
            schema::Recognised::Empty => return Err(StoreError::Empty(path.into())),
            schema::Recognised::Older(version) => return Err(StoreError::Foreign(version)),
        }
        let plain = Plain { connection: RefCell::new(connection), life: opening.life, knows_writing: Cell::new(false) };
        let connections = Connections::Plain(plain);
        Ok(Store { connections, path: path.into(), identity, busy: opening.busy })
    }

    /// Opens an existing store with a pool, for the driver: it reads while it watches.
    pub fn open_pool(path: &Path, opening: Opening) -> StoreResult<Store> {
        drop(Store::open(path, opening)?);
        let manager = SqliteConnectionManager::file(path).with_flags(flags()).with_init(move |connection| {
            configure(connection, opening)?;
            prepare_to_write(connection, opening.life)
        });
        let pool = r2d2::Pool::builder().max_size(2).min_idle(Some(0)).test_on_check_out(false).build(manager)?;
        let connections = Connections::Pool(pool);
        Ok(Store { connections, path: path.into(), identity: identity(path)?, busy: opening.busy })
    }

    /// Makes the file when there is none. It appears whole or not at all: an empty file is never ours.
    pub fn create(path: &Path, made_at: Timestamp, opening: Opening) -> StoreResult<Store> {
        if !path.try_exists()? {
            make(path, made_at)?;
        }
        Store::open(path, opening)
    }

    /// A consistent read.
    pub fn read<T, E: From<StoreError>>(&self, body: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E> {
        self.with(|connection| {
            let tx = connection.transaction_with_behavior(TransactionBehavior::Deferred).map_err(StoreError::from)?;
            let found = body(&tx)?;
            tx.finish().map_err(StoreError::from)?;
            Ok(found)
        })
    }

    /// One immediate transaction behind the guard; rolled back when the body fails.
    pub fn write<T, E: From<StoreError>>(
        &self,
        _guard: &WriteGuard,
        stamp: Stamp<'_>,
        body: impl FnOnce(&Writing<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        if identity(&self.path)? != self.identity {
            return Err(StoreError::Replaced(self.path.clone()).into());
        }
        if let Connections::Plain(plain) = &self.connections {
            plain.learn_writing()?;
        }
        self.with(|connection| {
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(StoreError::from)?;
            schema::check_version(&tx)?;
            let writing = Writing { tx, at: stamp.at, principal: stamp.principal };
            let done = body(&writing)?;
            writing.tx.commit().map_err(StoreError::from)?;
            Ok(done)
        })
    }

    /// Fails when a newer program has upgraded the file meanwhile: for who stays longer than one verb.
    pub fn check_version(&self) -> StoreResult<()> {
        self.with(|connection| schema::check_version(connection))
    }

    /// A number that changes when another connection commits.
    pub fn data_version(&self) -> StoreResult<i64> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached("PRAGMA data_version")?;
            Ok(statement.query_row([], |row| row.get(0))?)
        })
    }

    /// Folds the log into the file and empties it when it has grown over `bytes`; whoever reads or writes meanwhile
    /// is not waited for.
    pub fn checkpoint_over(&self, bytes: u64) -> StoreResult<()> {
        let mut wal = self.path.clone().into_os_string();
        wal.push("-wal");
        let size = std::fs::metadata(&wal).map_or(0, |about| about.len());
        if size <= bytes {
            return Ok(());
        }
        if let Connections::Plain(plain) = &self.connections {
            plain.learn_writing()?;
        }
        self.with(|connection| {
            connection.busy_timeout(Duration::ZERO)?;
            let done = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            connection.busy_timeout(self.busy)?;
            Ok(done?)
        })
    }

    fn with<T, E: From<StoreError>>(&self, body: impl FnOnce(&mut Connection) -> Result<T, E>) -> Result<T, E> {
        match &self.connections {
            Connections::Plain(plain) => body(&mut plain.connection.borrow_mut()),
            Connections::Pool(pool) => body(&mut *pool.get().map_err(StoreError::from)?),
        }
    }
}

/// Fills a draft beside the place and moves it there; closing it folds its log away.
fn make(path: &Path, made_at: Timestamp) -> StoreResult<()> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let draft = beside("-new");
    for left in [&draft, &beside("-new-wal"), &beside("-new-shm")] {
        match std::fs::remove_file(left) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    let mut connection = Connection::open_with_flags(&draft, flags() | OpenFlags::SQLITE_OPEN_CREATE)?;
    // What SQLite makes beside a file gets the mode of the file.
    std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o600))?;
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    schema::create(&mut connection, made_at.0)?;
    connection.close().map_err(|(_, error)| error)?;
    std::fs::rename(&draft, path)?;
    if let Some(folder) = path.parent() {
        std::fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// What every connection needs; nothing here writes.
fn configure(connection: &mut Connection, opening: Opening) -> rusqlite::Result<()> {
    connection.busy_timeout(opening.busy)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Otherwise a statement is prepared again as soon as its parameters are bound.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(128);
    if opening.life == Life::Long {
        // What is mapped spares a short verb its copies; in a process that stays it counts as memory, and it reads once.
        connection.pragma_update(None, "mmap_size", 0)?;
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map(|_| ())
}

/// What a connection needs before its first commit or checkpoint; nothing here writes either.
fn prepare_to_write(connection: &Connection, life: Life) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", life.log_pages())
}

fn identity(path: &Path) -> StoreResult<(u64, u64)> {
    match std::fs::metadata(path) {
        Ok(about) => Ok((about.dev(), about.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(StoreError::Missing(path.into())),
        Err(error) => Err(error.into()),
    }
}

/// Reads a moment that stands in two columns; none unless both are set.
fn moment(row: &rusqlite::Row<'_>, boot: &str, ms: &str) -> rusqlite::Result<Option<Moment>> {
    let (boot, ms): (Option<String>, Option<i64>) = (row.get(boot)?, row.get(ms)?);
    Ok(boot.zip(ms).map(|(boot, ms)| Moment { boot, ms }))
}
