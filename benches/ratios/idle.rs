//! A driver that has nothing to do (G12): what it costs, and how soon it sees somebody else's commit.

use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use striatum::verbs::Ctx;
use striatum::verbs::ctx::open;

use crate::measure::{median, quantile};
use crate::table::{AtMost, Table, Unit};
use crate::trial::{Trial, wait_for};
use crate::{Outcome, Plan, progress};

/// A job for a person: the driver has nothing to launch.
const WORKFLOW: &str = "schema = \"striatum.workflow/1\"\nid = \"w\"\n\n[lanes.me]\nmode = \"human\"\n\n\
                        [[jobs]]\nid = \"j\"\nrole = \"worker\"\nlane = \"me\"\ntree = \"none\"\n";

/// Commits of somebody else.
const COMMITS: usize = 100;

/// Measures.
pub fn compare(plan: &Plan, table: &mut Table) -> Outcome<()> {
    let trial = Trial::with_workflow(WORKFLOW)?;
    let mut drive = trial.striatum(["run", "drive", "--wait-human", "--heartbeat", "1ms"]);
    let mut driver = drive.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let measured = with_driver(plan, &trial, &mut driver, table);
    end(&mut driver)?;
    measured
}

fn with_driver(plan: &Plan, trial: &Trial, driver: &mut Child, table: &mut Table) -> Outcome<()> {
    let mut screen = Screen(driver.stderr.take().ok_or("no standard error")?);
    screen.next(Duration::from_secs(20))?;
    screen.settle()?;
    idle(plan, trial, driver.id(), table)?;
    screen.settle()?;
    progress("G12: commits by somebody else");
    let ctx = open(Some(&trial.path().join(".striatum")))?.lasting();
    let times = (0..COMMITS).map(|_| seen_after(&ctx, &mut screen)).collect::<Outcome<Vec<f64>>>()?;
    let absolute = format!("p99 {:.2} ms, of {COMMITS}", quantile(&times, 0.99));
    let case = AtMost { limit: 5.0, measured: median(&times), unit: Unit::Ms, absolute };
    table.at_most("G12", "commit to the driver's look, p50", case);
    Ok(())
}

fn idle(plan: &Plan, trial: &Trial, pid: u32, table: &mut Table) -> Outcome<()> {
    let window = Duration::from_secs(if plan.quick { 3 } else { 10 });
    progress(&format!("G12: watching an idle driver for {} s", window.as_secs()));
    let wal = || {
        std::fs::metadata(trial.db().with_extension("db-wal")).and_then(|about| Ok((about.len(), about.modified()?)))
    };
    let (cpu, log, start) = (cpu_ns(pid)?, wal()?, Instant::now());
    // The window itself is what is measured.
    std::thread::sleep(window);
    let (used, took) = (cpu_ns(pid)?.saturating_sub(cpu), start.elapsed());
    let percent = used as f64 / took.as_nanos() as f64 * 100.0;
    let absolute = format!("{:.2} ms of CPU in {:.0} s", used as f64 / 1e6, took.as_secs_f64());
    table.at_most(
        "G12",
        "idle driver, of one core",
        AtMost { limit: 0.2, measured: percent, unit: Unit::Percent, absolute },
    );
    let writes = f64::from(u8::from(wal()? != log));
    let absolute = format!("the log has {} bytes", log.0);
    table.at_most(
        "G12",
        "idle driver, changes of the log",
        AtMost { limit: 0.0, measured: writes, unit: Unit::Count, absolute },
    );
    Ok(())
}

/// Time on a processor of all threads of a process, in nanoseconds.
fn cpu_ns(pid: u32) -> Outcome<u64> {
    let mut sum = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text.split(' ').next().ok_or("an empty schedstat")?.parse::<u64>()?;
    }
    Ok(sum)
}

/// Milliseconds from a commit to the line that the driver's next turn prints.
fn seen_after(ctx: &Ctx, screen: &mut Screen) -> Outcome<f64> {
    ctx.write("bench", |tx| Ok(striatum::store::run::add_active(tx, striatum::domain::id::RunId(1), 1)?))?;
    let start = Instant::now();
    screen.next(Duration::from_secs(5))?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    screen.settle()?;
    Ok(took)
}

/// What a driver prints once a turn.
struct Screen(ChildStderr);

impl Screen {
    fn is_readable(&self, within: Duration) -> Outcome<bool> {
        let timeout = PollTimeout::try_from(within)?;
        Ok(poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], timeout)? > 0)
    }

    /// Waits for the next words.
    fn next(&mut self, within: Duration) -> Outcome<()> {
        if !self.is_readable(within)? {
            return Err(format!("the driver took no look within {} s", within.as_secs()).into());
        }
        let mut words = [0; 4096];
        match self.0.read(&mut words)? {
            0 => Err("the driver ended".into()),
            _ => Ok(()),
        }
    }

    /// Takes everything until nothing has come for a while.
    fn settle(&mut self) -> Outcome<()> {
        while self.is_readable(Duration::from_millis(8))? {
            self.next(Duration::ZERO)?;
        }
        Ok(())
    }
}

fn end(driver: &mut Child) -> Outcome<()> {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(driver.id())?);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
    wait_for("the driver's end", || Ok(driver.try_wait()?)).map(|_| ())
}
