//! The program `bulla-remote`, which `bulla` starts for tokens and for the keys of a service.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    bulla_remote::main()
}
