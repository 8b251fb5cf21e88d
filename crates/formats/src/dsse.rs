//! Envelopes of DSSE, version 1 (<https://github.com/secure-systems-lab/dsse>, `protocol.md` and
//! `envelope.md`).
//!
//! A signature covers the type and the bytes of the payload, in the pre-authentication encoding.

use std::fmt;

use base64ct::{Base64, Base64Unpadded, Base64Url, Base64UrlUnpadded, Encoding as _};
use bulla_kms::transfer::{PublicFormat, export_public};
use bulla_kms::{Algorithm, PublicKey};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::digests::to_hex;
use crate::error::{FormatError, MessageSigner};
use crate::json;
use crate::message_key::{MessageKey, sign_message};

/// What every message that DSSE signs begins with.
pub(crate) const MESSAGE_PREFIX: &[u8] = b"DSSEv1 ";

/// The most signatures of an envelope.
const MAX_SIGNATURES: usize = 64;
/// The most bytes that the signatures of an envelope cover together: each of them is verified by
/// itself, and with each key.
const MAX_COVERED_LEN: usize = 256 << 20;

/// A payload and its signatures. `Display` writes it as one line of JSON.
///
/// ```
/// use bulla_formats::dsse::Envelope;
///
/// let text = r#"{"payloadType":"text/x","payload":"aGk=","signatures":[{"sig":"AAAA"}]}"#;
/// let envelope = Envelope::parse(text.as_bytes())?;
/// assert_eq!((envelope.payload_type(), envelope.payload()), ("text/x", &b"hi"[..]));
/// assert_eq!(envelope.message(), b"DSSEv1 6 text/x 2 hi");
/// # Ok::<(), bulla_formats::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub(crate) payload_type: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) signatures: Vec<EnvelopeSignature>,
}

/// A signature of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnvelopeSignature {
    /// What its signer calls the key. Nothing covers it.
    pub(crate) key_id: String,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonEnvelope {
    payload: String,
    payload_type: String,
    signatures: Vec<JsonSignature>,
}

#[derive(Deserialize)]
struct JsonSignature {
    #[serde(default)]
    keyid: Option<String>,
    sig: String,
}

/// Base64 in any of the forms that DSSE lets readers accept: both alphabets, padded or not.
fn decode(text: &str) -> Option<Vec<u8>> {
    let is_url = text.contains(['-', '_']);
    let decoded = match (is_url, text.ends_with('=')) {
        (false, true) => Base64::decode_vec(text),
        (false, false) => Base64Unpadded::decode_vec(text),
        (true, true) => Base64Url::decode_vec(text),
        (true, false) => Base64UrlUnpadded::decode_vec(text),
    };
    decoded.ok()
}

/// The name that the library `securesystemslib` gives a key of Ed25519 or ECDSA: the SHA-256 digest
/// of its canonical JSON. That library verifies only signatures that have this name.
///
/// # Errors
/// The key is not one of these.
///
/// ```
/// use bulla_formats::dsse::key_id;
/// use bulla_kms::{Algorithm, PublicKey};
///
/// let key = PublicKey::from_bytes(Algorithm::Ed25519, &[1; 32])?;
/// assert_eq!(key_id(&key)?.len(), 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn key_id(key: &PublicKey) -> Result<String, FormatError> {
    let (key_type, scheme) = match key.algorithm() {
        Algorithm::Ed25519 => ("ed25519", "ed25519"),
        Algorithm::EcdsaP256 => ("ecdsa", "ecdsa-sha2-nistp256"),
        Algorithm::EcdsaP384 => ("ecdsa", "ecdsa-sha2-nistp384"),
        Algorithm::EcdsaP521 => ("ecdsa", "ecdsa-sha2-nistp521"),
        other => return Err(FormatError::new(format!("a key of {other} does not sign in this format"))),
    };
    let public = match key.algorithm() {
        Algorithm::Ed25519 => to_hex(key.as_bytes()),
        _ => pem(key)?,
    };
    // In canonical JSON, a line break in a string stays as it is.
    let canonical =
        format!(r#"{{"keytype":"{key_type}","keyval":{{"public":"{public}"}},"scheme":"{scheme}"}}"#);
    Ok(to_hex(&Sha256::digest(canonical)))
}

/// A public key in PEM.
pub(crate) fn pem(key: &PublicKey) -> Result<String, FormatError> {
    let pem = export_public(key, PublicFormat::Pem).map_err(|error| FormatError::new(error.message))?;
    Ok(String::from_utf8(pem).expect("PEM is ASCII"))
}

impl Envelope {
    /// Signs a payload.
    ///
    /// # Errors
    /// The key does not sign in this format; the errors of the signer.
    pub fn sign<S: MessageSigner>(
        signer: &mut S,
        payload_type: &str,
        payload: &[u8],
    ) -> Result<Self, S::Error> {
        let mut envelope =
            Self { payload_type: payload_type.to_owned(), payload: payload.to_vec(), signatures: Vec::new() };
        let (key, bytes) = sign_message(signer, &envelope.message())?;
        envelope.signatures.push(EnvelopeSignature { key_id: key_id(&key)?, bytes });
        Ok(envelope)
    }

    /// Reads an envelope.
    ///
    /// # Errors
    /// It is malformed, has a member twice, or has no signature or too many.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let envelope: JsonEnvelope = json::parse(bytes)?;
        let no_base64 = |what: &str| FormatError::new(format!("the {what} is not base64"));
        let signature = |signature: JsonSignature| {
            let bytes = decode(&signature.sig).ok_or_else(|| no_base64("signature"))?;
            Ok(EnvelopeSignature { key_id: signature.keyid.unwrap_or_default(), bytes })
        };
        if envelope.signatures.is_empty() || envelope.signatures.len() > MAX_SIGNATURES {
            let message = format!("an envelope has at least 1 signature and at most {MAX_SIGNATURES}");
            return Err(FormatError::new(message));
        }
        let payload = decode(&envelope.payload).ok_or_else(|| no_base64("payload"))?;
        if payload.len().saturating_mul(envelope.signatures.len()) > MAX_COVERED_LEN {
            let message =
                "it has so many signatures of so long a payload that verifying them would take minutes";
            return Err(FormatError::new(message));
        }
        Ok(Self {
            payload_type: envelope.payload_type,
            payload,
            signatures: envelope.signatures.into_iter().map(signature).collect::<Result<_, FormatError>>()?,
        })
    }

    /// What the payload is: a media type.
    pub fn payload_type(&self) -> &str {
        &self.payload_type
    }

    /// The payload. Before [`Envelope::is_signed_by`], anybody may have written it.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// What a signature covers: the pre-authentication encoding of type and payload.
    pub fn message(&self) -> Vec<u8> {
        let Self { payload_type, payload, .. } = self;
        let head = format!("{} {payload_type} {} ", payload_type.len(), payload.len());
        [MESSAGE_PREFIX, head.as_bytes(), payload].concat()
    }

    /// What the signers call their keys, as the envelope claims. Nothing covers these names.
    pub fn key_ids(&self) -> impl Iterator<Item = &str> {
        self.signatures.iter().map(|signature| &signature.key_id[..]).filter(|id| !id.is_empty())
    }

    /// Whether one of the signatures verifies with a key. `message` is that of
    /// [`Envelope::message`], so that it is made once for many keys.
    pub fn is_signed_by(&self, message: &[u8], key: MessageKey<'_>) -> bool {
        self.signatures.iter().any(|signature| key.verifies(message, &signature.bytes))
    }
}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = Base64::encode_string(&self.payload);
        write!(
            f,
            r#"{{"payloadType":{},"payload":"{payload}","signatures":["#,
            json::quoted(&self.payload_type)
        )?;
        for (index, EnvelopeSignature { key_id, bytes }) in self.signatures.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let bytes = Base64::encode_string(bytes);
            write!(f, r#"{comma}{{"keyid":{},"sig":"{bytes}"}}"#, json::quoted(key_id))?;
        }
        f.write_str("]}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_read_as_it_was_written() {
        let envelope = Envelope {
            payload_type: "http://example.com/HelloWorld".to_owned(),
            payload: b"hello world".to_vec(),
            signatures: vec![EnvelopeSignature { key_id: "a\"b".to_owned(), bytes: vec![255; 70] }],
        };
        // The example of DSSE's specification.
        let message = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world";
        assert_eq!(envelope.message(), message);
        let text = envelope.to_string();
        assert_eq!(Envelope::parse(text.as_bytes()).unwrap(), envelope);
        for len in 0..text.len() - 1 {
            assert!(Envelope::parse(&text.as_bytes()[..len]).is_err(), "{len}");
        }
        let signature = Base64::encode_string(&[255; 70]);
        for other in [Base64Url::encode_string(&[255; 70]), Base64UrlUnpadded::encode_string(&[255; 70])] {
            let text = text.replace(&signature, &other);
            assert_eq!(Envelope::parse(text.as_bytes()).unwrap(), envelope);
        }
    }

    #[test]
    fn what_readers_would_disagree_about_is_refused() {
        let text = r#"{"payloadType":"a","payload":"aGk=","signatures":[{"sig":"AAAA"}]}"#;
        Envelope::parse(text.as_bytes()).unwrap();
        let twice = text.replace(r#""payload":"#, r#""payload":"aGk=","payload":"#);
        assert!(Envelope::parse(twice.as_bytes()).unwrap_err().to_string().contains("twice"));
        for (from, to) in [
            ("aGk=", "aGl="),
            ("aGk=", "a Gk="),
            (r#"[{"sig":"AAAA"}]"#, "[]"),
            (r#"{"sig":"AAAA"}"#, r#"{"keyid":"a"}"#),
            (r#""a""#, "1"),
        ] {
            assert!(Envelope::parse(text.replace(from, to).as_bytes()).is_err(), "{to}");
        }
        let with = |signatures: usize, payload_len: usize| {
            let signatures = vec![r#"{"sig":"AAAA"}"#; signatures].join(",");
            let payload = Base64::encode_string(&vec![7; payload_len]);
            let text = text.replace(r#"{"sig":"AAAA"}"#, &signatures).replace("aGk=", &payload);
            Envelope::parse(text.as_bytes())
        };
        with(MAX_SIGNATURES, 2).unwrap();
        assert!(with(MAX_SIGNATURES + 1, 2).is_err());
        // Each signature takes the time of the whole payload.
        let len = MAX_COVERED_LEN / MAX_SIGNATURES;
        with(MAX_SIGNATURES, len).unwrap();
        assert!(with(MAX_SIGNATURES, len + 1).unwrap_err().to_string().contains("take minutes"));
        with(1, len + 1).unwrap();
    }
}
