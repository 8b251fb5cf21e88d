//! Values as clients of Vault write them: its command line sends every value as text, and `null`
//! counts as absent.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, de};

use crate::error::ApiError;
use crate::request::{self, Items};

/// A text that may be absent. It is borrowed where it needs no escapes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Option<Cow<'a, str>>);

impl Text<'_> {
    pub(super) fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The text, unless it is absent or empty.
    pub(super) fn given(&self) -> Option<&str> {
        self.as_deref().filter(|text| !text.is_empty())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Text(None))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

/// A value that may be given as itself or as text; none for `null`.
trait Lenient: Sized {
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
        Some(value != 0)
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
            _ => None,
        }
    }
}

impl Lenient for i64 {
    const EXPECTED: &'static str = "a whole number";

    fn from_number(value: i64) -> Option<Self> {
        Some(value)
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
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
        if text.is_empty() || text.bytes().all(|b| b.is_ascii_digit()) {
            return if text.is_empty() { Some(Self(0)) } else { text.parse().ok().map(Self) };
        }
        let (mut rest, mut sum) = (text, 0_u64);
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
            let (number, unit) = rest.split_at(digits);
            let (seconds, unit) = match unit.as_bytes()[0] {
                b'd' => (86_400, &unit[1..]),
                b'h' => (3_600, &unit[1..]),
                b'm' => (60, &unit[1..]),
                b's' => (1, &unit[1..]),
                _ => return None,
            };
            sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(seconds)?)?;
            rest = unit;
        }
        Some(Self(sum))
    }
}

pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    deserializer.deserialize_any(Read(std::marker::PhantomData))
}

pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    deserializer.deserialize_any(Read(std::marker::PhantomData))
}

pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Seconds>, D::Error> {
    deserializer.deserialize_any(Read(std::marker::PhantomData))
}

/// A list of objects. `null` in it counts as an object without fields.
pub(super) fn items<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let items = Option::<Items<Option<T>>>::deserialize(deserializer)?;
    Ok(items.map(|items| items.into_iter().map(Option::unwrap_or_default).collect()))
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
    let text = joined(text);
    // The forgiving decoder also takes other white space and less padding.
    let is_padded = text.len().is_multiple_of(4) && !text.contains(|c: char| c.is_ascii_whitespace());
    let decoded = is_padded.then(|| base64_simd::forgiving_decode_to_vec(text.as_bytes()).ok()).flatten();
    bytes.extend_from_slice(&decoded.ok_or(error)?);
    Ok(())
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
        struct Form<'a> {
            #[serde(default, deserialize_with = "flag")]
            flag: Option<bool>,
            #[serde(default, deserialize_with = "number")]
            number: Option<i64>,
            #[serde(borrow, default)]
            text: Text<'a>,
        }
        let read = |body: &'static str| serde_json::from_str::<Form<'_>>(body).ok();
        let form = |flag, number, text: Option<&'static str>| {
            Some(Form { flag, number, text: Text(text.map(Cow::Borrowed)) })
        };
        assert_eq!(read("{}"), form(None, None, None));
        assert_eq!(read(r#"{"flag":null,"number":null,"text":null}"#), form(None, None, None));
        assert_eq!(read(r#"{"flag":"true","number":"-2","text":""}"#), form(Some(true), Some(-2), Some("")));
        assert_eq!(read(r#"{"flag":0,"number":7,"text":"\u0061"}"#), form(Some(false), Some(7), Some("a")));
        for wrong in [r#"{"flag":"maybe"}"#, r#"{"number":true}"#, r#"{"number":1.5}"#, r#"{"text":1}"#] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
