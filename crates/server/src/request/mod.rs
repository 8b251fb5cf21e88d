//! What handlers take from a request.

mod base64;
mod caller;
mod content;
mod key;

pub(crate) use self::base64::{decode, decode_into, encode};
pub(crate) use self::caller::{Caller, Peer, Witness};
pub(crate) use self::content::{Content, parse};
pub(crate) use self::key::{exact, resolve};
