//! Who may call what: every operation of the description, with every kind of credential.

use bulla_kms::token::{Grant, GrantedKeys, Token, TokenOperation};
use bulla_kms::{Algorithm, KeyId, Keystore, NewKey, Timestamp};
use serde_json::{Map, Value, json};

use crate::description::{Described, description, operations};
use crate::support::{Answer, Service, config, keystore, name, token};

/// What `x-permission` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permission {
    Open,
    Caller,
    Minter,
    Operator(TokenOperation),
    Of(TokenOperation),
}

fn permission(described: &Described) -> Permission {
    let text = described.operation["x-permission"].as_str();
    let text = text.unwrap_or_else(|| panic!("{} {} has no x-permission", described.method, described.path));
    match (text, text.strip_prefix("operator:")) {
        ("open", _) => Permission::Open,
        ("caller", _) => Permission::Caller,
        ("minter", _) => Permission::Minter,
        (_, Some(operation)) => Permission::Operator(operation.parse().unwrap()),
        (operation, None) => Permission::Of(operation.parse().unwrap()),
    }
}

/// What answers a caller with rights on some keys by those keys, and names none.
const FILTERED: [&str; 5] =
    ["approvals_list", "keys_list", "keys_jwks", "transit_list", "encryption_decrypt"];

/// A request for an operation, about a key where it is about one.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
    names_a_key: bool,
}

pub(crate) fn asked(description: &Value, described: &Described, key: &Key) -> Asked {
    let Described { path, method, operation } = described;
    let permission = permission(described);
    let Key { label, name: key } = key;
    // What creates a key names none that is there.
    let creates = ["transit_create", "transit_import", "transit_restore_as"]
        .contains(&operation["operationId"].as_str().unwrap());
    let names_a_label = path.contains("{name}") && !creates;
    let mut names_a_key = path.contains("{key}") || names_a_label;
    let parts = path.split('/').map(|part| match part {
        "{key}" => key.replace('/', "%2F"),
        // Vault's name of a key is its label.
        "{name}" => label.clone(),
        part if part.starts_with('{') => parameter(operation, part.trim_matches(['{', '}'])),
        part => part.to_owned(),
    });
    let path = parts.collect::<Vec<_>>().join("/");
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let mut body = Vec::new();
    if !schema.is_null() {
        // A request about the caller alone names no key.
        let example = Example { description, key: (permission != Permission::Caller).then_some(key) };
        let value = example.of(schema);
        let value = if value.is_null() { json!({}) } else { value };
        names_a_key |= value.to_string().contains(key);
        body = value.to_string().into_bytes();
    }
    Asked { method: method.clone(), path, body, names_a_key }
}

/// A value for a parameter of the path: its example, if it has one.
fn parameter(operation: &Value, name: &str) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let example = parameters.filter(|one| one["name"] == name).find_map(|one| one["example"].as_str());
    example.unwrap_or("1").to_owned()
}

/// Makes bodies that have the form of a schema.
struct Example<'a> {
    description: &'a Value,
    key: Option<&'a String>,
}

impl Example<'_> {
    fn of(&self, schema: &Value) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.of(self.description.pointer(&reference[1..]).unwrap());
        }
        if let Some(example) = ["example", "default"].into_iter().find_map(|name| schema.get(name)) {
            return example.clone();
        }
        let options = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|name| schema[name].as_array());
        if let Some(option) = options.flatten().find(|option| option["type"] != "null") {
            return self.of(option);
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").unwrap(),
            kind => kind,
        };
        match kind.as_str().unwrap_or("object") {
            "array" => json!([self.of(&schema["items"])]),
            "boolean" => json!(false),
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
            "string" => json!("AAAA"),
            _ => self.object(schema),
        }
    }

    fn object(&self, schema: &Value) -> Value {
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
        let mut object = Map::new();
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            match (field.as_str(), self.key) {
                ("key", Some(key)) => object.insert(field.clone(), json!(key)),
                ("keys", Some(key)) => object.insert(field.clone(), json!([key])),
                _ if required.contains(&&json!(field)) => object.insert(field.clone(), self.of(schema)),
                _ => None,
            };
        }
        Value::Object(object)
    }
}

impl Asked {
    pub(crate) fn send(&self, service: &Service, token: Option<&Token>) -> Answer {
        service.send(&self.method, token, &self.path, &self.body)
    }
}

/// Whether all of a request was refused: as a whole or, in a batch, every item.
fn is_refused(answer: &Answer) -> bool {
    if answer.status == 403 {
        assert_eq!(answer.error().1, "forbidden");
        return true;
    }
    assert_ne!(answer.status, 401, "{}", answer.text());
    let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else { return false };
    let Some(results) = body["results"].as_array() else { return false };
    results.iter().all(|result| result["error"]["code"] == "forbidden")
}

/// A key, by its label and by its name.
pub(crate) struct Key {
    pub(crate) label: String,
    pub(crate) name: String,
}

impl Key {
    fn key_id(&self) -> KeyId {
        self.name.parse().unwrap()
    }
}

pub(crate) fn new_key(keystore: &Keystore, tenant: &str) -> Key {
    let label = format!("key-{}", keystore.list().unwrap().len());
    let new = NewKey::new(name(tenant), name("files"), Algorithm::Ed25519).label(name(&label));
    Key { label, name: keystore.create_key(new).unwrap().key_id().to_string() }
}

/// The status of an answer to a caller without a credential: Vault's own is another one.
fn unauthenticated(path: &str) -> (u16, String) {
    (if path.starts_with("/v1/") { 403 } else { 401 }, "unauthenticated".to_owned())
}

#[test]
fn only_what_is_open_answers_without_a_credential_that_counts() {
    let all = keystore(&["local"]);
    let key = new_key(&all, "local");
    let expired = Grant::new(
        name("local"),
        GrantedKeys::All,
        TokenOperation::ALL.to_vec(),
        Timestamp::from_unix_millis(Timestamp::now().unwrap().unix_millis() - 5_000).unwrap(),
    );
    let expired = all.mint_token(&expired).unwrap();
    let revoked = token(&all, "local", GrantedKeys::All, TokenOperation::ALL);
    let foreign = token(&keystore(&["local"]), "local", GrantedKeys::All, TokenOperation::ALL);
    let service = Service::start(all, config());
    service.post(Some(&revoked), "/api/v1/tokens/revoke", &json!({})).ok();
    let description = description();
    for described in operations(&description) {
        let what = format!("{} {}", described.method, described.path);
        let asked = asked(&description, &described, &key);
        if permission(&described) == Permission::Open {
            // A refused login is forbidden, whatever else the request carries.
            let is_login = described.path.ends_with("/login");
            let answer = asked.send(&service, None);
            assert!(answer.status != 401 && (is_login || answer.status != 403), "{what}");
            assert!(answer.status != 403 || answer.text().contains("the login is refused"), "{what}");
            continue;
        }
        assert_eq!(asked.send(&service, None).error(), unauthenticated(&asked.path), "{what}");
        for (kind, token) in [("foreign", &foreign), ("expired", &expired), ("revoked", &revoked)] {
            let error = asked.send(&service, Some(token)).error();
            assert_eq!(error, (403, "forbidden".to_owned()), "{what}, {kind}");
        }
        let nonsense = [("authorization", "Bearer nonsense")];
        let nonsense = service.send_with(&asked.method, None, &asked.path, &asked.body, &nonsense);
        assert_eq!(nonsense.error(), (403, "forbidden".to_owned()), "{what}");
    }
}

#[test]
fn a_token_for_one_operation_on_one_key_permits_that_and_nothing_else() {
    let description = description();
    for &granted in TokenOperation::ALL {
        let keystore = keystore(&["local"]);
        let (mine, theirs) = (new_key(&keystore, "local"), new_key(&keystore, "local"));
        let fresh = || token(&keystore, "local", GrantedKeys::These(vec![mine.key_id()]), &[granted]);
        let (narrow, spare) = (fresh(), (0..32).map(|_| fresh()).collect::<Vec<_>>());
        let mut spare = spare.iter();
        let service = Service::start(keystore, config());
        for described in operations(&description) {
            let what = format!("{} {} with a token for {granted}", described.method, described.path);
            let (about_mine, about_theirs) =
                (asked(&description, &described, &mine), asked(&description, &described, &theirs));
            let filtered = FILTERED.contains(&described.operation["operationId"].as_str().unwrap());
            let permitted = match permission(&described) {
                Permission::Open => continue,
                Permission::Caller => {
                    // One of these revokes the token.
                    assert!(!is_refused(&about_mine.send(&service, spare.next())), "{what}");
                    continue;
                }
                Permission::Minter | Permission::Operator(_) => false,
                // An export that names its destination needs `read` for that as well.
                Permission::Of(_) if described.path.contains("{destination}") => false,
                Permission::Of(operation) => operation == granted && (about_mine.names_a_key || filtered),
            };
            assert!(
                is_refused(&about_theirs.send(&service, Some(&narrow))) || filtered && permitted,
                "{what}: another key"
            );
            assert_eq!(is_refused(&about_mine.send(&service, Some(&narrow))), !permitted, "{what}");
        }
    }
}

#[test]
fn a_token_of_another_tenant_reaches_no_key_here_and_nothing_of_the_operators() {
    let keystore = keystore(&["local", "other"]);
    let (mine, theirs) = (new_key(&keystore, "other"), new_key(&keystore, "local"));
    let fresh = || token(&keystore, "other", GrantedKeys::All, TokenOperation::ALL);
    let (other, spare) = (fresh(), (0..32).map(|_| fresh()).collect::<Vec<_>>());
    let mut spare = spare.iter();
    let service = Service::start(keystore, config());
    let description = description();
    // What makes a key comes last: until then nobody in the caller's tenant has the label.
    let mut all = operations(&description);
    all.sort_by_key(|described| described.operation["operationId"] == "transit_create");
    for described in all {
        let what = format!("{} {}", described.method, described.path);
        let about_theirs = asked(&description, &described, &theirs);
        match permission(&described) {
            Permission::Open => {}
            Permission::Caller => {
                assert!(!is_refused(&about_theirs.send(&service, spare.next())), "{what}");
            }
            Permission::Minter | Permission::Operator(_) => {
                assert!(is_refused(&about_theirs.send(&service, Some(&other))), "{what}");
            }
            Permission::Of(_) => {
                let refused = is_refused(&about_theirs.send(&service, Some(&other)));
                // A label is one of the caller's own tenant, where nobody has it.
                if described.path.contains("{name}") {
                    let answer = about_theirs.send(&service, Some(&other));
                    let creates = described.operation["operationId"] == "transit_create";
                    assert!(creates || answer.status >= 400, "{what}: {}", answer.text());
                } else {
                    assert_eq!(refused, about_theirs.names_a_key, "{what}");
                }
                let own = asked(&description, &described, &mine).send(&service, Some(&other));
                assert!(!is_refused(&own), "{what}: {}", own.text());
            }
        }
    }
}

#[test]
fn an_operator_may_do_each_operation_for_the_service_and_no_other() {
    let description = description();
    for &granted in TokenOperation::ALL {
        let keystore = keystore(&["local"]);
        let key = new_key(&keystore, "local");
        let operator = token(&keystore, "local", GrantedKeys::All, &[granted]);
        let service = Service::start(keystore, config());
        // Sealing comes last: nothing is permitted then.
        let mut all = operations(&description);
        all.sort_by_key(|described| described.path.ends_with("/seal") && described.path.contains("operator"));
        for described in all {
            let Permission::Operator(operation) = permission(&described) else { continue };
            let answer = asked(&description, &described, &key).send(&service, Some(&operator));
            let what = format!("{} {} with {granted}", described.method, described.path);
            assert_eq!(is_refused(&answer), operation != granted, "{what}: {}", answer.text());
        }
    }
}
