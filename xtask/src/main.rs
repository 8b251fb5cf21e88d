//! The developer's commands: `cargo xtask test`, `bench`, `gate`, `report`, `dashboard`, `lanes`,
//! `fuzz`, `rounds`, `install-c`, `dist`, `mutants`, `advisories`, `site`.
#![forbid(unsafe_code)]

mod advisories;
mod audit_matrix;
mod bench;
mod build_variants;
mod context;
mod count;
mod dashboard;
mod dist;
mod documents;
mod flame;
mod fuzz;
mod gate;
mod install;
mod install_c;
mod lanes;
mod model;
mod mutants;
mod process;
mod program;
mod reasons;
mod report;
mod rounds;
mod seeds;
mod site;
mod slowest;
mod style;
mod suites;
mod summary;
mod wine;

use std::process::ExitCode;

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
    Bench(bench::Args),
    /// Check that ours is as fast as lab/limits.toml demands
    Gate(gate::Args),
    /// Show this machine's lane (class of machines), and check that it has the kernels of its lane
    Lanes(lanes::Args),
    /// Report where ours is slower, by lane and size, from the runs in lab/runs
    Report(report::Args),
    /// Build the laboratory's page from the runs in lab/runs
    Dashboard(dashboard::Args),
    /// Draw a flame graph of one case (needs perf)
    Flame(flame::Args),
    /// Build a small program with many flags, and audit its kernel in each build
    AuditMatrix(audit_matrix::Args),
    /// Run the fuzz targets (needs a nightly toolchain, which it installs)
    Fuzz(fuzz::Args),
    /// Write the assembly of BLAKE3's rounds
    Rounds(rounds::Args),
    /// Build and install the C libraries
    InstallC(install_c::Args),
    /// Build and check what a release consists of; publishes nothing
    Dist(dist::Args),
    /// Change predicates, parsers, proofs and policies, one operation at a time, and check that
    /// tests notice
    Mutants(mutants::Args),
    /// Ask the database of RustSec about every dependency
    Advisories(advisories::Args),
    /// Build the documents as one folder of pages
    Site(site::Args),
}

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Test(args) => suites::run(&args, &Args::command()),
        Command::Style => style::run(),
        Command::Bench(args) => bench::run(&args),
        Command::Gate(args) => gate::run(&args),
        Command::Lanes(args) => lanes::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Dashboard(args) => dashboard::run(&args),
        Command::Flame(args) => flame::run(&args),
        Command::AuditMatrix(args) => audit_matrix::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Rounds(args) => rounds::run(&args),
        Command::InstallC(args) => install_c::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::Mutants(args) => mutants::run(&args),
        Command::Advisories(args) => advisories::run(&args),
        Command::Site(args) => site::run(&args),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}
