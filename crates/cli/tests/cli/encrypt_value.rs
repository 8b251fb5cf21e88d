//! Values that keys of the keystore encrypt.

use crate::both::{copied, prepared, remote, serve};
use crate::support::{Done, Home};

fn with_key(arguments: &[&str]) -> Home {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    let create = [&["keys", "create", "passwords", "--algorithm"], arguments].concat();
    home.run(&create).exits(0);
    home.write("value", "hunter2\n");
    home
}

#[test]
fn values_are_encrypted_and_decrypted_on_standard_output_and_in_files() {
    for algorithm in ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "xchacha20-poly1305"] {
        let home = with_key(&[algorithm]);
        let line = home.run(["encrypt", "--key", "passwords", "value"]).exits(0).stdout;
        assert!(line.lines().count() == 1 && !line.contains("hunter2"), "{line}");
        home.write("line", &line);
        assert_eq!(home.run(["decrypt", "--key", "passwords", "line"]).exits(0).stdout, "hunter2\n");
        home.run(["encrypt", "--key", "passwords", "value", "-o", "out"])
            .exits(0)
            .says("value: encrypted to out");
        home.run(["decrypt", "--key", "passwords", "out", "-o", "again"]).exits(0);
        assert_eq!(home.read("again"), b"hunter2\n");
        // Nothing is replaced.
        home.run(["decrypt", "--key", "passwords", "out", "-o", "again"])
            .exits(2)
            .complains("exists already");
        // Older versions decrypt, and revoked ones do not.
        home.run(["keys", "rotate", "passwords"])
            .exits(0)
            .says("ciphertexts of older versions still decrypt");
        home.run(["decrypt", "--key", "passwords", "line"]).exits(0);
        home.run(["keys", "revoke", "passwords", "1"]).exits(0).says("does not decrypt its ciphertexts");
        home.run(["decrypt", "--key", "passwords", "line", "-o", "revoked"]).exits(2);
        assert!(!home.path("revoked").exists());
    }
}

#[test]
fn json_has_the_key_and_the_ciphertext() {
    let home = with_key(&["aes-256-gcm"]);
    let json = home.run(["encrypt", "--key", "passwords", "value", "--json"]).exits(0).json();
    assert_eq!((&json[0]["path"], &json[0]["version"]), (&"value".into(), &1.into()));
    assert!(json[0]["key"].as_str().unwrap().ends_with("/v1"));
    home.write("line", json[0]["ciphertext"].as_str().unwrap());
    assert_eq!(home.run(["decrypt", "--key", "passwords", "line"]).exits(0).stdout, "hunter2\n");
}

#[test]
fn associated_data_and_contexts_must_be_the_same() {
    let home = with_key(&["aes-256-gcm"]);
    let encrypted = home.run(["encrypt", "--key", "passwords", "value", "--associated-data", "db1"]).exits(0);
    home.write("line", &encrypted.stdout);
    home.run(["decrypt", "--key", "passwords", "line", "--associated-data", "db1"]).exits(0);
    home.run(["decrypt", "--key", "passwords", "line"]).exits(1);
    home.run(["encrypt", "--key", "passwords", "value", "--context", "c"]).exits(2).complains("context");

    for (derivation, is_equal) in [("per-context", false), ("convergent", true)] {
        let home = with_key(&["aes-256-gcm", "--derivation", derivation]);
        home.run(["keys", "show", "passwords"]).exits(0).says("derivation");
        let encrypt =
            || home.run(["encrypt", "--key", "passwords", "value", "--context", "c"]).exits(0).stdout;
        let line = encrypt();
        assert_eq!(line == encrypt(), is_equal);
        home.write("line", &line);
        home.run(["decrypt", "--key", "passwords", "line", "--context", "c"]).exits(0);
        home.run(["decrypt", "--key", "passwords", "line", "--context", "d"]).exits(1);
        home.run(["encrypt", "--key", "passwords", "value"]).exits(2).complains("context");
    }
    home.run(["keys", "create", "wrong", "--derivation", "convergent"]).exits(2);
}

#[test]
fn cut_and_altered_ciphertexts_are_a_mismatch_and_nothing_is_written() {
    let home = with_key(&["aes-256-gcm"]);
    let line = home.run(["encrypt", "--key", "passwords", "value"]).exits(0).stdout;
    let altered = line.replacen(|letter: char| letter != 'A', "B", 1);
    for text in [&line[..line.len() - 2], &line[..12], "", "not base64!", &altered] {
        home.write("line", text);
        home.run(["decrypt", "--key", "passwords", "line", "-o", "out"]).exits(1);
        assert!(!home.path("out").exists(), "{text}");
    }
    home.write("large", vec![7; (1 << 20) + 1]);
    home.run(["encrypt", "--key", "passwords", "large"]).exits(2).complains("has at most 1048576 bytes");
}

#[test]
fn a_key_of_another_use_is_named_with_its_use() {
    let home = with_key(&["hmac-sha256"]);
    let refused = home.run(["encrypt", "--key", "passwords", "value"]).exits(2);
    let _ = refused.complains("does not encrypt values: its algorithm is hmac-sha256, which makes MACs");
    home.run(["keys", "create", "signing"]).exits(0);
    home.run(["decrypt", "--key", "signing", "value"]).exits(2).complains("which signs");
    home.run(["keys", "disable", "passwords"]).exits(0).says("it does not make or verify MACs");
    home.run(["keys", "show", "passwords"]).exits(0).says("disabled: it does not make or verify MACs");
    // One way of encrypting at a time.
    home.run(["encrypt", "--key", "passwords", "--passphrase", "value"]).exits(2).complains("--passphrase");
    home.run(["encrypt", "value", "--context", "c", "--passphrase"]).exits(2).complains("--key");
    home.run(["encrypt", "value"]).exits(2);
}

#[test]
fn a_service_encrypts_and_decrypts_values() {
    let home = prepared();
    home.run(["keys", "create", "passwords", "--algorithm", "aes-256-gcm"]).exits(0);
    home.write("value", "hunter2\n");
    let here = home.run(["encrypt", "--key", "passwords", "value"]).exits(0).stdout;
    let there = copied(&home);
    let _serving = serve(&there);
    let run = |arguments: &[&str]| Done::of(remote(&there).args(arguments));
    there.write("line", &here);
    assert_eq!(run(&["decrypt", "--key", "passwords", "line"]).exits(0).stdout, "hunter2\n");
    there.write("line", run(&["encrypt", "--key", "passwords", "value"]).exits(0).stdout);
    assert_eq!(run(&["decrypt", "--key", "passwords", "line"]).exits(0).stdout, "hunter2\n");
    let made = ["keys", "create", "derived", "--algorithm", "aes-256-gcm", "--derivation", "convergent"];
    run(&made).exits(0);
    run(&["keys", "show", "derived"]).exits(0).says("convergent");
}
