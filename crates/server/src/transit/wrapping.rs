//! Response wrapping: an answer waits at the service, and whoever has its token takes it once.
//!
//! A request with the header `X-Vault-Wrap-TTL` gets a wrapping token in place of its answer. The
//! answer is a row of the service, so every node has it, and it is there after a restart. It is
//! taken by removing the row, which of several callers and nodes one does.

use crate::request::handler::{erased, routes};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bulla_blake3::Hash;
use bulla_kms::{Code, Keystore, KmsError, Timestamp};
use hyper::body::Bytes;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use zeroize::Zeroizing;

use super::answer::{self, Envelope, ErrorOrResults, Result, VaultError, VaultErrorBody};
use super::auth::AnswerSubject;
use super::request::{
    OptionalSecret, Seconds, SecretVaultBody, SecretVaultContent, VaultCaller, read_seconds,
};
use crate::request::{Caller, MountPath, no_store, token};
use crate::service::{OwnerDigest, RowFolder, RowKind, ServiceRow, ServiceRows, Worker};

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_wrap).map(|router| router.put(erased(transit_wrap))))
        .routes(routes!(transit_unwrap).map(|router| router.put(erased(transit_unwrap))))
        .routes(
            routes!(transit_wrapping, transit_own_wrapping)
                .map(|router| router.put(erased(transit_wrapping))),
        )
        .routes(routes!(transit_rewrap_answer).map(|router| router.put(erased(transit_rewrap_answer))))
}

const WRAP_TTL: &str = "x-vault-wrap-ttl";
/// The longest time for which an answer waits: Vault's 32 days.
const MAX_WRAP_SECONDS: u64 = 768 * 60 * 60;
/// The longest answer that waits.
const MAX_WRAPPED_LEN: usize = 256 << 10;
/// Longer answers, with what is kept beside them, are in a folder of their own, which holds fewer.
/// Any caller can have answers wrapped: so all that wait for a tenant have a bound in bytes.
const MAX_SHORT_LEN: usize = 4 << 10;

/// How the text of a wrapping token begins.
const TOKEN_PREFIX: &str = "wrap.";
const RANDOM_LEN: usize = 24;
const OWNER_LEN: usize = size_of::<OwnerDigest>();
const TAG_LEN: usize = 32;

/// A wrapping token: the digest of its tenant, random bytes, and a tag of the keystore over both.
/// So only tokens that were made here make the service look for a row.
struct WrappingToken {
    text: Zeroizing<String>,
    owner: OwnerDigest,
    /// The id of its row.
    id: Zeroizing<String>,
}

impl WrappingToken {
    /// # Errors
    /// [`Code::RandomUnavailable`].
    fn new(keystore: &Keystore, owner: OwnerDigest) -> bulla_kms::Result<Self> {
        let mut bytes = Zeroizing::new([0; OWNER_LEN + RANDOM_LEN + TAG_LEN]);
        bytes[..OWNER_LEN].copy_from_slice(&owner);
        getrandom::fill(&mut bytes[OWNER_LEN..OWNER_LEN + RANDOM_LEN])
            .map_err(|error| KmsError::new(Code::RandomUnavailable, format!("no random bytes: {error}")))?;
        let tag = tag(keystore, &bytes[..OWNER_LEN + RANDOM_LEN]);
        bytes[OWNER_LEN + RANDOM_LEN..].copy_from_slice(tag.as_bytes());
        let encoded = Zeroizing::new(base64_simd::URL_SAFE_NO_PAD.encode_to_string(*bytes));
        Ok(Self::of(&bytes, Zeroizing::new(format!("{TOKEN_PREFIX}{}", *encoded))))
    }

    /// Reads a token. None if this keystore has not made it.
    fn read(keystore: &Keystore, text: &str) -> Option<Self> {
        let encoded = text.strip_prefix(TOKEN_PREFIX)?;
        let bytes = Zeroizing::new(base64_simd::URL_SAFE_NO_PAD.decode_to_vec(encoded).ok()?);
        let bytes: &[u8; OWNER_LEN + RANDOM_LEN + TAG_LEN] = bytes.as_slice().try_into().ok()?;
        let (signed, shown) = bytes.split_last_chunk::<TAG_LEN>()?;
        // Digests are compared in constant time.
        let is_ours = tag(keystore, signed) == Hash::from_bytes(*shown);
        is_ours.then(|| Self::of(bytes, Zeroizing::new(text.to_owned())))
    }

    fn of(bytes: &[u8; OWNER_LEN + RANDOM_LEN + TAG_LEN], text: Zeroizing<String>) -> Self {
        let owner = *bytes.first_chunk().expect("it is longer");
        let id = Zeroizing::new(hex::encode(&bytes[OWNER_LEN..OWNER_LEN + RANDOM_LEN]));
        Self { text, owner, id }
    }

    /// The row with the answer, if it waits.
    ///
    /// # Errors
    /// Those of [`ServiceRows::get`].
    fn row(&self, rows: &ServiceRows, keystore: &Keystore) -> bulla_kms::Result<Option<ServiceRow>> {
        let row = |kind| rows.get(keystore, &RowFolder::by_digest(kind, self.owner), &self.id);
        match row(RowKind::WrappedAnswer)? {
            None => row(RowKind::LongWrappedAnswer),
            found => Ok(found),
        }
    }

    /// The name under which work with answers of its tenant waits: callers of other tenants do not
    /// wait behind it.
    fn queue(&self) -> String {
        format!("unwrapping {}", hex::encode(self.owner))
    }

    /// By what logs and clients name the token. It is of no other use.
    fn accessor(&self, keystore: &Keystore) -> String {
        let digest =
            keystore.data_cipher().keyed_digest(format!("wrapping accessor\n{}", *self.id).as_bytes());
        hex::encode(&digest[..16])
    }
}

fn tag(keystore: &Keystore, bytes: &[u8]) -> Hash {
    let mut signed = Zeroizing::new(b"wrapping token\n".to_vec());
    signed.extend_from_slice(bytes);
    Hash::from_bytes(keystore.data_cipher().keyed_digest(&signed))
}

/// What is kept with an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrappedHead {
    path: String,
    created: Timestamp,
    ttl_seconds: u64,
    /// The status of the answer; none for 200. A batch of which items fail has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

/// An answer that waits.
struct WrappedAnswer {
    head: WrappedHead,
    /// The answer's JSON after its request id.
    rest: Zeroizing<Vec<u8>>,
}

impl WrappedAnswer {
    fn read(row: &ServiceRow) -> bulla_kms::Result<Self> {
        let malformed = || KmsError::new(Code::KeystoreCorrupt, "a wrapped answer is malformed");
        let end = row.content.iter().position(|byte| *byte == b'\n').ok_or_else(malformed)?;
        let head = serde_json::from_slice(&row.content[..end]).map_err(|_| malformed())?;
        Ok(Self { head, rest: Zeroizing::new(row.content[end + 1..].to_vec()) })
    }

    /// Keeps the answer under a new token.
    ///
    /// # Errors
    /// The tenant has too many; the row cannot be written.
    fn keep(&self, rows: &ServiceRows, keystore: &Keystore, token: &WrappingToken) -> bulla_kms::Result<()> {
        let head = serde_json::to_vec(&self.head).unwrap_or_default();
        let mut content = Zeroizing::new(Vec::with_capacity(head.len() + 1 + self.rest.len()));
        content.extend_from_slice(&head);
        content.push(b'\n');
        content.extend_from_slice(&self.rest);
        let end = self.head.created.unix_millis().saturating_add(self.head.ttl_seconds * 1000);
        let expires = Some(Timestamp::from_unix_millis(end)?);
        let is_short = content.len() <= MAX_SHORT_LEN;
        let kind = if is_short { RowKind::WrappedAnswer } else { RowKind::LongWrappedAnswer };
        rows.insert(keystore, &RowFolder::by_digest(kind, token.owner), &token.id, &content, expires)
            .map(drop)
    }
}

/// What a client gets in place of an answer.
#[derive(Serialize, ToSchema)]
struct WrapInfo {
    /// The wrapping token: whoever has it can take the answer, once.
    token: String,
    /// By what logs name the token.
    accessor: String,
    /// For how many seconds the answer waits.
    ttl: u64,
    /// When it was wrapped.
    creation_time: String,
    /// The path of the request.
    creation_path: String,
    /// The accessor of the token or the secret id in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    wrapped_accessor: Option<String>,
}

/// An answer that only says where the real one is.
#[derive(Serialize, ToSchema)]
struct WrapAnswer {
    /// The request, as the header `X-Request-Id` names it.
    request_id: String,
    /// Always empty.
    lease_id: &'static str,
    /// Always false.
    renewable: bool,
    /// Always 0.
    lease_duration: u64,
    /// Always null.
    data: Option<&'static str>,
    /// How the real answer is taken.
    wrap_info: WrapInfo,
    /// Always null.
    warnings: Option<&'static str>,
    /// Always null.
    auth: Option<&'static str>,
}

impl WrapAnswer {
    fn respond(worker: &Worker, info: WrapInfo) -> Response {
        let answer = Self {
            request_id: worker.service.next_request_id(),
            lease_id: "",
            renewable: false,
            lease_duration: 0,
            data: None,
            wrap_info: info,
            warnings: None,
            auth: None,
        };
        no_store(answer::bare(StatusCode::OK, &answer))
    }
}

/// The time for which a caller wants the answer to be wrapped; none if it does not.
///
/// # Errors
/// The header is no time, or one that is too long.
fn wrap_seconds(headers: &HeaderMap) -> Result<Option<u64>> {
    let Some(value) = headers.get(WRAP_TTL) else { return Ok(None) };
    let invalid = |why: &str| VaultError::invalid(format!("error parsing X-Vault-Wrap-TTL header: {why}"));
    let text = value.to_str().map_err(|_| invalid("it is no text"))?;
    let Seconds(seconds) =
        read_seconds(text).ok_or_else(|| invalid("it is no number of seconds, or duration"))?;
    if seconds > MAX_WRAP_SECONDS {
        return Err(invalid(&format!("an answer waits at most {MAX_WRAP_SECONDS} seconds")));
    }
    Ok(Some(seconds).filter(|seconds| *seconds > 0))
}

/// How an answer that can be wrapped begins.
const ANSWER_BEGIN: &[u8] = b"{\"request_id\":\"";

/// Wraps the answers to requests that ask for it.
pub(crate) async fn wrap_answers(State(worker): State<Worker>, request: Request, next: Next) -> Response {
    let seconds = match wrap_seconds(request.headers()) {
        Ok(None) => return next.run(request).await,
        Ok(Some(seconds)) => seconds,
        Err(error) => return error.into_response(),
    };
    let path = request.uri().path().trim_start_matches(super::PREFIX).to_owned();
    let path = match request.extensions().get::<MountPath>() {
        Some(mount) => path.replacen("transit", mount.as_str(), 1),
        None => path,
    };
    let (parts, body) = request.into_parts();
    let caller = Caller::verified(&parts, &worker).ok();
    let tenant = caller.map(|caller| caller.session.home().clone());
    let response = next.run(Request::from_parts(parts, body)).await;
    let subject = response.extensions().get::<AnswerSubject>().cloned();
    // Answers that need no credential are no secret, and nobody may fill the store with them.
    let Some(tenant) = subject.as_ref().map(|subject| subject.tenant.clone()).or(tenant) else {
        return response;
    };
    let accessor = subject.map(|subject| subject.accessor);
    let wrapped = wrap(&worker, response, tenant.as_str(), (path, seconds, accessor)).await;
    wrapped.unwrap_or_else(VaultError::into_response)
}

async fn wrap(
    worker: &Worker,
    response: Response,
    tenant: &str,
    (path, ttl_seconds, wrapped_accessor): (String, u64, Option<String>),
) -> Result<Response> {
    let (head, body) = response.into_parts();
    let too_long = |_| {
        let message = format!("an answer of more than {MAX_WRAPPED_LEN} bytes is not wrapped");
        VaultError::invalid(message)
    };
    let body = to_bytes(body, MAX_WRAPPED_LEN).await.map_err(too_long)?;
    let rest = body.strip_prefix(ANSWER_BEGIN).and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b'"')?;
        Some(Zeroizing::new(rest[end..].to_vec()))
    });
    // Vault does not wrap such answers either: errors, and `sys/health`, for example. A batch has
    // an envelope whatever its status is, because of what the other items say.
    let Some(rest) = rest else { return Ok(Response::from_parts(head, Body::from(body))) };
    let status = Some(head.status).filter(|status| *status != StatusCode::OK).map(|status| status.as_u16());
    let head = WrappedHead { path, created: Timestamp::now()?, ttl_seconds, status };
    let (service, unsealed) = (worker.service.clone(), worker.service.unsealed()?);
    let owner = tenant.to_owned();
    let keep = move || {
        let keystore = &unsealed.keystore;
        let token = WrappingToken::new(keystore, RowFolder::owner_digest(keystore, &owner))?;
        let answer = WrappedAnswer { head, rest };
        answer.keep(&service.rows, keystore, &token)?;
        Ok(info(keystore, &token, answer.head, wrapped_accessor))
    };
    let info = worker.run_anonymous(&format!("wrapping {tenant}"), keep).await?;
    Ok(WrapAnswer::respond(worker, info))
}

fn info(
    keystore: &Keystore,
    token: &WrappingToken,
    head: WrappedHead,
    wrapped_accessor: Option<String>,
) -> WrapInfo {
    WrapInfo {
        token: token.text.to_string(),
        accessor: token.accessor(keystore),
        ttl: head.ttl_seconds,
        creation_time: head.created.to_string(),
        creation_path: head.path,
        wrapped_accessor,
    }
}

/// Wrap what the body says. The request needs the header `X-Vault-Wrap-TTL`. PUT does the same.
#[utoipa::path(post, path = "/v1/sys/wrapping/wrap", tag = "transit", request_body = serde_json::Value, extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The wrapping token", body = WrapAnswer), (status = "default", body = VaultErrorBody)))]
async fn transit_wrap(
    State(worker): State<Worker>,
    VaultCaller(_): VaultCaller,
    headers: HeaderMap,
    body: SecretVaultContent,
) -> Result<Response> {
    if wrap_seconds(&headers)?.is_none() {
        return Err(VaultError::invalid("endpoint requires response wrapping to be used"));
    }
    let data = body.object()?;
    Ok(answer::secret_written(&worker, StatusCode::OK, data.len(), &[], |out| out.extend_from_slice(data)))
}

/// Which wrapping token.
#[derive(Deserialize, ToSchema)]
struct WrappingTokenBody<'a> {
    /// The wrapping token; the token of the request when absent.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    token: OptionalSecret<'a>,
}

fn not_valid() -> VaultError {
    VaultError::invalid("wrapping token is not valid or does not exist")
}

/// The wrapping token of a request.
///
/// # Errors
/// It has none that this keystore has made; the service is sealed.
fn wrapping_token(worker: &Worker, headers: &HeaderMap, body: &SecretVaultBody) -> Result<WrappingToken> {
    let unsealed = worker.service.unsealed()?;
    let request: WrappingTokenBody<'_> = body.parse()?;
    let given = request.token.as_deref().filter(|token| !token.is_empty());
    let shown = token(headers)?.and_then(|token| std::str::from_utf8(token).ok());
    let text = given.or(shown).ok_or_else(not_valid)?;
    WrappingToken::read(&unsealed.keystore, text).ok_or_else(not_valid)
}

/// Take a wrapped answer: the first caller gets it, and nobody after that. PUT does the same.
#[utoipa::path(post, path = "/v1/sys/wrapping/unwrap", tag = "transit", request_body = WrappingTokenBody,
    security(()), extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The answer that was wrapped", body = serde_json::Value),
        (status = "default", body = ErrorOrResults<serde_json::Value>)))]
async fn transit_unwrap(
    State(worker): State<Worker>,
    headers: HeaderMap,
    body: SecretVaultBody,
) -> Result<Response> {
    let token = wrapping_token(&worker, &headers, &body)?;
    let (service, unsealed) = (worker.service.clone(), worker.service.unsealed()?);
    let queue = token.queue();
    let take = move || {
        let keystore = &unsealed.keystore;
        let Some(row) = token.row(&service.rows, keystore)? else { return Ok(None) };
        let answer = WrappedAnswer::read(&row)?;
        let is_taken = service.rows.remove(keystore, &row)?;
        Ok(is_taken.then(|| (answer, token.accessor(keystore))))
    };
    let (answer, accessor) = worker.run_anonymous(&queue, take).await?.ok_or_else(not_valid)?;
    tracing::info!(accessor, path = answer.head.path, "a wrapped answer was taken");
    let id = worker.service.next_request_id();
    let mut json = Zeroizing::new(Vec::with_capacity(ANSWER_BEGIN.len() + id.len() + answer.rest.len()));
    json.extend_from_slice(ANSWER_BEGIN);
    json.extend_from_slice(id.as_bytes());
    json.extend_from_slice(&answer.rest);
    let mut response = Response::new(Body::from(Bytes::from_owner(json)));
    if let Some(status) = answer.head.status.and_then(|status| StatusCode::from_u16(status).ok()) {
        *response.status_mut() = status;
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert("x-request-id", id);
    }
    Ok(no_store(response))
}

/// What is known of a wrapped answer.
#[derive(Serialize, ToSchema)]
struct WrappingData {
    /// The path of the request whose answer it is.
    creation_path: String,
    /// When it was wrapped.
    creation_time: String,
    /// For how many seconds it waits.
    creation_ttl: u64,
}

async fn lookup(worker: &Worker, token: WrappingToken) -> Result<Response> {
    let (service, unsealed) = (worker.service.clone(), worker.service.unsealed()?);
    let queue = token.queue();
    let find = move || {
        let row = token.row(&service.rows, &unsealed.keystore)?;
        row.map(|row| WrappedAnswer::read(&row)).transpose()
    };
    let found = worker.run_anonymous(&queue, find).await?.ok_or_else(not_valid)?;
    let WrappedHead { path, created, ttl_seconds, .. } = found.head;
    let data =
        WrappingData { creation_path: path, creation_time: created.to_string(), creation_ttl: ttl_seconds };
    Ok(answer::data(worker, &data))
}

/// Tell where a wrapped answer comes from, and leave it there. PUT does the same.
#[utoipa::path(post, path = "/v1/sys/wrapping/lookup", tag = "transit", request_body = WrappingTokenBody,
    security(()), extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "Where it comes from", body = Envelope<WrappingData>), (status = "default", body = VaultErrorBody)))]
async fn transit_wrapping(
    State(worker): State<Worker>,
    headers: HeaderMap,
    body: SecretVaultBody,
) -> Result<Response> {
    lookup(&worker, wrapping_token(&worker, &headers, &body)?).await
}

/// Tell where the answer comes from whose wrapping token the request has, and leave it there.
#[utoipa::path(get, path = "/v1/sys/wrapping/lookup", tag = "transit",
    security(()), extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "Where it comes from", body = Envelope<WrappingData>), (status = "default", body = VaultErrorBody)))]
async fn transit_own_wrapping(
    State(worker): State<Worker>,
    headers: HeaderMap,
    body: SecretVaultBody,
) -> Result<Response> {
    lookup(&worker, wrapping_token(&worker, &headers, &body)?).await
}

/// Give a wrapped answer another wrapping token, for as long as before. The old one is no longer
/// valid. PUT does the same.
#[utoipa::path(post, path = "/v1/sys/wrapping/rewrap", tag = "transit", request_body = WrappingTokenBody,
    security(()), extensions(("x-permission" = json!("open"))),
    responses((status = 200, description = "The new wrapping token", body = WrapAnswer), (status = "default", body = VaultErrorBody)))]
async fn transit_rewrap_answer(
    State(worker): State<Worker>,
    headers: HeaderMap,
    body: SecretVaultBody,
) -> Result<Response> {
    let token = wrapping_token(&worker, &headers, &body)?;
    let (service, unsealed) = (worker.service.clone(), worker.service.unsealed()?);
    let queue = token.queue();
    let again = move || {
        let (rows, keystore) = (&service.rows, &unsealed.keystore);
        let Some(row) = token.row(rows, keystore)? else { return Ok(None) };
        let mut answer = WrappedAnswer::read(&row)?;
        answer.head.created = Timestamp::now()?;
        let new = WrappingToken::new(keystore, token.owner)?;
        // The new row comes first, so that a failure loses nothing: nobody has its token yet.
        answer.keep(rows, keystore, &new)?;
        if rows.remove(keystore, &row)? {
            return Ok(Some(info(keystore, &new, answer.head, None)));
        }
        // Somebody else has taken the answer.
        if let Some(row) = new.row(rows, keystore)? {
            rows.remove(keystore, &row)?;
        }
        Ok(None)
    };
    let info = worker.run_anonymous(&queue, again).await?.ok_or_else(not_valid)?;
    Ok(WrapAnswer::respond(&worker, info))
}
