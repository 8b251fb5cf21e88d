//! Four signatures at a time: groups of four by lanes, and what is left one by one in general registers.

use super::engine::{Engine, PreparedKey};
use super::halved;
use super::lanes::LaneEngine;
use super::machine::Machine;
use super::portable::{Halves, Portable};
use crate::item::Item;
use crate::lanes::Lanes;
use crate::signing_key::SignItem;
use crate::verdict::Verdict;

/// The number of signatures that are verified one by one: a group takes less time than more.
const SINGLES: usize = 1;

/// The engine of a machine with four lanes. Signing, and the cofactored predicate, are those of [`Portable`].
pub(super) struct Fours<V, M>(LaneEngine<V, M>);

impl<V: Lanes + 'static, M: Machine<V>> Fours<V, M> {
    /// The engine for this kind of machine.
    pub(super) const fn new(machine: M) -> Self {
        Self(LaneEngine::new(machine))
    }
}

impl<V: Lanes + 'static, M: Machine<V>> Engine for Fours<V, M> {
    fn verify(&self, domain: &[u8], items: &[Item<'_>], out: &mut [Verdict]) {
        self.0.verify_all((&Halves, SINGLES), domain, items, out);
    }

    fn prepare(&self, keys: &[[u8; 32]], tables: usize) -> Vec<PreparedKey> {
        keys.chunks(V::COUNT).flat_map(|keys| self.0.prepare_group(keys, tables).1).collect()
    }

    fn verify_prepared(&self, items: &[Item<'_>], keys: &[&PreparedKey], out: &mut [Verdict]) {
        let one = |item: &Item<'_>, _: &PreparedKey| halved::verify(&Halves, &[], item);
        self.0.verify_under_by((one, SINGLES), items, keys, out);
    }

    fn verify_cofactored(&self, items: &[Item<'_>], random: &[[u8; 16]], out: &mut [Verdict]) {
        Portable::BEST.verify_cofactored(items, random, out);
    }

    fn hash(&self, messages: &[&[u8]], out: &mut [[u8; 64]]) {
        self.0.hash_all(messages, out);
    }

    fn sign(&self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        Portable::BEST.sign(domain, items, out);
    }
}
