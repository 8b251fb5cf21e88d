//! Base64 with the standard alphabet and padding, as JSON has it.

use std::borrow::Cow;

use base64_simd::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

/// Bytes that JSON has as base64.
#[derive(Clone, Copy)]
pub(crate) struct Base64<'a>(pub(crate) &'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Some of these bytes are secret.
        serializer.serialize_str(&Zeroizing::new(STANDARD.encode_to_string(self.0)))
    }
}

/// The length of the base64 of this many bytes.
pub(crate) fn encoded(length: usize) -> usize {
    length.div_ceil(3) * 4
}

pub(crate) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    STANDARD.decode_to_vec(text.as_bytes()).map_err(|_| D::Error::custom("a text is not base64"))
}

/// Like [`bytes`], for a secret.
pub(crate) fn secret_bytes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Zeroizing<Vec<u8>>, D::Error> {
    bytes(deserializer).map(Zeroizing::new)
}
