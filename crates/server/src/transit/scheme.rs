//! How a request wants to sign: the meaning of Vault's parameters for a key.

use bulla_kms::{Algorithm, Use};

use super::error::{Result, VaultError};
use super::lenient::Text;

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

/// How a key signs and verifies for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scheme {
    pub(super) algorithm: Algorithm,
    pub(super) marshaling: Marshaling,
    /// The input is a digest of SHA-512 for Ed25519ph.
    pub(super) prehashed: bool,
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
        if algorithm.usage() != Use::Signature {
            return Err(VaultError::invalid(format!("key type {algorithm} does not support signing")));
        }
        self.check(algorithm, hash)?;
        Ok(Scheme { algorithm, marshaling, prehashed: self.prehashed })
    }

    fn check(self, algorithm: Algorithm, hash: Option<&str>) -> Result<()> {
        let refuse = |why: &str| Err(VaultError::not_offered(why));
        match (algorithm, self.prehashed, hash) {
            (_, false, Some("none")) => {
                refuse("hash_algorithm=none is for RSA keys, which bulla does not have")
            }
            (Algorithm::Ed25519, true, Some("sha2-512")) => Ok(()),
            (Algorithm::Ed25519, true, _) => refuse(
                "an ed25519 key signs a digest as Ed25519ph: with prehashed=true, set hash_algorithm=sha2-512 and send the SHA-512 as input",
            ),
            (Algorithm::Ed25519, false, Some("sha2-512")) => refuse(
                "hash_algorithm=sha2-512 means Ed25519ph: send the SHA-512 as input with prehashed=true, or leave hash_algorithm out for Ed25519",
            ),
            (Algorithm::EcdsaP256, false, Some(hash)) if hash != "sha2-256" => {
                refuse("an ecdsa-p256 key signs with sha2-256 alone")
            }
            // The digest could be that of a message that only the keystore itself may sign.
            (_, true, _) => {
                refuse("keys of this type sign messages, not digests: send the message, with prehashed=false")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

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
            (EcdsaP256, "sha2-512", false, false),
            (EcdsaP256, "sha2-256", true, false),
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
