//! Signatures of models: the specification of OpenSSF Model Signing 1.0, as the program
//! `model_signing` writes it (<https://github.com/sigstore/model-transparency>): a statement of
//! in-toto in a bundle of Sigstore, whose predicate lists the model's files.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::digests::{DigestAlgorithm, digest_from_hex, to_hex};
use crate::dsse::Envelope;
use crate::error::FormatError;
use crate::in_toto::{PAYLOAD_TYPE, STATEMENT_TYPE, read_payload};
use crate::json;

/// The predicate's type.
pub const PREDICATE_TYPE: &str = "https://model_signing/signature/v1.0";

/// What a model that is one file calls this file.
pub const WHOLE_MODEL: &str = ".";

/// What of git is not part of a model, unless its signer says otherwise.
pub const GIT_PATHS: [&str; 4] = [".git", ".gitattributes", ".github", ".gitignore"];

/// How a model's files are hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serialization {
    /// The hash function: SHA-256, BLAKE2b or BLAKE3.
    pub algorithm: DigestAlgorithm,
    /// The most bytes of a shard, if files are hashed in shards and not as a whole. Then files
    /// without content are not listed.
    pub shard_size: Option<u64>,
    /// Whether links to files count as these files. Otherwise a model has no links.
    pub links: ModelLinks,
    /// Files and folders that are not part of the model, as paths in it.
    pub ignored: Vec<String>,
}

/// What links in a model are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelLinks {
    /// A model has none.
    Refuse,
    /// A link to a file is that file.
    Follow,
}

/// A file of a model, or a shard of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelPart {
    /// The file's path in the model, with `/` between its parts.
    pub path: String,
    /// The bytes of the shard; None for the whole file.
    pub range: Option<Range<u64>>,
    /// The digest.
    pub digest: Vec<u8>,
}

/// The list of a model's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelManifest {
    /// The model's name, which is only for people.
    pub name: String,
    /// How the files were hashed.
    pub serialization: Serialization,
    /// The files or their shards.
    pub parts: Vec<ModelPart>,
}

impl Serialization {
    /// The algorithm's name of each part.
    fn part_algorithm(&self) -> String {
        match self.shard_size {
            None => self.algorithm.name().to_owned(),
            Some(size) => format!("{}-sharded-{size}", self.algorithm.name()),
        }
    }

    /// The parts of a file with `len` bytes that are hashed: None is the whole file.
    ///
    /// ```
    /// use bulla_formats::DigestAlgorithm;
    /// use bulla_formats::oms::{ModelLinks, Serialization};
    ///
    /// let algorithm = DigestAlgorithm::Sha256;
    /// let (links, ignored) = (ModelLinks::Refuse, Vec::new());
    /// let sharded = Serialization { algorithm, shard_size: Some(4), links, ignored };
    /// assert!(sharded.parts_of(10).eq([Some(0..4), Some(4..8), Some(8..10)]));
    /// assert_eq!(sharded.parts_of(0).next(), None);
    /// assert_eq!(sharded.parts_of(u64::MAX).next(), Some(Some(0..4)));
    /// let whole = Serialization { shard_size: None, ..sharded };
    /// assert!(whole.parts_of(10).eq([None]));
    /// ```
    pub fn parts_of(&self, len: u64) -> impl Iterator<Item = Option<Range<u64>>> + use<> {
        let size = self.shard_size;
        let count = size.map_or(1, |size| len.div_ceil(size));
        (0..count).map(move |index| {
            let start = index * size?;
            Some(start..len.min(start.saturating_add(size?)))
        })
    }

    /// Whether a path in the model is not part of it.
    ///
    /// ```
    /// use bulla_formats::DigestAlgorithm;
    /// use bulla_formats::oms::{ModelLinks, Serialization};
    ///
    /// let ignored = vec![".git".to_owned()];
    /// let algorithm = DigestAlgorithm::Blake3;
    /// let whole = Serialization { algorithm, shard_size: None, links: ModelLinks::Refuse, ignored };
    /// assert!(whole.ignores(".git") && whole.ignores(".git/HEAD"));
    /// assert!(!whole.ignores(".gitattributes") && !whole.ignores("a/.git"));
    /// ```
    pub fn ignores(&self, path: &str) -> bool {
        let is_in = |ignored: &String| {
            path.strip_prefix(&ignored[..]).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.ignored.iter().any(is_in)
    }
}

/// Whether a text is a path in a folder in its only form: no empty parts, no `.` and no `..`.
///
/// ```
/// use bulla_formats::oms::is_inner_path;
///
/// assert!(is_inner_path("a/b.bin"));
/// assert!(!is_inner_path("../b") && !is_inner_path("/b") && !is_inner_path("a//b"));
/// ```
pub fn is_inner_path(path: &str) -> bool {
    !path.contains('\0') && path.split('/').all(|part| !["", ".", ".."].contains(&part))
}

/// The order of `model_signing`: by the parts of the path, then by the place in the file.
fn order(left: &ModelPart, right: &ModelPart) -> Ordering {
    let start = |part: &ModelPart| part.range.as_ref().map(|range| range.start);
    left.path.split('/').cmp(right.path.split('/')).then_with(|| start(left).cmp(&start(right)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonStatement {
    #[serde(rename = "_type")]
    statement_type: String,
    subject: Vec<JsonSubject>,
    predicate_type: String,
    predicate: JsonPredicate,
}

#[derive(Deserialize)]
struct JsonSubject {
    name: String,
    digest: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct JsonPredicate {
    serialization: JsonSerialization,
    resources: Vec<JsonResource>,
}

#[derive(Deserialize)]
struct JsonSerialization {
    method: String,
    hash_type: String,
    allow_symlinks: bool,
    #[serde(default)]
    ignore_paths: Vec<String>,
    #[serde(default)]
    shard_size: Option<f64>,
}

#[derive(Deserialize)]
struct JsonResource {
    name: String,
    algorithm: String,
    digest: String,
}

impl JsonSerialization {
    fn read(self) -> Result<Serialization, FormatError> {
        let unknown =
            |what: &str, name: &str| FormatError::new(format!("it has an unknown {what}: {name:?}"));
        let algorithm = match &self.hash_type[..] {
            "sha256" => DigestAlgorithm::Sha256,
            "blake2b" | "blake2" => DigestAlgorithm::Blake2b,
            "blake3" => DigestAlgorithm::Blake3,
            other => return Err(unknown("hash function", other)),
        };
        let shard_size = match (&self.method[..], self.shard_size) {
            ("files", _) => None,
            ("shards", Some(size)) if size >= 1.0 && size <= MAX_SHARD_SIZE as f64 && size.fract() == 0.0 => {
                Some(size as u64)
            }
            ("shards", _) => return Err(FormatError::new("it has no size of shards, or an impossible one")),
            (other, _) => return Err(unknown("method", other)),
        };
        let links = if self.allow_symlinks { ModelLinks::Follow } else { ModelLinks::Refuse };
        Ok(Serialization { algorithm, shard_size, links, ignored: self.ignore_paths })
    }
}

/// Every integer up to here is a number of JSON.
const MAX_SHARD_SIZE: u64 = 1 << 53;

impl ModelManifest {
    /// Whether an envelope says that it lists a model. Nothing of that is verified.
    pub fn is_in(envelope: &Envelope) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Typed {
            predicate_type: String,
        }
        envelope.payload_type() == PAYLOAD_TYPE
            && serde_json::from_slice::<Typed>(envelope.payload())
                .is_ok_and(|found| found.predicate_type.starts_with("https://model_signing/"))
    }

    /// Writes the statement, and sorts the parts as it needs them.
    ///
    /// # Errors
    /// There is no part.
    pub fn statement(&mut self) -> Result<String, FormatError> {
        if self.parts.is_empty() {
            return Err(FormatError::new("the model has no files"));
        }
        self.parts.sort_by(order);
        let Serialization { algorithm, shard_size, links, ignored } = &self.serialization;
        let method = match shard_size {
            None => r#""method":"files""#.to_owned(),
            Some(size) => format!(r#""method":"shards","shard_size":{size}"#),
        };
        let ignored = match &ignored[..] {
            [] => String::new(),
            paths => {
                let paths: Vec<_> = paths.iter().map(|path| json::quoted(path)).collect();
                format!(r#","ignore_paths":[{}]"#, paths.join(","))
            }
        };
        let part_algorithm = self.serialization.part_algorithm();
        let part = |part: &ModelPart| {
            let name = match &part.range {
                None => json::quoted(&part.path),
                Some(Range { start, end }) => json::quoted(&format!("{}:{start}:{end}", part.path)),
            };
            let digest = to_hex(&part.digest);
            format!(r#"{{"name":{name},"algorithm":"{part_algorithm}","digest":"{digest}"}}"#)
        };
        let parts: Vec<_> = self.parts.iter().map(part).collect();
        Ok(format!(
            r#"{{"_type":"{STATEMENT_TYPE}","subject":[{{"name":{},"digest":{{"sha256":"{}"}}}}],"predicateType":"{PREDICATE_TYPE}","predicate":{{"serialization":{{{method},"hash_type":"{}","allow_symlinks":{}{ignored}}},"resources":[{}]}}}}"#,
            json::quoted(&self.name),
            to_hex(&self.root_digest()),
            algorithm.name(),
            *links == ModelLinks::Follow,
            parts.join(",")
        ))
    }

    /// The SHA-256 digest of all digests, which names the model as a whole.
    fn root_digest(&self) -> Vec<u8> {
        let mut hasher = Sha256::new();
        self.parts.iter().for_each(|part| hasher.update(&part.digest));
        hasher.finalize().to_vec()
    }

    /// Reads the list in an envelope. Whether the envelope's signature is valid is another
    /// question.
    ///
    /// # Errors
    /// The statement is of another type, is malformed or has a member twice; a path leaves the
    /// model or is listed twice; the digest of all digests is another one.
    pub fn parse(envelope: &Envelope) -> Result<Self, FormatError> {
        let statement: JsonStatement = read_payload(envelope)?;
        if statement.statement_type != STATEMENT_TYPE || statement.predicate_type != PREDICATE_TYPE {
            let message =
                format!("it is not the list of a model of version 1.0, but {:?}", statement.predicate_type);
            return Err(FormatError::new(message));
        }
        let [subject] = &statement.subject[..] else {
            return Err(FormatError::new("it is not about exactly one model"));
        };
        let serialization = statement.predicate.serialization.read()?;
        let mut parts = Vec::with_capacity(statement.predicate.resources.len());
        for resource in &statement.predicate.resources {
            parts.push(resource.read(&serialization)?);
        }
        check_unique(&parts)?;
        let manifest = Self { name: subject.name.clone(), serialization, parts };
        let root =
            subject.digest.get("sha256").and_then(|text| digest_from_hex(DigestAlgorithm::Sha256, text));
        if root != Some(manifest.root_digest()) {
            return Err(FormatError::new("the digest of the model is not that of its list"));
        }
        Ok(manifest)
    }
}

impl JsonResource {
    fn read(&self, serialization: &Serialization) -> Result<ModelPart, FormatError> {
        let malformed = || FormatError::new(format!("the entry {:?} is malformed", self.name));
        let (path, range) = match serialization.shard_size {
            None => (&self.name[..], None),
            Some(_) => {
                let mut parts = self.name.rsplitn(3, ':');
                let mut number = || parts.next().and_then(|text| text.parse::<u64>().ok());
                let (end, start) = (number().ok_or_else(malformed)?, number().ok_or_else(malformed)?);
                (parts.next().ok_or_else(malformed)?, Some(start..end))
            }
        };
        let is_path = path == WHOLE_MODEL || is_inner_path(path);
        if !is_path || self.algorithm != serialization.part_algorithm() {
            return Err(malformed());
        }
        let digest = digest_from_hex(serialization.algorithm, &self.digest).ok_or_else(malformed)?;
        Ok(ModelPart { path: path.to_owned(), range, digest })
    }
}

fn check_unique(parts: &[ModelPart]) -> Result<(), FormatError> {
    let mut known = HashSet::new();
    match parts.iter().find(|part| !known.insert((&part.path, &part.range))) {
        Some(part) => Err(FormatError::new(format!("the entry {:?} is there twice", part.path))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(shard_size: Option<u64>) -> ModelManifest {
        let range = |start| shard_size.map(|size| start..start + size);
        let part = |path: &str, start, byte| ModelPart {
            path: path.to_owned(),
            range: range(start),
            digest: vec![byte; 32],
        };
        ModelManifest {
            name: "a \"model\"".to_owned(),
            serialization: Serialization {
                algorithm: DigestAlgorithm::Blake3,
                shard_size,
                links: ModelLinks::Follow,
                ignored: vec![".git".to_owned()],
            },
            parts: vec![part("a.b", 0, 1), part("a/c", 30, 2), part("a/b", 4, 3)],
        }
    }

    fn envelope(payload: String) -> Envelope {
        let payload_type = PAYLOAD_TYPE.to_owned();
        Envelope { payload_type, payload: payload.into_bytes(), signatures: Vec::new() }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        for size in [None, Some(16)] {
            let mut manifest = manifest(size);
            let text = manifest.statement().unwrap();
            let paths: Vec<_> = manifest.parts.iter().map(|part| &part.path[..]).collect();
            // The parts of paths are compared, and not their characters.
            assert_eq!(paths, ["a/b", "a/c", "a.b"]);
            let envelope = envelope(text);
            assert!(ModelManifest::is_in(&envelope));
            assert_eq!(ModelManifest::parse(&envelope).unwrap(), manifest);
        }
    }

    #[test]
    fn lists_that_contradict_themselves_are_refused() {
        let text = manifest(Some(16)).statement().unwrap();
        let changes = [
            ("a/b:4:20", "../b:4:20"),
            ("a/b:4:20", "/b:4:20"),
            ("a/b:4:20", "a//b:4:20"),
            ("a/b:4:20", "a/b:-4:20"),
            ("a/b:4:20", "a/b"),
            ("a/c:30:46", "a/b:4:20"),
            ("blake3-sharded-16", "blake3"),
            ("0303", "0304"),
            (r#""shard_size":16"#, r#""shard_size":0"#),
            (r#""shard_size":16"#, r#""shard_size":1.5"#),
            (r#""shard_size":16,"#, ""),
            ("\"shards\"", "\"pieces\""),
            (r#""hash_type":"blake3""#, r#""hash_type":"md5""#),
            ("signature/v1.0", "signature/v2.0"),
            (r#""allow_symlinks":true"#, r#""allow_symlinks":true,"allow_symlinks":false"#),
        ];
        for (from, to) in changes {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            assert!(ModelManifest::parse(&envelope(changed)).is_err(), "{from} {to}");
        }
    }
}
