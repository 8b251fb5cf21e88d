//! A keystore's folder as a slot: no service.

use crate::support::codes::name;
use crate::support::raw::{Mechanism, Module, Session, attribute, call, number};
use crate::support::{CONFIG, TestFolder, apart, module_path};
use bulla_testing::Done;
use cryptoki_sys::*;
use std::fs;
use std::path::Path;
use std::ptr::null_mut;

const PASSPHRASE: &str = "correct horse";
/// The slot of a keystore that a key file opens.
const WITH_FILE: &str = "with a file";
/// The slot of a keystore that a passphrase opens.
const WITH_PASSPHRASE: &str = "with a passphrase";

/// Two keystores with the keys `default` and `web`, and settings of the module for them.
fn keystores(place: &TestFolder) -> Module {
    let home = &place.home;
    home.write_secret("passphrase", PASSPHRASE);
    let slot = |label: &str, folder: &str, create: &[&str], open: &[&str]| {
        let path = home.path(folder).display().to_string();
        let run = |arguments: &[&str]| home.run([arguments, &["--keystore", &path]].concat()).exits(0);
        run(&[&["keystore", "init"], create, open].concat());
        let web = ["keys", "create", "web", "--algorithm", "ecdsa-p256", "--signs-digests"];
        run(&[&web[..], open].concat());
        format!("[[slot]]\nlabel = {label:?}\nkeystore = {path:?}\n\n")
    };
    let open = ["--passphrase-file", "passphrase"];
    let text = slot(WITH_FILE, "one", &[], &[]) + &slot(WITH_PASSPHRASE, "two", &["--passphrase"], &open);
    fs::write(place.config(), text).expect("the settings are written");
    Module::load(Path::new(&module_path()))
}

/// Signs with both keys of a keystore, and verifies.
fn sign(session: &Session) {
    for (key, kind, message) in [
        ("default", CKM_EDDSA, &b"a message"[..]),
        ("web", CKM_ECDSA, &[7; 32]),
        ("web", CKM_ECDSA_SHA256, b""),
    ] {
        let (private, public) = (session.only(CKO_PRIVATE_KEY, key), session.only(CKO_PUBLIC_KEY, key));
        let signature = session.sign(kind, private, message).unwrap_or_else(|code| panic!("{}", name(code)));
        let verified = session.verify(Mechanism::from(kind), public, message, &signature);
        assert_eq!(verified.map_err(name), Ok(()), "{key}");
    }
}

#[test]
fn a_keystore_signs_after_a_login_with_its_passphrase_or_by_its_key_file() {
    apart("local::a_keystore_signs_after_a_login_with_its_passphrase_or_by_its_key_file", |place| {
        let module = keystores(place);
        module.initialize().expect("it is initialized");
        let session = module.open(module.slot(WITH_FILE)).expect("a session");
        sign(&session);
        // It makes a key that the command sees, and destroys it.
        let yes = [CK_TRUE];
        let mut template =
            [attribute(CKA_TOKEN, &yes), attribute(CKA_LABEL, b"mac"), attribute(CKA_VALUE_LEN, number(&32))];
        let mut mechanism =
            CK_MECHANISM { mechanism: CKM_GENERIC_SECRET_KEY_GEN, pParameter: null_mut(), ulParameterLen: 0 };
        let (at, mut key) = (template.as_mut_ptr(), 0);
        let code = call!(module, C_GenerateKey(session.handle, &mut mechanism, at, 3, &mut key));
        assert_eq!(name(code), "CKR_OK");
        let mac = session.sign(CKM_SHA256_HMAC, key, b"a message").expect("a MAC");
        assert_eq!(session.verify(CKM_SHA256_HMAC, key, b"a message", &mac), Ok(()));
        let list = || {
            let folder = place.home.path("one").display().to_string();
            place.home.run(["keys", "list", "--keystore", &folder]).exits(0).stdout
        };
        assert!(list().contains("mac"), "{}", list());
        assert_eq!(name(call!(module, C_DestroyObject(session.handle, key))), "CKR_OK");
        // The other one needs the passphrase.
        let session = module.open(module.slot(WITH_PASSPHRASE)).expect("a session");
        let keys = [attribute(CKA_CLASS, number(&CKO_PRIVATE_KEY))];
        assert_eq!(session.find(&keys).map_err(name), Ok(Vec::new()));
        for wrong in ["", "another horse"] {
            assert_eq!(session.login(wrong).map_err(name), Err("CKR_PIN_INCORRECT".to_owned()));
        }
        session.login(PASSPHRASE).expect("the passphrase is the PIN");
        sign(&session);
        session.logout().expect("it was logged in");
        assert_eq!(session.find(&keys).map_err(name), Ok(Vec::new()));
    });
}

#[test]
fn other_programs_use_the_keystore_while_a_program_has_a_session() {
    let (_folder, place) = TestFolder::in_this_process();
    keystores(&place);
    let home = &place.home;
    let folder = home.path("one").display().to_string();
    home.run(["log", "init", "--keystore", &folder]).exits(0);
    // ssh-keygen and pkcs11-tool load the module each for themselves.
    for file in ["one message", "another message"] {
        home.write(file, "a message");
        let mut tool = home.program("pkcs11-tool");
        tool.args(["--module", &module_path(), "--token-label", WITH_FILE, "--list-objects"]);
        Done::of(tool.env(CONFIG, place.config())).exits(0).says("label:      web");
        home.run(["sign", "--key", "default", file, "--keystore", &folder]).exits(0);
    }
    let mut keygen = home.program("ssh-keygen");
    Done::of(keygen.args(["-D", &module_path()]).env(CONFIG, place.config())).exits(0).says("ecdsa-sha2");
}
