//! A sum of many multiples, by Pippenger's buckets with one window a lane: the eight lanes add the same point to buckets of eight different
//! windows.

use super::field::Element;
use super::point::{AffineAddend, Next, Point};
use super::scalar::Scalar;
use super::table::{AffineRow, affine_rows};
use super::verify::Group;
use crate::lanes::{LANES, Lanes, Mask};

/// X, Y, Z and T of one point: pairs of limbs.
pub(crate) type Bucket = [[u64; 2]; 10];

/// The digits of one factor for the windows of a block.
pub(crate) type Digits = [i16; LANES];

/// The identity as a bucket.
pub(crate) const EMPTY: Bucket =
    [[0; 2], [0; 2], [1, 0], [0; 2], [1, 0], [0; 2], [0; 2], [0; 2], [0; 2], [0; 2]];

#[inline(always)]
fn load<V: Lanes>(like: V, buckets: [&Bucket; LANES]) -> Point<V> {
    let pair = |n: usize| like.gather(buckets.map(|bucket| &bucket[n]));
    let ([x0, x1], [x2, x3]) = (pair(0), pair(1));
    let ([y0, y1], [y2, y3]) = (pair(2), pair(3));
    let ([z0, z1], [z2, z3]) = (pair(4), pair(5));
    let ([t0, t1], [t2, t3]) = (pair(6), pair(7));
    let ([x4, y4], [z4, t4]) = (pair(8), pair(9));
    Point {
        x: Element([x0, x1, x2, x3, x4]),
        y: Element([y0, y1, y2, y3, y4]),
        z: Element([z0, z1, z2, z3, z4]),
        t: Element([t0, t1, t2, t3, t4]),
    }
}

#[inline(always)]
fn pairs<V: Lanes>(point: &Point<V>) -> [[V; 2]; 10] {
    let (x, y, z, t) = (&point.x.0, &point.y.0, &point.z.0, &point.t.0);
    [
        [x[0], x[1]],
        [x[2], x[3]],
        [y[0], y[1]],
        [y[2], y[3]],
        [z[0], z[1]],
        [z[2], z[3]],
        [t[0], t[1]],
        [t[2], t[3]],
        [x[4], y[4]],
        [z[4], t[4]],
    ]
}

/// The same row in every lane.
#[inline(always)]
fn splat<V: Lanes>(like: V, row: &AffineRow) -> AffineAddend<V> {
    let word = |n: usize, half: usize| like.like(row.0[n][half]);
    let four = |n: usize| [word(n, 0), word(n, 1), word(n + 1, 0), word(n + 1, 1)];
    let ([p0, p1, p2, p3], [m0, m1, m2, m3], [t0, t1, t2, t3]) = (four(0), four(2), four(4));
    AffineAddend {
        plus: Element([p0, p1, p2, p3, word(6, 0)]),
        minus: Element([m0, m1, m2, m3, word(6, 1)]),
        t2d: Element([t0, t1, t2, t3, word(7, 0)]),
    }
}

/// Adds every point, in each lane, to the bucket that its digit there says; the sign of the digit is that of the point. `buckets[b]` has
/// bucket b of every lane, and bucket 0 is nobody's.
#[inline(always)]
pub(crate) fn accumulate<V: Lanes>(
    like: V,
    points: &[AffineRow],
    digits: &[Digits],
    buckets: &mut [[Bucket; LANES]],
) {
    let last = buckets.len() - 1;
    for (row, digits) in points.iter().zip(digits) {
        let mut place = [0; LANES];
        let mut negative: Mask = 0;
        for lane in 0..LANES {
            place[lane] = usize::from(digits[lane].unsigned_abs()).min(last);
            negative |= Mask::from(digits[lane] < 0) << lane;
        }
        let mut from = [&buckets[0][0]; LANES];
        for lane in 0..LANES {
            from[lane] = &buckets[place[lane]][lane];
        }
        let mut sum = load(like, from);
        sum.add_affine(&splat(like, row).negate_where(negative), negative, Next::Sum);
        for (n, pair) in pairs(&sum).into_iter().enumerate() {
            for (lane, words) in V::scatter(pair).into_iter().enumerate() {
                buckets[place[lane]][lane][n] = words;
            }
        }
    }
}

/// The sum of each lane's buckets, each as often as its number says.
#[inline(always)]
pub(crate) fn sum_buckets<V: Lanes>(like: V, buckets: &[[Bucket; LANES]]) -> Point<V> {
    let (mut running, mut sum) = (Point::identity(like), Point::identity(like));
    for bucket in buckets[1..].iter().rev() {
        let all = load(like, bucket.each_ref());
        running.add(&all.addend(), 0, Next::Sum);
        sum.add(&running.addend(), 0, Next::Sum);
    }
    sum
}

/// The lanes in which a point is 0 after three doublings: of order 1, 2, 4 or 8.
#[inline(always)]
pub(crate) fn is_torsion<V: Lanes>(mut point: Point<V>) -> Mask {
    for _ in 0..3 {
        point.double(Next::Doubling);
    }
    let zero = Element::small(point.x.0[0], 0);
    point.x.canonical().equal(&zero) & point.y.canonical().equal(&point.z.canonical())
}

/// What a decoded R is: x, y, and where it is a point.
pub(crate) type Decoded<V> = (Element<V>, Element<V>, Mask);

impl<V: Lanes> Group<V> {
    /// Encodings must be canonical.
    #[inline(always)]
    pub(crate) fn require_canonical(&mut self, r: &Decoded<V>) {
        self.passed.point &= self.y.canonical().equal(&Element::from_words(&self.key));
        self.passed.equation = r.2 & r.1.canonical().equal(&Element::from_words(&self.r));
    }

    /// Multiplies k and S by the coefficients, and makes rows of -A and R.
    #[inline(always)]
    pub(crate) fn weigh(&mut self, z: &Scalar<V>, r: &Decoded<V>) -> [[AffineRow; LANES]; 2] {
        let zero = Scalar([z.0[0].like(0); 5]);
        self.k = self.k.multiply_add(z, &zero);
        self.s = self.s.multiply_add(z, &zero);
        let row = |x: &Element<V>, y: &Element<V>| affine_rows(&AffineAddend::new(&x.masked(), &y.masked()));
        [row(&self.x, &self.y), row(&r.0, &r.1)]
    }

    /// Compares eight times s B - k A with eight times R.
    #[inline(always)]
    pub(crate) fn compare_cofactored(&mut self, r: &Decoded<V>) {
        let one = Element::small(self.x.0[0], 1);
        let mut left = Point { x: self.x, y: self.y, z: self.z, t: one };
        let mut right = Point { x: r.0, y: r.1, z: one, t: one };
        for _ in 0..3 {
            left.double(Next::Doubling);
            right.double(Next::Doubling);
        }
        let same =
            |a: &Element<V>, b: &Element<V>| a.mul(&right.z).canonical().equal(&b.mul(&left.z).canonical());
        self.passed.equation &= same(&left.x, &right.x) & same(&left.y, &right.y);
    }
}
