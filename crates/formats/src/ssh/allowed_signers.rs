//! The file that says whose signatures are accepted, for what, and when: `ALLOWED SIGNERS` of
//! ssh-keygen(1).

use std::fmt;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

use super::key::{SshCertificate, SshKey, SshSigner};
use super::patterns::PatternList;
use super::{SshSignature, check_namespace};
use crate::error::FormatError;

/// The signers that somebody accepts.
///
/// ```
/// use bulla_formats::ssh::AllowedSigners;
///
/// let text = "*@example.org namespaces=\"git,file\",valid-before=\"20301231Z\" ssh-ed25519 \
///     AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr\n";
/// AllowedSigners::parse(text.as_bytes())?;
/// assert!(AllowedSigners::parse(b"somebody\n").is_err());
/// # Ok::<(), bulla_formats::FormatError>(())
/// ```
#[derive(Clone, Debug)]
pub struct AllowedSigners {
    lines: Vec<AllowedSigner>,
}

#[derive(Clone, Debug)]
struct AllowedSigner {
    principals: PatternList,
    key: SshKey,
    vouches: Vouches,
    namespaces: Option<PatternList>,
    valid_after: Option<i64>,
    valid_before: Option<i64>,
}

/// What the key of a line does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vouches {
    /// It signs.
    Itself,
    /// It signs certificates of keys that sign.
    Authority,
}

/// Why a signature is not accepted.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// No line has the key.
    UnknownKey,
    /// The lines with the key are not for this principal.
    Principal,
    /// The lines with the key are not for the signature's namespace.
    Namespace,
    /// The certificate is for a host, or restricts what the key may do in an unknown way.
    Certificate,
    /// The key, or its certificate, is not valid yet.
    NotYetValid,
    /// The key, or its certificate, is not valid any more.
    Expired,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownKey => "no line of the allowed signers has its key",
            Self::Principal => "the allowed signers have its key for another principal",
            Self::Namespace => "the allowed signers do not have its key for this namespace",
            Self::Certificate => {
                "its certificate is of a host, or restricts the key in a way that bulla does not know"
            }
            Self::NotYetValid => "the allowed signers say that its key, or its certificate, is not valid yet",
            Self::Expired => "the allowed signers say that its key, or its certificate, has expired",
        })
    }
}

impl AllowedSigners {
    /// Reads the file.
    ///
    /// # Errors
    /// A line is malformed; the error has its number. A file that is half understood accepts
    /// nothing.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let text = str::from_utf8(bytes).map_err(|_| FormatError::new("it is not UTF-8"))?;
        let lines = text.lines().enumerate().map(|(number, line)| (number, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let line = |(number, line): (usize, &str)| {
            let parsed = AllowedSigner::parse(line);
            parsed.map_err(|error| FormatError::new(format!("line {}: {error}", number + 1)))
        };
        Ok(Self { lines: lines.map(line).collect::<Result<_, _>>()? })
    }

    /// Who signed, if the signature is accepted at a time: the principal that was asked for, or
    /// what the line or the certificate says. It does not verify the signature.
    ///
    /// `at` is in seconds since 1970. Without a principal, any will do.
    ///
    /// # Errors
    /// No line accepts it: the reason that comes closest.
    pub fn find(
        &self,
        signature: &SshSignature,
        principal: Option<&str>,
        at: i64,
    ) -> Result<String, Refusal> {
        let mut closest = Refusal::UnknownKey;
        for line in &self.lines {
            match line.accepts(signature, principal, at) {
                Ok(found) => return Ok(found),
                Err(refusal) => closest = closest.max(refusal),
            }
        }
        Err(closest)
    }
}

impl AllowedSigners {
    /// Who may have signed at a time: the principals of the first line that has the signer's key,
    /// or those of its certificate for which the line is. It verifies no signature, and does not
    /// look at namespaces.
    ///
    /// `at` is in seconds since 1970. The principals of a line may be patterns, as they are in the
    /// file.
    ///
    /// # Errors
    /// No line has the key at this time: the reason that comes closest.
    ///
    /// ```
    /// use bulla_formats::ssh::{AllowedSigners, Refusal, SshSigner};
    ///
    /// let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr";
    /// let lines = format!("me@example.org,*@example.net valid-after=\"20200101Z\" {key}");
    /// let allowed = AllowedSigners::parse(lines.as_bytes())?;
    /// let signer = SshSigner::parse_line(key)?;
    /// let found = allowed.principals(&signer, 1_800_000_000);
    /// assert_eq!(found.unwrap(), ["me@example.org", "*@example.net"]);
    /// assert_eq!(allowed.principals(&signer, 0), Err(Refusal::NotYetValid));
    /// # Ok::<(), bulla_formats::FormatError>(())
    /// ```
    pub fn principals(&self, signer: &SshSigner, at: i64) -> Result<Vec<String>, Refusal> {
        let mut closest = Refusal::UnknownKey;
        for line in &self.lines {
            match line.principals_of(signer, at) {
                Ok(found) => return Ok(found),
                Err(refusal) => closest = closest.max(refusal),
            }
        }
        Err(closest)
    }
}

impl AllowedSigners {
    /// The lists of principals that match a name, as they are in the file: those of each line that
    /// is for this name. It looks at neither keys nor times.
    ///
    /// ```
    /// use bulla_formats::ssh::AllowedSigners;
    ///
    /// let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr";
    /// let lines = format!("me@example.org,*@example.net {key}\n*@example.org,!me@* {key}\n");
    /// let allowed = AllowedSigners::parse(lines.as_bytes())?;
    /// assert_eq!(allowed.matching("you@example.net"), ["me@example.org,*@example.net"]);
    /// assert_eq!(allowed.matching("me@example.org"), ["me@example.org,*@example.net"]);
    /// assert!(allowed.matching("me@example.com").is_empty());
    /// # Ok::<(), bulla_formats::FormatError>(())
    /// ```
    pub fn matching(&self, principal: &str) -> Vec<&str> {
        let lists = self.lines.iter().map(|line| &line.principals);
        lists.filter(|list| list.matches(principal)).map(PatternList::as_str).collect()
    }
}

impl AllowedSigner {
    fn parse(line: &str) -> Result<Self, FormatError> {
        let (principals, mut rest) = word(line)?;
        if rest.is_empty() {
            return Err(FormatError::new("after the principals, there is no public key"));
        }
        let mut options = Options::default();
        if !SshKey::begins(rest) {
            let (text, after) = word_with_quotes(rest)?;
            options = Options::parse(text)?;
            rest = after;
        }
        Ok(Self {
            principals: PatternList::parse(principals)?,
            key: SshKey::parse(rest)?,
            vouches: options.vouches.unwrap_or(Vouches::Itself),
            namespaces: options.namespaces,
            valid_after: options.valid_after,
            valid_before: options.valid_before,
        })
    }

    fn accepts(&self, signature: &SshSignature, principal: Option<&str>, at: i64) -> Result<String, Refusal> {
        let found = match (self.vouches, signature.signer()) {
            (Vouches::Itself, SshSigner::Key(key)) if *key == self.key => self.principal_of_key(principal)?,
            (Vouches::Authority, SshSigner::Certificate(certificate))
                if signature.signer().authority() == Some(&self.key) =>
            {
                self.principal_of_certificate(certificate, principal, at)?
            }
            _ => return Err(Refusal::UnknownKey),
        };
        if self.namespaces.as_ref().is_some_and(|list| !list.matches(signature.namespace())) {
            return Err(Refusal::Namespace);
        }
        self.check_time(at)?;
        Ok(found)
    }

    fn check_time(&self, at: i64) -> Result<(), Refusal> {
        if self.valid_after.is_some_and(|from| at < from) {
            return Err(Refusal::NotYetValid);
        }
        if self.valid_before.is_some_and(|until| at > until) {
            return Err(Refusal::Expired);
        }
        Ok(())
    }

    /// All principals for which the line has the signer.
    fn principals_of(&self, signer: &SshSigner, at: i64) -> Result<Vec<String>, Refusal> {
        let found: Vec<_> = match (self.vouches, signer) {
            (Vouches::Itself, SshSigner::Key(key)) if *key == self.key => {
                self.principals.as_str().split(',').map(str::to_owned).collect()
            }
            (Vouches::Authority, SshSigner::Certificate(certificate))
                if signer.authority() == Some(&self.key) =>
            {
                let names = certificate.principals().iter();
                let names: Vec<_> = names.filter(|name| self.principals.matches(name)).cloned().collect();
                if names.is_empty() {
                    return Err(Refusal::Principal);
                }
                check_certificate(certificate, at)?;
                names
            }
            _ => return Err(Refusal::UnknownKey),
        };
        self.check_time(at)?;
        Ok(found)
    }

    fn principal_of_key(&self, principal: Option<&str>) -> Result<String, Refusal> {
        match principal {
            None => Ok(self.principals.as_str().to_owned()),
            Some(name) if self.principals.matches(name) => Ok(name.to_owned()),
            Some(_) => Err(Refusal::Principal),
        }
    }

    /// One of the certificate's principals that the line is for.
    fn principal_of_certificate(
        &self,
        certificate: &SshCertificate,
        principal: Option<&str>,
        at: i64,
    ) -> Result<String, Refusal> {
        let is_it = |name: &&String| {
            principal.is_none_or(|wanted| wanted == name.as_str()) && self.principals.matches(name)
        };
        let name = certificate.principals().iter().find(is_it).ok_or(Refusal::Principal)?;
        check_certificate(certificate, at)?;
        Ok(name.clone())
    }
}

/// Whether a certificate counts at a time.
fn check_certificate(certificate: &SshCertificate, at: i64) -> Result<(), Refusal> {
    if !certificate.is_plain() {
        return Err(Refusal::Certificate);
    }
    let (from, until) = certificate.validity();
    let at = u64::try_from(at).unwrap_or(0);
    match () {
        () if at < from => Err(Refusal::NotYetValid),
        () if at >= until => Err(Refusal::Expired),
        () => Ok(()),
    }
}

/// The options of a line.
#[derive(Default)]
struct Options {
    vouches: Option<Vouches>,
    namespaces: Option<PatternList>,
    valid_after: Option<i64>,
    valid_before: Option<i64>,
}

impl Options {
    fn parse(text: &str) -> Result<Self, FormatError> {
        let mut found = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let name_len = rest.find(['=', ',']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(name_len);
            let (value, after) = match after.strip_prefix('=') {
                None => (None, after),
                Some(quoted) => {
                    let inner = quoted.strip_prefix('"').and_then(|inner| inner.split_once('"'));
                    let (value, after) = inner.ok_or_else(|| {
                        FormatError::new(format!("the value of the option {name} is not in double quotes"))
                    })?;
                    (Some(value), after)
                }
            };
            found.set(&name.to_ascii_lowercase(), value)?;
            rest = match after.strip_prefix(',') {
                Some("") => return Err(FormatError::new("a comma is after the last option")),
                Some(more) => more,
                None if after.is_empty() => "",
                None => return Err(FormatError::new("between two options, there is no comma")),
            };
        }
        Ok(found)
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), FormatError> {
        let is_first = match (name, value) {
            ("cert-authority", None) => self.vouches.replace(Vouches::Authority).is_none(),
            ("namespaces", Some(list)) => {
                list.split(',').try_for_each(check_namespace)?;
                self.namespaces.replace(PatternList::parse(list)?).is_none()
            }
            ("valid-after", Some(time)) => self.valid_after.replace(parse_time(time)?).is_none(),
            ("valid-before", Some(time)) => self.valid_before.replace(parse_time(time)?).is_none(),
            _ => return Err(FormatError::new(format!("there is no option {name} of this form"))),
        };
        if !is_first {
            return Err(FormatError::new(format!("the option {name} is there twice")));
        }
        if let (Some(after), Some(before)) = (self.valid_after, self.valid_before)
            && before <= after
        {
            return Err(FormatError::new("the end of its validity is not after the beginning"));
        }
        Ok(())
    }
}

/// The first word, which may be in double quotes, and the rest.
fn word(line: &str) -> Result<(&str, &str), FormatError> {
    let (word, rest) = match line.strip_prefix('"') {
        Some(quoted) => {
            quoted.split_once('"').ok_or_else(|| FormatError::new("a double quote is not closed"))?
        }
        None => line.split_once([' ', '\t']).unwrap_or((line, "")),
    };
    Ok((word, rest.trim_start()))
}

/// The first word, in which quotes keep blanks together, and the rest.
fn word_with_quotes(line: &str) -> Result<(&str, &str), FormatError> {
    let mut is_quoted = false;
    let end = line.find(|c: char| {
        is_quoted ^= c == '"';
        !is_quoted && (c == ' ' || c == '\t')
    });
    let end = end.ok_or_else(|| FormatError::new("after the options, there is no public key"))?;
    let (word, rest) = line.split_at(end);
    Ok((word, rest.trim_start()))
}

/// Seconds since 1970, from `YYYYMMDD` or `YYYYMMDDHHMM[SS]`, in UTC if `Z` follows, and otherwise
/// in the time zone of this machine.
///
/// # Errors
/// The text has another form, or there is no such time.
///
/// ```
/// use bulla_formats::ssh;
///
/// assert_eq!(ssh::parse_time("19700102Z")?, 86_400);
/// assert!(ssh::parse_time("1970-01-02").is_err());
/// # Ok::<(), bulla_formats::FormatError>(())
/// ```
pub fn parse_time(text: &str) -> Result<i64, FormatError> {
    let invalid = || {
        FormatError::new(format!("{text} is not a time of the form YYYYMMDD[HHMM[SS]], or with Z at its end"))
    };
    let (digits, zone) = match text.strip_suffix('Z') {
        Some(digits) => (digits, TimeZone::UTC),
        None => (text, TimeZone::system()),
    };
    if ![8, 12, 14].contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid());
    }
    let number = |from: usize, to: usize| -> Result<i16, FormatError> {
        digits.get(from..to).map_or(Ok(0), |part| part.parse().map_err(|_| invalid()))
    };
    let small = |from: usize| -> Result<i8, FormatError> {
        number(from, from + 2)?.try_into().map_err(|_| invalid())
    };
    let date = Date::new(number(0, 4)?, small(4)?, small(6)?).map_err(|_| invalid())?;
    let time = Time::new(small(8)?, small(10)?, small(12)?, 0).map_err(|_| invalid())?;
    let moment = match DateTime::from_parts(date, time).to_zoned(zone) {
        Ok(moment) => moment.timestamp(),
        // People write 99991231 for ever, and the crate ends a day earlier.
        Err(_) if date.year() == 9999 => Timestamp::MAX,
        Err(_) => return Err(invalid()),
    };
    Ok(moment.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr";

    #[test]
    fn times_are_read_in_utc() {
        assert_eq!(parse_time("19700102Z").unwrap(), 86_400);
        assert_eq!(parse_time("197001010001Z").unwrap(), 60);
        assert_eq!(parse_time("19700101000001Z").unwrap(), 1);
        for text in ["99991230Z", "99991231Z", "99991231235959Z", "99991231"] {
            assert!(parse_time(text).expect(text) > 253_000_000_000, "{text}");
        }
        for text in ["", "Z", "1970", "19701301Z", "19700230Z", "197001010060Z", "1970010100000", "+9700101Z"]
        {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lines_that_are_not_understood_are_errors() {
        for line in [
            "a",
            "a namespaces=\"file\"",
            "\"a b",
            "a,,b KEY",
            "a unknown KEY",
            "a namespaces=file KEY",
            "a namespaces=\"\" KEY",
            "a cert-authority,cert-authority KEY",
            "a cert-authority=\"x\" KEY",
            "a cert-authority, KEY",
            "a namespaces=\"f\"valid-after=\"20200101\" KEY",
            "a valid-after=\"20200101Z\",valid-before=\"20200101Z\" KEY",
            "a valid-after=\"tomorrow\" KEY",
            "a ssh-ed25519 AAAA",
            "a ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr",
        ] {
            let text = format!("# a comment\n\n{}\n", line.replace("KEY", KEY));
            let error = AllowedSigners::parse(text.as_bytes()).expect_err(line).to_string();
            assert!(error.starts_with("line 3: "), "{line}: {error}");
        }
        for line in ["a KEY", "\"a b\" KEY a comment", "a CERT-AUTHORITY,namespaces=\"a,b c\" KEY", "a  KEY"]
        {
            let text = line.replace("KEY", KEY);
            assert_eq!(AllowedSigners::parse(text.as_bytes()).expect(line).lines.len(), 1);
        }
    }
}
