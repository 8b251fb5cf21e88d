//! Reads passphrases from a file, or asks for them.

use crate::args::KeystoreArgs;
use crate::error::{Error, Result};
use crate::file_name::shown;
use crate::files::private::check_secret;
use crate::interrupt;
use bulla_kms::SecretString;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use zeroize::Zeroizing;

/// The maximum length of a passphrase in bytes.
const MAX_PASSPHRASE: usize = 4096;

/// How often to ask for a passphrase.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Once,
    /// A new passphrase is asked for twice: a typing error would lock its owner out.
    Twice,
}

/// The passphrase of a keystore.
pub(super) fn passphrase(args: &KeystoreArgs, folder: &Path, asked: Asked) -> Result<SecretString> {
    let what = format!("the keystore {}", shown(folder));
    passphrase_of(&what, args.passphrase_file.as_deref(), asked)
}

/// The passphrase for `what`, from a file or from the user.
pub(crate) fn passphrase_of(what: &str, file: Option<&Path>, asked: Asked) -> Result<SecretString> {
    match file {
        Some(file) => passphrase_from_file(file),
        None => passphrase_from_terminal(what, asked),
    }
}

/// Asks for the passphrase of a private key before its import; `shown` names the key's file.
pub(crate) fn key_passphrase(file: Option<&Path>, shown: &str) -> Result<SecretString> {
    if let Some(file) = file {
        return passphrase_from_file(file);
    }
    if !io::stderr().is_terminal() {
        return Err(Error::new(
            "no_passphrase",
            "the key is encrypted, and there is no terminal on which to ask for its passphrase",
        )
        .about(shown)
        .hint("name a file with the passphrase: --key-passphrase-file FILE"));
    }
    interrupt::watch_signals();
    Ok(SecretString::from(ask(&format!("Passphrase of the key {shown}: "))?.as_str()))
}

/// The first line of the file, without its end.
fn passphrase_from_file(path: &Path) -> Result<SecretString> {
    let cannot_read = |error| Error::io("cannot read the passphrase", &error).about(shown(path));
    let file = File::open(path).map_err(cannot_read)?;
    check_secret(path, &file.metadata().map_err(cannot_read)?)?;
    first_line(file, &shown(path))
}

/// The first line that comes from a file descriptor which the process was started with.
pub(super) fn passphrase_from_descriptor(descriptor: u32) -> Result<SecretString> {
    let subject = format!("file descriptor {descriptor}");
    let file = File::open(format!("/dev/fd/{descriptor}"));
    let file = file.map_err(|error| Error::io("cannot read the passphrase", &error).about(&subject))?;
    first_line(file, &subject)
}

/// The first line of a credential that systemd passed to the service. Its folder is for this
/// service alone, whatever the modes in it are: systemd gives access by an access control list.
pub(super) fn passphrase_from_credential(name: &str) -> Result<SecretString> {
    let Some(folder) = std::env::var_os("CREDENTIALS_DIRECTORY") else {
        let message =
            format!("the settings name the credential {name}, and the service has no CREDENTIALS_DIRECTORY");
        return Err(Error::new("not_found", message)
            .hint("let systemd start the service, with LoadCredential= in its unit"));
    };
    let path = Path::new(&folder).join(name);
    let file = File::open(&path)
        .map_err(|error| Error::io("cannot read the passphrase", &error).about(shown(&path)))?;
    first_line(file, &shown(&path))
}

/// The first line, without its end. `subject` names the file.
fn first_line(file: File, subject: &str) -> Result<SecretString> {
    let error = |message: &str| Error::new("passphrase_file", message).about(subject);
    let cannot_read = |error| Error::io("cannot read the passphrase", &error).about(subject);
    // The capacity is never exceeded, so that no copy stays behind in a buffer that was too small.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * MAX_PASSPHRASE));
    file.take(MAX_PASSPHRASE as u64 + 1).read_to_end(&mut bytes).map_err(cannot_read)?;
    if bytes.len() > MAX_PASSPHRASE {
        return Err(error("is too long: a passphrase file has at most 4096 bytes"));
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok("" | "\u{feff}") => Err(error("its first line, the passphrase, is empty")),
        // Editors on Windows put a byte order mark before the first character. Nobody can type one.
        Ok(line) => Ok(SecretString::from(line.strip_prefix('\u{feff}').unwrap_or(line))),
        Err(_) => Err(error("its first line, the passphrase, is not UTF-8")),
    }
}

fn passphrase_from_terminal(what: &str, asked: Asked) -> Result<SecretString> {
    if !io::stderr().is_terminal() {
        return Err(Error::new(
            "no_passphrase",
            format!("a passphrase opens {what}, and there is no terminal on which to ask for it"),
        )
        .hint(match asked {
            Asked::Once => "name a file with the passphrase: --passphrase-file FILE or BULLA_PASSPHRASE_FILE",
            Asked::Twice => "name a file with the new passphrase; --help shows the flag",
        }));
    }
    // Reading a passphrase switches the terminal's echo off: an interrupt must switch it on again.
    interrupt::watch_signals();
    let first = ask(&format!("Passphrase of {what}: "))?;
    if first.is_empty() {
        return Err(Error::new("no_passphrase", "the passphrase is empty"));
    }
    if asked == Asked::Twice && *ask("Repeat the passphrase: ")? != *first {
        return Err(Error::new("no_passphrase", "the two passphrases differ").hint("run the command again"));
    }
    Ok(SecretString::from(first.as_str()))
}

fn ask(prompt: &str) -> Result<Zeroizing<String>> {
    rpassword::prompt_password(prompt)
        .map(Zeroizing::new)
        .map_err(|error| Error::io("cannot read the passphrase", &error).about("terminal"))
}
