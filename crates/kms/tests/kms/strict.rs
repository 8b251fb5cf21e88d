//! The predicate of verification: exactly the strict one.

use bulla_kms::{Algorithm, Code, NamedPublicKey, PublicKey, Verdict};
use curve25519_dalek::{EdwardsPoint, Scalar, constants};
use ed25519_dalek::{Signature, SigningKey, Verifier, VerifyingKey};
use sha2::{Digest, Sha512};

const MESSAGE: &[u8] = b"a message";

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn public_key(key: &SigningKey) -> PublicKey {
    PublicKey::from_bytes(Algorithm::Ed25519, key.verifying_key().as_bytes()).unwrap()
}

/// k of RFC 8032, section 5.1.7.
fn challenge(r: &EdwardsPoint, a: &[u8; 32]) -> Scalar {
    let hash = Sha512::new().chain_update(r.compress().as_bytes()).chain_update(a).chain_update(MESSAGE);
    Scalar::from_bytes_mod_order_wide(&hash.finalize().into())
}

/// A signature with the nonce point `r * B + torsion`, which everyone accepts who multiplies by the
/// cofactor.
fn sign_with_torsion(key: &SigningKey, r: Scalar, torsion: EdwardsPoint) -> Signature {
    let point = EdwardsPoint::mul_base(&r) + torsion;
    let s = r + challenge(&point, key.verifying_key().as_bytes()) * key.to_scalar();
    Signature::from_components(point.compress().to_bytes(), s.to_bytes())
}

#[test]
fn a_signature_made_by_hand_is_valid() {
    let signature = sign_with_torsion(&key(), Scalar::from(5_u8), EdwardsPoint::default());
    assert_eq!(public_key(&key()).verify(MESSAGE, &signature.to_bytes()), Verdict::Valid);
}

#[test]
fn torsion_in_r_is_refused() {
    for torsion in &constants::EIGHT_TORSION[1..] {
        let signature = sign_with_torsion(&key(), Scalar::from(5_u8), *torsion);
        assert_eq!(public_key(&key()).verify(MESSAGE, &signature.to_bytes()), Verdict::Invalid);
    }
}

#[test]
fn r_of_small_order_is_refused_where_the_equation_alone_holds() {
    let signature = sign_with_torsion(&key(), Scalar::ZERO, EdwardsPoint::default());
    assert!(key().verifying_key().verify(MESSAGE, &signature).is_ok(), "the equation holds");
    assert_eq!(public_key(&key()).verify(MESSAGE, &signature.to_bytes()), Verdict::Invalid);
}

#[test]
fn s_that_is_not_below_the_order_is_refused() {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut bytes = sign_with_torsion(&key(), Scalar::from(5_u8), EdwardsPoint::default()).to_bytes();
    let mut carry = 0;
    for (byte, order) in bytes[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = sum as u8;
        carry = sum >> 8;
    }
    assert_eq!(carry, 0, "S and the order have room in 32 bytes");
    assert_eq!(public_key(&key()).verify(MESSAGE, &bytes), Verdict::Invalid);
}

#[test]
fn public_keys_of_small_order_are_refused() {
    for point in constants::EIGHT_TORSION {
        let bytes = point.compress().to_bytes();
        assert!(VerifyingKey::from_bytes(&bytes).is_ok(), "the bytes are a point");
        assert_eq!(
            PublicKey::from_bytes(Algorithm::Ed25519, &bytes).unwrap_err().code,
            Code::InvalidPublicKey
        );
    }
}

#[test]
fn public_keys_whose_y_is_not_reduced_are_refused() {
    let (mut points, mut twins) = (0, 0);
    for (y, sign) in (0..19).flat_map(|y| [(y, 0), (y, 0x80)]) {
        let (mut unreduced, mut reduced) = ([0xff; 32], [0; 32]);
        (unreduced[0], unreduced[31]) = (0xed + y, 0x7f | sign);
        (reduced[0], reduced[31]) = (y, sign);
        points += usize::from(VerifyingKey::from_bytes(&unreduced).is_ok_and(|key| !key.is_weak()));
        twins += usize::from(PublicKey::from_bytes(Algorithm::Ed25519, &reduced).is_ok());
        let error = PublicKey::from_bytes(Algorithm::Ed25519, &unreduced).unwrap_err();
        assert_eq!(error.code, Code::InvalidPublicKey, "y = p + {y}, sign {sign}");
    }
    assert_eq!((points, twins), (20, 20), "the reduced keys of the same points are taken");
    // The largest y that is reduced, with as many of its bits set: p - 2 is on the curve or not,
    // and never unreduced.
    for y in 0xe0..0xed {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (y, 0x7f);
        let is_key = VerifyingKey::from_bytes(&bytes).is_ok_and(|key| !key.is_weak());
        assert_eq!(PublicKey::from_bytes(Algorithm::Ed25519, &bytes).is_ok(), is_key, "{y}");
    }
}

#[test]
fn bytes_that_are_no_point_are_no_public_key() {
    let not_on_the_curve = {
        let mut bytes = [0; 32];
        bytes[0] = 2;
        bytes
    };
    assert_eq!(
        PublicKey::from_bytes(Algorithm::Ed25519, &not_on_the_curve).unwrap_err().code,
        Code::InvalidPublicKey
    );
    let good = *key().verifying_key().as_bytes();
    for bytes in [&[][..], &good[..31], &[&good[..], &[0]].concat()] {
        assert_eq!(
            PublicKey::from_bytes(Algorithm::Ed25519, bytes).unwrap_err().code,
            Code::InvalidPublicKey
        );
    }
}

#[test]
fn every_flipped_bit_of_a_signature_is_invalid() {
    let bytes = sign_with_torsion(&key(), Scalar::from(5_u8), EdwardsPoint::default()).to_bytes();
    for bit in 0..512 {
        let mut flipped = bytes;
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(public_key(&key()).verify(MESSAGE, &flipped), Verdict::Invalid, "bit {bit}");
    }
}

#[test]
fn a_public_key_has_one_text_form() {
    let key = public_key(&key());
    let text = key.to_string();
    assert_eq!(text.len(), 44);
    assert_eq!(text.parse::<PublicKey>().unwrap(), key);
    assert_eq!(serde_json::to_value(key).unwrap(), text);
    let last = text.chars().nth(42).unwrap();
    // The last character but the padding has two bits that are not of the key: only zeros are read
    // there.
    let ambiguous = text.replacen(&format!("{last}="), &format!("{}=", (last as u8 + 1) as char), 1);
    for bad in [
        ambiguous,
        text.trim_end_matches('=').to_owned(),
        format!("{text}\n"),
        format!(" {text}"),
        text.replace(|c: char| c.is_ascii_alphabetic(), "-"),
        String::new(),
    ] {
        assert_eq!(bad.parse::<PublicKey>().unwrap_err().code, Code::InvalidPublicKey, "{bad:?}");
    }
}

#[test]
fn a_named_public_key_is_two_lines() {
    let named = NamedPublicKey {
        key: "local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3".parse().unwrap(),
        public_key: public_key(&key()),
    };
    let text = named.to_string();
    assert_eq!(text, format!("bulla public key v1: {}\n{}\n", named.key, named.public_key));
    assert_eq!(text.parse::<NamedPublicKey>().unwrap(), named);
    for bad in [
        text.replace("v1:", "v2:"),
        text.replace("/v3", "/v03"),
        text.replace('\n', "\r\n"),
        text.trim_end().to_owned(),
        format!("{text}\n"),
        text.replace(&named.public_key.to_string(), "AAAA"),
        named.public_key.to_string(),
        String::new(),
    ] {
        assert_eq!(bad.parse::<NamedPublicKey>().unwrap_err().code, Code::InvalidPublicKey, "{bad:?}");
    }
}
