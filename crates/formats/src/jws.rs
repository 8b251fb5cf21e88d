//! JSON Web Signatures in the compact form (RFC 7515, section 7.1), with the file inside or beside
//! them.
//!
//! bulla writes the form that is natural for files: the payload is detached (RFC 7515, appendix F),
//! and the signature covers the file's bytes as they are (`b64` is false, RFC 7797). It reads all
//! other compact forms too. JSON Web Tokens must not have that form (RFC 7797, section 7), so no
//! signature of a file passes for one of a token.
//!
//! Algorithms: EdDSA (RFC 8037, RFC 9864), ECDSA and RSA (RFC 7518), ML-DSA (RFC 9964).

use std::fmt;

use base64ct::{Base64UrlUnpadded, Encoding as _};
use bulla_kms::{Algorithm, PublicKey, transfer};
use serde::Deserialize;

use crate::error::{FormatError, MessageSigner};
use crate::json;
use crate::message_key::MessageKey;
use crate::verifying_key::{Padding, VerifyingKey};

/// The most bytes of a header, in base64url.
const MAX_HEADER_LEN: usize = 16 << 10;

/// How a signature is made, as the header names it (`alg`).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JwsAlgorithm {
    /// Ed25519.
    EdDsa,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// ECDSA on P-521 with SHA-512.
    Es512,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ML-DSA-44.
    MlDsa44,
    /// ML-DSA-65.
    MlDsa65,
    /// ML-DSA-87.
    MlDsa87,
}

impl JwsAlgorithm {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::EdDsa,
        Self::Es256,
        Self::Es384,
        Self::Es512,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::MlDsa44,
        Self::MlDsa65,
        Self::MlDsa87,
    ];

    /// Its name in a header. Readers also accept `Ed25519` (RFC 9864) for `EdDSA`, which more
    /// programs know.
    ///
    /// ```
    /// use bulla_formats::jws::JwsAlgorithm;
    ///
    /// assert_eq!(JwsAlgorithm::EdDsa.name(), "EdDSA");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::MlDsa44 => "ML-DSA-44",
            Self::MlDsa65 => "ML-DSA-65",
            Self::MlDsa87 => "ML-DSA-87",
        }
    }

    /// The algorithm with which a key of ours signs messages; none if there is no such signature.
    ///
    /// ```
    /// use bulla_formats::jws::JwsAlgorithm;
    /// use bulla_kms::Algorithm;
    ///
    /// assert_eq!(JwsAlgorithm::of(Algorithm::EcdsaP256), Some(JwsAlgorithm::Es256));
    /// assert_eq!(JwsAlgorithm::of(Algorithm::Rsa2048), Some(JwsAlgorithm::Ps256));
    /// assert_eq!(JwsAlgorithm::of(Algorithm::MlKem768), None);
    /// ```
    pub fn of(algorithm: Algorithm) -> Option<Self> {
        let name = algorithm.jose_name()?;
        Self::ALL.iter().copied().find(|one| one.name() == name)
    }

    fn parse(name: &str) -> Result<Self, FormatError> {
        let known = Self::ALL.iter().copied().find(|algorithm| algorithm.name() == name);
        known.or((name == "Ed25519").then_some(Self::EdDsa)).ok_or_else(|| {
            FormatError::new(match name {
                "none" => "its algorithm is `none`: nobody signed it",
                "HS256" | "HS384" | "HS512" => {
                    "it has a MAC, which only holders of the secret verify, and no signature"
                }
                _ => "its algorithm is not known here",
            })
        })
    }

    fn padding(self) -> Option<Padding> {
        Some(match self {
            Self::Rs256 => Padding::Pkcs1v15Sha256,
            Self::Rs384 => Padding::Pkcs1v15Sha384,
            Self::Rs512 => Padding::Pkcs1v15Sha512,
            Self::Ps256 => Padding::PssSha256,
            Self::Ps384 => Padding::PssSha384,
            Self::Ps512 => Padding::PssSha512,
            _ => return None,
        })
    }

    /// Whether a key of this kind made a signature.
    fn verifies(self, key: &VerifyingKey, message: &[u8], signature: &[u8]) -> bool {
        match (self, key) {
            (Self::Es384, VerifyingKey::P384(key)) => {
                use p384::ecdsa::{Signature, signature::Verifier as _};
                Signature::from_slice(signature).is_ok_and(|pair| key.verify(message, &pair).is_ok())
            }
            (Self::Es512, VerifyingKey::P521(key)) => {
                use p521::ecdsa::{Signature, signature::Verifier as _};
                Signature::from_slice(signature).is_ok_and(|pair| key.verify(message, &pair).is_ok())
            }
            (algorithm, VerifyingKey::Rsa(key)) => {
                algorithm.padding().is_some_and(|padding| key.verifies(padding, message, signature))
            }
            (algorithm, VerifyingKey::Kms(key)) if Self::of(key.algorithm()) == Some(algorithm) => {
                let normal = match algorithm {
                    // Either value of s is one of ES256.
                    Self::Es256 => transfer::with_lower_s(key.algorithm(), signature),
                    _ => Some(signature.to_vec()),
                };
                normal.is_some_and(|signature| key.verify(message, &signature).is_valid())
            }
            _ => false,
        }
    }
}

/// Where the file is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Payload {
    /// In the signature, in base64url.
    Embedded(Vec<u8>),
    /// Beside it, and the signature covers its base64url.
    Detached,
    /// Beside it, and the signature covers its bytes.
    DetachedUnencoded,
}

/// A signature in the compact form. `Display` writes it as one line.
///
/// ```
/// use bulla_formats::jws::{JwsAlgorithm, JwsSignature};
///
/// // {"alg":"EdDSA","b64":false,"crit":["b64"]}
/// let text = "eyJhbGciOiJFZERTQSIsImI2NCI6ZmFsc2UsImNyaXQiOlsiYjY0Il19..AAAA";
/// let signature = JwsSignature::parse(text.as_bytes())?;
/// assert_eq!((signature.algorithm(), signature.payload()), (JwsAlgorithm::EdDsa, None));
/// assert!(signature.message(b"a file").unwrap().ends_with(b".a file"));
/// # Ok::<(), bulla_formats::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwsSignature {
    /// The header in base64url, as it is signed.
    protected: String,
    algorithm: JwsAlgorithm,
    key_id: Option<String>,
    payload: Payload,
    signature: Vec<u8>,
}

/// The members of a header that count here. RFC 7515 lets readers ignore the others, unless `crit`
/// names them. Keys that a header brings (`jwk`, `jku`, `x5c`) are nothing to trust.
#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    typ: Option<String>,
    #[serde(default)]
    b64: Option<bool>,
    #[serde(default)]
    crit: Option<Vec<String>>,
}

impl Header {
    /// # Errors
    /// The header needs something that is not known here, or is about something else than a file.
    fn check(&self) -> Result<(), FormatError> {
        let refuse = |why: &str| Err(FormatError::new(why));
        let is_jwt = |typ: &str| {
            let typ = typ.to_ascii_lowercase();
            let typ = typ.strip_prefix("application/").unwrap_or(&typ);
            typ == "jwt" || typ.ends_with("+jwt")
        };
        if self.typ.as_deref().is_some_and(is_jwt) {
            return refuse(
                "it is a JSON Web Token, and not a signature of a file: a program that knows its claims verifies it",
            );
        }
        match (&self.crit, self.b64) {
            (None, None) => Ok(()),
            (Some(names), Some(_)) if names[..] == ["b64"] => Ok(()),
            (None, Some(_)) => refuse("its header has `b64`, and does not say so in `crit`"),
            (Some(names), _) if names.iter().all(|name| name == "b64") => {
                refuse("its `crit` is empty, or names what the header does not have, or a name twice")
            }
            (Some(_), _) => refuse("its `crit` names an extension that is not known here"),
        }
    }
}

fn decode(text: &str, what: &str) -> Result<Vec<u8>, FormatError> {
    Base64UrlUnpadded::decode_vec(text)
        .map_err(|_| FormatError::new(format!("the {what} is not base64url without padding")))
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Whether bytes begin like a header and its full stop: like a signature in the compact form, and
/// like every message that such a signature covers.
pub(crate) fn begins_like_one(bytes: &[u8]) -> bool {
    // The base64url of a brace and a quotation mark, or white space, before an ASCII character.
    const OBJECTS: [&[u8]; 10] =
        [b"eyI", b"eyJ", b"eyA", b"eyB", b"ewo", b"ewp", b"ew0", b"ew1", b"ewk", b"ewl"];
    OBJECTS.iter().any(|begin| bytes.starts_with(begin))
        && bytes.iter().find(|byte| !is_base64url(**byte)) == Some(&b'.')
}

impl JwsSignature {
    /// Reads a signature in the compact form. A line break may follow it.
    ///
    /// # Errors
    /// It is malformed; its header has a member twice, an unknown algorithm or an unknown extension
    /// in `crit`; it is a JSON Web Token, which says more than that somebody signed it.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let text = std::str::from_utf8(bytes).map_err(|_| FormatError::new("it is not UTF-8"))?;
        let text = text.strip_suffix('\n').map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
        let parts: Vec<&str> = text.splitn(4, '.').collect();
        let [protected, payload, signature] = parts[..] else {
            return Err(FormatError::new("it does not have three parts with full stops between them"));
        };
        if protected.len() > MAX_HEADER_LEN {
            let message = format!("its header is longer than {MAX_HEADER_LEN} characters");
            return Err(FormatError::new(message));
        }
        let header = decode(protected, "header")?;
        // A list would be read as the members in their order.
        if !header.trim_ascii_start().starts_with(b"{") {
            return Err(FormatError::new("its header is not an object of JSON"));
        }
        let header: Header = json::parse(&header)?;
        let algorithm = JwsAlgorithm::parse(&header.alg)?;
        header.check()?;
        let payload = match (payload, header.b64) {
            ("", Some(false)) => Payload::DetachedUnencoded,
            (_, Some(false)) => {
                return Err(FormatError::new("its payload is in it and not in base64url: detach it"));
            }
            ("", _) => Payload::Detached,
            (payload, _) => Payload::Embedded(decode(payload, "payload")?),
        };
        let signature = decode(signature, "signature")?;
        if signature.is_empty() {
            return Err(FormatError::new("its signature is empty: nobody signed it"));
        }
        Ok(Self { protected: protected.to_owned(), algorithm, key_id: header.kid, payload, signature })
    }

    /// How it was signed, as the header says.
    pub fn algorithm(&self) -> JwsAlgorithm {
        self.algorithm
    }

    /// What the signer calls the key (`kid`), as the header says.
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// The payload, if it is in the signature. Before [`JwsSignature::is_signed_by`], anybody may
    /// have written it. An empty file is always beside its signature.
    pub fn payload(&self) -> Option<&[u8]> {
        match &self.payload {
            Payload::Embedded(payload) => Some(payload),
            Payload::Detached | Payload::DetachedUnencoded => None,
        }
    }

    /// What the signature covers if the file has this content. None if another content is in the
    /// signature.
    pub fn message(&self, content: &[u8]) -> Option<Vec<u8>> {
        if self.payload().is_some_and(|payload| payload != content) {
            return None;
        }
        let head = [self.protected.as_bytes(), b"."];
        Some(match self.payload {
            Payload::DetachedUnencoded => [head[0], head[1], content].concat(),
            _ => [head[0], head[1], Base64UrlUnpadded::encode_string(content).as_bytes()].concat(),
        })
    }

    /// Whether the signature of a message verifies with a key. `message` is that of
    /// [`JwsSignature::message`], so that it is made once for many keys. A key of another algorithm
    /// than the header names verifies nothing.
    pub fn is_signed_by(&self, message: &[u8], key: MessageKey<'_>) -> bool {
        key.verifying_key().is_some_and(|key| self.algorithm.verifies(&key, message, &self.signature))
    }
}

impl fmt::Display for JwsSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = Base64UrlUnpadded::encode_string(self.payload().unwrap_or_default());
        let signature = Base64UrlUnpadded::encode_string(&self.signature);
        writeln!(f, "{}.{payload}.{signature}", self.protected)
    }
}

/// Signs a file's bytes with a key whose name is known before, because the signature covers the
/// name. The file stays beside its signature.
///
/// # Errors
/// The key has no signatures in this format; the signer has another key; the errors of the signer.
///
/// ```
/// use bulla_formats::jws::{self, JwsSignature};
/// use bulla_formats::{MessageKey, MessageSigner};
/// # use bulla_kms::{Algorithm, Keystore, KeyVersionId, NewKey, PublicKey};
/// # struct KeystoreSigner<'a>(&'a Keystore, &'a KeyVersionId);
/// # impl MessageSigner for KeystoreSigner<'_> {
/// #     type Error = Box<dyn std::error::Error>;
/// #     fn sign(&mut self, message: &[u8]) -> Result<(PublicKey, Vec<u8>), Self::Error> {
/// #         Ok((self.0.public_key(self.1)?, self.0.sign(self.1, message)?.bytes))
/// #     }
/// # }
/// # let keystore = Keystore::in_memory()?;
/// # let key = keystore.create_key(NewKey::new("a".parse()?, "b".parse()?, Algorithm::Ed25519))?;
/// let public_key = keystore.public_key(&key)?;
/// let mut signer = KeystoreSigner(&keystore, &key);
/// let signature = jws::sign(&mut signer, &public_key, &key.to_string(), b"a file")?;
/// let parsed = JwsSignature::parse(signature.to_string().as_bytes())?;
/// assert_eq!(parsed.key_id(), Some(&*key.to_string()));
/// let message = parsed.message(b"a file").unwrap();
/// assert!(parsed.is_signed_by(&message, MessageKey::Kms(&public_key)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sign<S: MessageSigner>(
    signer: &mut S,
    key: &PublicKey,
    key_id: &str,
    content: &[u8],
) -> Result<JwsSignature, S::Error> {
    let unsupported = || {
        let message = "this format has only signatures of Ed25519, ECDSA, RSA and ML-DSA";
        FormatError::new(message)
    };
    let algorithm = JwsAlgorithm::of(key.algorithm()).ok_or_else(unsupported)?;
    let header = format!(
        r#"{{"alg":"{}","b64":false,"crit":["b64"],"kid":{}}}"#,
        algorithm.name(),
        json::quoted(key_id)
    );
    let mut signature = JwsSignature {
        protected: Base64UrlUnpadded::encode_string(header.as_bytes()),
        algorithm,
        key_id: Some(key_id.to_owned()),
        payload: Payload::DetachedUnencoded,
        signature: Vec::new(),
    };
    let message = signature.message(content).expect("no other content is in the signature");
    let (signed_by, bytes) = signer.sign(&message)?;
    if signed_by != *key {
        return Err(FormatError::new("another key signed than the header names").into());
    }
    signature.signature = bytes;
    Ok(signature)
}

#[cfg(test)]
mod tests {
    use bulla_kms::transfer::{PublicFormat, import_public};

    use super::*;

    fn text(header: &str, payload: &str, signature: &str) -> String {
        format!("{}.{payload}.{signature}", Base64UrlUnpadded::encode_string(header.as_bytes()))
    }

    fn key(jwk: &str) -> PublicKey {
        import_public(jwk.as_bytes(), PublicFormat::Jwk, None).unwrap()
    }

    /// RFC 8037, appendix A.4.
    const EDDSA: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    const EDDSA_KEY: &str =
        r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    /// RFC 7515, appendix A.3.1, whose payload has no type that says that it is a token.
    const ES256: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    const ES256_KEY: &str = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;

    #[test]
    fn signatures_of_the_standards_verify_by_their_keys_alone() {
        let (ed25519, p256) = (key(EDDSA_KEY), key(ES256_KEY));
        for (text, own, other) in [(EDDSA, &ed25519, &p256), (ES256, &p256, &ed25519)] {
            let signature = JwsSignature::parse(text.as_bytes()).unwrap();
            assert_eq!(signature.to_string().trim_end(), text);
            let payload = signature.payload().unwrap().to_vec();
            let message = signature.message(&payload).unwrap();
            assert!(signature.is_signed_by(&message, MessageKey::Kms(own)));
            assert!(!signature.is_signed_by(&message, MessageKey::Kms(other)));
            assert!(!signature.is_signed_by(b"another", MessageKey::Kms(own)));
            assert_eq!(signature.message(b"another"), None);
            // The same signature with the payload beside it.
            let mut parts = text.split('.');
            let detached = format!("{}..{}", parts.next().unwrap(), parts.nth(1).unwrap());
            let detached = JwsSignature::parse(detached.as_bytes()).unwrap();
            assert!(detached.is_signed_by(&detached.message(&payload).unwrap(), MessageKey::Kms(own)));
        }
        assert!(JwsSignature::parse(EDDSA.as_bytes()).unwrap().message(b"").is_none());
    }

    #[test]
    fn what_a_reader_must_understand_or_refuse_is_refused() {
        let said = |header: &str| match JwsSignature::parse(text(header, "", "AAAA").as_bytes()) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        for (header, expected) in [
            (r#"{"alg":"none"}"#, "nobody signed it"),
            (r#"{"alg":"None"}"#, "not known here"),
            (r#"{"alg":"HS256"}"#, "a MAC"),
            (r#"{"kid":"a"}"#, "a member is missing"),
            (r#"{"alg":"EdDSA","alg":"ES256"}"#, "twice"),
            (r#"{"alg":"EdDSA","x":{"a":1,"a":2}}"#, "twice"),
            (r#"{"alg":"EdDSA","crit":[]}"#, "is empty"),
            (r#"{"alg":"EdDSA","crit":["b64"]}"#, "does not have"),
            (r#"{"alg":"EdDSA","b64":true,"crit":["b64","b64"]}"#, "twice"),
            (r#"{"alg":"EdDSA","crit":["exp"],"exp":1}"#, "an extension that is not known"),
            (r#"{"alg":"EdDSA","b64":false,"crit":["b64","exp"],"exp":1}"#, "an extension that is not known"),
            (r#"{"alg":"EdDSA","b64":false}"#, "does not say so in `crit`"),
            (r#"{"alg":"EdDSA","b64":"false","crit":["b64"]}"#, "another type"),
            (r#"{"alg":"EdDSA","typ":"JWT"}"#, "JSON Web Token"),
            (r#"{"alg":"EdDSA","typ":"application/at+jwt"}"#, "JSON Web Token"),
            (r#"["EdDSA"]"#, "not an object"),
            (r#"{"alg":"EdDSA","typ":"file","jku":"https://example.org"}"#, ""),
            (r#"{"alg":"Ed25519","b64":true,"crit":["b64"]}"#, ""),
        ] {
            let said = said(header);
            assert!(
                if expected.is_empty() { said.is_empty() } else { said.contains(expected) },
                "{header}: {said}"
            );
        }
        let (plain, raw) = (r#"{"alg":"EdDSA"}"#, r#"{"alg":"EdDSA","b64":false,"crit":["b64"]}"#);
        for wrong in [
            text(plain, "", ""),
            text(plain, "a b", "AAAA"),
            text(plain, "AAAA", "AA=="),
            text(plain, "AAAA", "AAAB\n\n"),
            text(raw, "content", "AAAA"),
            text(plain, "AAAA.AAAA", "AAAA"),
            format!("{}.AAAA", Base64UrlUnpadded::encode_string(plain.as_bytes())),
            text(&format!("{plain}{}", " ".repeat(MAX_HEADER_LEN)), "", "AAAA"),
            text(&format!("{plain} x"), "", "AAAA"),
        ] {
            assert!(JwsSignature::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_of_this_format_is_recognized() {
        for (bytes, expected) in [
            (&b"eyJhbGciOiJFZERTQSJ9.a file"[..], true),
            (b"ewogImFsZyI6Im5vbmUifQ..", true),
            (b"eyJhbGciOiJFZERTQSJ9", false),
            (b"eyelids. A file", false),
            (b"a.b.c", false),
            (b"", false),
        ] {
            assert_eq!(begins_like_one(bytes), expected, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
