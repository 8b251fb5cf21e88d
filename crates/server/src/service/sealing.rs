//! Sealing and unsealing, for both APIs of the service.

use std::sync::Arc;

use bulla_kms::audit_log::Actor;
use bulla_kms::{Code, KmsError, SecretString};

use super::blocking::run_off_thread;
use super::open::UnsealedService;
use super::shared::Service;
use crate::access::Session;
use crate::error::Result;

impl Service {
    /// Closes the keystore for `actor`, whose request holds `unsealed`.
    ///
    /// # Errors
    /// Closing it panicked.
    pub(crate) async fn close(self: &Arc<Self>, unsealed: Arc<UnsealedService>, actor: &Actor) -> Result<()> {
        let service = Arc::clone(self);
        // The last user of the keystore closes its files, which takes long.
        run_off_thread(move || {
            service.seal();
            drop(unsealed);
        })
        .await?;
        tracing::warn!(%actor, "an operator sealed the service");
        Ok(())
    }

    /// Opens the keystore for `actor` with what the service was given at its start, if it is not
    /// open. A key file is read again.
    ///
    /// # Errors
    /// The service was not given a passphrase, and the keystore needs one; those of the source.
    pub(crate) async fn open_again(self: &Arc<Self>, actor: &Actor) -> Result<()> {
        if !self.auto_unseals() {
            let message = "the keystore opens with a passphrase, which the request does not have";
            return Err(KmsError::new(Code::WrongPassphrase, message).into());
        }
        tracing::warn!(%actor, "an operator unseals the service");
        self.unseal_apart(None).await
    }

    /// Opens the keystore with a passphrase, if it is not open. Callers need no other credential,
    /// so all of them together have few tries. An identity of the settings has tries of its own,
    /// which nobody else uses up.
    ///
    /// # Errors
    /// There were too many tries; those of the source.
    pub(crate) async fn try_passphrase(
        self: &Arc<Self>,
        passphrase: SecretString,
        peer: Option<&Session>,
    ) -> Result<()> {
        if !self.is_sealed() {
            return Ok(());
        }
        self.count_try(peer.map(|session| &session.actor))?;
        self.unseal_apart(Some(passphrase)).await
    }

    /// Opens the keystore on a thread that may wait.
    async fn unseal_apart(self: &Arc<Self>, passphrase: Option<SecretString>) -> Result<()> {
        let service = Arc::clone(self);
        Ok(run_off_thread(move || service.unseal(passphrase)).await??)
    }
}
