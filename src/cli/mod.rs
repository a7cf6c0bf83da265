//! The command line.

use std::process::ExitCode;

/// Runs the command line.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    if words.next_if(|word| word == crate::os::process::SHIM_VERB).is_some() {
        return ExitCode::from(crate::os::process::run_lane_shim(words));
    }
    ExitCode::SUCCESS
}
