//! What a role asks of the claims of a JWT.

use serde_json::Value;

/// A text in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<String>);

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.split('*').map(str::to_owned).collect())
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = self.0.as_slice() else {
            return self.0.first().is_some_and(|only| only == text);
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
        for part in middle {
            // The first place leaves the most for the parts that follow.
            let Some(at) = rest.find(part.as_str()) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last.as_str())
    }
}

/// A claim that a role binds, and the patterns of which one must match.
#[derive(Clone, Debug)]
pub(super) struct BoundClaim {
    pub(super) name: String,
    pub(super) patterns: Vec<Pattern>,
}

impl BoundClaim {
    pub(super) fn new(name: &str, patterns: &[String]) -> Self {
        Self { name: name.to_owned(), patterns: patterns.iter().map(|text| Pattern::new(text)).collect() }
    }

    /// Whether the claim is there and matches. Of a list, one element must.
    pub(super) fn is_in(&self, claims: &Value) -> bool {
        // What begins with a slash is a JSON Pointer (RFC 6901).
        let is_pointer = self.name.starts_with('/');
        let value = if is_pointer { claims.pointer(&self.name) } else { claims.get(&self.name) };
        match value {
            Some(Value::Array(all)) => all.iter().any(|one| self.matches(one)),
            Some(value) => self.matches(value),
            None => false,
        }
    }

    fn matches(&self, value: &Value) -> bool {
        let any = |text: &str| self.patterns.iter().any(|pattern| pattern.matches(text));
        match value {
            Value::String(text) => any(text),
            Value::Bool(_) | Value::Number(_) => any(&value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("*", "anything", true),
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("**", "x", true),
            ("repo:acme/*:ref:refs/tags/v*", "repo:acme/app:ref:refs/tags/v1", true),
            ("repo:acme/*:ref:refs/tags/v*", "repo:acme-evil/app:ref:refs/tags/v1", false),
            ("repo:acme/app", "repo:acme/app2", false),
            ("ab*ab", "ab", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_claim_is_a_text_a_number_or_one_of_a_list() {
        let claims = json!({
            "ref": "refs/heads/main", "protected": true, "run": 7, "groups": ["a", "b"], "none": null, "empty": [],
            "kubernetes.io": { "namespace": "prod", "a/b": "c" }, "nested": [["a"]],
        });
        for (name, pattern, expected) in [
            ("ref", "refs/heads/*", true),
            ("ref", "refs/tags/*", false),
            ("protected", "true", true),
            ("run", "7", true),
            ("groups", "b", true),
            ("groups", "c", false),
            ("groups", "[\"a\",\"b\"]", false),
            ("none", "*", false),
            ("none", "null", false),
            ("empty", "*", false),
            ("absent", "*", false),
            ("nested", "a", false),
            ("/kubernetes.io/namespace", "prod", true),
            ("/kubernetes.io/namespace", "dev", false),
            ("/kubernetes.io/a~1b", "c", true),
            ("/kubernetes.io", "*", false),
            ("/ref", "refs/heads/main", true),
            ("kubernetes.io", "*", false),
            ("/groups/0", "a", true),
        ] {
            let bound = BoundClaim::new(name, &[pattern.to_owned()]);
            assert_eq!(bound.is_in(&claims), expected, "{name} {pattern}");
        }
    }
}
