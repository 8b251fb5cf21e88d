//! Objects that programs bring: public keys, certificates and data. They are in memory, and end
//! with their session.

use cryptoki_sys::*;

use crate::attributes::{Attribute, Attributes, Template};
use crate::error::{Failure, Result, fail, require};
use crate::object::{KeyOfObject, Object};
use crate::public::{describe, of_template};

/// The object of a template.
///
/// # Errors
/// `CKR_TEMPLATE_INCONSISTENT` for an object of the token, and for a secret, which the service does
/// not take from programs; other codes about the template.
pub(crate) fn create(template: &[Attribute], session: CK_SESSION_HANDLE) -> Result<Object> {
    let asked = Template(template);
    let class = asked.number(CKA_CLASS)?.ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
    require(asked.flag(CKA_TOKEN)? != Some(true), CKR_TEMPLATE_INCONSISTENT)?;
    require(asked.flag(CKA_PRIVATE)? != Some(true), CKR_TEMPLATE_INCONSISTENT)?;
    let mut attributes = defaults(class);
    let key = match class {
        CKO_PUBLIC_KEY => {
            let public = of_template(&asked)?;
            let is_rsa = public.algorithm().is_rsa();
            attributes.set_flags(&[
                (CKA_VERIFY, true),
                (CKA_ENCRYPT, is_rsa),
                (CKA_VERIFY_RECOVER, false),
                (CKA_WRAP, false),
                (CKA_TRUSTED, false),
                (CKA_DERIVE, false),
                (CKA_LOCAL, false),
            ]);
            attributes.set_number(CKA_KEY_GEN_MECHANISM, CK_MECHANISM_TYPE::MAX);
            attributes.set(CKA_SUBJECT, b"").set(CKA_START_DATE, b"").set(CKA_END_DATE, b"");
            copy(template, &mut attributes)?;
            describe(&public, &mut attributes)?;
            Some(KeyOfObject { algorithm: public.algorithm(), version: None, public: Some(public) })
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
            None
        }
        CKO_DATA => {
            for kind in [CKA_APPLICATION, CKA_OBJECT_ID, CKA_VALUE] {
                attributes.set(kind, b"");
            }
            copy(template, &mut attributes)?;
            None
        }
        CKO_PRIVATE_KEY | CKO_SECRET_KEY => return fail(CKR_TEMPLATE_INCONSISTENT),
        _ => return fail(CKR_ATTRIBUTE_VALUE_INVALID),
    };
    Ok(Object { class, attributes, key, session: Some(session) })
}

/// What every object of a session has.
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
        (CKA_COPYABLE, false),
        (CKA_DESTROYABLE, true),
    ]);
    attributes
}

/// Takes the attributes of a template that the object has, or may have.
fn copy(template: &[Attribute], attributes: &mut Attributes) -> Result<()> {
    for attribute in template {
        match attribute.kind {
            // These say what the object is; the flags of uses are what the module can do.
            CKA_DERIVE | CKA_WRAP | CKA_VERIFY_RECOVER | CKA_TRUSTED | CKA_LOCAL | CKA_TOKEN => {}
            CKA_COPYABLE | CKA_UNIQUE_ID | CKA_KEY_GEN_MECHANISM => {}
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
    use crate::attributes::{Answer, Wanted};

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
    fn no_secret_and_no_object_of_the_token_is_taken() {
        for template in [
            vec![Attribute::number(CKA_CLASS, CKO_PRIVATE_KEY)],
            vec![Attribute::number(CKA_CLASS, CKO_SECRET_KEY), Attribute::new(CKA_VALUE, &[7; 32])],
            vec![Attribute::number(CKA_CLASS, CKO_DATA), Attribute::new(CKA_TOKEN, &[1])],
        ] {
            assert_eq!(create(&template, 7).err(), Some(Failure(CKR_TEMPLATE_INCONSISTENT)));
        }
        assert_eq!(create(&[], 7).err(), Some(Failure(CKR_TEMPLATE_INCOMPLETE)));
    }
}
