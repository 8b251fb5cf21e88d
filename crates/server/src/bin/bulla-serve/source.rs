//! What opens a keystore for the service.

use bulla_cli::keystore::{KeystoreArgs, keystore_folder, note_recovered, secrets};
use bulla_command::error::Result;
use bulla_keystore::{
    KeystoreFolder, OpenFolder, PassphraseCredential, PassphraseDescriptor, Secrets, UnlockedFolder,
    audit_log,
};
use bulla_kms::audit_log::{AuditLogOptions, Durability, Verifications};
use bulla_kms::metrics::Metrics;
use bulla_kms::token::{Grant, GrantedKeys, TokenOperation};
use bulla_kms::{Code, KeystoreOptions, KmsError, Name, SecretString, Timestamp, Unlock, UnlockMethod};
use bulla_server::{AuditDurability, Config, KeystoreSource, OpenKeystore};
use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An empty keystore in memory, with a token of this tenant that permits everything: Vault's
/// clients send nothing without a token. The token is as good as the keystore: both end with the
/// service.
pub(crate) struct MemorySource {
    pub(crate) tenant: Name,
}

impl KeystoreSource for MemorySource {
    fn needs_passphrase(&self) -> bool {
        false
    }

    fn open(
        &self,
        _passphrase: Option<SecretString>,
        metrics: &Arc<Metrics>,
    ) -> bulla_kms::Result<OpenKeystore> {
        let options = KeystoreOptions::default().metrics(Arc::clone(metrics));
        let keystore = options.in_memory()?;
        keystore.create_token_root(&self.tenant)?;
        let grant =
            Grant::new(self.tenant.clone(), GrantedKeys::All, TokenOperation::ALL.to_vec(), in_a_year()?);
        // Standard output, and not the log: logs are collected and kept.
        print_variable("VAULT_TOKEN", keystore.mint_token(&grant)?.expose());
        Ok(OpenKeystore { keystore, audit: None })
    }
}

fn in_a_year() -> bulla_kms::Result<Timestamp> {
    Timestamp::from_unix_millis(Timestamp::now()?.unix_millis() + 365 * 86_400_000)
}

/// Prints a line for a shell that sets a variable of Vault's clients. A service whose standard
/// output is closed runs all the same.
pub(crate) fn print_variable(name: &str, value: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "export {name}={value}").and_then(|()| out.flush());
}

/// How the service writes an audit log.
pub(crate) fn service_log_options(config: &Config) -> AuditLogOptions {
    let durability = match config.audit.durability {
        AuditDurability::Grouped => Durability::Grouped,
        AuditDurability::AtCheckpoints => Durability::AtCheckpoints,
    };
    let verifications =
        if config.audit.record_verifications { Verifications::Recorded } else { Verifications::LeftOut };
    audit_log::options()
        .durability(durability)
        .verifications(verifications)
        // Each checkpoint waits for the disk: a busy service makes one a second.
        .checkpoint_entries(u64::MAX)
        .checkpoint_interval(Duration::from_secs(1))
}

/// The flags, and what the settings say where no flag does.
pub(crate) fn with_settings(args: &KeystoreArgs, config: &Config) -> KeystoreArgs {
    let mut args = args.clone();
    args.keystore = args.keystore.or_else(|| config.keystore.folder.clone());
    args.passphrase_file = args.passphrase_file.or_else(|| config.keystore.passphrase_file.clone());
    args
}

/// The secrets of the service, with the source of the passphrase: a file, a descriptor or a
/// credential of the settings, or a terminal. None if an operator must give the passphrase.
pub(crate) fn passphrase_secrets(args: &KeystoreArgs, config: &Config) -> Option<Secrets> {
    let secrets = secrets(args);
    if args.passphrase_file.is_some() {
        Some(secrets)
    } else if let Some(descriptor) = config.keystore.passphrase_fd {
        Some(secrets.passphrase(PassphraseDescriptor(descriptor)))
    } else if let Some(name) = &config.keystore.credential {
        Some(secrets.passphrase(PassphraseCredential::named(name)))
    } else {
        std::io::stderr().is_terminal().then_some(secrets)
    }
}

/// The error of a service that no operator has given the passphrase.
pub(crate) fn no_passphrase_given() -> KmsError {
    KmsError::new(Code::WrongPassphrase, "the keystore opens with a passphrase, which nobody gave")
}

/// The keystore in a folder.
pub(crate) struct FolderSource {
    folder: KeystoreFolder,
    secrets: Secrets,
    /// None until an operator gives the passphrase.
    unlocked: Option<UnlockedFolder>,
    log: AuditLogOptions,
}

impl FolderSource {
    /// Finds the keystore, and asks for its passphrase where there is a terminal.
    ///
    /// # Errors
    /// The keystore does not exist.
    pub(crate) fn find(args: &KeystoreArgs, config: &Config) -> Result<Self> {
        let args = with_settings(args, config);
        let folder = keystore_folder(&args)?;
        let needs_passphrase = matches!(folder.unlock_method(), Ok(UnlockMethod::Passphrase));
        let given = if needs_passphrase { passphrase_secrets(&args, config) } else { Some(secrets(&args)) };
        let unlocked = given.map(|secrets| folder.unlock(&secrets)).transpose()?;
        Ok(Self { folder, secrets: secrets(&args), unlocked, log: service_log_options(config) })
    }
}

impl KeystoreSource for FolderSource {
    fn needs_passphrase(&self) -> bool {
        self.unlocked.is_none()
    }

    fn open(
        &self,
        passphrase: Option<SecretString>,
        metrics: &Arc<Metrics>,
    ) -> bulla_kms::Result<OpenKeystore> {
        let mut unlocked = match (&self.unlocked, passphrase) {
            (Some(unlocked), None) => unlocked.clone(),
            (_, Some(passphrase)) => {
                self.folder.unlock_with(Unlock::Passphrase(passphrase), &self.secrets)?
            }
            (None, None) => return Err(no_passphrase_given()),
        };
        unlocked.options_mut().metrics = Some(Arc::clone(metrics));
        let OpenFolder { keystore, audit_log, .. } = unlocked.open_with(self.log.clone())?;
        audit_log.iter().for_each(|log| note_recovered(log));
        Ok(OpenKeystore { keystore, audit: audit_log.map(|log| (log, self.log.durability)) })
    }

    fn revocations(&self) -> Option<PathBuf> {
        Some(self.folder.revoked_tokens_file())
    }

    fn rows(&self) -> Option<PathBuf> {
        Some(self.folder.service_folder())
    }
}
