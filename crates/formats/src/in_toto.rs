//! Statements of in-toto (<https://github.com/in-toto/attestation>, `spec/v1/statement.md`): what is
//! said, the predicate, about which files, the subjects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::digests::{DigestAlgorithm, digest_from_hex, to_hex};
use crate::dsse::Envelope;
use crate::error::FormatError;
use crate::json;

/// The payload type of a statement in an envelope.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

pub(crate) const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The older type. Its subjects are the same.
const OLD_STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v0.1";

/// The statement in an envelope, as JSON of a type that reads a part of it.
///
/// # Errors
/// The payload is of another type, is malformed or has a member twice.
pub(crate) fn read_payload<T: DeserializeOwned>(envelope: &Envelope) -> Result<T, FormatError> {
    if envelope.payload_type() != PAYLOAD_TYPE {
        let message = format!("its payload is no statement of in-toto, but {:?}", envelope.payload_type());
        return Err(FormatError::new(message));
    }
    json::parse(envelope.payload()).map_err(|error| FormatError::new(format!("its statement: {error}")))
}

/// A file that a statement is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its name; of a file in a folder, its path in the folder.
    pub name: String,
    /// Its digests of the algorithms that are known here. There is at least one.
    pub digests: Vec<(DigestAlgorithm, Vec<u8>)>,
}

/// What a statement says of its subjects: the type of the predicate, and the predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    predicate_type: String,
    /// An object of JSON, as it was given.
    text: String,
}

impl Predicate {
    /// A predicate from its type and its JSON.
    ///
    /// # Errors
    /// The type is not a URI, or the JSON is not an object, is empty, or has a member twice.
    ///
    /// ```
    /// use bulla_formats::in_toto::Predicate;
    ///
    /// assert!(Predicate::new("https://example.org/tested/v1", br#"{"passed": true}"#).is_ok());
    /// assert!(Predicate::new("tested", br#"{"passed": true}"#).is_err());
    /// assert!(Predicate::new("https://example.org/tested/v1", b"[]").is_err());
    /// ```
    pub fn new(predicate_type: &str, text: &[u8]) -> Result<Self, FormatError> {
        check_type(predicate_type)?;
        let object: BTreeMap<String, serde::de::IgnoredAny> = json::parse(text)
            .map_err(|error| FormatError::new(format!("the predicate is not an object of JSON: {error}")))?;
        if object.is_empty() {
            return Err(FormatError::new("the predicate is empty: it says nothing"));
        }
        let text = std::str::from_utf8(text).expect("JSON is UTF-8").trim().to_owned();
        Ok(Self { predicate_type: predicate_type.to_owned(), text })
    }
}

/// A scheme and a colon begin a URI (RFC 3986, 3.1).
fn check_type(predicate_type: &str) -> Result<(), FormatError> {
    let scheme = predicate_type.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_uri = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && predicate_type.bytes().all(|byte| byte.is_ascii_graphic());
    if is_uri {
        return Ok(());
    }
    Err(FormatError::new("the predicate's type is not a URI, for example https://slsa.dev/provenance/v1"))
}

/// Writes a statement about files.
///
/// # Errors
/// There is no subject, or two have one name.
///
/// ```
/// use bulla_formats::DigestAlgorithm;
/// use bulla_formats::in_toto::{Predicate, Subject, statement};
///
/// let digests = vec![(DigestAlgorithm::Blake3, bulla_blake3::hash(b"a file").as_bytes().to_vec())];
/// let subject = Subject { name: "file".to_owned(), digests };
/// let predicate = Predicate::new("https://example.org/tested/v1", br#"{"passed": true}"#)?;
/// let text = statement(&[subject], &predicate)?;
/// assert!(text.starts_with(r#"{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"file","#));
/// # Ok::<(), bulla_formats::FormatError>(())
/// ```
pub fn statement(subjects: &[Subject], predicate: &Predicate) -> Result<String, FormatError> {
    check_subjects(subjects)?;
    let subject = |subject: &Subject| {
        let digest = |(algorithm, digest): &(DigestAlgorithm, Vec<u8>)| {
            format!(r#""{}":"{}""#, algorithm.name(), to_hex(digest))
        };
        let digests: Vec<_> = subject.digests.iter().map(digest).collect();
        format!(r#"{{"name":{},"digest":{{{}}}}}"#, json::quoted(&subject.name), digests.join(","))
    };
    let subjects: Vec<_> = subjects.iter().map(subject).collect();
    Ok(format!(
        r#"{{"_type":"{STATEMENT_TYPE}","subject":[{}],"predicateType":{},"predicate":{}}}"#,
        subjects.join(","),
        json::quoted(&predicate.predicate_type),
        predicate.text
    ))
}

fn check_subjects(subjects: &[Subject]) -> Result<(), FormatError> {
    if subjects.is_empty() {
        return Err(FormatError::new("a statement needs at least one file"));
    }
    let mut names: Vec<_> = subjects.iter().map(|subject| &subject.name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1] && !pair[0].is_empty()) {
        Some(pair) => Err(FormatError::new(format!("two subjects have the name {:?}", pair[0]))),
        None => Ok(()),
    }
}

/// A statement that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTotoStatement {
    subjects: Vec<Subject>,
    predicate_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonStatement {
    #[serde(rename = "_type")]
    statement_type: String,
    subject: Vec<JsonSubject>,
    predicate_type: String,
}

#[derive(Deserialize)]
struct JsonSubject {
    #[serde(default)]
    name: String,
    digest: BTreeMap<String, String>,
}

impl InTotoStatement {
    /// Reads the statement in an envelope. Whether the envelope's signature is valid is another
    /// question.
    ///
    /// # Errors
    /// The payload is of another type, is malformed or has a member twice; two subjects have one
    /// name; a subject has no digest of an algorithm that is known here.
    pub fn parse(envelope: &Envelope) -> Result<Self, FormatError> {
        let statement: JsonStatement = read_payload(envelope)?;
        if ![STATEMENT_TYPE, OLD_STATEMENT_TYPE].contains(&&statement.statement_type[..]) {
            let message = format!("it is a statement of another type: {:?}", statement.statement_type);
            return Err(FormatError::new(message));
        }
        let subjects = statement.subject.into_iter().map(Subject::read).collect::<Result<Vec<_>, _>>()?;
        check_subjects(&subjects)?;
        Ok(Self { subjects, predicate_type: statement.predicate_type })
    }

    /// The files that the statement is about.
    pub fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    /// The type of what it says about them.
    pub fn predicate_type(&self) -> &str {
        &self.predicate_type
    }

    /// The hash functions that verify all subjects: all that any of them names.
    pub fn algorithms(&self) -> Vec<DigestAlgorithm> {
        let named = |algorithm: &DigestAlgorithm| {
            let has = |subject: &Subject| subject.digests.iter().any(|(found, _)| found == algorithm);
            self.subjects.iter().any(has)
        };
        DigestAlgorithm::ALL.into_iter().filter(named).collect()
    }
}

impl Subject {
    fn read(subject: JsonSubject) -> Result<Self, FormatError> {
        let mut digests = Vec::new();
        for (name, text) in &subject.digest {
            let Some(algorithm) = DigestAlgorithm::from_name(name) else { continue };
            let digest = digest_from_hex(algorithm, text).ok_or_else(|| {
                FormatError::new(format!("the {name} digest of {:?} is malformed", subject.name))
            })?;
            digests.push((algorithm, digest));
        }
        if digests.is_empty() {
            let message =
                format!("the subject {:?} has no digest of a hash function that counts", subject.name);
            return Err(FormatError::new(message));
        }
        Ok(Self { name: subject.name, digests })
    }

    /// Whether a content with these digests is this subject: all of the subject's digests are among
    /// them.
    ///
    /// ```
    /// use bulla_formats::DigestAlgorithm::{Blake3, Sha256};
    /// use bulla_formats::in_toto::Subject;
    ///
    /// let digests = vec![(Blake3, vec![1; 32])];
    /// let subject = Subject { name: "a".to_owned(), digests };
    /// assert!(subject.has(&[(Sha256, vec![2; 32]), (Blake3, vec![1; 32])]));
    /// assert!(!subject.has(&[(Sha256, vec![2; 32])]));
    /// ```
    pub fn has(&self, digests: &[(DigestAlgorithm, Vec<u8>)]) -> bool {
        self.digests.iter().all(|digest| digests.contains(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(payload: &str) -> Envelope {
        Envelope {
            payload_type: PAYLOAD_TYPE.to_owned(),
            payload: payload.as_bytes().to_vec(),
            signatures: Vec::new(),
        }
    }

    #[test]
    fn a_statement_is_read_as_it_was_written() {
        use DigestAlgorithm::{Blake3, Sha256, Sha512};
        let subjects: Vec<_> = ["a", "b/\u{e9}\"c"]
            .map(|name| Subject {
                name: name.to_owned(),
                digests: vec![(Blake3, vec![7; 32]), (Sha256, vec![0xab; 32]), (Sha512, vec![8; 64])],
            })
            .into();
        let predicate = Predicate::new("https://slsa.dev/provenance/v1", b" {\"n\": 1.500}\n").unwrap();
        let text = statement(&subjects, &predicate).unwrap();
        assert!(text.ends_with(r#""predicate":{"n": 1.500}}"#), "{text}");
        let parsed = InTotoStatement::parse(&envelope(&text)).unwrap();
        assert_eq!(parsed.subjects(), subjects);
        assert_eq!(parsed.predicate_type(), "https://slsa.dev/provenance/v1");
        assert_eq!(parsed.algorithms(), [Sha256, Sha512, Blake3]);
        assert!(statement(&[], &predicate).is_err());
        assert!(statement(&[subjects[0].clone(), subjects[0].clone()], &predicate).is_err());
    }

    #[test]
    fn what_says_nothing_certain_is_refused() {
        let digest = "00".repeat(32);
        let text = format!(
            r#"{{"_type":"{STATEMENT_TYPE}","subject":[{{"name":"a","digest":{{"sha1":"0","sha256":"{digest}"}}}}],"predicateType":"u:x","predicate":{{}}}}"#
        );
        let parsed = InTotoStatement::parse(&envelope(&text)).unwrap();
        assert_eq!(parsed.algorithms(), [DigestAlgorithm::Sha256]);
        InTotoStatement::parse(&envelope(&text.replace("/v1", "/v0.1"))).unwrap();
        let changes = [
            ("/v1", "/v2"),
            ("sha256", "sha224"),
            (&digest[..], "00"),
            (&digest[..2], "+0"),
            (r#""name":"a""#, r#""name":"a","name":"b""#),
            (r#""sha1":"0""#, r#""sha256":"0""#),
            (r#""predicateType":"u:x","#, ""),
        ];
        for (from, to) in changes {
            assert!(InTotoStatement::parse(&envelope(&text.replacen(from, to, 1))).is_err(), "{from} {to}");
        }
        let mut other = envelope(&text);
        other.payload_type = "application/json".to_owned();
        assert!(InTotoStatement::parse(&other).is_err());
    }
}
