//! bulla's key management service over HTTP: `bulla serve`.
//!
//! [`Server::bind`] takes a [`Config`] and a [`KeystoreSource`], which opens the keystore, and
//! [`Server::run`] serves until somebody shuts it down. `spec/openapi.json` describes the
//! endpoints.
//!
//! Each thread that serves (`service/worker.rs`) has its own connections and its own batch: it
//! reads what its connections ask for, computes all of it together, and answers.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod access;
mod api;
mod cluster;
mod config;
mod cosigning;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod group;
mod login;
mod policy;
mod request;
mod router;
mod serve;
mod service;
mod traces;
mod transit;
mod ui;

pub use self::cluster::{NodeCheckpoint, PublishedCheckpoint, read_peer_checkpoints};
pub use self::config::{
    AppRoleConfig, AuditConfig, AuditDurability, ByteRate, CallerConfig, CertificateRoleConfig, Config,
    EtcdConfig, GroupConfig, GroupPeerConfig, IssuerConfig, JwtConfig, JwtKeyConfig, JwtUse, KeystoreConfig,
    LimitsConfig, ListenConfig, LogConfig, LogFormat, LogLevel, MountConfig, PolicyConfig, QuotaConfig,
    RequestRate, RoleConfig, ServiceConfig, SocketMode, StoreKind, TlsConfig, TokenReviewConfig, TraceConfig,
    WitnessConfig,
};
pub use self::cosigning::configured_witnesses;
pub use self::group::GroupNode;
pub use self::router::openapi;
pub use self::serve::{ACCESS_LOG_TARGET, Server, ServerHandle};
pub use self::service::{KeystoreSource, OpenKeystore, PolicyDecision, check_policy, explain_policies};
pub use self::traces::SPAN_TARGET;
#[cfg(feature = "otel")]
pub use self::traces::TraceExporter;
