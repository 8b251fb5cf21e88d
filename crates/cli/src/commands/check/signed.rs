//! Lists whose signature is verified before anything in them counts.

use crate::args::CheckArgs;
use crate::commands::foreign;
use crate::commands::verify::{AnySignature, name_finding, open_signature, read_signature};
use crate::error::{Error, Result};
use crate::files::STDIN;
use crate::files::read::{Links, ReadError, Source};
use crate::findings::{Finding, Problem, Report, Signed};
use crate::trust::Trust;
use bulla_files::escape_path;
use bulla_formats::{ContentHasher, Coverage, ForeignSignature, MAX_WHOLE_LEN};
use bulla_kms::{SignatureFile, StatementKind};
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

/// The signature of a list, and whose it may be.
pub(super) struct ListSignature {
    path: PathBuf,
    trust: Trust,
    any_name: bool,
}

/// A list and what its signature says.
pub(super) struct SignedList {
    /// Where the list is: in its own file, or in that of the signature.
    pub(super) path: PathBuf,
    pub(super) report: Report,
    /// The bytes that were signed. They are read once, so nobody can exchange them in between.
    pub(super) content: Vec<u8>,
}

impl ListSignature {
    pub(super) fn of(args: &CheckArgs) -> Result<Option<Self>> {
        let Some(path) = args.signature.clone() else { return Ok(None) };
        if args.files.len() > 1 {
            return Err(Error::new("usage", "--signature is the signature of one list: name one FILE"));
        }
        Ok(Some(Self { path, trust: Trust::new(&args.trust)?, any_name: args.any_name }))
    }

    /// Reads the list, and verifies it. `files` are the lists that the user names.
    pub(super) fn verify(&self, files: &[PathBuf]) -> Result<SignedList> {
        let list = files.first().filter(|list| list.as_path() != Path::new(STDIN));
        let mut reader = BufReader::with_capacity(1 << 16, open_signature(&self.path, &self.path)?);
        let unchecked = |finding, content| SignedList {
            path: list.unwrap_or(&self.path).clone(),
            report: Report::from(finding),
            content,
        };
        let signature = match read_signature(&self.path, &mut reader, None) {
            Ok(signature) => signature,
            Err(finding) => return Ok(unchecked(finding, Vec::new())),
        };
        let embedded = match (&signature, files) {
            (AnySignature::Foreign(ForeignSignature::Signify(file)), []) => {
                file.message().map(<[u8]>::to_vec)
            }
            _ => None,
        };
        let content = match embedded {
            Some(content) => content,
            None => read_list(list.map(PathBuf::as_path))?,
        };
        let verified = match &signature {
            AnySignature::Bulla(file) => {
                let list = list.map_or(Path::new(STDIN), PathBuf::as_path);
                self.verify_bulla(file, list, &content)
            }
            AnySignature::Foreign(file) => {
                let name = list.and_then(|list| list.file_name()).filter(|_| !self.any_name);
                foreign::verify(file, &self.trust, name, |coverage| cover(coverage, &content))
            }
        };
        Ok(match verified {
            Ok(signed) => {
                let mut list = unchecked(Finding::Ok, content);
                list.report.signed = Some(signed);
                list
            }
            Err(finding) => unchecked(finding, Vec::new()),
        })
    }

    fn verify_bulla(&self, file: &SignatureFile, list: &Path, content: &[u8]) -> Result<Signed, Finding> {
        self.trust.check(file)?;
        if file.kind != StatementKind::File {
            let reason = format!("it signs a {}, not a file", file.kind);
            return Err(Problem::BadSignature.because(reason));
        }
        if file.size != content.len() as u64 || file.digest != bulla_blake3::hash(content) {
            return Err(Problem::Changed.because("its content is not what was signed"));
        }
        match name_finding(file, list, self.any_name) {
            Finding::Ok => Ok(self.trust.signed(file)),
            found => Err(found),
        }
    }
}

fn cover(coverage: Coverage, content: &[u8]) -> Result<Vec<u8>, Finding> {
    let mut hasher = ContentHasher::new(coverage);
    hasher.update(content);
    hasher.finish().map_err(|error| Error::new("file_too_large", error.to_string()).into())
}

/// Reads all of a list, or of standard input.
fn read_list(path: Option<&Path>) -> Result<Vec<u8>> {
    let about = |error: Error| error.about(path.map_or_else(|| "standard input".to_owned(), escape_path));
    let source = match path {
        Some(path) => Source::open_file(path, Links::Follow),
        None => Source::stdin().map_err(ReadError::Io),
    };
    let source = source.map_err(|error| about(error.into()))?;
    let mut content = Vec::new();
    let read = source.into_file().take(MAX_WHOLE_LEN as u64 + 1).read_to_end(&mut content);
    read.map_err(|error| about(Error::io("cannot read", &error)))?;
    if content.len() > MAX_WHOLE_LEN {
        let message = "is too long: a list with a signature has at most 1 GiB";
        return Err(about(Error::new("file_too_large", message)));
    }
    Ok(content)
}
