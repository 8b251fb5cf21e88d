//! `bulla verify`: verifies files and folders against their signatures.

use super::attested::{ListedContent, ListedJob};
use super::foreign::{self, MAX_FILE_LEN, covered};
use super::walking::exclusions;
use crate::args::{ByteRange, SignatureFormat, VerifyArgs};
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::outboard::{self, Verdict};
use crate::files::read::in_order;
use crate::files::read::{Links, ReadError, ReadMode, Source, is_large, total_of};
use crate::files::{STDIN, describe, sidecar};
use crate::findings::{Finding, Problem, Report};
use crate::folder::{self, Selection};
use crate::idle;
use crate::output::Out;
use crate::progress::{Progress, Total};
use crate::trust::Trust;
use bulla_blake3::Hash;
use bulla_files::escape_path;
use bulla_formats::sigstore::MAX_BUNDLE_LEN;
use bulla_formats::{Coverage, ForeignFormat, ForeignSignature, MAX_SIGNATURE_LEN};
use bulla_kms::signature::manifest::{self, EntryContent, Exclusion, ManifestEntry, ManifestPath};
use bulla_kms::{Code, KmsError, SignatureFile, StatementKind};
use bulla_sums::path_from;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// The longest line of a manifest: spec/signature.md.
const LONGEST_LINE: u64 = 64 << 10;

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit> {
    if args.signature.is_some() && args.paths.len() > 1 {
        return Err(Error::new(
            "usage",
            "--signature names one signature file, so only one PATH can be given",
        ));
    }
    check_range(args)?;
    let only = only(args)?;
    let exclusions = exclusions(&args.exclude)?;
    let trust = Trust::new(&args.trust)?;
    idle::set_priority(args.work.priority())?;
    let progress = Progress::of(total_of(&args.paths, args.work.progress), args.work.progress);
    let work = |path: &PathBuf, read_mode| {
        let job =
            Job { path, trust: &trust, only: &only, exclusions: &exclusions, read_mode, progress: &progress };
        job.verify(args).unwrap_or_else(Report::from)
    };
    let mut out = Out::stdout();
    let mut exit = Exit::Ok;
    let mut counts = [0_u64; 3];
    in_order(
        &args.paths,
        args.work.threads(),
        |path| is_large(path),
        work,
        |path, report| {
            let status = report.finding.exit();
            counts[status as usize] += 1;
            exit = exit.and(status);
            progress.suspend(|| {
                report.print(&mut out, path, args.report)?;
                out.flush_sometimes()
            })
        },
    )?;
    if args.paths.len() > 1 && !args.report.json && !(args.report.quiet && exit == Exit::Ok) {
        let [good, failed, unchecked] = counts;
        out.line(format_args!("{good} verified, {failed} failed, {unchecked} not checked"))?;
    }
    out.flush()?;
    Ok(exit)
}

/// A path to verify.
struct Job<'a> {
    path: &'a Path,
    trust: &'a Trust,
    /// Of a folder, what to verify; everything, if there is nothing.
    only: &'a [ManifestPath],
    /// What is left out of a folder, besides what its signature says.
    exclusions: &'a [Exclusion],
    read_mode: ReadMode,
    progress: &'a Progress,
}

/// The path of the signature for `path`.
fn signature_path(path: &Path, args: &VerifyArgs) -> Result<PathBuf> {
    match &args.signature {
        Some(signature) => Ok(signature.clone()),
        None if path == Path::new(STDIN) => Err(Error::new(
            "usage",
            "to verify standard input, name the signature file with --signature FILE",
        )),
        None => {
            let extensions = match args.format {
                Some(format) => vec![format.extension()],
                None => SignatureFormat::ALL.map(SignatureFormat::extension).to_vec(),
            };
            let first = sidecar(path, extensions[0])?;
            let others = extensions.iter().skip(1).map(|extension| sidecar(path, extension));
            let existing = std::iter::once(Ok(first.clone()))
                .chain(others)
                .find(|found| found.as_ref().is_ok_and(|found| found.symlink_metadata().is_ok()));
            existing.unwrap_or(Ok(first))
        }
    }
}

/// Opens a signature file, and gives a hint if there is none. It must be a regular file, so that
/// opening never waits.
pub(super) fn open_signature(path: &Path, signature: &Path) -> Result<File> {
    let opened = Source::open_file(signature, Links::Follow).map_err(|error| {
        let about = |error: Error| error.about(escape_path(path));
        match error {
            ReadError::Io(error) if error.kind() == io::ErrorKind::NotFound => {}
            ReadError::Io(error) => {
                return about(Error::io(
                    &format!("cannot read its signature {}", escape_path(signature)),
                    &error,
                ));
            }
            ReadError::NotAFile(kind) => {
                let message = format!("its signature {} is {kind}, not a file", escape_path(signature));
                return about(Error::new("not_a_file", message));
            }
            error => return Error::from(error).about(escape_path(signature)),
        }
        let message = format!("there is no signature file {}", escape_path(signature));
        let error = about(Error::new("no_signature", message));
        error.hint("make one with `bulla sign`, or name one in another place with --signature FILE")
    });
    Ok(opened?.into_file())
}

impl Job<'_> {
    /// Verifies the path. The error is a finding from before its content is read.
    fn verify(&self, args: &VerifyArgs) -> Result<Report, Finding> {
        let signature = signature_path(self.path, args)?;
        let mut reader = BufReader::with_capacity(1 << 16, open_signature(self.path, &signature)?);
        match read_signature(self.path, &mut reader, args.format)? {
            AnySignature::Bulla(file) => self.verify_bulla(&file, reader, args),
            AnySignature::Foreign(file) => self.verify_foreign(&file, &signature, args),
        }
    }

    fn verify_bulla(
        &self,
        file: &SignatureFile,
        reader: BufReader<File>,
        args: &VerifyArgs,
    ) -> Result<Report, Finding> {
        let (path, trust) = (self.path, self.trust);
        // Check before reading a folder's list, which may be long.
        trust.check(file).map_err(|finding| finding.about(path))?;
        let mut report = match file.kind {
            StatementKind::File if !self.only.is_empty() => {
                let error = Error::new(
                    "usage",
                    "--only names parts of a folder, and this is the signature of a file",
                );
                return Err(error.about(escape_path(path)).into());
            }
            StatementKind::File => {
                let report = self.compare_file(file, args)?;
                match report.finding {
                    Finding::Ok => Report { finding: name_finding(file, self.path, args.any_name), ..report },
                    _ => report,
                }
            }
            StatementKind::Manifest => self.compare_folder(file, read_manifest(path, file, reader)?, args)?,
            kind => {
                let reason = format!("it signs a {kind}, not a file or a folder");
                return Err(Problem::BadSignature.because(reason));
            }
        };
        let mut signed = trust.signed(file);
        signed.name_differs = !has_signed_name(file, path);
        report.signed = Some(signed);
        Ok(report)
    }

    /// Whether a single file is what was signed.
    fn compare_file(&self, file: &SignatureFile, args: &VerifyArgs) -> Result<Report, Finding> {
        let path = self.path;
        let source = open_signed(path)?;
        if let Some(range) = args.range {
            let outboard = args.outboard.as_deref();
            let part = Part { path: path.to_owned(), digest: file.digest, size: file.size, range, outboard };
            return part.compare(source, self.progress);
        }
        folder::compare_source(&source, file.digest, file.size, self.read_mode, self.progress)
            .map(Report::from)
            .map_err(|error| Error::from(error).about(escape_path(path)).into())
    }

    fn compare_folder(
        &self,
        file: &SignatureFile,
        (entries, left_out): (Vec<ManifestEntry>, Vec<Exclusion>),
        args: &VerifyArgs,
    ) -> Result<Report, Finding> {
        let path = self.path;
        let own = folder::rules(path, self.exclusions.iter())?;
        let all = left_out.iter().chain(self.exclusions);
        // What the signature leaves out is in no list; what the flags leave out may be.
        let is_wanted = |entry: &&ManifestEntry| !own.excludes(entry.path.as_bytes());
        let wanted_entries: Cow<'_, [ManifestEntry]> = match self.exclusions {
            [] => (&entries).into(),
            _ => entries.iter().filter(is_wanted).cloned().collect(),
        };
        let metadata = path.metadata().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Problem::Missing.because("the signature is of a folder"),
            _ => Error::io("cannot read its metadata", &error).about(escape_path(path)).into(),
        })?;
        if !metadata.is_dir() {
            let kind = describe(metadata.file_type());
            return Err(Problem::Changed.because(format!("it was a folder, now it is {kind}")));
        }
        if let Some(range) = args.range {
            let part = part_of_folder(path, &entries, self.only, range, args)?;
            return part.compare(open_signed(&part.path)?, self.progress);
        }
        let wanted = if self.only.is_empty() { Selection::All } else { Selection::Only(self.only) };
        // What this user's bulla remembers of the folder tells damage from change.
        let stamp_file = folder::StampFile::for_folder(path).filter(|stamps| stamps.has(&file.digest));
        let known = stamp_file.map(|stamps| {
            folder::StampCache::lazy(&stamps, &file.digest, folder::EntryTable::Whole(&entries))
        });
        if args.paths.len() == 1 && self.progress.is_shown() {
            let (bytes, files) = folder::total(&wanted_entries, &wanted);
            self.progress.set_total(Total { bytes: Some(bytes), files: Some(files) });
        }
        let rules = folder::rules(path, all.clone())?;
        let mode = if args.quick { folder::ListMode::Quick } else { folder::ListMode::Full };
        let (known, read_mode) = (known.as_ref().map(|known| (known, mode)), self.read_mode);
        let mut report =
            folder::compare(path, &rules, &wanted_entries, &wanted, known, read_mode, self.progress)?;
        if args.duplicates {
            report.duplicates = Some(folder::duplicates(&wanted_entries));
        }
        report.left_out = all.map(|exclusion| escape_path(Path::new(exclusion.as_str()))).collect();
        Ok(report.of_something(path)?)
    }

    /// Says that the file had another name when it was signed, if its signed comment says so. The
    /// signature covers the comment and the content, and not the name that the file has now.
    fn note_name(&self, comment: &str) {
        let Some(signed) = comment.split('\t').find_map(|part| part.strip_prefix("file:")) else { return };
        let Some(name) = self.path.file_name().filter(|_| self.path != Path::new(STDIN)) else { return };
        if name.as_encoded_bytes() != signed.as_bytes() && escape_path(Path::new(name)) != signed {
            let (path, signed) = (escape_path(self.path), escape_path(Path::new(signed)));
            self.progress.suspend(|| {
                note_line(&format!("{path}: its signature was made for a file with the name {signed}"));
            });
        }
    }

    fn verify_foreign(
        &self,
        file: &ForeignSignature,
        signature: &Path,
        args: &VerifyArgs,
    ) -> Result<Report, Finding> {
        let format = SignatureFormat::from(file).name();
        let flag = match () {
            () if !self.only.is_empty() => Some("--only"),
            () if args.range.is_some() => Some("--range"),
            () if args.duplicates => Some("--duplicates"),
            () => None,
        };
        if let Some(flag) = flag {
            let message =
                format!("{flag} works only for bulla's own signature files, and this is one of {format}");
            return Err(Error::new("usage", message).about(escape_path(self.path)).into());
        }
        if let Some(envelope) = file.envelope() {
            let (signed, listed) = foreign::verify_envelope(file, envelope, self.trust)?;
            let Self { path, exclusions, progress, .. } = *self;
            let job = ListedJob { path, signature, exclusions, args, progress };
            let report = match listed {
                ListedContent::Model(manifest) => {
                    job.compare_model(&manifest, &bulla_blake3::hash(envelope.payload()))?
                }
                ListedContent::Subjects(statement) => job.compare_subjects(&statement)?,
            };
            return Ok(Report { signed: Some(signed), ..report });
        }
        let content = |coverage: Coverage| {
            let source = open_signed(self.path)?;
            covered(&source, coverage, self.progress)
                .map_err(|error| Error::from(error).about(escape_path(self.path)).into())
        };
        // The formats without an envelope cover no names.
        let signed = foreign::verify(file, self.trust, None, content);
        let signed = signed.map_err(|found| found.about(self.path))?;
        if let (ForeignSignature::Minisign(file), false) = (file, args.report.quiet) {
            self.note_name(file.trusted_comment());
        }
        Ok(Report { signed: Some(signed), ..Finding::Ok.into() })
    }
}

/// Whether a file has the name that its signature covers, if it covers one. Standard input has no
/// name.
fn has_signed_name(file: &SignatureFile, path: &Path) -> bool {
    let Some(signed) = &file.name else { return true };
    let name = path.file_name().filter(|_| path != Path::new(STDIN));
    name.is_some_and(|name| name.as_encoded_bytes() == signed.as_bytes())
}

/// Whether an intact file may have the name that it has.
pub(super) fn name_finding(file: &SignatureFile, path: &Path, any_name: bool) -> Finding {
    match &file.name {
        Some(signed) if !any_name && path != Path::new(STDIN) && !has_signed_name(file, path) => {
            let signed = escape_path(&path_from(signed.as_bytes()));
            let hint = "if you renamed it, rename it back, or accept any name with --any-name";
            Problem::WrongName.because(format!("it was signed under the name {signed}; {hint}"))
        }
        _ => Finding::Ok,
    }
}

/// A signature file in any format.
pub(super) enum AnySignature {
    Bulla(Box<SignatureFile>),
    Foreign(ForeignSignature),
}

/// Reads a signature file in the format that its first bytes tell. After bulla's own, the reader is
/// where a manifest begins. `path` is what is signed, for errors.
pub(super) fn read_signature(
    path: &Path,
    reader: &mut BufReader<File>,
    wanted: Option<SignatureFormat>,
) -> Result<AnySignature, Finding> {
    let unreadable = |error: io::Error| {
        Finding::from(Error::io("cannot read its signature", &error).about(escape_path(path)))
    };
    let begin = reader.fill_buf().map_err(unreadable)?;
    let found = match ForeignFormat::detect(begin) {
        Some(found) => Some(SignatureFormat::from(found)),
        None => begin.starts_with(b"bulla signature v").then_some(SignatureFormat::Bulla),
    };
    let check = |found: SignatureFormat| match wanted {
        Some(wanted) if found != wanted => {
            let (found, wanted) = (found.name(), wanted.name());
            let reason = format!("it is a signature file of {found}, and --format wants one of {wanted}");
            Err(Problem::MalformedSignature.because(reason))
        }
        _ => Ok(()),
    };
    // Whether a bundle of Sigstore is of a model is known after it was read.
    found.filter(|found| *found != SignatureFormat::Sigstore).map_or(Ok(()), check)?;
    let unknown = || {
        let name = wanted.map_or("any format that bulla reads", SignatureFormat::name);
        Problem::MalformedSignature.because(format!("it does not begin like a signature file of {name}"))
    };
    let longest = match found.ok_or_else(unknown)? {
        SignatureFormat::Bulla => {
            let file = SignatureFile::read_from(reader).map_err(|error| malformed(path, error))?;
            return Ok(AnySignature::Bulla(Box::new(file)));
        }
        SignatureFormat::Signify | SignatureFormat::Jws => MAX_FILE_LEN,
        SignatureFormat::Minisign | SignatureFormat::Ssh => MAX_SIGNATURE_LEN as u64,
        SignatureFormat::Dsse | SignatureFormat::Sigstore | SignatureFormat::Oms => MAX_BUNDLE_LEN as u64,
    };
    let mut bytes = Vec::new();
    reader.take(longest + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > longest {
        return Err(Problem::MalformedSignature.because(format!("it is longer than {longest} bytes")));
    }
    match ForeignSignature::parse(&bytes) {
        Ok(Some(file)) => check((&file).into()).map(|()| AnySignature::Foreign(file)),
        Ok(None) => Err(unknown()),
        Err(error) => Err(Problem::MalformedSignature.because(error.to_string())),
    }
}

/// Reads the list of signed entries and the patterns of what is not in it, and compares it with the
/// digest in the signature.
fn read_manifest(
    path: &Path,
    file: &SignatureFile,
    reader: BufReader<File>,
) -> Result<(Vec<ManifestEntry>, Vec<Exclusion>), Finding> {
    // An endless list must not fill the memory. Reading one line more is enough to see that it is
    // too long.
    let limit = file.size.saturating_add(LONGEST_LINE);
    let mut reader = manifest::ManifestReader::new(reader.take(limit));
    let entries: Vec<_> =
        reader.by_ref().collect::<Result<_, KmsError>>().map_err(|error| malformed(path, error))?;
    let summary = reader.summary();
    if (summary.digest, summary.size) != (file.digest, file.size) {
        return Err(Problem::BadSignature.because("somebody edited the list of files in the signature file"));
    }
    let left_out = reader.exclusions().to_vec();
    Ok((entries, left_out))
}

/// The finding for a signature file that cannot be read or understood.
fn malformed(path: &Path, error: KmsError) -> Finding {
    match error.code {
        Code::MalformedSignature | Code::MalformedManifest => {
            Problem::MalformedSignature.because(error.message)
        }
        _ => Error::from(error).about(escape_path(path)).into(),
    }
}

/// Opens the file that a signature covers. If it is missing or not a file, that is a finding.
fn open_signed(path: &Path) -> Result<Source, Finding> {
    if path == Path::new(STDIN) {
        return Source::stdin()
            .map_err(|error| Error::io("cannot read", &error).about("standard input").into());
    }
    Source::open_file(path, Links::Follow).map_err(|error| match error {
        ReadError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            Problem::Missing.because("the signature is of a file")
        }
        ReadError::NotAFile(kind) => Problem::Changed.because(format!("it was a file, now it is {kind}")),
        error => Error::from(error).about(escape_path(path)).into(),
    })
}

/// Refuses `--range` where there is no file with a tree.
fn check_range(args: &VerifyArgs) -> Result<()> {
    let usage = |message: &str| Err(Error::new("usage", message));
    match (args.range, &args.paths[..]) {
        (None, _) => Ok(()),
        (Some(_), [path]) if path == Path::new(STDIN) => {
            usage("--range reads a part of a file, and standard input is read from start to end")
        }
        (Some(_), [_]) if args.format.is_some_and(|format| format != SignatureFormat::Bulla) => usage(
            "--range works only for bulla's own signature files: minisign, OpenSSH and signify sign another digest",
        ),
        (Some(_), [_]) => Ok(()),
        _ => usage("--range names a part of one file, so only one PATH can be given"),
    }
}

/// The paths of `--only`, as in a manifest.
fn only(args: &VerifyArgs) -> Result<Vec<ManifestPath>> {
    let usage = |message: &str| Err(Error::new("usage", message));
    if !args.only.is_empty() && args.format.is_some_and(|format| format != SignatureFormat::Bulla) {
        return usage("--only works only for bulla's own signature files: other formats sign no folders");
    }
    if !args.only.is_empty() && args.paths.len() > 1 {
        return usage("--only names parts of one folder, so only one PATH can be given");
    }
    let path = |path: &PathBuf| {
        let parts: Vec<&[u8]> = path
            .components()
            .filter(|part| !matches!(part, Component::CurDir))
            .map(|part| part.as_os_str().as_encoded_bytes())
            .collect();
        ManifestPath::from_bytes(parts.join(&b'/')).map_err(|error| {
            Error::new("usage", format!("--only: {}", error.message))
                .about(escape_path(path))
                .hint("name a path in the folder, relative to the folder")
        })
    };
    args.only.iter().map(path).collect()
}

/// A signed file, of which a part is verified.
pub(super) struct Part<'a> {
    pub(super) path: PathBuf,
    pub(super) digest: Hash,
    pub(super) size: u64,
    pub(super) range: ByteRange,
    pub(super) outboard: Option<&'a Path>,
}

/// The file of a signed folder that `--only` names.
///
/// # Errors
/// It does not name one file, or the file was not signed.
pub(super) fn part_of_folder<'a>(
    folder: &Path,
    entries: &[ManifestEntry],
    only: &[ManifestPath],
    range: ByteRange,
    args: &'a VerifyArgs,
) -> Result<Part<'a>> {
    let usage = |message: &str| Err(Error::new("usage", message).about(escape_path(folder)));
    let ([file], Some(outboard)) = (only, &args.outboard) else {
        return usage(
            "this is a signed folder: --range needs one file's path with --only, and its tree with --outboard",
        );
    };
    let path = folder.join(&args.only[0]);
    let at = entries.binary_search_by(|entry| entry.path.as_bytes().cmp(file.as_bytes()));
    match at.map(|at| &entries[at].content) {
        Ok(EntryContent::File { digest, size }) => {
            Ok(Part { path, digest: *digest, size: *size, range, outboard: Some(outboard) })
        }
        Ok(EntryContent::Link { .. }) => usage("--range verifies a part of a file, and --only names a link"),
        Err(_) => Err(Error::new("not_signed", "no file of this name was signed").about(escape_path(&path))),
    }
}

impl Part<'_> {
    /// Whether the bytes are those that were signed. `source` is the file.
    pub(super) fn compare(&self, source: Source, progress: &Progress) -> Result<Report, Finding> {
        if let Some(len) = source.len().filter(|len| *len != self.size) {
            let reason = format!("it has {len} bytes now, and had {} when it was signed", self.size);
            return Err(Problem::Changed.because(reason));
        }
        let range = self.bytes()?;
        let tree = match self.outboard {
            Some(outboard) => outboard.to_owned(),
            None => sidecar(&self.path, outboard::EXTENSION)?,
        };
        if !tree.exists() {
            let message = format!("there is no tree of its hashes {}", escape_path(&tree));
            let error = Error::new("no_outboard", message).about(escape_path(&self.path));
            return Err(error.hint("make it with `bulla sum --outboard`, or name it with --outboard").into());
        }
        match outboard::verify(source, &tree, &self.digest, range.clone(), progress)? {
            Verdict::Intact => Ok(Report { range: Some(range), ..Finding::Ok.into() }),
            Verdict::Differs(at) => Err(Problem::Changed.because(format!(
                "what follows byte {at} is not what was signed, or {} is not its tree",
                escape_path(&tree)
            ))),
        }
    }

    /// The bytes that are verified.
    fn bytes(&self) -> Result<Range<u64>> {
        let ByteRange { start, end } = self.range;
        let end = end.unwrap_or(self.size);
        if start >= end || end > self.size {
            let message = format!("--range: the file has {} bytes", self.size);
            return Err(Error::new("usage", message).about(escape_path(&self.path)));
        }
        Ok(start..end)
    }
}
