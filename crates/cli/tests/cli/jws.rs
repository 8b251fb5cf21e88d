//! `--format jws` without other libraries for JOSE: keys, rotation, and files that may not be
//! signed. `tests/peers` has the libraries.

use crate::support::Home;

fn home() -> Home {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.write("app", "content");
    home
}

#[test]
fn a_signature_names_its_key_version_and_covers_the_content() {
    let home = home();
    home.run(["sign", "app", "--format", "jws"]).exits(0).says("app: signed, wrote app.jws");
    home.run(["verify", "app"]).exits(0).says("app: OK (jws signature by default v1)");
    home.write("app", "Content");
    home.run(["verify", "app"]).exits(1).says("app: changed (its content is not what was signed, or");
    home.write("app", "content");
    // The older version still verifies, and the newer one signs.
    home.run(["keys", "rotate", "default"]).exits(0);
    home.run(["verify", "app"]).exits(0).says("by default v1)");
    home.run(["sign", "app", "--format", "jws"]).exits(0);
    home.run(["verify", "app"]).exits(0).says("by default v2)");
    // A limit of uses rotates the key while it signs: then the newer version signs again.
    home.run(["keys", "policy", "default", "--max-uses", "2"]).exits(0);
    let versions = (0..4).map(|_| {
        home.run(["sign", "app", "--format", "jws"]).exits(0);
        home.run(["verify", "app"]).exits(0).stdout
    });
    let versions: Vec<_> = versions.collect();
    assert!(versions.is_sorted() && versions[3] > versions[0], "{versions:?}");
    // Each signature by a version of its own.
    home.run(["keys", "policy", "default", "--max-uses", "1"]).exits(0);
    let versions = (0..3).map(|_| {
        home.run(["sign", "app", "--format", "jws"]).exits(0);
        let signature = home.read("app.jws");
        home.run(["verify", "app"]).exits(0);
        signature.split(|byte| *byte == b'.').next().unwrap().to_vec()
    });
    let versions: std::collections::BTreeSet<_> = versions.collect();
    assert_eq!(versions.len(), 3);
    home.run(["keys", "policy", "default", "--max-uses", "none"]).exits(0);
    home.run(["keys", "revoke", "default", "1"]).exits(0);
    home.run(["keys", "create", "pq", "--algorithm", "ml-dsa-65"]).exits(0);
    home.run(["sign", "app", "--format", "jws", "--key", "pq"]).exits(0);
    home.run(["verify", "app"]).exits(0).says("jws signature by pq v1");
    let text = String::from_utf8(home.read("app.jws")).unwrap();
    let damaged = text.replacen("..", "..A", 1).replace("\n", "");
    home.write("app.jws", &damaged[..text.len() - 1]);
    home.run(["verify", "app"]).exits(1).says("app: changed");
    home.write("app.jws", &text[..text.find('.').unwrap() + 2]);
    home.run(["verify", "app"]).exits(1).says("app: malformed signature (its signature is empty");
}

#[test]
fn no_signature_of_a_file_passes_for_one_of_a_token() {
    let home = home();
    home.run(["keys", "create", "slow", "--algorithm", "slh-dsa-sha2-128f"]).exits(0);
    home.run(["sign", "app", "--format", "jws", "--key", "slow"]).exits(2).complains("only signatures of");
    home.run(["sign", "app", "--format", "jws", "--embed"]).exits(2).complains("--embed works only with");
    // The message of a JSON Web Token, as a file: formats that sign files whole refuse it.
    home.write("app", "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJtZSJ9");
    for format in ["signify", "sigstore"] {
        let done = home.run(["sign", "app", "--format", format]);
        done.exits(2).complains("begins like the messages that other formats sign");
    }
    for format in ["bulla", "minisign", "ssh", "jws"] {
        home.run(["sign", "app", "--format", format]).exits(0);
        home.run(["verify", "app", "--format", format]).exits(0);
    }
}
