//! The way to a service.
//!
//! Each call waits on the thread that makes it: the module has no threads of its own, so a program
//! may fork at any time. Threads that sign at the same time share requests. One of them, the
//! leader, sends the messages of all that wait, and gives each its signature.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bulla_client::blocking::Client;
use bulla_client::{
    ClientBuilder, EncryptionOptions, ErrorCode, Key, KeyDerivation, KeyState, KeyUpdate, KeyVersion,
    RsaPadding, SignItem, SignatureScheme, Token,
};
use bulla_kms::prehash::HashFunction;
use bulla_kms::transfer::{PublicFormat, export_public};
use bulla_kms::{Origin, PublicKey, VersionState};
use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::backend::{Backend, EntryState, KeyEntry, NewKey, Source, VersionEntry};
use crate::error::{Failure, Result, fail, report};
use crate::object::public::Digest;
use crate::operation::mechanism::Padding;

/// How many clients there are. Threads that wait for one client take turns in driving it.
const CLIENTS: usize = 4;
/// How many requests of shared signatures may be on their way at once.
const MAX_LEADERS: usize = 2;
/// Longer messages do not share a request.
const MAX_SHARED_MESSAGE_LEN: usize = 64 << 10;
/// The most messages of a shared request.
const MAX_SHARED_MESSAGES: usize = 256;

/// Clients of a service for one caller.
pub(crate) struct Connection {
    clients: Vec<Client>,
    next: AtomicUsize,
    queue: Mutex<Queue>,
}

/// Messages that wait for a leader.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<Ticket>>,
    leaders: usize,
}

/// A message to sign, and the place for its signature.
struct Ticket {
    /// The key version id.
    key: Arc<str>,
    message: Vec<u8>,
    state: Mutex<TicketState>,
    changed: Condvar,
}

enum TicketState {
    Waiting,
    /// The thread that waits sends the next request.
    Leads,
    Done(Result<Vec<u8>>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// # Errors
    /// `CKR_HOST_MEMORY` if the operating system has no resources for it.
    fn new(settings: &ClientBuilder) -> Result<Self> {
        // Each has connections of its own: only its runtime drives them.
        let client = |_| settings.clone().build().and_then(Client::new);
        let clients: bulla_client::Result<_> = (0..CLIENTS).map(client).collect();
        let clients = clients.map_err(|_| Failure(CKR_HOST_MEMORY))?;
        Ok(Self { clients, next: AtomicUsize::new(0), queue: Mutex::default() })
    }

    /// The client whose turn it is.
    fn client(&self) -> &Client {
        &self.clients[self.next.fetch_add(1, Ordering::Relaxed) % CLIENTS]
    }
}

impl Backend for Connection {
    fn keys(&self) -> Result<Vec<KeyEntry>> {
        let keys: Vec<_> = self.client().keys().collect::<bulla_client::Result<_>>()?;
        Ok(keys.into_iter().filter_map(entry_of).collect())
    }

    fn key(&self, key: &str) -> Result<KeyEntry> {
        entry_of(self.client().key(key)?).ok_or(Failure(CKR_DEVICE_ERROR))
    }

    fn create(&self, new: &NewKey) -> Result<KeyEntry> {
        let new = bulla_client::NewKey {
            algorithm: Some(new.algorithm.to_string()),
            purpose: Some(new.purpose.clone()),
            label: new.label.clone(),
            signs_digests: new.signs_digests,
            ..bulla_client::NewKey::default()
        };
        entry_of(self.client().create_key(&new)?).ok_or(Failure(CKR_DEVICE_ERROR))
    }

    fn set_label(&self, key: &str, label: Option<&str>) -> Result<KeyEntry> {
        let changed = self.client().update_key(key, None, KeyUpdate::Label(label))?;
        entry_of(changed).ok_or(Failure(CKR_DEVICE_ERROR))
    }

    fn schedule_destruction(&self, key: &str, after: SystemTime) -> Result<()> {
        self.client().schedule_destruction(key, after)?;
        Ok(())
    }

    fn sign(&self, key: &Arc<str>, message: Vec<u8>) -> Result<Vec<u8>> {
        if message.len() > MAX_SHARED_MESSAGE_LEN {
            return Ok(self.client().sign(key, &message)?.bytes);
        }
        let state = Mutex::new(TicketState::Waiting);
        let ticket = Arc::new(Ticket { key: key.clone(), message, state, changed: Condvar::new() });
        let mut queue = lock(&self.queue);
        if queue.leaders == MAX_LEADERS {
            queue.waiting.push_back(ticket.clone());
            drop(queue);
            if let Some(signature) = ticket.wait() {
                return signature;
            }
            queue = lock(&self.queue);
        } else {
            queue.leaders += 1;
        }
        let others = queue.waiting.len().min(MAX_SHARED_MESSAGES - 1);
        let mut tickets = vec![ticket.clone()];
        tickets.extend(queue.waiting.drain(..others));
        drop(queue);
        let mut batch = Batch { connection: self, tickets };
        batch.send();
        drop(batch);
        ticket.wait().unwrap_or(fail(CKR_GENERAL_ERROR))
    }

    fn sign_hashed(
        &self,
        key: &str,
        message: &[u8],
        (hash, padding): (HashFunction, Padding),
    ) -> Result<Vec<u8>> {
        Ok(self.client().sign_with(key, message, scheme(hash, padding))?.bytes)
    }

    fn sign_digest(&self, key: &str, digest: &Digest) -> Result<Vec<u8>> {
        let scheme = scheme(digest.hash, digest.padding);
        Ok(self.client().sign_digest_with(key, &digest.bytes, scheme)?.bytes)
    }

    fn encrypt(&self, key: &str, plaintext: &[u8], associated_data: &[u8]) -> Result<Vec<u8>> {
        let options = EncryptionOptions { associated_data, context: &[] };
        Ok(self.client().encrypt(key, plaintext, &options)?.bytes)
    }

    fn decrypt(&self, key: &str, ciphertext: &[u8], associated_data: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let options = EncryptionOptions { associated_data, context: &[] };
        Ok(self.client().decrypt(key, ciphertext, &options)?.bytes)
    }

    fn mac(&self, key: &str, message: &[u8]) -> Result<Vec<u8>> {
        Ok(self.client().mac(key, message)?.bytes)
    }

    fn verify_mac(&self, key: &str, message: &[u8], mac: &[u8]) -> Result<bool> {
        Ok(self.client().verify_mac(key, message, mac)?.is_valid())
    }

    fn derive_shared_secret(&self, key: &str, peer: &PublicKey) -> Result<Zeroizing<Vec<u8>>> {
        let peer = export_public(peer, PublicFormat::Der).map_err(|_| Failure(CKR_GENERAL_ERROR))?;
        Ok(self.client().derive_shared_secret(key, &peer)?)
    }
}

/// A service, which each caller reaches by another token.
pub(crate) struct Service {
    /// The settings of a client, without the token of a PIN.
    pub(crate) client: ClientBuilder,
}

impl Source for Service {
    fn open(&self) -> Result<Arc<dyn Backend>> {
        Ok(Arc::new(Connection::new(&self.client)?))
    }

    /// The PIN is a token.
    fn log_in(&self, pin: &[u8]) -> Result<Arc<dyn Backend>> {
        let pin = std::str::from_utf8(pin).map_err(|_| Failure(CKR_PIN_INCORRECT))?;
        let token = Token::new(pin).map_err(|_| Failure(CKR_PIN_INCORRECT))?;
        let connection = Connection::new(&self.client.clone().token(token))?;
        if let Err(error) = connection.client().permissions() {
            report(&format_args!("{error:#}"));
            return match error.code() {
                Some(ErrorCode::Unauthenticated | ErrorCode::Forbidden) => fail(CKR_PIN_INCORRECT),
                _ => Err(error.into()),
            };
        }
        Ok(Arc::new(connection))
    }
}

/// A key as the module has it; none for one of which programs have no use.
fn entry_of(key: Key) -> Option<KeyEntry> {
    let state = match key.state {
        KeyState::Enabled => EntryState::Enabled,
        KeyState::PendingDestruction | KeyState::Destroyed => EntryState::Gone,
        _ => EntryState::Disabled,
    };
    if key.derivation != KeyDerivation::None {
        return None;
    }
    Some(KeyEntry {
        id: key.id.as_str().into(),
        algorithm: key.algorithm.parse().ok()?,
        label: key.label,
        revision: key.revision,
        state,
        exportable: key.exportable,
        signs_digests: key.signs_digests,
        minimum_version: key.minimum_version,
        latest_version: key.latest_version,
        versions: key.versions.into_iter().filter_map(version_of).collect(),
    })
}

fn version_of(version: KeyVersion) -> Option<VersionEntry> {
    use bulla_client::{Origin as ClientOrigin, VersionState as ClientState};
    Some(VersionEntry {
        id: version.id.as_str().into(),
        version: NonZeroU32::new(version.version)?,
        public_key: version.public_key.unwrap_or_default(),
        state: match version.state {
            ClientState::Usable => VersionState::Usable,
            ClientState::Revoked => VersionState::Revoked,
            _ => VersionState::Destroyed,
        },
        origin: match version.origin {
            ClientOrigin::Generated => Origin::Generated,
            ClientOrigin::PublicOnly => Origin::PublicOnly,
            _ => Origin::Imported,
        },
    })
}

fn scheme(hash: HashFunction, padding: Padding) -> SignatureScheme {
    let hash = match hash {
        HashFunction::Sha384 => bulla_client::HashFunction::Sha384,
        HashFunction::Sha512 => bulla_client::HashFunction::Sha512,
        _ => bulla_client::HashFunction::Sha256,
    };
    let scheme = SignatureScheme::default().hash(hash);
    match padding {
        Padding::None => scheme,
        Padding::Pss => scheme.padding(RsaPadding::Pss),
        Padding::Pkcs1v15 => scheme.padding(RsaPadding::Pkcs1v15),
    }
}

impl Ticket {
    fn set(&self, state: TicketState) {
        *lock(&self.state) = state;
        self.changed.notify_one();
    }

    /// Waits for the signature; none if this thread is to send the next request.
    fn wait(&self) -> Option<Result<Vec<u8>>> {
        let mut state = lock(&self.state);
        loop {
            match std::mem::replace(&mut *state, TicketState::Waiting) {
                TicketState::Waiting => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                TicketState::Leads => return None,
                TicketState::Done(result) => return Some(result),
            }
        }
    }
}

/// The messages of one request. When it ends, even by a panic, each message has a result, and
/// another thread leads if one waits.
struct Batch<'a> {
    connection: &'a Connection,
    tickets: Vec<Arc<Ticket>>,
}

impl Batch<'_> {
    fn send(&mut self) {
        let client = self.connection.client();
        let results = match self.tickets.as_slice() {
            [one] => vec![client.sign(&one.key, &one.message).map(|made| made.bytes).map_err(Failure::from)],
            all => {
                let items: Vec<_> =
                    all.iter().map(|one| SignItem { key: &one.key, message: &one.message }).collect();
                match client.sign_many(&items) {
                    Ok(results) => results
                        .into_iter()
                        .map(|one| one.map(|made| made.bytes).map_err(Failure::from))
                        .collect(),
                    Err(error) => {
                        let failure = Failure::from(error.error);
                        vec![Err(failure); all.len()]
                    }
                }
            }
        };
        for (ticket, result) in self.tickets.drain(..).zip(results) {
            ticket.set(TicketState::Done(result));
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        for ticket in self.tickets.drain(..) {
            ticket.set(TicketState::Done(fail(CKR_GENERAL_ERROR)));
        }
        let mut queue = lock(&self.connection.queue);
        match queue.waiting.pop_front() {
            // It takes those behind it out of the queue.
            Some(next) => next.set(TicketState::Leads),
            None => queue.leaders -= 1,
        }
    }
}
