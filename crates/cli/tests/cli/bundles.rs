//! Bundles of Sigstore with certificates, entries of logs, and timestamps. `tests/peers` has cosign
//! and `model_signing` beside it.

use crate::support::Home;
use serde_json::json;

const IDENTITY: &str =
    "https://github.com/prefix-dev/sigstore-example/.github/workflows/action.yaml@refs/heads/main";
const ISSUER: &str = "https://token.actions.githubusercontent.com";
const TRUSTED: [&str; 2] = ["--trusted-root", "root.json"];

/// A home with the bundles, but no keystore.
fn home() -> Home {
    let home = Home::new();
    let vector = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/tests/vectors");
        std::fs::read(std::path::Path::new(folder).join(name)).unwrap()
    };
    let package = "signed-package-2.1.0-hb0f4dca_0.conda";
    home.write(package, vector(package));
    home.write("package.sigstore.json", vector(&format!("{package}.sigstore.json")));
    home.write("logged", vector("logged-key"));
    home.write("logged.sigstore.json", vector("logged-key.sigstore.json"));
    home.write("key.pub", vector("logged-key.pub"));
    home.write("root.json", vector("trusted_root.json"));
    home
}

#[test]
fn a_key_may_have_a_log_and_a_timestamp_that_vouch_for_it() {
    let home = home();
    let verify = ["verify", "logged", "--public-key", "key.pub"];
    let says = "logged: OK (sigstore signature by the key ";
    home.run(verify).exits(0).says(says).says("not verified: 1 entry of a transparency log");
    let done = home.run(verify.iter().chain(&TRUSTED)).exits(0);
    done.says("signature 2025-12-18T17:04:39").says(", 1 entry of a transparency log, 1 timestamp)");
    let report = home.run(verify.iter().chain(&TRUSTED).chain(&["--json"])).exits(0).json().remove(0);
    assert_eq!(report["verified"], json!(["1 entry of a transparency log", "1 timestamp"]));
    assert_eq!(report["not_verified"], json!(null));
    home.write("logged", "changed");
    home.run(verify.iter().chain(&TRUSTED)).exits(1).says("logged: changed");
}

#[test]
fn a_certificate_says_who_signed_and_no_keystore_is_needed() {
    let home = home();
    let package = "signed-package-2.1.0-hb0f4dca_0.conda";
    let verify = ["verify", package, "--signature", "package.sigstore.json"];
    let wanted = ["--certificate-identity", IDENTITY, "--certificate-oidc-issuer", ISSUER];
    let done = home.run(verify.iter().chain(&TRUSTED).chain(&wanted)).exits(0);
    done.says(&format!("by {IDENTITY}, issuer {ISSUER}, predicate: "));
    let json = ["--json"];
    let report =
        home.run(verify.iter().chain(&TRUSTED).chain(&wanted).chain(&json)).exits(0).json().remove(0);
    assert_eq!((&report["principal"], &report["issuer"]), (&json!(IDENTITY), &json!(ISSUER)));
    let other = ["--certificate-identity", "me", "--certificate-oidc-issuer", ISSUER];
    home.run(verify.iter().chain(&TRUSTED).chain(&other)).exits(1).says("wrong key (it is signed by ");
    let key = ["--public-key", "key.pub"];
    home.run(verify.iter().chain(&key)).exits(1).says("unknown key (it was made under a certificate");
    let asked = home.run(verify.iter().chain(&key).chain(&TRUSTED)).exits(1);
    asked.says("wrong key (it was made under a certificate: say whose count");
    // A bundle that was made with a key has nobody's name.
    let verify = ["verify", "logged"];
    home.run(verify.iter().chain(&TRUSTED).chain(&wanted)).exits(1).says("wrong key");
    std::fs::rename(home.path(package), home.path("renamed")).unwrap();
    let renamed = ["verify", "renamed", "--signature", "package.sigstore.json"];
    home.run(renamed.iter().chain(&TRUSTED).chain(&wanted)).exits(1).says("renamed: wrong name");
}

#[test]
fn a_format_without_logs_does_not_count_if_logs_are_wanted() {
    let home = home();
    home.run(["keystore", "init"]).exits(0);
    for format in ["bulla", "minisign", "ssh", "signify", "jws", "sigstore"] {
        home.run(["sign", "logged", "--format", format, "-o", "signature"]).exits(0);
        let verify = ["verify", "logged", "--signature", "signature"];
        home.run(verify).exits(0);
        let reason = match format {
            "sigstore" => "bad signature (it has no proof of a transparency log",
            _ => "and --trusted-root wants a bundle of Sigstore",
        };
        home.run(verify.iter().chain(&TRUSTED)).exits(1).says(reason);
        std::fs::remove_file(home.path("signature")).unwrap();
    }
}

#[test]
fn flags_and_files_that_make_no_sense_are_errors() {
    let home = home();
    let refused = |flags: &[&str], complaint: &str| {
        home.run(["verify", "logged"].iter().chain(flags)).exits(2).complains(complaint);
    };
    refused(&["--certificate-identity", "me"], "needs --trusted-root or --certificate-chain");
    let identity = [TRUSTED[0], TRUSTED[1], "--certificate-identity", "me"];
    refused(&identity, "needs --certificate-oidc-issuer");
    refused(&["--certificate-oidc-issuer", ISSUER], "--trusted-root");
    refused(&["--expired-certificates"], "--certificate-chain");
    refused(&["--trusted-root", "nothing"], "nothing: ");
    refused(&["--trusted-root", "logged"], "logged: it is not JSON");
    refused(&["--certificate-chain", "root.json"], "root.json: it is not a list of certificates");
}
