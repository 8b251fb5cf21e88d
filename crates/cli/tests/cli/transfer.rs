//! `bulla keys import`, `export`, `policy`, `destroy`, `restore`, and `bulla token`.

use crate::support::{Done, Home};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// RFC 8032, section 7.1, test 1, as PKCS#8 and as a public key.
const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
    -----END PRIVATE KEY-----\n";
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
    MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n\
    -----END PUBLIC KEY-----\n";

fn key(home: &Home, name: &str) -> serde_json::Value {
    home.run(["keys", "show", name, "--json"]).exits(0).json().remove(0)
}

#[test]
fn keys_of_every_algorithm_are_made_and_sign() {
    let home = Home::new();
    home.write("a", "a");
    for algorithm in [
        "ed25519",
        "ecdsa-p256",
        "ml-dsa-44",
        "ml-dsa-65",
        "ml-dsa-87",
        "slh-dsa-shake-128f",
        "ml-dsa-65-ed25519",
    ] {
        home.run(["keys", "create", algorithm, "--algorithm", algorithm])
            .exits(0)
            .says(&format!("/{algorithm}/"));
        home.run(["sign", "a", "--key", algorithm]).exits(0);
        home.run(["verify", "a"]).exits(0).says(&format!("by {algorithm} v1"));
        home.run(["keys", "export-public", algorithm, "--format", "pem", "-o", "pem"]).exits(0);
        home.run(["verify", "a", "-p", "pem"]).exits(0);
    }
    for algorithm in ["ml-kem-512", "ml-kem-768", "ml-kem-1024", "x-wing"] {
        home.run(["keys", "create", algorithm, "--algorithm", algorithm]).exits(0);
        home.run(["sign", "a", "--key", algorithm]).exits(2).complains("does not sign");
    }
    home.run(["keys", "create", "b", "--algorithm", "rsa"]).exits(2).complains("rsa");
}

#[test]
fn a_private_key_is_imported_and_signs() {
    let home = Home::new();
    home.write_secret("key.pem", PRIVATE);
    home.write("a", "a");
    home.run(["keys", "import", "releases", "key.pem"]).exits(0).says("imported a private key of ed25519");
    assert_eq!(home.read("key.pem"), PRIVATE.as_bytes());
    home.run(["keys", "export-public", "releases", "--format", "pem", "-o", "pub.pem"]).exits(0);
    assert_eq!(home.read("pub.pem"), PUBLIC.as_bytes());
    home.run(["sign", "a", "--key", "releases"]).exits(0);
    home.run(["verify", "a", "--public-key", "pub.pem"]).exits(0);
    home.run(["keys", "show", "releases"]).exits(0).says("imported");
    assert_eq!(key(&home, "releases")["versions"][0]["origin"], "imported");
    home.run(["keys", "import", "releases", "key.pem"]).exits(2).complains("releases");
    home.run(["keys", "import", "releases", "key.pem", "--new-version"]).exits(2).complains("already");
    let seed = vec![7; 32];
    let raw =
        ["keys", "import", "releases", "-", "--new-version", "--format", "raw", "--algorithm", "ed25519"];
    Done::with_input(home.command().args(raw), &seed).exits(0).says("/v2");
    home.run(["verify", "a"]).exits(0).says("by releases v1");
}

#[test]
fn what_cannot_be_imported_leaves_the_keystore_as_it_was() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.write("cut.pem", &PRIVATE[..70]);
    home.write_secret("key.pem", PRIVATE);
    home.write("pub.pem", PUBLIC);
    home.write("big", vec![0; 1 << 20]);
    for (args, what) in [
        (&["cut.pem"][..], "cut.pem: not a private key"),
        (&["pub.pem"], "public key; import it as one"),
        (&["key.pem", "--public"], "it is a private key"),
        (&["key.pem", "--algorithm", "ml-dsa-44"], "ml-dsa-44 is wanted"),
        (&["key.pem", "--format", "raw"], "name the algorithm"),
        (&["key.pem", "--format", "jwk"], "add --public"),
        (&["key.pem", "--format", "wrapped"], "--unwrap-with"),
        (&["key.pem", "--format", "aes-kwp"], "--wrapping-key"),
        (&["big"], "at most"),
        (&["nothing"], "nothing: cannot read the key"),
    ] {
        home.run([&["keys", "import", "x"][..], args].concat()).exits(2).complains(what);
    }
    assert_eq!(home.run(["keys", "list", "--json"]).exits(0).json().len(), 1);
}

#[test]
fn an_imported_public_key_verifies_and_does_not_sign() {
    let (ours, theirs) = (Home::new(), Home::new());
    theirs.write("a", "a");
    theirs.run(["sign", "a"]).exits(0);
    for (format, name) in [("pem", "k1"), ("der", "k2"), ("openssh", "k3"), ("jwk", "k4"), ("minisign", "k5")]
    {
        let exported = theirs.run(["keys", "export-public", "--format", format]).exits(0).output.stdout;
        ours.write("key", exported);
        ours.run(["keys", "import", name, "key", "--public", "--format", format]).exits(0);
        ours.run(["keys", "list"]).exits(0).says("verifies");
        ours.write("a", "a");
        ours.run(["sign", "a", "--key", name]).exits(2).complains("only verifies");
        ours.run(["keys", "rotate", name]).exits(2).complains("public key");
    }
    ours.write("a.bulla", theirs.read("a.bulla"));
    for format in ["pem", "openssh", "jwk", "minisign"] {
        ours.write("key", theirs.run(["keys", "export-public", "--format", format]).exits(0).output.stdout);
        ours.run(["verify", "a", "--public-key", "key"]).exits(0);
    }
}

#[test]
fn a_key_of_openssh_is_imported_with_its_passphrase() {
    let home = Home::new();
    let keygen = ["-q", "-t", "ed25519", "-N", "correct horse", "-f", "id"];
    Done::of(home.program("ssh-keygen").args(keygen)).exits(0);
    home.write_secret("pass", "correct horse\n");
    home.write_secret("wrong", "battery\n");
    let import = ["keys", "import", "laptop", "id", "--format", "openssh"];
    home.run(import).exits(2).complains("no terminal").complains("--key-passphrase-file");
    home.run([&import[..], &["--key-passphrase-file", "wrong"]].concat()).exits(2).complains("passphrase");
    home.run([&import[..], &["--key-passphrase-file", "pass"]].concat()).exits(0);
    let ours = home.run(["keys", "export-public", "laptop", "--format", "openssh"]).exits(0).stdout;
    let theirs = String::from_utf8(home.read("id.pub")).unwrap();
    assert!(theirs.starts_with(ours.trim_end()));
}

#[test]
fn a_key_is_handed_over_to_its_recipient_alone_and_under_a_token() {
    let (ours, theirs) = (Home::new(), Home::new());
    theirs.run(["keys", "create", "transport", "--algorithm", "x-wing"]).exits(0);
    ours.write("to", theirs.run(["keys", "export-public", "transport"]).exits(0).stdout);
    ours.run(["keys", "create", "moving", "--exportable"]).exits(0);
    ours.run(["keys", "create", "staying"]).exits(0);
    let new = |args: &[&str]| ours.run([&["token", "new", "--expires", "1h"][..], args].concat());
    new(&["--operation", "export", "--key", "moving", "-o", "token"])
        .exits(0)
        .complains("created the key `tokens`");
    assert_eq!(fs::metadata(ours.path("token")).unwrap().mode() & 0o7777, 0o600);
    new(&["--operation", "sign", "-o", "signs"]).exits(0);
    new(&["--operation", "export", "-o", "all"]).exits(0);
    let export =
        |key: &str, token: &str| ours.run(["keys", "export", key, "--to", "to", "--token-file", token]);
    export("moving", "signs").exits(2).complains("does not permit");
    export("staying", "token").exits(2).complains("does not permit");
    export("staying", "all").exits(2).complains("is not exportable");
    ours.run(["keys", "export", "moving", "--to", "to"]).exits(2).complains("--token-file");
    let wrapped = export("moving", "token").exits(0).stdout;
    assert!(wrapped.starts_with("bulla wrapped key v1\nkey: local/files/ed25519/"));

    theirs.write("wrapped", &wrapped);
    let import = ["keys", "import", "moved", "wrapped", "--format", "wrapped", "--unwrap-with"];
    theirs.run([&import[..], &["default"]].concat()).exits(2).complains("another recipient");
    theirs.run(["keys", "rotate", "transport"]).exits(0);
    theirs.run([&import[..], &["transport"]].concat()).exits(0);
    let public = |home: &Home, name| key(home, name)["versions"][0]["public_key"].clone();
    assert_eq!(public(&theirs, "moved"), public(&ours, "moving"));

    // The revocation id stops it.
    let blocks = ours.run(["token", "inspect", "token", "--json"]).exits(0).json().remove(0);
    ours.write("revoked", blocks["blocks"][0]["revocation_id"].as_str().unwrap());
    let args = ["keys", "export", "moving", "--to", "to", "--token-file", "token", "--revoked", "revoked"];
    ours.run(args).exits(2).complains("revoked");
    ours.run(["keys", "disable", "tokens"]).exits(0);
    export("moving", "all").exits(2).complains("disabled");
}

#[test]
fn tokens_are_weakened_without_a_keystore_and_read() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    let token = home.run(["token", "new", "--operation", "export", "--operation", "sign", "--expires", "2d"]);
    home.write_secret("token", token.exits(0).stdout);
    let elsewhere = Home::new();
    elsewhere.write_secret("token", home.read("token"));
    let weaker = ["token", "attenuate", "token", "--operation", "sign", "--expires", "5m", "-o", "weaker"];
    elsewhere.run(weaker).exits(0);
    elsewhere
        .run(["token", "inspect", "weaker"])
        .exits(0)
        .says("request_operation(\"sign\")")
        .says("block 1");
    assert!(!elsewhere.keystore().exists());
    elsewhere.run(["token", "attenuate", "token"]).exits(2).complains("would not be weaker");
    elsewhere.write_secret("bad", "not a token");
    for command in ["inspect", "attenuate"] {
        elsewhere.run(["token", command, "bad"]).exits(2).complains("bad: not a token");
    }
    home.run(["token", "new", "--operation", "fly", "--expires", "1h"]).exits(2).complains("fly");
    home.run(["token", "new", "--operation", "sign", "--expires", "soon"]).exits(2).complains("soon");
    home.run(["token", "new", "--operation", "sign"]).exits(2).complains("--expires");
}

#[test]
fn a_policy_is_set_shown_and_taken_away() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "policy"]).exits(0).says("maximum age      none").says("maximum uses     none");
    home.run(["keys", "policy", "--max-age", "90d", "--max-uses", "1"]).exits(0).says("90d\n");
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    home.run(["sign", "a"]).exits(0);
    assert_eq!(key(&home, "default")["head"], 2, "the second signature was by the next version");
    home.run(["keys", "policy", "--max-uses", "none"]).exits(0).says("maximum uses     none").says("90d");
    home.run(["keys", "policy", "--minimum-version", "2"]).exits(0).says("minimum version  2");
    home.run(["keys", "policy", "--minimum-version", "9"]).exits(2).complains("latest version");
    home.run(["keys", "policy", "--max-age", "old"]).exits(2).complains("old");
}

#[test]
fn a_key_is_destroyed_in_two_steps_and_its_destruction_is_canceled_between_them() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keys", "create", "old"]).exits(0);
    home.run(["sign", "a", "--key", "old"]).exits(0);
    home.run(["keys", "destroy", "old", "--final"]).exits(2).complains("schedule");
    home.run(["keys", "destroy", "old"]).exits(0).says("keys cancel-destruction old");
    home.run(["sign", "a", "--key", "old"]).exits(2).complains("old");
    home.run(["keys", "destroy", "old", "--final"]).exits(2).complains("not before");
    home.run(["keys", "cancel-destruction", "old"]).exits(0).says("keys enable old");
    home.run(["keys", "enable", "old"]).exits(0);
    home.run(["sign", "a", "--key", "old"]).exits(0);
    home.run(["keys", "destroy", "old", "--after", "0s"]).exits(0);
    home.run(["keys", "destroy", "old", "--final"]).exits(0).says("destroyed the private keys of old");
    home.run(["verify", "a"]).exits(0).says("by old v1");
    home.run(["keys", "cancel-destruction", "old"]).exits(2).complains("destroyed");

    home.run(["sign", "a"]).exits(0);
    home.run(["keys", "rotate"]).exits(0);
    home.run(["keys", "destroy", "default", "--version", "2"]).exits(2).complains("latest");
    home.run(["keys", "destroy", "default", "--version", "1"]).exits(0);
    home.run(["verify", "a"]).exits(0);
    home.run(["keys", "show"]).exits(0).says("private key destroyed");
}

#[test]
fn a_prehash_stands_in_the_signature_file_and_is_honored() {
    let home = Home::new();
    home.write("a", "a");
    for prehash in ["blake3", "ed25519ph"] {
        home.run(["sign", "a", "--prehash", prehash]).exits(0);
        let text = String::from_utf8(home.read("a.bulla")).unwrap();
        assert!(
            text.starts_with("bulla signature v3\n") && text.contains(&format!("\nprehash: {prehash}\n"))
        );
        home.run(["verify", "a"]).exits(0);
        let other = if prehash == "blake3" { "ed25519ph" } else { "blake3" };
        home.write("a.bulla", text.replace(&format!("prehash: {prehash}"), &format!("prehash: {other}")));
        home.run(["verify", "a"]).exits(1).says("bad signature");
    }
    home.run(["sign", "a", "--prehash", "blake3", "--format", "minisign"]).exits(2).complains("--prehash");
    home.run(["keys", "create", "pq", "--algorithm", "ml-dsa-44"]).exits(0);
    home.run(["sign", "a", "--prehash", "blake3", "--key", "pq"]).exits(2).complains("only ed25519 keys");
}
