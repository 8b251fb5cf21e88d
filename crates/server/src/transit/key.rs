//! The key that a client of Vault names: by its label.

use bulla_kms::token::{TOKEN_ROOT_PURPOSE, TokenOperation};
use bulla_kms::{Algorithm, Attestation, Code, KeyId, KeySelector, Keystore, KmsError, Name};

use super::error::{Result, VaultError};
use crate::request::{Caller, resolve};

/// The description of the parameter `name`.
pub(super) const NAME: &str = "The key's name: its label";

/// A name of Vault as a label.
///
/// # Errors
/// It has characters that labels do not have.
pub(super) fn label(name: &str) -> Result<Name> {
    name.parse().map_err(|_| {
        let message = "the name of a key has 1 to 64 of a-z, 0-9, - _ . and begins with a letter or a digit";
        KmsError::new(Code::InvalidId, message).into()
    })
}

/// Finds a key, if the caller may do `operation` with it. If there is none and the caller may know
/// that, the error has the text `missing`.
///
/// # Errors
/// There is no such key; the caller may not do it.
pub(super) fn find(
    caller: &Caller,
    name: &str,
    operation: TokenOperation,
    missing: impl FnOnce() -> VaultError,
) -> Result<KeyId> {
    let label = label(name)?;
    match resolve(caller, label.as_str(), operation) {
        Ok(KeySelector::Key(key_id)) if is_visible(&key_id) => Ok(key_id),
        Ok(_) => Err(missing()),
        Err(error) => {
            let error = VaultError::from(error);
            Err(if error.has(Code::KeyNotFound) { missing() } else { error })
        }
    }
}

/// Clients of Vault do not see the root keys of tokens: Vault's transit engine has nothing like
/// them.
pub(super) fn is_visible(key: &KeyId) -> bool {
    key.purpose().as_str() != TOKEN_ROOT_PURPOSE
}

/// The error for a missing key, as some endpoints of Vault give it with status 400.
pub(super) fn missing(words: impl Into<std::borrow::Cow<'static, str>>) -> VaultError {
    let error = KmsError::new(Code::KeyNotFound, "the tenant has no key of this name");
    VaultError::in_words(words, crate::error::ApiError::from(error))
}

/// The key with this label, if the tenant has one that clients of Vault see.
pub(super) fn existing(
    keystore: &Keystore,
    tenant: &Name,
    label: &Name,
) -> bulla_kms::Result<Option<Attestation>> {
    match keystore.find(tenant, label)?.filter(is_visible) {
        Some(key_id) => keystore.attest(&key_id).map(Some),
        None => Ok(None),
    }
}

/// The algorithm for a key type of Vault.
///
/// # Errors
/// There is no such type, or keys of the type do not sign here.
pub(super) fn algorithm(kind: Option<&str>, parameter_set: Option<&str>) -> Result<Algorithm> {
    let Some(kind) = kind else {
        let message = "name a `type`: without one Vault makes an aes256-gcm96 key, and bulla has keys that sign: \
                       ed25519, ecdsa-p256, ml-dsa with a `parameter_set`";
        return Err(VaultError::not_supported(message));
    };
    let unknown_set = || VaultError::invalid("the `parameter_set` of ml-dsa is 44, 65 or 87");
    match (kind, parameter_set) {
        ("ed25519", _) => Ok(Algorithm::Ed25519),
        ("ecdsa-p256", _) => Ok(Algorithm::EcdsaP256),
        ("ml-dsa", Some("44")) | ("mldsa-44", _) => Ok(Algorithm::MlDsa44),
        ("ml-dsa", Some("65")) | ("mldsa-65", _) => Ok(Algorithm::MlDsa65),
        ("ml-dsa", Some("87")) | ("mldsa-87", _) => Ok(Algorithm::MlDsa87),
        ("ml-dsa", _) => Err(unknown_set()),
        ("slh-dsa", Some(set)) => named(set).filter(|algorithm| algorithm.as_str().starts_with("slh-dsa-")).ok_or_else(
            || VaultError::invalid("the `parameter_set` of slh-dsa is its name, such as slh-dsa-sha2-128s"),
        ),
        (kind, _) => named(kind).ok_or_else(|| {
            let message = "bulla has no keys of this type: it has ed25519, ecdsa-p256, ml-dsa and slh-dsa with a \
                           `parameter_set`, and its own algorithms that sign";
            VaultError::not_supported(message)
        }),
    }
}

/// An algorithm that signs, by its name.
fn named(name: &str) -> Option<Algorithm> {
    name.parse().ok().filter(|algorithm: &Algorithm| algorithm.usage() == bulla_kms::KeyUsage::Signature)
}

/// The type of a key and its parameter set, in Vault's words.
pub(super) fn kind(algorithm: Algorithm) -> (&'static str, Option<&'static str>) {
    match algorithm {
        Algorithm::MlDsa44 => ("ml-dsa", Some("44")),
        Algorithm::MlDsa65 => ("ml-dsa", Some("65")),
        Algorithm::MlDsa87 => ("ml-dsa", Some("87")),
        other if other.as_str().starts_with("slh-dsa-") => ("slh-dsa", Some(other.as_str())),
        other => (other.as_str(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_that_signs_can_be_asked_for_by_what_its_keys_are_called() {
        for known in Algorithm::ALL {
            let (kind, set) = kind(known);
            let asked = algorithm(Some(kind), set).ok();
            assert_eq!(asked, (known.usage() == bulla_kms::KeyUsage::Signature).then_some(known), "{known}");
        }
        for size in ["44", "65", "87"] {
            let (vault, openbao) =
                (algorithm(Some("ml-dsa"), Some(size)), algorithm(Some(&format!("mldsa-{size}")), None));
            assert_eq!(vault.unwrap(), openbao.unwrap());
        }
        for (kind, set) in
            [(None, None), (Some("rsa-2048"), None), (Some("aes256-gcm96"), None), (Some("ml-dsa"), None)]
        {
            assert!(algorithm(kind, set).is_err(), "{kind:?}");
        }
    }
}
