//! Ed25519 keys that no single machine holds.
//!
//! A key belongs to a group of participants. Each has a share of it, and a number of them, the
//! threshold, sign together. Fewer can do nothing, and know nothing of the key. What they sign is
//! an ordinary signature of Ed25519: whoever verifies it cannot tell.
//!
//! The mathematics is FROST (RFC 9591), by the crate `frost-ed25519`. This crate makes it hard to
//! misuse:
//!
//! - [`ParticipantKeys`] sign all messages, and shares are encrypted to them. [`Card`] is their
//!   public side, [`Group`] the list of cards with a threshold.
//! - [`KeyGeneration`] makes a key without a dealer, and refreshes the shares of a key. [`deal`]
//!   splits a key that somebody has. [`Repair`] gives back a lost share. [`Resharing`] gives other
//!   holders shares of the same key, with another threshold if wanted, and [`Handover`] says when
//!   that counts.
//! - [`SigningSession`] signs. Its nonces exist in memory alone and are used once.
//! - [`NonceStock`] and [`combine`] sign in one round trip, for machines that are always there.
//! - A [`Message`] is one line of text, bound to its session, and reaches the others by any
//!   channel. Whoever sends a wrong one is named in the error: [`ThresholdError::culprits`].
//!
//! Each session is a state machine: give it the messages of the others, let it advance, and send
//! all its messages to all others. The order does not matter, nor do repetitions.
//!
//! What it does not have: keys of other algorithms.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod board;
mod dealer;
mod error;
mod group;
mod keygen;
mod message;
mod nonce;
mod order;
mod participant;
mod repair;
mod reshare;
mod share;
mod signing;
mod stock;

pub use board::Receipt;
pub use dealer::{deal, take_dealt};
pub use error::{ErrorCode, Result, ThresholdError};
pub use group::{Group, MAX_PARTICIPANTS};
pub use keygen::KeyGeneration;
pub use message::{MAX_MESSAGE_LEN, MAX_MESSAGES, Message, SessionId};
pub use nonce::{Nonce, NonceCommitments};
pub use order::{OrderShare, PreparedOrder, SigningOrder, combine};
pub use participant::{Card, ParticipantKeys};
pub use repair::Repair;
pub use reshare::{Handover, Resharing, confirm, withdraw};
pub use share::{KeyShare, reconstruct};
pub use signing::{MAX_JOB_LEN, MAX_STEPS, SigningSession, Waiting};
pub use stock::{MAX_READY_NONCES, NonceId, NonceStock, ReadyNonce};

#[cfg(test)]
mod tests;
