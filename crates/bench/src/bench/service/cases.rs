//! The cases: requests, connections, and how the service runs.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// One kind of request.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) request: Request,
    /// Signatures or verdicts of one request.
    pub(super) items: usize,
    pub(super) connections: usize,
    pub(super) ways: &'static [Way],
    /// Whether its latency at half load is measured, too.
    pub(super) has_latency: bool,
}

/// The operation of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Sign,
    Verify,
    SignMany,
    /// By so many keys.
    VerifyMany(usize),
    /// With a JWT whose issuer's keys are known.
    Login,
}

/// How the service runs, and how it is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Plain,
    /// TLS 1.3, with connections that stay.
    Tls,
    /// With an audit log that is on the disk at each checkpoint.
    AtCheckpoints,
    /// With an audit log that is on the disk before each answer.
    Grouped,
}

impl Way {
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Tls, Self::AtCheckpoints, Self::Grouped];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Tls => "tls",
            Self::AtCheckpoints => "audited-at-checkpoints",
            Self::Grouped => "audited",
        }
    }
}

/// How many keys the keystore has.
pub(super) const KEYS: usize = 64;

const fn single(name: &'static str, request: Request, ways: &'static [Way]) -> Case {
    Case { name, request, items: 1, connections: 64, ways, has_latency: true }
}

const fn batch(name: &'static str, request: Request, items: usize, ways: &'static [Way]) -> Case {
    Case { name, request, items, connections: 8, ways, has_latency: false }
}

const AUDITED: &[Way] = &[Way::Plain, Way::AtCheckpoints, Way::Grouped];

pub(super) static CASES: [Case; 9] = [
    single("single-sign", Request::Sign, &Way::ALL),
    single("single-verify", Request::Verify, &[Way::Plain, Way::Tls]),
    Case {
        name: "login",
        request: Request::Login,
        items: 1,
        connections: 64,
        ways: &[Way::Plain],
        has_latency: false,
    },
    batch("sign-64", Request::SignMany, 64, AUDITED),
    batch("sign-256", Request::SignMany, 256, AUDITED),
    batch("verify-64-one-key", Request::VerifyMany(1), 64, &[Way::Plain]),
    batch("verify-256-one-key", Request::VerifyMany(1), 256, &[Way::Plain]),
    batch("verify-64-of-64-keys", Request::VerifyMany(KEYS), 64, &[Way::Plain]),
    batch("verify-256-of-64-keys", Request::VerifyMany(KEYS), 256, &[Way::Plain]),
];

/// The case and the way of a name: `CASE` or `CASE/WAY`.
///
/// # Errors
/// There is no such case. The message names all cases.
pub(super) fn find(name: &str) -> Result<(&'static Case, Way)> {
    let (case, way) = name.split_once('/').unwrap_or((name, Way::Plain.name()));
    let case = CASES.iter().find(|one| one.name == case);
    let way = Way::ALL.into_iter().find(|one| one.name() == way);
    case.zip(way).with_context(|| {
        let (cases, ways) = (CASES.each_ref().map(|one| one.name), Way::ALL.map(Way::name));
        format!(
            "no case {name} of the service; there are: {}, each also with /{}",
            cases.join(", "),
            ways.join(" or /")
        )
    })
}

/// The label of a key.
pub(super) fn label(key: usize) -> String {
    format!("key-{key}")
}

/// The message of an item: 32 bytes in base64, another one for each.
pub(super) fn message(item: usize) -> String {
    // 43 characters and the padding are 32 bytes. Digits of sixteen are characters of base64.
    format!("{item:042x}A=")
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
