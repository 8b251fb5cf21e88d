//! The steps that are compiled once for each instruction set. Each becomes a separate function; the
//! generic body is inlined into it.
//!
//! What several steps have in common is a step too, which they call: a call takes no time beside
//! hundreds of products, and a copy takes a second of each build. Steps with secrets call nothing.

use crate::generic::field::{self, Element};
use crate::generic::field64::{Decoded64, Element64};
use crate::generic::msm::{self, Bucket, Digits};
use crate::generic::pair::{self, Pair};
use crate::generic::pair_sums::{self, BaseRows, HalvedDigits, KeyRows, OwnRows, PreparedDigits};
use crate::generic::point::{Addend, DecodedPoint, Point, decode_points};
use crate::generic::scalar::Scalar;
use crate::generic::sha512::{self, Block};
use crate::generic::sign::{self, Comb, Signing};
use crate::generic::table::{self, AffineRow, BaseTable, HalvedLanes, KeyTable, OwnSum, OwnTables};
use crate::generic::verify::{self, Group};
#[cfg(any(test, feature = "scalar-model"))]
use crate::lanes::model::Model;
use crate::lanes::{EightLanes, LANES, Lanes, Mask};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use bulla_simd::cpu::{Isa, supports};

/// Passes the list of the steps that only other steps call to another macro.
macro_rules! inner_steps {
    ($emit:ident! $to:tt) => {
        $emit! { $to
            /// [`decode_points`] of one encoding in each lane.
            fn decode_one_point(words: &[[V; 4]; 1], points: &mut [DecodedPoint<V>; 1]) {
                *points = decode_points(words)
            }
            /// [`decode_points`] of two.
            fn decode_two_points(words: &[[V; 4]; 2], points: &mut [DecodedPoint<V>; 2]) {
                *points = decode_points(words)
            }
            /// [`decode_points`] of four.
            fn decode_four_points(words: &[[V; 4]; 4], points: &mut [DecodedPoint<V>; 4]) {
                *points = decode_points(words)
            }
            /// [`field::inverse`].
            fn invert(element: &mut Element<V>) {
                *element = field::inverse(element)
            }
        }
    };
}

/// Passes the list of all other steps to another macro: their parameters, and the generic body.
macro_rules! steps {
    ($emit:ident! $to:tt) => {
        $emit! { $to
            /// [`sha512::compress`].
            fn compress(state: &mut [V; 8], blocks: &[Block; LANES], live: Mask) {
                sha512::compress(state, blocks, live)
            }
            /// [`Group::take_scalars`].
            fn take_scalars(group: &mut Group<V>, s: &[V; 4], digest: &[V; 8]) {
                group.take_scalars(s, digest)
            }
            /// [`verify::decode_keys`] of two groups.
            fn decode_two(groups: &mut [Group<V>; 2]) {
                verify::decode_keys(groups, |words, points| decode_two_points(words, points))
            }
            /// [`verify::decode_keys`] of four.
            fn decode_four(groups: &mut [Group<V>; 4]) {
                verify::decode_keys(groups, |words, points| decode_four_points(words, points))
            }
            /// [`verify::decode_key_and_r`].
            fn decode_key_and_r(group: &mut Group<V>, r: &mut DecodedPoint<V>) {
                *r = verify::decode_key_and_r(group, |words, points| decode_two_points(words, points))
            }
            /// [`verify::decode_halves`].
            fn decode_halves(group: &mut Group<V>) {
                verify::decode_halves(group, |words, points| decode_one_point(words, points))
            }
            /// [`Group::multiply_own`].
            fn multiply_own(group: &mut Group<V>, tables: &OwnTables, base: &[&BaseTable; 2], shape: &OwnSum) {
                group.multiply_own(tables, base, shape)
            }
            /// [`verify::multiply_halved`].
            fn multiply_halved(group: &mut Group<V>, factors: &HalvedLanes<V>, tables: &OwnTables, base: &[&BaseTable; 2]) {
                verify::multiply_halved(group, factors, |group, shape| multiply_own(group, tables, base, shape))
            }
            /// [`Group::compare_decoded`].
            fn compare_decoded(group: &mut Group<V>, r: &DecodedPoint<V>) {
                group.compare_decoded(*r)
            }
            /// [`verify::compare`].
            fn compare(groups: &mut [Group<V>]) {
                verify::compare(groups, |element| invert(element))
            }
            /// [`Point::base`].
            fn base_point(out: &mut Point<V>) {
                *out = Point::base(out.z.0[0])
            }
            /// [`table::double_times`], for at least one doubling.
            fn double_times(point: &mut Point<V>, doublings: u32) {
                *point = table::double_times(point.projective(), doublings).point()
            }
            /// [`Point::add`], with nothing negated.
            fn add(point: &mut Point<V>, other: &Addend<V>) {
                *point = point.add(other, 0).point()
            }
            /// [`Point::addend`].
            fn addend(point: &Point<V>, out: &mut Addend<V>) {
                *out = point.addend()
            }
            /// -A, ready for its tables.
            fn key_point(group: &Group<V>, out: &mut Point<V>) {
                *out = Point::from_affine(&group.x, &group.y)
            }
            /// [`table::fill`].
            fn fill_own_tables(point: &Point<V>, tables: &mut OwnTables) {
                table::fill(point, tables)
            }
            /// [`table::scatter`].
            fn scatter_tables(like: &V, own: &OwnTables, tables: &mut [KeyTable; LANES]) {
                table::scatter(*like, own, tables)
            }
            /// [`Group::multiply_prepared`].
            fn multiply_prepared(group: &mut Group<V>, keys: &[[&KeyTable; LANES]], base: &[&BaseTable]) {
                group.multiply_prepared(keys, base)
            }
            /// [`table::next_rows`].
            fn next_rows(first: &mut Point<V>, step: &Addend<V>, out: &mut [AffineRow; LANES]) {
                *out = table::next_rows(first, |first| add(first, step), |element| invert(element))
            }
        }
    };
}

/// Passes the list of the steps that only vectors with four lanes have.
macro_rules! four_steps {
    ($emit:ident! $to:tt) => {
        $emit! { $to
            /// [`verify::decode_pair`].
            fn decode_pair(like: &V, words: &[[u64; 4]; 2], out: &mut [Decoded64; 2]) {
                *out = verify::decode_pair(*like, words, |words, points| decode_one_point(words, points))
            }
        }
    };
}

/// Passes the list of the steps that only vectors with eight lanes have.
macro_rules! eight_steps {
    ($emit:ident! $to:tt) => {
        $emit! { $to
            /// [`Signing::multiply`].
            fn multiply_nonce(signing: &mut Signing<V>, digest: &[V; 8], comb: &Comb) {
                signing.multiply(digest, comb)
            }
            /// [`sign::encode`].
            fn encode(all: &mut [Signing<V>]) {
                sign::encode(all)
            }
            /// [`Group::affine_point`].
            fn affine_point(group: &Group<V>, lane: usize, out: &mut [Element64; 2]) {
                *out = group.affine_point(lane)
            }
            /// [`pair_sums::apart`].
            fn set_apart(like: &V, point: &[Element64; 2], out: &mut Pair<V>) {
                *out = pair_sums::apart(*like, *point)
            }
            /// [`Pair::double_times`].
            fn double_pair(points: &mut Pair<V>, times: u32) {
                *points = points.double_times(times)
            }
            /// [`pair_sums::multiply_prepared`].
            fn multiply_one(like: &V, factors: &PreparedDigits, rows: &KeyRows, base: &BaseRows, out: &mut [Element64; 3]) {
                *out = pair_sums::multiply_prepared(*like, factors, rows, base)
            }
            /// [`Signing::multiply_one`].
            fn multiply_one_nonce(signing: &mut Signing<V>, digest: &[V; 8], comb: &Comb) {
                signing.multiply_one(digest, comb)
            }
            /// [`Signing::encode_one`].
            fn encode_one(signing: &Signing<V>, r: &mut [u64; 4]) {
                *r = signing.encode_one()
            }
            /// [`Signing::finish`].
            fn finish(signing: &mut Signing<V>, digest: &[V; 8]) {
                signing.finish(digest)
            }
            /// [`Group::require_canonical`].
            fn require_canonical(group: &mut Group<V>, r: &DecodedPoint<V>) {
                group.require_canonical(r)
            }
            /// [`Group::weigh`].
            fn weigh(group: &mut Group<V>, z: &Scalar<V>, r: &DecodedPoint<V>, rows: &mut [[AffineRow; LANES]; 2]) {
                *rows = group.weigh(z, r)
            }
            /// [`Group::compare_cofactored`].
            fn compare_cofactored(group: &mut Group<V>, r: &DecodedPoint<V>) {
                group.compare_cofactored(r)
            }
            /// [`msm::accumulate`].
            fn accumulate(like: &V, terms: (&[AffineRow], &[Digits]), places: &[usize], buckets: &mut [[Bucket; LANES]]) {
                msm::accumulate(*like, terms, places, buckets)
            }
            /// [`msm::sum_buckets`].
            fn sum_buckets(like: &V, buckets: &[[Bucket; LANES]], out: &mut Point<V>) {
                *out = msm::sum_buckets(*like, buckets)
            }
            /// [`msm::is_torsion`].
            fn is_torsion(point: &Point<V>, out: &mut Mask) {
                *out = msm::is_torsion(point)
            }
            /// [`pair::root_powers`].
            fn root_powers(like: &V, elements: &mut [Element64]) {
                pair::root_powers(*like, elements)
            }
            /// [`pair_sums::fill_own_rows`].
            fn fill_own_rows(points: &Pair<V>, rows: &mut OwnRows) {
                pair_sums::fill_own_rows(points, rows)
            }
            /// [`pair_sums::fill_base_rows`].
            fn fill_base_rows(like: &V, rows: &mut BaseRows) {
                let mut points = Pair::neutral(*like);
                set_apart(like, &Element64::BASE, &mut points);
                pair_sums::fill_base_rows(points, rows, |points, times| double_pair(points, times))
            }
            /// [`pair_sums::are_neutral`], for one signature.
            fn is_neutral(like: &V, factors: &HalvedDigits, rows: &OwnRows, base: &BaseRows, out: &mut bool) {
                [*out] = pair_sums::are_neutral(*like, std::array::from_ref(factors), std::array::from_ref(rows), base)
            }
            /// [`pair_sums::are_neutral`], for two signatures.
            fn are_neutral(like: &V, factors: &[HalvedDigits; 2], rows: &[OwnRows; 2], base: &BaseRows, out: &mut [bool; 2]) {
                *out = pair_sums::are_neutral(*like, factors, rows, base)
            }
        }
    };
}

macro_rules! define {
    ((LaneSteps) $( $(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $body:block )*) => {
        /// The steps of one instruction set, with vectors `V`. A value of the type is the proof
        /// that this machine has the instructions.
        pub(crate) trait LaneSteps<V: Lanes>: Copy + Sync + 'static {
            /// `word` in every lane.
            fn splat(self, word: u64) -> V;
            $( $(#[$doc])* fn $name(self, $($arg: $type),*); )*
        }
    };
    ((FourLaneSteps) $( $(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $body:block )*) => {
        /// The steps of vectors with four lanes.
        pub(crate) trait FourLaneSteps<V: Lanes>: LaneSteps<V> {
            $( $(#[$doc])* fn $name(self, $($arg: $type),*); )*
        }
    };
    ((EightLaneSteps) $( $(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $body:block )*) => {
        /// The steps of vectors with eight lanes.
        pub(crate) trait EightLaneSteps<V: EightLanes>: LaneSteps<V> {
            /// Clears the vector registers, so that nothing of the computation remains there.
            fn wipe_registers(self);
            $( $(#[$doc])* fn $name(self, $($arg: $type),*); )*
        }
    };
}

macro_rules! functions {
    ((#[$attribute:meta]) $( $(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $body:block )*) => { $(
        #[$attribute]
        #[inline(never)]
        fn $name($($arg: $type),*) $body
    )* };
}

macro_rules! implement {
    (($trait:ident, $proof:ty, { $($own:tt)* }, #[$attribute:meta])
     $( $(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $body:block )*) => {
        functions! { (#[$attribute]) $( fn $name($($arg: $type),*) $body )* }

        impl $trait<V> for $proof {
            $($own)*
            $(
                #[inline(always)]
                fn $name(self, $($arg: $type),*) {
                    #[allow(unused_unsafe, reason = "the model's steps need no features")]
                    // SAFETY: a value of this type exists only where the features of the step were
                    // found.
                    unsafe { $name($($arg),*) }
                }
            )*
        }
    };
}

/// The steps for any machine: lanes in plain Rust.
#[cfg(any(test, feature = "scalar-model"))]
#[derive(Clone, Copy)]
pub(crate) struct ModelSteps;

/// The steps for AVX-512 IFMA.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[derive(Clone, Copy)]
pub(crate) struct IfmaSteps(());

/// The steps for AVX2 with FMA.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[derive(Clone, Copy)]
pub(crate) struct Avx2Steps(());

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
impl IfmaSteps {
    /// The proof, on a machine that has AVX-512 F, BW, DQ, VL and IFMA.
    pub(crate) fn detect() -> Option<Self> {
        supports(Isa::Avx512Ifma).then_some(Self(()))
    }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
impl Avx2Steps {
    /// The proof, on a machine that has AVX2 and FMA.
    pub(crate) fn detect() -> Option<Self> {
        supports(Isa::Avx2Fma).then_some(Self(()))
    }
}

steps!(define!(LaneSteps));
four_steps!(define!(FourLaneSteps));
eight_steps!(define!(EightLaneSteps));

/// The compiled steps in plain Rust.
#[cfg(any(test, feature = "scalar-model"))]
mod model {
    use super::*;

    /// The vectors.
    type V = Model;

    inner_steps!(functions! (#[doc = "In plain Rust."]));
    steps!(implement! (LaneSteps, ModelSteps, {
        fn splat(self, word: u64) -> V {
            Model([word; LANES])
        }
    }, #[doc = "In plain Rust."]));
    eight_steps!(
        implement! (EightLaneSteps, ModelSteps, { fn wipe_registers(self) {} }, #[doc = "In plain Rust."])
    );
}

/// The steps for any machine, with the field arithmetic of AVX2.
#[cfg(all(test, target_arch = "x86_64", target_feature = "sse2"))]
#[derive(Clone, Copy)]
pub(crate) struct ModelRadix51Steps;

/// The compiled steps with the field arithmetic of AVX2.
#[cfg(all(test, target_arch = "x86_64", target_feature = "sse2"))]
mod model_radix51 {
    use super::*;

    /// The vectors.
    type V = crate::lanes::test_lanes::Radix51<Model>;

    inner_steps!(functions! (#[doc = "In plain Rust."]));
    steps!(implement! (LaneSteps, ModelRadix51Steps, {
        fn splat(self, word: u64) -> V {
            crate::lanes::test_lanes::Radix51(Model([word; LANES]))
        }
    }, #[doc = "In plain Rust."]));
}

/// The compiled steps for AVX-512 IFMA.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod ifma {
    use super::*;

    /// The vectors.
    type V = crate::lanes::ifma::Vector;

    inner_steps!(functions! (#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma")]));
    steps!(implement! (LaneSteps, IfmaSteps, {
        #[inline(always)]
        fn splat(self, word: u64) -> V {
            // SAFETY: a value of `IfmaSteps` exists only where detection has found the features.
            unsafe { V::new(word) }
        }
    }, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma")]));
    eight_steps!(implement! (EightLaneSteps, IfmaSteps, {
        #[inline(always)]
        fn wipe_registers(self) {
            // SAFETY: as above.
            unsafe { crate::wipe::vector_registers() }
        }
    }, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma")]));
}

/// The compiled steps for AVX2 with FMA.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod avx2 {
    use super::*;

    /// The vectors.
    type V = crate::lanes::avx2::Vector;

    inner_steps!(functions! (#[target_feature(enable = "avx2,fma,bmi1,bmi2")]));
    steps!(implement! (LaneSteps, Avx2Steps, {
        #[inline(always)]
        fn splat(self, word: u64) -> V {
            // SAFETY: a value of `Avx2Steps` exists only where detection has found the features.
            unsafe { V::new(word) }
        }
    }, #[target_feature(enable = "avx2,fma,bmi1,bmi2")]));
    four_steps!(implement! (FourLaneSteps, Avx2Steps, {}, #[target_feature(enable = "avx2,fma,bmi1,bmi2")]));
}
