//! Signing in two rounds: approvals with commitments to nonces, then signature shares.
//!
//! A nonce that signs two different messages, or one message together with different commitments
//! of others, gives away the share. So the nonces of a session exist in the memory of one process
//! and nowhere else: there is nothing that a backup could bring back ([`SigningSession`]).

use std::collections::BTreeMap;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use bulla_kms::Name;
use frost_ed25519::round1::{SigningCommitments, SigningNonces};
use frost_ed25519::{CheaterDetection, SigningPackage, aggregate_custom, round1, round2};
use rand_core::OsRng;

use crate::board::{Board, Receipt};
use crate::error::{ErrorCode, Result, ThresholdError};
use crate::group::stranger;
use crate::keygen::check_card;
use crate::message::{Message, MessageContent, SessionId, digest, random};
use crate::participant::ParticipantKeys;
use crate::share::{KeyShare, public_key};

#[cfg(test)]
mod vectors;

/// The longest text that says what is to be signed, in bytes.
pub const MAX_JOB_LEN: usize = 16 << 10;
/// The most signatures of one session.
pub const MAX_STEPS: u8 = 4;

/// One participant's side of signing.
///
/// A session signs one thing, which may need several signatures, one after the other: a step for
/// each. The nonces are made by [`SigningSession::approve`], and each pair is used for one
/// signature share at most. They cannot be copied, written or read: if the process ends, they are
/// lost, and the participant approves again with others. That costs a little time, and is what
/// keeps a share safe from a restored backup.
///
/// ```
/// use bulla_threshold::{Group, ParticipantKeys, SigningSession, deal, take_dealt};
///
/// # let keys = ["ann", "bob"].map(|name| ParticipantKeys::generate(name.parse().unwrap()).unwrap());
/// # let group = Group::new("releases".parse()?, 2, keys.iter().map(ParticipantKeys::card).collect())?;
/// # let proposal = group.propose(&keys[0])?;
/// # let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
/// # let dealt = deal(&keys[0], &proposal, &key)?;
/// # let shares = keys.each_ref().map(|one| take_dealt(one, &proposal, &dealt, &keys[0].card()).unwrap());
/// let [ann, bob] = shares;
/// let public_key = ann.public_key();
/// let message = b"version 1.2";
///
/// let request = SigningSession::request(&keys[0], &ann, "the text of version 1.2", 1)?;
/// let mut ann = SigningSession::open(&keys[0], ann, &request)?;
/// ann.approve(&keys[0])?;
///
/// // Bob looks at the request, approves, and can sign at once: all approvals are there.
/// let mut bob = SigningSession::open(&keys[1], bob, &request)?;
/// assert_eq!(bob.job(), "the text of version 1.2");
/// bob.approve(&keys[1])?;
/// ann.messages().try_for_each(|message| bob.receive(message).map(drop))?;
/// bob.advance(&keys[1], |_| Ok(message.to_vec()))?;
///
/// bob.messages().try_for_each(|message| ann.receive(message).map(drop))?;
/// ann.advance(&keys[0], |_| Ok(message.to_vec()))?;
/// let signatures = ann.signatures().expect("everybody has signed");
/// assert!(public_key.verify(message, &signatures[0]).is_valid());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SigningSession {
    request: Message,
    board: Board,
    share: KeyShare,
    job: String,
    steps: u8,
    /// For each step, until it is used. Empty before the approval.
    nonces: Vec<Option<SigningNonces>>,
    signers: Option<Signers>,
    signatures: Vec<[u8; 64]>,
}

/// Who signs together, with the digests of their approvals.
type Signers = BTreeMap<Name, SessionId>;

/// What a session waits for.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// This many more participants must approve.
    Approvals(usize),
    /// These participants must send their signature shares.
    Shares(Vec<Name>),
    /// These participants signed together with others, so their nonces are used: the session does
    /// not end with them.
    Elsewhere(Vec<Name>),
    /// Nothing: all signatures are there.
    Nothing,
}

impl SigningSession {
    /// Makes the message that opens a session: it asks for `steps` signatures. `job` says for what;
    /// this crate does not read it.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] if the text or the number is too large.
    pub fn request(keys: &ParticipantKeys, share: &KeyShare, job: &str, steps: u8) -> Result<Message> {
        check_job(job, steps)?;
        let content = MessageContent::Request {
            group: share.group_id(),
            shares: share.shares_id(),
            job: job.to_owned(),
            steps,
            nonce: random(),
        };
        Message::sign(keys, share.group_id(), content)
    }

    /// Opens the session of a request. It does not approve anything.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] if the message is no request, or the keys are not those of
    /// the share's holder; [`ErrorCode::BadSignature`]; [`ErrorCode::WrongSession`] if it is for
    /// another group or for other shares.
    pub fn open(keys: &ParticipantKeys, share: KeyShare, request: &Message) -> Result<Self> {
        let MessageContent::Request { group, shares, job, steps, .. } = request.content() else {
            let text = format!("the message does not ask for a signature: it is a {}", request.kind());
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        };
        check_card(keys, share.group())?;
        if share.holder() != keys.name() {
            let text = "the share and the keys belong to different participants";
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        }
        let sender = request.sender();
        if !share.is_member(sender) {
            return Err(stranger(sender));
        }
        request.verify(share.group().card(sender).ok_or_else(|| stranger(sender))?)?;
        share.check_shares(*group, *shares)?;
        check_job(job, *steps)?;
        Ok(Self {
            board: Board::new(request.digest(), share.group().clone()),
            request: request.clone(),
            share,
            job: job.clone(),
            steps: *steps,
            nonces: Vec::new(),
            signers: None,
            signatures: Vec::new(),
        })
    }

    /// Returns what is to be signed, as the requester wrote it.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Returns who asks for the signature.
    pub fn requester(&self) -> &Name {
        self.request.sender()
    }

    /// Returns the session.
    pub fn session(&self) -> SessionId {
        self.board.session
    }

    /// Returns the share that signs.
    pub fn share(&self) -> &KeyShare {
        &self.share
    }

    /// Approves: makes the nonces, and the message that commits to them.
    ///
    /// # Errors
    /// [`ErrorCode::NoncesSpent`] if this session has approved already.
    pub fn approve(&mut self, keys: &ParticipantKeys) -> Result<()> {
        if !self.nonces.is_empty() {
            return Err(ThresholdError::new(ErrorCode::NoncesSpent, "this session has approved already"));
        }
        let secret = self.share.key().signing_share();
        let (nonces, commitments): (Vec<_>, Vec<_>) =
            (0..self.steps).map(|_| round1::commit(secret, &mut OsRng)).unzip();
        self.nonces = nonces.into_iter().map(Some).collect();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let made = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let message =
            Message::sign(keys, self.board.session, MessageContent::Approval { made, commitments })?;
        // One of an earlier process may be there.
        self.board.replace(&message)
    }

    /// Takes a message of another participant. The request is known already.
    ///
    /// # Errors
    /// [`ErrorCode::WrongSession`], [`ErrorCode::UnknownSender`], [`ErrorCode::BadSignature`],
    /// [`ErrorCode::Equivocation`]; [`ErrorCode::Misbehavior`] if it is not what a session asks
    /// for.
    pub fn receive(&mut self, message: &Message) -> Result<Receipt> {
        if *message == self.request {
            return Ok(Receipt::Known);
        }
        self.board.authenticate(message)?;
        let sender = message.sender();
        if !self.share.is_member(sender) {
            return Err(stranger(sender));
        }
        match message.content() {
            MessageContent::Approval { commitments, .. } if commitments.len() != usize::from(self.steps) => {
                Err(ThresholdError::misbehavior(sender, "approved another number of signatures"))
            }
            MessageContent::Approval { made, .. } => self.receive_approval(message, *made),
            MessageContent::Share { step, .. } if *step >= self.steps => {
                Err(ThresholdError::misbehavior(sender, "signed a step that there is not"))
            }
            MessageContent::Share { .. } => self.board.receive(message),
            _ => {
                let text = format!("sent a {} into a signing session", message.kind());
                Err(ThresholdError::misbehavior(sender, text))
            }
        }
    }

    fn receive_approval(&mut self, message: &Message, made: u64) -> Result<Receipt> {
        let sender = message.sender();
        let known = self.board.get("approval", 0, sender);
        let Some(MessageContent::Approval { made: known_made, .. }) = known.map(Message::content) else {
            return self.board.receive(message);
        };
        if made < *known_made {
            return Ok(Receipt::Known);
        }
        let is_signer = self.signers.as_ref().is_some_and(|signers| signers.contains_key(sender));
        let is_own = sender == self.share.holder() && !self.nonces.is_empty();
        if made == *known_made || is_signer || is_own {
            return self.board.receive(message);
        }
        self.board.replace(message)?;
        Ok(Receipt::Added)
    }

    /// Does whatever the messages so far allow: signs, and puts signatures together.
    ///
    /// `message` returns what the next step signs, and gets the signatures of the steps before.
    /// Everybody must return the same bytes.
    ///
    /// # Errors
    /// Those of `message`; [`ErrorCode::Misbehavior`], naming all who sent a wrong share.
    pub fn advance(
        &mut self,
        keys: &ParticipantKeys,
        mut message: impl FnMut(&[[u8; 64]]) -> Result<Vec<u8>>,
    ) -> Result<()> {
        if self.signers.is_none() {
            self.signers = self.choose_signers();
        }
        let Some(signers) = self.signers.clone() else { return Ok(()) };
        while self.signatures.len() < usize::from(self.steps) {
            let step = u8::try_from(self.signatures.len()).expect("the number of steps is bounded");
            let message = message(&self.signatures)?;
            let package = self.package(&signers, step, &message)?;
            self.sign_step(keys, &signers, step, &message, &package)?;
            let Some(shares) = self.shares(&signers, step, &message)? else { return Ok(()) };
            let shares = self.board.group.by_identifier(shares)?;
            let public = self.share.public();
            let signature = aggregate_custom(&package, &shares, public, CheaterDetection::AllCheaters)
                .map_err(|error| self.board.group.blame(&error, "the signature shares"))?;
            let signature = signature.serialize().ok().and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
            let verifies = |signature: &[u8; 64]| public_key(public).verify(&message, signature).is_valid();
            let signature = signature.filter(verifies).ok_or_else(|| {
                ThresholdError::new(ErrorCode::Misbehavior, "the signature does not verify")
            })?;
            self.signatures.push(signature);
        }
        Ok(())
    }

    /// Signs a step, if this participant is one of the signers and has not signed it yet. The
    /// nonces are gone afterwards, whatever happens.
    fn sign_step(
        &mut self,
        keys: &ParticipantKeys,
        signers: &Signers,
        step: u8,
        message: &[u8],
        package: &SigningPackage,
    ) -> Result<()> {
        let Some(nonces) = self.nonces.get_mut(usize::from(step)) else { return Ok(()) };
        if !signers.contains_key(self.share.holder()) {
            return Ok(());
        }
        let Some(nonces) = nonces.take() else { return Ok(()) };
        let share = round2::sign(package, &nonces, self.share.key())
            .map_err(|error| self.board.group.blame(&error, "the approvals"))?;
        let message = message_digest(message);
        self.board.send(keys, MessageContent::Share { step, signers: signers.clone(), message, share })
    }

    /// The signers that somebody has signed with already; otherwise this participant and those who
    /// come first in the group, once enough have approved.
    fn choose_signers(&self) -> Option<Signers> {
        let me = self.share.holder();
        let chosen = self.board.all().filter_map(|message| match message.content() {
            MessageContent::Share { step: 0, signers, .. } if self.is_possible(signers, message.sender()) => {
                Some(signers)
            }
            _ => None,
        });
        let has_approved = !self.nonces.is_empty();
        let mut chosen = chosen.filter(|signers| !has_approved || signers.contains_key(me));
        if let Some(signers) = chosen.next() {
            return Some(signers.clone());
        }
        let approvals: Vec<_> = self.approvals();
        let threshold = usize::from(self.board.group.threshold());
        if !has_approved || approvals.len() < threshold {
            return None;
        }
        let others = approvals.into_iter().filter(|name| name != me).take(threshold - 1);
        let names = std::iter::once(me.clone()).chain(others);
        Some(names.filter_map(|name| Some((name.clone(), self.approval_digest(&name)?))).collect())
    }

    fn approval_digest(&self, name: &Name) -> Option<SessionId> {
        self.board.get("approval", 0, name).map(Message::digest)
    }

    /// Whether these can sign together: enough of them, the one who says so among them, and with
    /// the approvals that are here.
    fn is_possible(&self, signers: &Signers, sender: &Name) -> bool {
        signers.len() == usize::from(self.board.group.threshold())
            && signers.contains_key(sender)
            && signers.iter().all(|(name, digest)| self.approval_digest(name) == Some(*digest))
    }

    fn package(&self, signers: &Signers, step: u8, message: &[u8]) -> Result<SigningPackage> {
        let mut commitments: BTreeMap<_, SigningCommitments> = BTreeMap::new();
        for name in signers.keys() {
            let approval = self.board.get("approval", 0, name).map(Message::content);
            let Some(MessageContent::Approval { commitments: all, .. }) = approval else {
                return Err(stranger(name));
            };
            commitments.insert(self.board.group.identifier(name)?, all[usize::from(step)]);
        }
        Ok(SigningPackage::new(commitments, message))
    }

    /// The signature shares of a step, if they are all there.
    fn shares(
        &self,
        signers: &Signers,
        step: u8,
        message: &[u8],
    ) -> Result<Option<BTreeMap<Name, round2::SignatureShare>>> {
        let mut shares = BTreeMap::new();
        for name in signers.keys() {
            let content = self.board.get("share", step, name).map(Message::content);
            let Some(MessageContent::Share { signers: theirs, message: digest, share, .. }) = content else {
                return Ok(None);
            };
            if theirs != signers {
                return Ok(None);
            }
            if *digest != message_digest(message) {
                return Err(ThresholdError::misbehavior(name, "signed something else than was requested"));
            }
            shares.insert(name.clone(), *share);
        }
        Ok(Some(shares))
    }

    /// Returns who has approved, in the order of the group.
    pub fn approvals(&self) -> Vec<Name> {
        let has_approved = |name: &&Name| self.approval_digest(name).is_some();
        self.board.group.names().filter(has_approved).cloned().collect()
    }

    /// Returns whether this participant has approved and has used all nonces: the session may end
    /// then, and the others go on with its messages.
    pub fn has_signed(&self) -> bool {
        !self.nonces.is_empty() && self.nonces.iter().all(Option::is_none)
    }

    /// Returns what the session waits for.
    pub fn waits_for(&self) -> Waiting {
        if self.signatures.len() == usize::from(self.steps) {
            return Waiting::Nothing;
        }
        let Some(signers) = &self.signers else {
            let missing = usize::from(self.board.group.threshold()).saturating_sub(self.approvals().len());
            return Waiting::Approvals(missing);
        };
        let step = u8::try_from(self.signatures.len()).expect("the number of steps is bounded");
        let signed_elsewhere = |name: &&Name| {
            let content = self.board.get("share", step, name).map(Message::content);
            matches!(content, Some(MessageContent::Share { signers: theirs, .. }) if theirs != signers)
        };
        let elsewhere: Vec<_> = signers.keys().filter(signed_elsewhere).cloned().collect();
        match elsewhere.is_empty() {
            true => Waiting::Shares(self.board.missing("share", step, signers.keys())),
            false => Waiting::Elsewhere(elsewhere),
        }
    }

    /// Returns all messages of the session so far, its own and the others', with the request.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        std::iter::once(&self.request).chain(self.board.all())
    }

    /// Returns the signatures, one for each step, once all are there. They verify strictly.
    pub fn signatures(&self) -> Option<&[[u8; 64]]> {
        (self.signatures.len() == usize::from(self.steps)).then_some(&*self.signatures)
    }
}

impl fmt::Debug for SigningSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningSession")
            .field("session", &self.board.session)
            .field("share", &self.share)
            .field("waits_for", &self.waits_for())
            .finish_non_exhaustive()
    }
}

fn check_job(job: &str, steps: u8) -> Result<()> {
    let text = match (job.len() <= MAX_JOB_LEN, (1..=MAX_STEPS).contains(&steps)) {
        (true, true) => return Ok(()),
        (false, _) => "what is to be signed is described by more than 16 KiB of text",
        (true, false) => "a session makes 1 to 4 signatures",
    };
    Err(ThresholdError::new(ErrorCode::InvalidArgument, text))
}

fn message_digest(message: &[u8]) -> SessionId {
    digest("bulla threshold v1 digest of what is signed", message)
}
