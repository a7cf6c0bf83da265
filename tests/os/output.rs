//! What agents print, as much and as badly as they like.

use std::ffi::OsString;
use std::path::Path;

use striatum::os::files::{BoundedLog, tail_text};
use striatum::os::process::{LaneStdin, Limits, Program, Signal, spawn_command};
use tempfile::TempDir;

use crate::alone::until;

const LIMIT: u64 = 1 << 20;

fn program(folder: &TempDir, text: &str) -> Program {
    Program {
        argv: ["sh", "-c", text].map(OsString::from).to_vec(),
        cwd: folder.path().to_owned(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        stdin: LaneStdin::Null,
        output: folder.path().join("output.log"),
        tty: false,
        limits: Limits::default(),
    }
}

fn striatum() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_striatum"))
}

#[test]
fn an_agent_that_prints_for_ever_fills_no_disk_and_is_noticed() {
    let folder = TempDir::new().unwrap();
    let order = program(&folder, "exec yes");
    let launched = spawn_command(striatum(), &order).unwrap();
    let mut log = BoundedLog::new(&order.output, LIMIT);
    until("much was printed", || log.check().unwrap().written > 100 << 20);
    launched.process.signal(Signal::KILL).unwrap();
    assert!(launched.process.wait_ended(20_000));
    launched.process.reap().unwrap();
    assert!(log.check().unwrap().bytes <= LIMIT);
    assert!(std::fs::metadata(&order.output).unwrap().len() <= LIMIT);
}

#[test]
fn one_line_of_very_many_bytes_is_cut_like_any_other_output() {
    let folder = TempDir::new().unwrap();
    let order = program(&folder, "printf start; head -c 100000000 /dev/zero | tr '\\0' x; printf '\\nend\\n'");
    let launched = spawn_command(striatum(), &order).unwrap();
    let mut log = BoundedLog::new(&order.output, LIMIT);
    until("it has ended", || {
        log.check().unwrap();
        launched.process.has_ended()
    });
    launched.process.reap().unwrap();
    assert!(log.check().unwrap().bytes <= LIMIT);
    let text = tail_text(&order.output, LIMIT).unwrap();
    assert!(text.starts_with("startxxx") && text.ends_with("xxx\nend\n"));
}

#[test]
fn binary_output_and_escape_sequences_have_no_power_over_a_reader() {
    let folder = TempDir::new().unwrap();
    let order = program(&folder, "printf 'a\\033]52;c;x\\007b\\033[2J\\377\\000\\r\\nc\\033]0;open'");
    let launched = spawn_command(striatum(), &order).unwrap();
    assert!(launched.process.wait_ended(20_000));
    launched.process.reap().unwrap();
    assert_eq!(tail_text(&order.output, LIMIT).unwrap(), "ab\u{fffd}\\u{0}\nc");
}

#[test]
fn an_agent_that_reads_its_input_meets_its_end_at_once() {
    let folder = TempDir::new().unwrap();
    let order = program(&folder, "exec cat");
    let launched = spawn_command(striatum(), &order).unwrap();
    assert!(launched.process.wait_ended(20_000));
    assert_eq!(launched.process.reap().unwrap().unwrap().code, Some(0));
}
