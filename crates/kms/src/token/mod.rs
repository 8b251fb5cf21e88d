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
//!
//! ```
//! use bulla_kms::token::{
//!     Grant, GrantedKeys, Holder, Revocations, Token, TokenLimits, TokenOperation, TokenRequest,
//! };
//! use bulla_kms::{Algorithm, Keystore, Name, NewKey, Timestamp};
//!
//! let keystore = Keystore::in_memory()?;
//! let tenant: Name = "local".parse()?;
//! let key = keystore.create_key(NewKey::new(tenant.clone(), "files".parse()?, Algorithm::Ed25519))?;
//! let root = keystore.create_token_root(&tenant)?;
//! let root = keystore.public_key(&root)?;
//!
//! let now = Timestamp::now()?;
//! let soon = Timestamp::from_unix_millis(now.unix_millis() + 60_000)?;
//! let operations = vec![TokenOperation::Sign, TokenOperation::Verify];
//! let grant = Grant::new(tenant.clone(), GrantedKeys::All, operations, soon)
//!     .holder(Holder::named("build", "release"));
//! let text = keystore.mint_token(&grant)?.expose().to_owned();
//!
//! // The holder passes on less: one key, one operation, and no longer than the token itself.
//! let limits = TokenLimits::default()
//!     .keys(vec![key.key_id().clone()])
//!     .operations(vec![TokenOperation::Sign])
//!     .expires(soon);
//! let weaker = text.parse::<Token>()?.attenuate(&limits)?;
//! assert_eq!(weaker.inspect()?.blocks.len(), 2);
//!
//! // A program that has only the root key's public half decides about a request.
//! let (trusted, revoked) = (|version| (version == 1).then(|| root.clone()), Revocations::default());
//! let sign = TokenRequest::on_key(TokenOperation::Sign, key.key_id(), now);
//! let create = TokenRequest::in_tenant(TokenOperation::Create, &tenant, now);
//! assert_eq!(sign.tenant(), create.tenant());
//! weaker.authorize(trusted, &sign, &revoked)?;
//! assert!(weaker.authorize(trusted, &create, &revoked).is_err());
//!
//! // Or it verifies the token once, and then asks for its rights.
//! let rights = weaker.rights(trusted, &revoked)?;
//! assert!(rights.permits(&sign).is_ok() && rights.permits(&create).is_err());
//! assert_eq!((rights.tenant(), rights.operations()), (&tenant, &[TokenOperation::Sign][..]));
//! assert!(rights.keys().is_some_and(|keys| keys.contains(key.key_id())));
//! assert!(rights.expires() <= soon);
//! assert_eq!(rights.holder().map(Holder::as_str), Some("build/release"));
//! assert_eq!(rights.token().root_version, 1);
//! # Ok::<(), bulla_kms::KmsError>(())
//! ```

mod authorize;
mod biscuit;
mod datalog;
mod grant;

pub use self::authorize::{Revocations, Rights, VerifiedToken};
pub use self::biscuit::{Block, Inspection, MAX_BLOCKS, MAX_TOKEN_LEN, Token};
pub use self::grant::{Grant, GrantedKeys, Holder, TokenLimits, TokenOperation, TokenRequest};
pub use crate::id::TOKEN_ROOT_PURPOSE;
