//! The signatures and messages of all contenders.

use bulla_ed25519::{SigningKey, VerifyItem};

use crate::measure::{Input, Op, Subject};

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
            let key = SigningKey::from_seed(&seed);
            signed.seeds.push(seed);
            signed.public_keys.push(*key.public_key());
            signed.signatures.push(key.sign(&message));
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
