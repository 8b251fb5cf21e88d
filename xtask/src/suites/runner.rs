//! Runs the steps of one suite, counts, and keeps going when one fails.

use std::{
    env,
    process::{Command, ExitStatus},
    thread,
};

use anyhow::{Result, anyhow};

use crate::{
    context::Context,
    count::{GoTests, Tally, libtest, node_test},
    process::{Echo, stream},
};

/// How many tests of one program run at once: twice as many as there are processors, unless somebody says otherwise, since many wait for other
/// processes, nodes and tokens.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// Has the tests of kernels fail where the processor lacks one, instead of saying that it was not tested.
const REQUIRE_KERNELS: &str = "BULLA_TEST_REQUIRE_KERNELS";

/// The steps of a suite report here.
pub(super) struct Runner<'a> {
    pub(super) context: &'a Context,
    suite: &'static str,
    tally: Tally,
    failures: Vec<String>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(context: &'a Context, suite: &'static str) -> Self {
        Self { context, suite, tally: Tally::default(), failures: Vec::new() }
    }

    /// What was counted, and one line for each step that failed.
    pub(super) fn finish(self) -> (Tally, Vec<String>) {
        (self.tally, self.failures)
    }

    /// A step that is one test: it passes or fails as a whole.
    pub(super) fn check(&mut self, name: &str, step: impl FnOnce(&Context) -> Result<()>) {
        self.announce(name);
        let result = step(self.context);
        self.tally += if result.is_ok() { Tally::PASS } else { Tally::FAIL };
        self.note(name, result);
    }

    /// A step that is one test: the command's exit status.
    pub(super) fn command(&mut self, name: &str, command: &mut Command) {
        self.check(name, |_| succeeded(stream(command, Echo::Show, |_| {})?));
    }

    /// Something the suite cannot do without. It counts only when it fails.
    pub(super) fn need(&mut self, name: &str, step: impl FnOnce(&Context) -> Result<()>) {
        let result = step(self.context);
        if result.is_err() {
            self.tally += Tally::FAIL;
        }
        self.note(name, result);
    }

    /// `cargo test` with these arguments, by a processor that must run every kernel: every test of every harness counts.
    pub(super) fn cargo_test(&mut self, arguments: &[&str]) {
        let mut command = self.context.cargo();
        command.args(["test", "--no-fail-fast"]).args(arguments).env(REQUIRE_KERNELS, "1");
        if env::var_os(TEST_THREADS).is_none() {
            let processors = thread::available_parallelism().map_or(1, usize::from);
            command.env(TEST_THREADS, (2 * processors).to_string());
        }
        self.libtest(&format!("cargo test {}", arguments.join(" ")), &mut command);
    }

    /// A command that runs tests of Rust: every test of every harness counts.
    pub(super) fn libtest(&mut self, name: &str, command: &mut Command) {
        self.announce(name);
        let mut tally = Tally::default();
        let status = stream(command, Echo::Show, |line| tally += libtest(line).unwrap_or_default());
        self.conclude(name, tally, status);
    }

    /// `go test -json`: every leaf test counts.
    pub(super) fn go_test(&mut self, name: &str, command: &mut Command) {
        self.announce(name);
        let mut tests = GoTests::default();
        let status = stream(command, Echo::Hide, |line| {
            if let Some(text) = tests.line(line) {
                print!("{text}");
            }
        });
        self.conclude(name, tests.tally(), status);
    }

    /// `node --test` with the reporter `spec`: its summary counts.
    pub(super) fn node_test(&mut self, name: &str, command: &mut Command) {
        self.announce(name);
        let mut tally = Tally::default();
        let status = stream(command, Echo::Show, |line| tally += node_test(line).unwrap_or_default());
        self.conclude(name, tally, status);
    }

    /// A test runner has ended: a failure that it did not count, such as a build that broke, counts once.
    fn conclude(&mut self, name: &str, mut tally: Tally, status: Result<ExitStatus>) {
        let mut result = status.and_then(succeeded);
        if result.is_ok() && tally == Tally::default() {
            result = Err(anyhow!("it ran no test"));
        }
        if tally.failed == 0 && result.is_err() {
            tally.failed = 1;
        }
        if tally.failed > 0 && result.is_ok() {
            result = Err(anyhow!("{} tests were ignored or skipped", tally.failed));
        }
        self.tally += tally;
        self.note(name, result);
    }

    fn announce(&self, name: &str) {
        println!("\n== {}: {name}", self.suite);
    }

    fn note(&mut self, name: &str, result: Result<()>) {
        if let Err(error) = result {
            println!("failed: {}: {name}: {error:#}", self.suite);
            self.failures.push(format!("{name}: {error:#}"));
        }
    }
}

fn succeeded(status: ExitStatus) -> Result<()> {
    if status.success() { Ok(()) } else { Err(anyhow!("{status}")) }
}
