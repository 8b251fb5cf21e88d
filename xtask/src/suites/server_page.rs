//! The page of `bulla serve`, opened in Chromium.

use std::{path::Path, process::Command};

use bulla_devtools::install::{self, node_packages};

use super::{js::CHROMIUM, runner::Runner};

/// The tests of the page, with the program `bulla`.
pub(super) fn run(runner: &mut Runner<'_>, bulla: &Path) {
    let folder = runner.context.root.join("crates/server/tests/page");
    runner.need("npm packages of the service's page", |_| node_packages(&folder));
    runner.need("chromium", |_| install::debian(&CHROMIUM));
    let mut tests = Command::new("node");
    tests
        .args(["--test", "--test-reporter=spec"])
        .args(["keys", "credentials", "live", "form"].map(|name| format!("test/{name}.test.js")))
        .current_dir(&folder)
        .env("BULLA", bulla)
        .env("BULLA_PAGE_PICTURES", runner.context.target.join("server-page-pictures"));
    runner.node_test("node --test", &mut tests);
}
