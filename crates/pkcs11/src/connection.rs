//! The way to a service.
//!
//! Each call waits on the thread that makes it: the module has no threads of its own, so a program
//! may fork at any time. Threads that sign at the same time share requests. One of them, the
//! leader, sends the messages of all that wait, and gives each its signature.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bulla_client::blocking::Client;
use bulla_client::{
    ClientBuilder, EncryptionOptions, Key, KeyUpdate, NewKey, RsaPadding, SignItem, SignatureScheme, Token,
};
use bulla_kms::prehash::HashFunction;
use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::error::{Failure, Result, fail};
use crate::mechanism::Padding;
use crate::public::Digest;

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
    pub(crate) fn new(settings: &ClientBuilder) -> Result<Self> {
        // Each has connections of its own: only its runtime drives them.
        let client = |_| settings.clone().build().and_then(Client::new);
        let clients: bulla_client::Result<_> = (0..CLIENTS).map(client).collect();
        let clients = clients.map_err(|_| Failure(CKR_HOST_MEMORY))?;
        Ok(Self { clients, next: AtomicUsize::new(0), queue: Mutex::default() })
    }

    /// The same service for the caller who has this token.
    ///
    /// # Errors
    /// `CKR_PIN_INCORRECT` if no token looks like this; `CKR_HOST_MEMORY`.
    pub(crate) fn of_token(settings: &ClientBuilder, token: &str) -> Result<Self> {
        let token = Token::new(token).map_err(|_| Failure(CKR_PIN_INCORRECT))?;
        Self::new(&settings.clone().token(token))
    }

    /// The client whose turn it is.
    pub(crate) fn client(&self) -> &Client {
        &self.clients[self.next.fetch_add(1, Ordering::Relaxed) % CLIENTS]
    }

    /// All keys that the caller may read.
    pub(crate) fn keys(&self) -> Result<Vec<Key>> {
        Ok(self.client().keys().collect::<bulla_client::Result<_>>()?)
    }

    /// Makes a key.
    pub(crate) fn create(&self, new: &NewKey) -> Result<Key> {
        Ok(self.client().create_key(new)?)
    }

    /// Reads a key.
    pub(crate) fn key(&self, key: &str) -> Result<Key> {
        Ok(self.client().key(key)?)
    }

    /// Gives a key another label, or none.
    pub(crate) fn set_label(&self, key: &str, label: Option<&str>) -> Result<Key> {
        Ok(self.client().update_key(key, None, KeyUpdate::Label(label))?)
    }

    /// Schedules the destruction of a key.
    pub(crate) fn schedule_destruction(&self, key: &str, after: SystemTime) -> Result<()> {
        self.client().schedule_destruction(key, after)?;
        Ok(())
    }

    /// Signs a message with a key version, in the way that its algorithm has.
    pub(crate) fn sign(&self, key: &Arc<str>, message: Vec<u8>) -> Result<Vec<u8>> {
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

    /// Signs a message with a scheme that is not the algorithm's own.
    pub(crate) fn sign_hashed(
        &self,
        key: &str,
        message: &[u8],
        (hash, padding): (HashFunction, Padding),
    ) -> Result<Vec<u8>> {
        Ok(self.client().sign_with(key, message, scheme(hash, padding))?.bytes)
    }

    /// Signs a digest.
    pub(crate) fn sign_digest(&self, key: &str, digest: &Digest) -> Result<Vec<u8>> {
        let scheme = scheme(digest.hash, digest.padding);
        Ok(self.client().sign_digest_with(key, &digest.bytes, scheme)?.bytes)
    }

    /// Encrypts with a key version.
    pub(crate) fn encrypt(&self, key: &str, plaintext: &[u8], associated_data: &[u8]) -> Result<Vec<u8>> {
        let options = EncryptionOptions { associated_data, context: &[] };
        Ok(self.client().encrypt(key, plaintext, &options)?.bytes)
    }

    /// Decrypts with a key. The ciphertext names the version.
    pub(crate) fn decrypt(
        &self,
        key: &str,
        ciphertext: &[u8],
        associated_data: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>> {
        let options = EncryptionOptions { associated_data, context: &[] };
        Ok(self.client().decrypt(key, ciphertext, &options)?.bytes)
    }

    /// Makes a message authentication code.
    pub(crate) fn mac(&self, key: &str, message: &[u8]) -> Result<Vec<u8>> {
        Ok(self.client().mac(key, message)?.bytes)
    }

    /// Whether a message authentication code is valid.
    pub(crate) fn verify_mac(&self, key: &str, message: &[u8], mac: &[u8]) -> Result<bool> {
        Ok(self.client().verify_mac(key, message, mac)?.is_valid())
    }
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
