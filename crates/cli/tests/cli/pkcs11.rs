//! Keys on a token: SoftHSM, made for the test.

use crate::both::remote;
use crate::serving::{Serving, settings};
use crate::support::{Done, Home};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";

/// A home with a token, whose PIN is in the file `pin`.
struct WithToken {
    home: Home,
    tokens: PathBuf,
    /// The token's URI, without and with where its PIN is.
    uri: String,
    with_pin: String,
}

impl WithToken {
    fn new() -> Self {
        let home = Home::new();
        let tokens = home.path("tokens");
        fs::create_dir(&tokens).expect("a folder for the token");
        let configuration = format!("directories.tokendir = {}\nlog.level = ERROR\n", tokens.display());
        home.write("softhsm2.conf", configuration);
        home.write("pin", "12345678\n");
        let made = home
            .program("softhsm2-util")
            .env("SOFTHSM2_CONF", home.path("softhsm2.conf"))
            .args([
                "--init-token",
                "--free",
                "--label",
                "releases",
                "--pin",
                "12345678",
                "--so-pin",
                "87654321",
            ])
            .status()
            .expect("softhsm2-util is there: it is in Debian's package softhsm2");
        assert!(made.success());
        let uri = format!("pkcs11:token=releases?module-path={MODULE}");
        let with_pin = format!("{uri}&pin-source=file:{}", home.path("pin").display());
        Self { home, tokens, uri, with_pin }
    }

    /// Runs the command with the token of this URI.
    fn run(&self, uri: &str, args: &[&str]) -> Done {
        let mut command = self.home.command();
        let configuration = self.home.path("softhsm2.conf");
        Done::of(command.env("SOFTHSM2_CONF", configuration).env("BULLA_PKCS11", uri).args(args))
    }
}

/// A request about the key `release`.
#[track_caller]
fn about_release(serving: &Serving<'_>, what: &str, body: &Value) -> Value {
    let (status, answer) = serving.post(&format!("/api/v1/keys/release/{what}"), body);
    assert_eq!(status, 200, "{what}: {answer}");
    answer
}

#[test]
fn a_service_makes_signs_with_and_rotates_keys_on_a_token() {
    let token = WithToken::new();
    let WithToken { home, with_pin, .. } = &token;
    token.run(with_pin, &["keystore", "init"]).exits(0);
    settings(home, "");
    let start = || {
        let mut command = Serving::command(home);
        command.env("SOFTHSM2_CONF", home.path("softhsm2.conf")).env("BULLA_PKCS11", with_pin);
        Serving::run(home, &mut command)
    };
    let message = json!({ "message": "eA==" });
    let verify = |serving: &Serving<'_>, version: u64, signature: &Value| {
        let body = json!({ "message": "eA==", "signature": signature, "version": version });
        about_release(serving, "verify", &body)["valid"].as_bool().unwrap()
    };
    let serving = start();
    let new = |body: &Value| serving.post("/api/v1/keys", body);
    let (status, key) = new(&json!({ "label": "release", "backend": "pkcs11" }));
    assert_eq!((status, &key["backend"]), (201, &json!("pkcs11")), "{key}");
    let (status, refused) = new(&json!({ "backend": "pkcs11", "exportable": true }));
    assert_eq!((status, &refused["code"]), (409, &json!("not_exportable")), "{refused}");
    let (status, refused) = new(&json!({ "backend": "elsewhere" }));
    assert_eq!((status, &refused["code"]), (400, &json!("unsupported_algorithm")), "{refused}");
    let remotely = ["keys", "create", "remote", "--backend", "pkcs11", "--json"];
    Done::of(remote(home).args(remotely)).exits(0).says("\"backend\":\"pkcs11\"");
    let first = about_release(&serving, "sign", &message)["signature"].clone();
    assert_eq!(about_release(&serving, "rotate", &json!({}))["head"], 2);
    let items = json!({ "key": "release", "items": [message, message] });
    let (status, both) = serving.post("/api/v1/sign", &items);
    assert_eq!((status, &both["results"][1]["version"]), (200, &json!(2)), "{both}");
    let second = both["results"][1]["signature"].clone();
    assert!(verify(&serving, 1, &first) && verify(&serving, 2, &second) && !verify(&serving, 2, &first));
    drop(serving);
    // The keystore has the public keys alone: without the token, the service verifies and does not
    // sign.
    let without = Serving::start(home);
    assert!(verify(&without, 2, &second));
    let (status, refused) = without.post("/api/v1/keys/release/sign", &message);
    assert_eq!((status, &refused["code"]), (400, &json!("unsupported_algorithm")), "{refused}");
    drop(without);
    let again = about_release(&start(), "sign", &message);
    assert_eq!(again["version"], 2);
}

#[test]
fn a_key_on_a_token_signs_and_its_signature_verifies_without_the_token() {
    let token = WithToken::new();
    let WithToken { home, tokens, uri, with_pin } = &token;
    let run = |uri: &str, args: &[&str]| token.run(uri, args);
    home.write("a", "a");
    let new = ["keys", "create", "release", "--backend", "pkcs11"];
    run(with_pin, &[&new[..], &["--exportable"]].concat()).exits(2).complains("never exports private keys");
    run(with_pin, &new).exits(0).says("created release");
    run(with_pin, &["keys", "show", "release", "--json"]).exits(0).says("\"backend\":\"pkcs11\"");
    run(with_pin, &["sign", "a", "--key", "release"]).exits(0);
    home.write("predicate.json", "{\"passed\": true}");
    let statement = ["--format", "dsse", "--predicate", "predicate.json", "--predicate-type", "u:x"];
    run(with_pin, &[&["sign", "a", "--key", "release"], &statement[..]].concat()).exits(0);
    home.run(["verify", "a", "--format", "dsse"]).exits(0).says("a: OK (dsse signature by release v1");
    let p256 = ["keys", "create", "p256", "--backend", "pkcs11", "--algorithm", "ecdsa-p256"];
    run(with_pin, &p256).exits(0);
    let ed25519 = ["minisign", "ssh", "signify", "sigstore", "jws"].map(|format| ("release", format));
    for (key, format) in ed25519.into_iter().chain([("p256", "oms"), ("p256", "jws")]) {
        run(with_pin, &["sign", "a", "--key", key, "--format", format, "--output", format]).exits(0);
        home.run(["verify", "a", "--format", format, "--signature", format]).exits(0);
        fs::remove_file(home.path(format)).expect("it was written");
    }
    run(with_pin, &["keys", "rotate", "release"]).exits(0).says("version 2");
    // Nobody asks for a token, or for its PIN, who only verifies.
    home.run(["verify", "a"]).exits(0);
    run(uri, &["verify", "a"]).exits(0);
    home.run(["sign", "a", "--key", "release"]).exits(2).complains("--pkcs11");
    run(uri, &["sign", "a", "--key", "release"]).exits(2).complains("pin-source");
    home.write("pin", "wrong pin\n");
    run(with_pin, &["sign", "a", "--key", "release"]).exits(2).complains("refuses the PIN");
    home.write("pin", "12345678\n");
    fs::rename(tokens, home.path("removed")).expect("the token is taken away");
    run(with_pin, &["sign", "a", "--key", "release"]).exits(2).complains("token");
    fs::rename(home.path("removed"), tokens).expect("the token is put back");
    run(with_pin, &["sign", "a", "--key", "release"]).exits(0);
    run("pkcs11:?pin-value=1", &["keys", "list"]).exits(2).complains("must not contain a PIN");
}

#[test]
fn a_keystore_opens_with_its_key_on_the_token_and_its_guard_there_refuses_an_older_copy() {
    let token = WithToken::new();
    let WithToken { home, uri, with_pin, .. } = &token;
    let run = |args: &[&str]| token.run(with_pin, args);
    home.write("a", "a");
    home.run(["keystore", "init", "--device-key", "opens"]).exits(2).complains("--pkcs11");
    run(&["keystore", "init", "--device-key", "opens", "--guard", "pkcs11:guard", "--json"])
        .exits(0)
        .says("\"unlock\":\"device\"");
    assert!(!home.keystore().join("keystore.key").exists());
    run(&["sign", "a"]).exits(0);
    home.run(["sign", "a"]).exits(2).complains("--pkcs11");
    token.run(uri, &["sign", "a"]).exits(2).complains("pin-source");
    run(&["keystore", "guard"]).exits(0).says("pkcs11:guard");

    let store = home.keystore().join("keystore.redb");
    fs::copy(&store, home.path("yesterday")).expect("a copy");
    run(&["keys", "rotate"]).exits(0);
    fs::copy(&store, home.path("today")).expect("a copy");
    fs::copy(home.path("yesterday"), &store).expect("it is put back");
    run(&["sign", "a"]).exits(2).complains("older copy");
    fs::copy(home.path("today"), &store).expect("it is put back");
    run(&["sign", "a"]).exits(0);

    // Away from the token and back to it.
    run(&["keystore", "guard", "none"]).exits(0);
    run(&["keystore", "rekey", "--generate-key-file"]).exits(0);
    home.run(["sign", "a"]).exits(0);
    run(&["keystore", "rekey", "--device-key", "opens"]).exits(0);
    home.run(["sign", "a"]).exits(2).complains("--pkcs11");
    run(&["sign", "a"]).exits(0);
}
