//! Writes signature files, and reports them.

use super::sign_target::Destination;
use crate::args::{KeystoreArgs, SignArgs, SignatureFormat};
use crate::diagnostics::{hint_line, note_line};
use crate::error::{Error, Result};
use crate::files::{STDIN, atomic};
use crate::folder;
use crate::output::{JsonError, JsonPath, Out};
use bulla_files::{escape_path, quote_for_shell};
use bulla_sums::path_from;
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Seek as _};
use std::path::{Path, PathBuf};
use tempfile::SpooledTempFile;

/// A signature, ready to be written.
pub(super) struct Signed {
    /// The signature file; for a folder, without its body, and without an embedded file.
    pub(super) text: String,
    pub(super) body: Option<SpooledTempFile>,
    pub(super) json: JsonSigned,
    /// The number of the key's version that signed.
    pub(super) version: u32,
    /// For a folder, what the older signature lists and this one does not.
    pub(super) gone: folder::RemovedPaths,
    /// For minisign, the line of base64 that `minisign -P` takes.
    pub(super) minisign_key: Option<String>,
    /// For a folder, what the next signing has to know, where it is kept, and the digest of the
    /// list.
    pub(super) stamps: Option<(folder::StampWriter, folder::StampFile, bulla_blake3::Hash)>,
}

impl Signed {
    /// Of a file's signature, only what is printed is set.
    pub(super) fn of_file(json: JsonSigned) -> Self {
        Self {
            text: String::new(),
            body: None,
            json,
            version: 0,
            gone: folder::RemovedPaths::default(),
            minisign_key: None,
            stamps: None,
        }
    }
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

/// Writes the signature file, and says how to verify it to a person at a terminal.
pub(super) fn write(out: &mut Out, path: &Path, args: &SignArgs, signed: &mut Signed) -> Result<()> {
    let destination = Destination::of(path, args)?;
    destination.check_replaceable(args.format)?;
    let output = match destination {
        Destination::Stdout => {
            out.bytes(signed.text.as_bytes())?;
            let failed = |error| Error::io("cannot read the list of files again", &error);
            return each_piece(signed.body.as_mut(), failed, |piece| out.bytes(piece));
        }
        Destination::File(output) => output,
    };
    atomic::write(&output, |file| {
        file.write_all(signed.text.as_bytes())?;
        each_piece(signed.body.as_mut(), |error| error, |piece| file.write_all(piece))
    })?;
    if let Some((stamps, file, digest)) = signed.stamps.take() {
        file.write(stamps, &digest);
    }
    out.note_done("the signature files were written");
    if !args.report.quiet {
        note_gone(path, &signed.gone);
    }
    if args.report.json {
        return out.json(&JsonLine::signed(path, &output, &signed.json));
    }
    if args.report.quiet {
        return Ok(());
    }
    let reading = signed.json.reading.as_ref().map_or_else(String::new, JsonReading::sentence);
    out.line(format_args!("{}: signed, wrote {}{reading}", escape_path(path), escape_path(&output)))?;
    if !io::stderr().is_terminal() {
        return out.flush_sometimes();
    }
    // Keep the order if both streams go to one terminal.
    out.flush()?;
    hint_line(&format!("verify it with: {}", verify_line(path, args)));
    if let Some(key) = &signed.minisign_key {
        let mut line = format!("minisign -Vm {} -P {key}", quote_for_shell(path.as_os_str()));
        if args.output.is_some() {
            line.push_str(&format!(" -x {}", quote_for_shell(output.as_os_str())));
        }
        hint_line(&format!("or with: {line}"));
    }
    Ok(())
}

/// Names what the older signature of a folder lists and the new one does not: nobody may have meant
/// to lose it.
fn note_gone(path: &Path, gone: &folder::RemovedPaths) {
    if gone.count == 0 {
        return;
    }
    let names: Vec<_> = gone.first.iter().map(|name| escape_path(&path_from(name.as_bytes()))).collect();
    let more = match gone.count - names.len() as u64 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    note_line(&format!(
        "{}: {} of the last signature {} gone: {}{more}",
        escape_path(path),
        counted(gone.count, "entry", "entries"),
        if gone.count == 1 { "is" } else { "are" },
        names.join(", ")
    ));
}

/// A number with its noun.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The command that verifies the signature, ready to be pasted into the same shell.
fn verify_line(path: &Path, args: &SignArgs) -> String {
    // Use the name by which this program was called, so that the shell finds it in the same way.
    let program = std::env::args_os().next().unwrap_or_else(|| "bulla".into());
    let mut words: Vec<OsString> = vec![program, "verify".into()];
    if args.format != SignatureFormat::Bulla {
        words.extend(["--format".into(), args.format.name().into()]);
    }
    if let Some(namespace) = &args.namespace {
        words.extend(["--namespace".into(), namespace.into()]);
    }
    if let Some(output) = &args.output {
        words.extend(["--signature".into(), output.into()]);
    }
    let KeystoreArgs { keystore, passphrase_file, server, .. } = &args.keystore;
    let path_of = |path: &Option<PathBuf>| path.as_ref().map(|path| path.clone().into_os_string());
    let settings = [
        ("--keystore", "BULLA_KEYSTORE", path_of(keystore)),
        ("--passphrase-file", "BULLA_PASSPHRASE_FILE", path_of(passphrase_file)),
        ("--server", "BULLA_ADDR", server.server.as_ref().map(Into::into)),
        ("--server-ca", "BULLA_CACERT", path_of(&server.server_ca)),
        ("--token-file", "BULLA_TOKEN_FILE", path_of(&server.token_file)),
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
    words.iter().map(|word| quote_for_shell(word)).collect::<Vec<_>>().join(" ")
}

/// The output of `--json` for a signature.
#[derive(Serialize)]
pub(super) struct JsonSigned {
    pub(super) format: &'static str,
    pub(super) key: String,
    pub(super) kind: &'static str,
    /// The BLAKE3 digest that was signed; only bulla's own format has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    /// The name that the signature covers; only signatures of files in bulla's own format cover
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// For a folder, the number of signed files and links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) entries: Option<u64>,
    /// For a folder, the number of files and links that were in the older signature and are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) removed: Option<u64>,
    /// For a folder, which files were read.
    #[serde(flatten)]
    pub(super) reading: Option<JsonReading>,
    pub(super) signed_at: String,
}

#[derive(Serialize)]
pub(super) struct JsonReading {
    pub(super) mode: folder::ListMode,
    /// The number of files that were read.
    pub(super) read: u64,
    /// The number of files that were not read, because they have not changed since they were
    /// signed.
    pub(super) kept: u64,
}

impl JsonReading {
    /// The end of a line about a signed folder: nothing, if everything was read and nobody could
    /// expect otherwise.
    fn sentence(&self) -> String {
        match self.mode {
            folder::ListMode::Full => String::new(),
            folder::ListMode::Quick => format!(
                " (read {} new or changed files; {} unchanged by size and times: --full reads them too)",
                self.read, self.kept
            ),
        }
    }
}

/// The output of `--json` for a path.
#[derive(Serialize)]
pub(super) struct JsonLine<'a> {
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

    pub(super) fn error(path: &Path, error: &Error) -> Self {
        Self { path: path.into(), signature: None, signed: None, error: Some(error.into()) }
    }
}
