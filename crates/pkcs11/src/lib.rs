//! A PKCS #11 module over bulla's key management service, and over keystores: `libbulla_pkcs11.so`.
//!
//! Programs that expect a token load it, and see the keys of a service as objects. The private keys
//! do not leave the service. A keystore's folder on the same machine is a slot, too. The module has
//! the functions of PKCS #11 2.40 and 3.0; the page `docs/pkcs11.md` lists what it supports.
//!
//! # Configuration
//!
//! A TOML file: that of the variable `BULLA_PKCS11_CONFIG`, or `bulla/pkcs11.toml` in
//! `$XDG_CONFIG_HOME` (else `~/.config`), or `/etc/bulla/pkcs11.toml`. Each slot is a service, or a
//! caller of one, or a keystore:
//!
//! ```toml
//! [[slot]]
//! label = "releases"                             # of the token, at most 32 bytes
//! url = "https://keys.example.org:8200"          # or unix:/run/bulla/socket
//! ca = "/etc/bulla/ca.pem"                       # the system's authorities when absent
//! token_file = "/run/secrets/bulla-token"        # no login; without it, the PIN is a token
//! certificates = "/etc/bulla/certificates.pem"   # those of its keys, and of authorities
//!
//! [[slot]]
//! label = "users"
//! url = "unix:/run/bulla/socket"
//! login_required = false                         # the service knows the user of the socket
//!
//! [[slot]]
//! label = "laptop"
//! keystore = "/var/lib/keys/laptop"              # its passphrase is the PIN; or it has a key file
//! passphrase_file = "/run/secrets/passphrase"    # in place of the PIN
//! ```
//!
//! `client_certificate` and `client_key` name a client certificate in place of a token. Without a
//! file, there is one slot, by the variables of the command: `BULLA_ADDR`, `BULLA_TOKEN`,
//! `BULLA_TOKEN_FILE`, `BULLA_CACERT`, `BULLA_CLIENT_CERTIFICATE` and `BULLA_CLIENT_KEY`.
//! With the variable `BULLA_PKCS11_DEBUG`, the module writes to standard error why a call failed.
//!
//! # Modules
//!
//! - `ffi` has the functions that programs call, and reads and writes the program's memory. Only
//!   this folder has `unsafe` code. Each function catches panics, so that none reaches the program.
//! - `module` has what is between `C_Initialize` and `C_Finalize`, `slot` a service or a keystore,
//!   the login and the objects that the caller sees.
//! - `session` has the sessions with their active operations, and the keys that live in the module
//!   until their session ends.
//! - `operation` says what keys can do, and does it with keys of the service.
//! - `object` has what programs read of keys and certificates.
//! - `reply` is a result whose length the program may not know.
//! - `backend` is what has the keys: a service, or a keystore's folder. `config` says where it is.
//!   `fuzzing` has a keystore in memory for the fuzzer.
#![deny(missing_docs)]

mod backend;
mod config;
mod error;
mod ffi;
#[doc(hidden)]
pub mod fuzzing;
mod module;
mod object;
mod operation;
mod reply;
mod session;
mod slot;

pub use ffi::table::{C_GetFunctionList, C_GetInterface, C_GetInterfaceList};
