//! JSON as signed formats need it: every reader of a text must find the same members in it.

use std::collections::HashSet;
use std::fmt;

use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::error::FormatError;

/// Reads a value. Unknown members are ignored.
///
/// # Errors
/// It is not JSON of this type, an object in it has a member twice, or it is nested too deeply.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FormatError> {
    check(bytes)?;
    serde_json::from_slice(bytes).map_err(|error| malformed(&error))
}

/// Checks that a text is one value of JSON in which no object has a member twice. Readers disagree
/// about which of the two counts.
pub(crate) fn check(bytes: &[u8]) -> Result<(), FormatError> {
    serde_json::from_slice::<UniqueMembers>(bytes).map(|_| ()).map_err(|error| malformed(&error))
}

/// A text as a string of JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The error says where in the text the fault is, and never repeats what is there.
fn malformed(error: &serde_json::Error) -> FormatError {
    let place = format!("line {}, column {}", error.line(), error.column());
    let text = error.to_string();
    FormatError::new(match error.classify() {
        serde_json::error::Category::Data if text.starts_with(TWICE) => format!("{TWICE} ({place})"),
        serde_json::error::Category::Data => {
            format!("a member is missing or has another type than the format wants ({place})")
        }
        _ if text.contains("recursion limit") => format!("it is nested too deeply ({place})"),
        _ => format!("it is not JSON ({place})"),
    })
}

const TWICE: &str = "an object has a member twice";

/// Any value, of which nothing is kept.
struct UniqueMembers;

impl<'de> Deserialize<'de> for UniqueMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = UniqueMembers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }

    fn visit_unit<E>(self) -> Result<UniqueMembers, E> {
        Ok(UniqueMembers)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueMembers, A::Error> {
        while items.next_element::<UniqueMembers>()?.is_some() {}
        Ok(UniqueMembers)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<UniqueMembers, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if !names.insert(name) {
                return Err(de::Error::custom(TWICE));
            }
            members.next_value::<UniqueMembers>()?;
        }
        Ok(UniqueMembers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_there_twice_are_refused_wherever_they_are() {
        for text in
            [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#, r#"{"c":[[{"x":null,"y":true,"x":0.5}]]}"#]
        {
            let error = check(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(TWICE), "{text}: {error}");
        }
        check(br#"{"a":{"a":[-1,1.5e3,"a",null]},"b":{"a":false}}"#).unwrap();
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        for text in ["", "{", r#"{"a":1} x"#, "{'a':1}", "nul"] {
            assert!(check(text.as_bytes()).unwrap_err().to_string().starts_with("it is not JSON (line 1"));
        }
        let deep = "[".repeat(1 << 20);
        assert!(check(deep.as_bytes()).unwrap_err().to_string().starts_with("it is nested too deeply"));
    }
}
