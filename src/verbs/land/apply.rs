//! Moving the target, with its checkouts: from the intent to the outcome, whatever was done before a cut.
//!
//! The reference is held first, then the checkouts follow, then it is moved: a cut in between leaves the landing as
//! staged changes of a checkout whose branch has not moved, never a checkout that shows the landing taken back.

use super::plan::plain;
use super::{Landed, Subject, conclude, landed};
use crate::domain::change::short;
use crate::domain::session::LandingState;
use crate::error::{Code, Error, Next, Result};
use crate::os::git::{Checkout, Git, InTheWay};
use crate::os::layout::FOLDER;
use crate::store;
use crate::store::landing::Landing;
use crate::verbs::{Ctx, tree};

/// How many paths a refusal names.
const NAMED: usize = 5;

/// Brings an intent to its outcome, again if it was cut off before; none when the target moved elsewhere, and the intent
/// is given up.
pub fn apply(ctx: &Ctx, subject: &Subject, landing: &Landing, is_again: bool) -> Result<Option<Landed>> {
    let (Some(target), Some(before), Some(after)) = (&landing.target, &landing.before, &landing.after) else {
        return done(ctx, subject, landing, Vec::new()).map(Some);
    };
    let git = tree::repository(ctx)?;
    let lock = tree::lock_repository(ctx)?;
    let now = git.resolve(target)?;
    let has_moved = match &now {
        Some(now) => now == after || git.is_ancestor(after, now)?,
        None => false,
    };
    let followed = if has_moved {
        shown(&git, target, after)?
    } else if now.as_ref() == Some(before) {
        match advance(&git, subject, (target, before, after), is_again) {
            Ok(followed) => followed,
            Err(error) => {
                give_up(ctx, landing)?;
                return Err(error);
            }
        }
    } else {
        give_up(ctx, landing)?;
        return Ok(None);
    };
    drop(lock);
    done(ctx, subject, landing, followed).map(Some)
}

/// The outcome of a landing.
pub fn done(ctx: &Ctx, subject: &Subject, landing: &Landing, followed: Vec<String>) -> Result<Landed> {
    conclude(ctx, subject, landing, &followed)?;
    Ok(landed(subject, landing, followed))
}

fn give_up(ctx: &Ctx, landing: &Landing) -> Result<()> {
    ctx.write("land", |tx| Ok(store::landing::set_state(tx, landing.id, LandingState::Void)?))
}

/// The checkouts that show a commit.
fn shown(git: &Git, target: &str, commit: &str) -> Result<Vec<String>> {
    let mut shown = Vec::new();
    for checkout in git.checkouts(target)? {
        if checkout.holds(commit, FOLDER)? {
            shown.push(checkout.folder().display().to_string());
        }
    }
    Ok(shown)
}

/// Moves the target, and the checkouts that have it; all of them or none.
fn advance(
    git: &Git,
    subject: &Subject,
    (target, before, after): (&str, &str, &str),
    is_again: bool,
) -> Result<Vec<String>> {
    let checkouts = git.checkouts(target)?;
    let mut behind = Vec::new();
    for checkout in &checkouts {
        // One that a cut left ahead of its branch has everything already.
        if !checkout.holds(after, FOLDER)? {
            may_follow(checkout, (before, after), subject, is_again)?;
            behind.push(checkout);
        }
    }
    let held = git.hold_ref(target, before, after).map_err(|error| moved(subject, target).cause(error))?;
    for (number, checkout) in behind.iter().enumerate() {
        if let Err(error) = checkout.follow(before, after) {
            for followed in behind.iter().take(number) {
                followed.follow(after, before)?;
            }
            return Err(dirty(checkout, subject, &format!("it can't follow: {error}")));
        }
    }
    crate::os::crash::point("land.followed");
    held.move_it()?;
    crate::os::crash::point("land.moved");
    Ok(checkouts.iter().map(|checkout| checkout.folder().display().to_string()).collect())
}

/// Refuses a checkout in which something stands in the way.
pub fn must_be_clean(checkout: &Checkout, from: &str, to: &str, subject: &Subject) -> Result<()> {
    match obstacle(checkout, from, to)? {
        None => Ok(()),
        Some(what) => Err(dirty(checkout, subject, &what)),
    }
}

/// The same for a landing that begins to write; one that was cut off may have written something already.
fn may_follow(checkout: &Checkout, (from, to): (&str, &str), subject: &Subject, is_again: bool) -> Result<()> {
    let Some(what) = obstacle(checkout, from, to)? else { return Ok(()) };
    if is_again && checkout.in_progress().is_none() {
        let brought = checkout.take_in(from, to)?;
        if checkout.in_the_way_but(from, to, FOLDER, &brought)?.is_none() {
            return Ok(());
        }
        checkout.put_back(from, &brought)?;
    }
    Err(dirty(checkout, subject, &what))
}

/// What keeps a checkout from following, in words.
pub fn obstacle(checkout: &Checkout, from: &str, to: &str) -> Result<Option<String>> {
    if let Some(what) = checkout.in_progress() {
        return Ok(Some(format!("it is in the middle of {what}")));
    }
    let names = |paths: &[std::path::PathBuf]| {
        let named: Vec<String> = paths.iter().take(NAMED).map(|path| path.display().to_string()).collect();
        let more = paths.len().saturating_sub(NAMED);
        if more > 0 { format!("{} and {more} more", named.join(", ")) } else { named.join(", ") }
    };
    Ok(checkout.in_the_way(from, to, FOLDER)?.map(|found| match found {
        InTheWay::Changed(paths) => format!("it has uncommitted changes: {}", names(&paths)),
        InTheWay::Untracked(paths) => format!("files that git does not track are in the way: {}", names(&paths)),
        InTheWay::Other(said) => format!("git says: {said}"),
    }))
}

fn dirty(checkout: &Checkout, subject: &Subject, what: &str) -> Error {
    let folder = checkout.folder().display().to_string();
    Error::new(Code::TargetDirty, format!("the target is checked out in {folder}, and {what}"))
        .hint("commit it, put it aside, or move it away; the gate waits")
        .next(Next::new(
            "person",
            "put uncommitted changes aside",
            &["git", "-C", &folder, "stash", "--include-untracked"],
        ))
        .next(approve(subject))
}

/// The target is not where it was seen.
pub fn moved(subject: &Subject, target: &str) -> Error {
    let tip = subject.run.tip.as_deref().map_or("", short);
    Error::new(Code::TargetMoved, format!("{} moved while {tip} was being landed on it", plain(target)))
        .hint("nothing was changed; approve again to merge with what came")
        .next(approve(subject))
}

fn approve(subject: &Subject) -> Next {
    Next::new("person", "land it then", &["striatum", "gate", "approve", &subject.gate.id.to_string()])
}
