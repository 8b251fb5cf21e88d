//! Signing in one round trip, for nodes that are always there: each keeps nonces ready and tells
//! their commitments in advance.
//!
//! Nobody approves: whoever uses this decides before whether to sign, and has channels on which the
//! other side is known. The nonces are in memory alone, as those of a
//! [`SigningSession`](crate::SigningSession).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rand_core::{OsRng, RngCore as _};
use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, Result, ThresholdError};
use crate::message::serde_as_text;
use crate::nonce::{Nonce, NonceCommitments};
use crate::share::KeyShare;

/// The most nonces that a stock keeps. The oldest make room.
pub const MAX_READY_NONCES: usize = 4096;

/// The number of nonces in a stock. Stocks have no numbers in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NonceId(u128);

impl fmt::Display for NonceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for NonceId {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self> {
        let canonical =
            text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u128::from_str_radix(text, 16).ok().filter(|_| canonical);
        let text = "the number of a nonce has 32 lower-case hexadecimal digits";
        number.map(Self).ok_or_else(|| ThresholdError::malformed(text))
    }
}

serde_as_text!(NonceId);

/// Nonces that a participant has ready, as the others know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadyNonce {
    /// The number by which the participant finds them.
    pub id: NonceId,
    /// What the participant commits to.
    pub commitments: NonceCommitments,
}

/// The nonces that one participant has ready for one coordinator. They are made, and used once, in
/// one process: nothing writes, reads or copies them. A process that starts again has another
/// stock.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Arc;
///
/// use bulla_threshold::{Nonce, NonceStock, PreparedOrder, SigningOrder, combine};
/// # use bulla_threshold::{Group, ParticipantKeys, deal, take_dealt};
/// # let keys = ["a", "b", "c"].map(|name| ParticipantKeys::generate(name.parse().unwrap()).unwrap());
/// # let group = Group::new("releases".parse()?, 2, keys.iter().map(ParticipantKeys::card).collect())?;
/// # let proposal = group.propose(&keys[0])?;
/// # let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
/// # let dealt = deal(&keys[0], &proposal, &key)?;
/// # let [a, b, _] = keys.each_ref().map(|one| {
/// #     Arc::new(take_dealt(one, &proposal, &dealt, &keys[0].card()).unwrap())
/// # });
///
/// // Some time before: b tells a the commitments.
/// let mut stock = NonceStock::new(Arc::clone(&b));
/// let ready = stock.prepare(1)[0];
///
/// // a is asked for a signature.
/// let own = Nonce::fresh(&a, 1).remove(0);
/// let commitments = [
///     (a.holder().clone(), own.commitments()),
///     (b.holder().clone(), ready.commitments),
/// ];
/// let order = SigningOrder::new(&a, b"a message", commitments.into());
/// // b signs what it gets.
/// let nonce = stock.take(ready.id)?;
/// let prepared = PreparedOrder::prepare_all(&b, vec![order.clone()]).remove(0)?;
/// let from_b = nonce.sign(&prepared)?;
/// assert!(stock.take(ready.id).is_err());
///
/// let prepared = PreparedOrder::prepare_all(&a, vec![order]).remove(0)?;
/// let parts = BTreeMap::from([
///     (a.holder().clone(), own.sign(&prepared)?),
///     (b.holder().clone(), from_b),
/// ]);
/// let signature = combine(&a, &[(&prepared, &parts)]).remove(0)?;
/// assert!(a.public_key().verify(b"a message", &signature).is_valid());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NonceStock {
    share: Arc<KeyShare>,
    /// The number of the next nonces.
    next: NonceId,
    nonces: BTreeMap<NonceId, Nonce>,
}

impl NonceStock {
    /// An empty stock.
    pub fn new(share: Arc<KeyShare>) -> Self {
        let mut prefix = [0; 8];
        OsRng.fill_bytes(&mut prefix);
        let next = NonceId(u128::from(u64::from_be_bytes(prefix)) << 64);
        Self { share, next, nonces: BTreeMap::new() }
    }

    /// Returns the share whose nonces these are.
    pub fn share(&self) -> &Arc<KeyShare> {
        &self.share
    }

    /// Makes this many nonces, and returns what the others need to know. With more than
    /// [`MAX_READY_NONCES`], the oldest are dropped.
    pub fn prepare(&mut self, count: usize) -> Vec<ReadyNonce> {
        let made = Nonce::fresh(&self.share, count.min(MAX_READY_NONCES)).into_iter().map(|nonce| {
            let ready = ReadyNonce { id: self.next, commitments: nonce.commitments() };
            self.next = NonceId(self.next.0 + 1);
            self.nonces.insert(ready.id, nonce);
            ready
        });
        let made = made.collect();
        while self.nonces.len() > MAX_READY_NONCES {
            self.nonces.pop_first();
        }
        made
    }

    /// Takes nonces out of the stock, for good.
    ///
    /// # Errors
    /// [`ErrorCode::NoncesSpent`] if they are not there: they were used, or dropped, or are of
    /// another stock.
    pub fn take(&mut self, id: NonceId) -> Result<Nonce> {
        self.nonces.remove(&id).ok_or_else(|| {
            ThresholdError::new(ErrorCode::NoncesSpent, "these nonces were used already, or are too old")
        })
    }
}

impl fmt::Debug for NonceStock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NonceStock").field("ready", &self.nonces.len()).finish_non_exhaustive()
    }
}
