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
//! - `table` has the functions that programs call. Each catches panics, so that none reaches the
//!   program. `raw` reads and writes the program's memory. Only these two have `unsafe` code.
//! - `module` has what is between `C_Initialize` and `C_Finalize`, `slot` a service and its
//!   objects, `session` the operations of a session.
//! - `mechanism` says what the keys can do, `object`, `certificate` and `public` what programs
//!   read of them.
//! - `session_key` is a key that lives in the module until its session ends. `session_create` makes
//!   it, `session_template` reads what a program wants of it, `session_wrap` wraps it.
//!   `session_aes`, `session_rsa` and `session_curve` compute with it, for `session_cipher` and
//!   `session_signature`. `session_objects` has what else programs bring.
//! - `backend` is what has the keys: `connection` asks the service, `local` opens a keystore.
//!   `source` is that before a login. `fuzzing` has a keystore in memory for the fuzzer.
#![deny(missing_docs)]

mod attributes;
mod backend;
mod certificate;
mod cipher;
mod config;
mod connection;
mod derive;
mod digest;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod generate;
mod local;
mod mechanism;
mod module;
mod object;
mod public;
mod raw;
mod session;
mod session_aes;
mod session_cipher;
mod session_create;
mod session_curve;
mod session_key;
mod session_objects;
mod session_rsa;
mod session_signature;
mod session_template;
mod session_wrap;
mod signing;
mod slot;
mod table;

pub use table::{C_GetFunctionList, C_GetInterface, C_GetInterfaceList};
