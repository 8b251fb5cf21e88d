//! Keys that sign certificates of OpenSSH: which ones, and what of a certificate is recorded.
//!
//! Of what callers bring, a key with such a policy signs nothing but certificates that the policy
//! permits. Its statements (signature files, attestations) pass for no certificate. The keystore
//! reads what it signs: the bytes of the certificate before its signature (OpenSSH's
//! `PROTOCOL.certkeys`). So nobody gets around the policy, whichever program asks.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::encoding::is_deceptive;
use crate::error::{Code, KmsError, Result};
use crate::time::Timestamp;

/// The most bytes of a certificate. OpenSSH's own are shorter than 2000.
const MAX_LEN: usize = 8 << 10;
/// How the names of certificates end.
const CERTIFICATE: &[u8] = b"-cert-v01@openssh.com";
/// How far the clock of the program that asks may go ahead of this one.
const MAX_SKEW_SECONDS: u64 = 60;
/// How long before now a certificate may begin: clocks differ. An earlier one would vouch for
/// commits and files that somebody dates back.
const MAX_BACKDATE_SECONDS: u64 = 3600;

/// For whom a certificate of OpenSSH is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SshCertificateKind {
    /// People who log in.
    User,
    /// Servers.
    Host,
}

/// Which certificates of OpenSSH a key signs: see [`KeyChange::SshAuthority`].
///
/// ```
/// use std::num::NonZeroU64;
///
/// use bulla_kms::{SshAuthority, SshCertificateKind};
///
/// let day = NonZeroU64::new(86_400).unwrap();
/// let mut policy = SshAuthority::new(vec![SshCertificateKind::Host], day);
/// policy.principals = vec!["*.example.org".to_owned()];
/// policy.check()?;
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
///
/// [`KeyChange::SshAuthority`]: crate::KeyChange::SshAuthority
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SshAuthority {
    /// For whom the certificates are.
    pub kinds: Vec<SshCertificateKind>,
    /// The names that certificates may have: user names, or names of servers. A `*` at the
    /// beginning of a name stands for any characters.
    pub principals: Vec<String>,
    /// A certificate ends at most so many seconds after it was signed.
    pub max_life_seconds: NonZeroU64,
    /// The extensions that certificates may have, such as `permit-pty`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// The critical options that certificates may have, such as `force-command`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub critical_options: Vec<String>,
}

impl SshAuthority {
    /// A policy for these kinds of certificates, without names, extensions and critical options.
    pub fn new(kinds: Vec<SshCertificateKind>, max_life_seconds: NonZeroU64) -> Self {
        let (principals, extensions, critical_options) = Default::default();
        Self { kinds, principals, max_life_seconds, extensions, critical_options }
    }

    /// Whether the policy permits anything at all, and all of its names are possible.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`].
    pub fn check(&self) -> Result<()> {
        let refuse = |why: &str| Err(KmsError::new(Code::InvalidArgument, why.to_owned()));
        if self.kinds.is_empty() || self.principals.is_empty() {
            return refuse("the policy permits no certificate: it needs a kind and a principal");
        }
        let is_name = |name: &String| {
            !name.is_empty() && name.len() <= 255 && !name.contains(',') && !name.chars().any(is_deceptive)
        };
        let is_pattern =
            |name: &String| is_name(name) && !name.strip_prefix('*').unwrap_or(name).contains('*');
        if !self.principals.iter().all(is_pattern) {
            return refuse("a principal has 1 to 255 bytes without commas, and `*` only at its beginning");
        }
        if !self.extensions.iter().chain(&self.critical_options).all(is_name) {
            return refuse("an extension or a critical option has 1 to 255 bytes without commas");
        }
        Ok(())
    }

    /// Whether the policy permits to sign this message now.
    pub(crate) fn permit(&self, message: &[u8], now: Timestamp) -> Result<()> {
        let refuse = |why: String| Err(KmsError::new(Code::KeyUsageMismatch, why));
        let Some(certificate) = Certificate::parse(message) else {
            return refuse("the key signs certificates of OpenSSH, and nothing else".to_owned());
        };
        let kind = certificate.kind;
        if !self.kinds.contains(&kind) {
            return refuse(format!("the key's policy permits no certificates of the kind {kind:?}"));
        }
        // OpenSSH takes it for a certificate without a number.
        if certificate.summary.serial == "0" {
            return refuse("the certificate has the number 0, which no list can revoke".to_owned());
        }
        if certificate.summary.principals.is_empty() {
            return refuse("the certificate names nobody, and so would be for everybody".to_owned());
        }
        for name in &certificate.summary.principals {
            // Some versions of sshd take it for a list, of which one name is enough.
            if name.contains(',') {
                return refuse(format!("the principal {name:?} has a comma"));
            }
            if !self.principals.iter().any(|pattern| matches(pattern, name)) {
                return refuse(format!("the key's policy does not permit the principal {name:?}"));
            }
        }
        let seconds = now.unix_millis() / 1000;
        let latest = seconds.saturating_add(self.max_life_seconds.get()).saturating_add(MAX_SKEW_SECONDS);
        if certificate.valid_before > latest || certificate.valid_before <= certificate.valid_after {
            let max = self.max_life_seconds;
            return refuse(format!("the key's policy permits certificates for at most {max} seconds"));
        }
        if certificate.valid_after < seconds.saturating_sub(MAX_BACKDATE_SECONDS) {
            return refuse("the certificate begins more than an hour before now".to_owned());
        }
        for (permitted, found, what) in [
            (&self.extensions, &certificate.extensions, "extension"),
            (&self.critical_options, &certificate.critical_options, "critical option"),
        ] {
            if let Some(name) = found.iter().find(|name| !permitted.contains(name)) {
                return refuse(format!("the key's policy does not permit the {what} {name:?}"));
            }
        }
        Ok(())
    }
}

/// Whether a name is one of a pattern.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => name.ends_with(end) && !name.is_empty(),
        None => pattern == name,
    }
}

/// What an audit log says of a certificate that was signed.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SshCertificateSummary {
    /// For whom it is.
    pub kind: SshCertificateKind,
    /// Its serial number, in decimal digits.
    pub serial: String,
    /// The name of the certificate.
    pub key_id: String,
    /// For which users or servers it is.
    pub principals: Vec<String>,
}

impl SshCertificateSummary {
    /// What is recorded of a message, if it is a certificate before its signature.
    pub(crate) fn of(message: &[u8]) -> Option<Self> {
        Certificate::parse(message).map(|certificate| certificate.summary)
    }
}

/// A certificate before its signature.
struct Certificate {
    kind: SshCertificateKind,
    valid_after: u64,
    valid_before: u64,
    critical_options: Vec<String>,
    extensions: Vec<String>,
    summary: SshCertificateSummary,
}

impl Certificate {
    /// None if these bytes are not one, or one that no policy here permits: of a kind of key or of
    /// certificate that is unknown, or with a text that could deceive a reader of the log.
    fn parse(message: &[u8]) -> Option<Self> {
        if message.len() > MAX_LEN {
            return None;
        }
        let mut reader = Reader(message);
        let algorithm = reader.field()?.strip_suffix(CERTIFICATE)?;
        let _nonce = reader.field()?;
        for _ in 0..key_fields(algorithm)? {
            reader.field()?;
        }
        let serial = reader.number::<8>()?;
        let kind = match reader.number::<4>()? {
            1 => SshCertificateKind::User,
            2 => SshCertificateKind::Host,
            _ => return None,
        };
        let key_id = text(reader.field()?)?;
        let principals = reader.list(Reader::one)?;
        let (valid_after, valid_before) = (reader.number::<8>()?, reader.number::<8>()?);
        let critical_options = reader.list(Reader::named)?;
        let extensions = reader.list(Reader::named)?;
        let _reserved = reader.field()?;
        let _authority = reader.field()?;
        let summary = SshCertificateSummary { kind, serial: serial.to_string(), key_id, principals };
        let found = Self { kind, valid_after, valid_before, critical_options, extensions, summary };
        reader.0.is_empty().then_some(found)
    }
}

/// How many fields the public key of a certificate has.
fn key_fields(algorithm: &[u8]) -> Option<u32> {
    match algorithm {
        b"ssh-ed25519" => Some(1),
        b"ssh-rsa" | b"sk-ssh-ed25519" => Some(2),
        _ if algorithm.starts_with(b"ecdsa-sha2-") => Some(2),
        _ if algorithm.starts_with(b"sk-ecdsa-sha2-") => Some(3),
        _ => None,
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    (!text.chars().any(is_deceptive)).then(|| text.to_owned())
}

/// Reads fields of the protocols of SSH (RFC 4251, section 5).
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number<const LEN: usize>(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk::<LEN>()?;
        self.0 = rest;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn field(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number::<4>()?).ok()?;
        let (field, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(field)
    }

    /// A text.
    fn one(&mut self) -> Option<String> {
        text(self.field()?)
    }

    /// A name, and a value that is not kept.
    fn named(&mut self) -> Option<String> {
        let name = self.one()?;
        self.field().map(|_| name)
    }

    /// The items in a field.
    fn list(&mut self, item: impl Fn(&mut Self) -> Option<String>) -> Option<Vec<String>> {
        let mut items = Self(self.field()?);
        let mut found = Vec::new();
        while !items.0.is_empty() {
            found.push(item(&mut items)?);
        }
        Some(found)
    }
}

/// For the fuzzers: reads bytes as a certificate before its signature. A policy that names all that
/// the certificate has must permit it. The same policy without one of these names must refuse it.
pub(crate) fn fuzz(message: &[u8]) {
    let Some(certificate) = Certificate::parse(message) else { return };
    let summary = serde_json::to_string(&certificate.summary).expect("a summary has a form in JSON");
    assert!(!summary.chars().any(is_deceptive), "{summary}");
    let now = Timestamp::from_unix_millis(0).expect("it is a time");
    let mut policy = SshAuthority::new(vec![certificate.kind], NonZeroU64::MAX);
    policy.principals.clone_from(&certificate.summary.principals);
    policy.extensions.clone_from(&certificate.extensions);
    policy.critical_options.clone_from(&certificate.critical_options);
    let has_number = certificate.summary.serial != "0";
    let is_named = !policy.principals.is_empty() && certificate.valid_before > certificate.valid_after;
    // In a policy, an asterisk at the beginning of a name stands for any characters. No name has a
    // comma.
    let is_plain = !policy.principals.iter().any(|name| name.starts_with('*') || name.contains(','));
    assert!(!is_plain || policy.permit(message, now).is_ok() == (is_named && has_number), "{summary}");
    let lists: [fn(&mut SshAuthority) -> &mut Vec<String>; 3] = [
        |policy| &mut policy.principals,
        |policy| &mut policy.extensions,
        |policy| &mut policy.critical_options,
    ];
    for names in lists {
        let mut narrower = policy.clone();
        let Some(gone) = names(&mut narrower).pop() else { continue };
        names(&mut narrower).retain(|name| *name != gone);
        assert!(!is_plain || narrower.permit(message, now).is_err(), "{gone}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::from_hex;

    fn field(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
    }

    fn names(names: &[&str], value: Option<&str>) -> Vec<u8> {
        let name = |name: &&str| [field(name.as_bytes()), value.map_or(Vec::new(), |v| field(v.as_bytes()))];
        field(&names.iter().flat_map(name).collect::<Vec<_>>().concat())
    }

    struct Asked<'a> {
        kind: u32,
        serial: u64,
        principals: &'a [&'a str],
        valid: (u64, u64),
        options: &'a [&'a str],
        extensions: &'a [&'a str],
    }

    const ASKED: Asked<'static> =
        Asked { kind: 1, serial: 7, principals: &["ann"], valid: (900, 1100), options: &[], extensions: &[] };

    fn certificate(asked: &Asked<'_>) -> Vec<u8> {
        [
            field(b"ssh-ed25519-cert-v01@openssh.com"),
            field(&[1; 16]),
            field(&[2; 32]),
            asked.serial.to_be_bytes().to_vec(),
            asked.kind.to_be_bytes().to_vec(),
            field(b"ann's laptop"),
            names(asked.principals, None),
            asked.valid.0.to_be_bytes().to_vec(),
            asked.valid.1.to_be_bytes().to_vec(),
            names(asked.options, Some("value")),
            names(asked.extensions, Some("")),
            field(b""),
            field(&[3; 51]),
        ]
        .concat()
    }

    fn policy() -> SshAuthority {
        let mut policy = SshAuthority::new(vec![SshCertificateKind::User], NonZeroU64::new(100).unwrap());
        policy.principals = vec!["ann".to_owned(), "*-team".to_owned()];
        policy.extensions = vec!["permit-pty".to_owned()];
        policy.critical_options = vec!["force-command".to_owned()];
        policy
    }

    #[test]
    fn a_policy_permits_what_it_names_and_nothing_else() {
        let now = Timestamp::from_unix_millis(1_000_000).unwrap();
        let said = |message: &[u8]| policy().permit(message, now).map_err(|error| error.to_string());
        let permitted = |asked: Asked<'_>| assert_eq!(said(&certificate(&asked)), Ok(()));
        permitted(ASKED);
        permitted(Asked { principals: &["ann", "red-team"], valid: (0, 1160), ..ASKED });
        permitted(Asked { options: &["force-command"], extensions: &["permit-pty"], ..ASKED });
        let refused = |asked: Asked<'_>, why: &str| {
            let error = said(&certificate(&asked)).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused(Asked { kind: 2, ..ASKED }, "of the kind Host");
        refused(Asked { kind: 3, ..ASKED }, "nothing else");
        refused(Asked { serial: 0, ..ASKED }, "the number 0");
        refused(Asked { principals: &[], ..ASKED }, "for everybody");
        refused(Asked { principals: &["ann", "root"], ..ASKED }, "\"root\"");
        refused(Asked { principals: &["red-team-2"], ..ASKED }, "red-team-2");
        refused(Asked { principals: &["root,red-team"], ..ASKED }, "has a comma");
        refused(Asked { principals: &["ann\u{202e}"], ..ASKED }, "nothing else");
        for valid in [(900, 1161), (900, u64::MAX), (1000, 1000), (1000, 999)] {
            refused(Asked { valid, ..ASKED }, "at most 100 seconds");
        }
        refused(
            Asked { extensions: &["permit-pty", "permit-user-rc"], ..ASKED },
            "extension \"permit-user-rc\"",
        );
        refused(Asked { options: &["verify-required"], ..ASKED }, "critical option \"verify-required\"");
        let later = Timestamp::from_unix_millis(5_000_000).unwrap();
        let begins = |from| policy().permit(&certificate(&Asked { valid: (from, 5100), ..ASKED }), later);
        assert!(begins(1400).is_ok());
        for from in [0, 1399] {
            assert!(begins(from).unwrap_err().to_string().contains("more than an hour before now"));
        }
        let whole = certificate(&ASKED);
        for len in 0..whole.len() {
            assert!(said(&whole[..len]).is_err(), "{len} bytes");
        }
        assert!(said(&[&whole[..], &[0]].concat()).is_err());
        assert!(said(b"SSHSIG").is_err());
    }

    #[test]
    fn certificates_that_ssh_keygen_signs_are_read() {
        let kept: serde_json::Value = serde_json::from_str(include_str!("../fuzz/seeds.json")).unwrap();
        let found = |index: usize| {
            let text = kept["ssh_certificates"][index]["certificate"].as_str().unwrap();
            let bytes = from_hex(text).unwrap();
            fuzz(&bytes);
            Certificate::parse(&bytes).unwrap()
        };
        let (ann, server, bob) = (found(0), found(1), found(2));
        assert_eq!(ann.summary.principals, ["ann", "red-team"]);
        assert_eq!(ann.extensions, ["permit-pty"]);
        assert_eq!(ann.critical_options, ["force-command"]);
        assert_eq!((server.kind, server.valid_before), (SshCertificateKind::Host, u64::MAX));
        assert_eq!((bob.summary.serial.as_str(), bob.summary.key_id.as_str()), ("7", "a's laptop"));
        assert!(found(3).summary.principals.is_empty());
    }

    #[test]
    fn policies_that_permit_nothing_or_have_impossible_names_are_refused() {
        let with = |principal: &str| SshAuthority { principals: vec![principal.to_owned()], ..policy() };
        assert!(policy().check().is_ok() && with("*").check().is_ok() && with("*.é").check().is_ok());
        for principal in ["", "a,b", "a*", "*.a*", "a\nb", "éa*"] {
            assert!(with(principal).check().is_err(), "{principal}");
        }
        assert!(SshAuthority { kinds: Vec::new(), ..policy() }.check().is_err());
        assert!(SshAuthority { principals: Vec::new(), ..policy() }.check().is_err());
        assert!(SshAuthority { extensions: vec![String::new()], ..policy() }.check().is_err());
    }

    #[test]
    fn an_authority_signs_certificates_and_its_own_attestation() {
        use crate::prehash::Prehash;
        use crate::{Algorithm, KeyChange, KeyMessage, Keystore, NewKey};
        let keystore = Keystore::in_memory().unwrap();
        let new = |algorithm| NewKey::new("local".parse().unwrap(), "ca".parse().unwrap(), algorithm);
        let key = keystore.create_key(new(Algorithm::Ed25519)).unwrap();
        let now = Timestamp::now().unwrap().unix_millis() / 1000;
        let good = certificate(&Asked { valid: (now, now + 50), ..ASKED });
        let digest = Prehash::Ed25519ph.of(b"a message", b"").unwrap();
        keystore.sign_prehashed(&key, &digest).unwrap();
        keystore.update(key.key_id(), None, &KeyChange::SshAuthority(Some(policy()))).unwrap();
        keystore.sign(&key, &good).unwrap();
        let refused = |error: KmsError| assert_eq!(error.code, Code::KeyUsageMismatch);
        refused(keystore.sign(&key, b"a message").unwrap_err());
        refused(keystore.sign_prehashed(&key, &digest).unwrap_err());
        let item = |message| KeyMessage { key: key.key_id().into(), message };
        let mut batch = keystore.sign_batch(&[item(&good), item(b"a message")]).into_iter();
        batch.next().unwrap().unwrap();
        refused(batch.next().unwrap().unwrap_err());
        assert!(keystore.attest_signed(key.key_id()).unwrap().verify().is_valid());
        keystore.update(key.key_id(), None, &KeyChange::SshAuthority(None)).unwrap();
        keystore.sign(&key, b"a message").unwrap();
        let other = keystore.create_key(new(Algorithm::HmacSha256)).unwrap();
        let change = KeyChange::SshAuthority(Some(policy()));
        refused(keystore.update(other.key_id(), None, &change).unwrap_err());
    }

    #[test]
    fn the_summary_has_what_a_reader_of_the_log_looks_for() {
        let found = SshCertificateSummary::of(&certificate(&ASKED)).unwrap();
        let text = r#"{"kind":"user","serial":"7","key_id":"ann's laptop","principals":["ann"]}"#;
        assert_eq!(serde_json::to_string(&found).unwrap(), text);
        assert_eq!(SshCertificateSummary::of(b"a message"), None);
    }
}
