//! What a token permits is what a program sees.

use crate::support::codes::name;
use crate::support::raw::{attribute, number};
use crate::support::{CONFIG, KEYS, ONE, OPEN, TOKEN, apart, module_path};
use bulla_testing::Done;
use cryptoki_sys::*;

#[test]
fn a_token_for_one_key_sees_one_key() {
    apart("tokens::a_token_for_one_key_sees_one_key", |place| {
        let (_serving, token) = place.service();
        let module = token.module;
        module.initialize().expect("it is initialized");
        let one = module.open(module.slot(ONE)).expect("a session");
        for (key, _) in KEYS {
            let expected = usize::from(key == "p256");
            for class in [CKO_PRIVATE_KEY, CKO_PUBLIC_KEY] {
                assert_eq!(one.named(class, key).map(|found| found.len()), Ok(expected), "{key}");
            }
        }
        let all = one.find(&[]).expect("all objects");
        assert_eq!(all.len(), 2, "a private key and a public key");
        // The handle of another slot's key is not valid here.
        let open = module.open(module.slot(OPEN)).expect("a session");
        let other = open.only(CKO_PRIVATE_KEY, "ed");
        let code = one.sign(CKM_EDDSA, other, b"message").expect_err("a key of another token");
        assert_eq!(name(code), "CKR_KEY_HANDLE_INVALID");
        let signature = one.sign(CKM_ECDSA, one.only(CKO_PRIVATE_KEY, "p256"), &[1; 32]);
        assert_eq!(signature.map(|bytes| bytes.len()), Ok(64));
        // That token is also a PIN.
        let pin = String::from_utf8(place.home.read("token-one")).expect("a text");
        let session = module.open(module.slot(TOKEN)).expect("a session");
        session.login(&pin).expect("a token is a PIN");
        let private = session.find(&[attribute(CKA_CLASS, number(&CKO_PRIVATE_KEY))]);
        assert_eq!(private.map(|found| found.len()), Ok(1));
        session.logout().expect("it was logged in");
        session.login(&token.pin).expect("the other token is a PIN, too");
        let private = session.find(&[attribute(CKA_CLASS, number(&CKO_PRIVATE_KEY))]);
        assert!(private.is_ok_and(|found| found.len() >= KEYS.len()));
    });
}

#[test]
fn a_token_that_only_reads_signs_nothing() {
    apart("tokens::a_token_that_only_reads_signs_nothing", |place| {
        let (_serving, token) = place.service();
        let module = token.module;
        module.initialize().expect("it is initialized");
        let reads = String::from_utf8(place.home.read("token-reads")).expect("a text");
        let session = module.open(module.slot(TOKEN)).expect("a session");
        session.login(&reads).expect("a token is a PIN");
        let key = session.only(CKO_PRIVATE_KEY, "ed");
        let code = session.sign(CKM_EDDSA, key, b"message").expect_err("the token does not permit it");
        let refused = ["CKR_KEY_FUNCTION_NOT_PERMITTED", "CKR_ACTION_PROHIBITED", "CKR_FUNCTION_REJECTED"];
        assert!(refused.contains(&&*name(code)), "{}", name(code));
    });
}

#[test]
fn the_pin_is_in_no_output() {
    apart("tokens::the_pin_is_in_no_output", |place| {
        let (serving, token) = place.service();
        let wrong = format!("{}x", token.pin);
        let mut tool = place.home.program("pkcs11-tool");
        tool.args(["--module", &module_path(), "--token-label", TOKEN, "--login", "--pin", &wrong]);
        let done = Done::of(tool.arg("-O").env(CONFIG, place.config()));
        assert_ne!(done.code, Some(0));
        let said = done.stdout + &done.stderr + &serving.log();
        assert!(!said.contains(&token.pin[..40]), "{said}");
    });
}
