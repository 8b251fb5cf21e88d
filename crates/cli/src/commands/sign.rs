//! `bulla sign`: signature files for files and folders.

use crate::args::{self, DEFAULT_LABEL, KeystoreArgs, SignArgs, SignatureFormat};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::name::{shell_word, shown};
use crate::files::order::in_order;
use crate::files::read::{HashMode, Links, Pace, ReadError, Source};
use crate::files::sidecar::{check_replaceable, sidecar};
use crate::files::size::{is_large, total_of};
use crate::files::{STDIN, atomic};
use crate::folder;
use crate::idle;
use crate::interrupt;
use crate::minisign;
use crate::output::{JsonError, JsonPath, Out};
use crate::progress::Progress;
use crate::store::{Holder, Keys};
use crate::trust::check_usable;
use bulla_files::folder_of;
use bulla_kms::prehash::Prehash;
use bulla_kms::signature::{Comment, manifest};
use bulla_kms::{Code, KeyState, Kind, SignatureFile, Statement};
use bulla_sums::path_from;
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Seek as _};
use std::path::{Path, PathBuf};
use tempfile::SpooledTempFile;

pub(crate) fn run(args: &SignArgs) -> Result<Exit> {
    check_usage(args)?;
    // Threads that start before this would not have the turn.
    idle::take(args.work.turn())?;
    interrupt::guard();
    let comment: Comment = args.comment.as_deref().unwrap_or_default().parse()?;
    let holder = Holder::existing_or_new(&args.keystore)?;
    // The keystore is opened twice: now, so that a wrong passphrase or key is reported before a long read, and again
    // when everything is read. In between, other processes may use it.
    let known = {
        let keys = holder.open()?;
        check_key(&*keys, args)?;
        Before::of_all(&*keys, args)
    };
    let contents = read_all(args, holder.folder(), &known)?;

    let keys = holder.open()?;
    let sign = |content: Result<Content>| content.and_then(|content| seal(&*keys, args, &comment, content));
    let signed: Vec<_> = contents.into_iter().map(sign).collect();
    drop(keys);

    let mut out = Out::new();
    let mut exit = Exit::Ok;
    for (path, signed) in args.paths.iter().zip(signed) {
        let result = signed.and_then(|mut signed| write(&mut out, path, args, &mut signed));
        if let Err(error) = result {
            if error.is_broken_pipe() {
                return Err(error);
            }
            exit = Exit::Trouble;
            error.print();
            if args.report.json {
                out.json(&JsonLine::error(path, &error))?;
            }
        }
    }
    out.flush()?;
    Ok(exit)
}

fn check_usage(args: &SignArgs) -> Result<()> {
    let usage = |message: &str| Err(Error::new("usage", message));
    if args.output.is_some() && args.paths.len() > 1 {
        return usage("--output names one signature file, so only one PATH can be given");
    }
    if args.prehash.is_some() && args.format == SignatureFormat::Minisign {
        return usage("--prehash works only for bulla's own signature files: minisign has its own prehash");
    }
    let stdins = args.paths.iter().filter(|path| path.as_path() == Path::new(STDIN)).count();
    if stdins > 0 && args.paths.len() > 1 {
        return usage("standard input must be the only PATH");
    }
    if args.report.json
        && args.paths.iter().any(|path| matches!(destination(path, args), Ok(Destination::Stdout)))
    {
        return usage("with --json the signature cannot go to standard output: add --output FILE");
    }
    Ok(())
}

/// Checks that the key exists and signs.
fn check_key(keys: &dyn Keys, args: &SignArgs) -> Result<()> {
    if args.key == DEFAULT_LABEL {
        keys.ensure_default()?;
    }
    let Some(key) = keys.foresee(&args.key)? else { return Ok(()) };
    if args.format == SignatureFormat::Minisign {
        minisign::check_algorithm(key.algorithm).map_err(|error| error.about(args.key.clone()))?;
    }
    if key.state == KeyState::Enabled {
        return Ok(());
    }
    Err(Error::new(Code::KeyDisabled.as_str(), format!("the key {} is disabled: it does not sign", args.key))
        .hint(format!("enable it with `bulla keys enable {}`, or name another key with --key", args.key)))
}

/// The destination of a signature.
enum Destination {
    Stdout,
    File(PathBuf),
}

fn destination(path: &Path, args: &SignArgs) -> Result<Destination> {
    match &args.output {
        Some(output) if output == Path::new(STDIN) => Ok(Destination::Stdout),
        Some(output) => Ok(Destination::File(output.clone())),
        None if path == Path::new(STDIN) => Ok(Destination::Stdout),
        None => Ok(Destination::File(sidecar(path, args.format.extension())?)),
    }
}

/// The content to sign, read and hashed.
enum Content {
    File { digest: bulla_blake3::Hash, size: u64 },
    Folder(Box<folder::Listed>, Option<folder::Place>),
    Prehashed(minisign::Digest),
}

/// Reads all paths, several small files at a time. The results are in the order of the paths. `keystore` is its folder, if that is on
/// this machine.
fn read_all(args: &SignArgs, keystore: Option<&Path>, before: &[Before]) -> Result<Vec<Result<Content>>> {
    let progress = Progress::of(total_of(&args.paths, args.work.progress), args.work.progress);
    let mut contents = Vec::with_capacity(args.paths.len());
    let paths: Vec<_> = args.paths.iter().zip(before).collect();
    in_order(
        &paths,
        args.work.threads(),
        |(path, _)| is_large(path),
        |(path, before), pace| read(path, args, keystore, before, pace, &progress),
        |_, content| {
            contents.push(content);
            Ok(())
        },
    )?;
    Ok(contents)
}

fn read(
    path: &Path,
    args: &SignArgs,
    keystore: Option<&Path>,
    before: &Before,
    pace: Pace,
    progress: &Progress,
) -> Result<Content> {
    let about = |error: ReadError| Error::from(error).about(shown(path));
    let output = destination(path, args)?;
    if let Destination::File(output) = &output {
        check_replaceable(output)?;
    }
    let is_stdin = path == Path::new(STDIN);
    let is_folder = !is_stdin && path.metadata().is_ok_and(|metadata| metadata.is_dir());
    match args.format {
        SignatureFormat::Bulla if is_stdin => {
            read_file(Source::stdin().map_err(ReadError::Io), pace, progress).map_err(about)
        }
        SignatureFormat::Bulla if is_folder => {
            check_outside(path, &output, keystore)?;
            read_folder(path, args, before, pace, progress, &output)
        }
        SignatureFormat::Bulla => read_file(Source::open_file(path, Links::Follow), pace, progress)
            .map_err(|error| file_error(path, error)),
        SignatureFormat::Minisign if is_folder => {
            Err(Error::new("is_a_folder", "is a folder: minisign signs only files")
                .about(shown(path))
                .hint("leave out --format minisign: bulla's own format signs folders"))
        }
        SignatureFormat::Minisign => {
            let source = match is_stdin {
                true => Source::stdin().map_err(ReadError::Io),
                false => Source::open_file(path, Links::Follow),
            };
            let source = source.map_err(|error| file_error(path, error))?;
            Ok(Content::Prehashed(minisign::prehash(&source, progress).map_err(about)?))
        }
    }
}

fn file_error(path: &Path, error: ReadError) -> Error {
    let is_stream = matches!(error, ReadError::NotAFile(_));
    let error = Error::from(error).about(shown(path));
    if is_stream { error.hint("to sign its output, pipe it to `bulla sign -`") } else { error }
}

fn read_file(
    source: Result<Source, ReadError>,
    pace: Pace,
    progress: &Progress,
) -> Result<Content, ReadError> {
    let digested = source?.digest(&HashMode::Plain, pace, progress)?;
    Ok(Content::File { size: digested.size, digest: digested.hash() })
}

/// What is known of a path from the last time that it was signed.
struct Before {
    /// Where the stamps of a folder are kept.
    place: Option<folder::Place>,
    known: Option<folder::Known<'static>>,
}

impl Before {
    fn of_all(keys: &dyn Keys, args: &SignArgs) -> Vec<Self> {
        args.paths.iter().map(|path| Self::of(keys, path, args)).collect()
    }

    fn of(keys: &dyn Keys, path: &Path, args: &SignArgs) -> Self {
        if args.format != SignatureFormat::Bulla || !path.is_dir() {
            return Self { place: None, known: None };
        }
        let place = folder::Place::of(path);
        let known = place.as_ref().and_then(|place| Self::known(keys, path, args, place));
        Self { place, known }
    }

    /// What the older signature file says, if one of the user's own keys made it. Anything else about it is no reason to stop: everything
    /// is read then.
    fn known(
        keys: &dyn Keys,
        path: &Path,
        args: &SignArgs,
        place: &folder::Place,
    ) -> Option<folder::Known<'static>> {
        let Ok(Destination::File(signature)) = destination(path, args) else { return None };
        let source = Source::open_file(&signature, Links::Follow).ok()?;
        let mut reader = BufReader::with_capacity(1 << 16, source.into_file());
        let file = SignatureFile::read_from(&mut reader).ok()?;
        if file.kind != Kind::Manifest || !place.has(&file.digest) {
            return None;
        }
        let key = keys.key(&file.key.family().to_string()).ok()?;
        let version = key.versions.iter().find(|version| version.version == file.key.version())?;
        check_usable(&key, version).ok()?;
        if !file.verify_with(&version.public_key).is_valid() {
            return None;
        }
        let mut reader = manifest::Reader::new(reader);
        let mut entries = folder::Packed::default();
        for entry in reader.by_ref() {
            entries.push(&entry.ok()?);
        }
        let summary = reader.summary();
        let is_whole = (summary.digest, summary.size) == (file.digest, file.size);
        let entries = folder::Entries::Packed(entries);
        is_whole.then(|| folder::Known::read(place, &file.digest, entries)).flatten()
    }
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

/// A place for a list of files until it is signed: a longer one is in a file without a name, where the signature will be.
fn list_file(output: &Destination) -> SpooledTempFile {
    match output {
        Destination::File(output) => SpooledTempFile::new_in(LIST_IN_MEMORY, folder_of(output)),
        Destination::Stdout => SpooledTempFile::new(LIST_IN_MEMORY),
    }
}

fn read_folder(
    path: &Path,
    args: &SignArgs,
    before: &Before,
    pace: Pace,
    progress: &Progress,
    output: &Destination,
) -> Result<Content> {
    let drafts =
        folder::Drafts { body: list_file(output), recorder: folder::Recorder::start(before.place.as_ref()) };
    let mode = if args.full { folder::Mode::Full } else { folder::Mode::Quick };
    let listed =
        folder::list(path, before.known.as_ref(), mode, pace, progress, drafts).map_err(|errors| {
            progress.suspend(|| errors.iter().for_each(Error::print));
            let count = errors.len();
            let entries = if count == 1 { "entry" } else { "entries" };
            Error::new(
                "not_signed",
                format!("not signed: bulla cannot sign {count} {entries} of this folder"),
            )
            .about(shown(path))
        })?;
    if let Some(damaged) = listed.damaged.first() {
        let count = listed.damaged.len();
        let files = if count == 1 { "file is" } else { "files are" };
        let message = format!(
            "not signed: {count} {files} damaged: the content differs from what was signed, but nobody wrote to it; the first one is {}",
            shown(&path_from(damaged))
        );
        return Err(Error::new("damaged", message).about(shown(path)).hint(
            "restore it from a copy; to sign it as it is now, write to it first, for example with `touch`",
        ));
    }
    Ok(Content::Folder(Box::new(listed), before.place.clone()))
}

/// Refuses to sign a folder that contains something secret, or something that signing itself changes.
fn refuse_inside(folder: &Path, inner: &Path, what: &str) -> Result<()> {
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| Error::io("cannot find", &error).about(shown(path)))
    };
    if real(inner)?.starts_with(real(folder)?) {
        return Err(Error::new(
            "inside",
            format!("contains {what}, which cannot be part of a signed folder"),
        )
        .about(shown(folder))
        .hint("move it to another place with --output or --keystore"));
    }
    Ok(())
}

/// A signature, ready to be written.
struct Signed {
    /// The signature file; for a folder, without its body.
    text: String,
    body: Option<SpooledTempFile>,
    json: JsonSigned,
    /// For minisign, the line of base64 that `minisign -P` takes.
    minisign_key: Option<String>,
    /// For a folder, what the next signing has to know, where it is kept, and the digest of the list.
    stamps: Option<(folder::Recorder, folder::Place, bulla_blake3::Hash)>,
}

fn seal(keys: &dyn Keys, args: &SignArgs, comment: &Comment, content: Content) -> Result<Signed> {
    let statement = |kind, digest, size| Statement { kind, digest, size, comment: comment.clone() };
    let (statement, body, listed) = match content {
        Content::File { digest, size } => (statement(Kind::File, digest, size), None, None),
        Content::Folder(mut listed, place) => {
            let summary = listed.summary;
            (
                statement(Kind::Manifest, summary.digest, summary.size),
                listed.body.take(),
                Some((listed, place)),
            )
        }
        Content::Prehashed(digest) => return seal_minisign(keys, args, comment, &digest),
    };
    let prehash = args.prehash.map(|prehash| match prehash {
        args::Prehash::Blake3 => Prehash::Blake3,
        args::Prehash::Ed25519ph => Prehash::Ed25519ph,
    });
    let file = keys.sign_statement(&args.key, statement, prehash)?;
    let json = JsonSigned {
        key: file.key.to_string(),
        kind: file.kind.as_str(),
        digest: Some(file.digest.to_hex().to_string()),
        entries: listed.as_ref().map(|(listed, _)| listed.summary.entries),
        reading: listed.as_ref().map(|(listed, _)| JsonReading {
            mode: listed.mode,
            read: listed.read,
            kept: listed.kept,
        }),
        signed_at: file.signed_at.to_string(),
    };
    let stamps = listed.and_then(|(listed, place)| Some((listed.recorder, place?, listed.summary.digest)));
    Ok(Signed { text: file.to_string(), body, json, minisign_key: None, stamps })
}

fn seal_minisign(
    keys: &dyn Keys,
    args: &SignArgs,
    comment: &Comment,
    digest: &minisign::Digest,
) -> Result<Signed> {
    let signed_at = bulla_kms::Timestamp::now()?;
    let name = args.paths.first().and_then(|path| path.file_name()).map(PathBuf::from).unwrap_or_default();
    let trusted_comment = if comment.as_str().is_empty() {
        format!("timestamp:{}\tfile:{}\thashed", signed_at.unix_millis() / 1000, shown(&name))
    } else {
        comment.to_string()
    };
    let first = keys.sign(&args.key, digest)?;
    let algorithm = first.key.family().algorithm();
    let signature = minisign::Signature::bytes(algorithm, first.bytes)?;
    let global = minisign::Signature::global_message(&signature, &trusted_comment);
    // The same version must sign both, or there is no signature: a rotation policy may replace the version in between.
    let global = minisign::Signature::bytes(algorithm, keys.sign(&first.key.to_string(), &global)?.bytes)?;
    let public_key = minisign::NamedKey::of(keys.public_key(&first.key)?);
    let file = minisign::Signature {
        algorithm: minisign::Algorithm::Prehashed,
        key: public_key.id,
        signature,
        trusted_comment,
        global,
    };
    let json = JsonSigned {
        key: first.key.to_string(),
        kind: Kind::File.as_str(),
        digest: None,
        entries: None,
        reading: None,
        signed_at: signed_at.to_string(),
    };
    let text = file.file(&format!("signature from bulla key {}", first.key));
    Ok(Signed { text, body: None, json, minisign_key: Some(public_key.line()), stamps: None })
}

/// Passes a list of files to `each`, piece by piece.
fn each_piece<E>(
    body: Option<&mut SpooledTempFile>,
    failed: impl Fn(io::Error) -> E,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let Some(body) = body else { return Ok(()) };
    body.rewind().map_err(&failed)?;
    let mut reader = BufReader::with_capacity(1 << 16, body);
    loop {
        let piece = reader.fill_buf().map_err(&failed)?;
        if piece.is_empty() {
            return Ok(());
        }
        each(piece)?;
        let len = piece.len();
        reader.consume(len);
    }
}

/// Writes the signature file and says how to verify it.
fn write(out: &mut Out, path: &Path, args: &SignArgs, signed: &mut Signed) -> Result<()> {
    let output = match destination(path, args)? {
        Destination::Stdout => {
            out.bytes(signed.text.as_bytes())?;
            let failed = |error| Error::io("cannot read the list of files again", &error);
            return each_piece(signed.body.as_mut(), failed, |piece| out.bytes(piece));
        }
        Destination::File(output) => output,
    };
    check_replaceable(&output)?;
    atomic::write(&output, |file| {
        file.write_all(signed.text.as_bytes())?;
        each_piece(signed.body.as_mut(), |error| error, |piece| file.write_all(piece))
    })?;
    if let Some((recorder, place, digest)) = signed.stamps.take() {
        place.keep(recorder, &digest);
    }
    out.note_done("the signature files were written");
    if args.report.json {
        return out.json(&JsonLine::signed(path, &output, &signed.json));
    }
    if args.report.quiet {
        return Ok(());
    }
    let reading = signed.json.reading.as_ref().map_or_else(String::new, JsonReading::sentence);
    out.line(format_args!("{}: signed, wrote {}{reading}", shown(path), shown(&output)))?;
    out.line("verify it with:")?;
    out.line(format_args!("  {}", verify_line(path, args)))?;
    if let Some(key) = &signed.minisign_key {
        let mut line = format!("  minisign -Vm {} -P {key}", shell_word(path.as_os_str()));
        if args.output.is_some() {
            line.push_str(&format!(" -x {}", shell_word(output.as_os_str())));
        }
        out.line(line)?;
    }
    out.flush_sometimes()
}

/// The command that verifies the signature, ready to be pasted into the same shell.
fn verify_line(path: &Path, args: &SignArgs) -> String {
    // Use the name by which this program was called, so that the shell finds it in the same way.
    let program = std::env::args_os().next().unwrap_or_else(|| "bulla".into());
    let mut words: Vec<OsString> = vec![program, "verify".into()];
    if args.format == SignatureFormat::Minisign {
        words.extend(["--format".into(), "minisign".into()]);
    }
    if let Some(output) = &args.output {
        words.extend(["--signature".into(), output.into()]);
    }
    let KeystoreArgs { keystore, passphrase_file, server, .. } = &args.keystore;
    let path_of = |path: &Option<PathBuf>| path.as_ref().map(|path| path.clone().into_os_string());
    let settings = [
        ("--keystore", "BULLA_KEYSTORE", path_of(keystore)),
        ("--passphrase-file", "BULLA_PASSPHRASE_FILE", path_of(passphrase_file)),
        ("--server", "BULLA_SERVER", server.server.as_ref().map(|server| server.text.clone().into())),
        ("--server-ca", "BULLA_SERVER_CA", path_of(&server.server_ca)),
        // No variable has it.
        ("--token-file", "", path_of(&server.token_file)),
        ("--client-certificate", "BULLA_CLIENT_CERTIFICATE", path_of(&server.client_certificate)),
        ("--client-key", "BULLA_CLIENT_KEY", path_of(&server.client_key)),
    ];
    for (flag, variable, value) in settings {
        // A value from the environment will be there again.
        if let Some(value) = value.filter(|value| std::env::var_os(variable).as_ref() != Some(value)) {
            words.extend([flag.into(), value]);
        }
    }
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") && path != Path::new(STDIN) {
        words.push("--".into());
    }
    words.push(path.into());
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// The output of `--json` for a signature.
#[derive(Serialize)]
struct JsonSigned {
    key: String,
    kind: &'static str,
    /// The BLAKE3 digest that was signed; absent for minisign.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// For a folder, the number of signed files and links.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
    /// For a folder, which files were read.
    #[serde(flatten)]
    reading: Option<JsonReading>,
    signed_at: String,
}

#[derive(Serialize)]
struct JsonReading {
    mode: folder::Mode,
    /// The number of files that were read.
    read: u64,
    /// The number of files that were not read, because they have not changed since they were signed.
    kept: u64,
}

impl JsonReading {
    /// The end of a line about a signed folder: nothing, if everything was read and nobody could expect otherwise.
    fn sentence(&self) -> String {
        match self.mode {
            folder::Mode::Full => String::new(),
            folder::Mode::Quick => format!(
                " (read {} new or changed files; {} unchanged by size and times: --full reads them too)",
                self.read, self.kept
            ),
        }
    }
}

/// The output of `--json` for a path.
#[derive(Serialize)]
struct JsonLine<'a> {
    #[serde(flatten)]
    path: JsonPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(flatten)]
    signed: Option<&'a JsonSigned>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<JsonError>,
}

impl<'a> JsonLine<'a> {
    fn signed(path: &Path, output: &Path, signed: &'a JsonSigned) -> Self {
        let signature = Some(output.to_string_lossy().into_owned());
        Self { path: path.into(), signature, signed: Some(signed), error: None }
    }

    fn error(path: &Path, error: &Error) -> Self {
        Self { path: path.into(), signature: None, signed: None, error: Some(error.into()) }
    }
}
