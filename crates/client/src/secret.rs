//! Secrets in requests and answers, in memory that is wiped after its last use.
//!
//! Copies of the operating system, of TLS and of the connection's buffers are not wiped.

use hyper::body::Bytes;
use hyper::header::HeaderValue;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// Bytes that are wiped with their last reference.
pub(crate) fn wiped(bytes: Zeroizing<Vec<u8>>) -> Bytes {
    Bytes::from_owner(bytes)
}

/// The header that carries a token. It never shows its content, and is wiped with its last copy.
///
/// # Errors
/// The text cannot be a token.
pub(crate) fn bearer(token: &str) -> Result<HeaderValue> {
    let token = token.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::Invalid(
            "this is not a token: a token has visible ASCII characters only".to_owned(),
        ));
    }
    const PREFIX: &[u8] = b"Bearer ";
    // The capacity is enough: the buffer does not move and leaves no copy.
    let mut text = Zeroizing::new(Vec::with_capacity(PREFIX.len() + token.len()));
    text.extend_from_slice(PREFIX);
    text.extend_from_slice(token.as_bytes());
    let mut value = HeaderValue::from_maybe_shared(wiped(text))
        .map_err(|_| Error::Invalid("this is not a token".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_and_never_shown() {
        let value = bearer(" hunter2\n").unwrap();
        assert_eq!(value.as_bytes(), b"Bearer hunter2");
        assert!(!format!("{value:?}").contains("hunter2"));
        for text in ["", " ", "a b", "a\nb", "\u{e9}"] {
            let error = bearer(text).unwrap_err().to_string();
            assert!(!error.contains("a b") && !error.contains('\u{e9}'), "{error}");
        }
    }
}
