//! What vouches for a bundle of Sigstore beside its signature: a certificate, entries of
//! transparency logs, and timestamps. The module `trusted_root` verifies them.

use std::fmt;

use bulla_kms::Timestamp;

/// What was verified.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// How many entries of transparency logs.
    pub log_entries: usize,
    /// How many timestamps of authorities (RFC 3161).
    pub timestamps: usize,
    /// The earliest time that a log or an authority signed: the signature is not younger.
    pub time: Option<Timestamp>,
    /// Who signed, if a certificate says so.
    pub certificate: Option<CertificateSigner>,
}

impl Evidence {
    /// What was counted, for people.
    ///
    /// ```
    /// use bulla_formats::Evidence;
    ///
    /// let mut evidence = Evidence::default();
    /// assert!(evidence.parts().is_empty());
    /// (evidence.log_entries, evidence.timestamps) = (1, 2);
    /// assert_eq!(evidence.parts(), ["1 entry of a transparency log", "2 timestamps"]);
    /// ```
    pub fn parts(&self) -> Vec<String> {
        let parts = [
            (self.log_entries, "entry of a transparency log", "entries of transparency logs"),
            (self.timestamps, "timestamp", "timestamps"),
        ];
        let counted = |(count, one, many): (usize, &str, &str)| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {many}")),
        };
        parts.into_iter().filter_map(counted).collect()
    }
}

/// Who signed, as an intact certificate of a trusted authority says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateSigner {
    /// The email address or URI of the signer; the certificate's subject if it has neither. The
    /// text may have any characters.
    pub identity: String,
    /// The OpenID issuer that knew the signer, if the certificate is one of Fulcio.
    pub issuer: Option<String>,
    /// The SHA-256 digest of the certificate, in hexadecimal.
    pub fingerprint: String,
}

/// Why evidence does not count.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvidenceError {
    /// It is about another content.
    Changed(String),
    /// Somebody else signed than the verifier wants.
    WrongSigner(String),
    /// The certificate was not valid at the time of the signature.
    Expired(String),
    /// Something is missing, altered, or of nobody who is trusted.
    Invalid(String),
}

impl fmt::Display for EvidenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Changed(reason)
        | Self::WrongSigner(reason)
        | Self::Expired(reason)
        | Self::Invalid(reason)) = self;
        f.write_str(reason)
    }
}

impl std::error::Error for EvidenceError {}
