//! The text forms of bytes: base64 with the standard alphabet and padding (RFC 4648, section 4),
//! and lower-case hex.
//!
//! Decoding accepts exactly the output of encoding, so that no text has two forms.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use base64ct::{Base64, Encoding};
use serde::de::Visitor;

pub(crate) fn base64(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    Base64::decode_vec(text).ok()
}

/// Lower-case hexadecimal digits, two for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Bytes from lower-case hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}

/// A BLAKE3 digest from exactly 64 lower-case hexadecimal digits.
pub(crate) fn digest(text: &str) -> Option<bulla_blake3::Hash> {
    let canonical = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if canonical { bulla_blake3::Hash::from_hex(text).ok() } else { None }
}

/// Whether a character could mislead the reader of a terminal or of a line-based file: a control
/// character, a line separator, or a mark that reorders the text around it (Unicode Standard Annex
/// #9).
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Reads a value from its text form, without a copy of the text.
pub(crate) struct TextVisitor<T>(pub(crate) PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// Implements serde by the text form, through `Display` and `FromStr`.
macro_rules! serde_as_text {
    ($($name:ty),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                deserializer.deserialize_str($crate::encoding::TextVisitor(std::marker::PhantomData))
            }
        }
    )+};
}
pub(crate) use serde_as_text;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_has_one_form() {
        let all: Vec<u8> = (0..=255).collect();
        let text = hex(&all);
        assert!(text.starts_with("000102") && text.contains("090a0b") && text.ends_with("fdfeff"));
        assert_eq!(from_hex(&text), Some(all));
        assert_eq!(from_hex(""), Some(vec![]));
        for bad in ["0", "000", "0g", "g0", "0A", "A0", "0 ", "/0", ":0", "`0", "\u{e9}"] {
            assert_eq!(from_hex(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn base64_has_one_form() {
        for (bytes, text) in
            [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("\u{fb}\u{fc}", "w7vDvA==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
            assert_eq!(from_base64(text).as_deref(), Some(bytes.as_bytes()));
        }
        for bad in ["YQ", "YQ=", "YR==", "YWI", "YQ==\n", "_w=="] {
            assert_eq!(from_base64(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_digest_has_64_lower_case_digits() {
        let text = "0123456789abcdef".repeat(4);
        assert_eq!(digest(&text).unwrap().to_hex().as_str(), text);
        for bad in [&text[1..], &format!("{text}0"), &text.to_uppercase(), &text.replace('0', "g"), ""] {
            assert!(digest(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn characters_that_steer_a_terminal_are_deceptive() {
        for c in
            ['\n', '\u{7f}', '\u{9b}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}']
        {
            assert!(is_deceptive(c), "{c:?}");
        }
        for c in [' ', 'a', '\u{e9}', '\u{2027}', '\u{202f}', '\u{2065}', '\u{206a}'] {
            assert!(!is_deceptive(c), "{c:?}");
        }
    }
}
