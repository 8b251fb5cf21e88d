//! X.509: requests for certificates (PKCS #10, RFC 2986) and certificates (RFC 5280).
//!
//! The crate `x509-cert` reads and writes the structures. Who signs is the caller's affair: a
//! closure gets the bytes to sign, and the hash function if the algorithm leaves it open.
//!
//! ```
//! use bulla_formats::FormatError;
//! use bulla_formats::x509::{
//!     AlternativeNames, AuthorityCertificate, CertificateRequest, NewCertificate,
//! };
//! use bulla_kms::{Algorithm, Keystore, NewKey, X509Usage};
//!
//! let keystore = Keystore::in_memory()?;
//! let key = |purpose: &str| {
//!     keystore.create_key(NewKey::new("a".parse()?, purpose.parse()?, Algorithm::Ed25519))
//! };
//! let (ca, web) = (key("ca")?, key("web")?);
//! let (ca_key, web_key) = (keystore.public_key(&ca)?, keystore.public_key(&web)?);
//!
//! let names = AlternativeNames { dns: vec!["www.example.org".to_owned()], ..Default::default() };
//! let request = CertificateRequest::sign(&web_key, "CN=www.example.org", &names, |message, _hash| {
//!     Ok::<_, FormatError>(keystore.sign(&web, message).expect("it signs").bytes)
//! })?;
//! let by_ca = |message: &[u8], _hash| {
//!     Ok::<_, FormatError>(keystore.sign(&ca, message).expect("it signs").bytes)
//! };
//! let life = (1_800_000_000, 1_900_000_000);
//! let authority = NewCertificate::authority([7; 16], life, 0);
//! let authority = authority.sign_own("CN=Example CA", &ca_key, by_ca)?;
//! let authority = AuthorityCertificate::parse(authority.as_bytes())?;
//! let request = CertificateRequest::parse(request.as_bytes())?;
//! let new = NewCertificate::leaf([8; 16], life, &[X509Usage::ServerAuth]);
//! let certificate = new.sign(&request, &authority, &ca_key, by_ca)?;
//! assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod certificate;
mod names;
mod request;
mod signature;

pub use self::certificate::{AuthorityCertificate, NewCertificate};
pub use self::names::AlternativeNames;
pub use self::request::CertificateRequest;

use x509_cert::der::asn1::Any;
use x509_cert::der::pem::{self, LineEnding};
use x509_cert::der::{Encode as _, Tag};

use crate::error::FormatError;

/// The most bytes of a certificate or a request.
const MAX_LEN: usize = 64 << 10;

fn unwritable(_error: impl std::error::Error) -> FormatError {
    FormatError::new("it cannot be written: a name or a field is too long, or has other characters")
}

/// A structure of these parts, each of which is DER.
fn sequence(parts: &[Vec<u8>]) -> Result<Vec<u8>, FormatError> {
    Any::new(Tag::Sequence, parts.concat()).and_then(|whole| whole.to_der()).map_err(unwritable)
}

fn to_pem(label: &str, der: &[u8]) -> Result<String, FormatError> {
    pem::encode_string(label, LineEnding::LF, der).map_err(unwritable)
}

/// The DER in a file, which is DER or PEM with one of these labels. What is before and after the
/// first block of PEM is not read: OpenSSL writes texts there.
fn read_der(bytes: &[u8], labels: &[&str]) -> Result<Vec<u8>, FormatError> {
    if bytes.len() > MAX_LEN {
        return Err(FormatError::new(format!("it is longer than {MAX_LEN} bytes")));
    }
    let begin = labels.iter().find_map(|label| {
        let line = format!("-----BEGIN {label}-----");
        let begin = bytes.windows(line.len()).position(|part| part == line.as_bytes())?;
        let line = format!("-----END {label}-----");
        let rest = &bytes[begin..];
        let end = rest.windows(line.len()).position(|part| part == line.as_bytes())?;
        Some(&rest[..end + line.len()])
    });
    match begin {
        Some(block) => {
            let decoded = pem::decode_vec(block).map(|(_label, der)| der);
            decoded.map_err(|_| FormatError::new("its PEM is malformed"))
        }
        None if bytes.first() == Some(&0x30) => Ok(bytes.to_vec()),
        None => Err(FormatError::new(format!("it is neither DER nor PEM of {}", labels[0].to_lowercase()))),
    }
}
