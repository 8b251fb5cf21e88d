//! The header `Idempotency-Key`: a request has its effect once, however often it is sent.
//!
//! It wraps the endpoints that change something. A request without the header passes unchanged.

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest as _, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bulla_kms::{Code, KmsError};
use hyper::body::Bytes;
use utoipa::openapi::path::{ParameterBuilder, ParameterIn};
use utoipa::openapi::{ObjectBuilder, OpenApi, Required, Type};

use super::operations;
use crate::cluster::{ClaimOutcome, RequestClaim};
use crate::error::{ApiError, ApiErrorCode, Result};
use crate::request::{BodyBytes, Caller};
use crate::service::{
    AnswerOwner, PriorRequest, RequestDigest, RequestOutcome, StoredAnswer, UnsealedService, Worker,
    run_off_thread,
};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header of a stored answer that is sent again.
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const MAX_KEY_LEN: usize = 128;

/// Bodies of this length are hashed on the thread that serves.
const MAX_INLINE_HASH_LEN: usize = 32 << 10;

/// Runs a request with an idempotency key, or gives the answer that it had before.
pub(crate) async fn idempotent(State(worker): State<Worker>, request: Request, next: Next) -> Response {
    if request.method().is_safe() || !request.headers().contains_key(IDEMPOTENCY_KEY) {
        return next.run(request).await;
    }
    with_key(worker, request, next).await.unwrap_or_else(ApiError::into_response)
}

async fn with_key(worker: Worker, request: Request, next: Next) -> Result<Response> {
    let (parts, body) = request.into_parts();
    // Only a verified caller gets a stored answer. The handler counts the request, or the code
    // below does.
    let at_head = Caller::verified(&parts, &worker)?;
    let counted = |error| at_head.session.count(1).err().unwrap_or(error);
    let key = key_of(&parts.headers).map_err(counted)?;
    let BodyBytes(body) = BodyBytes::from_request(Request::new(body), &worker).await.map_err(counted)?;
    // Verified again: the caller may have lost its rights while the body arrived.
    let Caller { session, unsealed } = Caller::verified(&parts, &worker)?;
    let request = digest(&worker, &unsealed, &parts, body.clone()).await?;
    let (tenant, actor) = (session.authority.tenant.clone(), session.actor.clone());
    let owner = AnswerOwner { tenant, actor };
    let before = worker.service.answers.begin(&owner, &key, request, Instant::now());
    if before != PriorRequest::None {
        session.count(1)?;
        return replayed(before);
    }
    let mut running =
        RunningRequest { worker, unsealed, owner, key, ended: Some(RequestOutcome::Retryable), claim: None };
    // It runs to its end even if the caller goes away. A repetition then gets its answer.
    let run = tokio::spawn(async move {
        match running.claim_in_cluster(request).await {
            Ok(None) => {}
            Ok(Some(before)) => {
                session.count(1)?;
                return replayed(before);
            }
            Err(error) => return Err(session.count(1).err().unwrap_or(error)),
        }
        running.ended = None;
        let response = next.run(Request::from_parts(parts, Body::from(body))).await;
        running.finish(response).await
    });
    run.await.map_err(|_| ApiError::panicked())?
}

/// # Errors
/// The header is not a key.
fn key_of(headers: &HeaderMap) -> Result<String> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    let (key, more) = (keys.next().map_or(&[][..], HeaderValue::as_bytes), keys.next());
    let is_key = (1..=MAX_KEY_LEN).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(key) {
        Ok(key) if is_key && more.is_none() => Ok(key.to_owned()),
        _ => Err(ApiError::malformed(format!(
            "an Idempotency-Key has 1 to {MAX_KEY_LEN} visible ASCII characters"
        ))),
    }
}

async fn digest(
    worker: &Worker,
    unsealed: &UnsealedService,
    parts: &Parts,
    body: Bytes,
) -> Result<RequestDigest> {
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let mut text = Vec::with_capacity(path.len() + 64);
    text.extend_from_slice(parts.method.as_str().as_bytes());
    text.push(b' ');
    text.extend_from_slice(path.as_bytes());
    text.push(b' ');
    let body = if body.len() <= MAX_INLINE_HASH_LEN {
        bulla_blake3::hash(&body)
    } else {
        run_off_thread(move || bulla_blake3::hash(&body)).await?
    };
    text.extend_from_slice(body.as_bytes());
    // Hashed with the service's secret, so that the stored digest reveals nothing about a secret in
    // the request.
    Ok(match worker.service.cluster {
        None => worker.service.digest(&text),
        // All nodes must find the same.
        Some(_) => unsealed.keystore.data_cipher().keyed_digest(&text),
    })
}

/// The answer to a repetition.
fn replayed(before: PriorRequest) -> Result<Response> {
    let conflict = |message| ApiError::from(KmsError::new(Code::Conflict, message));
    match before {
        PriorRequest::Answered(StoredAnswer { status, content_type, body }) => {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = status;
            let headers = response.headers_mut();
            headers.extend(content_type.map(|content_type| (header::CONTENT_TYPE, content_type)));
            headers.insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
            Ok(response)
        }
        PriorRequest::AnotherRequest => {
            let message = "the Idempotency-Key was used for another request; take a new key for each request";
            Err(ApiError::new(ApiErrorCode::IdempotencyKeyReused, message))
        }
        PriorRequest::Running => {
            let mut error = conflict("the first request with this Idempotency-Key is still running");
            error.body.retryable = true;
            Err(error)
        }
        PriorRequest::Unkept => Err(conflict(
            "the request with this Idempotency-Key was made before, and its answer was not kept: it held a secret, was too long, or \
             got lost",
        )),
        PriorRequest::TooMany | PriorRequest::None => {
            let message = "too many requests with an Idempotency-Key are running";
            Err(KmsError::new(Code::Busy, message).into())
        }
    }
}

/// A request that runs. When it ends in any way, the list of answers is told.
struct RunningRequest {
    worker: Worker,
    unsealed: Arc<UnsealedService>,
    owner: AnswerOwner,
    key: String,
    ended: Option<RequestOutcome>,
    /// The request as the other nodes know it, if there are others.
    claim: Option<RequestClaim>,
}

impl RunningRequest {
    /// Asks what the other nodes know of the request. If they know nothing, this node runs it from
    /// now on.
    async fn claim_in_cluster(&mut self, request: RequestDigest) -> Result<Option<PriorRequest>> {
        let Some(cluster) = self.worker.service.cluster.clone() else { return Ok(None) };
        let (unsealed, owner, key) = (Arc::clone(&self.unsealed), self.owner.clone(), self.key.clone());
        match run_off_thread(move || cluster.begin(&unsealed.keystore, &owner, &key, request)).await?? {
            ClaimOutcome::Run(claim) => {
                self.claim = Some(claim);
                Ok(None)
            }
            ClaimOutcome::Prior(before) => Ok(Some(before)),
        }
    }

    /// Tells the other nodes how the request ended, before its caller learns it.
    async fn publish_outcome(&mut self) {
        let others = self.worker.service.cluster.clone().zip(self.claim.take()).zip(self.ended.clone());
        let Some(((cluster, claim), ended)) = others else { return };
        let unsealed = Arc::clone(&self.unsealed);
        // If this fails, the row says that the request runs, until this node ends.
        let _ = run_off_thread(move || cluster.end(&unsealed.keystore, claim, &ended)).await;
    }

    async fn finish(mut self, response: Response) -> Result<Response> {
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await;
        let body = body.map_err(|_| ApiError::internal("an answer cannot be read"))?;
        let is_secret = parts.headers.get(header::CACHE_CONTROL).is_some_and(|value| value == "no-store");
        self.ended = Some(if parts.headers.contains_key(header::RETRY_AFTER) {
            RequestOutcome::Retryable
        } else if is_secret {
            RequestOutcome::Unkept
        } else {
            let content_type = parts.headers.get(header::CONTENT_TYPE).cloned();
            RequestOutcome::Answered(StoredAnswer { status: parts.status, content_type, body: body.clone() })
        });
        self.publish_outcome().await;
        Ok(Response::from_parts(parts, Body::from(body)))
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        // The request did not end: the handler panicked, and may have changed something.
        let ended = self.ended.take().unwrap_or(RequestOutcome::Unkept);
        if let (Some(cluster), Some(claim)) = (&self.worker.service.cluster, self.claim.take()) {
            cluster.end_later(&self.unsealed.keystore, claim, &ended);
        }
        self.worker.service.answers.end(&self.owner, &self.key, ended);
    }
}

/// Adds the header to the description of all operations that take it.
pub(super) fn describe(description: &mut OpenApi) {
    let schema =
        ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(MAX_KEY_LEN));
    let parameter = ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("A repetition with the same key gets the first answer and changes nothing"))
        .schema(Some(schema.pattern(Some("^[!-~]+$"))))
        .build();
    for (method, operation) in description.paths.paths.values_mut().flat_map(operations) {
        if method != "get" {
            operation.parameters.get_or_insert_default().push(parameter.clone().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::http::StatusCode;
    use axum::middleware::from_fn_with_state;
    use axum::routing::post;
    use bulla_kms::metrics::Metrics;
    use bulla_kms::{Keystore, SecretString};
    use tower_service::Service as _;

    use super::*;
    use crate::access::{Authority, OperationSet, Session};
    use crate::config::Config;
    use crate::request::{Connection, ConnectionProof, Peer};
    use crate::service::{KeystoreSource, OpenKeystore, Service, WorkerState};

    struct Memory;

    impl KeystoreSource for Memory {
        fn needs_passphrase(&self) -> bool {
            false
        }

        fn open(&self, _: Option<SecretString>, _: &Arc<Metrics>) -> bulla_kms::Result<OpenKeystore> {
            Ok(OpenKeystore { keystore: Keystore::in_memory().unwrap(), audit: None })
        }
    }

    /// A connection that proves its caller for as long as it is open.
    #[derive(Debug)]
    struct Proven(Arc<Session>);

    impl Connection for Proven {
        fn session(&self) -> Option<Arc<Session>> {
            Some(Arc::clone(&self.0))
        }

        fn is_local(&self) -> bool {
            true
        }

        fn proof(&self) -> ConnectionProof {
            ConnectionProof::Connection
        }
    }

    fn caller() -> Peer {
        let tenant = "local".parse().unwrap();
        let operations = OperationSet::ALL;
        let authority = Authority {
            tenant,
            operations,
            keys: None,
            policies: Vec::new(),
            expires: None,
            can_mint_tokens: false,
        };
        let actor = "caller".parse().unwrap();
        let session = Session {
            authority,
            actor,
            home: None,
            limiter: None,
            quota: None,
            revocation_ids: Vec::new(),
            acls: Vec::new(),
        };
        Peer { connection: Arc::new(Proven(Arc::new(session))), caller_slot: None }
    }

    #[test]
    fn a_request_whose_handler_panicked_is_not_run_again() {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        async fn panics() -> StatusCode {
            // It may have changed something by now.
            RUNS.fetch_add(1, Ordering::Relaxed);
            panic!("on purpose")
        }
        let service = Arc::new(Service::new(Config::default(), 1, Box::new(Memory)).unwrap());
        service.unseal(None).unwrap();
        let worker = WorkerState::new(service, 0);
        let mut router = Router::new().route("/", post(panics)).layer(from_fn_with_state(worker, idempotent));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut ask = || {
            let request = Request::post("/").header(IDEMPOTENCY_KEY, "k").extension(caller());
            let request = request.body(Body::from("{}")).unwrap();
            let response: Response = runtime.block_on(router.call(request)).unwrap();
            (response.status(), response.headers().contains_key(header::RETRY_AFTER))
        };
        assert_eq!(ask(), (StatusCode::INTERNAL_SERVER_ERROR, false));
        assert_eq!(ask(), (StatusCode::CONFLICT, false));
        assert_eq!(RUNS.load(Ordering::Relaxed), 1);
    }
}
