//! Programs that expect a token, unchanged, over a running service.

use crate::support::{CONFIG, ONE, OPEN, TOKEN, TestFolder, module_path};
use bulla_testing::Done;
use std::fs;
use std::process::Command;

/// The URI of a private key in a slot that needs no PIN.
fn uri(slot: &str, key: &str) -> String {
    format!("pkcs11:token={};object={key};type=private", slot.replace(' ', "%20"))
}

/// A program in the service's folder, which finds the module's settings.
fn program(place: &TestFolder, name: &str, arguments: &[&str]) -> Command {
    let mut command = place.home.program(name);
    command.args(arguments).env(CONFIG, place.config());
    command
}

fn run(place: &TestFolder, name: &str, arguments: &[&str]) -> Done {
    Done::of(&mut program(place, name, arguments)).exits(0)
}

/// Writes the public half of a key to `KEY.pub`, and a file to sign.
fn public_half(place: &TestFolder, key: &str) {
    place.home.write("message", "a message");
    let (private, public) = (format!("{key}.pem"), format!("{key}.pub"));
    run(place, "openssl", &["pkey", "-in", &private, "-pubout", "-out", &public]);
}

/// OpenSSL finds the signature in the file `signature` valid.
fn verify(place: &TestFolder, key: &str) {
    let public = format!("{key}.pub");
    let base = ["dgst", "-sha256", "-verify", &public, "-signature", "signature", "message"];
    run(place, "openssl", &base).says("Verified OK");
}

/// The id of a key in what pkcs11-tool lists.
fn id_of<'a>(listed: &'a str, key: &str) -> &'a str {
    let (_, after) = listed.split_once(&format!("label:      {key}\n")).expect("the key");
    let (_, id) = after.split_once("ID:").expect("an id");
    id.lines().next().expect("an id").trim()
}

#[test]
fn pkcs11_tool_lists_and_signs() {
    let (_folder, place) = TestFolder::in_this_process();
    let (_serving, token) = place.service();
    let module = module_path();
    let tool =
        |arguments: &[&str]| run(&place, "pkcs11-tool", &[&["--module", &*module], arguments].concat());
    tool(&["--list-token-slots"]).says(TOKEN).says(OPEN).says(ONE);
    let mechanisms = tool(&["--list-mechanisms", "--token-label", OPEN]);
    mechanisms.says("ECDSA").says("RSA-PKCS-PSS").says("EDDSA");
    let login = ["--token-label", TOKEN, "--login", "--pin", &token.pin];
    let listed = tool(&[&login[..], &["--list-objects"]].concat());
    listed.says("Private Key Object; EC").says("Private Key Object; RSA").says("label:      p256");
    for (key, mechanism, more) in
        [("p256", "ECDSA-SHA256", &["--signature-format", "openssl"][..]), ("rsa", "SHA256-RSA-PKCS", &[])]
    {
        public_half(&place, key);
        // It finds keys to sign with by their ids alone.
        let shown = tool(&[&login[..], &["--list-objects", "--type", "privkey"]].concat()).stdout;
        let sign =
            ["--sign", "-m", mechanism, "--id", id_of(&shown, key), "-i", "message", "-o", "signature"];
        tool(&[&login[..], &sign, more].concat());
        verify(&place, key);
    }
    let read = ["--read-object", "--type", "pubkey", "--label", "p256", "-o", "read.der"];
    tool(&[&["--token-label", OPEN][..], &read].concat());
    run(&place, "openssl", &["pkey", "-pubin", "-inform", "DER", "-in", "read.der", "-out", "read.pem"]);
    assert_eq!(place.home.read("read.pem"), place.home.read("p256.pub"));
}

#[test]
fn pkcs11_tool_makes_uses_and_destroys_keys() {
    let (_folder, place) = TestFolder::in_this_process();
    let (_serving, _) = place.service();
    let module = module_path();
    let base = ["--module", &*module, "--token-label", OPEN];
    let tool = |arguments: &[&str]| run(&place, "pkcs11-tool", &[&base, arguments].concat());
    place.home.write("message", "a message");
    // ECDSA, whose signature OpenSSL verifies.
    tool(&["--keypairgen", "--key-type", "EC:prime256v1", "--label", "made", "--id", "a1b2"]);
    tool(&["--read-object", "--type", "pubkey", "--id", "a1b2", "-o", "made.der"]);
    run(&place, "openssl", &["pkey", "-pubin", "-inform", "DER", "-in", "made.der", "-out", "made.pub"]);
    let sign = ["--sign", "-m", "ECDSA-SHA256", "--id", "a1b2", "--signature-format", "openssl"];
    tool(&[&sign[..], &["-i", "message", "-o", "signature"]].concat());
    verify(&place, "made");
    // A MAC.
    tool(&["--keygen", "--key-type", "GENERIC:32", "--label", "mac", "--id", "c3"]);
    let mac = ["-m", "SHA256-HMAC", "--id", "c3", "-i", "message"];
    tool(&[&["--sign", "-o", "mac"], &mac[..]].concat());
    assert_eq!(place.home.read("mac").len(), 32);
    tool(&[&["--verify", "--signature-file", "mac"], &mac[..]].concat()).says("Signature is valid");
    // A ciphertext that OpenSSL made.
    public_half(&place, "rsa");
    let oaep = ["-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt", "rsa_oaep_md:sha256"];
    let encrypt = ["pkeyutl", "-encrypt", "-pubin", "-inkey", "rsa.pub", "-in", "message", "-out", "sealed"];
    run(&place, "openssl", &[&encrypt[..], &oaep].concat());
    let shown = tool(&["--list-objects", "--type", "privkey"]).stdout;
    let decrypt = ["--decrypt", "-m", "RSA-PKCS-OAEP", "--hash-algorithm", "SHA256", "--mgf", "MGF1-SHA256"];
    tool(&[&decrypt[..], &["--id", id_of(&shown, "rsa"), "-i", "sealed", "-o", "opened"]].concat());
    assert_eq!(place.home.read("opened"), b"a message");
    // The private key goes first: the public key remains of a key that is there.
    tool(&["--delete-object", "--type", "privkey", "--id", "a1b2"]);
    let left = tool(&["--list-objects", "--type", "privkey"]).stdout;
    assert!(left.contains("label:      rsa") && !left.contains("label:      made"), "{left}");
}

#[test]
fn a_certificate_of_the_settings_has_the_id_and_the_label_of_its_key() {
    let (_folder, place) = TestFolder::in_this_process();
    let _serving = place.service();
    let request = ["req", "-new", "-x509", "-key", "p256.pem", "-subj", "/CN=releases"];
    run(&place, "openssl", &[&request[..], &["-days", "2", "-out", "certificate.pem"]].concat());
    // The last slot is the one with this key.
    let mut settings = fs::read_to_string(place.config()).expect("the settings");
    settings += &format!("certificates = {:?}\n", place.home.path("certificate.pem"));
    fs::write(place.config(), settings).expect("the settings are written");
    let (module, base) = (module_path(), ["--token-label", ONE, "--list-objects", "--type"]);
    let tool =
        |kind| run(&place, "pkcs11-tool", &[&["--module", &*module], &base[..], &[kind]].concat()).stdout;
    let (key, certificate) = (tool("privkey"), tool("cert"));
    assert!(certificate.contains("subject:    DN: CN=releases"), "{certificate}");
    assert_eq!(id_of(&certificate, "p256"), id_of(&key, "p256"));
}

#[test]
fn the_test_of_pkcs11_tool_finds_nothing_but_what_the_document_says() {
    let (_folder, place) = TestFolder::in_this_process();
    let (_serving, token) = place.service();
    let module = module_path();
    let arguments = ["--module", &module, "--token-label", TOKEN, "--login", "--pin", &token.pin, "--test"];
    let done = Done::of(&mut program(&place, "pkcs11-tool", &arguments));
    let done = done.says("all 4 digest functions seem to work").says("1 errors\n");
    done.says("RSA-PKCS:   ERR: C_Sign() returned CKR_DATA_INVALID");
}

#[test]
fn p11tool_lists_and_signs() {
    let (_folder, place) = TestFolder::in_this_process();
    let _serving = place.service();
    let provider = format!("--provider={}", module_path());
    let tool = |arguments: &[&str]| {
        let mut command = program(&place, "p11tool", &[&[&*provider], arguments].concat());
        Done::of(command.env("GNUTLS_PIN", "")).exits(0)
    };
    tool(&["--list-tokens"]).says("Label: bulla open").says("token=bulla%20one");
    let listed = tool(&["--list-all", "pkcs11:token=bulla%20open"]);
    listed.says("object=p256").says("object=rsa").says("object=ed");
    for key in ["p256", "rsa"] {
        let done = tool(&["--test-sign", &uri(OPEN, key)]);
        let said = done.stdout + &done.stderr;
        assert!(said.contains("ok"), "{said}");
    }
}

#[test]
fn openssl_signs_by_its_engine() {
    let (_folder, place) = TestFolder::in_this_process();
    let _serving = place.service();
    // libp11 stops at the first key whose type it does not know, such as Ed25519: its token is for
    // the key that it uses.
    let key = uri(ONE, "p256");
    public_half(&place, "p256");
    let sign = ["dgst", "-sha256", "-engine", "pkcs11", "-keyform", "engine", "-sign", &key];
    let mut command = program(&place, "openssl", &[&sign[..], &["-out", "signature", "message"]].concat());
    Done::of(command.env("PKCS11_MODULE_PATH", module_path())).exits(0);
    verify(&place, "p256");
}

#[test]
fn ssh_logs_in_with_a_key_of_the_service() {
    let (_folder, place) = TestFolder::in_this_process();
    let _serving = place.service();
    let (home, module) = (&place.home, module_path());
    let keys = run(&place, "ssh-keygen", &["-D", &module]).stdout;
    let is_of = |kind: &str| keys.lines().filter(|line| line.starts_with(kind)).count();
    assert!(is_of("ecdsa-sha2-nistp256 ") > 0 && is_of("ssh-rsa ") > 0, "{keys}");
    run(&place, "ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", "host"]);
    // A server that root starts asks for this folder, which its service makes.
    let _ = fs::create_dir_all("/run/sshd");
    let work = home.work().display().to_string();
    let settings = format!(
        "HostKey {work}/host\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\n\
        AuthorizedKeysFile {work}/authorized\n"
    );
    home.write("sshd_config", settings);
    let server = format!("ProxyCommand=/usr/sbin/sshd -i -e -f {work}/sshd_config 2>> {work}/sshd.log");
    for kind in ["ecdsa-sha2-nistp256 ", "ssh-rsa "] {
        let key = keys.lines().find(|line| line.starts_with(kind)).expect("a key");
        home.write_secret("authorized", format!("{key}\n"));
        let mut ssh = program(&place, "ssh", &["-F", "none", "-o", "StrictHostKeyChecking=no"]);
        ssh.args(["-o", "UserKnownHostsFile=known", "-o", "BatchMode=yes", "-o", &server]);
        let done = Done::of(ssh.args(["-I", &module, "server.test", "echo", "logged", "in"]));
        let log = String::from_utf8_lossy(&home.read("sshd.log")).into_owned();
        assert_eq!((done.code, &*done.stdout), (Some(0), "logged in\n"), "{kind}: {}{log}", done.stderr);
    }
}

/// A program for Windows that does nothing: the headers alone.
fn windows_program() -> Vec<u8> {
    let mut file = vec![0; 1024];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(0x3c, &0x80_u32.to_le_bytes());
    put(0x80, b"PE\0\0\x64\x86");
    // The size of the optional header, flags, and the magic number of PE32+.
    put(0x94, &240_u16.to_le_bytes());
    put(0x96, &0x22_u16.to_le_bytes());
    put(0x98, &0x20b_u16.to_le_bytes());
    // Alignments, sizes, and the number of directories.
    put(0x98 + 32, &0x1000_u32.to_le_bytes());
    put(0x98 + 36, &0x200_u32.to_le_bytes());
    put(0x98 + 56, &0x2000_u32.to_le_bytes());
    put(0x98 + 60, &0x400_u32.to_le_bytes());
    put(0x98 + 108, &16_u32.to_le_bytes());
    file
}

/// Where Debian's package libengine-pkcs11-openssl has the engine.
fn engine() -> String {
    let folders = [std::env::consts::ARCH, "linux-gnu"].join("-");
    format!("/usr/lib/{folders}/engines-3/pkcs11.so")
}

#[test]
fn osslsigncode_signs_a_program_for_windows() {
    let (_folder, place) = TestFolder::in_this_process();
    let _serving = place.service();
    place.home.write("program.exe", windows_program());
    let (key, module) = (uri(ONE, "p256"), module_path());
    let request = ["req", "-new", "-x509", "-engine", "pkcs11", "-keyform", "engine", "-key", &key];
    let subject = ["-subj", "/CN=releases", "-days", "2", "-sha256", "-out", "certificate.pem"];
    let mut openssl = program(&place, "openssl", &[&request[..], &subject].concat());
    openssl.args(["-addext", "extendedKeyUsage=codeSigning"]);
    Done::of(openssl.env("PKCS11_MODULE_PATH", &module)).exits(0);
    run(&place, "openssl", &["verify", "-CAfile", "certificate.pem", "certificate.pem"]);
    let engine = engine();
    let sign = ["sign", "-pkcs11engine", &engine, "-pkcs11module", &module, "-key", &key];
    let files = ["-certs", "certificate.pem", "-h", "sha256", "-in", "program.exe", "-out", "signed.exe"];
    run(&place, "osslsigncode", &[&sign[..], &files].concat());
    let verify = ["verify", "-CAfile", "certificate.pem", "-in", "signed.exe"];
    run(&place, "osslsigncode", &verify).says("Signature verification: ok");
}

#[test]
fn the_commands_own_backend_makes_keys_and_gets_no_statement_signed() {
    let (_folder, place) = TestFolder::in_this_process();
    let _serving = place.service();
    let home = &place.home;
    // The PIN is the token of the service.
    let (slot, pin) = (TOKEN.replace(' ', "%20"), home.path("token").display().to_string());
    let device = format!("pkcs11:token={slot}?module-path={}&pin-source=file:{pin}", module_path());
    let other = home.path("other").display().to_string();
    let bulla = |arguments: &[&str]| {
        let mut command = home.command();
        command.args(arguments).args(["--keystore", &other]).env("BULLA_PKCS11", &device);
        Done::of(command.env(CONFIG, place.config()))
    };
    bulla(&["keystore", "init"]).exits(0);
    bulla(&["keys", "create", "far", "--backend", "pkcs11"]).exits(0);
    home.write("file", "content");
    // A signature file of the service would look the same, and the service makes those itself.
    let done = bulla(&["sign", "--key", "far", "file"]);
    assert_ne!(done.code, Some(0));
    done.complains("the device refuses");
    assert!(!home.path("file.bulla").exists());
}
