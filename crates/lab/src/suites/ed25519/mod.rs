//! Ed25519: ours compared with the crates that programs use, built as any program builds them. A
//! separate program has the same cases with all peers built only for this machine, and with two
//! more peers that require that: `crates/lab/ed25519-native`.

mod peers;

use anyhow::{Context as _, Result};
use bulla_ed25519::{
    InvalidReason, KeyCache, PrecomputedTables, SignItem, Signer as _, SigningKey, Verdict, VerifyItem,
    kernel,
};

use super::suite::{Active, Case, Make, Peer, Suite, THREADS};
use crate::measure::{Input, Op, Subject};

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
    Case {
        id: format!("{group}/{count}"),
        bytes: count * MESSAGE,
        input: 0,
        part: None,
        threads: 1,
        ours,
        peers,
    }
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
        .map(|count| Case {
            threads: THREADS,
            ..case("strict", count, parallel(count), peers::of(Group::Parallel, count))
        })
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
        let keys: &'static [SigningKey] =
            Vec::leak(signed.seeds.iter().map(SigningKey::from_bytes).collect());
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

/// The operation of a group's cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// One strict verdict for each signature.
    Strict,
    /// The same under keys that are already decoded or prepared.
    Prepared,
    /// Batches, most of which have one verdict for all.
    Cofactored,
    /// Signatures.
    Sign,
    /// Strict verdicts by all threads.
    Parallel,
}

/// The length of a message in bytes.
pub(super) const MESSAGE: usize = 128;

/// Signatures under different keys. Each message begins with a zero byte, so that peers that put
/// the length of an empty name before messages sign the same bytes.
pub struct Signed {
    /// The seeds of the keys.
    pub seeds: Vec<[u8; 32]>,
    /// The public keys.
    pub public_keys: Vec<[u8; 32]>,
    /// The messages.
    pub messages: Vec<[u8; MESSAGE]>,
    /// The signatures.
    pub signatures: Vec<[u8; 64]>,
}

impl Signed {
    /// `count` signatures, always the same.
    pub fn new(count: usize) -> &'static Self {
        let mut random = fastrand::Rng::with_seed(1);
        let mut signed = Self { seeds: vec![], public_keys: vec![], messages: vec![], signatures: vec![] };
        for _ in 0..count {
            let (mut seed, mut message) = ([0; 32], [0; MESSAGE]);
            random.fill(&mut seed);
            random.fill(&mut message[1..]);
            let key = SigningKey::from_bytes(&seed);
            signed.seeds.push(seed);
            signed.public_keys.push(key.verifying_key().to_bytes());
            signed.signatures.push(key.sign(&message).to_bytes());
            signed.messages.push(message);
        }
        Box::leak(Box::new(signed))
    }

    /// The items to verify.
    pub fn items(&self) -> Vec<VerifyItem<'_>> {
        let parts = self.public_keys.iter().zip(&self.messages).zip(&self.signatures);
        parts
            .map(|((public_key, message), signature)| VerifyItem { public_key, message, signature })
            .collect()
    }
}

/// An operation that leaves one verdict for each of `count` signatures.
pub fn verifies(count: usize, mut run: impl FnMut(&mut [bool]) + 'static) -> Box<dyn Subject> {
    Box::new(Op {
        result: vec![false; count],
        run: move |_: &Input<'_>, out: &mut Vec<bool>| run(out),
        bytes: |out: &Vec<bool>| out.iter().map(|valid| u8::from(*valid)).collect(),
    })
}

/// An operation that leaves `count` signatures.
pub fn signs(count: usize, mut run: impl FnMut(&mut [[u8; 64]]) + 'static) -> Box<dyn Subject> {
    Box::new(Op {
        result: vec![[0; 64]; count],
        run: move |_: &Input<'_>, out: &mut Vec<[u8; 64]>| run(out),
        bytes: |out: &Vec<[u8; 64]>| out.concat(),
    })
}
