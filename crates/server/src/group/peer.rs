//! One other node, as this node sees it: its connections, whether it answers, and the nonces that
//! it has ready for this node.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bulla_kms::Name;
use bulla_threshold::{MAX_READY_NONCES, ReadyNonce, SessionId};
use rustls::ClientConfig;

use super::channel::Outgoing;
use super::fail_points::FailPoints;
use super::wire::{PeerReply, PeerRequest};

/// For how long a node that sent something wrong is left out.
const LEAVE_OUT_TIME: Duration = Duration::from_secs(10 * 60);
/// For how long a node is waited for at least that changes its share.
const PATIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most idle connections to one node.
const MAX_IDLE: usize = 64;

/// Whether a node is asked for parts of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It answered last time, or nobody knows yet.
    Answering,
    /// It did not answer, and is asked in the background until it does.
    Silent,
    /// It sent something wrong, and is left out until then.
    LeftOut(Instant),
}

/// Another node.
pub(super) struct Peer {
    pub(super) name: Name,
    address: String,
    tls: Arc<ClientConfig>,
    timeout: Duration,
    fail_points: Arc<FailPoints>,
    idle: Mutex<Vec<Outgoing>>,
    standing: Mutex<Standing>,
    /// By the shares whose nonces they are.
    ready: Mutex<HashMap<SessionId, VecDeque<ReadyNonce>>>,
}

/// A request that was sent.
pub(super) struct PendingReply<'a> {
    peer: &'a Peer,
    connection: Outgoing,
    frame: Vec<u8>,
    deadline: Instant,
    /// An idle connection may have ended meanwhile: then the request is sent once more.
    is_reused: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    pub(super) fn new(
        name: Name,
        address: String,
        tls: Arc<ClientConfig>,
        timeout: Duration,
        fail_points: Arc<FailPoints>,
    ) -> Self {
        Self {
            name,
            address,
            tls,
            timeout,
            fail_points,
            idle: Mutex::default(),
            standing: Mutex::new(Standing::Answering),
            ready: Mutex::default(),
        }
    }

    pub(super) fn standing(&self) -> Standing {
        let mut standing = lock(&self.standing);
        if matches!(*standing, Standing::LeftOut(end) if end <= Instant::now()) {
            *standing = Standing::Answering;
        }
        *standing
    }

    /// Leaves the node out for a while, because it sent something wrong.
    pub(super) fn leave_out(&self, why: &str) {
        tracing::error!(peer = %self.name, "a node of the group is left out for 10 minutes: {why}");
        *lock(&self.standing) = Standing::LeftOut(Instant::now() + LEAVE_OUT_TIME);
        self.forget_nonces();
    }

    fn note_silence(&self, error: &io::Error) {
        let mut standing = lock(&self.standing);
        if *standing == Standing::Answering {
            tracing::warn!(peer = %self.name, "a node of the group does not answer: {error}");
            *standing = Standing::Silent;
        }
        drop(standing);
        lock(&self.idle).clear();
        // Its process may be another one when it answers again.
        self.forget_nonces();
    }

    fn note_answer(&self) {
        let mut standing = lock(&self.standing);
        if *standing == Standing::Silent {
            tracing::info!(peer = %self.name, "a node of the group answers again");
            *standing = Standing::Answering;
        }
    }

    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    /// The node does not answer, or answers nonsense: it is silent then.
    pub(super) fn call(&self, request: &PeerRequest) -> io::Result<PeerReply> {
        self.begin(request)?.finish()
    }

    /// Asks as [`Peer::call`] does, for something that takes the node longer than a signature: it
    /// asks other nodes in turn.
    ///
    /// # Errors
    /// Those of [`Peer::call`].
    pub(super) fn call_patiently(&self, request: &PeerRequest) -> io::Result<PeerReply> {
        self.begin_within(request, self.timeout.max(PATIENT_TIMEOUT))?.finish()
    }

    /// Sends a request. Others can be sent meanwhile.
    ///
    /// # Errors
    /// Those of [`Peer::call`].
    pub(super) fn begin(&self, request: &PeerRequest) -> io::Result<PendingReply<'_>> {
        self.begin_within(request, self.timeout)
    }

    fn begin_within(&self, request: &PeerRequest, timeout: Duration) -> io::Result<PendingReply<'_>> {
        let frame = serde_json::to_vec(request).map_err(io::Error::other)?;
        self.fail_points.step()?;
        let deadline = Instant::now() + timeout;
        self.send(frame, deadline).inspect_err(|error| self.note_silence(error))
    }

    fn send(&self, frame: Vec<u8>, deadline: Instant) -> io::Result<PendingReply<'_>> {
        // The lock must not be held while a request is sent.
        let idle = lock(&self.idle).pop();
        if let Some(mut connection) = idle
            && connection.send(&frame, deadline).is_ok()
        {
            return Ok(PendingReply { peer: self, connection, frame, deadline, is_reused: true });
        }
        let mut connection = Outgoing::open(&self.address, &self.tls, deadline)?;
        connection.send(&frame, deadline)?;
        Ok(PendingReply { peer: self, connection, frame, deadline, is_reused: false })
    }

    /// Takes nonces that the node has ready for these shares, as many as there are, and at most
    /// `count`.
    pub(super) fn take_nonces(&self, shares: SessionId, count: usize) -> Vec<ReadyNonce> {
        let mut ready = lock(&self.ready);
        let Some(queue) = ready.get_mut(&shares) else { return Vec::new() };
        // The newest: the node drops the oldest first.
        let at = queue.len() - count.min(queue.len());
        queue.split_off(at).into()
    }

    pub(super) fn add_nonces(&self, shares: SessionId, nonces: Vec<ReadyNonce>) {
        let mut ready = lock(&self.ready);
        let queue = ready.entry(shares).or_default();
        queue.extend(nonces);
        // A node that lies could send any number.
        let excess = queue.len().saturating_sub(MAX_READY_NONCES);
        queue.drain(..excess);
    }

    pub(super) fn count_nonces(&self, shares: SessionId) -> usize {
        lock(&self.ready).get(&shares).map_or(0, VecDeque::len)
    }

    /// Forgets the nonces of shares that do not sign any more.
    pub(super) fn forget_nonces_of(&self, shares: SessionId) {
        lock(&self.ready).remove(&shares);
    }

    pub(super) fn forget_nonces(&self) {
        lock(&self.ready).clear();
    }
}

impl PendingReply<'_> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// Those of [`Peer::call`].
    pub(super) fn finish(self) -> io::Result<PeerReply> {
        let peer = self.peer;
        let reply = self.receive().inspect_err(|error| peer.note_silence(error))?;
        peer.note_answer();
        Ok(reply)
    }

    fn receive(mut self) -> io::Result<PeerReply> {
        let received = match self.connection.receive(self.deadline) {
            Err(error) if self.is_reused && error.kind() != io::ErrorKind::TimedOut => {
                lock(&self.peer.idle).clear();
                let mut again = self.peer.send(std::mem::take(&mut self.frame), self.deadline)?;
                let received = again.connection.receive(again.deadline);
                self.connection = again.connection;
                received
            }
            received => received,
        };
        let reply = serde_json::from_slice(&received?).map_err(io::Error::other)?;
        let mut idle = lock(&self.peer.idle);
        if idle.len() < MAX_IDLE {
            idle.push(self.connection);
        }
        Ok(reply)
    }
}
