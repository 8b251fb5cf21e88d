//! What handlers take from a request.

mod base64;
mod caller;
mod content;
mod key;
mod list;
mod parameters;
mod secret;
mod site;

pub(crate) use self::base64::{decode, decode_into, encode};
pub(crate) use self::caller::{Caller, CallerSlot, Connected, Connection, Peer, token};
pub(crate) use self::content::{Content, parse};
pub(crate) use self::key::{exact, resolve};
pub(crate) use self::list::{Items, List};
pub(crate) use self::parameters::{Path, Query};
pub(crate) use self::secret::{SecretContent, SecretProof, SecretText, decode_secret, no_store, secret_json};
pub(crate) use self::site::Proof;
