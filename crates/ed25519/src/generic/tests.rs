//! Tests of the formulas themselves: bounds by intervals, and the limbs of the vector kernel
//! against those of the model.

use super::field::Element;
use super::point::{Addend, AffineAddend, Completed, DecodedPoint, Point, Projective, decode_points};
use super::scalar::Scalar;
use crate::lanes::model::Model;
use crate::lanes::test_lanes::{Interval, Radix51};
use crate::lanes::{LANES, Lanes, Limbs, Mask};

/// Intervals in one of the two radices.
trait Intervals: Lanes {
    /// The largest limbs that a formula may multiply: any for those whose upper bits products
    /// ignore.
    const LIMBS: [i128; 5];

    fn of(low: i128, high: i128) -> Self;
    fn interval(self) -> Interval;

    /// An element that is ready to be multiplied.
    fn any() -> Element<Self> {
        Element(Self::LIMBS.map(|high| Self::of(0, high)))
    }

    /// A canonical one.
    fn canonical() -> Element<Self> {
        let top = 255 - 4 * Self::RADIX;
        let limb = |bits: u32| Self::of(0, (1 << bits) - 1);
        Element([limb(Self::RADIX), limb(Self::RADIX), limb(Self::RADIX), limb(Self::RADIX), limb(top)])
    }
}

/// Radix 2^52.
impl Intervals for Interval {
    const LIMBS: [i128; 5] = {
        let any = u64::MAX as i128;
        [any, any, any, any, (1 << 47) + (1 << 17)]
    };

    fn of(low: i128, high: i128) -> Self {
        Self::new(low, high)
    }
    fn interval(self) -> Interval {
        self
    }
}

/// Radix 2^51, by halves of products.
impl Intervals for Radix51<Interval> {
    const LIMBS: [i128; 5] = [(1 << 51) + (1 << 18); 5];

    fn of(low: i128, high: i128) -> Self {
        Self(Interval::new(low, high))
    }
    fn interval(self) -> Interval {
        self.0
    }
}

/// The formulas' requirement on an element that is multiplied.
fn assert_ready<V: Intervals>(name: &str, element: &Element<V>) {
    for (limb, most) in element.0.iter().zip(V::LIMBS) {
        let limb = limb.interval();
        assert!(limb.low >= 0 && limb.high <= most, "{name}: {limb:x?}");
    }
}

/// Asserts that every form after a sum or a doubling is ready for the next step.
fn assert_carried<V: Intervals>(completed: &Completed<V>) {
    let (projective, point, addend) = (completed.projective(), completed.point(), completed.addend());
    for (name, element) in [
        ("x", &projective.x),
        ("y", &projective.y),
        ("z", &projective.z),
        ("x + y", &projective.sum),
        ("plus", &point.plus),
        ("minus", &point.minus),
        ("t", &point.t),
        ("t2d", &addend.t2d),
        ("z2", &addend.z2),
    ] {
        assert_ready(name, element);
    }
}

fn bounds_of_doublings_and_sums<V: Intervals>() {
    let any = V::any();
    assert_carried(&Projective { x: any, y: any, z: any, sum: any }.double());
    let point = Point { plus: any, minus: any, z: any, t: any };
    for addend in [point.addend(), Addend { plus: any, minus: any, t2d: any, z2: any }] {
        for negated in [0, Mask::MAX] {
            let sum = point.add(&addend, negated);
            assert_carried(&sum);
            let affine = AffineAddend { plus: any, minus: any, t2d: any };
            assert_carried(&sum.add_affine(&affine, negated));
            assert_carried(&point.add_affine(&affine, negated));
        }
    }
}

#[test]
fn bounds_of_doublings_and_sums_hold_forever() {
    bounds_of_doublings_and_sums::<Interval>();
    bounds_of_doublings_and_sums::<Radix51<Interval>>();
}

fn bounds_of_first_points<V: Intervals>() {
    // -A after decoding.
    let decoded = Point::from_affine(&V::canonical(), &V::canonical());
    let like = V::any().0[4];
    for point in [decoded, Point::identity(like)] {
        assert_carried(&point.projective().double());
        assert_carried(&point.add(&point.addend(), 0));
    }
    assert_carried(&Completed::identity(like));
}

#[test]
fn bounds_of_first_points_hold() {
    bounds_of_first_points::<Interval>();
    bounds_of_first_points::<Radix51<Interval>>();
}

fn bounds_of_decoding_and_canonical_forms<V: Intervals>() {
    let word = V::of(0, u64::MAX.into());
    let assert_canonical = |name: &str, element: &Element<V>| {
        for (limb, most) in element.0.iter().zip(V::canonical().0) {
            assert!(limb.interval().low == 0 && limb.interval().high <= most.interval().high, "{name}");
        }
    };
    for (x, y, _) in decode_points(&[[word; 4]; 2]) {
        assert_canonical("x", &x);
        assert_canonical("y", &y);
    }
    assert_canonical("any", &V::any().canonical());
    for element in
        [V::any().add(&V::any()), V::any().sub(&V::any()), V::any().negate(), V::any().mul(&V::any())]
    {
        assert_ready("sums and products", &element);
    }
}

#[test]
fn bounds_of_decoding_and_canonical_forms_hold() {
    bounds_of_decoding_and_canonical_forms::<Interval>();
    bounds_of_decoding_and_canonical_forms::<Radix51<Interval>>();
}

/// Intervals are too coarse for scalars: only all limbs together show that a difference is not
/// negative. So the model reduces numbers at the ends of the range.
#[test]
fn scalars_at_the_ends_of_their_range_are_those_of_dalek() {
    for pattern in 0..256_u64 {
        for end in [u64::MAX, 1, 0x5812_631a_5cf5_d3ed] {
            let words: [u64; 8] = std::array::from_fn(|n| if pattern >> n & 1 == 1 { end } else { 0 });
            let reduced = Scalar::from_digest(&words.map(|word| Model([word; LANES])));
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let expected = curve25519_dalek::Scalar::from_bytes_mod_order_wide(&bytes.try_into().unwrap());
            let ours: Vec<u8> = reduced.to_words().iter().flat_map(|word| word.0[3].to_le_bytes()).collect();
            assert_eq!(ours, expected.as_bytes(), "{words:x?}");
            let whole =
                Scalar::from_words(&[words[0], words[1], words[2], words[3]].map(|w| Model([w; LANES])));
            let product = whole.multiply_add(&whole, &whole).to_words();
            let bytes: Vec<u8> = words[..4].iter().flat_map(|word| word.to_le_bytes()).collect();
            let one = curve25519_dalek::Scalar::from_bytes_mod_order(bytes.try_into().unwrap());
            let ours: Vec<u8> = product.iter().flat_map(|word| word.0[5].to_le_bytes()).collect();
            assert_eq!(ours, (one * one + one).as_bytes(), "{words:x?}");
        }
    }
}

#[test]
#[should_panic(expected = "in 64 bits")]
fn intervals_notice_what_overflows() {
    let big = Interval::new(0, 1 << 63);
    let _ = big.add(big);
}

/// Random points and their limbs in both kinds of lanes.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod against_the_model {
    use super::*;
    use crate::generic::sign::Signing;
    use crate::kernel::lane_steps::{
        Avx2Steps, EightLaneSteps, IfmaSteps, LaneSteps, ModelRadix51Steps, ModelSteps,
    };
    use crate::lanes::radix51::SplitProducts;
    use crate::lanes::{EightLanes, avx2};
    use std::io::Write as _;

    /// Runs `steps` on both machines from the same random words, and compares everything that they
    /// leave.
    fn compare<M: Lanes, V: Lanes, K: LaneSteps<V>, const N: usize>(
        words: usize,
        (splat, model): (M, impl Fn(&[M]) -> [Vec<[u64; LANES]>; N]),
        (name, steps): (&str, Option<K>),
        vector: impl Fn(K, &[V]) -> [Vec<[u64; LANES]>; N],
    ) {
        let Some(steps) = steps else {
            // Bypass the test harness's capture, so that everyone sees it.
            let note = format!("not tested: the limbs of {name}, which this steps does not have\n");
            std::io::stderr().write_all(note.as_bytes()).unwrap();
            return;
        };
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..20 {
            let lanes: Vec<[u64; LANES]> =
                (0..words).map(|_| std::array::from_fn(|_| random.u64(..))).collect();
            let ours: Vec<_> = lanes.iter().map(|lanes| splat.load(lanes)).collect();
            let theirs: Vec<_> = lanes.iter().map(|lanes| steps.splat(0).load(lanes)).collect();
            for (ours, theirs) in model(&ours).iter().zip(&vector(steps, &theirs)) {
                assert_eq!(ours.len(), theirs.len());
                for (ours, theirs) in ours.iter().zip(theirs) {
                    assert_eq!(ours[..V::COUNT], theirs[..V::COUNT], "{name}");
                }
            }
        }
    }

    const MODEL: Model = Model([0; LANES]);

    fn with_ifma() -> (&'static str, Option<IfmaSteps>) {
        ("x86_64/avx512ifma", IfmaSteps::detect())
    }

    fn with_avx2() -> (&'static str, Option<Avx2Steps>) {
        ("x86_64/avx2", Avx2Steps::detect())
    }

    #[test]
    fn machines_are_found_where_the_features_are() {
        use std::arch::is_x86_feature_detected as has;
        assert_eq!(IfmaSteps::detect().is_some(), has!("avx512ifma"));
        assert_eq!(Avx2Steps::detect().is_some(), has!("avx2") && has!("fma"));
    }

    /// Products of factors of every kind, also at the ends of their range and between two halves.
    #[test]
    fn halves_of_products_are_exact() {
        let Some(steps) = Avx2Steps::detect() else { return };
        let mut random = fastrand::Rng::with_seed(19);
        let mut factor = || match random.u8(..8) {
            0 => (1 << 51) + random.u64(..1 << 18),
            1 => (1 << 51) - random.u64(..4),
            2 => 1 << random.u32(..52),
            3 => random.u64(..8),
            4 => 3 << random.u32(..50),
            _ => random.u64(..1 << 51),
        };
        for _ in 0..20_000 {
            let [a, b]: [[u64; LANES]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| factor()));
            let like = steps.splat(0);
            let (mut low, mut high) = (like, like);
            avx2::Vector::add_halves(&mut low, &mut high, like.load(&a).factor(), like.load(&b).factor());
            let model = [Radix51(Model(a)), Radix51(Model(b))];
            let (mut model_low, mut model_high) = (Radix51(MODEL), Radix51(MODEL));
            Radix51::add_halves(&mut model_low, &mut model_high, model[0].factor(), model[1].factor());
            for lane in 0..avx2::Vector::COUNT {
                let low = low.store()[lane].wrapping_sub(avx2::Vector::LOW);
                let high = high.store()[lane].wrapping_sub(avx2::Vector::HIGH);
                assert_eq!(
                    (low, high),
                    (model_low.0.0[lane], model_high.0.0[lane]),
                    "{} {}",
                    a[lane],
                    b[lane]
                );
                let sum = (i128::from(high) << 51) + i128::from(low.cast_signed());
                assert_eq!(sum, i128::from(a[lane]) * i128::from(b[lane]));
            }
        }
    }

    fn limbs<V: Lanes>(elements: &[Element<V>]) -> Vec<[u64; LANES]> {
        elements.iter().flat_map(|element| element.0.map(Limbs::store)).collect()
    }

    /// A point with random limbs. It is not on the curve, which these formulas do not require.
    fn point<V: Lanes>(words: &[V]) -> Point<V> {
        let element = |n: usize| Element::from_words(&[words[n], words[n + 1], words[n + 2], words[n + 3]]);
        Point { plus: element(0), minus: element(4), z: element(8), t: element(12) }
    }

    fn points<V: Lanes, M: LaneSteps<V>>(steps: M, words: &[V]) -> [Vec<[u64; LANES]>; 3] {
        let mut p = point(words);
        steps.double_times(&mut p, 3);
        let doubled = limbs(&[p.plus, p.minus, p.z, p.t]);
        let mut addend = Addend { plus: p.z, minus: p.z, t2d: p.z, z2: p.z };
        steps.addend(&p, &mut addend);
        let prepared = limbs(&[addend.plus, addend.minus, addend.t2d, addend.z2]);
        let mut sum = point(words);
        steps.add(&mut sum, &addend);
        [doubled, prepared, limbs(&[sum.plus, sum.minus, sum.z, sum.t])]
    }

    #[test]
    fn points_have_the_same_limbs() {
        compare(16, (MODEL, |words: &[_]| points(ModelSteps, words)), with_ifma(), points);
        compare(16, (Radix51(MODEL), |words: &[_]| points(ModelRadix51Steps, words)), with_avx2(), points);
    }

    fn hashes<V: Lanes, M: LaneSteps<V>>(steps: M, words: &[V]) -> [Vec<[u64; LANES]>; 2] {
        let mut state = std::array::from_fn(|n| words[n]);
        let block: Vec<_> = words[8..24].iter().map(|word| word.store()).collect();
        let blocks =
            std::array::from_fn(|lane| std::array::from_fn(|n| [block[2 * n][lane], block[2 * n + 1][lane]]));
        steps.compress(&mut state, &blocks, 0b1011_0110);
        let scalar = Scalar::from_digest(&state);
        [state.map(Limbs::store).to_vec(), scalar.0.map(Limbs::store).to_vec()]
    }

    #[test]
    fn hashes_and_scalars_have_the_same_words() {
        compare(24, (MODEL, |words: &[_]| hashes(ModelSteps, words)), with_ifma(), hashes);
        compare(24, (Radix51(MODEL), |words: &[_]| hashes(ModelRadix51Steps, words)), with_avx2(), hashes);
    }

    fn groups<V: Lanes, M: LaneSteps<V>>(steps: M, words: &[V]) -> [Vec<[u64; LANES]>; 1] {
        let mut group = crate::generic::verify::Group::new(words[0]);
        group.key = std::array::from_fn(|n| words[n]);
        group.r = std::array::from_fn(|n| words[4 + n]);
        let mut r: DecodedPoint<V> = (group.x, group.y, 0);
        steps.decode_key_and_r(&mut group, &mut r);
        steps.take_scalars(&mut group, &[words[8]; 4], &std::array::from_fn(|n| words[n]));
        let mut all = limbs(&[group.x, group.y, r.0, r.1]);
        all.extend(group.k.0.iter().chain(&group.s.0).map(|limb| limb.store()));
        let used = ((1_u16 << V::COUNT) - 1) as Mask;
        all.push([u64::from(group.passed.point & used); LANES]);
        [all]
    }

    #[test]
    fn decoded_points_have_the_same_limbs() {
        compare(9, (MODEL, |words: &[_]| groups(ModelSteps, words)), with_ifma(), groups);
        compare(9, (Radix51(MODEL), |words: &[_]| groups(ModelRadix51Steps, words)), with_avx2(), groups);
    }

    fn signatures<V: EightLanes, M: EightLaneSteps<V>>(steps: M, words: &[V]) -> [Vec<[u64; LANES]>; 1] {
        let mut signing = Signing::new(words[0]);
        let comb = vec![[[0x0000_1234_5678_9abc; 16]; 15]; 51];
        steps.multiply_nonce(&mut signing, &std::array::from_fn(|n| words[n]), (&*comb).try_into().unwrap());
        steps.encode(std::slice::from_mut(&mut signing));
        steps.finish(&mut signing, &std::array::from_fn(|n| words[8 + n]));
        [signing.r.iter().chain(&signing.s).map(|word| word.store()).collect()]
    }

    #[test]
    fn signatures_have_the_same_words() {
        compare(16, (MODEL, |words: &[_]| signatures(ModelSteps, words)), with_ifma(), signatures);
    }
}
