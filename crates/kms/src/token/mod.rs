//! Capability tokens. A token works for anyone who holds it. Tokens are Biscuits
//! (<https://www.biscuitsec.org>, format 3): anyone can check a token with only a public key, and
//! its holder can pass on a weaker token without asking.
//!
//! A token begins with a [`Grant`], signed by a root key: a tenant, keys, [`TokenOperation`]s, and
//! an expiry time. Each block that a holder adds ([`Token::attenuate`]) can only restrict: no block
//! can permit what the grant does not.
//!
//! A tenant's root key is its key with the label and the purpose [`TOKEN_ROOT_PURPOSE`], an Ed25519
//! key in the keystore. It signs only tokens. It rotates like every key: a token names the version
//! that signed it, and stops working when that version is revoked. Disabling the root key stops all
//! tokens of the tenant. A revocation id ([`Revocations`]) stops one token and all tokens made from
//! it.
//!
//! A caller who may create or import keys with that purpose can mint capabilities. Never let a
//! tenant's token grant that.
//!
//! `spec/tokens.md` has the facts and rules.

mod authorize;
mod biscuit;
mod datalog;
mod grant;

pub use self::authorize::{Revocations, Rights, VerifiedToken};
pub use self::biscuit::{Block, Inspection, MAX_BLOCKS, MAX_TOKEN_LEN, Token};
pub use self::grant::{Grant, GrantedKeys, Holder, TokenLimits, TokenOperation, TokenRequest};
pub use crate::id::TOKEN_ROOT_PURPOSE;
