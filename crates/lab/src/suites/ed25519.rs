//! Ed25519: ours beside `ed25519-dalek`, built as any program builds them. Peers that ask for a build for this machine alone stand beside ours
//! in a program of their own: `crates/lab/ed25519-native`.

use anyhow::{Context as _, Result};
use bulla_ed25519::{Item, Reason, SignItem, SigningKey, Verdict, kernel};
use ed25519_dalek::{Signature, Signer as _, VerifyingKey};

use super::{Active, Case, Make, Peer, Suite};
use crate::measure::{Input, Op, Subject};

/// How many signatures at once.
pub const SIZES: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// Bytes of a message.
const MESSAGE: usize = 128;

/// Signatures under keys that are all different, each of a message that begins with a zero byte: peers that put the length of an empty name
/// before messages then sign the same bytes.
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
    /// `count` of them, always the same.
    pub fn new(count: usize) -> &'static Self {
        let mut random = fastrand::Rng::with_seed(1);
        let mut signed = Self { seeds: vec![], public_keys: vec![], messages: vec![], signatures: vec![] };
        for _ in 0..count {
            let (mut seed, mut message) = ([0; 32], [0; MESSAGE]);
            random.fill(&mut seed);
            random.fill(&mut message[1..]);
            let key = SigningKey::from_seed(&seed);
            signed.seeds.push(seed);
            signed.public_keys.push(*key.public_key());
            signed.signatures.push(key.sign(&message));
            signed.messages.push(message);
        }
        Box::leak(Box::new(signed))
    }

    /// What we verify.
    pub fn items(&self) -> Vec<Item<'_>> {
        let parts = self.public_keys.iter().zip(&self.messages).zip(&self.signatures);
        parts.map(|((public_key, message), signature)| Item { public_key, message, signature }).collect()
    }
}

pub(super) fn suite() -> Suite {
    Suite {
        name: "ed25519",
        cases,
        active_kernel,
        kernels: || kernel::available().map(|kernel| kernel.to_string()).collect(),
    }
}

/// The kernel in use, for the suite and for the program of the peers built natively.
///
/// # Errors
/// The environment forces one that this machine lacks.
pub fn active_kernel() -> Result<Active> {
    let forced = kernel::forced().with_context(|| kernel::FORCE_VARIABLE.to_owned())?;
    Ok(Active { name: kernel::active().to_string(), forced: forced.is_some() })
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

/// A case of `count` signatures.
pub fn case(group: &str, count: usize, ours: Make, peers: Vec<Peer>) -> Case {
    Case { id: format!("{group}/{count}"), bytes: count * MESSAGE, input: 0, part: None, ours, peers }
}

/// Our strict verification.
pub fn ours_strict(count: usize) -> Make {
    Box::new(move || {
        let items = Signed::new(count).items();
        let mut verdicts = vec![Verdict::Invalid(Reason::Mismatch); count];
        verifies(count, move |out| {
            bulla_ed25519::verify_many_into(&items, &mut verdicts);
            for (out, verdict) in out.iter_mut().zip(&verdicts) {
                *out = verdict.is_valid();
            }
        })
    })
}

/// Our signatures.
pub fn ours_sign(count: usize) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        let keys: &'static [SigningKey] = Vec::leak(signed.seeds.iter().map(SigningKey::from_seed).collect());
        let items: Vec<_> =
            keys.iter().zip(&signed.messages).map(|(key, message)| SignItem { key, message }).collect();
        signs(count, move |out| bulla_ed25519::sign_many_into(&items, out))
    })
}

/// `verify_strict` of dalek, keys decoded as part of the work.
fn dalek_strict(count: usize) -> Make {
    Box::new(move || {
        let items = Signed::new(count).items();
        verifies(count, move |out| {
            for (item, out) in items.iter().zip(out) {
                let signature = Signature::from_bytes(item.signature);
                let key = VerifyingKey::from_bytes(item.public_key);
                *out = key.is_ok_and(|key| key.verify_strict(item.message, &signature).is_ok());
            }
        })
    })
}

fn dalek_sign(count: usize) -> Make {
    Box::new(move || {
        let signed = Signed::new(count);
        let keys: Vec<_> = signed.seeds.iter().map(ed25519_dalek::SigningKey::from_bytes).collect();
        signs(count, move |out| {
            for ((key, message), out) in keys.iter().zip(&signed.messages).zip(out) {
                *out = key.sign(message).to_bytes();
            }
        })
    })
}

fn cases() -> Vec<Case> {
    let dalek = |make| vec![Peer::of_package("ed25519-dalek", make)];
    let strict = SIZES.map(|n| case("strict", n, ours_strict(n), dalek(dalek_strict(n))));
    let sign = SIZES.map(|n| case("sign", n, ours_sign(n), dalek(dalek_sign(n))));
    strict.into_iter().chain(sign).collect()
}
