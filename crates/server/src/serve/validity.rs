//! The validity of a certificate (RFC 5280, section 4.1.2.5).

use std::time::Duration;

use bulla_kms::Timestamp;
use der::asn1::{AnyRef, GeneralizedTime, UtcTime};
use der::{Decode as _, Header, SliceReader, Tag, TagNumber};

/// How long before its end a certificate is worth a warning.
const SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The time in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    begin: Timestamp,
    end: Timestamp,
}

impl Validity {
    /// Reads it from a certificate in DER. None if the bytes are no certificate.
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        let (begin, end) = times(certificate).ok()?;
        let stamp = |time: Duration| Timestamp::from_unix_millis(u64::try_from(time.as_millis()).ok()?).ok();
        Some(Self { begin: stamp(begin)?, end: stamp(end)? })
    }

    /// # Errors
    /// What is wrong with it now, as the end of a sentence.
    pub(super) fn check(self, now: Timestamp) -> Result<(), String> {
        if now < self.begin {
            Err(format!("is not valid before {}", self.begin))
        } else if now > self.end {
            Err(format!("expired at {}", self.end))
        } else {
            Ok(())
        }
    }

    pub(super) fn end(self) -> Timestamp {
        self.end
    }

    pub(super) fn ends_soon(self, now: Timestamp) -> bool {
        let left = self.end.unix_millis().saturating_sub(now.unix_millis());
        Duration::from_millis(left) < SOON
    }
}

/// Reads a certificate up to its two times. rustls reads the rest.
fn times(certificate: &[u8]) -> der::Result<(Duration, Duration)> {
    let mut reader = SliceReader::new(certificate)?;
    // Certificate, and TBSCertificate in it.
    sequence(&mut reader)?;
    sequence(&mut reader)?;
    if matches!(Tag::peek(&reader)?, Tag::ContextSpecific { number: TagNumber(0), .. }) {
        AnyRef::decode(&mut reader)?;
    }
    // The serial number, the algorithm of the signature, and the issuer.
    for _ in 0..3 {
        AnyRef::decode(&mut reader)?;
    }
    sequence(&mut reader)?;
    Ok((time(&mut reader)?, time(&mut reader)?))
}

fn sequence(reader: &mut SliceReader<'_>) -> der::Result<()> {
    Header::decode(reader)?.tag().assert_eq(Tag::Sequence).map(|_| ())
}

/// A time since 1970.
fn time(reader: &mut SliceReader<'_>) -> der::Result<Duration> {
    match Tag::peek(reader)? {
        Tag::UtcTime => UtcTime::decode(reader).map(|time| time.to_unix_duration()),
        _ => GeneralizedTime::decode(reader).map(|time| time.to_unix_duration()),
    }
}

/// Reads bytes as a certificate; for the fuzzers.
pub(crate) fn fuzz_certificate(bytes: &[u8]) {
    if let Some(validity) = Validity::of(bytes) {
        let is_valid = validity.check(validity.begin).is_ok();
        assert_eq!(is_valid, validity.begin <= validity.end);
        assert!(validity.ends_soon(validity.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn certificate(begin: (i32, u8, u8), end: (i32, u8, u8)) -> Vec<u8> {
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(begin.0, begin.1, begin.2);
        params.not_after = rcgen::date_time_ymd(end.0, end.1, end.2);
        params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn a_certificate_says_from_when_until_when() {
        // Years before 2050 have two digits in a certificate, later ones four.
        let der = certificate((2024, 2, 29), (2051, 1, 2));
        let validity = Validity::of(&der).unwrap();
        assert_eq!(
            (validity.begin, validity.end()),
            (at("2024-02-29T00:00:00.000Z"), at("2051-01-02T00:00:00.000Z"))
        );
        assert!(validity.check(at("2024-02-28T23:59:59.999Z")).unwrap_err().contains("not valid before"));
        assert!(validity.check(at("2024-02-29T00:00:00.000Z")).is_ok());
        assert!(validity.check(at("2051-01-02T00:00:00.001Z")).unwrap_err().contains("expired"));
        assert!(!validity.ends_soon(at("2050-12-18T00:00:00.000Z")));
        assert!(validity.ends_soon(at("2050-12-20T00:00:00.000Z")));
    }

    #[test]
    fn bytes_that_are_no_certificate_have_no_times() {
        let der = certificate((2024, 1, 1), (2025, 1, 1));
        for end in 0..60 {
            assert_eq!(Validity::of(&der[..end]), None);
        }
        assert_eq!(Validity::of(b"not a certificate"), None);
    }
}
