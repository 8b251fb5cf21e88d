//! `cargo xtask test`: the suites, and how one runs.

mod background;
mod c;
mod go;
mod js;
mod kernels;
mod lanes;
mod page;
mod plan;
mod programs;
mod python;
mod runner;
mod rust;
mod server;
mod server_described;
mod server_ops;
mod serving;
mod suite;
mod tidy;

use std::{
    collections::BTreeSet,
    env,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, Result};
use bulla_devtools::{Context, packages::PackageSystem};
use clap::ValueEnum as _;

use self::{
    kernels::{EVERY_KERNEL, REQUIRE_KERNELS},
    runner::Runner,
    suite::Suite,
};
use crate::{
    forward::{self, BENCH, Built, DIST, SITE},
    summary::{SuiteResult, summary},
};

/// What `cargo xtask test` takes.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask test\n  cargo xtask test tidy rust\n  cargo xtask test --require-kernels rust windows\n\n\
    Some suites run in the background. What they print is shown when they have ended, and is in target/background/SUITE.txt until then.\n\
    xtask installs the tools that a suite needs. If it cannot install one, it names it in one line, and the suite fails.\n\n\
    Exit status: 0 every test passed, 1 a test failed or a suite did not run."
)]
pub(crate) struct Args {
    /// The suites to run, in this order [default: all]
    #[arg(value_name = "SUITE")]
    suites: Vec<Suite>,
    /// Fail if this processor cannot run every kernel of its architecture
    #[arg(long)]
    require_kernels: bool,
    /// Write the result of the one suite to this file, and print no table
    #[arg(long, value_name = "FILE", hide = true, requires = "suites")]
    report: Option<PathBuf>,
}

/// The variable that names the folder of the programs that have commands of xtask, for a suite in a
/// process of its own.
const BUILT: &str = "BULLA_XTASK_BUILT";

/// Runs the suites and prints the table. The exit status says whether all tests passed.
/// `command_line` describes this program's arguments.
pub(crate) fn run(args: &Args, command_line: &clap::Command) -> Result<ExitCode> {
    let context = Context::find()?;
    let required = match env::var(REQUIRE_KERNELS) {
        // A suite in the background finds the value in the environment.
        _ if args.require_kernels => EVERY_KERNEL.to_owned(),
        Ok(required) => required,
        Err(_) => kernels::of_lane()?,
    };
    let built = match env::var_os(BUILT) {
        Some(folder) => Built { folder: folder.into() },
        None => forward::build(&context, &[BENCH, DIST, SITE])?,
    };
    let here = |suite: Suite| {
        let mut runner = Runner::new(&context, command_line, &built, suite.name(), &required);
        let start = Instant::now();
        suite.steps(&mut runner);
        runner.finish(start.elapsed())
    };
    if let (Some(report), [suite]) = (&args.report, &args.suites[..]) {
        let result = here(*suite);
        background::leave(&context, report, &result)?;
        return Ok(status(&[result]));
    }
    let program = env::current_exe().context("cannot find this program")?;
    let target = context.target.clone();
    let background = |suite| background::run(&program, &built, &target, suite, &required);
    let possible: Vec<_> =
        Suite::value_variants().iter().copied().filter(|suite| suite.obstacle().is_none()).collect();
    let suites = if args.suites.is_empty() { &possible } else { &args.suites };
    let results = plan::run(suites, here, background, &mut io::stdout());
    let untested = results.iter().flat_map(|result| result.untested.iter().cloned()).collect();
    let obstacles = if args.suites.is_empty() { obstacles() } else { String::new() };
    let untested = kernels::report(&untested, lanes::emulated_processor);
    println!("\n{untested}{obstacles}{}", summary(&results, &set_up(&results)));
    io::stdout().flush()?;
    Ok(status(&results))
}

/// The suites that this kind of processor cannot run, one line each.
fn obstacles() -> String {
    let line = |suite: &Suite| Some(format!("not run here: {}: {}\n", suite.name(), suite.obstacle()?));
    Suite::value_variants().iter().filter_map(line).collect()
}

/// What to type where packages are missing and this program may not install them.
fn set_up(results: &[SuiteResult]) -> String {
    let missing: BTreeSet<_> = results.iter().flat_map(|result| result.missing.iter().cloned()).collect();
    match missing.is_empty() {
        true => String::new(),
        false => format!(
            "packages are missing; to install them, type:\n  {}\n",
            PackageSystem::of_this_machine().command(&missing)
        ),
    }
}

fn status(results: &[SuiteResult]) -> ExitCode {
    let failed = results.iter().any(|result| result.tally.failed > 0);
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
