//! The service as a whole: its state, its seal, and backups.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::call::{Call, Effect};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::transport::interrupted;

/// Whether the service can sign.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Readiness {
    /// Whether the keystore is closed until somebody unseals it.
    pub sealed: bool,
}

/// A backup that arrives in pieces. It opens only if it is whole: an error means that all of it is
/// lost.
pub struct Backup {
    /// How many keys it has.
    pub keys: u64,
    /// How many private keys these have.
    pub private_keys: u64,
    /// When it was made, in RFC 3339.
    pub made: String,
    body: Incoming,
    /// How long each piece may take.
    deadline: Duration,
}

impl std::fmt::Debug for Backup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backup").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl Backup {
    fn new(answer: Response<Incoming>, deadline: Duration) -> Result<Self> {
        let header = |name| answer.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let number = |name| header(name).and_then(|value| value.parse().ok());
        let read = || {
            let made = header("bulla-backup-made")?.to_owned();
            Some((number("bulla-backup-keys")?, number("bulla-backup-private-keys")?, made))
        };
        let missing = || Error::Unexpected("its headers do not say what the backup has".to_owned());
        let (keys, private_keys, made) = read().ok_or_else(missing)?;
        Ok(Self { keys, private_keys, made, body: answer.into_body(), deadline })
    }

    /// The next piece; none after the last.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let frame = timeout(self.deadline, self.body.frame()).await;
            let Some(frame) = frame.map_err(|_| Error::Deadline(self.deadline))? else { return Ok(None) };
            if let Ok(data) = frame.map_err(|error| interrupted(&error))?.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

impl Client {
    /// The service's version, if it runs.
    pub async fn version(&self) -> Result<String> {
        #[derive(Deserialize)]
        struct Health {
            version: String,
        }
        Ok(self.call::<Health>(Call::get("/api/v1/health")).await?.version)
    }

    /// Closes the keystore: no key can be used from now on.
    pub async fn seal_service(&self) -> Result<Readiness> {
        self.call(Call::post("/api/v1/operator/seal", Effect::None)).await
    }

    /// Opens the keystore with its passphrase. Without one, an operator whom the service's settings
    /// name has the service use what opened the keystore at its start: it reads its key file again,
    /// for example.
    pub async fn unseal_service(&self, passphrase: Option<&str>) -> Result<Readiness> {
        #[derive(Serialize)]
        struct Unseal<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            passphrase: Option<&'a str>,
        }
        let call = Call::post("/api/v1/operator/unseal", Effect::None);
        // A character has at most six bytes in JSON.
        let length = 32 + 6 * passphrase.map_or(0, str::len);
        self.call(call.secret_body(&Unseal { passphrase }, length)).await
    }

    /// Makes a backup of the whole keystore, encrypted to recipients.
    pub async fn backup(&self, recipients: &[&str]) -> Result<Backup> {
        #[derive(Serialize)]
        struct MakeBackup<'a> {
            recipients: &'a [&'a str],
        }
        let call = Call::post("/api/v1/backup", Effect::None).body(&MakeBackup { recipients });
        Backup::new(self.begin(call).await?, self.deadline)
    }
}
