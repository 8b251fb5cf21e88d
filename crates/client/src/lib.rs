//! A client of bulla's key management service, `bulla serve`. It signs, verifies, encrypts,
//! decrypts and makes message authentication codes (MACs) with keys that never leave the service.
//!
//! ```no_run
//! use bulla_client::{Client, Token};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder("https://keys.example.org:8200".parse()?)
//!     .token(Token::new(&std::env::var("BULLA_TOKEN")?)?)
//!     .build()?;
//! let signature = client.sign("invoices", b"a message").await?;
//! assert!(client.verify(&signature.key, b"a message", &signature.bytes).await?.is_valid());
//! # Ok(())
//! # }
//! ```
//!
//! A key is named by its label (`invoices`), by its key id (`TENANT/PURPOSE/ALGORITHM/UUID`), or by
//! the key version id of one version, as [`Signature::key`] has it. The names of algorithms,
//! purposes, backends and permissions are texts: the service may know more of them than this
//! client.
//!
//! - [`Client`] is async: its calls run in a tokio runtime. [`blocking`] is for programs without
//!   one.
//! - [`Client::sign_many`] and [`Client::verify_many`] are the fastest way to sign and verify many
//!   messages, and [`Client::encrypt_many`] to encrypt many plaintexts.
//! - [`Client::encrypt`] is for values up to 64 MiB, with a key that encrypts (`aes-256-gcm`).
//!   [`Client::generate_data_key`] is for more, and [`Client::encrypt_to_recipients`] for files
//!   that others open with a private key.
//! - Plaintexts, data keys and random bytes are wiped from memory when they are dropped.
//! - [`Client::keys`], [`Client::approvals`] and [`Client::audit_entries`] are streams that read
//!   page after page.
//! - [`middleware`] puts code of yours around each request. [`TokenProvider`] gives tokens that are
//!   replaced before they expire.
//!
//! # Errors
//!
//! A call fails with an [`Error`]. Its [`kind`](Error::kind) says where: at the connection, or in
//! the service, whose [`ErrorCode`] is in [`Error::code`]. [`Error::is_outcome_unknown`] says that
//! a change may have been made although the call failed.
//!
//! # Repetitions
//!
//! A call repeats its request in three cases, at most [`ClientBuilder::max_retries`] times, and
//! never beyond its timeout:
//!
//! - The service answered with an error that says that a repetition may help
//!   ([`ServiceError::retryable`]). It changed nothing then. The pause is at least as long as the
//!   service asks for.
//! - There is no answer, and the request changes nothing; or there was no connection, so that
//!   nothing was sent.
//! - A proxy answered 429 or 503 instead of the service, and the request changes nothing.
//!
//! A change whose answer was lost is not repeated. A certificate that one side refuses stays
//! refused, and [`ErrorKind::Certificate`] is never repeated. Each change carries an idempotency
//! key, so that its repetitions count as one request.
//!
//! # Features
//!
//! - `blocking`: the module [`blocking`].
//! - `tracing`: a span for each request, with the names of OpenTelemetry's conventions for HTTP
//!   clients. No span has a key's name, a token or a body.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod address;
mod approvals;
mod audit_log;
mod batch;
#[cfg(feature = "blocking")]
pub mod blocking;
mod client;
mod connection;
mod encoding;
mod encryption;
mod error;
mod error_code;
mod keys;
mod login;
pub mod middleware;
mod operation;
mod pages;
mod request;
mod service;
mod signing;
mod symmetric;
mod tls;
mod token;
#[cfg(feature = "tracing")]
mod trace;
mod transfer;

pub use hyper::http;

pub use self::address::Address;
pub use self::approvals::{
    Approval, ApprovalPage, ApprovalRule, ApprovalState, ApprovalStatement, ApprovalSubject, Approver,
    Decision, NewApproval, StatementSubject, UseApproval,
};
pub use self::audit_log::{AuditEntry, AuditEntryPage, AuditLogProblem, AuditLogReport, Checkpoint};
pub use self::client::{Client, ClientBuilder};
pub use self::encryption::EncapsulatedKey;
pub use self::error::{BatchError, BoxError, Error, ErrorKind, Result, ServiceError};
pub use self::error_code::ErrorCode;
pub use self::keys::{
    Key, KeyDerivation, KeyPage, KeyState, KeyUpdate, KeyVersion, NewKey, Origin, PublicKey, PublicKeyFormat,
    Rotation, VersionState,
};
pub use self::login::LoginProvider;
pub use self::middleware::BoxFuture;
pub use self::operation::Operation;
pub use self::pages::Pages;
pub use self::service::{Backup, Health, Readiness, SealStatus, StoreFreshness};
pub use self::signing::{
    HashFunction, Prehash, RsaPadding, SignItem, Signature, SignatureScheme, SignedJwt, SignedStatement,
    Statement, StatementKind, Verdict, VerifyItem,
};
pub use self::symmetric::{
    Ciphertext, DataKey, DataKeyLength, DecryptItem, EncryptItem, EncryptionOptions, Mac, Plaintext,
    VerifyMacItem,
};
pub use self::tls::{ClientCertificate, RootCertificates};
pub use self::token::{Attenuation, Grant, LoginToken, MintedToken, Permissions, Token, TokenProvider};
pub use self::transfer::{ExportedKey, KeyMaterial, PrivateKeyFormat, Recipient};

/// The examples of the README are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
