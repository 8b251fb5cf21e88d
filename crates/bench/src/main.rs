//! The laboratory's front end: `cargo xtask bench`, `gate`, `lanes`, `report`, `dashboard`, `flame`
//! and `audit-matrix` start this program. It builds the laboratory and the harnesses in other
//! languages, launches them, and compares and keeps their records.
#![forbid(unsafe_code)]

mod audit_matrix;
mod bench;
mod dashboard;
mod flame;
mod gate;
mod lanes;
mod model;
mod report;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use bulla_devtools::Context;
use clap::{Parser, Subcommand};

/// The laboratory.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
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
    /// What the test suites ask of the laboratory
    #[command(hide = true)]
    Check {
        #[command(subcommand)]
        check: Check,
    },
}

#[derive(Subcommand)]
enum Check {
    /// Every lane with a model can be modeled
    Models,
    /// The machine code of kernels for other machines keeps its rules
    Code,
    /// The README's table is that of the newest run
    ReadmeTable,
    /// A program is audited as expected in the builds that differ most
    AuditedBuilds {
        /// The command that audits
        bulla: PathBuf,
    },
}

impl Check {
    fn run(&self) -> Result<ExitCode> {
        let context = Context::find()?;
        match self {
            Self::Models => model::check(&context)?,
            Self::Code => model::rules::check(&context)?,
            Self::ReadmeTable => report::check_readme(&context)?,
            Self::AuditedBuilds { bulla } => audit_matrix::check(&context, bulla)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::Gate(args) => gate::run(&args),
        Command::Lanes(args) => lanes::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Dashboard(args) => dashboard::run(&args),
        Command::Flame(args) => flame::run(&args),
        Command::AuditMatrix(args) => audit_matrix::run(&args),
        Command::Check { check } => check.run(),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use bulla_record::lane;

    use super::*;

    #[test]
    fn flags_that_do_not_exist_are_refused() {
        let parse = |words: &str| Args::try_parse_from(words.split(' '));
        assert!(parse("xtask bench blake3 --launches 9").is_ok());
        assert!(parse("xtask bench blake3 --lunches 9").is_err());
    }

    /// The items of the first list after the line `key`.
    fn list(text: &str, key: &str) -> BTreeSet<String> {
        let after = text.lines().skip_while(|line| line.trim() != key).skip(1);
        let items = after.map(|line| line.trim().strip_prefix("- ")).skip_while(Option::is_none);
        items.map_while(|item| item.map(str::to_owned)).collect()
    }

    #[test]
    fn the_workflow_offers_every_lane_and_suite() {
        let root = Context::find().unwrap().root;
        let gate = fs::read_to_string(root.join(".github/workflows/gate.yml")).unwrap();
        let lanes = lane::all().unwrap().into_iter().map(|lane| lane.name).collect();
        assert_eq!(list(&gate, "lane:"), lanes);
        let suites = bench::suites::names().into_iter().map(str::to_owned).collect();
        assert_eq!(list(&gate, "suite:"), suites);
    }

    #[test]
    fn lists_are_read() {
        let text = "  lane:\n    about: c\n    options:\n      - a\n      - b\n  suite:\n      - c\n";
        assert_eq!(list(text, "lane:"), ["a", "b"].map(str::to_owned).into());
        assert_eq!(list(text, "suite:"), ["c".to_owned()].into());
    }
}
