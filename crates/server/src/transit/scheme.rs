//! How a request wants to sign, and how Vault writes signatures.

use std::borrow::Cow;
use std::io::Write as _;
use std::num::NonZeroU32;
use std::ops::Range;

use base64_simd::{STANDARD, URL_SAFE_NO_PAD};
use bulla_kms::prehash::{Digest, Prehashed};
use bulla_kms::{Algorithm, Code, KeyUsage, KmsError, Signature};
use p256::ecdsa::Signature as Ecdsa;
use ring::digest;

use super::answer::{Result, VaultError};
use super::keys::{is_offered, kind};
use super::request::{OptionalText, decode_into, joined};
use crate::error::ApiError;

/// How signatures are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marshaling {
    /// ECDSA as DER; base64.
    Asn1,
    /// ECDSA as r and s; base64url without padding.
    Jws,
}

/// The parameters of a request that choose the scheme.
#[derive(Clone, Copy)]
pub(super) struct SchemeParameters<'a> {
    /// The hash function in the path.
    pub(super) in_path: Option<&'a str>,
    pub(super) hash_algorithm: &'a OptionalText<'a>,
    /// The older name of `hash_algorithm`.
    pub(super) algorithm: &'a OptionalText<'a>,
    pub(super) prehashed: bool,
    pub(super) marshaling: &'a OptionalText<'a>,
}

/// A hash function whose digests are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sha2 {
    Sha256,
    Sha384,
    Sha512,
}

/// How a key signs the input of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignedInput {
    /// The message that the key signs.
    Message,
    /// A message whose digest the key signs.
    Hashed(Sha2),
    /// The digest that the key signs.
    Digest(Sha2),
}

/// How a key signs and verifies for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scheme {
    pub(super) algorithm: Algorithm,
    pub(super) marshaling: Marshaling,
    pub(super) input: SignedInput,
}

impl Scheme {
    /// The digest that the key signs instead of a request's input, under this context; none if the
    /// key signs messages.
    ///
    /// # Errors
    /// The input is no digest of the hash function.
    pub(super) fn prehashed(self, input: &[u8], context: &[u8]) -> Result<Option<Prehashed>> {
        let (hash, digest) = match self.input {
            SignedInput::Message => return Ok(None),
            SignedInput::Hashed(hash) => {
                (hash, Cow::Owned(digest::digest(hash.function(), input).as_ref().to_vec()))
            }
            SignedInput::Digest(hash) => (hash, Cow::Borrowed(input)),
        };
        let wrong = |_| {
            let (name, length) = (hash.name(), hash.function().output_len());
            let message =
                format!("with prehashed=true `input` is a digest of {name}: {length} bytes in base64");
            VaultError::from(ApiError::malformed(message))
        };
        let digest = match hash {
            Sha2::Sha256 => Digest::Sha256((*digest).try_into().map_err(wrong)?),
            Sha2::Sha384 => Digest::Sha384((*digest).try_into().map_err(wrong)?),
            Sha2::Sha512 => Digest::Sha512((*digest).try_into().map_err(wrong)?),
        };
        Ok(Some(Prehashed::new(digest, context)?))
    }

    /// The digest that the key signs: that of a request's input, under this context.
    ///
    /// # Errors
    /// Those of [`Scheme::prehashed`]; the key signs messages.
    pub(super) fn digest(self, input: &[u8], context: &[u8]) -> Result<Prehashed> {
        let digest = self.prehashed(input, context)?;
        digest.ok_or_else(|| ApiError::internal("the key signs messages").into())
    }

    /// Whether the key signs messages, and not digests.
    pub(super) fn signs_messages(self) -> bool {
        self.input == SignedInput::Message
    }

    /// Whether the request may have a context: only Ed25519ph has one.
    pub(super) fn has_context(self) -> bool {
        self.algorithm == Algorithm::Ed25519 && !self.signs_messages()
    }
}

impl Sha2 {
    fn function(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha2-256",
            Self::Sha384 => "sha2-384",
            Self::Sha512 => "sha2-512",
        }
    }

    /// The function that a request names; SHA-256 if it names none.
    fn named(name: Option<&str>) -> Option<Self> {
        match name {
            None => Some(Self::Sha256),
            Some(name) => {
                [Self::Sha256, Self::Sha384, Self::Sha512].into_iter().find(|hash| hash.name() == name)
            }
        }
    }
}

/// The hash functions that Vault knows.
const VAULT_HASHES: [&str; 10] = [
    "none", "sha1", "sha2-224", "sha2-256", "sha2-384", "sha2-512", "sha3-224", "sha3-256", "sha3-384",
    "sha3-512",
];

impl SchemeParameters<'_> {
    /// # Errors
    /// The parameters are unknown, or keys of the algorithm do not sign so.
    pub(super) fn scheme(self, algorithm: Algorithm) -> Result<Scheme> {
        let marshaling = match self.marshaling.given() {
            None | Some("asn1") => Marshaling::Asn1,
            Some("jws") => Marshaling::Jws,
            Some(_) => return Err(VaultError::invalid("invalid marshaling type: use asn1 or jws")),
        };
        let hash = self.in_path.filter(|hash| !hash.is_empty());
        let hash = hash.or_else(|| self.hash_algorithm.given()).or_else(|| self.algorithm.given());
        if hash.is_some_and(|hash| !VAULT_HASHES.contains(&hash)) {
            return Err(VaultError::invalid("invalid hash algorithm"));
        }
        if algorithm.usage() != KeyUsage::Signature {
            let (kind, _) = kind(algorithm);
            return Err(VaultError::invalid(format!("key type {kind} does not support signing")));
        }
        if !is_offered(algorithm) {
            let message = "keys of this type sign by bulla's own API alone";
            return Err(VaultError::not_supported(message));
        }
        Ok(Scheme { algorithm, marshaling, input: self.input(algorithm, hash)? })
    }

    fn input(self, algorithm: Algorithm, hash: Option<&str>) -> Result<SignedInput> {
        let refuse = |why: &str| Err(VaultError::not_supported(why));
        match (algorithm, self.prehashed, hash) {
            (_, false, Some("none")) => {
                refuse("hash_algorithm=none is for RSA keys, which bulla does not have")
            }
            (Algorithm::Ed25519, true, Some("sha2-512")) => Ok(SignedInput::Digest(Sha2::Sha512)),
            (Algorithm::Ed25519, true, _) => refuse(
                "an ed25519 key signs a digest as Ed25519ph: with prehashed=true, set hash_algorithm=sha2-512 and send the SHA-512 as input",
            ),
            (Algorithm::Ed25519, false, Some("sha2-512")) => refuse(
                "hash_algorithm=sha2-512 means Ed25519ph: send the SHA-512 as input with prehashed=true, or leave hash_algorithm out for Ed25519",
            ),
            (Algorithm::EcdsaP256, prehashed, hash) => match (Sha2::named(hash), prehashed) {
                // A signature of the message, for which the key need not sign digests.
                (Some(Sha2::Sha256), false) => Ok(SignedInput::Message),
                (Some(hash), false) => Ok(SignedInput::Hashed(hash)),
                (Some(hash), true) => Ok(SignedInput::Digest(hash)),
                (None, _) => refuse("an ecdsa-p256 key signs with sha2-256, sha2-384 and sha2-512"),
            },
            (_, true, _) => {
                refuse("keys of this type sign messages, not digests: send the message, with prehashed=false")
            }
            _ => Ok(SignedInput::Message),
        }
    }
}

/// How a signature, a ciphertext and a MAC begin, before the number of the version.
pub(super) const VERSION_PREFIX: &str = "vault:v";

/// The error for a version below the minimum version.
pub(super) const VERSION_TOO_OLD: &str = "ciphertext or signature version is disallowed by policy (too old)";

/// Appends a signature.
pub(super) fn write_signature(out: &mut Vec<u8>, signature: &Signature, marshaling: Marshaling) {
    let version = signature.key.version();
    // Writing to a vector cannot fail.
    let _ = write!(out, "{VERSION_PREFIX}{version}:");
    let algorithm = signature.key.key_id().algorithm();
    match (marshaling, algorithm) {
        (Marshaling::Jws, _) => URL_SAFE_NO_PAD.encode_append(&signature.bytes, out),
        (Marshaling::Asn1, Algorithm::EcdsaP256) => match Ecdsa::from_slice(&signature.bytes) {
            Ok(signature) => STANDARD.encode_append(signature.to_der().as_bytes(), out),
            Err(_) => STANDARD.encode_append(&signature.bytes, out),
        },
        (Marshaling::Asn1, _) => STANDARD.encode_append(&signature.bytes, out),
    }
}

/// Reads a signature: its version, and where its bytes are in `buffer`, to which they are appended.
///
/// Vault takes both values of s that verify in ECDSA, and so does this: it appends the lower one.
///
/// # Errors
/// The text is not a signature.
pub(super) fn read_signature(
    text: &str,
    scheme: Scheme,
    buffer: &mut Vec<u8>,
) -> Result<(NonZeroU32, Range<usize>)> {
    let (version, bytes) = split_version(text, "signature")?;
    let begin = buffer.len();
    let decoded = match scheme.marshaling {
        Marshaling::Asn1 => decode_into(bytes, "signature", buffer).is_ok(),
        Marshaling::Jws => decode_url_safe_into(bytes, buffer),
    };
    if !decoded {
        return Err(VaultError::invalid("invalid base64 signature value"));
    }
    if scheme.algorithm == Algorithm::EcdsaP256 {
        let ecdsa = match scheme.marshaling {
            Marshaling::Asn1 => {
                let read = Ecdsa::from_der(&buffer[begin..])
                    .map_err(|_| VaultError::invalid("supplied signature is invalid"));
                Some(read?)
            }
            Marshaling::Jws => Ecdsa::from_slice(&buffer[begin..]).ok(),
        };
        if let Some(ecdsa) = ecdsa {
            buffer.truncate(begin);
            buffer.extend_from_slice(&ecdsa.normalize_s().to_bytes());
        }
    }
    match u32::try_from(version).map(NonZeroU32::new) {
        Ok(Some(version)) => Ok((version, begin..buffer.len())),
        Err(_) if version > 0 => {
            let error = KmsError::new(Code::UnknownVersion, "no key has so many versions");
            Err(VaultError::in_words("invalid signature: version is too new", ApiError::from(error)))
        }
        _ => {
            let error = KmsError::new(Code::VersionNotUsable, "versions begin with 1");
            Err(VaultError::in_words(VERSION_TOO_OLD, ApiError::from(error)))
        }
    }
}

/// The version in `vault:vN:` before a signature, a ciphertext or a MAC, and the text after it.
///
/// # Errors
/// The text does not begin so; `what` names it.
pub(super) fn split_version<'a>(text: &'a str, what: &str) -> Result<(i64, &'a str)> {
    let invalid = |why: &str| VaultError::invalid(format!("invalid {what}: {why}"));
    let rest = text.strip_prefix(VERSION_PREFIX).ok_or_else(|| invalid("no prefix"))?;
    let (version, bytes) = rest.split_once(':').ok_or_else(|| invalid("wrong number of fields"))?;
    let version = version.parse().map_err(|_| invalid("version number could not be decoded"))?;
    Ok((version, bytes))
}

/// Appends what base64 encodes in the alphabet for URLs, without padding. Like Go's decoder it
/// skips line breaks, and the bits that are left over at the end. Returns whether that is so.
fn decode_url_safe_into(text: &str, bytes: &mut Vec<u8>) -> bool {
    let (begin, text) = (bytes.len(), joined(text));
    if URL_SAFE_NO_PAD.decode_append(&*text, bytes).is_ok() {
        return true;
    }
    bytes.truncate(begin);
    // The forgiving decoder reads the other alphabet, padding, and white space.
    if text.contains(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')) {
        return false;
    }
    let text = text.replace('-', "+").replace('_', "/");
    let decoded = base64_simd::forgiving_decode_to_vec(text.as_bytes());
    decoded.is_ok_and(|decoded| {
        bytes.extend_from_slice(&decoded);
        true
    })
}

#[cfg(test)]
mod scheme_tests {
    use super::*;

    fn scheme(
        algorithm: Algorithm,
        hash: &'static str,
        prehashed: bool,
        marshaling: &'static str,
    ) -> Option<Scheme> {
        let text = |text: &'static str| OptionalText(Some(Cow::Borrowed(text)));
        let (hash, marshaling) = (text(hash), text(marshaling));
        for in_path in [None, hash.given()] {
            let (body, none) =
                (if in_path.is_some() { OptionalText(None) } else { hash.clone() }, OptionalText(None));
            let parameters = SchemeParameters {
                in_path,
                hash_algorithm: &body,
                algorithm: &none,
                prehashed,
                marshaling: &marshaling,
            };
            let older = SchemeParameters { hash_algorithm: &none, algorithm: &body, ..parameters };
            let scheme = parameters.scheme(algorithm).ok();
            assert_eq!(older.scheme(algorithm).ok(), scheme);
            if in_path.is_some() || hash.given().is_none() {
                return scheme;
            }
        }
        None
    }

    #[test]
    fn a_hash_function_is_one_of_vault_and_of_the_key() {
        use Algorithm::{EcdsaP256, Ed25519, MlDsa65, XWing};
        let cases = [
            (Ed25519, "", false, true),
            (Ed25519, "sha2-256", false, true),
            (Ed25519, "sha2-512", false, false),
            (Ed25519, "sha2-512", true, true),
            (Ed25519, "sha2-256", true, false),
            (Ed25519, "", true, false),
            (Ed25519, "md5", false, false),
            (Ed25519, "none", false, false),
            (EcdsaP256, "", false, true),
            (EcdsaP256, "sha2-256", false, true),
            (EcdsaP256, "sha2-512", false, true),
            (EcdsaP256, "sha2-256", true, true),
            (EcdsaP256, "sha2-384", true, true),
            (EcdsaP256, "sha2-512", true, true),
            (EcdsaP256, "", true, true),
            (EcdsaP256, "sha1", true, false),
            (EcdsaP256, "sha3-256", false, false),
            (EcdsaP256, "none", true, false),
            (MlDsa65, "sha2-512", false, true),
            (MlDsa65, "", true, false),
            (XWing, "", false, false),
        ];
        for (algorithm, hash, prehashed, offered) in cases {
            for (marshaling, known) in [("", true), ("asn1", true), ("jws", true), ("der", false)] {
                let scheme = scheme(algorithm, hash, prehashed, marshaling);
                assert_eq!(scheme.is_some(), offered && known, "{algorithm} {hash} {prehashed} {marshaling}");
            }
        }
    }
}

#[cfg(test)]
mod signature_tests {
    use bulla_kms::{KeyVersionId, Keystore, NewKey};
    use proptest::prelude::*;

    use super::super::scheme::SignedInput;
    use super::*;

    fn scheme(algorithm: Algorithm, marshaling: Marshaling) -> Scheme {
        Scheme { algorithm, marshaling, input: SignedInput::Message }
    }

    fn key(keystore: &Keystore, algorithm: Algorithm) -> KeyVersionId {
        let new = NewKey::new("local".parse().unwrap(), "transit".parse().unwrap(), algorithm);
        keystore.create_key(new).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let keystore = Keystore::in_memory().unwrap();
        for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256, Algorithm::MlDsa44] {
            let key = key(&keystore, algorithm);
            for number in 0..40_u8 {
                let signature = keystore.sign(&key, &[number]).unwrap();
                for marshaling in [Marshaling::Asn1, Marshaling::Jws] {
                    let (mut text, mut buffer) = (Vec::new(), b"before".to_vec());
                    write_signature(&mut text, &signature, marshaling);
                    let text = String::from_utf8(text).unwrap();
                    let (version, range) =
                        read_signature(&text, scheme(algorithm, marshaling), &mut buffer).unwrap();
                    assert_eq!((version.get(), &buffer[range]), (1, &signature.bytes[..]), "{text}");
                }
            }
        }
    }

    #[test]
    fn the_higher_s_of_ecdsa_is_read_as_the_lower_one() {
        let keystore = Keystore::in_memory().unwrap();
        let signature = keystore.sign(&key(&keystore, Algorithm::EcdsaP256), b"x").unwrap();
        let low = Ecdsa::from_slice(&signature.bytes).unwrap();
        let (r, s) = low.split_scalars();
        let high = Ecdsa::from_scalars(r.to_bytes(), (-*s).to_bytes()).unwrap();
        assert_ne!(low, high);
        for (marshaling, bytes) in [
            (Marshaling::Asn1, high.to_der().as_bytes().to_vec()),
            (Marshaling::Jws, high.to_bytes().to_vec()),
        ] {
            let base64 = match marshaling {
                Marshaling::Asn1 => STANDARD.encode_to_string(&bytes),
                Marshaling::Jws => URL_SAFE_NO_PAD.encode_to_string(&bytes),
            };
            let mut buffer = Vec::new();
            read_signature(
                &format!("vault:v1:{base64}"),
                scheme(Algorithm::EcdsaP256, marshaling),
                &mut buffer,
            )
            .unwrap();
            assert_eq!(buffer, signature.bytes);
        }
    }

    #[test]
    fn what_is_no_signature_is_called_what_vault_calls_it() {
        let said = |text: &str, algorithm| {
            let error =
                read_signature(text, scheme(algorithm, Marshaling::Asn1), &mut Vec::new()).unwrap_err();
            error.words().to_owned()
        };
        let cases = [
            ("", "invalid signature: no prefix"),
            ("bulla:v1:AAAA", "invalid signature: no prefix"),
            ("vault:v1", "invalid signature: wrong number of fields"),
            ("vault:vx:AAAA", "invalid signature: version number could not be decoded"),
            ("vault:v0:AAAA", VERSION_TOO_OLD),
            ("vault:v-1:AAAA", VERSION_TOO_OLD),
            ("vault:v4294967296:AAAA", "invalid signature: version is too new"),
            ("vault:v1:AAA", "invalid base64 signature value"),
            ("vault:v1:A-_A", "invalid base64 signature value"),
        ];
        for (text, words) in cases {
            assert_eq!(said(text, Algorithm::Ed25519), words, "{text}");
        }
        for text in ["vault:v1:AAAA", "vault:v1:", "vault:v1:MAYCAQACAQA=", "vault:v1:MAYCAQECAQEA"] {
            assert_eq!(said(text, Algorithm::EcdsaP256), "supplied signature is invalid", "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(vault:v)?[0-9:-]{0,12}[A-Za-z0-9+/=_\u{e9}-]{0,100}", jws: bool) {
            let marshaling = if jws { Marshaling::Jws } else { Marshaling::Asn1 };
            for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256] {
                let mut buffer = vec![1, 2];
                if let Ok((_, range)) = read_signature(&text, scheme(algorithm, marshaling), &mut buffer) {
                    prop_assert!(range.start == 2 && range.end == buffer.len());
                }
            }
        }
    }
}
