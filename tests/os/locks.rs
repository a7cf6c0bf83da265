//! Locks between processes: what a death frees, and what it does not.

use std::path::PathBuf;
use std::process::{Child, Command};

use striatum::domain::time::Timestamp;
use striatum::os::lock::{DriverHolder, DriverLock, LockError, Standby, WriteGuard, WriteRequest, read_driver};
use striatum::os::wait::is_readable_within;
use tempfile::TempDir;

use crate::alone::{as_child, child_env, only, this_program, until};

fn child(name: &str, folder: &TempDir) -> Child {
    let mut env = child_env(name);
    env.push(("PLACE".into(), folder.path().into()));
    let child =
        Command::new(this_program()).args(only(name)).envs(env).stdout(std::process::Stdio::null()).spawn().unwrap();
    until("the child holds its lock", || folder.path().join("held").exists());
    child
}

fn place() -> PathBuf {
    PathBuf::from(std::env::var_os("PLACE").unwrap())
}

fn hold_for_ever() {
    std::fs::write(place().join("held"), "").unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn a_writer_that_is_killed_frees_the_guard_for_whoever_waits() {
    let folder = TempDir::new().unwrap();
    let mut writer = child("locks::writing_child", &folder);
    let path = folder.path().join("write.lock");
    let busy = WriteGuard::acquire(&path, WriteRequest { verb: "status", timeout_ms: 1 }, &mut |_| ());
    let Err(LockError::Busy { holder, .. }) = busy else { unreachable!("{busy:?}") };
    assert_eq!((holder.pid, holder.verb.as_str()), (i32::try_from(writer.id()).unwrap(), "work claim"));

    let mut noticed = false;
    let request = WriteRequest { verb: "status", timeout_ms: 20_000 };
    let guard = WriteGuard::acquire(&path, request, &mut |_| {
        noticed = true;
        writer.kill().unwrap();
    });
    assert!(guard.is_ok() && noticed);
    writer.wait().unwrap();
}

#[test]
fn writing_child() {
    as_child("locks::writing_child", || {
        let request = WriteRequest { verb: "work claim", timeout_ms: 20_000 };
        let _guard = WriteGuard::acquire(&place().join("write.lock"), request, &mut |_| ()).unwrap();
        hold_for_ever();
    });
}

#[test]
fn a_standby_takes_over_from_a_driver_that_is_killed() {
    let folder = TempDir::new().unwrap();
    let mut driver = child("locks::driving_child", &folder);
    let path = folder.path().join("drive-a-1.lock");
    let own = DriverHolder::this_process(Timestamp(5));
    assert!(DriverLock::try_take(&path, &own).unwrap().is_none());
    assert_eq!(read_driver(&path).unwrap().pid, i32::try_from(driver.id()).unwrap());
    let standby = Standby::start(&path).unwrap();
    assert!(standby.take(&path, &own).unwrap().is_none());
    driver.kill().unwrap();
    driver.wait().unwrap();
    assert!(is_readable_within(&standby, 20_000).unwrap());
    assert!(standby.take(&path, &own).unwrap().is_some());
    assert_eq!(read_driver(&path), Some(own));
}

#[test]
fn driving_child() {
    as_child("locks::driving_child", || {
        let holder = DriverHolder::this_process(Timestamp(1));
        let _lock = DriverLock::try_take(&place().join("drive-a-1.lock"), &holder).unwrap().unwrap();
        hold_for_ever();
    });
}
