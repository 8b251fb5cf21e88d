//! What is measured.

use serde_json::{Value, json};

/// One kind of request.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) request: Request,
    /// Signatures or verdicts of one request.
    pub(super) items: usize,
    pub(super) connections: usize,
    /// Whether it is also measured with an audit log.
    pub(super) is_audited: bool,
    /// Whether its latency at half load is measured, too.
    pub(super) has_latency: bool,
}

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Sign,
    Verify,
    SignMany,
    /// By so many keys.
    VerifyMany(usize),
}

/// How many keys the keystore has.
pub(super) const KEYS: usize = 64;

const fn single(name: &'static str, request: Request, is_audited: bool) -> Case {
    Case { name, request, items: 1, connections: 64, is_audited, has_latency: true }
}

const fn batch(name: &'static str, request: Request, items: usize, is_audited: bool) -> Case {
    Case { name, request, items, connections: 8, is_audited, has_latency: false }
}

pub(super) const CASES: [Case; 8] = [
    single("single sign", Request::Sign, true),
    single("single verify", Request::Verify, false),
    batch("sign, batches of 64", Request::SignMany, 64, true),
    batch("sign, batches of 256", Request::SignMany, 256, true),
    batch("verify, batches of 64, one key", Request::VerifyMany(1), 64, false),
    batch("verify, batches of 256, one key", Request::VerifyMany(1), 256, false),
    batch("verify, batches of 64, 64 keys", Request::VerifyMany(KEYS), 64, false),
    batch("verify, batches of 256, 64 keys", Request::VerifyMany(KEYS), 256, false),
];

/// The label of a key.
pub(super) fn label(key: usize) -> String {
    format!("key-{key}")
}

/// The message of an item: 32 bytes in base64, another one for each.
pub(super) fn message(item: usize) -> String {
    // 43 characters and the padding are 32 bytes.
    format!(
        "{:0>42}A=",
        format!("{item:x}").to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "A")
    )
}

/// The body of a batch of messages to sign, each by the key that `key` names.
pub(super) fn to_sign(items: usize, key: impl Fn(usize) -> String) -> Value {
    let items = (0..items).map(|item| json!({ "key": key(item), "message": message(item) }));
    json!({ "items": items.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_base64_of_32_bytes_and_differ() {
        let messages: std::collections::BTreeSet<_> = (0..1000).map(message).collect();
        assert_eq!(messages.len(), 1000);
        assert!(messages.iter().all(|message| message.len() == 44 && message.ends_with("A=")));
    }
}
