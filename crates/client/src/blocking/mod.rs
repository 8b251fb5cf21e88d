//! A client for programs without an async runtime: each call waits on the thread that makes it.
//!
//! ```no_run
//! use bulla_client::blocking::Client;
//!
//! # fn main() -> bulla_client::Result<()> {
//! let builder = bulla_client::Client::builder("unix:/run/bulla/socket".parse()?);
//! let client = Client::new(builder.build()?)?;
//! let signature = client.sign("invoices", b"a message")?;
//! assert!(client.verify(&signature.key, b"a message", &signature.bytes)?.is_valid());
//! for key in client.keys() {
//!     println!("{}", key?.id);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Panics
//! Every call panics in async code, because it would stop the runtime's thread. There, use the
//! [async client](crate::Client), or `tokio::task::spawn_blocking`.

mod witness;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hyper::body::Bytes;
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Runtime};
use zeroize::Zeroizing;

use crate::address::Address;
use crate::approvals::{Approval, ApprovalPage, Decision, NewApproval, UseApproval};
use crate::audit_log::{AuditEntry, AuditEntryPage, AuditLogReport, Checkpoint};
use crate::encryption::EncapsulatedKey;
use crate::error::{BatchError, Error, Result, ServiceError};
use crate::keys::{Key, KeyPage, KeyUpdate, NewKey, PublicKey, PublicKeyFormat};
use crate::service::{Health, Readiness, SealStatus};
use crate::signing::{
    Prehash, SignItem, Signature, SignatureScheme, SignedJwt, SignedStatement, Statement, Verdict, VerifyItem,
};
use crate::symmetric::{
    Ciphertext, DataKey, DataKeyLength, DecryptItem, EncryptItem, EncryptionOptions, Mac, Plaintext,
    VerifyMacItem,
};
use crate::token::{Attenuation, Grant, LoginToken, MintedToken, Permissions, Token};
use crate::transfer::{ExportedKey, KeyMaterial, Recipient};

pub use self::witness::{Witness, WitnessResponse};

/// A runtime without threads: the thread that waits does its work.
#[derive(Clone)]
struct WaitingRuntime(Arc<OwnedRuntime>);

/// A runtime that may be dropped in async code, too.
struct OwnedRuntime(Option<Runtime>);

impl Drop for OwnedRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl WaitingRuntime {
    fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let none = |error| Error::invalid_argument("cannot wait for the network").with_source(error);
        Ok(Self(Arc::new(OwnedRuntime(Some(runtime.map_err(none)?)))))
    }

    /// Waits for a call.
    fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        let mut returned = None;
        self.run(Box::pin(async { returned = Some(call.await) }));
        returned.expect("the call has ended")
    }

    /// Not generic: a runtime is some 1,500 lines of LLVM's code, which would be compiled again for
    /// each kind of call.
    fn run(&self, call: Pin<Box<dyn Future<Output = ()> + '_>>) {
        let runtime = self.0.0.as_ref().expect("a runtime is taken only when it is dropped");
        runtime.block_on(call);
    }
}

/// A client of one service. Each call waits on the thread that makes it, and threads may share a
/// client. Cloning it is cheap.
///
/// ```
/// use std::time::Duration;
///
/// use bulla_client::blocking::Client;
///
/// fn entries(client: &Client) -> bulla_client::Result<()> {
///     println!("{}", client.address());
///     for entry in client.with_timeout(Duration::from_secs(300)).audit_entries(None) {
///         println!("{:?}", entry?);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Client {
    client: crate::Client,
    runtime: WaitingRuntime,
}

impl Client {
    /// A blocking client with the settings of an async one.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the operating system
    /// has no resources for it.
    pub fn new(client: crate::Client) -> Result<Self> {
        Ok(Self { client, runtime: WaitingRuntime::new()? })
    }

    /// The same client with another timeout for each call.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { client: self.client.with_timeout(timeout), runtime: self.runtime.clone() }
    }

    /// The same client with another token.
    ///
    /// ```
    /// use bulla_client::{Token, blocking::Client};
    ///
    /// fn on_behalf_of(client: &Client, token: Token) -> Client {
    ///     client.with_token(token)
    /// }
    /// ```
    #[must_use]
    pub fn with_token(&self, token: Token) -> Self {
        Self { client: self.client.with_token(token), runtime: self.runtime.clone() }
    }

    /// The service's address.
    pub fn address(&self) -> &Address {
        self.client.address()
    }

    /// Lists all keys that the caller may read, sorted by their ids. It reads the next page when
    /// the keys of the page before have been taken.
    pub fn keys(&self) -> Pages<Key> {
        Pages { pages: self.client.keys(), runtime: self.runtime.clone() }
    }

    /// Lists the requests for approval that have not expired, about keys that the caller may read,
    /// the oldest first.
    ///
    /// ```
    /// use bulla_client::blocking::Client;
    ///
    /// fn ids(client: &Client) -> bulla_client::Result<Vec<String>> {
    ///     client.approvals().map(|one| Ok(one?.id().to_owned())).collect()
    /// }
    /// ```
    pub fn approvals(&self) -> Pages<Approval> {
        Pages { pages: self.client.approvals(), runtime: self.runtime.clone() }
    }

    /// Lists the entries of the audit log, the oldest first: all of them, or those after a number.
    pub fn audit_entries(&self, after: Option<u64>) -> Pages<AuditEntry> {
        Pages { pages: self.client.audit_entries(after), runtime: self.runtime.clone() }
    }

    /// Makes a backup of the whole keystore, encrypted to recipients.
    ///
    /// # Errors
    /// Those of [`Client::backup`](crate::Client::backup).
    ///
    /// ```
    /// use std::io::Write;
    ///
    /// use bulla_client::blocking::Client;
    ///
    /// # fn example(client: &Client, recipient: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut file = std::fs::File::create("backup.age")?;
    /// for piece in client.backup(&[recipient])? {
    ///     file.write_all(&piece?)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn backup(&self, recipients: &[&str]) -> Result<Backup> {
        let backup = self.runtime.wait(self.client.backup(recipients))?;
        let (keys, private_keys, made) = (backup.keys, backup.private_keys, backup.made);
        Ok(Backup { keys, private_keys, made, backup, runtime: self.runtime.clone() })
    }
}

macro_rules! calls {
    ($($name:ident($($argument:ident: $type:ty),*) -> $output:ty $(, $error:ty)?;)*) => {
        /// The calls of the async client.
        ///
        /// # Errors
        /// Every call can fail in each way that [`ErrorKind`](crate::ErrorKind) has.
        impl Client {
            $(
                #[doc = concat!(
                    "Waits for [`Client::", stringify!($name), "`](crate::Client::", stringify!($name), ")."
                )]
                #[allow(clippy::missing_errors_doc, reason = "the block's documentation has them")]
                pub fn $name(&self, $($argument: $type),*) -> Result<$output $(, $error)?> {
                    self.runtime.wait(self.client.$name($($argument),*))
                }
            )*
        }
    };
}

calls! {
    create_key(key: &NewKey) -> Key;
    key(key: &str) -> Key;
    key_page(after: Option<&str>) -> KeyPage;
    rotate_key(key: &str) -> Key;
    refresh_shares(key: &str) -> Key;
    repair_shares(key: &str) -> Key;
    update_key(key: &str, revision: Option<u64>, update: KeyUpdate<'_>) -> Key;
    enable_key(key: &str) -> Key;
    disable_key(key: &str) -> Key;
    schedule_destruction(key: &str, after: SystemTime) -> Key;
    cancel_destruction(key: &str) -> Key;
    destroy_key(key: &str) -> Key;
    revoke_version(key: &str, version: u32) -> Key;
    destroy_version(key: &str, version: u32) -> Key;
    public_key(key: &str, format: PublicKeyFormat) -> PublicKey;
    json_web_key_set() -> String;
    attest_key(key: &str) -> String;
    successions(key: &str) -> Vec<String>;
    export_key(key: &str, recipient: Recipient<'_>) -> ExportedKey;
    import_key(new: &NewKey, material: KeyMaterial<'_>) -> Key;
    import_version(key: &str, material: KeyMaterial<'_>) -> Key;
    request_approval(new: &NewApproval<'_>) -> Approval;
    approval_page(after: Option<&str>) -> ApprovalPage;
    approval(id: &str) -> Approval;
    approve(id: &str, decision: &Decision<'_>) -> Approval;
    reject(id: &str, decision: &Decision<'_>) -> Approval;
    sign_approved(key: &str, message: &[u8], approval: &UseApproval<'_>) -> Signature;
    sign_statement_approved(
        key: &str,
        statement: &Statement<'_>,
        approval: &UseApproval<'_>
    ) -> SignedStatement;
    sign(key: &str, message: &[u8]) -> Signature;
    verify(key: &str, message: &[u8], signature: &[u8]) -> Verdict;
    sign_with(key: &str, message: &[u8], scheme: SignatureScheme) -> Signature;
    verify_with(key: &str, message: &[u8], signature: &[u8], scheme: SignatureScheme) -> Verdict;
    sign_digest(key: &str, prehash: Prehash, digest: &[u8], context: &[u8]) -> Signature;
    verify_digest(key: &str, prehash: Prehash, digest: &[u8], context: &[u8], signature: &[u8]) -> Verdict;
    sign_digest_with(key: &str, digest: &[u8], scheme: SignatureScheme) -> Signature;
    verify_digest_with(key: &str, digest: &[u8], signature: &[u8], scheme: SignatureScheme) -> Verdict;
    sign_statement(key: &str, statement: &Statement<'_>) -> SignedStatement;
    sign_jwt(key: &str, claims: &Map<String, Value>, lifetime: Option<Duration>) -> SignedJwt;
    sign_many(items: &[SignItem<'_>]) -> Vec<Result<Signature, ServiceError>>, BatchError<Signature>;
    verify_many(items: &[VerifyItem<'_>]) -> Vec<Result<Verdict, ServiceError>>, BatchError<Verdict>;
    encapsulate(key: &str) -> EncapsulatedKey;
    decapsulate(key: &str, ciphertext: &[u8]) -> Zeroizing<Vec<u8>>;
    derive_shared_secret(key: &str, peer: &[u8]) -> Zeroizing<Vec<u8>>;
    encrypt_to_recipients(data: &[u8], keys: &[&str], recipients: &[&str]) -> Vec<u8>;
    decrypt_as_recipient(encrypted: &[u8]) -> Zeroizing<Vec<u8>>;
    encrypt(key: &str, plaintext: &[u8], options: &EncryptionOptions<'_>) -> Ciphertext;
    decrypt(key: &str, ciphertext: &[u8], options: &EncryptionOptions<'_>) -> Plaintext;
    rewrap(key: &str, ciphertext: &[u8], options: &EncryptionOptions<'_>) -> Ciphertext;
    encrypt_many(key: &str, items: &[EncryptItem<'_>])
        -> Vec<Result<Ciphertext, ServiceError>>, BatchError<Ciphertext>;
    decrypt_many(key: &str, items: &[DecryptItem<'_>])
        -> Vec<Result<Plaintext, ServiceError>>, BatchError<Plaintext>;
    rewrap_many(key: &str, items: &[DecryptItem<'_>])
        -> Vec<Result<Ciphertext, ServiceError>>, BatchError<Ciphertext>;
    generate_data_key(key: &str, length: DataKeyLength, options: &EncryptionOptions<'_>) -> DataKey;
    generate_wrapped_data_key(key: &str, length: DataKeyLength, options: &EncryptionOptions<'_>) -> Ciphertext;
    mac(key: &str, message: &[u8]) -> Mac;
    verify_mac(key: &str, message: &[u8], mac: &[u8]) -> Verdict;
    mac_many(key: &str, messages: &[&[u8]]) -> Vec<Result<Mac, ServiceError>>, BatchError<Mac>;
    verify_mac_many(key: &str, items: &[VerifyMacItem<'_>])
        -> Vec<Result<Verdict, ServiceError>>, BatchError<Verdict>;
    random(length: usize) -> Zeroizing<Vec<u8>>;
    mint_token(grant: &Grant) -> MintedToken;
    log_in(role: &str, jwt: &str) -> LoginToken;
    attenuate_token(limits: &Attenuation) -> MintedToken;
    permissions() -> Permissions;
    revoke_own_token() -> ();
    revoke_token(revocation_id: &str, expires: Option<SystemTime>) -> ();
    audit_entry_page(after: Option<u64>) -> AuditEntryPage;
    checkpoint() -> Checkpoint;
    make_checkpoint() -> Checkpoint;
    inclusion_proof(number: u64) -> String;
    consistency_proof(older: &str) -> String;
    verify_audit_log(checkpoints: &[&str]) -> AuditLogReport;
    health() -> Health;
    readiness() -> Readiness;
    metrics() -> String;
    seal_service() -> SealStatus;
    unseal_service(passphrase: Option<&str>) -> SealStatus;
}

/// Shows no token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}

/// A list whose pages are read when they are needed. After an error the list ends.
#[must_use = "nothing is read until the first item is asked for"]
pub struct Pages<T> {
    pages: crate::Pages<T>,
    runtime: WaitingRuntime,
}

impl<T> Iterator for Pages<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        self.runtime.wait(self.pages.try_next()).transpose()
    }
}

impl<T> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pages.fmt(f)
    }
}

/// A backup that arrives in pieces. It opens only if it is complete: an error means that all of it
/// is lost.
pub struct Backup {
    /// How many keys it has.
    pub keys: u64,
    /// How many private keys these have.
    pub private_keys: u64,
    /// When it was made.
    pub made: SystemTime,
    backup: crate::Backup,
    runtime: WaitingRuntime,
}

impl Iterator for Backup {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Result<Bytes>> {
        self.runtime.wait(self.backup.try_next()).transpose()
    }
}

impl fmt::Debug for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.backup.fmt(f)
    }
}
