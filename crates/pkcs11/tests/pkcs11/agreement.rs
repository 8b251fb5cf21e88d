//! Secrets that a key of the service shares with the holder of another key.

use crate::support::codes::name;
use crate::support::raw::{Session, attribute, call, number};
use crate::support::{OPEN, apart};
use bulla_testing::Done;
use cryptoki_sys::*;
use std::ptr::{from_mut, null_mut};

/// P-256 and X25519: the mechanism that makes a pair, the curve, and OpenSSL's arguments for it.
const CURVES: [(CK_MECHANISM_TYPE, &[u8], &[&str]); 2] = [
    (
        CKM_EC_KEY_PAIR_GEN,
        b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07",
        &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    ),
    (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, b"\x06\x03\x2b\x65\x6e", &["-algorithm", "X25519"]),
];

const YES: [u8; 1] = [CK_TRUE];

/// Makes a pair that derives. Gives its public and its private object.
fn pair(session: &Session, kind: CK_MECHANISM_TYPE, curve: &[u8]) -> (CK_OBJECT_HANDLE, CK_OBJECT_HANDLE) {
    let mut mechanism = CK_MECHANISM { mechanism: kind, pParameter: null_mut(), ulParameterLen: 0 };
    let mut of_public = [attribute(CKA_EC_PARAMS, curve)];
    let mut of_private = [attribute(CKA_TOKEN, &YES), attribute(CKA_DERIVE, &YES)];
    let (at, private_at) = (of_public.as_mut_ptr(), of_private.as_mut_ptr());
    let (s, mut public, mut private) = (session.handle, 0, 0);
    let module = session.module;
    let code =
        call!(module, C_GenerateKeyPair(s, &mut mechanism, at, 1, private_at, 2, &mut public, &mut private));
    assert_eq!(name(code), "CKR_OK");
    (public, private)
}

/// Derives a secret with a peer's point.
fn derive(
    session: &Session,
    private: CK_OBJECT_HANDLE,
    point: &[u8],
    more: &[CK_ATTRIBUTE],
) -> Result<CK_OBJECT_HANDLE, String> {
    let mut parameters = CK_ECDH1_DERIVE_PARAMS {
        kdf: CKD_NULL,
        ulSharedDataLen: 0,
        pSharedData: null_mut(),
        ulPublicDataLen: point.len() as CK_ULONG,
        pPublicData: point.as_ptr().cast_mut(),
    };
    let mut mechanism = CK_MECHANISM {
        mechanism: CKM_ECDH1_DERIVE,
        pParameter: from_mut(&mut parameters).cast(),
        ulParameterLen: size_of::<CK_ECDH1_DERIVE_PARAMS>() as CK_ULONG,
    };
    let class = attribute(CKA_CLASS, number(&CKO_SECRET_KEY));
    let mut template = [&[class], more].concat();
    let (at, count, mut secret) = (template.as_mut_ptr(), template.len() as CK_ULONG, 0);
    let module = session.module;
    match call!(module, C_DeriveKey(session.handle, &mut mechanism, private, at, count, &mut secret)) {
        CKR_OK => Ok(secret),
        code => Err(name(code)),
    }
}

#[test]
fn a_key_and_openssl_derive_the_same_secret() {
    apart("agreement::a_key_and_openssl_derive_the_same_secret", |place| {
        let (_serving, token) = place.service();
        token.module.initialize().expect("it is initialized");
        let session = token.module.open(token.module.slot(OPEN)).expect("a session");
        let openssl = |arguments: &[&str]| Done::of(place.home.program("openssl").args(arguments)).exits(0);
        for (kind, curve, arguments) in CURVES {
            let (public, private) = pair(&session, kind, curve);
            openssl(&[&["genpkey"], arguments, &["-out", "peer.pem"]].concat());
            openssl(&["pkey", "-in", "peer.pem", "-pubout", "-outform", "DER", "-out", "peer.der"]);
            let peer = place.home.read("peer.der");
            let length = if kind == CKM_EC_KEY_PAIR_GEN { 65 } else { 32 };
            let point = &peer[peer.len() - length..];
            place.home.write("ours.der", session.attribute(public, CKA_PUBLIC_KEY_INFO).expect("a key"));
            openssl(&["pkey", "-pubin", "-inform", "DER", "-in", "ours.der", "-out", "ours.pem"]);
            openssl(&["pkeyutl", "-derive", "-inkey", "peer.pem", "-peerkey", "ours.pem", "-out", "secret"]);
            let theirs = place.home.read("secret");
            let secret = derive(&session, private, point, &[]).expect("a secret");
            assert_eq!(session.attribute(secret, CKA_VALUE).expect("a value"), theirs);
            // The last bytes, for a key of AES; and a point as in CKA_EC_POINT.
            let aes = [
                attribute(CKA_KEY_TYPE, number(&CKK_AES)),
                attribute(CKA_VALUE_LEN, number(&16)),
                attribute(CKA_SENSITIVE, &[CK_FALSE]),
            ];
            let encoded = [&[4, u8::try_from(length).expect("a length")], point].concat();
            let key = derive(&session, private, &encoded, &aes).expect("a secret");
            assert_eq!(session.attribute(key, CKA_VALUE).expect("a value"), theirs[16..]);
            // One that is sensitive is not read.
            let sensitive = [attribute(CKA_SENSITIVE, &YES)];
            let hidden = derive(&session, private, point, &sensitive).expect("a secret");
            let value = session.attribute(hidden, CKA_VALUE).map_err(name);
            assert_eq!(value, Err("CKR_ATTRIBUTE_SENSITIVE".to_owned()));
            // What is not a point of the curve, and a key that does not agree.
            let refused = derive(&session, private, &vec![4; length], &[]);
            if kind == CKM_EC_KEY_PAIR_GEN {
                assert_eq!(refused, Err("CKR_MECHANISM_PARAM_INVALID".to_owned()));
            }
            let signs = session.only(CKO_PRIVATE_KEY, "p256");
            let refused = derive(&session, signs, point, &[]);
            assert_eq!(refused, Err("CKR_KEY_FUNCTION_NOT_PERMITTED".to_owned()));
            // It ends with the session, and its key does nothing else.
            let refused = session.sign(CKM_ECDSA, private, &[7; 32]).map_err(name);
            assert!(refused.is_err(), "it does not sign");
            let other = session.module.open(session.module.slot(OPEN)).expect("a session");
            let last = derive(&other, private, point, &[]).expect("a secret");
            other.close().expect("it was open");
            let gone = session.attribute(last, CKA_VALUE).map_err(name);
            assert_eq!(gone, Err("CKR_OBJECT_HANDLE_INVALID".to_owned()));
        }
    });
}
