//! `/v1/auth/token/create` and `create-orphan`: a weaker token from the caller's own, or a minted
//! one.

use std::borrow::Cow;

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bulla_kms::token::{Grant, GrantedKeys, Holder, Token, TokenLimits, TokenOperation};
use bulla_kms::{Code, Keystore, KmsError, Name, Timestamp};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{Result, VaultError, VaultErrorBody};
use super::auth::{Auth, AuthAnswer};
use super::capabilities::TextList;
use super::request::{OptionalText, Seconds, VaultBody, VaultCaller, flag, number, seconds};
use super::tokens::{TokenRow, policy_names};
use crate::access::{Authority, Session};
use crate::api::ensure_root;
use crate::error::ApiError;
use crate::policy::{DEFAULT, with_default};
use crate::request::{Caller, token};
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_create_token).map(|router| router.put(erased(transit_create_token))))
        .routes(routes!(transit_create_orphan).map(|router| router.put(erased(transit_create_orphan))))
}

/// How long a minted token lives whose lifetime nobody says: Vault's 32 days.
const DEFAULT_LIFETIME_SECONDS: u64 = 768 * 60 * 60;

/// A token to make.
#[derive(Deserialize, ToSchema)]
struct NewVaultToken<'a> {
    /// Policies of the settings, or operations that the token permits: a list, or a text with
    /// commas. All of the caller's when absent.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 1000, example = json!(["sign"]))]
    policies: TextList<'a>,
    /// The token's lifetime. A token that is made from another one never lives longer than that
    /// one.
    #[serde(default, deserialize_with = "seconds")]
    #[schema(value_type = Option<String>, example = "1h")]
    ttl: Option<Seconds>,
    /// The older name of `ttl`.
    #[serde(default, deserialize_with = "seconds")]
    #[schema(value_type = Option<String>)]
    lease: Option<Seconds>,
    /// As `ttl`, since no token is renewed.
    #[serde(default, deserialize_with = "seconds")]
    #[schema(value_type = Option<String>)]
    explicit_max_ttl: Option<Seconds>,
    /// Refused: no token is renewed.
    #[serde(default, deserialize_with = "seconds")]
    #[schema(value_type = Option<String>)]
    period: Option<Seconds>,
    /// The end of the token's name in the audit log, for a token that is minted.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    display_name: OptionalText<'a>,
    /// Refused: the service chooses tokens.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    id: OptionalText<'a>,
    /// `service` or `batch`, without effect.
    #[serde(borrow, default, rename = "type")]
    #[schema(value_type = Option<String>)]
    kind: OptionalText<'a>,
    /// Refused.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    entity_alias: OptionalText<'a>,
    /// Whether the policy `default` is left out of policies of the settings.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    no_default_policy: Option<bool>,
    /// Only for callers who may mint.
    #[serde(default, deserialize_with = "flag")]
    #[schema(value_type = Option<bool>)]
    no_parent: Option<bool>,
    /// Only 0: uses of tokens are not counted.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>)]
    num_uses: Option<i64>,
}

impl NewVaultToken<'_> {
    /// # Errors
    /// The request asks for what no token of bulla has.
    fn check(&self) -> Result<()> {
        let is_set = |seconds: Option<Seconds>| seconds.is_some_and(|Seconds(seconds)| seconds > 0);
        match self.num_uses.unwrap_or(0) {
            0 => {}
            ..0 => return Err(VaultError::invalid("number of uses cannot be negative")),
            _ => return Err(VaultError::not_supported("the uses of bulla's tokens are not counted")),
        }
        if is_set(self.period) {
            return Err(VaultError::not_supported("bulla's tokens are not renewed, so none is periodic"));
        }
        if self.id.given().is_some() {
            return Err(VaultError::not_supported("bulla chooses its tokens: leave `id` out"));
        }
        if self.entity_alias.given().is_some() {
            return Err(VaultError::invalid("'entity_alias' is only allowed in combination with token role"));
        }
        match self.kind.given() {
            None | Some("service" | "batch" | "default" | "default-service" | "default-batch") => Ok(()),
            Some(_) => Err(VaultError::invalid("invalid 'token_type' value")),
        }
    }

    /// What the new token permits of what the caller may do.
    ///
    /// # Errors
    /// A policy is neither an operation of the caller's nor a policy that the caller may give; they
    /// permit nothing.
    fn rights(&self, worker: &Worker, authority: &Authority) -> Result<ChildRights> {
        let TextList(named) = &self.policies;
        let named: Vec<_> = named.iter().map(Cow::as_ref).filter(|name| *name != DEFAULT).collect();
        let none = || {
            VaultError::invalid(
                "bulla's policies are operations, such as `sign`, or those of the settings: name one",
            )
        };
        let without_default = self.no_default_policy == Some(true);
        if self.policies.0.is_empty() {
            let mut policies = authority.policies.last().cloned().unwrap_or_default();
            policies.retain(|name| !without_default || name.as_str() != DEFAULT);
            // Without any, the token would permit all that its parent does.
            if policies.is_empty() && !authority.policies.is_empty() {
                return Err(none());
            }
            return Ok(ChildRights { operations: None, policies });
        }
        let (mut operations, mut policies) = (Vec::new(), Vec::new());
        for name in named {
            match name.parse::<TokenOperation>() {
                Ok(operation) if authority.operations.contains(operation) => operations.push(operation),
                Ok(_) => return Err(no_subset()),
                Err(_) => {
                    let policy = name.parse::<Name>().map_err(|_| no_subset())?;
                    if !policies.contains(&policy) {
                        policies.push(policy);
                    }
                }
            }
        }
        operations.sort_unstable();
        operations.dedup();
        if !policies.is_empty() && !operations.is_empty() {
            let message = "name either operations or policies of the settings, and not both";
            return Err(VaultError::invalid(message));
        }
        // Under policies, operations alone would forget them.
        let is_known = |name: &Name| match authority.policies.last() {
            Some(parents) => parents.contains(name),
            None => worker.service.policies().has(&authority.tenant, name),
        };
        if !policies.iter().all(is_known) {
            return Err(no_subset());
        }
        if operations.is_empty() && policies.is_empty() && (without_default || authority.policies.is_empty())
        {
            return Err(none());
        }
        if !operations.is_empty() {
            let policies = authority.policies.last().cloned().unwrap_or_default();
            return Ok(ChildRights { operations: Some(operations), policies });
        }
        if !without_default {
            policies = with_default(policies);
        }
        let reached = worker.service.policies().operations(&authority.tenant, &policies);
        let reached = reached.into_iter().filter(|operation| authority.operations.contains(*operation));
        let reached: Vec<_> = reached.collect();
        Ok(ChildRights { operations: Some(reached).filter(|reached| !reached.is_empty()), policies })
    }

    /// When the token ends, and warnings about it.
    fn expires(&self, now: Timestamp, authority: &Authority) -> Result<(Timestamp, Vec<String>)> {
        let now = now.unix_millis() / 1000;
        let longest = |until: Timestamp| (until.unix_millis() / 1000).saturating_sub(now);
        let given =
            |value: Option<Seconds>| value.map(|Seconds(seconds)| seconds).filter(|seconds| *seconds > 0);
        let bounds = [given(self.explicit_max_ttl), authority.expires.map(longest)];
        let bound = bounds.into_iter().flatten().min();
        let asked = given(self.ttl).or(given(self.lease));
        let (lifetime, mut warnings) =
            (asked.unwrap_or(bound.unwrap_or(DEFAULT_LIFETIME_SECONDS)), Vec::new());
        let capped = bound.map_or(lifetime, |bound| bound.min(lifetime));
        if capped < lifetime {
            warnings.push(format!(
                "TTL of \"{lifetime}s\" exceeded the effective max_ttl of \"{capped}s\"; TTL value is capped accordingly"
            ));
        }
        let millis = now.saturating_add(capped).saturating_mul(1000);
        Ok((Timestamp::from_unix_millis(millis)?, warnings))
    }
}

/// Make a token: from a token a weaker one, which never permits more or lives longer; for a caller
/// who may mint, a new one. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/token/create", tag = "transit", request_body = NewVaultToken, extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The token", body = AuthAnswer), (status = "default", body = VaultErrorBody)))]
async fn transit_create_token(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    headers: HeaderMap,
    body: VaultBody,
) -> Result<Response> {
    let request: NewVaultToken<'_> = body.parse_short()?;
    request.check()?;
    let Some(parent) = token(&headers)? else { return mint(&worker, &caller, &request).await };
    if request.no_parent == Some(true) {
        return Err(VaultError::invalid("root or sudo privileges required to create orphan token"));
    }
    let parent: Token = std::str::from_utf8(parent).map_err(|_| ApiError::forbidden())?.parse()?;
    let authority = &caller.session.authority;
    let ChildRights { operations, policies } = request.rights(&worker, authority)?;
    let now = Timestamp::now()?;
    let (expires, warnings) = request.expires(now, authority)?;
    // Every child has a block of its own, and so an accessor.
    let limits = TokenLimits::default().operations(operations.clone()).expires(expires);
    let limits = limits.policies(Some(policies.clone()).filter(|policies| !policies.is_empty()));
    let all = || TokenOperation::ALL.iter().copied().filter(|one| authority.operations.contains(*one));
    let row = NewTokenRow {
        operations: operations.unwrap_or_else(|| all().collect()),
        policies,
        holder: holder_of(&caller.session),
        created: now,
        expires,
    };
    // The caller's token was verified. So what is wrong is, for example, that it has too many
    // blocks.
    let attenuate = move |_: &Keystore| {
        parent.attenuate(&limits).map_err(|error| KmsError::new(Code::InvalidArgument, error.message))
    };
    made(&worker, &caller, row, warnings, attenuate).await
}

/// Mint a token that ends with no other one: for callers who may mint. PUT does the same.
#[utoipa::path(post, path = "/v1/auth/token/create-orphan", tag = "transit", request_body = NewVaultToken, extensions(("x-permission" = json!("minter"))),
    responses((status = 200, description = "The token", body = AuthAnswer), (status = "default", body = VaultErrorBody)))]
async fn transit_create_orphan(
    State(worker): State<Worker>,
    VaultCaller(caller): VaultCaller,
    body: VaultBody,
) -> Result<Response> {
    // A caller learns nothing else first.
    if !caller.session.authority.can_mint_tokens {
        return Err(ApiError::forbidden().into());
    }
    let request: NewVaultToken<'_> = body.parse_short()?;
    request.check()?;
    mint(&worker, &caller, &request).await
}

async fn mint(worker: &Worker, caller: &Caller, request: &NewVaultToken<'_>) -> Result<Response> {
    let authority = &caller.session.authority;
    if !authority.can_mint_tokens {
        return Err(ApiError::forbidden().into());
    }
    let all = || TokenOperation::ALL.iter().copied().filter(|one| authority.operations.contains(*one));
    let ChildRights { operations, policies } = request.rights(worker, authority)?;
    let operations = operations.unwrap_or_else(|| all().collect());
    let now = Timestamp::now()?;
    let (expires, warnings) = request.expires(now, authority)?;
    let keys = match &authority.keys {
        None => GrantedKeys::All,
        Some(keys) => GrantedKeys::These(keys.iter().cloned().collect()),
    };
    let mut grant = Grant::new(authority.tenant.clone(), keys, operations.clone(), expires);
    grant = grant.policies(policies.clone());
    if let Some(name) = request.display_name.given() {
        grant = grant.holder(Holder::named("token", name));
    }
    let holder = grant.holder.as_ref().map_or_else(String::new, ToString::to_string);
    let row = NewTokenRow { operations, policies, holder, created: now, expires };
    let mint = move |keystore: &Keystore| {
        ensure_root(keystore, &grant.tenant)?;
        keystore.mint_token(&grant)
    };
    made(worker, caller, row, warnings, mint).await
}

fn no_subset() -> VaultError {
    VaultError::invalid("child policies must be subset of parent")
}

/// What a new token permits.
struct ChildRights {
    /// None for all of the parent's.
    operations: Option<Vec<TokenOperation>>,
    /// None of them if operations alone decide.
    policies: Vec<Name>,
}

/// The holder in the name of a token's session, which ends with `token ID`.
fn holder_of(session: &Session) -> String {
    let name = session.actor.as_str();
    name.rsplit_once("token ").map_or("", |(holder, _)| holder.trim_end()).to_owned()
}

/// What the service keeps of a token that is not made yet.
struct NewTokenRow {
    operations: Vec<TokenOperation>,
    policies: Vec<Name>,
    /// The name of the token's holder; empty if it has none.
    holder: String,
    created: Timestamp,
    expires: Timestamp,
}

/// Makes a token, keeps what an accessor finds, and answers with the token.
async fn made(
    worker: &Worker,
    caller: &Caller,
    row: NewTokenRow,
    warnings: Vec<String>,
    make: impl FnOnce(&Keystore) -> bulla_kms::Result<Token> + Send + 'static,
) -> Result<Response> {
    let tenant = caller.session.authority.tenant.clone();
    let seconds = |time: Timestamp| time.unix_millis() / 1000;
    let lifetime = seconds(row.expires).saturating_sub(seconds(row.created));
    let is_orphan = caller.session.revocation_ids.is_empty();
    let policies = policy_names(&row.policies, row.operations.iter().copied());
    let (owner, inner) = (tenant.clone(), worker.clone());
    let making = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let token = make(keystore)?;
        let revocation_ids: Vec<_> =
            token.inspect()?.blocks.into_iter().map(|block| block.revocation_id).collect();
        let accessor = revocation_ids.last().cloned().unwrap_or_default();
        let NewTokenRow { operations, policies, holder, created, expires } = row;
        let display_name = format!("{holder} token {}", &accessor[..accessor.len().min(16)]);
        let display_name = display_name.trim_start().to_owned();
        let row = TokenRow { revocation_ids, operations, policies, display_name, created, expires };
        row.keep(&inner, keystore, owner.as_str())?;
        Ok((token.expose().to_owned(), accessor))
    });
    let (token, accessor) = making.await?;
    let auth = Auth { orphan: is_orphan, ..Auth::new(token, accessor, policies, lifetime) };
    Ok(auth.answer(worker, tenant, warnings))
}
