//! Bundles of Sigstore, version 0.3 (<https://github.com/sigstore/protobuf-specs>,
//! `sigstore_bundle.proto`): a signature of a file, or an envelope of DSSE, by a key or under a
//! certificate.
//!
//! With the feature `trusted-root`, the module `trusted_root` verifies certificates, entries of
//! transparency logs, and timestamps.

use std::collections::HashMap;
use std::fmt;

use base64ct::{Base64, Encoding as _};
use bulla_kms::PublicKey;
use bulla_kms::transfer::{PublicFormat, export_public};
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use sigstore_types::{
    Bundle, DsseEnvelope, DsseSignature, HashAlgorithm, KeyId, MediaType, MessageDigest, MessageSignature,
    PublicKeyIdentifier, SignatureContent, VerificationMaterial, VerificationMaterialContent,
};

use crate::content::Coverage;
use crate::digests::to_hex;
use crate::dsse::{Envelope, EnvelopeSignature, pem};
use crate::error::{FormatError, MessageSigner};
use crate::evidence::Evidence;
use crate::json;
use crate::message_key::{MessageKey, sign_message};
use crate::signify::check_message;

/// The most bytes of a bundle, or of an envelope.
pub const MAX_BUNDLE_LEN: usize = 64 << 20;

/// The bytes of a signature of Ed25519.
const ED25519_LEN: usize = 64;
/// The most bytes of a signature of ECDSA on P-256 in DER. Signatures on larger curves are longer,
/// except for one of 2^200.
const MAX_P256_DER_LEN: usize = 72;

/// A bundle. `Display` writes it as one line of JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct SigstoreBundle {
    pub(crate) bundle: Bundle,
    envelope: Option<Envelope>,
}

/// Whose signature a bundle says that it has. Nothing of that is verified.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleSigner {
    /// That of a key, which the verifier must know.
    Key,
    /// That of the key in a certificate, which the bundle contains.
    Certificate,
}

/// How a bundle names the key that signed. Nothing covers this name.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHint {
    /// As cosign does: the base64 of the SHA-256 digest of the key in DER.
    Cosign,
    /// As model signing does: the SHA-256 digest of the key in PEM, in hexadecimal.
    ModelSigning,
}

impl KeyHint {
    /// The name of a key.
    ///
    /// # Errors
    /// The key has no form in DER.
    pub fn of(self, key: &PublicKey) -> Result<String, FormatError> {
        Ok(match self {
            Self::Cosign => {
                let der =
                    export_public(key, PublicFormat::Der).map_err(|error| FormatError::new(error.message))?;
                Base64::encode_string(&Sha256::digest(der))
            }
            Self::ModelSigning => to_hex(&Sha256::digest(pem(key)?)),
        })
    }
}

/// The members that say what a bundle is. More than one of them would leave a choice to readers.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BundleMembers {
    #[expect(dead_code, reason = "only whether it is there counts: older versions lack it")]
    media_type: String,
    message_signature: Option<IgnoredAny>,
    dsse_envelope: Option<IgnoredAny>,
    verification_material: MaterialMembers,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MaterialMembers {
    /// An object: the library takes a list for one.
    public_key: Option<HashMap<String, IgnoredAny>>,
    certificate: Option<HashMap<String, IgnoredAny>>,
    x509_certificate_chain: Option<HashMap<String, IgnoredAny>>,
}

impl SigstoreBundle {
    /// Reads a bundle.
    ///
    /// # Errors
    /// It is malformed, has a member twice, or says of several keys or certificates, or of none,
    /// that they signed.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let members: BundleMembers = json::parse(bytes)?;
        let material = &members.verification_material;
        if members.message_signature.is_some() == members.dsse_envelope.is_some() {
            let message = "a bundle has either a signature of a file or an envelope";
            return Err(FormatError::new(message));
        }
        let signers = [&material.public_key, &material.certificate, &material.x509_certificate_chain];
        if signers.iter().filter(|signer| signer.is_some()).count() != 1 {
            let message = "a bundle says either that a key made it, or under which certificate";
            return Err(FormatError::new(message));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| FormatError::new("it is not UTF-8"))?;
        let bundle = Bundle::from_json(text)
            .map_err(|_| FormatError::new("it is not a bundle of Sigstore, version 0.1 to 0.3"))?;
        if let VerificationMaterialContent::X509CertificateChain { certificates } =
            &bundle.verification_material.content
            && certificates.is_empty()
        {
            return Err(FormatError::new("its chain of certificates is empty"));
        }
        let envelope = match &bundle.content {
            SignatureContent::DsseEnvelope(envelope) => Some(Envelope {
                payload_type: envelope.payload_type.clone(),
                payload: envelope.payload.as_bytes().to_vec(),
                signatures: vec![EnvelopeSignature {
                    key_id: envelope.signature.keyid.as_str().to_owned(),
                    bytes: envelope.signature.sig.as_bytes().to_vec(),
                }],
            }),
            _ => None,
        };
        Ok(Self { bundle, envelope })
    }

    fn new(hint: String, content: SignatureContent, envelope: Option<Envelope>) -> Self {
        let key = VerificationMaterialContent::PublicKey(PublicKeyIdentifier::new(hint));
        let bundle = Bundle::new(MediaType::Bundle0_3, VerificationMaterial::new(key), content);
        Self { bundle, envelope }
    }

    /// Signs a file's bytes.
    ///
    /// # Errors
    /// The key does not sign in this format; the file begins like the messages of another format;
    /// the errors of the signer.
    pub fn sign_file<S: MessageSigner>(signer: &mut S, content: &[u8]) -> Result<Self, S::Error> {
        check_message(content)?;
        let (key, signature) = sign_message(signer, content)?;
        let digest = MessageDigest::new(HashAlgorithm::Sha2256, Sha256::digest(content).to_vec().into());
        let signature = MessageSignature::new(signature.into()).with_message_digest(digest);
        let hint = KeyHint::Cosign.of(&key)?;
        Ok(Self::new(hint, SignatureContent::MessageSignature(signature), None))
    }

    /// Signs a payload in an envelope.
    ///
    /// # Errors
    /// The key does not sign in this format; the errors of the signer.
    pub fn sign_payload<S: MessageSigner>(
        signer: &mut S,
        payload_type: &str,
        payload: &[u8],
        hint: KeyHint,
    ) -> Result<Self, S::Error> {
        let message = Envelope {
            payload_type: payload_type.to_owned(),
            payload: payload.to_vec(),
            signatures: Vec::new(),
        };
        let (key, bytes) = sign_message(signer, &message.message())?;
        let signature = DsseSignature::new(bytes.clone().into(), KeyId::new(String::new()));
        let content = DsseEnvelope::new(payload_type, payload.to_vec().into(), signature);
        let envelope =
            Envelope { signatures: vec![EnvelopeSignature { key_id: String::new(), bytes }], ..message };
        Ok(Self::new(hint.of(&key)?, SignatureContent::DsseEnvelope(content), Some(envelope)))
    }

    /// What the bundle calls the key that signed. Nothing covers this name.
    pub fn hint(&self) -> &str {
        match &self.bundle.verification_material.content {
            VerificationMaterialContent::PublicKey(key) => &key.hint,
            _ => "",
        }
    }

    /// Whether a key signed that the verifier must know, or one with a certificate.
    pub fn signer(&self) -> BundleSigner {
        match &self.bundle.verification_material.content {
            VerificationMaterialContent::PublicKey(_) => BundleSigner::Key,
            _ => BundleSigner::Certificate,
        }
    }

    /// The envelope, if the bundle has one.
    pub fn envelope(&self) -> Option<&Envelope> {
        self.envelope.as_ref()
    }

    /// Whether the bundle claims another digest than that of `covered`, which is what
    /// [`SigstoreBundle::coverage`] names. Nothing covers the claim, so the file may have changed,
    /// or the bundle.
    pub fn claims_another_digest(&self, covered: &[u8]) -> bool {
        let Some(claim) = self.claim() else { return false };
        let claimed: &[u8] = claim.digest.as_ref();
        match (self.coverage(), claim.algorithm) {
            (Coverage::Sha256, _) => claimed != covered,
            (_, HashAlgorithm::Sha2256) => claimed != Sha256::digest(covered).as_slice(),
            (_, HashAlgorithm::Sha2384) => claimed != Sha384::digest(covered).as_slice(),
            (_, HashAlgorithm::Sha2512) => claimed != Sha512::digest(covered).as_slice(),
            _ => true,
        }
    }

    fn claim(&self) -> Option<&MessageDigest> {
        match &self.bundle.content {
            SignatureContent::MessageSignature(signature) => signature.message_digest.as_ref(),
            _ => None,
        }
    }

    /// What [`SigstoreBundle::is_file_signed_by`] needs of the file: its SHA-256 digest, if the
    /// signature is one of ECDSA on P-256 and the bundle claims no other kind of digest, so that
    /// the file may have any length; else its bytes.
    pub fn coverage(&self) -> Coverage {
        if self.claim().is_some_and(|claim| claim.algorithm != HashAlgorithm::Sha2256) {
            return Coverage::Whole;
        }
        match &self.bundle.content {
            SignatureContent::MessageSignature(signature) => match signature.signature.as_bytes().len() {
                // One of P-256 in DER may have this length, too, and the file's bytes do as well.
                ED25519_LEN => Coverage::Whole,
                0..=MAX_P256_DER_LEN => Coverage::Sha256,
                _ => Coverage::Whole,
            },
            _ => Coverage::Whole,
        }
    }

    /// Whether the signature of a file verifies with a key, and the bundle claims no other digest
    /// of the file. `covered` is what [`SigstoreBundle::coverage`] names. Always false for a bundle
    /// with an envelope.
    pub fn is_file_signed_by(&self, covered: &[u8], key: MessageKey<'_>) -> bool {
        let SignatureContent::MessageSignature(signature) = &self.bundle.content else { return false };
        if self.claims_another_digest(covered) {
            return false;
        }
        let bytes = signature.signature.as_bytes();
        match self.coverage() {
            Coverage::Sha256 => key.verifies_sha256(covered, bytes),
            _ => key.verifies(covered, bytes),
        }
    }

    /// What the bundle has besides its signature and that is not in `evidence`: entries of
    /// transparency logs, and timestamps.
    pub fn unverified(&self, evidence: &Evidence) -> Vec<String> {
        let [log_entries, timestamps] = self.evidence_counts();
        let rest = Evidence {
            log_entries: log_entries.saturating_sub(evidence.log_entries),
            timestamps: timestamps.saturating_sub(evidence.timestamps),
            ..Evidence::default()
        };
        rest.parts()
    }

    /// How many entries of transparency logs the bundle has, and how many timestamps.
    pub(crate) fn evidence_counts(&self) -> [usize; 2] {
        let material = &self.bundle.verification_material;
        [material.tlog_entries.len(), material.timestamp_verification_data.rfc3161_timestamps.len()]
    }
}

impl fmt::Display for SigstoreBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.bundle.to_json().map_err(|_| fmt::Error)?;
        writeln!(f, "{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"a"},"tlogEntries":[],"timestampVerificationData":{}},"messageSignature":{"messageDigest":{"algorithm":"SHA2_256","digest":"AAAA"},"signature":"BBBB"}}"#;

    #[test]
    fn a_bundle_is_read_as_it_was_written() {
        let envelope =
            r#""dsseEnvelope":{"payloadType":"t","payload":"aGk=","signatures":[{"sig":"AAAA"}]}}"#;
        let at = MESSAGE.find(r#""messageSignature""#).unwrap();
        for text in [MESSAGE.to_owned(), format!("{}{envelope}", &MESSAGE[..at])] {
            let bundle = SigstoreBundle::parse(text.as_bytes()).unwrap();
            assert_eq!(bundle.hint(), "a");
            assert_eq!(bundle.envelope().is_some(), text.contains("dsse"));
            assert_eq!(SigstoreBundle::parse(bundle.to_string().as_bytes()).unwrap(), bundle);
            assert!(bundle.unverified(&Evidence::default()).is_empty());
            for len in 0..text.len() {
                assert!(SigstoreBundle::parse(&text.as_bytes()[..len]).is_err(), "{len}");
            }
        }
    }

    struct KeystoreSigner(bulla_kms::Keystore, bulla_kms::KeyVersionId);

    impl MessageSigner for KeystoreSigner {
        type Error = Box<dyn std::error::Error>;

        fn sign(&mut self, message: &[u8]) -> Result<(PublicKey, Vec<u8>), Self::Error> {
            Ok((self.0.public_key(&self.1)?, self.0.sign(&self.1, message)?.bytes))
        }
    }

    #[test]
    fn the_digest_of_a_file_is_enough_for_p256_and_not_for_ed25519() {
        use bulla_kms::{Algorithm, Keystore, NewKey};
        let content = b"a file";
        let digest = Sha256::digest(content);
        for (algorithm, coverage) in
            [(Algorithm::EcdsaP256, Coverage::Sha256), (Algorithm::Ed25519, Coverage::Whole)]
        {
            let keystore = Keystore::in_memory().unwrap();
            let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), algorithm);
            let id = keystore.create_key(new).unwrap();
            let key = keystore.public_key(&id).unwrap();
            let mut signer = KeystoreSigner(keystore, id);
            let bundle = SigstoreBundle::sign_file(&mut signer, content).unwrap();
            assert_eq!(bundle.coverage(), coverage);
            let is_digest = coverage == Coverage::Sha256;
            assert_eq!(bundle.is_file_signed_by(&digest, MessageKey::Kms(&key)), is_digest);
            assert_eq!(bundle.is_file_signed_by(content, MessageKey::Kms(&key)), !is_digest);
            assert!(!bundle.is_file_signed_by(&Sha256::digest(b"other"), MessageKey::Kms(&key)));
        }
    }

    #[test]
    fn a_bundle_that_claims_the_digest_of_another_file_verifies_for_none() {
        use bulla_kms::{Algorithm, Keystore, NewKey};
        let content = b"a file";
        let keystore = Keystore::in_memory().unwrap();
        let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::EcdsaP256);
        let id = keystore.create_key(new).unwrap();
        let key = keystore.public_key(&id).unwrap();
        let mut signer = KeystoreSigner(keystore, id);
        let text = SigstoreBundle::sign_file(&mut signer, content).unwrap().to_string();
        let claim = |name: &str, digest: &[u8]| {
            let digest = format!(r#""algorithm":"{name}","digest":"{}""#, Base64::encode_string(digest));
            let old = format!(
                r#""algorithm":"SHA2_256","digest":"{}""#,
                Base64::encode_string(&Sha256::digest(content))
            );
            assert!(text.contains(&old), "{text}");
            let bundle = SigstoreBundle::parse(text.replace(&old, &digest).as_bytes()).unwrap();
            let covered = match bundle.coverage() {
                Coverage::Sha256 => Sha256::digest(content).to_vec(),
                _ => content.to_vec(),
            };
            let is_signed = bundle.is_file_signed_by(&covered, MessageKey::Kms(&key));
            assert_eq!(is_signed, !bundle.claims_another_digest(&covered));
            is_signed
        };
        assert!(claim("SHA2_256", &Sha256::digest(content)));
        assert!(claim("SHA2_384", &Sha384::digest(content)));
        assert!(claim("SHA2_512", &Sha512::digest(content)));
        assert!(!claim("SHA2_256", &Sha256::digest(b"other")));
        assert!(!claim("SHA2_384", &Sha384::digest(b"other")));
        assert!(!claim("SHA2_512", &Sha512::digest(b"other")));
        assert!(!claim("SHA2_512", &Sha256::digest(content)));
        assert!(!claim("SHA2_256", b""));
    }

    #[test]
    fn what_leaves_a_choice_to_readers_is_refused() {
        let changes = [
            (r#""messageSignature":"#, r#""dsseEnvelope":{},"messageSignature":"#),
            (r#""messageSignature":"#, r#""other":"#),
            (r#""publicKey":"#, r#""certificate":{"rawBytes":""},"publicKey":"#),
            (r#""publicKey":"#, r#""x509CertificateChain":{"certificates":[]},"publicKey":"#),
            (r#""publicKey":{"hint":"a"}"#, r#""certificate":[""]"#),
            (r#""publicKey":{"hint":"a"}"#, r#""certificate":{"raw":""}"#),
            (r#""publicKey":{"hint":"a"}"#, r#""x509CertificateChain":{"certificates":[]}"#),
            (r#""publicKey":"#, r#""key":"#),
            (r#"{"hint":"a"}"#, r#"{"hint":"a","hint":"b"}"#),
            ("v0.3", "v0.9"),
            ("mediaType", "media"),
            (r#"{"hint":"a"}"#, "[]"),
            ("SHA2_256", "SHA1"),
        ];
        for (from, to) in changes {
            let text = MESSAGE.replacen(from, to, 1);
            assert_ne!(text, MESSAGE);
            assert!(SigstoreBundle::parse(text.as_bytes()).is_err(), "{from} {to}");
        }
    }
}
