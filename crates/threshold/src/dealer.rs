//! A dealer: one who has a whole key, splits it, and is trusted to forget it.

use std::collections::BTreeMap;

use bulla_ed25519::SigningKey;
use frost_ed25519::keys::{self, IdentifierList, KeyPackage, SecretShare, SigningShare};
use rand_core::OsRng;
use zeroize::Zeroizing;

use crate::board::Board;
use crate::error::{ErrorCode, Result, ThresholdError};
use crate::group::Group;
use crate::keygen::check_card;
use crate::message::{Encrypted, Message, MessageContent};
use crate::participant::{Card, ParticipantKeys};
use crate::share::KeyShare;

/// Splits an existing key among a group, whose public key stays that of the key.
///
/// The dealer had the whole key, and so has whoever gets it from the dealer's machine or from a
/// backup of it. [`KeyGeneration`](crate::KeyGeneration) has no such person: prefer it for new
/// keys.
///
/// Returns one message for all participants, in which each share is encrypted to its holder.
///
/// ```
/// use bulla_ed25519::SigningKey;
/// use bulla_threshold::{Group, ParticipantKeys, deal, take_dealt};
///
/// let keys = ["ann", "bob"].map(|name| ParticipantKeys::generate(name.parse().unwrap()).unwrap());
/// let dealer = ParticipantKeys::generate("dealer".parse()?)?; let group =
/// Group::new("releases".parse()?, 2, keys.iter().map(ParticipantKeys::card).collect())?; let
/// proposal = group.propose(&dealer)?;
///
/// let key = SigningKey::from_bytes(&[7; 32]);
/// let dealt = deal(&dealer, &proposal, &key)?;
/// let share = take_dealt(&keys[1], &proposal, &dealt, &dealer.card())?;
/// assert_eq!(share.public_key().as_bytes(), key.verifying_key().as_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of [`Group::of`]; [`ErrorCode::Encryption`].
pub fn deal(dealer: &ParticipantKeys, proposal: &Message, key: &SigningKey) -> Result<Message> {
    let group = Group::of(proposal)?;
    let failed = |error| group.blame(&error, "the key cannot be split");
    let scalar = Zeroizing::new(key.to_scalar().to_bytes());
    let key = frost_ed25519::SigningKey::deserialize(&*scalar).map_err(failed)?;
    let count = u16::try_from(group.participants().len()).expect("the number of participants is bounded");
    let (shares, public) =
        keys::split(&key, count, group.threshold(), IdentifierList::Default, &mut OsRng).map_err(failed)?;
    let board = Board::new(proposal.digest(), group.clone());
    let mut encrypted = BTreeMap::new();
    let mut commitment = None;
    for card in group.participants() {
        let share = &shares[&group.identifier(&card.name)?];
        commitment = Some(share.commitment().clone());
        let secret = Zeroizing::new(share.signing_share().serialize());
        let context = board.context("dealt", dealer.name(), &card.name);
        encrypted.insert(card.name.clone(), Encrypted(card.encrypt(&secret, &context)?));
    }
    let commitment = commitment.expect("a group has participants");
    Message::sign(dealer, board.session, MessageContent::Dealt { public, commitment, shares: encrypted })
}

/// Takes one's share of a key that a dealer split.
///
/// # Errors
/// [`ErrorCode::BadSignature`]; [`ErrorCode::WrongSession`]; [`ErrorCode::Misbehavior`] if the
/// share is not the one that the dealer committed to.
pub fn take_dealt(
    keys: &ParticipantKeys,
    proposal: &Message,
    dealt: &Message,
    dealer: &Card,
) -> Result<KeyShare> {
    let group = Group::of(proposal)?;
    check_card(keys, &group)?;
    dealt.verify(dealer)?;
    if dealt.session() != proposal.digest() {
        let text = "the shares were dealt to another group";
        return Err(ThresholdError::new(ErrorCode::WrongSession, text));
    }
    let wrong = || ThresholdError::misbehavior(&dealer.name, "dealt a wrong share");
    let MessageContent::Dealt { public, commitment, shares } = dealt.content() else { return Err(wrong()) };
    let board = Board::new(dealt.session(), group);
    let encrypted = shares.get(keys.name()).ok_or_else(wrong)?;
    let context = board.context("dealt", &dealer.name, keys.name());
    let secret = keys.decrypt(&encrypted.0, &context).map_err(|_| wrong())?;
    let secret = SigningShare::deserialize(&secret).map_err(|_| wrong())?;
    let share = SecretShare::new(board.group.identifier(keys.name())?, secret, commitment.clone());
    // It checks the share against the commitment, and the commitment says what all others got.
    let key = KeyPackage::try_from(share).map_err(|_| wrong())?;
    let names = board.group.names().map(|name| board.group.identifier(name)).collect::<Result<_>>()?;
    let expected = keys::PublicKeyPackage::from_commitment(&names, commitment).map_err(|_| wrong())?;
    if expected.verifying_shares() != public.verifying_shares()
        || expected.verifying_key() != public.verifying_key()
    {
        return Err(wrong());
    }
    KeyShare::new(proposal.clone(), keys.name().clone(), 0, key, public.clone()).map_err(|_| wrong())
}
