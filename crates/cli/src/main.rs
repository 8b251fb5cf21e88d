//! The command `bulla`: hash, sign and verify files.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    bulla_cli::main()
}
