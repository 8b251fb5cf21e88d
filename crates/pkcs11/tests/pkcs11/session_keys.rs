//! Keys that live in the module until their session ends, beside those of SoftHSM: with the same
//! values, both compute the same.

use crate::support::codes::name;
use crate::support::raw::{Outcome, Session, attribute, call, number, ok};
use crate::support::{TOKEN, Token, apart};
use cryptoki_sys::*;
use std::ptr::null_mut;

pub(crate) const YES: [u8; 1] = [CK_TRUE];
pub(crate) const NO: [u8; 1] = [CK_FALSE];
const MESSAGE: &[u8] = b"a message that is longer than two blocks";

pub(crate) fn logged_in(token: &Token) -> Session {
    token.module.initialize().expect("it is initialized");
    let session = token.module.open(token.module.slot(TOKEN)).expect("a session");
    session.login(&token.pin).expect("the PIN is right");
    session
}

/// Calls a function with a mechanism, whose parameters are these bytes.
pub(crate) fn with<T>(
    kind: CK_MECHANISM_TYPE,
    parameters: &[u8],
    work: impl FnOnce(*mut CK_MECHANISM) -> T,
) -> T {
    let at = if parameters.is_empty() { null_mut() } else { parameters.as_ptr().cast_mut().cast() };
    let length = parameters.len() as CK_ULONG;
    work(&mut CK_MECHANISM { mechanism: kind, pParameter: at, ulParameterLen: length })
}

/// The bytes that a call writes.
pub(crate) fn written(mut write: impl FnMut(*mut u8, *mut CK_ULONG) -> CK_RV) -> Outcome {
    let (mut bytes, mut length) = (vec![0; 4096], 4096);
    ok(write(bytes.as_mut_ptr(), &mut length))?;
    bytes.truncate(length as usize);
    Ok(bytes)
}

/// Which way, with which key.
enum Way {
    Encrypt,
    Decrypt,
}

fn cipher(
    session: &Session,
    way: Way,
    kind: CK_MECHANISM_TYPE,
    parameters: &[u8],
    key: CK_OBJECT_HANDLE,
    data: &[u8],
) -> Outcome {
    let (module, s) = (session.module, session.handle);
    let (at, length) = (data.as_ptr().cast_mut(), data.len() as CK_ULONG);
    match way {
        Way::Encrypt => {
            ok(with(kind, parameters, |mechanism| call!(module, C_EncryptInit(s, mechanism, key))))?;
            written(|to, room| call!(module, C_Encrypt(s, at, length, to, room)))
        }
        Way::Decrypt => {
            ok(with(kind, parameters, |mechanism| call!(module, C_DecryptInit(s, mechanism, key))))?;
            written(|to, room| call!(module, C_Decrypt(s, at, length, to, room)))
        }
    }
}

pub(crate) fn create(session: &Session, template: &[CK_ATTRIBUTE]) -> Outcome<CK_OBJECT_HANDLE> {
    let (at, count, mut object) = (template.as_ptr().cast_mut(), template.len() as CK_ULONG, 0);
    ok(call!(session.module, C_CreateObject(session.handle, at, count, &mut object)))?;
    Ok(object)
}

/// A secret key of a value, which programs may read and wrap.
pub(crate) fn secret(session: &Session, kind: &CK_KEY_TYPE, value: &[u8]) -> CK_OBJECT_HANDLE {
    let template = [
        attribute(CKA_CLASS, number(&CKO_SECRET_KEY)),
        attribute(CKA_KEY_TYPE, number(kind)),
        attribute(CKA_VALUE, value),
        attribute(CKA_SENSITIVE, &NO),
        attribute(CKA_EXTRACTABLE, &YES),
        attribute(CKA_ENCRYPT, &YES),
        attribute(CKA_DECRYPT, &YES),
        attribute(CKA_SIGN, &YES),
        attribute(CKA_WRAP, &YES),
        attribute(CKA_UNWRAP, &YES),
    ];
    create(session, &template).unwrap_or_else(|code| panic!("{}", name(code)))
}

fn wrap(
    session: &Session,
    kind: CK_MECHANISM_TYPE,
    wrapping: CK_OBJECT_HANDLE,
    key: CK_OBJECT_HANDLE,
) -> Outcome {
    let (module, s) = (session.module, session.handle);
    with(kind, &[], |mechanism| {
        written(|to, room| call!(module, C_WrapKey(s, mechanism, wrapping, key, to, room)))
    })
}

fn unwrap(
    session: &Session,
    kind: CK_MECHANISM_TYPE,
    key: CK_OBJECT_HANDLE,
    wrapped: &[u8],
) -> Outcome<CK_OBJECT_HANDLE> {
    let (module, s) = (session.module, session.handle);
    let template = [
        attribute(CKA_CLASS, number(&CKO_SECRET_KEY)),
        attribute(CKA_KEY_TYPE, number(&CKK_AES)),
        attribute(CKA_SENSITIVE, &NO),
        attribute(CKA_EXTRACTABLE, &YES),
    ];
    let (from, length) = (wrapped.as_ptr().cast_mut(), wrapped.len() as CK_ULONG);
    let (at, count, mut made) = (template.as_ptr().cast_mut(), template.len() as CK_ULONG, 0);
    ok(with(kind, &[], |mechanism| {
        call!(module, C_UnwrapKey(s, mechanism, key, from, length, at, count, &mut made))
    }))?;
    Ok(made)
}

#[test]
fn keys_of_a_session_compute_what_softhsm_computes() {
    apart("session_keys::keys_of_a_session_compute_what_softhsm_computes", |place| {
        let (theirs, (_serving, ours)) = (place.softhsm(), place.service());
        let both = [&theirs, &ours].map(logged_in);
        let iv = [7; 16];
        let counter = [number(&32), &iv].concat();
        for length in [16, 24, 32] {
            let value: Vec<u8> = (0..length).collect();
            let keys = both.map(|session| secret(&session, &CKK_AES, &value));
            for (kind, parameters, data) in [
                (CKM_AES_ECB, &[][..], &MESSAGE[..32]),
                (CKM_AES_CBC, &iv, &MESSAGE[..32]),
                (CKM_AES_CBC_PAD, &iv, MESSAGE),
                (CKM_AES_CTR, &counter, MESSAGE),
            ] {
                let [first, second] = [0, 1].map(|one| {
                    let ciphertext = cipher(&both[one], Way::Encrypt, kind, parameters, keys[one], data);
                    let ciphertext = ciphertext.unwrap_or_else(|code| panic!("{kind:#x}: {}", name(code)));
                    let plaintext =
                        cipher(&both[one], Way::Decrypt, kind, parameters, keys[one], &ciphertext);
                    assert_eq!(plaintext.as_deref().map_err(|code| name(*code)), Ok(data), "{kind:#x}");
                    ciphertext
                });
                assert_eq!(first, second, "{kind:#x}");
            }
            for kind in [CKM_AES_KEY_WRAP, CKM_AES_KEY_WRAP_PAD] {
                let [first, second] = [0, 1].map(|one| {
                    let wrapped = wrap(&both[one], kind, keys[one], keys[one]);
                    wrapped.unwrap_or_else(|code| panic!("{kind:#x}: {}", name(code)))
                });
                assert_eq!(first, second, "{kind:#x}");
                let key = unwrap(&both[1], kind, keys[1], &first).expect("a key");
                assert_eq!(both[1].attribute(key, CKA_VALUE).expect("a value"), value);
            }
        }
        let keys = both.map(|session| secret(&session, &CKK_GENERIC_SECRET, &[5; 64]));
        for kind in [CKM_SHA_1_HMAC, CKM_SHA256_HMAC, CKM_SHA512_HMAC] {
            let [first, second] = [0, 1].map(|one| both[one].sign(kind, keys[one], MESSAGE).map_err(name));
            assert!(first.is_ok() && first == second, "{kind:#x}: {first:?} {second:?}");
        }
    });
}

/// Makes a pair of RSA that programs may read. Gives the public and the private key.
pub(crate) fn rsa_pair(session: &Session, bits: &CK_ULONG) -> (CK_OBJECT_HANDLE, CK_OBJECT_HANDLE) {
    let of_public = [attribute(CKA_MODULUS_BITS, number(bits)), attribute(CKA_PUBLIC_EXPONENT, &[1, 0, 1])];
    let of_private = [attribute(CKA_SENSITIVE, &NO), attribute(CKA_EXTRACTABLE, &YES)];
    let (at, private_at) = (of_public.as_ptr().cast_mut(), of_private.as_ptr().cast_mut());
    let (module, s, mut public, mut private) = (session.module, session.handle, 0, 0);
    let code = with(CKM_RSA_PKCS_KEY_PAIR_GEN, &[], |mechanism| {
        call!(module, C_GenerateKeyPair(s, mechanism, at, 2, private_at, 2, &mut public, &mut private))
    });
    assert_eq!(name(code), "CKR_OK");
    (public, private)
}

#[test]
fn softhsm_takes_an_rsa_key_of_a_session_and_signs_the_same() {
    apart("session_keys::softhsm_takes_an_rsa_key_of_a_session_and_signs_the_same", |place| {
        let (theirs, (_serving, ours)) = (place.softhsm(), place.service());
        let [theirs, ours] = [&theirs, &ours].map(logged_in);
        let (public, private) = rsa_pair(&ours, &1024);
        let kinds = [
            CKA_MODULUS,
            CKA_PUBLIC_EXPONENT,
            CKA_PRIVATE_EXPONENT,
            CKA_PRIME_1,
            CKA_PRIME_2,
            CKA_EXPONENT_1,
            CKA_EXPONENT_2,
            CKA_COEFFICIENT,
        ];
        let values = kinds.map(|kind| ours.attribute(private, kind).expect("a readable key"));
        let mut template = vec![
            attribute(CKA_CLASS, number(&CKO_PRIVATE_KEY)),
            attribute(CKA_KEY_TYPE, number(&CKK_RSA)),
            attribute(CKA_SIGN, &YES),
            attribute(CKA_DECRYPT, &YES),
        ];
        template.extend(kinds.iter().zip(&values).map(|(kind, value)| attribute(*kind, value)));
        let [copy, again] = [&theirs, &ours].map(|session| create(session, &template).expect("a key"));
        for kind in [CKM_RSA_PKCS, CKM_SHA1_RSA_PKCS, CKM_SHA256_RSA_PKCS, CKM_SHA512_RSA_PKCS] {
            let signature = ours.sign(kind, private, MESSAGE).map_err(name);
            assert_eq!(theirs.sign(kind, copy, MESSAGE).map_err(name), signature, "{kind:#x}");
            assert_eq!(ours.sign(kind, again, MESSAGE).map_err(name), signature, "{kind:#x}");
            let verified = ours.verify(kind, public, MESSAGE, &signature.expect("a signature"));
            assert_eq!(verified.map_err(name), Ok(()), "{kind:#x}");
        }
        let oaep =
            [CKM_SHA_1, CKG_MGF1_SHA1, CKZ_DATA_SPECIFIED, 0, 0].map(|part| part.to_ne_bytes()).concat();
        for (kind, parameters) in [(CKM_RSA_PKCS, &[][..]), (CKM_RSA_PKCS_OAEP, &oaep)] {
            let ciphertext = cipher(&ours, Way::Encrypt, kind, parameters, public, MESSAGE);
            let ciphertext = ciphertext.unwrap_or_else(|code| panic!("{kind:#x}: {}", name(code)));
            for (session, key) in [(&theirs, copy), (&ours, private)] {
                let plaintext = cipher(session, Way::Decrypt, kind, parameters, key, &ciphertext);
                assert_eq!(plaintext.as_deref().map_err(|code| name(*code)), Ok(MESSAGE), "{kind:#x}");
            }
        }
        // By PKCS #1 1.5, nobody learns whether the padding was right.
        let forged = cipher(&ours, Way::Decrypt, CKM_RSA_PKCS, &[], private, &[1; 128]);
        assert!(forged.is_ok(), "{forged:?}");
    });
}

#[test]
fn a_key_of_a_session_is_gone_after_it_and_after_a_fork() {
    apart("session_keys::a_key_of_a_session_is_gone_after_it_and_after_a_fork", |place| {
        let (_serving, token) = place.service();
        let first = logged_in(&token);
        let other = token.module.open(token.module.slot(TOKEN)).expect("a session");
        let key = secret(&first, &CKK_AES, &[1; 16]);
        // All sessions of the program see it, until its own ends.
        assert_eq!(other.attribute(key, CKA_VALUE).map_err(name), Ok(vec![1; 16]));
        let of_token = |session: &Session| session.find(&[attribute(CKA_VALUE, &[1; 16])]).expect("a search");
        assert_eq!(of_token(&other), [key]);
        let child = crate::processes::in_child(|| {
            token.module.initialize().expect("it is initialized");
            let session = token.module.open(token.module.slot(TOKEN)).expect("a session");
            session.login(&token.pin).expect("the PIN is right");
            session.attribute(key, CKA_VALUE) == Err(CKR_OBJECT_HANDLE_INVALID)
                && of_token(&session).is_empty()
        });
        assert_eq!(child, 0, "the child sees the key");
        first.close().expect("it was open");
        assert_eq!(
            other.attribute(key, CKA_VALUE).map_err(name),
            Err("CKR_OBJECT_HANDLE_INVALID".to_owned())
        );
        assert_eq!(
            other.sign(CKM_SHA256_HMAC, key, b"m").map_err(name),
            Err("CKR_KEY_HANDLE_INVALID".to_owned())
        );
        // Also after the logout.
        let key = secret(&other, &CKK_AES, &[1; 16]);
        other.logout().expect("it was logged in");
        assert_eq!(
            other.attribute(key, CKA_VALUE).map_err(name),
            Err("CKR_OBJECT_HANDLE_INVALID".to_owned())
        );
    });
}

#[test]
fn a_key_of_the_service_wraps_a_key_of_a_session_and_is_never_wrapped() {
    apart("session_keys::a_key_of_the_service_wraps_a_key_of_a_session_and_is_never_wrapped", |place| {
        let (_serving, token) = place.service();
        let session = logged_in(&token);
        let (public, private) = (session.only(CKO_PUBLIC_KEY, "rsa"), session.only(CKO_PRIVATE_KEY, "rsa"));
        let (key, module, s) = (secret(&session, &CKK_AES, &[9; 32]), session.module, session.handle);
        let oaep =
            [CKM_SHA256, CKG_MGF1_SHA256, CKZ_DATA_SPECIFIED, 0, 0].map(|part| part.to_ne_bytes()).concat();
        let wrapped = with(CKM_RSA_PKCS_OAEP, &oaep, |mechanism| {
            written(|to, room| call!(module, C_WrapKey(s, mechanism, public, key, to, room)))
        });
        let wrapped = wrapped.unwrap_or_else(|code| panic!("{}", name(code)));
        let template = [
            attribute(CKA_CLASS, number(&CKO_SECRET_KEY)),
            attribute(CKA_KEY_TYPE, number(&CKK_AES)),
            attribute(CKA_SENSITIVE, &NO),
        ];
        let (at, from, length) =
            (template.as_ptr().cast_mut(), wrapped.as_ptr().cast_mut(), wrapped.len() as CK_ULONG);
        let mut again = 0;
        let code = with(CKM_RSA_PKCS_OAEP, &oaep, |mechanism| {
            call!(module, C_UnwrapKey(s, mechanism, private, from, length, at, 3, &mut again))
        });
        assert_eq!(name(code), "CKR_OK");
        assert_eq!(session.attribute(again, CKA_VALUE).map_err(name), Ok(vec![9; 32]));
        for label in ["ed", "p256", "rsa"] {
            let refused = wrap(&session, CKM_AES_KEY_WRAP_PAD, key, session.only(CKO_PRIVATE_KEY, label));
            assert_eq!(refused.map_err(name), Err("CKR_KEY_UNEXTRACTABLE".to_owned()), "{label}");
        }
    });
}
