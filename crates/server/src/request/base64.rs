//! Base64 with the standard alphabet and padding (RFC 4648, section 4). Each value has one text.

use base64_simd::STANDARD;

use crate::error::{ApiError, Result};

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

#[cfg(test)]
mod tests {
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
