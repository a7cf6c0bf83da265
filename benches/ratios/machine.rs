//! The machine's shape, for whoever compares absolute values.

use std::path::Path;

/// One line: processor, cores, memory, kernel, file system, load.
pub fn describe(folder: &Path) -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("?");
    let memory =
        field(&read("/proc/meminfo"), "MemTotal").trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1_048_576;
    format!(
        "machine: {cores} cores of {}, {memory} GiB, Linux {}, {} at {}, load {load}\nSQLite {}, striatum {}",
        field(&read("/proc/cpuinfo"), "model name"),
        kernel.trim(),
        file_system(folder),
        folder.display(),
        rusqlite::version(),
        env!("CARGO_PKG_VERSION"),
    )
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn field(text: &str, name: &str) -> String {
    let value = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
    value.map_or("unknown", |(_, value)| value.trim()).to_owned()
}

/// The type of the innermost mount that holds the folder.
fn file_system(folder: &Path) -> String {
    let mounts = read("/proc/self/mounts");
    let holding = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        folder.starts_with(place).then_some((place.len(), kind))
    });
    holding.max_by_key(|(length, _)| *length).map_or("unknown", |(_, kind)| kind).to_owned()
}
