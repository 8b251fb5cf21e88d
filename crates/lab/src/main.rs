//! The laboratory's program: `cargo xtask bench` builds it and launches it several times.
#![forbid(unsafe_code)]

use std::io::{self, BufRead as _, Write as _};

use anyhow::{Context as _, Result};
use bulla_lab::{
    measure::Plan,
    record::Record,
    suites::{self, Filter, Suite},
    summary,
};
use clap::{Parser, Subcommand};

/// Measures ours against the best peers. Started by `cargo xtask bench`.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a suite once and print a record for each case, one JSON object a line
    Measure {
        /// The suite
        suite: String,
        /// The number of this launch
        #[arg(long, default_value_t = 1)]
        launch: u32,
        /// Only cases of these many bytes
        #[arg(long, value_delimiter = ',')]
        sizes: Vec<usize>,
        /// Only cases whose names begin so
        #[arg(long, value_delimiter = ',')]
        cases: Vec<String>,
    },
    /// List the kernels that this machine can run
    Kernels {
        /// The suite
        suite: String,
    },
    /// Read records from standard input and print the tables
    Table,
}

/// Cases with threads use this many: what the smallest machine of ours has.
const THREADS: usize = 2;

fn main() -> Result<()> {
    match Args::parse().command {
        Command::Measure { suite, launch, sizes, cases } => {
            rayon::ThreadPoolBuilder::new().num_threads(THREADS).build_global()?;
            let filter = Filter { prefixes: cases, sizes };
            find(&suite)?.run(launch, &filter, &Plan::default(), |record| print(&record.line()?))
        }
        Command::Kernels { suite } => (find(&suite)?.kernels)().iter().try_for_each(|name| print(name)),
        Command::Table => {
            let mut records = Vec::new();
            for (number, line) in io::stdin().lock().lines().enumerate() {
                records.push(Record::parse(&line?).with_context(|| format!("line {}", number + 1))?);
            }
            print(summary::tables(&records).trim_end())
        }
    }
}

fn find(name: &str) -> Result<Suite> {
    let names: Vec<_> = suites::all().iter().map(|suite| suite.name).collect();
    let suite = suites::all().into_iter().find(|suite| suite.name == name);
    suite.with_context(|| format!("no suite {name}; there are: {}", names.join(", ")))
}

/// A line at once, so that the reader of a pipe can follow.
fn print(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
