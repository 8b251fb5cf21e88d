//! The suite of `js/`: the npm packages, as source and as they are published.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};
use bulla_devtools::{
    Context,
    install::{self, DebianTool, node_packages},
};

use super::runner::Runner;

/// The browser of the tests.
pub(super) const CHROMIUM: DebianTool = DebianTool { program: "chromium", package: "chromium" };

pub(super) fn run(runner: &mut Runner<'_>) {
    runner.need("rust target", |_| install::rust_target("wasm32-unknown-unknown"));
    runner.need("npm packages", |context| node_packages(&context.root.join("js")));
    runner.need("chromium", |_| install::debian(&CHROMIUM));
    let check = ["wasm/build.mjs", "--check"];
    runner.command("the WebAssembly module is what crates/wasm gives", node(runner.context).args(check));
    runner.command("the sources compile", node(runner.context).arg("scripts/build.js"));
    let client = ["scripts/compile.js", "kms"];
    runner.command("the client of the service compiles", node(runner.context).args(client));
    kernels(runner);
    match tests(runner.context) {
        Ok(tests) => {
            runner.node_test(
                "node --test",
                node(runner.context).args(["--test", "--test-reporter=spec"]).args(tests),
            );
        }
        Err(error) => runner.need("the tests", |_| Err(error)),
    }
}

/// The tests of `bulla-blake3` and `bulla-blake2` with their WebAssembly kernels, under Node's
/// WASI. Tests that need threads, processes, an unwinding panic, a temporary folder or another
/// kernel are left out.
fn kernels(runner: &mut Runner<'_>) {
    const TARGET: &str = "wasm32-wasip1";
    const APART: [(&str, &str, &[&str]); 2] = [
        (
            "bulla-blake3",
            "blake3",
            &[
                "parallel_and_files",
                "a_subtree_",
                "a_chunk_of_guts_",
                "portable",
                "bao",
                "the_files_of_this_version",
            ],
        ),
        (
            "bulla-blake2",
            "blake2",
            &[
                "the_variable_forces_a_kernel",
                "a_job_that_was_not_done",
                "what_is_too_long_is_refused",
                "node_offsets_of_blake2s",
            ],
        ),
    ];
    runner.need("rust target", |_| install::rust_target(TARGET));
    let script = runner.context.root.join("js/wasm/wasi.mjs").display().to_string();
    let launcher = format!("target.{TARGET}.runner = ['node', '--no-warnings', '{script}']");
    let flags = format!("target.{TARGET}.rustflags = ['-Ctarget-feature=+simd128']");
    for (package, test, apart) in APART {
        let mut arguments = vec!["--config", &launcher, "--config", &flags];
        arguments.extend(["--package", package, "--test", test, "--target", TARGET]);
        arguments.extend(["--", "--test-threads=1"]);
        arguments.extend(apart.iter().flat_map(|name| ["--skip", name]));
        runner.cargo_test(&arguments);
    }
}

/// The test files. Node 20 has no patterns, and runs every file of a folder named `test`.
fn tests(context: &Context) -> Result<Vec<PathBuf>> {
    let mut tests = Vec::new();
    for folder in ["js/test", "js/test/shared", "js/test/browser", "js/kms/test"] {
        for entry in
            fs::read_dir(context.root.join(folder)).with_context(|| format!("cannot read {folder}"))?
        {
            let path = entry?.path();
            if path.to_string_lossy().ends_with(".test.js") {
                tests.push(path);
            }
        }
    }
    tests.sort();
    Ok(tests)
}

/// `node` in `js/`.
fn node(context: &Context) -> Command {
    let mut command = Command::new("node");
    command.current_dir(context.root.join("js"));
    command
}
