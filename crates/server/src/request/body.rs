//! The body of a request: its limits, its JSON, its base64, and secrets in it.
//!
//! Every list has a bound, and reading stops there: a long list takes no memory for its entries.
//! Bodies with secrets are wiped, and so are their copies.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
use std::pin::Pin;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use base64_simd::STANDARD;
use bulla_kms::{Code, KmsError, SecretBytes};
use hyper::body::{Body as _, Bytes};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use tokio::time::timeout;
use zeroize::Zeroize as _;

use super::caller::{Caller, Peer, quota_of};
use super::long_body::LongBody;
use crate::access::BodyCount;
use crate::error::{ApiError, ApiErrorCode, Result};
use crate::service::{AnonymousBytes, BodyReservation, Worker};

/// The longest body of a request that needs no credential.
const MAX_ANONYMOUS_BODY_LEN: usize = 4 << 10;

/// A complete body, within the limits of length, time and memory.
pub(crate) struct BodyBytes(pub(crate) Bytes);

impl FromRequest<Worker> for BodyBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, worker: &Worker) -> Result<Self> {
        let (parts, body) = request.into_parts();
        if body.is_end_stream() {
            return Ok(Self(Bytes::new()));
        }
        let whole = BodyContent::read(&parts, body, CredentialNeed::Verified, worker).await?;
        Caller::verify_again(&parts, worker)?;
        Ok(Self(Bytes::from_owner(whole)))
    }
}

/// Whether an endpoint needs a credential, which was verified before its body is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CredentialNeed {
    Verified,
    None,
}

/// The bytes of a body, which count as long as they are there.
pub(super) struct BodyContent {
    bytes: Vec<u8>,
    _counted: CountedBody,
}

impl AsRef<[u8]> for BodyContent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl BodyContent {
    /// # Errors
    /// The body is too long or too slow, or all bodies together take too much memory.
    pub(super) async fn read(
        parts: &Parts,
        body: Body,
        needs: CredentialNeed,
        worker: &Worker,
    ) -> Result<Self> {
        let limits = worker.service.limits();
        // In memory of its own, so that what a handler has there stays small: memory of more than
        // 1024 bytes costs the usual allocators much more.
        let whole = Box::pin(timeout(limits.body_timeout(), Self::read_all(parts, body, needs, worker)));
        let late = |_| ApiError::new(ApiErrorCode::BodyTimeout, "the body did not arrive in time");
        let whole = whole.await.map_err(late)??;
        LongBody::leave_thread(parts, whole.bytes.len()).await;
        Ok(whole)
    }

    async fn read_all(parts: &Parts, mut body: Body, needs: CredentialNeed, worker: &Worker) -> Result<Self> {
        let limits = worker.service.limits();
        let most = match needs {
            CredentialNeed::Verified => limits.max_body_bytes,
            CredentialNeed::None => limits.max_body_bytes.min(MAX_ANONYMOUS_BODY_LEN),
        };
        let too_large =
            || ApiError::new(ApiErrorCode::BodyTooLarge, format!("the body is longer than {most} bytes"));
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > most {
            return Err(too_large());
        }
        let mut quota = BodyCount::new(quota_of(parts));
        // Refused before it arrives, if its length is known.
        quota.add(announced)?;
        let mut counted = CountedBody::begin(parts, needs, worker);
        let mut bytes = Vec::with_capacity(announced);
        let mut is_awaited = false;
        loop {
            let frame = poll_fn(|context| {
                let frame = Pin::new(&mut body).poll_frame(context);
                // The head stays as long as the body is awaited, and may be the longer one.
                if frame.is_pending() && !mem::replace(&mut is_awaited, true) {
                    counted.grow(head_len(parts))?;
                }
                frame.map(Ok::<_, ApiError>)
            });
            let Some(frame) = frame.await? else { break };
            let frame = frame.map_err(|_| ApiError::malformed("the body ended before its end"))?;
            let Ok(data) = frame.into_data() else { continue };
            if data.len() > most - bytes.len() {
                return Err(too_large());
            }
            counted.grow(data.len())?;
            append(&mut bytes, &data);
            if bytes.len() > announced {
                quota.add(data.len())?;
            }
        }
        Ok(Self { bytes, _counted: counted })
    }

    pub(super) fn wipe(&mut self) {
        drop(SecretBytes::from(mem::take(&mut self.bytes)));
    }
}

/// The bytes of one request among those of all.
enum CountedBody {
    /// Of a caller on the network who has shown nothing.
    Anonymous(AnonymousBytes),
    /// Of another caller, with the most that all of these may have.
    Known(BodyReservation, usize),
}

impl CountedBody {
    fn begin(parts: &Parts, needs: CredentialNeed, worker: &Worker) -> Self {
        let service = &worker.service;
        let peer = parts.extensions.get::<Peer>();
        let is_anonymous = needs == CredentialNeed::None && peer.is_none_or(|peer| peer.session().is_none());
        match peer.and_then(|peer| peer.connection.address()) {
            Some(address) if is_anonymous => Self::Anonymous(service.anonymous_memory.begin(address)),
            // The memory limit does not apply to Unix sockets, so other callers cannot lock
            // operators out.
            None if peer.is_some_and(Peer::is_local) => Self::Known(service.bodies.begin(), usize::MAX),
            _ => Self::Known(service.bodies.begin(), service.limits().max_total_body_bytes),
        }
    }

    /// # Errors
    /// All together would take more memory than they may.
    fn grow(&mut self, bytes: usize) -> Result<()> {
        let fits = match self {
            Self::Anonymous(counted) => counted.grow(bytes),
            Self::Known(counted, most) => counted.grow(bytes, *most),
        };
        if fits {
            return Ok(());
        }
        let message = "the bodies of all requests take as much memory as they may: try again";
        Err(KmsError::new(Code::Busy, message).into())
    }
}

/// What the HTTP library keeps of each header besides its text.
const HEADER_OVERHEAD: usize = 100;

/// About how many bytes the head of a request takes.
fn head_len(parts: &Parts) -> usize {
    let path = parts.uri.path_and_query().map_or(0, |path| path.as_str().len());
    let headers = parts.headers.iter();
    path + headers.map(|(name, value)| HEADER_OVERHEAD + name.as_str().len() + value.len()).sum::<usize>()
}

/// Appends bytes. A vector that moved would leave a copy behind, and the bytes may be secret.
fn append(bytes: &mut Vec<u8>, more: &[u8]) {
    let length = bytes.len() + more.len();
    if length > bytes.capacity() {
        let mut larger = Vec::with_capacity(length.max(2 * bytes.capacity()));
        larger.extend_from_slice(bytes);
        drop(SecretBytes::from(mem::replace(bytes, larger)));
    }
    bytes.extend_from_slice(more);
}

/// Reads a body as JSON. Texts without escapes are borrowed from the body.
///
/// # Errors
/// It is not the JSON of a `T`.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    // The library would take a list of values for an object.
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(ApiError::malformed("the body is a list, and must be an object"));
    }
    serde_json::from_slice(body).map_err(|error| {
        // The library's error quotes the body, which may contain a secret.
        let at = format!("line {}, column {}", error.line(), error.column());
        let what = match error.classify() {
            serde_json::error::Category::Data => match too_long(&error.to_string()) {
                Some(what) => return ApiError::new(ApiErrorCode::TooManyItems, format!("{what} ({at})")),
                None => data_error(&error),
            },
            serde_json::error::Category::Eof => "the body ends too early".to_owned(),
            _ => "the body is not JSON".to_owned(),
        };
        ApiError::malformed(format!("{what} ({at})"))
    })
}

/// The longest body for [`parse_short`].
const MAX_SHORT_BODY_LEN: usize = 128 << 10;

/// As [`parse`], for a request that carries no data, and in which there is a part without a bound
/// of its own: a rule, the subject of a request for approval, claims. Reading such a part copies
/// it, into many times its length, while other connections of the thread wait.
///
/// # Errors
/// Those of [`check_short`] and [`parse`].
pub(crate) fn parse_short<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    check_short(body)?;
    parse(body)
}

/// # Errors
/// The body is longer than any that means something, for a request that carries no data.
pub(crate) fn check_short(body: &[u8]) -> Result<()> {
    if body.len() > MAX_SHORT_BODY_LEN {
        let message = format!("the body of this request has at most {MAX_SHORT_BODY_LEN} bytes");
        return Err(ApiError::new(ApiErrorCode::BodyTooLarge, message));
    }
    Ok(())
}

/// The message for a [`List`] with more entries than it may have. The library's error about it
/// quotes nothing of the body.
fn too_long(error: &str) -> Option<String> {
    let (_, expected) = error.strip_prefix("invalid length ")?.split_once(", expected ")?;
    let expected = expected.rsplit_once(" at line").map_or(expected, |(expected, _)| expected);
    expected.starts_with(LIST_BOUND).then(|| format!("a list is too long: expected {expected}"))
}

/// Why JSON does not have the form that is expected, without the values in it.
fn data_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let field = |prefix: &str| {
        let rest = text.strip_prefix(prefix)?;
        rest.split_once('`').map(|(name, _)| name.to_owned())
    };
    if let Some(name) = field("missing field `") {
        return format!("the field `{name}` is missing");
    }
    match text.split_once(", expected ") {
        Some((_, expected)) => {
            let expected = expected.rsplit_once(" at line").map_or(expected, |(expected, _)| expected);
            format!("the body does not have the expected form: expected {expected}")
        }
        None => "the body does not have the expected form".to_owned(),
    }
}

/// The start of serde's message about lists. No other type expects this.
pub(crate) const LIST_BOUND: &str = "a list of at most ";

/// At most `MAX_LEN` entries.
#[derive(Debug)]
pub(crate) struct List<T, const MAX_LEN: usize>(Vec<T>);

/// The items of a batch: at most as many as the setting `limits.max_batch_items` may say.
pub(crate) type Items<T> = List<Object<T>, { crate::config::MAX_ITEMS }>;

/// A value that is read from an object alone. For a struct, the library would also take a list of
/// the fields' values.
#[derive(Debug, Default)]
pub(crate) struct Object<T>(pub(crate) T);

impl<T> Deref for Object<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

// Derived, it would need a default of the entries.
impl<T, const MAX_LEN: usize> Default for List<T, MAX_LEN> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MAX_LEN: usize> Deref for List<T, MAX_LEN> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const MAX_LEN: usize> IntoIterator for List<T, MAX_LEN> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T, const MAX_LEN: usize> From<List<T, MAX_LEN>> for Vec<T> {
    fn from(list: List<T, MAX_LEN>) -> Self {
        list.0
    }
}

impl<'de, T: Deserialize<'de>, const MAX_LEN: usize> Deserialize<'de> for List<T, MAX_LEN> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Entries::<T, MAX_LEN>(PhantomData))
    }
}

struct Entries<T, const MAX_LEN: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX_LEN: usize> Visitor<'de> for Entries<T, MAX_LEN> {
    type Value = List<T, MAX_LEN>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{LIST_BOUND}{MAX_LEN} entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while list.len() < MAX_LEN {
            match entries.next_element()? {
                Some(entry) => list.push(entry),
                None => return Ok(List(list)),
            }
        }
        match entries.next_element::<IgnoredAny>()? {
            Some(_) => Err(A::Error::invalid_length(MAX_LEN + 1, &self)),
            None => Ok(List(list)),
        }
    }
}

/// # Errors
/// The text is not base64; `what` names it.
pub(crate) fn decode(text: &str, what: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    decode_into(text, what, &mut bytes)?;
    Ok(bytes)
}

/// Appends what the text encodes.
///
/// # Errors
/// As for [`decode`].
pub(crate) fn decode_into(text: &str, what: &str, bytes: &mut Vec<u8>) -> Result<()> {
    let wrong = |_| ApiError::malformed(format!("`{what}` is not base64 (standard alphabet, with padding)"));
    STANDARD.decode_append(text, bytes).map_err(wrong)
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode_to_string(bytes)
}

/// A whole body with a secret in it, of a caller whose credential was verified.
pub(crate) struct SecretContent(BodyContent);

impl FromRequest<Worker> for SecretContent {
    type Rejection = ApiError;

    async fn from_request(request: Request, worker: &Worker) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let whole = BodyContent::read(&parts, body, CredentialNeed::Verified, worker).await?;
        Caller::verify_again(&parts, worker)?;
        Ok(Self(whole))
    }
}

/// A short body with a secret in it, which may be all that the caller shows.
pub(crate) struct SecretProof(SecretContent);

impl FromRequest<Worker> for SecretProof {
    type Rejection = ApiError;

    async fn from_request(request: Request, worker: &Worker) -> Result<Self> {
        let (parts, body) = request.into_parts();
        let whole = BodyContent::read(&parts, body, CredentialNeed::None, worker).await?;
        Ok(Self(SecretContent(whole)))
    }
}

impl Deref for SecretProof {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for SecretContent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl Drop for SecretContent {
    fn drop(&mut self) {
        self.0.wipe();
    }
}

/// A secret text of a body. A text without escapes stays in the body; one with escapes is a copy,
/// which is wiped.
pub(crate) struct SecretText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for SecretText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Borrowing<'b>(#[serde(borrow)] Cow<'b, str>);
        Borrowing::deserialize(deserializer).map(|text| Self(text.0))
    }
}

impl Deref for SecretText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Drop for SecretText<'_> {
    fn drop(&mut self) {
        if let Cow::Owned(text) = &mut self.0 {
            text.zeroize();
        }
    }
}

/// Decodes base64 into memory that is wiped, also when the text turns out not to be base64.
///
/// # Errors
/// Those of [`decode_into`].
pub(crate) fn decode_secret(text: &str, what: &str) -> Result<SecretBytes> {
    // As much as any text of this length encodes, so that the buffer never moves.
    let mut bytes = SecretBytes::with_capacity(text.len().div_ceil(4) * 3);
    decode_into(text, what, &mut bytes)?;
    Ok(bytes)
}

/// An answer of JSON with a secret in it, which no cache keeps. `length` is at least that of the
/// JSON: a buffer that grows leaves copies behind.
///
/// # Errors
/// The value has no JSON.
pub(crate) fn secret_json(value: &impl Serialize, length: usize) -> Result<Response> {
    let mut json = SecretBytes::with_capacity(length);
    serde_json::to_writer(&mut *json, value).map_err(|_| ApiError::internal("an answer has no JSON"))?;
    let mut response = no_store(Response::new(Body::from(Bytes::from_owner(json))));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// An answer that no cache keeps.
pub(crate) fn no_store(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod content_tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only whether it parses counts")]
    struct TestForm<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        number: u32,
    }

    #[test]
    fn errors_say_where_and_never_quote_a_value() {
        let said = |body: &str| parse::<TestForm<'_>>(body.as_bytes()).unwrap_err().body.message;
        assert_eq!(said(r#"{"name":"a"}"#), "the field `number` is missing (line 1, column 12)");
        for body in [
            r#"{"name":"a","number":"hunter2"}"#,
            r#"{"name":"a","number":1,"hunter2":3}"#,
            r#"{"name":"a","number":1}hunter2"#,
            r#""hunter2""#,
            r#"{"name":"hunter2"#,
        ] {
            assert!(!said(body).contains("hunter2"), "{}", said(body));
        }
        assert!(parse::<TestForm<'_>>(br#"{"name":"a\u0000","number":1}"#).is_ok());
        assert!(parse::<TestForm<'_>>(b"{\"name\":\"\xff\",\"number\":1}").is_err());
    }
}

#[cfg(test)]
mod list_tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_list_that_is_too_long_is_not_read_to_its_end() {
        #[derive(Deserialize)]
        struct Names<'a> {
            #[serde(borrow)]
            names: List<&'a str, 3>,
        }
        let read = |body: &'static str| parse::<Names<'_>>(body.as_bytes()).map(|read| read.names);
        assert_eq!(&*read(r#"{"names":["a","b","c"]}"#).unwrap(), ["a", "b", "c"]);
        assert!(read(r#"{"names":[]}"#).unwrap().is_empty());
        // What follows the fourth entry is no JSON, and nobody notices.
        let error = read(r#"{"names":["a","b","c","hunter2", what"#).unwrap_err();
        assert_eq!(error.body.code, "too_many_items");
        let expected = "a list is too long: expected a list of at most 3 entries (line 1, column ";
        assert!(error.body.message.starts_with(expected), "{}", error.body.message);
    }
}

#[cfg(test)]
mod base64_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn other_texts_of_the_same_bytes_are_refused() {
        assert_eq!(decode("TWE=", "x").unwrap(), b"Ma");
        assert_eq!(decode("", "x").unwrap(), b"");
        for text in ["TWE", "TWE==", "TWF=", "TW E=", "TWE=\n", "TWE=TWE=", "T", "====", "TW-_", "TWE\u{e9}"]
        {
            assert!(decode(text, "x").is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes: Vec<u8>, before: Vec<u8>) {
            let mut all = before.clone();
            decode_into(&encode(&bytes), "x", &mut all).unwrap();
            prop_assert_eq!(all, [before, bytes].concat());
        }

        #[test]
        fn a_text_that_decodes_is_the_one_of_its_bytes(text in "[A-D+/=\\-_ \n]{0,9}") {
            if let Ok(bytes) = decode(&text, "x") {
                prop_assert_eq!(encode(&bytes), text);
            }
        }
    }
}

#[cfg(test)]
mod head_tests {
    use super::*;

    #[test]
    fn many_short_headers_count_what_they_take_and_not_only_their_text() {
        let mut request = Request::builder().uri("/a");
        for _ in 0..1_000 {
            request = request.header("x", "");
        }
        let (parts, _) = request.body(Body::empty()).unwrap().into_parts();
        assert!(head_len(&parts) > 50_000, "{} bytes", head_len(&parts));
    }
}

#[cfg(test)]
mod secret_tests {
    use super::*;

    #[test]
    fn a_text_with_and_without_escapes_is_read() {
        let plain: SecretText<'_> = serde_json::from_str(r#""c2VjcmV0""#).unwrap();
        assert!(matches!(plain.0, Cow::Borrowed(_)) && &*plain == "c2VjcmV0");
        let escaped: SecretText<'_> = serde_json::from_str(r#""a\/b\n""#).unwrap();
        assert!(matches!(escaped.0, Cow::Owned(_)) && &*escaped == "a/b\n");
    }

    #[test]
    fn secrets_are_decoded_without_moving() {
        for length in 0..50 {
            let bytes = vec![7; length];
            let text = encode(&bytes);
            let decoded = decode_secret(&text, "x").unwrap();
            assert_eq!(*decoded, bytes);
            assert_eq!(decoded.capacity(), text.len().div_ceil(4) * 3, "it was not allocated again");
        }
        assert!(decode_secret("no base64", "x").is_err());
    }
}
