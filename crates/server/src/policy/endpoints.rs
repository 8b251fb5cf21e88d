//! What a token may do below `/v1`, by path and capability.
//!
//! A token with policies has, for each request, the operations of this table and no others. So
//! whatever a policy says, nothing else is done.

use bulla_kms::token::TokenOperation;
use bulla_kms::token::TokenOperation::{
    Create, Decrypt, Destroy, Encrypt, Export, ExportPlaintext, GenerateDataKey, Import, Mac, Read, Rewrap,
    Rotate, Sign, Update, Verify, VerifyMac,
};

use super::rule::Capability;

/// An endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Its path below `/v1/`. `+` stands for a name.
    pub(crate) path: &'static str,
    /// One for each kind of request.
    pub(crate) demands: &'static [Demand],
}

/// A kind of request: the capability that it needs, and the operations that it may then do.
#[derive(Debug)]
pub(crate) struct Demand {
    pub(crate) capability: Capability,
    pub(crate) operations: &'static [TokenOperation],
}

impl Demand {
    /// Whether the operations are those of the endpoint, and not all that the token has.
    pub(crate) fn is_about_keys(&self) -> bool {
        self.operations.len() < TokenOperation::ALL.len()
    }
}

const fn on(path: &'static str, demands: &'static [Demand]) -> Endpoint {
    Endpoint { path, demands }
}

macro_rules! demands {
    ($($capability:ident: $operations:expr),+) => {
        &[$(Demand { capability: Capability::$capability, operations: $operations }),+]
    };
}

const PLAIN_UPDATE: &[Demand] = demands!(Update: &[]);
const PLAIN_READ: &[Demand] = demands!(Read: &[]);
const PLAIN_READ_AND_UPDATE: &[Demand] = demands!(Read: &[], Update: &[]);
/// What is about a token itself shows its operations, and carries out none.
const TOKEN_UPDATE: &[Demand] = demands!(Update: TokenOperation::ALL);
const TOKEN_READ: &[Demand] = demands!(Read: TokenOperation::ALL);
const SIGNING: &[Demand] = demands!(Update: &[Sign]);
const VERIFYING: &[Demand] = demands!(Update: &[Verify, VerifyMac]);
/// With `force`, a key that has the name loses it.
const RESTORING: &[Demand] = demands!(Update: &[Import, Update]);
const MACS: &[Demand] = demands!(Update: &[Mac]);
const POLICIES: &[Demand] = demands!(List: &[Read]);
const POLICY: &[Demand] = demands!(Read: &[Read]);

impl Endpoint {
    /// All that need a token. What no token may do, whatever it permits, is missing: secret ids,
    /// for example, are made by callers who may mint.
    pub(crate) const ALL: &[Self] = &[
        on("transit/keys", demands!(List: &[Read])),
        on("transit/keys/+", demands!(Read: &[Read], Update: &[Create, Read], Delete: &[Destroy])),
        on("transit/keys/+/rotate", demands!(Update: &[Rotate])),
        on("transit/keys/+/config", demands!(Update: &[Update])),
        on("transit/keys/+/trim", demands!(Update: &[Update])),
        on("transit/keys/+/import", demands!(Update: &[Import])),
        on("transit/keys/+/import_version", demands!(Update: &[Import])),
        on("transit/keys/+/csr", SIGNING),
        on("transit/keys/+/set-certificate", demands!(Update: &[Update])),
        on("transit/backup/+", demands!(Read: &[Export])),
        on("transit/restore", RESTORING),
        on("transit/restore/+", RESTORING),
        on("transit/config/keys", PLAIN_READ_AND_UPDATE),
        on("transit/cache-config", PLAIN_READ_AND_UPDATE),
        on("transit/wrapping_key", demands!(Read: &[Import])),
        on("transit/export/+/+", demands!(Read: &[ExportPlaintext, Read])),
        on("transit/export/+/+/+", demands!(Read: &[ExportPlaintext, Read])),
        on("transit/byok-export/+/+", demands!(Read: &[Export, Read])),
        on("transit/byok-export/+/+/+", demands!(Read: &[Export, Read])),
        on("transit/encrypt/+", demands!(Create: &[Encrypt, Create], Update: &[Encrypt])),
        on("transit/decrypt/+", demands!(Update: &[Decrypt])),
        on("transit/rewrap/+", demands!(Update: &[Rewrap])),
        on("transit/datakey/+/+", demands!(Update: &[GenerateDataKey])),
        on("transit/sign/+", SIGNING),
        on("transit/sign/+/+", SIGNING),
        on("transit/verify/+", VERIFYING),
        on("transit/verify/+/+", VERIFYING),
        on("transit/hmac/+", MACS),
        on("transit/hmac/+/+", MACS),
        on("transit/random", PLAIN_UPDATE),
        on("transit/random/+", PLAIN_UPDATE),
        on("transit/random/+/+", PLAIN_UPDATE),
        on("transit/hash", PLAIN_UPDATE),
        on("transit/hash/+", PLAIN_UPDATE),
        on("auth/token/create", TOKEN_UPDATE),
        on("auth/token/lookup", demands!(Read: TokenOperation::ALL, Update: TokenOperation::ALL)),
        on("auth/token/lookup-accessor", TOKEN_UPDATE),
        on("auth/token/lookup-self", TOKEN_READ),
        on("auth/token/renew", TOKEN_UPDATE),
        on("auth/token/renew-accessor", TOKEN_UPDATE),
        on("auth/token/renew-self", TOKEN_UPDATE),
        on("auth/token/revoke", TOKEN_UPDATE),
        on("auth/token/revoke-accessor", TOKEN_UPDATE),
        on("auth/token/revoke-self", TOKEN_UPDATE),
        on("sys/capabilities", TOKEN_UPDATE),
        on("sys/capabilities-self", TOKEN_UPDATE),
        on("sys/internal/ui/mounts/+", PLAIN_READ),
        on("sys/internal/ui/mounts/+/+", PLAIN_READ),
        on("sys/mounts", PLAIN_READ),
        on("sys/policies/acl", POLICIES),
        on("sys/policies/acl/+", POLICY),
        on("sys/policy", demands!(List: &[Read], Read: &[Read])),
        on("sys/policy/+", POLICY),
        on("sys/seal", demands!(Update: &[Update])),
        on("sys/wrapping/lookup", demands!(Read: TokenOperation::ALL, Update: TokenOperation::ALL)),
        on("sys/wrapping/rewrap", PLAIN_UPDATE),
        on("sys/wrapping/unwrap", PLAIN_UPDATE),
        on("sys/wrapping/wrap", PLAIN_UPDATE),
    ];

    /// Those that take no parameters, although clients send POST.
    const WITHOUT_BODY: [&str; 4] =
        ["transit/keys/+/rotate", "auth/token/renew-self", "auth/token/revoke-self", "sys/seal"];

    /// Whether the endpoint reads the body of a request.
    pub(crate) fn reads_body(&self) -> bool {
        !Self::WITHOUT_BODY.contains(&self.path)
    }

    /// Whether a request also needs the capability `sudo`.
    pub(crate) fn needs_sudo(&self) -> bool {
        self.path == "sys/seal"
    }

    /// The endpoint at a path.
    pub(crate) fn at(path: &str) -> Option<&'static Self> {
        let parts = || path.trim_end_matches('/').split('/');
        Self::ALL.iter().find(|endpoint| {
            let names = endpoint.path.split('/');
            names.clone().count() == parts().count()
                && names.zip(parts()).all(|(name, part)| name == part || (name == "+" && !part.is_empty()))
        })
    }

    /// What a request needs that has this capability; none if the endpoint takes no such request.
    pub(crate) fn demand(&self, capability: Capability) -> Option<&Demand> {
        self.demands.iter().find(|demand| demand.capability == capability)
    }

    /// Whether a pattern may match a path of the endpoint.
    pub(super) fn may_be_at(&self, pattern: &str) -> bool {
        let (pattern, is_prefix) = match pattern.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (pattern, false),
        };
        let lists = self.demand(Capability::List).is_some();
        let mut names: Vec<_> = self.path.split('/').collect();
        let parts: Vec<_> = pattern.split('/').collect();
        if lists && parts.len() == names.len() + 1 {
            // The path of a list may end with a slash.
            names.push("");
        }
        let (last, before) = parts.split_last().expect("a text has a part");
        // The engine may have other mounts: the settings say which.
        if names[0] == "transit" && !["auth", "sys"].contains(&parts[0]) && parts.len() > 1 {
            names[0] = parts[0];
        }
        let matches = |(part, name): (&&str, &&str)| part == name || *part == "+" || *name == "+";
        if parts.len() > names.len() || (!is_prefix && parts.len() != names.len()) {
            return false;
        }
        let end = names[before.len()];
        let ends = if is_prefix { end == "+" || end.starts_with(last) } else { matches((last, &end)) };
        ends && before.iter().zip(&names).all(matches)
    }
}
