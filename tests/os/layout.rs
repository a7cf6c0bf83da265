//! Finding the store in repositories that real git made.

use std::path::{Path, PathBuf};
use std::process::Command;

use striatum::os::layout::{Found, LayoutError, Search, discover};
use tempfile::TempDir;

/// A folder with a private home; everything in it is made by git itself.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        Place { folder: TempDir::new().unwrap() }
    }

    fn at(&self, path: &str) -> PathBuf {
        std::fs::canonicalize(self.folder.path()).unwrap().join(path)
    }

    fn git(&self, cwd: &str, args: &[&str]) {
        std::fs::create_dir_all(self.at(cwd)).unwrap();
        let out = Command::new("git")
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"])
            .args(["-c", "protocol.file.allow=always"])
            .args(args)
            .current_dir(self.at(cwd))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.folder.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// A repository with one commit that holds a `.striatum/config.toml`.
    fn repository(&self, path: &str) {
        self.git(path, &["init", "-q"]);
        self.file(&format!("{path}/.striatum/config.toml"));
        self.git(path, &["add", "-A"]);
        self.git(path, &["commit", "-qm", "one"]);
    }

    fn file(&self, path: &str) {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), "").unwrap();
    }

    fn folder(&self, path: &str) {
        std::fs::create_dir_all(self.at(path)).unwrap();
    }

    fn find(&self, cwd: &str) -> Found {
        discover(Search { flag: None, variable: None, cwd: &self.at(cwd) }).unwrap()
    }

    /// What was found and where, relative to this place.
    fn found(&self, cwd: &str) -> (&'static str, String) {
        let found = self.find(cwd);
        let kind = match found {
            Found::Store(_) => "store",
            Found::Config(_) => "config",
            Found::Nothing(_) => "nothing",
        };
        let root = found.layout().root().strip_prefix(self.at("")).unwrap();
        (kind, root.to_str().unwrap().to_owned())
    }
}

fn is(kind: &'static str, root: &str) -> (&'static str, String) {
    (kind, root.to_owned())
}

#[test]
fn a_work_tree_holds_its_store_from_anywhere_inside() {
    let place = Place::new();
    place.repository("p");
    place.folder("p/src/deep");
    assert_eq!(place.found("p/src/deep"), is("config", "p/.striatum"));
    place.file("p/.striatum/striatum.db");
    assert_eq!(place.found("p/src/deep"), is("store", "p/.striatum"));
    assert_eq!(place.found("p"), is("store", "p/.striatum"));
    assert_eq!(place.found("p/.git"), is("store", "p/.striatum"));
    assert_eq!(place.found("p/.git/objects"), is("store", "p/.striatum"));
    let layout = place.find("p/src").into_layout();
    assert_eq!(layout.project(), place.at("p"));
    assert_eq!(layout.repository().unwrap().common_dir, place.at("p/.git"));
    assert_eq!(layout.repository().unwrap().linked, None);
}

#[test]
fn a_linked_worktree_leads_to_the_main_one_and_its_own_folder_is_never_a_store() {
    let place = Place::new();
    place.repository("p");
    place.file("p/.striatum/striatum.db");
    place.git("p", &["worktree", "add", "-q", "../w", "-b", "b"]);
    assert!(place.at("w/.striatum/config.toml").exists());
    place.folder("w/sub");
    assert_eq!(place.found("w/sub"), is("store", "p/.striatum"));
    let layout = place.find("w/sub").into_layout();
    assert_eq!(layout.project(), place.at("p"));
    let linked = layout.repository().unwrap().linked.clone().unwrap();
    assert_eq!((linked.top, linked.git_dir), (place.at("w"), place.at("p/.git/worktrees/w")));
    assert_eq!(place.found("p/.git/worktrees/w"), is("store", "p/.striatum"));

    let flag = place.at("w/.striatum");
    let refused = discover(Search { flag: Some(&flag), variable: None, cwd: &place.at("w") });
    assert!(matches!(refused, Err(LayoutError::LinkedWorktree { store, .. }) if store == place.at("p/.striatum")));
}

#[test]
fn a_worktree_inside_the_store_leads_to_that_store() {
    let place = Place::new();
    place.repository("p");
    place.file("p/.striatum/striatum.db");
    place.git("p", &["worktree", "add", "-q", ".striatum/worktrees/r-1/draft.1"]);
    assert_eq!(place.found("p/.striatum/worktrees/r-1/draft.1"), is("store", "p/.striatum"));
    assert_eq!(place.found("p/.striatum/worktrees"), is("store", "p/.striatum"));
}

#[test]
fn repositories_without_an_own_work_tree_keep_it_in_the_git_directory() {
    let place = Place::new();
    place.git(".", &["init", "-q", "--bare", "bare.git"]);
    assert_eq!(place.found("bare.git"), is("nothing", "bare.git/striatum"));
    assert_eq!(place.find("bare.git").layout().project(), place.at("bare.git"));

    place.git(".", &["init", "-q", "--separate-git-dir", "elsewhere", "p"]);
    assert_eq!(place.found("p"), is("nothing", "elsewhere/striatum"));
    assert_eq!(place.find("p").layout().project(), place.at("p"));

    place.git("c", &["init", "-q"]);
    place.folder("tree");
    place.git("c", &["config", "core.worktree", "../../tree"]);
    assert_eq!(place.found("c"), is("nothing", "c/.git/striatum"));
    assert_eq!(place.find("c").layout().project(), place.at("tree"));
}

#[test]
fn worktrees_of_a_bare_repository_share_its_store() {
    let place = Place::new();
    place.repository("seed");
    place.git(".", &["clone", "-q", "--bare", "seed", "p/.bare"]);
    std::fs::write(place.at("p/.git"), "gitdir: ./.bare\n").unwrap();
    place.git("p", &["worktree", "add", "-q", "main-tree", "main"]);
    place.file("p/.bare/striatum/striatum.db");
    assert_eq!(place.found("p/main-tree"), is("store", "p/.bare/striatum"));
    assert_eq!(place.found("p/.bare"), is("store", "p/.bare/striatum"));
    assert_eq!(place.found("p"), is("store", "p/.bare/striatum"));
}

#[test]
fn linked_worktrees_of_a_separate_directory_named_git_agree_with_the_main_tree() {
    let place = Place::new();
    place.folder("x");
    place.git(".", &["init", "-q", "--separate-git-dir", "x/.git", "p"]);
    place.file("p/a");
    place.git("p", &["add", "-A"]);
    place.git("p", &["commit", "-qm", "one"]);
    place.git("p", &["worktree", "add", "-q", "../w"]);
    assert_eq!(place.found("p"), is("nothing", "x/.git/striatum"));
    place.file("x/.git/striatum/striatum.db");
    assert_eq!(place.found("p"), is("store", "x/.git/striatum"));
    assert_eq!(place.found("w"), is("store", "x/.git/striatum"));
}

#[test]
fn a_submodule_does_not_end_the_walk() {
    let place = Place::new();
    place.repository("library");
    place.repository("p");
    place.file("p/.striatum/striatum.db");
    place.git("p", &["submodule", "--quiet", "add", "../library", "vendor/library"]);
    place.git("p", &["commit", "-qm", "with library"]);
    assert!(place.at("p/vendor/library/.striatum/config.toml").exists());
    place.folder("p/vendor/library/src");
    assert_eq!(place.found("p/vendor/library/src"), is("store", "p/.striatum"));

    place.git("p", &["worktree", "add", "-q", "../w"]);
    place.git("w", &["submodule", "--quiet", "update", "--init"]);
    assert_eq!(place.found("w/vendor/library"), is("store", "p/.striatum"));
}

#[test]
fn a_repository_ends_the_walk_even_without_a_store() {
    let place = Place::new();
    place.file("outer/.striatum/striatum.db");
    place.git("outer/inner", &["init", "-q"]);
    assert_eq!(place.found("outer/inner"), is("nothing", "outer/inner/.striatum"));
    assert_eq!(place.found("outer"), is("store", "outer/.striatum"));
}

#[test]
fn without_git_the_nearest_folder_counts() {
    let place = Place::new();
    place.folder("a/b/c");
    assert_eq!(place.found("a/b/c"), is("nothing", "a/b/c/.striatum"));
    assert!(place.find("a/b/c").layout().repository().is_none());
    place.file("a/.striatum/config.toml");
    assert_eq!(place.found("a/b/c"), is("config", "a/.striatum"));
    place.file("a/.striatum/striatum.db");
    assert_eq!(place.found("a/b/c"), is("store", "a/.striatum"));
    // An empty folder of that name, and a `.git` that is none, are nothing.
    place.folder("a/b/.striatum");
    place.folder("a/b/.git");
    assert_eq!(place.found("a/b/c"), is("store", "a/.striatum"));
}

#[test]
fn a_folder_of_a_nested_project_counts_in_the_main_tree_only() {
    let place = Place::new();
    place.repository("p");
    place.file("p/tool/.striatum/config.toml");
    place.git("p", &["add", "-A"]);
    place.git("p", &["commit", "-qm", "two"]);
    place.git("p", &["worktree", "add", "-q", "../w"]);
    assert_eq!(place.found("p/tool"), is("config", "p/tool/.striatum"));
    assert_eq!(place.found("w/tool"), is("config", "p/.striatum"));
    place.file("p/.striatum/striatum.db");
    assert_eq!(place.found("p/tool"), is("store", "p/.striatum"));
    place.file("p/tool/.striatum/striatum.db");
    assert_eq!(place.found("p/tool"), is("store", "p/tool/.striatum"));
}

#[test]
fn a_named_folder_wins_and_a_flag_wins_over_the_variable() {
    let place = Place::new();
    place.repository("p");
    place.repository("q");
    place.file("p/.striatum/striatum.db");
    let (p, q) = (place.at("p/.striatum"), place.at("q/.striatum"));
    let find = |flag, variable| discover(Search { flag, variable, cwd: &place.at("q") }).unwrap();
    assert!(
        matches!(find(Some(p.as_path()), Some(q.as_path())), Found::Store(layout) if layout.root() == p && layout.project() == place.at("p"))
    );
    assert!(matches!(find(None, Some(p.as_path())), Found::Store(layout) if layout.root() == p));
    assert!(matches!(find(Some(Path::new("../p/.striatum")), None), Found::Store(layout) if layout.root() == p));
    assert!(matches!(find(None, Some(Path::new(""))), Found::Config(layout) if layout.root() == q));
    let named = place.at("new/.striatum");
    place.folder("new");
    assert!(matches!(find(Some(named.as_path()), None), Found::Nothing(layout) if layout.root() == named));
}

#[test]
fn a_named_folder_in_a_git_directory_is_about_the_work_tree() {
    let place = Place::new();
    place.git(".", &["init", "-q", "--separate-git-dir", "elsewhere", "p"]);
    place.file("elsewhere/striatum/striatum.db");
    place.folder("p/src");
    let root = place.at("elsewhere/striatum");
    let find = |cwd: &str| discover(Search { flag: None, variable: Some(&root), cwd: &place.at(cwd) }).unwrap();
    assert_eq!(find("p/src").layout().project(), place.at("p"));
    assert_eq!(find("p/src").layout().root(), root);
    assert_eq!(find(".").layout().repository().unwrap().work_tree, None);
}

#[test]
fn unsafe_folders_are_refused() {
    let place = Place::new();
    place.repository("p");
    place.file("p/.striatum/striatum.db");
    place.git("q", &["init", "-q"]);
    std::os::unix::fs::symlink(place.at("p/.striatum"), place.at("q/.striatum")).unwrap();
    let find = |cwd: &str| discover(Search { flag: None, variable: None, cwd: &place.at(cwd) });
    assert!(matches!(find("q"), Err(LayoutError::Symlink { .. })));
    let link = place.at("q/.striatum");
    assert!(matches!(
        discover(Search { flag: Some(&link), variable: None, cwd: &link }),
        Err(LayoutError::Symlink { .. })
    ));
    std::fs::set_permissions(place.at("p/.striatum"), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    assert!(matches!(find("p"), Err(LayoutError::WorldWritable { .. })));
}

#[test]
fn a_hook_in_a_linked_worktree_finds_its_own_store_and_not_the_one_that_variables_name() {
    let place = Place::new();
    place.repository("p");
    place.file("p/.striatum/striatum.db");
    place.repository("decoy");
    place.file("decoy/.striatum/striatum.db");
    place.git("p", &["worktree", "add", "-q", "../w"]);
    // Nothing in here reads GIT_*: the search takes no environment at all. What a hook has is its directory.
    assert_eq!(place.found("w"), is("store", "p/.striatum"));
}
