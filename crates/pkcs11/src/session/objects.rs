//! Objects that programs bring: certificates, data, and the keys of `key`. They are in
//! memory, and end with their session.

use cryptoki_sys::*;

use crate::error::{Failure, Result, fail, require};
use crate::object::Object;
use crate::object::attributes::{Attribute, Attributes, Template};
use crate::session::create;

/// The object of a template.
///
/// # Errors
/// `CKR_TEMPLATE_INCONSISTENT` for an object of the token, because the service takes none from
/// programs; other codes about the template.
pub(crate) fn create(template: &[Attribute], session: CK_SESSION_HANDLE) -> Result<Object> {
    let asked = Template(template);
    let class = asked.number(CKA_CLASS)?.ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
    require(asked.flag(CKA_TOKEN)? != Some(true), CKR_TEMPLATE_INCONSISTENT)?;
    let mut attributes = defaults(class);
    match class {
        CKO_PUBLIC_KEY | CKO_PRIVATE_KEY | CKO_SECRET_KEY => {
            return create::create(class, template, session);
        }
        CKO_CERTIFICATE => {
            let kind = asked.number(CKA_CERTIFICATE_TYPE)?.ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
            require(kind == CKC_X_509, CKR_ATTRIBUTE_VALUE_INVALID)?;
            require(asked.get(CKA_VALUE).is_some(), CKR_TEMPLATE_INCOMPLETE)?;
            attributes.set_flags(&[(CKA_TRUSTED, false)]);
            for kind in [CKA_SUBJECT, CKA_ISSUER, CKA_SERIAL_NUMBER, CKA_START_DATE, CKA_END_DATE] {
                attributes.set(kind, b"");
            }
            copy(template, &mut attributes)?;
        }
        CKO_DATA => {
            for kind in [CKA_APPLICATION, CKA_OBJECT_ID, CKA_VALUE] {
                attributes.set(kind, b"");
            }
            copy(template, &mut attributes)?;
        }
        _ => return fail(CKR_ATTRIBUTE_VALUE_INVALID),
    }
    Ok(Object { class, attributes, key: None, session: Some(session), session_key: None })
}

/// What certificates and data have.
fn defaults(class: CK_OBJECT_CLASS) -> Attributes {
    let mut attributes = Attributes::default();
    attributes.set_number(CKA_CLASS, class).set(CKA_LABEL, b"");
    if class != CKO_DATA {
        attributes.set(CKA_ID, b"");
    }
    attributes.set_flags(&[
        (CKA_TOKEN, false),
        (CKA_PRIVATE, false),
        (CKA_MODIFIABLE, true),
        (CKA_COPYABLE, true),
        (CKA_DESTROYABLE, true),
    ]);
    attributes
}

/// Takes the attributes of a template, but those that say what the module decides.
fn copy(template: &[Attribute], attributes: &mut Attributes) -> Result<()> {
    for attribute in template {
        match attribute.kind {
            CKA_TRUSTED | CKA_TOKEN | CKA_UNIQUE_ID => {}
            flag @ (CKA_PRIVATE | CKA_MODIFIABLE | CKA_COPYABLE | CKA_DESTROYABLE) => {
                let is_set = Template(template).flag(flag)? == Some(true);
                attributes.set_flags(&[(flag, is_set)]);
            }
            _ => {
                attributes.set(attribute.kind, &attribute.value);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::attributes::{Answer, Wanted};

    #[test]
    fn a_certificate_has_its_value() {
        let template = [
            Attribute::number(CKA_CLASS, CKO_CERTIFICATE),
            Attribute::number(CKA_CERTIFICATE_TYPE, CKC_X_509),
            Attribute::new(CKA_VALUE, &[0x30, 0]),
            Attribute::new(CKA_LABEL, b"web"),
        ];
        let object = create(&template, 7).unwrap();
        assert_eq!(object.session, Some(7));
        assert!(object.attributes.matches(&template));
        let value = object.attributes.answer(Wanted { kind: CKA_VALUE, room: None });
        assert_eq!(value, Answer::Length(2));
    }

    #[test]
    fn no_object_of_the_token_is_taken() {
        for class in [CKO_DATA, CKO_CERTIFICATE, CKO_SECRET_KEY, CKO_PRIVATE_KEY, CKO_PUBLIC_KEY] {
            let template = [Attribute::number(CKA_CLASS, class), Attribute::new(CKA_TOKEN, &[1])];
            assert_eq!(create(&template, 7).err(), Some(Failure(CKR_TEMPLATE_INCONSISTENT)));
        }
        assert_eq!(create(&[], 7).err(), Some(Failure(CKR_TEMPLATE_INCOMPLETE)));
    }
}
