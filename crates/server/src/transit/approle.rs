//! `/v1/auth/approle`: logging in with a role id and a secret id, and the secret ids of a role.
//!
//! Roles are settings. Only callers who may mint tokens make secret ids: a secret id gives tokens.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::request::handler::{erased, routes};
use axum::Extension;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bulla_kms::token::Holder;
use bulla_kms::{Code, KmsError, Timestamp};
use ipnet::IpNet;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use zeroize::Zeroizing;

use super::answer::{self, Envelope, Result, VaultError, VaultErrorBody};
use super::auth::{AnswerSubject, Auth, AuthAnswer};
use super::capabilities::TextList;
use super::request::{
    NamespaceOf, OptionalSecret, OptionalText, PathName, Seconds, SecretVaultBody, SecretVaultContent,
    VaultBody, VaultCaller, number, seconds,
};
use super::tokens::policy_names;
use crate::api::{MadeLogin, mint_login, with_policies};
use crate::config::AppRoleConfig;
use crate::error::{ApiError, ApiErrorCode};
use crate::login::{
    MAX_SECRET_ID_LEN, MIN_SECRET_ID_LEN, NewSecretId, SecretId, SecretIds, is_in, random_secret_id, role_id,
};
use crate::request::{Caller, Peer, no_store};
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    let listed = axum::routing::get(erased(approle_secret_ids)).fallback(erased(approle_list_method));
    OpenApiRouter::new()
        .route("/v1/auth/approle/role/{role}/secret-id/", listed)
        .routes(routes!(transit_login_approle).map(|router| router.put(erased(transit_login_approle))))
        .routes(routes!(approle_role_id))
        .routes(
            routes!(approle_new_secret_id, approle_secret_ids).map(|router| {
                router.put(erased(approle_new_secret_id)).fallback(erased(approle_list_method))
            }),
        )
        .routes(routes!(approle_custom_secret_id).map(|router| router.put(erased(approle_custom_secret_id))))
        .routes(routes!(approle_lookup_secret_id).map(|router| router.put(erased(approle_lookup_secret_id))))
        .routes(routes!(approle_destroy_secret_id).map(|router| {
            router.put(erased(approle_destroy_secret_id)).delete(erased(approle_destroy_secret_id))
        }))
        .routes(routes!(approle_lookup_accessor).map(|router| router.put(erased(approle_lookup_accessor))))
        .routes(routes!(approle_destroy_accessor).map(|router| {
            router.put(erased(approle_destroy_accessor)).delete(erased(approle_destroy_accessor))
        }))
}

/// A login with a role id and a secret id.
#[derive(Deserialize, ToSchema)]
struct AppRoleLogin<'a> {
    /// The id of a role of the settings.
    #[serde(borrow, default)]
    #[schema(value_type = String)]
    role_id: OptionalText<'a>,
    /// A secret id of the role.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    secret_id: OptionalSecret<'a>,
}

/// Vault's words: a caller does not learn which of the two is wrong.
fn not_known() -> VaultError {
    VaultError::invalid("invalid role or secret ID")
}

/// The caller who has logged in, and the role.
struct LoggedInRole {
    role: AppRoleConfig,
    holder: Holder,
    metadata: BTreeMap<String, String>,
}

/// Log in with a role id and a secret id. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/approle/login", tag = "transit", request_body = AppRoleLogin,
    security(()), extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The token", body = AuthAnswer), (status = "default", body = VaultErrorBody)))]
async fn transit_login_approle(
    State(worker): State<Worker>,
    NamespaceOf(namespace): NamespaceOf,
    peer: Option<Extension<Peer>>,
    body: SecretVaultBody,
) -> Result<Response> {
    let AppRoleLogin { role_id: id, secret_id } = body.parse()?;
    let address = peer.and_then(|Extension(peer)| peer.connection.address());
    // First of all: what is guessed here is guessed slowly.
    worker.service.count_login_try(address)?;
    let id = id.given().ok_or_else(|| VaultError::invalid("missing role_id"))?;
    let unsealed = worker.service.unsealed()?;
    let logins = worker.service.logins();
    let is_here = |role: &&AppRoleConfig| {
        namespace.as_ref().is_none_or(|namespace| namespace.as_str() == role.tenant.as_str())
    };
    let role = logins.approles().with_id(&unsealed.keystore, id).filter(is_here);
    let role = role.ok_or_else(not_known)?.clone();
    if !is_in(&role.secret_id_bound_cidrs, address) {
        tracing::info!(role = %role.name, "a login by AppRole is refused: it comes from another network");
        return Err(not_known());
    }
    let secret_id = secret_id.as_deref().filter(|text| !text.is_empty());
    let logged_in = match secret_id {
        None if role.bind_secret_id => return Err(VaultError::invalid("missing secret_id")),
        Some(secret_id) if role.bind_secret_id => {
            let secret_id = Zeroizing::new(secret_id.to_owned());
            use_secret_id(&worker, role, secret_id, address).await?.ok_or_else(not_known)?
        }
        _ => {
            let from = address.map_or_else(String::new, |address| address.to_canonical().to_string());
            let holder = Holder::named("approle", &format!("{}/{from}", role.name));
            LoggedInRole { role, holder, metadata: BTreeMap::new() }
        }
    };
    let LoggedInRole { role, holder, metadata } = logged_in;
    let MadeLogin { token, revocation_id, role, .. } = mint_login(&worker, role.token(), holder).await?;
    let policies = policy_names(&role.policies, role.operations.iter().copied());
    let mut auth = Auth::new(token, revocation_id, policies, role.lifetime_seconds);
    let mut shown = metadata;
    shown.insert("role_name".to_owned(), role.name.to_string());
    auth.metadata = Some(shown);
    Ok(auth.answer(&worker, role.tenant, Vec::new()))
}

/// Uses a secret id for one login; none if it is not accepted.
async fn use_secret_id(
    worker: &Worker,
    role: AppRoleConfig,
    secret_id: Zeroizing<String>,
    address: Option<IpAddr>,
) -> Result<Option<LoggedInRole>> {
    let (service, unsealed) = (Arc::clone(&worker.service), worker.service.unsealed()?);
    let queue = format!("approle {}", role.tenant);
    let taken = worker
        .run_anonymous(&queue, move || {
            let ids = SecretIds::new(&service.rows, &unsealed.keystore, &role);
            let taken = ids.take(&secret_id, address)?;
            Ok(taken.map(|SecretId { accessor, metadata, .. }| {
                // The audit log then tells which secret id was used.
                let holder = Holder::named("approle", &format!("{}/{accessor}", role.name));
                LoggedInRole { role, holder, metadata }
            }))
        })
        .await?;
    Ok(taken)
}

/// The role of a path, for a caller who may mint tokens of its tenant.
///
/// # Errors
/// The caller may not; there is no such role.
fn role_of(worker: &Worker, caller: &Caller, name: &str) -> Result<AppRoleConfig> {
    let authority = &caller.session.authority;
    if !authority.can_mint_tokens {
        return Err(ApiError::forbidden().into());
    }
    let logins = worker.service.logins();
    let found = logins.approles().named(authority.tenant.as_str(), name);
    let role = found.ok_or_else(|| VaultError::empty_not_found(format!("there is no AppRole {name}")))?;
    // A caller grants no more than it has: of a role with policies, the operations that they reach.
    let granted = with_policies(worker, role.token()).operations;
    let has_all = granted.iter().all(|operation| authority.operations.contains(*operation));
    if has_all && authority.keys.is_none() { Ok(role.clone()) } else { Err(ApiError::forbidden().into()) }
}

/// The id of a role.
#[derive(Serialize, ToSchema)]
struct RoleId {
    /// With this id and a secret id, programs log in.
    role_id: String,
}

/// Tell the id of a role.
#[utoipa::path(get, path = "/v1/auth/approle/role/{role}/role-id", tag = "transit",
    params(("role" = String, Path, description = "A role of the settings", example = "build")),
    extensions(("x-permission" = json!("minter"))),
    responses((status = 200, description = "The id", body = Envelope<RoleId>), (status = "default", body = VaultErrorBody)))]
async fn approle_role_id(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
) -> Result<Response> {
    let role = role_of(&worker, &caller, &name)?;
    Ok(answer::data(&worker, &RoleId { role_id: role_id(&caller.unsealed.keystore, &role) }))
}

/// A secret id to make.
#[derive(Deserialize, ToSchema)]
struct NewSecretIdBody<'a> {
    /// The secret id, for `custom-secret-id`: 20 to 1024 characters.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    secret_id: OptionalSecret<'a>,
    /// Names and values, as an object in a text. A login repeats them.
    #[serde(default, deserialize_with = "metadata")]
    #[schema(value_type = Option<String>)]
    metadata: BTreeMap<String, String>,
    /// The networks from which it is accepted. The role's count, too.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 1000, example = json!(["10.0.0.0/8"]))]
    cidr_list: TextList<'a>,
    /// Refused: tokens are not bound to networks.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 1000)]
    token_bound_cidrs: TextList<'a>,
    /// How many logins it is for: at most as many as the role says, which is the default.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    num_uses: Option<i64>,
    /// How long it lives: at most as long as the role says, which is the default.
    #[serde(default, deserialize_with = "seconds")]
    #[schema(value_type = Option<String>)]
    ttl: Option<Seconds>,
}

/// The most names in the metadata of a secret id.
const MAX_METADATA: usize = 64;

/// An object of texts, or such an object in a text.
fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct Pairs;
    impl<'de> Visitor<'de> for Pairs {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "an object of at most {MAX_METADATA} texts, or one in a text")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
            if text.is_empty() {
                return Ok(BTreeMap::new());
            }
            let mut inner = serde_json::Deserializer::from_str(text);
            let pairs = inner.deserialize_map(Self);
            pairs.map_err(|_| E::invalid_value(serde::de::Unexpected::Other("text"), &Self))
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Self::Value, A::Error> {
            let mut read = BTreeMap::new();
            while let Some((name, value)) = pairs.next_entry::<String, String>()? {
                read.insert(name, value);
                if read.len() > MAX_METADATA {
                    return Err(serde::de::Error::invalid_length(read.len(), &self));
                }
            }
            Ok(read)
        }
    }
    deserializer.deserialize_any(Pairs)
}

impl NewSecretIdBody<'_> {
    /// # Errors
    /// The secret id would do more than the role permits.
    fn read(&self, role: &AppRoleConfig) -> Result<NewSecretId> {
        if !role.bind_secret_id {
            return Err(VaultError::invalid("bind_secret_id is not set on the role"));
        }
        if !self.token_bound_cidrs.0.is_empty() {
            return Err(VaultError::not_supported("bulla's tokens are not bound to networks"));
        }
        let cidr = |text: &std::borrow::Cow<'_, str>| {
            text.parse::<IpNet>().map_err(|_| VaultError::invalid(format!("invalid CIDR address: {text}")))
        };
        let cidrs = self.cidr_list.0.iter().map(cidr).collect::<Result<Vec<_>>>()?;
        let most = i64::from(role.secret_id_num_uses);
        let uses = self.num_uses.unwrap_or(most);
        if most > 0 && !(1..=most).contains(&uses) {
            return Err(VaultError::invalid("num_uses cannot be higher than the role's secret_id_num_uses"));
        }
        let uses = u32::try_from(uses).map_err(|_| VaultError::invalid("num_uses cannot be negative"))?;
        let longest = role.secret_id_ttl_seconds;
        let ttl = self.ttl.map_or(longest, |Seconds(seconds)| if seconds == 0 { longest } else { seconds });
        if longest > 0 && ttl > longest {
            return Err(VaultError::invalid("ttl cannot be longer than the role's secret_id_ttl"));
        }
        let given = |number: u64| Some(number).filter(|number| *number > 0);
        Ok(NewSecretId {
            uses: Some(uses).filter(|uses| *uses > 0),
            ttl_seconds: given(ttl),
            cidrs,
            metadata: self.metadata.clone(),
        })
    }
}

/// A new secret id.
#[derive(Serialize, ToSchema)]
struct MadeSecretId<'a> {
    /// The secret id. The service does not keep it.
    secret_id: &'a str,
    /// By which it is looked up and destroyed.
    secret_id_accessor: &'a str,
    /// How many logins it is for; 0 is without a bound.
    secret_id_num_uses: u32,
    /// How many seconds it lives; 0 is without a bound.
    secret_id_ttl: u64,
}

/// Keeps a secret id, and answers with it.
async fn add(
    worker: &Worker,
    caller: &Caller,
    role: AppRoleConfig,
    secret_id: Zeroizing<String>,
    new: NewSecretId,
) -> Result<Response> {
    let service = Arc::clone(&worker.service);
    let (tenant, name, ttl) = (role.tenant.clone(), role.name.clone(), new.ttl_seconds.unwrap_or(0));
    let add = move |keystore: &bulla_kms::Keystore| {
        let kept = SecretIds::new(&service.rows, keystore, &role).add(&secret_id, &new)?;
        Ok((kept, secret_id))
    };
    let (kept, secret_id) = worker.run_blocking(&caller.unsealed, &caller.session, add).await?;
    tracing::info!(actor = %caller.session.actor, role = %name, accessor = kept.accessor, "a secret id was made");
    let made = MadeSecretId {
        secret_id: &secret_id,
        secret_id_accessor: &kept.accessor,
        secret_id_num_uses: kept.uses_left.unwrap_or(0),
        secret_id_ttl: ttl,
    };
    let json = Zeroizing::new(serde_json::to_vec(&made).unwrap_or_default());
    let write = |out: &mut Vec<u8>| out.extend_from_slice(&json);
    let mut response = answer::secret_written(worker, StatusCode::OK, json.len(), &[], write);
    response.extensions_mut().insert(AnswerSubject { tenant, accessor: kept.accessor });
    Ok(response)
}

/// Make a secret id of a role. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/approle/role/{role}/secret-id", tag = "transit", request_body = NewSecretIdBody,
    params(("role" = String, Path, description = "A role of the settings", example = "build")),
    extensions(("x-permission" = json!("minter"))),
    responses((status = 200, description = "The secret id", body = Envelope<MadeSecretId>), (status = "default", body = VaultErrorBody)))]
async fn approle_new_secret_id(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: SecretVaultContent,
) -> Result<Response> {
    let role = role_of(&worker, &caller, &name)?;
    let request: NewSecretIdBody<'_> = body.parse()?;
    let new = request.read(&role)?;
    add(&worker, &caller, role, random_secret_id()?, new).await
}

/// Make a secret id of a role that the caller has chosen. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/approle/role/{role}/custom-secret-id", tag = "transit", request_body = NewSecretIdBody,
    params(("role" = String, Path, description = "A role of the settings", example = "build")),
    extensions(("x-permission" = json!("minter"))),
    responses((status = 200, description = "The secret id", body = Envelope<MadeSecretId>), (status = "default", body = VaultErrorBody)))]
async fn approle_custom_secret_id(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: SecretVaultContent,
) -> Result<Response> {
    let role = role_of(&worker, &caller, &name)?;
    let request: NewSecretIdBody<'_> = body.parse()?;
    let secret_id = request.secret_id.as_deref().filter(|text| !text.is_empty());
    let secret_id = secret_id.ok_or_else(|| VaultError::invalid("missing secret_id"))?;
    if !(MIN_SECRET_ID_LEN..=MAX_SECRET_ID_LEN).contains(&secret_id.len()) {
        let message = format!("a secret id has {MIN_SECRET_ID_LEN} to {MAX_SECRET_ID_LEN} characters");
        return Err(VaultError::invalid(message));
    }
    let new = request.read(&role)?;
    add(&worker, &caller, role, Zeroizing::new(secret_id.to_owned()), new).await
}

/// A list of names.
#[derive(Serialize, ToSchema)]
struct AccessorList {
    /// The accessors.
    keys: Vec<String>,
}

/// List the accessors of a role's secret ids. LIST does the same.
#[utoipa::path(get, path = "/v1/auth/approle/role/{role}/secret-id", tag = "transit",
    params(("role" = String, Path, description = "A role of the settings", example = "build")),
    extensions(("x-permission" = json!("minter"))),
    responses((status = 200, description = "The accessors", body = Envelope<AccessorList>), (status = "default", body = VaultErrorBody)))]
async fn approle_secret_ids(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
) -> Result<Response> {
    let role = role_of(&worker, &caller, &name)?;
    let service = Arc::clone(&worker.service);
    let all = move |keystore: &bulla_kms::Keystore| SecretIds::new(&service.rows, keystore, &role).all();
    let all = worker.run_blocking(&caller.unsealed, &caller.session, all).await?;
    if all.is_empty() {
        return Err(VaultError::empty_not_found(format!("the AppRole {name} has no secret id")));
    }
    let keys = all.into_iter().map(|one| one.accessor).collect();
    Ok(answer::data(&worker, &AccessorList { keys }))
}

/// The method LIST. HTTP does not define it.
async fn approle_list_method(
    method: Method,
    worker: State<Worker>,
    caller: Result<VaultCaller>,
    name: PathName<String>,
) -> Result<Response> {
    if method.as_str() != "LIST" {
        let message = format!("secret-id does not take the method {method}");
        return Err(ApiError::new(ApiErrorCode::MethodNotAllowed, message).into());
    }
    approle_secret_ids(worker, caller?, name).await
}

/// Which secret id.
#[derive(Deserialize, ToSchema)]
struct SecretIdName<'a> {
    /// The secret id.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    secret_id: OptionalSecret<'a>,
}

/// Which secret id, by its accessor.
#[derive(Deserialize, ToSchema)]
struct SecretIdAccessor<'a> {
    /// The accessor.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    secret_id_accessor: OptionalText<'a>,
}

/// What is known of a secret id.
#[derive(Serialize, ToSchema)]
struct SecretIdData {
    /// The networks from which it is accepted.
    cidr_list: Vec<String>,
    /// When it was made.
    creation_time: String,
    /// When it ends; `0001-01-01T00:00:00Z` if it does not.
    expiration_time: String,
    /// When it was made.
    last_updated_time: String,
    /// What its maker said of it.
    metadata: BTreeMap<String, String>,
    /// Its accessor.
    secret_id_accessor: String,
    /// The logins that are left; 0 is without a bound.
    secret_id_num_uses: u32,
    /// For how many seconds it was made; 0 is without a bound.
    secret_id_ttl: u64,
    /// Always empty.
    token_bound_cidrs: Vec<String>,
}

impl From<SecretId> for SecretIdData {
    fn from(kept: SecretId) -> Self {
        let seconds = |time: Timestamp| time.unix_millis() / 1000;
        let lifetime = |end: Timestamp| seconds(end).saturating_sub(seconds(kept.created));
        Self {
            cidr_list: kept.cidrs.iter().map(ToString::to_string).collect(),
            creation_time: kept.created.to_string(),
            // The zero time of Go.
            expiration_time: kept.expires.map_or("0001-01-01T00:00:00Z".to_owned(), |end| end.to_string()),
            last_updated_time: kept.created.to_string(),
            metadata: kept.metadata,
            secret_id_accessor: kept.accessor,
            secret_id_num_uses: kept.uses_left.unwrap_or(0),
            secret_id_ttl: kept.expires.map_or(0, lifetime),
            token_bound_cidrs: Vec::new(),
        }
    }
}

/// How a request names a secret id.
enum Named {
    Itself(Zeroizing<String>),
    Accessor(String),
}

impl Named {
    fn itself(body: &SecretVaultContent) -> Result<Self> {
        let request: SecretIdName<'_> = body.parse()?;
        let given = request.secret_id.as_deref().filter(|text| !text.is_empty());
        let given = given.ok_or_else(|| VaultError::invalid("missing secret_id"))?;
        Ok(Self::Itself(Zeroizing::new(given.to_owned())))
    }

    fn accessor(body: &VaultBody) -> Result<Self> {
        let request: SecretIdAccessor<'_> = body.parse()?;
        let given = request.secret_id_accessor.given();
        let given = given.ok_or_else(|| VaultError::invalid("missing secret_id_accessor"))?;
        Ok(Self::Accessor(given.to_owned()))
    }

    fn resolve(&self, ids: &SecretIds<'_>) -> String {
        match self {
            Self::Itself(secret_id) => ids.accessor(secret_id),
            Self::Accessor(accessor) => accessor.clone(),
        }
    }
}

async fn lookup(worker: &Worker, caller: &Caller, name: &str, named: Named) -> Result<Option<Response>> {
    let role = role_of(worker, caller, name)?;
    let service = Arc::clone(&worker.service);
    let find = move |keystore: &bulla_kms::Keystore| {
        let ids = SecretIds::new(&service.rows, keystore, &role);
        ids.find(&named.resolve(&ids))
    };
    let found = worker.run_blocking(&caller.unsealed, &caller.session, find).await?;
    Ok(found.map(|found| answer::data(worker, &SecretIdData::from(found))))
}

async fn destroy(worker: &Worker, caller: &Caller, name: &str, named: Named) -> Result<bool> {
    let role = role_of(worker, caller, name)?;
    let service = Arc::clone(&worker.service);
    let destroy = move |keystore: &bulla_kms::Keystore| {
        let ids = SecretIds::new(&service.rows, keystore, &role);
        let accessor = named.resolve(&ids);
        Ok(ids.destroy(&accessor)?.then_some(accessor))
    };
    let destroyed = worker.run_blocking(&caller.unsealed, &caller.session, destroy).await?;
    if let Some(accessor) = &destroyed {
        tracing::info!(actor = %caller.session.actor, role = name, accessor, "a secret id was destroyed");
    }
    Ok(destroyed.is_some())
}

fn no_accessor() -> VaultError {
    let message = "failed to find accessor entry for secret_id_accessor";
    VaultError::in_words(message, ApiError::from(KmsError::new(Code::NotFound, message)))
}

/// Tell what is known of a secret id. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/approle/role/{role}/secret-id/lookup", tag = "transit", request_body = SecretIdName,
    params(("role" = String, Path, description = "A role of the settings", example = "build")),
    extensions(("x-permission" = json!("minter"))),
    responses((status = 200, description = "The secret id", body = Envelope<SecretIdData>),
        (status = 204, description = "There is none"), (status = "default", body = VaultErrorBody)))]
async fn approle_lookup_secret_id(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: SecretVaultContent,
) -> Result<Response> {
    role_of(&worker, &caller, &name)?;
    let found = lookup(&worker, &caller, &name, Named::itself(&body)?).await?;
    Ok(found.map_or_else(|| StatusCode::NO_CONTENT.into_response(), no_store))
}

/// Destroy a secret id. PUT and DELETE do the same.
#[utoipa::path(post, path = "/v1/auth/approle/role/{role}/secret-id/destroy", tag = "transit", request_body = SecretIdName,
    params(("role" = String, Path, description = "A role of the settings", example = "build")),
    extensions(("x-permission" = json!("minter"))),
    responses((status = 204, description = "It is destroyed, or was none"), (status = "default", body = VaultErrorBody)))]
async fn approle_destroy_secret_id(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: SecretVaultContent,
) -> Result<Response> {
    role_of(&worker, &caller, &name)?;
    destroy(&worker, &caller, &name, Named::itself(&body)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Tell what is known of a secret id whose accessor the caller has. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/approle/role/{role}/secret-id-accessor/lookup", tag = "transit", request_body = SecretIdAccessor,
    params(("role" = String, Path, description = "A role of the settings", example = "build")),
    extensions(("x-permission" = json!("minter"))),
    responses((status = 200, description = "The secret id", body = Envelope<SecretIdData>), (status = "default", body = VaultErrorBody)))]
async fn approle_lookup_accessor(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    role_of(&worker, &caller, &name)?;
    let found = lookup(&worker, &caller, &name, Named::accessor(&body)?).await?;
    found.ok_or_else(|| no_accessor().into_not_found())
}

/// Destroy a secret id whose accessor the caller has. PUT and DELETE do the same.
#[utoipa::path(post, path = "/v1/auth/approle/role/{role}/secret-id-accessor/destroy", tag = "transit", request_body = SecretIdAccessor,
    params(("role" = String, Path, description = "A role of the settings", example = "build")),
    extensions(("x-permission" = json!("minter"))),
    responses((status = 204, description = "It is destroyed"), (status = "default", body = VaultErrorBody)))]
async fn approle_destroy_accessor(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    PathName(name): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    role_of(&worker, &caller, &name)?;
    if destroy(&worker, &caller, &name, Named::accessor(&body)?).await? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(no_accessor())
    }
}
