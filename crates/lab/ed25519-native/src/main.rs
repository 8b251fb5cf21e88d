//! The cases of the suite `ed25519`, with every peer built only for this machine, and link-time
//! optimization of everything, as two more peers require. Ours is built as any program builds it:
//! see `rustc.sh`. `cargo xtask bench ed25519-native` starts it and reads its records
//! (`spec/bench-record.md`).
#![forbid(unsafe_code)]

mod peers;

use std::{
    env,
    io::{self, Write as _},
};

use anyhow::{Context as _, Result};
use bulla_lab::{
    measure::Plan,
    suites::{
        Case, Filter, Suite,
        ed25519::{self, active_kernel},
        version_in,
    },
};

/// A list from the environment; empty if it is not set.
fn list(variable: &str) -> Vec<String> {
    let text = env::var(variable).unwrap_or_default();
    text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The version of a peer, from this program's lock file. If there are several versions, the
/// laboratory depends on the right one.
fn version(package: &str) -> String {
    const LOCK: &str = include_str!("../Cargo.lock");
    version_in(LOCK, "bulla-lab", package).to_owned()
}

fn cases() -> Vec<Case> {
    let mut cases = ed25519::cases(peers::of);
    for peer in cases.iter_mut().flat_map(|case| &mut case.peers) {
        peer.version = version(peer.name);
    }
    cases
}

fn main() -> Result<()> {
    let launch =
        env::var("BULLA_BENCH_LAUNCH").map_or(Ok(1), |text| text.parse()).context("BULLA_BENCH_LAUNCH")?;
    let sizes = list("BULLA_BENCH_SIZES").iter().map(|text| text.parse()).collect::<Result<_, _>>();
    let filter = Filter {
        prefixes: list("BULLA_BENCH_CASES"),
        sizes: sizes.context("BULLA_BENCH_SIZES")?,
        slowed: None,
    };
    let suite = Suite { name: "ed25519-native", cases, active_kernel, kernels: Vec::new };
    suite.run(launch, &filter, &Plan::default(), |record| {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", record.line()?)?;
        Ok(out.flush()?)
    })
}
