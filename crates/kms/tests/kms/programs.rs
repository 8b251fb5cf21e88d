//! OpenSSL and OpenSSH verify what we sign, and we verify what they sign; keys go both ways. The
//! real programs are run.
#![cfg(all(unix, feature = "transfer"))]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use bulla_kms::transfer::{
    PrivateFormat, PrivateKeyData, PublicFormat, export_public, import_public, unwrap_aes_kwp, wrap_aes_kwp,
};
use bulla_kms::{Algorithm, Code, KeyVersionId, Keystore, NewKey, Verdict};
use ssh_key::{HashAlg, LineEnding, SshSig};
use tempfile::TempDir;

const MESSAGE: &[u8] = b"a message\n";

/// Runs a program in `folder`; it must be installed.
fn run(folder: &Path, program: &str, args: &[&str]) -> Output {
    let output = Command::new(program).args(args).current_dir(folder).output();
    output.unwrap_or_else(|error| {
        panic!("{program}: {error}; install the Debian packages openssl and openssh-client")
    })
}

#[track_caller]
fn ran(folder: &Path, program: &str, args: &[&str]) -> Vec<u8> {
    let output = run(folder, program, args);
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("message"), MESSAGE).unwrap();
    folder
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).unwrap()
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    fs::write(folder.join(name), bytes).unwrap();
}

fn new_key() -> NewKey {
    NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519)
}

fn imported(data: &PrivateKeyData) -> (Keystore, KeyVersionId) {
    let keystore = Keystore::in_memory().unwrap();
    let id = keystore.import_key(new_key(), data).unwrap();
    (keystore, id)
}

#[test]
fn keys_of_openssl_come_in_and_public_keys_go_out() {
    let folder = folder();
    let at = folder.path();
    ran(at, "openssl", &["genpkey", "-algorithm", "ed25519", "-out", "key.pem"]);
    ran(at, "openssl", &["pkey", "-in", "key.pem", "-outform", "DER", "-out", "key.der"]);
    let data = PrivateKeyData::read(&read(at, "key.pem"), PrivateFormat::Pkcs8Pem, None, None).unwrap();
    let same = PrivateKeyData::read(&read(at, "key.der"), PrivateFormat::Pkcs8Der, None, None).unwrap();
    assert_eq!(data.public_key().unwrap(), same.public_key().unwrap());
    let pem = ran(at, "openssl", &["pkey", "-in", "key.pem", "-pubout"]);
    assert_eq!(pem, export_public(data.public_key().unwrap(), PublicFormat::Pem).unwrap());
    let der = ran(at, "openssl", &["pkey", "-in", "key.pem", "-pubout", "-outform", "DER"]);
    assert_eq!(der, export_public(data.public_key().unwrap(), PublicFormat::Der).unwrap());
    let aes = ["pkcs8", "-topk8", "-in", "key.pem", "-passout", "pass:x", "-out", "encrypted.pem"];
    ran(at, "openssl", &aes);
    let error =
        PrivateKeyData::read(&read(at, "encrypted.pem"), PrivateFormat::Pkcs8Pem, None, None).unwrap_err();
    assert!(error.code == Code::MalformedKey && error.message.contains("openssl pkcs8"), "{error}");
}

#[test]
fn openssl_verifies_our_signature_and_we_verify_its() {
    let folder = folder();
    let at = folder.path();
    ran(at, "openssl", &["genpkey", "-algorithm", "ed25519", "-out", "key.pem"]);
    let data = PrivateKeyData::read(&read(at, "key.pem"), PrivateFormat::Pkcs8Pem, None, None).unwrap();
    let (keystore, id) = imported(&data);
    write(at, "pub.pem", export_public(data.public_key().unwrap(), PublicFormat::Pem).unwrap());
    write(at, "ours.sig", keystore.sign(&id, MESSAGE).unwrap().bytes);
    let verify = |message: &str| {
        let args =
            ["-verify", "-pubin", "-inkey", "pub.pem", "-rawin", "-in", message, "-sigfile", "ours.sig"];
        run(at, "openssl", &[&["pkeyutl"][..], &args].concat()).status.success()
    };
    assert!(verify("message"));
    write(at, "other", b"another message\n");
    assert!(!verify("other"), "or the check proves nothing");
    let sign = ["pkeyutl", "-sign", "-inkey", "key.pem", "-rawin", "-in", "message", "-out", "theirs.sig"];
    ran(at, "openssl", &sign);
    assert_eq!(keystore.verify(&id, MESSAGE, &read(at, "theirs.sig")).unwrap(), Verdict::Valid);
    assert_eq!(read(at, "ours.sig"), read(at, "theirs.sig"), "Ed25519 is deterministic");
}

/// r and s as OpenSSL has them: a SEQUENCE of two INTEGERs.
#[cfg(feature = "p256")]
fn ecdsa_der(signature: &[u8]) -> Vec<u8> {
    let integer = |number: &[u8]| {
        let digits = number.iter().position(|digit| *digit != 0).unwrap_or(number.len() - 1);
        let sign = if number[digits] & 0x80 == 0 { vec![] } else { vec![0] };
        let digits = [&sign[..], &number[digits..]].concat();
        [&[2, digits.len() as u8], &digits[..]].concat()
    };
    let (r, s) = signature.split_at(32);
    let both = [integer(r), integer(s)].concat();
    [&[0x30, both.len() as u8], &both[..]].concat()
}

/// The 64 bytes of r and s from a signature in DER.
#[cfg(feature = "p256")]
fn ecdsa_of_der(der: &[u8]) -> Vec<u8> {
    let number = |at: usize| -> (Vec<u8>, usize) {
        let end = at + 2 + usize::from(der[at + 1]);
        let digits = &der[at + 2..end];
        let digits = &digits[digits.len().saturating_sub(32)..];
        ([vec![0; 32 - digits.len()], digits.to_vec()].concat(), end)
    };
    let (r, next) = number(2);
    [r, number(next).0].concat()
}

#[cfg(feature = "p256")]
#[test]
fn keys_and_signatures_of_p256_go_both_ways() {
    let folder = folder();
    let at = folder.path();
    ran(
        at,
        "openssl",
        &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "key.pem"],
    );
    let data = PrivateKeyData::read(&read(at, "key.pem"), PrivateFormat::Pkcs8Pem, None, None).unwrap();
    let pem = ran(at, "openssl", &["pkey", "-in", "key.pem", "-pubout"]);
    assert_eq!(
        export_public(data.public_key().unwrap(), PublicFormat::Pem).unwrap(),
        pem,
        "uncompressed, as OpenSSL writes it"
    );
    let der = ran(at, "openssl", &["pkey", "-in", "key.pem", "-pubout", "-outform", "DER"]);
    assert_eq!(export_public(data.public_key().unwrap(), PublicFormat::Der).unwrap(), der);
    let form = |form: &str, outform: &str| {
        ran(at, "openssl", &["ec", "-in", "key.pem", "-pubout", "-conv_form", form, "-outform", outform])
    };
    for (form, format, text) in [
        ("uncompressed", PublicFormat::Pem, form("uncompressed", "PEM")),
        ("uncompressed", PublicFormat::Der, form("uncompressed", "DER")),
        ("compressed", PublicFormat::Pem, form("compressed", "PEM")),
        ("compressed", PublicFormat::Der, form("compressed", "DER")),
    ] {
        assert_eq!(
            import_public(&text, format, None).unwrap(),
            *data.public_key().unwrap(),
            "{form} {format:?}"
        );
    }
    let hybrid = import_public(&form("hybrid", "DER"), PublicFormat::Der, None).unwrap_err();
    assert_eq!(hybrid.code, Code::InvalidPublicKey);

    let keystore = Keystore::in_memory().unwrap();
    let mut new = new_key();
    new.algorithm = Algorithm::EcdsaP256;
    let id = keystore.import_key(new, &data).unwrap();
    write(at, "pub.pem", pem);
    let verify = |message: &str| {
        let args = ["dgst", "-sha256", "-verify", "pub.pem", "-signature", "sig", message];
        run(at, "openssl", &args).status.success()
    };
    write(at, "other", b"another message\n");
    for _ in 0..8 {
        keystore.rotate(id.key_id()).unwrap();
        let signature = keystore.sign(id.key_id(), MESSAGE).unwrap();
        write(
            at,
            "pub.pem",
            export_public(&keystore.public_key(&signature.key).unwrap(), PublicFormat::Pem).unwrap(),
        );
        write(at, "sig", ecdsa_der(&signature.bytes));
        assert!(verify("message"));
        assert!(!verify("other"), "or the check proves nothing");
    }
    // One of theirs, when it has the lower s; about half of them have.
    let sign = ["dgst", "-sha256", "-sign", "key.pem", "message"];
    let low = (0..64).map(|_| ecdsa_of_der(&ran(at, "openssl", &sign))).any(|signature| {
        let verdict = keystore.verify(&id, MESSAGE, &signature).unwrap();
        verdict == Verdict::Valid
    });
    assert!(low, "all of 64 signatures of OpenSSL had the higher s");
}

#[test]
fn aes_kwp_is_the_one_of_openssl() {
    let folder = folder();
    let at = folder.path();
    let key = [3_u8; 32];
    let hex = "03".repeat(32);
    let cipher = ["enc", "-id-aes256-wrap-pad", "-K", &hex, "-iv", "A65959A6"];
    ran(at, "openssl", &["genpkey", "-algorithm", "ed25519", "-outform", "DER", "-out", "key.der"]);
    ran(at, "openssl", &[&cipher[..], &["-in", "key.der", "-out", "theirs"]].concat());
    assert_eq!(*unwrap_aes_kwp(&key, &read(at, "theirs")).unwrap(), read(at, "key.der"));
    assert_eq!(wrap_aes_kwp(&key, &read(at, "key.der")).unwrap(), read(at, "theirs"));
}

/// RFC 5649, section 3: the constant, the length, and the zeros of the padding.
#[test]
fn aes_kwp_with_another_header_or_padding_is_refused() {
    let folder = folder();
    let at = folder.path();
    let hex = "03".repeat(32);
    // Up to 8 bytes are wrapped as one block, so that AES alone wraps any header.
    let wrapped = |header: u64, padded: u64| {
        write(at, "block", [header.to_be_bytes(), padded.to_be_bytes()].concat());
        ran(at, "openssl", &["enc", "-aes-256-ecb", "-nopad", "-K", &hex, "-in", "block"])
    };
    let unwrap = |header, padded| unwrap_aes_kwp(&[3; 32], &wrapped(header, padded));
    assert_eq!(*unwrap(0xa659_59a6_0000_0003, 0x0102_0300_0000_0000).unwrap(), [1, 2, 3]);
    for (header, padded) in [
        (0xa659_59a6_0000_0000, 0),
        (0xa659_59a6_0000_0009, 0x0102_0304_0506_0708),
        (0xa659_59a6_8000_0003, 0x0102_0300_0000_0000),
        (0xa659_59a7_0000_0003, 0x0102_0300_0000_0000),
        (0xa659_59a6_0000_0003, 0x0102_0300_0000_0001),
        (0xa659_59a6_0000_0003, 0x0102_0301_0000_0000),
    ] {
        let error = unwrap(header, padded).unwrap_err();
        assert_eq!(error.code, Code::MalformedKey, "{header:x} {padded:x}");
    }
}

fn ssh_keygen(at: &Path, passphrase: &str) {
    ran(at, "ssh-keygen", &["-q", "-t", "ed25519", "-N", passphrase, "-C", "me@here", "-f", "id"]);
}

#[test]
fn keys_of_openssh_come_in_and_public_keys_go_out() {
    for passphrase in ["", "correct horse"] {
        let folder = folder();
        let at = folder.path();
        ssh_keygen(at, passphrase);
        let read_with = |passphrase: Option<&str>| {
            let passphrase = passphrase.map(bulla_kms::SecretString::from);
            PrivateKeyData::read(&read(at, "id"), PrivateFormat::OpenSsh, None, passphrase.as_ref())
        };
        if !passphrase.is_empty() {
            assert_eq!(read_with(None).unwrap_err().code, Code::WrongPassphrase);
            assert_eq!(read_with(Some("battery staple")).unwrap_err().code, Code::WrongPassphrase);
        }
        let data = read_with(Some(passphrase)).unwrap();
        let line = read(at, "id.pub");
        assert_eq!(import_public(&line, PublicFormat::OpenSsh, None).unwrap(), *data.public_key().unwrap());
        write(at, "ours.pub", export_public(data.public_key().unwrap(), PublicFormat::OpenSsh).unwrap());
        let fingerprint = |name: &str| {
            let shown = ran(at, "ssh-keygen", &["-l", "-f", name]);
            String::from_utf8(shown).unwrap().split(' ').nth(1).unwrap().to_owned()
        };
        assert_eq!(fingerprint("id.pub"), fingerprint("ours.pub"));
    }
}

/// A private key file of OpenSSH that is encrypted with the passphrase `p`.
fn encrypted(at: &Path, cipher: &str) -> Vec<u8> {
    let name = cipher.replace(['@', '.'], "-");
    let args = ["-q", "-t", "ed25519", "-N", "p", "-a", "1", "-C", "me@here", "-Z", cipher, "-f", &name];
    ran(at, "ssh-keygen", &args);
    read(at, &name)
}

#[test]
fn an_openssh_key_is_read_under_every_cipher_or_the_cipher_is_named() {
    let folder = folder();
    let passphrase = bulla_kms::SecretString::from("p");
    let ciphers = String::from_utf8(ran(folder.path(), "ssh", &["-Q", "cipher"])).unwrap();
    let mut refused = Vec::new();
    for cipher in ciphers.lines() {
        let text = encrypted(folder.path(), cipher);
        match PrivateKeyData::read(&text, PrivateFormat::OpenSsh, None, Some(&passphrase)) {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.code, Code::MalformedKey, "{cipher}: {error}");
                assert!(error.message.contains(cipher), "{cipher}: {error}");
                assert!(error.message.contains("ssh-keygen -p -Z aes256-ctr"), "{cipher}: {error}");
                refused.push(cipher);
            }
        }
    }
    assert_eq!(refused, ["3des-cbc"]);
}

/// bcrypt-pbkdf takes as long as the file says: a day, if nobody looks at the number.
#[test]
fn an_openssh_key_that_asks_for_too_many_rounds_of_bcrypt_is_refused_at_once() {
    use base64ct::{Base64, Encoding as _};
    let folder = folder();
    let text = String::from_utf8(encrypted(folder.path(), "aes256-ctr")).unwrap();
    let (begin, end) = ("-----BEGIN OPENSSH PRIVATE KEY-----\n", "-----END OPENSSH PRIVATE KEY-----\n");
    let body = text.strip_prefix(begin).unwrap().strip_suffix(end).unwrap().replace('\n', "");
    let bytes = Base64::decode_vec(&body).unwrap();
    // The options of the function: a salt of 16 bytes, and one round.
    let options = b"\0\0\0\x06bcrypt\0\0\0\x18\0\0\0\x10";
    let salt = bytes.windows(options.len()).position(|window| window == options).unwrap() + options.len();
    let rounds = salt + 16..salt + 20;
    assert_eq!(bytes[rounds.clone()], 1_u32.to_be_bytes());
    let with_rounds = |number: u32| {
        let mut bytes = bytes.clone();
        bytes[rounds.clone()].copy_from_slice(&number.to_be_bytes());
        let body = Base64::encode_string(&bytes);
        let lines =
            body.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap().to_owned() + "\n");
        let text = format!("{begin}{}{end}", lines.collect::<String>());
        // Without a passphrase: nothing is computed, whatever the number.
        PrivateKeyData::read(text.as_bytes(), PrivateFormat::OpenSsh, None, None).unwrap_err()
    };
    for fine in [1, 24, 1024] {
        assert_eq!(with_rounds(fine).code, Code::WrongPassphrase, "{fine}");
    }
    for many in [1025, u32::MAX] {
        let error = with_rounds(many);
        assert!(error.code == Code::MalformedKey && error.message.contains("1024 rounds"), "{error}");
    }
}

#[test]
fn every_flipped_byte_of_an_openssh_key_is_refused() {
    let folder = folder();
    ssh_keygen(folder.path(), "");
    let good = read(folder.path(), "id");
    let key = PrivateKeyData::read(&good, PrivateFormat::OpenSsh, None, None).unwrap();
    for index in 0..good.len() {
        assert!(PrivateKeyData::read(&good[..index], PrivateFormat::OpenSsh, None, None).is_err());
        let mut flipped = good.clone();
        flipped[index] ^= 1;
        if let Ok(other) = PrivateKeyData::read(&flipped, PrivateFormat::OpenSsh, None, None) {
            // The comment and the two equal numbers before the key are not bound to it.
            assert_eq!(other.public_key().unwrap(), key.public_key().unwrap(), "byte {index}");
        }
    }
}

#[test]
fn openssh_verifies_our_signature_and_we_verify_its() {
    let folder = folder();
    let at = folder.path();
    ssh_keygen(at, "");
    let data = PrivateKeyData::read(&read(at, "id"), PrivateFormat::OpenSsh, None, None).unwrap();
    let (keystore, id) = imported(&data);
    let line =
        String::from_utf8(export_public(data.public_key().unwrap(), PublicFormat::OpenSsh).unwrap()).unwrap();
    write(at, "signers", format!("me@here {line}"));

    let signed = SshSig::signed_data("file", HashAlg::Sha512, MESSAGE).unwrap();
    let bytes = keystore.sign(&id, &signed).unwrap().bytes;
    let signature = ssh_key::Signature::new(ssh_key::Algorithm::Ed25519, bytes).unwrap();
    let public = ssh_key::PublicKey::from_openssh(&line).unwrap();
    let ours = SshSig::new(public.key_data().clone(), "file", HashAlg::Sha512, signature).unwrap();
    write(at, "ours.sig", ours.to_pem(LineEnding::LF).unwrap());
    let verify = |message: &str| {
        let command = format!("ssh-keygen -Y verify -f signers -I me@here -n file -s ours.sig < {message}");
        run(at, "sh", &["-c", &command]).status.success()
    };
    assert!(verify("message"));
    write(at, "other", b"another message\n");
    assert!(!verify("other"), "or the check proves nothing");

    ran(at, "ssh-keygen", &["-q", "-Y", "sign", "-f", "id", "-n", "file", "message"]);
    let theirs = SshSig::from_pem(read(at, "message.sig")).unwrap();
    let signed = SshSig::signed_data("file", theirs.hash_alg(), MESSAGE).unwrap();
    assert_eq!(keystore.verify(&id, &signed, theirs.signature_bytes()).unwrap(), Verdict::Valid);
}
