//! How a request wants to sign: the meaning of Vault's parameters for a key.

use std::borrow::Cow;

use bulla_kms::prehash::{Digest, Prehashed};
use bulla_kms::{Algorithm, KeyUsage};
use ring::digest;

use super::error::{Result, VaultError};
use super::lenient::Text;
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
pub(super) struct Parameters<'a> {
    /// The hash function in the path.
    pub(super) in_path: Option<&'a str>,
    pub(super) hash_algorithm: &'a Text<'a>,
    /// The older name of `hash_algorithm`.
    pub(super) algorithm: &'a Text<'a>,
    pub(super) prehashed: bool,
    pub(super) marshaling: &'a Text<'a>,
}

/// A hash function whose digests are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sha2 {
    Sha256,
    Sha384,
    Sha512,
}

/// What the input of a request is to the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
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
    pub(super) input: Input,
}

impl Scheme {
    /// What the key signs, if that is a digest: the input of a request, under this context.
    ///
    /// # Errors
    /// The input is no digest of the hash function.
    pub(super) fn prehashed(self, input: &[u8], context: &[u8]) -> Result<Option<Prehashed>> {
        let (hash, digest) = match self.input {
            Input::Message => return Ok(None),
            Input::Hashed(hash) => {
                (hash, Cow::Owned(digest::digest(hash.function(), input).as_ref().to_vec()))
            }
            Input::Digest(hash) => (hash, Cow::Borrowed(input)),
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

    /// Whether the key signs messages, and not digests.
    pub(super) fn signs_messages(self) -> bool {
        self.input == Input::Message
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
const HASHES: [&str; 10] = [
    "none", "sha1", "sha2-224", "sha2-256", "sha2-384", "sha2-512", "sha3-224", "sha3-256", "sha3-384",
    "sha3-512",
];

impl Parameters<'_> {
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
        if hash.is_some_and(|hash| !HASHES.contains(&hash)) {
            return Err(VaultError::invalid("invalid hash algorithm"));
        }
        if algorithm.usage() != KeyUsage::Signature {
            return Err(VaultError::invalid(format!("key type {algorithm} does not support signing")));
        }
        Ok(Scheme { algorithm, marshaling, input: self.input(algorithm, hash)? })
    }

    fn input(self, algorithm: Algorithm, hash: Option<&str>) -> Result<Input> {
        let refuse = |why: &str| Err(VaultError::not_supported(why));
        match (algorithm, self.prehashed, hash) {
            (_, false, Some("none")) => {
                refuse("hash_algorithm=none is for RSA keys, which bulla does not have")
            }
            (Algorithm::Ed25519, true, Some("sha2-512")) => Ok(Input::Digest(Sha2::Sha512)),
            (Algorithm::Ed25519, true, _) => refuse(
                "an ed25519 key signs a digest as Ed25519ph: with prehashed=true, set hash_algorithm=sha2-512 and send the SHA-512 as input",
            ),
            (Algorithm::Ed25519, false, Some("sha2-512")) => refuse(
                "hash_algorithm=sha2-512 means Ed25519ph: send the SHA-512 as input with prehashed=true, or leave hash_algorithm out for Ed25519",
            ),
            (Algorithm::EcdsaP256, prehashed, hash) => match (Sha2::named(hash), prehashed) {
                // A signature of the message, for which the key need not sign digests.
                (Some(Sha2::Sha256), false) => Ok(Input::Message),
                (Some(hash), false) => Ok(Input::Hashed(hash)),
                (Some(hash), true) => Ok(Input::Digest(hash)),
                (None, _) => refuse("an ecdsa-p256 key signs with sha2-256, sha2-384 and sha2-512"),
            },
            (_, true, _) => {
                refuse("keys of this type sign messages, not digests: send the message, with prehashed=false")
            }
            _ => Ok(Input::Message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheme(
        algorithm: Algorithm,
        hash: &'static str,
        prehashed: bool,
        marshaling: &'static str,
    ) -> Option<Scheme> {
        let text = |text: &'static str| Text(Some(Cow::Borrowed(text)));
        let (hash, marshaling) = (text(hash), text(marshaling));
        for in_path in [None, hash.given()] {
            let (body, none) = (if in_path.is_some() { Text(None) } else { hash.clone() }, Text(None));
            let parameters = Parameters {
                in_path,
                hash_algorithm: &body,
                algorithm: &none,
                prehashed,
                marshaling: &marshaling,
            };
            let older = Parameters { hash_algorithm: &none, algorithm: &body, ..parameters };
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
