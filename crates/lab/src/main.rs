//! The laboratory's program: `cargo xtask bench` builds it and launches it several times.
#![forbid(unsafe_code)]

use std::{
    env,
    io::{self, Write as _},
    path::PathBuf,
    process,
    time::Duration,
};

use anyhow::{Result, ensure};
use bulla_lab::{
    code::{
        budget,
        image::{self, Image, Units},
        kernels, secrets,
    },
    measure::Plan,
    suites::{self, Filter, THREAD_SCALING, THREADS},
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
    ///
    /// The suite thread-scaling runs once for each number of threads, in a process of its own: the
    /// pool of a process has one size.
    Measure {
        /// The suite
        suite: String,
        /// The number of this launch
        #[arg(long, default_value_t = 1)]
        launch: u32,
        /// Only cases of these many bytes
        #[arg(long, value_delimiter = ',')]
        sizes: Vec<usize>,
        /// Only cases whose names begin so; after an equals sign, whose names are so
        #[arg(long, value_delimiter = ',')]
        cases: Vec<String>,
        /// Only cases with this many threads, in a pool of as many [default: all numbers, each in a
        /// process of its own]
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
        threads: Option<u16>,
        /// Make ours slower on purpose, by so many percent, in the cases of --slow-cases
        #[arg(long, requires = "slow_cases", value_parser = clap::value_parser!(u32).range(1..=100))]
        slow_down: Option<u32>,
        /// Seconds that a case may wait until the core is our own
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..=60))]
        patience: Option<u64>,
        /// The cases to slow down, by their whole names
        #[arg(long, requires = "slow_down", value_delimiter = ',')]
        slow_cases: Vec<String>,
    },
    /// List the kernels that this machine can run
    Kernels {
        /// The suite
        suite: String,
    },
    /// Print which shape of the kernel in use serves which operation at which size
    Dispatch,
    /// Print what the machine code of the kernels for x86-64 consists of
    #[command(after_help = KERNELS_CODE_HELP)]
    KernelsCode {
        /// An ELF executable with symbols, an object file or a library; none means fresh builds of
        /// the libraries
        #[arg(conflicts_with = "record")]
        file: Option<PathBuf>,
        /// Write lab/kernels.toml anew, which the tests compare the fresh build with
        #[arg(long)]
        record: bool,
    },
    /// Read the machine code of the Ed25519 steps that see secrets: no branch and no address may
    /// depend on one
    SecretsCode {
        /// An ELF executable with symbols, an object file or a library; none means a fresh build of
        /// the library
        file: Option<PathBuf>,
    },
}

/// Prints the counts of each step. It is an error if a secret could choose a branch or an address.
fn secrets_code(file: Option<PathBuf>) -> Result<()> {
    let file = file.map_or_else(|| image::library("bulla-ed25519", Units::Default), Ok)?;
    let steps = secrets::find(&Image::read(&file)?)?;
    for step in &steps {
        let (instructions, branches) = (step.instructions, step.branches);
        print(&format!("{:<16} {instructions:>6} instructions {branches:>4} branches", step.name))?;
    }
    let faults: Vec<_> = steps.into_iter().flat_map(|step| step.faults).collect();
    ensure!(faults.is_empty(), "a secret could choose a branch or an address:\n  {}", faults.join("\n  "));
    print("no branch and no address depends on a secret")
}

const KERNELS_CODE_HELP: &str = "Stores and loads are those of vector registers to and from the stack; zmm, ymm and xmm \
    count instructions by their widest register.\n\nExamples:\n  bulla-lab kernels-code\n  \
    bulla-lab kernels-code target/release/bulla\n  bulla-lab kernels-code --record";

fn main() -> Result<()> {
    match Args::parse().command {
        Command::Measure { suite, launch, sizes, cases, threads, slow_down, patience, slow_cases } => {
            let threads = threads.map(usize::from);
            let slowed = slow_down.map(|percent| (percent, slow_cases));
            let filter = Filter { prefixes: cases, sizes, threads, slowed };
            if suite == THREAD_SCALING && threads.is_none() {
                return measure_each_count(&filter);
            }
            rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(THREADS)).build_global()?;
            let mut plan = Plan::default();
            if let Some(seconds) = patience {
                plan.patience = Duration::from_secs(seconds);
            }
            suites::find(&suite)?.run(launch, &filter, &plan, |record| print(&record.line()?))
        }
        Command::Kernels { suite } => {
            (suites::find(&suite)?.kernels)().iter().try_for_each(|name| print(name))
        }
        Command::Dispatch => print(&bulla_blake3::kernel::report().to_string()),
        Command::SecretsCode { file } => secrets_code(file),
        Command::KernelsCode { file, record } => {
            let files = match file {
                Some(file) => vec![file],
                None => image::libraries(Units::Default)?,
            };
            let mut found = Vec::new();
            for file in files {
                found.extend(kernels::find(&Image::read(&file)?)?);
            }
            if record {
                budget::record(&found)?;
            }
            print(kernels::table(&found).trim_end())
        }
    }
}

/// Measures each number of threads in a process of its own, which prints its records.
fn measure_each_count(filter: &Filter) -> Result<()> {
    let mut measured = false;
    for threads in suites::find(THREAD_SCALING)?.thread_counts(filter) {
        let mut command = process::Command::new(env::current_exe()?);
        let status = command.args(env::args_os().skip(1)).arg(format!("--threads={threads}")).status()?;
        ensure!(status.success(), "the process with {threads} threads failed: {status}");
        measured = true;
    }
    ensure!(measured, "no case of the suite {THREAD_SCALING} fits the filter");
    Ok(())
}

/// A line at once, so that the reader of a pipe can follow.
fn print(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
