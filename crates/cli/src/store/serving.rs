//! What opens a keystore for the service.

use super::access::Access;
use super::passphrase::{passphrase_from_credential, passphrase_from_descriptor};
use super::place::{REVOKED_FILE, STORE_FILE, folder};
use super::recording;
use crate::args::KeystoreArgs;
use crate::error::{Error, Result};
use bulla_kms::audit_log::{AuditLogOptions, Durability, Verifications};
use bulla_kms::metrics::Metrics;
use bulla_kms::token::{Grant, GrantedKeys, TokenOperation};
use bulla_kms::{
    Code, Keystore, KeystoreOptions, KmsError, Name, SecretString, Timestamp, Unlock, UnlockMethod,
};
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
        let options = KeystoreOptions { metrics: Some(Arc::clone(metrics)), ..KeystoreOptions::default() };
        let keystore = options.in_memory();
        keystore.create_token_root(&self.tenant)?;
        let grant = Grant {
            tenant: self.tenant.clone(),
            keys: GrantedKeys::All,
            operations: TokenOperation::ALL.to_vec(),
            expires: in_a_year()?,
        };
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
pub(super) fn service_log_options(config: &Config) -> Result<AuditLogOptions> {
    let durability = match config.audit.durability {
        AuditDurability::Grouped => Durability::Grouped,
        AuditDurability::AtCheckpoints => Durability::AtCheckpoints,
    };
    let verifications =
        if config.audit.record_verifications { Verifications::Recorded } else { Verifications::LeftOut };
    Ok(AuditLogOptions {
        durability,
        verifications,
        // Each checkpoint waits for the disk: a busy service makes one a second.
        checkpoint_entries: u64::MAX,
        checkpoint_interval: Duration::from_secs(1),
        ..recording::log_options()?
    })
}

/// The error as the service reports it.
pub(super) fn as_kms_error(error: Error) -> KmsError {
    let codes = [
        Code::WrongPassphrase,
        Code::WrongUnlockMethod,
        Code::Locked,
        Code::NotFound,
        Code::AuditLogCorrupt,
        Code::KeystoreCorrupt,
        Code::Unavailable,
        Code::PermissionDenied,
        Code::RolledBack,
        Code::GuardMismatch,
    ];
    let code = codes.into_iter().find(|code| code.as_str() == error.code()).unwrap_or(Code::Io);
    KmsError::new(code, error.to_string())
}

/// The keystore in a folder.
pub(crate) struct FolderSource {
    args: KeystoreArgs,
    folder: PathBuf,
    /// What opens it; none until somebody gives the passphrase.
    access: Option<Access>,
    log: AuditLogOptions,
}

impl FolderSource {
    /// Finds the keystore, and asks for its passphrase where there is a terminal.
    ///
    /// # Errors
    /// The keystore does not exist.
    pub(crate) fn find(args: &KeystoreArgs, config: &Config) -> Result<Self> {
        let mut args = args.clone();
        let from_settings = &config.keystore;
        args.keystore = args.keystore.or_else(|| from_settings.folder.clone());
        args.passphrase_file = args.passphrase_file.or_else(|| from_settings.passphrase_file.clone());
        let folder = folder(&args)?;
        let store = folder.join(STORE_FILE);
        let needs_passphrase = matches!(Keystore::unlock_method(&store), Ok(UnlockMethod::Passphrase));
        let access = if !needs_passphrase || args.passphrase_file.is_some() {
            Some(Access::existing(&args)?)
        } else if let Some(descriptor) = from_settings.passphrase_fd {
            Some(Access::with(&args, Unlock::Passphrase(passphrase_from_descriptor(descriptor)?))?)
        } else if let Some(name) = &from_settings.credential {
            Some(Access::with(&args, Unlock::Passphrase(passphrase_from_credential(name)?))?)
        } else if std::io::stderr().is_terminal() {
            Some(Access::existing(&args)?)
        } else {
            None
        };
        Ok(Self { args, folder, access, log: service_log_options(config)? })
    }

    fn opened(&self, passphrase: Option<SecretString>, metrics: &Arc<Metrics>) -> Result<OpenKeystore> {
        let mut access = match (&self.access, passphrase) {
            (Some(access), None) => access.clone(),
            (_, Some(passphrase)) => Access::with(&self.args, Unlock::Passphrase(passphrase))?,
            (None, None) => {
                return Err(Error::new(
                    "wrong_passphrase",
                    "the keystore opens with a passphrase, which nobody gave",
                ));
            }
        };
        access.options.metrics = Some(Arc::clone(metrics));
        let keystore = access.open_unrecorded()?;
        Ok(match access.log_with(&keystore, self.log.clone())? {
            Some(log) => OpenKeystore {
                keystore: keystore.audited(log.clone()),
                audit: Some((log, self.log.durability)),
            },
            None => OpenKeystore { keystore, audit: None },
        })
    }
}

impl KeystoreSource for FolderSource {
    fn needs_passphrase(&self) -> bool {
        self.access.is_none()
    }

    fn open(
        &self,
        passphrase: Option<SecretString>,
        metrics: &Arc<Metrics>,
    ) -> bulla_kms::Result<OpenKeystore> {
        self.opened(passphrase, metrics).map_err(as_kms_error)
    }

    fn revocations(&self) -> Option<PathBuf> {
        Some(self.folder.join(REVOKED_FILE))
    }
}
