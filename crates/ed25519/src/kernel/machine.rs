//! The steps that are compiled once for each kind of machine. Each becomes a separate function that
//! calls nothing; the generic body is inlined into it.

use crate::generic::alone::{self, Factors as AloneFactors, KeyRows};
use crate::generic::comb::Comb;
use crate::generic::msm::{self, Bucket, Decoded, Digits};
use crate::generic::one_element::{Decoded as OneDecoded, OneElement};
use crate::generic::pair::{self, Pair};
use crate::generic::point::{Addend, Point};
use crate::generic::scalar::Scalar;
use crate::generic::sha512::{self, Block};
use crate::generic::sign::{self, Signing};
use crate::generic::single::{self, BaseRows, Factors, OwnRows};
use crate::generic::table::{self, AffineRow, BaseTable, KeyTable, OwnTables};
use crate::generic::verify::{self, Group};
#[cfg(any(test, feature = "model"))]
use crate::lanes::model::Model;
use crate::lanes::{EightLanes, LANES, Lanes, Mask};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use bulla_simd::cpu::{Isa, supports};

/// Passes the list of all steps to another macro: their parameters, and the generic body.
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
                verify::decode_keys(groups)
            }
            /// [`verify::decode_keys`] of four.
            fn decode_four(groups: &mut [Group<V>; 4]) {
                verify::decode_keys(groups)
            }
            /// [`verify::decode_key_and_r`].
            fn decode_key_and_r(group: &mut Group<V>, r: &mut Decoded<V>) {
                *r = verify::decode_key_and_r(group)
            }
            /// [`verify::decode_pair`].
            #[cfg_attr(
                not(all(target_arch = "x86_64", target_feature = "sse2")),
                expect(dead_code, reason = "only machines with four lanes use it")
            )]
            fn decode_pair(like: &V, words: &[[u64; 4]; 2], out: &mut [OneDecoded; 2]) {
                *out = verify::decode_pair(*like, words)
            }
            /// [`Group::compare_decoded`].
            fn compare_decoded(group: &mut Group<V>, r: &Decoded<V>) {
                group.compare_decoded(*r)
            }
            /// [`verify::compare`].
            fn compare(groups: &mut [Group<V>]) {
                verify::compare(groups)
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
            /// [`table::fill`] of tables that are kept.
            fn fill_key_tables(point: &Point<V>, tables: &mut [KeyTable; LANES]) {
                table::fill(point, tables)
            }
            /// [`table::fill`] of tables for one use.
            fn fill_own_tables(point: &Point<V>, tables: &mut OwnTables) {
                table::fill(point, tables)
            }
            /// [`Group::multiply_own`].
            fn multiply_own(group: &mut Group<V>, keys: &OwnTables, base: &BaseTable) {
                group.multiply_own(keys, base)
            }
            /// [`Group::multiply_prepared`] by one table of each key.
            fn multiply_by_one(group: &mut Group<V>, keys: &[[&KeyTable; LANES]; 1], base: &[&BaseTable; 1]) {
                group.multiply_prepared(keys, base)
            }
            /// [`Group::multiply_prepared`] by two.
            fn multiply_by_two(group: &mut Group<V>, keys: &[[&KeyTable; LANES]; 2], base: &[&BaseTable; 2]) {
                group.multiply_prepared(keys, base)
            }
            /// [`Group::multiply_prepared`] by four.
            fn multiply_by_four(group: &mut Group<V>, keys: &[[&KeyTable; LANES]; 4], base: &[&BaseTable; 4]) {
                group.multiply_prepared(keys, base)
            }
            /// [`table::next_rows`].
            fn next_rows(first: &mut Point<V>, step: &Addend<V>, out: &mut [AffineRow; LANES]) {
                *out = table::next_rows(first, step)
            }
        }
    };
}

/// The same for steps that only machines with eight lanes have.
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
            /// [`Group::fill_rows`].
            fn fill_key_rows(group: &Group<V>, lane: usize, rows: &mut KeyRows) {
                group.fill_rows(lane, rows)
            }
            /// [`alone::multiply`].
            fn multiply_alone(like: &V, factors: &AloneFactors, rows: &KeyRows, base: &BaseRows, out: &mut [OneElement; 3]) {
                *out = alone::multiply(*like, factors, rows, base)
            }
            /// [`Signing::multiply_alone`].
            fn multiply_nonce_alone(signing: &mut Signing<V>, digest: &[V; 8], comb: &Comb) {
                signing.multiply_alone(digest, comb)
            }
            /// [`Signing::encode_alone`].
            fn encode_alone(signing: &Signing<V>, r: &mut [u64; 4]) {
                *r = signing.encode_alone()
            }
            /// [`Signing::finish`].
            fn finish(signing: &mut Signing<V>, digest: &[V; 8]) {
                signing.finish(digest)
            }
            /// [`Group::require_canonical`].
            fn require_canonical(group: &mut Group<V>, r: &Decoded<V>) {
                group.require_canonical(r)
            }
            /// [`Group::weigh`].
            fn weigh(group: &mut Group<V>, z: &Scalar<V>, r: &Decoded<V>, rows: &mut [[AffineRow; LANES]; 2]) {
                *rows = group.weigh(z, r)
            }
            /// [`Group::compare_cofactored`].
            fn compare_cofactored(group: &mut Group<V>, r: &Decoded<V>) {
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
            fn root_powers(like: &V, elements: &[OneElement; 2], out: &mut [OneElement; 2]) {
                *out = pair::root_powers(*like, elements)
            }
            /// [`single::fill_own`].
            fn fill_own_rows(points: &Pair<V>, rows: &mut OwnRows) {
                single::fill_own(points, rows)
            }
            /// [`single::fill_base`].
            fn fill_base_rows(like: &V, rows: &mut BaseRows) {
                single::fill_base(*like, OneElement::BASE, rows)
            }
            /// [`single::is_neutral`].
            fn is_neutral(like: &V, factors: &Factors, rows: &OwnRows, base: &BaseRows, out: &mut bool) {
                *out = single::is_neutral(*like, factors, rows, base)
            }
        }
    };
}

macro_rules! define {
    ((Machine) $( $(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $body:block )*) => {
        /// A kind of machine, with vectors `V`. A value of the type is the proof that this machine
        /// is of that kind.
        pub(crate) trait Machine<V: Lanes>: Copy + Sync + 'static {
            /// `word` in every lane.
            fn splat(self, word: u64) -> V;
            $( $(#[$doc])* fn $name(self, $($arg: $type),*); )*
        }
    };
    ((EightMachine) $( $(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $body:block )*) => {
        /// A machine with eight lanes.
        pub(crate) trait EightMachine<V: EightLanes>: Machine<V> {
            /// Clears the vector registers, so that nothing of the computation remains there.
            fn wipe_registers(self);
            $( $(#[$doc])* fn $name(self, $($arg: $type),*); )*
        }
    };
}

macro_rules! implement {
    (($trait:ident, $machine:ty, { $($own:tt)* }, #[$attribute:meta])
     $( $(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $body:block )*) => {
        $(
            #[$attribute]
            #[inline(never)]
            fn $name($($arg: $type),*) $body
        )*

        impl $trait<V> for $machine {
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

/// Any machine: lanes in plain Rust.
#[cfg(any(test, feature = "model"))]
#[derive(Clone, Copy)]
pub(crate) struct Scalars;

/// AVX-512 IFMA.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[derive(Clone, Copy)]
pub(crate) struct Ifma(());

/// AVX2 with FMA.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
impl Ifma {
    /// The proof, on a machine that has AVX-512 F, BW, DQ, VL and IFMA.
    pub(crate) fn detect() -> Option<Self> {
        supports(Isa::Avx512Ifma).then_some(Self(()))
    }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
impl Avx2 {
    /// The proof, on a machine that has AVX2 and FMA.
    pub(crate) fn detect() -> Option<Self> {
        supports(Isa::Avx2Fma).then_some(Self(()))
    }
}

steps!(define!(Machine));
eight_steps!(define!(EightMachine));

/// The compiled steps in plain Rust.
#[cfg(any(test, feature = "model"))]
mod model {
    use super::*;

    /// The vectors.
    type V = Model;

    steps!(implement! (Machine, Scalars, {
        fn splat(self, word: u64) -> V {
            Model([word; LANES])
        }
    }, #[doc = "In plain Rust."]));
    eight_steps!(
        implement! (EightMachine, Scalars, { fn wipe_registers(self) {} }, #[doc = "In plain Rust."])
    );
}

/// Any machine: the lanes of the tests with the field arithmetic of AVX2.
#[cfg(all(test, target_arch = "x86_64", target_feature = "sse2"))]
#[derive(Clone, Copy)]
pub(crate) struct ScalarHalves;

/// The compiled steps with the field arithmetic of AVX2.
#[cfg(all(test, target_arch = "x86_64", target_feature = "sse2"))]
mod halves {
    use super::*;

    /// The vectors.
    type V = crate::lanes::in_halves::InHalves<Model>;

    steps!(implement! (Machine, ScalarHalves, {
        fn splat(self, word: u64) -> V {
            crate::lanes::in_halves::InHalves(Model([word; LANES]))
        }
    }, #[doc = "In plain Rust."]));
}

/// The compiled steps for AVX-512 IFMA.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod ifma {
    use super::*;

    /// The vectors.
    type V = crate::lanes::ifma::Vector;

    steps!(implement! (Machine, Ifma, {
        #[inline(always)]
        fn splat(self, word: u64) -> V {
            // SAFETY: a value of `Ifma` exists only where detection has found the features.
            unsafe { V::new(word) }
        }
    }, #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma")]));
    eight_steps!(implement! (EightMachine, Ifma, {
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

    steps!(implement! (Machine, Avx2, {
        #[inline(always)]
        fn splat(self, word: u64) -> V {
            // SAFETY: a value of `Avx2` exists only where detection has found the features.
            unsafe { V::new(word) }
        }
    }, #[target_feature(enable = "avx2,fma,bmi1,bmi2")]));
}
