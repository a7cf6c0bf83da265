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
    /// The file, or the store of a snapshot, as it is shown: the record's own name is made of its very bytes.
    pub about: String,
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
        let bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
        let key = match self {
            Subject::File(path) => [b"file\0".to_vec(), bytes(path)].concat(),
            Subject::Snapshot(root, hash) => {
                [b"snapshot\0".to_vec(), bytes(root), b"\0".to_vec(), hash.into()].concat()
            }
        };
        format!("{}.json", sha256_hex(&key))
    }

    fn about(&self) -> String {
        match self {
            Subject::File(path) | Subject::Snapshot(path, _) => path.display().to_string(),
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
    /// The records of this process's user; without a home, or with one that can't be written as in some containers,
    /// those of this boot, in a private folder for temporary files.
    pub fn of_user() -> Ledger {
        let place = UserPlaces::of(|name| std::env::var_os(name)).trust;
        Ledger { folder: place.filter(|folder| files::is_there_or_may_be_made(folder)).or_else(temporary) }
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
            about: subject.about(),
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
fn temporary() -> Option<PathBuf> {
    [std::env::temp_dir(), PathBuf::from("/tmp")]
        .map(|base| base.join(format!("striatum-trust-{}", crate::os::user_id())).join("trust"))
        .into_iter()
        .find(|folder| files::is_private_or_missing(folder) && files::is_there_or_may_be_made(folder))
}
