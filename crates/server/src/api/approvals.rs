//! Requests for approval: making them, looking at them, and deciding about them.
#![allow(unused_qualifications, reason = "what utoipa makes of the parameters of a query has them")]

use std::sync::Arc;

use crate::request::handler::routes;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bulla_kms::approval::{
    ApprovalDecision, ApprovalId, ApprovalRequest, ApprovalState, ApprovalStatement, ApprovalSubject, KeyUse,
};
use bulla_kms::audit_log::Actor;
use bulla_kms::signature::Comment;
use bulla_kms::token::TokenOperation;
use bulla_kms::{KeyId, KeyRef, KeySelector, Keystore, KmsError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::access::Session;
use crate::error::{ApiError, ApiErrorCode, ErrorBody, Result};
use crate::request::{BodyBytes, Caller, Path, Query, parse, parse_short, resolve_key};
use crate::service::{Approvals, KeptRequest, Service, TooManyRequests, WantedUse, Worker};

/// The BLAKE3 digest of nothing.
const EXAMPLE_DIGEST: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(list, request))
        .routes(routes!(read))
        .routes(routes!(approve))
        .routes(routes!(reject))
}

/// Who must approve each use of a key.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes a type of the keystore")]
pub(crate) struct ApprovalRuleView {
    /// How many people must approve.
    #[schema(minimum = 1)]
    threshold: u32,
    /// The people whose approvals count: at most 32.
    approvers: Vec<ApproverView>,
    /// Approvals count for so many seconds after the request was made; at most 30 days.
    #[schema(minimum = 1)]
    max_seconds: u64,
    /// Whether the person who made a request may be one of those who approve it; absent if not.
    #[schema(required = false)]
    requester_may_approve: bool,
}

/// A person whose approval counts.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes a type of the keystore")]
struct ApproverView {
    /// The name by which the service knows the person as a caller: the holder of their tokens, or
    /// their name in the settings.
    #[schema(example = "ann")]
    name: String,
    /// The Ed25519 key that signs their approvals, base64.
    public_key: String,
}

/// What a key is to be used for, once. The fields depend on the operation.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "operation": "sign", "size": 0, "digest": EXAMPLE_DIGEST }))]
#[allow(dead_code, reason = "it describes a type of the keystore")]
struct ApprovalSubjectView {
    /// `sign` for a message, `sign_statement` for a signature file, `decrypt` also for
    /// decapsulating, or `change_rule`.
    operation: String,
    /// The BLAKE3 digest of the message, the content or the ciphertext: 64 hexadecimal digits.
    digest: Option<String>,
    /// Its length in bytes.
    size: Option<u64>,
    /// The name of the file.
    name: Option<String>,
    /// `file`, `manifest` or `message`, for a signature file.
    kind: Option<String>,
    /// The comment, which the signature file covers.
    comment: Option<String>,
    /// `blake3` or `ed25519ph`, if the statement is hashed before it is signed.
    prehash: Option<String>,
    /// The key's new rule.
    rule: Option<ApprovalRuleView>,
}

/// A request, all of which approvers sign.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes a type of the keystore")]
struct ApprovalRequestView {
    /// Its id.
    id: String,
    /// The key version to use.
    key: String,
    /// What it is to be used for.
    subject: ApprovalSubjectView,
    /// The name of the person or program that made the request.
    requester: String,
    /// Why, in the words of the requester.
    reason: String,
    /// When it was made.
    created: String,
    /// When it ends.
    expires: String,
}

/// A statement of an approver.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "it describes a type of the keystore")]
struct ApprovalStatementView {
    /// The name of the approver.
    approver: String,
    /// `approve` or `reject`.
    decision: String,
    /// Their signature, base64.
    signature: String,
}

/// A request for approval, and who has decided about it.
#[derive(Serialize, ToSchema)]
struct ApprovalView {
    /// The request.
    #[schema(value_type = ApprovalRequestView)]
    request: ApprovalRequest,
    /// `waiting`, `approved`, `rejected` or `used`.
    state: &'static str,
    /// How many people must approve.
    threshold: u32,
    /// Who has decided, in the order of their decisions.
    #[schema(value_type = Vec<ApprovalStatementView>)]
    statements: Vec<ApprovalStatement>,
}

impl ApprovalView {
    fn new(keystore: &Keystore, kept: KeptRequest) -> Result<Self, KmsError> {
        let rule = keystore.approval_rule(kept.request.key.key_id())?;
        let state = match rule.as_ref().map(|rule| kept.state(rule)) {
            _ if kept.used => "used",
            Some(ApprovalState::Approved) => "approved",
            Some(ApprovalState::Waiting) => "waiting",
            Some(ApprovalState::Rejected) | None => "rejected",
        };
        let threshold = rule.map_or(0, |rule| rule.threshold.get());
        Ok(Self { request: kept.request, state, threshold, statements: kept.statements })
    }
}

/// A request to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RequestApproval {
    /// The key.
    #[schema(example = "releases")]
    key: String,
    /// What it is to be used for.
    #[schema(value_type = ApprovalSubjectView)]
    subject: ApprovalSubject,
    /// Why, in one line of at most 1024 bytes. Approvers and the audit log see it.
    #[schema(value_type = String, example = "release 1.0")]
    reason: Comment,
    /// How long the request counts; as long as the key's rule says when absent.
    #[schema(minimum = 1)]
    expires_in_seconds: Option<u64>,
}

/// The operation that a caller must be permitted for a subject.
fn operation_of(subject: &ApprovalSubject, key: &KeyId) -> TokenOperation {
    match subject {
        ApprovalSubject::ChangeRule { .. } => TokenOperation::Update,
        ApprovalSubject::Decrypt { .. }
            if key.algorithm().usage() == bulla_kms::KeyUsage::KeyEncapsulation =>
        {
            TokenOperation::Decapsulate
        }
        ApprovalSubject::Decrypt { .. } => TokenOperation::Decrypt,
        _ => TokenOperation::Sign,
    }
}

/// The name of the caller, which approvers see.
fn identity(session: &Session) -> Result<Actor> {
    let unnamed = || ApiError::malformed("approvers must see who asks: use a token that names its holder");
    Ok(session.identity().ok_or_else(unnamed)?.parse()?)
}

/// Request the approvals that one use of a key needs.
///
/// The caller must be permitted the use: `sign`, `decrypt`, `decapsulate`, or `update` for a change
/// of the rule. When enough people have approved, the same caller uses the key once, with the id as
/// `approval`.
#[utoipa::path(post, path = "/api/v1/approvals", tag = "approvals", request_body = RequestApproval,
    extensions(("x-permission" = json!("sign"))),
    responses((status = 201, description = "The request", body = ApprovalView), (status = "default", body = ErrorBody)))]
async fn request(
    State(worker): State<Worker>,
    caller: Caller,
    BodyBytes(body): BodyBytes,
) -> Result<(StatusCode, Json<ApprovalView>)> {
    let RequestApproval { key, subject, reason, expires_in_seconds } = parse_short(&body)?;
    // The algorithm, which decides about the operation, is in the key's name.
    let asked = match &subject {
        ApprovalSubject::ChangeRule { .. } => TokenOperation::Update,
        ApprovalSubject::Decrypt { .. } => TokenOperation::Decrypt,
        _ => TokenOperation::Sign,
    };
    let key: KeySelector = match resolve_key(&caller, &key, asked) {
        Err(error) if asked != TokenOperation::Decrypt => return Err(error),
        Err(_) => resolve_key(&caller, &key, TokenOperation::Decapsulate)?,
        Ok(key) => key,
    };
    caller.session.check(operation_of(&subject, key.key_id()), key.key_id())?;
    let requester = identity(&caller.session)?;
    let service = Arc::clone(&worker.service);
    let made = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let approvals = approvals(&service, keystore, key.key_id());
        // Asked first, so that the audit log has no request that nobody will see.
        if let Err(too_many) = approvals.check_room(&requester)? {
            return Ok(Err(too_many));
        }
        let made =
            keystore.request_approval(key.as_ref(), subject, &requester, reason, expires_in_seconds)?;
        Ok(match approvals.add(made)? {
            Ok(kept) => Ok(ApprovalView::new(keystore, kept)?),
            Err(too_many) => Err(too_many),
        })
    });
    let too_many = |TooManyRequests(why)| ApiError::new(ApiErrorCode::QuotaExceeded, why);
    Ok((StatusCode::CREATED, Json(made.await?.map_err(too_many)?)))
}

fn approvals<'a>(service: &'a Service, keystore: &'a Keystore, key: &KeyId) -> Approvals<'a> {
    Approvals::new(&service.rows, keystore, key.tenant())
}

/// Whether a caller sees a request: it may read the key, or made the request.
fn sees(session: &Session, kept: &KeptRequest) -> bool {
    let request = &kept.request;
    let is_own = session.identity() == Some(request.requester.as_str());
    let key = request.key.key_id();
    session.authority.permits(TokenOperation::Read, key) || is_own && session.authority.is_about(key)
}

/// Which requests to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListApprovals {
    /// The most requests to return.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Only requests after this one: the `next` of the page before.
    after: Option<String>,
}

/// A page of requests for approval.
#[derive(Serialize, ToSchema)]
struct ApprovalPage {
    /// The requests, the oldest first.
    approvals: Vec<ApprovalView>,
    /// The value of `after` for the next page; none on the last.
    next: Option<String>,
}

/// List the requests for approval that have not expired, about keys that the caller may read.
#[utoipa::path(get, path = "/api/v1/approvals", tag = "approvals", params(ListApprovals), extensions(("x-permission" = json!("read"))),
    responses((status = 200, description = "A page of requests", body = ApprovalPage), (status = "default", body = ErrorBody)))]
async fn list(
    State(worker): State<Worker>,
    caller: Caller,
    Query(ListApprovals { limit, after }): Query<ListApprovals>,
) -> Result<Json<ApprovalPage>> {
    if !caller.session.authority.operations.contains(TokenOperation::Read) {
        return Err(ApiError::forbidden());
    }
    let limit = limit.unwrap_or(100);
    if !(1..=1000).contains(&limit) {
        return Err(ApiError::malformed("`limit` is from 1 to 1000"));
    }
    let after = after.map(|after| after.parse::<ApprovalId>()).transpose()?;
    let (service, session) = (Arc::clone(&worker.service), Arc::clone(&caller.session));
    let page = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let approvals = Approvals::new(&service.rows, keystore, &session.authority.tenant);
        let mut found = approvals.page(after, limit + 1, |kept| sees(&session, kept))?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|kept| kept.request.id.to_string());
        let approvals =
            found.into_iter().map(|kept| ApprovalView::new(keystore, kept)).collect::<Result<_, _>>()?;
        Ok(ApprovalPage { approvals, next })
    });
    Ok(Json(page.await?))
}

/// A request that the caller sees.
fn find(approvals: &Approvals<'_>, session: &Session, id: ApprovalId) -> Result<KeptRequest, KmsError> {
    let kept = approvals.get(id)?;
    if sees(session, &kept) {
        return Ok(kept);
    }
    Err(KmsError::new(bulla_kms::Code::NotFound, format!("there is no request {id} here, or it has expired")))
}

/// Read a request for approval.
#[utoipa::path(get, path = "/api/v1/approvals/{id}", tag = "approvals",
    params(("id" = String, Path, description = "The id of the request", example = "0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11")),
    extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The request", body = ApprovalView), (status = "default", body = ErrorBody)))]
async fn read(
    State(worker): State<Worker>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ApprovalView>> {
    let id: ApprovalId = id.parse()?;
    let (service, session) = (Arc::clone(&worker.service), Arc::clone(&caller.session));
    let found = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let approvals = Approvals::new(&service.rows, keystore, &session.authority.tenant);
        ApprovalView::new(keystore, find(&approvals, &session, id)?)
    });
    Ok(Json(found.await?))
}

/// The decision of an approver, with either a signature or a key.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Decide {
    /// The name of the approver in the key's rule.
    #[schema(value_type = String, example = "ann")]
    approver: Actor,
    /// The approver's signature of the request, base64: `docs/approvals.md` says of which bytes.
    signature: Option<String>,
    /// The approver's own key, if it is one of this service: the caller may sign with it.
    signing_key: Option<String>,
}

async fn decide(
    worker: &Worker,
    caller: &Caller,
    id: &str,
    body: &[u8],
    decision: ApprovalDecision,
) -> Result<Json<ApprovalView>> {
    let id: ApprovalId = id.parse()?;
    let Decide { approver, signature, signing_key } = parse(body)?;
    let key = signing_key.map(|key| resolve_key(caller, &key, TokenOperation::Sign)).transpose()?;
    if signature.is_some() == key.is_some() {
        return Err(ApiError::malformed("give either `signature` or `signing_key`"));
    }
    let (service, session) = (Arc::clone(&worker.service), Arc::clone(&caller.session));
    let decided = worker.run_blocking(&caller.unsealed, &caller.session, move |keystore| {
        let approvals = Approvals::new(&service.rows, keystore, &session.authority.tenant);
        let kept = find(&approvals, &session, id)?;
        let statement = match (signature, key) {
            (Some(signature), _) => ApprovalStatement { approver, decision, signature },
            (None, Some(key)) => keystore.sign_approval(key.key_id(), &kept.request, &approver, decision)?,
            (None, None) => return Err(KmsError::new(bulla_kms::Code::Internal, "no signature and no key")),
        };
        ApprovalView::new(keystore, approvals.decide(id, &statement)?)
    });
    Ok(Json(decided.await?))
}

/// Approve a request, with the signature of an approver.
///
/// Any caller who sees the request may bring it: the signature proves who approves.
#[utoipa::path(post, path = "/api/v1/approvals/{id}/approve", tag = "approvals", request_body = Decide,
    params(("id" = String, Path, description = "The id of the request", example = "0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11")),
    extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The request", body = ApprovalView), (status = "default", body = ErrorBody)))]
async fn approve(
    State(worker): State<Worker>,
    caller: Caller,
    Path(id): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Json<ApprovalView>> {
    decide(&worker, &caller, &id, &body, ApprovalDecision::Approve).await
}

/// Reject a request, with the signature of an approver.
#[utoipa::path(post, path = "/api/v1/approvals/{id}/reject", tag = "approvals", request_body = Decide,
    params(("id" = String, Path, description = "The id of the request", example = "0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11")),
    extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The request", body = ApprovalView), (status = "default", body = ErrorBody)))]
async fn reject(
    State(worker): State<Worker>,
    caller: Caller,
    Path(id): Path<String>,
    BodyBytes(body): BodyBytes,
) -> Result<Json<ApprovalView>> {
    decide(&worker, &caller, &id, &body, ApprovalDecision::Reject).await
}

/// What a request says about the approvals of the use that it asks for.
#[derive(Clone, Debug)]
pub(super) struct GivenApproval {
    id: ApprovalId,
    override_reason: Option<Comment>,
    caller: Actor,
}

impl GivenApproval {
    /// The approval that a body names; none if it names none.
    ///
    /// # Errors
    /// The caller may not use a key without its approvals, or nobody may.
    pub(super) fn read(
        worker: &Worker,
        caller: &Caller,
        key: &KeyId,
        approval: Option<&str>,
        override_reason: Option<&str>,
    ) -> Result<Option<Self>> {
        let Some(id) = approval else {
            return match override_reason {
                None => Ok(None),
                Some(_) => Err(ApiError::malformed(
                    "`override_reason` is about a request: give its id as `approval`",
                )),
            };
        };
        let override_reason = override_reason.map(str::parse::<Comment>).transpose()?;
        if override_reason.is_some() {
            caller.session.check(TokenOperation::OverrideApproval, key)?;
            if !worker.service.config.service.allow_approval_override {
                let message = "the service lets nobody use a key without its approvals: its settings do not have `service.allow_approval_override`";
                return Err(KmsError::new(bulla_kms::Code::ApprovalRequired, message).into());
            }
        }
        Ok(Some(Self { id: id.parse()?, override_reason, caller: identity(&caller.session)? }))
    }

    /// A handle that makes this use of the key, once.
    ///
    /// # Errors
    /// Those of [`Approvals::use_once`].
    pub(super) fn use_once(
        self,
        service: &Service,
        keystore: &Keystore,
        key: KeyRef<'_>,
        used: KeyUse<'_>,
    ) -> Result<Keystore, KmsError> {
        let Self { id, override_reason, caller } = self;
        let wanted = WantedUse { id, caller: caller.as_str(), key, used, override_reason };
        approvals(service, keystore, key.key_id()).use_once(wanted)
    }
}
