//! Requests with a token whose rights are policies: what they may do at their path.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use axum::http::Method;
use axum::http::request::Parts;
use bulla_kms::Name;
use bulla_kms::token::TOKEN_ROOT_PURPOSE;
use percent_encoding::percent_decode_str;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::caller::Caller;
use super::namespace::MountPath;
use crate::access::{Authority, Session};
use crate::error::{ApiError, ApiErrorCode, Result};
use crate::policy::{Capability, Demand, Endpoint, Permissions, seconds_of};

/// How the paths begin about which policies speak.
const PREFIX: &str = "/v1/";

/// The header by which a caller wants its answer wrapped.
const WRAP_TTL: &str = "x-vault-wrap-ttl";

/// What policies say about the parameters in a body: an extension of the request until its body is
/// there.
#[derive(Clone, Debug)]
pub(crate) struct ParameterRules(Arc<[Permissions]>);

impl ParameterRules {
    /// # Errors
    /// A parameter of the body is not permitted, or one is missing.
    pub(crate) fn check(&self, body: &[u8]) -> Result<()> {
        let no_object = |_| ApiError::malformed("the body is not a JSON object");
        let parameters = match body.trim_ascii() {
            b"" | b"null" => Map::new(),
            body => {
                let mut reader = serde_json::Deserializer::from_slice(body);
                let parameters = reader.deserialize_map(Parameters(&self.0)).map_err(no_object)?;
                reader.end().map_err(no_object)?;
                parameters
            }
        };
        check_parameters(&self.0, &parameters)
    }
}

/// Reads the names of parameters, and the values that some rule compares. The others may be secret,
/// and are not copied.
struct Parameters<'a>(&'a [Permissions]);

impl<'de> Visitor<'de> for Parameters<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> std::result::Result<Self::Value, A::Error> {
        let mut parameters = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = if self.0.iter().any(|rules| rules.compares(&name)) {
                fields.next_value()?
            } else {
                fields.next_value::<IgnoredAny>()?;
                Value::Null
            };
            parameters.insert(name, value);
        }
        Ok(parameters)
    }
}

fn check_parameters(rules: &[Permissions], parameters: &Map<String, Value>) -> Result<()> {
    let permitted = rules.iter().all(|rules| rules.permits_parameters(parameters));
    if permitted { Ok(()) } else { Err(ApiError::forbidden()) }
}

/// # Errors
/// The token has policies, and these say nothing about bulla's own API.
pub(super) fn check_path(session: &Session, path: &str) -> Result<()> {
    if session.acls.is_empty() || path.starts_with(PREFIX) {
        return Ok(());
    }
    let message = "the rights of this token are policies, which are about the paths below /v1: ask there, or \
                   use a token with operations";
    Err(ApiError::new(ApiErrorCode::Forbidden, message))
}

impl Caller {
    /// The caller with no more rights than this request needs, if its policies permit the request.
    ///
    /// # Errors
    /// They do not.
    pub(super) fn under_policies(self, parts: &mut Parts) -> Result<Self> {
        if self.session.acls.is_empty() {
            return Ok(self);
        }
        let (demand, rules) = self.permitted(parts)?;
        if let Some(rules) = rules {
            parts.extensions.insert(rules);
        }
        Ok(self.narrowed(demand))
    }

    /// What the policies permit of a request: its operations, and what remains to be checked when
    /// its body is there.
    ///
    /// # Errors
    /// They do not permit the request.
    pub(super) fn permitted(
        &self,
        parts: &Parts,
    ) -> Result<(Option<&'static Demand>, Option<ParameterRules>)> {
        let path = decoded(parts.uri.path()).ok_or_else(ApiError::forbidden)?;
        let endpoint = Endpoint::at(&path);
        let capability = self.capability(parts, &path, endpoint).ok_or_else(ApiError::forbidden)?;
        // Policies are about the path as the caller wrote it, within the namespace.
        let path = match parts.extensions.get::<MountPath>() {
            Some(mount) => path.replacen("transit", mount.as_str(), 1),
            None => path,
        };
        // As in Vault, the path of a list ends with a slash.
        let path = match capability {
            Capability::List if !path.ends_with('/') => Cow::Owned(format!("{path}/")),
            _ => Cow::Borrowed(path.as_str()),
        };
        let wrapping = parts.headers.get(WRAP_TTL).and_then(|value| seconds_of(value.to_str().ok()?));
        let mut about_parameters = Vec::new();
        for acl in &self.session.acls {
            let permissions = acl.decision(&path).ok_or_else(ApiError::forbidden)?.permissions;
            let has = |capability| permissions.capabilities.contains(capability);
            let has_sudo = !endpoint.is_some_and(Endpoint::needs_sudo) || has(Capability::Sudo);
            if !has(capability)
                || !has_sudo
                || !permissions.permits_wrapping(wrapping.filter(|time| *time > 0))
            {
                return Err(ApiError::forbidden());
            }
            if permissions.is_about_parameters() {
                about_parameters.push(permissions.into_owned());
            }
        }
        let rules = if about_parameters.is_empty() {
            None
        } else {
            parameter_rules(parts, capability, endpoint, about_parameters)?
        };
        Ok((endpoint.and_then(|endpoint| endpoint.demand(capability)), rules))
    }

    /// What the request does, in Vault's words; none if it is no request of Vault's.
    fn capability(&self, parts: &Parts, path: &str, endpoint: Option<&Endpoint>) -> Option<Capability> {
        let takes = |capability| endpoint.is_some_and(|endpoint| endpoint.demand(capability).is_some());
        match parts.method {
            Method::GET if wants_list(parts) || (takes(Capability::List) && !takes(Capability::Read)) => {
                Some(Capability::List)
            }
            Method::GET => Some(Capability::Read),
            Method::DELETE => Some(Capability::Delete),
            Method::PATCH => Some(Capability::Patch),
            Method::POST | Method::PUT if takes(Capability::Create) && !self.has_key(path) => {
                Some(Capability::Create)
            }
            Method::POST | Method::PUT => Some(Capability::Update),
            _ if parts.method.as_str() == "LIST" => Some(Capability::List),
            _ => None,
        }
    }

    /// Whether there is a key of the name with which a path ends.
    fn has_key(&self, path: &str) -> bool {
        let label = path.rsplit('/').next().and_then(|name| name.parse::<Name>().ok());
        let found = label.map(|label| self.unsealed.keystore.find(&self.session.authority.tenant, &label));
        found.is_some_and(|found| {
            found.is_ok_and(|key| key.is_some_and(|key| key.purpose().as_str() != TOKEN_ROOT_PURPOSE))
        })
    }

    /// The caller with the operations of one request alone.
    fn narrowed(self, demand: Option<&Demand>) -> Self {
        let session = &self.session;
        let operations = demand.map_or_else(Default::default, |demand| demand.operations.iter().collect());
        let authority = &session.authority;
        let operations = authority.operations.intersection(operations);
        let session = Session {
            authority: Authority { operations, ..authority.clone() },
            home: session.home.clone(),
            actor: session.actor.clone(),
            limiter: session.limiter.clone(),
            quota: session.quota.clone(),
            revocation_ids: session.revocation_ids.clone(),
            acls: session.acls.clone(),
        };
        Self { session: Arc::new(session), unsealed: self.unsealed }
    }
}

/// Checks the parameters of a query, or returns the rules for those of a body.
fn parameter_rules(
    parts: &Parts,
    capability: Capability,
    endpoint: Option<&Endpoint>,
    rules: Vec<Permissions>,
) -> Result<Option<ParameterRules>> {
    match capability {
        Capability::Read => check_parameters(&rules, &query(parts)).map(|()| None),
        Capability::Create | Capability::Update | Capability::Patch => {
            // Nobody would look at the body.
            if endpoint.is_none_or(|endpoint| !endpoint.reads_body()) {
                check_parameters(&rules, &Map::new())?;
                let length = parts.headers.get(axum::http::header::CONTENT_LENGTH);
                let is_empty = length.is_none_or(|length| length == "0")
                    && !parts.headers.contains_key(axum::http::header::TRANSFER_ENCODING);
                return if is_empty { Ok(None) } else { Err(ApiError::forbidden()) };
            }
            Ok(Some(ParameterRules(rules.into())))
        }
        _ => Ok(None),
    }
}

/// The parameters of a query: a text, or a list of them.
fn query(parts: &Parts) -> Map<String, Value> {
    let mut parameters = Map::new();
    for pair in parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let plain = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let value = Value::String(plain(value));
        match parameters.entry(plain(name)) {
            serde_json::map::Entry::Vacant(vacant) => drop(vacant.insert(value)),
            serde_json::map::Entry::Occupied(mut known) => match known.get_mut() {
                Value::Array(values) => values.push(value),
                one => *one = Value::Array(vec![one.take(), value]),
            },
        }
    }
    parameters
}

/// Whether a GET asks for a list, by `list=true` in the words of Go and Python.
fn wants_list(parts: &Parts) -> bool {
    let wants = |text: &str| ["true", "t", "1"].iter().any(|word| text.eq_ignore_ascii_case(word));
    query(parts).get("list").and_then(Value::as_str).is_some_and(wants)
}

/// The path below `/v1/` as the handlers understand it. None for one that is not text, or in which
/// a name has a slash: no rule could tell such a path from another one.
fn decoded(path: &str) -> Option<String> {
    let path = path.strip_prefix(PREFIX)?;
    if path.split('/').any(|part| part.to_ascii_lowercase().contains("%2f")) {
        return None;
    }
    percent_decode_str(path).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_what_handlers_make_of_it() {
        for (path, expected) in [
            ("/v1/transit/sign/a", Some("transit/sign/a")),
            ("/v1/transit/sign/%61", Some("transit/sign/a")),
            ("/v1/transit/sign/a%2Fb", None),
            ("/v1/transit/sign/a%2fb", None),
            ("/v1/transit/sign/%ff", None),
            ("/api/v1/sign", None),
        ] {
            assert_eq!(decoded(path).as_deref(), expected, "{path}");
        }
    }
}
