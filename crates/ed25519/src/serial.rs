//! Ed25519 by `curve25519-dalek`, one signature after the other: all that there is without the
//! standard library, and what the kernels share.

use crate::signing_key::ExpandedSecretKey;
use crate::verdict::InvalidReason;
use curve25519_dalek::digest::{Digest, array::typenum::U64};
use curve25519_dalek::{EdwardsPoint, Scalar};
use zeroize::Zeroizing;

/// l, little-endian (RFC 8032, section 5.1).
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The y coordinates of all points of small order, with the sign bit cleared, little-endian: the
/// five below the prime, and 0 and 1 again with the prime added.
const SMALL_ORDER_Y: [[u8; 32]; 7] = {
    const LAST: u8 = 0x7f;
    const fn near_the_prime(first: u8) -> [u8; 32] {
        let mut bytes = [0xff; 32];
        bytes[0] = first;
        bytes[31] = LAST;
        bytes
    }
    let (zero, mut one) = ([0; 32], [0; 32]);
    one[0] = 1;
    [
        zero,
        one,
        near_the_prime(0xec),
        near_the_prime(0xed),
        near_the_prime(0xee),
        [
            0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
            0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
        ],
        [
            0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
            0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
        ],
    ]
};

/// Whether S is below the order.
pub(crate) fn is_canonical_scalar(s: &[u8; 32]) -> bool {
    s.iter().rev().lt(ORDER.iter().rev())
}

/// S, if the functions with the names of dalek accept it. Adding the order to S changes no point,
/// so that S may be reduced.
pub(crate) fn accepted_scalar(s: &[u8; 32]) -> Result<Scalar, InvalidReason> {
    let is_accepted = is_canonical_scalar(s) || cfg!(feature = "legacy_compatibility") && s[31] & 0xe0 == 0;
    if is_accepted { Ok(Scalar::from_bytes_mod_order(*s)) } else { Err(InvalidReason::ScalarNotCanonical) }
}

/// Whether the y of an encoding belongs to a point of small order. The encoding need not be a
/// point.
pub(crate) fn has_small_order_y(encoding: &[u8; 32]) -> bool {
    let mut y = *encoding;
    y[31] &= 0x7f;
    SMALL_ORDER_Y.contains(&y)
}

/// Whether s B - k A has the encoding R.
pub(crate) fn equation_holds(k: &Scalar, key: &EdwardsPoint, s: &Scalar, r: &[u8; 32]) -> bool {
    EdwardsPoint::vartime_double_scalar_mul_basepoint(k, &-key, s).compress().as_bytes() == r
}

/// Signs what `update` hashes (RFC 8032, section 5.1.6). `domain` precedes everything that is
/// hashed.
///
/// Leaves the nonce in its own frame and in the frames below it, which the caller wipes.
pub(crate) fn sign<D: Digest<OutputSize = U64>, E>(
    key: &ExpandedSecretKey,
    public_key: &[u8; 32],
    domain: &[u8],
    update: impl Fn(&mut D) -> Result<(), E>,
) -> Result<[u8; 64], E> {
    let mut hash = D::new_with_prefix(domain);
    hash.update(key.hash_prefix);
    update(&mut hash)?;
    let nonce = Zeroizing::new(Scalar::from_hash(hash));
    let r = EdwardsPoint::mul_base(&nonce).compress();
    let mut hash = D::new_with_prefix(domain);
    hash.update(r.as_bytes());
    hash.update(public_key);
    update(&mut hash)?;
    let s = *nonce + Scalar::from_hash(hash) * key.scalar;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(r.as_bytes());
    signature[32..].copy_from_slice(s.as_bytes());
    Ok(signature)
}
