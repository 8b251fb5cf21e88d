//! RSA keys that live in a session, by the crate `rsa`, which computes with blinding and in
//! constant time. Keys have 1024 to 8192 bits: programs bring old ones, and only verification of
//! theirs is at stake. What the service makes has 2048 bits at least.

use cryptoki_sys::*;
use getrandom::SysRng;
use rsa::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, EncodePublicKey as _};
use rsa::traits::{PrivateKeyParts as _, PublicKeyParts as _};
use rsa::{BoxedUint, Oaep, Pkcs1v15Encrypt, Pkcs1v15Sign, PrivateKey, Pss, PublicKey};
use zeroize::Zeroizing;

use crate::error::{Failure, Result, fail, require};
use crate::object::attributes::{Attributes, Template};
use crate::object::public::{RSA_EXPONENT, without_zeros};
use crate::operation::digest::Hash;
use crate::operation::mechanism::{Mechanism, Parameters};

/// The lengths of new keys in bits. A longer one takes minutes to make.
const NEW_KEY_BITS: std::ops::RangeInclusive<CK_ULONG> = 1024..=4096;
/// The longest modulus in bytes that the library takes.
const MAX_MODULUS_LEN: usize = 1024;
/// What PKCS #1 1.5 takes of the modulus, in bytes.
const PKCS1_OVERHEAD: usize = 11;
/// The longest PKCS #8 in bytes: that of a key of 8192 bits is shorter.
const MAX_PKCS8_LEN: usize = 5 * MAX_MODULUS_LEN;

/// Computes with the type of a hash function.
macro_rules! by_hash {
    ($hash:expr, $type:ident => $body:expr) => {
        match $hash {
            Hash::Sha1 => {
                type $type = sha1::Sha1;
                $body
            }
            Hash::Sha224 => {
                type $type = sha2::Sha224;
                $body
            }
            Hash::Sha256 => {
                type $type = sha2::Sha256;
                $body
            }
            Hash::Sha384 => {
                type $type = sha2::Sha384;
                $body
            }
            Hash::Sha512 => {
                type $type = sha2::Sha512;
                $body
            }
        }
    };
}

/// How a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RsaScheme {
    /// RSASSA-PKCS1-v1_5 of any short data.
    Pkcs1Raw,
    /// RSASSA-PKCS1-v1_5 of a message.
    Pkcs1(Hash),
    /// RSASSA-PSS.
    Pss { hash: Hash, salt_len: usize, input: PssInput },
}

/// What PSS signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PssInput {
    Digest,
    Message,
}

impl RsaScheme {
    /// # Errors
    /// `CKR_MECHANISM_INVALID` if no RSA key signs so; `CKR_MECHANISM_PARAM_INVALID`.
    pub(crate) fn of(mechanism: &Mechanism) -> Result<Self> {
        let scheme = match mechanism.kind {
            CKM_RSA_PKCS => Self::Pkcs1Raw,
            CKM_SHA1_RSA_PKCS => Self::Pkcs1(Hash::Sha1),
            CKM_SHA224_RSA_PKCS => Self::Pkcs1(Hash::Sha224),
            CKM_SHA256_RSA_PKCS => Self::Pkcs1(Hash::Sha256),
            CKM_SHA384_RSA_PKCS => Self::Pkcs1(Hash::Sha384),
            CKM_SHA512_RSA_PKCS => Self::Pkcs1(Hash::Sha512),
            CKM_RSA_PKCS_PSS => return Self::pss(&mechanism.parameters, None),
            CKM_SHA1_RSA_PKCS_PSS => return Self::pss(&mechanism.parameters, Some(Hash::Sha1)),
            CKM_SHA224_RSA_PKCS_PSS => return Self::pss(&mechanism.parameters, Some(Hash::Sha224)),
            CKM_SHA256_RSA_PKCS_PSS => return Self::pss(&mechanism.parameters, Some(Hash::Sha256)),
            CKM_SHA384_RSA_PKCS_PSS => return Self::pss(&mechanism.parameters, Some(Hash::Sha384)),
            CKM_SHA512_RSA_PKCS_PSS => return Self::pss(&mechanism.parameters, Some(Hash::Sha512)),
            _ => return fail(CKR_MECHANISM_INVALID),
        };
        require(mechanism.parameters == Parameters::None, CKR_MECHANISM_PARAM_INVALID)?;
        Ok(scheme)
    }

    /// The mask generation function has the hash function of the message.
    fn pss(parameters: &Parameters, expected: Option<Hash>) -> Result<Self> {
        let invalid = Failure(CKR_MECHANISM_PARAM_INVALID);
        let Parameters::Pss { hash, mgf, salt_length } = *parameters else { return Err(invalid) };
        let hash = Hash::of_mechanism(hash).map_err(|_| invalid)?;
        let is_pair = Hash::of_mgf(mgf)? == hash && expected.is_none_or(|expected| expected == hash);
        require(is_pair && salt_length <= MAX_MODULUS_LEN as CK_ULONG, CKR_MECHANISM_PARAM_INVALID)?;
        let input = if expected.is_some() { PssInput::Message } else { PssInput::Digest };
        Ok(Self::Pss { hash, salt_len: salt_length as usize, input })
    }

    /// The hash function of the message; none if the program hashes, or nobody does.
    pub(crate) fn hashes(self) -> Option<Hash> {
        match self {
            Self::Pkcs1Raw | Self::Pss { input: PssInput::Digest, .. } => None,
            Self::Pkcs1(hash) | Self::Pss { hash, .. } => Some(hash),
        }
    }

    /// Checks what is signed: a digest, or other short data.
    fn check(self, key_len: usize, data: &[u8]) -> Result<()> {
        let fits = match self {
            Self::Pkcs1Raw => data.len() + PKCS1_OVERHEAD <= key_len,
            Self::Pkcs1(_) => true,
            Self::Pss { hash, salt_len, .. } => {
                data.len() == hash.output_len() && hash.output_len() + salt_len + 2 <= key_len
            }
        };
        require(fits, CKR_DATA_LEN_RANGE)
    }
}

/// PKCS #1 1.5 with the start of the `DigestInfo` of a hash function (RFC 8017, section 9.2, note
/// 1).
fn pkcs1(hash: Hash) -> Pkcs1v15Sign {
    let length = hash.output_len() as u8;
    let of_sha2 = |number| {
        let oid = [0x06, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, number];
        [&[0x30, length + 17, 0x30, 13][..], &oid, &[5, 0, 4, length]].concat()
    };
    let prefix = match hash {
        Hash::Sha1 => b"\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14".to_vec(),
        Hash::Sha224 => of_sha2(4),
        Hash::Sha256 => of_sha2(1),
        Hash::Sha384 => of_sha2(2),
        Hash::Sha512 => of_sha2(3),
    };
    Pkcs1v15Sign { hash_len: Some(hash.output_len()), prefix: prefix.into() }
}

/// Signs a digest, or short data.
///
/// # Errors
/// `CKR_DATA_LEN_RANGE`; `CKR_DEVICE_ERROR` without random bytes.
pub(crate) fn sign(key: &PrivateKey, scheme: RsaScheme, data: &[u8]) -> Result<Vec<u8>> {
    scheme.check(key.size(), data)?;
    let signed = match scheme {
        RsaScheme::Pkcs1Raw => key.sign_with_rng(&mut SysRng, Pkcs1v15Sign::new_unprefixed(), data),
        RsaScheme::Pkcs1(hash) => key.sign_with_rng(&mut SysRng, pkcs1(hash), data),
        RsaScheme::Pss { hash, salt_len, .. } => {
            by_hash!(hash, D => key.sign_with_rng(&mut SysRng, Pss::<D>::new_with_salt(salt_len), data))
        }
    };
    // With a short key and a long hash function, there is no room.
    signed.map_err(|error| Failure(code_of(&error, CKR_DATA_LEN_RANGE)))
}

/// Whether a signature of a digest, or of short data, is valid.
///
/// # Errors
/// `CKR_SIGNATURE_LEN_RANGE`; `CKR_SIGNATURE_INVALID`; `CKR_DATA_LEN_RANGE`.
pub(crate) fn verify(key: &PublicKey, scheme: RsaScheme, data: &[u8], signature: &[u8]) -> Result<()> {
    require(signature.len() == key.size(), CKR_SIGNATURE_LEN_RANGE)?;
    scheme.check(key.size(), data)?;
    let verified = match scheme {
        RsaScheme::Pkcs1Raw => key.verify(Pkcs1v15Sign::new_unprefixed(), data, signature),
        RsaScheme::Pkcs1(hash) => key.verify(pkcs1(hash), data, signature),
        RsaScheme::Pss { hash, salt_len, .. } => {
            by_hash!(hash, D => key.verify(Pss::<D>::new_with_salt(salt_len), data, signature))
        }
    };
    verified.map_err(|_| Failure(CKR_SIGNATURE_INVALID))
}

/// How a key encrypts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RsaEncryption {
    Pkcs1,
    Oaep { hash: Hash, label: Vec<u8> },
}

impl RsaEncryption {
    /// # Errors
    /// `CKR_MECHANISM_INVALID` if no RSA key encrypts so; `CKR_MECHANISM_PARAM_INVALID`.
    pub(crate) fn of(mechanism: Mechanism) -> Result<Self> {
        let invalid = Failure(CKR_MECHANISM_PARAM_INVALID);
        match (mechanism.kind, mechanism.parameters) {
            (CKM_RSA_PKCS, Parameters::None) => Ok(Self::Pkcs1),
            (CKM_RSA_PKCS_OAEP, Parameters::Oaep { hash, mgf, label }) => {
                let hash = Hash::of_mechanism(hash).map_err(|_| invalid)?;
                require(Hash::of_mgf(mgf)? == hash, CKR_MECHANISM_PARAM_INVALID)?;
                Ok(Self::Oaep { hash, label })
            }
            (CKM_RSA_PKCS | CKM_RSA_PKCS_OAEP, _) => Err(invalid),
            _ => fail(CKR_MECHANISM_INVALID),
        }
    }

    /// The longest plaintext of a key of `key_len` bytes.
    pub(crate) fn max_plaintext(&self, key_len: usize) -> usize {
        match self {
            Self::Pkcs1 => key_len.saturating_sub(PKCS1_OVERHEAD),
            Self::Oaep { hash, .. } => key_len.saturating_sub(2 * hash.output_len() + 2),
        }
    }

    /// # Errors
    /// `CKR_DATA_LEN_RANGE`; `CKR_DEVICE_ERROR` without random bytes.
    pub(crate) fn encrypt(&self, key: &PublicKey, plaintext: &[u8]) -> Result<Vec<u8>> {
        require(plaintext.len() <= self.max_plaintext(key.size()), CKR_DATA_LEN_RANGE)?;
        let made = match self {
            Self::Pkcs1 => key.encrypt(&mut SysRng, Pkcs1v15Encrypt, plaintext),
            Self::Oaep { hash, label } => by_hash!(hash, D => {
                key.encrypt(&mut SysRng, Oaep::<D>::new_with_label(label.as_slice()), plaintext)
            }),
        };
        made.map_err(|error| Failure(code_of(&error, CKR_DATA_LEN_RANGE)))
    }

    /// Decrypts. By PKCS #1 1.5, a ciphertext with a wrong padding gives other bytes and no error,
    /// so that nobody learns from it whether the padding was right.
    ///
    /// # Errors
    /// `CKR_ENCRYPTED_DATA_LEN_RANGE`; `CKR_ENCRYPTED_DATA_INVALID`; `CKR_DEVICE_ERROR`.
    pub(crate) fn decrypt(&self, key: &PrivateKey, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        require(ciphertext.len() == key.size(), CKR_ENCRYPTED_DATA_LEN_RANGE)?;
        let opened = match self {
            Self::Pkcs1 => key.decrypt_blinded(&mut SysRng, Pkcs1v15Encrypt, ciphertext),
            Self::Oaep { hash, label } => by_hash!(hash, D => {
                key.decrypt_blinded(&mut SysRng, Oaep::<D>::new_with_label(label.as_slice()), ciphertext)
            }),
        };
        opened.map(Zeroizing::new).map_err(|error| Failure(code_of(&error, CKR_ENCRYPTED_DATA_INVALID)))
    }
}

/// The code for an error of the library that is not about random bytes.
fn code_of(error: &rsa::Error, code: CK_RV) -> CK_RV {
    if matches!(error, rsa::Error::Rng) { CKR_DEVICE_ERROR } else { code }
}

/// Makes a key of a template for a public key. Its exponent is 65537, as of all keys of the
/// service.
///
/// # Errors
/// `CKR_TEMPLATE_INCOMPLETE`; `CKR_ATTRIBUTE_VALUE_INVALID` for another exponent, and for lengths
/// that are not made; `CKR_DEVICE_ERROR`.
pub(crate) fn generate(template: &Template<'_>) -> Result<PrivateKey> {
    if let Some(exponent) = template.get(CKA_PUBLIC_EXPONENT) {
        require(without_zeros(exponent) == RSA_EXPONENT, CKR_ATTRIBUTE_VALUE_INVALID)?;
    }
    let bits = template.number(CKA_MODULUS_BITS)?.ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
    let is_made = NEW_KEY_BITS.contains(&bits) && bits.is_multiple_of(64);
    require(is_made, CKR_ATTRIBUTE_VALUE_INVALID)?;
    PrivateKey::new(&mut SysRng, bits as usize).map_err(|_| Failure(CKR_DEVICE_ERROR))
}

/// A number of a template.
fn number(template: &Template<'_>, kind: CK_ATTRIBUTE_TYPE) -> Result<Option<BoxedUint>> {
    let Some(bytes) = template.get(kind) else { return Ok(None) };
    let bytes = without_zeros(bytes);
    require((1..=MAX_MODULUS_LEN).contains(&bytes.len()), CKR_ATTRIBUTE_VALUE_INVALID)?;
    Ok(Some(BoxedUint::from_be_slice_vartime(bytes)))
}

fn required(template: &Template<'_>, kind: CK_ATTRIBUTE_TYPE) -> Result<BoxedUint> {
    number(template, kind)?.ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))
}

/// The public key of a template.
///
/// # Errors
/// `CKR_TEMPLATE_INCOMPLETE`; `CKR_KEY_SIZE_RANGE`; `CKR_ATTRIBUTE_VALUE_INVALID`.
pub(crate) fn public_of_template(template: &Template<'_>) -> Result<PublicKey> {
    let (modulus, exponent) = (required(template, CKA_MODULUS)?, required(template, CKA_PUBLIC_EXPONENT)?);
    PublicKey::new(modulus, exponent).map_err(|error| {
        Failure(match error {
            rsa::Error::ModulusTooSmall | rsa::Error::ModulusTooLarge => CKR_KEY_SIZE_RANGE,
            _ => CKR_ATTRIBUTE_VALUE_INVALID,
        })
    })
}

/// The private key of a template. The primes are computed if they are not there.
///
/// # Errors
/// As for [`public_of_template`].
pub(crate) fn private_of_template(template: &Template<'_>) -> Result<PrivateKey> {
    public_of_template(template)?;
    let (modulus, exponent) = (required(template, CKA_MODULUS)?, required(template, CKA_PUBLIC_EXPONENT)?);
    let private = required(template, CKA_PRIVATE_EXPONENT)?;
    let primes = match (number(template, CKA_PRIME_1)?, number(template, CKA_PRIME_2)?) {
        (Some(p), Some(q)) => vec![p, q],
        (None, None) => Vec::new(),
        _ => return fail(CKR_TEMPLATE_INCOMPLETE),
    };
    let key = PrivateKey::from_components(modulus, exponent, private, primes);
    key.map_err(|_| Failure(CKR_ATTRIBUTE_VALUE_INVALID))
}

/// The private key in PKCS #8.
///
/// # Errors
/// `CKR_WRAPPED_KEY_INVALID`.
pub(crate) fn of_pkcs8(pkcs8: &[u8]) -> Result<PrivateKey> {
    let invalid = Failure(CKR_WRAPPED_KEY_INVALID);
    // The library takes moduli of any length from PKCS #8, and computes for minutes with long ones.
    require(pkcs8.len() <= MAX_PKCS8_LEN, CKR_WRAPPED_KEY_INVALID)?;
    let key = PrivateKey::from_pkcs8_der(pkcs8).map_err(|_| invalid)?;
    PublicKey::new(key.n().as_ref().clone(), key.e().clone()).map_err(|_| invalid)?;
    Ok(key)
}

/// The private key as PKCS #8.
///
/// # Errors
/// `CKR_DEVICE_ERROR`.
pub(crate) fn to_pkcs8(key: &PrivateKey) -> Result<Zeroizing<Vec<u8>>> {
    let made = key.to_pkcs8_der().map_err(|_| Failure(CKR_DEVICE_ERROR))?;
    Ok(Zeroizing::new(made.as_bytes().to_vec()))
}

/// A number without zeros in front.
fn bytes(number: &BoxedUint) -> Zeroizing<Vec<u8>> {
    let all = Zeroizing::new(number.to_be_bytes().into_vec());
    Zeroizing::new(without_zeros(&all).to_vec())
}

/// Adds the attributes that say which public key it is.
///
/// # Errors
/// `CKR_DEVICE_ERROR`.
pub(crate) fn describe_public(key: &PublicKey, attributes: &mut Attributes) -> Result<()> {
    let info = key.to_public_key_der().map_err(|_| Failure(CKR_DEVICE_ERROR))?;
    let modulus = key.n_bytes();
    let zeros = modulus.first().map_or(0, |first| first.leading_zeros());
    attributes.set(CKA_MODULUS, &modulus).set(CKA_PUBLIC_EXPONENT, &key.e_bytes());
    attributes.set_number(CKA_MODULUS_BITS, 8 * modulus.len() as CK_ULONG - CK_ULONG::from(zeros));
    attributes.set(CKA_PUBLIC_KEY_INFO, info.as_bytes());
    Ok(())
}

/// Adds the attributes of a private key: the secret ones, too.
///
/// # Errors
/// `CKR_DEVICE_ERROR`.
pub(crate) fn describe_private(key: &PrivateKey, attributes: &mut Attributes) -> Result<()> {
    describe_public(key.as_public_key(), attributes)?;
    attributes.remove(&[CKA_MODULUS_BITS]);
    let primes = key.primes().iter().map(|prime| bytes(prime.as_ref()));
    for (kind, prime) in [CKA_PRIME_1, CKA_PRIME_2].into_iter().zip(primes) {
        attributes.set(kind, &prime);
    }
    attributes.set(CKA_PRIVATE_EXPONENT, &bytes(key.d()));
    let coefficient = key.crt_coefficient().map(Zeroizing::new);
    let parts = [key.dp(), key.dq(), coefficient.as_deref()];
    for (kind, part) in [CKA_EXPONENT_1, CKA_EXPONENT_2, CKA_COEFFICIENT].into_iter().zip(parts) {
        attributes.set(kind, &bytes(part.ok_or(Failure(CKR_DEVICE_ERROR))?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key in PKCS #8 whose modulus has 2 * `bits` + 1 bits. Its factors need not be primes.
    fn pkcs8(bits: usize) -> Zeroizing<Vec<u8>> {
        let factor = |places: &[usize]| {
            let mut bytes = vec![0; bits / 8 + 1];
            for place in places {
                let index = bytes.len() - 1 - place / 8;
                bytes[index] |= 1 << (place % 8);
            }
            BoxedUint::from_be_slice_vartime(&bytes)
        };
        let key =
            PrivateKey::from_p_q(factor(&[bits, 0]), factor(&[bits, 100, 0]), BoxedUint::from(65537_u64));
        to_pkcs8(&key.unwrap()).unwrap()
    }

    #[test]
    fn an_unwrapped_key_has_a_length_that_keys_have() {
        assert!(of_pkcs8(&pkcs8(512)).is_ok());
        assert!(of_pkcs8(&pkcs8(4095)).is_ok());
        for bits in [255, 511, 4096, 8200] {
            assert_eq!(of_pkcs8(&pkcs8(bits)).err(), Some(Failure(CKR_WRAPPED_KEY_INVALID)), "{bits}");
        }
    }
}
