//! The suite that runs the generic unsafe code under Miri. Miri is an interpreter: it finds invalid
//! reads and writes, reads of uninitialized memory, and data races.
//!
//! Miri runs neither assembly nor most vector instructions. So the bodies that all kernels share
//! run over vectors that are arrays (`bulla_simd::arrays`), and so do the portable kernels.

use std::process::Command;

use bulla_devtools::install;

use super::runner::Runner;

/// Packages, and the tests of each that run in Miri: those that take seconds there.
const TESTS: [(&str, &[&str]); 3] = [
    ("bulla-simd", &["dispatch", "cpu"]),
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
            // The stable cargo that started this program has set it, and here the nightly one runs.
            .env_remove("CARGO");
        runner.libtest(&format!("{package} in Miri"), &mut command);
    }
}
