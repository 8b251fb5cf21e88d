//! A caller's rights, whichever credential proved them.

use std::collections::{BTreeSet, HashSet};

use bulla_kms::token::{Rights, TOKEN_ROOT_PURPOSE, TokenOperation};
use bulla_kms::{JWT_PURPOSE, KeyId, Name, Timestamp};

/// A set of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OperationSet(u32);

impl OperationSet {
    pub(crate) const ALL: Self = Self(u32::MAX);
    /// What a caller of the settings may do if they name no operations: everything but two things.
    /// Private keys leave as plain text, and are used without their approvals, only by operations
    /// that the settings name.
    pub(crate) const UNNAMED: Self =
        Self(!(1 << TokenOperation::ExportPlaintext as u32 | 1 << TokenOperation::OverrideApproval as u32));

    /// The operations that are in both.
    pub(crate) fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn contains(self, operation: TokenOperation) -> bool {
        self.0 & 1 << operation as u32 != 0
    }
}

impl<'a> FromIterator<&'a TokenOperation> for OperationSet {
    fn from_iter<I: IntoIterator<Item = &'a TokenOperation>>(operations: I) -> Self {
        Self(operations.into_iter().fold(0, |set, operation| set | 1 << *operation as u32))
    }
}

/// What a caller may do: operations, on keys of one tenant, until a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) tenant: Name,
    pub(crate) operations: OperationSet,
    /// None for all keys of the tenant, and for operations that concern no key.
    pub(crate) keys: Option<BTreeSet<KeyId>>,
    /// Policies of the tenant. Each set must permit a request; with none, the rest alone decides.
    pub(crate) policies: Vec<Vec<Name>>,
    pub(crate) expires: Option<Timestamp>,
    /// Whether the caller may mint tokens and revoke those of others. A token never gives that.
    pub(crate) can_mint_tokens: bool,
}

/// Whether keys of a purpose sign what lets their holders in: tokens, or JWTs of the service. Only
/// a caller who may mint makes or changes such a key. Whoever brings a key of their own could else
/// sign for anybody.
pub(crate) fn grants_access(purpose: &Name) -> bool {
    [TOKEN_ROOT_PURPOSE, JWT_PURPOSE].contains(&purpose.as_str())
}

impl Authority {
    /// Whether the caller may do this with a key.
    pub(crate) fn permits(&self, operation: TokenOperation, key: &KeyId) -> bool {
        self.operations.contains(operation)
            && self.is_about(key)
            && (self.can_mint_tokens || !changes(operation) || !grants_access(key.purpose()))
    }

    /// Whether the caller has rights on a key.
    pub(crate) fn is_about(&self, key: &KeyId) -> bool {
        *key.tenant() == self.tenant && self.keys.as_ref().is_none_or(|keys| keys.contains(key))
    }

    /// Whether the caller may do this in its tenant, with a key that does not exist yet or with
    /// none.
    pub(crate) fn permits_in_tenant(&self, operation: TokenOperation) -> bool {
        self.operations.contains(operation) && self.keys.is_none()
    }

    /// Whether the authority has ended. Tokens count whole seconds, and so does everything else.
    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| now.unix_millis() / 1000 > expires.unix_millis() / 1000)
    }
}

/// Whether an operation changes or copies a key. On the root key of a tenant's tokens, that makes
/// or stops all of them: so only a caller who mints may do it.
fn changes(operation: TokenOperation) -> bool {
    use TokenOperation::{CancelDestruction, Destroy, Export, ExportPlaintext, Import, Rotate, Update};
    matches!(operation, Rotate | Update | Destroy | CancelDestruction | Import | Export | ExportPlaintext)
}

impl From<&Rights> for Authority {
    fn from(rights: &Rights) -> Self {
        Self {
            tenant: rights.tenant().clone(),
            operations: rights.operations().iter().collect(),
            keys: rights.keys().cloned(),
            policies: rights.policies().iter().map(|names| each_once(names)).collect(),
            expires: Some(rights.expires()),
            can_mint_tokens: false,
        }
    }
}

/// The same names, each once: the holder of a token may have written one a thousand times.
fn each_once(names: &[Name]) -> Vec<Name> {
    let mut seen = HashSet::new();
    names.iter().filter(|name| seen.insert(*name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    fn key(tenant: &str, number: u128) -> KeyId {
        format!("{tenant}/files/ed25519/00000000-0000-7000-8000-{number:012x}").parse().unwrap()
    }

    fn authority(operations: &[TokenOperation], keys: Option<Vec<KeyId>>) -> Authority {
        let keys = keys.map(|keys| keys.into_iter().collect());
        let operations = operations.iter().collect();
        let policies = Vec::new();
        Authority { tenant: name("local"), operations, keys, policies, expires: None, can_mint_tokens: false }
    }

    #[test]
    fn an_authority_is_for_its_operations_its_keys_and_its_tenant() {
        for &operation in TokenOperation::ALL {
            let one = authority(&[TokenOperation::Sign, TokenOperation::Rotate], Some(vec![key("local", 1)]));
            let granted = matches!(operation, TokenOperation::Sign | TokenOperation::Rotate);
            assert_eq!(one.permits(operation, &key("local", 1)), granted);
            assert!(!one.permits(operation, &key("local", 2)));
            assert!(!one.permits(operation, &key("other", 1)));
            assert!(!one.permits_in_tenant(operation), "a right on some keys is no right on the tenant");
            let all = authority(&[operation], None);
            assert!(all.permits(operation, &key("local", 7)) && all.permits_in_tenant(operation));
            assert!(!all.permits(operation, &key("other", 7)));
        }
    }

    #[test]
    fn only_who_mints_changes_the_root_key_of_tokens() {
        let root = "local/tokens/ed25519/00000000-0000-7000-8000-000000000001".parse().unwrap();
        let mut one = authority(TokenOperation::ALL, None);
        for &operation in TokenOperation::ALL {
            one.can_mint_tokens = false;
            assert_eq!(one.permits(operation, &root), !changes(operation), "{operation:?}");
            one.can_mint_tokens = true;
            assert!(one.permits(operation, &root));
        }
    }

    #[test]
    fn no_token_takes_out_a_key_that_lets_its_holder_in() {
        let mut one = authority(TokenOperation::ALL, None);
        for purpose in [TOKEN_ROOT_PURPOSE, JWT_PURPOSE] {
            let key =
                format!("local/{purpose}/ed25519/00000000-0000-7000-8000-000000000001").parse().unwrap();
            for operation in [TokenOperation::Export, TokenOperation::ExportPlaintext] {
                one.can_mint_tokens = false;
                assert!(!one.permits(operation, &key), "{operation:?} {purpose}");
                one.can_mint_tokens = true;
                assert!(one.permits(operation, &key), "{operation:?} {purpose}");
            }
        }
    }

    #[test]
    fn an_authority_ends_after_its_last_second() {
        let at = |millis| Timestamp::from_unix_millis(millis).unwrap();
        let mut authority = authority(&[], None);
        assert!(!authority.has_expired(at(u64::from(u32::MAX))));
        authority.expires = Some(at(5_000));
        assert!(!authority.has_expired(at(5_999)));
        assert!(authority.has_expired(at(6_000)));
    }
}
