//! The Datalog in tokens and requests. Key names and ids have no character that needs escaping.

use std::fmt::Write as _;

use super::grant::{Grant, GrantedKeys, TokenLimits, TokenOperation};
use super::request::TokenRequest;
use crate::error::{Code, KmsError, Result};
use crate::id::KeyId;
use crate::time::Timestamp;

/// A time as Datalog writes it: RFC 3339, to the second.
fn date(time: Timestamp) -> String {
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// The first block.
pub(super) fn grant(grant: &Grant) -> String {
    let mut code = format!("tenant(\"{}\");\n", grant.tenant);
    for operation in &grant.operations {
        let _ = writeln!(code, "operation(\"{operation}\");");
    }
    match &grant.keys {
        GrantedKeys::All => code.push_str("all_keys(true);\n"),
        GrantedKeys::These(keys) => keys.iter().for_each(|key| {
            let _ = writeln!(code, "key(\"{key}\");");
        }),
    }
    let _ = writeln!(code, "check if time($now), $now <= {};", date(grant.expires));
    code
}

/// A block that restricts a token.
pub(super) fn limits(limits: &TokenLimits) -> Result<String> {
    let mut code = String::new();
    if let Some(operations) = &limits.operations {
        code.push_str(&any_of(
            "request_operation",
            operations.iter().map(|operation: &TokenOperation| operation.as_str()),
        )?);
    }
    if let Some(keys) = &limits.keys {
        let names: Vec<_> = keys.iter().map(KeyId::to_string).collect();
        code.push_str(&any_of("request_key", names.iter().map(String::as_str))?);
    }
    if let Some(expires) = limits.expires {
        let _ = writeln!(code, "check if time($now), $now <= {};", date(expires));
    }
    if code.is_empty() {
        let message = "the new token would not be weaker: name operations, keys or an expiry time";
        return Err(KmsError::new(Code::InvalidArgument, message));
    }
    Ok(code)
}

fn any_of<'a>(predicate: &str, values: impl Iterator<Item = &'a str>) -> Result<String> {
    let queries: Vec<_> = values.map(|value| format!("{predicate}(\"{value}\")")).collect();
    if queries.is_empty() {
        let message = "a token must permit something: name at least one operation and one key";
        return Err(KmsError::new(Code::InvalidArgument, message));
    }
    Ok(format!("check if {};\n", queries.join(" or ")))
}

/// The facts of a request.
pub(super) fn request(request: &TokenRequest<'_>) -> String {
    let mut code = format!(
        "time({});\nrequest_operation(\"{}\");\nrequest_tenant(\"{}\");\n",
        date(request.now),
        request.operation,
        request.tenant,
    );
    if let Some(key) = request.key {
        let _ = writeln!(code, "request_key(\"{key}\");");
    }
    code.push_str(
        "allow if request_operation($o), operation($o), request_tenant($t), tenant($t), all_keys(true);\n\
         allow if request_operation($o), operation($o), request_tenant($t), tenant($t), request_key($k), key($k);\n",
    );
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut_to_the_second() {
        let time = Timestamp::from_unix_millis(951_782_400_999).unwrap();
        assert_eq!(date(time), "2000-02-29T00:00:00Z");
    }
}
