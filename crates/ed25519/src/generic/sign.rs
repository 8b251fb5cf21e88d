//! The steps of eight signatures. No branch and no address depends on a nonce or a key: rows of the
//! table are chosen by permutations of whole rows, signs by masks.

use super::comb::{Comb, WINDOWS, chosen};
use super::field::Element;
use super::one_signature;
use super::point::{Completed, Projective};
use super::power;
use super::scalar::Scalar;
use crate::lanes::EightLanes;

/// Eight unfinished signatures.
#[derive(Clone, Copy)]
pub(crate) struct Signing<V> {
    /// The secret scalars of the keys, as little-endian words.
    pub(crate) key: [V; 4],
    /// The nonces.
    nonce: Scalar<V>,
    /// X, Y and Z of R.
    point: Projective<V>,
    /// The product of the Z of all groups before this one.
    before: Element<V>,
    /// R, as little-endian words.
    pub(crate) r: [V; 4],
    /// S, as little-endian words.
    pub(crate) s: [V; 4],
}

impl<V: EightLanes> Signing<V> {
    /// Nothing yet.
    pub(crate) fn new(like: V) -> Self {
        let (words, scalar, element) = ([like; 4], Scalar([like; 5]), Element([like; 5]));
        let point = Projective { x: element, y: element, z: element, sum: element };
        Self { key: words, nonce: scalar, point, before: element, r: words, s: words }
    }

    /// The nonce from its digest, and its multiple of the base point.
    #[inline(always)]
    pub(crate) fn multiply(&mut self, digest: &[V; 8], comb: &Comb) {
        self.nonce = Scalar::from_digest(digest);
        let windows = self.nonce.halved_odd();
        let mut sum = Completed::identity(digest[0]);
        for (window, row) in comb.iter().enumerate() {
            let digit = WINDOWS.digit(&windows, window as u32);
            let negative = !digit.shr::<4>().odd();
            let index = V::select(negative, digit.xor(digit.like(15)), digit);
            sum = sum.add_affine(&chosen(index, row).swap_where(negative), negative);
        }
        self.point = sum.projective();
    }

    /// Like [`Signing::multiply`], for one digest that is in every lane.
    #[inline(always)]
    pub(crate) fn multiply_alone(&mut self, digest: &[V; 8], comb: &Comb) {
        self.nonce = Scalar::from_digest(digest);
        self.point = one_signature::multiply_nonce(&self.nonce, comb);
    }

    /// R of the point in lane 0.
    #[inline(always)]
    pub(crate) fn encode_alone(&self) -> [u64; 4] {
        one_signature::encode(&self.point)
    }

    /// S from the digest of R, A and the message.
    #[inline(always)]
    pub(crate) fn finish(&mut self, digest: &[V; 8]) {
        let key = Scalar::from_words(&self.key);
        self.s = Scalar::from_digest(digest).multiply_add(&key, &self.nonce).to_words();
    }
}

/// R of every group from its point: one inversion for all.
#[inline(always)]
pub(crate) fn encode<V: EightLanes>(all: &mut [Signing<V>]) {
    let [first, ..] = all else { return };
    let mut product = Element::small(first.point.z.0[0], 1);
    for signing in all.iter_mut() {
        signing.before = product;
        product = product.mul(&signing.point.z);
    }
    let mut inverse = power::inverse(&product);
    for signing in all.iter_mut().rev() {
        let own = inverse.mul(&signing.before);
        inverse = inverse.mul(&signing.point.z);
        let x = signing.point.x.mul(&own).canonical();
        signing.r = signing.point.y.mul(&own).canonical().to_words();
        signing.r[3] = signing.r[3].or(x.0[0].shl::<63>());
    }
}
