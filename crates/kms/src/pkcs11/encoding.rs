//! Converts public keys and signatures from the tokens' encodings to ours.

use crate::algorithm::Algorithm;
use crate::backend::p256;

/// The public key in an attribute `CKA_EC_POINT`.
///
/// PKCS #11 wants a DER OCTET STRING around the point of a Weierstrass curve. For an Edwards curve,
/// version 3.0 wants only the bytes of RFC 8032; later versions have been read either way. In
/// practice tokens return both forms for both kinds of curve, and the lengths tell them apart.
pub(super) fn public_key(algorithm: Algorithm, attribute: &[u8]) -> Option<Vec<u8>> {
    let is_bare = |length: usize| match algorithm {
        Algorithm::Ed25519 => length == 32,
        // Uncompressed and compressed.
        _ => length == 65 || length == 33,
    };
    // Decide by the length alone: a bare key may begin with the same bytes as an OCTET STRING.
    let point = match attribute {
        bare if is_bare(bare.len()) => bare,
        [4, length, wrapped @ ..] if usize::from(*length) == wrapped.len() && is_bare(wrapped.len()) => {
            wrapped
        }
        _ => return None,
    };
    match algorithm {
        Algorithm::EcdsaP256 => p256::compress(point),
        _ => Some(point.to_vec()),
    }
}

/// A token's signature, in the only form that we verify.
pub(super) fn signature(algorithm: Algorithm, bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() != algorithm.output_length() {
        return None;
    }
    match algorithm {
        Algorithm::EcdsaP256 => p256::normalize(bytes),
        _ => Some(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator of P-256 (SEC 2, section 2.4.2), whose y is odd.
    const GENERATOR: &str = "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296\
                             4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn an_edwards_key_is_read_alone_and_in_an_octet_string() {
        for first in [0, 4] {
            let key = [vec![first], vec![30], vec![7; 30]].concat();
            let wrapped = [vec![4, 32], key.clone()].concat();
            assert_eq!(
                public_key(Algorithm::Ed25519, &key),
                Some(key.clone()),
                "a key may begin as DER does"
            );
            assert_eq!(public_key(Algorithm::Ed25519, &wrapped), Some(key));
            for wrong in [&wrapped[1..], &wrapped[..33], &[&wrapped[..], &[0]].concat(), &[]] {
                assert_eq!(public_key(Algorithm::Ed25519, wrong), None);
            }
        }
    }

    #[test]
    fn a_point_of_p256_is_read_alone_and_in_an_octet_string() {
        let point = bytes(GENERATOR);
        let compressed = [vec![3], point[1..33].to_vec()].concat();
        let wrapped = [vec![4, 65], point.clone()].concat();
        for form in [&point, &wrapped, &compressed] {
            assert_eq!(public_key(Algorithm::EcdsaP256, form).as_ref(), Some(&compressed));
        }
        let mut moved = point.clone();
        moved[64] ^= 1;
        for wrong in [&moved[..], &point[..64], &[]] {
            assert_eq!(public_key(Algorithm::EcdsaP256, wrong), None);
        }
    }

    #[test]
    fn a_signature_of_another_length_is_none() {
        for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256] {
            for length in [0, 63, 65, 71] {
                assert_eq!(signature(algorithm, &vec![1; length]), None);
            }
        }
    }
}
