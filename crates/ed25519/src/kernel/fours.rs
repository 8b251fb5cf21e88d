//! Four signatures at a time: groups of four by lanes, and what is left one by one, mostly in
//! general registers.

use super::engine::{Engine, PreparedKey};
use super::halved::{self, Steps};
use super::lanes::LaneEngine;
use super::machine::Machine;
use super::portable::{Halves, Portable};
use crate::generic::halving::Halved;
use crate::generic::one_element::{Decoded, OneElement};
use crate::item::VerifyItem;
use crate::lanes::Lanes;
use crate::signing_key::SignItem;
use crate::verdict::Verdict;

/// The number of signatures that are verified one by one: a group takes less time than more.
const SINGLES: usize = 2;

/// The engine of a machine with four lanes. Signing, and the cofactored predicate, are those of
/// [`Portable`].
pub(super) struct Fours<V, M>(LaneEngine<V, M>);

impl<V: Lanes + 'static, M: Machine<V>> Fours<V, M> {
    /// The engine for this kind of machine.
    pub(super) const fn new(machine: M) -> Self {
        Self(LaneEngine::new(machine))
    }
}

/// One signature: both points are decoded in lanes, and the sums are computed in general registers.
impl<V: Lanes + 'static, M: Machine<V>> Steps for Fours<V, M> {
    fn decode(&self, words: &[[u64; 4]; 2]) -> [Decoded; 2] {
        let mut out = [(OneElement::ZERO, OneElement::ZERO, false); 2];
        self.0.machine.decode_pair(&self.0.machine.splat(0), words, &mut out);
        out
    }

    fn is_neutral(&self, points: &[[OneElement; 2]; 2], halved: &Halved, base: &[u64; 4]) -> bool {
        Halves.is_neutral(points, halved, base)
    }
}

impl<V: Lanes + 'static, M: Machine<V>> Engine for Fours<V, M> {
    fn verify(&self, domain: &[u8], items: &[VerifyItem<'_>], out: &mut [Verdict]) {
        self.0.verify_all((self, SINGLES), domain, items, out);
    }

    fn prepare(&self, keys: &[[u8; 32]], tables: usize) -> Vec<PreparedKey> {
        keys.chunks(V::COUNT).flat_map(|keys| self.0.prepare_group(keys, tables).1).collect()
    }

    fn verify_prepared(&self, items: &[VerifyItem<'_>], keys: &[&PreparedKey], out: &mut [Verdict]) {
        // Two under keys with more tables take less time as a group.
        let singles = if keys.first().is_some_and(|key| key.tables.len() > 1) { 1 } else { SINGLES };
        let one = |item: &VerifyItem<'_>, _: &PreparedKey| halved::verify(self, &[], item);
        self.0.verify_under_by((one, singles), items, keys, out);
    }

    fn verify_cofactored(&self, items: &[VerifyItem<'_>], random: &[[u8; 16]], out: &mut [Verdict]) {
        Portable::BEST.verify_cofactored(items, random, out);
    }

    fn hash(&self, messages: &[&[u8]], out: &mut [[u8; 64]]) {
        self.0.hash_all(messages, out);
    }

    fn sign(&self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        Portable::BEST.sign(domain, items, out);
    }
}
