//! Timing processes: interleaved calls, percentiles, peak memory.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::{Outcome, anchor};

/// One side of a comparison of short processes; the number tells the calls apart.
pub type Caller<'a> = Box<dyn FnMut(usize) -> Command + 'a>;

/// The value below which a part of the numbers lies.
pub fn quantile(numbers: &[f64], part: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let index = (last as f64 * part).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

/// The middle one.
pub fn median(numbers: &[f64]) -> f64 {
    quantile(numbers, 0.5)
}

/// Milliseconds that a process takes from spawn to exit.
pub fn time(command: &mut Command) -> Outcome<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.spawn()?.wait()?;
    let took = start.elapsed().as_secs_f64() * 1e3;
    if status.success() { Ok(took) } else { Err(failed(command)) }
}

fn failed(command: &mut Command) -> Box<dyn std::error::Error> {
    let again = command.output().map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    format!("{command:?} failed; again: {}", again.unwrap_or_else(|error| error.to_string())).into()
}

/// The median time of each caller in each round, their calls in turn: `[caller][round]`.
pub fn race(callers: &mut [Caller<'_>], rounds: usize, calls: usize) -> Outcome<Vec<Vec<f64>>> {
    let mut medians = vec![Vec::new(); callers.len()];
    let mut number = 0;
    for _ in 0..rounds {
        let mut times = vec![Vec::new(); callers.len()];
        for call in 0..calls + 2 {
            for (caller, times) in callers.iter_mut().zip(&mut times) {
                let took = time(&mut caller(number))?;
                // The first two warm the caches.
                if call >= 2 {
                    times.push(took);
                }
            }
            number += 1;
        }
        for (medians, times) in medians.iter_mut().zip(&times) {
            medians.push(median(times));
        }
    }
    Ok(medians)
}

/// The median over the rounds of one's ratio to the other.
pub fn ratio(one: &[f64], other: &[f64]) -> f64 {
    let ratios: Vec<f64> = one.iter().zip(other).map(|(one, other)| one / other).collect();
    median(&ratios)
}

/// Peak resident size of a command, in MiB, seen from a small process that starts nothing else.
pub fn peak(command: &Command) -> Outcome<f64> {
    let mut probe = anchor::command("peak");
    probe.arg(command.get_program()).args(command.get_args()).env_clear();
    probe.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        probe.current_dir(folder);
    }
    let output = probe.stderr(Stdio::inherit()).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse::<f64>()? / 1024.0)
}

/// Peak resident size of a living process, in MiB.
pub fn peak_of(pid: u32) -> Outcome<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}
