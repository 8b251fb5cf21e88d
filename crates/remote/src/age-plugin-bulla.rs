//! The program `age-plugin-bulla`, which age starts. It becomes `bulla-remote age-plugin`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    bulla_cli::remote::start_age_plugin()
}
