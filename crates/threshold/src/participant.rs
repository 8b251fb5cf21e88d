//! Participants: the keys by which they sign their messages and read what is for them alone.

use std::fmt;

use base64ct::{Base64, Encoding as _};
use bulla_ed25519::{Signer as _, SigningKey};
use bulla_kms::encryption::{Identity, IdentityKind, Recipient};
use bulla_kms::{Algorithm, Name, PublicKey, encrypted_file};
use rand_core::{OsRng, RngCore as _};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::{ErrorCode, Result, ThresholdError};
use crate::message::{Message, MessageContent, SessionId};

/// A participant's secret keys: one signs the messages, the other decrypts what other participants
/// send to this one alone. Neither is a share of a group's key.
///
/// ```
/// use bulla_threshold::{Card, Message, ParticipantKeys};
///
/// let ann = ParticipantKeys::generate("ann".parse()?)?;
/// // The card is public. The others must get it unchanged: compare its fingerprint by phone.
/// let line = ann.card_message()?.to_string();
/// let card = Card::of(&Message::parse(&line)?)?;
/// assert_eq!(card.fingerprint(), ann.card().fingerprint());
///
/// let again = ParticipantKeys::from_secret_bytes(&ann.to_secret_bytes())?;
/// assert_eq!(again.card(), ann.card());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ParticipantKeys {
    name: Name,
    signing: SigningKey,
    decryption: Identity,
}

/// What the others know of a participant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The participant's name, unique in a group.
    pub name: Name,
    /// Verifies the participant's messages. It is not a key of a group.
    pub signing_key: PublicKey,
    /// What is for this participant alone is encrypted to it.
    pub recipient: String,
}

/// As [`ParticipantKeys`] are kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptKeys {
    name: Name,
    /// In base64.
    seed: SecretText,
    decryption: SecretText,
}

/// A secret text, which is wiped.
#[derive(Clone)]
pub(crate) struct SecretText(pub(crate) Zeroizing<String>);

impl Serialize for SecretText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Zeroizing::new(text)))
    }
}

impl ParticipantKeys {
    /// Generates new keys.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate(name: Name) -> Result<Self> {
        let mut seed = Zeroizing::new([0; 32]);
        OsRng.fill_bytes(&mut *seed);
        Ok(Self {
            name,
            signing: SigningKey::from_bytes(&seed),
            // The shares are as strong as Ed25519, so a recipient after the quantum computer would
            // protect nothing, and make each card ten times as long.
            decryption: Identity::generate(IdentityKind::Age)?,
        })
    }

    /// Returns the participant's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns what the others may know.
    pub fn card(&self) -> Card {
        let key = self.signing.verifying_key().to_bytes();
        Card {
            name: self.name.clone(),
            signing_key: PublicKey::from_bytes(Algorithm::Ed25519, &key).expect("a key of its own is valid"),
            recipient: self.decryption.recipient().to_string(),
        }
    }

    /// Returns the card as a message, which is signed by itself.
    ///
    /// # Errors
    /// None in practice: a card is short.
    pub fn card_message(&self) -> Result<Message> {
        Message::sign(self, SessionId::NONE, MessageContent::Card(self.card()))
    }

    /// Returns the keys as bytes, for a file that must be encrypted.
    ///
    /// # Panics
    /// Never: the fields are plain.
    pub fn to_secret_bytes(&self) -> Zeroizing<Vec<u8>> {
        secret_json(&KeptKeys {
            name: self.name.clone(),
            seed: SecretText(Zeroizing::new(Base64::encode_string(self.signing.as_bytes()))),
            decryption: SecretText(self.decryption.to_secret_text()),
        })
    }

    /// Reads what [`ParticipantKeys::to_secret_bytes`] wrote.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] for anything else.
    pub fn from_secret_bytes(bytes: &[u8]) -> Result<Self> {
        let kept: KeptKeys = from_secret_json(bytes, "keys of a participant")?;
        let mut seed = Zeroizing::new([0; 32]);
        let decoded = Base64::decode(kept.seed.0.as_bytes(), &mut *seed).map(<[u8]>::len);
        if decoded != Ok(32) {
            let text = "the seed of a participant is damaged";
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        }
        Ok(Self {
            name: kept.name,
            signing: SigningKey::from_bytes(&seed),
            decryption: kept.decryption.0.parse()?,
        })
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.signing.sign(message).to_bytes()
    }

    /// Decrypts what another participant encrypted to this one.
    pub(crate) fn decrypt(&self, encrypted: &[u8], context: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        Ok(encrypted_file::decrypt(encrypted, &[&self.decryption], context)?)
    }
}

impl fmt::Debug for ParticipantKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParticipantKeys").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Card {
    /// Returns the card in a message.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] if the message is something else;
    /// [`ErrorCode::BadSignature`].
    pub fn of(message: &Message) -> Result<Self> {
        let MessageContent::Card(card) = message.content() else {
            let text = format!("the message is not a card but a {}", message.kind());
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        };
        card.check()?;
        message.verify(card)?;
        Ok(card.clone())
    }

    /// Returns a short text that stands for both keys, to be compared over another channel: 32
    /// hexadecimal digits in groups of four.
    pub fn fingerprint(&self) -> String {
        let mut hasher = bulla_blake3::Hasher::new_derive_key("bulla threshold v1 fingerprint of a card");
        for part in [self.name.as_str().as_bytes(), self.signing_key.as_bytes(), self.recipient.as_bytes()] {
            hasher.update(&(part.len() as u64).to_be_bytes()).update(part);
        }
        let hex = hasher.finalize().to_hex();
        let groups: Vec<_> = hex.as_str().as_bytes()[..32].chunks(4).map(String::from_utf8_lossy).collect();
        groups.join("-")
    }

    /// Checks what its types do not.
    pub(crate) fn check(&self) -> Result<()> {
        if self.signing_key.algorithm() != Algorithm::Ed25519 {
            return Err(ThresholdError::malformed("the key of a card is not one of Ed25519"));
        }
        match self.recipient.parse() {
            Ok(Recipient::Age(recipient)) if recipient.to_string() == self.recipient => Ok(()),
            _ => Err(ThresholdError::malformed("the recipient of a card is not one of age")),
        }
    }

    /// Encrypts a secret to this participant alone.
    pub(crate) fn encrypt(&self, secret: &[u8], context: &[u8]) -> Result<Vec<u8>> {
        let recipient: Recipient = self.recipient.parse()?;
        Ok(encrypted_file::encrypt(secret, &[&recipient], context)?)
    }
}

/// The most bytes of a secret in JSON: a buffer that grows would leave copies behind.
const MAX_SECRET_LEN: usize = 2 << 20;

/// Writes a secret as JSON.
pub(crate) fn secret_json(secret: &impl Serialize) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_SECRET_LEN));
    serde_json::to_writer(&mut *bytes, secret).expect("plain structures serialize");
    assert!(bytes.len() <= MAX_SECRET_LEN, "the messages of one session fit");
    bytes
}

/// Reads a secret from JSON. The error does not quote it.
pub(crate) fn from_secret_json<'de, T: Deserialize<'de>>(bytes: &'de [u8], what: &str) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|_| {
        ThresholdError::new(
            ErrorCode::InvalidArgument,
            format!("the bytes are not the {what}: damaged or newer"),
        )
    })
}
