//! The developer's commands: `cargo xtask test`, `style`, `fuzz`, `mutants`, `install-c`, `site`,
//! `advisories`, `dist`. Those of the laboratory (`bench`, `gate`, `report`, ...) are in
//! `crates/bench`.
#![forbid(unsafe_code)]

mod count;
mod dependencies;
mod documents;
mod forward;
mod fuzz;
mod mutants;
mod program;
mod reasons;
mod style;
mod suites;
mod summary;

use std::process::ExitCode;

use bulla_devtools::c_libraries;
use clap::{CommandFactory as _, Parser, Subcommand};

/// The developer's commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every test in every language, or only the named suites
    Test(suites::Args),
    /// Check the rules of our style only, in a second
    Style,
    /// Benchmark our implementations against the best peers
    #[command(disable_help_flag = true)]
    Bench(forward::Args),
    /// Check that ours is as fast as lab/limits.toml demands
    #[command(disable_help_flag = true)]
    Gate(forward::Args),
    /// Show this machine's lane (class of machines), and check that it has the kernels of its lane
    #[command(disable_help_flag = true)]
    Lanes(forward::Args),
    /// Report where ours is slower, by lane and size, from the runs in lab/runs
    #[command(disable_help_flag = true)]
    Report(forward::Args),
    /// Build the laboratory's page from the runs in lab/runs
    #[command(disable_help_flag = true)]
    Dashboard(forward::Args),
    /// Draw a flame graph of one case (needs perf)
    #[command(disable_help_flag = true)]
    Flame(forward::Args),
    /// Build a small program with many flags, and audit its kernel in each build
    #[command(disable_help_flag = true)]
    AuditMatrix(forward::Args),
    /// Run the fuzz targets (needs a nightly toolchain, which it installs)
    Fuzz(fuzz::Args),
    /// Build and install the C libraries
    InstallC(c_libraries::InstallArgs),
    /// Build and check what a release consists of; publishes nothing
    #[command(disable_help_flag = true)]
    Dist(forward::Args),
    /// Change predicates, parsers, proofs and policies, one operation at a time, and check that
    /// tests notice
    Mutants(mutants::Args),
    /// Ask the database of RustSec about every dependency
    Advisories(dependencies::AdvisoriesArgs),
    /// Build the documents as one folder of pages
    #[command(disable_help_flag = true)]
    Site(forward::Args),
}

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Test(args) => suites::run(&args, &Args::command()),
        Command::Style => style::run(),
        Command::Bench(args) => forward::run("bench", &args),
        Command::Gate(args) => forward::run("gate", &args),
        Command::Lanes(args) => forward::run("lanes", &args),
        Command::Report(args) => forward::run("report", &args),
        Command::Dashboard(args) => forward::run("dashboard", &args),
        Command::Flame(args) => forward::run("flame", &args),
        Command::AuditMatrix(args) => forward::run("audit-matrix", &args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::InstallC(args) => c_libraries::run(&args),
        Command::Dist(args) => forward::run("dist", &args),
        Command::Mutants(args) => mutants::run(&args),
        Command::Advisories(args) => dependencies::advisories(&args),
        Command::Site(args) => forward::run("site", &args),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}
