//! What clients of Vault send that its documents do not say. A running OpenBao answered the same requests.

use bulla_kms::token::{Keys, Operation, Token};
use serde_json::{Value, json};

use crate::support::{Answer, Service, config, keystore, token};
use crate::transit::{refused, sign, with_key};

/// A service with a keystore in memory, and a token that permits everything.
fn with_token() -> (Service, Token) {
    let keystore = keystore(&["local"]);
    let token = token(&keystore, "local", Keys::All, &Operation::ALL);
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
        assert_eq!((status, code.as_str()), (405, "wrong_method"), "{text}");
    }
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
