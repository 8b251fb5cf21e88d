//! What a verification found, for people and for programs.

use crate::args::ReportArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::name::shown;
use crate::output::{JsonError, JsonPath, Out};
use crate::style;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// What is wrong, as one of a fixed set of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Problem {
    Changed,
    Missing,
    Unexpected,
    WrongKey,
    UnknownKey,
    UnknownVersion,
    MalformedSignature,
    BadSignature,
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
            Problem::WrongKey => "wrong key",
            Problem::UnknownKey => "unknown key",
            Problem::UnknownVersion => "unknown version",
            Problem::MalformedSignature => "malformed signature",
            Problem::BadSignature => "bad signature",
        })
    }
}

/// What was found of one thing: a path, or a file in a folder.
#[derive(Debug)]
pub(crate) enum Finding {
    /// It is what was signed.
    Ok,
    /// It is not.
    Problem(Problem, String),
    /// That could not be found out.
    Unchecked(Error),
}

impl From<Error> for Finding {
    fn from(error: Error) -> Self {
        Finding::Unchecked(error)
    }
}

impl Finding {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Finding::Ok => Exit::Ok,
            Finding::Problem(..) => Exit::Failed,
            Finding::Unchecked(_) => Exit::Trouble,
        }
    }
}

/// A signature that holds: who made it and when. The values are ready to print.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Signed {
    /// The key version's id; for minisign the number of the key.
    pub(crate) key: String,
    /// The key as its owner calls it.
    #[serde(skip)]
    pub(crate) by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signed_at: Option<String>,
    pub(crate) comment: String,
}

/// A file in a folder that is not as it was signed.
pub(crate) struct EntryFinding {
    /// Relative to the folder.
    pub(crate) path: PathBuf,
    pub(crate) finding: Finding,
}

/// All that was found of one path.
pub(crate) struct Report {
    pub(crate) finding: Finding,
    /// The signature, if it is by a trusted key.
    pub(crate) signed: Option<Signed>,
    /// For a folder, everything in it that is not as it was signed, sorted.
    pub(crate) entries: Vec<EntryFinding>,
    /// For a folder, the number of files and links that are as they were signed.
    pub(crate) intact: Option<u64>,
}

impl From<Finding> for Report {
    fn from(finding: Finding) -> Self {
        Self { finding, signed: None, entries: Vec::new(), intact: None }
    }
}

impl Report {
    pub(crate) fn exit(&self) -> Exit {
        self.entries.iter().fold(self.finding.exit(), |exit, entry| exit.and(entry.finding.exit()))
    }

    /// Prints what was found of `path`.
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
        match &self.finding {
            Finding::Ok if args.quiet => Ok(()),
            Finding::Ok => {
                let good = out.style(style::GOOD);
                out.line(format_args!("{}: {good}OK{good:#}{}", shown(path), self.particulars()))
            }
            finding => print_finding(out, path, finding),
        }
    }

    /// Who signed it and when, in brackets.
    fn particulars(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.intact.map(|files| format!("{files} file{}", if files == 1 { "" } else { "s" })));
        if let Some(signed) = &self.signed {
            let at = signed.signed_at.as_ref().map_or_else(String::new, |at| format!(" {at}"));
            parts.push(format!("signed{at} by {}", signed.by));
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
            entries: self.intact.map(|_| {
                self.entries.iter().map(|entry| JsonFinding::new(&entry.path, &entry.finding)).collect()
            }),
        }
    }
}

fn print_finding(out: &mut Out, path: &Path, finding: &Finding) -> Result<()> {
    match finding {
        Finding::Problem(problem, reason) => {
            let bad = out.style(style::BAD);
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            out.line(format_args!("{}: {bad}{problem}{bad:#}{reason}", shown(path)))
        }
        // Nothing is printed of what is as it should be, and what could not be checked stands on standard error.
        Finding::Ok | Finding::Unchecked(_) => Ok(()),
    }
}

/// What `--json` prints for a path.
#[derive(Serialize)]
struct JsonReport<'a> {
    #[serde(flatten)]
    finding: JsonFinding,
    #[serde(flatten)]
    signed: Option<&'a Signed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intact: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<JsonFinding>>,
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
