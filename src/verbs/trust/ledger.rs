//! What a person has trusted: one record a file or snapshot, outside of every repository.
//!
//! A record bears the place it is for, so that the same words elsewhere, where the scripts that they name may be
//! others, are not trusted by it. It does not know what the lines mean.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::event::sha256_hex;
use crate::domain::time::Timestamp;
use crate::error::{Code, Error, Result};
use crate::os::files;
use crate::os::layout::UserPlaces;

/// The form of a record.
const SCHEMA: &str = "striatum.trust/1";

/// What was trusted, and by whom.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The form.
    pub schema: String,
    /// The file, or the store of a snapshot.
    pub about: PathBuf,
    /// Hash over the lines.
    pub hash: String,
    /// What runs or widens, as it was shown.
    pub lines: Vec<String>,
    /// When.
    pub granted_at: Timestamp,
    /// Who.
    pub principal: String,
    /// How it is known that it was a person, or by which verb it was written.
    pub how: String,
}

/// What is trusted.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A file, by its path.
    File(&'a Path),
    /// The commands of a snapshot in a store, by the store's folder and their hash.
    Snapshot(&'a Path, &'a str),
}

impl Subject<'_> {
    fn name(self) -> String {
        let key = match self {
            Subject::File(path) => format!("file\0{}", path.display()),
            Subject::Snapshot(root, hash) => format!("snapshot\0{}\0{hash}", root.display()),
        };
        format!("{}.json", sha256_hex(key.as_bytes()))
    }

    fn about(&self) -> &Path {
        match self {
            Subject::File(path) | Subject::Snapshot(path, _) => path,
        }
    }
}

/// Who trusts, when, and how that is known.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub principal: &'a str,
    /// How it is known.
    pub how: &'a str,
}

/// The user's records.
pub struct Ledger {
    folder: Option<PathBuf>,
}

impl Ledger {
    /// The records of this process's user; without a home those of this boot, in a private folder for temporary files.
    pub fn of_user() -> Ledger {
        let place = UserPlaces::of(|name| std::env::var_os(name)).trust;
        Ledger { folder: place.or_else(|| Some(temporary()).filter(|folder| files::is_private_or_missing(folder))) }
    }

    /// What was trusted last. A record that can't be read is none.
    pub fn record(&self, subject: Subject<'_>) -> Option<Record> {
        let text = std::fs::read(self.folder.as_ref()?.join(subject.name())).ok()?;
        let record: Record = serde_json::from_slice(&text).ok()?;
        (record.schema == SCHEMA && record.about == subject.about()).then_some(record)
    }

    /// Whether there is a record: for snapshots, whose hash is in its name.
    pub fn has(&self, subject: Subject<'_>) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.join(subject.name()).is_file())
    }

    /// Records what is trusted from now on.
    ///
    /// # Errors
    /// There is no place for it, or what the disk says.
    pub fn grant(&self, subject: Subject<'_>, hash: &str, lines: &[String], grant: Grant<'_>) -> Result<()> {
        let folder = self.folder()?;
        let record = Record {
            schema: SCHEMA.to_owned(),
            about: subject.about().to_owned(),
            hash: hash.to_owned(),
            lines: lines.to_vec(),
            granted_at: grant.at,
            principal: grant.principal.to_owned(),
            how: grant.how.to_owned(),
        };
        Ok(files::write_private(&folder.join(subject.name()), &serde_json::to_vec_pretty(&record)?)?)
    }

    /// The folder, made if it is missing.
    fn folder(&self) -> Result<&Path> {
        let folder = self.folder.as_deref().ok_or_else(|| {
            Error::new(Code::Io, "there is no place to keep what you trust")
                .hint("set HOME, or XDG_STATE_HOME to an absolute path")
        })?;
        if let Some(base) = folder.parent().and_then(Path::parent) {
            std::fs::create_dir_all(base)?;
            files::create_private_dirs(base, folder)?;
        }
        Ok(folder)
    }
}

/// Where records go without a home.
fn temporary() -> PathBuf {
    std::env::temp_dir().join(format!("striatum-trust-{}", crate::os::user_id())).join("trust")
}
