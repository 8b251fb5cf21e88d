//! Lists in bodies. Each has a bound that holds while it is read: a short text can have millions of
//! entries.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

/// What is expected of every list, and of nothing else.
pub(super) const AT_MOST: &str = "a list of at most ";

/// At most `MOST` entries.
#[derive(Debug)]
pub(crate) struct List<T, const MOST: usize>(Vec<T>);

/// The items of a batch: at most as many as the setting `limits.max_batch_items` may say.
pub(crate) type Items<T> = List<T, { crate::config::MAX_ITEMS }>;

// Derived, it would need a default of the entries.
impl<T, const MOST: usize> Default for List<T, MOST> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MOST: usize> Deref for List<T, MOST> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const MOST: usize> IntoIterator for List<T, MOST> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T, const MOST: usize> From<List<T, MOST>> for Vec<T> {
    fn from(list: List<T, MOST>) -> Self {
        list.0
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for List<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Entries::<T, MOST>(PhantomData))
    }
}

struct Entries<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Entries<T, MOST> {
    type Value = List<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{AT_MOST}{MOST} entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while list.len() < MOST {
            match entries.next_element()? {
                Some(entry) => list.push(entry),
                None => return Ok(List(list)),
            }
        }
        match entries.next_element::<IgnoredAny>()? {
            Some(_) => Err(A::Error::invalid_length(MOST + 1, &self)),
            None => Ok(List(list)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_list_that_is_too_long_is_not_read_to_its_end() {
        type Three<'a> = List<&'a str, 3>;
        assert_eq!(&*parse::<Three<'_>>(br#"["a","b","c"]"#).unwrap(), ["a", "b", "c"]);
        assert!(parse::<Three<'_>>(b"[]").unwrap().is_empty());
        // What follows the fourth entry is no JSON, and nobody notices.
        let error = parse::<Three<'_>>(br#"["a","b","c","hunter2", what"#).unwrap_err();
        assert_eq!(error.body.code, "too_many_items");
        let expected = "a list is too long: expected a list of at most 3 entries (line 1, column ";
        assert!(error.body.message.starts_with(expected), "{}", error.body.message);
    }
}
