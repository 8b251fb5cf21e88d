//! A keystore on this machine: its folder, and what the user gave to open it.
//!
//! `bulla-keystore` does the work. Here are the flags, the prompts and the notes.

use super::key_source::keystore_folder;
use super::prompt::{CommandPassphrase, ask_for_pin};
use crate::args::KeystoreArgs;
use crate::diagnostics::note_line;
use crate::error::Result;
use crate::interrupt;
use bulla_files::escape_path;
use bulla_keystore::{
    DEFAULT_LABEL, ErrorCode, GuardLocation, NewKeystore, NewSecret, OpenFolder, RestoredFolder, Secrets,
    StartedAuditLog, UnlockedFolder,
};
use bulla_kms::audit_log::{AuditLog, Checkpoint, WitnessReport, Witnesses};
use bulla_kms::pkcs11::{self, PinSource, Pkcs11};
use bulla_kms::{Attestation, Backup, Keystore, Name, Snapshot, Unlock};
use std::path::Path;

/// A keystore on this machine, and the secret that opens it. The keystore is open, and locked for
/// other processes, only while it is used.
#[derive(Clone)]
pub struct LocalKeystore(UnlockedFolder);

impl LocalKeystore {
    /// The existing keystore.
    ///
    /// # Errors
    /// The keystore does not exist, or bulla cannot get the passphrase.
    pub fn existing(args: &KeystoreArgs) -> Result<Self> {
        Ok(Self(keystore_folder(args)?.unlock(&secrets(args))?))
    }

    /// The existing keystore, without asking its guard whether it is an older copy.
    pub(crate) fn existing_unguarded(args: &KeystoreArgs) -> Result<Self> {
        Ok(Self(keystore_folder(args)?.unlock_unguarded(&secrets(args))?))
    }

    /// The existing keystore, or a new one with the key `default`. Only the keystore in the user's
    /// data folder is created this way. If the user names a keystore that does not exist, the name
    /// is probably a mistake.
    pub fn existing_or_new(args: &KeystoreArgs) -> Result<Self> {
        let folder = keystore_folder(args)?;
        if args.keystore.is_some() || folder.exists() {
            return Self::existing(args);
        }
        match Self::create(args, default_secret(args), None) {
            // Another process was first.
            Err(error) if error.code() == ErrorCode::KeystoreExists.as_str() && folder.exists() => {
                Self::existing(args)
            }
            created => created,
        }
    }

    /// A new keystore with the key `default`. A note on standard error says so.
    ///
    /// # Errors
    /// If there is a keystore already, or there was one.
    pub(crate) fn create(
        args: &KeystoreArgs,
        secret: NewSecret,
        guard: Option<&GuardLocation>,
    ) -> Result<Self> {
        let folder = keystore_folder(args)?;
        interrupt::watch_signals();
        let mut new = NewKeystore::with(secret);
        if let Some(guard) = guard {
            new = new.guard(guard.clone());
        }
        let unlocked = folder.create(&new, &secrets(args))?;
        let opened_by = match unlocked.unlock() {
            Unlock::KeyFile(_) => {
                "the key file keystore.key in that folder opens it: anyone with both files can sign as you"
            }
            Unlock::Passphrase(_) => "your passphrase opens it",
            Unlock::Provider(_) => "its key on the device opens it",
        };
        note_line(&format!(
            "created the keystore {} with the key `{DEFAULT_LABEL}`; {opened_by}",
            escape_path(folder.path())
        ));
        Ok(Self(unlocked))
    }

    /// A new keystore from a backup. The new passphrase, if it opens with one, is not that of
    /// `args`, which may open the backup.
    pub(crate) fn restore(
        args: &KeystoreArgs,
        secret: &NewSecret,
        new_passphrase_file: Option<&Path>,
        backup: &Backup,
    ) -> Result<Self> {
        interrupt::watch_signals();
        let secrets = secrets(args).passphrase(CommandPassphrase::new(new_passphrase_file));
        let RestoredFolder { folder, audit_log, .. } =
            keystore_folder(args)?.restore(backup, secret, &secrets)?;
        if let Some(StartedAuditLog { folder, log, .. }) = audit_log {
            note_recovered(&log);
            note_line(&format!(
                "a backup contains no audit log: bulla started a new one in {}; keep the old log as a proof of its entries",
                escape_path(folder.path())
            ));
        }
        Ok(Self(folder))
    }

    /// Opens the keystore. Drop it soon: other processes wait meanwhile.
    pub fn open(&self) -> Result<Keystore> {
        interrupt::watch_signals();
        Ok(noted(self.0.open()?))
    }

    /// Opens the keystore to sign with the key that the user names. If a signature changes nothing
    /// in the keystore, it is not locked and may be on a read-only disk.
    pub(crate) fn open_to_sign(&self, name: &str) -> Result<Keystore> {
        interrupt::watch_signals();
        Ok(noted(self.0.open_to_sign(name)?))
    }

    /// The current keys, for reading only. Nothing is written, and nothing stays locked.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        interrupt::watch_signals();
        Ok(self.0.snapshot()?)
    }

    /// Starts an audit log, or completes one whose start was interrupted.
    pub(crate) fn begin_log(&self) -> Result<StartedAuditLog> {
        interrupt::watch_signals();
        let started = self.0.begin_audit_log()?;
        note_recovered(&started.log);
        Ok(started)
    }

    /// Makes a checkpoint of the audit log.
    pub(crate) fn make_checkpoint(&self) -> Result<Checkpoint> {
        interrupt::watch_signals();
        Ok(self.0.with_audit_log(|log, keystore, key| {
            note_recovered(log);
            log.checkpoint(keystore, key)
        })?)
    }

    /// Has witnesses cosign the audit log.
    pub(crate) fn witness_log(&self, witnesses: &mut Witnesses) -> Result<WitnessReport> {
        interrupt::watch_signals();
        Ok(self.0.with_audit_log(|log, keystore, key| {
            note_recovered(log);
            witnesses.witness(log, keystore, key)
        })?)
    }

    /// The key that signs the audit log.
    pub(crate) fn log_key(&self) -> Result<Attestation> {
        interrupt::watch_signals();
        Ok(self.0.audit_log_key()?)
    }

    /// Replaces the secret that opens the keystore.
    pub(crate) fn rekey(&mut self, keystore: &Keystore, new: Unlock) -> Result<()> {
        Ok(self.0.rekey(keystore, new)?)
    }

    /// Replaces the secret with a new key file.
    pub(crate) fn rekey_to_key_file(&mut self, keystore: &Keystore) -> Result<()> {
        interrupt::watch_signals();
        Ok(self.0.rekey_to_key_file(keystore)?)
    }

    /// Replaces the secret with a key on the device. If the device has no key with that name, it is
    /// created.
    pub(crate) fn rekey_to_device_key(
        &mut self,
        args: &KeystoreArgs,
        keystore: &Keystore,
        name: &Name,
    ) -> Result<()> {
        Ok(self.0.rekey_to_device_key(keystore, name, &secrets(args))?)
    }

    /// Gives the keystore another guard, or none.
    pub(crate) fn set_guard(&self, args: &KeystoreArgs, guard: Option<&GuardLocation>) -> Result<()> {
        Ok(self.0.set_guard(self.open()?, guard, &secrets(args))?)
    }

    /// The keystore's folder.
    pub fn folder(&self) -> &Path {
        self.0.folder().path()
    }

    /// The kind of secret that opens it.
    pub(crate) fn method(&self) -> &'static str {
        match self.0.unlock() {
            Unlock::KeyFile(_) => "key_file",
            Unlock::Passphrase(_) => "passphrase",
            Unlock::Provider(provider) if provider.method() == pkcs11::NAME => "device",
            Unlock::Provider(_) => "identity",
        }
    }
}

/// The secret of a new keystore, unless the user asks for another one.
pub(crate) fn default_secret(args: &KeystoreArgs) -> NewSecret {
    match args.passphrase_file {
        Some(_) => NewSecret::Passphrase,
        None => NewSecret::KeyFile,
    }
}

/// The secrets that the user gave, or can be asked for.
pub fn secrets(args: &KeystoreArgs) -> Secrets {
    let mut secrets = Secrets::new().passphrase(CommandPassphrase::new(args.passphrase_file.as_deref()));
    if let Some(path) = &args.identity {
        secrets = secrets.identity_file(path);
    }
    if let Some(config) = &args.pkcs11 {
        let pin = config.pin.clone().unwrap_or(PinSource::Asked(ask_for_pin));
        secrets = secrets.device(Pkcs11::when_needed(&config.clone().pin(pin)));
    }
    secrets
}

fn noted(open: OpenFolder) -> Keystore {
    if let Some(log) = &open.audit_log {
        note_recovered(log);
    }
    open.keystore
}

/// Notes that a crash had left an incomplete line in the log.
pub fn note_recovered(log: &AuditLog) {
    if let Some(recovered) = log.recovered() {
        note_line(&format!(
            "the audit log ended in an incomplete line ({} bytes), left by a crash; bulla removed it and recorded that in the log",
            recovered.bytes
        ));
    }
}
