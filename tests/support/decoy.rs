//! A repository that the environment of every test points at, and that nobody may touch.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What leads git, and whoever believes its environment, to the decoy.
pub const POISONED: [&str; 11] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_0",
    "GIT_CONFIG_VALUE_0",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// The repository and what it looked like.
pub struct Decoy {
    path: PathBuf,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl Decoy {
    /// Makes one. It holds a store's folder too, for who looks in the wrong place.
    pub fn new(path: &Path) -> Decoy {
        let files = [
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"),
            (".git/objects/info/keep", ""),
            (".git/refs/heads/keep", ""),
            (".striatum/config.toml", ""),
            ("README", "Nobody writes here.\n"),
        ];
        for (file, text) in files {
            let file = path.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Decoy { path: path.to_owned(), before: files_below(path) }
    }

    /// The poisoned variables.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let git = self.path.join(".git");
        let paths =
            [git.clone(), self.path.clone(), git.join("index"), git.join("objects"), git.clone(), git.join("config")];
        let words: [OsString; 5] =
            ["1".into(), "core.worktree".into(), self.path.clone().into(), "elsewhere".into(), "below/".into()];
        let values = paths.into_iter().map(PathBuf::into_os_string).chain(words);
        POISONED.iter().zip(values).map(|(name, value)| (name.into(), value)).collect()
    }

    /// Fails when a file was made, changed or removed.
    pub fn check(&self) {
        let now = files_below(&self.path);
        let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&now), names(&self.before), "the decoy repository gained or lost files");
        assert!(now == self.before, "a file of the decoy repository changed");
    }
}

fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                files.insert(entry.path(), std::fs::read(entry.path()).unwrap());
            }
        }
    }
    files
}
