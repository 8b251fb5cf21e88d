//! `/v1/transit/keys`: finding, reading and listing keys, and how Vault shows them.
#![allow(unused_qualifications, reason = "what utoipa makes of the parameters of a query has them")]

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::request::handler::{erased, routes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use bulla_kms::token::{TOKEN_ROOT_PURPOSE, TokenOperation};
use bulla_kms::transfer::{PublicFormat, export_public};
use bulla_kms::{
    Algorithm, Attestation, Code, KeyDerivation, KeyId, KeySelector, KeyUsage, Keystore, KmsError, Name,
    Origin, PublicKey, VersionAttestation, VersionState,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer;
use super::answer::{Envelope, Result, VaultError, VaultErrorBody};
use super::certificates::chain_of;
use super::request::{PathName, VaultCaller};
use crate::error::{ApiError, ApiErrorCode};
use crate::request::{Caller, encode, resolve_key};
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    let listed = axum::routing::get(erased(transit_list)).fallback(erased(list_method));
    OpenApiRouter::new()
        .routes(routes!(transit_list).map(|router| router.fallback(erased(list_method))))
        .route("/v1/transit/keys/", listed)
        .routes(routes!(transit_read))
}

/// The description of the parameter `name`.
pub(super) const KEY_NAME_DOC: &str = "The key's name: its label";

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
    match resolve_key(caller, label.as_str(), operation) {
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

/// The algorithm for a key type of Vault. Without a type, it is that of Vault's default.
///
/// # Errors
/// There is no such type, or bulla has no keys of it for clients of Vault.
pub(super) fn algorithm(kind: Option<&str>, parameter_set: Option<&str>) -> Result<Algorithm> {
    let unknown_set = || VaultError::invalid("the `parameter_set` of ml-dsa is 44, 65 or 87");
    match (kind.unwrap_or("aes256-gcm96"), parameter_set) {
        ("aes128-gcm96", _) => Ok(Algorithm::Aes128Gcm),
        ("aes256-gcm96", _) => Ok(Algorithm::Aes256Gcm),
        ("hmac", _) => Ok(Algorithm::HmacSha256),
        ("ed25519", _) => Ok(Algorithm::Ed25519),
        ("ml-dsa", Some("44")) | ("mldsa-44", _) => Ok(Algorithm::MlDsa44),
        ("ml-dsa", Some("65")) | ("mldsa-65", _) => Ok(Algorithm::MlDsa65),
        ("ml-dsa", Some("87")) | ("mldsa-87", _) => Ok(Algorithm::MlDsa87),
        ("ml-dsa", _) => Err(unknown_set()),
        ("slh-dsa", Some(set)) => named(set).filter(|algorithm| algorithm.as_str().starts_with("slh-dsa-")).ok_or_else(
            || VaultError::invalid("the `parameter_set` of slh-dsa is its name, such as slh-dsa-sha2-128s"),
        ),
        (kind, _) => named(kind).ok_or_else(|| {
            let message = "bulla has no keys of this type: it has aes128-gcm96, aes256-gcm96, chacha20-poly1305, \
                           xchacha20-poly1305, hmac, rsa-2048, rsa-3072, rsa-4096, ed25519, ecdsa-p256, ecdsa-p384, \
                           ecdsa-p521, ml-dsa and slh-dsa with a `parameter_set`, and its own algorithms that sign, encrypt or make MACs";
            VaultError::not_supported(message)
        }),
    }
}

/// An algorithm that clients of Vault may use, by its name.
fn named(name: &str) -> Option<Algorithm> {
    name.parse().ok().filter(|algorithm| is_offered(*algorithm))
}

/// Whether clients of Vault may make keys of this algorithm, and use them.
pub(super) fn is_offered(algorithm: Algorithm) -> bool {
    !matches!(algorithm.usage(), KeyUsage::KeyEncapsulation | KeyUsage::KeyAgreement)
}

/// The type of a key and its parameter set, in Vault's words.
pub(super) fn kind(algorithm: Algorithm) -> (&'static str, Option<&'static str>) {
    match algorithm {
        Algorithm::Aes128Gcm => ("aes128-gcm96", None),
        Algorithm::Aes256Gcm => ("aes256-gcm96", None),
        Algorithm::HmacSha256 => ("hmac", None),
        Algorithm::MlDsa44 => ("ml-dsa", Some("44")),
        Algorithm::MlDsa65 => ("ml-dsa", Some("65")),
        Algorithm::MlDsa87 => ("ml-dsa", Some("87")),
        other if other.as_str().starts_with("slh-dsa-") => ("slh-dsa", Some(other.as_str())),
        other => (other.as_str(), None),
    }
}

/// The key, or its version that a request names. `what` it does is in the errors.
///
/// # Errors
/// The version is no number of a version.
pub(super) fn selector(key_id: KeyId, asked: Option<i64>, what: &str) -> Result<KeySelector> {
    match asked.unwrap_or_default() {
        0 => Ok(key_id.into()),
        ..0 => Err(VaultError::invalid(format!("requested version for {what} is negative"))),
        asked => match u32::try_from(asked).ok().and_then(NonZeroU32::new) {
            Some(version) => Ok(key_id.version(version).into()),
            None => Err(VaultError::invalid(version_too_new(what))),
        },
    }
}

fn version_too_new(what: &str) -> String {
    format!("requested version for {what} is higher than the latest key version")
}

/// The keystore's error about a version that a request names, in Vault's words. A key of which only
/// the latest version signs or encrypts is one in Vault whose minimum version is the newest.
pub(super) fn version_error(error: impl Into<VaultError>, what: &str) -> VaultError {
    let error = error.into();
    if error.has(Code::UnknownVersion) {
        return error.replace_words(version_too_new(what));
    }
    if error.has(Code::NotLatestVersion) || error.has(Code::VersionNotUsable) {
        let words = format!("requested version for {what} is less than the minimum encryption key version");
        return error.replace_words(words);
    }
    error
}

/// A key, without its private keys.
#[derive(Serialize, ToSchema)]
pub(super) struct KeyData {
    /// The key's name: its label.
    #[schema(example = "invoices")]
    name: String,
    /// The key's type.
    #[serde(rename = "type")]
    #[schema(example = "ed25519")]
    kind: &'static str,
    /// The parameter set of types that have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter_set: Option<&'static str>,
    /// The versions that verify or decrypt, by their numbers. Keys for HMAC do not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, VersionData>>)]
    keys: Option<BTreeMap<u32, VersionData>>,
    /// The length in bytes of new versions of a key for HMAC.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_size: Option<usize>,
    /// The latest version, the one that signs or encrypts.
    latest_version: u32,
    /// The oldest version that is not trimmed; 0 when none is.
    min_available_version: u32,
    /// Older versions do not verify or decrypt.
    min_decryption_version: u32,
    /// Older versions do not sign or encrypt when they are named; 0 for no bound but
    /// `min_decryption_version`. The latest version where only that signs.
    min_encryption_version: u32,
    /// Whether the key may be deleted.
    deletion_allowed: bool,
    /// The age in seconds at which a version is replaced; 0 for never.
    auto_rotate_period: u64,
    /// Whether the private keys may ever be exported.
    exportable: bool,
    /// Whether backups of the key may be made. They are encrypted.
    allow_plaintext_backup: bool,
    /// Whether the key that encrypts is derived from a context.
    derived: bool,
    /// How it is derived, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    kdf: Option<&'static str>,
    /// Whether equal plaintexts in one context have equal ciphertexts, if the key is derived.
    #[serde(skip_serializing_if = "Option::is_none")]
    convergent_encryption: Option<bool>,
    /// As in Vault: -1, because each version says how.
    #[serde(skip_serializing_if = "Option::is_none")]
    convergent_encryption_version: Option<i32>,
    /// Whether the latest version was imported.
    imported_key: bool,
    /// Whether keys of the type encrypt.
    supports_encryption: bool,
    /// Whether keys of the type decrypt.
    supports_decryption: bool,
    /// Whether keys of the type may be derived.
    supports_derivation: bool,
    /// Whether keys of the type sign.
    supports_signing: bool,
    /// Always false.
    soft_deleted: bool,
}

/// One version of a key.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum VersionData {
    /// The Unix time at which a version of a key that encrypts was made.
    CreationTime(u64),
    /// A version with a public key.
    Public(PublicVersion),
}

/// One version of a key that has public keys.
#[derive(Serialize, ToSchema)]
pub(super) struct PublicVersion {
    /// The name of the curve or of the type.
    #[schema(example = "ed25519")]
    name: &'static str,
    /// The public key: PEM for ECDSA and RSA, otherwise base64. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    /// When it was made.
    #[schema(example = "2026-01-31T09:30:00.000Z")]
    creation_time: String,
    /// The certificates of the public key as PEM; empty if there are none.
    certificate_chain: String,
}

impl KeyData {
    pub(super) fn of(keystore: &Keystore, key: &Attestation) -> Self {
        let (kind, parameter_set) = kind(key.algorithm);
        let usage = key.algorithm.usage();
        let imported = |origin| origin != Origin::Generated;
        let encrypts = key.algorithm.has_usage(KeyUsage::Encryption);
        let derived = key.derivation != KeyDerivation::None;
        let convergent = key.derivation == KeyDerivation::Convergent;
        Self {
            name: key.label.as_ref().map(ToString::to_string).unwrap_or_default(),
            kind,
            parameter_set,
            keys: (usage != KeyUsage::Authentication).then(|| versions(keystore, key, kind)),
            key_size: (usage == KeyUsage::Authentication).then(|| key.algorithm.output_length()),
            latest_version: key.latest_version,
            min_available_version: min_available(key),
            min_decryption_version: key.minimum_version,
            min_encryption_version: key.minimum_signing_version.unwrap_or(key.latest_version),
            deletion_allowed: key.deletion_allowed,
            auto_rotate_period: key.rotation.max_age_seconds.map_or(0, Into::into),
            exportable: key.exportable,
            // It may have been destroyed a moment ago.
            allow_plaintext_backup: keystore.backup_allowed(&key.key).unwrap_or_default(),
            derived,
            kdf: derived.then_some("hkdf_sha256"),
            convergent_encryption: derived.then_some(convergent),
            convergent_encryption_version: convergent.then_some(-1),
            imported_key: key.versions.last().is_some_and(|head| imported(head.origin)),
            supports_encryption: encrypts,
            supports_decryption: encrypts,
            supports_derivation: usage == KeyUsage::Encryption,
            supports_signing: usage == KeyUsage::Signature,
            soft_deleted: false,
        }
    }
}

/// The versions that verify or decrypt.
pub(super) fn usable_versions(key: &Attestation) -> impl Iterator<Item = &VersionAttestation> {
    let is_usable = |version: &&VersionAttestation| {
        version.version >= key.minimum_version && version.state != VersionState::Revoked
    };
    key.versions.iter().filter(is_usable)
}

/// The versions that verify or decrypt, as Vault shows them. `kind` is the key's type.
fn versions(keystore: &Keystore, key: &Attestation, kind: &'static str) -> BTreeMap<u32, VersionData> {
    let name = match key.algorithm {
        Algorithm::EcdsaP256 => "P-256",
        Algorithm::EcdsaP384 => "P-384",
        Algorithm::EcdsaP521 => "P-521",
        _ => kind,
    };
    let data = usable_versions(key).map(|version| {
        let data = if key.algorithm.is_symmetric() {
            VersionData::CreationTime(version.created.unix_millis() / 1000)
        } else {
            let public_key = version.public_key.as_ref().map(public_key);
            let creation_time = version.created.to_string();
            let certificate_chain = chain_of(keystore, &version.id).unwrap_or_default();
            VersionData::Public(PublicVersion { name, public_key, creation_time, certificate_chain })
        };
        (version.version, data)
    });
    data.collect()
}

/// The oldest version that was not trimmed, or 0 if none was trimmed. Trimming revokes versions, so
/// their states say this.
pub(super) fn min_available(key: &Attestation) -> u32 {
    let trimmed = key.versions.iter().take_while(|version| version.state == VersionState::Revoked);
    trimmed.last().map_or(0, |last| last.version + 1)
}

/// A public key as Vault writes it.
pub(super) fn public_key(key: &PublicKey) -> String {
    let pem = match key.algorithm() {
        algorithm if algorithm.can_sign_digests() => export_public(key, PublicFormat::Pem).ok(),
        _ => None,
    };
    pem.and_then(|pem| String::from_utf8(pem).ok()).unwrap_or_else(|| encode(key.as_bytes()))
}

/// How Vault's clients ask for a list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// `true`, in any case: clients that cannot send the method LIST send GET with this.
    list: Option<String>,
    /// Only names that come after this one.
    after: Option<String>,
    /// At most so many names; all of them if it is 0, less, or absent.
    #[param(value_type = Option<i64>)]
    limit: Option<String>,
}

impl ListQuery {
    fn of(query: Result<Query<Self>, QueryRejection>) -> Result<Self> {
        let Query(query) = query.map_err(|_| VaultError::invalid("a parameter is given more than once"))?;
        Ok(query)
    }

    /// # Errors
    /// The limit is no number.
    fn limit(&self) -> Result<usize> {
        let Some(text) = self.limit.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(usize::MAX);
        };
        let limit: i64 = text.parse().map_err(|_| VaultError::invalid("`limit` is not a whole number"))?;
        Ok(usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX))
    }
}

/// The names of keys.
#[derive(Serialize, ToSchema)]
pub(super) struct KeyNames {
    /// The names, sorted. Keys without a label have none and are not here.
    keys: Vec<String>,
}

/// List the names of the keys that the caller may read. The method LIST does the same. No key at
/// all is 404, as in Vault.
#[utoipa::path(get, path = "/v1/transit/keys", tag = "transit", params(ListQuery), extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The names", body = Envelope<KeyNames>), (status = "default", body = VaultErrorBody)))]
async fn transit_list(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Response> {
    check_may_read(&caller)?;
    let query = ListQuery::of(query)?;
    // Python's clients send `True`.
    let wants = |text: &String| ["true", "t", "1"].iter().any(|word| text.eq_ignore_ascii_case(word));
    if !query.list.as_ref().is_some_and(wants) {
        return Err(ApiError::new(
            ApiErrorCode::MethodNotAllowed,
            "list keys with the method LIST, or with GET and list=true",
        )
        .into());
    }
    list(&worker, &caller, &query).await
}

/// The method LIST. HTTP does not define it.
async fn list_method(
    method: Method,
    State(worker): State<Worker>,
    caller: Result<VaultCaller>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Response {
    if method.as_str() != "LIST" {
        let message = format!("/v1/transit/keys does not take the method {method}");
        return VaultError::from(ApiError::new(ApiErrorCode::MethodNotAllowed, message)).into_response();
    }
    let listed = async {
        let VaultCaller(caller) = caller?;
        list(&worker, &caller, &ListQuery::of(query)?).await
    };
    listed.await.into_response()
}

/// # Errors
/// The caller may read no key.
fn check_may_read(caller: &Caller) -> Result<()> {
    let may_read = caller.session.authority.operations.contains(TokenOperation::Read);
    if may_read { Ok(()) } else { Err(ApiError::forbidden().into()) }
}

async fn list(worker: &Worker, caller: &Caller, query: &ListQuery) -> Result<Response> {
    check_may_read(caller)?;
    let limit = query.limit()?;
    let (session, after) = (Arc::clone(&caller.session), query.after.clone());
    let found = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let authority = &session.authority;
        let may_read = |key: &KeyId| is_visible(key) && authority.permits(TokenOperation::Read, key);
        let found = keystore.list_page(&authority.tenant, None, usize::MAX, &may_read);
        let names = found.into_iter().filter_map(|key| key.label.map(|label| label.to_string()));
        let mut keys: Vec<_> = names.filter(|key| after.as_ref().is_none_or(|after| key > after)).collect();
        keys.sort_unstable();
        keys.truncate(limit);
        // Written here, because there may be very many.
        Ok((!keys.is_empty()).then(|| serde_json::to_vec(&KeyNames { keys }).unwrap_or_default()))
    });
    let Some(names) = found.await? else {
        return Err(VaultError::empty_not_found("the caller may read no such key with a label"));
    };
    Ok(answer::written(worker, names.len(), &[], |out| out.extend_from_slice(&names)))
}

/// Read a key.
#[utoipa::path(get, path = "/v1/transit/keys/{name}", tag = "transit", params(("name" = String, Path, description = KEY_NAME_DOC)),
    extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "The key", body = Envelope<KeyData>), (status = "default", body = VaultErrorBody)))]
async fn transit_read(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
) -> Result<Response> {
    let missing = || VaultError::empty_not_found("the tenant has no key of this name");
    let key_id = find(&caller, &name, TokenOperation::Read, missing)?;
    let keystore = &caller.unsealed.keystore;
    Ok(answer::data(&worker, &KeyData::of(keystore, &keystore.attest(&key_id)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_of_a_key_can_be_asked_for_by_what_its_keys_are_called() {
        for &known in Algorithm::ALL {
            let (kind, set) = kind(known);
            let asked = algorithm(Some(kind), set).ok();
            assert_eq!(asked, is_offered(known).then_some(known), "{known}");
        }
        for size in ["44", "65", "87"] {
            let (vault, openbao) =
                (algorithm(Some("ml-dsa"), Some(size)), algorithm(Some(&format!("mldsa-{size}")), None));
            assert_eq!(vault.unwrap(), openbao.unwrap());
        }
        assert_eq!(algorithm(None, None).unwrap(), Algorithm::Aes256Gcm, "as Vault's default");
        for (kind, set) in [
            (Some("rsa-1024"), None),
            (Some("x-wing"), None),
            (Some("ecdh-p256"), None),
            (Some("ml-dsa"), None),
        ] {
            assert!(algorithm(kind, set).is_err(), "{kind:?}");
        }
    }
}
