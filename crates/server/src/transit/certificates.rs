//! `/v1/transit/keys/:name/csr` and `set-certificate`: requests for certificates of a key, and the
//! certificates, which the keystore keeps with the key's version.

use std::num::NonZeroU32;

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::response::Response;
use bulla_kms::prehash::{HashFunction, RsaPadding};
use bulla_kms::token::TokenOperation;
use bulla_kms::transfer::{PublicFormat, export_public};
use bulla_kms::{Algorithm, Attestation, Code, KeyChange, KeyUsage, KeyVersionId, Keystore, KmsError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use x509_cert::Certificate;
use x509_cert::der::asn1::{Any, BitString, ObjectIdentifier};
use x509_cert::der::pem::{LineEnding, encode_string};
use x509_cert::der::{Decode as _, DecodePem as _, Encode as _, EncodePem as _};
use x509_cert::ext::pkix::BasicConstraints;
use x509_cert::request::{CertReq, CertReqInfo, Version};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use super::answer::{self, Envelope, Result, VaultError, VaultErrorBody};
use super::keys::{KEY_NAME_DOC, find, kind, missing};
use super::request::{OptionalText, PathName, VaultBody, VaultCaller, number};
use super::scheme::signature_bytes;
use crate::error::ApiError;
use crate::request::Caller;
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_csr).map(|router| router.put(erased(transit_csr))))
        .routes(routes!(transit_set_certificate).map(|router| router.put(erased(transit_set_certificate))))
}

const NO_SUCH_VERSION: &str = "no such key version";

/// A certificate to request. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
struct TransitCsr<'a> {
    /// A request for a certificate (PKCS#10) as PEM, whose subject and attributes the new one gets;
    /// without it, these are empty.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    csr: OptionalText<'a>,
    /// The version whose public key is certified; the latest one by default.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    version: Option<i64>,
}

/// A request for a certificate.
#[derive(Serialize, ToSchema)]
struct TransitCsrMade {
    /// The key's name: its label.
    name: String,
    /// The key's type.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The request (PKCS#10), signed by the key, as PEM.
    csr: String,
}

/// Request a certificate for a key: Ed25519, ECDSA or RSA. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/keys/{name}/csr", tag = "transit", request_body = TransitCsr,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("sign"))),
    responses((status = 200, description = "The request", body = Envelope<TransitCsrMade>), (status = "default", body = VaultErrorBody)))]
async fn transit_csr(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    let key = signing_key(&caller, &name, TokenOperation::Sign)?;
    let request: TransitCsr<'_> = body.parse_short()?;
    let template = request.csr.given().map(read_request).transpose()?;
    let id = version(&key, request.version, "could not create the csr: no such key version")?;
    let signed = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        sign_request(keystore, &id, template)
    });
    let (kind, _) = kind(key.algorithm);
    Ok(answer::data(&worker, &TransitCsrMade { name, kind, csr: signed.await? }))
}

/// The key, if it signs.
fn signing_key(caller: &Caller, name: &str, operation: TokenOperation) -> Result<Attestation> {
    let none = || missing(format!("key with provided name '{name}' not found"));
    let key_id = find(caller, name, operation, none)?;
    let key = caller.unsealed.keystore.attest(&key_id)?;
    if key.algorithm.usage() == KeyUsage::Signature {
        return Ok(key);
    }
    let (kind, _) = kind(key.algorithm);
    let error = ApiError::from(KmsError::new(Code::KeyUsageMismatch, "keys of this type do not sign"));
    Err(VaultError::in_words(format!("key type '{kind}' does not support signing"), error))
}

/// A version that a request names, or the latest one.
fn version(key: &Attestation, asked: Option<i64>, words: &'static str) -> Result<KeyVersionId> {
    let number = asked.unwrap_or_else(|| key.latest_version.into());
    let number =
        u32::try_from(number).ok().filter(|number| *number <= key.latest_version).and_then(NonZeroU32::new);
    number.map(|number| key.key.version(number)).ok_or_else(|| {
        let error = KmsError::new(Code::UnknownVersion, "the key has no such version");
        VaultError::in_words(words, ApiError::from(error))
    })
}

/// # Errors
/// The text is no request for a certificate.
fn read_request(text: &str) -> Result<CertReqInfo> {
    let read = CertReq::from_pem(text.trim().as_bytes());
    Ok(read.map_err(|_| VaultError::invalid("could not decode PEM CSR"))?.info)
}

/// A request for a certificate of this key version, with the subject and the attributes of the
/// template, as PEM.
fn sign_request(
    keystore: &Keystore,
    id: &KeyVersionId,
    template: Option<CertReqInfo>,
) -> bulla_kms::Result<String> {
    let failed = |_| KmsError::new(Code::InvalidArgument, "no request for a certificate could be written");
    let pem = export_public(&keystore.public_key(id)?, PublicFormat::Pem)?;
    let public_key = SubjectPublicKeyInfoOwned::from_pem(&pem).map_err(failed)?;
    let (subject, attributes) =
        template.map(|template| (template.subject, template.attributes)).unwrap_or_default();
    let info = CertReqInfo { version: Version::V1, subject, public_key, attributes };
    let (oid, hash) = signature_algorithm(id.key_id().algorithm())?;
    let message = info.to_der().map_err(failed)?;
    let signature = match hash {
        None => keystore.sign(id, &message)?,
        Some(hash) => keystore.sign_hashed(id, &message, hash, RsaPadding::Pkcs1v15)?,
    };
    let parameters = id.key_id().algorithm().is_rsa().then(Any::null);
    let algorithm = AlgorithmIdentifierOwned { oid, parameters };
    let signature = BitString::from_bytes(&signature_bytes(&signature)).map_err(failed)?;
    CertReq { info, algorithm, signature }.to_pem(LineEnding::LF).map_err(failed)
}

/// The object identifier of the signatures in requests, and their hash function: that of the
/// curve's size, as in OpenBao.
fn signature_algorithm(algorithm: Algorithm) -> bulla_kms::Result<(ObjectIdentifier, Option<HashFunction>)> {
    let oid = ObjectIdentifier::new_unwrap;
    Ok(match algorithm {
        // RFC 8410.
        Algorithm::Ed25519 => (oid("1.3.101.112"), None),
        // RFC 5758.
        Algorithm::EcdsaP256 => (oid("1.2.840.10045.4.3.2"), Some(HashFunction::Sha256)),
        Algorithm::EcdsaP384 => (oid("1.2.840.10045.4.3.3"), Some(HashFunction::Sha384)),
        Algorithm::EcdsaP521 => (oid("1.2.840.10045.4.3.4"), Some(HashFunction::Sha512)),
        // RFC 8017.
        rsa if rsa.is_rsa() => (oid("1.2.840.113549.1.1.11"), Some(HashFunction::Sha256)),
        other => {
            let message = format!("certificates are requested for Ed25519, ECDSA and RSA, not for {other}");
            return Err(KmsError::new(Code::KeyUsageMismatch, message));
        }
    })
}

/// The certificates of a key. Fields that are not here are ignored, as Vault ignores them.
#[derive(Deserialize, ToSchema)]
struct TransitSetCertificate<'a> {
    /// The certificates as PEM: the key's own first, and the last one of several that of an
    /// authority.
    #[serde(borrow, default)]
    #[schema(value_type = String)]
    certificate_chain: OptionalText<'a>,
    /// The version whose public key is certified; the latest one by default.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    version: Option<i64>,
}

/// The certificates that a version has now.
#[derive(Serialize, ToSchema)]
struct TransitCertificate {
    /// The key's name: its label.
    name: String,
    /// The key's type.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The certificates as PEM.
    certificate_chain: String,
}

/// Keep the certificates of a key version with it. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/keys/{name}/set-certificate", tag = "transit", request_body = TransitSetCertificate,
    params(("name" = String, Path, description = KEY_NAME_DOC)), extensions(("x-permission" = json!("update"))),
    responses((status = 200, description = "The certificates", body = Envelope<TransitCertificate>), (status = "default", body = VaultErrorBody)))]
async fn transit_set_certificate(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    let key = signing_key(&caller, &name, TokenOperation::Update)?;
    let request: TransitSetCertificate<'_> = body.parse_short()?;
    let chain = read_chain(request.certificate_chain.as_deref().unwrap_or_default())?;
    let id = version(&key, request.version, NO_SUCH_VERSION)?;
    check_chain(&caller.unsealed.keystore, &id, &chain)?;
    let unreadable = |_| VaultError::invalid("could not parse a certificate in the certificate chain");
    let chain = chain.iter().map(|one| one.to_der().map_err(unreadable)).collect::<Result<Vec<_>>>()?;
    let certificate_chain = to_pem(&chain);
    let number = NonZeroU32::new(id.version()).ok_or_else(|| VaultError::invalid(NO_SUCH_VERSION))?;
    let changed = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        keystore.update(id.key_id(), None, &KeyChange::Certificates { version: number, chain })
    });
    let changed = changed.await?;
    worker.service.key_changed(&changed.key);
    let (kind, _) = kind(changed.algorithm);
    Ok(answer::data(&worker, &TransitCertificate { name, kind, certificate_chain }))
}

/// Reads certificates. What is before each of them is not read, as in Vault.
///
/// # Errors
/// The text has no certificate, or one that is cut or malformed.
fn read_chain(text: &str) -> Result<Vec<Certificate>> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let (mut chain, mut rest) = (Vec::new(), text);
    while let Some(begin) = rest.find(BEGIN) {
        let block = &rest[begin..];
        let end = block.find(END).map(|end| end + END.len());
        let end =
            end.ok_or_else(|| VaultError::invalid("could not decode a PEM block in the certificate chain"))?;
        let read = Certificate::from_pem(&block[..end]);
        let unreadable = |_| VaultError::invalid("could not parse a certificate in the certificate chain");
        chain.push(read.map_err(unreadable)?);
        rest = &block[end..];
    }
    if chain.is_empty() {
        let words = "provided certificate chain did not contain any valid PEM encoded certificate";
        return Err(VaultError::invalid(words));
    }
    if !rest.trim().is_empty() {
        return Err(VaultError::invalid("could not decode a PEM block in the certificate chain"));
    }
    Ok(chain)
}

/// # Errors
/// The first certificate is not of the version's public key or is that of an authority, or the last
/// one of several is not.
fn check_chain(keystore: &Keystore, id: &KeyVersionId, chain: &[Certificate]) -> Result<()> {
    let refuse = |why: &str| Err(VaultError::invalid(format!("failed to persist certificate chain: {why}")));
    let is_authority = |one: &Certificate| {
        let constraints = one.tbs_certificate().get_extension::<BasicConstraints>();
        matches!(constraints, Ok(Some((_, BasicConstraints { ca: true, .. }))))
    };
    let (Some(first), Some(last)) = (chain.first(), chain.last()) else {
        return refuse("it is empty");
    };
    if is_authority(first) {
        return refuse("certificate in the first element is not a valid leaf certificate");
    }
    if chain.len() > 1 && !is_authority(last) {
        return refuse("certificate in the last element is not a valid CA certificate");
    }
    let own = export_public(&keystore.public_key(id)?, PublicFormat::Der)?;
    match first.tbs_certificate().subject_public_key_info().to_der() {
        Ok(certified) if certified == own => Ok(()),
        _ => refuse("leaf certificate public key does not match the selected key version"),
    }
}

/// Certificates as PEM.
pub(super) fn to_pem(chain: &[Vec<u8>]) -> String {
    let texts = chain.iter().filter_map(|one| encode_string("CERTIFICATE", LineEnding::LF, one).ok());
    texts.collect()
}

/// The certificates of a version as PEM; empty if it has none.
pub(super) fn chain_of(keystore: &Keystore, id: &KeyVersionId) -> bulla_kms::Result<String> {
    Ok(to_pem(&keystore.certificates(id)?))
}

/// Reads a text as a request for a certificate and as certificates; for the fuzzers. What reads
/// must come back.
pub(super) fn fuzz(text: &str) {
    if let Ok(info) = read_request(text) {
        let der = info.to_der().expect("what was read can be written");
        assert!(CertReqInfo::from_der(&der).is_ok());
    }
    if let Ok(chain) = read_chain(text) {
        let chain: Vec<_> =
            chain.iter().map(|one| one.to_der().expect("what was read can be written")).collect();
        assert_eq!(read_chain(&to_pem(&chain)).map(|again| again.len()).ok(), Some(chain.len()));
    }
}
