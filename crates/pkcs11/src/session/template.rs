//! The attributes of keys of a session: what a template may say, and what the module adds.

use std::sync::Arc;

use cryptoki_sys::*;

use crate::error::{Failure, Result, fail, require};
use crate::object::Object;
use crate::object::attributes::{Attribute, Attributes, Template};
use crate::operation::mechanism::MAX_SECRET_LEN;
use crate::session::key::SessionKey;

/// Where a key comes from, which some of its attributes tell.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    /// What made the key in the module; none for a key that came from elsewhere.
    pub(crate) made_by: Option<CK_MECHANISM_TYPE>,
    /// Whether nobody has read it, if it is sensitive from now on.
    pub(crate) was_sensitive: bool,
    /// Whether it was never wrapped, if it is not extractable from now on.
    pub(crate) was_unextractable: bool,
    /// What the key is if the template does not say it.
    pub(crate) sensitive: bool,
    pub(crate) extractable: bool,
}

impl Origin {
    /// A key that a mechanism makes.
    pub(crate) const fn generated(mechanism: CK_MECHANISM_TYPE) -> Self {
        Self {
            made_by: Some(mechanism),
            was_sensitive: true,
            was_unextractable: true,
            sensitive: true,
            extractable: false,
        }
    }

    /// A key whose value the program brings.
    pub(crate) const BROUGHT: Self = Self {
        made_by: None,
        was_sensitive: false,
        was_unextractable: false,
        sensitive: true,
        extractable: false,
    };

    /// A key that was wrapped.
    pub(crate) const UNWRAPPED: Self = Self { extractable: true, ..Self::BROUGHT };

    /// A key that is derived from another one. Programs read most of them.
    pub(crate) fn derived(base: &Object) -> Self {
        Self {
            made_by: None,
            was_sensitive: base.attributes.is_set(CKA_ALWAYS_SENSITIVE),
            was_unextractable: base.attributes.is_set(CKA_NEVER_EXTRACTABLE),
            sensitive: false,
            extractable: true,
        }
    }
}

/// The flags of a class that a program may choose, and their values if it does not.
fn flags(class: CK_OBJECT_CLASS, kind: CK_KEY_TYPE, origin: Origin) -> Vec<(CK_ATTRIBUTE_TYPE, bool)> {
    let (is_rsa, agrees) = (kind == CKK_RSA, kind == CKK_EC_MONTGOMERY);
    let mut flags = vec![(CKA_MODIFIABLE, true), (CKA_COPYABLE, true), (CKA_DESTROYABLE, true)];
    flags.extend(match class {
        CKO_PUBLIC_KEY => vec![
            (CKA_PRIVATE, false),
            (CKA_ENCRYPT, is_rsa),
            (CKA_VERIFY, !agrees),
            (CKA_VERIFY_RECOVER, false),
            (CKA_WRAP, is_rsa),
            (CKA_DERIVE, false),
        ],
        CKO_PRIVATE_KEY => vec![
            (CKA_PRIVATE, true),
            (CKA_DECRYPT, is_rsa),
            (CKA_SIGN, !agrees),
            (CKA_SIGN_RECOVER, false),
            (CKA_UNWRAP, is_rsa),
            (CKA_DERIVE, agrees),
            (CKA_ALWAYS_AUTHENTICATE, false),
        ],
        _ => vec![
            (CKA_PRIVATE, true),
            (CKA_ENCRYPT, true),
            (CKA_DECRYPT, true),
            (CKA_SIGN, true),
            (CKA_VERIFY, true),
            (CKA_WRAP, true),
            (CKA_UNWRAP, true),
            (CKA_DERIVE, false),
        ],
    });
    if class != CKO_PUBLIC_KEY {
        flags.extend([
            (CKA_SENSITIVE, origin.sensitive),
            (CKA_EXTRACTABLE, origin.extractable),
            (CKA_WRAP_WITH_TRUSTED, false),
        ]);
    }
    flags
}

/// Whether an attribute is a part of the key itself, which whoever makes the key reads.
fn is_part_of_key(kind: CK_ATTRIBUTE_TYPE) -> bool {
    matches!(
        kind,
        CKA_VALUE
            | CKA_VALUE_LEN
            | CKA_EC_PARAMS
            | CKA_EC_POINT
            | CKA_MODULUS
            | CKA_MODULUS_BITS
            | CKA_PUBLIC_EXPONENT
            | CKA_PRIVATE_EXPONENT
            | CKA_PRIME_1
            | CKA_PRIME_2
            | CKA_EXPONENT_1
            | CKA_EXPONENT_2
            | CKA_COEFFICIENT
            | CKA_PUBLIC_KEY_INFO
            | CKA_CHECK_VALUE
    )
}

/// The attributes of a key, without those of the key itself.
///
/// # Errors
/// `CKR_TEMPLATE_INCONSISTENT` for an object of the token, another class or another type;
/// `CKR_ATTRIBUTE_VALUE_INVALID`; `CKR_ATTRIBUTE_READ_ONLY`; `CKR_ATTRIBUTE_TYPE_INVALID`.
pub(crate) fn attributes(
    class: CK_OBJECT_CLASS,
    kind: CK_KEY_TYPE,
    template: &[Attribute],
    origin: Origin,
) -> Result<Attributes> {
    let mut attributes = Attributes::default();
    attributes.set_number(CKA_CLASS, class).set_number(CKA_KEY_TYPE, kind).set_flags(&[(CKA_TOKEN, false)]);
    for text in [CKA_LABEL, CKA_ID, CKA_START_DATE, CKA_END_DATE] {
        attributes.set(text, b"");
    }
    if class != CKO_SECRET_KEY {
        attributes.set(CKA_SUBJECT, b"");
    }
    attributes.set_flags(&flags(class, kind, origin));
    for attribute in template.iter().filter(|attribute| !is_part_of_key(attribute.kind)) {
        take(attribute, &mut attributes)?;
    }
    let (sensitive, extractable) = (attributes.is_set(CKA_SENSITIVE), attributes.is_set(CKA_EXTRACTABLE));
    attributes.set_flags(&[(CKA_LOCAL, origin.made_by.is_some())]);
    attributes.set_number(CKA_KEY_GEN_MECHANISM, origin.made_by.unwrap_or(CK_MECHANISM_TYPE::MAX));
    match class {
        CKO_PUBLIC_KEY => attributes.set_flags(&[(CKA_TRUSTED, false)]),
        _ => attributes.set_flags(&[
            (CKA_ALWAYS_SENSITIVE, sensitive && origin.was_sensitive),
            (CKA_NEVER_EXTRACTABLE, !extractable && origin.was_unextractable),
        ]),
    };
    if class == CKO_SECRET_KEY {
        attributes.set_flags(&[(CKA_TRUSTED, false)]);
    }
    Ok(attributes)
}

/// Takes an attribute of a template into those of a key.
fn take(attribute: &Attribute, attributes: &mut Attributes) -> Result<()> {
    let value = attribute.value.as_slice();
    let is_same = attributes.get(attribute.kind) == Some(value);
    match attribute.kind {
        // The service keeps the keys that it makes, and no others.
        CKA_CLASS | CKA_KEY_TYPE | CKA_TOKEN => return require(is_same, CKR_TEMPLATE_INCONSISTENT),
        CKA_LABEL | CKA_ID | CKA_START_DATE | CKA_END_DATE => {}
        CKA_SUBJECT if attributes.get(CKA_SUBJECT).is_some() => {}
        CKA_ALLOWED_MECHANISMS => {
            let is_list = value.len().is_multiple_of(size_of::<CK_MECHANISM_TYPE>());
            require(is_list, CKR_ATTRIBUTE_VALUE_INVALID)?;
        }
        // Only a security officer trusts a key.
        CKA_TRUSTED => return require(value == [CK_FALSE], CKR_ATTRIBUTE_READ_ONLY),
        CKA_LOCAL | CKA_KEY_GEN_MECHANISM | CKA_ALWAYS_SENSITIVE | CKA_NEVER_EXTRACTABLE | CKA_UNIQUE_ID => {
            return fail(CKR_ATTRIBUTE_READ_ONLY);
        }
        // What is there by now are flags.
        kind if attributes.get(kind).is_some() => {
            let [flag] = value else { return fail(CKR_ATTRIBUTE_VALUE_INVALID) };
            attributes.set_flags(&[(kind, *flag != CK_FALSE)]);
            return Ok(());
        }
        // Programs name all uses of a pair for each half. Those of the other half change nothing.
        CKA_ENCRYPT | CKA_DECRYPT | CKA_SIGN | CKA_VERIFY | CKA_WRAP | CKA_UNWRAP => return Ok(()),
        _ => return fail(CKR_ATTRIBUTE_TYPE_INVALID),
    }
    attributes.set(attribute.kind, value);
    Ok(())
}

/// The object of a secret key.
///
/// # Errors
/// Codes about the template; `CKR_ATTRIBUTE_VALUE_INVALID` for a value that its type does not have.
pub(crate) fn secret_key(
    template: &[Attribute],
    kind: CK_KEY_TYPE,
    value: &[u8],
    origin: Origin,
    session: CK_SESSION_HANDLE,
) -> Result<Object> {
    require(is_secret_kind(kind), CKR_TEMPLATE_INCONSISTENT)?;
    let fits = match kind {
        CKK_AES => matches!(value.len(), 16 | 24 | 32),
        _ => (1..=MAX_SECRET_LEN).contains(&value.len()),
    };
    require(fits, CKR_ATTRIBUTE_VALUE_INVALID)?;
    if let Some(length) = Template(template).number(CKA_VALUE_LEN)? {
        require(length == value.len() as CK_ULONG, CKR_TEMPLATE_INCONSISTENT)?;
    }
    let mut attributes = attributes(CKO_SECRET_KEY, kind, template, origin)?;
    attributes.set(CKA_VALUE, value).set_number(CKA_VALUE_LEN, value.len() as CK_ULONG);
    Ok(Object {
        class: CKO_SECRET_KEY,
        attributes,
        key: None,
        session: Some(session),
        session_key: Some(Arc::new(SessionKey::Secret)),
    })
}

/// Whether a type is one of secret keys that a session can have.
pub(crate) fn is_secret_kind(kind: CK_KEY_TYPE) -> bool {
    matches!(
        kind,
        CKK_AES
            | CKK_GENERIC_SECRET
            | CKK_SHA_1_HMAC
            | CKK_SHA224_HMAC
            | CKK_SHA256_HMAC
            | CKK_SHA384_HMAC
            | CKK_SHA512_HMAC
    )
}

/// An object of a session with other attributes, as `C_SetAttributeValue` changes it.
///
/// # Errors
/// `CKR_ACTION_PROHIBITED` if the object is not modifiable; `CKR_ATTRIBUTE_READ_ONLY`;
/// `CKR_ATTRIBUTE_VALUE_INVALID`.
pub(crate) fn change(object: &Object, template: &[Attribute]) -> Result<Attributes> {
    require(object.attributes.is_set(CKA_MODIFIABLE), CKR_ACTION_PROHIBITED)?;
    changed(object, template, |kind| {
        matches!(
            kind,
            CKA_LABEL
                | CKA_ID
                | CKA_SUBJECT
                | CKA_START_DATE
                | CKA_END_DATE
                | CKA_ENCRYPT
                | CKA_DECRYPT
                | CKA_SIGN
                | CKA_SIGN_RECOVER
                | CKA_VERIFY
                | CKA_VERIFY_RECOVER
                | CKA_WRAP
                | CKA_UNWRAP
                | CKA_DERIVE
                | CKA_SENSITIVE
                | CKA_EXTRACTABLE
                | CKA_WRAP_WITH_TRUSTED
        )
    })
}

/// A copy of an object of a session, for the same session or another one.
///
/// # Errors
/// `CKR_ACTION_PROHIBITED` if the object is not copyable; those of [`change`].
pub(crate) fn copy(object: &Object, template: &[Attribute], session: CK_SESSION_HANDLE) -> Result<Object> {
    require(object.attributes.is_set(CKA_COPYABLE), CKR_ACTION_PROHIBITED)?;
    let is_of_token = Template(template).flag(CKA_TOKEN)? == Some(true);
    require(!is_of_token, CKR_TEMPLATE_INCONSISTENT)?;
    let attributes = changed(object, template, |kind| {
        let is_about_object = matches!(kind, CKA_TOKEN | CKA_PRIVATE | CKA_MODIFIABLE | CKA_DESTROYABLE);
        let may_change = matches!(kind, CKA_LABEL | CKA_ID | CKA_SUBJECT | CKA_SENSITIVE | CKA_EXTRACTABLE);
        is_about_object || may_change || kind == CKA_COPYABLE || kind == CKA_WRAP_WITH_TRUSTED
    })?;
    Ok(Object { session: Some(session), ..object.with_attributes(attributes) })
}

/// The attributes of an object with those of a template that may change. A key that is sensitive
/// stays so, and one that is not extractable, too.
fn changed(
    object: &Object,
    template: &[Attribute],
    may_change: impl Fn(CK_ATTRIBUTE_TYPE) -> bool,
) -> Result<Attributes> {
    let mut attributes = object.attributes.clone();
    for Attribute { kind, value } in template {
        let old = object.attributes.get(*kind).ok_or(Failure(CKR_ATTRIBUTE_TYPE_INVALID))?;
        if old == value.as_slice() && !object.attributes.hides(*kind) {
            continue;
        }
        require(may_change(*kind), CKR_ATTRIBUTE_READ_ONLY)?;
        if matches!(*kind, CKA_LABEL | CKA_ID | CKA_SUBJECT | CKA_START_DATE | CKA_END_DATE) {
            attributes.set(*kind, value);
            continue;
        }
        let [flag] = value[..] else { return fail(CKR_ATTRIBUTE_VALUE_INVALID) };
        let is_set = flag != CK_FALSE;
        let is_allowed = match *kind {
            CKA_SENSITIVE | CKA_WRAP_WITH_TRUSTED | CKA_PRIVATE => is_set,
            CKA_EXTRACTABLE | CKA_COPYABLE => !is_set,
            _ => true,
        };
        let is_same = is_set == object.attributes.is_set(*kind);
        require(is_same || is_allowed, CKR_ATTRIBUTE_READ_ONLY)?;
        attributes.set_flags(&[(*kind, is_set)]);
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::attributes::{Answer, Wanted};

    fn flag(kind: CK_ATTRIBUTE_TYPE, value: bool) -> Attribute {
        Attribute::new(kind, &[u8::from(value)])
    }

    fn secret(template: &[Attribute], origin: Origin) -> Result<Object> {
        secret_key(template, CKK_AES, &[7; 16], origin, 3)
    }

    #[test]
    fn a_key_says_whether_it_was_ever_open() {
        let told = |template: &[Attribute], origin| {
            let object = secret(template, origin).unwrap();
            [CKA_LOCAL, CKA_ALWAYS_SENSITIVE, CKA_NEVER_EXTRACTABLE]
                .map(|kind| object.attributes.is_set(kind))
        };
        let made = Origin::generated(CKM_AES_KEY_GEN);
        assert_eq!(told(&[], made), [true, true, true]);
        assert_eq!(told(&[flag(CKA_SENSITIVE, false)], made), [true, false, true]);
        assert_eq!(told(&[flag(CKA_EXTRACTABLE, true)], made), [true, true, false]);
        assert_eq!(told(&[], Origin::BROUGHT), [false, false, false]);
        let base = secret(&[flag(CKA_EXTRACTABLE, true)], made).unwrap();
        let hidden = [flag(CKA_SENSITIVE, true), flag(CKA_EXTRACTABLE, false)];
        assert_eq!(told(&hidden, Origin::derived(&base)), [false, true, false]);
    }

    #[test]
    fn what_a_template_cannot_say_is_refused() {
        let refused =
            |attribute: Attribute| secret(&[attribute], Origin::BROUGHT).err().map(|failure| failure.0);
        assert_eq!(refused(flag(CKA_TOKEN, true)), Some(CKR_TEMPLATE_INCONSISTENT));
        assert_eq!(refused(Attribute::number(CKA_CLASS, CKO_PUBLIC_KEY)), Some(CKR_TEMPLATE_INCONSISTENT));
        assert_eq!(refused(Attribute::number(CKA_VALUE_LEN, 32)), Some(CKR_TEMPLATE_INCONSISTENT));
        assert_eq!(refused(flag(CKA_TRUSTED, true)), Some(CKR_ATTRIBUTE_READ_ONLY));
        assert_eq!(refused(flag(CKA_LOCAL, true)), Some(CKR_ATTRIBUTE_READ_ONLY));
        assert_eq!(refused(Attribute::new(CKA_SIGN, &[])), Some(CKR_ATTRIBUTE_VALUE_INVALID));
        assert_eq!(refused(Attribute::new(CKA_CERTIFICATE_TYPE, &[0])), Some(CKR_ATTRIBUTE_TYPE_INVALID));
        assert_eq!(
            refused(Attribute::new(CKA_ALLOWED_MECHANISMS, &[0; 7])),
            Some(CKR_ATTRIBUTE_VALUE_INVALID)
        );
    }

    #[test]
    fn a_key_becomes_more_secret_and_never_less() {
        let open = [flag(CKA_SENSITIVE, false), flag(CKA_EXTRACTABLE, true)];
        let object = secret(&open, Origin::BROUGHT).unwrap();
        let closed = [flag(CKA_SENSITIVE, true), flag(CKA_EXTRACTABLE, false)];
        let closed = object.with_attributes(change(&object, &closed).unwrap());
        let wanted = Wanted { kind: CKA_VALUE, room: None };
        assert_eq!(object.attributes.answer(wanted), Answer::Length(16));
        assert_eq!(closed.attributes.answer(wanted), Answer::Unavailable(CKR_ATTRIBUTE_SENSITIVE));
        for again in open {
            let again = [again];
            assert_eq!(change(&closed, &again).err(), Some(Failure(CKR_ATTRIBUTE_READ_ONLY)));
            assert_eq!(copy(&closed, &again, 3).err(), Some(Failure(CKR_ATTRIBUTE_READ_ONLY)));
        }
        // A value that cannot be read cannot be guessed.
        let guess = [Attribute::new(CKA_VALUE, &[7; 16])];
        assert_eq!(change(&closed, &guess).err(), Some(Failure(CKR_ATTRIBUTE_READ_ONLY)));
    }

    #[test]
    fn what_is_fixed_is_not_changed_and_not_copied() {
        let fixed =
            secret(&[flag(CKA_MODIFIABLE, false), flag(CKA_COPYABLE, false)], Origin::BROUGHT).unwrap();
        let label = [Attribute::new(CKA_LABEL, b"new")];
        assert_eq!(change(&fixed, &label).err(), Some(Failure(CKR_ACTION_PROHIBITED)));
        assert_eq!(copy(&fixed, &label, 3).err(), Some(Failure(CKR_ACTION_PROHIBITED)));
        let object = secret(&[], Origin::BROUGHT).unwrap();
        let copied = copy(&object, &label, 9).unwrap();
        assert_eq!((copied.session, copied.attributes.get(CKA_LABEL)), (Some(9), Some(&b"new"[..])));
        let of_token = [flag(CKA_TOKEN, true)];
        assert_eq!(copy(&object, &of_token, 3).err(), Some(Failure(CKR_TEMPLATE_INCONSISTENT)));
    }
}
