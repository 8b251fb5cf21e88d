//! Keys on a token: SoftHSM, made for the test.

use crate::support::{Done, Home};
use std::fs;

const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";

#[test]
fn a_key_on_a_token_signs_and_its_signature_verifies_without_the_token() {
    let home = Home::new();
    let tokens = home.path("tokens");
    fs::create_dir(&tokens).expect("a folder for the token");
    home.write("softhsm2.conf", format!("directories.tokendir = {}\nlog.level = ERROR\n", tokens.display()));
    home.write("pin", "12345678\n");
    home.write("a", "a");
    let configuration = home.path("softhsm2.conf");
    let made = home
        .program("softhsm2-util")
        .env("SOFTHSM2_CONF", &configuration)
        .args(["--init-token", "--free", "--label", "releases", "--pin", "12345678", "--so-pin", "87654321"])
        .status()
        .expect("softhsm2-util is there: it is in Debian's package softhsm2");
    assert!(made.success());
    let token = format!("pkcs11:token=releases?module-path={MODULE}");
    let pin = home.path("pin").display().to_string();
    let with_pin = format!("{token}&pin-source=file:{pin}");
    let run = |uri: &str, args: &[&str]| {
        let mut command = home.command();
        Done::of(command.env("SOFTHSM2_CONF", &configuration).env("BULLA_PKCS11", uri).args(args))
    };
    let new = ["keys", "new", "release", "--backend", "pkcs11"];
    run(&with_pin, &[&new[..], &["--exportable"]].concat()).exits(2).complains("none of them is exportable");
    run(&with_pin, &new).exits(0).says("created release");
    run(&with_pin, &["keys", "show", "release", "--json"]).exits(0).says("\"backend\":\"pkcs11\"");
    run(&with_pin, &["sign", "a", "--key", "release"]).exits(0);
    run(&with_pin, &["keys", "rotate", "release"]).exits(0).says("version 2");
    // Nobody asks for a token, or for its PIN, who only verifies.
    home.run(["verify", "a"]).exits(0);
    run(&token, &["verify", "a"]).exits(0);
    home.run(["sign", "a", "--key", "release"]).exits(2).complains("--pkcs11");
    run(&token, &["sign", "a", "--key", "release"]).exits(2).complains("pin-source");
    home.write("pin", "wrong pin\n");
    run(&with_pin, &["sign", "a", "--key", "release"]).exits(2).complains("refuses the PIN");
    home.write("pin", "12345678\n");
    fs::rename(&tokens, home.path("removed")).expect("the token is taken away");
    run(&with_pin, &["sign", "a", "--key", "release"]).exits(2).complains("token");
    fs::rename(home.path("removed"), &tokens).expect("the token is put back");
    run(&with_pin, &["sign", "a", "--key", "release"]).exits(0);
    run("pkcs11:?pin-value=1", &["keys", "list"]).exits(2).complains("no place in a URI");
}
