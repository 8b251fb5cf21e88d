//! The command as its users meet it: every test runs the built binary in a home of its own.
#![cfg(unix)]

mod agent;
mod approvals;
mod attested;
mod audit_log;
mod bad_input;
mod blake2;
mod both;
mod check;
mod check_lists;
mod crash;
mod encrypt;
mod encrypt_keys;
mod encrypt_value;
mod folder;
mod folder_again;
mod full_output;
mod git;
mod guard;
mod jws;
mod kernels;
mod keys;
mod lying;
mod minisign;
mod pkcs11;
mod program;
mod programs;
mod readers;
mod released;
mod remote;
mod remote_transfer;
mod secrets;
mod sign;
mod sign_safely;
mod signify;
mod ssh;
mod ssh_cert;
mod succession;
mod sum;
mod sum_resume;
mod sum_walk;
mod temporary;
mod threshold;
mod transfer;
mod verify_range;

use bulla_testing::{self as support, serving};
