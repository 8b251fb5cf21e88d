//! Keys that are made, brought, wrapped and derived, and random bytes, as `compare` asks for them.

use crate::compare::{Answer, STALE, calls};
use crate::compare_operations::plain;
use crate::support::raw::{Session, attribute, call, number};
use cryptoki_sys::*;
use std::ptr::null_mut;

pub(crate) fn answers(session: &Session, slot: CK_SLOT_ID) -> Vec<Answer> {
    let mut all = of_secret_keys(session, slot);
    all.extend(of_key_pairs(session));
    all.extend(of_created(session));
    all.extend(of_wrapping(session));
    all.extend(of_random(session));
    all
}

const YES: [u8; 1] = [CK_TRUE];
const NO: [u8; 1] = [CK_FALSE];

fn of_secret_keys(session: &Session, slot: CK_SLOT_ID) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let mut read_only = 0;
    let code = call!(module, C_OpenSession(slot, CKF_SERIAL_SESSION, null_mut(), None, &mut read_only));
    assert_eq!(code, CKR_OK);
    let token = attribute(CKA_TOKEN, &YES);
    let mut good = [token, attribute(CKA_VALUE_LEN, number(&32))];
    let mut without_length = [token];
    let mut odd = [token, attribute(CKA_VALUE_LEN, number(&20))];
    let mut other_class = [good[0], good[1], attribute(CKA_CLASS, number(&CKO_PUBLIC_KEY))];
    let mut of_session = [attribute(CKA_TOKEN, &NO), good[1]];
    let mut extractable = [good[0], good[1], attribute(CKA_EXTRACTABLE, &YES)];
    let mut short = [token, attribute(CKA_VALUE_LEN, &[32])];
    let made = |session, kind, template: &mut [CK_ATTRIBUTE]| {
        let count = template.len() as CK_ULONG;
        call!(module, C_GenerateKey(session, &mut plain(kind), template.as_mut_ptr(), count, &mut { 0 }))
    };
    let mut answers = Vec::new();
    let mut add = |what: &str, code| answers.push((format!("C_GenerateKey, {what}"), code));
    add("AES of 32 bytes", made(s, CKM_AES_KEY_GEN, &mut good));
    add("in a session that only reads", made(read_only, CKM_AES_KEY_GEN, &mut good));
    add("no such mechanism", made(s, CKM_VENDOR_DEFINED, &mut good));
    add("a mechanism for pairs", made(s, CKM_EC_KEY_PAIR_GEN, &mut good));
    add("no length", made(s, CKM_AES_KEY_GEN, &mut without_length));
    add("AES of 20 bytes", made(s, CKM_AES_KEY_GEN, &mut odd));
    add("a length of one byte", made(s, CKM_AES_KEY_GEN, &mut short));
    add("another class", made(s, CKM_AES_KEY_GEN, &mut other_class));
    add("a key of the session", made(s, CKM_AES_KEY_GEN, &mut of_session));
    add("an extractable key", made(s, CKM_AES_KEY_GEN, &mut extractable));
    let (at, count) = (good.as_mut_ptr(), good.len() as CK_ULONG);
    calls! { answers, module;
        "no place for the handle" C_GenerateKey(s, &mut plain(CKM_AES_KEY_GEN), at, count, null_mut());
        "good" C_CloseSession(read_only);
    }
    answers
}

fn of_key_pairs(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let mut token = [attribute(CKA_TOKEN, &YES)];
    let p384 = attribute(CKA_EC_PARAMS, b"\x06\x05\x2b\x81\x04\x00\x22");
    let mut good = [token[0], p384];
    let mut other_curve = [token[0], attribute(CKA_EC_PARAMS, b"\x06\x05\x2b\x81\x04\x00\x7f")];
    let mut no_curve = [token[0], attribute(CKA_EC_PARAMS, b"nonsense")];
    let mut bits = [token[0], attribute(CKA_MODULUS_BITS, number(&100))];
    let mut type_ = [token[0], p384, attribute(CKA_KEY_TYPE, number(&CKK_RSA))];
    let private = [attribute(CKA_TOKEN, &YES)];
    let made = |kind, public: &mut [CK_ATTRIBUTE]| {
        let (at, count) = (public.as_mut_ptr(), public.len() as CK_ULONG);
        let (private, mut mechanism) = (private.as_ptr().cast_mut(), plain(kind));
        let (mut one, mut two) = (0, 0);
        call!(module, C_GenerateKeyPair(s, &mut mechanism, at, count, private, 1, &mut one, &mut two))
    };
    let mut answers = Vec::new();
    let mut add = |what: &str, code| answers.push((format!("C_GenerateKeyPair, {what}"), code));
    add("P-384", made(CKM_EC_KEY_PAIR_GEN, &mut good));
    add("no curve", made(CKM_EC_KEY_PAIR_GEN, &mut token));
    add("a curve that nobody has", made(CKM_EC_KEY_PAIR_GEN, &mut other_curve));
    add("parameters that are not DER", made(CKM_EC_KEY_PAIR_GEN, &mut no_curve));
    add("RSA of 100 bits", made(CKM_RSA_PKCS_KEY_PAIR_GEN, &mut bits));
    add("RSA of no length", made(CKM_RSA_PKCS_KEY_PAIR_GEN, &mut token));
    add("another type", made(CKM_EC_KEY_PAIR_GEN, &mut type_));
    add("no such mechanism", made(CKM_VENDOR_DEFINED, &mut good));
    add("a mechanism for secret keys", made(CKM_AES_KEY_GEN, &mut good));
    answers
}

fn of_created(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let class = |class: &'static CK_OBJECT_CLASS| attribute(CKA_CLASS, number(class));
    let (value, label) = (attribute(CKA_VALUE, b"0123456789abcdef"), attribute(CKA_LABEL, b"brought"));
    let mut data = [class(&CKO_DATA), value, label];
    let mut no_class = [value, label];
    let mut other = [class(&CKO_HW_FEATURE), value];
    let mut public = [class(&CKO_PUBLIC_KEY), attribute(CKA_KEY_TYPE, number(&CKK_EC))];
    let mut certificate = [class(&CKO_CERTIFICATE), attribute(CKA_CERTIFICATE_TYPE, number(&CKC_X_509))];
    let mut secret = [class(&CKO_SECRET_KEY), attribute(CKA_KEY_TYPE, number(&CKK_AES)), value];
    let mut object = 0;
    let mut answers = Vec::new();
    calls! { answers, module;
        "data" C_CreateObject(s, data.as_mut_ptr(), 3, &mut object);
        "data" C_DestroyObject(s, object);
        "destroyed before" C_DestroyObject(s, object);
        "no class" C_CreateObject(s, no_class.as_mut_ptr(), 2, &mut object);
        "another class" C_CreateObject(s, other.as_mut_ptr(), 2, &mut object);
        "a public key without its point" C_CreateObject(s, public.as_mut_ptr(), 2, &mut object);
        "a certificate without a value" C_CreateObject(s, certificate.as_mut_ptr(), 2, &mut object);
        "a secret key" C_CreateObject(s, secret.as_mut_ptr(), 3, &mut object);
        "no place for the handle" C_CreateObject(s, data.as_mut_ptr(), 3, null_mut());
    }
    answers
}

fn of_wrapping(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let (p256, rsa) = (session.only(CKO_PRIVATE_KEY, "p256"), session.only(CKO_PUBLIC_KEY, "rsa"));
    let mut template = [attribute(CKA_CLASS, number(&CKO_SECRET_KEY))];
    let (mut out, mut key) = ([0; 2048], 0);
    let (to, at) = (out.as_mut_ptr(), template.as_mut_ptr());
    let mut answers = Vec::new();
    calls! { answers, module;
        "no such mechanism" C_WrapKey(s, &mut plain(CKM_VENDOR_DEFINED), rsa, p256, to, &mut { 2048 });
        "a private key by RSA" C_WrapKey(s, &mut plain(CKM_RSA_PKCS), rsa, p256, to, &mut { 2048 });
        "no such key" C_WrapKey(s, &mut plain(CKM_RSA_PKCS), STALE, p256, to, &mut { 2048 });
        "no such mechanism" C_UnwrapKey(s, &mut plain(CKM_VENDOR_DEFINED), p256, to, 256, at, 1, &mut key);
        "no such key" C_UnwrapKey(s, &mut plain(CKM_RSA_PKCS), STALE, to, 256, at, 1, &mut key);
        "no such mechanism" C_DeriveKey(s, &mut plain(CKM_VENDOR_DEFINED), p256, at, 1, &mut key);
        "no such key" C_DeriveKey(s, &mut plain(CKM_ECDH1_DERIVE), STALE, at, 1, &mut key);
        "without parameters" C_DeriveKey(s, &mut plain(CKM_ECDH1_DERIVE), p256, at, 1, &mut key);
        "no place for the handle" C_DeriveKey(s, &mut plain(CKM_ECDH1_DERIVE), p256, at, 1, null_mut());
    }
    answers
}

fn of_random(session: &Session) -> Vec<Answer> {
    let (module, s) = (&session.module, session.handle);
    let mut bytes = [0; 32];
    let at = bytes.as_mut_ptr();
    let mut answers = Vec::new();
    calls! { answers, module;
        "good" C_GenerateRandom(s, at, 32);
        "no bytes" C_GenerateRandom(s, at, 0);
        "no such session" C_GenerateRandom(STALE, at, 32);
        "good" C_SeedRandom(s, at, 32);
        "no such session" C_SeedRandom(STALE, at, 32);
    }
    answers
}
