//! Tests of the formulas themselves: bounds by intervals, and the limbs of the vector kernel against those of the model.

use super::field::Element;
use super::point::{Addend, AffineAddend, Completed, Point, Projective};
use super::power;
use super::scalar::Scalar;
use crate::lanes::interval::Interval;
use crate::lanes::model::Model;
use crate::lanes::{LANES, Lanes, M52};

/// The largest top limb after carries.
const CARRIED: i128 = (1 << 47) + (1 << 17);

/// Four limbs with any bits above bit 52, and a top limb as after carries.
fn any() -> Element<Interval> {
    let any = Interval::new(0, u64::MAX.into());
    Element([any, any, any, any, Interval::new(0, CARRIED)])
}

/// The formulas' requirement on an element that is multiplied: a small top limb that is not negative.
fn assert_ready(name: &str, element: &Element<Interval>, top: i128) {
    let limb = element.0[4];
    assert!(limb.low >= 0 && limb.high <= top, "{name}: {limb:x?}");
}

/// Asserts that every form after a sum or a doubling is ready for the next step.
fn assert_carried(completed: &Completed<Interval>) {
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
        assert_ready(name, element, CARRIED);
    }
}

/// -A after decoding.
fn decoded() -> Point<Interval> {
    let mut canonical = Element([Interval::new(0, M52.into()); 5]);
    canonical.0[4] = Interval::new(0, (1 << 47) - 1);
    Point::from_affine(&canonical, &canonical)
}

#[test]
fn bounds_of_doublings_and_sums_hold_forever() {
    assert_carried(&Projective { x: any(), y: any(), z: any(), sum: any() }.double());
    let point = Point { plus: any(), minus: any(), z: any(), t: any() };
    for addend in [point.addend(), Addend { plus: any(), minus: any(), t2d: any(), z2: any() }] {
        let sum = point.add(&addend, 0);
        assert_carried(&sum);
        let affine = AffineAddend { plus: any(), minus: any(), t2d: any() };
        assert_carried(&sum.add_affine(&affine, 0));
        assert_carried(&point.add_affine(&affine, 0));
    }
}

#[test]
fn bounds_of_first_points_hold() {
    for point in [decoded(), Point::identity(any().0[4])] {
        assert_carried(&point.projective().double());
        assert_carried(&point.add(&point.addend(), 0));
    }
    assert_carried(&Completed::identity(any().0[4]));
}

#[test]
fn bounds_of_decoding_and_canonical_forms_hold() {
    let word = Interval::new(0, u64::MAX.into());
    for (x, y, _) in power::decode(&[[word; 4]; 2]) {
        assert_ready("x", &x, (1 << 47) - 1);
        assert_ready("y", &y, (1 << 47) - 1);
    }
    for limb in any().canonical().0 {
        assert!(limb.low == 0 && limb.high <= M52.into());
    }
}

/// Intervals are too coarse for scalars: only all limbs together show that a difference is not negative. So the model reduces numbers
/// at the ends of the range.
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
    use crate::generic::msm;
    use crate::generic::sign::Signing;
    use crate::kernel::machine::{Ifma, Machine, Scalars};
    use std::io::Write as _;

    /// Runs `steps` on both machines from the same random words, and compares everything that they leave.
    fn compare<const N: usize>(
        words: usize,
        model: impl Fn(Scalars, &[Model]) -> [Vec<[u64; LANES]>; N],
        vector: impl Fn(Ifma, &[crate::lanes::ifma::Vector]) -> [Vec<[u64; LANES]>; N],
    ) {
        let Some(ifma) = Ifma::detect() else {
            assert!(!std::arch::is_x86_feature_detected!("avx512ifma"));
            // Bypass the test harness's capture, so that everyone sees it.
            let note = "not tested: the limbs of x86_64/avx512ifma, which this machine does not have\n";
            std::io::stderr().write_all(note.as_bytes()).unwrap();
            return;
        };
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..20 {
            let lanes: Vec<[u64; LANES]> =
                (0..words).map(|_| std::array::from_fn(|_| random.u64(..))).collect();
            let ours: Vec<_> = lanes.iter().map(|lanes| Model(*lanes)).collect();
            let theirs: Vec<_> = lanes.iter().map(|lanes| ifma.splat(0).load(lanes)).collect();
            assert_eq!(model(Scalars, &ours), vector(ifma, &theirs));
        }
    }

    fn limbs<V: Lanes>(elements: &[Element<V>]) -> Vec<[u64; LANES]> {
        elements.iter().flat_map(|element| element.0.map(Lanes::store)).collect()
    }

    /// A point with random limbs. It is not on the curve, which these formulas do not require.
    fn point<V: Lanes>(words: &[V]) -> Point<V> {
        let element = |n: usize| Element::from_words(&[words[n], words[n + 1], words[n + 2], words[n + 3]]);
        Point { plus: element(0), minus: element(4), z: element(8), t: element(12) }
    }

    fn points<V: Lanes, M: Machine<V>>(machine: M, words: &[V]) -> [Vec<[u64; LANES]>; 3] {
        let mut p = point(words);
        machine.double_times(&mut p, 3);
        let doubled = limbs(&[p.plus, p.minus, p.z, p.t]);
        let mut addend = Addend { plus: p.z, minus: p.z, t2d: p.z, z2: p.z };
        machine.addend(&p, &mut addend);
        let prepared = limbs(&[addend.plus, addend.minus, addend.t2d, addend.z2]);
        let mut sum = point(words);
        machine.add(&mut sum, &addend);
        [doubled, prepared, limbs(&[sum.plus, sum.minus, sum.z, sum.t])]
    }

    #[test]
    fn points_have_the_same_limbs() {
        compare(16, points::<Model, Scalars>, points::<_, Ifma>);
    }

    fn hashes<V: Lanes, M: Machine<V>>(machine: M, words: &[V]) -> [Vec<[u64; LANES]>; 2] {
        let mut state = std::array::from_fn(|n| words[n]);
        let block: Vec<_> = words[8..24].iter().map(|word| word.store()).collect();
        let blocks =
            std::array::from_fn(|lane| std::array::from_fn(|n| [block[2 * n][lane], block[2 * n + 1][lane]]));
        machine.compress(&mut state, &blocks, 0b1011_0110);
        let scalar = Scalar::from_digest(&state);
        [state.map(Lanes::store).to_vec(), scalar.0.map(Lanes::store).to_vec()]
    }

    #[test]
    fn hashes_and_scalars_have_the_same_words() {
        compare(24, hashes::<Model, Scalars>, hashes::<_, Ifma>);
    }

    fn groups<V: Lanes, M: Machine<V>>(machine: M, words: &[V]) -> [Vec<[u64; LANES]>; 1] {
        let mut group = crate::generic::verify::Group::new(words[0]);
        group.key = std::array::from_fn(|n| words[n]);
        group.r = std::array::from_fn(|n| words[4 + n]);
        let mut r: msm::Decoded<V> = (group.x, group.y, 0);
        machine.decode_key_and_r(&mut group, &mut r);
        machine.take_scalars(&mut group, &[words[8]; 4], &std::array::from_fn(|n| words[n]));
        let mut all = limbs(&[group.x, group.y, r.0, r.1]);
        all.extend(group.k.0.iter().chain(&group.s.0).map(|limb| limb.store()));
        all.push([u64::from(group.passed.point); LANES]);
        [all]
    }

    #[test]
    fn decoded_points_have_the_same_limbs() {
        compare(9, groups::<Model, Scalars>, groups::<_, Ifma>);
    }

    fn signatures<V: Lanes, M: Machine<V>>(machine: M, words: &[V]) -> [Vec<[u64; LANES]>; 1] {
        let mut signing = Signing::new(words[0]);
        let comb = vec![[[0x0000_1234_5678_9abc; 16]; 15]; 51];
        machine.multiply_nonce(
            &mut signing,
            &std::array::from_fn(|n| words[n]),
            (&*comb).try_into().unwrap(),
        );
        machine.encode(std::slice::from_mut(&mut signing));
        machine.finish(&mut signing, &std::array::from_fn(|n| words[8 + n]));
        [signing.r.iter().chain(&signing.s).map(|word| word.store()).collect()]
    }

    #[test]
    fn signatures_have_the_same_words() {
        compare(16, signatures::<Model, Scalars>, signatures::<_, Ifma>);
    }
}
