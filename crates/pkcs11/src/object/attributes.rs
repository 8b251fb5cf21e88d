//! Attributes of objects: as programs give them in templates, and as they read them.

use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::error::{Failure, Result, fail, require};

/// An attribute of a template, with its value.
pub(crate) struct Attribute {
    pub(crate) kind: CK_ATTRIBUTE_TYPE,
    pub(crate) value: Zeroizing<Vec<u8>>,
}

impl Attribute {
    pub(crate) fn new(kind: CK_ATTRIBUTE_TYPE, value: &[u8]) -> Self {
        Self { kind, value: Zeroizing::new(value.to_vec()) }
    }
}

#[cfg(test)]
impl Attribute {
    pub(crate) fn number(kind: CK_ATTRIBUTE_TYPE, value: CK_ULONG) -> Self {
        Self::new(kind, &value.to_ne_bytes())
    }
}

/// An attribute that a program wants to read.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) kind: CK_ATTRIBUTE_TYPE,
    /// The room for its value; none if the program asks for the length only.
    pub(crate) room: Option<usize>,
}

/// What a program gets of an attribute.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Length(usize),
    /// It may be a secret that was derived.
    Value(Zeroizing<Vec<u8>>),
    /// The code says why there is no value.
    Unavailable(CK_RV),
}

/// The attributes of an object.
#[derive(Clone, Default)]
pub(crate) struct Attributes(Vec<(CK_ATTRIBUTE_TYPE, Zeroizing<Box<[u8]>>)>);

impl Attributes {
    /// Adds an attribute, or replaces its value.
    pub(crate) fn set(&mut self, kind: CK_ATTRIBUTE_TYPE, value: &[u8]) -> &mut Self {
        match self.0.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, old)) => *old = Zeroizing::new(value.into()),
            None => self.0.push((kind, Zeroizing::new(value.into()))),
        }
        self
    }

    pub(crate) fn set_number(&mut self, kind: CK_ATTRIBUTE_TYPE, value: CK_ULONG) -> &mut Self {
        self.set(kind, &value.to_ne_bytes())
    }

    pub(crate) fn set_flags(&mut self, flags: &[(CK_ATTRIBUTE_TYPE, bool)]) -> &mut Self {
        for (kind, value) in flags {
            self.set(*kind, &[u8::from(*value)]);
        }
        self
    }

    pub(crate) fn remove(&mut self, kinds: &[CK_ATTRIBUTE_TYPE]) {
        self.0.retain(|(kind, _)| !kinds.contains(kind));
    }

    pub(crate) fn get(&self, kind: CK_ATTRIBUTE_TYPE) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| *known == kind).map(|(_, value)| &***value)
    }

    /// Whether a flag is there and set.
    pub(crate) fn is_set(&self, kind: CK_ATTRIBUTE_TYPE) -> bool {
        self.get(kind) == Some(&[CK_TRUE])
    }

    /// Whether the object has all attributes of a template.
    pub(crate) fn matches(&self, template: &[Attribute]) -> bool {
        let has = |wanted: &Attribute| self.get(wanted.kind) == Some(wanted.value.as_slice());
        template.iter().all(|wanted| !self.hides(wanted.kind) && has(wanted))
    }

    /// What a program gets of an attribute.
    pub(crate) fn answer(&self, wanted: Wanted) -> Answer {
        if self.hides(wanted.kind) {
            return Answer::Unavailable(CKR_ATTRIBUTE_SENSITIVE);
        }
        match (self.get(wanted.kind), wanted.room) {
            (None, _) => Answer::Unavailable(CKR_ATTRIBUTE_TYPE_INVALID),
            (Some(value), None) => Answer::Length(value.len()),
            (Some(value), Some(room)) if room < value.len() => Answer::Unavailable(CKR_BUFFER_TOO_SMALL),
            (Some(value), Some(_)) => Answer::Value(value.to_vec().into()),
        }
    }

    /// Whether an attribute is a secret that programs may not read.
    pub(crate) fn hides(&self, kind: CK_ATTRIBUTE_TYPE) -> bool {
        let is_readable = self.get(CKA_SENSITIVE) == Some(&[CK_FALSE]) && self.is_set(CKA_EXTRACTABLE);
        is_secret(kind) && self.is_secret_key() && !is_readable
    }

    fn is_secret_key(&self) -> bool {
        let class = self.get(CKA_CLASS);
        [CKO_PRIVATE_KEY, CKO_SECRET_KEY].iter().any(|secret| class == Some(&secret.to_ne_bytes()))
    }

    /// About the bytes that the object takes.
    pub(crate) fn size(&self) -> usize {
        self.0.iter().map(|(_, value)| size_of::<CK_ATTRIBUTE>() + value.len()).sum()
    }
}

/// Whether an attribute of a private or secret key is its secret.
fn is_secret(kind: CK_ATTRIBUTE_TYPE) -> bool {
    matches!(
        kind,
        CKA_VALUE
            | CKA_PRIVATE_EXPONENT
            | CKA_PRIME_1
            | CKA_PRIME_2
            | CKA_EXPONENT_1
            | CKA_EXPONENT_2
            | CKA_COEFFICIENT
    )
}

/// Checks that no attribute is there twice: one reader could take the first value and another one
/// the second.
///
/// # Errors
/// `CKR_TEMPLATE_INCONSISTENT`.
pub(crate) fn check_unique(template: &[Attribute]) -> Result<()> {
    let is_first =
        |(place, one): (usize, &Attribute)| !template[..place].iter().any(|other| other.kind == one.kind);
    require(template.iter().enumerate().all(is_first), CKR_TEMPLATE_INCONSISTENT)
}

/// A template, by the kinds of its attributes.
pub(crate) struct Template<'a>(pub(crate) &'a [Attribute]);

impl<'a> Template<'a> {
    pub(crate) fn get(&self, kind: CK_ATTRIBUTE_TYPE) -> Option<&'a [u8]> {
        self.0.iter().find(|attribute| attribute.kind == kind).map(|attribute| attribute.value.as_slice())
    }

    /// A number; none if the template has none.
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_VALUE_INVALID` if the value does not have the length of a number.
    pub(crate) fn number(&self, kind: CK_ATTRIBUTE_TYPE) -> Result<Option<CK_ULONG>> {
        let parse = |value: &[u8]| value.try_into().map(CK_ULONG::from_ne_bytes);
        self.get(kind).map(parse).transpose().map_err(|_| Failure(CKR_ATTRIBUTE_VALUE_INVALID))
    }

    /// A flag; none if the template has none.
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_VALUE_INVALID` if the value is not one byte.
    pub(crate) fn flag(&self, kind: CK_ATTRIBUTE_TYPE) -> Result<Option<bool>> {
        match self.get(kind) {
            None => Ok(None),
            Some([byte]) => Ok(Some(*byte != CK_FALSE)),
            Some(_) => fail(CKR_ATTRIBUTE_VALUE_INVALID),
        }
    }

    /// A text; none if the template has none, or an empty one.
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_VALUE_INVALID` if it is not UTF-8.
    pub(crate) fn text(&self, kind: CK_ATTRIBUTE_TYPE) -> Result<Option<&'a str>> {
        let text = self.get(kind).map(std::str::from_utf8).transpose();
        Ok(text.map_err(|_| Failure(CKR_ATTRIBUTE_VALUE_INVALID))?.filter(|text| !text.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private_key() -> Attributes {
        let mut attributes = Attributes::default();
        attributes.set_number(CKA_CLASS, CKO_PRIVATE_KEY).set(CKA_LABEL, b"releases");
        attributes
    }

    #[test]
    fn a_length_is_told_and_a_short_buffer_gets_no_value() {
        let answer = |kind, room| private_key().answer(Wanted { kind, room });
        assert_eq!(answer(CKA_LABEL, None), Answer::Length(8));
        assert_eq!(answer(CKA_LABEL, Some(7)), Answer::Unavailable(CKR_BUFFER_TOO_SMALL));
        assert_eq!(answer(CKA_LABEL, Some(9)), Answer::Value(b"releases".to_vec().into()));
        assert_eq!(answer(CKA_ID, None), Answer::Unavailable(CKR_ATTRIBUTE_TYPE_INVALID));
    }

    #[test]
    fn the_secret_of_a_key_is_sensitive_and_that_of_a_certificate_is_not() {
        let wanted = Wanted { kind: CKA_VALUE, room: None };
        assert_eq!(private_key().answer(wanted), Answer::Unavailable(CKR_ATTRIBUTE_SENSITIVE));
        let mut certificate = Attributes::default();
        certificate.set_number(CKA_CLASS, CKO_CERTIFICATE).set(CKA_VALUE, &[1, 2, 3]);
        assert_eq!(certificate.answer(wanted), Answer::Length(3));
    }

    #[test]
    fn a_secret_is_read_and_found_if_it_is_extractable_and_not_sensitive() {
        let wanted = Wanted { kind: CKA_VALUE, room: Some(3) };
        let template = [Attribute::new(CKA_VALUE, &[1, 2, 3])];
        for (sensitive, extractable) in [(true, true), (false, false), (true, false), (false, true)] {
            let mut secret = Attributes::default();
            secret.set_number(CKA_CLASS, CKO_SECRET_KEY).set(CKA_VALUE, &[1, 2, 3]);
            secret.set_flags(&[(CKA_SENSITIVE, sensitive), (CKA_EXTRACTABLE, extractable)]);
            let is_readable = !sensitive && extractable;
            let is_read = secret.answer(wanted) == Answer::Value(vec![1, 2, 3].into());
            assert_eq!((is_read, secret.matches(&template)), (is_readable, is_readable));
        }
    }

    #[test]
    fn a_template_matches_if_all_of_its_attributes_do() {
        let (label, other) = (Attribute::new(CKA_LABEL, b"releases"), Attribute::new(CKA_LABEL, b"release"));
        assert!(private_key().matches(&[]));
        assert!(private_key().matches(&[Attribute::new(CKA_CLASS, &CKO_PRIVATE_KEY.to_ne_bytes()), label]));
        assert!(!private_key().matches(&[other]));
        assert!(!private_key().matches(&[Attribute::new(CKA_ID, b"")]));
    }

    #[test]
    fn an_attribute_that_is_there_twice_is_refused_whatever_its_values_are() {
        let of = |kinds: &[CK_ATTRIBUTE_TYPE]| {
            check_unique(&kinds.iter().map(|kind| Attribute::new(*kind, &[1])).collect::<Vec<_>>())
        };
        assert_eq!(of(&[CKA_SIGN, CKA_VERIFY]), Ok(()));
        assert_eq!(of(&[CKA_SIGN, CKA_VERIFY, CKA_SIGN]), fail(CKR_TEMPLATE_INCONSISTENT));
    }

    #[test]
    fn values_of_another_length_are_refused() {
        let all = [
            Attribute::new(CKA_CLASS, &[1]),
            Attribute::new(CKA_TOKEN, &[]),
            Attribute::new(CKA_LABEL, &[0xff]),
        ];
        let template = Template(&all);
        assert_eq!(template.number(CKA_CLASS), fail(CKR_ATTRIBUTE_VALUE_INVALID));
        assert_eq!(template.flag(CKA_TOKEN), fail(CKR_ATTRIBUTE_VALUE_INVALID));
        assert_eq!(template.text(CKA_LABEL), fail(CKR_ATTRIBUTE_VALUE_INVALID));
        assert_eq!(template.number(CKA_KEY_TYPE), Ok(None));
    }
}
