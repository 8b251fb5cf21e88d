//! `cargo xtask test`: the suites, and how one runs.

mod go;
mod js;
mod lanes;
mod miri;
mod page;
mod programs;
mod runner;
mod rust;
mod server_page;
mod tidy;

use std::{io::Write as _, process::ExitCode, time::Instant};

use anyhow::Result;
use clap::ValueEnum;

use self::runner::Runner;
use crate::{
    context::Context,
    summary::{SuiteResult, summary},
};

/// What `cargo xtask test` takes.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask test\n  cargo xtask test tidy rust\n\n\
    xtask installs the tools that a suite needs. If it cannot install one, it names it in one line, and the suite fails.\n\n\
    Exit status: 0 every test passed, 1 a test failed or a suite did not run.")]
pub(crate) struct Args {
    /// The suites to run, in this order [default: all]
    #[arg(value_name = "SUITE")]
    suites: Vec<Suite>,
}

/// One suite. The order here is the order in which all of them run: the quick ones that often fail come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// Formatting, lints, documentation, licences, style, and the builds without std
    Tidy,
    /// The libraries and xtask itself
    Rust,
    /// The generic unsafe code, under Miri
    Miri,
    /// The keystore
    Kms,
    /// The command `bulla`
    Cli,
    /// The key management service, over HTTP and in a browser
    Server,
    /// The audit of binaries, compared with objdump
    Audit,
    /// The laboratory's own tests
    Lab,
    /// The laboratory's page, in a browser
    Page,
    /// BLAKE3 for Go
    Go,
    /// BLAKE3 for JavaScript
    Js,
    /// Other processors, emulated
    Lanes,
}

impl Suite {
    const fn name(self) -> &'static str {
        match self {
            Self::Tidy => "tidy",
            Self::Rust => "rust",
            Self::Miri => "miri",
            Self::Kms => "kms",
            Self::Cli => "cli",
            Self::Server => "server",
            Self::Audit => "audit",
            Self::Lab => "lab",
            Self::Page => "page",
            Self::Go => "go",
            Self::Js => "js",
            Self::Lanes => "lanes",
        }
    }

    fn steps(self, runner: &mut Runner<'_>) {
        match self {
            Self::Tidy => tidy::run(runner),
            Self::Rust => rust::libraries(runner),
            Self::Miri => miri::run(runner),
            Self::Kms => rust::kms(runner),
            Self::Cli => rust::cli(runner),
            Self::Server => {
                rust::server(runner);
                server_page::run(runner);
            }
            Self::Audit => rust::audit(runner),
            Self::Lab => rust::lab(runner),
            Self::Page => page::run(runner),
            Self::Go => go::run(runner),
            Self::Js => js::run(runner),
            Self::Lanes => lanes::run(runner),
        }
    }
}

/// Runs the suites, with `command_line` as what this program takes, prints the table, and says by the exit status whether all is well.
pub(crate) fn run(args: &Args, command_line: &clap::Command) -> Result<ExitCode> {
    let context = Context::find()?;
    let suites = if args.suites.is_empty() { Suite::value_variants() } else { &args.suites };
    let results: Vec<_> = suites.iter().map(|suite| run_suite(&context, command_line, *suite)).collect();
    println!("\n{}", summary(&results));
    std::io::stdout().flush()?;
    let failed = results.iter().any(|result| result.tally.failed > 0);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_suite(context: &Context, command_line: &clap::Command, suite: Suite) -> SuiteResult {
    let start = Instant::now();
    let mut runner = Runner::new(context, command_line, suite.name());
    suite.steps(&mut runner);
    runner.finish(start.elapsed())
}
