//! The service as an issuer of JWTs: what it signs, and who verifies it.

use std::collections::BTreeSet;

use bulla_kms::token::{GrantedKeys, Token, TokenOperation};
use bulla_kms::{Algorithm, Code, JWT_PURPOSE, Keystore, NewKey};
use bulla_server::{Config, IssuerConfig, JwtConfig, JwtKeyConfig, JwtUse, RoleConfig};
use serde_json::{Value, json};

use crate::support::{Answer, Service, config, keystore, name, token};

const AUDIENCE: &str = "https://api.example.org";

fn settings(issuer: &str) -> Config {
    let mut config = config();
    config.service.development = true;
    let key = |label: &str| JwtKeyConfig {
        tenant: name("local"),
        label: name(label),
        audiences: vec![AUDIENCE.to_owned(), "*.internal".to_owned()],
        max_lifetime_seconds: 60,
    };
    let all = ["jobs", "ed25519", "ecdsa-p384", "rsa-2048", "ml-dsa-65", "files"];
    config.jwt = Some(JwtConfig { issuer: issuer.to_owned(), key: all.map(key).to_vec() });
    config
}

/// A service that is an issuer under its own address, with a key `jobs`.
fn issuer() -> Service {
    let service = Service::open();
    service.handle.reload(settings(&service.url)).unwrap();
    create(&service, "jobs", "jwt-issuer", "ecdsa-p256");
    service
}

fn create(service: &Service, label: &str, purpose: &str, algorithm: &str) -> Value {
    let body = json!({ "label": label, "purpose": purpose, "algorithm": algorithm });
    service.post(None, "/api/v1/keys", &body).ok()
}

fn sign(service: &Service, label: &str, body: &Value) -> Answer {
    service.post(None, &format!("/api/v1/keys/{label}/sign-jwt"), body)
}

fn signed(service: &Service, lifetime: u64) -> String {
    let claims = json!({ "sub": "job-7", "aud": AUDIENCE });
    let made = sign(service, "jobs", &json!({ "claims": claims, "lifetime_seconds": lifetime })).ok();
    made["jwt"].as_str().unwrap().to_owned()
}

/// A part of a JWT.
fn part(jwt: &str, number: usize) -> Value {
    let part = jwt.split('.').nth(number).unwrap();
    serde_json::from_slice(&base64_simd::URL_SAFE_NO_PAD.decode_to_vec(part).unwrap()).unwrap()
}

#[test]
fn a_jwt_says_what_the_settings_permit_and_no_more() {
    let service = issuer();
    let claims = json!({ "sub": "job-7", "aud": [AUDIENCE, "a.internal"], "nested": { "a": [1] } });
    let made = sign(&service, "jobs", &json!({ "claims": claims })).ok();
    let jwt = made["jwt"].as_str().unwrap();
    assert_eq!(part(jwt, 0), json!({ "alg": "ES256", "kid": made["key"], "typ": "JWT" }));
    let says = part(jwt, 1);
    assert_eq!((&says["iss"], &says["nested"]), (&json!(service.url), &claims["nested"]));
    assert_eq!((&says["aud"], &says["jti"]), (&claims["aud"], &made["id"]));
    assert_eq!(says["iat"], says["nbf"]);
    assert_eq!(says["exp"].as_u64().unwrap() - says["iat"].as_u64().unwrap(), 60);
    let other = sign(&service, "jobs", &json!({ "claims": claims, "lifetime_seconds": 7 })).ok();
    let other_says = part(other["jwt"].as_str().unwrap(), 1);
    assert_eq!(other_says["exp"].as_u64().unwrap() - other_says["iat"].as_u64().unwrap(), 7);
    assert_ne!(says["jti"], other_says["jti"]);

    for (claims, status, words) in [
        (json!({ "aud": "https://evil.example.org" }), 403, "do not permit the audience"),
        (json!({ "aud": [AUDIENCE, "internal"] }), 403, "do not permit the audience"),
        (json!({ "sub": "job-7" }), 400, "`aud` is a text"),
        (json!({ "aud": [] }), 400, "`aud` is a text"),
        (json!({ "aud": [AUDIENCE, 7] }), 400, "`aud` is a text"),
        (json!({ "aud": AUDIENCE, "sub": 7 }), 400, "`sub` is a text"),
        (json!({ "aud": AUDIENCE, "iss": "https://evil.example.org" }), 400, "`iss` is"),
        (json!({ "aud": AUDIENCE, "exp": 99_999_999_999_u64 }), 400, "the service sets the claim `exp`"),
        (json!({ "aud": AUDIENCE, "nbf": 0 }), 400, "the service sets the claim `nbf`"),
        (json!({ "aud": AUDIENCE, "jti": "a" }), 400, "the service sets the claim `jti`"),
        (json!({ "aud": AUDIENCE, "x": "a".repeat(4096) }), 400, "more than 4096 bytes"),
    ] {
        let refused = sign(&service, "jobs", &json!({ "claims": claims }));
        assert_eq!(refused.status, status, "{claims}: {}", refused.text());
        assert!(refused.text().contains(words), "{claims}: {}", refused.text());
    }
    let long = sign(&service, "jobs", &json!({ "claims": claims, "lifetime_seconds": 61 }));
    assert_eq!((long.status, long.text().contains("at most 60")), (403, true), "{}", long.text());
    let path = "/api/v1/keys/jobs/sign-jwt";
    let twice = service.send("POST", None, path, br#"{"claims":{"aud":"a.internal","aud":"b.internal"}}"#);
    assert_eq!(twice.error().0, 400);
}

#[test]
fn keys_of_the_purpose_sign_jwts_alone_and_no_other_keys_do() {
    let service = issuer();
    create(&service, "files", "files", "ed25519");
    create(&service, "unnamed", "jwt-issuer", "ed25519");
    let mismatch = (400, Code::KeyUsageMismatch.as_str().to_owned());
    let claims = json!({ "claims": { "aud": AUDIENCE } });
    // A key of another purpose, and one that the settings do not name.
    assert_eq!(sign(&service, "files", &claims).error(), mismatch);
    assert_eq!(sign(&service, "unnamed", &claims).error(), mismatch);
    // {"alg":"ES256"} and {"sub":"root"}: no other endpoint signs it.
    let message = base64_simd::STANDARD.encode_to_string(b"eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJyb290In0");
    let one = json!({ "message": message });
    assert_eq!(service.post(None, "/api/v1/keys/jobs/sign", &one).error(), mismatch);
    let hashed = json!({ "message": message, "hash": "sha256" });
    assert_eq!(service.post(None, "/api/v1/keys/jobs/sign", &hashed).error(), mismatch);
    let many = json!({ "key": "jobs", "items": [{ "message": message }] });
    let many = service.post(None, "/api/v1/sign", &many).ok();
    assert_eq!(many["results"][0]["error"]["code"], json!(mismatch.1), "{many}");
    let new = json!({ "label": "digests", "purpose": "jwt-issuer", "algorithm": "ecdsa-p256", "signs_digests": true });
    service.post(None, "/api/v1/keys", &new).ok();
    for (label, prehash, len) in
        [("digests", "sha256", 32), ("unnamed", "ed25519ph", 64), ("unnamed", "blake3", 32)]
    {
        let digest = base64_simd::STANDARD.encode_to_string(vec![7; len]);
        let body = json!({ "prehash": prehash, "digest": digest });
        let refused = service.post(None, &format!("/api/v1/keys/{label}/sign-digest"), &body);
        assert_eq!(refused.error(), mismatch, "{label}");
        assert!(refused.text().contains("signs only JSON Web Tokens"), "{}", refused.text());
    }
    let vault = service.post(None, "/v1/transit/sign/jobs", &json!({ "input": message }));
    assert_eq!(vault.status, 400, "{}", vault.text());
    // Statements of bulla have a prefix that no JWT has.
    service.post(None, "/api/v1/keys/jobs/attest", &json!({})).ok();
}

#[test]
fn only_a_caller_who_may_mint_makes_and_changes_keys_for_jwts() {
    let keystore = keystore(&["local"]);
    let purpose = name(JWT_PURPOSE);
    let new = NewKey::new(name("local"), purpose, Algorithm::Ed25519).label(name("jobs"));
    keystore.create_key(new).unwrap();
    let token = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
    let mut settings = settings("https://keys.example.org");
    settings.service.development = false;
    let service = Service::start(keystore, settings);
    let post = |path: &str, body: &Value| service.post(Some(&token), path, body);
    let claims = json!({ "claims": { "aud": AUDIENCE } });
    assert_eq!(
        part(post("/api/v1/keys/jobs/sign-jwt", &claims).ok()["jwt"].as_str().unwrap(), 1)["aud"],
        AUDIENCE
    );
    // It could else put a key of its own in the place of this one.
    let new = json!({ "label": "mine", "purpose": "jwt-issuer" });
    assert_eq!(post("/api/v1/keys", &new).error().0, 403);
    assert_eq!(post("/api/v1/keys/jobs/rotate", &json!({})).error().0, 403);
    let renamed = service.send("PATCH", Some(&token), "/api/v1/keys/jobs", br#"{"label":"old"}"#);
    assert_eq!(renamed.error().0, 403);
    let seed = base64_simd::STANDARD.encode_to_string([7; 32]);
    let import = |purpose: &str| {
        let key = json!({ "format": "raw", "algorithm": "ed25519", "data": seed });
        post("/api/v1/import", &json!({ "private_key": key, "purpose": purpose }))
    };
    import("files").ok();
    assert_eq!(import("jwt-issuer").error().0, 403);
}

#[test]
fn a_service_without_settings_is_no_issuer() {
    let service = Service::open();
    create(&service, "jobs", "jwt-issuer", "ed25519");
    for path in ["/.well-known/openid-configuration", "/.well-known/jwks.json"] {
        assert_eq!(service.get(None, path).error(), (404, "endpoint_not_found".to_owned()));
    }
    let refused = sign(&service, "jobs", &json!({ "claims": { "aud": AUDIENCE } }));
    assert!(refused.text().contains("no table [jwt]"), "{}", refused.text());
    let mut wrong = settings("https://keys.example.org/");
    let mut refuse = |change: &dyn Fn(&mut JwtConfig)| {
        change(wrong.jwt.as_mut().unwrap());
        assert_eq!(service.handle.reload(wrong.clone()).unwrap_err().code, Code::InvalidArgument);
        wrong = settings("https://keys.example.org");
    };
    refuse(&|_| {});
    refuse(&|jwt| jwt.issuer = "http://keys.example.org".to_owned());
    refuse(&|jwt| jwt.key[0].audiences.clear());
    refuse(&|jwt| jwt.key[0].max_lifetime_seconds = 86_401);
    refuse(&|jwt| jwt.key[1].label = jwt.key[0].label.clone());
}

/// A service that lets in whoever shows a JWT of `issuer`.
fn relying(issuer: &str) -> Service {
    let mut config = config();
    config.issuer = vec![IssuerConfig {
        name: name("other"),
        issuer: issuer.to_owned(),
        jwks_url: None,
        keys_file: None,
        ca: None,
        token_review: None,
        leeway_seconds: 0,
    }];
    config.role = vec![RoleConfig {
        name: name("job"),
        issuer: name("other"),
        audiences: vec![AUDIENCE.to_owned()],
        subjects: vec!["job-*".to_owned()],
        claims: [].into(),
        jwt_use: JwtUse::Repeated,
        tenant: name("local"),
        operations: vec![TokenOperation::Sign],
        policies: Vec::new(),
        keys: None,
        lifetime_seconds: 60,
    }];
    Service::start(Keystore::in_memory().unwrap(), config)
}

#[test]
fn another_service_finds_the_keys_and_logs_in_whoever_has_a_jwt() {
    let service = issuer();
    for algorithm in ["ed25519", "ecdsa-p384", "rsa-2048", "ml-dsa-65"] {
        create(&service, algorithm, "jwt-issuer", algorithm);
    }
    create(&service, "files", "files", "ed25519");
    let found = service.get(None, "/.well-known/openid-configuration");
    assert_eq!(found.headers["cache-control"], "public, max-age=60");
    let found = found.ok();
    assert_eq!(
        (&found["issuer"], &found["jwks_uri"]),
        (&json!(service.url), &json!(format!("{}/.well-known/jwks.json", service.url)))
    );
    assert_eq!(
        found["id_token_signing_alg_values_supported"],
        json!(["ES256", "ES384", "EdDSA", "ML-DSA-65", "PS256"])
    );
    // Keys of another purpose are not shown, although the settings name one.
    let keys = service.get(None, "/.well-known/jwks.json").ok()["keys"].take();
    let algorithms: BTreeSet<_> = keys.as_array().unwrap().iter().map(|key| key["alg"].as_str()).collect();
    assert_eq!(algorithms, ["ES256", "ES384", "EdDSA", "ML-DSA-65", "PS256"].map(Some).into());

    let relying = relying(&service.url);
    let log_in = |jwt: &str| relying.post(None, "/api/v1/login", &json!({ "role": "job", "jwt": jwt }));
    let before = signed(&service, 60);
    let made = log_in(&before).ok();
    assert_eq!(made["holder"], "other/job-7");
    made["token"].as_str().unwrap().parse::<Token>().unwrap();
    for label in ["ed25519", "ecdsa-p384", "rsa-2048"] {
        let body = json!({ "claims": { "sub": "job-7", "aud": AUDIENCE } });
        log_in(sign(&service, label, &body).ok()["jwt"].as_str().unwrap()).ok();
    }
    // Damaged, for somebody else, and of a key that does not exist.
    let (start, signature) = before.rsplit_once('.').unwrap();
    for damaged in [format!("{start}.A{}", &signature[1..]), before.replacen(".ey", ".eyA", 1)] {
        assert_eq!(log_in(&damaged).error().0, 403);
    }
    let body = json!({ "claims": { "sub": "job-7", "aud": "a.internal" } });
    let other = log_in(sign(&service, "jobs", &body).ok()["jwt"].as_str().unwrap());
    assert!(other.text().contains("another audience"), "{}", other.text());

    // After a rotation, JWTs of both versions are good.
    service.post(None, "/api/v1/keys/jobs/rotate", &json!({})).ok();
    let after = signed(&service, 60);
    assert_eq!(part(&after, 0)["kid"].as_str().unwrap().rsplit_once('/').unwrap().1, "v2");
    log_in(&after).ok();
    log_in(&before).ok();

    let short = signed(&service, 1);
    while log_in(&short).status == 201 {
        std::thread::yield_now();
    }
    let refused = log_in(&short);
    assert!(refused.text().contains("expired"), "{}", refused.text());
}
