//! Signatures of every kind, good and bad, made from the mathematics: with chosen secret scalars,
//! torsion on A and R, and encodings that no signer writes.

use bulla_ed25519::VerifyItem;
use curve25519_dalek::{EdwardsPoint, Scalar, constants::EIGHT_TORSION};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha512};

/// One signature.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Which of [`KINDS`].
    pub(crate) kind: &'static str,
    /// The public key.
    pub(crate) public_key: [u8; 32],
    /// The message.
    pub(crate) message: Vec<u8>,
    /// R and S.
    pub(crate) signature: [u8; 64],
}

/// The kinds, in the order in which [`case`] makes them.
pub(crate) const KINDS: [&str; 19] = [
    "valid",
    "bit of R",
    "bit of S",
    "bit of A",
    "other message",
    "S + j l",
    "torsion on A",
    "torsion on R",
    "torsion on both",
    "torsion on both that cancels",
    "odd encoding of A",
    "odd encoding of R",
    "odd encodings of both",
    "noise as A",
    "noise as R",
    "S near l",
    "R with the other sign",
    "A that is no point",
    "noise as A, R and S",
];

/// Encodings of y that no point has, and with which decoding leaves an x off the curve such that a
/// small multiple of (x, y), by the formulas for points, has Z = 0: the fourth for the first two,
/// then the fifth, the sixth and the seventh. Either sign has that property.
pub(crate) const OFF_THE_CURVE: [&str; 8] = [
    "ef2945cc5383c154c6af5956a5d72edc9afe26305e08b955b5aef94077b8e608",
    "fed5ba33ac7c3eab3950a6a95a28d1236501d9cfa1f746aa4a5106bf88471977",
    "6dbfc9ea7849cc72b7d70fb4fd49aa189769049ba67ccbc9c7ed596911dd730d",
    "8040361587b6338d4828f04b02b655e76896fb64598334363812a696ee228c72",
    "68acc41a1d0e859ef75444b9387110d3c2b9958d4a05487da84b85e9f48f2c0d",
    "85533be5e2f17a6108abbb46c78eef2c3d466a72b5fab78257b47a160b70d372",
    "334afcc91ed442efdcee2aa91b37f1ddb747e2bc894c907ee4449d672afb2327",
    "bab50336e12bbd102311d556e4c80e2248b81d4376b36f811bbb6298d504dc58",
];

/// One of [`OFF_THE_CURVE`], for any `index`, with the sign that it says.
pub(crate) fn off_the_curve(index: usize) -> [u8; 32] {
    let text = OFF_THE_CURVE[index / 2 % OFF_THE_CURVE.len()];
    let mut key = std::array::from_fn(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap());
    key[31] |= (index as u8 % 2) << 7;
    key
}

/// l, little-endian.
pub(crate) const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

impl Case {
    /// As the library takes it.
    pub(crate) fn item(&self) -> VerifyItem<'_> {
        VerifyItem { public_key: &self.public_key, message: &self.message, signature: &self.signature }
    }

    /// What `verify_strict` of ed25519-dalek says.
    pub(crate) fn dalek_strict(&self) -> bool {
        VerifyingKey::from_bytes(&self.public_key).is_ok_and(|key| {
            key.verify_strict(&self.message, &Signature::from_bytes(&self.signature)).is_ok()
        })
    }

    /// A signature for secret scalars `a` of the key and `r` of R, whatever their encodings are.
    pub(crate) fn with_encodings(
        kind: &'static str,
        (public_key, a): ([u8; 32], Scalar),
        (r_bytes, r): ([u8; 32], Scalar),
        message: Vec<u8>,
    ) -> Self {
        let s = r + challenge(&r_bytes, &public_key, &message) * a;
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&r_bytes);
        signature[32..].copy_from_slice(s.as_bytes());
        Self { kind, public_key, message, signature }
    }

    /// The same with a torsion point on each.
    pub(crate) fn with_torsion(
        kind: &'static str,
        a: Scalar,
        on_a: usize,
        r: Scalar,
        on_r: usize,
        message: Vec<u8>,
    ) -> Self {
        let encode = |scalar: Scalar, torsion: usize| {
            (EdwardsPoint::mul_base(&scalar) + EIGHT_TORSION[torsion]).compress().to_bytes()
        };
        Self::with_encodings(kind, (encode(a, on_a), a), (encode(r, on_r), r), message)
    }
}

/// SHA-512 of R, A and the message, modulo l.
pub(crate) fn challenge(r: &[u8; 32], public_key: &[u8; 32], message: &[u8]) -> Scalar {
    let digest = Sha512::new().chain_update(r).chain_update(public_key).chain_update(message).finalize();
    Scalar::from_bytes_mod_order_wide(&digest.into())
}

/// A secret scalar.
pub(crate) fn scalar(random: &mut fastrand::Rng) -> Scalar {
    let mut bytes = [0; 64];
    random.fill(&mut bytes);
    Scalar::from_bytes_mod_order_wide(&bytes)
}

/// Encodings that no signer writes: points of small order with either sign, and every y from the
/// prime on.
pub(crate) fn odd_encodings() -> Vec<[u8; 32]> {
    let mut all = Vec::new();
    for point in EIGHT_TORSION {
        let mut bytes = point.compress().to_bytes();
        all.push(bytes);
        bytes[31] ^= 0x80;
        all.push(bytes);
    }
    for above in 0..19 {
        for last in [0x7f, 0xff] {
            let mut bytes = [0xff; 32];
            bytes[0] = 0xed + above;
            bytes[31] = last;
            all.push(bytes);
        }
    }
    all
}

/// `bytes + j l`, modulo 2^256.
pub(crate) fn plus_order(bytes: &mut [u8], times: u32) {
    for _ in 0..times {
        let mut carry = 0;
        for (byte, order) in bytes.iter_mut().zip(ORDER) {
            let sum = u16::from(*byte) + u16::from(order) + carry;
            *byte = sum as u8;
            carry = sum >> 8;
        }
    }
}

/// Case `index` of the sequence that `random` makes: kinds take turns.
pub(crate) fn case(index: usize, message: Vec<u8>, odd: &[[u8; 32]], random: &mut fastrand::Rng) -> Case {
    let kind = KINDS[index % KINDS.len()];
    let (a, r) = (scalar(random), scalar(random));
    let mut valid = Case::with_torsion(kind, a, 0, r, 0, message.clone());
    let bit = random.usize(..256);
    let flip = |bytes: &mut [u8]| bytes[bit / 8] ^= 1 << (bit % 8);
    match kind {
        "valid" => {}
        "bit of R" => flip(&mut valid.signature[..32]),
        "bit of S" => flip(&mut valid.signature[32..]),
        "bit of A" => flip(&mut valid.public_key),
        "other message" => match valid.message.first_mut() {
            Some(byte) => *byte ^= 1 << (bit % 8),
            None => valid.message.push(0),
        },
        "S + j l" => plus_order(&mut valid.signature[32..], random.u32(1..=15)),
        "torsion on A" => return Case::with_torsion(kind, a, random.usize(1..8), r, 0, message),
        "torsion on R" => return Case::with_torsion(kind, a, 0, r, random.usize(1..8), message),
        "torsion on both" => {
            return Case::with_torsion(kind, a, random.usize(1..8), r, random.usize(1..8), message);
        }
        "torsion on both that cancels" => return canceling(kind, a, r, message, random),
        "odd encoding of A" => {
            let key = odd[random.usize(..odd.len())];
            return Case::with_encodings(
                kind,
                (key, Scalar::ZERO),
                (valid.signature[..32].try_into().unwrap(), r),
                message,
            );
        }
        "odd encoding of R" => {
            let other = odd[random.usize(..odd.len())];
            return Case::with_encodings(kind, (valid.public_key, a), (other, Scalar::ZERO), message);
        }
        "odd encodings of both" => {
            let (key, other) = (odd[random.usize(..odd.len())], odd[random.usize(..odd.len())]);
            return Case::with_encodings(kind, (key, Scalar::ZERO), (other, Scalar::ZERO), message);
        }
        "R with the other sign" => {
            // Valid but for the sign of R: S is made for it.
            let mut other = EdwardsPoint::mul_base(&r).compress().to_bytes();
            other[31] ^= 0x80;
            return Case::with_encodings(kind, (valid.public_key, a), (other, r), message);
        }
        "A that is no point" => {
            // A signature of zeros makes the sum a multiple of A alone.
            valid.public_key = off_the_curve(random.usize(..));
            if random.bool() {
                valid.signature = [0; 64];
            }
        }
        "noise as A, R and S" => {
            random.fill(&mut valid.public_key);
            random.fill(&mut valid.signature);
        }
        "noise as A" => random.fill(&mut valid.public_key),
        "noise as R" => random.fill(&mut valid.signature[..32]),
        _ => near_order(&mut valid.signature[32..], random),
    }
    valid
}

/// Torsion on A and R whose parts of the equation cancel, for which a message has to be searched:
/// strict verification accepts it.
fn canceling(
    kind: &'static str,
    a: Scalar,
    r: Scalar,
    mut message: Vec<u8>,
    random: &mut fastrand::Rng,
) -> Case {
    let on_a = random.usize(1..8);
    let (key, point) = (EdwardsPoint::mul_base(&a), EdwardsPoint::mul_base(&r));
    let public_key = (key + EIGHT_TORSION[on_a]).compress().to_bytes();
    loop {
        for (on_r, torsion) in EIGHT_TORSION.iter().enumerate() {
            let r_bytes = (point + torsion).compress().to_bytes();
            let k = challenge(&r_bytes, &public_key, &message);
            // Entry i is i times entry 1, whose order is eight.
            if (on_a * usize::from(k.as_bytes()[0]) + on_r).is_multiple_of(8) {
                return Case::with_encodings(kind, (public_key, a), (r_bytes, r), message);
            }
        }
        message.push(random.u8(..));
    }
}

/// l - 2 to l + 2, and the greatest numbers.
fn near_order(s: &mut [u8], random: &mut fastrand::Rng) {
    s.copy_from_slice(&ORDER);
    match random.u8(..6) {
        0 => s.fill(0xff),
        n => s[0] = s[0] - 3 + n,
    }
}

/// `count` cases with messages of up to `longest` bytes.
pub(crate) fn cases(count: usize, longest: usize, seed: u64) -> Vec<Case> {
    let mut random = fastrand::Rng::with_seed(seed);
    let odd = odd_encodings();
    (0..count)
        .map(|index| {
            let mut message = vec![0; random.usize(..=longest)];
            random.fill(&mut message);
            case(index, message, &odd, &mut random)
        })
        .collect()
}
