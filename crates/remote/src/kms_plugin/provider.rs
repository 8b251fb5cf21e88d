//! What the plugin does for the API server, by a service.

use super::protocol::{DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusResponse};
use crate::connection::error_of;
use bulla_client::{Client, EncryptionOptions, ErrorCode, ErrorKind, Key, KeyDerivation, KeyState};
use bulla_command::diagnostics::note_line;
use bulla_kms::KeyVersionId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tonic::Status;

/// The version of the protocol.
const VERSION: &str = "v2";
/// What the API server takes for a plugin that works.
const HEALTHY: &str = "ok";
/// The longest plaintext. The API server sends 32 bytes, and takes ciphertexts of 1 KiB.
const MAX_PLAINTEXT_LEN: usize = 512;
/// The longest ciphertext that the API server keeps.
const MAX_CIPHERTEXT_LEN: usize = 1 << 10;

/// The associated data of what the API server encrypts. So the socket decrypts nothing that was
/// encrypted by other programs with the same key.
const OBJECTS: EncryptionOptions<'static> =
    EncryptionOptions { associated_data: b"bulla kms-plugin v1", context: b"" };
/// The associated data of what the plugin encrypts to see whether a key works.
const TRIAL: EncryptionOptions<'static> =
    EncryptionOptions { associated_data: b"bulla kms-plugin v1 trial", context: b"" };

/// A key of a service.
pub(super) struct Provider {
    client: Client,
    /// Its label or its id.
    key: String,
    memory: Mutex<Memory>,
}

/// What earlier calls found.
#[derive(Default)]
struct Memory {
    /// The newest version that has encrypted and decrypted.
    proven: Option<String>,
    /// What is wrong, as it was last shown; none if nothing is, or nothing was shown.
    problem: Option<String>,
    /// Whether anything was shown.
    is_shown: bool,
}

impl Provider {
    pub(super) fn new(client: Client, key: String) -> Self {
        Self { client, key, memory: Mutex::default() }
    }

    /// Whether the key works, and which version encrypts.
    ///
    /// The API server learns a new version only after that version has encrypted and decrypted
    /// here. If anything is wrong, it gets an error and no key id: with the id that it knows, it
    /// would count the plugin as working for as long as it lasts.
    pub(super) async fn status(&self, time: Duration) -> Result<StatusResponse, Status> {
        let found = self.proven_version(&self.client(time)).await;
        self.show(found.as_ref().err());
        Ok(StatusResponse { version: VERSION.to_owned(), healthz: HEALTHY.to_owned(), key_id: found? })
    }

    pub(super) async fn encrypt(
        &self,
        asked: &EncryptRequest,
        time: Duration,
    ) -> Result<EncryptResponse, Status> {
        if !(1..=MAX_PLAINTEXT_LEN).contains(&asked.plaintext.len()) {
            let message = format!("a plaintext has 1 to {MAX_PLAINTEXT_LEN} bytes");
            return Err(Status::invalid_argument(message));
        }
        let encrypted = self.client(time).encrypt(&self.key, &asked.plaintext, &OBJECTS).await;
        let encrypted = encrypted.map_err(status_of)?;
        let annotations = HashMap::new();
        Ok(EncryptResponse { ciphertext: encrypted.bytes, key_id: encrypted.key, annotations })
    }

    /// Decrypts with the key that the request names, which may be another one than that which
    /// encrypts now: an operator may have moved to another key. The token permits it or does not.
    pub(super) async fn decrypt(
        &self,
        asked: &DecryptRequest,
        time: Duration,
    ) -> Result<DecryptResponse, Status> {
        let refused = |message: &str| Err(Status::invalid_argument(message.to_owned()));
        if !(1..=MAX_CIPHERTEXT_LEN).contains(&asked.ciphertext.len()) {
            return refused("a ciphertext has 1 to 1024 bytes");
        }
        if !asked.annotations.is_empty() {
            return refused(
                "another plugin encrypted this: there are annotations, which bulla does not make",
            );
        }
        let Ok(id) = asked.key_id.parse::<KeyVersionId>() else {
            return refused("another plugin encrypted this: the key id is not one of bulla");
        };
        let key = id.key_id().to_string();
        let decrypted = self.client(time).decrypt(&key, &asked.ciphertext, &OBJECTS).await;
        let decrypted = decrypted.map_err(status_of)?;
        if decrypted.key != asked.key_id {
            return refused("the key id is not that of the ciphertext");
        }
        Ok(DecryptResponse { plaintext: decrypted.bytes.to_vec() })
    }

    /// A client that gives up before the API server does, which then learns why.
    fn client(&self, time: Duration) -> Client {
        self.client.with_timeout(time - time / 8)
    }

    /// The version that encrypts, after it has encrypted and decrypted.
    async fn proven_version(&self, client: &Client) -> Result<String, Status> {
        let key = client.key(&self.key).await.map_err(status_of)?;
        check(&key)?;
        let version = format!("{}/v{}", key.id, key.latest_version);
        if self.memory().proven.as_ref() == Some(&version) && !is_due(&key) {
            return Ok(version);
        }
        // This may rotate the key, if it has a rotation policy.
        let encrypted = client.encrypt(&key.id, VERSION.as_bytes(), &TRIAL).await.map_err(status_of)?;
        let decrypted = client.decrypt(&key.id, &encrypted.bytes, &TRIAL).await.map_err(status_of)?;
        if decrypted.key != encrypted.key || *decrypted.bytes != VERSION.as_bytes() {
            return Err(Status::data_loss("the service decrypts to something else than was encrypted"));
        }
        self.memory().proven = Some(encrypted.key.clone());
        Ok(encrypted.key)
    }

    /// Tells the operator when the plugin begins or ceases to work, and why.
    fn show(&self, problem: Option<&Status>) {
        let problem = problem.map(|status| status.message().to_owned());
        let mut memory = self.memory();
        if memory.is_shown && memory.problem == problem {
            return;
        }
        match &problem {
            None => note_line(&format!("the key {} encrypts and decrypts", self.key)),
            Some(problem) => note_line(&format!("the API server cannot use the key {}: {problem}", self.key)),
        }
        (memory.problem, memory.is_shown) = (problem, true);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a key that encrypts nothing for the API server.
fn check(key: &Key) -> Result<(), Status> {
    let refused = |message: String| Err(Status::failed_precondition(message));
    match key.state {
        KeyState::Enabled => {}
        KeyState::Disabled => return refused(format!("the key {} is disabled: enable it", key.id)),
        _ => return refused(format!("the key {} is destroyed, or waits for it", key.id)),
    }
    if key.derivation != KeyDerivation::None {
        return refused(format!("the key {} needs a context: create one without --derivation", key.id));
    }
    Ok(())
}

/// Whether the rotation policy replaces the latest version at its next use. The API server itself
/// uses a key only when the id changes.
fn is_due(key: &Key) -> bool {
    let latest = key.versions.iter().find(|version| version.version == key.latest_version);
    let age = latest.and_then(|version| SystemTime::now().duration_since(version.created).ok());
    key.rotation.max_age.zip(age).is_some_and(|(max_age, age)| age >= max_age)
}

/// An error as the API server shows it, without a secret.
fn status_of(error: bulla_client::Error) -> Status {
    let is_temporary = error.is_retryable()
        || matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Interrupted)
        || error.code() == Some(&ErrorCode::Sealed);
    let code = match error.code() {
        _ if is_temporary => tonic::Code::Unavailable,
        Some(ErrorCode::Unauthenticated) => tonic::Code::Unauthenticated,
        Some(ErrorCode::Forbidden) => tonic::Code::PermissionDenied,
        Some(ErrorCode::InvalidCiphertext) => tonic::Code::InvalidArgument,
        _ => tonic::Code::FailedPrecondition,
    };
    let shown = error_of(error);
    let message = match shown.next_step() {
        Some(hint) => format!("{shown}: {hint}"),
        None => shown.to_string(),
    };
    Status::new(code, message)
}
