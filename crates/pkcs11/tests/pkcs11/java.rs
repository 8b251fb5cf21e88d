//! Java's provider for PKCS #11, as `keytool` and `jarsigner` load it.

use crate::support::{CONFIG, ONE, OPEN, TOKEN, TestFolder, module_path};
use bulla_testing::Done;
use std::fs;
use std::process::Command;

/// Writes settings of Java's provider for the slot of this number, in the order of ours.
fn provider(place: &TestFolder, slot: usize) {
    let settings = format!("name = bulla\nlibrary = {}\nslotListIndex = {slot}\n", module_path());
    place.home.write("provider.cfg", settings);
}

/// A tool of Java over the provider.
fn java(place: &TestFolder, name: &str, arguments: &[&str]) -> Command {
    let mut command = place.home.program(name);
    command.args(["-keystore", "NONE", "-storetype", "PKCS11"]);
    command.args(["-providerClass", "sun.security.pkcs11.SunPKCS11", "-providerArg", "provider.cfg"]);
    // Its messages are in English, and it starts no more threads than it needs.
    command.env("JAVA_TOOL_OPTIONS", "-Duser.language=en -XX:TieredStopAtLevel=1 -XX:+UseSerialGC");
    command.args(arguments).env(CONFIG, place.config());
    command
}

/// Makes a certificate of a key for signing code, and has a slot show it.
fn certify(place: &TestFolder, key: &str, slot: &str) {
    let (pem, certificate) = (format!("{key}.pem"), format!("{key}-certificate.pem"));
    let mut openssl = place.home.program("openssl");
    openssl.args(["req", "-new", "-x509", "-key", &pem, "-subj", &format!("/CN={key}"), "-days", "2"]);
    openssl.args(["-addext", "extendedKeyUsage=codeSigning", "-addext", "keyUsage=digitalSignature"]);
    Done::of(openssl.args(["-out", &certificate])).exits(0);
    let settings = fs::read_to_string(place.config()).expect("the settings");
    let label = format!("label = {slot:?}\n");
    let line = format!("{label}certificates = {:?}\n", place.home.path(&certificate));
    fs::write(place.config(), settings.replace(&label, &line)).expect("the settings are written");
}

/// A JAR file with nothing but a manifest, as `zip` would make it.
fn jar(place: &TestFolder) {
    let mut command = place.home.program("jar");
    place.home.write("content", "content");
    Done::of(command.args(["--create", "--file", "program.jar", "content"])).exits(0);
}

#[test]
fn jarsigner_signs_with_a_key_of_the_service_and_accepts_the_signature() {
    let (_folder, place) = TestFolder::in_this_process();
    let (_serving, token) = place.service();
    certify(&place, "p256", OPEN);
    certify(&place, "rsa", TOKEN);
    jar(&place);
    // A slot that needs no PIN, and one that does.
    for (slot, key, algorithm, pin) in
        [(1, "p256", "SHA256withECDSA", None), (0, "rsa", "SHA256withRSA", Some(&token.pin))]
    {
        provider(&place, slot);
        // Without a PIN, the tool wants a text all the same.
        place.home.write_secret("pin", pin.map_or("none", |pin| pin));
        let pin = ["-storepass:file", "pin"];
        let listed = Done::of(&mut java(&place, "keytool", &[&["-list"], &pin[..]].concat())).exits(0);
        listed.says(&format!("{key}, PrivateKeyEntry"));
        let signed = format!("{key}.jar");
        let sign = ["-sigalg", algorithm, "-signedjar", &signed, "program.jar", key];
        Done::of(&mut java(&place, "jarsigner", &[&pin[..], &sign].concat())).exits(0).says("jar signed");
        let mut verify = place.home.program("jarsigner");
        Done::of(verify.args(["-verify", "-verbose", "-certs", &signed])).exits(0).says(&format!("CN={key}"));
    }
    // The slot whose token is for one key, and without a certificate, has no entry to sign with.
    provider(&place, 2);
    let list = java(&place, "keytool", &["-list", "-storepass", "none"]);
    let Done { stdout, .. } = Done::of(&mut { list }).exits(0);
    assert!(!stdout.contains("PrivateKeyEntry"), "{ONE}: {stdout}");
}
