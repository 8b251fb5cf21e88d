//! Keys that come in, and the one way out.

use std::process::Command;

use bulla_kms::token::{Grant, GrantedKeys, TokenOperation};
use bulla_kms::transfer::{PublicFormat, export_public};
use bulla_kms::{Algorithm, Keystore, KeystoreOptions, Name, NewKey, PublicKey, Verdict};
use serde_json::{Value, json};

use crate::support::{Service, after, base64, config, from_base64, keystore, name, token};

/// The first test of RFC 8032, section 7.1.
const SEED: [u8; 32] = [
    0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44,
    0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
];
const PUBLIC: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

fn refused() -> (u16, String) {
    (403, "forbidden".to_owned())
}

fn seed() -> Value {
    json!({ "format": "raw", "algorithm": "ed25519", "data": base64(&SEED) })
}

/// A keystore with a root key, and a service where every caller may do everything.
fn open() -> Service {
    let mut config = config();
    config.service.development = true;
    Service::start(keystore(&["local"]), config)
}

fn import(service: &Service, body: &Value) -> Value {
    let answer = service.post(None, "/api/v1/import", body);
    let key = answer.ok();
    assert_eq!(answer.status, 201);
    key
}

#[test]
fn a_private_key_is_imported_in_every_format() {
    let service = open();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let run = |program: &str, args: &[&str]| {
        let done = Command::new(program).args(args).current_dir(&folder).output().unwrap();
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
        std::fs::read(folder.path().join(args.last().unwrap())).unwrap()
    };
    let pem = run("openssl", &["genpkey", "-algorithm", "ed25519", "-out", "key"]);
    let der =
        run("openssl", &["pkcs8", "-topk8", "-nocrypt", "-in", "key", "-outform", "DER", "-out", "der"]);
    std::fs::remove_file(&path).unwrap();
    let ssh = run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", "key"]);
    std::fs::remove_file(&path).unwrap();
    let locked = run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "open sesame", "-C", "", "-f", "key"]);
    let vault = base64(&[&SEED[..], &from_base64(&PUBLIC.into())].concat());
    let mut seen = Vec::new();
    for (label, key) in [
        ("pem", json!({ "format": "pem", "data": base64(&pem) })),
        ("der", json!({ "format": "der", "data": base64(&der) })),
        ("ssh", json!({ "format": "openssh", "data": base64(&ssh) })),
        ("locked", json!({ "format": "openssh", "data": base64(&locked), "passphrase": "open sesame" })),
        ("raw", seed()),
        ("vault", json!({ "format": "vault", "data": base64(vault.as_bytes()) })),
    ] {
        let made = import(&service, &json!({ "private_key": key, "label": label }));
        assert_eq!(made["versions"][0]["origin"], "imported");
        let public = from_base64(&made["versions"][0]["public_key"]);
        let body = json!({ "message": base64(b"m") });
        let signed = service.post(None, &format!("/api/v1/keys/{label}/sign"), &body).ok();
        let key = PublicKey::from_bytes(Algorithm::Ed25519, &public).unwrap();
        assert_eq!(key.verify(b"m", &from_base64(&signed["signature"])), Verdict::Valid, "{label}");
        seen.push(public);
    }
    assert_eq!(seen[0], seen[1], "OpenSSL wrote one key twice");
    assert_eq!((base64(&seen[4]), base64(&seen[5])), (PUBLIC.to_owned(), PUBLIC.to_owned()));
    let wrong = json!({ "format": "openssh", "data": base64(&locked), "passphrase": "open barley" });
    let wrong = service.post(None, "/api/v1/import", &json!({ "private_key": wrong }));
    assert_eq!(wrong.error(), (400, "wrong_passphrase".to_owned()));
    assert!(!wrong.text().contains("barley"));
}

#[test]
fn a_public_key_is_imported_as_it_is_read() {
    let service = open();
    for algorithm in ["ed25519", "ml-dsa-44", "x-wing"] {
        service.post(None, "/api/v1/keys", &json!({ "label": algorithm, "algorithm": algorithm })).ok();
        for format in ["pem", "der", "raw", "jwk", "openssh", "minisign", "bulla"] {
            let view = service.get(None, &format!("/api/v1/keys/{algorithm}/public?format={format}"));
            if view.status == 400 {
                continue;
            }
            let text = view.ok()["public_key"].clone();
            let label = format!("{algorithm}-{format}");
            let key = json!({ "format": format, "data": text, "algorithm": algorithm });
            let made = import(&service, &json!({ "public_key": key, "label": label }));
            assert_eq!(made["versions"][0]["origin"], "public_only");
            let again = service.get(None, &format!("/api/v1/keys/{label}/public?format=raw")).ok();
            let first = service.get(None, &format!("/api/v1/keys/{algorithm}/public?format=raw")).ok();
            assert_eq!(again["public_key"], first["public_key"], "{label}");
            let other = json!({ "format": format, "data": text, "algorithm": "ml-dsa-65" });
            let other = service.post(None, "/api/v1/import", &json!({ "public_key": other }));
            assert_eq!(other.status, 400, "{label}: {}", other.text());
        }
    }
}

#[test]
fn an_import_names_one_key_and_errors_show_nothing_of_it() {
    let service = open();
    let malformed = (400, "malformed_request".to_owned());
    let post = |body: &Value| service.post(None, "/api/v1/import", body);
    let public = json!({ "format": "raw", "algorithm": "ed25519", "data": PUBLIC });
    assert_eq!(post(&json!({})).error(), malformed);
    assert_eq!(post(&json!({ "private_key": seed(), "public_key": public })).error(), malformed);
    let of = |format: &str, data: &str| json!({ "private_key": { "format": format, "data": data, "algorithm": "ed25519" } });
    let secret = base64(&SEED);
    for (body, code) in [
        (of("raw", &secret[4..]), "malformed_key"),
        (of("der", &secret), "malformed_key"),
        (of("pem", &secret), "malformed_key"),
        (of("openssh", &secret), "malformed_key"),
        (of("raw", &format!("{secret}!")), "malformed_request"),
        (of("jwk", &secret), "malformed_request"),
        (json!({ "private_key": { "format": "raw", "data": secret } }), "invalid_argument"),
        (json!({ "private_key": secret }), "malformed_request"),
        (
            json!({ "private_key": { "format": "raw", "data": secret, secret.as_str(): 1 } }),
            "malformed_request",
        ),
        (json!({ "public_key": public, "exportable": true }), "invalid_argument"),
    ] {
        let answer = post(&body);
        assert_eq!(answer.error(), (400, code.to_owned()), "{body}");
        assert!(!answer.text().contains(&secret[4..12]), "{}", answer.text());
    }
}

#[test]
fn a_version_is_imported_and_signs_from_now_on() {
    let service = open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    let add = |key: &str, body: &Value| service.post(None, &format!("/api/v1/keys/{key}/import"), body);
    let made = add("a", &json!({ "private_key": seed() })).ok();
    assert_eq!((&made["head"], &made["versions"][1]["public_key"]), (&json!(2), &json!(PUBLIC)));
    let signed = service.post(None, "/api/v1/keys/a/sign", &json!({ "message": "" })).ok();
    assert_eq!(signed["version"], 2);
    let twice = add("a", &json!({ "private_key": seed() }));
    assert_eq!(twice.error(), (400, "invalid_argument".to_owned()));
    let public = json!({ "public_key": { "format": "raw", "algorithm": "ed25519", "data": PUBLIC } });
    assert_eq!(add("a", &public).error(), (400, "invalid_argument".to_owned()));
    import(&service, &json!({ "public_key": public["public_key"], "label": "b" }));
    let other = Keystore::in_memory().unwrap();
    let other = other
        .create_key(NewKey::new(name("x"), name("x"), Algorithm::Ed25519))
        .map(|key| other.public_key(&key));
    let pem = export_public(&other.unwrap().unwrap(), PublicFormat::Pem).unwrap();
    let next = json!({ "public_key": { "format": "pem", "data": String::from_utf8(pem).unwrap() } });
    assert_eq!(add("b", &next).ok()["head"], 2);
    assert_eq!(add("nobody", &next).error(), (404, "key_not_found".to_owned()));
}

/// Every algorithm of which a key is made quickly.
#[test]
fn what_is_exported_for_a_key_is_imported_by_it() {
    let service = open();
    service.post(None, "/api/v1/keys", &json!({ "label": "to", "algorithm": "x-wing" })).ok();
    for algorithm in ["ed25519", "ecdsa-p256", "ml-dsa-44", "slh-dsa-sha2-128f", "ml-kem-768", "x-wing"] {
        let new = json!({ "label": algorithm, "algorithm": algorithm, "exportable": true });
        let key = service.post(None, "/api/v1/keys", &new).ok();
        let public = service.get(None, "/api/v1/keys/to/public?format=raw").ok()["public_key"].clone();
        for to in [
            json!({ "recipient_key": "to" }),
            json!({ "recipient": format!("x-wing:{}", public.as_str().unwrap()) }),
            json!({ "recipient": service.get(None, "/api/v1/keys/to/public?format=bulla").ok()["public_key"] }),
        ] {
            let out = service.post(None, &format!("/api/v1/keys/{algorithm}/export"), &to).ok();
            assert_eq!(out["key"], key["versions"][0]["id"]);
            let wrapped = json!({ "wrapped": out["wrapped"], "recipient": "to" });
            let back = import(&service, &json!({ "wrapped_key": wrapped, "purpose": "moved" }));
            assert_eq!(back["versions"][0]["public_key"], key["versions"][0]["public_key"], "{algorithm}");
            assert_eq!((&back["algorithm"], &back["exportable"]), (&json!(algorithm), &json!(false)));
        }
        // It was wrapped for an older version then.
        service.post(None, "/api/v1/keys/to/rotate", &json!({})).ok();
    }
}

#[test]
fn a_private_key_leaves_only_wrapped_and_only_when_it_is_exportable() {
    let service = open();
    service.post(None, "/api/v1/keys", &json!({ "label": "to", "algorithm": "x-wing" })).ok();
    service.post(None, "/api/v1/keys", &json!({ "label": "kept" })).ok();
    service.post(None, "/api/v1/keys", &json!({ "label": "moving", "exportable": true })).ok();
    let export =
        |key: &str, body: &Value| service.post(None, &format!("/api/v1/keys/{key}/export"), body).error();
    let to = json!({ "recipient_key": "to" });
    assert_eq!(export("kept", &to), (409, "not_exportable".to_owned()));
    assert_eq!(export("moving", &json!({})), (400, "malformed_request".to_owned()));
    assert_eq!(
        export("moving", &json!({ "recipient_key": "to", "recipient": "x" })),
        (400, "malformed_request".to_owned())
    );
    assert_eq!(export("moving", &json!({ "recipient_key": "kept" })), (400, "key_usage_mismatch".to_owned()));
    assert_eq!(export("moving", &json!({ "recipient": PUBLIC })), (400, "key_usage_mismatch".to_owned()));
    assert_eq!(
        export("moving", &json!({ "recipient": "age1nobody" })),
        (400, "invalid_public_key".to_owned())
    );
    service.post(None, "/api/v1/keys/moving/rotate", &json!({})).ok();
    let older = json!({ "recipient_key": "to", "version": 1 });
    assert_eq!(export("moving", &older), (409, "not_latest_version".to_owned()));
    // Without a root key the keystore has nothing to check the export by.
    let without = Service::open();
    without.post(None, "/api/v1/keys", &json!({ "label": "to", "algorithm": "x-wing" })).ok();
    without.post(None, "/api/v1/keys", &json!({ "label": "moving", "exportable": true })).ok();
    assert_eq!(
        without.post(None, "/api/v1/keys/moving/export", &to).error(),
        (404, "key_not_found".to_owned())
    );
}

/// A keystore with a key that may leave, one to receive it, and a key for tokens that is
/// exportable.
fn tenants() -> Keystore {
    let keystore = keystore(&["local", "other"]);
    let create = |tenant: &str, purpose: &str, algorithm, label: &str| {
        let new = NewKey::new(name(tenant), name(purpose), algorithm).label(name(label));
        keystore.create_key(new.exportable(true)).unwrap();
    };
    create("local", "files", Algorithm::Ed25519, "moving");
    create("local", "transport", Algorithm::XWing, "to");
    create("local", "tokens", Algorithm::Ed25519, "second-root");
    create("other", "transport", Algorithm::XWing, "theirs");
    keystore
}

#[test]
fn imports_and_exports_need_their_rights() {
    let keystore = tenants();
    let moving = keystore.find(&name("local"), &name("moving")).unwrap().unwrap();
    let theirs = keystore.find(&name("other"), &name("theirs")).unwrap().unwrap();
    let of = |operations: &[TokenOperation]| token(&keystore, "local", GrantedKeys::All, operations);
    let exports = of(&[TokenOperation::Export, TokenOperation::Read]);
    let blind = of(&[TokenOperation::Export]);
    let imports = of(&[TokenOperation::Import]);
    let unwraps = of(&[TokenOperation::Import, TokenOperation::Decapsulate]);
    let narrow = GrantedKeys::These(vec![moving]);
    let narrow = token(
        &keystore,
        "local",
        narrow,
        &[TokenOperation::Import, TokenOperation::Export, TokenOperation::Read],
    );
    let service = Service::start(keystore, config());
    let export = |token, body: &Value| service.post(Some(token), "/api/v1/keys/moving/export", body);
    let to = json!({ "recipient_key": "to" });
    let out = export(&exports, &to).ok()["wrapped"].clone();
    assert_eq!(export(&imports, &to).error(), refused());
    assert_eq!(export(&blind, &to).error(), refused(), "the recipient must be readable");
    assert_eq!(export(&narrow, &to).error(), refused());
    assert_eq!(export(&exports, &json!({ "recipient_key": theirs.to_string() })).error(), refused());
    let wrapped = json!({ "wrapped_key": { "wrapped": out, "recipient": "to" }, "label": "back" });
    let import = |token, body: &Value| service.post(Some(token), "/api/v1/import", body);
    assert_eq!(
        import(&imports, &wrapped).error(),
        refused(),
        "the recipient must decapsulate for the caller"
    );
    assert_eq!(import(&exports, &wrapped).error(), refused());
    import(&unwraps, &wrapped).ok();
    let plain = json!({ "private_key": seed() });
    assert_eq!(
        import(&narrow, &plain).error(),
        refused(),
        "the token names its keys, and a new key is not among them"
    );
    import(&imports, &plain).ok();
    let add = |token, key: &str| service.post(Some(token), &format!("/api/v1/keys/{key}/import"), &plain);
    add(&narrow, "moving").ok();
    assert_eq!(add(&narrow, "to").error(), refused());
    assert_eq!(add(&exports, "moving").error(), refused());
}

#[test]
fn no_holder_of_a_token_brings_a_key_for_tokens_or_takes_one_out() {
    let keystore = tenants();
    let all = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
    let service = Service::start(keystore, config());
    let post = |path: &str, body: &Value| service.post(Some(&all), path, body).error();
    let public = json!({ "format": "raw", "algorithm": "ed25519", "data": PUBLIC });
    for key in [json!({ "private_key": seed() }), json!({ "public_key": public })] {
        let mut new = key.clone();
        new["purpose"] = json!("tokens");
        assert_eq!(post("/api/v1/import", &new), refused());
        for root in ["tokens", "second-root"] {
            assert_eq!(post(&format!("/api/v1/keys/{root}/import"), &key), refused());
        }
    }
    for root in ["tokens", "second-root"] {
        let to = json!({ "recipient_key": "to" });
        assert_eq!(post(&format!("/api/v1/keys/{root}/export"), &to), refused());
    }
}

#[test]
fn a_caller_who_mints_imports_a_key_for_tokens_whose_tokens_then_work() {
    let elsewhere = KeystoreOptions::default().in_memory().unwrap();
    let tenant: Name = name("local");
    let data = bulla_kms::transfer::PrivateKeyData::read(
        &SEED,
        bulla_kms::transfer::PrivateFormat::Raw,
        Some(Algorithm::Ed25519),
        None,
    );
    let root = NewKey::new(tenant.clone(), name("tokens"), Algorithm::Ed25519).label(name("tokens"));
    elsewhere.import_key(root, &data.unwrap()).unwrap();
    let expires = after(3600);
    let grant = Grant::new(tenant, GrantedKeys::All, vec![TokenOperation::Read], expires);
    let token = elsewhere.mint_token(&grant).unwrap();
    let service = Service::open();
    assert_eq!(service.get(Some(&token), "/api/v1/keys").error(), refused());
    let root = json!({ "private_key": seed(), "purpose": "tokens", "label": "tokens", "exportable": true });
    import(&service, &root);
    service.get(Some(&token), "/api/v1/keys").ok();
    // It leaves for nobody, not even for those who mint.
    service.post(None, "/api/v1/keys", &json!({ "label": "to", "algorithm": "x-wing" })).ok();
    let out = service.post(None, "/api/v1/keys/tokens/export", &json!({ "recipient_key": "to" }));
    assert_eq!(out.error(), (409, "not_exportable".to_owned()));
}
