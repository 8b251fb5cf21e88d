//! How a request wants to sign, and how Vault writes signatures.

use std::borrow::Cow;
use std::io::Write as _;
use std::num::NonZeroU32;
use std::ops::Range;

use base64_simd::{STANDARD, URL_SAFE_NO_PAD};
use bulla_kms::prehash::{HashFunction, Prehashed, PssSaltLength, RsaPadding};
use bulla_kms::transfer::{ecdsa_from_der, ecdsa_to_der, with_lower_s};
use bulla_kms::{Algorithm, Code, KeyRef, KeyUsage, Keystore, KmsError, Signature, Verdict, VerifyItem};

use super::answer::{Result, VaultError};
use super::keys::{is_offered, kind};
use super::request::{Lenient, OptionalText, decode_into, joined};
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
    /// How an RSA key pads digests.
    pub(super) signature_algorithm: &'a OptionalText<'a>,
    pub(super) salt_length: Option<SaltLength>,
}

/// How a key signs the input of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignedInput {
    /// The message, as keys of the algorithm sign messages.
    Message,
    /// The message, with this hash function.
    Hashed(HashFunction),
    /// The digest that the key signs.
    Digest(HashFunction),
}

/// How a key signs and verifies for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scheme {
    pub(super) algorithm: Algorithm,
    pub(super) marshaling: Marshaling,
    pub(super) input: SignedInput,
    /// Of interest to RSA keys only.
    pub(super) padding: RsaPadding,
}

impl Scheme {
    /// Signs the input of a request under this context.
    ///
    /// # Errors
    /// The input is no digest of the hash function; those of the keystore.
    pub(super) fn sign(
        self,
        keystore: &Keystore,
        key: KeyRef<'_>,
        input: &[u8],
        context: &[u8],
    ) -> bulla_kms::Result<Signature> {
        match self.input {
            SignedInput::Message => keystore.sign(key, input),
            SignedInput::Hashed(hash) => keystore.sign_hashed(key, input, hash, self.padding),
            SignedInput::Digest(hash) => keystore.sign_prehashed(key, &self.prehashed(hash, input, context)?),
        }
    }

    /// Verifies a signature of the input of a request under this context.
    ///
    /// # Errors
    /// As for [`Scheme::sign`].
    pub(super) fn verify(
        self,
        keystore: &Keystore,
        item: &VerifyItem<'_>,
        context: &[u8],
    ) -> bulla_kms::Result<Verdict> {
        let VerifyItem { key, message: input, signature } = *item;
        match self.input {
            SignedInput::Message => keystore.verify(key, input, signature),
            SignedInput::Hashed(hash) => keystore.verify_hashed(key, input, hash, self.padding, signature),
            SignedInput::Digest(hash) => {
                keystore.verify_prehashed(key, &self.prehashed(hash, input, context)?, signature)
            }
        }
    }

    /// A digest that the caller made.
    fn prehashed(self, hash: HashFunction, input: &[u8], context: &[u8]) -> bulla_kms::Result<Prehashed> {
        let wrong = || KmsError::new(Code::InvalidArgument, "the input does not have a digest's length");
        let digest = hash.digest(input).ok_or_else(wrong)?;
        Ok(Prehashed::new(digest, context)?.rsa_padding(self.padding))
    }

    /// Checks that the input of a request has a digest's length, if it is one.
    ///
    /// # Errors
    /// It has another length.
    pub(super) fn check_length(self, input: &[u8]) -> Result<()> {
        match self.input {
            SignedInput::Digest(hash) if input.len() != hash.digest_length() => {
                let (name, length) = (vault_name(hash), hash.digest_length());
                let message =
                    format!("with prehashed=true `input` is a digest of {name}: {length} bytes in base64");
                Err(ApiError::malformed(message).into())
            }
            _ => Ok(()),
        }
    }

    /// Whether the key signs messages as its algorithm says: many of them at once, if it can.
    pub(super) fn signs_messages(self) -> bool {
        self.input == SignedInput::Message
    }

    /// Whether the request may have a context: only Ed25519ph has one.
    pub(super) fn has_context(self) -> bool {
        self.algorithm == Algorithm::Ed25519 && !self.signs_messages()
    }
}

/// The name of a hash function in Vault.
fn vault_name(hash: HashFunction) -> &'static str {
    match hash {
        HashFunction::Sha384 => "sha2-384",
        HashFunction::Sha512 => "sha2-512",
        _ => "sha2-256",
    }
}

/// The hash function that a request names; SHA-256 for all keys if it names none.
fn hash_function(name: Option<&str>) -> Option<HashFunction> {
    let name = name.unwrap_or("sha2-256");
    HashFunction::ALL.iter().copied().find(|hash| vault_name(*hash) == name)
}

/// The hash function with which keys of an algorithm sign messages, if it is ECDSA.
fn hash_of_curve(algorithm: Algorithm) -> Option<HashFunction> {
    match algorithm {
        Algorithm::EcdsaP256 => Some(HashFunction::Sha256),
        Algorithm::EcdsaP384 => Some(HashFunction::Sha384),
        Algorithm::EcdsaP521 => Some(HashFunction::Sha512),
        _ => None,
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
        let (input, padding) = (self.input(algorithm, hash)?, self.padding(algorithm)?);
        Ok(Scheme { algorithm, marshaling, input, padding })
    }

    fn input(self, algorithm: Algorithm, hash: Option<&str>) -> Result<SignedInput> {
        let refuse = |why: &str| Err(VaultError::not_supported(why));
        match (algorithm, self.prehashed, hash) {
            (_, _, Some("none")) => {
                refuse("bulla signs nothing without a hash function: name sha2-256, sha2-384 or sha2-512")
            }
            (Algorithm::Ed25519, true, Some("sha2-512")) => Ok(SignedInput::Digest(HashFunction::Sha512)),
            (Algorithm::Ed25519, true, _) => refuse(
                "an ed25519 key signs a digest as Ed25519ph: with prehashed=true, set hash_algorithm=sha2-512 and send the SHA-512 as input",
            ),
            (Algorithm::Ed25519, false, Some("sha2-512")) => refuse(
                "hash_algorithm=sha2-512 means Ed25519ph: send the SHA-512 as input with prehashed=true, or leave hash_algorithm out for Ed25519",
            ),
            (algorithm, prehashed, hash) if algorithm.can_sign_digests() => {
                match (hash_function(hash), prehashed) {
                    (Some(hash), true) => Ok(SignedInput::Digest(hash)),
                    (hash, false) if hash.is_some() && hash == hash_of_curve(algorithm) => {
                        Ok(SignedInput::Message)
                    }
                    (Some(hash), false) => Ok(SignedInput::Hashed(hash)),
                    (None, _) => refuse("keys of ECDSA and RSA sign with sha2-256, sha2-384 and sha2-512"),
                }
            }
            (_, true, _) => {
                refuse("keys of this type sign messages, not digests: send the message, with prehashed=false")
            }
            _ => Ok(SignedInput::Message),
        }
    }

    /// The padding of an RSA key. Vault's default is the longest salt, and verifies any.
    fn padding(self, algorithm: Algorithm) -> Result<RsaPadding> {
        match self.signature_algorithm.given() {
            _ if !algorithm.is_rsa() => Ok(RsaPadding::default()),
            None | Some("pss") => {
                let SaltLength(length) = self.salt_length.unwrap_or(SaltLength(PssSaltLength::Auto));
                Ok(RsaPadding::Pss(length))
            }
            Some("pkcs1v15") => Ok(RsaPadding::Pkcs1v15),
            Some(_) => Err(VaultError::invalid("unsupported rsa signature algorithm: use pss or pkcs1v15")),
        }
    }
}

/// The length of the salt of PSS: `auto`, `hash`, or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SaltLength(PssSaltLength);

impl Lenient for SaltLength {
    const EXPECTED: &'static str = "auto, hash, or a number of bytes";

    fn from_bool(value: bool) -> Option<Self> {
        Self::from_number(value.into())
    }

    /// As in Go, -1 is the length of the digest, and 0 is `auto`.
    fn from_number(value: i64) -> Option<Self> {
        let length = match value {
            -1 => PssSaltLength::Hash,
            0 => PssSaltLength::Auto,
            value => PssSaltLength::Bytes(u16::try_from(value).ok()?),
        };
        Some(Self(length))
    }

    fn from_text(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "auto" => Some(Self(PssSaltLength::Auto)),
            "hash" => Some(Self(PssSaltLength::Hash)),
            number => number.parse().ok().and_then(Self::from_number),
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
    match (marshaling, signature.key.key_id().algorithm()) {
        (Marshaling::Jws, _) => URL_SAFE_NO_PAD.encode_append(&signature.bytes, out),
        (Marshaling::Asn1, _) => STANDARD.encode_append(&*signature_bytes(signature), out),
    }
}

/// The bytes of a signature as X.509 has them: of ECDSA the DER of r and s.
pub(super) fn signature_bytes(signature: &Signature) -> Cow<'_, [u8]> {
    let der = ecdsa_to_der(signature.key.key_id().algorithm(), &signature.bytes);
    der.map_or(Cow::Borrowed(&signature.bytes), Cow::Owned)
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
    if scheme.algorithm.is_ecdsa() {
        let ecdsa = match scheme.marshaling {
            Marshaling::Asn1 => {
                let read = ecdsa_from_der(scheme.algorithm, &buffer[begin..]);
                Some(read.ok_or_else(|| VaultError::invalid("supplied signature is invalid"))?)
            }
            Marshaling::Jws => with_lower_s(scheme.algorithm, &buffer[begin..]),
        };
        if let Some(ecdsa) = ecdsa {
            buffer.truncate(begin);
            buffer.extend_from_slice(&ecdsa);
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
    use std::borrow::Cow;

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
                signature_algorithm: &none,
                salt_length: None,
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
        use Algorithm::{EcdsaP256, EcdsaP384, Ed25519, MlDsa65, Rsa2048, XWing};
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
            (EcdsaP384, "", false, true),
            (EcdsaP384, "sha2-384", true, true),
            (EcdsaP384, "sha2-224", true, false),
            (Rsa2048, "", false, true),
            (Rsa2048, "sha2-512", true, true),
            (Rsa2048, "sha1", false, false),
            (Rsa2048, "none", true, false),
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

    #[test]
    fn every_curve_hashes_by_sha256_unless_the_request_says_otherwise() {
        let input = |algorithm, hash| scheme(algorithm, hash, false, "").unwrap().input;
        assert_eq!(input(Algorithm::EcdsaP256, ""), SignedInput::Message);
        assert_eq!(input(Algorithm::EcdsaP384, ""), SignedInput::Hashed(HashFunction::Sha256));
        assert_eq!(input(Algorithm::EcdsaP384, "sha2-384"), SignedInput::Message);
        assert_eq!(input(Algorithm::EcdsaP521, "sha2-512"), SignedInput::Message);
        assert_eq!(input(Algorithm::Rsa4096, ""), SignedInput::Hashed(HashFunction::Sha256));
    }

    #[test]
    fn an_rsa_key_pads_as_the_request_says() {
        let padding = |algorithm, name: &'static str, salt: Option<&str>| {
            let (name, none) = (OptionalText(Some(Cow::Borrowed(name))), OptionalText(None));
            let parameters = SchemeParameters {
                in_path: None,
                hash_algorithm: &none,
                algorithm: &none,
                prehashed: false,
                marshaling: &none,
                signature_algorithm: &name,
                salt_length: salt.map(|salt| SaltLength::from_text(salt).unwrap()),
            };
            parameters.scheme(algorithm).ok().map(|scheme| scheme.padding)
        };
        let rsa = |name, salt| padding(Algorithm::Rsa3072, name, salt);
        assert_eq!(rsa("", None), Some(RsaPadding::Pss(PssSaltLength::Auto)));
        assert_eq!(rsa("pss", Some("HASH")), Some(RsaPadding::Pss(PssSaltLength::Hash)));
        assert_eq!(rsa("pss", Some("-1")), Some(RsaPadding::Pss(PssSaltLength::Hash)));
        assert_eq!(rsa("pss", Some("0")), Some(RsaPadding::Pss(PssSaltLength::Auto)));
        assert_eq!(rsa("pss", Some("48")), Some(RsaPadding::Pss(PssSaltLength::Bytes(48))));
        assert_eq!(rsa("pkcs1v15", Some("hash")), Some(RsaPadding::Pkcs1v15));
        assert_eq!(rsa("oaep", None), None);
        assert_eq!(padding(Algorithm::Ed25519, "oaep", None), Some(RsaPadding::default()));
        for wrong in ["", "-2", "salt", "65536", "1.5"] {
            assert_eq!(SaltLength::from_text(wrong), None, "{wrong}");
        }
    }
}

#[cfg(test)]
mod signature_tests {
    use bulla_kms::{KeyVersionId, Keystore, NewKey};
    use p256::ecdsa::Signature as Ecdsa;
    use proptest::prelude::*;

    use super::*;

    fn scheme(algorithm: Algorithm, marshaling: Marshaling) -> Scheme {
        Scheme { algorithm, marshaling, input: SignedInput::Message, padding: RsaPadding::default() }
    }

    fn key(keystore: &Keystore, algorithm: Algorithm) -> KeyVersionId {
        let new = NewKey::new("local".parse().unwrap(), "transit".parse().unwrap(), algorithm);
        keystore.create_key(new).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let keystore = Keystore::in_memory().unwrap();
        use Algorithm::{EcdsaP256, EcdsaP384, EcdsaP521, Ed25519, MlDsa44};
        for algorithm in [Ed25519, EcdsaP256, EcdsaP384, EcdsaP521, MlDsa44] {
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
            for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256, Algorithm::EcdsaP521] {
                let mut buffer = vec![1, 2];
                if let Ok((_, range)) = read_signature(&text, scheme(algorithm, marshaling), &mut buffer) {
                    prop_assert!(range.start == 2 && range.end == buffer.len());
                }
            }
        }
    }
}
