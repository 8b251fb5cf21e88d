//! Asks the API server of a Kubernetes cluster whether a JWT still counts: whether its service
//! account and its pod are there (`TokenReview` of `authentication.k8s.io/v1`).
//!
//! The JWT is verified before this, so nobody makes the service ask about JWTs of strangers.
//! Verdicts are not kept: a JWT that the cluster has withdrawn is refused at the next login.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bulla_kms::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::{Refusal, https};
use crate::config::{IssuerConfig, TokenReviewConfig};

const API_VERSION: &str = "authentication.k8s.io/v1";
const KIND: &str = "TokenReview";
/// The longest answer that is read.
const MAX_ANSWER_LEN: u64 = 512 << 10;
/// How many reviews go on at once. An API server that does not answer takes no more threads.
const MAX_REVIEWS_AT_ONCE: usize = 16;
/// The most characters of what a cluster says that go into the log.
const MAX_LOGGED_CHARS: usize = 200;
/// How long a login waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(15);

/// Asks one API server.
#[derive(Debug)]
pub(super) struct TokenReviewer {
    issuer: Name,
    agent: ureq::Agent,
    url: String,
    token_file: PathBuf,
    turns: Arc<Semaphore>,
    has_failed: AtomicBool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReviewRequest<'a> {
    api_version: &'a str,
    kind: &'a str,
    spec: ReviewSpec<'a>,
}

#[derive(Serialize)]
struct ReviewSpec<'a> {
    token: &'a str,
    audiences: &'a [String],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    status: ReviewStatus,
}

/// What the API server says of a JWT.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct ReviewStatus {
    authenticated: bool,
    user: ReviewedUser,
    audiences: Vec<String>,
    error: String,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct ReviewedUser {
    username: String,
    uid: String,
}

impl TokenReviewer {
    /// # Errors
    /// The file of authorities cannot be used.
    pub(super) fn new(issuer: &IssuerConfig, config: &TokenReviewConfig) -> bulla_kms::Result<Self> {
        Ok(Self {
            issuer: issuer.name.clone(),
            agent: https::agent(issuer.ca.as_deref(), https::ANSWER_TIMEOUT)?,
            url: format!("{}/apis/{API_VERSION}/tokenreviews", config.url.trim_end_matches('/')),
            token_file: config.token_file.clone(),
            turns: Arc::new(Semaphore::new(MAX_REVIEWS_AT_ONCE)),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Asks about a JWT whose signature and claims are verified.
    ///
    /// # Errors
    /// [`Refusal::NotPermitted`]: the cluster does not accept it any more, or says that it is of
    /// somebody else or for somebody else. [`Refusal::NoReview`]: the API server gives no verdict.
    pub(super) async fn review(
        self: Arc<Self>,
        jwt: &str,
        audiences: &[String],
        claims: &Value,
    ) -> Result<(), Refusal> {
        let Ok(Ok(turn)) = timeout(TURN_TIMEOUT, Arc::clone(&self.turns).acquire_owned()).await else {
            return Err(self.no_verdict("too many reviews wait for it"));
        };
        let (reviewer, jwt, sent) = (Arc::clone(&self), Zeroizing::new(jwt.to_owned()), audiences.to_vec());
        // A caller who goes away does not end the question, so its turn goes on, too.
        let ask = move || (reviewer.ask(&jwt, &sent), turn).0;
        let asked = spawn_blocking(ask).await;
        let status = match asked.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(status) => status,
            Err(reason) => return Err(self.no_verdict(&reason)),
        };
        if self.has_failed.swap(false, Ordering::Relaxed) {
            tracing::info!(issuer = %self.issuer, "the cluster reviews JWTs again");
        }
        if !status.error.is_empty() {
            let said: String = status.error.chars().take(MAX_LOGGED_CHARS).collect();
            tracing::info!(issuer = %self.issuer, "the cluster says of a JWT: {said:?}");
        }
        status.check(audiences, claims)
    }

    fn no_verdict(&self, reason: &str) -> Refusal {
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            tracing::error!(issuer = %self.issuer, "the cluster reviews no JWTs: {reason}");
        }
        Refusal::NoReview
    }

    /// The answer of the API server, or a text for the log. It waits for the network.
    fn ask(&self, jwt: &str, audiences: &[String]) -> Result<ReviewStatus, String> {
        let url = &self.url;
        let spec = ReviewSpec { token: jwt, audiences };
        let request = ReviewRequest { api_version: API_VERSION, kind: KIND, spec };
        let request = serde_json::to_vec(&request).map(Zeroizing::new).map_err(|error| error.to_string())?;
        let request = self
            .agent
            .post(url)
            .header("authorization", https::bearer(&self.token_file)?)
            .header("content-type", "application/json")
            .send(&request[..]);
        let mut response = request.map_err(|error| format!("{url}: {error}"))?;
        let file = self.token_file.display();
        match response.status().as_u16() {
            200 | 201 => {}
            401 => return Err(format!("{url}: it does not accept the token in {file}")),
            403 => {
                return Err(format!(
                    "{url}: the service account of {file} may not ask: \
                     bind it to the cluster role system:auth-delegator"
                ));
            }
            status => return Err(format!("{url}: the server answers {status}")),
        }
        let body = response.body_mut().with_config().limit(MAX_ANSWER_LEN).read_to_vec();
        let body = body.map_err(|error| format!("{url}: {error}"))?;
        read(&body).map_err(|reason| format!("{url}: {reason}"))
    }
}

/// Reads an answer.
fn read(body: &[u8]) -> Result<ReviewStatus, String> {
    // The answer has the JWT, so the error must not show what it read.
    let review: Review = serde_json::from_slice(body).map_err(|error| {
        format!("the answer is no TokenReview (line {}, column {})", error.line(), error.column())
    })?;
    if (review.api_version.as_str(), review.kind.as_str()) == (API_VERSION, KIND) {
        Ok(review.status)
    } else {
        Err(format!("the answer is no TokenReview of {API_VERSION}"))
    }
}

impl ReviewStatus {
    /// Compares the verdict with the claims of the JWT.
    ///
    /// # Errors
    /// See [`TokenReviewer::review`].
    fn check(&self, audiences: &[String], claims: &Value) -> Result<(), Refusal> {
        let refused = |message: &str| Err(Refusal::NotPermitted(message.to_owned()));
        if !self.authenticated {
            return refused("the cluster does not accept the JWT any more");
        }
        // Without audiences in the answer, the server has not looked at those of the question.
        if !self.audiences.iter().any(|audience| audiences.contains(audience)) {
            return refused("the cluster says that the JWT is for another audience");
        }
        let text = |pointer: &str| claims.pointer(pointer).and_then(Value::as_str);
        let uid = text("/kubernetes.io/serviceaccount/uid");
        if text("/sub") != Some(&self.user.username) || uid.is_some_and(|uid| uid != self.user.uid) {
            return refused("the cluster says that the JWT is of another service account");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(status: &Value) -> Vec<u8> {
        json!({
            "apiVersion": API_VERSION, "kind": KIND, "metadata": { "creationTimestamp": null },
            "spec": { "token": "a.b.c", "audiences": ["bulla"] }, "status": status,
        })
        .to_string()
        .into_bytes()
    }

    #[test]
    fn a_verdict_counts_for_the_service_account_and_the_audience_of_the_jwt() {
        let claims = json!({
            "sub": "system:serviceaccount:ci:builder",
            "kubernetes.io": { "namespace": "ci", "serviceaccount": { "name": "builder", "uid": "1-2" } },
        });
        let without_uid = json!({ "sub": "system:serviceaccount:ci:builder" });
        let user = json!({ "username": "system:serviceaccount:ci:builder", "uid": "1-2", "groups": ["a"] });
        let good = json!({ "authenticated": true, "user": user, "audiences": ["bulla"] });
        let with = |field: &str, value: Value| {
            let mut status = good.clone();
            status[field] = value;
            status
        };
        let verdict = |status: &Value, claims: &Value| {
            read(&answer(status)).unwrap().check(&["x".to_owned(), "bulla".to_owned()], claims).is_ok()
        };
        for (status, expected) in [
            (good.clone(), true),
            (with("audiences", json!(["a", "x"])), true),
            (with("audiences", json!(["a"])), false),
            (with("audiences", json!([])), false),
            (with("authenticated", json!(false)), false),
            (json!({}), false),
            (json!({ "error": "the service account is gone" }), false),
            (with("user", json!({})), false),
            (with("user", json!({ "username": "system:serviceaccount:ci:other", "uid": "1-2" })), false),
            (with("user", json!({ "username": "system:serviceaccount:ci:builder", "uid": "1-3" })), false),
            (with("user", json!({ "username": "system:serviceaccount:ci:builder" })), false),
        ] {
            assert_eq!(verdict(&status, &claims), expected, "{status}");
        }
        assert!(verdict(&good, &without_uid));
        assert!(!verdict(&good, &json!({})));
    }

    #[test]
    fn a_server_that_does_not_answer_gives_no_verdict() {
        // The connection is made, and nobody reads from it.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, "reviewer").unwrap();
        let reviewer = TokenReviewer {
            issuer: "cluster".parse().unwrap(),
            agent: https::agent(None, Duration::from_millis(50)).unwrap(),
            url: format!("http://{}", listener.local_addr().unwrap()),
            token_file,
            turns: Arc::new(Semaphore::new(1)),
            has_failed: AtomicBool::new(false),
        };
        let reason = reviewer.ask("a.b.c", &[]).unwrap_err();
        assert!(reason.contains("timeout"), "{reason}");
    }

    #[test]
    fn another_answer_is_no_verdict_and_its_error_shows_no_jwt() {
        let good = answer(&json!({ "authenticated": true }));
        read(&good).unwrap();
        let good = String::from_utf8(good).unwrap();
        for other in [
            String::new(),
            "{}".to_owned(),
            good[..good.len() - 1].to_owned(),
            good.replace("k8s.io/v1", "k8s.io/v1beta1"),
            good.replace("TokenReview", "Status"),
            good.replace("true", "\"a.b.c\""),
            r#"{"apiVersion":"v1","kind":"Status","status":"Failure","code":403}"#.to_owned(),
        ] {
            let reason = read(other.as_bytes()).unwrap_err();
            assert!(!reason.contains("a.b.c"), "{reason}");
        }
    }
}
