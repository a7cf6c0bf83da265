//! The process: hand the words to the command line, leave with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    striatum::cli::main()
}
