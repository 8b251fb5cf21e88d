//! The keystore as its users meet it, from outside. One program, so that all of it is compiled and
//! linked once.
//!
//! A test that needs a process of its own (one that is killed, whose disk is full, whose system
//! calls are traced, or that reads a variable once) starts this program again with itself alone:
//! see `support::child`.

mod approvals;
mod audit_log;
mod audit_log_changes;
mod audit_log_checkpoint_thread;
mod audit_log_crash;
mod audit_log_cuts;
mod audit_log_files;
mod audit_log_full;
mod audit_log_pages;
mod audit_log_proofs;
mod audit_log_syncs;
mod audit_log_witnesses;
mod authority;
mod backup;
mod chaos;
mod concurrency;
mod contributions;
mod crash;
mod digests;
mod ecdh;
mod encrypting;
mod encryption;
mod etcd;
mod etcd_limits;
mod etcd_table;
mod key_backup;
mod keys;
mod lifecycle;
mod manifest;
mod memory_mode;
mod metrics;
mod names;
mod nist;
mod older_versions;
mod parity;
mod persistence;
mod pkcs11;
mod pkcs11_keystore;
mod prehash;
mod programs;
mod rekey;
mod rollback;
mod signature_file;
mod snapshot;
mod strict;
mod succession;
mod support;
mod token_rights;
mod tokens;
mod transfer;
mod vectors;
mod wycheproof;
mod wycheproof_public;
