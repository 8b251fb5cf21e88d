//! Capability tokens: who holds one may do what it says. They are Biscuits (<https://www.biscuitsec.org>, format 3), so that anybody
//! can check one with a public key alone, and its holder can hand on a weaker one without asking.
//!
//! A token begins with a [`Grant`], signed by a root key: a tenant, keys, [`Operation`]s, and when it ends. Each block that a holder adds
//! ([`Token::attenuate`]) can only take away: what the grant does not say, no block can.
//!
//! A tenant's root key is its key with the label and the purpose [`ROOT`], an Ed25519 key in the keystore. It signs tokens and
//! nothing else, and it rotates like every key: a token names the version that signed it, and falls with it when that is
//! revoked. Disabling the root key stops all tokens of the tenant. One token, with all that descend from it, is stopped by its
//! revocation id ([`Revocations`]). Who may create or import keys with that purpose gives out capabilities: an interface to others must
//! not grant that by a token of the tenant.
//!
//! `spec/tokens.md` has the facts and rules.

mod authorize;
mod bearer;
mod datalog;
mod form;
mod grant;
mod request;
mod revocation;

pub use self::authorize::Permit;
pub use self::bearer::{Block, Inspection, MAX_BLOCKS, MAX_TOKEN, Token};
pub use self::grant::{Grant, Keys, Limits, Operation, ROOT};
pub use self::request::Request;
pub use self::revocation::Revocations;
