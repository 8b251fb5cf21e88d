//! `cargo xtask bench`: launches a suite's harness several times, completes its records, and prints
//! the tables.

pub(crate) mod builds;
pub(crate) mod files_tree;
pub(crate) mod harness;
pub(crate) mod run;
pub(crate) mod service;
pub(crate) mod suites;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use bulla_devtools::{Context, Echo};
use bulla_record::{compare::comparisons, report::case_tables};

use self::{
    harness::{Kernel, Selection},
    run::Run,
    suites::Suite,
};

/// How often a suite's harness is launched.
const LAUNCHES: u32 = 5;

/// The arguments of `cargo xtask bench`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask bench blake3\n  \
    cargo xtask bench oneshot --cases hash/64,keyed --launches 9\n  \
    cargo xtask bench oneshot --kernel x86_64/avx2 --sizes 64,1024\n  \
    cargo xtask bench oneshot --all-kernels --json > run.jsonl\n  \
    cargo xtask bench go --record\n  cargo xtask bench blake2-builds\n  cargo xtask bench files-tree --cases small,start\n\n\
    blake2-builds compares no peers: it builds BLAKE2 with many flags and prints how much slower than the best each build is. \
    files-tree measures the command `bulla sum` beside b3sum and sha256sum, on files of 11 bytes to 4 GiB: its cases are small, medium, large, cold, start and sign, and it takes --cases and --launches. \
    service measures the key management service on one processor with the load from another. \
    service-cluster measures nodes that share a keystore in etcd, and says by a model what many nodes would do. \
    The others take no option except --launches. \
    service-soak measures the service's memory under load, and its start with many keys; it takes half an hour and no option. \
    service-cluster-keys measures nodes over a million keys in etcd; it takes minutes, and no option. \
    service-vault sends the requests of Vault's clients to the service and to OpenBao, each on the same processor; it takes --launches.\n\n\
    A ratio is peer/ours: above 1, ours is faster. A forced kernel is compared with a peer that is restricted to the same instruction set. \
    Measure on an otherwise idle machine. spec/bench-record.md describes the records.\n\n\
    Exit status: 0 measured, 1 with blake2-builds: a build is more than 2 % slower than the best, 2 not measured.")]
pub(crate) struct Args {
    /// The suite to measure; `blake3` means all suites that measure BLAKE3 in Rust
    #[arg(value_parser = [suites::names(), vec![builds::NAME, files_tree::NAME, service::NAME, service::cluster::NAME, service::cluster::keys::NAME, service::soak::NAME, service::vault::NAME]].concat())]
    suite: String,
    /// Force one of our kernels, for example x86_64/avx2; `all` measures the default and then each
    /// kernel
    #[arg(long, value_name = "NAME|all")]
    kernel: Option<String>,
    /// The same as --kernel all
    #[arg(long, conflicts_with = "kernel")]
    all_kernels: bool,
    /// Only cases of these sizes in bytes
    #[arg(long, value_delimiter = ',', value_name = "BYTES,...")]
    sizes: Vec<u64>,
    /// Only cases whose names begin with PREFIX; with an equals sign before it, only the case of
    /// exactly that name
    #[arg(long, value_delimiter = ',', value_name = "PREFIX,...")]
    cases: Vec<String>,
    /// The number of launches of the harness [default: 5; for blake2-builds 41 short ones, for
    /// files-tree 11]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    launches: Option<u32>,
    /// Print the records as JSON Lines instead of the tables
    #[arg(long)]
    json: bool,
    /// Keep the run in lab/runs, one file for each suite, without raw samples
    #[arg(long)]
    record: bool,
    /// With --record: also write the raw samples to the build folder, target/bench-samples
    #[arg(long, requires = "record")]
    samples: bool,
}

/// A measurement that is no suite of cases in records. It takes the number of launches, if one was
/// given.
type Measurement = fn(&Context, Option<u32>) -> Result<ExitCode>;

fn without_peers(suite: &str) -> Option<Measurement> {
    match suite {
        builds::NAME => Some(|context, launches| builds::run(context, launches.unwrap_or(builds::LAUNCHES))),
        service::NAME => Some(|context, launches| service::run(context, launches.unwrap_or(LAUNCHES))),
        service::cluster::NAME => {
            Some(|context, launches| service::cluster::run(context, launches.unwrap_or(1)))
        }
        service::cluster::keys::NAME => Some(|context, launches| {
            ensure!(launches.is_none(), "{} takes no option", service::cluster::keys::NAME);
            service::cluster::keys::run(context)
        }),
        service::vault::NAME => {
            Some(|context, launches| service::vault::run(context, launches.unwrap_or(LAUNCHES)))
        }
        service::soak::NAME => Some(|context, launches| {
            ensure!(launches.is_none(), "{} takes no option", service::soak::NAME);
            service::soak::run(context)
        }),
        _ => None,
    }
}

/// Measures, prints, records.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let context = Context::find()?;
    let only_launches = args.kernel.is_none() && !(args.all_kernels || args.json || args.record);
    if args.suite == files_tree::NAME {
        ensure!(
            only_launches && args.sizes.is_empty(),
            "{} takes --cases, --launches and no other option",
            args.suite
        );
        let launches = args.launches.unwrap_or(files_tree::LAUNCHES);
        return files_tree::run(&context, launches, &args.cases);
    }
    if let Some(without_peers) = without_peers(&args.suite) {
        ensure!(
            only_launches && args.sizes.is_empty() && args.cases.is_empty(),
            "{} takes --launches and no other option",
            args.suite
        );
        return without_peers(&context, args.launches);
    }
    let selection = Selection { sizes: args.sizes.clone(), cases: args.cases.clone() };
    for suite in &suites::find(&args.suite) {
        let mut records = Vec::new();
        for kernel in kernels(&context, suite, args)? {
            let found = measure(&context, suite, &kernel, &selection, args)?;
            if !args.json {
                // Print each kernel's table as soon as it is known: the next kernel takes minutes.
                print!("{}", case_tables(&comparisons(&found)?));
            }
            records.extend(found);
        }
        if args.samples {
            let path = run::keep_samples(&context, suite.name, &records)?;
            eprintln!("xtask: raw samples in {}", path.display());
        }
        if args.record {
            let path = run::keep(&context, suite.name, records)?;
            eprintln!("xtask: recorded in {}", path.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Our kernels to measure, one after the other.
fn kernels(context: &Context, suite: &Suite, args: &Args) -> Result<Vec<Kernel>> {
    let all = args.all_kernels || args.kernel.as_deref() == Some("all");
    Ok(match &args.kernel {
        Some(name) if !all => vec![Kernel::Forced(name.clone())],
        _ if suite.is_by_kernel() => harness::laboratory_kernels(context, suite.name)?,
        _ if all => {
            [Kernel::Default].into_iter().chain(harness::laboratory_kernels(context, suite.name)?).collect()
        }
        _ => vec![Kernel::Default],
    })
}

/// All launches of one suite with one kernel.
fn measure(
    context: &Context,
    suite: &Suite,
    kernel: &Kernel,
    selection: &Selection,
    args: &Args,
) -> Result<Vec<bulla_record::record::Record>> {
    let harness = suite.prepare(context, kernel)?;
    let run = Run::begin(context)?;
    let echo = if args.json { Echo::Show } else { Echo::Hide };
    let mut records = Vec::new();
    let launches = args.launches.unwrap_or(LAUNCHES);
    for launch in 1..=launches {
        let progress = format!("{}{kernel}: launch {launch} of {launches}", suite.name);
        records.extend(run.launch(&harness, selection, launch, &progress, echo)?);
    }
    Ok(records)
}
