//! The table for signing: multiples of the base point. Neither a branch nor an address depends on
//! the row that is chosen.

use super::field::Element;
use super::point::AffineAddend;
use super::scalar::Windows;
use crate::lanes::EightLanes;

/// The number of windows of a nonce.
pub(super) const COUNT: u32 = 51;
/// Windows of five bits, which give odd digits from -31 to 31. No digit is 0, and half a table is
/// enough.
pub(super) const WINDOWS: Windows = Windows { bits: 5, count: 0 };

/// For each window, the odd multiples 1, 3, ... 31 of the base point times 32^window. The words are
/// those of [`AffineRow`](super::table::AffineRow); the sixteen multiples of each word are side by
/// side.
pub(crate) type Comb = [[[u64; 16]; 15]; COUNT as usize];

/// The row that `index` chooses, separately in every lane.
#[inline(always)]
pub(super) fn chosen<V: EightLanes>(index: V, row: &[[u64; 16]; 15]) -> AffineAddend<V> {
    let mut words = [index; 15];
    for n in 0..15 {
        words[n] = index.pick(&row[n]);
    }
    let element = |n: usize| Element([words[n], words[n + 1], words[n + 2], words[n + 3], words[n + 4]]);
    AffineAddend { plus: element(0), minus: element(5), t2d: element(10) }
}
