//! The attacks on JWTs of the public lists (RFC 8725, the JWT attack playbook, the CVEs of
//! libraries): each is refused.

use std::io::ErrorKind;
use std::net::TcpListener;

use bulla_server::{IssuerConfig, RoleConfig};
use ring::hmac;
use serde_json::{Value, json};

use crate::login::{
    ISSUER, SigningKey, Tested, base64url, changed, claims, create, issuer, keys, log_in, now, role,
};
use crate::support::{Answer, Service, config, keystore, name};

/// A login that tells the caller nothing but that it is refused.
#[track_caller]
fn refused_silently(answer: &Answer, attack: &str) {
    assert_eq!(answer.error(), (403, "forbidden".to_owned()), "{attack}");
    let told = "the login is refused: the service's log says why";
    assert_eq!(answer.json()["message"], told, "{attack}");
}

/// A JWT with exactly these texts, signed by the issuer.
fn signed(key: &SigningKey, header: &str, payload: &str) -> String {
    let signed = format!("{}.{}", base64url(header.as_bytes()), base64url(payload.as_bytes()));
    let signature = base64url(&key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// A signature of ECDSA as ASN.1 has it, from one as JWTs have it.
fn der(signature: &[u8]) -> Vec<u8> {
    let integer = |bytes: &[u8]| {
        let digits: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
        let sign = digits.first().filter(|byte| **byte >= 0x80).map(|_| 0);
        let all: Vec<u8> = sign.into_iter().chain(digits).collect();
        [&[2, all.len() as u8], all.as_slice()].concat()
    };
    let both = [integer(&signature[..32]), integer(&signature[32..])].concat();
    [&[0x30, both.len() as u8], both.as_slice()].concat()
}

/// The order of P-256.
const P256_ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
    0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// The order of Ed25519's group, with the least byte first.
const ED25519_ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

#[test]
fn signatures_in_another_form_or_of_no_key_are_refused() {
    let (key, edwards) = (SigningKey::p256(), SigningKey::ed25519());
    let tested = Tested::new(&keys(&[key.jwk("1"), edwards.jwk("2")]));
    let good = key.jwt("1", &claims());
    tested.login(&good).ok();
    let (text, encoded) = good.rsplit_once('.').unwrap();
    let signature = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(encoded).unwrap();
    let (r, s) = signature.split_at(32);
    let mut one = [0; 32];
    one[31] = 1;
    let zero = [0; 32];
    let psychic = [
        ("r = s = 0", [zero, zero]),
        ("r = 0", [zero, s.try_into().unwrap()]),
        ("s = 0", [r.try_into().unwrap(), zero]),
        ("r = s = 1", [one, one]),
        ("r = s = the order", [P256_ORDER, P256_ORDER]),
        ("r = the order, s = 1", [P256_ORDER, one]),
        ("r and s change places", [s.try_into().unwrap(), r.try_into().unwrap()]),
    ];
    for (attack, parts) in psychic {
        refused_silently(&tested.login(&format!("{text}.{}", base64url(&parts.concat()))), attack);
    }
    let longer = [&signature[..], &[0]].concat();
    for (attack, other) in
        [("DER", der(&signature)), ("DER of zeros", vec![0x30, 6, 2, 1, 0, 2, 1, 0]), ("a byte more", longer)]
    {
        refused_silently(&tested.login(&format!("{text}.{}", base64url(&other))), attack);
    }
    // 64 bytes leave four bits of their last letter unused, and only zeros are canonical there.
    let last = good.chars().next_back().unwrap();
    let other = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let next = other.chars().nth(other.find(last).unwrap() + 1).unwrap();
    refused_silently(&tested.login(&format!("{}{next}", &good[..good.len() - 1])), "unused bits");
    for (attack, jwt) in [
        ("the standard alphabet", format!("{text}.{}", encoded.replace('-', "+").replace('_', "/") + "=")),
        ("a line break", format!("{text}.{}\n{}", &encoded[..10], &encoded[10..])),
        ("a byte of zero", format!("{good}\0")),
        ("the scheme of the header", format!("Bearer {good}")),
    ] {
        refused_silently(&tested.login(&jwt), attack);
    }
    let good = edwards.jwt("2", &claims());
    tested.login(&good).ok();
    let (text, encoded) = good.rsplit_once('.').unwrap();
    let mut signature = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(encoded).unwrap();
    let mut carry = 0;
    for (byte, more) in signature[32..].iter_mut().zip(ED25519_ORDER) {
        let sum = u16::from(*byte) + u16::from(more) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    refused_silently(&tested.login(&format!("{text}.{}", base64url(&signature))), "S plus the order");
    for zeros in [[0; 64], {
        let mut one = [0; 64];
        one[0] = 1;
        one
    }] {
        refused_silently(&tested.login(&format!("{text}.{}", base64url(&zeros))), "a neutral signature");
    }
}

#[test]
fn no_spelling_of_none_and_no_public_key_as_a_secret_is_accepted() {
    let key = SigningKey::p256();
    let tested = Tested::new(&keys(&[key.jwk("1")]));
    let payload = claims().to_string();
    for none in ["none", "None", "NONE", "nOnE", " none", "none ", "none\0", "\u{ff4e}one", "", "null"] {
        let header = json!({ "alg": none, "kid": "1" }).to_string();
        let unsigned = format!("{}.{}.", base64url(header.as_bytes()), base64url(payload.as_bytes()));
        refused_silently(&tested.login(&unsigned), none);
        refused_silently(&tested.login(&signed(&key, &header, &payload)), none);
    }
    for alg in ["null", "[]", "[\"none\"]", "[\"ES256\"]", "0", "{}", "true"] {
        let header = format!(r#"{{"alg":{alg},"kid":"1"}}"#);
        refused_silently(&tested.login(&signed(&key, &header, &payload)), alg);
    }
    // The public key in each form in which it is known.
    let spki = [
        &[
            0x30, 0x59, 0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce,
            0x3d, 3, 1,
        ][..],
        &[7, 3, 0x42, 0],
        key.public(),
    ]
    .concat();
    let body = base64_simd::STANDARD.encode_to_string(&spki);
    let pem =
        format!("-----BEGIN PUBLIC KEY-----\n{}\n{}\n-----END PUBLIC KEY-----", &body[..64], &body[64..]);
    let secrets = [
        key.public().to_vec(),
        spki,
        pem.clone().into_bytes(),
        format!("{pem}\n").into_bytes(),
        key.jwk("1").to_string().into_bytes(),
        keys(&[key.jwk("1")]).to_string().into_bytes(),
    ];
    for (algorithm, name) in
        [(hmac::HMAC_SHA256, "HS256"), (hmac::HMAC_SHA384, "HS384"), (hmac::HMAC_SHA512, "HS512")]
    {
        for secret in &secrets {
            let header = json!({ "alg": name, "kid": "1", "typ": "JWT" }).to_string();
            let text = format!("{}.{}", base64url(header.as_bytes()), base64url(payload.as_bytes()));
            let tag = hmac::sign(&hmac::Key::new(algorithm, secret), text.as_bytes());
            refused_silently(&tested.login(&format!("{text}.{}", base64url(tag.as_ref()))), name);
        }
    }
}

#[test]
fn what_readers_understand_differently_is_refused_although_the_issuer_signed_it() {
    let key = SigningKey::p256();
    let tested = Tested::new(&keys(&[key.jwk("1")]));
    let (header, payload) = (r#"{"alg":"ES256","kid":"1"}"#, claims().to_string());
    tested.login(&signed(&key, header, &payload)).ok();
    for kind in ["jwt", "JOSE", "at+jwt", "application/at+JWT"] {
        let header = json!({ "alg": "ES256", "kid": "1", "typ": kind }).to_string();
        tested.login(&signed(&key, &header, &payload)).ok();
    }
    // Each claim that counts, first with what an attacker wants, and last.
    for (claim, value) in [
        ("sub", json!("repo:evil/app")),
        ("aud", json!("other")),
        ("iss", json!("https://evil.example.org")),
        ("exp", json!(1)),
        ("nbf", json!(now() + 4000)),
        ("ref_protected", json!(false)),
        ("other", json!(1)),
    ] {
        let mut whole = claims();
        whole["other"] = json!(2);
        let rest = &whole.to_string()[1..];
        let first = format!("{{\"{claim}\":{value},{rest}");
        let last = format!("{{{},\"{claim}\":{value}}}", &rest[..rest.len() - 1]);
        // The same name in other letters of JSON.
        let escaped = first.replacen(claim, &format!("\\u{:04x}{}", claim.as_bytes()[0], &claim[1..]), 1);
        for text in [first, last, escaped] {
            refused_silently(&tested.login(&signed(&key, header, &text)), &text);
        }
    }
    let nested = payload.replacen('{', r#"{"nested":[{"a":1,"a":2}],"#, 1);
    refused_silently(&tested.login(&signed(&key, header, &nested)), "a member twice in an object");
    for other in [
        r#"{"alg":"ES256","kid":"1","kid":"1"}"#,
        r#"{"alg":"ES256","kid":"1","alg":"ES256"}"#,
        r#"{"alg":"ES256","kid":"1","x":1,"x":2}"#,
        r#"{"alg":"ES256","kid":"1","x":{"y":1,"y":2}}"#,
        r#"{"alg":"ES256","kid":"1","b64":false}"#,
        r#"{"alg":"ES256","kid":"1","b64":false,"crit":["b64"]}"#,
        r#"{"alg":"ES256","kid":"1","b64":true}"#,
        r#"{"alg":"ES256","kid":"1","cty":"JWT"}"#,
        r#"{"alg":"ES256","kid":"1","zip":"DEF"}"#,
        r#"{"alg":"ES256","kid":"1","enc":"A256GCM"}"#,
        r#"{"alg":"ES256","kid":"1","typ":"logout+jwt"}"#,
        r#"{"alg":"ES256","kid":"1","typ":"application/secevent+jwt"}"#,
        r#"{"alg":"ES256","kid":"1","typ":"text/JWT"}"#,
        r#"{"alg":"ES256","kid":["1"]}"#,
        r#"{"alg":"ES256","kid":1}"#,
    ] {
        refused_silently(&tested.login(&signed(&key, other, &payload)), other);
    }
}

#[test]
fn a_jwt_in_a_jwt_and_forms_that_are_not_the_compact_one_are_refused() {
    let key = SigningKey::p256();
    let tested = Tested::new(&keys(&[key.jwk("1")]));
    let (header, payload) = (r#"{"alg":"ES256","kid":"1"}"#, claims().to_string());
    let inner = signed(&key, header, &payload);
    refused_silently(
        &tested.login(&signed(&key, r#"{"alg":"ES256","kid":"1","cty":"JWT"}"#, &inner)),
        "nested",
    );
    refused_silently(&tested.login(&signed(&key, header, &inner)), "nested without a word");
    let [first, second, third] = inner.split('.').collect::<Vec<_>>()[..] else { panic!("{inner}") };
    for (form, text) in [
        ("JSON", json!({ "payload": second, "protected": first, "signature": third }).to_string()),
        ("a list", json!([inner]).to_string()),
        (
            "a JWE",
            format!(
                "{}.{second}.{second}.{second}.{third}",
                base64url(br#"{"alg":"ECDH-ES","enc":"A128GCM"}"#)
            ),
        ),
        ("a JWE with the header of a JWT", format!("{first}.{second}.{second}.{second}.{third}")),
        (
            "passwords that take long",
            format!(
                "{}.{second}.{second}.{second}.{third}",
                base64url(br#"{"alg":"PBES2-HS256+A128KW","p2c":2147483647,"enc":"A128GCM"}"#)
            ),
        ),
        ("an empty header", format!(".{second}.{third}")),
        ("dots", "..".to_owned()),
    ] {
        refused_silently(&tested.login(&text), form);
    }
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(1000), "]".repeat(1000));
    refused_silently(&tested.login(&signed(&key, header, &deep)), "1,000 lists in each other");
    refused_silently(&tested.login(&signed(&key, &deep, &payload)), "a header of 1,000 lists");
    let huge = signed(&key, header, &changed("x", json!("x".repeat(30 << 10))).to_string());
    assert_eq!(tested.login(&huge).error().0, 413);
}

#[test]
fn claims_of_another_type_or_time_are_refused() {
    let key = SigningKey::p256();
    let tested = Tested::new(&keys(&[key.jwk("1")]));
    // A fraction of a second is a time.
    tested.login(&key.jwt("1", &changed("exp", json!(now() as f64 + 60.5)))).ok();
    let far = now() + 4000;
    let texts = ["exp", "nbf", "iat"].map(|claim| changed(claim, json!((now() + 60).to_string())));
    let lists = ["exp", "nbf", "iat"].map(|claim| changed(claim, json!([now() + 60])));
    let objects = ["exp", "nbf", "iat", "sub", "aud", "iss"].map(|claim| changed(claim, json!({ "a": 1 })));
    let numbers = ["sub", "aud", "iss"].map(|claim| changed(claim, json!(1)));
    let booleans = ["exp", "nbf", "iat", "sub", "aud", "iss"].map(|claim| changed(claim, json!(true)));
    let nothing = ["exp", "sub", "aud", "iss"].map(|claim| changed(claim, Value::Null));
    let lists_of_texts =
        [changed("sub", json!(["repo:acme/app:ref:refs/tags/v1"])), changed("iss", json!([ISSUER, "x"]))];
    let others = [
        changed("exp", json!(-1)),
        changed("exp", json!(0)),
        changed("exp", json!(1e300)),
        changed("exp", json!(u64::MAX)),
        changed("exp", json!(253_370_764_801_u64)),
        changed("exp", json!(now() as f64 - 6.5)),
        changed("nbf", json!(far)),
        changed("nbf", json!(u64::MAX)),
        changed("nbf", json!(1e300)),
        changed("nbf", json!(-1)),
        changed("iat", json!(far)),
        changed("iat", json!(1e300)),
        changed("aud", json!([])),
        changed("aud", json!(["bulla", 1])),
        changed("aud", json!(["Bulla", "bulla ", "bulla.evil", ""])),
        changed("aud", json!("bulla,other")),
        changed("iss", json!(ISSUER.to_uppercase())),
        changed("iss", json!(format!("{ISSUER}\0"))),
        changed("sub", json!("Repo:acme/app:ref:refs/tags/v1")),
        changed("sub", json!("repo:acme/app:ref:refs\u{2215}tags/v1")),
        changed("ref_protected", json!("TRUE")),
        changed("ref_protected", json!({ "true": true })),
    ];
    let all = texts.into_iter().chain(lists).chain(objects).chain(numbers).chain(booleans).chain(nothing);
    for claims in all.chain(lists_of_texts).chain(others) {
        assert_eq!(tested.login(&key.jwt("1", &claims)).error(), (403, "forbidden".to_owned()), "{claims}");
    }
    // A number that is none in JSON, or in no type.
    for number in ["1e999", "0x7fffffff", "NaN", "Infinity", "+9999999999", "09999999999"] {
        let payload = claims().to_string().replacen(&(now() + 300).to_string(), number, 1);
        if payload.contains(number) {
            let header = r#"{"alg":"ES256","kid":"1"}"#;
            assert_eq!(tested.login(&signed(&key, header, &payload)).error().0, 403, "{number}");
        }
    }
}

#[test]
fn no_name_of_a_key_leads_anywhere_and_no_url_of_a_header_is_fetched() {
    let (key, stranger) = (SigningKey::p256(), SigningKey::p256());
    let tested = Tested::new(&keys(&[key.jwk("1")]));
    let long = "1".repeat(2000);
    let names = [
        "../../../../dev/null",
        "/dev/null",
        "/proc/self/environ",
        "1\0",
        "1 ",
        " 1",
        "",
        "1' OR '1'='1",
        "|id",
        "%31",
        "keys.json",
        "http://127.0.0.1/",
        &long,
    ];
    for name in names {
        refused_silently(&tested.login(&key.jwt(name, &claims())), name);
        refused_silently(&tested.login(&stranger.jwt(name, &claims())), name);
        // An empty file and a file of zeros, as secrets.
        let header = base64url(json!({ "alg": "HS256", "kid": name }).to_string().as_bytes());
        let text = format!("{header}.{}", base64url(claims().to_string().as_bytes()));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b""), text.as_bytes());
        refused_silently(&tested.login(&format!("{text}.{}", base64url(tag.as_ref()))), name);
    }
    let attacker = TcpListener::bind("127.0.0.1:0").unwrap();
    attacker.set_nonblocking(true).unwrap();
    let url = format!("http://{}/keys", attacker.local_addr().unwrap());
    let certificate = rcgen::generate_simple_self_signed(["ci.example.org".to_owned()]).unwrap();
    let der = base64_simd::STANDARD.encode_to_string(certificate.cert.der());
    let members = [
        ("jku", json!(url)),
        ("x5u", json!(url)),
        ("x5c", json!([der])),
        ("x5t", json!("AAAA")),
        ("jwk", stranger.jwk("1")),
        ("url", json!(url)),
        ("iss", json!(url)),
    ];
    for (member, value) in members {
        let header = json!({ "alg": "ES256", "kid": "1", "typ": "JWT", member: value });
        refused_silently(&tested.login(&stranger.jwt_with(&header.to_string(), &claims())), member);
        let unnamed = json!({ "alg": "ES256", member: value });
        refused_silently(&tested.login(&stranger.jwt_with(&unnamed.to_string(), &claims())), member);
        // Issuers send some of these, and they change nothing.
        tested.login(&key.jwt_with(&header.to_string(), &claims())).ok();
    }
    let claimed = changed("iss", json!(url));
    assert_eq!(tested.login(&stranger.jwt("1", &claimed)).error().0, 403);
    assert_eq!(attacker.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "somebody asked the attacker");
}

#[test]
fn a_jwt_of_one_issuer_is_none_of_another() {
    let (first, second) = (SigningKey::p256(), SigningKey::p256());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, key: &SigningKey| {
        let file = folder.path().join(name);
        std::fs::write(&file, keys(&[key.jwk("1")]).to_string()).unwrap();
        Some(file)
    };
    let other = "https://other.example.org";
    let mut config = config();
    config.issuer = vec![
        IssuerConfig { keys_file: file("first", &first), ..issuer() },
        IssuerConfig {
            name: name("other"),
            issuer: other.to_owned(),
            keys_file: file("second", &second),
            ..issuer()
        },
    ];
    config.role = vec![role(), RoleConfig { name: name("deploy"), issuer: name("other"), ..role() }];
    let keystore = keystore(&[]);
    create(&keystore, "release");
    let service = Service::start(keystore, config);
    let jwt = |key: &SigningKey, issuer: &str| key.jwt("1", &changed("iss", json!(issuer)));
    log_in(&service, "release", &jwt(&first, ISSUER)).ok();
    log_in(&service, "deploy", &jwt(&second, other)).ok();
    for (role, jwt) in [
        ("deploy", jwt(&first, ISSUER)),
        ("deploy", jwt(&first, other)),
        ("release", jwt(&second, other)),
        ("release", jwt(&second, ISSUER)),
    ] {
        assert_eq!(log_in(&service, role, &jwt).error().0, 403, "{role}");
    }
}
