//! Runs the steps of one suite, counts, and keeps going when one fails.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsStr,
    path::Path,
    process::{Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use bulla_devtools::{Context, Echo, install, packages::missing_packages, stream, stream_both};

use super::{
    kernels::{REQUIRE_KERNELS, untested},
    programs,
};
use crate::{
    count::{GoTests, Tally, libtest, node_test, pytest},
    documents::Parsers,
    forward::Built,
    program::Program,
    reasons::{Reasons, shortened},
    summary::{Slowest, SuiteResult},
};

/// How many tests of one program run at once, unless the user says otherwise: two for each
/// processor, because many tests wait for other processes, nodes and tokens.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// Tells tests that an emulator runs kernels which a real processor tests whole, so they do less.
const EMULATED: &str = "BULLA_TEST_EMULATED";

/// Where tests find the programs that we ship.
const TEST_PROGRAMS: &str = "BULLA_TEST_PROGRAMS";

/// The steps of a suite report here.
pub(super) struct Runner<'a> {
    pub(super) context: &'a Context,
    /// The arguments of `cargo xtask`.
    pub(super) command_line: &'a clap::Command,
    /// The programs that have commands of xtask.
    programs_of_xtask: &'a Built,
    suite: &'static str,
    /// The value of [`REQUIRE_KERNELS`].
    required_kernels: &'a str,
    /// The kernels that tests on this processor could not run.
    untested: BTreeSet<String>,
    /// The packages that are missing.
    missing: BTreeSet<String>,
    tally: Tally,
    failures: Vec<String>,
    /// How long building the tests took.
    build: Duration,
    slow: Slowest,
}

/// How a test runner ended.
struct Ended {
    tally: Tally,
    reasons: Reasons,
    status: Result<ExitStatus>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        context: &'a Context,
        command_line: &'a clap::Command,
        programs_of_xtask: &'a Built,
        suite: &'static str,
        required_kernels: &'a str,
    ) -> Self {
        Self {
            context,
            command_line,
            programs_of_xtask,
            suite,
            required_kernels,
            untested: BTreeSet::new(),
            missing: BTreeSet::new(),
            tally: Tally::default(),
            failures: Vec::new(),
            build: Duration::ZERO,
            slow: Slowest::default(),
        }
    }

    /// The result of the suite, which took `time` in all.
    pub(super) fn finish(mut self, time: Duration) -> SuiteResult {
        if self.tally == Tally::default() {
            self.tally = Tally::FAIL;
            self.failures.push("the suite ran no test".to_owned());
        }
        let Self { suite, tally, failures, build, slow, untested, missing, .. } = self;
        let (name, run) = (suite.to_owned(), time.saturating_sub(build));
        SuiteResult { name, tally, failures, build, run, slow, untested, missing }
    }

    /// A step that is one test: it passes or fails as a whole.
    pub(super) fn check(&mut self, name: &str, step: impl FnOnce(&Context) -> Result<()>) {
        self.announce(name);
        let result = step(self.context);
        self.tally += if result.is_ok() { Tally::PASS } else { Tally::FAIL };
        self.note(name, result);
    }

    /// A step that is one test and mostly builds: its time counts as that of the build.
    pub(super) fn build_check(&mut self, name: &str, step: impl FnOnce(&Context) -> Result<()>) {
        let start = Instant::now();
        self.check(name, step);
        self.build += start.elapsed();
    }

    /// A step that is one test: the command's exit status.
    pub(super) fn command(&mut self, name: &str, command: &mut Command) {
        self.check(name, |_| {
            let (status, end) = stream_both(command)?;
            succeeded(status).map_err(|error| anyhow!("{error}\n{end}"))
        });
    }

    /// A step that is one test: a command of xtask that another program has.
    pub(super) fn forward(&mut self, name: &str, package: &str, arguments: &[&OsStr]) {
        self.command(name, Command::new(self.programs_of_xtask.path(package)).args(arguments));
    }

    /// What reads the commands in the documents.
    pub(super) fn parsers<'b>(&self, bulla: &'b Path) -> Parsers<'b>
    where
        'a: 'b,
    {
        Parsers { bulla, forward: self.programs_of_xtask, xtask: self.command_line }
    }

    /// A step without which the suite cannot run. It counts only if it fails.
    pub(super) fn need(&mut self, name: &str, step: impl FnOnce(&Context) -> Result<()>) {
        let result = step(self.context);
        if result.is_err() {
            self.tally += Tally::FAIL;
        }
        self.note(name, result);
    }

    /// `cargo test` with these arguments, on a processor that must run its lane's kernels. Every
    /// test of every harness counts.
    pub(super) fn cargo_test(&mut self, arguments: &[&str]) {
        let name = format!("cargo test {}", arguments.join(" "));
        let mut build = self.context.cargo();
        build.args(["test", "--no-run"]).args(arguments);
        let start = Instant::now();
        // The run that follows reports what does not build.
        let _ = stream(&mut build, Echo::Hide, |_| {});
        self.build += start.elapsed();
        let mut command = self.context.cargo();
        command.args(["test", "--no-fail-fast"]).args(arguments);
        set_up(&mut command, self.required_kernels);
        self.libtest(&name, &mut command);
    }

    /// The test programs of these packages of the workspace, from the one build that all suites
    /// share.
    pub(super) fn programs(&mut self, wanted: impl Fn(&str) -> bool) {
        for program in self.built().iter().filter(|program| wanted(&program.package)) {
            let mut command = test_program(program, &[]);
            set_up(&mut command, self.required_kernels);
            if let Some(folder) = programs::built(self.context).ok().and_then(|built| built.command.parent())
            {
                command.env(TEST_PROGRAMS, folder);
            }
            let ended = self.run_libtest(&program.name, &mut command);
            // Some packages have no test of their own.
            if ended.tally != Tally::default() || !matches!(&ended.status, Ok(status) if status.success()) {
                self.conclude(&program.name, ended);
            }
        }
    }

    /// Runs some test programs of the workspace in an emulator, without the requirements of
    /// [`set_up`] on the processor.
    pub(super) fn emulated(&mut self, names: &[&str], emulator: &[&str], prepare: impl Fn(&mut Command)) {
        let programs = self.built();
        for name in names {
            let Some(program) = programs.iter().find(|program| program.name == *name) else {
                self.need(name, |_| Err(anyhow!("there is no such test program")));
                continue;
            };
            self.emulated_program(program, emulator, &prepare);
        }
    }

    /// Runs a test program in an emulator, without the requirements of [`set_up`] on the processor.
    pub(super) fn emulated_program(
        &mut self,
        program: &Program,
        emulator: &[&str],
        prepare: impl Fn(&mut Command),
    ) {
        let mut command = test_program(program, emulator);
        // What this processor must run, the emulated one may lack.
        command.env_remove(REQUIRE_KERNELS);
        // Kernels of other architectures are tested nowhere else.
        if emulator.first() == Some(&"qemu-x86_64") {
            command.env(EMULATED, "1");
        }
        prepare(&mut command);
        let untested = self.untested.clone();
        self.libtest(&format!("{}, {}", program.name, emulator.join(" ")), &mut command);
        // What the emulated processor lacks, this one may have.
        self.untested = untested;
    }

    /// The programs that `step` builds. If they do not build, there are none, and that counts as a
    /// failure.
    pub(super) fn build(&mut self, step: impl FnOnce(&Context) -> Result<Vec<Program>>) -> Vec<Program> {
        let start = Instant::now();
        let built = step(self.context);
        self.build += start.elapsed();
        built.unwrap_or_else(|error| {
            self.need("build", |_| Err(error));
            Vec::new()
        })
    }

    /// The test programs of the workspace. If they do not build, there are none, and that counts as
    /// a failure.
    fn built(&mut self) -> &'a [Program] {
        let context = self.context;
        self.need("protobuf", |_| install::protobuf());
        let start = Instant::now();
        let built = programs::built(context);
        self.build += start.elapsed();
        match built {
            Ok(programs) => &programs.tests,
            Err(error) => {
                self.need("build", |_| Err(error));
                &[]
            }
        }
    }

    /// The tests in the documentation of the workspace, with the features of [`Runner::programs`].
    pub(super) fn doc_tests(&mut self) {
        match programs::features(self.context) {
            Ok(features) => {
                let mut command = self.context.cargo();
                command.args(["test", "--no-fail-fast", "--doc", "--workspace", "--features", &features]);
                set_up(&mut command, self.required_kernels);
                self.libtest("cargo test --doc", &mut command);
            }
            Err(error) => self.need("features", |_| Err(error)),
        }
    }

    /// A command that runs tests of Rust: every test of every harness counts.
    pub(super) fn libtest(&mut self, name: &str, command: &mut Command) {
        let ended = self.run_libtest(name, command);
        self.conclude(name, ended);
    }

    fn run_libtest(&mut self, name: &str, command: &mut Command) -> Ended {
        self.announce(name);
        let (mut tally, mut reasons) = (Tally::default(), Reasons::default());
        let (slow, found) = (&mut self.slow, &mut self.untested);
        let status = stream(command, Echo::Show, |line| {
            tally += libtest(line).unwrap_or_default();
            reasons.libtest(line);
            slow.libtest(line);
            found.extend(untested(line).map(str::to_owned));
        });
        Ended { tally, reasons, status }
    }

    /// `go test -json`: every leaf test counts.
    pub(super) fn go_test(&mut self, name: &str, command: &mut Command) {
        self.announce(name);
        let (mut tests, mut reasons) = (GoTests::default(), Reasons::default());
        let slow = &mut self.slow;
        let status = stream(command, Echo::Hide, |line| {
            slow.go(line);
            if let Some(text) = tests.line(line) {
                print!("{text}");
                reasons.go(&text);
            }
        });
        self.conclude(name, Ended { tally: tests.tally(), reasons, status });
    }

    /// `node --test` with the reporter `spec`: its summary counts.
    pub(super) fn node_test(&mut self, name: &str, command: &mut Command) {
        self.announce(name);
        let (mut tally, mut reasons) = (Tally::default(), Reasons::default());
        let status = stream(command, Echo::Show, |line| {
            tally += node_test(line).unwrap_or_default();
            reasons.node(line);
        });
        self.conclude(name, Ended { tally, reasons, status });
    }

    /// pytest: its summary counts.
    pub(super) fn pytest(&mut self, name: &str, command: &mut Command) {
        self.announce(name);
        let (mut tally, mut reasons) = (Tally::default(), Reasons::default());
        let status = stream(command, Echo::Show, |line| {
            tally += pytest(line).unwrap_or_default();
            reasons.pytest(line);
        });
        self.conclude(name, Ended { tally, reasons, status });
    }

    /// A test runner has ended. If it failed without a failed test, for example because a build
    /// broke, that counts as one failure.
    fn conclude(&mut self, name: &str, ended: Ended) {
        let Ended { mut tally, reasons, status } = ended;
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
        self.note(name, result.map_err(|error| anyhow!("{error:#}{}", reasons.text())));
    }

    fn announce(&self, name: &str) {
        println!("\n== {}: {name}", self.suite);
    }

    fn note(&mut self, name: &str, result: Result<()>) {
        if let Err(error) = result {
            let error = format!("{error:#}");
            println!("failed: {}: {name}: {error}", self.suite);
            self.missing.extend(missing_packages(&error).map(str::to_owned));
            self.failures.push(format!("{name}: {}", shortened(&error)));
        }
    }
}

/// A test program as cargo starts it, with a launcher if there is one. It prints the times of its
/// tests.
fn test_program(program: &Program, launcher: &[&str]) -> Command {
    let mut command = match launcher {
        [] => Command::new(&program.path),
        [launcher, arguments @ ..] => {
            let mut command = Command::new(launcher);
            command.args(arguments).arg(&program.path);
            command
        }
    };
    command.args(["-Zunstable-options", "--report-time"]).current_dir(&program.folder);
    // The second variable lets the stable harness print times.
    command.env("CARGO_MANIFEST_DIR", &program.folder).env(programs::UNSTABLE_HARNESS, "1");
    command
}

/// The variables of every test program in Rust: the required kernels must run, and more tests at
/// once than there are processors.
fn set_up(command: &mut Command, required_kernels: &str) {
    command.env(REQUIRE_KERNELS, required_kernels);
    if env::var_os(TEST_THREADS).is_none() {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        command.env(TEST_THREADS, (2 * processors).to_string());
    }
}

fn succeeded(status: ExitStatus) -> Result<()> {
    if status.success() { Ok(()) } else { Err(anyhow!("{status}")) }
}
