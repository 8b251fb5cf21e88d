//! What clients of Vault send that its documents do not say. A running OpenBao answered the same
//! requests.

use bulla_kms::token::{GrantedKeys, Token, TokenOperation};
use bulla_kms::{Algorithm, PublicKey};
use ring::digest::{self, digest};
use serde_json::{Value, json};

use crate::support::{Answer, Service, base64, config, from_base64, keystore, token};
use crate::transit::{refused, sign, with_key};

/// A service with a keystore in memory, and a token that permits everything.
fn with_token() -> (Service, Token) {
    let keystore = keystore(&["local"]);
    let token = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
    (Service::start(keystore, config()), token)
}

/// `bao login` stores the `id` that it finds as its token, and so do its agents and proxies.
#[test]
fn a_token_that_is_looked_up_is_in_the_answer() {
    let (service, token) = with_token();
    let answer = service.send_with(
        "GET",
        None,
        "/v1/auth/token/lookup-self",
        b"",
        &[("x-vault-token", token.expose())],
    );
    let data = answer.ok()["data"].clone();
    assert_eq!(data["id"], token.expose());
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert_eq!((&data["explicit_max_ttl"], &data["renewable"]), (&json!(0), &json!(false)));
    assert!(!data["accessor"].as_str().unwrap().is_empty());
    let by_bearer = service.get(Some(&token), "/v1/auth/token/lookup-self").ok();
    assert_eq!(by_bearer["data"]["id"], token.expose());
    // A caller whom the connection identifies has none.
    let service = Service::open();
    assert_eq!(service.get(None, "/v1/auth/token/lookup-self").ok()["data"]["id"], "");
}

#[test]
fn a_list_is_asked_for_by_true_in_any_case() {
    let service = with_key("ed25519");
    for text in ["true", "True", "TRUE", "tRue", "1", "t"] {
        let listed = service.get(None, &format!("/v1/transit/keys?list={text}")).ok();
        assert_eq!(listed["data"]["keys"], json!(["a"]), "{text}");
    }
    for text in ["?list=false", "?list=0", "?list=", "?list", "?list=maybe", ""] {
        let (status, _, code) = refused(&service.get(None, &format!("/v1/transit/keys{text}")));
        assert_eq!((status, code.as_str()), (405, "method_not_allowed"), "{text}");
    }
}

#[test]
fn a_list_is_read_in_pages() {
    let service = Service::open();
    for name in ["a", "b", "c", "d"] {
        service.post(None, &format!("/v1/transit/keys/{name}"), &json!({ "type": "ed25519" })).ok();
    }
    let listed = |method: &str, query: &str| {
        service.send(method, None, &format!("/v1/transit/keys?list=true{query}"), b"").ok()["data"]["keys"]
            .clone()
    };
    for method in ["GET", "LIST"] {
        assert_eq!(listed(method, "&limit=3"), json!(["a", "b", "c"]));
        assert_eq!(listed(method, "&after=b&limit=1"), json!(["c"]));
        assert_eq!(listed(method, "&after=bb"), json!(["c", "d"]));
        let last = service.send(method, None, "/v1/transit/keys?list=true&after=d", b"");
        assert_eq!((last.status, last.json()), (404, json!({ "errors": [] })));
        for limit in ["0", "-1", ""] {
            assert_eq!(listed(method, &format!("&limit={limit}")), json!(["a", "b", "c", "d"]), "{limit}");
        }
        let wrong = service.send(method, None, "/v1/transit/keys?list=true&limit=x", b"");
        assert_eq!(refused(&wrong).0, 400);
    }
}

#[test]
fn a_list_of_values_is_no_object() {
    let service = with_key("ed25519");
    for path in ["/v1/transit/sign/a", "/v1/transit/verify/a"] {
        let body = json!({ "batch_input": [["aGVsbG8="]] });
        assert_eq!(refused(&service.post(None, path, &body)).0, 400, "{path}");
    }
    for (path, body) in [
        ("/api/v1/keys", json!(["ed25519", null, null, null, null, null, null])),
        ("/api/v1/sign", json!({ "key": "a", "items": [["a", "aGVsbG8="]] })),
        ("/api/v1/verify", json!({ "key": "a", "items": [["a", "aGVsbG8=", "aaaa"]] })),
    ] {
        let (status, code) = service.post(None, path, &body).error();
        assert_eq!((status, code.as_str()), (400, "malformed_request"), "{path}");
    }
}

#[test]
fn random_bytes_and_hashes_need_no_key() {
    let service = Service::open();
    let random = |path: &str, body: &Value| {
        let made = service.post(None, &format!("/v1/transit/random{path}"), body).ok();
        made["data"]["random_bytes"].as_str().unwrap().to_owned()
    };
    let bytes = random("/platform/48", &json!({ "format": "hex", "bytes": 3 }));
    assert_eq!(hex::decode(&bytes).unwrap().len(), 48);
    assert_ne!(random("", &json!({})), random("", &json!({})));
    let digest = |path: &str, body: &Value| {
        service.post(None, &format!("/v1/transit/hash{path}"), body).ok()["data"]["sum"].clone()
    };
    // FIPS 180-4 and FIPS 202: the digests of "abc", and BLAKE3 of it.
    let known = [
        ("sha2-256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("sha3-256", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        ("blake3", "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
    ];
    for (name, expected) in known {
        assert_eq!(digest(&format!("/{name}"), &json!({ "input": "YWJj" })), expected);
        assert_eq!(digest("", &json!({ "input": "YWJj", "algorithm": name })), expected);
    }
    let long = vec![7; 1 << 20];
    let body = json!({ "input": base64(&long), "algorithm": "blake3" });
    assert_eq!(digest("", &body), bulla_blake3::hash(&long).to_hex().as_str());
}

/// `bao status` asks for it, also of a sealed service.
#[test]
fn one_node_has_no_leader() {
    let service = with_key("ed25519");
    let leader = service.get(None, "/v1/sys/leader").ok();
    assert_eq!((&leader["ha_enabled"], &leader["is_self"]), (&json!(false), &json!(false)));
    assert_eq!(service.send("PUT", None, "/v1/sys/seal", b"{}").status, 204);
    assert_eq!(service.get(None, "/v1/sys/leader").ok(), leader);
}

/// `base64 FILE` writes lines of 76 characters.
#[test]
fn base64_may_have_line_breaks() {
    let service = with_key("ed25519");
    let broken = "aGVsbG8sIHdvcmxk\nIQ==\r\n";
    let signature =
        |input: &str| sign(&service, &json!({ "input": input })).ok()["data"]["signature"].clone();
    let signed = signature(broken);
    assert_eq!(signed, signature("aGVsbG8sIHdvcmxkIQ=="));
    let (head, tail) = signed.as_str().unwrap().split_at(40);
    let body = json!({ "input": broken, "signature": format!("{head}\n{tail}\n") });
    assert_eq!(service.post(None, "/v1/transit/verify/a", &body).ok()["data"]["valid"], true);
    let items = json!({ "batch_input": [{ "input": broken }, { "input": "aGVs bG8=" }] });
    let results = sign(&service, &items).ok()["data"]["batch_results"].clone();
    assert_eq!(results[0]["signature"], signed);
    assert_eq!(results[1]["error"], "unable to decode input as base64");
    // bulla's own API has one text for each value.
    let (status, code) = service.post(None, "/api/v1/keys/a/sign", &json!({ "message": broken })).error();
    assert_eq!((status, code.as_str()), (400, "malformed_request"));
}

/// `bao write -f` sends `null`.
#[test]
fn null_counts_as_nothing() {
    let service = with_key("ed25519");
    let send = |path: &str, body: &str| service.send("PUT", None, path, body.as_bytes());
    for (rotations, body) in [(2, "null"), (3, " null\n"), (4, ""), (5, "{}")] {
        assert_eq!(send("/v1/transit/keys/a/rotate", body).ok()["data"]["latest_version"], rotations);
        send("/v1/transit/keys/a/config", body).ok();
        let said = |answer: &Answer| refused(answer).1;
        assert_eq!(said(&send("/v1/transit/keys/a/trim", body)), "missing min_available_version");
        assert_eq!(said(&send("/v1/transit/sign/a", body)), "missing input");
        assert_eq!(said(&send("/v1/transit/verify/a", body)), "no 'signature' was given to verify");
    }
    for body in ["nullx", "[]", "1", "\"\"", "true"] {
        assert_eq!(refused(&send("/v1/transit/keys/a/config", body)).0, 400, "{body}");
    }
    let body = json!({ "batch_input": [null, { "input": "aGVsbG8=" }] });
    let results = sign(&service, &body).ok()["data"]["batch_results"].clone();
    assert_eq!((&results[0]["error"], &results[0]["key_version"]), (&json!("missing input"), &json!(0)));
    assert_eq!(results[1]["key_version"], 5);
    let verify = |body: &Value| refused(&service.post(None, "/v1/transit/verify/a", body)).1;
    assert_eq!(verify(&json!({ "batch_input": [null] })), "no 'signature' was given to verify");
    let some = json!({ "batch_input": [null, { "input": "", "signature": results[1]["signature"] }] });
    assert_eq!(verify(&some), "some elements of batch_input are missing 'signature'");
    let (status, words, _) = refused(&sign(&service, &json!({ "batch_input": null })));
    assert_eq!((status, words.as_str()), (400, "missing input"));
}

/// What cosign and Tekton send: the digest, and for ECDSA a parameter of RSA.
#[test]
fn a_p256_key_of_a_client_signs_digests() {
    let service = with_key("ecdsa-p256");
    let message = b"a message";
    let post = |path: &str, body: &Value| service.post(None, &format!("/v1/transit/{path}"), body);
    let hashes =
        [("sha2-256", &digest::SHA256), ("sha2-384", &digest::SHA384), ("sha2-512", &digest::SHA512)];
    let signed = hashes.map(|(hash, function)| {
        let input = base64(digest(function, message).as_ref());
        let mut body = json!({ "input": input, "key_version": "0", "prehashed": true, "signature_algorithm": "pkcs1v15" });
        let signature = post(&format!("sign/a/{hash}"), &body).ok()["data"]["signature"].clone();
        body["signature"] = signature.clone();
        assert_eq!(post(&format!("verify/a/{hash}"), &body).ok()["data"]["valid"], true);
        // The message itself, which the service hashes.
        let plain = json!({ "input": base64(message), "hash_algorithm": hash, "signature": signature });
        assert_eq!(post("verify/a", &plain).ok()["data"]["valid"], true);
        let hashed = post("sign/a", &plain).ok()["data"]["signature"].clone();
        body["signature"] = hashed;
        assert_eq!(post(&format!("verify/a/{hash}"), &body).ok()["data"]["valid"], true);
        let item = json!({ "input": body["input"], "signature": signature });
        let other = json!({ "input": base64(&[7; 64][..function.output_len()]), "signature": signature });
        let batch = json!({ "prehashed": true, "batch_input": [item, other] });
        let verified = post(&format!("verify/a/{hash}"), &batch).ok()["data"]["batch_results"].clone();
        assert_eq!((&verified[0]["valid"], &verified[1]["valid"]), (&json!(true), &json!(false)), "{hash}");
        let results = post(&format!("sign/a/{hash}"), &batch).ok()["data"]["batch_results"].clone();
        assert!(results[0]["signature"].as_str().unwrap().starts_with("vault:v1:"));
        let short = post(&format!("sign/a/{hash}"), &json!({ "input": base64(&[7; 31]), "prehashed": true }));
        assert_eq!(refused(&short).2, "malformed_request");
        signature
    });
    let key = service.get(None, "/api/v1/keys/a").ok();
    assert_eq!(key["signs_digests"], true);
    let public = from_base64(&key["versions"][0]["public_key"]);
    let public = PublicKey::from_bytes(Algorithm::EcdsaP256, &public).unwrap();
    let der = from_base64(&signed[0].as_str().unwrap().strip_prefix("vault:v1:").unwrap().into());
    let raw = p256::ecdsa::Signature::from_der(&der).unwrap().normalize_s().to_bytes();
    assert!(public.verify(message, &raw).is_valid(), "it is a signature of the message");
    // Such a key signs no statements, whoever asks.
    let statement = json!({ "kind": "message", "digest": base64(&[7; 32]), "size": 1 });
    let key_usage_mismatch = (400, "key_usage_mismatch".to_owned());
    assert_eq!(service.post(None, "/api/v1/keys/a/sign-statement", &statement).error(), key_usage_mismatch);
    assert_eq!(service.post(None, "/api/v1/keys/a/attest", &json!({})).error(), key_usage_mismatch);
}

#[test]
fn a_p256_key_of_our_own_signs_digests_only_if_it_was_asked_for() {
    let service = Service::open();
    let new = json!({ "label": "a", "algorithm": "ecdsa-p256" });
    assert!(service.post(None, "/api/v1/keys", &new).ok().get("signs_digests").is_none());
    let body = json!({ "input": base64(&[7; 32]), "prehashed": true });
    assert_eq!(refused(&sign(&service, &body)).2, "key_usage_mismatch");
    for hash in ["sha2-256", "sha2-384"] {
        sign(&service, &json!({ "input": "", "hash_algorithm": hash })).ok();
    }
    service.post(None, "/api/v1/keys/a/attest", &json!({})).ok();
    let new = json!({ "label": "b", "algorithm": "ecdsa-p256", "signs_digests": true });
    assert_eq!(service.post(None, "/api/v1/keys", &new).ok()["signs_digests"], true);
    service.post(None, "/v1/transit/sign/b", &body).ok();
    let new = json!({ "label": "c", "signs_digests": true });
    assert_eq!(service.post(None, "/api/v1/keys", &new).error(), (400, "invalid_argument".to_owned()));
}

/// Signers of TUF pin the version with which their metadata begins.
#[test]
fn a_pinned_version_signs_after_a_rotation() {
    let service = with_key("ed25519");
    let version = |number: u32| sign(&service, &json!({ "input": "", "key_version": number }));
    let config = |body: &Value| service.post(None, "/v1/transit/keys/a/config", body);
    for _ in 0..3 {
        service.post(None, "/v1/transit/keys/a/rotate", &json!({})).ok();
    }
    for number in [1, 2, 3, 4] {
        let signed = version(number).ok()["data"].clone();
        assert_eq!(signed["key_version"], number);
        let body = json!({ "input": "", "signature": signed["signature"] });
        assert_eq!(service.post(None, "/v1/transit/verify/a", &body).ok()["data"]["valid"], true);
        let batch = json!({ "batch_input": [{ "input": "" }], "key_version": number });
        assert_eq!(sign(&service, &batch).ok()["data"]["batch_results"][0]["signature"], signed["signature"]);
    }
    assert_eq!(config(&json!({ "min_encryption_version": 3 })).ok()["data"]["min_encryption_version"], 3);
    let too_old = "requested version for signing is less than the minimum encryption key version";
    assert_eq!((refused(&version(2)).1.as_str(), version(3).status), (too_old, 200));
    let order = "cannot set min encryption/decryption values; min encryption version of 3 must be greater than or equal \
                 to min decryption version of 4";
    assert_eq!(refused(&config(&json!({ "min_decryption_version": 4 }))).1, order);
    config(&json!({ "min_decryption_version": 2 })).ok();
    assert_eq!(refused(&config(&json!({ "min_encryption_version": 1 }))).0, 400);
    config(&json!({ "min_encryption_version": 0 })).ok();
    assert_eq!((refused(&version(1)).1.as_str(), version(2).status), (too_old, 200));
    // What vouches for the key by statements of bulla is the latest version alone.
    let attested = service.post(None, "/api/v1/keys/a/attest", &json!({})).ok();
    assert_eq!(attested["attestation"]["minimum_signing_version"], 0);
    let audited = service.get(None, "/api/v1/keys/a").ok();
    assert_eq!(audited["minimum_signing_version"], 0);
}

#[test]
fn of_our_own_keys_only_the_newest_version_signs() {
    let service = Service::open();
    service.post(None, "/api/v1/keys", &json!({ "label": "a" })).ok();
    service.post(None, "/api/v1/keys/a/rotate", &json!({})).ok();
    let old = sign(&service, &json!({ "input": "", "key_version": 1 }));
    assert_eq!((refused(&old).0, refused(&old).2.as_str()), (400, "not_latest_version"));
    let key = service.get(None, "/v1/transit/keys/a").ok();
    assert_eq!(
        key["data"]["min_encryption_version"], 2,
        "as in Vault a key whose oldest version that signs is the newest"
    );
    let config = json!({ "min_encryption_version": 1 });
    let warned = service.post(None, "/v1/transit/keys/a/config", &config).ok();
    assert_eq!(warned["warnings"].as_array().unwrap().len(), 1);
    assert_eq!(warned["data"]["min_encryption_version"], 2);
}
