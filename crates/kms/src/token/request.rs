//! The request that is checked against a token.

use super::grant::TokenOperation;
use crate::id::{KeyId, Name};
use crate::time::Timestamp;

/// The operation that a token's holder requests.
#[derive(Clone, Copy, Debug)]
pub struct TokenRequest<'a> {
    pub(super) operation: TokenOperation,
    pub(super) tenant: &'a Name,
    pub(super) key: Option<&'a KeyId>,
    pub(super) now: Timestamp,
}

impl<'a> TokenRequest<'a> {
    /// A request about a key, in any version.
    pub fn on_key(operation: TokenOperation, key: &'a KeyId, now: Timestamp) -> Self {
        Self { operation, tenant: key.tenant(), key: Some(key), now }
    }

    /// A request in a tenant without a key, for example to create one: only for tokens with
    /// [`GrantedKeys::All`](super::GrantedKeys::All).
    pub fn in_tenant(operation: TokenOperation, tenant: &'a Name, now: Timestamp) -> Self {
        Self { operation, tenant, key: None, now }
    }

    /// The tenant that the request concerns.
    pub fn tenant(&self) -> &'a Name {
        self.tenant
    }
}
