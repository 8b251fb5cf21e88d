//! The suites that `cargo test` runs.

use super::runner::Runner;
use crate::{
    documents,
    install::{self, DebianTool},
};

/// The tests of signatures in minisign's format ask the real minisign.
const MINISIGN: DebianTool = DebianTool { program: "minisign", package: "minisign" };

/// The packages that have a suite of their own.
const APART: [&str; 3] = ["bulla", "bulla-kms", "bulla-lab"];

/// Every package of the workspace that has no suite of its own.
pub(super) fn libraries(runner: &mut Runner<'_>) {
    let mut arguments = vec!["--workspace", "--all-features"];
    for package in APART {
        arguments.extend(["--exclude", package]);
    }
    runner.cargo_test(&arguments);
}

pub(super) fn kms(runner: &mut Runner<'_>) {
    runner.cargo_test(&["-p", "bulla-kms", "--all-features"]);
}

pub(super) fn cli(runner: &mut Runner<'_>) {
    runner.need("minisign", |_| install::debian(&MINISIGN));
    runner.cargo_test(&["-p", "bulla"]);
    runner.check("the commands of the documents exist", documents::check);
    runner.check("the tour of the README", documents::check_tour);
}

pub(super) fn lab(runner: &mut Runner<'_>) {
    runner.cargo_test(&["-p", "bulla-lab"]);
}
