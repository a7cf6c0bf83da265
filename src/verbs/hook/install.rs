//! `hook install`, `uninstall` and `print`: our scripts in the folder where git looks for hooks, beside everybody
//! else's.
//!
//! A file that is not ours is never changed, moved or removed; what to add to it is said instead.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::path::shown;
use crate::domain::session::TreeState;
use crate::domain::shim::{self, Hook, Maker};
use crate::error::{Code, Error, Result};
use crate::os::Fault;
use crate::os::files;
use crate::os::git::{Git, HooksFolder};
use crate::store;
use crate::verbs::{Ctx, tree};

/// What `hook install` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InstallRequest {
    /// Where a tool has a place for further hooks beside its own, or all repositories of the user share the folder:
    /// use it.
    pub force_beside: bool,
}

/// What `hook uninstall` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UninstallRequest {}

/// What `hook print` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PrintRequest {
    /// The hook; every one when left out.
    pub hook: Option<String>,
}

/// What became of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Became {
    /// Our script is there now.
    Installed,
    /// It was there.
    There,
    /// Somebody else's script calls us.
    Called,
    /// Our script was changed by somebody, and left as it is.
    Edited,
    /// Somebody else's script is there, and left as it is.
    Left,
    /// Our script is gone now.
    Removed,
    /// There was nothing of ours.
    Absent,
}

/// One hook.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HookLine {
    /// git's name.
    pub hook: String,
    /// What became of it.
    pub became: Became,
    /// The file.
    pub path: String,
    /// What to do by hand; none when there is nothing to do.
    pub note: Option<String>,
}

/// What `hook install` and `uninstall` tell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HooksReport {
    /// Where git looks.
    pub folder: String,
    /// Each hook.
    pub hooks: Vec<HookLine>,
}

/// A script.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Script {
    /// git's name.
    pub hook: String,
    /// Its text.
    pub text: String,
}

/// What `hook print` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PrintReport {
    /// Each script.
    pub scripts: Vec<Script>,
}

/// Puts our scripts where git looks for them.
pub fn install(ctx: &Ctx, request: &InstallRequest) -> Result<HooksReport> {
    refuse_while_watched(ctx)?;
    let folder = folder(ctx)?;
    let is_shared = matches!(folder.set_in.as_deref(), Some("global" | "system"));
    if is_shared && !request.force_beside {
        return Err(Error::new(Code::Git, format!("all your repositories share the hooks in {}", shown(&folder.path)))
            .hint("with --force-beside they get striatum's too, which are silent where there is no store")
            .hint("or give this repository a folder of its own: `git config core.hooksPath .git/hooks`"));
    }
    std::fs::create_dir_all(&folder.path).map_err(|error| Fault::new("create", &folder.path, error))?;
    let fallback = fallback(ctx, &folder.path);
    let one = |hook: Hook| one(&folder.path, hook, &shim::text(hook, fallback.as_deref()), request.force_beside);
    report(&folder, Hook::ALL.into_iter().map(one).collect::<Result<_>>()?)
}

/// Takes our scripts away.
pub fn uninstall(ctx: &Ctx, _request: &UninstallRequest) -> Result<HooksReport> {
    refuse_while_watched(ctx)?;
    let folder = folder(ctx)?;
    let mut lines = Vec::new();
    for hook in Hook::ALL {
        let mut found = Vec::new();
        for path in std::iter::once(folder.path.join(hook.word())).chain(places(&folder.path, hook)) {
            found.extend(take_away(&path, hook)?);
        }
        if found.is_empty() {
            found.push(line(hook, &folder.path.join(hook.word()), Became::Absent, None));
        }
        lines.extend(found);
    }
    report(&folder, lines)
}

/// Shows our scripts.
pub fn print(_ctx: &Ctx, request: &PrintRequest) -> Result<PrintReport> {
    let hooks = match request.hook.as_deref() {
        None => Hook::ALL.to_vec(),
        Some(word) => vec![Hook::from_word(word).ok_or_else(|| unknown(word))?],
    };
    let script = |hook: Hook| Script { hook: hook.word().to_owned(), text: shim::text(hook, own_file().as_deref()) };
    Ok(PrintReport { scripts: hooks.into_iter().map(script).collect() })
}

fn unknown(word: &str) -> Error {
    let known: Vec<&str> = Hook::ALL.iter().map(|hook| hook.word()).collect();
    Error::new(Code::Usage, format!("there is no hook {word} here")).hint(format!("there are {}", known.join(", ")))
}

fn report(folder: &HooksFolder, hooks: Vec<HookLine>) -> Result<HooksReport> {
    Ok(HooksReport { folder: shown(&folder.path), hooks })
}

fn line(hook: Hook, path: &Path, became: Became, note: Option<String>) -> HookLine {
    HookLine { hook: hook.word().to_owned(), became, path: shown(path), note }
}

/// Hooks are compared around each attempt: a change now would be taken for an agent's.
fn refuse_while_watched(ctx: &Ctx) -> Result<()> {
    if !ctx.has_store() {
        return Ok(());
    }
    let working = ctx.read(|read| {
        for tree in store::tree::live(read)?.iter().filter(|tree| tree.state == TreeState::Active) {
            if store::lease::active_of_job(read, tree.job)?.is_some() {
                return Ok(Some(store::job::get(read, tree.job)?.name));
            }
        }
        Ok(None)
    })?;
    working.map_or(Ok(()), |job| {
        Err(Error::new(Code::StillHeld, format!("{job} is being worked on, and hooks that change now would refuse it"))
            .hint("wait until it is done, or `striatum run pause` and wait"))
    })
}

/// Where git looks for the hooks of the work tree that the caller stands in.
fn folder(ctx: &Ctx) -> Result<HooksFolder> {
    let linked = ctx.layout().repository().and_then(|repository| repository.linked.as_ref());
    let git = match linked {
        Some(linked) => Git::of_tree(&linked.git_dir, &linked.top),
        None => tree::repository(ctx)?,
    };
    let folder = git.hooks_folder()?;
    if folder.path.exists() && !folder.path.is_dir() {
        return Err(Error::new(Code::Git, "hooks are switched off in this repository")
            .cause(format!("core.hooksPath is {}, which is no folder", shown(&folder.path))));
    }
    Ok(folder)
}

/// This program's file, for when none is on the PATH; not in a folder that is committed, where it means nothing to
/// others.
fn fallback(ctx: &Ctx, folder: &Path) -> Option<String> {
    let repository = ctx.layout().repository()?;
    folder.starts_with(&repository.common_dir).then(own_file).flatten()
}

fn own_file() -> Option<String> {
    std::env::current_exe().ok().filter(|path| path.is_file())?.to_str().map(str::to_owned)
}

/// Installs one hook, if its place is free or ours.
fn one(folder: &Path, hook: Hook, text: &str, beside: bool) -> Result<HookLine> {
    let path = folder.join(hook.word());
    let Some(found) = look(&path)? else { return placed(hook, &path, text) };
    match found.maker {
        Maker::Own if found.text == text.as_bytes() => Ok(line(hook, &path, Became::There, None)),
        Maker::Own => {
            files::rewrite(&path, text.as_bytes())?;
            Ok(line(hook, &path, Became::Installed, None))
        }
        Maker::Edited => {
            let note = "it was changed by hand; remove it to get a new one".to_owned();
            Ok(line(hook, &path, Became::Edited, Some(note)))
        }
        Maker::Calling => Ok(line(hook, &path, Became::Called, None)),
        other => foreign(folder, hook, text, (other, beside)),
    }
}

/// Beside a tool's own hook, where the tool has a place for that and it is asked for; else what to write is said.
fn foreign(folder: &Path, hook: Hook, text: &str, (maker, beside): (Maker, bool)) -> Result<HookLine> {
    let path = folder.join(hook.word());
    let place = place(folder, hook, maker);
    if let Some(place) = &place {
        match look(place)?.map(|found| found.maker) {
            Some(Maker::Own) => return Ok(line(hook, place, Became::There, None)),
            Some(Maker::Calling) => return Ok(line(hook, place, Became::Called, None)),
            None if beside => return placed(hook, place, text),
            _ => {}
        }
    }
    let note = advice(hook, maker, place.as_deref());
    Ok(line(hook, &path, Became::Left, Some(note)))
}

fn placed(hook: Hook, path: &Path, text: &str) -> Result<HookLine> {
    if files::place_program(path, text.as_bytes())? {
        return Ok(line(hook, path, Became::Installed, None));
    }
    Ok(line(hook, path, Became::Left, Some(format!("somebody else made it just now; add: {}", shim::line(hook)))))
}

/// What to write where, for each tool.
fn advice(hook: Hook, maker: Maker, place: Option<&Path>) -> String {
    let (word, line) = (hook.word(), shim::line(hook));
    match (maker, place) {
        // It reads git's list of references itself and hands nobody the whole of it, but to what it runs first.
        (Maker::PreCommitFramework, _) if hook == Hook::PrePush => {
            "the pre-commit framework's; `striatum hook install --force-beside` puts ours where it runs it first"
                .to_owned()
        }
        (Maker::PreCommitFramework, _) => format!(
            "the pre-commit framework's; `striatum hook install --force-beside` puts ours where it runs it first, or add \
             to .pre-commit-config.yaml: - repo: local, hooks: [{{id: striatum, name: striatum, language: system, \
             entry: striatum hook {word}, stages: [{word}], pass_filenames: {}, always_run: true}}]",
            hook == Hook::CommitMsg
        ),
        (Maker::Lefthook, _) => format!(
            "lefthook's; add to lefthook.yml: {word}: {{jobs: [{{name: striatum, run: \"striatum hook {word} {{0}}\", \
             use_stdin: {}}}]}}",
            hook == Hook::PrePush
        ),
        (Maker::Husky, Some(place)) => format!(
            "husky's; add to {}: {line}   (or `striatum hook install --force-beside`, where that file is not there yet)",
            shown(place)
        ),
        _ => format!("somebody else's; add to it: {line}"),
    }
}

/// Where a tool looks for a further hook beside its own.
fn place(folder: &Path, hook: Hook, maker: Maker) -> Option<PathBuf> {
    match maker {
        Maker::PreCommitFramework => Some(folder.join(format!("{}.legacy", hook.word()))),
        Maker::Husky if folder.file_name().is_some_and(|name| name == "_") => Some(folder.parent()?.join(hook.word())),
        _ => None,
    }
}

fn places(folder: &Path, hook: Hook) -> Vec<PathBuf> {
    [Maker::PreCommitFramework, Maker::Husky].into_iter().filter_map(|maker| place(folder, hook, maker)).collect()
}

/// What stands at a path.
struct Standing {
    text: Vec<u8>,
    maker: Maker,
}

/// Looks at a hook; what is no plain file is somebody else's.
fn look(path: &Path) -> Result<Option<Standing>> {
    let fault = |error| Fault::new("read", path, error);
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault(error).into()),
        Ok(found) if found.is_file() => {
            let text = std::fs::read(path).map_err(fault)?;
            Ok(Some(Standing { maker: shim::maker(&text), text }))
        }
        Ok(_) => Ok(Some(Standing { text: Vec::new(), maker: Maker::Other })),
    }
}

/// Removes what is ours and unchanged; says what is left.
fn take_away(path: &Path, hook: Hook) -> Result<Option<HookLine>> {
    let Some(found) = look(path)? else { return Ok(None) };
    Ok(match found.maker {
        Maker::Own => {
            std::fs::remove_file(path).map_err(|error| Fault::new("remove", path, error))?;
            Some(line(hook, path, Became::Removed, None))
        }
        Maker::Edited => {
            let note = "it was changed by hand; remove it yourself".to_owned();
            Some(line(hook, path, Became::Edited, Some(note)))
        }
        Maker::Calling => {
            let note = "somebody else's that calls striatum; take the line out yourself".to_owned();
            Some(line(hook, path, Became::Called, Some(note)))
        }
        _ => None,
    })
}
