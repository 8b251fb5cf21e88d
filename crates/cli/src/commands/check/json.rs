//! Lines of `bulla sum --json`.

use base64ct::{Base64, Encoding as _};
use bulla_sums::{Algorithm, ChecksumLine, ParsedLine, Subject, TREE_TAG};
use serde::Deserialize;

#[derive(Deserialize)]
struct JsonLine {
    path: String,
    path_base64: Option<String>,
    algorithm: Option<String>,
    digest: Option<String>,
}

pub(super) fn parse(line: &[u8]) -> ParsedLine {
    match read(line) {
        Ok(line) => ParsedLine::Checksum(line),
        Err(reason) => ParsedLine::Malformed(reason),
    }
}

fn read(text: &[u8]) -> Result<ChecksumLine, &'static str> {
    let line: JsonLine =
        serde_json::from_slice(text).map_err(|_| "the line is not one of `bulla sum --json`")?;
    let hex = line.digest.ok_or("the line has no digest: the file could not be read")?;
    let (algorithm, subject) = match line.algorithm.as_deref() {
        None => (Algorithm::Blake3, Subject::File),
        Some(TREE_TAG) => (Algorithm::Blake3, Subject::Folder),
        Some(name) => (Algorithm::by_tag(name).ok_or("the hash function is unknown")?, Subject::File),
    };
    let digest =
        hex::decode(&hex).map_err(|_| "the checksum does not have an even number of hexadecimal digits")?;
    let is_whole = algorithm != Algorithm::Blake3 || digest.len() == algorithm.default_length();
    if !is_whole || !algorithm.has_length(digest.len() as u64) {
        return Err("the checksum is not as long as one of its hash function");
    }
    let name = match line.path_base64 {
        Some(bytes) => Base64::decode_vec(&bytes).map_err(|_| "the path is not in base64")?,
        None => line.path.clone().into_bytes(),
    };
    if name.is_empty() || name.contains(&0) {
        return Err("the name is empty, or contains a null character");
    }
    let shown = crate::file_name::shown(&bulla_sums::path_from(&name));
    let start = text.windows(hex.len()).position(|part| part == hex.as_bytes());
    let start = start.ok_or("the checksum is escaped")?;
    let digits = start..start + hex.len();
    Ok(ChecksumLine { algorithm, alternative: None, subject, digits, digest, shown, name })
}
