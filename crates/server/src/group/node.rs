//! This node: it listens for the others, and signs its parts.

use std::collections::HashMap;
use std::fmt;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bulla_kms::approval::{ApprovedUse, Overrides};
use bulla_kms::audit_log::Actor;
use bulla_kms::backend::{Backend, GROUP};
use bulla_kms::{Code, KeyMessage, KeyVersionId, Keystore, KmsError, Name, PermittedContribution, Result};
use bulla_threshold::{
    KeyShare, Nonce, NonceStock, OrderShare, ParticipantKeys, PreparedOrder, SessionId, ThresholdError,
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rustls::ServerConfig;

use super::backend::GroupBackend;
use super::change::Changes;
use super::channel::{Incoming, NodeCertificate, PinnedNodes};
use super::fail_points::FailPoints;
use super::generation::Generations;
use super::memory::NodeMemory;
use super::peer::{Peer, Standing};
use super::repair::Repairs;
use super::shares::ShareFolder;
use super::wire::{MAX_ORDERS, PeerOrder, PeerPart, PeerReply, PeerRequest, Refusal, RefusalReason};
use crate::config::{GroupConfig, group_digest};

/// How often silent nodes are asked whether they are there.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// The most connections from other nodes.
const MAX_CONNECTIONS: usize = 512;
/// How long an answer may take to leave.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Nonces of this node, and the order that they are for.
type Unsigned = (Nonce, Result<PreparedOrder, ThresholdError>);

/// A node of a group: see [`GroupConfig`]. It serves the other nodes until the last clone is
/// dropped.
#[derive(Clone)]
pub struct GroupNode(pub(super) Arc<NodeState>);

/// What the threads of a node share.
pub(super) struct NodeState {
    pub(super) name: Name,
    pub(super) threshold: u16,
    pub(super) keys: ParticipantKeys,
    pub(super) shares: ShareFolder,
    pub(super) memory: NodeMemory,
    pub(super) peers: Vec<Peer>,
    pub(super) generations: Mutex<Generations>,
    /// The changes of shares that other nodes make.
    pub(super) changes: Mutex<Changes>,
    /// The repairs of other nodes' shares.
    pub(super) repairs: Mutex<Repairs>,
    /// Whoever changes or repairs shares by itself has it.
    pub(super) changing: Mutex<()>,
    /// Whoever finds out what became of changes has it.
    pub(super) settling: Mutex<()>,
    pub(super) counters: Counters,
    /// Where the choice of signers begins next.
    pub(super) turn: AtomicUsize,
    pub(super) fail_points: Arc<FailPoints>,
    address: SocketAddr,
    attached: Mutex<Attached>,
    /// The nonces that are ready for each peer.
    stocks: Mutex<HashMap<(Name, SessionId), NonceStock>>,
    /// The key version of each share.
    versions: Mutex<HashMap<SessionId, KeyVersionId>>,
    connections: AtomicUsize,
}

/// The keystore that permits what this node signs.
#[derive(Clone)]
struct Attached {
    keystore: Weak<Keystore>,
    /// Whether this node contributes to uses without approvals.
    overrides: Overrides,
}

impl Default for Attached {
    fn default() -> Self {
        Self { keystore: Weak::new(), overrides: Overrides::Forbidden }
    }
}

/// What a node counts.
#[derive(Default)]
pub(super) struct Counters {
    /// Signatures that this node put together.
    pub(super) signatures: Counter,
    /// Parts that this node signed for others.
    pub(super) parts: Counter,
    /// Parts that this node refused to others.
    pub(super) refused_parts: Counter,
    /// Wrong messages of other nodes.
    pub(super) wrong_messages: Counter,
}

impl GroupNode {
    /// Opens the node's folder, and listens for the other nodes. It signs for them as soon as the
    /// keystore is open.
    ///
    /// # Errors
    /// The folder, the certificate or the key cannot be read; the address is taken.
    pub fn start(config: &GroupConfig) -> Result<Self> {
        let certificate = NodeCertificate::read(&config.certificate, &config.key)?;
        let fail_points = Arc::new(FailPoints::default());
        let mut pinned = Vec::new();
        let mut peers = Vec::new();
        for peer in &config.peer {
            let digest = group_digest(&peer.certificate_sha256)
                .ok_or_else(|| KmsError::new(Code::InvalidArgument, "[group]: a digest is malformed"))?;
            let tls = certificate.client(PinnedNodes::new([(digest, peer.name.clone())]))?;
            let fail_points = Arc::clone(&fail_points);
            peers.push(Peer::new(
                peer.name.clone(),
                peer.address.clone(),
                tls,
                config.timeout(),
                fail_points,
            ));
            pinned.push((digest, peer.name.clone()));
        }
        let pinned = PinnedNodes::new(pinned);
        let tls = certificate.server(pinned.clone())?;
        let shares = ShareFolder::open(&config.folder, Arc::clone(&fail_points))?;
        let keys = shares.identity(&config.name)?;
        let cannot_listen = |error: std::io::Error| {
            KmsError::io(format!("[group]: cannot listen on {}", config.listen), error)
        };
        let listener = TcpListener::bind(config.listen).map_err(cannot_listen)?;
        let address = listener.local_addr().map_err(cannot_listen)?;
        let state = Arc::new(NodeState {
            name: config.name.clone(),
            threshold: config.threshold,
            keys,
            shares,
            memory: NodeMemory::default(),
            peers,
            generations: Mutex::default(),
            changes: Mutex::default(),
            repairs: Mutex::default(),
            changing: Mutex::default(),
            settling: Mutex::default(),
            counters: Counters::default(),
            turn: AtomicUsize::new(0),
            fail_points,
            address,
            attached: Mutex::default(),
            stocks: Mutex::default(),
            versions: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        let weak = Arc::downgrade(&state);
        spawn("bulla-group", move || listen(&listener, &weak, &tls, &pinned))?;
        let weak = Arc::downgrade(&state);
        spawn("bulla-group-probe", move || probe(&weak))?;
        Ok(Self(state))
    }

    /// The backend by which a keystore uses the keys.
    pub fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(GroupBackend::new(Arc::clone(&self.0)))
    }

    /// Lets the other nodes have parts of signatures that this keystore permits, as long as it is
    /// open; without the approvals that a key needs only if that is permitted, too.
    pub(crate) fn attach(&self, keystore: &Arc<Keystore>, overrides: Overrides) {
        let attached = Attached { keystore: Arc::downgrade(keystore), overrides };
        *self.0.attached.lock().unwrap_or_else(PoisonError::into_inner) = attached;
    }

    /// Gives the others nothing any more: the service is sealed. Nonces that are ready are dropped.
    pub(crate) fn detach(&self) {
        *self.0.attached.lock().unwrap_or_else(PoisonError::into_inner) = Attached::default();
        self.0.stocks.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.0.versions.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Puts the node's numbers as they are now into a registry.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let Counters { signatures, parts, refused_parts, wrong_messages } = &self.0.counters;
        let help = "Signatures that this node put together with other nodes of its group";
        registry.register("bulla_group_signatures", help, signatures.clone());
        let help = "Parts of signatures that this node signed for other nodes of its group";
        registry.register("bulla_group_parts", help, parts.clone());
        let help = "Parts of signatures that this node refused to other nodes of its group";
        registry.register("bulla_group_refused_parts", help, refused_parts.clone());
        let help = "Wrong messages of other nodes of the group";
        registry.register("bulla_group_wrong_messages", help, wrong_messages.clone());
        let usable = self.0.peers.iter().filter(|peer| peer.standing() == Standing::Answering).count();
        let number = Gauge::<i64>::default();
        number.set(i64::try_from(usable + 1).unwrap_or(i64::MAX));
        registry.register("bulla_group_nodes", "Nodes of the group that sign, as this node knows", number);
    }
}

impl Drop for NodeState {
    fn drop(&mut self) {
        self.memory.end(&self.shares);
        // Wakes the thread that listens.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_millis(100));
    }
}

impl fmt::Debug for GroupNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupNode").field("name", &self.0.name).finish_non_exhaustive()
    }
}

fn other_shares() -> Refusal {
    Refusal::new(RefusalReason::OtherShares, "this node has older or newer shares of the key")
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    spawned.map(drop).map_err(|error| KmsError::new(Code::Io, format!("cannot start a thread: {error}")))
}

fn listen(listener: &TcpListener, node: &Weak<NodeState>, tls: &Arc<ServerConfig>, pinned: &PinnedNodes) {
    loop {
        let accepted = listener.accept();
        let Some(state) = node.upgrade() else { return };
        let Ok((tcp, _)) = accepted else {
            drop(state);
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if state.connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            state.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (weak, tls, pinned) = (node.clone(), Arc::clone(tls), pinned.clone());
        let served = spawn("bulla-group-peer", move || {
            // An error ends the connection, and the peer begins another one.
            let _ = serve(tcp, &weak, &tls, &pinned);
            if let Some(state) = weak.upgrade() {
                state.connections.fetch_sub(1, Ordering::Relaxed);
            }
        });
        if served.is_err() {
            state.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Answers one connection's requests.
fn serve(
    tcp: TcpStream,
    node: &Weak<NodeState>,
    tls: &Arc<ServerConfig>,
    pinned: &PinnedNodes,
) -> std::io::Result<()> {
    let (mut connection, peer) = Incoming::accept(tcp, tls, pinned)?;
    loop {
        let frame = connection.receive()?;
        let Some(state) = node.upgrade() else { return Ok(()) };
        state.fail_points.step()?;
        let reply = match serde_json::from_slice(&frame) {
            Ok(request) => state.answer(&peer, request),
            Err(error) => PeerReply::Refused(Refusal::new(RefusalReason::Malformed, error.to_string())),
        };
        state.fail_points.step()?;
        drop(state);
        connection.send(&serde_json::to_vec(&reply)?, Instant::now() + SEND_TIMEOUT)?;
    }
}

/// Asks silent nodes until they answer, so that no caller waits for them.
fn probe(node: &Weak<NodeState>) {
    loop {
        std::thread::sleep(PROBE_INTERVAL);
        let Some(state) = node.upgrade() else { return };
        for peer in state.peers.iter().filter(|peer| peer.standing() == Standing::Silent) {
            // The answer changes its standing.
            let _ = peer.call(&PeerRequest::Card {});
        }
        state.ask_for_ends();
        state.look_at_keys();
    }
}

impl NodeState {
    fn answer(&self, from: &Name, request: PeerRequest) -> PeerReply {
        let reply = match request {
            PeerRequest::Card {} => self.card(),
            PeerRequest::Generate { messages } => Ok(self.join_generation(from, &messages)),
            PeerRequest::Prepare { group, shares, count } => self.prepare(from, group, shares, count),
            PeerRequest::Sign { group, orders, refill } => self.sign_parts(from, group, &orders, refill),
            PeerRequest::Destroy { group } => self.destroy_share(from, group),
            PeerRequest::Shares { group } => {
                self.share_status(group).map(|status| PeerReply::Shares(Box::new(status)))
            }
            PeerRequest::Reshare { messages, wanted } => Ok(self.join_change(from, &messages, wanted)),
            PeerRequest::Repair { group, messages } => self.help_to_repair(from, group, &messages),
        };
        reply.unwrap_or_else(PeerReply::Refused)
    }

    fn card(&self) -> Result<PeerReply, Refusal> {
        let card = self.keys.card_message();
        let card = card.map_err(|error| Refusal::new(RefusalReason::NotPermitted, error.message))?;
        Ok(PeerReply::Card { card: card.to_string() })
    }

    fn attached(&self) -> Attached {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The open keystore.
    pub(super) fn keystore(&self) -> Result<Arc<Keystore>, Refusal> {
        self.attached()
            .keystore
            .upgrade()
            .ok_or_else(|| Refusal::new(RefusalReason::NotPermitted, "the node is sealed"))
    }

    /// Remembers the rules of the keys, also of those that nobody asks for: whoever takes over
    /// another node must not be faster.
    fn look_at_keys(&self) {
        let Ok(keystore) = self.keystore() else { return };
        for group in self.shares.groups() {
            let Ok(Some(share)) = self.shares.find(group) else { continue };
            if let Some(version) = self.known_version_of(&keystore, &share) {
                // The first error is in the log, and each order gets its own.
                let _ = self.look(&keystore, group, &version);
            }
        }
    }

    fn look(&self, keystore: &Keystore, group: SessionId, version: &KeyVersionId) -> Result<()> {
        self.memory.look(&self.shares, keystore, group, version)
    }

    /// This node's share, and the key version that it belongs to in this node's view.
    pub(super) fn permitted(
        &self,
        keystore: &Keystore,
        group: SessionId,
    ) -> Result<(Arc<KeyShare>, KeyVersionId), Refusal> {
        let missing = |text: &str| Refusal::new(RefusalReason::NotPermitted, text);
        let share = self.shares.find(group).map_err(|error| Refusal::not_permitted(&error))?;
        let share = share.ok_or_else(|| missing("the node has no share of this key"))?;
        let version = self.version_of(keystore, &share);
        let version = version.ok_or_else(|| missing("the keystore has no key with this share"))?;
        // The record may have changed just now, with what permits it.
        let looked = self.look(keystore, group, &version).or_else(|_| {
            keystore.catch_up()?;
            self.look(keystore, group, &version)
        });
        looked.map_err(|error| Refusal::not_permitted(&error))?;
        Ok((share, version))
    }

    /// The key version of a share, in this node's view.
    fn version_of(&self, keystore: &Keystore, share: &KeyShare) -> Option<KeyVersionId> {
        // A new key: this node may not have read it yet.
        let caught_up = || keystore.catch_up().ok().and_then(|()| self.known_version_of(keystore, share));
        self.known_version_of(keystore, share).or_else(caught_up)
    }

    /// The same, as far as this node has read the keystore. It is searched once for each share.
    fn known_version_of(&self, keystore: &Keystore, share: &KeyShare) -> Option<KeyVersionId> {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = versions.get(&share.group_id()) {
            return Some(version.clone());
        }
        let version = keystore.find_version(GROUP, &share.public_key())?;
        versions.insert(share.group_id(), version.clone());
        Some(version)
    }

    fn prepare(
        &self,
        from: &Name,
        group: SessionId,
        shares: SessionId,
        count: usize,
    ) -> Result<PeerReply, Refusal> {
        self.permitted(&*self.keystore()?, group)?;
        let mut stocks = self.stocks.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock: whoever changes the share clears the stocks afterwards.
        let share = self.shares.find(group).map_err(|error| Refusal::not_permitted(&error))?;
        let share = share.filter(|share| share.shares_id() == shares).ok_or_else(other_shares)?;
        let stock = stocks.entry((from.clone(), group)).or_insert_with(|| NonceStock::new(share));
        Ok(PeerReply::Ready { nonces: stock.prepare(count.min(MAX_ORDERS)) })
    }

    /// Drops the nonces of a key whose share was changed, on both sides.
    pub(super) fn forget_nonces(&self, group: SessionId) {
        self.stocks.lock().unwrap_or_else(PoisonError::into_inner).retain(|(_, one), _| *one != group);
    }

    /// Signs this node's parts. Each order's nonces are out of the stock before anything else
    /// happens, and are gone whatever follows.
    fn sign_parts(
        &self,
        from: &Name,
        group: SessionId,
        orders: &[PeerOrder],
        refill: usize,
    ) -> Result<PeerReply, Refusal> {
        if orders.len() > MAX_ORDERS {
            return Err(Refusal::new(RefusalReason::Malformed, "there are too many orders"));
        }
        let keystore = self.keystore()?;
        let (share, version) = self.permitted(&keystore, group)?;
        let shares = share.shares_id();
        if orders.iter().any(|order| order.order.shares_id() != shares) {
            return Err(other_shares());
        }
        let nonces: Vec<_> = {
            let mut stocks = self.stocks.lock().unwrap_or_else(PoisonError::into_inner);
            let stock = stocks.get_mut(&(from.clone(), group));
            match stock {
                Some(stock) => orders.iter().map(|order| stock.take(order.nonce).ok()).collect(),
                None => orders.iter().map(|_| None).collect(),
            }
        };
        let actor: Actor =
            format!("node {from}").parse().map_err(|error: KmsError| Refusal::not_permitted(&error))?;
        // What is public of all orders takes less time together. Whether the node may sign them is
        // asked for each one.
        let known: Vec<_> = (0..orders.len()).filter(|place| nonces[*place].is_some()).collect();
        let complete = orders.iter().zip(&nonces);
        let complete = complete.filter_map(|(order, nonce)| Some(order.order.with(nonce.as_ref()?)));
        let mut prepared = PreparedOrder::prepare_all(&share, complete.collect()).into_iter();
        let unsigned =
            nonces.into_iter().map(|nonce| nonce.and_then(|nonce| Some((nonce, prepared.next()?))));
        let mut unsigned: Vec<Option<Unsigned>> = unsigned.collect();
        let keystore = keystore.on_behalf_of(&actor);
        let spent =
            || Refusal::new(RefusalReason::NoncesSpent, "the nonces were used, or are of another process");
        let mut parts: Vec<_> = orders.iter().map(|_| PeerPart::Refused(spent())).collect();
        // An approval is one of one message.
        let (alone, together): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|place| orders[*place].approval.is_some());
        for places in alone.chunks(1).chain([&*together]) {
            let made = self.contribute(&keystore, (group, &version), orders, places, &mut unsigned);
            for (place, part) in places.iter().zip(made) {
                parts[*place] = match part {
                    Ok(part) => PeerPart::Part(part),
                    Err(error) => {
                        self.counters.refused_parts.inc();
                        PeerPart::Refused(Refusal::not_permitted(&error))
                    }
                };
            }
        }
        self.counters
            .parts
            .inc_by(parts.iter().filter(|part| matches!(part, PeerPart::Part(_))).count() as u64);
        // The parts leave in any case. New nonces are asked for if the share was changed meanwhile.
        let nonces = match self.prepare(from, group, shares, refill) {
            Ok(PeerReply::Ready { nonces }) => nonces,
            _ => Vec::new(),
        };
        Ok(PeerReply::Signed { parts, nonces })
    }

    /// Whether what the keystore permits agrees with what this node remembers. Counts one part.
    fn check_permitted(
        &self,
        keystore: &Keystore,
        group: SessionId,
        permitted: &PermittedContribution,
    ) -> Result<()> {
        self.memory.check_rule(&self.shares, group, permitted.rule.as_ref())?;
        if let Some(successor) = &permitted.successor {
            self.check_successor(keystore, successor)?;
        }
        match permitted.max_uses {
            Some(max_uses) => self.memory.count_part(&self.shares, group, max_uses),
            None => Ok(()),
        }
    }

    /// An error unless this node has a share of a later version, which it knows as one of that key.
    /// Else whoever can write the keystore could name a key of their own.
    fn check_successor(&self, keystore: &Keystore, successor: &KeyVersionId) -> Result<()> {
        let public_key = keystore.public_key(successor)?;
        for group in self.shares.groups() {
            if self.shares.find(group)?.is_some_and(|share| share.public_key() == public_key) {
                return self.look(keystore, group, successor);
            }
        }
        let message = format!("this node has no share of {successor}: repair it first");
        Err(KmsError::new(Code::Forbidden, message))
    }

    /// What this node checks, as every signer does, before it has others sign what its own keystore
    /// permits: that keystore is not all that counts. One result for each message.
    pub(super) fn check_own(
        &self,
        group: SessionId,
        messages: &[&[u8]],
        approved: &[Option<&ApprovedUse>],
    ) -> Vec<Result<()>> {
        let has_share = self.shares.find(group).is_ok_and(|share| share.is_some());
        // Programs that open a keystore without serving it have no other view of it.
        let Some(keystore) = self.keystore().ok().filter(|_| has_share) else {
            return messages.iter().map(|_| Ok(())).collect();
        };
        let version = match self.permitted(&keystore, group) {
            Ok((_, version)) => version,
            Err(refusal) => {
                let error = KmsError::new(Code::DeviceFailed, refusal.message);
                return messages.iter().map(|_| Err(error.clone())).collect();
            }
        };
        let check = |(message, approved): (&&[u8], &Option<&ApprovedUse>)| {
            let handle = approved.map(|approved| keystore.with_approval(approved.clone()));
            let item = KeyMessage { key: (&version).into(), message };
            let permitted = handle.as_ref().unwrap_or(&keystore).check_contribution(&item)?;
            self.check_permitted(&keystore, group, &permitted)
        };
        messages.iter().zip(approved).map(check).collect()
    }

    /// Signs the parts of some orders, if this node's own view permits it: several that have no
    /// approvals, or one.
    fn contribute(
        &self,
        keystore: &Keystore,
        (group, version): (SessionId, &KeyVersionId),
        orders: &[PeerOrder],
        places: &[usize],
        unsigned: &mut [Option<Unsigned>],
    ) -> Vec<Result<OrderShare>> {
        let approval = places.first().and_then(|place| orders[*place].approval.as_deref());
        let handle =
            approval.map(|approval| approval.handle(keystore, self.attached().overrides)).transpose();
        let item =
            |place: &usize| KeyMessage { key: version.into(), message: orders[*place].order.message() };
        let items: Vec<_> = places.iter().map(item).collect();
        let mut made: Vec<Option<OrderShare>> = vec![None; items.len()];
        // Without a handle for it, the use is refused, and the refusal recorded.
        let permitting = handle.as_ref().ok().and_then(Option::as_ref).unwrap_or(keystore);
        let results = permitting.contribute_batch(&items, |item, permitted| {
            let (place, message) = (places[item], items[item].message);
            self.check_permitted(keystore, group, &permitted)?;
            if let Some(approval) = approval {
                self.memory.use_request(&approval.request, message)?;
            }
            let (nonce, order) = unsigned[place].take().expect("only orders with nonces are signed");
            let part = order.and_then(|order| nonce.sign(&order));
            made[item] = Some(part.map_err(|error| KmsError::new(Code::InvalidArgument, error.message))?);
            Ok(())
        });
        let part = |(result, part): (Result<()>, Option<OrderShare>)| {
            let refused = |error| handle.as_ref().err().cloned().unwrap_or(error);
            result.map_err(refused)?;
            part.ok_or_else(|| KmsError::new(Code::Internal, "no part was made"))
        };
        results.into_iter().zip(made).map(part).collect()
    }

    /// Destroys this node's share, if the keystore has no key for it any more.
    fn destroy_share(&self, from: &Name, group: SessionId) -> Result<PeerReply, Refusal> {
        let keystore = self.keystore()?;
        // The node that asks destroys the key first, and this node may not have read that yet.
        let not_permitted = |error: KmsError| Refusal::not_permitted(&error);
        keystore.catch_up().map_err(not_permitted)?;
        let holding = self.shares.holding(group).map_err(not_permitted)?;
        let Some(share) = holding.any() else { return Ok(PeerReply::Destroyed {}) };
        let version = keystore.find_version(GROUP, &share.public_key());
        if version.is_some_and(|version| keystore.holds_private_key(&version)) {
            let text = "the key is not destroyed in this node's view of the keystore";
            return Err(Refusal::new(RefusalReason::NotPermitted, text));
        }
        self.shares.destroy(group).map_err(not_permitted)?;
        self.memory.forget(group);
        self.forget_nonces(group);
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).remove(&group);
        tracing::info!(peer = %from, "the share of a destroyed key is destroyed");
        Ok(PeerReply::Destroyed {})
    }
}
