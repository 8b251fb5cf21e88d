//! One call: a request, its repetitions, and its answer.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{HeaderMap, Response as HttpResponse, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};
use zeroize::Zeroizing;

use crate::client::Client;
use crate::connection::{Reuse, interrupted};
use crate::encoding::wiped;
use crate::error::{Error, ErrorKind, ResponseInfo, Result, ServiceError};
use crate::middleware::{Next, Request, Response};
use crate::operation::{Effect, Operation};

/// The longest answer that is read. A batch of 10,000 post-quantum signatures has about 80 MB.
const MAX_ANSWER_BYTES: usize = 256 << 20;
/// The most memory that is reserved for an answer before it arrives.
const MAX_PREALLOCATED_BYTES: usize = 1 << 20;

/// At least the length of the JSON around a request's secret.
pub(crate) const MAX_JSON_FRAME_LEN: usize = 4096;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a call asks of the service.
pub(crate) struct Call {
    pub(crate) operation: Operation,
    /// The path with its parameters' values, and the query.
    path: String,
    body: Option<Bytes>,
    /// A status that is an answer like any other although it is one of an error.
    expected_status: Option<StatusCode>,
}

impl Call {
    pub(crate) fn new(operation: Operation) -> Self {
        Self { operation, path: operation.path().to_owned(), body: None, expected_status: None }
    }

    /// A call about a key.
    pub(crate) fn of_key(operation: Operation, key: &str) -> Self {
        Self::new(operation).path_param("{key}", key)
    }

    /// Replaces a parameter of the path by its value.
    pub(crate) fn path_param(self, name: &str, value: &str) -> Self {
        Self { path: self.path.replace(name, &escaped(value)), ..self }
    }

    /// Adds a parameter of the query.
    pub(crate) fn query(self, name: &str, value: &str) -> Self {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        Self { path: format!("{}{separator}{name}={}", self.path, escaped(value)), ..self }
    }

    pub(crate) fn expect_status(self, status: StatusCode) -> Self {
        Self { expected_status: Some(status), ..self }
    }

    pub(crate) fn body(self, body: &impl Serialize) -> Self {
        self.secret_body(body, 0)
    }

    /// A body with a secret in it, of at most `length` bytes: it is written in one place, and
    /// wiped.
    pub(crate) fn secret_body(self, body: &impl Serialize, length: usize) -> Self {
        let mut text = Zeroizing::new(Vec::with_capacity(length));
        serde_json::to_writer(&mut *text, body).expect("plain structures serialize");
        Self { body: Some(wiped(text)), ..self }
    }
}

/// A text as a part of a path or as a value of a query.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    // A path would lose these.
    if matches!(out.as_str(), "." | "..") { out.replace('.', "%2E") } else { out }
}

/// Which requests may be repeated after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RepeatPolicy {
    No,
    /// Those that change nothing: the service may have done what was asked.
    WithoutEffect,
    All,
}

/// A failed attempt.
#[derive(Debug)]
struct FailedAttempt {
    error: Error,
    repeat: RepeatPolicy,
}

impl From<Error> for FailedAttempt {
    fn from(error: Error) -> Self {
        let repeat = match error.kind() {
            _ if error.is_retryable() => RepeatPolicy::All,
            ErrorKind::Interrupted => RepeatPolicy::WithoutEffect,
            _ => RepeatPolicy::No,
        };
        Self { error, repeat }
    }
}

impl FailedAttempt {
    /// Whether a repetition may help, and does no harm.
    fn may_repeat(&self, effect: Effect) -> bool {
        match self.repeat {
            RepeatPolicy::No => false,
            RepeatPolicy::WithoutEffect => effect == Effect::None,
            RepeatPolicy::All => true,
        }
    }
}

impl Client {
    /// Makes a call, and reads its answer.
    pub(crate) async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T> {
        let answer = self.answer(call).await?;
        serde_json::from_slice(&answer).map_err(|error| unknown_form::<T>(&answer, &error))
    }

    /// Makes a call, and returns the answer's text unchanged, because some signatures cover the
    /// JSON as it is written.
    pub(crate) async fn text(&self, call: Call) -> Result<String> {
        let answer = self.answer(call).await?;
        String::from_utf8(answer.to_vec()).map_err(|_| Error::invalid_response("its body is not text"))
    }

    /// Makes a call, and returns the body of its answer.
    async fn answer(&self, call: Call) -> Result<Zeroizing<Vec<u8>>> {
        let options = &self.options;
        let deadline = Instant::now() + options.timeout;
        let key = match call.operation.effect() {
            Effect::Change => Some(random_key()?),
            Effect::None => None,
        };
        let mut backoff = options.initial_backoff;
        let mut attempt = 0;
        loop {
            let whole = async {
                let response = self.attempt(&call, attempt, key.as_ref()).await?;
                self.read(&call, response).await
            };
            let failed = match timeout_at(deadline, whole).await {
                Err(_) => return Err(Error::timeout(options.timeout)),
                Ok(Ok(body)) => return Ok(body),
                Ok(Err(failed)) => failed,
            };
            let pause = failed.error.retry_after().unwrap_or_default() + jitter(backoff)?;
            let late = Instant::now() + pause >= deadline;
            if attempt >= options.max_retries || late || !failed.may_repeat(call.operation.effect()) {
                return Err(failed.error);
            }
            sleep(pause).await;
            backoff = backoff.saturating_mul(2);
            attempt += 1;
        }
    }

    /// Makes a call whose answer is long, and returns the answer when it begins.
    pub(crate) async fn begin(&self, call: Call) -> Result<HttpResponse<Incoming>> {
        let timeout = self.options.timeout;
        let sent = async {
            let response = self.attempt(&call, 0, None).await?;
            if response.answer.status().is_success() {
                return Ok(response.answer);
            }
            let failed = self.read(&call, response).await.err().map(|failed| failed.error);
            Err(failed.unwrap_or_else(|| Error::invalid_response("an error without a reason")))
        };
        timeout_at(Instant::now() + timeout, sent).await.unwrap_or_else(|_| Err(Error::timeout(timeout)))
    }

    /// Makes one attempt, through the middlewares.
    async fn attempt(&self, call: &Call, attempt: u32, key: Option<&HeaderValue>) -> Result<Response> {
        let request = Request { call, attempt, headers: self.headers(call, key)? };
        let sent = async {
            match self.options.middleware.as_slice() {
                [] => self.send(request).await,
                rest => Next { client: self, rest }.run(request).await,
            }
        };
        #[cfg(feature = "tracing")]
        let sent = crate::trace::trace_request(call.operation, self.address(), attempt, sent);
        sent.await
    }

    fn headers(&self, call: &Call, key: Option<&HeaderValue>) -> Result<HeaderMap> {
        let mut headers = HeaderMap::with_capacity(4);
        let host = HeaderValue::from_str(self.address().host())
            .map_err(|error| Error::invalid_argument("the host's name is no header").with_source(error))?;
        headers.insert(HOST, host);
        if call.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = key {
            headers.insert(IDEMPOTENCY_KEY, key.clone());
        }
        Ok(headers)
    }

    /// Sends a request with the token.
    pub(crate) async fn send(&self, request: Request<'_>) -> Result<Response> {
        let Request { call, mut headers, .. } = request;
        if let Some(token) = self.options.token.header().await? {
            headers.insert(AUTHORIZATION, token);
        }
        let mut request = hyper::Request::builder()
            .method(call.operation.method())
            .uri(format!("{}{}", self.address().prefix(), call.path))
            .body(Full::new(call.body.clone().unwrap_or_default()))
            .map_err(|error| Error::invalid_argument("the path is not one of HTTP").with_source(error))?;
        *request.headers_mut() = headers;
        let reuse = if call.operation.is_change() { Reuse::Never } else { Reuse::Allowed };
        let (answer, connection) = self.transport.send(request, reuse).await?;
        Ok(Response { answer, connection })
    }

    /// Reads an answer to its end.
    async fn read(&self, call: &Call, response: Response) -> Result<Zeroizing<Vec<u8>>, FailedAttempt> {
        let (head, mut body) = response.answer.into_parts();
        let expected = usize::try_from(body.size_hint().lower())
            .unwrap_or(MAX_PREALLOCATED_BYTES)
            .min(MAX_PREALLOCATED_BYTES);
        // It may have a secret in it.
        let mut whole = Zeroizing::new(Vec::with_capacity(expected));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(interrupted)?;
            let data = frame.data_ref().map_or(&[][..], |data| data);
            if whole.len() + data.len() > MAX_ANSWER_BYTES {
                return Err(Error::invalid_response("it is too long").into());
            }
            whole.extend_from_slice(data);
        }
        self.transport.keep(response.connection);
        if head.status.is_success() {
            return Ok(whole);
        }
        let is_expected = call.expected_status == Some(head.status) && is_json(&head.headers);
        match failure(head.status, &head.headers, &whole) {
            FailedAttempt { error, .. } if is_expected && error.service_error().is_none() => Ok(whole),
            failed => Err(failed),
        }
    }
}

/// The error if an answer does not have the form that this client expects. Only then is it read
/// again, to find the path.
fn unknown_form<T: DeserializeOwned>(answer: &[u8], error: &serde_json::Error) -> Error {
    let mut json = serde_json::Deserializer::from_slice(answer);
    let found = serde_path_to_error::deserialize::<_, T>(&mut json).err();
    let path = found.map_or_else(|| ".".to_owned(), |error| error.path().to_string());
    // The parser's message may quote a secret.
    let (line, column) = (error.line(), error.column());
    Error::invalid_response(format_args!(
        "its body does not have the form that this client expects, at {path}, line {line}, column {column}"
    ))
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
}

/// The failure that an answer reports.
fn failure(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> FailedAttempt {
    let response = ResponseInfo {
        status: Some(status.as_u16()),
        request_id: headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).map(str::to_owned),
        retry_after: retry_after(headers),
    };
    if let Ok(error) = serde_json::from_slice::<ServiceError>(body) {
        return Error::service(error).with_response(response).into();
    }
    // A proxy in between answered. Some proxies answer 503, too, when the service got the request
    // and its answer was lost.
    let is_busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let repeat = if is_busy { RepeatPolicy::WithoutEffect } else { RepeatPolicy::No };
    let error = Error::invalid_response(format_args!("its status is {}", status.as_u16()));
    FailedAttempt { error: error.with_response(response), repeat }
}

/// How long an answer asks to wait. The service writes seconds. A time, as some proxies write it,
/// does not count.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// A random part of a length of time.
fn jitter(max: Duration) -> Result<Duration> {
    let random = getrandom::u32().map_err(no_random)?;
    Ok(max.mul_f64(f64::from(random) / f64::from(u32::MAX)))
}

/// A new idempotency key.
fn random_key() -> Result<HeaderValue> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(no_random)?;
    Ok(HeaderValue::from_str(&hex::encode(bytes)).expect("hexadecimal digits are visible"))
}

fn no_random(error: getrandom::Error) -> Error {
    Error::invalid_argument("the operating system gave no random bytes").with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &str) -> FailedAttempt {
        failure(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes())
    }

    fn refused(retryable: bool) -> FailedAttempt {
        answered(503, &format!(r#"{{"code":"busy","message":"a","retryable":{retryable}}}"#))
    }

    /// Whether a request without an effect is repeated, and whether a change is.
    fn repeated(failed: impl Into<FailedAttempt>) -> (bool, bool) {
        let failed = failed.into();
        (failed.may_repeat(Effect::None), failed.may_repeat(Effect::Change))
    }

    #[test]
    fn a_request_is_repeated_if_the_service_says_so_or_the_repetition_does_no_harm() {
        assert_eq!(repeated(refused(true)), (true, true));
        assert_eq!(repeated(refused(false)), (false, false));
        assert_eq!(repeated(Error::new(ErrorKind::Connect, "")), (true, true));
        assert_eq!(repeated(Error::new(ErrorKind::Interrupted, "")), (true, false));
        assert_eq!(repeated(Error::new(ErrorKind::Certificate, "")), (false, false));
        assert_eq!(repeated(Error::invalid_response("")), (false, false));
        assert_eq!(repeated(Error::invalid_argument("")), (false, false));
    }

    #[test]
    fn a_busy_proxy_is_asked_again_unless_the_request_changes_something() {
        for status in [429, 503] {
            assert_eq!(repeated(answered(status, "<html>")), (true, false), "{status}");
        }
        for status in [400, 403, 500, 502, 504] {
            assert_eq!(repeated(answered(status, "<html>")), (false, false), "{status}");
        }
    }

    #[test]
    fn names_are_escaped_and_stay_one_part_of_the_path() {
        let call = Call::of_key(Operation::Sign, "local/files/ed25519/a_b~c.d-e/v1");
        assert_eq!(call.path, "/api/v1/keys/local%2Ffiles%2Fed25519%2Fa_b~c.d-e%2Fv1/sign");
        let call = Call::new(Operation::Keys).query("limit", "7").query("after", "a&b");
        assert_eq!(call.path, "/api/v1/keys?limit=7&after=a%26b");
        assert_eq!(escaped("a b?c#d%e"), "a%20b%3Fc%23d%25e");
        assert_eq!(escaped("\u{e9}"), "%C3%A9");
        assert_eq!([escaped("."), escaped(".."), escaped("...")], ["%2E", "%2E%2E", "..."]);
    }

    #[test]
    fn pauses_have_the_lengths_that_are_asked_for() {
        let header = |value: &str| HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
        assert_eq!(retry_after(&header("7")), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(&header("soon")), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
        let max = Duration::from_millis(50);
        let pauses: Vec<_> = (0..64).map(|_| jitter(max).unwrap()).collect();
        assert!(pauses.iter().all(|pause| *pause <= max));
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
    }

    #[test]
    fn an_answer_of_something_else_is_not_an_error_of_the_service() {
        let error = answered(502, "<html>").error;
        assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidResponse, Some(502)));
        assert_eq!(error.to_string(), "the answer is not one of the service: its status is 502");
    }
}
