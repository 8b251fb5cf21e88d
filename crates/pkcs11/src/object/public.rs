//! Public keys: their attributes, and verification.
//!
//! The module verifies by itself, with the software of the keystore: no request, and the same
//! verdict as the service's.

use bulla_kms::prehash::{HashFunction, Prehashed, RsaPadding};
use bulla_kms::transfer::{PublicFormat, export_public, with_lower_s};
use bulla_kms::{Algorithm, PublicKey};
use cryptoki_sys::*;

use crate::error::{Failure, Result, fail, require};
use crate::object::attributes::{Attributes, Template};
use crate::operation::mechanism::{Padding, Scheme};

/// The tag of an OCTET STRING in DER.
const OCTET_STRING: u8 = 0x04;
/// The exponent of all RSA keys of the service.
pub(crate) const RSA_EXPONENT: [u8; 3] = [1, 0, 1];
/// The DER of that exponent, the end of an `RSAPublicKey`.
const RSA_EXPONENT_DER_LEN: usize = 5;

/// The object identifier of a curve, as DER, and the length of a point in bytes.
fn curve(algorithm: Algorithm) -> Option<(&'static [u8], usize)> {
    match algorithm {
        Algorithm::Ed25519 => Some((&[0x06, 0x03, 0x2b, 0x65, 0x70], 32)),
        Algorithm::X25519 => Some((&[0x06, 0x03, 0x2b, 0x65, 0x6e], 32)),
        Algorithm::EcdsaP256 | Algorithm::EcdhP256 => {
            Some((&[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], 65))
        }
        Algorithm::EcdsaP384 | Algorithm::EcdhP384 => Some((&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22], 97)),
        Algorithm::EcdsaP521 | Algorithm::EcdhP521 => {
            Some((&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23], 133))
        }
        _ => None,
    }
}

/// The names of curves as PrintableStrings in DER, which older programs give instead of the object
/// identifier.
const NAMED: [(&[u8], Algorithm); 2] =
    [(b"\x13\x0cedwards25519", Algorithm::Ed25519), (b"\x13\x0acurve25519", Algorithm::X25519)];

/// The algorithm of a curve, as programs name it; of those with two algorithms, the one that signs.
pub(crate) fn algorithm_of_curve(parameters: &[u8]) -> Option<Algorithm> {
    use Algorithm::{EcdsaP256, EcdsaP384, EcdsaP521, Ed25519, X25519};
    let all = [Ed25519, X25519, EcdsaP256, EcdsaP384, EcdsaP521];
    let found = all.into_iter().find(|known| curve(*known).is_some_and(|(name, _)| name == parameters));
    let named = || NAMED.iter().find(|(name, _)| *name == parameters).map(|(_, algorithm)| *algorithm);
    found.or_else(named)
}

/// The public key of a template, on a curve.
///
/// # Errors
/// `CKR_TEMPLATE_INCOMPLETE`; `CKR_ATTRIBUTE_VALUE_INVALID` for what is not a key;
/// `CKR_CURVE_NOT_SUPPORTED` and `CKR_TEMPLATE_INCONSISTENT` for keys of other kinds.
pub(crate) fn of_template(template: &Template<'_>) -> Result<PublicKey> {
    let kind = template.number(CKA_KEY_TYPE)?.ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
    let value = |kind| template.get(kind).ok_or(Failure(CKR_TEMPLATE_INCOMPLETE));
    match kind {
        CKK_EC | CKK_EC_EDWARDS | CKK_EC_MONTGOMERY => {
            let algorithm =
                algorithm_of_curve(value(CKA_EC_PARAMS)?).ok_or(Failure(CKR_CURVE_NOT_SUPPORTED))?;
            require(key_type(algorithm) == Some(kind), CKR_TEMPLATE_INCONSISTENT)?;
            of_point(algorithm, value(CKA_EC_POINT)?)
        }
        _ => fail(CKR_TEMPLATE_INCONSISTENT),
    }
}

/// The key of a point, which is in an OCTET STRING, or as it is.
fn of_point(algorithm: Algorithm, encoded: &[u8]) -> Result<PublicKey> {
    let (_, length) = curve(algorithm).ok_or(Failure(CKR_GENERAL_ERROR))?;
    let start = encoded.len().checked_sub(length).ok_or(Failure(CKR_ATTRIBUTE_VALUE_INVALID))?;
    let point = &encoded[start..];
    require(start == 0 || encoded == octet_string(point), CKR_ATTRIBUTE_VALUE_INVALID)?;
    let key = public_key_of(algorithm, point)?;
    let mut attributes = Attributes::default();
    describe(&key, &mut attributes)?;
    // A compressed point has lost most of its y.
    let is_same = attributes.get(CKA_EC_POINT) == Some(&octet_string(point));
    require(is_same, CKR_ATTRIBUTE_VALUE_INVALID)?;
    Ok(key)
}

/// The public key of a point that is not compressed, or of 32 bytes.
///
/// # Errors
/// `CKR_ATTRIBUTE_VALUE_INVALID`.
pub(crate) fn public_key_of(algorithm: Algorithm, point: &[u8]) -> Result<PublicKey> {
    let bytes = match (algorithm, point) {
        // The keystore has compressed points of this curve.
        (Algorithm::EcdsaP256, [4, both @ ..]) => {
            let (x, y) = both.split_at(both.len() / 2);
            let last = y.last().ok_or(Failure(CKR_ATTRIBUTE_VALUE_INVALID))?;
            [&[2 + (last & 1)], x].concat()
        }
        _ => point.to_vec(),
    };
    PublicKey::from_bytes(algorithm, &bytes).map_err(|_| Failure(CKR_ATTRIBUTE_VALUE_INVALID))
}

/// The point of a peer's public key, on the curve of a key that agrees on secrets.
///
/// # Errors
/// `CKR_KEY_TYPE_INCONSISTENT`; `CKR_MECHANISM_PARAM_INVALID` for another length. Whether it is a
/// point of the curve is not checked.
pub(crate) fn peer_point(algorithm: Algorithm, encoded: &[u8]) -> Result<&[u8]> {
    let (_, length) = curve(algorithm).ok_or(Failure(CKR_KEY_TYPE_INCONSISTENT))?;
    let start = encoded.len().checked_sub(length).ok_or(Failure(CKR_MECHANISM_PARAM_INVALID))?;
    let point = &encoded[start..];
    // Programs give the point as it is, or as in `CKA_EC_POINT`.
    require(start == 0 || encoded == octet_string(point), CKR_MECHANISM_PARAM_INVALID)?;
    Ok(point)
}

/// A number without the zeros in front of it.
pub(crate) fn without_zeros(number: &[u8]) -> &[u8] {
    &number[number.iter().take_while(|byte| **byte == 0).count()..]
}

/// The type of the keys of an algorithm; none if programs have no use for them.
pub(crate) fn key_type(algorithm: Algorithm) -> Option<CK_KEY_TYPE> {
    Some(match algorithm {
        Algorithm::Ed25519 => CKK_EC_EDWARDS,
        Algorithm::EcdsaP256 | Algorithm::EcdsaP384 | Algorithm::EcdsaP521 => CKK_EC,
        Algorithm::EcdhP256 | Algorithm::EcdhP384 | Algorithm::EcdhP521 => CKK_EC,
        Algorithm::X25519 => CKK_EC_MONTGOMERY,
        Algorithm::Rsa2048 | Algorithm::Rsa3072 | Algorithm::Rsa4096 => CKK_RSA,
        Algorithm::HmacSha256 | Algorithm::HmacSha384 | Algorithm::HmacSha512 => CKK_GENERIC_SECRET,
        Algorithm::Aes128Gcm | Algorithm::Aes256Gcm => CKK_AES,
        _ => return None,
    })
}

/// Bytes as an OCTET STRING in DER. They are shorter than 256 bytes.
fn octet_string(bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("a point has at most 133 bytes");
    match length {
        0..0x80 => [&[OCTET_STRING, length], bytes].concat(),
        _ => [&[OCTET_STRING, 0x81, length], bytes].concat(),
    }
}

/// Adds the attributes that say which public key it is.
///
/// # Errors
/// `CKR_GENERAL_ERROR` if the service sent a key that its own software does not write.
pub(crate) fn describe(key: &PublicKey, attributes: &mut Attributes) -> Result<()> {
    let info = export_public(key, PublicFormat::Der).map_err(|_| Failure(CKR_GENERAL_ERROR))?;
    attributes.set(CKA_PUBLIC_KEY_INFO, &info);
    let bytes = key.as_bytes();
    if let Some((parameters, length)) = curve(key.algorithm()) {
        // A SubjectPublicKeyInfo ends with the point, which is not compressed there.
        let start = info.len().checked_sub(length).ok_or(Failure(CKR_GENERAL_ERROR))?;
        attributes.set(CKA_EC_PARAMS, parameters).set(CKA_EC_POINT, &octet_string(&info[start..]));
    } else if key.algorithm().is_rsa() {
        let length = key.algorithm().output_length();
        let end = bytes.len().checked_sub(RSA_EXPONENT_DER_LEN).ok_or(Failure(CKR_GENERAL_ERROR))?;
        let start = end.checked_sub(length).ok_or(Failure(CKR_GENERAL_ERROR))?;
        attributes.set(CKA_MODULUS, &bytes[start..end]).set(CKA_PUBLIC_EXPONENT, &RSA_EXPONENT);
        attributes.set_number(CKA_MODULUS_BITS, 8 * length as CK_ULONG);
    }
    Ok(())
}

/// Whether a signature is valid.
///
/// # Errors
/// `CKR_SIGNATURE_LEN_RANGE` and `CKR_SIGNATURE_INVALID`; those of [`digest_of`].
pub(crate) fn verify(key: &PublicKey, scheme: Scheme, data: &[u8], signature: &[u8]) -> Result<()> {
    let algorithm = key.algorithm();
    require(signature.len() == algorithm.output_length(), CKR_SIGNATURE_LEN_RANGE)?;
    // Of the two values of s that verify, the keystore makes and takes the lower one. Others make
    // either.
    let lower = if algorithm.is_ecdsa() { with_lower_s(algorithm, signature) } else { None };
    let signature = lower.as_deref().unwrap_or(signature);
    let verdict = match scheme {
        Scheme::EdDsa => key.verify(data, signature),
        Scheme::Hashed(hash, padding) => {
            key.verify_prehashed(&hash.of(data).rsa_padding(kms_padding(padding)), signature)
        }
        Scheme::Hmac => return fail(CKR_KEY_TYPE_INCONSISTENT),
        _ => {
            let Digest { hash, bytes, padding } = digest_of(scheme, algorithm, data)?;
            key.verify_prehashed(&prehashed(hash, &bytes, padding)?, signature)
        }
    };
    require(verdict.is_valid(), CKR_SIGNATURE_INVALID)
}

/// Whether a signature of a message is valid, whose hash is known.
pub(crate) fn verify_hash(
    key: &PublicKey,
    (hash, padding): (HashFunction, Padding),
    digest: &[u8],
    signature: &[u8],
) -> Result<()> {
    let algorithm = key.algorithm();
    require(signature.len() == algorithm.output_length(), CKR_SIGNATURE_LEN_RANGE)?;
    let lower = if algorithm.is_ecdsa() { with_lower_s(algorithm, signature) } else { None };
    let message = prehashed(hash, digest, padding)?;
    let verdict = key.verify_prehashed(&message, lower.as_deref().unwrap_or(signature));
    require(verdict.is_valid(), CKR_SIGNATURE_INVALID)
}

/// A digest for the keystore.
pub(crate) fn prehashed(hash: HashFunction, digest: &[u8], padding: Padding) -> Result<Prehashed> {
    let digest = hash.digest(digest).ok_or(Failure(CKR_DATA_LEN_RANGE))?;
    let message = Prehashed::new(digest, &[]).map_err(|_| Failure(CKR_GENERAL_ERROR))?;
    Ok(message.rsa_padding(kms_padding(padding)))
}

/// The padding as the keystore names it.
pub(crate) fn kms_padding(padding: Padding) -> RsaPadding {
    match padding {
        Padding::Pkcs1v15 => RsaPadding::Pkcs1v15,
        Padding::None | Padding::Pss => RsaPadding::default(),
    }
}

/// A digest that a program brings, and how it is signed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) hash: HashFunction,
    pub(crate) bytes: Vec<u8>,
    pub(crate) padding: Padding,
}

/// The digest in what a program gives for it.
///
/// # Errors
/// `CKR_DATA_LEN_RANGE` for a length that no digest has; `CKR_DATA_INVALID` for a `DigestInfo` of
/// another hash function.
pub(crate) fn digest_of(scheme: Scheme, algorithm: Algorithm, data: &[u8]) -> Result<Digest> {
    match scheme {
        Scheme::EcdsaDigest => ecdsa_digest(algorithm, data),
        Scheme::PssDigest(hash) => {
            require(data.len() == hash.digest_length(), CKR_DATA_LEN_RANGE)?;
            Ok(Digest { hash, bytes: data.to_vec(), padding: Padding::Pss })
        }
        Scheme::DigestInfo => {
            for (hash, prefix) in DIGEST_INFO {
                if let Some(digest) = data.strip_prefix(prefix)
                    && digest.len() == hash.digest_length()
                {
                    return Ok(Digest { hash, bytes: digest.to_vec(), padding: Padding::Pkcs1v15 });
                }
            }
            fail(CKR_DATA_INVALID)
        }
        _ => fail(CKR_GENERAL_ERROR),
    }
}

/// ECDSA signs a number: the leftmost bits of a digest, as many as the order of the curve has
/// (FIPS 186-5, section 6.4.1). The service takes digests of 32, 48 and 64 bytes. Others are cut to
/// the order, and get zeros in front, which do not change the number.
fn ecdsa_digest(algorithm: Algorithm, data: &[u8]) -> Result<Digest> {
    let order = algorithm.output_length() / 2;
    // The order of P-521 has 521 bits, and the first seven of 66 bytes would have to be cut.
    let cut = if algorithm == Algorithm::EcdsaP521 { 64 } else { order };
    require(!data.is_empty() && (data.len() <= 64 || cut < 64), CKR_DATA_LEN_RANGE)?;
    let number = &data[..data.len().min(cut)];
    let hash = [HashFunction::Sha256, HashFunction::Sha384, HashFunction::Sha512]
        .into_iter()
        .find(|hash| hash.digest_length() >= number.len())
        .ok_or(Failure(CKR_DATA_LEN_RANGE))?;
    let mut bytes = vec![0; hash.digest_length() - number.len()];
    bytes.extend_from_slice(number);
    Ok(Digest { hash, bytes, padding: Padding::None })
}

/// What is before the digest in a `DigestInfo` (RFC 8017, section 9.2, note 1).
const DIGEST_INFO: [(HashFunction, &[u8]); 3] = [
    (HashFunction::Sha256, b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"),
    (HashFunction::Sha384, b"\x30\x41\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x02\x05\x00\x04\x30"),
    (HashFunction::Sha512, b"\x30\x51\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03\x05\x00\x04\x40"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::attributes::Attribute;
    use crate::session::create;
    use bulla_kms::{Keystore, NewKey};

    #[test]
    fn digests_of_other_lengths_are_cut_or_padded() {
        let of = |algorithm, length| ecdsa_digest(algorithm, &vec![7; length]).map(|digest| digest.bytes);
        let padded = |zeros, length| Ok([vec![0; zeros], vec![7; length]].concat());
        assert_eq!(of(Algorithm::EcdsaP256, 20), padded(12, 20));
        assert_eq!(of(Algorithm::EcdsaP256, 40), padded(0, 32));
        assert_eq!(of(Algorithm::EcdsaP256, 64), padded(0, 32));
        assert_eq!(of(Algorithm::EcdsaP384, 33), padded(15, 33));
        assert_eq!(of(Algorithm::EcdsaP384, 64), padded(0, 48));
        assert_eq!(of(Algorithm::EcdsaP521, 64), padded(0, 64));
        assert_eq!(of(Algorithm::EcdsaP521, 66), fail(CKR_DATA_LEN_RANGE));
        assert_eq!(of(Algorithm::EcdsaP256, 0), fail(CKR_DATA_LEN_RANGE));
    }

    #[test]
    fn a_digest_info_has_its_own_length() {
        let info = |digest: &[u8]| [DIGEST_INFO[0].1, digest].concat();
        let of = |data: &[u8]| digest_of(Scheme::DigestInfo, Algorithm::Rsa2048, data);
        assert_eq!(of(&info(&[7; 32])).unwrap().bytes, [7; 32]);
        assert_eq!(of(&info(&[7; 31])), fail(CKR_DATA_INVALID));
        assert_eq!(of(&[7; 36]), fail(CKR_DATA_INVALID));
    }

    #[test]
    fn public_keys_are_described_and_read_again() {
        let keystore = Keystore::in_memory().unwrap();
        for (algorithm, kind, length) in [
            (Algorithm::Ed25519, CKA_EC_POINT, 34),
            (Algorithm::EcdsaP256, CKA_EC_POINT, 67),
            (Algorithm::EcdsaP384, CKA_EC_POINT, 99),
            (Algorithm::EcdsaP521, CKA_EC_POINT, 136),
            (Algorithm::Rsa2048, CKA_MODULUS, 256),
        ] {
            let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), algorithm);
            let key = keystore.create_key(new).unwrap();
            let public_key = keystore.public_key(&key).unwrap();
            let mut attributes = Attributes::default();
            describe(&public_key, &mut attributes).unwrap();
            let value = attributes.get(kind).unwrap();
            assert_eq!(value.len(), length, "{algorithm}");
            let mut template = vec![Attribute::number(CKA_KEY_TYPE, key_type(algorithm).unwrap())];
            for kind in [CKA_EC_PARAMS, CKA_EC_POINT, CKA_MODULUS, CKA_PUBLIC_EXPONENT] {
                template.extend(attributes.get(kind).map(|value| Attribute::new(kind, value)));
            }
            let created = create::create(CKO_PUBLIC_KEY, &template, 1).unwrap();
            let info = created.attributes.get(CKA_PUBLIC_KEY_INFO);
            assert_eq!(info, attributes.get(CKA_PUBLIC_KEY_INFO), "{algorithm}");
            if algorithm.is_rsa() {
                continue;
            }
            assert_eq!(of_template(&Template(&template)), Ok(public_key), "{algorithm}");
            // Another y, or another length.
            let last = template.iter_mut().find(|attribute| attribute.kind == kind).unwrap();
            if algorithm != Algorithm::Ed25519 {
                let middle = last.value.len() - 20;
                last.value[middle] ^= 1;
                assert!(of_template(&Template(&template)).is_err(), "{algorithm}");
            }
            let last = template.iter_mut().find(|attribute| attribute.kind == kind).unwrap();
            last.value.pop();
            assert!(of_template(&Template(&template)).is_err(), "{algorithm}");
        }
    }
}
