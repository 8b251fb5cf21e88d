//! Asks for passphrases and PINs on the terminal, or reads passphrases from files.

use crate::error::Result;
use crate::interrupt;
use bulla_files::escape_path;
use bulla_keystore::{Error as KeystoreError, ErrorCode, PassphraseFile, PassphrasePrompt, PassphraseSource};
use bulla_kms::SecretString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// How often to ask for a passphrase.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prompt {
    Once,
    /// A new passphrase is asked for twice: a typing error would lock its owner out.
    Twice,
}

/// The passphrase of a keystore: in a file, or asked for on the terminal.
pub(super) struct CommandPassphrase {
    file: Option<PathBuf>,
}

impl CommandPassphrase {
    pub(super) fn new(file: Option<&Path>) -> Self {
        Self { file: file.map(Path::to_owned) }
    }
}

impl PassphraseSource for CommandPassphrase {
    fn passphrase(&self, prompt: &PassphrasePrompt<'_>) -> bulla_keystore::Result<SecretString> {
        let subject = format!("the keystore {}", escape_path(prompt.folder));
        let prompt = if prompt.is_new { Prompt::Twice } else { Prompt::Once };
        read_passphrase(&subject, self.file.as_deref(), prompt)
    }
}

/// Gets the passphrase for `subject`, from a file or from the user.
pub(crate) fn passphrase_of(subject: &str, file: Option<&Path>, prompt: Prompt) -> Result<SecretString> {
    Ok(read_passphrase(subject, file, prompt)?)
}

fn read_passphrase(
    subject: &str,
    file: Option<&Path>,
    prompt: Prompt,
) -> bulla_keystore::Result<SecretString> {
    match file {
        Some(file) => PassphraseFile::at(file).read(),
        None => ask_for_passphrase(subject, prompt),
    }
}

/// Asks for the passphrase of a private key before its import; `shown` names the key's file.
pub(crate) fn key_passphrase(file: Option<&Path>, shown: &str) -> Result<SecretString> {
    if let Some(file) = file {
        return Ok(PassphraseFile::at(file).read()?);
    }
    if !io::stderr().is_terminal() {
        let message = "the key is encrypted, and there is no terminal on which to ask for its passphrase";
        return Err(no_passphrase(message)
            .about(shown)
            .hint("name a file with the passphrase: --key-passphrase-file FILE")
            .into());
    }
    interrupt::watch_signals();
    Ok(SecretString::from(ask(&format!("Passphrase of the key {shown}: "))?.as_str()))
}

fn ask_for_passphrase(subject: &str, prompt: Prompt) -> bulla_keystore::Result<SecretString> {
    if !io::stderr().is_terminal() {
        let message =
            format!("a passphrase opens {subject}, and there is no terminal on which to ask for it");
        return Err(no_passphrase(message).hint(match prompt {
            Prompt::Once => {
                "name a file with the passphrase: --passphrase-file FILE or BULLA_PASSPHRASE_FILE"
            }
            Prompt::Twice => "name a file with the new passphrase; --help shows the flag",
        }));
    }
    // Reading a passphrase switches the terminal's echo off: an interrupt must switch it on again.
    interrupt::watch_signals();
    let first = ask(&format!("Passphrase of {subject}: "))?;
    if first.is_empty() {
        return Err(no_passphrase("the passphrase is empty"));
    }
    if prompt == Prompt::Twice && *ask("Repeat the passphrase: ")? != *first {
        return Err(no_passphrase("the two passphrases differ").hint("run the command again"));
    }
    Ok(SecretString::from(first.as_str()))
}

fn no_passphrase(message: impl Into<String>) -> KeystoreError {
    KeystoreError::new(ErrorCode::NoPassphrase, message)
}

fn ask(prompt: &str) -> bulla_keystore::Result<Zeroizing<String>> {
    rpassword::prompt_password(prompt)
        .map(Zeroizing::new)
        .map_err(|error| KeystoreError::io("cannot read the passphrase", error).about("terminal"))
}

/// Asks for the PIN of the device, when it is needed.
pub(super) fn ask_for_pin() -> io::Result<SecretString> {
    if !io::stderr().is_terminal() {
        return Err(io::Error::other(
            "there is no terminal; name a file with the PIN: pin-source=file:PATH in the URI of --pkcs11",
        ));
    }
    interrupt::watch_signals();
    rpassword::prompt_password("PIN of the device: ").map(SecretString::from)
}
