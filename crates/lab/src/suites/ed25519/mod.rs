//! Ed25519: ours compared with the crates that programs use, built as any program builds them. A
//! separate program has the same cases with all peers built only for this machine, and with two
//! more peers that require that: `crates/lab/ed25519-native`.

mod peers;
mod work;

use anyhow::{Context as _, Result};
use bulla_ed25519::{InvalidReason, KeyCache, PrecomputedTables, SignItem, SigningKey, Verdict, kernel};

use self::work::MESSAGE;
pub use self::work::{Group, Signed, signs, verifies};
use super::suite::{Active, Case, Make, Peer, Suite};

/// The numbers of signatures at once.
const SIZES: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// The numbers of signatures at once for all threads.
const PARALLEL: [usize; 2] = [512, 4000];

/// One suite for a single thread, and one for all threads.
pub(super) fn suites() -> [Suite; 2] {
    [suite("ed25519", || cases(|_, _| Vec::new())), suite("ed25519-threads", threads)]
}

/// A suite with the kernels of Ed25519.
pub(super) fn suite(name: &'static str, cases: fn() -> Vec<Case>) -> Suite {
    let kernels = || kernel::available().map(|kernel| kernel.to_string()).collect();
    Suite { name, cases, active_kernel, kernels }
}

/// The kernel in use, for the suite and for the program of the peers built natively.
///
/// # Errors
/// The environment forces a kernel that this machine lacks.
pub fn active_kernel() -> Result<Active> {
    let forced = kernel::forced().with_context(|| kernel::FORCE_VARIABLE.to_owned())?;
    Ok(Active { name: kernel::active().to_string(), forced: forced.is_some() })
}

/// A case of `count` signatures.
pub(super) fn case(group: &str, count: usize, ours: Make, peers: Vec<Peer>) -> Case {
    Case { id: format!("{group}/{count}"), bytes: count * MESSAGE, input: 0, part: None, ours, peers }
}

type Ours = fn(usize) -> Make;

/// All cases of one thread, each with `more` peers in addition to those that any program can build.
pub fn cases(more: impl Fn(Group, usize) -> Vec<Peer>) -> Vec<Case> {
    let groups: [(&str, Group, Ours); 4] = [
        ("strict", Group::Strict, strict),
        ("prepared", Group::Prepared, prepared),
        ("cofactored", Group::Cofactored, cofactored),
        ("sign", Group::Sign, sign),
    ];
    let cases = groups.into_iter().flat_map(|(name, group, ours)| {
        let peers = |count| peers::of(group, count).into_iter().chain(more(group, count)).collect();
        SIZES.map(|count| case(name, count, ours(count), peers(count)))
    });
    cases.collect()
}

fn threads() -> Vec<Case> {
    PARALLEL
        .map(|count| case("strict", count, parallel(count), peers::of(Group::Parallel, count)))
        .into_iter()
        .collect()
}

/// Our strict verification.
fn strict(count: usize) -> Make {
    Box::new(move || {
        let items = Signed::new(count).items();
        let mut verdicts = vec![Verdict::Invalid(InvalidReason::Mismatch); count];
        verifies(count, move |out| {
            bulla_ed25519::verify_many_into(&items, &mut verdicts);
            for (out, verdict) in out.iter_mut().zip(&verdicts) {
                *out = verdict.is_valid();
            }
        })
    })
}

/// Our strict verification under prepared keys, with the best tables for frequent use of this many
/// keys.
fn prepared(count: usize) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        let items = signed.items();
        let mut keys = KeyCache::new(&signed.public_keys, PrecomputedTables::for_use(count, usize::MAX));
        verifies(count, move |out| {
            for (out, verdict) in out.iter_mut().zip(keys.verify_many(&items)) {
                *out = verdict.is_valid();
            }
        })
    })
}

/// Our batch under the cofactored predicate.
fn cofactored(count: usize) -> Make {
    Box::new(move || {
        let items = Signed::new(count).items();
        verifies(count, move |out| {
            for (out, verdict) in out.iter_mut().zip(bulla_ed25519::cofactored::verify_many(&items)) {
                *out = verdict.is_valid();
            }
        })
    })
}

/// Our signatures.
fn sign(count: usize) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        let keys: &'static [SigningKey] = Vec::leak(signed.seeds.iter().map(SigningKey::from_seed).collect());
        let items: Vec<_> =
            keys.iter().zip(&signed.messages).map(|(key, message)| SignItem { key, message }).collect();
        signs(count, move |out| bulla_ed25519::sign_many_into(&items, out))
    })
}

/// Our strict verification by all threads.
fn parallel(count: usize) -> Make {
    Box::new(move || {
        let items = Signed::new(count).items();
        let mut verdicts = vec![Verdict::Invalid(InvalidReason::Mismatch); count];
        verifies(count, move |out| {
            bulla_ed25519::verify_many_parallel_into(&items, &mut verdicts);
            for (out, verdict) in out.iter_mut().zip(&verdicts) {
                *out = verdict.is_valid();
            }
        })
    })
}
