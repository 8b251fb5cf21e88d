//! `bulla encrypt`, `decrypt`, `rekey` and `keygen`.

use super::encrypt_value;
use crate::args::{
    DecryptArgs, DecryptWithArgs, EncryptArgs, EncryptToArgs, KeygenArgs, RekeyArgs, ReportArgs,
};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::atomic;
use crate::files::read::{Links, Source, StreamError};
use crate::output::{JsonPath, Out, Stdout};
use crate::progress::Progress;
use crate::store::{KeySource, Keys, Prompt, passphrase_of};
use bulla_files::escape_path;
use bulla_kms::encrypted_file::{self, Decryptor, Encryptor, ExistingRecipients, Header};
use bulla_kms::encryption::{Identity, IdentityKind, KeyFileProvider, KeyProvider, Passphrase, Recipient};
use bulla_kms::{Code, KmsError};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead as _, Read, Write};
use std::path::{Path, PathBuf};

/// The associated data of an encrypted file: it says that the content is a file.
const ASSOCIATED: &[u8] = b"bulla file v1";
const SUFFIX: &str = ".sealed";
const STREAM: &str = "-";
/// The maximum length of a file of recipients: one of X-Wing has 1,630 bytes.
const MAX_RECIPIENTS: u64 = 1 << 20;

/// The keys to encrypt to.
pub(super) fn to(args: &EncryptToArgs, what: &str) -> Result<Vec<Box<dyn KeyProvider>>> {
    let mut keys: Vec<Box<dyn KeyProvider>> = Vec::new();
    for text in recipients(args)? {
        keys.push(Box::new(text.parse::<Recipient>()?));
    }
    keys.append(&mut secrets(args, what)?);
    Ok(keys)
}

/// The texts of the recipients that the arguments name.
pub(super) fn recipients(args: &EncryptToArgs) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for text in &args.recipient {
        texts.append(&mut recipient_texts(text)?);
    }
    Ok(texts)
}

/// The passphrase and the key file that the arguments name. `what` is what the passphrase will
/// open.
pub(super) fn secrets(args: &EncryptToArgs, what: &str) -> Result<Vec<Box<dyn KeyProvider>>> {
    let mut keys: Vec<Box<dyn KeyProvider>> = Vec::new();
    if args.passphrase || args.new_passphrase_file.is_some() {
        let secret = passphrase_of(what, args.new_passphrase_file.as_deref(), Prompt::Twice)?;
        keys.push(Box::new(Passphrase::new(secret)?));
    }
    if let Some(path) = &args.new_key_file {
        let key_file = KeyFileProvider::new(path);
        // It is read now, before a long file is.
        key_file.new_kek().map_err(|error| match error.code {
            Code::NotFound | Code::MalformedKeyFile => Error::from(error).hint(NEW_KEY_FILE),
            _ => error.into(),
        })?;
        keys.push(Box::new(key_file));
    }
    Ok(keys)
}

/// How to make a key file.
const NEW_KEY_FILE: &str = "make one with: \
    (umask 077 && { echo 'bulla key file v1'; head -c 32 /dev/urandom | base64; } > FILE)";

/// The only recipient of a text or a file.
pub(super) fn recipient(text: &str) -> Result<Recipient> {
    let mut texts = recipient_texts(text)?;
    match (texts.pop(), texts.len()) {
        (Some(one), 0) => Ok(one.parse()?),
        (_, others) => {
            let message = format!("contains {} recipients; give a file with one", others + 1);
            Err(Error::new("invalid_public_key", message).about(escape_path(Path::new(text))))
        }
    }
}

/// How a key begins, of which a user may give the text instead of a file's name. Secret ones are
/// among them: they are refused, and not taken for a name, which errors quote.
const KEYS: [&str; 6] = ["age1", "x-wing:", "ssh-", "AGE-", "x-wing-secret:", "ecdsa-"];

/// The texts of recipients, of which one is given, or one or more are in a file: one a line, with
/// comments after `#`, as age has them, or the public key file of a keystore's key.
fn recipient_texts(text: &str) -> Result<Vec<String>> {
    if KEYS.iter().any(|start| text.starts_with(start)) {
        text.parse::<Recipient>()?;
        return Ok(vec![text.to_owned()]);
    }
    let about = |error: Error| error.about(escape_path(Path::new(text)));
    let mut content = String::new();
    let read = File::open(text).and_then(|file| file.take(MAX_RECIPIENTS + 1).read_to_string(&mut content));
    read.map_err(|error| about(Error::io("cannot read the recipient", &error)))?;
    if content.len() as u64 > MAX_RECIPIENTS {
        let message = format!("is too long: a file of recipients has at most {MAX_RECIPIENTS} bytes");
        return Err(about(Error::new("file_too_large", message)));
    }
    if content.starts_with("bulla public key ") {
        content.parse::<Recipient>().map_err(|error| about(error.into()))?;
        return Ok(vec![content]);
    }
    let mut texts = Vec::new();
    for (number, line) in (1..).zip(content.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line_of = |error: KmsError| Error::new(error.code.as_str(), format!("line {number}: {error}"));
        line.parse::<Recipient>().map_err(|error| about(line_of(error)))?;
        texts.push(line.to_owned());
    }
    if texts.is_empty() {
        return Err(about(Error::new("invalid_public_key", "contains no recipient")));
    }
    Ok(texts)
}

/// References to the keys.
pub(super) fn each<'a>(keys: &'a [Box<dyn KeyProvider + 'a>]) -> Vec<&'a dyn KeyProvider> {
    keys.iter().map(|key| &**key).collect()
}

/// Calls `open` with the keys that the header asks for and the arguments give. A passphrase is
/// asked for last, and only if the header asks for one.
pub(super) fn with_keys<T>(
    args: &DecryptWithArgs,
    header: &Header,
    what: &str,
    open: impl FnOnce(&[&dyn KeyProvider]) -> Result<T, KmsError>,
) -> Result<T> {
    let asks_for = |method: &str| header.wrapping_params().any(|params| params.method() == method);
    let source: KeySource;
    let keystore: Box<dyn Keys + '_>;
    let mut keys: Vec<Box<dyn KeyProvider + '_>> = Vec::new();
    if let Some(path) = &args.keystore.identity {
        for identity in Identity::read_all(path)? {
            keys.push(Box::new(identity));
        }
    }
    if let Some(path) = &args.key_file {
        keys.push(Box::new(KeyFileProvider::new(path)));
    }
    if asks_for("keystore") && !any_matches(header, &keys) {
        source = KeySource::existing(&args.keystore)?;
        keystore = source.open()?;
        keys.push(keystore.decrypter());
    }
    if asks_for("passphrase") && !any_matches(header, &keys) {
        let secret = passphrase_of(what, args.keystore.passphrase_file.as_deref(), Prompt::Once)?;
        keys.push(Box::new(Passphrase::new(secret)?));
    }
    Ok(open(&each(&keys))?)
}

/// Whether it is worth trying one of the keys.
fn any_matches(header: &Header, keys: &[Box<dyn KeyProvider + '_>]) -> bool {
    header.wrapping_params().any(|params| keys.iter().any(|key| key.matches(params)))
}

/// Prints an error about damaged or edited data as a mismatch, and returns its exit status.
pub(super) fn report_damage(error: Error) -> Result<Exit> {
    let damaged = [Code::EncryptedFileCorrupt, Code::InvalidCiphertext];
    if damaged.iter().any(|code| error.code() == code.as_str()) {
        error.print();
        return Ok(Exit::Mismatch);
    }
    Err(error)
}

pub(crate) fn encrypt(args: &EncryptArgs) -> Result<Exit> {
    if let Some(key) = &args.key {
        return encrypt_value::encrypt(args, key);
    }
    encrypt_value::check_unused(&args.value)?;
    let (source, named) = if args.file == Path::new(STREAM) {
        let stdin = Source::stdin();
        (stdin.map_err(|error| Error::io("cannot read", &error).about("standard input"))?, None)
    } else {
        let opened = Source::open_file(&args.file, Links::Follow);
        (opened.map_err(|error| Error::from(error).about(escape_path(&args.file)))?, Some(&args.file))
    };
    let output = args.output.clone().unwrap_or_else(|| match named {
        Some(path) => {
            let mut name = path.clone().into_os_string();
            name.push(SUFFIX);
            name.into()
        }
        None => STREAM.into(),
    });
    check_free(&output)?;
    let keys = to(&args.to, &escape_path(&args.file))?;
    let progress = Progress::new(source.len());
    let mut size = 0;
    write_output(&output, |sink| {
        let mut encryptor = Encryptor::new(sink, &each(&keys), ASSOCIATED)?;
        size = source.try_for_each(&progress, |piece| encryptor.write_all(piece)).map_err(|stopped| {
            match stopped {
                StreamError::Read(error) => Error::from(error).about(escape_path(&args.file)),
                StreamError::Consumer(error) => KmsError::io("cannot write the encrypted file", error).into(),
            }
        })?;
        encryptor.finish()?;
        Ok(())
    })?;
    drop(progress);
    report(args.report, "encrypted", &args.file, &output, size)?;
    Ok(Exit::Ok)
}

/// A reader that shows its progress.
struct Shown<'a, R> {
    source: R,
    progress: &'a Progress,
}

impl<R: Read> Read for Shown<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.progress.add(read as u64);
        Ok(read)
    }
}

/// A file, or standard input, and its length if it has one.
fn open_source(path: &Path) -> Result<(Box<dyn Read>, Option<u64>)> {
    if path == Path::new(STREAM) {
        return Ok((Box::new(io::stdin().lock()), None));
    }
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) =
        opened.map_err(|error| Error::io("cannot read", &error).about(escape_path(path)))?;
    Ok((Box::new(file), metadata.is_file().then_some(metadata.len())))
}

pub(crate) fn decrypt(args: &DecryptArgs) -> Result<Exit> {
    if let Some(key) = &args.key {
        return encrypt_value::decrypt(args, key);
    }
    encrypt_value::check_unused(&args.value)?;
    let output = match &args.output {
        Some(output) => output.clone(),
        None if args.file == Path::new(STREAM) => STREAM.into(),
        None => decrypted_name(&args.file)?,
    };
    check_free(&output)?;
    let (source, len) = open_source(&args.file)?;
    let progress = Progress::new(len);
    let mut source = Shown { source, progress: &progress };
    let about = |error: Error| error.about(escape_path(&args.file));
    let header = Header::read(&mut source).map_err(|error| about(error.into()))?;
    let opened = with_keys(&args.with, &header, &escape_path(&args.file), |keys| {
        Decryptor::with_header(&mut source, &header, keys, ASSOCIATED)
    });
    let mut decryptor = match opened {
        Ok(decryptor) => decryptor,
        Err(error) => return report_damage(about(error)),
    };
    let mut size = 0;
    let written = write_output(&output, |sink| {
        loop {
            let piece = decryptor
                .fill_buf()
                .map_err(|error| about(KmsError::io("cannot read the encrypted file", error).into()))?;
            if piece.is_empty() {
                return Ok(());
            }
            let wrote = sink.write_all(piece);
            wrote.map_err(|error| Error::io("cannot write", &error).about(escape_path(&output)))?;
            let length = piece.len();
            size += length as u64;
            decryptor.consume(length);
        }
    });
    drop(decryptor);
    drop(source);
    drop(progress);
    match written {
        Ok(()) => report(args.report, "decrypted", &args.file, &output, size).map(|()| Exit::Ok),
        Err(error) => report_damage(error),
    }
}

pub(crate) fn rekey(args: &RekeyArgs) -> Result<Exit> {
    let about = |error: Error| error.about(escape_path(&args.file));
    let cannot_read = |error: io::Error| about(Error::io("cannot read", &error));
    let mut file = File::open(&args.file).map_err(cannot_read)?;
    let header = Header::read(&mut file).map_err(|error| about(error.into()))?;
    let keep = if args.keep { ExistingRecipients::Keep } else { ExistingRecipients::Drop };
    let new = to(&args.to, &escape_path(&args.file))?;
    io::Seek::rewind(&mut file).map_err(cannot_read)?;
    let rekeyed = with_keys(&args.with, &header, &escape_path(&args.file), |keys| {
        let mut refused = None;
        let written = atomic::write(&args.file, |sink| {
            encrypted_file::rekey(&mut file, sink, keys, keep, &each(&new)).map(drop).map_err(|error| {
                let message = io::Error::other(error.message.clone());
                refused = Some(error);
                message
            })
        });
        match (refused, written) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(KmsError::new(Code::Io, error.message())),
            (None, Ok(())) => Ok(()),
        }
    });
    if let Err(error) = rekeyed {
        return report_damage(about(error));
    }
    let mut out = Out::after(format!("the keys of {} were changed", escape_path(&args.file)));
    if args.report.json {
        out.json(&Done { path: args.file.as_path().into(), output: None, size: None })?;
    } else if !args.report.quiet {
        out.line(format_args!("{}: keys changed", escape_path(&args.file)))?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

pub(crate) fn keygen(args: &KeygenArgs) -> Result<Exit> {
    let kind = if args.age { IdentityKind::Age } else { IdentityKind::XWing };
    let identity = Identity::generate(kind)?;
    identity.write(&args.file)?;
    let recipient = identity.recipient().to_string();
    let mut out = Out::after(format!("{} was written", escape_path(&args.file)));
    if args.json {
        #[derive(Serialize)]
        struct NewIdentity<'a> {
            #[serde(flatten)]
            path: JsonPath,
            recipient: &'a str,
        }
        out.json(&NewIdentity { path: args.file.as_path().into(), recipient: &recipient })?;
    } else {
        out.line(recipient)?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// `FILE.sealed` without its ending.
fn decrypted_name(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(SUFFIX));
    match name.filter(|name| !name.is_empty()) {
        Some(name) => Ok(path.with_file_name(name)),
        None => {
            Err(Error::new("no_name", "does not end in .sealed, so bulla cannot derive the output's name")
                .about(escape_path(path))
                .hint("name the output with --output OUT"))
        }
    }
}

/// An error if something exists at `output`.
pub(super) fn check_free(output: &Path) -> Result<()> {
    if output != Path::new(STREAM) && output.symlink_metadata().is_ok() {
        return Err(exists(output));
    }
    Ok(())
}

fn exists(output: &Path) -> Error {
    Error::new("already_exists", "exists already; bulla does not replace it")
        .about(escape_path(output))
        .hint("move it away, or name another file")
}

/// Writes a new file, which appears complete or not at all, or standard output.
pub(super) fn write_output(output: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    if output != Path::new(STREAM) {
        return atomic::write_new(output, fill);
    }
    let mut stdout = io::BufWriter::with_capacity(1 << 16, Stdout::open());
    fill(&mut stdout)?;
    stdout.flush().map_err(|error| Error::io("cannot write", &error).about("standard output"))
}

/// The output of `--json` for a file that was encrypted or decrypted.
#[derive(Serialize)]
struct Done {
    #[serde(flatten)]
    path: JsonPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

/// Reports what was done, unless the data itself goes to standard output.
pub(super) fn report(args: ReportArgs, done: &str, file: &Path, output: &Path, size: u64) -> Result<()> {
    if output == Path::new(STREAM) {
        return Ok(());
    }
    let mut out = Out::after(format!("{} was written", escape_path(output)));
    if args.json {
        let output = Some(output.to_string_lossy().into_owned());
        out.json(&Done { path: file.into(), output, size: Some(size) })?;
    } else if !args.quiet {
        out.line(format_args!("{}: {done} to {}", escape_path(file), escape_path(output)))?;
    }
    out.flush()
}
