//! The suite of the generic unsafe code, under Miri: an interpreter that finds reads and writes without a right to them, of memory that was not
//! initialised, and data races.
//!
//! Miri runs neither assembly nor most vector instructions. So the bodies that all kernels share run over vectors that are arrays
//! (`bulla_simd::arrays`), and so do the portable kernels.

use std::process::Command;

use super::runner::Runner;
use crate::install;

/// Packages, and the tests of each that run in Miri: those that take seconds there.
const TESTS: [(&str, &[&str]); 3] = [
    ("bulla-simd", &["cell", "cpu"]),
    ("bulla-blake2", &["kernel::arrays"]),
    ("bulla-blake3", &["kernel::arrays", "buffer"]),
];

pub(super) fn run(runner: &mut Runner<'_>) {
    runner.need("a nightly compiler with Miri", |_| install::nightly(&["miri", "rust-src"]));
    let target = runner.context.target.join("miri");
    for (package, tests) in TESTS {
        let mut command = Command::new("rustup");
        command
            .args(["run", "nightly", "cargo", "miri", "test", "--lib", "--package", package, "--target-dir"])
            .arg(&target)
            .arg("--")
            .args(tests)
            .current_dir(&runner.context.root)
            // Set by the cargo that runs us, which is not the nightly one.
            .env_remove("CARGO");
        runner.libtest(&format!("{package} in Miri"), &mut command);
    }
}
