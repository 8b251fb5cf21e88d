//! The claims of a JWT, and what a role asks of them.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Claims in which no object has a member twice: readers disagree about which of the two counts.
#[derive(Debug)]
pub(crate) struct Claims(pub(crate) Map<String, Value>);

/// A value without an object that has a member twice.
struct Unique(Value);

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
        let mut all = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Unique(all.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Unique, A::Error> {
        let mut all = Map::new();
        while let Some((name, Unique(value))) = members.next_entry::<String, Unique>()? {
            if all.insert(name, value).is_some() {
                return Err(de::Error::custom("an object has a member twice"));
            }
        }
        Ok(Unique(all.into()))
    }
}

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

impl<'de> Deserialize<'de> for Claims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Unique::deserialize(deserializer)?.0 {
            Value::Object(claims) => Ok(Self(claims)),
            _ => Err(de::Error::custom("the claims are an object")),
        }
    }
}

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
    fn claims_with_a_member_twice_are_refused() {
        let read = |text: &str| serde_json::from_str::<Claims>(text).map(|claims| Value::Object(claims.0));
        for text in [r#"{"sub":"a","sub":"b"}"#, r#"{"x":[{"a":1,"\u0061":1}]}"#, "[]", "1", r#""a""#] {
            assert!(read(text).is_err(), "{text}");
        }
        let text = r#"{"a":[1,-1,0.5,null,true,{"b":"c"}]}"#;
        assert_eq!(read(text).unwrap().to_string(), text);
    }

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
