//! SoftHSM beside our module, with the same keys: where a key has one signature for a message, both
//! make it, and each accepts what the other signed.

use crate::support::codes::name;
use crate::support::raw::{Mechanism, Session};
use crate::support::{TOKEN, Token, apart};
use cryptoki_sys::*;

const MESSAGE: &[u8] = b"the same message";

fn logged_in(token: &Token) -> Session {
    token.module.initialize().expect("it is initialized");
    let session = token.module.open(token.module.slot(TOKEN)).expect("a session");
    session.login(&token.pin).expect("the PIN is right");
    session
}

#[test]
fn softhsm_and_the_module_make_the_same_signatures_and_digests() {
    apart("peer::softhsm_and_the_module_make_the_same_signatures_and_digests", |place| {
        let (theirs, (_serving, ours)) = (place.softhsm(), place.service());
        let both = [&theirs, &ours].map(logged_in);
        for (key, kind) in [
            ("ed", CKM_EDDSA),
            ("rsa", CKM_SHA256_RSA_PKCS),
            ("rsa", CKM_SHA384_RSA_PKCS),
            ("rsa", CKM_SHA512_RSA_PKCS),
        ] {
            let [theirs, ours] = both.map(|session| {
                let private = session.only(CKO_PRIVATE_KEY, key);
                session.sign(kind, private, MESSAGE).unwrap_or_else(|code| panic!("{}", name(code)))
            });
            assert_eq!(theirs, ours, "{key} by {kind:#x}");
        }
        let parts = both.map(|session| {
            let private = session.only(CKO_PRIVATE_KEY, "rsa");
            session.sign_parts(CKM_SHA256_RSA_PKCS, private, &[b"the ", b"", b"same message"])
        });
        assert_eq!(parts[0], parts[1]);
        for kind in [CKM_SHA256, CKM_SHA384, CKM_SHA512] {
            let [theirs, ours] = both.map(|session| session.digest(kind, MESSAGE).map_err(name));
            assert_eq!(theirs, ours, "{kind:#x}");
        }
        let [one, two] = [(); 2].map(|()| both[1].random::<32>().expect("random bytes"));
        assert_ne!(one, two);
    });
}

#[test]
fn each_accepts_what_the_other_signed_and_nothing_else() {
    apart("peer::each_accepts_what_the_other_signed_and_nothing_else", |place| {
        let (theirs, (_serving, ours)) = (place.softhsm(), place.service());
        let both = [&theirs, &ours].map(logged_in);
        let pss = CK_RSA_PKCS_PSS_PARAMS { hashAlg: CKM_SHA256, mgf: CKG_MGF1_SHA256, sLen: 32 };
        let pss = Mechanism { kind: CKM_SHA256_RSA_PKCS_PSS, pss: Some(pss) };
        let digest = [7; 32];
        for (key, mechanism, message) in [
            ("p256", Mechanism::from(CKM_ECDSA), &digest[..]),
            ("rsa", CKM_SHA256_RSA_PKCS.into(), MESSAGE),
            ("rsa", pss, MESSAGE),
        ] {
            for (signs, verifies) in [(both[0], both[1]), (both[1], both[0])] {
                let private = signs.only(CKO_PRIVATE_KEY, key);
                let public = verifies.only(CKO_PUBLIC_KEY, key);
                let signature = signs.sign(mechanism, private, message);
                let mut signature = signature.unwrap_or_else(|code| panic!("{key}: {}", name(code)));
                let verify =
                    |signature: &[u8]| verifies.verify(mechanism, public, message, signature).map_err(name);
                assert_eq!(verify(&signature), Ok(()), "{key} by {:#x}", mechanism.kind);
                signature[20] ^= 1;
                assert_eq!(verify(&signature), Err("CKR_SIGNATURE_INVALID".to_owned()), "{key}");
            }
        }
    });
}
