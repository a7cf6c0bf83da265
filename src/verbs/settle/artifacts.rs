//! Published files: found relative to the working directory, never through a link, kept by their hash.

use std::path::{Path, PathBuf};

use crate::domain::frozen::Produce;
use crate::error::Result;
use crate::os::files::{self, Refusal};
use crate::os::layout::Attempt as Folder;
use crate::store;
use crate::store::artifact::Artifact;
use crate::verbs::work::hold::Hold;
use crate::verbs::{Ctx, tree};

/// Largest artifact.
pub const LIMIT: u64 = 64 * 1024 * 1024;

/// The folder of what a session holds.
pub fn folder(ctx: &Ctx, hold: &Hold) -> Folder {
    ctx.layout().scratch(&hold.session.id.to_string()).attempt(&hold.job.name, hold.lease.attempt)
}

/// Where an attempt's files are.
pub struct Place {
    folder: Folder,
    work: PathBuf,
    hold: (crate::domain::id::JobId, u32),
}

impl Place {
    /// The place of what a session holds.
    pub fn of(ctx: &Ctx, hold: &Hold) -> Result<Place> {
        let folder = folder(ctx, hold);
        let work = tree::place(ctx, &hold.job)?.unwrap_or_else(|| folder.work());
        Ok(Place { folder, work, hold: (hold.job.id, hold.lease.attempt) })
    }

    /// The working directory.
    pub fn work(&self) -> &Path {
        &self.work
    }
}

/// Keeps one file under artifacts/ and gives the row that names it.
pub fn keep(ctx: &Ctx, place: &Place, produce: &Produce, path: &Path) -> Result<Artifact> {
    Ok(try_keep(ctx, place, produce, path)?)
}

fn try_keep(ctx: &Ctx, place: &Place, produce: &Produce, path: &Path) -> std::result::Result<Artifact, Refusal> {
    let (base, path) = match &produce.path {
        Some(_) => (place.work.clone(), path.to_owned()),
        None => (place.folder.folder().to_owned(), PathBuf::from(STDOUT)),
    };
    let mut opened = files::open_inside(&base, &path, LIMIT)?;
    let stored = files::store_artifact(&ctx.layout().artifacts(), &mut opened, LIMIT)?;
    Ok(Artifact {
        job: place.hold.0,
        attempt: place.hold.1,
        name: produce.name.clone(),
        kind: produce.kind.clone(),
        sha256: stored.sha256,
        bytes: i64::try_from(stored.bytes).unwrap_or(i64::MAX),
        published_at: ctx.clock.now(),
    })
}

/// The attempt's file that holds what the agent wrote to standard output and error.
const STDOUT: &str = "output.log";

/// What an attempt left.
pub enum Collected {
    /// Everything that is required.
    All(Vec<Artifact>),
    /// Something is missing or no plain file, each with its word.
    Refused(Vec<String>),
}

/// Keeps every declared artifact that is there.
pub fn collect(ctx: &Ctx, hold: &Hold) -> Result<Collected> {
    let place = Place::of(ctx, hold)?;
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    for produce in &hold.job.spec.produces {
        let published =
            ctx.read(|read| Ok(store::artifact::find(read, hold.job.id, hold.lease.attempt, &produce.name)?))?;
        if let Some(artifact) = published {
            kept.push(artifact);
            continue;
        }
        let path = produce.path.as_ref().map_or_else(PathBuf::new, PathBuf::from);
        match try_keep(ctx, &place, produce, &path) {
            Ok(artifact) => kept.push(artifact),
            Err(Refusal::Missing { .. }) if !produce.required => {}
            Err(Refusal::Fault(fault)) => return Err(fault.into()),
            Err(refusal) => {
                let word = crate::error::Error::from(clone_text(&refusal)).code.word();
                refused.push(format!("{} ({}): {word}: {refusal}", path.display(), produce.name));
            }
        }
    }
    Ok(if refused.is_empty() { Collected::All(kept) } else { Collected::Refused(refused) })
}

/// A refusal of the same class, for its word.
fn clone_text(refusal: &Refusal) -> Refusal {
    let path = PathBuf::new();
    match refusal {
        Refusal::Traversal { .. } | Refusal::Fault(_) => Refusal::Traversal { path },
        Refusal::Symlink { .. } => Refusal::Symlink { path },
        Refusal::NotRegular { .. } => Refusal::NotRegular { path },
        Refusal::Linked { .. } => Refusal::Linked { path },
        Refusal::TooLarge { bytes, limit, .. } => Refusal::TooLarge { path, bytes: *bytes, limit: *limit },
        Refusal::Missing { .. } => Refusal::Missing { path },
    }
}

/// The first artifact whose file is no longer what was kept.
pub fn changed(ctx: &Ctx, hold: &Hold, kept: &[Artifact]) -> Result<Option<String>> {
    let place = Place::of(ctx, hold)?;
    for artifact in kept {
        let declared = hold.job.spec.produces.iter().find(|produce| produce.name == artifact.name);
        let Some(path) = declared.and_then(|produce| produce.path.as_ref()) else { continue };
        let same = files::open_inside(&place.work, Path::new(path), LIMIT)
            .ok()
            .and_then(|mut opened| files::sha256_of(&mut opened.file).ok())
            .is_some_and(|(sha256, _)| sha256 == artifact.sha256);
        if !same {
            return Ok(Some(path.clone()));
        }
    }
    Ok(None)
}
