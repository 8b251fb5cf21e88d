//! The description is complete, committed, and what the service does.

use std::collections::BTreeSet;

use bulla_kms::token::TokenOperation;
use serde_json::{Value, json};

use crate::support::Service;
use crate::support::conforms::{Answered, check};

/// An operation of the description.
pub(crate) struct Described {
    pub(crate) path: String,
    pub(crate) method: String,
    pub(crate) operation: Value,
}

/// All operations.
pub(crate) fn operations(description: &Value) -> Vec<Described> {
    let mut operations = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(["get", "put", "post", "delete", "patch"].contains(&method.as_str()), "{path}: {method}");
            let (path, method, operation) = (path.clone(), method.to_uppercase(), operation.clone());
            operations.push(Described { path, method, operation });
        }
    }
    operations
}

pub(crate) fn description() -> Value {
    serde_json::from_str(&bulla_server::openapi()).unwrap()
}

#[test]
fn the_committed_description_is_the_one_of_this_program() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/openapi.json");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let current = bulla_server::openapi();
    let is_same = committed == current;
    let fresh = concat!(env!("CARGO_TARGET_TMPDIR"), "/openapi.json");
    if !is_same {
        std::fs::write(fresh, current).unwrap();
    }
    assert!(
        is_same,
        "spec/openapi.json is out of date: take {fresh}, or `bulla serve print-openapi`, and read what changed"
    );
}

#[test]
fn every_operation_is_described() {
    let description = description();
    let operations = operations(&description);
    assert!(operations.len() > 25, "{}", operations.len());
    let mut ids = BTreeSet::new();
    for Described { path, method, operation } in &operations {
        let what = format!("{method} {path}");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{what} has no summary");
        assert_eq!(operation["tags"].as_array().map(Vec::len), Some(1), "{what}");
        let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{what} has no id"));
        assert!(ids.insert(id.to_owned()), "{what}: the id {id} is taken");
        let permission = operation["x-permission"].as_str();
        let permission = permission.unwrap_or_else(|| panic!("{what} has no x-permission"));
        let of = permission.strip_prefix("operator:").unwrap_or(permission);
        assert!(
            matches!(permission, "open" | "caller" | "minter") || of.parse::<TokenOperation>().is_ok(),
            "{what}: {permission}"
        );
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with(['2', '3'])), "{what}");
        for (status, response) in responses {
            let is_described = response["description"].as_str().is_some_and(|text| !text.is_empty());
            assert!(is_described || response.get("$ref").is_some(), "{what}: {status} has no description");
        }
        if permission != "open" {
            let expected = ["403", "429", "503", "default"];
            assert!(expected.iter().all(|status| responses.contains_key(*status)), "{what}");
            // Vault answers 403 to a request without a credential.
            assert_eq!(responses.contains_key("401"), !path.starts_with("/v1/"), "{what}");
        }
        for name in path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
            let parameters = operation["parameters"].as_array().unwrap();
            let described = parameters.iter().any(|one| one["in"] == "path" && one["name"] == name);
            assert!(described, "{what}: {name}");
        }
    }
}

/// All references, wherever they are.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let description = description();
    let mut found = Vec::new();
    references(&description, &mut found);
    assert!(found.len() > 50);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(description.pointer(pointer).is_some(), "{reference}");
    }
}

/// The files of a folder and of those in it.
fn sources(folder: &std::path::Path, found: &mut Vec<String>) {
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn no_two_types_have_one_name_in_the_description() {
    let mut files = Vec::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let mut names = BTreeSet::new();
    for file in &files {
        let mut lines = file.lines();
        while let Some(line) = lines.next() {
            if !(line.starts_with("#[derive(") && line.contains("ToSchema")) {
                continue;
            }
            let mut words = lines.find(|line| !line.starts_with("#[")).unwrap().split_whitespace();
            let name = words.find(|word| word.starts_with(char::is_uppercase)).unwrap();
            let name = name.split('<').next().unwrap();
            assert!(names.insert(name), "the last type {name} would stand for all of them");
        }
    }
    assert!(names.len() > 20);
}

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
    for other in [&both, &json!({}), &json!({ "key": "a", "version": 1 })] {
        assert!(batch(&[&signed, other]).unwrap_err().contains("results[1]"), "{other}");
    }
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
