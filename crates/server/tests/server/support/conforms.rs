//! That an answer is what the description of the service says.
//!
//! Every answer that [`super::Service`] gets is held against the operation's schema. It knows the
//! keywords of JSON Schema that the description uses, and is stricter in one: an object has no
//! field that is not described.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::{Map, Value};

static DESCRIPTION: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&bulla_server::openapi()).unwrap());

/// What a service answered to a request.
pub(crate) struct Answered<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// Panics if an answer is not what the description says of its operation and its status.
#[track_caller]
pub(crate) fn conforms(answered: &Answered<'_>) {
    let Answered { method, path, status, body, .. } = answered;
    if let Err(wrong) = check(answered) {
        panic!("{method} {path}, status {status}: {wrong}\n{}", String::from_utf8_lossy(body));
    }
}

type Result<T, E = String> = std::result::Result<T, E>;

pub(crate) fn check(answered: &Answered<'_>) -> Result<()> {
    let &Answered { method, path, status, content_type, body } = answered;
    let path = path.split('?').next().unwrap_or_default();
    // Clients of Vault end the path of a list with a slash.
    let path = if path.starts_with("/v1/") { path.trim_end_matches('/') } else { path };
    if method == "HEAD" || [204, 205, 304].contains(&status) {
        return if body.is_empty() { Ok(()) } else { Err("it has a body".to_owned()) };
    }
    let Some(operation) = operation(method, path) else {
        // What is not described fails, with an error of the form that the path's callers know.
        let form = if path.starts_with("/v1/") { "VaultErrorBody" } else { "ErrorBody" };
        if status < 400 {
            return Err("it succeeded, and no operation is described".to_owned());
        }
        return json(&DESCRIPTION["components"]["schemas"][form], body);
    };
    let responses = &operation["responses"];
    let response = responses.get(status.to_string()).or_else(|| responses.get("default"));
    let response = resolved(response.ok_or("the status is not described")?);
    let Some(content) = response["content"].as_object() else {
        return if body.is_empty() { Ok(()) } else { Err("a body is not described".to_owned()) };
    };
    let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    let described = content.get(kind).ok_or_else(|| format!("the content type {kind:?} is not described"))?;
    if kind == "application/json" { json(&described["schema"], body) } else { Ok(()) }
}

fn json(schema: &Value, body: &[u8]) -> Result<()> {
    let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    matches(schema, &value, "the body")
}

/// The operation of a request. Where several templates fit, the one with the fewest parameters
/// counts, as for the router.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = &*without_namespace(path);
    let parameters = |template: &str| template.matches('{').count();
    let paths = DESCRIPTION["paths"].as_object().unwrap().iter();
    let (_, item) =
        paths.filter(|(template, _)| fits(template, path)).min_by_key(|(path, _)| parameters(path))?;
    // Clients of Vault may write PUT for POST and the reverse, and LIST for GET with a parameter.
    let alias = match method {
        "PUT" => "post",
        "POST" => "put",
        "LIST" => "get",
        _ => "",
    };
    let alias = if path.starts_with("/v1/") { item.get(alias) } else { None };
    item.get(method.to_lowercase()).or(alias)
}

/// A path of Vault without the namespace at its begin, and with `transit` for another mount.
fn without_namespace(path: &str) -> Cow<'_, str> {
    let engines = ["auth", "sys", "transit"];
    let within = "backup byok-export cache-config config datakey decrypt encrypt export hash hmac keys random \
                  restore rewrap sign verify wrapping_key";
    let within: Vec<_> = within.split_whitespace().collect();
    let parts: Vec<_> = path.split('/').collect();
    match parts[..] {
        ["", "v1", name, ..] if engines.contains(&name) => Cow::Borrowed(path),
        ["", "v1", _, first, ..] if engines.contains(&first) => {
            Cow::Owned(format!("/v1/{}", parts[3..].join("/")))
        }
        ["", "v1", _, first, ..] if within.contains(&first) => {
            Cow::Owned(format!("/v1/transit/{}", parts[3..].join("/")))
        }
        ["", "v1", _, _, first, ..] if within.contains(&first) => {
            Cow::Owned(format!("/v1/transit/{}", parts[4..].join("/")))
        }
        _ => Cow::Borrowed(path),
    }
}

fn fits(template: &str, path: &str) -> bool {
    let (mut template, mut path) = (template.split('/'), path.split('/'));
    loop {
        match (template.next(), path.next()) {
            (None, None) => return true,
            (Some(expected), Some(part)) if expected == part => {}
            // The one parameter that may have slashes in it.
            (Some("{path}"), Some(_)) => return true,
            (Some(expected), Some(part)) if expected.starts_with('{') && !part.is_empty() => {}
            _ => return false,
        }
    }
}

/// What a reference leads to.
fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => DESCRIPTION.pointer(&reference[1..]).unwrap(),
        None => value,
    }
}

/// Keywords that say something to people, or to generators of clients.
const NOTES: [&str; 5] = ["description", "example", "default", "format", "deprecated"];

fn matches(schema: &Value, value: &Value, at: &str) -> Result<()> {
    let schema = schema.as_object().ok_or_else(|| format!("{at}: no schema"))?;
    for (keyword, expected) in schema {
        match keyword.as_str() {
            "$ref" => {
                let target = DESCRIPTION.pointer(&expected.as_str().unwrap()[1..]).unwrap();
                matches(target, value, at)?;
            }
            "oneOf" => {
                let options = expected.as_array().unwrap().iter();
                let tried: Vec<_> = options.map(|option| matches(option, value, at)).collect();
                let fitting = tried.iter().filter(|tried| tried.is_ok()).count();
                if fitting != 1 {
                    return Err(format!("{at}: {fitting} of the options fit: {tried:?}"));
                }
            }
            "type" if !has_type(expected, value) => {
                return Err(format!("{at} is not of the type {expected}"));
            }
            "enum" if !expected.as_array().unwrap().contains(value) => {
                return Err(format!("{at} is none of {expected}"));
            }
            "minimum" if value.is_number() && value.as_f64() < expected.as_f64() => {
                return Err(format!("{at} is below {expected}"));
            }
            "items" => {
                for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                    matches(expected, item, &format!("{at}[{place}]"))?;
                }
            }
            "minItems" | "maxItems" => {
                let (count, bound) = (value.as_array().map(Vec::len), expected.as_u64().unwrap() as usize);
                let is_within = |count| if keyword == "minItems" { count >= bound } else { count <= bound };
                if !count.is_none_or(is_within) {
                    return Err(format!("{at}: {keyword} is {bound}"));
                }
            }
            "propertyNames" => {
                for name in value.as_object().into_iter().flat_map(Map::keys) {
                    matches(expected, &Value::String(name.clone()), &format!("the name {name} in {at}"))?;
                }
            }
            "type" | "enum" | "minimum" | "properties" | "required" | "additionalProperties" => {}
            other => {
                if !NOTES.contains(&other) {
                    return Err(format!("{at}: this check does not know the keyword {other}"));
                }
            }
        }
    }
    value.as_object().map_or(Ok(()), |object| fields(schema, object, at))
}

/// Required fields are there, and all that are there are described.
fn fields(schema: &Map<String, Value>, object: &Map<String, Value>, at: &str) -> Result<()> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !object.contains_key(name) {
            return Err(format!("{at} has no field {name}"));
        }
    }
    let more = schema.get("additionalProperties").filter(|more| more.is_object());
    let Some(properties) = schema.get("properties").or(more.map(|_| &Value::Null)) else { return Ok(()) };
    for (name, value) in object {
        let Some(field) = properties.get(name).or(more) else {
            return Err(format!("{at} has the field {name}, which is not described"));
        };
        matches(field, value, &format!("{at}.{name}"))?;
    }
    Ok(())
}

fn has_type(expected: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("{other} is no type"),
    };
    expected.as_array().map_or_else(|| is(expected), |types| types.iter().any(is))
}
