//! That the check of answers against the description notices what is wrong.

use serde_json::{Value, json};

use crate::description::{description, operations};
use crate::support::Service;
use crate::support::conforms::{Answered, check};

fn answered(method: &str, path: &str, status: u16, body: &Value) -> Result<(), String> {
    let content_type = Some("application/json");
    check(&Answered { method, path, status, content_type, body: body.to_string().as_bytes() })
}

const SIGN: &str = "/api/v1/keys/a%2Fb/sign";

#[test]
fn a_field_that_is_missing_unknown_or_of_another_type_is_noticed() {
    let good = json!({ "key": "local/files/ed25519/x/v1", "version": 1, "signature": "AA==" });
    answered("POST", SIGN, 200, &good).unwrap();
    for field in ["key", "version", "signature"] {
        let mut less = good.clone();
        less.as_object_mut().unwrap().remove(field);
        assert!(answered("POST", SIGN, 200, &less).unwrap_err().contains(&format!("no field {field}")));
        let mut other = good.clone();
        other[field] = json!([]);
        assert!(answered("POST", SIGN, 200, &other).unwrap_err().contains(field));
    }
    let mut more = good.clone();
    more["extra"] = json!(1);
    assert!(answered("POST", SIGN, 200, &more).unwrap_err().contains("extra"));
    assert!(answered("POST", SIGN, 200, &json!([good])).is_err());
}

#[test]
fn items_of_a_batch_fit_exactly_one_form() {
    let signed = json!({ "key": "a", "version": 1, "signature": "AA==" });
    let failed = json!({ "error": { "code": "a", "message": "b", "retryable": false } });
    let batch = |results: &[&Value]| answered("POST", "/api/v1/sign", 200, &json!({ "results": results }));
    batch(&[&signed, &failed]).unwrap();
    let mut both = signed.clone();
    both["error"] = failed["error"].clone();
    assert!(batch(&[&signed, &both]).unwrap_err().contains("results[1]"));
}

#[test]
fn errors_have_the_form_of_their_path() {
    let error = json!({ "code": "a", "message": "b", "retryable": false });
    let vault = json!({ "errors": ["b"], "code": "a", "message": "b", "retryable": false });
    for (path, right, wrong) in [
        (SIGN, &error, &vault),
        ("/api/v1/nowhere", &error, &vault),
        ("/v1/transit/sign/a", &vault, &error),
        ("/v1/nowhere", &vault, &error),
    ] {
        for status in [400, 403, 429, 503] {
            answered("POST", path, status, right).unwrap_or_else(|wrong| panic!("{path} {status}: {wrong}"));
            assert!(answered("POST", path, status, wrong).is_err(), "{path} {status}");
        }
    }
}

#[test]
fn a_success_that_is_not_described_is_noticed() {
    assert!(answered("POST", "/api/v1/nowhere", 200, &json!({})).is_err());
    assert!(answered("PUT", SIGN, 200, &json!({})).is_err());
    let text =
        Answered { method: "POST", path: SIGN, status: 200, content_type: Some("text/plain"), body: b"" };
    assert!(check(&text).unwrap_err().contains("text/plain"));
    let body = Answered {
        method: "DELETE",
        path: "/v1/transit/keys/a",
        status: 204,
        content_type: None,
        body: b"{}",
    };
    assert!(check(&body).is_err());
    assert!(check(&Answered { body: b"", ..body }).is_ok());
}

/// The libraries have answers of their own, which are plain text. None of them reaches a caller.
#[test]
fn a_path_or_a_query_that_cannot_be_read_gets_an_error_of_the_service() {
    let service = Service::open();
    for described in operations(&description()) {
        let parts = described.path.split('/').map(|part| if part.starts_with('{') { "%FF" } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        let what = format!("{} {path}", described.method);
        if path.contains("%FF") {
            assert!(service.send(&described.method, None, &path, b"{}").status >= 400, "{what}");
        }
        // Whatever it answers is described: this is checked wherever a request is sent.
        for parameter in described.operation["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] == "query" {
                let name = parameter["name"].as_str().unwrap();
                service.send(&described.method, None, &format!("{path}?{name}=%FF&{name}=-1"), b"{}");
            }
        }
    }
}
