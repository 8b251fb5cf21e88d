//! One call: a request, its repetitions, and its answer.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, RETRY_AFTER};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};
use zeroize::Zeroizing;

use crate::client::Client;
use crate::error::{Error, Refusal, Result};
use crate::secret::wiped;
use crate::transport::{Connection, Reuse, interrupted};

/// The longest answer that is read. A batch of 10,000 post-quantum signatures has about 80 MB.
const MAX_ANSWER_BYTES: usize = 256 << 20;
/// The most memory that is reserved for an answer before it arrives.
const MAX_PREALLOCATED_BYTES: usize = 1 << 20;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changes nothing, so that a repetition does no harm.
    None,
    /// It changes something.
    Change,
}

/// A request.
pub(crate) struct Call {
    method: Method,
    path: String,
    body: Option<Bytes>,
    effect: Effect,
}

impl Call {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: None, effect: Effect::None }
    }

    pub(crate) fn post(path: impl Into<String>, effect: Effect) -> Self {
        Self { method: Method::POST, path: path.into(), body: None, effect }
    }

    pub(crate) fn change(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, effect: Effect::Change }
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

/// The path of a key, followed by `part`.
pub(crate) fn key_path(key: &str, part: &str) -> String {
    format!("/api/v1/keys/{}{part}", escaped(key))
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
    /// How long the answer asks to wait.
    pause: Duration,
}

impl From<Error> for FailedAttempt {
    fn from(error: Error) -> Self {
        let repeat = match &error {
            Error::Refused(refusal) if refusal.retryable => RepeatPolicy::All,
            Error::Unreachable(_) => RepeatPolicy::All,
            Error::Interrupted(_) => RepeatPolicy::WithoutEffect,
            _ => RepeatPolicy::No,
        };
        Self { error, repeat, pause: Duration::ZERO }
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
        serde_json::from_slice(&answer).map_err(|error| {
            // The parser's message may quote a secret.
            let (line, column) = (error.line(), error.column());
            Error::Unexpected(format!(
                "its body does not have the form that this client expects, at line {line}, column {column}"
            ))
        })
    }

    /// Makes a call, and returns the answer's text unchanged, because some signatures cover the
    /// JSON as it is written.
    pub(crate) async fn text(&self, call: Call) -> Result<String> {
        let answer = self.answer(call).await?;
        String::from_utf8(answer.to_vec()).map_err(|_| Error::Unexpected("its body is not text".to_owned()))
    }

    /// Makes a call, and returns the body of its answer.
    async fn answer(&self, call: Call) -> Result<Zeroizing<Vec<u8>>> {
        let deadline = Instant::now() + self.deadline;
        let key = if call.effect == Effect::Change { Some(random_key()?) } else { None };
        let mut backoff = self.backoff;
        let mut attempt = 0;
        loop {
            let whole = async {
                let (answer, connection) = self.send(&call, key.as_deref()).await?;
                self.read(answer, connection).await
            };
            let failed = match timeout_at(deadline, whole).await {
                Err(_) => return Err(Error::Deadline(self.deadline)),
                Ok(Ok(body)) => return Ok(body),
                Ok(Err(failed)) => failed,
            };
            let pause = failed.pause + jitter(backoff)?;
            let late = Instant::now() + pause >= deadline;
            if attempt >= self.retries || late || !failed.may_repeat(call.effect) {
                return Err(failed.error);
            }
            sleep(pause).await;
            backoff = backoff.saturating_mul(2);
            attempt += 1;
        }
    }

    /// Makes a call whose answer is long, and returns the answer when it begins.
    pub(crate) async fn begin(&self, call: Call) -> Result<Response<Incoming>> {
        let sent = async {
            let (answer, connection) = self.send(&call, None).await?;
            match answer.status().is_success() {
                true => Ok(answer),
                false => Err(self
                    .read(answer, connection)
                    .await
                    .err()
                    .map_or_else(no_refusal, |failed| failed.error)),
            }
        };
        match timeout_at(Instant::now() + self.deadline, sent).await {
            Err(_) => Err(Error::Deadline(self.deadline)),
            Ok(begun) => begun,
        }
    }

    async fn send(&self, call: &Call, key: Option<&str>) -> Result<(Response<Incoming>, Connection)> {
        let address = self.address();
        let mut request = Request::builder()
            .method(&call.method)
            .uri(format!("{}{}", address.prefix(), call.path))
            .header(HOST, address.host());
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(key) = key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        let request = request
            .body(Full::new(call.body.clone().unwrap_or_default()))
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let reuse = if call.effect == Effect::Change { Reuse::Never } else { Reuse::Allowed };
        self.transport.send(request, reuse).await
    }

    /// Reads an answer to its end.
    async fn read(
        &self,
        answer: Response<Incoming>,
        connection: Connection,
    ) -> Result<Zeroizing<Vec<u8>>, FailedAttempt> {
        let (head, mut body) = answer.into_parts();
        let expected = usize::try_from(body.size_hint().lower())
            .unwrap_or(MAX_PREALLOCATED_BYTES)
            .min(MAX_PREALLOCATED_BYTES);
        // It may have a secret in it.
        let mut whole = Zeroizing::new(Vec::with_capacity(expected));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| interrupted(&error))?;
            let data = frame.data_ref().map_or(&[][..], |data| data);
            if whole.len() + data.len() > MAX_ANSWER_BYTES {
                return Err(Error::Unexpected("it is too long".to_owned()).into());
            }
            whole.extend_from_slice(data);
        }
        self.transport.keep(connection);
        if head.status.is_success() {
            return Ok(whole);
        }
        Err(FailedAttempt {
            pause: retry_after(&head.headers),
            ..refusal(head.status, &head.headers, &whole)
        })
    }
}

fn no_refusal() -> Error {
    Error::Unexpected("a refusal without a reason".to_owned())
}

/// The failure that an answer reports.
fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> FailedAttempt {
    let request_id = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    if let Ok(refusal) = serde_json::from_slice::<Refusal>(body) {
        return Error::from(Refusal { status: status.as_u16(), request_id, ..refusal }).into();
    }
    // A proxy in between answered. Some proxies answer 503, too, when the service got the request
    // and its answer was lost.
    let is_busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let repeat = if is_busy { RepeatPolicy::WithoutEffect } else { RepeatPolicy::No };
    let error = Error::Unexpected(format!("its status is {}", status.as_u16()));
    FailedAttempt { repeat, ..error.into() }
}

/// How long an answer asks to wait. The service writes seconds. A time, as some proxies write it,
/// does not count.
fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

/// A random part of a length of time.
fn jitter(most: Duration) -> Result<Duration> {
    let random = getrandom::u32().map_err(no_random)?;
    Ok(most.mul_f64(f64::from(random) / f64::from(u32::MAX)))
}

/// A new idempotency key.
fn random_key() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(no_random)?;
    Ok(hex::encode(bytes))
}

fn no_random(_: getrandom::Error) -> Error {
    Error::Invalid("the operating system gave no random bytes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &str) -> FailedAttempt {
        refusal(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes())
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
        assert_eq!(repeated(Error::Unreachable(String::new())), (true, true));
        assert_eq!(repeated(Error::Interrupted(String::new())), (true, false));
        assert_eq!(repeated(Error::Certificate(String::new())), (false, false));
        assert_eq!(repeated(Error::Unexpected(String::new())), (false, false));
        assert_eq!(repeated(Error::Invalid(String::new())), (false, false));
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
        assert_eq!(
            key_path("local/files/ed25519/a_b~c.d-e/v1", "/sign"),
            "/api/v1/keys/local%2Ffiles%2Fed25519%2Fa_b~c.d-e%2Fv1/sign"
        );
        assert_eq!(escaped("a b?c#d%e"), "a%20b%3Fc%23d%25e");
        assert_eq!(escaped("\u{e9}"), "%C3%A9");
        assert_eq!([escaped("."), escaped(".."), escaped("...")], ["%2E", "%2E%2E", "..."]);
    }

    #[test]
    fn pauses_have_the_lengths_that_are_asked_for() {
        let header = |value: &str| HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
        assert_eq!(retry_after(&header("7")), Duration::from_secs(7));
        assert_eq!(retry_after(&header("soon")), Duration::ZERO);
        assert_eq!(retry_after(&HeaderMap::new()), Duration::ZERO);
        let most = Duration::from_millis(50);
        let pauses: Vec<_> = (0..64).map(|_| jitter(most).unwrap()).collect();
        assert!(pauses.iter().all(|pause| *pause <= most));
        assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
    }

    #[test]
    fn an_answer_of_something_else_is_not_a_refusal() {
        assert_eq!(answered(502, "<html>").error, Error::Unexpected("its status is 502".to_owned()));
    }
}
