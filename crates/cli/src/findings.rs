//! The findings of a verification, for people and for programs.

use crate::args::{ReportArgs, SignatureFormat};
use crate::color;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::{JsonError, JsonPath, Out};
use bulla_files::escape_path;
use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A kind of problem, as one of a fixed set of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Problem {
    Changed,
    Missing,
    Unexpected,
    WrongName,
    WrongKey,
    UnknownKey,
    UnknownVersion,
    MalformedSignature,
    BadSignature,
    WrongNamespace,
    Expired,
}

impl Problem {
    /// The problem with its reason, which completes `PATH: PROBLEM (...)`.
    pub(crate) fn because(self, reason: impl Into<String>) -> Finding {
        Finding::Problem(self, reason.into())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Problem::Changed => "changed",
            Problem::Missing => "missing",
            Problem::Unexpected => "unexpected",
            Problem::WrongName => "wrong name",
            Problem::WrongKey => "wrong key",
            Problem::UnknownKey => "unknown key",
            Problem::UnknownVersion => "unknown version",
            Problem::MalformedSignature => "malformed signature",
            Problem::BadSignature => "bad signature",
            Problem::WrongNamespace => "wrong namespace",
            Problem::Expired => "expired",
        })
    }
}

/// The finding about one path, or about one file in a folder.
#[derive(Debug)]
pub(crate) enum Finding {
    /// The content is what was signed.
    Ok,
    /// There is a problem.
    Problem(Problem, String),
    /// It could not be checked.
    Unchecked(Error),
}

impl From<Error> for Finding {
    fn from(error: Error) -> Self {
        Finding::Unchecked(error)
    }
}

impl Finding {
    /// The same, where an error names the path that could not be checked.
    pub(crate) fn about(self, path: &Path) -> Self {
        match self {
            Finding::Unchecked(error) => Finding::Unchecked(error.about(escape_path(path))),
            found => found,
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Finding::Ok => Exit::Ok,
            Finding::Problem(..) => Exit::Mismatch,
            Finding::Unchecked(_) => Exit::Error,
        }
    }
}

/// A valid signature: its signer and time. The values are ready to print.
#[derive(Debug, Serialize)]
pub(crate) struct Signed {
    /// The format of the signature file.
    #[serde(serialize_with = "serialize_name")]
    pub(crate) format: SignatureFormat,
    /// The key version's id, if it is known; for minisign and signify the key's number; for OpenSSH
    /// the key's fingerprint; under a certificate the certificate's fingerprint; else the public
    /// key.
    pub(crate) key: String,
    /// For OpenSSH, the principal that the list of allowed signers gives; under a certificate, whom
    /// it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) principal: Option<String>,
    /// Who knew the signer, if a certificate says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) issuer: Option<String>,
    /// The owner's name for the key.
    #[serde(skip)]
    pub(crate) by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signed_at: Option<String>,
    pub(crate) comment: String,
    /// The name that the signature covers; only signatures of files in bulla's own format cover
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Whether the file has another name now, or none.
    #[serde(skip)]
    pub(crate) name_differs: bool,
    /// The type of what a statement of in-toto says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) predicate_type: Option<String>,
    /// What the signature file has besides its signature, and bulla verified.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) verified: Vec<String>,
    /// What the signature file has and bulla did not verify.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_verified: Vec<String>,
}

impl Signed {
    /// A signature of which nothing but its signer is known.
    pub(crate) fn new(format: SignatureFormat, key: String, by: String) -> Self {
        Self {
            format,
            key,
            principal: None,
            issuer: None,
            by,
            signed_at: None,
            comment: String::new(),
            name: None,
            name_differs: false,
            predicate_type: None,
            verified: Vec::new(),
            not_verified: Vec::new(),
        }
    }
}

fn serialize_name<S: Serializer>(
    format: &SignatureFormat,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(format.name())
}

/// A file in a folder that differs from what was signed.
pub(crate) struct EntryFinding {
    /// The path relative to the folder.
    pub(crate) path: PathBuf,
    pub(crate) finding: Finding,
}

/// All findings about one path.
pub(crate) struct Report {
    /// For a folder, it counts what is in `entries`, and has the exit status of the worst of them.
    pub(crate) finding: Finding,
    /// The signature, if a trusted key made it.
    pub(crate) signed: Option<Signed>,
    /// For a folder, everything in it that differs from what was signed, sorted.
    pub(crate) entries: Vec<EntryFinding>,
    /// For a folder, the number of unchanged files and links.
    pub(crate) intact: Option<u64>,
    /// For a folder, how many of them were not read, because they have not changed since bulla read
    /// them.
    pub(crate) kept: u64,
    /// For a folder, if somebody wants to know: the size and the paths of each group of files with
    /// one content.
    pub(crate) duplicates: Option<Vec<(u64, Vec<PathBuf>)>>,
    /// For a folder, the patterns of what was left out, ready to print.
    pub(crate) left_out: Vec<String>,
    /// The bytes that were verified, if not the whole file was.
    pub(crate) range: Option<Range<u64>>,
}

impl From<Finding> for Report {
    fn from(finding: Finding) -> Self {
        Self {
            finding,
            signed: None,
            entries: Vec::new(),
            intact: None,
            kept: 0,
            duplicates: None,
            left_out: Vec::new(),
            range: None,
        }
    }
}

impl Report {
    /// The same report about a folder, unless everything in it was left out.
    ///
    /// # Errors
    /// Nothing was verified, which must not look like success.
    pub(crate) fn of_something(self, folder: &Path) -> Result<Self> {
        if self.intact != Some(0) || !self.entries.is_empty() || self.left_out.is_empty() {
            return Ok(self);
        }
        let message = format!("nothing was verified: without {}, there is no file", self.left_out.join(" "));
        let hint = "leave out less with --exclude and --ignore-file, or sign the folder again";
        Err(Error::new("nothing_verified", message).about(escape_path(folder)).hint(hint))
    }

    /// Prints the findings about `path`.
    pub(crate) fn print(&self, out: &mut Out, path: &Path, args: ReportArgs) -> Result<()> {
        for entry in &self.entries {
            if let Finding::Unchecked(error) = &entry.finding {
                error.print();
            }
        }
        if let Finding::Unchecked(error) = &self.finding {
            error.print();
        }
        if args.json {
            return out.json(&self.json(path));
        }
        for entry in &self.entries {
            print_finding(out, &path.join(&entry.path), &entry.finding)?;
        }
        for (size, paths) in self.duplicates.iter().flatten() {
            let bytes = if *size == 1 { "byte" } else { "bytes" };
            out.line(format_args!(
                "{}: {} files with the same {size} {bytes}:",
                escape_path(path),
                paths.len()
            ))?;
            paths
                .iter()
                .try_for_each(|copy| out.line(format_args!("  {}", escape_path(&path.join(copy)))))?;
        }
        match &self.finding {
            Finding::Ok if args.quiet => Ok(()),
            Finding::Ok => {
                let good = out.style(color::GOOD);
                out.line(format_args!("{}: {good}OK{good:#}{}", escape_path(path), self.particulars()))
            }
            finding => print_finding(out, path, finding),
        }
    }

    /// The signer and the time, in brackets.
    fn particulars(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.intact.map(|files| format!("{files} file{}", if files == 1 { "" } else { "s" })));
        if self.kept > 0 {
            parts.push(format!("{} not read", self.kept));
        }
        if !self.left_out.is_empty() {
            parts.push(format!("without {}", self.left_out.join(" ")));
        }
        parts.extend(self.range.as_ref().map(|Range { start, end }| format!("bytes {start}..{end}")));
        if let Some(signed) = &self.signed {
            let at = signed.signed_at.as_ref().map_or_else(String::new, |at| format!(" {at}"));
            parts.push(match signed.format {
                SignatureFormat::Bulla => format!("signed{at} by {}", signed.by),
                format => format!("{} signature{at} by {}", format.name(), signed.by),
            });
            parts.extend(
                signed
                    .name
                    .as_ref()
                    .filter(|_| signed.name_differs)
                    .map(|name| format!("signed name: {name}")),
            );
            parts.extend(signed.predicate_type.as_ref().map(|found| format!("predicate: {found}")));
            parts.extend(signed.verified.iter().cloned());
            parts.extend(signed.not_verified.iter().map(|part| format!("not verified: {part}")));
            if !signed.comment.is_empty() {
                parts.push(format!("comment: {}", signed.comment));
            }
        }
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
    }

    fn json<'a>(&'a self, path: &Path) -> JsonReport<'a> {
        JsonReport {
            finding: JsonFinding::new(path, &self.finding),
            signed: self.signed.as_ref(),
            intact: self.intact,
            kept: Some(self.kept).filter(|kept| *kept > 0),
            range: self.range.as_ref().map(|Range { start, end }| [*start, *end]),
            left_out: &self.left_out,
            duplicates: self.duplicates.as_ref().map(|groups| groups.iter().map(JsonGroup::from).collect()),
            entries: self.intact.map(|_| {
                self.entries.iter().map(|entry| JsonFinding::new(&entry.path, &entry.finding)).collect()
            }),
        }
    }
}

fn print_finding(out: &mut Out, path: &Path, finding: &Finding) -> Result<()> {
    match finding {
        Finding::Problem(problem, reason) => {
            let bad = out.style(color::BAD);
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            out.line(format_args!("{}: {bad}{problem}{bad:#}{reason}", escape_path(path)))
        }
        // Nothing is printed about unchanged files. Errors about files that could not be checked
        // are on standard error.
        Finding::Ok | Finding::Unchecked(_) => Ok(()),
    }
}

/// The output of `--json` for a path.
#[derive(Serialize)]
struct JsonReport<'a> {
    #[serde(flatten)]
    finding: JsonFinding,
    #[serde(flatten)]
    signed: Option<&'a Signed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intact: Option<u64>,
    /// How many of them were not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<u64>,
    /// The first of the verified bytes, and the one after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[u64; 2]>,
    /// The patterns of what was left out.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    left_out: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicates: Option<Vec<JsonGroup>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<JsonFinding>>,
}

/// Files of a folder that have one content.
#[derive(Serialize)]
struct JsonGroup {
    size: u64,
    files: Vec<JsonPath>,
}

impl From<&(u64, Vec<PathBuf>)> for JsonGroup {
    fn from((size, paths): &(u64, Vec<PathBuf>)) -> Self {
        Self { size: *size, files: paths.iter().map(|path| path.as_path().into()).collect() }
    }
}

#[derive(Serialize)]
struct JsonFinding {
    #[serde(flatten)]
    path: JsonPath,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonError>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Status {
    Problem(Problem),
    Other(&'static str),
}

impl JsonFinding {
    fn new(path: &Path, finding: &Finding) -> Self {
        let (status, reason, error) = match finding {
            Finding::Ok => (Status::Other("ok"), None, None),
            Finding::Problem(problem, reason) => {
                (Status::Problem(*problem), Some(reason.clone()).filter(|reason| !reason.is_empty()), None)
            }
            Finding::Unchecked(error) => (Status::Other("unchecked"), None, Some(error.into())),
        };
        Self { path: path.into(), status, reason, error }
    }
}
