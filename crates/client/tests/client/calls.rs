//! Every call, against a service that works.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bulla_client::{
    ApprovalState, Attenuation, ErrorCode, ErrorKind, Grant, HashFunction, KeyMaterial, KeyState, KeyUpdate,
    LoginProvider, NewKey, Origin, Prehash, PrivateKeyFormat, PublicKeyFormat, Recipient, Rotation,
    RsaPadding, SignItem, SignatureScheme, Statement, StatementKind, Token, Verdict, VerifyItem,
    VersionState,
};
use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Attestation, SignatureFile, SignedAttestation, Succession};
use bulla_server::{Config, JwtConfig, JwtKeyConfig};

use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;

use crate::faulty::{Canned, Fault, Faulty, Request};
use crate::support::{Service, config, keystore, token};
use crate::{blocking, builder, client};

fn labeled(label: &str) -> NewKey {
    NewKey { label: Some(label.to_owned()), ..NewKey::default() }
}

fn of_algorithm(label: &str, algorithm: &str) -> NewKey {
    NewKey { algorithm: Some(algorithm.to_owned()), ..labeled(label) }
}

#[test]
fn messages_are_signed_and_verified() {
    let service = Service::open();
    let client = client(&service.url);
    client.create_key(&labeled("a")).unwrap();
    let signature = client.sign("a", b"message").unwrap();
    assert_eq!((signature.version, signature.bytes.len()), (1, 64));
    let verify = |key, message| client.verify(key, message, &signature.bytes).unwrap();
    assert_eq!(verify(&signature.key, b"message"), Verdict::Valid);
    assert_eq!(verify("a", b"message"), Verdict::Valid);
    assert_eq!(verify("a", b"another"), Verdict::Invalid);
    let empty = client.sign("a", b"").unwrap();
    assert!(client.verify("a", b"", &empty.bytes).unwrap().is_valid());
    let error = client.sign("nothing", b"").unwrap_err();
    assert_eq!((error.code(), error.status()), (Some(&ErrorCode::KeyNotFound), Some(404)));
    assert!(!error.is_retryable() && !error.service_error().unwrap().retryable);
    assert!(error.to_string().contains(error.request_id().unwrap()), "{error}");
    assert!(error.to_string().contains("nothing"), "{error}");
}

#[test]
fn digests_and_statements_are_signed() {
    let service = Service::open();
    let client = client(&service.url);
    client.create_key(&labeled("a")).unwrap();
    for (prehash, digest) in [(Prehash::Blake3, vec![1; 32]), (Prehash::Ed25519ph, vec![2; 64])] {
        let signature = client.sign_digest("a", prehash, &digest, b"context").unwrap().bytes;
        let verify =
            |context: &[u8]| client.verify_digest("a", prehash, &digest, context, &signature).unwrap();
        assert!(verify(b"context").is_valid());
        assert!(!verify(b"other").is_valid());
    }
    let digest = *bulla_blake3::hash(b"content").as_bytes();
    let statement = Statement {
        kind: StatementKind::File,
        digest,
        size: 7,
        comment: "a word",
        name: Some("app-1.0"),
        prehash: Some(Prehash::Ed25519ph),
    };
    let signed = client.sign_statement("a", &statement).unwrap();
    let file = SignatureFile::read_from(&mut signed.signature_file.as_bytes()).unwrap();
    assert_eq!((file.key.to_string(), file.size, file.comment.as_str()), (signed.key, 7, "a word"));
    assert_eq!(file.name.as_ref().unwrap().as_bytes(), b"app-1.0");
    assert!(file.verify_with(&file.public_key.clone()).is_valid());
}

#[test]
fn a_key_of_the_settings_signs_jwts() {
    let mut config = config();
    config.service.development = true;
    config.jwt = Some(JwtConfig {
        issuer: "https://keys.example.org".to_owned(),
        key: vec![JwtKeyConfig {
            tenant: "local".parse().unwrap(),
            label: "jobs".parse().unwrap(),
            audiences: vec!["a".to_owned()],
            max_lifetime_seconds: 60,
        }],
    });
    let service = Service::start(bulla_kms::Keystore::in_memory().unwrap(), config);
    let client = client(&service.url);
    client
        .create_key(&NewKey { purpose: Some(bulla_kms::JWT_PURPOSE.to_owned()), ..labeled("jobs") })
        .unwrap();
    let claims = serde_json::json!({ "aud": "a" }).as_object().unwrap().clone();
    let signed = client.sign_jwt("jobs", &claims, Some(Duration::from_secs(60))).unwrap();
    assert_eq!(signed.jwt.split('.').count(), 3);
    assert!(signed.key.ends_with("/v1") && !signed.id.is_empty() && signed.expires > SystemTime::now());
    assert!(!format!("{signed:?}").contains(&*signed.jwt), "a log shows no JWT");
    let long = client.sign_jwt("jobs", &claims, Some(Duration::from_secs(61))).unwrap_err();
    assert_eq!(long.code(), Some(&ErrorCode::Forbidden));
}

#[test]
fn batches_are_of_any_length_and_their_results_in_order() {
    const ITEMS: usize = 10_007;
    let service = Service::open();
    let client = client(&service.url);
    client.create_key(&labeled("a")).unwrap();
    let messages: Vec<_> = (0..ITEMS).map(|index| index.to_string().into_bytes()).collect();
    let key = |index: usize| if index == 10_003 { "nothing" } else { "a" };
    let items: Vec<_> =
        messages.iter().enumerate().map(|(index, message)| SignItem { key: key(index), message }).collect();
    let signatures = client.sign_many(&items).unwrap();
    assert_eq!(signatures.len(), ITEMS);
    let refused: Vec<_> = signatures.iter().enumerate().filter(|(_, one)| one.is_err()).collect();
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].0, &refused[0].1.as_ref().unwrap_err().code), (10_003, &ErrorCode::KeyNotFound));
    let empty = Vec::new();
    let bytes = |index: usize| signatures[index].as_ref().map_or(&empty, |signature| &signature.bytes);
    // One signature is that of another message.
    let place = |index: usize| if index == 10_001 { 10_002 } else { index };
    let items: Vec<_> = messages
        .iter()
        .enumerate()
        .map(|(index, message)| VerifyItem { key: key(index), message, signature: bytes(place(index)) })
        .collect();
    let verdicts = client.verify_many(&items).unwrap();
    assert_eq!(verdicts.len(), ITEMS);
    for (index, verdict) in verdicts.iter().enumerate() {
        match index {
            10_003 => assert_eq!(verdict.as_ref().unwrap_err().code, ErrorCode::KeyNotFound),
            10_001 => assert_eq!(verdict, &Ok(Verdict::Invalid)),
            _ => assert_eq!(verdict, &Ok(Verdict::Valid), "{index}"),
        }
    }
    assert_eq!(client.sign_many(&[]).unwrap(), []);
    assert_eq!(client.verify_many(&[]).unwrap(), []);
}

#[test]
fn batches_fit_a_service_that_takes_fewer_items() {
    let mut config = config();
    config.service.development = true;
    config.limits.max_batch_items = 3;
    let service = Service::start(bulla_kms::Keystore::in_memory().unwrap(), config);
    let items = [SignItem { key: "a", message: b"" }; 7];
    let client = client(&service.url);
    client.create_key(&labeled("a")).unwrap();
    assert_eq!(client.sign_many(&items).unwrap_err().error.code(), Some(&ErrorCode::TooManyItems));

    let client = blocking(builder(&service.url).max_batch_items(3));
    assert_eq!(client.sign_many(&items).unwrap().len(), 7);
}

#[test]
fn keys_live_from_their_creation_to_their_end() {
    let service = Service::open();
    let client = client(&service.url);
    let rotation = Rotation { max_age: Some(Duration::from_secs(60)), max_uses: None };
    let new = NewKey { rotation: Some(rotation), exportable: true, ..labeled("a") };
    let key = client.create_key(&new).unwrap();
    assert_eq!((key.label.as_deref(), key.state, key.latest_version), (Some("a"), KeyState::Enabled, 1));
    assert_eq!((key.rotation, key.exportable, key.algorithm.as_str()), (rotation, true, "ed25519"));
    assert_eq!((key.versions[0].state, key.versions[0].origin), (VersionState::Usable, Origin::Generated));
    assert_eq!(client.key("a").unwrap(), key);
    assert_eq!(client.key(&key.id).unwrap(), key);
    let rotated = client.rotate_key("a").unwrap();
    assert_eq!((rotated.latest_version, rotated.versions.len()), (2, 2));
    for refused in [client.refresh_shares("a"), client.repair_shares("a")] {
        assert_eq!(refused.unwrap_err().code(), Some(&ErrorCode::InvalidArgument), "it has no shares");
    }
    let statements: Vec<Succession> =
        client.successions("a").unwrap().iter().map(|text| text.parse().unwrap()).collect();
    assert!(statements.len() == 1 && statements[0].verify().is_valid());
    assert_eq!(client.disable_key("a").unwrap().state, KeyState::Disabled);
    assert_eq!(client.sign("a", b"").unwrap_err().code(), Some(&ErrorCode::KeyDisabled));
    let enabled = client.enable_key("a").unwrap();
    let old = client.update_key("a", Some(enabled.revision - 1), KeyUpdate::Label(Some("b")));
    assert_eq!(old.unwrap_err().code(), Some(&ErrorCode::Conflict));
    let named = client.update_key("a", Some(enabled.revision), KeyUpdate::Label(Some("b"))).unwrap();
    assert_eq!(named.label.as_deref(), Some("b"));
    let free = client.update_key("b", None, KeyUpdate::Rotation(Rotation::default())).unwrap();
    assert_eq!(free.rotation, Rotation::default());
    let least = client.update_key("b", None, KeyUpdate::MinimumVersion(2)).unwrap();
    assert_eq!(least.minimum_version, 2);
    assert_eq!(client.destroy_version("b", 1).unwrap().versions[0].state, VersionState::Destroyed);
    assert_eq!(client.revoke_version("b", 1).unwrap().versions[0].state, VersionState::Revoked);
    let due = UNIX_EPOCH + Duration::from_millis(1_767_225_600_123);
    let scheduled = client.schedule_destruction("b", due).unwrap();
    assert_eq!(scheduled.state, KeyState::PendingDestruction);
    assert_eq!(scheduled.destroy_after, Some(due));
    assert_eq!(client.cancel_destruction("b").unwrap().state, KeyState::Disabled);
    client.schedule_destruction("b", due).unwrap();
    assert_eq!(client.destroy_key("b").unwrap().state, KeyState::Destroyed);
}

#[test]
fn keys_are_listed_page_by_page() {
    const KEYS: usize = 1003;
    let keystore = keystore(&[]);
    for _ in 0..KEYS {
        let new = bulla_kms::NewKey::new(
            "development".parse().unwrap(),
            "files".parse().unwrap(),
            bulla_kms::Algorithm::Ed25519,
        );
        keystore.create_key(new).unwrap();
    }
    let tenant = keystore.list().unwrap().first().unwrap().key.tenant().clone();
    let mut config = config();
    config.service.development = true;
    let reader = bulla_kms::token::Grant::new(
        tenant.clone(),
        GrantedKeys::All,
        vec![TokenOperation::Read],
        crate::support::after(3600),
    );
    keystore.create_token_root(&tenant).unwrap();
    let token = keystore.mint_token(&reader).unwrap();
    let service = Service::start(keystore, config);
    let settings = builder(&service.url).token(Token::new(token.expose()).unwrap());
    let client = blocking(settings);
    let first = client.key_page(None).unwrap();
    assert_eq!((first.keys.len(), first.next.is_some()), (1000, true));
    let keys: Vec<_> = client.keys().collect::<Result<_, _>>().unwrap();
    // The root key is one of them.
    assert_eq!(keys.len(), KEYS + 1);
    assert!(keys.windows(2).all(|two| two[0].id < two[1].id));
}

#[test]
fn requests_for_approval_are_read_page_by_page() {
    let page = |text| Fault::Answer(Canned(200, 0, text));
    let pages = [
        page(
            r#"{"approvals":[{"request":{"id":"a"},"state":"waiting","threshold":1,"statements":[]}],"next":"a"}"#,
        ),
        page(
            r#"{"approvals":[{"request":{"id":"b"},"state":"used","threshold":1,"statements":[]}],"next":null}"#,
        ),
    ];
    let service = Service::open();
    let network = Faulty::before(&service.url, &pages);
    let approvals: Vec<_> = blocking(builder(&network.url)).approvals().collect::<Result<_, _>>().unwrap();
    let shown: Vec<_> = approvals.iter().map(|one| (one.id(), one.state)).collect();
    assert_eq!(shown, [("a", ApprovalState::Waiting), ("b", ApprovalState::Used)]);
    let seen = network.seen();
    let asked: Vec<_> = seen.iter().map(Request::target).collect();
    assert_eq!(asked, ["/api/v1/approvals?limit=1000", "/api/v1/approvals?limit=1000&after=a"]);
}

#[test]
fn public_keys_and_attestations_are_what_the_keystore_writes() {
    let service = Service::open();
    let client = client(&service.url);
    let key = client.create_key(&labeled("a")).unwrap();
    for (format, begin) in [
        (PublicKeyFormat::Pem, "-----BEGIN PUBLIC KEY-----"),
        (PublicKeyFormat::Der, "MCowBQ"),
        (PublicKeyFormat::Raw, ""),
        (PublicKeyFormat::Jwk, "{"),
        (PublicKeyFormat::OpenSsh, "ssh-ed25519 "),
        (PublicKeyFormat::Minisign, "untrusted comment: "),
        (PublicKeyFormat::Bulla, "bulla public key v1: "),
    ] {
        let public = client.public_key("a", format).unwrap();
        assert!(public.text.starts_with(begin), "{format:?}: {}", public.text);
        assert_eq!(
            (public.key.as_str(), public.algorithm.as_str()),
            (key.versions[0].id.as_str(), "ed25519")
        );
    }
    // Its JSON is in the form that was signed.
    let text = client.attest_key("a").unwrap();
    let attested: SignedAttestation = serde_json::from_str(&text).unwrap();
    assert!(attested.verify().is_valid());
    let attestation: &Attestation = &attested.attestation;
    assert_eq!(attestation.key.to_string(), key.id);
}

/// A service with a role `reader`, a role `brief` whose tokens live for two seconds, and JWTs for
/// them by their subject.
fn with_jwts() -> (Service, impl Fn(&str) -> String) {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let key = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let encode = |bytes: &[u8]| base64_simd::URL_SAFE_NO_PAD.encode_to_string(bytes);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(key.public_key().as_ref()) });
    std::fs::write(&file, json!({ "keys": [jwk] }).to_string()).unwrap();
    let role = |name: &str, more: &str| {
        format!(
            "[[role]]\nname = \"{name}\"\nissuer = \"ci\"\naudiences = [\"bulla\"]\nsubjects = [\"job-*\"]\n\
             tenant = \"local\"\noperations = [\"read\"]\n{more}"
        )
    };
    let settings = format!(
        "[[issuer]]\nname = \"ci\"\nissuer = \"https://ci.example.org\"\nkeys_file = {file:?}\n{}{}",
        role("reader", ""),
        role("brief", "lifetime_seconds = 2\n"),
    );
    let path = folder.path().join("serve.toml");
    std::fs::write(&path, settings).unwrap();
    let read = Config::load(Some(&path), std::iter::empty()).unwrap();
    let config = Config { issuer: read.issuer, role: read.role, ..config() };
    let service = Service::start(keystore(&["local"]), config);
    let jwt = move |subject: &str| {
        let end = UNIX_EPOCH.elapsed().unwrap().as_secs() + 60;
        let claims = json!({ "iss": "https://ci.example.org", "aud": "bulla", "sub": subject, "exp": end });
        let signed = format!("{}.{}", encode(br#"{"alg":"EdDSA"}"#), encode(claims.to_string().as_bytes()));
        format!("{signed}.{}\n", encode(key.sign(signed.as_bytes()).as_ref()))
    };
    (service, jwt)
}

#[test]
fn a_client_logs_in_once_and_again_before_its_token_expires() {
    let (service, jwt) = with_jwts();
    let logging_in = |role: &str| {
        let (jwt, read) = (jwt("job-1"), Arc::new(AtomicU32::new(0)));
        let counted = read.clone();
        let jwt = move || match counted.fetch_add(1, Ordering::Relaxed) {
            0 => Err("no file".into()),
            _ => Ok(jwt.clone()),
        };
        let provider = LoginProvider::new(builder(&service.url).build().unwrap(), role, jwt);
        assert_eq!(format!("{provider:?}"), format!("LoginProvider {{ role: {role:?}, .. }}"));
        let client = blocking(builder(&service.url).token_provider(provider));
        let error = client.permissions().unwrap_err();
        assert_eq!(format!("{error:#}"), "there is no token: no file");
        (client, read)
    };
    let (client, read) = logging_in("reader");
    for _ in 0..3 {
        assert_eq!(client.permissions().unwrap().operations, ["read"]);
    }
    assert_eq!(read.load(Ordering::Relaxed), 2, "what failed is tried again, and one login is enough");
    let (client, read) = logging_in("brief");
    while client.permissions().is_err() || read.load(Ordering::Relaxed) < 3 {}
}

#[test]
fn a_jwt_gives_a_token() {
    let (service, jwt) = with_jwts();
    let client = client(&service.url);
    let login = client.log_in("reader", &jwt("job-1")).unwrap();
    assert_eq!((login.holder.as_str(), &login.operations[..]), ("ci/job-1", &["read".to_owned()][..]));
    assert!(login.expires > SystemTime::now());
    assert!(!format!("{login:?}").contains(login.token.as_str()));
    let own = client.with_token(Token::new(&login.token).unwrap()).permissions().unwrap();
    assert_eq!(own.revocation_ids, [login.revocation_id]);
    let refused = client.log_in("reader", &jwt("person")).unwrap_err();
    assert_eq!(refused.code(), Some(&ErrorCode::Forbidden));
    assert!(refused.to_string().contains("`sub`"), "{refused}");
}

#[test]
fn tokens_are_minted_attenuated_and_revoked() {
    let keystore = keystore(&["local"]);
    let mut config = config();
    config.service.development = true;
    let service = Service::start(keystore, config);
    let open = client(&service.url);
    let grant = Grant {
        operations: vec!["sign".to_owned(), "read".to_owned()],
        keys: None,
        lifetime: Duration::from_secs(60),
        holder: None,
    };
    let minted = {
        let client = &open;
        client.create_key(&labeled("a")).unwrap();
        assert!(client.permissions().unwrap().can_mint_tokens);
        client.mint_token(&grant).unwrap()
    };
    assert!(!format!("{minted:?}").contains(minted.token.as_str()));
    let weaker = {
        let client = &open;
        let client = client.with_token(Token::new(&minted.token).unwrap());
        let authority = client.permissions().unwrap();
        assert_eq!((authority.operations.len(), authority.can_mint_tokens), (2, false));
        assert_eq!(authority.revocation_ids, std::slice::from_ref(&minted.revocation_id));
        assert_eq!(client.rotate_key("a").unwrap_err().code(), Some(&ErrorCode::Forbidden));
        let limits = Attenuation { operations: Some(vec!["read".to_owned()]), ..Attenuation::default() };
        client.attenuate_token(&limits).unwrap()
    };
    {
        let client = &open;
        let weak = client.with_token(Token::new(&weaker.token).unwrap());
        weak.key("a").unwrap();
        assert_eq!(weak.sign("a", b"").unwrap_err().code(), Some(&ErrorCode::Forbidden));
        weak.revoke_own_token().unwrap();
        assert_eq!(weak.key("a").unwrap_err().code(), Some(&ErrorCode::Forbidden));
        let strong = client.with_token(Token::new(&minted.token).unwrap());
        strong.key("a").unwrap();
        client.revoke_token(&minted.revocation_id, minted.expires).unwrap();
        assert_eq!(strong.key("a").unwrap_err().code(), Some(&ErrorCode::Forbidden));
    }
}

#[test]
fn keys_are_encapsulated_and_data_is_encrypted() {
    let service = Service::open();
    let client = client(&service.url);
    client.create_key(&of_algorithm("transport", "x-wing")).unwrap();
    let made = client.encapsulate("transport").unwrap();
    let shared = client.decapsulate(&made.key, &made.ciphertext).unwrap();
    assert_eq!((shared.len(), *shared == *made.shared_key), (32, true));
    let encrypted = client.encrypt_to_recipients(b"a secret", &["transport"], &[]).unwrap();
    assert_eq!(**client.decrypt_as_recipient(&encrypted).unwrap(), *b"a secret");
    assert!(client.decrypt_as_recipient(&encrypted[..encrypted.len() - 1]).is_err());
}

#[test]
fn a_secret_is_derived_with_the_public_key_of_a_peer() {
    let service = Service::open();
    let client = client(&service.url);
    for label in ["ours", "theirs"] {
        client.create_key(&of_algorithm(label, "ecdh-p256")).unwrap();
    }
    let [ours, theirs] = ["ours", "theirs"].map(|label| {
        let key = client.public_key(label, PublicKeyFormat::Der).unwrap();
        base64_simd::STANDARD.decode_to_vec(key.text).unwrap()
    });
    let secret = client.derive_shared_secret("ours", &theirs).unwrap();
    assert!(secret.len() == 32 && secret == client.derive_shared_secret("theirs", &ours).unwrap());
    let error = client.derive_shared_secret("ours", b"no key").unwrap_err();
    assert_eq!(error.code(), Some(&ErrorCode::InvalidPublicKey));
}

#[test]
fn keys_are_exported_and_imported() {
    let keystore = keystore(&["local"]);
    let token = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
    let service = Service::start(keystore, config());
    let settings = builder(&service.url).token(Token::new(token.expose()).unwrap());
    let client = blocking(settings);
    client.create_key(&of_algorithm("transport", "x-wing")).unwrap();
    let key = client.create_key(&NewKey { exportable: true, ..labeled("a") }).unwrap();
    let exported = client.export_key("a", Recipient::Key("transport")).unwrap();
    assert_eq!(exported.key, key.versions[0].id);
    let wrapped = KeyMaterial::Wrapped { wrapped: &exported.wrapped, recipient: "transport" };
    let copy = client.import_key(&labeled("b"), wrapped).unwrap();
    assert_eq!(copy.versions[0].public_key, key.versions[0].public_key);
    assert_eq!(copy.versions[0].origin, Origin::Imported);
    let (format, algorithm, passphrase) = (PrivateKeyFormat::Raw, Some("ed25519"), None);
    let raw = |bytes| KeyMaterial::Private { format, bytes, algorithm, passphrase };
    let version = client.import_version("b", raw(&[6; 32])).unwrap();
    assert_eq!((version.latest_version, version.versions[1].origin), (2, Origin::Imported));
    let raw = client.import_key(&labeled("c"), raw(&[7; 32])).unwrap();
    assert_eq!(raw.label.as_deref(), Some("c"));
    let pem = client.public_key("c", PublicKeyFormat::Pem).unwrap().text;
    let pem = KeyMaterial::Public { format: PublicKeyFormat::Pem, text: &pem, algorithm: None };
    let public = client.import_key(&labeled("d"), pem).unwrap();
    assert_eq!(public.versions[0].origin, Origin::PublicOnly);
    assert_eq!(public.versions[0].public_key, raw.versions[0].public_key);
}

#[test]
fn a_key_of_rsa_signs_as_the_caller_says() {
    let service = Service::open();
    let client = client(&service.url);
    client.create_key(&of_algorithm("certificates", "rsa-2048")).unwrap();
    let scheme = SignatureScheme::default();
    let schemes = [
        scheme,
        scheme.hash(HashFunction::Sha512),
        scheme.padding(RsaPadding::Pkcs1v15),
        scheme.hash(HashFunction::Sha384).padding(RsaPadding::Pss),
    ];
    for made_by in schemes {
        let made = client.sign_with("certificates", b"a message", made_by).unwrap();
        for scheme in schemes {
            let verdict = client.verify_with(&made.key, b"a message", &made.bytes, scheme).unwrap();
            assert_eq!(verdict.is_valid(), scheme == made_by, "{made_by:?} {scheme:?}");
        }
    }
}

/// A signature of a digest is one of the message.
#[test]
fn a_key_that_was_made_for_it_signs_digests_of_sha2() {
    let service = Service::open();
    let client = client(&service.url);
    let scheme = SignatureScheme::default();
    let padded = scheme.padding(RsaPadding::Pkcs1v15);
    for (algorithm, schemes) in [("ecdsa-p256", vec![scheme]), ("rsa-2048", vec![scheme, padded])] {
        let new = NewKey { signs_digests: true, ..of_algorithm(algorithm, algorithm) };
        client.create_key(&new).unwrap();
        for (hash, function) in [
            (HashFunction::Sha256, &ring::digest::SHA256),
            (HashFunction::Sha384, &ring::digest::SHA384),
            (HashFunction::Sha512, &ring::digest::SHA512),
        ] {
            let digest = ring::digest::digest(function, b"a message");
            for scheme in &schemes {
                let named = scheme.hash(hash);
                let made = client.sign_digest_with(algorithm, digest.as_ref(), *scheme).unwrap();
                let of_message = client.verify_with(&made.key, b"a message", &made.bytes, named);
                assert!(of_message.unwrap().is_valid(), "{algorithm} {named:?}");
                let verify =
                    |digest: &[u8]| client.verify_digest_with(&made.key, digest, &made.bytes, named).unwrap();
                assert!(verify(digest.as_ref()).is_valid(), "{algorithm} {named:?}");
                assert!(!verify(&vec![0; digest.as_ref().len()]).is_valid(), "{algorithm} {named:?}");
            }
        }
    }
}

#[test]
fn a_digest_of_another_length_is_not_sent() {
    // Nobody listens there: a request would fail in another way.
    let client = client("http://127.0.0.1:1");
    let scheme = SignatureScheme::default();
    for (digest, scheme) in [(&[0; 31][..], scheme), (&[0; 32], scheme.hash(HashFunction::Sha384))] {
        let errors = [
            client.sign_digest_with("a", digest, scheme).unwrap_err(),
            client.verify_digest_with("a", digest, &[0; 64], scheme).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.to_string().contains(&format!("has {} bytes", digest.len())), "{error}");
        }
    }
}

#[test]
fn a_key_that_was_not_made_for_it_signs_no_digests() {
    let service = Service::open();
    let client = client(&service.url);
    client.create_key(&of_algorithm("a", "ecdsa-p256")).unwrap();
    let refused = client.sign_digest_with("a", &[1; 32], SignatureScheme::default()).unwrap_err();
    assert_eq!((refused.kind(), refused.status()), (ErrorKind::Service, Some(400)), "{refused}");
}
