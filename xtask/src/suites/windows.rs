//! The suite `windows`: the Rust libraries as Windows programs, which Wine runs on this processor.

use bulla_devtools::{install, wine};

use super::runner::Runner;

const TARGET: &str = "x86_64-pc-windows-gnu";

/// The libraries with kernels, and what their tests share.
const LIBRARIES: [&str; 5] =
    ["bulla-kernel-testing", "bulla-simd", "bulla-blake2", "bulla-blake3", "bulla-ed25519"];

pub(super) fn run(runner: &mut Runner<'_>) {
    let context = runner.context;
    runner.need("rust target", |_| install::rust_target(TARGET));
    let folder = match wine::prepare(context) {
        Ok(folder) => folder,
        Err(error) => return runner.need("wine", |_| Err(error)),
    };
    let launcher = format!("target.{TARGET}.runner = ['{}']", wine::WINE.path);
    let mut arguments = vec!["--config".to_owned(), launcher];
    for (name, value) in wine::environment(&folder) {
        arguments.extend(["--config".to_owned(), format!("env.{name} = '{value}'")]);
    }
    arguments.extend(["--target", TARGET].map(str::to_owned));
    arguments.extend(LIBRARIES.map(|library| format!("--package={library}")));
    runner.cargo_test(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
}
