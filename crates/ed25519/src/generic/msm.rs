//! A sum of many multiples, by Pippenger's buckets, with one window per lane: the eight lanes add
//! the same point to buckets of eight different windows.

use super::field::Element;
use super::point::{AffineAddend, DecodedPoint, Point, Projective};
use super::scalar::Scalar;
use super::table::{AffineRow, affine_rows, double_times, elements, pairs};
use super::verify::Group;
use crate::lanes::{EightLanes, LANES, Mask};

/// A [`Point`] of one lane: the limbs of its elements in their order, as pairs.
pub(crate) type Bucket = [[u64; 2]; 10];

/// The digits of one factor for the windows of a block.
pub(crate) type Digits = [i16; LANES];

/// The identity as a bucket.
pub(crate) const EMPTY_BUCKET: Bucket =
    [[1, 0], [0; 2], [0, 1], [0; 2], [0; 2], [1, 0], [0; 2], [0; 2], [0; 2], [0; 2]];

#[inline(always)]
fn load<V: EightLanes>(like: V, buckets: [&Bucket; LANES]) -> Point<V> {
    let b = buckets;
    let mut all = [[like; 2]; 10];
    for n in 0..10 {
        all[n] =
            like.gather([&b[0][n], &b[1][n], &b[2][n], &b[3][n], &b[4][n], &b[5][n], &b[6][n], &b[7][n]]);
    }
    let [plus, minus, z, t] = elements(&all);
    Point { plus, minus, z, t }
}

/// The same row in every lane.
#[inline(always)]
fn splat<V: EightLanes>(like: V, row: &AffineRow) -> AffineAddend<V> {
    let mut elements = [Element([like; 5]); 3];
    for (n, element) in elements.iter_mut().enumerate() {
        for (limb, word) in element.0.iter_mut().zip(&row.0[5 * n..]) {
            *limb = like.like(*word);
        }
    }
    let [plus, minus, t2d] = elements;
    AffineAddend { plus, minus, t2d }
}

/// In each lane, adds each point at `places` to the bucket of its digit there, negated if the digit
/// is negative. `buckets[b]` has bucket b of every lane; bucket 0 is not used.
#[inline(always)]
pub(crate) fn accumulate<V: EightLanes>(
    like: V,
    (points, digits): (&[AffineRow], &[Digits]),
    places: &[usize],
    buckets: &mut [[Bucket; LANES]],
) {
    let last = buckets.len() - 1;
    for place in places {
        let digits = &digits[*place];
        let mut bucket = [0; LANES];
        let mut negative: Mask = 0;
        for lane in 0..LANES {
            bucket[lane] = usize::from(digits[lane].unsigned_abs()).min(last);
            negative |= Mask::from(digits[lane] < 0) << lane;
        }
        let mut from = [&buckets[0][0]; LANES];
        for lane in 0..LANES {
            from[lane] = &buckets[bucket[lane]][lane];
        }
        let sum =
            load(like, from).add_affine(&splat(like, &points[*place]).swap_where(negative), negative).point();
        for (n, pair) in pairs([&sum.plus, &sum.minus, &sum.z, &sum.t]).into_iter().enumerate() {
            for (lane, words) in V::scatter(pair).into_iter().enumerate() {
                buckets[bucket[lane]][lane][n] = words;
            }
        }
    }
}

/// The sum of each lane's buckets, each multiplied by its number.
#[inline(always)]
pub(crate) fn sum_buckets<V: EightLanes>(like: V, buckets: &[[Bucket; LANES]]) -> Point<V> {
    let (mut running, mut sum) = (Point::identity(like), Point::identity(like));
    for bucket in buckets[1..].iter().rev() {
        let all = load(like, bucket.each_ref());
        running = running.add(&all.addend(), 0).point();
        sum = sum.add(&running.addend(), 0).point();
    }
    sum
}

/// The lanes in which a point is 0 after three doublings: its order is 1, 2, 4 or 8.
#[inline(always)]
pub(crate) fn is_torsion<V: EightLanes>(point: &Point<V>) -> Mask {
    let point = double_times(point.projective(), 3).projective();
    let zero = Element::small(point.x.0[0], 0);
    point.x.canonical().equal(&zero) & point.y.canonical().equal(&point.z.canonical())
}

impl<V: EightLanes> Group<V> {
    /// Clears the tests of lanes whose encodings are not canonical.
    #[inline(always)]
    pub(crate) fn require_canonical(&mut self, r: &DecodedPoint<V>) {
        self.passed.point &= self.y.canonical().equal(&Element::from_words(&self.key));
        self.passed.equation = r.2 & r.1.canonical().equal(&Element::from_words(&self.r));
    }

    /// Multiplies k and S by the coefficients, and makes rows of -A and R.
    #[inline(always)]
    pub(crate) fn weigh(&mut self, z: &Scalar<V>, r: &DecodedPoint<V>) -> [[AffineRow; LANES]; 2] {
        let zero = Scalar([z.0[0].like(0); 5]);
        self.k = self.k.multiply_add(z, &zero);
        self.s = self.s.multiply_add(z, &zero);
        let (key, r) = (AffineAddend::new(&self.x, &self.y), AffineAddend::new(&r.0, &r.1));
        [affine_rows(&key), affine_rows(&r)]
    }

    /// Compares eight times s B - k A with eight times R.
    #[inline(always)]
    pub(crate) fn compare_cofactored(&mut self, r: &DecodedPoint<V>) {
        let one = Element::small(self.x.0[0], 1);
        let left = double_times(Projective::new(self.x, self.y, self.z), 3).projective();
        let right = double_times(Projective::new(r.0, r.1, one), 3).projective();
        let sides = [(&left.x, &right.x), (&left.y, &right.y)];
        for (left_side, right_side) in sides {
            let (a, b) = (left_side.mul(&right.z).canonical(), right_side.mul(&left.z).canonical());
            self.passed.equation &= a.equal(&b);
        }
    }
}
