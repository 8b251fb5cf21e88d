//! `/v1/sys/capabilities-self` and `/v1/sys/capabilities`: what a token may do at which path.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::response::Response;
use bulla_kms::token::TokenOperation;
use bulla_kms::{Name, Timestamp};
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{self, Envelope, Result, VaultError, VaultErrorBody};
use super::keys::is_visible;
use super::request::{OptionalSecret, OptionalText, SecretVaultContent, VaultCaller};
use crate::access::{Authority, Session};
use crate::policy::CapabilitySet;
use crate::request::{Caller, LIST_BOUND};
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(
            routes!(transit_capabilities_self).map(|router| router.put(erased(transit_capabilities_self))),
        )
        .routes(routes!(transit_capabilities).map(|router| router.put(erased(transit_capabilities))))
}

/// What every caller may do to its own token, and to those that were made from it.
const TOKEN_PATHS: [&str; 7] =
    ["lookup-accessor", "renew", "renew-accessor", "renew-self", "revoke", "revoke-accessor", "revoke-self"];

/// The most paths of one request.
const MAX_PATHS: usize = 1000;

/// Texts: a list of them, or one text with commas.
#[derive(Debug, Default)]
pub(super) struct TextList<'a>(pub(super) Vec<Cow<'a, str>>);

/// A list of texts, or one text with commas.
impl<'de: 'a, 'a> Deserialize<'de> for TextList<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = TextList<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{LIST_BOUND}{MAX_PATHS} entries")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let paths = text.split(',').map(str::trim).filter(|path| !path.is_empty());
                let paths: Vec<_> =
                    paths.take(MAX_PATHS + 1).map(|path| Cow::Owned(path.to_owned())).collect();
                if paths.len() > MAX_PATHS {
                    return Err(E::invalid_length(paths.len(), &self));
                }
                Ok(TextList(paths))
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
                Ok(TextList::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut paths = Vec::new();
                while let Some(path) = entries.next_element::<OptionalText<'de>>()? {
                    if paths.len() == MAX_PATHS {
                        return Err(serde::de::Error::invalid_length(MAX_PATHS + 1, &self));
                    }
                    paths.extend(path.0);
                }
                Ok(TextList(paths))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

/// Paths, and for `sys/capabilities` the token that is asked about.
#[derive(Deserialize, ToSchema)]
struct TransitPaths<'a> {
    /// The token, for `sys/capabilities`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    token: OptionalSecret<'a>,
    /// The paths: a list, or a text with commas.
    #[serde(borrow, default)]
    #[schema(value_type = Vec<String>, max_items = 1000, example = json!(["transit/encrypt/orders"]))]
    paths: TextList<'a>,
    /// The older name of `paths`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 1000)]
    path: TextList<'a>,
}

/// What is permitted at each path.
#[derive(Serialize, ToSchema)]
struct Capabilities<'a> {
    /// That of the path, if there is one path.
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Vec<&'static str>>,
    /// That of each path, by its name.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    paths: BTreeMap<&'a str, Vec<&'static str>>,
}

/// Tell what the caller may do at these paths: `create`, `read`, `update`, `delete`, `list`, or
/// `deny`. PUT does the same.
#[utoipa::path(post, path = "/v1/sys/capabilities-self", tag = "transit", request_body = TransitPaths, extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "What is permitted", body = Envelope<Capabilities>), (status = "default", body = VaultErrorBody)))]
async fn transit_capabilities_self(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    body: SecretVaultContent,
) -> Result<Response> {
    let request: TransitPaths<'_> = body.parse_short()?;
    answer_capabilities(&worker, &caller, &caller.session, &request)
}

/// Tell what a token may do at these paths. PUT does the same.
#[utoipa::path(post, path = "/v1/sys/capabilities", tag = "transit", request_body = TransitPaths, extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "What is permitted", body = Envelope<Capabilities>), (status = "default", body = VaultErrorBody)))]
async fn transit_capabilities(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    body: SecretVaultContent,
) -> Result<Response> {
    let request: TransitPaths<'_> = body.parse_short()?;
    let token = request.token.as_deref().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| VaultError::invalid("no token found"))?;
    let session = worker.session(&caller.unsealed, token.as_bytes());
    let session = session.map_err(|_| VaultError::invalid("invalid token"))?;
    let now = Timestamp::now()?;
    session.check_time(now).map_err(|_| VaultError::invalid("invalid token"))?;
    answer_capabilities(&worker, &caller, &session, &request)
}

fn answer_capabilities(
    worker: &Worker,
    caller: &Caller,
    session: &Session,
    request: &TransitPaths<'_>,
) -> Result<Response> {
    let TextList(paths) = if request.paths.0.is_empty() { &request.path } else { &request.paths };
    if paths.is_empty() {
        return Err(VaultError::invalid("paths must be supplied"));
    }
    let found = paths.iter().map(|path| Ok((&**path, capabilities(worker, caller, session, path)?)));
    let paths = found.collect::<Result<BTreeMap<_, _>>>()?;
    let capabilities = paths.values().next().filter(|_| paths.len() == 1).cloned();
    Ok(answer::data(worker, &Capabilities { capabilities, paths }))
}

/// What a session may do at a path, in Vault's words and order.
fn capabilities(
    worker: &Worker,
    caller: &Caller,
    session: &Session,
    path: &str,
) -> Result<Vec<&'static str>> {
    let path = path.trim_start_matches('/');
    let path = path.strip_prefix("v1/").unwrap_or(path);
    if !session.acls.is_empty() {
        let permitted = session.acls.iter().map(|acl| acl.capabilities(path));
        return Ok(permitted.reduce(CapabilitySet::intersection).unwrap_or_default().words());
    }
    let mounts = worker.service.mounts();
    let at_mount = path.split_once('/').and_then(|(mount, rest)| {
        let keys = mounts.keys_tenant(&session.authority.tenant, mount)?;
        Some((session.at_mount(keys), format!("transit/{rest}")))
    });
    let (session, path) =
        at_mount.as_ref().map_or((session, path), |(session, path)| (session, path.as_str()));
    let found: Vec<_> = by_operations(worker, caller, session, path)?.into_iter().flatten().collect();
    Ok(if found.is_empty() { vec!["deny"] } else { found })
}

/// What the operations of a session permit at a path.
fn by_operations(
    worker: &Worker,
    caller: &Caller,
    session: &Session,
    path: &str,
) -> Result<Vec<Option<&'static str>>> {
    use TokenOperation::{
        Create, Decrypt, Destroy, Encrypt, GenerateDataKey, Import, Mac, Read, Rewrap, Rotate, Sign, Update,
        Verify, VerifyMac,
    };
    let parts: Vec<_> = path.split('/').collect();
    let authority = &session.authority;
    let creates = authority.permits_in_tenant(Create);
    let on = |name: &str| KeyPermissions::of(caller, session, name);
    let given = |permitted: bool, what: &'static str| permitted.then_some(what);
    Ok(match *parts.as_slice() {
        ["transit", "keys"] | ["transit", "keys", ""] => {
            vec![given(authority.operations.contains(Read), "list")]
        }
        ["transit", "keys", name] => {
            let key = on(name)?;
            let [creates, reads, deletes] = [creates, key.permits(Read), key.permits(Destroy)];
            vec![
                given(creates, "create"),
                given(deletes, "delete"),
                given(reads, "read"),
                given(creates, "update"),
            ]
        }
        ["transit", "keys", name, "rotate"] => vec![given(on(name)?.permits(Rotate), "update")],
        ["transit", "backup" | "restore" | "config" | "cache-config", ..] => {
            backup_capabilities(authority, &parts[1..], on)?
        }
        ["transit", "keys", name, "config" | "trim" | "set-certificate"] => {
            vec![given(on(name)?.permits(Update), "update")]
        }
        ["transit", "keys", _, "import"] => vec![given(authority.permits_in_tenant(Import), "update")],
        ["transit", "keys", name, "import_version"] => vec![given(on(name)?.permits(Import), "update")],
        ["transit", "wrapping_key"] => vec![given(authority.permits_in_tenant(Import), "read")],
        ["transit", "export" | "byok-export", ref rest @ ..] => {
            vec![given(permits_export(parts[1], rest, on)?, "read")]
        }
        ["transit", "encrypt", name] => {
            let encrypts = on(name)?.permits(Encrypt);
            vec![given(encrypts && creates, "create"), given(encrypts, "update")]
        }
        ["transit", "decrypt", name] => vec![given(on(name)?.permits(Decrypt), "update")],
        ["transit", "rewrap", name] => vec![given(on(name)?.permits(Rewrap), "update")],
        ["transit", "datakey", "plaintext" | "wrapped", name] => {
            vec![given(on(name)?.permits(GenerateDataKey), "update")]
        }
        ["transit", "sign", name] | ["transit", "sign", name, _] | ["transit", "keys", name, "csr"] => {
            vec![given(on(name)?.permits(Sign), "update")]
        }
        ["transit", "verify", name] | ["transit", "verify", name, _] => {
            let key = on(name)?;
            vec![given(key.permits(Verify) || key.permits(VerifyMac), "update")]
        }
        ["transit", "hmac", name] | ["transit", "hmac", name, _] => {
            vec![given(on(name)?.permits(Mac), "update")]
        }
        ["transit", "random" | "hash", ..] => vec![Some("update")],
        ["auth", ref rest @ ..] => auth_capabilities(session, rest),
        ["sys", ref rest @ ..] => sys_capabilities(worker, authority, rest),
        _ => Vec::new(),
    })
}

/// Whether a session may export by this path of `export` or `byok-export`.
fn permits_export<'a>(
    endpoint: &str,
    path: &[&str],
    on: impl Fn(&str) -> Result<KeyPermissions<'a>>,
) -> Result<bool> {
    let ([what, name] | [what, name, _]) = *path else { return Ok(false) };
    let key = on(name)?;
    Ok(match (endpoint, what) {
        ("byok-export", destination) => {
            key.permits(TokenOperation::Export) && on(destination)?.permits(TokenOperation::Read)
        }
        (_, "public-key" | "certificate-chain") => key.permits(TokenOperation::Read),
        _ => key.permits(TokenOperation::ExportPlaintext),
    })
}

/// What a caller may do at the paths of backups, and of the engine's settings.
fn backup_capabilities<'a>(
    authority: &Authority,
    path: &[&str],
    on: impl Fn(&str) -> Result<KeyPermissions<'a>>,
) -> Result<Vec<Option<&'static str>>> {
    let given = |permitted: bool, what: &'static str| permitted.then_some(what);
    Ok(match *path {
        ["backup", name] => vec![given(on(name)?.permits(TokenOperation::Export), "read")],
        ["restore"] | ["restore", _] => {
            vec![given(authority.permits_in_tenant(TokenOperation::Import), "update")]
        }
        ["config", "keys"] | ["cache-config"] => vec![Some("read"), Some("update")],
        _ => Vec::new(),
    })
}

/// What a caller may do at a path below `sys/`.
fn sys_capabilities(worker: &Worker, authority: &Authority, path: &[&str]) -> Vec<Option<&'static str>> {
    let reads = authority.permits_in_tenant(TokenOperation::Read);
    match *path {
        ["capabilities" | "capabilities-self"] | ["unseal"] => vec![Some("update")],
        ["policies", "acl"] | ["policies", "acl", ""] => vec![reads.then_some("list")],
        ["policy"] | ["policy", ""] => vec![reads.then_some("list"), reads.then_some("read")],
        ["policies", "acl", _] | ["policy", _] => vec![reads.then_some("read")],
        ["wrapping", "wrap" | "unwrap" | "rewrap"] => vec![Some("update")],
        ["wrapping", "lookup"] => vec![Some("read"), Some("update")],
        ["health" | "leader" | "seal-status" | "init" | "mounts"] => vec![Some("read")],
        ["seal"] => vec![is_operator(worker, authority).then_some("update")],
        _ => Vec::new(),
    }
}

/// What a session may do at a path below `auth/`.
fn auth_capabilities(session: &Session, path: &[&str]) -> Vec<Option<&'static str>> {
    let (mints, has_token) = (session.authority.can_mint_tokens, !session.revocation_ids.is_empty());
    let given = |permitted: bool| permitted.then_some("update");
    match *path {
        ["token", "lookup-self"] => vec![Some("read")],
        ["token", "lookup"] => vec![Some("read"), Some("update")],
        ["token", "create-orphan"] => vec![given(mints)],
        ["token", "create"] => vec![given(mints || has_token)],
        ["approle", "role", _, "role-id"] => vec![mints.then_some("read")],
        ["approle", "role", _, "secret-id"] => vec![mints.then_some("list"), given(mints)],
        ["approle", "role", _, "custom-secret-id"] => vec![given(mints)],
        ["approle", "role", _, "secret-id" | "secret-id-accessor", "lookup"] => vec![given(mints)],
        ["approle", "role", _, "secret-id" | "secret-id-accessor", "destroy"] => {
            vec![mints.then_some("delete"), given(mints)]
        }
        ["approle" | "cert" | "jwt" | "kubernetes", "login"] => vec![Some("update")],
        ["token", name] if TOKEN_PATHS.contains(&name) => vec![Some("update")],
        _ => Vec::new(),
    }
}

fn is_operator(worker: &Worker, authority: &Authority) -> bool {
    authority.tenant == worker.service.config.service.operator_tenant
        && authority.permits_in_tenant(TokenOperation::Update)
}

/// What a session may do with the key of a name.
struct KeyPermissions<'a> {
    session: &'a Session,
    /// None if there is no such key, and the name is one of a key that could be.
    key: Option<bulla_kms::KeyId>,
    is_name: bool,
}

impl<'a> KeyPermissions<'a> {
    fn of(caller: &Caller, session: &'a Session, name: &str) -> Result<Self> {
        let Ok(label) = name.parse::<Name>() else { return Ok(Self { session, key: None, is_name: false }) };
        let found = caller.unsealed.keystore.find(&session.authority.tenant, &label)?;
        let is_name = found.as_ref().is_none_or(is_visible);
        Ok(Self { session, key: found.filter(is_visible), is_name })
    }

    fn permits(&self, operation: TokenOperation) -> bool {
        match &self.key {
            Some(key) => self.session.authority.permits(operation, key),
            None => self.is_name && self.session.authority.permits_in_tenant(operation),
        }
    }
}
