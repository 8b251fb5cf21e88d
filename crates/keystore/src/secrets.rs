//! What opens a keystore, and where a program takes it from.

use crate::error::{Error, ErrorCode, Result};
use crate::permissions::check_secret_file;
use bulla_files::escape_path;
#[cfg(feature = "pkcs11")]
use bulla_kms::Name;
#[cfg(feature = "pkcs11")]
use bulla_kms::pkcs11::Pkcs11;
use bulla_kms::{KeystoreOptions, SecretString};
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The maximum length of a passphrase in bytes.
const MAX_PASSPHRASE_LEN: usize = 4096;

/// Where a program takes a keystore's passphrase from: a terminal, a file, its settings, an
/// operator.
///
/// A [`SecretString`] is a source too, for a program that has the passphrase already.
pub trait PassphraseSource: Send + Sync {
    /// Gets the passphrase. It is called only for a keystore that a passphrase opens.
    ///
    /// # Errors
    /// [`ErrorCode::NoPassphrase`] if there is none; those of reading it.
    fn passphrase(&self, prompt: &PassphrasePrompt<'_>) -> Result<SecretString>;
}

/// What a passphrase is needed for.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassphrasePrompt<'a> {
    /// The keystore's folder.
    pub folder: &'a Path,
    /// Whether the passphrase is a new one. A program should ask a person twice for it: a typing
    /// error would lock its owner out.
    pub is_new: bool,
}

impl<'a> PassphrasePrompt<'a> {
    /// A prompt for the passphrase that opens the keystore in a folder.
    pub fn existing(folder: &'a Path) -> Self {
        Self { folder, is_new: false }
    }

    /// A prompt for a passphrase that shall open the keystore in a folder from now on.
    pub fn new(folder: &'a Path) -> Self {
        Self { folder, is_new: true }
    }
}

impl PassphraseSource for SecretString {
    fn passphrase(&self, _prompt: &PassphrasePrompt<'_>) -> Result<SecretString> {
        Ok(self.clone())
    }
}

/// A file whose first line is a passphrase. Only its owner may be able to read it.
#[derive(Clone, Debug)]
pub struct PassphraseFile(PathBuf);

impl PassphraseFile {
    /// Names the file. It is read when the passphrase is needed.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Reads the first line, without its end.
    ///
    /// # Errors
    /// Those of reading; [`ErrorCode::SecretFileMode`], [`ErrorCode::SecretFileOwner`],
    /// [`ErrorCode::MalformedPassphrase`].
    pub fn read(&self) -> Result<SecretString> {
        let cannot_read = |error| Error::io("cannot read the passphrase", error).about_path(&self.0);
        let file = File::open(&self.0).map_err(cannot_read)?;
        check_secret_file(&self.0, &file.metadata().map_err(cannot_read)?)?;
        read_first_line(file, &escape_path(&self.0))
    }
}

impl PassphraseSource for PassphraseFile {
    fn passphrase(&self, _prompt: &PassphrasePrompt<'_>) -> Result<SecretString> {
        self.read()
    }
}

/// A file descriptor that the process was started with. Its first line is the passphrase.
#[derive(Clone, Copy, Debug)]
pub struct PassphraseDescriptor(
    /// The number of the descriptor.
    pub u32,
);

impl PassphraseSource for PassphraseDescriptor {
    fn passphrase(&self, _prompt: &PassphrasePrompt<'_>) -> Result<SecretString> {
        let subject = format!("file descriptor {}", self.0);
        let cannot_read = |error| Error::io("cannot read the passphrase", error).about(&subject);
        let file = File::open(format!("/dev/fd/{}", self.0)).map_err(cannot_read)?;
        read_first_line(file, &subject)
    }
}

/// A credential that systemd passed to the service. Its first line is the passphrase.
///
/// Its folder is for this service alone, whatever the modes in it are: systemd gives access by an
/// access control list.
#[derive(Clone, Debug)]
pub struct PassphraseCredential {
    name: String,
    folder: Option<OsString>,
}

impl PassphraseCredential {
    /// Names a credential in the folder of the variable `CREDENTIALS_DIRECTORY`.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), folder: std::env::var_os("CREDENTIALS_DIRECTORY") }
    }
}

impl PassphraseSource for PassphraseCredential {
    fn passphrase(&self, _prompt: &PassphrasePrompt<'_>) -> Result<SecretString> {
        let Some(folder) = &self.folder else {
            let message = format!(
                "the settings name the credential {}, and the service has no CREDENTIALS_DIRECTORY",
                self.name
            );
            return Err(Error::new(ErrorCode::NoCredential, message)
                .hint("let systemd start the service, with LoadCredential= in its unit"));
        };
        let path = Path::new(folder).join(&self.name);
        let cannot_read = |error| Error::io("cannot read the passphrase", error).about_path(&path);
        read_first_line(File::open(&path).map_err(cannot_read)?, &escape_path(&path))
    }
}

/// Reads the first line, without its end. `subject` names the file.
fn read_first_line(file: File, subject: &str) -> Result<SecretString> {
    let malformed = |message: &str| Error::new(ErrorCode::MalformedPassphrase, message).about(subject);
    // The capacity is never exceeded, so that no copy stays behind in a buffer that was too small.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * MAX_PASSPHRASE_LEN));
    file.take(MAX_PASSPHRASE_LEN as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Error::io("cannot read the passphrase", error).about(subject))?;
    if bytes.len() > MAX_PASSPHRASE_LEN {
        return Err(malformed("is too long: a passphrase file has at most 4096 bytes"));
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok("" | "\u{feff}") => Err(malformed("its first line, the passphrase, is empty")),
        // Editors on Windows put a byte order mark before the first character. Nobody can type one.
        Ok(line) => Ok(SecretString::from(line.strip_prefix('\u{feff}').unwrap_or(line))),
        Err(_) => Err(malformed("its first line, the passphrase, is not UTF-8")),
    }
}

/// The secrets that a program has. The keystore says which one opens it.
///
/// A key file needs no entry here: it is in the keystore's folder.
///
/// ```
/// use bulla_keystore::{ErrorCode, PassphraseCredential, PassphraseFile, PassphrasePrompt, Secrets};
/// use bulla_kms::Keystore;
/// use std::path::Path;
///
/// # let temporary = tempfile::tempdir()?;
/// # let path = temporary.path().join("passphrase");
/// std::fs::write(&path, "correct horse\n")?;
/// # #[cfg(unix)]
/// # std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
/// let file = PassphraseFile::at(path);
/// let passphrase = file.read()?;
///
/// // The source is asked only if a passphrase opens the keystore.
/// let secrets = Secrets::new().passphrase(file).identity_file("/etc/bulla/identity");
/// let prompt = PassphrasePrompt::existing(Path::new("/srv/keys"));
/// # use bulla_kms::ExposeSecret as _;
/// assert_eq!(secrets.ask_passphrase(&prompt)?.expose_secret(), passphrase.expose_secret());
/// let error = Secrets::new().ask_passphrase(&prompt).unwrap_err();
/// assert_eq!(error.code, ErrorCode::NoPassphrase);
///
/// // As systemd passes it to a service. This process was not started by systemd.
/// let secrets = Secrets::new().passphrase(PassphraseCredential::named("keystore-passphrase"));
/// let error = secrets.ask_passphrase(&prompt).unwrap_err();
/// assert_eq!(error.code, ErrorCode::NoCredential);
///
/// // For a keystore elsewhere.
/// let keystore: Keystore = secrets.keystore_options().in_memory()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Secrets {
    passphrase: Option<Arc<dyn PassphraseSource>>,
    pub(crate) identity_file: Option<PathBuf>,
    #[cfg(feature = "pkcs11")]
    pub(crate) device: Option<Pkcs11>,
}

impl Secrets {
    /// No secret: only a keystore with a key file opens.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the source of the passphrase.
    #[must_use]
    pub fn passphrase(mut self, source: impl PassphraseSource + 'static) -> Self {
        self.passphrase = Some(Arc::new(source));
        self
    }

    /// Adds a file with one or more identities.
    #[must_use]
    pub fn identity_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.identity_file = Some(path.into());
        self
    }

    /// Adds a device, for keystores whose root key, rollback guard or private keys are on it.
    ///
    /// ```
    /// use bulla_keystore::{KeystoreFolder, NewKeystore, Secrets};
    /// use bulla_kms::pkcs11::Pkcs11;
    ///
    /// # let temporary = tempfile::tempdir()?;
    /// # let path = temporary.path().join("keystore");
    /// let config = "pkcs11:token=keys?module-path=/usr/lib/softhsm/libsofthsm2.so".parse()?;
    /// // The device is opened when it is needed: this keystore has none of its keys there.
    /// let secrets = Secrets::new().device(Pkcs11::when_needed(&config));
    /// KeystoreFolder::at(path).create(&NewKeystore::default(), &secrets)?.open()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "pkcs11")]
    #[must_use]
    pub fn device(mut self, device: Pkcs11) -> Self {
        self.device = Some(device);
        self
    }

    /// Returns the options of a keystore that is not in a folder: with the device, and without a
    /// rollback guard.
    pub fn keystore_options(&self) -> KeystoreOptions {
        #[cfg_attr(not(feature = "pkcs11"), expect(unused_mut, reason = "only a device changes them"))]
        let mut options = KeystoreOptions::default();
        #[cfg(feature = "pkcs11")]
        if let Some(device) = &self.device {
            options.backends = options.backends.with(Arc::new(device.clone()));
        }
        options
    }

    /// Gets the passphrase from its source.
    ///
    /// # Errors
    /// [`ErrorCode::NoPassphrase`] without a source; those of the source.
    pub fn ask_passphrase(&self, prompt: &PassphrasePrompt<'_>) -> Result<SecretString> {
        match &self.passphrase {
            Some(source) => source.passphrase(prompt),
            None => {
                let folder = escape_path(prompt.folder);
                let message = format!("a passphrase opens the keystore {folder}, and none was given");
                Err(Error::new(ErrorCode::NoPassphrase, message))
            }
        }
    }
}

/// Names the kinds of secrets only.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Secrets");
        text.field("passphrase", &self.passphrase.is_some()).field("identity_file", &self.identity_file);
        #[cfg(feature = "pkcs11")]
        text.field("device", &self.device.is_some());
        text.finish()
    }
}

/// The kind of secret that opens a new keystore, or that replaces the secret of an existing one.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NewSecret {
    /// A new key file in the keystore's folder.
    #[default]
    KeyFile,
    /// A passphrase from [`Secrets`].
    Passphrase,
    /// The key with this name on the device of [`Secrets`]. It is created if the device has none.
    #[cfg(feature = "pkcs11")]
    DeviceKey(Name),
}
