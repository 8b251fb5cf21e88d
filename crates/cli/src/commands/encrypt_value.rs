//! `bulla encrypt --key` and `bulla decrypt --key`: values, encrypted with a key of the keystore or
//! the service.

use super::encrypt::{check_free, report, report_damage, write_output};
use super::key_change::check_encrypts;
use crate::args::{DecryptArgs, EncryptArgs, ValueArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::STDIN;
use crate::files::secret::{self, Secrecy};
use crate::output::{JsonPath, Out};
use crate::store::KeySource;
use base64ct::{Base64, Encoding as _};
use bulla_files::escape_path;
use bulla_kms::{Code, EncryptionOptions};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The maximum length of a value in bytes.
const MAX_VALUE_LEN: usize = 1 << 20;
/// The maximum length of a ciphertext in base64, with white space around it. The ciphertext is at
/// most 1024 bytes longer than the value.
const MAX_TEXT_LEN: usize = (MAX_VALUE_LEN + 1024).div_ceil(3) * 4 + 1024;

fn options(args: &ValueArgs) -> EncryptionOptions<'_> {
    let (data, context) = (args.associated_data.as_deref(), args.context.as_deref());
    EncryptionOptions::default()
        .associated_data(data.unwrap_or_default().as_bytes())
        .context(context.unwrap_or_default().as_bytes())
}

/// Refuses the options of a value without a key.
pub(super) fn check_unused(args: &ValueArgs) -> Result<()> {
    if args.context.is_none() && args.associated_data.is_none() {
        return Ok(());
    }
    let message = "--context and --associated-data are for values that a key encrypts";
    Err(Error::new("usage", message).hint("name the key with --key"))
}

/// The output that the user names, or standard output.
fn output_or_stdout(output: Option<&PathBuf>) -> PathBuf {
    output.cloned().unwrap_or_else(|| STDIN.into())
}

/// The output of `--json` for a value that was encrypted.
#[derive(Serialize)]
struct EncryptedValue<'a> {
    #[serde(flatten)]
    path: JsonPath,
    key: String,
    version: u32,
    ciphertext: &'a str,
}

/// Carries out `bulla encrypt --key`. The ciphertext is a line of base64.
pub(super) fn encrypt(args: &EncryptArgs, key: &str) -> Result<Exit> {
    let output = output_or_stdout(args.output.as_ref());
    check_free(&output)?;
    let source = KeySource::existing(&args.keystore)?;
    let keys = source.open()?;
    if let Some(planned) = keys.planned_key(key)? {
        check_encrypts(&planned, key)?;
    }
    let value = secret::read(&args.file, "the value", MAX_VALUE_LEN, Secrecy::NotSecret).map_err(
        |error| match error.code() {
            "file_too_large" => {
                error.hint("encrypt a large file with --recipient, --passphrase or --new-key-file")
            }
            _ => error,
        },
    )?;
    let made = keys.encrypt(key, &value, &options(&args.value))?;
    drop(keys);
    let text = Base64::encode_string(&made.bytes);
    if output != Path::new(STDIN) {
        write_output(&output, |sink| {
            let written = sink.write_all(format!("{text}\n").as_bytes());
            written.map_err(|error| Error::io("cannot write", &error).about(escape_path(&output)))
        })?;
        report(args.report, "encrypted", &args.file, &output, value.len() as u64)?;
        return Ok(Exit::Ok);
    }
    let mut out = Out::stdout();
    if args.report.json {
        let (path, version) = (args.file.as_path().into(), made.key.version());
        out.json(&EncryptedValue { path, key: made.key.to_string(), version, ciphertext: &text })?;
    } else {
        out.line(&text)?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// Carries out `bulla decrypt --key`.
pub(super) fn decrypt(args: &DecryptArgs, key: &str) -> Result<Exit> {
    let output = output_or_stdout(args.output.as_ref());
    check_free(&output)?;
    let source = KeySource::existing(&args.with.keystore)?;
    let keys = source.open()?;
    if let Some(planned) = keys.planned_key(key)? {
        check_encrypts(&planned, key)?;
    }
    let text = secret::read(&args.file, "the ciphertext", MAX_TEXT_LEN, Secrecy::NotSecret)?;
    let about = |error: Error| error.about(escape_path(&args.file));
    let ciphertext = match str::from_utf8(&text).map(|text| Base64::decode_vec(text.trim())) {
        Ok(Ok(ciphertext)) => ciphertext,
        _ => {
            let message = "is not a ciphertext in base64: it was cut or altered, or is something else";
            let error = Error::new(Code::InvalidCiphertext.as_str(), message);
            return report_damage(about(
                error.hint("a file that ends in .sealed is decrypted without --key"),
            ));
        }
    };
    let value = match keys.decrypt(key, &ciphertext, &options(&args.value)) {
        Ok(value) => value,
        Err(error) => return report_damage(about(error)),
    };
    drop(keys);
    write_output(&output, |sink| {
        let written = sink.write_all(&value);
        written.map_err(|error| Error::io("cannot write", &error).about(escape_path(&output)))
    })?;
    report(args.report, "decrypted", &args.file, &output, value.len() as u64)?;
    Ok(Exit::Ok)
}
