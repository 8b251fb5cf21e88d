//! Signatures that list files with their digests: statements of in-toto, and models.

use super::file_digests::{HashJob, ListedFile, Listing, hash_all};
use super::foreign::MAX_STATEMENT_LEN;
use crate::args::{ModelDigest, SignArgs, SignatureFormat, VerifyArgs};
use crate::error::{Error, Result};
use crate::files::STDIN;
use crate::files::read::{Links, ReadError, Source};
use crate::findings::{EntryFinding, Finding, Problem, Report};
use crate::folder::{self, ModelStamps, StampFile, StampWriter};
use crate::progress::Progress;
use bulla_blake3::Hash;
use bulla_files::escape_path;
use bulla_formats::in_toto::{InTotoStatement, Predicate, Subject, statement};
use bulla_formats::oms::{GIT_PATHS, ModelLinks, ModelManifest, ModelPart, Serialization, WHOLE_MODEL};
use bulla_formats::oms::{PREDICATE_TYPE, is_inner_path};
use bulla_formats::{DigestAlgorithm, MultiHasher};
use bulla_kms::signature::manifest::Exclusion;
use bulla_sums::{Meter as _, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The digests of each subject.
const SUBJECT_DIGESTS: [DigestAlgorithm; 3] =
    [DigestAlgorithm::Sha256, DigestAlgorithm::Sha512, DigestAlgorithm::Blake3];

/// The most bytes of a predicate.
const MAX_PREDICATE_LEN: u64 = 16 << 20;

/// The most parts of a model: each has more than a hundred bytes in the list.
const MAX_PARTS: usize = MAX_STATEMENT_LEN / 100;

/// What a signature of these flags covers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    /// A statement of in-toto about files.
    Subjects,
    /// The files of a model.
    Model,
    /// No list.
    Nothing,
}

impl Listed {
    pub(super) fn of(args: &SignArgs) -> Self {
        match args.format {
            SignatureFormat::Oms => Self::Model,
            SignatureFormat::Dsse => Self::Subjects,
            SignatureFormat::Sigstore if args.predicate.is_some() => Self::Subjects,
            _ => Self::Nothing,
        }
    }
}

/// Refuses flags that do not belong together.
pub(super) fn check_flags(args: &SignArgs) -> Result<()> {
    let usage = |message: String| Err(Error::new("usage", message));
    let (format, listed) = (args.format.name(), Listed::of(args));
    let takes_predicate = matches!(args.format, SignatureFormat::Dsse | SignatureFormat::Sigstore);
    if !takes_predicate && (args.predicate.is_some() || args.predicate_type.is_some()) {
        return usage("--predicate works only with --format dsse and --format sigstore".to_owned());
    }
    if args.predicate.is_some() != args.predicate_type.is_some() {
        return usage(
            "--predicate and --predicate-type belong together: what is said, and its type".to_owned(),
        );
    }
    if args.format == SignatureFormat::Dsse && args.predicate.is_none() {
        let message =
            "--format dsse needs --predicate FILE and --predicate-type URI: what is said of the files";
        return Err(Error::new("usage", message)
            .hint("to sign files without saying anything of them, use another format"));
    }
    let model_flag = match args {
        SignArgs { model_digest: Some(_), .. } => Some("--model-digest"),
        SignArgs { shard_size: Some(_), .. } => Some("--shard-size"),
        SignArgs { follow_links: true, .. } => Some("--follow-links"),
        _ => None,
    };
    if let (Some(flag), true) = (model_flag, listed != Listed::Model) {
        return usage(format!("{flag} works only with --format oms"));
    }
    if listed == Listed::Model {
        ignored(args)?;
    }
    if listed != Listed::Nothing && args.paths.iter().any(|path| path == Path::new(STDIN)) {
        return usage(format!("--format {format} lists files by name, and standard input has none"));
    }
    predicate(args).map(|_| ())
}

/// The predicate of the flags.
fn predicate(args: &SignArgs) -> Result<Option<Predicate>> {
    let (Some(path), Some(predicate_type)) = (&args.predicate, &args.predicate_type) else { return Ok(None) };
    let about = |error: Error| error.about(escape_path(path));
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_PREDICATE_LEN + 1).read_to_end(&mut text));
    read.map_err(|error| about(Error::io("cannot read the predicate", &error)))?;
    if text.len() as u64 > MAX_PREDICATE_LEN {
        let message = format!("is too long: a predicate has at most {MAX_PREDICATE_LEN} bytes");
        return Err(about(Error::new("file_too_large", message)));
    }
    let predicate = Predicate::new(predicate_type, &text);
    predicate.map(Some).map_err(|error| about(Error::new("invalid_predicate", error.to_string())))
}

/// Reads what is at a path, and writes the statement of in-toto about it.
pub(super) fn statement_of(
    path: &Path,
    args: &SignArgs,
    exclusions: &[Exclusion],
    progress: &Progress,
) -> Result<String> {
    let about = |error: Error| error.about(escape_path(path));
    let files = match path.is_dir() {
        true => {
            let rules = folder::rules(path, exclusions.iter())?;
            let keeps = |name: &str| !rules.excludes(name.as_bytes());
            Listing::of(path, Links::Refuse, &keeps)?.only_files(path)?
        }
        false => vec![single_file(path, name_of(path)?)?],
    };
    let links = if path.is_dir() { Links::Refuse } else { Links::Follow };
    let jobs: Vec<_> = files.iter().map(|file| whole(file, links)).collect();
    let digests = hash_all(&jobs, &SUBJECT_DIGESTS, args.work.threads(), progress);
    let mut subjects = Vec::with_capacity(files.len());
    for (file, digests) in files.iter().zip(digests) {
        let digests = digests.map_err(|error| Error::from(error).about(escape_path(&file.path)))?;
        subjects.push(Subject { name: file.name.clone(), digests });
    }
    let predicate = predicate(args)?.expect("the flags were checked");
    statement(&subjects, &predicate).map_err(|error| about(Error::new("not_signed", error.to_string())))
}

fn whole(file: &ListedFile, links: Links) -> HashJob<'_> {
    HashJob { path: &file.path, range: None, len: file.len, links }
}

fn single_file(path: &Path, name: String) -> Result<ListedFile> {
    let source = Source::open_file(path, Links::Follow)
        .map_err(|error| Error::from(error).about(escape_path(path)))?;
    Ok(ListedFile { name, path: path.to_owned(), len: source.len().unwrap_or(0) })
}

/// The last part of a path, as text.
fn name_of(path: &Path) -> Result<String> {
    let about = |error: Error| error.about(escape_path(path));
    let resolved;
    let named = match path.file_name() {
        Some(_) => path,
        None => {
            resolved = path.canonicalize().map_err(|error| about(Error::io("cannot find", &error)))?;
            &resolved
        }
    };
    let name = named.file_name().and_then(|name| name.to_str());
    let message = "has no name in UTF-8, which this format needs";
    name.map(str::to_owned).ok_or_else(|| about(Error::new("not_utf8", message)))
}

/// The paths that `--exclude` names for a model, with those of git.
fn ignored(args: &SignArgs) -> Result<Vec<String>> {
    if let Some(path) = args.exclude.ignore_file.first() {
        let message = "--ignore-file does not work with --format oms, which has no patterns";
        return Err(Error::new("usage", message).about(escape_path(path)));
    }
    let mut paths = Vec::new();
    for path in &args.exclude.exclude {
        let trimmed = path.trim_end_matches('/');
        if !is_inner_path(trimmed) || trimmed.contains(['*', '?', '[', '!', '\\']) {
            let message =
                format!("--exclude {path}: with --format oms it is a path in the model, not a pattern");
            return Err(Error::new("usage", message));
        }
        paths.push(trimmed.to_owned());
    }
    paths.extend(GIT_PATHS.map(str::to_owned));
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The path of a file in a folder, if it is there.
fn inside(folder: &Path, file: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let parent = bulla_files::folder_of(file).canonicalize().ok()?;
    let path = parent.join(file.file_name()?);
    let parts = path.strip_prefix(folder).ok()?.components();
    let parts: Option<Vec<_>> = parts.map(|part| part.as_os_str().to_str()).collect();
    parts.map(|parts| parts.join("/"))
}

/// Reads a model, and writes the statement that lists it. `output` is the signature file, which is
/// not part of the model.
pub(super) fn model_of(
    path: &Path,
    args: &SignArgs,
    output: Option<&Path>,
    progress: &Progress,
) -> Result<String> {
    let about = |error: Error| error.about(escape_path(path));
    let mut paths = ignored(args)?;
    if path.is_dir() {
        paths.extend(output.and_then(|output| inside(path, output)));
    }
    let algorithm = match args.model_digest.unwrap_or(ModelDigest::Sha256) {
        ModelDigest::Sha256 => DigestAlgorithm::Sha256,
        ModelDigest::Blake2b => DigestAlgorithm::Blake2b,
        ModelDigest::Blake3 => DigestAlgorithm::Blake3,
    };
    let links = if args.follow_links { ModelLinks::Follow } else { ModelLinks::Refuse };
    let serialization = Serialization { algorithm, shard_size: args.shard_size, links, ignored: paths };
    let files = match path.is_dir() {
        true => {
            let keeps = |name: &str| !serialization.ignores(name);
            Listing::of(path, followed(links), &keeps)?.only_files(path)?
        }
        false => vec![single_file(path, WHOLE_MODEL.to_owned())?],
    };
    let mode = opened(path, links);
    let mut jobs = Vec::new();
    for file in &files {
        // A long file has more small parts than memory has room for.
        let parts = serialization.parts_of(file.len).take(MAX_PARTS + 1);
        jobs.extend(parts.map(|range| (file, HashJob { range, ..whole(file, mode) })));
        if jobs.len() > MAX_PARTS {
            let message = format!("has too many files or shards: a list has at most {MAX_PARTS}");
            let error = about(Error::new("file_too_large", message));
            return Err(error.hint("choose larger shards with --shard-size, or leave it out"));
        }
    }
    let (names, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
    let digests = hash_all(&jobs, &[algorithm], args.work.threads(), progress);
    let mut parts = Vec::with_capacity(jobs.len());
    for ((file, job), digests) in names.iter().zip(jobs).zip(digests) {
        let digests = digests.map_err(|error| Error::from(error).about(escape_path(&file.path)))?;
        let digest = digests.into_iter().next().expect("one digest was asked for").1;
        parts.push(ModelPart { path: file.name.clone(), range: job.range, digest });
    }
    let mut manifest = ModelManifest { name: name_of(path)?, serialization, parts };
    manifest.statement().map_err(|error| about(Error::new("not_signed", error.to_string())))
}

fn followed(links: ModelLinks) -> Links {
    match links {
        ModelLinks::Follow => Links::Follow,
        ModelLinks::Refuse => Links::Refuse,
    }
}

/// How the files of a model are opened. A model that is one file may be a link.
fn opened(model: &Path, links: ModelLinks) -> Links {
    if model.is_dir() { followed(links) } else { Links::Follow }
}

/// A path whose signature lists files.
pub(super) struct ListedJob<'a> {
    pub(super) path: &'a Path,
    pub(super) signature: &'a Path,
    pub(super) exclusions: &'a [Exclusion],
    pub(super) args: &'a VerifyArgs,
    pub(super) progress: &'a Progress,
}

/// What was found about the files of a folder.
#[derive(Default)]
struct Comparison {
    entries: Vec<EntryFinding>,
    intact: u64,
    /// How many of the intact files were not read.
    kept: u64,
}

impl Comparison {
    fn add(&mut self, name: &str, finding: Finding) {
        match finding {
            Finding::Ok => self.intact += 1,
            finding => self.entries.push(EntryFinding { path: PathBuf::from(name), finding }),
        }
    }

    fn report(mut self, folder: &Path) -> Report {
        self.entries.sort_by(|a, b| a.path.cmp(&b.path));
        Report {
            finding: folder::summary(folder, &self.entries, self.intact),
            entries: self.entries,
            intact: Some(self.intact),
            kept: self.kept,
            ..Finding::Ok.into()
        }
    }
}

fn unread(path: &Path, error: ReadError) -> Finding {
    Error::from(error).about(escape_path(path)).into()
}

impl ListedJob<'_> {
    /// Whether the path is what a statement says. Its signature was verified.
    pub(super) fn compare_subjects(&self, statement: &InTotoStatement) -> Result<Report, Finding> {
        if self.path != Path::new(STDIN) && self.path.is_dir() {
            return self.compare_folder(statement);
        }
        let source = match self.path == Path::new(STDIN) {
            true => Source::stdin().map_err(ReadError::Io),
            false => Source::open_file(self.path, Links::Follow),
        };
        let source = source.map_err(|error| match error {
            ReadError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Problem::Missing.because("the signature is of a file")
            }
            error => unread(self.path, error),
        })?;
        let mut hasher = MultiHasher::new(&statement.algorithms());
        let read = source.for_each(self.progress, |bytes| hasher.update(bytes));
        read.map_err(|error| unread(self.path, error))?;
        find_subject(statement, self.name(), &hasher.finish()).map(|()| Finding::Ok.into())
    }

    /// The name that must be the signed one. Standard input has none.
    fn name(&self) -> Option<&OsStr> {
        self.path.file_name().filter(|_| self.path != Path::new(STDIN) && !self.args.any_name)
    }

    fn compare_folder(&self, statement: &InTotoStatement) -> Result<Report, Finding> {
        let rules = folder::rules(self.path, self.exclusions.iter())?;
        let keeps = |name: &str| !rules.excludes(name.as_bytes());
        let listing = Listing::of(self.path, Links::Refuse, &keeps)?;
        let mut subjects: BTreeMap<_, _> = statement
            .subjects()
            .iter()
            .filter(|subject| keeps(&subject.name))
            .map(|subject| (&subject.name[..], subject))
            .collect();
        let mut found = Comparison::default();
        let mut compared = Vec::new();
        for file in &listing.files {
            match subjects.remove(&file.name[..]) {
                Some(subject) => compared.push((file, subject)),
                None => found.add(&file.name, Problem::Unexpected.because("")),
            }
        }
        add_others(&mut found, &listing);
        subjects.keys().for_each(|name| found.add(name, Problem::Missing.because("")));
        let jobs: Vec<_> = compared.iter().map(|(file, _)| whole(file, Links::Refuse)).collect();
        let threads = self.args.work.threads();
        let digests = hash_all(&jobs, &statement.algorithms(), threads, self.progress);
        for ((file, subject), digests) in compared.into_iter().zip(digests) {
            let finding = match digests {
                Ok(digests) if subject.has(&digests) => Finding::Ok,
                Ok(_) => Problem::Changed.because(""),
                Err(error) => unread(&file.path, error),
            };
            found.add(&file.name, finding);
        }
        let mut report = found.report(self.path);
        report.left_out = self.exclusions.iter().map(|one| escape_path(Path::new(one.as_str()))).collect();
        Ok(report.of_something(self.path)?)
    }

    /// Whether the path is the model that was signed. The signature of its list was verified;
    /// `list` is the list's digest.
    pub(super) fn compare_model(&self, manifest: &ModelManifest, list: &Hash) -> Result<Report, Finding> {
        let rules = folder::rules(self.path, self.exclusions.iter())?;
        let excludes = |name: &str| rules.excludes(name.as_bytes());
        let listing = self.list_model(manifest, &excludes)?;
        let mut expected: BTreeMap<&str, Vec<&ModelPart>> = BTreeMap::new();
        for part in manifest.parts.iter().filter(|part| !excludes(&part.path)) {
            expected.entry(&part.path).or_default().push(part);
        }
        let mut found = Comparison::default();
        let mut compared = Vec::new();
        for file in &listing.files {
            // There may be more than memory has room for, if somebody made the file longer.
            let mut ranges = manifest.serialization.parts_of(file.len);
            let Some(mut parts) = expected.remove(&file.name[..]) else {
                if ranges.next().is_some() {
                    found.add(&file.name, Problem::Unexpected.because(""));
                }
                continue;
            };
            parts.sort_by_key(|part| part.range.as_ref().map(|range| range.start));
            if parts.iter().map(|part| part.range.clone()).eq(ranges) {
                compared.push((file, parts));
            } else {
                let reason =
                    format!("it has {} bytes now, and had another size when it was signed", file.len);
                found.add(&file.name, Problem::Changed.because(reason));
            }
        }
        add_others(&mut found, &listing);
        expected.keys().for_each(|name| found.add(name, Problem::Missing.because("")));
        let mut stamps = Remembered::new(self, manifest, list);
        compared.retain(|(file, _)| {
            let is_read = !stamps.is_unchanged(self, file, opened(self.path, manifest.serialization.links));
            if !is_read {
                found.add(&file.name, Finding::Ok);
                found.kept += 1;
                self.progress.add_files(1);
            }
            is_read
        });
        self.compare_parts(&mut found, &compared, &manifest.serialization);
        if found.entries.is_empty() {
            stamps.write(list);
        }
        if !self.path.is_dir() {
            let worst = found.entries.into_iter().map(|entry| entry.finding).next();
            return Ok(worst.unwrap_or_else(|| self.model_name(&manifest.name)).into());
        }
        let mut report = found.report(self.path);
        let exclusions = self.exclusions.iter().map(Exclusion::as_str);
        let left_out = manifest.serialization.ignored.iter().map(|path| &path[..]).chain(exclusions);
        report.left_out = left_out.map(|one| escape_path(Path::new(one))).collect();
        Ok(report.of_something(self.path)?)
    }

    /// Whether a model that is one file has the name that was signed.
    fn model_name(&self, signed: &str) -> Finding {
        match self.name() {
            Some(name) if !signed.is_empty() && name != OsStr::new(signed) => wrong_name(signed),
            _ => Finding::Ok,
        }
    }

    fn list_model(
        &self,
        manifest: &ModelManifest,
        excludes: &dyn Fn(&str) -> bool,
    ) -> Result<Listing, Finding> {
        if self.path == Path::new(STDIN) {
            let message = "this is the signature of a model, which is a file or a folder with a name";
            return Err(Error::new("usage", message).into());
        }
        if !self.path.try_exists().unwrap_or(true) {
            return Err(Problem::Missing.because("the signature is of a model"));
        }
        if !self.path.is_dir() {
            let file = single_file(self.path, WHOLE_MODEL.to_owned())?;
            return Ok(Listing { files: vec![file], others: Vec::new() });
        }
        let own = inside(self.path, self.signature);
        let keeps = |name: &str| {
            !manifest.serialization.ignores(name) && own.as_deref() != Some(name) && !excludes(name)
        };
        Ok(Listing::of(self.path, followed(manifest.serialization.links), &keeps)?)
    }

    fn compare_parts(
        &self,
        found: &mut Comparison,
        compared: &[(&ListedFile, Vec<&ModelPart>)],
        serialization: &Serialization,
    ) {
        let algorithm = serialization.algorithm;
        let links = opened(self.path, serialization.links);
        let job = |file, part: &&ModelPart| HashJob { range: part.range.clone(), ..whole(file, links) };
        let jobs: Vec<_> =
            compared.iter().flat_map(|(file, parts)| parts.iter().map(|part| job(file, part))).collect();
        let mut digests = hash_all(&jobs, &[algorithm], self.args.work.threads(), self.progress).into_iter();
        for (file, parts) in compared {
            let mut finding = Finding::Ok;
            for (part, digest) in parts.iter().zip(digests.by_ref()) {
                match digest {
                    Ok(digest) if digest.iter().all(|(_, bytes)| *bytes == part.digest) => {}
                    Ok(_) if matches!(finding, Finding::Ok) => finding = changed_part(part),
                    Ok(_) => {}
                    Err(error) => finding = unread(&file.path, error),
                }
            }
            found.add(&file.name, finding);
        }
    }
}

/// What bulla remembers of a model's files, so that `--quick` reads only what changed.
struct Remembered<'a> {
    file: Option<StampFile>,
    stamps: ModelStamps,
    /// The place of each file in the list.
    places: BTreeMap<&'a str, usize>,
    /// The stamps from before the files are read.
    now: Vec<Option<Stamp>>,
    writer: StampWriter,
}

impl<'a> Remembered<'a> {
    fn new(job: &ListedJob<'_>, manifest: &'a ModelManifest, list: &Hash) -> Self {
        let paths: BTreeSet<&str> = manifest.parts.iter().map(|part| &part.path[..]).collect();
        let file = StampFile::for_model(job.path);
        let stamps = match (&file, job.args.quick) {
            (Some(file), true) => ModelStamps::load(file, list),
            _ => ModelStamps::default(),
        };
        // A part of a model is no reason to forget the rest.
        let file = file.filter(|_| job.exclusions.is_empty());
        Self {
            writer: StampWriter::start(file.as_ref()),
            file,
            stamps,
            now: vec![None; paths.len()],
            places: paths.into_iter().enumerate().map(|(place, path)| (path, place)).collect(),
        }
    }

    /// Whether a file need not be read, because it has not changed since it was read whole.
    fn is_unchanged(&mut self, job: &ListedJob<'_>, file: &ListedFile, links: Links) -> bool {
        let Some(place) = self.places.get(&file.name[..]).copied() else { return false };
        let source = Source::open_file(&file.path, links).ok();
        let stamp = source.and_then(|source| Stamp::of(&source.into_file()).ok());
        self.now[place] = stamp;
        job.args.quick && stamp.is_some_and(|stamp| self.stamps.has(place, &stamp))
    }

    /// Remembers the stamps of files that are all intact.
    fn write(mut self, list: &Hash) {
        let Some(file) = self.file else { return };
        self.now.into_iter().for_each(|stamp| self.writer.push(stamp));
        file.write(self.writer, list);
    }
}

fn changed_part(part: &ModelPart) -> Finding {
    Problem::Changed.because(match &part.range {
        Some(range) => format!("in the bytes {}..{}", range.start, range.end),
        None => String::new(),
    })
}

fn add_others(found: &mut Comparison, listing: &Listing) {
    for (name, kind) in &listing.others {
        found.add(name, Problem::Unexpected.because(format!("it is {kind}")));
    }
}

/// Whether a content is what a statement is about. `name` is its name; a content without a name may
/// be any of the subjects.
pub(super) fn find_subject(
    statement: &InTotoStatement,
    name: Option<&OsStr>,
    digests: &[(DigestAlgorithm, Vec<u8>)],
) -> Result<(), Finding> {
    let same: Vec<_> = statement.subjects().iter().filter(|subject| subject.has(digests)).collect();
    let Some(name) = name else {
        return match same.is_empty() {
            false => Ok(()),
            true => Err(Problem::Changed.because("the statement is about another content")),
        };
    };
    // The name of a subject may be a path, or begin with one.
    let is_named = |subject: &&Subject| {
        subject.name.is_empty() || subject.name.rsplit('/').next().map(OsStr::new) == Some(name)
    };
    if same.iter().any(is_named) {
        return Ok(());
    }
    if let Some(other) = same.first() {
        return Err(wrong_name(&other.name));
    }
    if statement.subjects().iter().any(|subject| is_named(&subject)) {
        return Err(Problem::Changed.because("its content is not what was signed"));
    }
    Err(Problem::Unexpected.because("the statement is about other files"))
}

fn wrong_name(signed: &str) -> Finding {
    let signed = escape_path(Path::new(signed));
    Problem::WrongName.because(format!("it was signed under the name {signed}"))
}

/// What is listed by an envelope whose signature was verified.
pub(super) enum ListedContent {
    Model(ModelManifest),
    Subjects(InTotoStatement),
}

impl ListedContent {
    pub(super) fn read(envelope: &bulla_formats::dsse::Envelope) -> Result<Self, Finding> {
        let malformed =
            |error: bulla_formats::FormatError| Problem::MalformedSignature.because(error.to_string());
        Ok(match ModelManifest::is_in(envelope) {
            true => Self::Model(ModelManifest::parse(envelope).map_err(malformed)?),
            false => Self::Subjects(InTotoStatement::parse(envelope).map_err(malformed)?),
        })
    }

    pub(super) fn predicate_type(&self) -> &str {
        match self {
            Self::Model(_) => PREDICATE_TYPE,
            Self::Subjects(statement) => statement.predicate_type(),
        }
    }
}
