//! Logins by JWT: what each role gives, and that nobody else gets it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use bulla_kms::token::{Token, TokenOperation};
use bulla_kms::{Algorithm, Code, KeyId, Keystore, NewKey};
use bulla_server::{Config, IssuerConfig, JwtUse, RoleConfig};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::support::{Answer, Service, config, keystore, name};

pub(crate) const ISSUER: &str = "https://ci.example.org";

pub(crate) fn base64url(bytes: &[u8]) -> String {
    base64_simd::URL_SAFE_NO_PAD.encode_to_string(bytes)
}

/// An issuer's private key.
pub(crate) enum SigningKey {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    pub(crate) fn p256() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random);
        Self::P256(key.unwrap())
    }

    pub(crate) fn ed25519() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::P256(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    pub(crate) fn public(&self) -> &[u8] {
        match self {
            Self::P256(key) => key.public_key().as_ref(),
            Self::Ed25519(key) => key.public_key().as_ref(),
        }
    }

    pub(crate) fn jwk(&self, id: &str) -> Value {
        let public = self.public();
        match self {
            Self::P256(_) => json!({
                "kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "alg": "ES256",
                "x": base64url(&public[1..33]), "y": base64url(&public[33..]),
            }),
            Self::Ed25519(_) => json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": base64url(public) }),
        }
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::P256(key) => key.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
        }
    }

    /// A JWT with exactly this header.
    pub(crate) fn jwt_with(&self, header: &str, claims: &Value) -> String {
        let signed = format!("{}.{}", base64url(header.as_bytes()), base64url(claims.to_string().as_bytes()));
        let signature = base64url(&self.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    pub(crate) fn jwt(&self, id: &str, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm(), "kid": id, "typ": "JWT" });
        self.jwt_with(&header.to_string(), claims)
    }
}

pub(crate) fn now() -> u64 {
    bulla_kms::Timestamp::now().unwrap().unix_millis() / 1000
}

/// What a CI system says of a job.
pub(crate) fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": "bulla", "sub": "repo:acme/app:ref:refs/tags/v1",
        "iat": now(), "nbf": now(), "exp": now() + 300,
        "repository": "acme/app", "ref": "refs/tags/v1", "ref_protected": true,
    })
}

pub(crate) fn changed(field: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[field] = value;
    claims
}

fn without(field: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(field);
    claims
}

pub(crate) fn issuer() -> IssuerConfig {
    IssuerConfig {
        name: name("ci"),
        issuer: ISSUER.to_owned(),
        jwks_url: None,
        keys_file: None,
        ca: None,
        token_review: None,
        leeway_seconds: 5,
    }
}

pub(crate) fn role() -> RoleConfig {
    RoleConfig {
        name: name("release"),
        issuer: name("ci"),
        audiences: vec!["bulla".to_owned()],
        subjects: vec!["repo:acme/app:ref:refs/tags/*".to_owned()],
        claims: [("ref_protected".to_owned(), vec!["true".to_owned()])].into(),
        jwt_use: JwtUse::Repeated,
        tenant: name("local"),
        operations: vec![TokenOperation::Sign],
        policies: Vec::new(),
        keys: Some(vec!["release".to_owned()]),
        lifetime_seconds: 60,
    }
}

/// A service with one role, and the keys of its issuer in a file.
pub(crate) struct Tested {
    pub(crate) service: Service,
    config: Config,
    key: KeyId,
    folder: tempfile::TempDir,
}

impl Tested {
    pub(crate) fn new(jwk_set: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys.json");
        std::fs::write(&file, jwk_set.to_string()).unwrap();
        let mut config = config();
        config.issuer = vec![IssuerConfig { keys_file: Some(file), ..issuer() }];
        config.role = vec![role()];
        let keystore = keystore(&[]);
        let key = create(&keystore, "release");
        create(&keystore, "other");
        let service = Service::start(keystore, config.clone());
        Self { service, config, key, folder }
    }

    pub(crate) fn login(&self, jwt: &str) -> Answer {
        log_in(&self.service, "release", jwt)
    }
}

pub(crate) fn create(keystore: &Keystore, label: &str) -> KeyId {
    let new = NewKey::new(name("local"), name("files"), Algorithm::Ed25519).label(name(label));
    keystore.create_key(new).unwrap().key_id().clone()
}

pub(crate) fn log_in(service: &Service, role: &str, jwt: &str) -> Answer {
    service.post(None, "/api/v1/login", &json!({ "role": role, "jwt": jwt }))
}

pub(crate) fn keys(all: &[Value]) -> Value {
    json!({ "keys": all })
}

#[test]
fn a_login_gives_the_token_of_its_role_for_minutes() {
    for key in [SigningKey::p256(), SigningKey::ed25519()] {
        let tested = Tested::new(&keys(&[key.jwk("1")]));
        let made = tested.login(&key.jwt("1", &claims())).ok();
        assert_eq!(made["holder"], "ci/repo:acme/app:ref:refs/tags/v1");
        assert_eq!(made["operations"], json!(["sign"]));
        let token: Token = made["token"].as_str().unwrap().parse().unwrap();
        let own = tested.service.get(Some(&token), "/api/v1/tokens/self").ok();
        assert_eq!(own["keys"], json!([tested.key.to_string()]));
        assert_eq!((&own["operations"], &own["can_mint_tokens"]), (&json!(["sign"]), &json!(false)));
        let id = made["revocation_id"].as_str().unwrap();
        assert_eq!(own["revocation_ids"], json!([id]));
        assert_eq!(own["name"], format!("ci/repo:acme/app:ref:refs/tags/v1 token {}", &id[..16]));
        let sign = |key: &str| {
            tested.service.post(Some(&token), &format!("/api/v1/keys/{key}/sign"), &json!({ "message": "" }))
        };
        sign("release").ok();
        assert_eq!(sign("other").error().0, 403);
        assert_eq!(tested.service.get(Some(&token), "/api/v1/keys").error().0, 403);
    }
}

#[test]
fn clients_of_vault_log_in_at_the_paths_that_they_know() {
    let key = SigningKey::ed25519();
    let tested = Tested::new(&keys(&[key.jwk("1")]));
    for path in ["/v1/auth/jwt/login", "/v1/auth/kubernetes/login"] {
        let body = json!({ "role": "release", "jwt": key.jwt("1", &claims()) });
        let auth = tested.service.post(None, path, &body).ok()["auth"].take();
        assert_eq!((&auth["lease_duration"], &auth["renewable"]), (&json!(60), &json!(false)));
        let token: Token = auth["client_token"].as_str().unwrap().parse().unwrap();
        let looked = tested.service.get(Some(&token), "/v1/auth/token/lookup-self").ok();
        assert_eq!(looked["data"]["accessor"], auth["accessor"]);
        assert_eq!(looked["data"]["policies"], auth["policies"]);
        for (body, words) in
            [(json!({ "role": "release" }), "missing token"), (json!({ "jwt": "a.b.c" }), "missing role")]
        {
            let refused = tested.service.post(None, path, &body);
            assert_eq!((refused.status, &refused.json()["errors"]), (400, &json!([words])));
        }
    }
    let body = json!({ "role": "release", "jwt": key.jwt("1", &changed("aud", json!("other"))) });
    let refused = tested.service.post(None, "/v1/auth/jwt/login", &body);
    let words = "the login is refused: the JWT is for another audience";
    assert_eq!((refused.status, &refused.json()["errors"]), (400, &json!([words])));
    let refused = tested.service.post(None, "/v1/auth/kubernetes/login", &body);
    assert_eq!((refused.status, &refused.json()["errors"]), (403, &json!(["permission denied"])));
}

/// The attacks of the public lists, and mistakes: none of these JWTs is of the issuer.
fn forged(key: &SigningKey, stranger: &SigningKey) -> Vec<(&'static str, String)> {
    let good = key.jwt("1", &claims());
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!("{good}") };
    let body = base64url(claims().to_string().as_bytes());
    let hmac = |header: &Value, secret: &[u8]| {
        let signed = format!("{}.{body}", base64url(header.to_string().as_bytes()));
        let tag = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret), signed.as_bytes());
        format!("{signed}.{}", base64url(tag.as_ref()))
    };
    let with = |header: Value| key.jwt_with(&header.to_string(), &claims());
    let jwk = key.jwk("1").to_string();
    vec![
        ("no text", String::new()),
        ("two parts", format!("{header}.{payload}")),
        ("four parts", format!("{good}.{signature}")),
        ("no signature", format!("{header}.{payload}.")),
        ("a cut signature", good[..good.len() - 2].to_owned()),
        ("a signature of zeros", format!("{header}.{payload}.{}", base64url(&[0; 64]))),
        ("an empty ES256 signature", format!("{header}.{payload}.{}", base64url(b""))),
        (
            "other claims",
            format!(
                "{header}.{}.{signature}",
                base64url(changed("sub", json!("root")).to_string().as_bytes())
            ),
        ),
        ("none", format!("{}.{body}.", base64url(br#"{"alg":"none"}"#))),
        ("None", format!("{}.{body}.", base64url(br#"{"alg":"None"}"#))),
        ("nOnE with a signature", with(json!({ "alg": "nOnE", "kid": "1" }))),
        ("no algorithm", with(json!({ "kid": "1" }))),
        ("HMAC with the public key", hmac(&json!({ "alg": "HS256", "kid": "1" }), key.public())),
        ("HMAC with the JWK", hmac(&json!({ "alg": "HS256", "kid": "1" }), jwk.as_bytes())),
        ("HMAC with the issuer's secret", hmac(&json!({ "alg": "HS256", "kid": "3" }), b"secret")),
        ("HMAC with nothing", hmac(&json!({ "alg": "HS256" }), b"")),
        ("another key", stranger.jwt("1", &claims())),
        (
            "another key that it brings",
            stranger.jwt_with(&json!({ "alg": "ES256", "jwk": stranger.jwk("1") }).to_string(), &claims()),
        ),
        (
            "another key at a URL",
            stranger.jwt_with(r#"{"alg":"ES256","kid":"1","jku":"https://evil.example.org"}"#, &claims()),
        ),
        ("an unknown key", key.jwt("9", &claims())),
        ("the name of another key", key.jwt("2", &claims())),
        ("another algorithm", with(json!({ "alg": "EdDSA", "kid": "1" }))),
        ("ES384", with(json!({ "alg": "ES384", "kid": "1" }))),
        ("RS256", with(json!({ "alg": "RS256", "kid": "1" }))),
        ("an unknown algorithm", with(json!({ "alg": "ES256K", "kid": "1" }))),
        ("something critical", with(json!({ "alg": "ES256", "kid": "1", "crit": ["exp"] }))),
        ("nothing critical", with(json!({ "alg": "ES256", "kid": "1", "crit": [] }))),
        ("a header that is a list", key.jwt_with("[]", &claims())),
        ("two algorithms", key.jwt_with(r#"{"alg":"ES256","alg":"none","kid":"1"}"#, &claims())),
        ("claims that are a list", key.jwt("1", &json!([]))),
        ("padding", format!("{header}=.{payload}.{signature}")),
        ("a space", format!("{good} ")),
    ]
}

/// An issuer with two keys, and one that signs no JWT.
fn two_keys(first: &SigningKey, second: &SigningKey) -> Tested {
    let secret = json!({ "kty": "oct", "kid": "3", "k": base64url(b"secret"), "alg": "HS256" });
    Tested::new(&keys(&[first.jwk("1"), second.jwk("2"), secret]))
}

#[test]
fn nobody_forges_a_jwt_and_the_caller_does_not_learn_why() {
    let (key, second) = (SigningKey::p256(), SigningKey::ed25519());
    let tested = two_keys(&key, &second);
    tested.login(&key.jwt("1", &claims())).ok();
    tested.login(&second.jwt("2", &claims())).ok();
    tested.login(&second.jwt_with(r#"{"alg":"EdDSA"}"#, &claims())).ok();
    for (attack, jwt) in forged(&key, &SigningKey::p256()) {
        let answer = tested.login(&jwt);
        assert_eq!(answer.error(), (403, "forbidden".to_owned()), "{attack}");
        let told = "the login is refused: the service's log says why";
        assert_eq!(answer.json()["message"], told, "{attack}");
    }
    assert_eq!(log_in(&tested.service, "nobody", &key.jwt("1", &claims())).error().0, 403);
    assert_eq!(log_in(&tested.service, "../release", &key.jwt("1", &claims())).error().0, 403);
}

#[test]
fn a_jwt_is_what_the_role_asks_for_and_the_caller_learns_which_claim_is_not() {
    let key = SigningKey::p256();
    let tested = two_keys(&key, &SigningKey::ed25519());
    tested.login(&key.jwt("1", &changed("aud", json!(["else", "bulla"])))).ok();
    let far = now() + 4000;
    let not_permitted = [
        ("`exp`", without("exp")),
        ("`aud`", without("aud")),
        ("`sub`", without("sub")),
        ("`iss`", without("iss")),
        ("expired", changed("exp", json!(now() - 60))),
        ("`exp`", changed("exp", json!("tomorrow"))),
        ("not valid yet", changed("nbf", json!(far))),
        ("`nbf`", changed("nbf", json!("x"))),
        ("`iat`", changed("iat", json!(far))),
        ("another audience", changed("aud", json!("else"))),
        ("another audience", changed("aud", json!(["a", "b"]))),
        ("another issuer", changed("iss", json!("https://ci.example.org/"))),
        ("`iss`", changed("iss", json!([ISSUER]))),
        ("`sub`", changed("sub", json!("repo:acme/app:ref:refs/heads/main"))),
        ("`sub`", changed("sub", json!("repo:acme/app2:ref:refs/tags/v1"))),
        ("`sub`", changed("sub", json!(""))),
        ("`ref_protected`", changed("ref_protected", json!(false))),
        ("`ref_protected`", without("ref_protected")),
    ];
    for (reason, claims) in not_permitted {
        let answer = tested.login(&key.jwt("1", &claims));
        assert_eq!(answer.error(), (403, "forbidden".to_owned()), "{claims}");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(reason), "{message}: {claims}");
        assert!(!message.contains("refs/tags/*") && !message.contains(ISSUER), "{message}");
    }
}

/// A server of documents on this machine, as an issuer has one.
struct DocumentServer {
    address: String,
    documents: Arc<Mutex<Vec<(String, String)>>>,
}

impl DocumentServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let documents = Arc::<Mutex<Vec<(String, String)>>>::default();
        let served = Arc::clone(&documents);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away needs no answer.
                let _ = answer(stream, &served.lock().unwrap());
            }
        });
        Self { address, documents }
    }

    fn set(&self, path: &str, document: &Value) {
        let mut documents = self.documents.lock().unwrap();
        documents.retain(|(other, _)| other != path);
        documents.push((path.to_owned(), document.to_string()));
    }
}

fn answer(mut stream: TcpStream, documents: &[(String, String)]) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().unwrap_or(Ok(String::new()))?;
    while !lines.next().unwrap_or(Ok(String::new()))?.is_empty() {}
    let path = first.split(' ').nth(1).unwrap_or_default();
    let found = documents.iter().find(|(known, _)| known == path);
    let (status, body) = found.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", body.as_str()));
    write!(stream, "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn keys_come_from_the_issuers_server_and_change_there() {
    let (server, first, second) = (DocumentServer::start(), SigningKey::p256(), SigningKey::ed25519());
    let url = &server.address;
    let mut config = config();
    config.issuer = vec![IssuerConfig { issuer: url.clone(), ..issuer() }];
    config.role = vec![role()];
    let keystore = keystore(&[]);
    create(&keystore, "release");
    let service = Service::start(keystore, config);
    let login =
        |key: &SigningKey, id: &str| log_in(&service, "release", &key.jwt(id, &changed("iss", json!(url))));
    assert_eq!(login(&first, "1").error(), (503, "unavailable".to_owned()), "the server has nothing yet");
    let metadata = |issuer: &str| json!({ "issuer": issuer, "jwks_uri": format!("{url}/keys") });
    server.set("/keys", &keys(&[first.jwk("1")]));
    server.set("/.well-known/openid-configuration", &metadata("https://another.example.org"));
    assert_eq!(login(&first, "1").error().0, 503, "the metadata are of another issuer");
    server.set("/.well-known/openid-configuration", &metadata(url));
    login(&first, "1").ok();
    assert_eq!(login(&second, "2").error().0, 403);
    server.set("/keys", &keys(&[first.jwk("1"), second.jwk("2")]));
    login(&second, "2").ok();
    // What the server says now cannot be read: the keys from before count.
    server.set("/keys", &json!("nothing"));
    assert_eq!(login(&second, "3").error().0, 403);
    login(&first, "1").ok();
}

#[test]
fn a_reload_takes_other_roles_and_keys_and_a_wrong_one_changes_nothing() {
    let (old, new) = (SigningKey::p256(), SigningKey::p256());
    let tested = Tested::new(&keys(&[old.jwk("1")]));
    let file = tested.folder.path().join("keys.json");
    tested.login(&old.jwt("1", &claims())).ok();
    let reload = |config: &Config| tested.service.handle.reload(config.clone());
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(reload(&tested.config).unwrap_err().code, Code::InvalidArgument);
    tested.login(&old.jwt("1", &claims())).ok();
    std::fs::write(&file, keys(&[new.jwk("2")]).to_string()).unwrap();
    reload(&tested.config).unwrap();
    assert_eq!(tested.login(&old.jwt("1", &claims())).error().0, 403);
    tested.login(&new.jwt("2", &claims())).ok();
    let mut without_role = tested.config.clone();
    without_role.role.clear();
    reload(&without_role).unwrap();
    assert_eq!(tested.login(&new.jwt("2", &claims())).error().0, 403);
}

#[test]
fn a_role_for_a_key_that_is_not_there_says_so() {
    let key = SigningKey::ed25519();
    let mut tested = Tested::new(&keys(&[key.jwk("1")]));
    tested.config.role[0].keys = Some(vec!["gone".to_owned()]);
    tested.service.handle.reload(tested.config.clone()).unwrap();
    assert_eq!(tested.login(&key.jwt("1", &claims())).error(), (404, "key_not_found".to_owned()));
}

#[test]
fn a_role_may_accept_a_jwt_once() {
    let key = SigningKey::p256();
    let tested = Tested::new(&keys(&[key.jwk("1")]));
    let mut config = tested.config.clone();
    config.role[0].jwt_use = JwtUse::Once;
    let keystore = keystore(&[]);
    create(&keystore, "release");
    let service = Service::start(keystore, config);
    let refused = |jwt: &str, words: &str| {
        let answer = log_in(&service, "release", jwt);
        assert_eq!(answer.error(), (403, "forbidden".to_owned()));
        assert!(answer.text().contains(words), "{}", answer.text());
    };
    refused(&key.jwt("1", &claims()), "the JWT has no claim `jti`");
    let with_id = |id: &str| key.jwt("1", &changed("jti", json!(id)));
    let jwt = with_id("one");
    log_in(&service, "release", &jwt).ok();
    refused(&jwt, "the JWT was used before");
    // Another signature of the same JWT does not make it another one.
    refused(&with_id("one"), "the JWT was used before");
    log_in(&service, "release", &with_id("two")).ok();
    // Of many at once, one gets in.
    let jwt = with_id("three");
    let entered: usize = std::thread::scope(|scope| {
        let enter = || log_in(&service, "release", &jwt).status == 201;
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(enter)).collect();
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
    });
    assert_eq!(entered, 1);
}
