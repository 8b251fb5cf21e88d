//! A client of bulla's key management service, `bulla serve`. It signs, verifies and decrypts with
//! keys that never leave the service.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use bulla_client::{Client, Settings};
//!
//! let settings = Settings::new("https://keys.example.org:8200".parse()?).token(&std::env::var("BULLA_TOKEN")?)?;
//! let client = Client::new(settings)?;
//! let signature = client.sign("invoices", b"a message").await?;
//! assert!(client.verify(&signature.key, b"a message", &signature.bytes).await?);
//! # Ok(())
//! # }
//! ```
//!
//! A key is named by its label (`invoices`), by its name (`TENANT/PURPOSE/ALGORITHM/UUID`), or by
//! the name of one version, as [`Signature::key`] has it. The calls of a [`Client`] run in a tokio
//! runtime. [`Blocking`] is for programs that have none. Many messages are signed fastest by
//! [`Client::sign_many`].
//!
//! # Repetitions
//!
//! A call repeats its request in three cases, at most [`Settings::retries`] times, and never beyond
//! its deadline:
//!
//! - The service refused it and says that a repetition may help ([`Refusal::retryable`]). It
//!   changed nothing then. The pause is at least as long as the service asks for.
//! - There is no answer, and the request changes nothing; or there was no connection, so that
//!   nothing was sent.
//! - A proxy answered 429 or 503 instead of the service, and the request changes nothing.
//!
//! A change whose answer was lost is not repeated: [`Error::Interrupted`], [`Error::Deadline`] and
//! [`Error::Unexpected`] then say that it may have been made. A certificate that one side refuses
//! stays refused: [`Error::Certificate`] is never repeated. Each change carries an idempotency key,
//! so that its repetitions count as one request.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod address;
mod audit_log;
mod base64;
mod blocking;
mod call;
mod client;
mod error;
mod exchange;
mod keys;
mod operator;
mod secret;
mod sign;
mod stream;
mod tls;
mod tokens;
mod transport;
mod witness;

pub use self::address::Address;
pub use self::audit_log::{Checkpoint, Entry, EntryPage, LogProblem, LogReport};
pub use self::blocking::Blocking;
pub use self::client::{Client, Settings};
pub use self::error::{Error, Refusal, Result};
pub use self::exchange::{Encapsulated, Exported, KeyMaterial, PrivateKeyFormat, Recipient};
pub use self::keys::{
    Key, KeyPage, KeyState, KeyUpdate, NewKey, Origin, PublicKey, PublicKeyFormat, Rotation, Version,
    VersionState,
};
pub use self::operator::{Backup, Readiness};
pub use self::sign::{Prehash, SignItem, Signature, SignedFile, Statement, StatementKind, VerifyItem};
pub use self::tokens::{Attenuation, Authority, Grant, Minted};
pub use self::witness::Witness;
