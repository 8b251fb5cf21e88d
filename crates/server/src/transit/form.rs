//! Bodies that are forms, as `curl --data input=aGVsbG8=` sends them. As in Vault, such a body
//! stands for an object whose values are texts.

use axum::http::{HeaderMap, header};
use bulla_kms::SecretBytes;
use zeroize::Zeroizing;

use crate::error::{ApiError, Result};
use crate::request::check_short;

const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// The most names in a form.
const MAX_FIELDS: usize = 128;

/// Whether a body may be a form, by its content type. `curl --data` names this type for JSON, too.
pub(super) fn may_be_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map_or(&[][..], |kind| kind.as_bytes());
    kind.split(|byte| *byte == b';').next().is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(FORM))
}

/// The JSON of a form; none if the body is empty, or begins as JSON does.
///
/// # Errors
/// It is no form, or a long one: a form carries no files.
pub(super) fn json_of_form(body: &[u8]) -> Result<Option<SecretBytes>> {
    if matches!(body.trim_ascii_start().first(), None | Some(b'{' | b'[')) {
        return Ok(None);
    }
    check_short(body)?;
    let mut fields: Vec<(Zeroizing<String>, Zeroizing<String>)> = Vec::new();
    for pair in body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let end = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (name, value) = (decoded(&pair[..end])?, decoded(pair.get(end + 1..).unwrap_or_default())?);
        if let Some((_, known)) = fields.iter_mut().find(|(known, _)| *known == name) {
            // As in Vault: a list may be a text with commas.
            *known = Zeroizing::new([known.as_str(), ",", value.as_str()].concat());
        } else if fields.len() < MAX_FIELDS {
            fields.push((name, value));
        } else {
            return Err(ApiError::malformed(format!("a form has at most {MAX_FIELDS} names")));
        }
    }
    // A character takes at most six bytes in JSON. The buffer never moves.
    let mut json = SecretBytes::with_capacity(6 * body.len() + 6 * fields.len() + 2);
    json.push(b'{');
    for (place, (name, value)) in fields.iter().enumerate() {
        if place > 0 {
            json.push(b',');
        }
        // Writing to a vector cannot fail, and every text can be written as JSON.
        let _ = serde_json::to_writer(&mut *json, name.as_str());
        json.push(b':');
        let _ = serde_json::to_writer(&mut *json, value.as_str());
    }
    json.push(b'}');
    Ok(Some(json))
}

/// A name or a value of a form.
fn decoded(text: &[u8]) -> Result<Zeroizing<String>> {
    let wrong = || ApiError::malformed("the body is neither JSON nor a form");
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            // Some programs put it between pairs, and Go's reader refuses it.
            b';' => return Err(wrong()),
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(*digit).to_digit(16));
                let (Some(high), Some(low)) = (digit(), digit()) else { return Err(wrong()) };
                u8::try_from(16 * high + low).map_err(|_| wrong())?
            }
            byte => *byte,
        });
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| wrong())?;
    Ok(Zeroizing::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_form_is_an_object_of_texts() {
        let read = |body: &str| {
            let json = json_of_form(body.as_bytes()).map_err(|error| error.body.message)?;
            Ok::<_, String>(json.map(|json| String::from_utf8(json.to_vec()).unwrap()))
        };
        let is = |body: &str, json: &str| assert_eq!(read(body), Ok(Some(json.to_owned())), "{body}");
        is("input=aGVsbG8%3D&prehashed=false", r#"{"input":"aGVsbG8=","prehashed":"false"}"#);
        is("a=b=c&d&=e&&f=", r#"{"a":"b=c","d":"","":"e","f":""}"#);
        is("a=1&b=x&a=2&%61=3", r#"{"a":"1,2,3","b":"x"}"#);
        is("a+b=%22%0a%5C%c3%A9", "{\"a b\":\"\\\"\\n\\\\\u{e9}\"}");
        for body in ["", " \r\n", r#" {"a":1}"#, "[", "{"] {
            assert_eq!(read(body), Ok(None), "{body}");
        }
        for body in ["a=%", "a=%4", "a=%zz", "%ff=a", "a=%c3", "a=%+1", "a=1;b=2"] {
            assert_eq!(read(body), Err("the body is neither JSON nor a form".to_owned()), "{body}");
        }
        let names = |count: usize| (0..count).map(|name| format!("{name}=&")).collect::<String>();
        assert!(read(&names(MAX_FIELDS)).is_ok() && read(&names(MAX_FIELDS + 1)).is_err());
        assert!(read(&"a".repeat(200 << 10)).is_err());
    }

    #[test]
    fn the_buffer_of_a_form_never_moves() {
        let cases = ["a=b", &"%01".repeat(1000), &"\u{1}".repeat(1000), &"&a=\u{1}".repeat(1000)];
        for body in cases {
            let json = json_of_form(body.as_bytes()).unwrap().unwrap();
            assert_eq!(json.capacity(), 6 * body.len() + 6 + 2, "{body:?}");
        }
    }

    #[test]
    fn a_content_type_says_that_a_body_may_be_a_form() {
        let says = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            may_be_form(&headers)
        };
        assert!(says("application/x-www-form-urlencoded"));
        assert!(says("Application/X-WWW-Form-Urlencoded ; charset=utf-8"));
        assert!(!says("application/json") && !says("text/plain") && !may_be_form(&HeaderMap::new()));
    }
}
