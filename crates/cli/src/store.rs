//! Where the keystore is, what opens it, and which key a person means.

mod guard;
mod key_file;
mod recording;
mod reseal;

pub(crate) use self::guard::{GuardPlace, guard};
use self::guard::{Guarding, new_token_key, options, options_of, options_with, token, token_key};
use self::key_file::{KEY_FILE, has_key_file, lost, new_key_file, settled_key_file};
use self::reseal::identity;
use crate::args::KeystoreArgs;
use crate::error::{Error, Result};
use crate::files::name::shown;
use crate::files::private::{check_keystore, check_secret};
use crate::interrupt;
use crate::output::note_line;
use bulla_kms::audit_log::{Actor, AuditLog, AuditLogOptions, Checkpoint};
use bulla_kms::pkcs11;
use bulla_kms::{
    Algorithm, Attestation, Code, KeyFamily, KeyId, KeyRef, Keystore, KeystoreOptions, KmsError, Name,
    NewKey, SecretString, Snapshot, Unlock, UnlockMethod,
};
use etcetera::{BaseStrategy, base_strategy};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The label of the key that signs when no other is named.
pub(crate) const DEFAULT_LABEL: &str = "default";
/// The purpose of keys that sign files.
pub(crate) const DEFAULT_PURPOSE: &str = "files";
/// The tenant of all keys that the command line makes.
const TENANT: &str = "local";

/// The label of the key that signs the audit log.
const LOG_LABEL: &str = "audit-log";
/// The purpose of that key.
const LOG_PURPOSE: &str = "audit";
/// The folder of the audit log, in that of the keystore.
const LOG_FOLDER: &str = "audit-log";

const STORE_FILE: &str = "keystore.redb";
/// A passphrase is read up to this length.
const MAX_PASSPHRASE: usize = 4096;

/// A keystore and what opens it. The keystore itself is open, and locked for others, only as long as it is used.
pub(crate) struct Access {
    folder: PathBuf,
    unlock: Unlock,
    options: KeystoreOptions,
}

/// What is to open a keystore that is yet to be made.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum NewSeal {
    /// A passphrase if there is a file with one, else a key file.
    AsGiven,
    /// A passphrase, which is asked for if there is no file with it.
    Passphrase,
    /// The key of that name on the token, which is made if there is none.
    TokenKey(Name),
}

impl Access {
    /// The keystore that is there.
    ///
    /// # Errors
    /// When there is none, or the passphrase cannot be had.
    pub(crate) fn existing(args: &KeystoreArgs) -> Result<Self> {
        Self::find(args, Guarding::Asked)
    }

    /// The same as it is, however old it may be.
    pub(crate) fn existing_unguarded(args: &KeystoreArgs) -> Result<Self> {
        Self::find(args, Guarding::Accepting)
    }

    fn find(args: &KeystoreArgs, guarding: Guarding) -> Result<Self> {
        let folder = folder(args)?;
        let store = folder.join(STORE_FILE);
        check_keystore(&folder, &store)?;
        let had_key_file = has_key_file(&folder);
        let method = match Keystore::unlock_method(&store) {
            Err(error) if error.code == Code::NotFound && had_key_file => return Err(lost(&folder)),
            Err(error) if error.code == Code::NotFound => {
                return Err(Error::new("not_found", format!("there is no keystore in {}", shown(&folder)))
                    .hint("`bulla keys init` creates one; to verify, give the signer's key with --public-key FILE"));
            }
            method => method?,
        };
        let token = token(args);
        let options = options_of(&store, token.as_ref(), guarding)?;
        let unlock = match method {
            UnlockMethod::KeyFile => Unlock::KeyFile(settled_key_file(&folder, &options)),
            UnlockMethod::Passphrase => Unlock::Passphrase(passphrase(args, &folder, Asked::Once)?),
            UnlockMethod::Provider { method, key_name } if method == pkcs11::NAME => {
                token_key(token.as_ref(), &key_name)?
            }
            UnlockMethod::Provider { .. } if args.identity.is_some() => identity(args)?,
            UnlockMethod::Provider { .. } => {
                let message = format!("the keystore is opened by {method}");
                return Err(Error::new("wrong_unlock_method", message)
                    .hint("name the file of its identity with --identity FILE"));
            }
        };
        Ok(Self { folder, unlock, options })
    }

    /// The keystore that is there, or a new one with the key `default`.
    pub(crate) fn existing_or_new(args: &KeystoreArgs) -> Result<Self> {
        if exists(args)? {
            return Self::existing(args);
        }
        match Self::create(args, NewSeal::AsGiven, None) {
            // Another process was first.
            Err(error) if error.code() == Code::AlreadyExists.as_str() && exists(args)? => {
                Self::existing(args)
            }
            made => made,
        }
    }

    /// A new keystore with the key `default`. It is said so on standard error.
    ///
    /// # Errors
    /// When there is one already, or was one.
    pub(crate) fn create(args: &KeystoreArgs, seal: NewSeal, guard: Option<&GuardPlace>) -> Result<Self> {
        let folder = folder(args)?;
        check_keystore(&folder, &folder.join(STORE_FILE))?;
        interrupt::guard();
        let had_key_file = has_key_file(&folder);
        if exists(args)? {
            return Err(Error::new(
                "already_exists",
                format!("there is a keystore in {} already", shown(&folder)),
            ));
        }
        if had_key_file {
            return Err(lost(&folder));
        }
        let token = token(args);
        let unlock = match seal {
            NewSeal::TokenKey(name) => new_token_key(token.as_ref(), &name)?,
            NewSeal::AsGiven if args.passphrase_file.is_none() => Unlock::KeyFile(new_key_file(&folder)?),
            NewSeal::AsGiven | NewSeal::Passphrase => {
                Unlock::Passphrase(passphrase(args, &folder, Asked::Twice)?)
            }
        };
        let options = options_with(guard, &folder, token.as_ref())?;
        let mut access = Self { folder, unlock, options };
        let store = access.folder.join(STORE_FILE);
        let keystore = match access.options.create(&store, &access.unlock) {
            Ok(keystore) => {
                access.name_key_file()?;
                keystore
            }
            // Another process was first, and the folder's key file opens what it made.
            Err(KmsError { code: Code::AlreadyExists | Code::NotFound, .. })
                if store.symlink_metadata().is_ok() =>
            {
                if let Unlock::KeyFile(path) = &mut access.unlock {
                    *path = settled_key_file(&access.folder, &access.options);
                }
                access.open()?
            }
            Err(error) => return Err(error.into()),
        };
        ensure_default(&keystore)?;
        let opened_by = match access.unlock {
            Unlock::KeyFile(_) => {
                format!("opened by the key file {KEY_FILE} in it: whoever has both can sign as you")
            }
            Unlock::Passphrase(_) => "opened by your passphrase".to_owned(),
            Unlock::Provider(_) => "opened by its key on the token".to_owned(),
        };
        note_line(&format!(
            "created the keystore {} with the key `{DEFAULT_LABEL}`, {opened_by}",
            shown(&access.folder)
        ));
        Ok(access)
    }

    /// Opens the keystore. Drop it soon: meanwhile other processes wait.
    pub(crate) fn open(&self) -> Result<Keystore> {
        let keystore = self.open_unrecorded()?;
        // The keystore is locked first: who waits for it needs not wait for the log.
        Ok(match self.log(&keystore)? {
            Some(log) => keystore.audited(log),
            None => keystore,
        })
    }

    /// The keys as they are now, for those who only look at them. Nothing is written, and nothing stays locked.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        interrupt::guard();
        Ok(self.options.snapshot(&self.folder.join(STORE_FILE), &self.unlock)?)
    }

    fn open_unrecorded(&self) -> Result<Keystore> {
        interrupt::guard();
        Ok(self.options.open(&self.folder.join(STORE_FILE), &self.unlock)?)
    }

    /// The audit log, if one was begun.
    fn log(&self, keystore: &Keystore) -> Result<Option<Arc<AuditLog>>> {
        if keystore.find(&tenant()?, &parse_name(LOG_LABEL)?)?.is_none() {
            return recording::refuse_without_key(&self.folder.join(LOG_FOLDER)).map(|()| None);
        }
        let folder = self.folder.join(LOG_FOLDER);
        let log = match AuditLog::open(&folder, log_options()?) {
            Ok(log) => log,
            Err(error) if error.code == Code::NotFound => {
                return Err(Error::new(
                    "audit_log_missing",
                    format!("the audit log {} is gone", shown(&folder)),
                )
                .hint("restore its folder from a copy; `bulla audit-log init` begins another log"));
            }
            Err(error) => return Err(error.into()),
        };
        recording::note_recovered(&log);
        Ok(Some(Arc::new(log)))
    }

    /// Begins an audit log, or completes one whose beginning was interrupted; gives its folder and the key that signs it.
    pub(crate) fn begin_log(&self) -> Result<(PathBuf, KeyFamily)> {
        let keystore = self.open_unrecorded()?;
        let folder = self.folder.join(LOG_FOLDER);
        let log = Arc::new(recording::create_or_complete(&folder)?);
        let keystore = keystore.audited(log.clone());
        let label = parse_name(LOG_LABEL)?;
        let key = match keystore.find(&tenant()?, &label)? {
            Some(key) => key,
            None => create_key(&keystore, label, parse_name(LOG_PURPOSE)?)?.family().clone(),
        };
        log.checkpoint(&keystore, &key)?;
        Ok((folder, key))
    }

    /// Seals the audit log by a checkpoint.
    pub(crate) fn seal_log(&self) -> Result<Checkpoint> {
        let keystore = self.open_unrecorded()?;
        let log = self.log(&keystore)?.ok_or_else(no_log)?;
        let keystore = keystore.audited(log.clone());
        let key = keystore.find(&tenant()?, &parse_name(LOG_LABEL)?)?.ok_or_else(no_log)?;
        Ok(log.checkpoint(&keystore, &key)?)
    }

    /// The key that signs the audit log.
    pub(crate) fn log_key(&self) -> Result<Attestation> {
        let keys = self.snapshot()?;
        let key = keys.find(&tenant()?, &parse_name(LOG_LABEL)?).ok_or_else(no_log)?;
        Ok(keys.attest(&key)?)
    }

    /// The keystore's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Which kind of secret opens it.
    pub(crate) fn method(&self) -> &'static str {
        match self.unlock {
            Unlock::KeyFile(_) => "key_file",
            Unlock::Passphrase(_) => "passphrase",
            Unlock::Provider(ref provider) if provider.method() == pkcs11::NAME => "token",
            Unlock::Provider(_) => "identity",
        }
    }
}

/// The folder of the audit log.
pub(crate) fn log_folder(args: &KeystoreArgs) -> Result<PathBuf> {
    Ok(folder(args)?.join(LOG_FOLDER))
}

fn log_options() -> Result<AuditLogOptions> {
    let signer = Some((tenant()?, parse_name(LOG_LABEL)?));
    Ok(AuditLogOptions { signer, ..AuditLogOptions::default() })
}

fn no_log() -> Error {
    Error::new("not_found", "the keystore has no audit log").hint("`bulla audit-log init` begins one")
}

/// On whose behalf the command runs: the user, by number.
pub(crate) fn actor() -> Option<Actor> {
    #[cfg(unix)]
    return format!("uid:{}", rustix::process::getuid().as_raw()).parse().ok();
    #[cfg(not(unix))]
    return None;
}

/// Is there a keystore?
pub(crate) fn exists(args: &KeystoreArgs) -> Result<bool> {
    Ok(folder(args)?.join(STORE_FILE).symlink_metadata().is_ok())
}

/// The keystore's folder: as given, or the platform's place for data.
fn folder(args: &KeystoreArgs) -> Result<PathBuf> {
    if let Some(folder) = &args.keystore {
        return Ok(folder.clone());
    }
    match base_strategy::choose_native_strategy() {
        Ok(base) => Ok(base.data_dir().join("bulla")),
        Err(_) => Err(Error::new("no_home", "there is no home folder to look for the keystore in")
            .hint("name its folder with --keystore DIR or BULLA_KEYSTORE")),
    }
}

/// Makes the key `default` if there is none: the process that made the keystore may have been stopped before.
pub(crate) fn ensure_default(keystore: &Keystore) -> Result<KeyFamily> {
    let label = parse_name(DEFAULT_LABEL)?;
    match keystore.find(&tenant()?, &label)? {
        Some(family) => Ok(family),
        None => Ok(create_key(keystore, label, parse_name(DEFAULT_PURPOSE)?)?.family().clone()),
    }
}

/// Makes a key that the command itself needs, whatever it was told about others.
fn create_key(keystore: &Keystore, label: Name, purpose: Name) -> Result<KeyId> {
    let new = NewKey::new(tenant()?, purpose, Algorithm::Ed25519);
    Ok(keystore.create_key(new.label(label))?)
}

/// The tenant of all keys that the command line makes.
pub(crate) fn tenant() -> Result<Name> {
    parse_name(TENANT)
}

/// A label or a purpose from the command line.
pub(crate) fn parse_name(text: &str) -> Result<Name> {
    Ok(text.parse()?)
}

/// Where a key is found by its label.
pub(crate) trait Labels {
    /// The key of a tenant that has the label.
    fn labelled(&self, tenant: &Name, label: &Name) -> Result<Option<KeyFamily>, KmsError>;
}

impl Labels for Keystore {
    fn labelled(&self, tenant: &Name, label: &Name) -> Result<Option<KeyFamily>, KmsError> {
        self.find(tenant, label)
    }
}

impl Labels for Snapshot {
    fn labelled(&self, tenant: &Name, label: &Name) -> Result<Option<KeyFamily>, KmsError> {
        Ok(self.find(tenant, label))
    }
}

/// The key that a person means: all of it, or one version.
pub(crate) enum Named {
    Family(KeyFamily),
    Version(KeyId),
}

impl Named {
    /// Finds the key by its label, its id, or its id with a version.
    pub(crate) fn find(keys: &impl Labels, text: &str) -> Result<Self> {
        if text.contains('/') {
            return match text.parse::<KeyId>() {
                Ok(id) => Ok(Self::Version(id)),
                Err(_) => Ok(Self::Family(text.parse().map_err(|error: KmsError| no_such_key(text, error))?)),
            };
        }
        let found = match (text.parse(), TENANT.parse()) {
            (Ok(label), Ok(tenant)) => keys.labelled(&tenant, &label)?,
            _ => None,
        };
        found.map(Self::Family).ok_or_else(|| {
            Error::new("key_not_found", format!("there is no key with the label {text:?}"))
                .hint("`bulla keys list` lists the keys, `bulla keys new LABEL` makes one")
        })
    }

    /// The key without a version.
    pub(crate) fn family(&self) -> &KeyFamily {
        match self {
            Self::Family(family) => family,
            Self::Version(id) => id.family(),
        }
    }

    /// The key as it is to sign.
    pub(crate) fn as_ref(&self) -> KeyRef<'_> {
        match self {
            Self::Family(family) => family.into(),
            Self::Version(id) => id.into(),
        }
    }
}

fn no_such_key(text: &str, error: KmsError) -> Error {
    Error::new(error.code.as_str(), format!("{text:?} is no key id: {error}"))
        .hint("`bulla keys list` prints the ids of your keys")
}

/// How often a passphrase is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Once,
    /// A new one: a slip of the finger would lock its owner out.
    Twice,
}

fn passphrase(args: &KeystoreArgs, folder: &Path, asked: Asked) -> Result<SecretString> {
    let what = format!("the keystore {}", shown(folder));
    passphrase_of(&what, args.passphrase_file.as_deref(), asked)
}

/// The passphrase of something: from a file, or asked for.
pub(crate) fn passphrase_of(what: &str, file: Option<&Path>, asked: Asked) -> Result<SecretString> {
    match file {
        Some(file) => passphrase_from_file(file),
        None => passphrase_from_terminal(what, asked),
    }
}

/// The passphrase of a private key that is to be imported; `shown` names its file.
pub(crate) fn key_passphrase(file: Option<&Path>, shown: &str) -> Result<SecretString> {
    if let Some(file) = file {
        return passphrase_from_file(file);
    }
    if !io::stderr().is_terminal() {
        return Err(Error::new(
            "no_passphrase",
            "the key is encrypted, and there is no terminal to ask for its passphrase",
        )
        .about(shown)
        .hint("name a file that holds it with --key-passphrase-file FILE"));
    }
    interrupt::guard();
    Ok(SecretString::from(ask(&format!("Passphrase of the key {shown}: "))?.as_str()))
}

/// The first line of the file, without its end.
fn passphrase_from_file(path: &Path) -> Result<SecretString> {
    let error = |message: &str| Error::new("passphrase_file", message).about(shown(path));
    let cannot_read = |error| Error::io("cannot read the passphrase", &error).about(shown(path));
    let file = File::open(path).map_err(cannot_read)?;
    check_secret(path, &file.metadata().map_err(cannot_read)?)?;
    // The capacity is never exceeded, so that no copy stays behind in a buffer that was too small.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * MAX_PASSPHRASE));
    file.take(MAX_PASSPHRASE as u64 + 1).read_to_end(&mut bytes).map_err(cannot_read)?;
    if bytes.len() > MAX_PASSPHRASE {
        return Err(error("a passphrase file has at most 4096 bytes"));
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match std::str::from_utf8(line) {
        Ok("") => Err(error("the passphrase, which is the first line, is empty")),
        Ok(line) => Ok(SecretString::from(line)),
        Err(_) => Err(error("the passphrase, which is the first line, is not UTF-8")),
    }
}

fn passphrase_from_terminal(what: &str, asked: Asked) -> Result<SecretString> {
    if !io::stderr().is_terminal() {
        return Err(Error::new(
            "no_passphrase",
            format!("{what} is opened by a passphrase, and there is no terminal to ask for it"),
        )
        .hint(match asked {
            Asked::Once => "name a file that holds it with --passphrase-file FILE or BULLA_PASSPHRASE_FILE",
            Asked::Twice => "name a file that holds the new one; --help says by which flag",
        }));
    }
    // Reading a passphrase switches the terminal's echo off: an interrupt must switch it on again.
    interrupt::guard();
    let first = ask(&format!("Passphrase of {what}: "))?;
    if first.is_empty() {
        return Err(Error::new("no_passphrase", "the passphrase is empty"));
    }
    if asked == Asked::Twice && *ask("The same again: ")? != *first {
        return Err(
            Error::new("no_passphrase", "the two passphrases are not the same").hint("run the command again")
        );
    }
    Ok(SecretString::from(first.as_str()))
}

fn ask(prompt: &str) -> Result<Zeroizing<String>> {
    rpassword::prompt_password(prompt)
        .map(Zeroizing::new)
        .map_err(|error| Error::io("cannot read the passphrase", &error).about("terminal"))
}

impl From<KmsError> for Error {
    fn from(error: KmsError) -> Self {
        let hint = match error.code {
            Code::Locked => {
                Some("another process is using the keystore; run the command again when it is done")
            }
            Code::StoreTooNew | Code::SignatureTooNew | Code::SealedTooNew => {
                Some("install a newer version of bulla; nothing was changed")
            }
            Code::StoreDamaged => Some("restore the folder of the keystore from a copy; nothing was changed"),
            Code::KeyNotFound | Code::UnknownVersion => Some("`bulla keys list` lists the keys"),
            Code::KeyDisabled => Some("`bulla keys enable` makes it sign again"),
            Code::WrongPassphrase => {
                Some("check the passphrase; without it what it seals cannot be had back")
            }
            Code::LogDamaged => Some(
                "`bulla audit-log verify` says what is wrong; keep the folder as it is, and begin another log elsewhere",
            ),
            Code::UnsupportedAlgorithm => Some("a key on a token needs the token: name it with --pkcs11 URI"),
            Code::RolledBack | Code::GuardMismatch => Some(
                "put the newest keystore and its guard in their places; `bulla keys guard` accepts what is there",
            ),
            Code::StorageFull => Some("free some space and run the command again; this change was not made"),
            _ => None,
        };
        let converted = Error::new(error.code.as_str(), error.message);
        match hint {
            Some(hint) => converted.hint(hint),
            None => converted,
        }
    }
}
