//! Attacks on the keys of a session, by the program or by others who send it what it computes with.

use crate::session_keys::{NO, YES, create, logged_in, rsa_pair, secret, with, written};
use crate::support::codes::name;
use crate::support::raw::{Outcome, Session, attribute, call, number, ok};
use crate::support::{TOKEN, Token, apart};
use cryptoki_sys::*;
use std::ptr::null_mut;

/// The name of a failure's code, or that there was none.
fn refused<T>(outcome: Outcome<T>) -> String {
    outcome.map_or_else(name, |_| "it was done".to_owned())
}

/// A session without a login.
fn opened(token: &Token) -> Session {
    token.module.initialize().expect("it is initialized");
    token.module.open(token.module.slot(TOKEN)).expect("a session")
}

fn wrap(
    session: &Session,
    (kind, parameters): (CK_MECHANISM_TYPE, &[u8]),
    wrapping: CK_OBJECT_HANDLE,
    key: CK_OBJECT_HANDLE,
) -> Vec<u8> {
    let (module, s) = (session.module, session.handle);
    let wrapped = with(kind, parameters, |mechanism| {
        written(|to, room| call!(module, C_WrapKey(s, mechanism, wrapping, key, to, room)))
    });
    wrapped.unwrap_or_else(|code| panic!("{}", name(code)))
}

fn unwrap(
    session: &Session,
    (kind, parameters): (CK_MECHANISM_TYPE, &[u8]),
    key: CK_OBJECT_HANDLE,
    wrapped: &[u8],
    template: &[CK_ATTRIBUTE],
) -> Outcome<()> {
    let (module, s) = (session.module, session.handle);
    let (from, length) = (wrapped.as_ptr().cast_mut(), wrapped.len() as CK_ULONG);
    let (at, count) = (template.as_ptr().cast_mut(), template.len() as CK_ULONG);
    ok(with(kind, parameters, |mechanism| {
        call!(module, C_UnwrapKey(s, mechanism, key, from, length, at, count, &mut { 0 }))
    }))
}

#[test]
fn a_template_says_each_attribute_once() {
    apart("attacks::a_template_says_each_attribute_once", |place| {
        let (_serving, token) = place.service();
        let session = logged_in(&token);
        // The first value would be checked, and the second one taken.
        let data = [
            attribute(CKA_CLASS, number(&CKO_DATA)),
            attribute(CKA_VALUE, &[1; 16]),
            attribute(CKA_CLASS, number(&CKO_SECRET_KEY)),
        ];
        assert_eq!(refused(create(&session, &data)), "CKR_TEMPLATE_INCONSISTENT");
        let key = [
            attribute(CKA_TOKEN, &YES),
            attribute(CKA_VALUE_LEN, number(&32)),
            attribute(CKA_EXTRACTABLE, &NO),
            attribute(CKA_EXTRACTABLE, &YES),
        ];
        let (module, s, at) = (session.module, session.handle, key.as_ptr().cast_mut());
        let code = with(CKM_AES_KEY_GEN, &[], |mechanism| {
            call!(module, C_GenerateKey(s, mechanism, at, 4, &mut { 0 }))
        });
        assert_eq!(name(code), "CKR_TEMPLATE_INCONSISTENT");
        // To search, one attribute twice is the same as once.
        let twice = [attribute(CKA_LABEL, b"p256"), attribute(CKA_LABEL, b"p256")];
        assert_eq!(session.find(&twice).map(|found| found.len()), Ok(2));
    });
}

#[test]
fn the_values_of_a_template_have_a_bound_together() {
    apart("attacks::the_values_of_a_template_have_a_bound_together", |place| {
        let (_serving, token) = place.service();
        let session = logged_in(&token);
        // A thousand attributes of one value would be a gigabyte in the module.
        let value = vec![7; 1 << 20];
        let all = [attribute(CKA_LABEL, &value), attribute(CKA_ID, &value)];
        assert_eq!(session.find(&all[..1]).map(|found| found.len()), Ok(0));
        assert_eq!(refused(session.find(&all)), "CKR_ATTRIBUTE_VALUE_INVALID");
    });
}

#[test]
fn every_way_to_say_that_an_object_is_private_makes_it_private() {
    apart("attacks::every_way_to_say_that_an_object_is_private_makes_it_private", |place| {
        let (_serving, token) = place.service();
        let session = opened(&token);
        let data = |private: &[u8]| {
            let template = [attribute(CKA_CLASS, number(&CKO_DATA)), attribute(CKA_PRIVATE, private)];
            refused(create(&session, &template))
        };
        assert_eq!(data(&[1]), "CKR_USER_NOT_LOGGED_IN");
        assert_eq!(data(&[2]), "CKR_USER_NOT_LOGGED_IN");
        assert_eq!(data(&[1, 1]), "CKR_ATTRIBUTE_VALUE_INVALID");
        assert_eq!(data(&[0]), "it was done");
    });
}

/// RSA keys of a session decrypt what they unwrap.
#[test]
fn a_key_that_wants_a_pin_each_time_does_not_unwrap_without_one() {
    apart("attacks::a_key_that_wants_a_pin_each_time_does_not_unwrap_without_one", |place| {
        let (_serving, token) = place.service();
        let session = logged_in(&token);
        let (public, open) = rsa_pair(&session, &1024);
        let kinds = [CKA_MODULUS, CKA_PUBLIC_EXPONENT, CKA_PRIVATE_EXPONENT]
            .map(|kind| (kind, session.attribute(open, kind)));
        let mut template = vec![
            attribute(CKA_CLASS, number(&CKO_PRIVATE_KEY)),
            attribute(CKA_KEY_TYPE, number(&CKK_RSA)),
            attribute(CKA_ALWAYS_AUTHENTICATE, &YES),
        ];
        template
            .extend(kinds.iter().map(|(kind, value)| attribute(*kind, value.as_deref().expect("a value"))));
        let closed = create(&session, &template).unwrap_or_else(|code| panic!("{}", name(code)));
        let wrapped = wrap(&session, (CKM_RSA_PKCS, &[]), public, secret(&session, &CKK_AES, &[9; 32]));
        let template = [
            attribute(CKA_CLASS, number(&CKO_SECRET_KEY)),
            attribute(CKA_KEY_TYPE, number(&CKK_GENERIC_SECRET)),
            attribute(CKA_SENSITIVE, &NO),
        ];
        let unwrap = |key| refused(unwrap(&session, (CKM_RSA_PKCS, &[]), key, &wrapped, &template));
        assert_eq!(unwrap(open), "it was done");
        assert_eq!(unwrap(closed), "CKR_USER_NOT_LOGGED_IN");
    });
}

#[test]
fn an_operation_with_a_private_key_ends_with_the_login() {
    apart("attacks::an_operation_with_a_private_key_ends_with_the_login", |place| {
        let (_serving, token) = place.service();
        let session = logged_in(&token);
        let other = token.module.open(token.module.slot(TOKEN)).expect("a session");
        let key = secret(&session, &CKK_GENERIC_SECRET, &[1; 32]);
        for session in [&session, &other] {
            session.sign_init(CKM_SHA256_HMAC, key).expect("an operation");
        }
        session.logout().expect("it was logged in");
        let (mut code, mut length) = ([0; 32], 32);
        for Session { module, handle } in [session, other] {
            let signed = call!(module, C_Sign(handle, code.as_mut_ptr(), 1, code.as_mut_ptr(), &mut length));
            assert_eq!(name(signed), "CKR_OPERATION_NOT_INITIALIZED");
        }
    });
}

/// Somebody who sends changed keys learns nothing of what they decrypt to.
#[test]
fn a_key_that_does_not_unwrap_has_one_code() {
    apart("attacks::a_key_that_does_not_unwrap_has_one_code", |place| {
        let (_serving, token) = place.service();
        let session = logged_in(&token);
        let (kek, iv) = (secret(&session, &CKK_AES, &[1; 32]), [7; 16]);
        let how = (CKM_AES_CBC_PAD, &iv[..]);
        let wrapped = wrap(&session, how, kek, secret(&session, &CKK_AES, &[9; 16]));
        let mut changed = wrapped.clone();
        *changed.last_mut().expect("a byte") ^= 1;
        let class = |class| attribute(CKA_CLASS, number(class));
        for template in [
            [
                class(&CKO_SECRET_KEY),
                attribute(CKA_KEY_TYPE, number(&CKK_AES)),
                attribute(CKA_VALUE_LEN, number(&32)),
            ],
            [class(&CKO_PRIVATE_KEY), attribute(CKA_KEY_TYPE, number(&CKK_RSA)), attribute(CKA_LABEL, b"")],
            [class(&CKO_PRIVATE_KEY), attribute(CKA_KEY_TYPE, number(&CKK_EC)), attribute(CKA_LABEL, b"")],
        ] {
            for bytes in [&wrapped, &changed] {
                let code = refused(unwrap(&session, how, kek, bytes, &template));
                assert_eq!(code, "CKR_WRAPPED_KEY_INVALID");
            }
        }
        // What is wrong with the template is told whatever the bytes are.
        let template =
            [class(&CKO_SECRET_KEY), attribute(CKA_KEY_TYPE, number(&CKK_AES)), attribute(CKA_LOCAL, &YES)];
        for bytes in [&wrapped, &changed] {
            assert_eq!(refused(unwrap(&session, how, kek, bytes, &template)), "CKR_ATTRIBUTE_READ_ONLY");
        }
    });
}

#[test]
fn a_public_key_verifies_by_the_mechanisms_that_it_allows() {
    apart("attacks::a_public_key_verifies_by_the_mechanisms_that_it_allows", |place| {
        let (_serving, token) = place.service();
        let session = logged_in(&token);
        let sha256 = [
            attribute(CKA_EC_PARAMS, b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"),
            attribute(CKA_ALLOWED_MECHANISMS, number(&CKM_ECDSA_SHA256)),
        ];
        let (module, s, at, mut public, mut private) =
            (session.module, session.handle, sha256.as_ptr().cast_mut(), 0, 0);
        let code = with(CKM_EC_KEY_PAIR_GEN, &[], |mechanism| {
            call!(module, C_GenerateKeyPair(s, mechanism, at, 2, null_mut(), 0, &mut public, &mut private))
        });
        assert_eq!(name(code), "CKR_OK");
        let signature = session.sign(CKM_ECDSA_SHA256, private, b"message").expect("a signature");
        session.verify(CKM_ECDSA_SHA256, public, b"message", &signature).expect("it is valid");
        let other = session.verify(CKM_ECDSA, public, &[1; 32], &signature);
        assert_eq!(refused(other), "CKR_MECHANISM_INVALID");
    });
}

#[test]
fn a_key_of_a_cipher_or_of_another_hash_function_authenticates_nothing() {
    apart("attacks::a_key_of_a_cipher_or_of_another_hash_function_authenticates_nothing", |place| {
        let (theirs, (_serving, ours)) = (place.softhsm(), place.service());
        for session in [&ours, &theirs].map(logged_in) {
            let key = secret(&session, &CKK_AES, &[1; 32]);
            assert_eq!(refused(session.sign_init(CKM_SHA256_HMAC, key)), "CKR_KEY_TYPE_INCONSISTENT");
            let key = secret(&session, &CKK_SHA512_HMAC, &[1; 64]);
            assert_eq!(refused(session.sign_init(CKM_SHA256_HMAC, key)), "CKR_KEY_TYPE_INCONSISTENT");
            session.sign_init(CKM_SHA512_HMAC, key).expect("the mechanism of the key");
        }
    });
}
