//! One thread that serves, and the batch that it computes for all of its connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bulla_kms::{Algorithm, KeyId, KeyName, Keystore, Signature, Verdict};
use tokio::task::{spawn_blocking, yield_now};

use super::open::Opened;
use super::shared::Service;
use crate::access::{Session, Sessions};
use crate::error::{ApiError, Result};

/// What one thread has for itself.
pub(crate) struct Reactor {
    pub(crate) service: Arc<Service>,
    /// Which thread it is.
    pub(crate) number: usize,
    /// Sessions of this thread's connections, so that threads do not wait for each other.
    recent: Sessions,
    /// Whether a task will compute what waits.
    computing: AtomicBool,
}

/// What handlers get.
pub(crate) type App = Arc<Reactor>;

impl Reactor {
    pub(crate) fn new(service: Arc<Service>, number: usize) -> App {
        Arc::new(Self { service, number, recent: Sessions::default(), computing: AtomicBool::new(false) })
    }

    /// The session of a token.
    ///
    /// # Errors
    /// The token is refused.
    pub(crate) fn session(&self, opened: &Opened, token: &[u8]) -> Result<Arc<Session>> {
        let (seen, epoch) = (self.service.digest(token), self.service.epoch());
        match self.recent.get(&seen, epoch) {
            Some(session) => Ok(session),
            None => {
                let session = self.service.session(opened, token, seen, epoch)?;
                Ok(self.recent.share(seen, epoch, session))
            }
        }
    }

    /// Signs a message, together with what the other connections ask for.
    ///
    /// # Errors
    /// Those of [`Keystore::sign`]; the keystore has too much to do.
    pub(crate) async fn sign(
        self: &Arc<Self>,
        opened: &Arc<Opened>,
        session: &Arc<Session>,
        key: KeyName,
        message: Vec<u8>,
    ) -> Result<Signature> {
        if !opened.keystore.signs_quickly(key.as_ref()) {
            return self.aside(opened, session, move |keystore| keystore.sign(key.as_ref(), &message)).await;
        }
        let answer = session.actor.acting(|| opened.batcher(self.number).sign(key, message));
        self.compute_soon(opened);
        Ok(answer.await?)
    }

    /// Verifies a signature, together with what the other connections ask for.
    ///
    /// # Errors
    /// Those of [`Keystore::verify`]; the keystore has too much to do.
    pub(crate) async fn verify(
        self: &Arc<Self>,
        opened: &Arc<Opened>,
        session: &Arc<Session>,
        key: KeyId,
        message: Vec<u8>,
        signature: Vec<u8>,
    ) -> Result<Verdict> {
        if key.family().algorithm() != Algorithm::Ed25519 {
            let verify = move |keystore: &Keystore| keystore.verify(&key, &message, &signature);
            return self.aside(opened, session, verify).await;
        }
        let answer = session.actor.acting(|| opened.batcher(self.number).verify(key, message, signature));
        self.compute_soon(opened);
        Ok(answer.await?)
    }

    /// Runs what takes long, waits for a disk or asks a device, so that this thread goes on serving.
    ///
    /// # Errors
    /// Those of `run`; it panicked.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        opened: &Arc<Opened>,
        session: &Arc<Session>,
        run: impl FnOnce(&Keystore) -> bulla_kms::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (opened, session) = (Arc::clone(opened), Arc::clone(session));
        let done = spawn_blocking(move || session.actor.acting(|| run(&opened.keystore))).await;
        Ok(done.map_err(|_| ApiError::internal("a part of the service failed; its log says where"))??)
    }

    /// Has what waits computed when every connection that is ready has had its turn, so that their calls are in the batch.
    fn compute_soon(self: &Arc<Self>, opened: &Arc<Opened>) {
        if self.computing.swap(true, Ordering::Relaxed) {
            return;
        }
        let (reactor, opened) = (Arc::clone(self), Arc::clone(opened));
        tokio::spawn(async move {
            yield_now().await;
            if opened.waits_for_disk {
                reactor.compute_aside(&opened).await;
            }
            // From here on, calls of others begin another batch.
            reactor.computing.store(false, Ordering::Relaxed);
            while opened.batcher(reactor.number).compute_waiting() > 0 {
                yield_now().await;
            }
        });
    }

    /// Computes what waits on another thread. Meanwhile calls gather for the next batch.
    async fn compute_aside(&self, opened: &Arc<Opened>) {
        while opened.batcher(self.number).waiting() > 0 {
            let (opened, number) = (Arc::clone(opened), self.number);
            // A panic is answered by the batcher itself.
            let _ = spawn_blocking(move || opened.batcher(number).compute_waiting()).await;
        }
    }
}
