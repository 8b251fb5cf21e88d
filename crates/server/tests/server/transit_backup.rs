//! The API for clients of Vault: backups of one key, and certificates.

use std::process::Command;

use bulla_kms::token::{GrantedKeys, TokenOperation};
use serde_json::{Value, json};

use crate::support::{Service, base64, config, from_base64, keystore, token};
use crate::transit::{get, permitting_all, post, refused};

/// An exportable key of a type that may be backed up, with three versions, of which the first is
/// trimmed.
fn backed_up(service: &Service, name: &str, kind: &str) -> Value {
    let body = json!({ "type": kind, "exportable": true, "allow_plaintext_backup": true });
    assert_eq!(post(service, &format!("keys/{name}"), &body).ok()["data"]["allow_plaintext_backup"], true);
    for _ in 0..2 {
        post(service, &format!("keys/{name}/rotate"), &json!({})).ok();
    }
    post(service, &format!("keys/{name}/config"), &json!({ "min_decryption_version": 2 })).ok();
    post(service, &format!("keys/{name}/trim"), &json!({ "min_available_version": 2 })).ok();
    get(service, &format!("backup/{name}")).ok()["data"]["backup"].clone()
}

#[test]
fn a_restored_key_is_the_key_with_all_its_versions() {
    let service = permitting_all();
    for (kind, what) in
        [("aes256-gcm96", "encryption-key"), ("ecdsa-p256", "signing-key"), ("hmac", "hmac-key")]
    {
        let backup = backed_up(&service, kind, kind);
        let copy = format!("{kind}-copy");
        assert_eq!(post(&service, &format!("restore/{copy}"), &json!({ "backup": backup })).status, 204);
        let exported =
            |name: &str| get(&service, &format!("export/{what}/{name}")).ok()["data"]["keys"].clone();
        let keys = exported(&copy);
        assert_eq!(keys.as_object().unwrap().keys().collect::<Vec<_>>(), ["2", "3"], "{kind}");
        assert_eq!(keys, exported(kind));
        let mut read = get(&service, &format!("keys/{copy}")).ok()["data"].clone();
        read["name"] = json!(kind);
        assert_eq!(read, get(&service, &format!("keys/{kind}")).ok()["data"], "{kind}");
        // It goes on as any key.
        post(&service, &format!("keys/{copy}/rotate"), &json!({})).ok();
        let made = post(&service, &format!("hmac/{copy}"), &json!({ "input": "" })).ok();
        assert!(made["data"]["hmac"].as_str().unwrap().starts_with("vault:v4:"), "{made}");
    }
    let body = json!({ "plaintext": base64(b"hello"), "key_version": 2 });
    let made = post(&service, "encrypt/aes256-gcm96", &body).ok()["data"]["ciphertext"].clone();
    let found = post(&service, "decrypt/aes256-gcm96-copy", &json!({ "ciphertext": made })).ok();
    assert_eq!(from_base64(&found["data"]["plaintext"]), b"hello");
}

#[test]
fn a_deleted_key_comes_back_and_another_of_its_name_is_kept() {
    let service = permitting_all();
    let backup = backed_up(&service, "rows", "aes256-gcm96");
    let taken = refused(&post(&service, "restore", &json!({ "backup": backup })));
    assert_eq!((taken.0, taken.2.as_str()), (400, "label_taken"));
    let made = post(&service, "encrypt/rows", &json!({ "plaintext": base64(b"hello") })).ok();
    let ciphertext = json!({ "ciphertext": made["data"]["ciphertext"] });
    post(&service, "keys/rows/config", &json!({ "deletion_allowed": true })).ok();
    service.send("DELETE", None, "/v1/transit/keys/rows", b"");
    post(&service, "keys/rows", &json!({})).ok();
    let other = service.get(None, "/api/v1/keys/rows").ok()["key"].clone();
    assert_eq!(refused(&post(&service, "decrypt/rows", &ciphertext)).0, 400);
    assert_eq!(post(&service, "restore", &json!({ "backup": backup, "force": true })).status, 204);
    let found = post(&service, "decrypt/rows", &ciphertext).ok();
    assert_eq!(from_base64(&found["data"]["plaintext"]), b"hello");
    let former = other.as_str().unwrap().replace('/', "%2F");
    let kept = service.get(None, &format!("/api/v1/keys/{former}")).ok();
    assert_eq!((&kept["state"], &kept["label"]), (&json!("enabled"), &Value::Null), "{kept}");
}

#[test]
fn a_backup_that_was_cut_or_changed_or_is_of_another_tenant_or_keystore_restores_nothing() {
    let keystore = keystore(&["local", "other"]);
    let all = TokenOperation::ALL;
    let [here, there] = ["local", "other"].map(|tenant| token(&keystore, tenant, GrantedKeys::All, all));
    let service = Service::start(keystore, config());
    let body = json!({ "exportable": true, "allow_plaintext_backup": true });
    service.post(Some(&here), "/v1/transit/keys/rows", &body).ok();
    let backup = service.get(Some(&here), "/v1/transit/backup/rows").ok()["data"]["backup"].clone();
    let bytes = from_base64(&backup);
    let restore = |token: &bulla_kms::token::Token, bytes: &[u8]| {
        let answer =
            service.post(Some(token), "/v1/transit/restore/again", &json!({ "backup": base64(bytes) }));
        refused(&answer)
    };
    let wrong = restore(&there, &bytes);
    assert_eq!((wrong.0, wrong.2.as_str()), (400, "invalid_ciphertext"));
    for length in (0..bytes.len()).step_by(7).filter(|length| *length > 0) {
        assert_eq!(restore(&here, &bytes[..length]), wrong, "{length}");
    }
    for place in (0..bytes.len()).step_by(5) {
        let mut changed = bytes.clone();
        changed[place] ^= 0x20;
        assert_eq!(restore(&here, &changed), wrong, "byte {place}");
    }
    assert_eq!(restore(&here, &[bytes.as_slice(), b"x"].concat()), wrong);
    let elsewhere = permitting_all();
    let answer = post(&elsewhere, "restore", &json!({ "backup": backup }));
    assert_eq!(refused(&answer), wrong);
    for body in [json!({}), json!({ "backup": "" }), json!({ "backup": "****" })] {
        assert_eq!(refused(&post(&elsewhere, "restore", &body)).2, "malformed_request", "{body}");
    }
    // The text has no private key in it.
    let exported = service.get(Some(&here), "/v1/transit/export/encryption-key/rows").ok();
    let key = from_base64(&exported["data"]["keys"]["1"]);
    assert!(!bytes.windows(key.len()).any(|part| part == key));
}

#[test]
fn a_key_is_backed_up_only_if_it_is_exportable_and_may_be() {
    let service = permitting_all();
    post(&service, "keys/a", &json!({ "exportable": true })).ok();
    assert_eq!(refused(&get(&service, "backup/a")).1, "plaintext backup is disallowed on the policy");
    let set = |value: bool| {
        let body = json!({ "allow_plaintext_backup": value });
        post(&service, "keys/a/config", &body).ok()["data"]["allow_plaintext_backup"].clone()
    };
    assert_eq!((set(false), set(true), set(false)), (json!(false), json!(true), json!(true)));
    get(&service, "backup/a").ok();
    post(&service, "keys/b", &json!({ "allow_plaintext_backup": true })).ok();
    assert_eq!(refused(&get(&service, "backup/b")).1, "exporting is disallowed on the policy");
    assert_eq!(refused(&get(&service, "backup/nobody")).1, "key \"nobody\" not found");
}

#[test]
fn what_the_engine_has_nothing_to_set_for_says_so() {
    let service = permitting_all();
    assert_eq!(get(&service, "config/keys").ok()["data"], json!({ "disable_upsert": false }));
    assert_eq!(post(&service, "config/keys", &json!({})).ok()["data"], json!({ "disable_upsert": false }));
    assert_eq!(
        refused(&post(&service, "config/keys", &json!({ "disable_upsert": true }))).2,
        "not_supported"
    );
    assert_eq!(get(&service, "cache-config").ok()["data"], json!({ "size": 0 }));
    let set = |size: i64| post(&service, "cache-config", &json!({ "size": size }));
    assert_eq!((&set(0).ok()["warnings"], set(500).ok()["warnings"].is_array()), (&Value::Null, true));
    for size in [-1, 1, 9] {
        assert_eq!(refused(&set(size)).1, "size must be 0 or a value greater or equal to 10");
    }
}

/// OpenSSL's answer, in a folder with these files.
fn openssl(folder: &std::path::Path, arguments: &str) -> String {
    let made = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap() + &String::from_utf8_lossy(&made.stderr)
}

#[test]
fn an_authority_certifies_a_key_and_the_certificates_stay_with_its_version() {
    let service = permitting_all();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let new = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout";
    openssl(folder.path(), &format!("{new} ca.key -x509 -days 2 -subj /CN=ca -out ca.pem"));
    let names = "-addext subjectAltName=DNS:a.example";
    openssl(folder.path(), &format!("{new} t.key -subj /CN=host/O=Org {names} -out t.csr"));
    for kind in ["ed25519", "ecdsa-p256", "ecdsa-p384", "ecdsa-p521", "rsa-2048"] {
        post(&service, &format!("keys/{kind}"), &json!({ "type": kind })).ok();
        let none = refused(&get(&service, &format!("export/certificate-chain/{kind}")));
        assert_eq!(none.1, "selected key version does not have a certificate chain imported");
        let plain = post(&service, &format!("keys/{kind}/csr"), &json!({})).ok();
        write("plain.csr", plain["data"]["csr"].as_str().unwrap());
        openssl(folder.path(), "req -in plain.csr -noout -verify");
        let asked =
            post(&service, &format!("keys/{kind}/csr"), &json!({ "csr": read("t.csr"), "version": 1 })).ok();
        assert_eq!((&asked["data"]["name"], &asked["data"]["type"]), (&json!(kind), &json!(kind)));
        write("k.csr", asked["data"]["csr"].as_str().unwrap());
        let text = openssl(folder.path(), "req -in k.csr -noout -text -verify");
        assert!(text.contains("CN = host, O = Org") && text.contains("DNS:a.example"), "{text}");
        openssl(folder.path(), "x509 -req -in k.csr -CA ca.pem -CAkey ca.key -days 1 -out k.pem");
        let chain = read("k.pem") + &read("ca.pem");
        let set = |body: &Value| post(&service, &format!("keys/{kind}/set-certificate"), body);
        let kept = set(&json!({ "certificate_chain": format!("text before\n{chain}") })).ok();
        assert_eq!(kept["data"]["certificate_chain"], chain, "{kind}");
        let exported = get(&service, &format!("export/certificate-chain/{kind}/1")).ok();
        assert_eq!(exported["data"]["keys"], json!({ "1": chain }));
        let key = get(&service, &format!("keys/{kind}")).ok();
        assert_eq!(key["data"]["keys"]["1"]["certificate_chain"], chain);
        // The next version has none, and those of the first are not its own.
        post(&service, &format!("keys/{kind}/rotate"), &json!({})).ok();
        assert_eq!(get(&service, &format!("export/certificate-chain/{kind}")).status, 400);
        let words = "failed to persist certificate chain: leaf certificate public key does not match the selected key version";
        assert_eq!(refused(&set(&json!({ "certificate_chain": chain }))).1, words);
        set(&json!({ "certificate_chain": read("k.pem"), "version": 1 })).ok();
    }
    let set = |chain: &str| {
        refused(&post(&service, "keys/ed25519/set-certificate", &json!({ "certificate_chain": chain }))).1
    };
    let (key, authority) = (read("k.pem"), read("ca.pem"));
    let failed = "failed to persist certificate chain: certificate in the";
    assert_eq!(set(&authority), format!("{failed} first element is not a valid leaf certificate"));
    assert_eq!(set(&format!("{key}{key}")), format!("{failed} last element is not a valid CA certificate"));
    assert_eq!(set(""), "provided certificate chain did not contain any valid PEM encoded certificate");
    assert_eq!(set(&key.replace("MII", "MIJ")), "could not parse a certificate in the certificate chain");
    let cut = "could not decode a PEM block in the certificate chain";
    assert_eq!((set(&key[..key.len() / 2]), set(&format!("{key}x"))), (cut.to_owned(), cut.to_owned()));
    for (path, words) in [
        ("nobody/csr", "key with provided name 'nobody' not found"),
        ("aes/csr", "key type 'aes256-gcm96' does not support signing"),
    ] {
        post(&service, "keys/aes", &json!({})).ok();
        assert_eq!(refused(&post(&service, &format!("keys/{path}"), &json!({}))).1, words);
    }
    for (body, words) in [
        (json!({ "csr": "x" }), "could not decode PEM CSR"),
        (json!({ "csr": authority }), "could not decode PEM CSR"),
        (json!({ "version": 0 }), "could not create the csr: no such key version"),
        (json!({ "version": 9 }), "could not create the csr: no such key version"),
    ] {
        assert_eq!(refused(&post(&service, "keys/ed25519/csr", &body)).1, words, "{body}");
    }
}
