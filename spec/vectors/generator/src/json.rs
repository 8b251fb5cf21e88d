//! JSON whose objects keep the order in which they are written. `serde_json` can do that too, but
//! by a feature that every crate of the workspace would then have.

use serde::{Serialize, Serializer};

/// A JSON value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Anything but an array or an object.
    Leaf(serde_json::Value),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// An object, an array, or a value that becomes one.
macro_rules! json {
    ({ $($name:literal : $value:expr),* $(,)? }) => {
        crate::json::Value::Object(vec![$(($name.to_owned(), crate::json::Value::from($value))),*])
    };
    ($value:expr) => {
        crate::json::Value::from($value)
    };
}
pub(crate) use json;

impl Value {
    /// The member of an object.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// The text of a string.
    pub(crate) fn as_str(&self) -> Option<&str> {
        if let Self::Leaf(leaf) = self { leaf.as_str() } else { None }
    }

    /// Adds a member to an object.
    pub(crate) fn insert(&mut self, name: &str, value: impl Into<Self>) {
        let Self::Object(members) = self else { panic!("only an object has members") };
        members.push((name.to_owned(), value.into()));
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Leaf(leaf) => leaf.serialize(serializer),
            Self::Array(values) => serializer.collect_seq(values),
            Self::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}

/// Leaves of these types.
macro_rules! leaves {
    ($($leaf:ty),*) => {$(
        impl From<$leaf> for Value {
            fn from(leaf: $leaf) -> Self {
                Self::Leaf(leaf.into())
            }
        }
    )*};
}

leaves!(&str, String, bool, u8, u32, usize, Option<&str>);

impl<T: Into<Self>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Self {
        Self::Array(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Self>, const N: usize> From<[T; N]> for Value {
    fn from(values: [T; N]) -> Self {
        Self::Array(values.into_iter().map(Into::into).collect())
    }
}
