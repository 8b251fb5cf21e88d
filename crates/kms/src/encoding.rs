//! The text forms of bytes: base64 with the standard alphabet and padding (RFC 4648, section 4), and lower-case hex.
//!
//! Decoding accepts exactly the output of encoding, so that no text has two forms.

use base64ct::{Base64, Encoding};

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

/// Whether a character could mislead the reader of a terminal or of a line-based file: a control character, a line
/// separator, or a mark that reorders the text around it (Unicode Standard Annex #9).
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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
                <String as serde::Deserialize>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub(crate) use serde_as_text;
