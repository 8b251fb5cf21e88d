//! The suite of the pages that people read: the page of the laboratory, built from the kept runs,
//! and the site of the documents. Both are opened in Chromium.

use std::{fs, process::Command};

use bulla_devtools::install::{self, node_packages};

use super::{js::CHROMIUM, runner::Runner};
use crate::forward::{BENCH, SITE};

/// The sources of the laboratory's page, below the root.
const DASHBOARD: &str = "lab/dashboard";

pub(super) fn run(runner: &mut Runner<'_>) {
    runner.need("npm packages", |context| node_packages(&context.root.join(DASHBOARD)));
    // The browser is started by the packages of js/.
    runner.need("npm packages of js", |context| node_packages(&context.root.join("js")));
    runner.need("chromium", |_| install::debian(&CHROMIUM));
    let built = runner.context.target.join("dashboard");
    runner.forward(
        "the page is built from the kept runs",
        BENCH,
        &["dashboard".as_ref(), "--out".as_ref(), built.as_ref()],
    );
    let mut tests = Command::new("node");
    tests
        .args(["--test", "--test-reporter=spec"])
        .args(["test/page.test.js", "test/answers.test.js", "test/pictures.test.js"])
        .current_dir(runner.context.root.join(DASHBOARD))
        .env("BULLA_DASHBOARD", &built)
        .env("BULLA_DASHBOARD_PICTURES", runner.context.target.join("dashboard-pictures"));
    runner.node_test("node --test", &mut tests);
    documents(runner);
}

/// The site of the documents. Its tests need no package but the browser's.
fn documents(runner: &mut Runner<'_>) {
    let context = runner.context;
    let built = context.target.join("site");
    let name = "the site is built, and its links lead somewhere";
    // A page of an earlier build must not stay.
    runner.need("an empty folder", |_| if built.exists() { Ok(fs::remove_dir_all(&built)?) } else { Ok(()) });
    runner.forward(name, SITE, &["--out".as_ref(), built.as_ref()]);
    let mut tests = Command::new("node");
    tests
        .args(["--test", "--test-reporter=spec", "site.test.mjs"])
        .current_dir(context.root.join("docs/site/test"))
        .env("BULLA_SITE", &built)
        .env("BULLA_SITE_PICTURES", context.target.join("site-pictures"));
    runner.node_test("node --test, site", &mut tests);
}
