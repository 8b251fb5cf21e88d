//! The endpoints of version 1: `/api/v1`.

mod agreement;
mod approvals;
mod attest;
mod audit_log;
mod authentication;
mod backup;
pub(crate) mod batch;
mod encryption;
mod idempotency;
mod jwt;
mod keys;
mod login;
pub(crate) mod operator;
mod prehash;
mod public_keys;
mod signatures;
mod statement;
mod symmetric;
mod tokens;
mod transfer;

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;

pub(crate) use self::idempotency::idempotent;
pub(crate) use self::login::{MadeLogin, log_in, mint_login, with_policies};
pub(crate) use self::tokens::ensure_root;
pub(crate) use self::transfer::ExportToken;
use crate::service::Worker;

/// The endpoints of version 1 that change nothing in the keystore, with their descriptions.
pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .merge(approvals::routes())
        .merge(audit_log::routes())
        .merge(operator::routes())
        .merge(signatures::routes())
        .merge(tokens::routes())
        .merge(login::routes())
        .merge(attest::routes())
        .merge(public_keys::routes())
        .merge(jwt::routes())
        .merge(prehash::routes())
        .merge(statement::routes())
        .merge(encryption::routes())
        .merge(agreement::routes())
        .merge(symmetric::routes())
        .merge(authentication::routes())
        .merge(transfer::routes())
        .merge(backup::routes())
}

/// The endpoints that change something. They take an idempotency key: [`idempotent`] wraps them.
pub(crate) fn changes() -> OpenApiRouter<Worker> {
    let mut changes =
        OpenApiRouter::new().merge(keys::routes()).merge(transfer::changes()).merge(tokens::changes());
    idempotency::describe(changes.get_openapi_mut());
    changes
}

/// The operations of a path, with their methods.
pub(super) fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    let all = [("get", get), ("put", put), ("post", post), ("delete", delete), ("patch", patch)];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// The answers of every endpoint that needs a credential.
const COMMON_RESPONSES: [(&str, &str, &str); 4] = [
    ("401", "Unauthenticated", "The request carries no credential"),
    ("403", "Forbidden", "The credential does not permit this, or what the request names does not exist"),
    ("429", "RateLimited", "The credential's rate limit is reached"),
    ("503", "Unavailable", "The service is sealed, or has too much to do"),
];

/// The prefix of the names of the same answers to clients of Vault. For them, 403 also answers a
/// request without a credential.
const VAULT_RESPONSE_PREFIX: &str = "Vault";

/// Completes the description: every operation gets an id of its own and the answers that all have
/// in common, and every answer has a description, without which generators refuse the document.
pub(crate) fn complete(description: &mut OpenApi) {
    signatures::describe_results(description);
    let components = description.components.get_or_insert_default();
    for (status, name, text) in COMMON_RESPONSES {
        let mut add = |name: String, schema: &str| {
            let content = Content::new(Some(Ref::from_schema_name(schema)));
            let response =
                ResponseBuilder::new().description(text).content("application/json", content).build();
            components.responses.insert(name, response.into());
        };
        add(name.to_owned(), "ErrorBody");
        if status != "401" {
            add(format!("{VAULT_RESPONSE_PREFIX}{name}"), "VaultErrorBody");
        }
    }
    let paths = description.paths.paths.iter_mut();
    let all = paths.flat_map(|(path, item)| {
        let is_vault = path.starts_with(crate::transit::PREFIX);
        operations(item).map(move |(_, operation)| (is_vault, operation))
    });
    for (is_vault, operation) in all {
        let tag = operation.tags.iter().flatten().next().cloned().unwrap_or_default();
        if let Some(id) = &mut operation.operation_id {
            let tag = tag.replace('-', "_") + "_";
            if !id.starts_with(&tag) {
                id.insert_str(0, &tag);
            }
        }
        for response in operation.responses.responses.values_mut() {
            if let RefOr::T(response) = response
                && response.description.is_empty()
            {
                response.description = "An error".to_owned();
            }
        }
        let permission = operation.extensions.as_ref().and_then(|all| all.get("x-permission"));
        if permission.is_some_and(|permission| permission == "open") {
            continue;
        }
        for (status, name, _) in COMMON_RESPONSES {
            let response = match is_vault {
                true if status == "401" => continue,
                true => Ref::from_response_name(format!("{VAULT_RESPONSE_PREFIX}{name}")),
                false => Ref::from_response_name(name),
            };
            operation.responses.responses.entry(status.to_owned()).or_insert_with(|| response.into());
        }
    }
}
