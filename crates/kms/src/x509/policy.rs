//! Which certificates a key signs.

use std::net::IpAddr;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use super::certificate::{
    AlternativeName, Certificate, X509CertificateKind, X509Usage, is_attribute, is_dns_name, refusal,
    requested_key,
};
use crate::encoding::is_deceptive;
use crate::error::{Code, KmsError, Result};
use crate::public_key::PublicKey;
use crate::time::Timestamp;

/// How far the clock of the program that asks may go ahead of this one.
const MAX_SKEW_SECONDS: u64 = 60;
/// How long before now a certificate may begin: clocks differ.
const MAX_BACKDATE_SECONDS: u64 = 3600;

/// Which X.509 certificates a key signs: see [`KeyChange::X509Authority`].
///
/// A `*` at the beginning or the end of a name stands for any characters. In a DNS name, it stands
/// for whole labels: `*.example.org`.
///
/// ```
/// use std::num::NonZeroU64;
///
/// use bulla_kms::{X509Authority, X509CertificateKind, X509Usage};
///
/// let month = NonZeroU64::new(30 * 86_400).unwrap();
/// let mut policy = X509Authority::new(vec![X509CertificateKind::Leaf], month);
/// policy.dns_names = vec!["*.example.org".to_owned()];
/// policy.usages = vec![X509Usage::ServerAuth];
/// policy.check()?;
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
///
/// [`KeyChange::X509Authority`]: crate::KeyChange::X509Authority
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct X509Authority {
    /// What the certificates are for.
    pub kinds: Vec<X509CertificateKind>,
    /// A certificate ends at most so many seconds after it was signed.
    pub max_life_seconds: NonZeroU64,
    /// The DNS names that certificates may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns_names: Vec<String>,
    /// The addresses of machines: addresses, networks such as `10.0.0.0/8`, or `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_addresses: Vec<String>,
    /// The addresses of mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub email_addresses: Vec<String>,
    /// The URIs, such as those of SPIFFE.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uris: Vec<String>,
    /// The attributes that subjects may have, such as `O=Example`. A common name or an address of
    /// mail that is also one of the certificate's permitted names needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// What the keys of leaves may be used for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usages: Vec<X509Usage>,
}

impl X509Authority {
    /// A policy for these kinds of certificates, without names and usages.
    pub fn new(kinds: Vec<X509CertificateKind>, max_life_seconds: NonZeroU64) -> Self {
        let (dns_names, ip_addresses, email_addresses, uris, subjects) = Default::default();
        let usages = Vec::new();
        Self { kinds, max_life_seconds, dns_names, ip_addresses, email_addresses, uris, subjects, usages }
    }

    /// Whether the policy permits anything at all, and all of its names are possible.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`].
    pub fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(KmsError::new(Code::InvalidArgument, why));
        let Self { kinds, dns_names, ip_addresses, email_addresses, uris, subjects, usages, .. } = self;
        let lists = [dns_names, ip_addresses, email_addresses, uris, subjects];
        if kinds.is_empty() || lists.iter().all(|names| names.is_empty()) {
            return refuse("the policy permits no certificate: it needs a kind and a name".to_owned());
        }
        if kinds.contains(&X509CertificateKind::Leaf) == usages.is_empty() {
            return refuse("a policy for leaves needs a usage, and one for authorities has none".to_owned());
        }
        if let Some(name) = lists.iter().copied().flatten().find(|name| !is_pattern(name)) {
            return refuse(format!(
                "{name:?} is not possible: a name has 1 to 255 bytes, and `*` only at its beginning or end"
            ));
        }
        if let Some(name) = dns_names.iter().find(|name| *name != "*" && !is_dns_name(name)) {
            return refuse(format!("{name:?} is no DNS name, and not `*.` with a DNS name after it"));
        }
        if let Some(name) = ip_addresses.iter().find(|name| Network::parse(name).is_none()) {
            return refuse(format!("{name:?} is neither an IP address nor a network such as 10.0.0.0/8"));
        }
        let is_known = |subject: &str| subject.split_once('=').is_some_and(|(name, _)| is_attribute(name));
        if let Some(subject) = subjects.iter().find(|subject| !is_known(subject)) {
            return refuse(format!("{subject:?} is not an attribute of a subject, such as O=Example"));
        }
        Ok(())
    }

    /// Whether the policy permits to sign this message now, with the private key of `own_key`.
    pub(crate) fn permit(&self, message: &[u8], now: Timestamp, own_key: &PublicKey) -> Result<()> {
        let own_key = subject_public_key_info(own_key);
        let is_own = |key: &[u8]| own_key.as_deref() == Some(key);
        if requested_key(message).is_some_and(|key| is_own(&key)) {
            return Ok(());
        }
        let certificate = Certificate::parse(message).map_err(|why| {
            refusal(format!("the key signs certificates of X.509, and nothing else: {why}"))
        })?;
        let is_authority = certificate.kind == X509CertificateKind::Authority;
        if is_own(&certificate.public_key) && certificate.is_self_issued && is_authority {
            // Whoever trusts it decides what its name and its life mean.
            return Ok(());
        }
        self.permit_certificate(&certificate, now)
    }

    fn permit_certificate(&self, certificate: &Certificate, now: Timestamp) -> Result<()> {
        let kind = certificate.kind;
        if !self.kinds.contains(&kind) {
            return Err(refusal(format!("the key's policy permits no certificates of the kind {kind:?}")));
        }
        self.permit_time(certificate, now)?;
        self.permit_usages(certificate)?;
        self.permit_names(certificate)
    }

    fn permit_time(&self, certificate: &Certificate, now: Timestamp) -> Result<()> {
        let (seconds, max) = (now.unix_millis() / 1000, self.max_life_seconds);
        let latest = seconds.saturating_add(max.get()).saturating_add(MAX_SKEW_SECONDS);
        if certificate.not_after > latest || certificate.not_after <= certificate.not_before {
            return Err(refusal(format!("the key's policy permits certificates for at most {max} seconds")));
        }
        if certificate.not_before < seconds.saturating_sub(MAX_BACKDATE_SECONDS) {
            return Err(refusal("the certificate begins more than an hour before now"));
        }
        Ok(())
    }

    fn permit_usages(&self, certificate: &Certificate) -> Result<()> {
        if certificate.kind == X509CertificateKind::Authority {
            return match (&certificate.usages, certificate.path_len) {
                (None, Some(0)) => Ok(()),
                (Some(_), _) => {
                    Err(refusal("the certificate of an authority has no extended key usage here"))
                }
                _ => Err(refusal("an authority below the key may have none below itself: path length 0")),
            };
        }
        let Some(usages) = &certificate.usages else {
            return Err(refusal("the certificate does not say what its key is for (extended key usage)"));
        };
        match usages.iter().find(|usage| !self.usages.contains(usage)) {
            Some(usage) => Err(refusal(format!("the key's policy does not permit the usage {usage:?}"))),
            None => Ok(()),
        }
    }

    fn permit_names(&self, certificate: &Certificate) -> Result<()> {
        let (subject, names) = (&certificate.subject, &certificate.names);
        if subject.is_empty() && names.is_empty() {
            return Err(refusal("the certificate names nobody"));
        }
        if let Some(name) = names.iter().find(|name| !self.permits_name(name)) {
            return Err(refusal(format!("the key's policy does not permit the name {:?}", name.value())));
        }
        for (kind, value) in subject {
            // Old programs take a common name for that of a server.
            let is_named = || {
                let is_it = |name: &AlternativeName| match (*kind, name) {
                    ("CN", _) => name.value() == *value,
                    ("emailAddress", AlternativeName::Email(address)) => address == value,
                    _ => false,
                };
                names.iter().any(is_it)
            };
            let attribute = format!("{kind}={value}");
            if !self.subjects.iter().any(|pattern| matches(pattern, &attribute)) && !is_named() {
                return Err(refusal(format!("the key's policy does not permit the subject {attribute:?}")));
            }
        }
        Ok(())
    }

    fn permits_name(&self, name: &AlternativeName) -> bool {
        let is_in = |patterns: &[String], name: &str| patterns.iter().any(|pattern| matches(pattern, name));
        match name {
            AlternativeName::Dns(name) => {
                self.dns_names.iter().any(|pattern| matches(&pattern.to_ascii_lowercase(), name))
            }
            AlternativeName::Email(address) => is_in(&self.email_addresses, address),
            AlternativeName::Uri(uri) => self
                .uris
                .iter()
                .any(|pattern| pattern == uri || matches(pattern, uri) && !leads_elsewhere(uri)),
            AlternativeName::Ip(address) => {
                let mut networks = self.ip_addresses.iter().filter_map(|text| Network::parse(text));
                networks.any(|network| network.has(*address))
            }
        }
    }
}

fn is_pattern(name: &str) -> bool {
    let inner = name.strip_prefix('*').or_else(|| name.strip_suffix('*')).unwrap_or(name);
    // The value of an attribute may be any.
    let is_plain = !inner.contains('*');
    (1..=255).contains(&name.len()) && is_plain && !name.chars().any(is_deceptive)
}

/// Whether a name is one of a pattern.
fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end) && name.len() > end.len(),
        (None, Some(start)) => name.starts_with(start) && name.len() > start.len(),
        (None, None) => pattern == name,
    }
}

/// Whether a URI has parts `.` or `..`, also encoded: a program that resolves them (RFC 3986,
/// section 5.2.4) takes it for another one, whose beginning may be none of a pattern.
fn leads_elsewhere(uri: &str) -> bool {
    let uri = uri.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    uri.split(['/', '\\']).any(|part| [".", ".."].contains(&part))
}

/// The SubjectPublicKeyInfo of a key in DER. None if this build cannot write it: then no
/// certificate is one of the key itself.
#[cfg(feature = "transfer")]
fn subject_public_key_info(key: &PublicKey) -> Option<Vec<u8>> {
    crate::transfer::export_public(key, crate::transfer::PublicFormat::Der).ok()
}

#[cfg(not(feature = "transfer"))]
fn subject_public_key_info(_key: &PublicKey) -> Option<Vec<u8>> {
    None
}

/// Addresses with the same first bits.
enum Network {
    Any,
    Of(IpAddr, u32),
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Any);
        }
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let width: u32 = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(width), |bits| bits.parse::<u32>().ok().filter(|bits| *bits <= width))?;
        Some(Self::Of(address, bits))
    }

    fn has(&self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::Any, _) => true,
            (Self::Of(IpAddr::V4(own), bits), IpAddr::V4(other)) => {
                let differ = own.to_bits() ^ other.to_bits();
                differ.leading_zeros() >= *bits
            }
            (Self::Of(IpAddr::V6(own), bits), IpAddr::V6(other)) => {
                let differ = own.to_bits() ^ other.to_bits();
                differ.leading_zeros() >= *bits
            }
            _ => false,
        }
    }
}

/// For the fuzzers: reads bytes as a certificate before its signature. A policy that names all that
/// the certificate has must permit it. The same policy without one of these names must refuse it.
pub(crate) fn fuzz(message: &[u8]) {
    let _ = requested_key(message);
    let Ok(certificate) = Certificate::parse(message) else { return };
    if let Some(summary) = super::X509CertificateSummary::of(message) {
        let summary = serde_json::to_string(&summary).expect("a summary has a form in JSON");
        assert!(!summary.chars().any(is_deceptive), "{summary}");
    }
    let mut policy = X509Authority::new(vec![certificate.kind], NonZeroU64::MAX);
    policy.usages = certificate.usages.clone().unwrap_or_default();
    policy.subjects = certificate.subject.iter().map(|(name, value)| format!("{name}={value}")).collect();
    for name in &certificate.names {
        let list = match name {
            AlternativeName::Dns(_) => &mut policy.dns_names,
            AlternativeName::Email(_) => &mut policy.email_addresses,
            AlternativeName::Uri(_) => &mut policy.uris,
            AlternativeName::Ip(_) => &mut policy.ip_addresses,
        };
        list.push(name.value());
    }
    let now = Timestamp::from_unix_millis(certificate.not_before.saturating_mul(1000));
    let Ok(now) = now else { return };
    let lists: [fn(&mut X509Authority) -> &mut Vec<String>; 4] = [
        |policy| &mut policy.dns_names,
        |policy| &mut policy.email_addresses,
        |policy| &mut policy.uris,
        |policy| &mut policy.ip_addresses,
    ];
    // In a policy, an asterisk stands for any characters.
    let mut all = lists.iter().flat_map(|list| list(&mut policy.clone()).clone()).collect::<Vec<_>>();
    all.extend(policy.subjects.clone());
    if all.iter().any(|name| name.contains('*')) {
        return;
    }
    // The names and the kind are permitted: what is left is the time, and how an authority is made.
    if certificate.kind == X509CertificateKind::Leaf && certificate.usages.is_some() {
        let is_valid = certificate.not_after > certificate.not_before;
        let is_named = !certificate.subject.is_empty() || !certificate.names.is_empty();
        assert_eq!(policy.permit_certificate(&certificate, now).is_ok(), is_valid && is_named);
    }
    let mut narrower = policy.clone();
    narrower.kinds.clear();
    assert!(narrower.permit_certificate(&certificate, now).is_err());
    for list in lists {
        let mut narrower = policy.clone();
        let Some(gone) = list(&mut narrower).pop() else { continue };
        list(&mut narrower).retain(|name| *name != gone);
        assert!(narrower.permit_certificate(&certificate, now).is_err(), "{gone}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm;
    use crate::encoding::from_hex;

    /// A certificate of OpenSSL before its signature: `openssl x509 -req` with an extension file.
    const LEAF: &str = "\
        308201bfa00302010202117f00000000000000000000000000000001300506032b657030273110300e060355\
        040a0c074578616d706c653113301106035504030c0a4578616d706c65204341301e170d3236313132393130\
        343532375a170d3236313232393130343532375a302c3110300e060355040a0c074578616d706c6531183016\
        06035504030c0f7777772e6578616d706c652e6f72673059301306072a8648ce3d020106082a8648ce3d0301\
        07034200049cf4b0083843c89afd5e7e68e532bc4e9c5a09b653c078333830289948bcb7f743886702ee070e\
        f2db583915b0b026e0f4651ad5d7f24b7d7866604764504306a381cb3081c8300c0603551d130101ff040230\
        00300e0603551d0f0101ff040403020780301d0603551d250416301406082b0601050507030106082b060105\
        05070302301d0603551d0e04160414774bf52d1ba81178cf041c1e62f508be37d86b71301f0603551d230418\
        3016801488db69a396ea54cb561148d6557fbb101079f85330490603551d1104423040820f7777772e657861\
        6d706c652e6f726787040a000001810d61406578616d706c652e6f726786187370696666653a2f2f6578616d\
        706c652e6f72672f776562";
    /// That of its authority, which is of Ed25519 and signed itself: `openssl req -x509`.
    const OWN: &str = "\
        30820128a0030201020214013550e1a05576da2318d158c9b9197b2e7b18cf300506032b657030273110300e\
        060355040a0c074578616d706c653113301106035504030c0a4578616d706c65204341301e170d3236313132\
        393130343532355a170d3336313132363130343532355a30273110300e060355040a0c074578616d706c6531\
        13301106035504030c0a4578616d706c65204341302a300506032b6570032100a847f760823fbab861438bbe\
        89e5c043f226fcf3909c2e821b9adf9e8eb27277a3663064301d0603551d0e0416041488db69a396ea54cb56\
        1148d6557fbb101079f853301f0603551d2304183016801488db69a396ea54cb561148d6557fbb101079f853\
        30120603551d130101ff040830060101ff020100300e0603551d0f0101ff040403020106";
    /// A request for a certificate of another key: `openssl req -new`.
    const REQUEST: &str = "\
        3081fb020100302c3110300e060355040a0c074578616d706c653118301606035504030c0f7777772e657861\
        6d706c652e6f72673059301306072a8648ce3d020106082a8648ce3d030107034200049cf4b0083843c89afd\
        5e7e68e532bc4e9c5a09b653c078333830289948bcb7f743886702ee070ef2db583915b0b026e0f4651ad5d7\
        f24b7d7866604764504306a06d306b06092a864886f70d01090e315e305c305a0603551d1104533051820f77\
        77772e6578616d706c652e6f7267820f2a2e612e6578616d706c652e6f726787040a000001810d6140657861\
        6d706c652e6f726786187370696666653a2f2f6578616d706c652e6f72672f776562";

    fn of_hex(text: &str) -> Vec<u8> {
        from_hex(text).unwrap()
    }

    /// A policy for all that the certificate of the leaf has.
    fn policy() -> X509Authority {
        let day = NonZeroU64::new(86_400 * 30).unwrap();
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        X509Authority {
            kinds: vec![X509CertificateKind::Leaf],
            max_life_seconds: day,
            dns_names: texts(&["*.example.org"]),
            ip_addresses: texts(&["10.0.0.0/8"]),
            email_addresses: texts(&["*@example.org"]),
            uris: texts(&["spiffe://example.org/*"]),
            subjects: texts(&["O=Example"]),
            usages: vec![X509Usage::ServerAuth, X509Usage::ClientAuth],
        }
    }

    fn key(bytes: &[u8; 32]) -> PublicKey {
        PublicKey::from_bytes(Algorithm::Ed25519, bytes).unwrap()
    }

    /// Any other key.
    fn other_key() -> PublicKey {
        let mut base = [0x66; 32];
        base[0] = 0x58;
        key(&base)
    }

    /// The time at which the certificate of the leaf was signed.
    fn at(seconds: i64) -> Timestamp {
        let begin = Certificate::parse(&of_hex(LEAF)).unwrap().not_before;
        Timestamp::from_unix_millis((begin + 60).checked_add_signed(seconds).unwrap() * 1000).unwrap()
    }

    fn permits(policy: &X509Authority, message: &[u8], seconds: i64) -> bool {
        policy.permit(message, at(seconds), &other_key()).is_ok()
    }

    #[test]
    fn a_certificate_of_openssl_is_read_and_permitted_by_a_policy_for_all_of_it() {
        let leaf = of_hex(LEAF);
        policy().check().unwrap();
        policy().permit(&leaf, at(0), &other_key()).unwrap();
        let summary = super::super::X509CertificateSummary::of(&leaf).unwrap();
        assert_eq!(summary.serial, "7f00000000000000000000000000000001");
        assert_eq!(summary.subject, ["O=Example", "CN=www.example.org"]);
        let names =
            ["DNS:www.example.org", "IP:10.0.0.1", "email:a@example.org", "URI:spiffe://example.org/web"];
        assert_eq!(summary.names, names);
        assert_eq!(summary.kind, X509CertificateKind::Leaf);
        // Its common name is also one of its other names.
        let mut without = policy();
        without.subjects.clear();
        assert!(!permits(&without, &leaf, 0));
    }

    #[test]
    fn whatever_the_policy_does_not_name_is_refused() {
        let leaf = of_hex(LEAF);
        let changes: [fn(&mut X509Authority); 12] = [
            |policy| policy.kinds = vec![X509CertificateKind::Authority],
            |policy| policy.max_life_seconds = NonZeroU64::new(86_400 * 29).unwrap(),
            |policy| policy.dns_names.clear(),
            |policy| policy.dns_names = vec!["*.www.example.org".to_owned()],
            |policy| policy.dns_names = vec!["example.org".to_owned()],
            |policy| policy.ip_addresses = vec!["10.0.0.2".to_owned(), "11.0.0.0/8".to_owned()],
            |policy| policy.email_addresses = vec!["b@example.org".to_owned()],
            |policy| policy.uris = vec!["spiffe://example.org/we".to_owned()],
            |policy| policy.subjects = vec!["O=Exampl".to_owned(), "CN=Example".to_owned()],
            |policy| policy.usages = vec![X509Usage::ServerAuth],
            |policy| policy.usages = vec![X509Usage::ClientAuth, X509Usage::CodeSigning],
            |policy| policy.uris.clear(),
        ];
        for (place, change) in changes.into_iter().enumerate() {
            let mut narrower = policy();
            change(&mut narrower);
            assert!(!permits(&narrower, &leaf, 0), "{place}");
        }
        // Before the clock of the keystore has come so far, and an hour after the beginning.
        for (seconds, is_permitted) in [(-121, false), (0, true), (3500, true), (3541, false)] {
            assert_eq!(permits(&policy(), &leaf, seconds), is_permitted, "{seconds}");
        }
    }

    #[test]
    fn a_certificate_that_is_cut_or_longer_is_refused() {
        let leaf = of_hex(LEAF);
        for len in 0..leaf.len() {
            assert!(!permits(&policy(), &leaf[..len], 0), "{len}");
        }
        assert!(!permits(&policy(), &[&leaf[..], &[0]].concat(), 0));
        for message in [&b""[..], b"a message", b"bulla signature\0v1", &[0x30, 0], &[0x30, 0x80, 0, 0]] {
            assert!(!permits(&policy(), message, 0), "{message:?}");
        }
        // No changed byte makes the reader panic.
        for place in 0..leaf.len() {
            let mut changed = leaf.clone();
            changed[place] ^= 1;
            fuzz(&changed);
        }
    }

    #[test]
    fn extensions_that_are_unknown_or_grant_more_are_refused() {
        let replaced = |from: &str, to: &str| {
            assert_eq!(LEAF.matches(from).count(), 1, "{from}");
            of_hex(&LEAF.replace(from, to))
        };
        // The identifiers of the subject key, of the extended key usage and of client_auth.
        for (from, to) in [
            ("0603551d0e", "0603551d1e"),
            ("0603551d25", "0603551d26"),
            ("06082b06010505070302", "06082b06010505070309"),
            // The key usage digital_signature: also sign certificates, or lists of revoked ones.
            ("0603551d0f0101ff040403020780", "0603551d0f0101ff040403020284"),
            ("0603551d0f0101ff040403020780", "0603551d0f0101ff040403020182"),
            // Basic constraints in place of the key usage: it is there twice.
            ("0603551d0f", "0603551d13"),
        ] {
            assert!(!permits(&policy(), &replaced(from, to), 0), "{to}");
        }
    }

    #[cfg(feature = "transfer")]
    #[test]
    fn the_own_key_of_an_authority_gets_a_certificate_and_a_request() {
        let (own, request) = (of_hex(OWN), of_hex(REQUEST));
        // The bits of an Ed25519 key follow its algorithm (RFC 8410).
        let at_key = OWN.find("300506032b6570032100").expect("its key is of Ed25519") + 20;
        let bytes: [u8; 32] = of_hex(&OWN[at_key..at_key + 64]).try_into().unwrap();
        policy().permit(&own, at(0), &key(&bytes)).unwrap();
        assert!(!permits(&policy(), &own, 0), "the certificate of another authority");
        assert!(!permits(&policy(), &request, 0), "a request for another key");
        assert!(requested_key(&request).is_some());
        assert_eq!(requested_key(&own), None);
        let mut all = policy();
        all.kinds = vec![X509CertificateKind::Authority];
        all.subjects = vec!["CN=*".to_owned(), "O=*".to_owned()];
        all.max_life_seconds = NonZeroU64::MAX;
        all.permit(&own, at(0), &other_key()).unwrap();
        all.subjects.pop();
        assert!(!permits(&all, &own, 0));
    }

    #[test]
    fn a_policy_that_means_nothing_is_refused() {
        let changes: [fn(&mut X509Authority); 9] = [
            |policy| policy.kinds.clear(),
            |policy| policy.usages.clear(),
            |policy| policy.kinds = vec![X509CertificateKind::Authority],
            |policy| policy.dns_names.push("*example.org".to_owned()),
            |policy| policy.dns_names.push("a..b".to_owned()),
            |policy| policy.ip_addresses.push("10.0.0.0/33".to_owned()),
            |policy| policy.subjects.push("Example".to_owned()),
            |policy| policy.email_addresses.push("a*b".to_owned()),
            |policy| policy.uris.push("spiffe://a\n".to_owned()),
        ];
        for (place, change) in changes.into_iter().enumerate() {
            let mut policy = policy();
            change(&mut policy);
            assert_eq!(policy.check().unwrap_err().code, Code::InvalidArgument, "{place}");
        }
    }

    #[test]
    fn a_pattern_of_uris_has_none_that_leads_elsewhere() {
        let mut policy = policy();
        policy.uris = vec!["spiffe://example.org/web/*".to_owned(), "https://example.org/a/../b".to_owned()];
        let permits = |uri: &str| policy.permits_name(&AlternativeName::Uri(uri.to_owned()));
        for uri in
            ["spiffe://example.org/web/a", "spiffe://example.org/web/..a/.b", "https://example.org/a/../b"]
        {
            assert!(permits(uri), "{uri}");
        }
        for end in
            ["../db", "a/../../db", "..", "./a", "%2e%2E/db", "a/.%2e/b", "..%2Fdb", "..\\db", "a%5C..%5cb"]
        {
            assert!(!permits(&format!("spiffe://example.org/web/{end}")), "{end}");
        }
    }

    #[test]
    fn networks_have_the_addresses_with_their_first_bits() {
        let has =
            |network: &str, address: &str| Network::parse(network).unwrap().has(address.parse().unwrap());
        for (network, address, is_in) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", false),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.3", false),
            ("0.0.0.0/0", "255.1.2.3", true),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "10.0.0.1", false),
            ("*", "10.0.0.1", true),
        ] {
            assert_eq!(has(network, address), is_in, "{network} {address}");
        }
        for text in ["", "10.0.0", "10.0.0.0/", "10.0.0.0/-1", "a/8", "::/129", "**"] {
            assert!(Network::parse(text).is_none(), "{text}");
        }
    }
}
