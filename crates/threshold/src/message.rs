//! Messages between participants: one line of text each, signed by the sender and bound to a
//! session. `spec/threshold.md` describes the format.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use base64ct::{Base64, Base64UrlUnpadded, Encoding as _};
use bulla_kms::{Name, PublicKey};
use frost_ed25519::keys::{PublicKeyPackage, VerifiableSecretSharingCommitment, dkg};
use frost_ed25519::round1::SigningCommitments;
use frost_ed25519::round2::SignatureShare;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, Result, ThresholdError};
use crate::group::Group;
use crate::participant::{Card, ParticipantKeys};
use crate::share::public_digest;

/// The longest line of a message in bytes.
pub const MAX_MESSAGE_LEN: usize = 256 << 10;
/// The most messages of one text.
pub const MAX_MESSAGES: usize = 1024;

const PREFIX: &str = "bulla-threshold-v";
const VERSION: &str = "1";
/// Before the bytes that a participant signs.
const SIGNED_PREFIX: &[u8] = b"bulla threshold message v1\0";

/// The session that a message belongs to: the digest of the message that opened it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId([u8; 32]);

impl SessionId {
    /// Of messages that belong to no session.
    pub(crate) const NONE: Self = Self([0; 32]);

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bulla_blake3::Hash::from_bytes(self.0).fmt(f)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SessionId {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self> {
        let canonical =
            text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let hash = bulla_blake3::Hash::from_hex(text).ok().filter(|_| canonical);
        hash.map(|hash| Self(*hash.as_bytes()))
            .ok_or_else(|| ThresholdError::malformed("a digest has 64 lower-case hexadecimal digits"))
    }
}

macro_rules! serde_as_text {
    ($($type:ty),+) => {$(
        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

/// Bytes that one participant encrypted to another, in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encrypted(pub(crate) Vec<u8>);

impl fmt::Display for Encrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64::encode_string(&self.0))
    }
}

impl FromStr for Encrypted {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self> {
        Base64::decode_vec(text).map(Self).map_err(|_| ThresholdError::malformed("a secret is not base64"))
    }
}

serde_as_text!(SessionId, Encrypted);
pub(crate) use serde_as_text;

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum MessageContent {
    /// Who a participant is.
    Card(Card),
    /// Opens a session: the participants of a new key.
    Group(Group),
    /// Round 1 of a new key or of a refresh: commitments and a proof, for all.
    Round1 { package: dkg::round1::Package },
    /// Round 2: for each other participant an encrypted share. `seen` has the digests of all
    /// messages of round 1, so that nobody can send different ones to different participants.
    Round2 { seen: BTreeMap<Name, SessionId>, shares: BTreeMap<Name, Encrypted> },
    /// Round 3: the sender has a share, and this is the public side.
    Confirmation { public: PublicKeyPackage },
    /// A dealer splits a key that it has.
    Dealt {
        public: PublicKeyPackage,
        commitment: VerifiableSecretSharingCommitment,
        shares: BTreeMap<Name, Encrypted>,
    },
    /// Opens a session: the members get new shares of the same key.
    Refresh { group: SessionId, shares: SessionId, members: Vec<Name>, nonce: SessionId },
    /// The sender offers the repair of a lost share: it says which shares the group has now, and
    /// who could help. It opens no session.
    RepairOffer { group: SessionId, shares: SessionId, lost: Name, helpers: Vec<Name> },
    /// Opens a session: the helpers repair the share of a participant who lost it.
    Repair { group: SessionId, shares: SessionId, helpers: Vec<Name>, nonce: SessionId },
    /// A part of the lost share, for each helper.
    RepairDelta { shares: BTreeMap<Name, Encrypted> },
    /// The sum of a helper's parts, for the participant who lost the share.
    RepairSigma { public: PublicKeyPackage, epoch: u32, share: Encrypted },
    /// Opens a session: the helpers give everybody in `to` a new share of the same key.
    Reshare {
        group: SessionId,
        shares: SessionId,
        epoch: u32,
        public_key: PublicKey,
        helpers: Vec<Card>,
        to: Group,
    },
    /// What a helper's old share contributes to the key, shared among the new holders.
    ResharePart { commitment: VerifiableSecretSharingCommitment, shares: BTreeMap<Name, Encrypted> },
    /// The sender has no new share of this resharing, and never confirms one.
    Withdrawal {},
    /// Opens a session: what is to be signed.
    Request { group: SessionId, shares: SessionId, job: String, steps: u8, nonce: SessionId },
    /// Round 1 of signing: the sender approves, and commits to nonces, one pair for each step. A
    /// sender whose process ended approves again, with new nonces: the later one counts. `made` is
    /// in milliseconds of Unix time.
    Approval { made: u64, commitments: Vec<SigningCommitments> },
    /// Round 2 of signing, for one step.
    Share { step: u8, signers: BTreeMap<Name, SessionId>, message: SessionId, share: SignatureShare },
}

impl MessageContent {
    fn kind(&self) -> &'static str {
        match self {
            Self::Card(_) => "card",
            Self::Group(_) => "group",
            Self::Round1 { .. } => "round1",
            Self::Round2 { .. } => "round2",
            Self::Confirmation { .. } => "confirmation",
            Self::Dealt { .. } => "dealt",
            Self::Refresh { .. } => "refresh",
            Self::RepairOffer { .. } => "repair-offer",
            Self::Repair { .. } => "repair",
            Self::RepairDelta { .. } => "repair-delta",
            Self::RepairSigma { .. } => "repair-sigma",
            Self::Reshare { .. } => "reshare",
            Self::ResharePart { .. } => "reshare-part",
            Self::Withdrawal {} => "withdrawal",
            Self::Request { .. } => "request",
            Self::Approval { .. } => "approval",
            Self::Share { .. } => "share",
        }
    }

    /// Which of several messages of one kind it is.
    pub(crate) fn step(&self) -> u8 {
        match self {
            Self::Share { step, .. } => *step,
            _ => 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    session: SessionId,
    from: Name,
    content: MessageContent,
}

/// A message of a participant. `Display` is its line, and [`Message::parse`] the exact inverse.
///
/// A message that parses is not authentic yet: the session that it is given to checks the
/// signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    body: Box<Body>,
    text: String,
    signature: [u8; 64],
}

impl Message {
    /// Signs a message.
    pub(crate) fn sign(keys: &ParticipantKeys, session: SessionId, content: MessageContent) -> Result<Self> {
        let body = Box::new(Body { session, from: keys.name().clone(), content });
        let text = serde_json::to_string(&body).expect("plain structures serialize");
        let signature = keys.sign(&signed_bytes(&text));
        let message = Self { body, text, signature };
        if message.to_string().len() > MAX_MESSAGE_LEN {
            let text = format!("a message would be longer than {MAX_MESSAGE_LEN} bytes");
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        }
        Ok(message)
    }

    /// Parses a line.
    ///
    /// # Errors
    /// [`ErrorCode::MalformedMessage`], [`ErrorCode::MessageTooNew`].
    pub fn parse(line: &str) -> Result<Self> {
        if line.len() > MAX_MESSAGE_LEN {
            return Err(ThresholdError::malformed("it is too long"));
        }
        let rest = line.strip_prefix(PREFIX).ok_or_else(|| {
            ThresholdError::malformed("it does not begin with bulla-threshold-v1; was the line cut?")
        })?;
        let mut parts = rest.split(':');
        let (version, kind) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if version != VERSION {
            let newer = version.parse::<u32>().is_ok_and(|number| number > 1);
            return Err(if newer {
                let text = format!("the message has version {version}: use a newer version of the program");
                ThresholdError::new(ErrorCode::MessageTooNew, text)
            } else {
                ThresholdError::malformed("its version is not a number")
            });
        }
        let (Some(body), Some(signature), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(ThresholdError::malformed("it does not have four parts; was the line cut?"));
        };
        let decode = |text| Base64UrlUnpadded::decode_vec(text).ok();
        let text = decode(body).and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| ThresholdError::malformed("its content is damaged"))?;
        let signature = decode(signature).and_then(|bytes| bytes.try_into().ok());
        let signature = signature.ok_or_else(|| ThresholdError::malformed("its signature was cut"))?;
        let body: Box<Body> = serde_json::from_str(&text)
            .map_err(|_| ThresholdError::malformed("its content is damaged, or of a newer program"))?;
        if body.content.kind() != kind || serde_json::to_string(&body).ok().as_deref() != Some(&*text) {
            return Err(ThresholdError::malformed("its content is not in the form that bulla writes"));
        }
        Ok(Self { body, text, signature })
    }

    /// Parses the messages of a text: one on each line. Empty lines and lines that begin with `#`
    /// are skipped, so files with messages can be joined.
    ///
    /// # Errors
    /// Those of [`Message::parse`], with the number of the line; more than [`MAX_MESSAGES`].
    pub fn parse_all(text: &str) -> Result<Vec<Self>> {
        let mut messages = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if messages.len() == MAX_MESSAGES {
                return Err(ThresholdError::malformed(format!("it has more than {MAX_MESSAGES} messages")));
            }
            messages.push(Self::parse(line).map_err(|error| ThresholdError {
                message: format!("line {}: {}", index + 1, error.message),
                ..error
            })?);
        }
        Ok(messages)
    }

    /// Returns the kind, as it is in the line: `approval`.
    pub fn kind(&self) -> &'static str {
        self.body.content.kind()
    }

    /// Returns the name of the sender, which is only a claim before the message is verified.
    pub fn sender(&self) -> &Name {
        &self.body.from
    }

    /// Returns the session that the message belongs to.
    pub fn session(&self) -> SessionId {
        self.body.session
    }

    /// Returns the session that the message opens, if it is one of those that do.
    pub fn opens(&self) -> Option<SessionId> {
        let opens = matches!(
            self.content(),
            MessageContent::Group(_)
                | MessageContent::Refresh { .. }
                | MessageContent::Repair { .. }
                | MessageContent::Reshare { .. }
                | MessageContent::Request { .. }
        );
        opens.then(|| self.digest())
    }

    /// Returns the [`KeyShare::shares_id`](crate::KeyShare::shares_id) that the sender confirms to
    /// have a share of, if the message is a confirmation.
    pub fn confirms(&self) -> Option<SessionId> {
        match self.content() {
            MessageContent::Confirmation { public } => Some(public_digest(public)),
            _ => None,
        }
    }

    /// Returns who keeps a share, if the message opens a refresh.
    pub fn refreshed_members(&self) -> Option<&[Name]> {
        match self.content() {
            MessageContent::Refresh { members, .. } => Some(members),
            _ => None,
        }
    }

    /// Returns whose share is to be repaired, if the message offers that or asks for it.
    pub fn lost_by(&self) -> Option<&Name> {
        match self.content() {
            MessageContent::RepairOffer { lost, .. } => Some(lost),
            MessageContent::Repair { .. } => Some(self.sender()),
            _ => None,
        }
    }

    /// The digest of the message without its signature.
    pub(crate) fn digest(&self) -> SessionId {
        let digest = bulla_blake3::derive_key("bulla threshold v1 digest of a message", self.text.as_bytes());
        SessionId(digest)
    }

    pub(crate) fn content(&self) -> &MessageContent {
        &self.body.content
    }

    /// Checks that the participant with this card sent the message.
    pub(crate) fn verify(&self, card: &Card) -> Result<()> {
        let authentic = card.name == self.body.from
            && card.signing_key.verify(&signed_bytes(&self.text), &self.signature).is_valid();
        if authentic {
            return Ok(());
        }
        let text = format!(
            "the {} in the name of {} is not signed by the key on {}'s card: somebody edited or forged it",
            self.kind(),
            self.sender(),
            card.name
        );
        Err(ThresholdError::new(ErrorCode::BadSignature, text))
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encode = Base64UrlUnpadded::encode_string;
        let (body, signature) = (encode(self.text.as_bytes()), encode(&self.signature));
        write!(f, "{PREFIX}{VERSION}:{}:{body}:{signature}", self.kind())
    }
}

fn signed_bytes(text: &str) -> Vec<u8> {
    [SIGNED_PREFIX, text.as_bytes()].concat()
}

/// The digest of something that is not a message, for one purpose.
pub(crate) fn digest(context: &str, bytes: &[u8]) -> SessionId {
    SessionId(bulla_blake3::derive_key(context, bytes))
}

/// A random number in the form of a digest.
pub(crate) fn random() -> SessionId {
    let mut bytes = [0; 32];
    rand_core::RngCore::fill_bytes(&mut rand_core::OsRng, &mut bytes);
    SessionId(bytes)
}
