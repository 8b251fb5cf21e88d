//! `bulla sign`: signature files for files and folders.

use super::attested::{Listed, check_flags, model_of, statement_of};
use super::foreign::{Covered, SignJob, covered};
use super::key_change::{check_signs, note_clock, note_rotated};
use super::sign_report::{JsonLine, JsonReading, JsonSigned, Signed, counted, write};
use super::sign_target::{Destination, PreviousSignature, earlier};
use super::walking::exclusions;
use crate::args::{self, SignArgs, SignatureFormat};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::STDIN;
use crate::files::read::in_order;
use crate::files::read::{HashMode, Links, ReadError, ReadMode, Source};
use crate::files::read::{is_large, total_of};
use crate::folder;
use crate::idle;
use crate::interrupt;
use crate::output::Out;
use crate::progress::Progress;
use crate::store::{KeySource, Keys};
use bulla_files::escape_path;
use bulla_files::folder_of;
use bulla_formats::minisign::NumberedKey;
use bulla_formats::ssh;
use bulla_keystore::DEFAULT_LABEL;
use bulla_kms::prehash::Prehash;
use bulla_kms::signature::manifest::Exclusion;
use bulla_kms::signature::{Comment, SignedName};
use bulla_kms::{Attestation, Statement, StatementKind};
use bulla_sums::path_from;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tempfile::SpooledTempFile;

pub(crate) fn run(args: &SignArgs) -> Result<Exit> {
    check_usage(args)?;
    check_total(args)?;
    // Threads that start before this would not have the turn.
    idle::set_priority(args.work.priority())?;
    interrupt::watch_signals();
    let comment: Comment = args.comment.as_deref().unwrap_or_default().parse()?;
    // A model has paths to leave out, and no patterns.
    let exclusions = match Listed::of(args) {
        Listed::Model => Vec::new(),
        _ => exclusions(&args.exclude)?,
    };
    let targets = Destination::ready(args);
    let signed = match targets.iter().any(Result::is_ok) {
        true => sign_all(args, &comment, &exclusions, targets)?,
        false => targets.into_iter().filter_map(Result::err).map(Err).collect(),
    };

    let mut out = Out::stdout();
    let mut exit = Exit::Ok;
    for (path, signed) in args.paths.iter().zip(signed) {
        let result = signed.and_then(|mut signed| write(&mut out, path, args, &mut signed));
        if let Err(error) = result {
            if error.is_broken_pipe() {
                return Err(error);
            }
            exit = Exit::Error;
            error.print();
            if args.report.json {
                out.json(&JsonLine::error(path, &error))?;
            }
        }
    }
    out.flush()?;
    Ok(exit)
}

/// Reads and signs every path whose target is ready.
fn sign_all<'a>(
    args: &'a SignArgs,
    comment: &Comment,
    exclusions: &[Exclusion],
    targets: Vec<Result<Destination>>,
) -> Result<Vec<Result<Signed>>> {
    let source = key_source(args)?;
    // The keystore is opened twice: now, so that a wrong passphrase or key is reported before a
    // long read, and again when everything is read. In between, other processes may use it.
    let (key, jobs) = {
        let keys = source.open_to_sign(&args.key)?;
        let key = check_key(&*keys, args)?;
        let jobs = args.paths.iter().zip(targets);
        let job = |(path, target): (&'a PathBuf, Result<_>)| {
            target.map(|target| Job {
                path,
                target,
                exclusions,
                before: PreviousSignature::of(&*keys, path, args),
            })
        };
        (key, jobs.map(job).collect::<Vec<_>>())
    };
    let contents = read_all(&jobs, args, source.folder())?;

    let keys = source.open_to_sign(&args.key)?;
    let sign = |(path, content): (&PathBuf, Result<SignInput>)| {
        content.and_then(|content| sign_statement(&*keys, args, path, comment, content))
    };
    let signed: Vec<_> = args.paths.iter().zip(contents).map(sign).collect();
    drop(keys);
    if let Some(key) = key {
        let newest = signed.iter().flatten().map(|signed| signed.version).max();
        note_rotated(&key, newest.unwrap_or(key.latest_version))?;
    }
    Ok(signed)
}

/// Where the keys are. Only the key `default` is made on first use.
fn key_source(args: &SignArgs) -> Result<KeySource> {
    if args.key == DEFAULT_LABEL && !args.no_create {
        KeySource::existing_or_new(&args.keystore)
    } else {
        KeySource::existing(&args.keystore)
    }
}

fn check_usage(args: &SignArgs) -> Result<()> {
    let usage = |message: &str| Err(Error::new("usage", message));
    if args.output.is_some() && args.paths.len() > 1 {
        return usage("--output names one signature file, so only one PATH can be given");
    }
    check_format(args)?;
    let stdins = args.paths.iter().filter(|path| path.as_path() == Path::new(STDIN)).count();
    if stdins > 0 && args.paths.len() > 1 {
        return usage("standard input must be the only PATH");
    }
    if args.report.json
        && args.paths.iter().any(|path| matches!(Destination::of(path, args), Ok(Destination::Stdout)))
    {
        return usage("with --json the signature cannot go to standard output: add --output FILE");
    }
    Ok(())
}

/// Refuses flags that the format of the signature does not have.
fn check_format(args: &SignArgs) -> Result<()> {
    let usage = |message: &str| Err(Error::new("usage", message));
    let SignArgs { format, prehash, comment, namespace, embed, .. } = args;
    if prehash.is_some() && *format != SignatureFormat::Bulla {
        return usage("--prehash works only for bulla's own signature files: other formats have their own");
    }
    if args.no_name && *format != SignatureFormat::Bulla {
        return usage("--no-name works only for bulla's own signature files");
    }
    check_flags(args)?;
    if comment.is_some() && !matches!(format, SignatureFormat::Bulla | SignatureFormat::Minisign) {
        return usage("--comment works only for bulla and minisign: no signature of this format covers one");
    }
    if *embed && *format != SignatureFormat::Signify {
        return usage(
            "--embed works only with --format signify: no other format has the file in its signature",
        );
    }
    match namespace {
        Some(_) if *format != SignatureFormat::Ssh => {
            usage("--namespace works only with --format ssh: no other format has namespaces")
        }
        Some(namespace) => ssh::check_namespace(namespace)
            .map_err(|error| Error::new("usage", format!("--namespace: {error}"))),
        None => Ok(()),
    }
}

/// Refuses more files than fit into memory, for a format that signs the files themselves.
fn check_total(args: &SignArgs) -> Result<()> {
    if Listed::of(args) != Listed::Nothing {
        return Ok(());
    }
    let Some(coverage) = args.format.coverage() else { return Ok(()) };
    let lengths = args.paths.iter().filter_map(|path| path.metadata().ok());
    let lengths = lengths.filter(|metadata| metadata.is_file()).map(|metadata| metadata.len());
    let total = lengths.fold(0_u64, u64::saturating_add);
    coverage.check_len(total).map_err(|_| {
        let format = args.format.name();
        let message = format!(
            "with --format {format}, all files together may have at most 1 GiB: such a signature covers the file itself"
        );
        Error::new("file_too_large", message)
            .hint("sign a list of checksums instead: `bulla sum --algorithm sha256 --tag FILE > SHA256`")
    })
}

/// Checks that the key exists and signs. It returns the key, if the user may read it.
fn check_key(keys: &dyn Keys, args: &SignArgs) -> Result<Option<Attestation>> {
    if args.key == DEFAULT_LABEL && !args.no_create {
        keys.ensure_default()?;
    }
    let Some(key) = keys.planned_key(&args.key)? else { return Ok(None) };
    args.format.check_key(&key).map_err(|error| error.about(args.key.clone()))?;
    check_signs(&key, &args.key)?;
    note_clock(&key)?;
    Ok(Some(key))
}

/// A path to sign.
struct Job<'a> {
    path: &'a Path,
    target: Destination,
    /// What is left out of a folder.
    exclusions: &'a [Exclusion],
    before: PreviousSignature,
}

/// The content to sign, read and hashed.
enum SignInput {
    File {
        digest: bulla_blake3::Hash,
        size: u64,
    },
    Folder(Box<folder::FolderList>, Option<folder::StampFile>),
    /// What a format of another program covers.
    Covered(Covered),
}

/// Reads all paths, several small files at a time. The results are in the order of the paths.
/// `keystore` is its folder, if that is on this machine.
fn read_all(
    jobs: &[Result<Job<'_>>],
    args: &SignArgs,
    keystore: Option<&Path>,
) -> Result<Vec<Result<SignInput>>> {
    let progress = Progress::of(total_of(&args.paths, args.work.progress), args.work.progress);
    let mut contents = Vec::with_capacity(jobs.len());
    in_order(
        jobs,
        args.work.threads(),
        |job| job.as_ref().is_ok_and(|job| is_large(job.path)),
        |job, read_mode| match job {
            Ok(job) => read(job, args, keystore, read_mode, &progress),
            Err(error) => Err(error.clone()),
        },
        |_, content| {
            contents.push(content);
            Ok(())
        },
    )?;
    Ok(contents)
}

fn read(
    job: &Job<'_>,
    args: &SignArgs,
    keystore: Option<&Path>,
    read_mode: ReadMode,
    progress: &Progress,
) -> Result<SignInput> {
    let path = job.path;
    let about = |error: ReadError| Error::from(error).about(escape_path(path));
    let is_stdin = path == Path::new(STDIN);
    let is_folder = !is_stdin && path.metadata().is_ok_and(|metadata| metadata.is_dir());
    let opened = || match is_stdin {
        true => Source::stdin().map_err(ReadError::Io),
        false => Source::open_file(path, Links::Follow),
    };
    if Listed::of(args) != Listed::Nothing {
        return read_listed(job, args, keystore, progress);
    }
    match args.format.coverage() {
        Some(coverage) if !is_folder => {
            let source = opened().map_err(|error| file_error(path, error))?;
            let content = covered(&source, coverage, progress);
            content
                .map(Covered::File)
                .map(SignInput::Covered)
                .map_err(|error| Error::from(error).about(escape_path(path)))
        }
        Some(_) => {
            let format = args.format.name();
            Err(Error::new("is_a_folder", format!("is a folder: {format} signs only files"))
                .about(escape_path(path))
                .hint(format!("leave out --format {format}: bulla's own format signs folders")))
        }
        None if is_stdin => read_file(opened(), read_mode, progress).map_err(about),
        None if is_folder => {
            check_outside(path, &job.target, keystore)?;
            read_folder(job, args, read_mode, progress)
        }
        None => read_file(opened(), read_mode, progress).map_err(|error| file_error(path, error)),
    }
}

/// Reads a path for a format that lists files with their digests.
fn read_listed(
    job: &Job<'_>,
    args: &SignArgs,
    keystore: Option<&Path>,
    progress: &Progress,
) -> Result<SignInput> {
    let path = job.path;
    let output = match &job.target {
        Destination::File(output) => Some(output.as_path()),
        Destination::Stdout => None,
    };
    if let (true, Some(keystore)) = (path.is_dir(), keystore) {
        refuse_inside(path, keystore, "the keystore")?;
    }
    let statement = match Listed::of(args) {
        Listed::Model => model_of(path, args, output, progress)?,
        _ => {
            if path.is_dir() {
                check_outside(path, &job.target, None)?;
            }
            statement_of(path, args, job.exclusions, progress)?
        }
    };
    Ok(SignInput::Covered(Covered::Statement(statement)))
}

fn file_error(path: &Path, error: ReadError) -> Error {
    let is_stream = matches!(error, ReadError::NotAFile(_));
    let error = Error::from(error).about(escape_path(path));
    if is_stream { error.hint("to sign its output, pipe it to `bulla sign -`") } else { error }
}

fn read_file(
    source: Result<Source, ReadError>,
    read_mode: ReadMode,
    progress: &Progress,
) -> Result<SignInput, ReadError> {
    let digested = source?.digest(&HashMode::Plain, read_mode, progress)?;
    Ok(SignInput::File { size: digested.size, digest: digested.hash() })
}

/// Refuses to sign a folder that contains the keystore, or where the signature is to go.
fn check_outside(path: &Path, output: &Destination, keystore: Option<&Path>) -> Result<()> {
    if let Destination::File(output) = output {
        let folder =
            output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        refuse_inside(path, folder, "the signature file")?;
    }
    if let Some(keystore) = keystore {
        refuse_inside(path, keystore, "the keystore")?;
    }
    Ok(())
}

/// The largest list of files that is kept in memory until it is signed.
const LIST_IN_MEMORY: usize = 1 << 20;

/// A place for a list of files until it is signed: a longer one is in a file without a name, where
/// the signature will be.
fn list_file(output: &Destination) -> SpooledTempFile {
    match output {
        Destination::File(output) => SpooledTempFile::new_in(LIST_IN_MEMORY, folder_of(output)),
        Destination::Stdout => SpooledTempFile::new(LIST_IN_MEMORY),
    }
}

fn read_folder(
    job: &Job<'_>,
    args: &SignArgs,
    read_mode: ReadMode,
    progress: &Progress,
) -> Result<SignInput> {
    let &Job { path, exclusions, ref target, ref before } = job;
    let drafts = folder::ListJob {
        body: list_file(target),
        recorder: folder::StampWriter::start(before.stamp_file.as_ref()),
        exclusions,
        earlier: match target {
            Destination::File(signature) => earlier(signature, folder::rules(path, exclusions.iter())?),
            Destination::Stdout => folder::EarlierPaths::none(),
        },
    };
    let mode = if args.full { folder::ListMode::Full } else { folder::ListMode::Quick };
    let listed =
        folder::list(path, before.stamps.as_ref(), mode, read_mode, progress, drafts).map_err(|errors| {
            progress.suspend(|| errors.iter().for_each(Error::print));
            let entries = counted(errors.len() as u64, "entry", "entries");
            Error::new("not_signed", format!("not signed: bulla cannot sign {entries} of this folder"))
                .about(escape_path(path))
        })?;
    check_listed(job, &listed, args)?;
    Ok(SignInput::Folder(Box::new(listed), before.stamp_file.clone()))
}

/// Refuses a list that nobody can have meant to sign.
fn check_listed(job: &Job<'_>, listed: &folder::FolderList, args: &SignArgs) -> Result<()> {
    let path = job.path;
    if let Some(damaged) = listed.damaged.first() {
        let files = counted(listed.damaged.len() as u64, "file is", "files are");
        let message = format!(
            "not signed: {files} damaged: the content differs from what was signed, but nobody wrote to it; the first one is {}",
            escape_path(&path_from(damaged))
        );
        return Err(Error::new("damaged", message).about(escape_path(path)).hint(
            "restore it from a copy; to sign it as it is now, write to it first, for example with `touch`",
        ));
    }
    if listed.summary.entries == 0 && listed.gone.count > 0 && !args.allow_empty {
        let message = format!(
            "not signed: the folder is empty, and its last signature lists {}",
            counted(listed.gone.count, "entry", "entries")
        );
        return Err(Error::new("folder_empty", message)
            .about(escape_path(path))
            .hint("check that its disk is mounted; to sign the empty folder, add --allow-empty"));
    }
    if listed.summary.entries == 0 && !job.exclusions.is_empty() && !args.allow_empty {
        return Err(Error::new("nothing_to_sign", "not signed: all of it is left out, or it is empty")
            .about(escape_path(path))
            .hint("leave out less with --exclude and --ignore-file, or add --allow-empty"));
    }
    Ok(())
}

/// Refuses to sign a folder that contains something secret, or something that signing itself
/// changes.
fn refuse_inside(folder: &Path, inner: &Path, what: &str) -> Result<()> {
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| Error::io("cannot find", &error).about(escape_path(path)))
    };
    if real(inner)?.starts_with(real(folder)?) {
        return Err(Error::new(
            "inside",
            format!("contains {what}, which cannot be part of a signed folder"),
        )
        .about(escape_path(folder))
        .hint("move it to another place with --output or --keystore"));
    }
    Ok(())
}

fn sign_statement(
    keys: &dyn Keys,
    args: &SignArgs,
    path: &Path,
    comment: &Comment,
    content: SignInput,
) -> Result<Signed> {
    let statement = |kind, digest, size| Statement::new(kind, digest, size).comment(comment.clone());
    let (statement, body, listed) = match content {
        SignInput::File { digest, size } => {
            (statement(StatementKind::File, digest, size).name(signed_name(path, args)?), None, None)
        }
        SignInput::Folder(mut listed, stamp_file) => {
            let summary = listed.summary;
            (
                statement(StatementKind::Manifest, summary.digest, summary.size),
                listed.body.take(),
                Some((listed, stamp_file)),
            )
        }
        SignInput::Covered(content) => return sign_foreign(keys, args, path, comment, &content),
    };
    let prehash = args.prehash.map(|prehash| match prehash {
        args::Prehash::Blake3 => Prehash::Blake3,
        args::Prehash::Ed25519ph => Prehash::Ed25519ph,
    });
    let file = keys.sign_statement(&args.key, statement, prehash)?;
    let json = JsonSigned {
        format: args.format.name(),
        key: file.key.to_string(),
        kind: file.kind.as_str(),
        digest: Some(file.digest.to_hex().to_string()),
        name: file.name.as_ref().map(ToString::to_string),
        entries: listed.as_ref().map(|(listed, _)| listed.summary.entries),
        removed: listed.as_ref().map(|(listed, _)| listed.gone.count),
        reading: listed.as_ref().map(|(listed, _)| JsonReading {
            mode: listed.mode,
            read: listed.read,
            kept: listed.kept,
        }),
        signed_at: file.signed_at.to_string(),
    };
    let version = file.key.version();
    let signed = Signed { text: file.to_string(), version, ..Signed::of_file(json) };
    Ok(match listed {
        None => signed,
        Some((listed, stamp_file)) => {
            let folder::FolderList { recorder, gone, summary, .. } = *listed;
            let stamps = stamp_file.map(|file| (recorder, file, summary.digest));
            Signed { body, stamps, gone, ..signed }
        }
    })
}

/// The name that a signature covers; none for standard input, and where the user wants none.
fn signed_name(path: &Path, args: &SignArgs) -> Result<Option<SignedName>> {
    if args.no_name || path == Path::new(STDIN) {
        return Ok(None);
    }
    let Some(name) = path.file_name() else { return Ok(None) };
    let name = SignedName::from_bytes(name.as_encoded_bytes()).map_err(|error| {
        let error = Error::from(error).about(escape_path(path));
        error.hint("rename it, or leave its name out of the signature with --no-name")
    })?;
    Ok(Some(name))
}

fn sign_foreign(
    keys: &dyn Keys,
    args: &SignArgs,
    path: &Path,
    comment: &Comment,
    covered: &Covered,
) -> Result<Signed> {
    let namespace = args.namespace.as_deref().unwrap_or(ssh::FILE_NAMESPACE);
    let job = SignJob { keys, key: &args.key, format: args.format, namespace, path, comment };
    let new = job.sign(covered)?;
    let json = JsonSigned {
        format: args.format.name(),
        key: new.key.to_string(),
        kind: if path.is_dir() { StatementKind::Manifest.as_str() } else { StatementKind::File.as_str() },
        digest: None,
        name: None,
        entries: None,
        removed: None,
        reading: None,
        signed_at: new.signed_at.to_string(),
    };
    let minisign_key = match args.format {
        SignatureFormat::Minisign => Some(NumberedKey::of(new.public_key).line()),
        _ => None,
    };
    let body = match covered {
        Covered::File(content) if args.embed => Some(embedded(content)?),
        _ => None,
    };
    Ok(Signed { text: new.text, version: new.key.version(), body, minisign_key, ..Signed::of_file(json) })
}

/// A file's content, to be written after its signature.
fn embedded(content: &[u8]) -> Result<SpooledTempFile> {
    let mut body = SpooledTempFile::new(content.len());
    body.write_all(content).map_err(|error| Error::io("cannot keep the file until it is signed", &error))?;
    Ok(body)
}
