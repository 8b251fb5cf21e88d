//! What handlers take from a request of a Vault client: paths, lenient JSON, namespaces.
//!
//! A value may be given as text, as Vault's command line sends it. A value of `null` counts as
//! absent.

use std::borrow::Cow;
use std::fmt;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use base64_simd::STANDARD_NO_PAD;
use bulla_kms::SecretBytes;
use hyper::body::Bytes;
use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
use serde::{Deserialize, de};
use zeroize::{Zeroize as _, Zeroizing};

use super::answer::{Result, VaultError};
use super::form::{json_of_form, may_be_form};
use crate::config::MAX_ITEMS;
use crate::error::ApiError;
use crate::policy::{flag_of, seconds_of};
use crate::request::{
    self, BodyBytes, Caller, List, Namespace, Object, ParameterRules, SecretContent, SecretProof,
    check_short, parse,
};
use crate::service::Worker;

/// The verified caller.
pub(super) struct VaultCaller(pub(super) Caller);

impl FromRequestParts<Worker> for VaultCaller {
    type Rejection = VaultError;

    async fn from_request_parts(parts: &mut Parts, worker: &Worker) -> Result<Self> {
        Ok(Self(Caller::from_request_parts(parts, worker).await?))
    }
}

/// A whole body.
pub(super) struct VaultBody(Bytes);

impl FromRequest<Worker> for VaultBody {
    type Rejection = VaultError;

    async fn from_request(request: Request, worker: &Worker) -> Result<Self> {
        let rules = request.extensions().get::<ParameterRules>().cloned();
        let may_be_form = may_be_form(request.headers());
        let BodyBytes(mut body) = BodyBytes::from_request(request, worker).await?;
        if may_be_form && let Some(json) = json_of_form(&body)? {
            body = Bytes::from_owner(json);
        }
        rules.map_or(Ok(()), |rules| rules.check(&body))?;
        Ok(Self(body))
    }
}

impl VaultBody {
    /// Reads the body as JSON. An empty body and `null` count as an empty object.
    ///
    /// # Errors
    /// It is not the JSON of a `T`.
    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        object(&self.0)
    }

    /// As `parse`, for a request that carries no data: lists of names, certificates. Reading them
    /// takes long, while other connections of the thread wait.
    ///
    /// # Errors
    /// Those of [`check_short`] and `parse`.
    pub(super) fn parse_short<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        check_short(&self.0)?;
        self.parse()
    }
}

/// A whole body with secrets in it, which is wiped, and its JSON if it is a form.
pub(super) struct SecretVaultContent(SecretContent, Option<SecretBytes>);

impl FromRequest<Worker> for SecretVaultContent {
    type Rejection = VaultError;

    async fn from_request(request: Request, worker: &Worker) -> Result<Self> {
        let rules = request.extensions().get::<ParameterRules>().cloned();
        let may_be_form = may_be_form(request.headers());
        let body = SecretContent::from_request(request, worker).await?;
        let json = if may_be_form { json_of_form(&body)? } else { None };
        let content = Self(body, json);
        rules.map_or(Ok(()), |rules| rules.check(content.bytes()))?;
        Ok(content)
    }
}

impl SecretVaultContent {
    fn bytes(&self) -> &[u8] {
        self.1.as_deref().map_or(&*self.0, Vec::as_slice)
    }

    /// The body itself, which must be a JSON object. An empty body and `null` count as an empty
    /// object.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn object(&self) -> Result<&[u8]> {
        let _: de::IgnoredAny = self.parse()?;
        Ok(match self.bytes().trim_ascii() {
            b"" | b"null" => b"{}",
            object => object,
        })
    }

    /// Reads the body as JSON. An empty body and `null` count as an empty object.
    ///
    /// # Errors
    /// It is not the JSON of a `T`.
    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        object(self.bytes())
    }

    /// As `parse`, for a request that carries no data: lists of names, certificates. Reading them
    /// takes long, while other connections of the thread wait.
    ///
    /// # Errors
    /// Those of [`check_short`] and `parse`.
    pub(super) fn parse_short<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        check_short(self.bytes())?;
        self.parse()
    }
}

/// A short body with a secret in it, which is wiped, and its JSON if it is a form. It may be all
/// that the caller shows.
pub(super) struct SecretVaultBody(SecretProof, Option<SecretBytes>);

impl FromRequest<Worker> for SecretVaultBody {
    type Rejection = VaultError;

    async fn from_request(request: Request, worker: &Worker) -> Result<Self> {
        let may_be_form = may_be_form(request.headers());
        let body = SecretProof::from_request(request, worker).await?;
        let json = if may_be_form { json_of_form(&body)? } else { None };
        Ok(Self(body, json))
    }
}

impl SecretVaultBody {
    /// Reads the body as JSON. An empty body and `null` count as an empty object.
    ///
    /// # Errors
    /// It is not the JSON of a `T`.
    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        object(self.1.as_deref().map_or(&*self.0, Vec::as_slice))
    }
}

/// Reads JSON. Nothing and `null` count as an empty object. The library would take a list for an
/// object.
fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    match body.trim_ascii() {
        b"" | b"null" => Ok(parse(b"{}")?),
        [b'{', ..] => Ok(parse(body)?),
        _ => Err(ApiError::malformed("failed to decode JSON input: the body is not an object").into()),
    }
}

/// What the path names.
pub(super) struct PathName<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Worker> for PathName<T> {
    type Rejection = VaultError;

    async fn from_request_parts(parts: &mut Parts, worker: &Worker) -> Result<Self> {
        let named = Path::<T>::from_request_parts(parts, worker).await;
        let Path(named) = named.map_err(|_| ApiError::malformed("the path is not one of this endpoint"))?;
        Ok(Self(named))
    }
}

/// A text that may be absent. It is borrowed where it needs no escapes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OptionalText<'a>(pub(super) Option<Cow<'a, str>>);

impl OptionalText<'_> {
    pub(super) fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The text, unless it is absent or empty.
    pub(super) fn given(&self) -> Option<&str> {
        self.as_deref().filter(|text| !text.is_empty())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for OptionalText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = OptionalText<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(OptionalText(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(OptionalText(Some(Cow::Owned(text.to_owned()))))
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(OptionalText(None))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

/// A secret text that may be absent. A text with escapes is a copy, which is wiped.
#[derive(Debug, Default, Deserialize)]
pub(super) struct OptionalSecret<'a>(#[serde(borrow)] OptionalText<'a>);

impl OptionalSecret<'_> {
    pub(super) fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Drop for OptionalSecret<'_> {
    fn drop(&mut self) {
        if let Some(Cow::Owned(text)) = &mut self.0.0 {
            text.zeroize();
        }
    }
}

/// A value that may be given as itself or as text; none for `null`.
pub(super) trait Lenient: Sized {
    const EXPECTED: &'static str;

    fn from_bool(value: bool) -> Option<Self> {
        let _ = value;
        None
    }

    fn from_number(value: i64) -> Option<Self>;

    fn from_text(text: &str) -> Option<Self>;
}

/// Reads one of these.
struct Read<T>(std::marker::PhantomData<T>);

impl<'de, T: Lenient> Visitor<'de> for Read<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        T::from_bool(value).map(Some).ok_or_else(|| E::invalid_type(de::Unexpected::Bool(value), &self))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        T::from_number(value).map(Some).ok_or_else(|| E::invalid_value(de::Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        let read = i64::try_from(value).ok().and_then(T::from_number);
        read.map(Some).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        T::from_text(text).map(Some).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

impl Lenient for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }

    fn from_number(value: i64) -> Option<Self> {
        match value {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        flag_of(text)
    }
}

impl Lenient for i64 {
    const EXPECTED: &'static str = "a whole number";

    fn from_bool(value: bool) -> Option<Self> {
        Some(value.into())
    }

    fn from_number(value: i64) -> Option<Self> {
        Some(value)
    }

    fn from_text(text: &str) -> Option<Self> {
        if text.is_empty() { Some(0) } else { text.parse().ok() }
    }
}

/// A number of seconds: a number, or numbers with units, such as `24h` or `1h30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seconds(pub(super) u64);

impl Lenient for Seconds {
    const EXPECTED: &'static str = "a number of seconds, or a duration such as \"24h\"";

    fn from_number(value: i64) -> Option<Self> {
        u64::try_from(value).ok().map(Self)
    }

    fn from_text(text: &str) -> Option<Self> {
        if text.is_empty() { Some(Self(0)) } else { seconds_of(text).map(Self) }
    }
}

/// Reads a number of seconds, or numbers with units.
pub(super) fn read_seconds(text: &str) -> Option<Seconds> {
    Seconds::from_text(text)
}

/// Reads a value of any of these types.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: Lenient>(deserializer: D) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(Read(std::marker::PhantomData))
}

pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    lenient(deserializer)
}

pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    lenient(deserializer)
}

pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Seconds>, D::Error> {
    lenient(deserializer)
}

/// A list of objects. `null` in it counts as an object without fields.
pub(super) fn items<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let items = Option::<List<Option<Object<T>>, MAX_ITEMS>>::deserialize(deserializer)?;
    Ok(items.map(|items| items.into_iter().map(|item| item.unwrap_or_default().0).collect()))
}

/// The text without line breaks, which Go's decoders of base64 skip.
pub(super) fn joined(text: &str) -> Cow<'_, str> {
    if text.contains(['\r', '\n']) { text.replace(['\r', '\n'], "").into() } else { text.into() }
}

/// Appends what base64 encodes, as Go's decoder reads it: it skips line breaks, which `base64 FILE`
/// writes, and the bits that are left over at the end.
///
/// # Errors
/// The text is not base64; `what` names it.
pub(super) fn decode_into(text: &str, what: &str, bytes: &mut Vec<u8>) -> Result<(), ApiError> {
    let begin = bytes.len();
    let Err(error) = request::decode_into(text, what, bytes) else { return Ok(()) };
    bytes.truncate(begin);
    // The text may be secret, and so its copies are wiped.
    let mut joined = Zeroizing::new(Vec::with_capacity(text.len()));
    joined.extend(text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')));
    // Only the last four characters have padding and bits that are left over. The forgiving decoder
    // also takes white space and less padding.
    let (first, last) = joined.split_at(joined.len().saturating_sub(4));
    let is_whole = joined.len().is_multiple_of(4) && !last.iter().any(u8::is_ascii_whitespace);
    if is_whole
        && STANDARD_NO_PAD.decode_append(first, bytes).is_ok()
        && let Ok(last) = base64_simd::forgiving_decode_to_vec(last).map(Zeroizing::new)
    {
        bytes.extend_from_slice(&last);
        return Ok(());
    }
    bytes.truncate(begin);
    Err(error)
}

/// As [`decode_into`], into memory that is wiped.
///
/// # Errors
/// The text is not base64; `what` names it.
pub(super) fn decode_secret(text: &str, what: &str) -> Result<SecretBytes, ApiError> {
    // As much as any text of this length encodes, so that the buffer never moves.
    let mut bytes = SecretBytes::with_capacity(text.len().div_ceil(4) * 3);
    decode_into(text, what, &mut bytes)?;
    Ok(bytes)
}

/// A request in no namespace.
pub(super) struct InRoot;

impl FromRequestParts<Worker> for InRoot {
    type Rejection = VaultError;

    async fn from_request_parts(parts: &mut Parts, _: &Worker) -> Result<Self> {
        match parts.extensions.get::<Namespace>() {
            None => Ok(Self),
            // The whole service is meant, and not one tenant.
            Some(_) => Err(VaultError::invalid("operation unavailable in namespaces")),
        }
    }
}

/// The namespace of a request.
pub(super) struct NamespaceOf(pub(super) Option<Namespace>);

impl FromRequestParts<Worker> for NamespaceOf {
    type Rejection = VaultError;

    async fn from_request_parts(parts: &mut Parts, _: &Worker) -> Result<Self> {
        Ok(Self(parts.extensions.get().cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_as_gos_decoder_reads_it() {
        let read = |text: &str| {
            let mut bytes = b"before".to_vec();
            let read = decode_into(text, "x", &mut bytes).is_ok();
            assert!(bytes.starts_with(b"before") && (read || bytes.len() == 6), "{text:?}");
            read.then(|| String::from_utf8(bytes[6..].to_vec()).unwrap())
        };
        // What a running OpenBao said of each.
        let cases = [
            ("aGVsbG8=", Some("hello")),
            ("aGVs\nbG8=\r\n", Some("hello")),
            ("aGVsbG8\n=", Some("hello")),
            ("aGVsbG9=", Some("hello")),
            ("\n", Some("")),
            ("", Some("")),
            ("aGVsbG8", None),
            ("aGVsbG8= ", None),
            ("aGVsbG8=\n=", None),
            ("aGVsbG8=\naGVsbG8=", None),
            ("a\nG\nV\ns\nb\nG\n9\n=\n", Some("hello")),
            ("aGVs bG8=", None),
            ("aGVs\tbG8=", None),
            ("====", None),
            ("aGVs_-8=", None),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn durations_are_read_as_vault_reads_them() {
        let read = |text: &str| Seconds::from_text(text).map(|seconds| seconds.0);
        let cases = [("", 0), ("0", 0), ("3600", 3_600), ("24h", 86_400), ("1h30m", 5_400), ("2d", 172_800)];
        for (text, seconds) in cases {
            assert_eq!(read(text), Some(seconds), "{text}");
        }
        for text in
            ["h", "-1h", "1", "1x", "1h ", "1.5h", "99999999999999999999", "99999999999999999d", "1h\u{e9}"]
        {
            assert!(text == "1" || read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn values_may_be_text() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct TestForm<'a> {
            #[serde(default, deserialize_with = "flag")]
            flag: Option<bool>,
            #[serde(default, deserialize_with = "number")]
            number: Option<i64>,
            #[serde(borrow, default)]
            text: OptionalText<'a>,
        }
        let read = |body: &'static str| serde_json::from_str::<TestForm<'_>>(body).ok();
        let form = |flag, number, text: Option<&'static str>| {
            Some(TestForm { flag, number, text: OptionalText(text.map(Cow::Borrowed)) })
        };
        assert_eq!(read("{}"), form(None, None, None));
        assert_eq!(read(r#"{"flag":null,"number":null,"text":null}"#), form(None, None, None));
        assert_eq!(read(r#"{"flag":"true","number":"-2","text":""}"#), form(Some(true), Some(-2), Some("")));
        assert_eq!(read(r#"{"flag":0,"number":7,"text":"\u0061"}"#), form(Some(false), Some(7), Some("a")));
        assert_eq!(read(r#"{"flag":"","number":true,"text":"x"}"#), form(Some(false), Some(1), Some("x")));
        assert_eq!(read(r#"{"flag":1,"number":"","text":"x"}"#), form(Some(true), Some(0), Some("x")));
        for wrong in [r#"{"flag":"maybe"}"#, r#"{"flag":2}"#, r#"{"number":1.5}"#, r#"{"text":1}"#] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
