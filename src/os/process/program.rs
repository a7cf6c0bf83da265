//! Finding programs by name, without starting them.

use std::path::PathBuf;

/// The file that a name stands for on the PATH: the first one there that this user may execute.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // An empty part means the working directory, which in a repository is somebody else's.
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders
        .map(|folder| folder.join(name))
        .find(|file| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
}
