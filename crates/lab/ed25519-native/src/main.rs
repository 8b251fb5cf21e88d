//! The cases of the suite `ed25519`, with every peer built only for this machine, and link-time
//! optimization of everything, as two more peers require. Ours is built as any program builds it:
//! see `rustc.sh`. `cargo xtask bench ed25519-native` starts it and reads its records
//! (`spec/bench-record.md`).
#![forbid(unsafe_code)]

use std::{
    env,
    io::{self, Write as _},
};

use anyhow::{Context as _, Result};
use bulla_lab::{
    measure::Plan,
    suites::{
        Case, Filter, Make, Peer, Suite,
        ed25519::{self, Group, Signed, active_kernel, verifies},
        version_in,
    },
};
use commonware_codec::{Copying, DecodeExt as _};
use commonware_cryptography::{BatchEntry, BatchVerifier as _};
use commonware_cryptography_curve25519::signing;
use commonware_parallel::Sequential;
use ed25519_simd::{DalekVerifier, VerifyInput};

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
    let mut cases = ed25519::cases(native_peers);
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
        ..Filter::default()
    };
    let suite = Suite { name: "ed25519-native", cases, active_kernel, kernels: Vec::new };
    suite.run(launch, &filter, &Plan::default(), |record| {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", record.line()?)?;
        Ok(out.flush()?)
    })
}

/// The peers that can do the work of a group. They require a build for one machine: they have code
/// only for AVX-512 IFMA, chosen when they are compiled.
fn native_peers(group: Group, count: usize) -> Vec<Peer> {
    let peer = |name, make| Peer { name, version: String::new(), isa_limit: "", make };
    let simd = || peer("ed25519-simd", simd(count));
    let commonware = || peer("commonware-cryptography-curve25519", commonware(count));
    match group {
        Group::Strict | Group::Prepared => vec![simd(), commonware()],
        Group::Cofactored => vec![commonware()],
        Group::Sign | Group::Parallel => vec![],
    }
}

fn simd(count: usize) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        let mut verifier = DalekVerifier::new();
        let inputs: Vec<_> = (0..count)
            .map(|i| VerifyInput {
                public_key: signed.public_keys[i],
                signature: signed.signatures[i],
                message: &signed.messages[i],
            })
            .collect();
        verifies(count, move |out| verifier.verify_batch(&inputs, out))
    })
}

/// Its batch, with one verdict for all. Its messages begin with the length of an empty name, a zero
/// byte, like all messages here.
fn commonware(count: usize) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        let items: Vec<_> = (0..count)
            .map(|i| {
                let key = signing::VerifyingKey::decode(Copying(&signed.public_keys[i])).expect("a key");
                let signature =
                    signing::Signature::decode(Copying(&signed.signatures[i])).expect("a signature");
                (key, signature, &signed.messages[i][1..])
            })
            .collect();
        verifies(count, move |out| {
            let valid = signing::VerifyingKey::verify_batch(
                &mut rand::rng(),
                &items,
                |_, (public_key, signature, message)| BatchEntry {
                    namespace: b"",
                    message,
                    public_key,
                    signature,
                },
                &Sequential,
            );
            out.fill(valid);
        })
    })
}
