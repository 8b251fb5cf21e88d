//! The service as its callers see it: each test starts one, on a free port of this machine, with a
//! keystore in memory.

mod access;
mod agreement;
mod approvals;
mod audit_log;
mod backup;
#[cfg(feature = "etcd")]
mod cluster;
mod connections;
mod description;
mod encryption;
mod idempotency;
mod import;
mod jwt;
mod jwt_attacks;
mod keys;
mod limits;
mod login;
#[cfg(feature = "etcd")]
mod metrics;
mod mounts;
mod namespaces;
mod nist;
mod operator;
mod permissions;
mod policies;
mod public_keys;
mod quotas;
mod reload;
mod signatures;
mod support;
mod symmetric;
mod tenants;
mod token_review;
mod tokens;
mod transit;
mod transit_backup;
mod transit_clients;
mod transit_encryption;
mod transit_export;
mod transit_keys;
mod transit_nist;
mod vault_logins;
mod vault_tokens;
mod vault_wrapping;
