//! The answer that has a new token in it: as other answers, with `auth` in place of `data`.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::response::Response;
use bulla_kms::Name;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer;
use crate::request::no_store;
use crate::service::Worker;

/// The answer with a new token: as other answers, with `auth` in place of `data`.
#[derive(Serialize, ToSchema)]
pub(super) struct AuthAnswer {
    /// The request, as the header `X-Request-Id` names it.
    request_id: String,
    /// Always empty.
    lease_id: &'static str,
    /// Always false.
    renewable: bool,
    /// Always 0.
    lease_duration: u64,
    /// Always null.
    data: Option<&'static str>,
    /// Always null.
    wrap_info: Option<&'static str>,
    /// Warnings for the client, although the request succeeded.
    warnings: Option<Vec<String>>,
    /// The token.
    auth: Auth,
}

/// A new token.
#[derive(Serialize, ToSchema)]
pub(super) struct Auth {
    /// The token.
    pub(super) client_token: String,
    /// The id that revokes it.
    pub(super) accessor: String,
    /// The policies of the token, or the operations that it permits.
    pub(super) policies: Vec<String>,
    /// The same.
    pub(super) token_policies: Vec<String>,
    /// What the login showed: the role, and the caller's name in the audit log; null for a token
    /// that was created.
    pub(super) metadata: Option<BTreeMap<String, String>>,
    /// For how many seconds it is valid.
    pub(super) lease_duration: u64,
    /// Always false: no token is renewed.
    pub(super) renewable: bool,
    /// Always empty.
    pub(super) entity_id: &'static str,
    /// Always `service`.
    pub(super) token_type: &'static str,
    /// False for a token that was made from the caller's.
    pub(super) orphan: bool,
    /// Always null.
    pub(super) mfa_requirement: Option<&'static str>,
    /// Always 0: without a bound.
    pub(super) num_uses: u64,
}

/// What an answer is about, for [`super::wrapping`]: an extension of the answer.
#[derive(Clone, Debug)]
pub(super) struct AnswerSubject {
    /// The tenant for whose keys the token or the secret id is.
    pub(super) tenant: Name,
    /// The accessor of the token or the secret id.
    pub(super) accessor: String,
}

impl Auth {
    /// A token of its own that has these policies or permits these operations.
    pub(super) fn new(token: String, accessor: String, policies: Vec<String>, seconds: u64) -> Self {
        Self {
            client_token: token,
            accessor,
            token_policies: policies.clone(),
            policies,
            metadata: None,
            lease_duration: seconds,
            renewable: false,
            entity_id: "",
            token_type: "service",
            orphan: true,
            mfa_requirement: None,
            num_uses: 0,
        }
    }

    /// The answer with this token of a tenant, which no cache keeps.
    pub(super) fn answer(self, worker: &Worker, tenant: Name, warnings: Vec<String>) -> Response {
        let subject = AnswerSubject { tenant, accessor: self.accessor.clone() };
        let answer = AuthAnswer {
            request_id: worker.service.next_request_id(),
            lease_id: "",
            renewable: false,
            lease_duration: 0,
            data: None,
            wrap_info: None,
            warnings: Some(warnings).filter(|warnings| !warnings.is_empty()),
            auth: self,
        };
        let mut response = no_store(answer::bare(StatusCode::OK, &answer));
        response.extensions_mut().insert(subject);
        response
    }
}
