//! Logins of pods whose cluster is asked about each JWT. The cluster is a server with HTTPS that
//! answers as Kubernetes describes it (`authentication.k8s.io/v1`, kubernetes.io/docs/reference).

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use bulla_server::{IssuerConfig, RoleConfig, TokenReviewConfig};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::login::{SigningKey, create, issuer, keys, log_in, now, role};
use crate::support::tls::{Authority, Certified};
use crate::support::{Answer, Service, config, keystore};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const JWKS: &str = "/openid/v1/jwks";
const SUBJECT: &str = "system:serviceaccount:ci:builder";
/// The token of the service account that may ask.
const REVIEWER: &str = "reviewer";

/// How the API server answers.
#[derive(Clone, PartialEq)]
enum Behavior {
    Healthy,
    /// It knows no audiences, as a webhook may.
    WithoutAudiences,
    /// With this status to everything.
    Failing(u16),
    /// With this text to every review.
    Saying(String),
    /// It closes each connection.
    Closing,
}

struct ClusterState {
    behavior: Behavior,
    reviewer: String,
    /// The service accounts that are there, by their users' names, with their uids.
    accounts: Vec<(String, String)>,
    jwks: Value,
    /// The paths and the methods of all requests.
    asked: Vec<String>,
}

/// An API server.
struct Cluster {
    url: String,
    state: Arc<Mutex<ClusterState>>,
}

struct Request {
    line: String,
    authorization: String,
    body: Vec<u8>,
}

impl Cluster {
    fn start(certificate: &Certified, jwks: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let accounts = vec![(SUBJECT.to_owned(), "uid-1".to_owned())];
        let (behavior, reviewer) = (Behavior::Healthy, REVIEWER.to_owned());
        let state =
            Arc::new(Mutex::new(ClusterState { behavior, reviewer, accounts, jwks, asked: Vec::new() }));
        let (served, settings) = (Arc::clone(&state), certificate.server_settings());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away needs no answer.
                let _ = serve(stream, &settings, &served);
            }
        });
        Self { url, state }
    }

    fn set(&self, behavior: Behavior) {
        self.state.lock().unwrap().behavior = behavior;
    }

    fn reviews(&self) -> usize {
        self.state.lock().unwrap().asked.iter().filter(|line| line.contains(REVIEWS)).count()
    }
}

fn serve(
    stream: TcpStream,
    settings: &Arc<ServerConfig>,
    state: &Mutex<ClusterState>,
) -> std::io::Result<()> {
    let connection = ServerConnection::new(Arc::clone(settings)).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    let request = read(&mut stream)?;
    let (status, body) = match state.lock().unwrap().answer(&request) {
        None => return Ok(()),
        Some(answer) => answer,
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    )?;
    stream.conn.send_close_notify();
    stream.flush()
}

fn read(stream: &mut StreamOwned<ServerConnection, TcpStream>) -> std::io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let (mut authorization, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = value.to_owned(),
            "content-length" => length = value.parse().unwrap(),
            "content-type" => assert_eq!(value, "application/json"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request { line, authorization, body })
}

/// An error of the API server.
fn failure(code: u16, reason: &str) -> String {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "code": code })
        .to_string()
}

impl ClusterState {
    /// The status and the body; none closes the connection.
    fn answer(&mut self, request: &Request) -> Option<(u16, String)> {
        let line = request.line.rsplit_once(' ').map_or("", |(line, _)| line).to_owned();
        self.asked.push(line.clone());
        match &self.behavior {
            Behavior::Closing => return None,
            Behavior::Failing(code) => return Some((*code, failure(*code, "Failing"))),
            _ => {}
        }
        if request.authorization != format!("Bearer {}", self.reviewer) {
            return Some((401, failure(401, "Unauthorized")));
        }
        Some(match (line.as_str(), &self.behavior) {
            ("POST /apis/authentication.k8s.io/v1/tokenreviews", Behavior::Saying(text)) => {
                (201, text.clone())
            }
            ("POST /apis/authentication.k8s.io/v1/tokenreviews", _) => (201, self.review(&request.body)),
            ("GET /openid/v1/jwks", _) => (200, self.jwks.to_string()),
            _ => (404, failure(404, "NotFound")),
        })
    }

    /// The answer to a TokenReview. The signature of the JWT is verified before.
    fn review(&self, body: &[u8]) -> String {
        let mut review: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(review["apiVersion"], "authentication.k8s.io/v1");
        assert_eq!(review["kind"], "TokenReview");
        let token = review["spec"]["token"].as_str().unwrap();
        let claims = token.split('.').nth(1).unwrap();
        let claims = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(claims).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        let (subject, uid) =
            (claims["sub"].clone(), claims["kubernetes.io"]["serviceaccount"]["uid"].clone());
        let audiences: Vec<Value> = review["spec"]["audiences"].as_array().unwrap().clone();
        let audiences: Vec<_> = audiences.into_iter().filter(|one| *one == claims["aud"]).collect();
        let is_there = self.accounts.iter().any(|(name, id)| subject == **name && uid == **id);
        review["metadata"] = json!({ "creationTimestamp": null });
        review["status"] = if is_there && !audiences.is_empty() {
            let groups =
                json!(["system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"]);
            json!({
                "authenticated": true, "audiences": audiences,
                "user": { "username": subject, "uid": uid, "groups": groups },
            })
        } else {
            json!({ "user": {}, "error": "[invalid bearer token, service account ci/builder has been deleted]" })
        };
        if self.behavior == Behavior::WithoutAudiences {
            review["status"].as_object_mut().unwrap().remove("audiences");
        }
        review.to_string()
    }
}

/// A service whose role is for pods of a cluster.
struct Tested {
    service: Service,
    cluster: Cluster,
    key: SigningKey,
    issuer: String,
    folder: TempDir,
}

impl Tested {
    fn new() -> Self {
        let (authority, key, folder) = (Authority::new(), SigningKey::p256(), tempfile::tempdir().unwrap());
        let cluster = Cluster::start(&authority.certify_server("localhost"), keys(&[key.jwk("1")]));
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let token_review = TokenReviewConfig {
            url: cluster.url.clone(),
            token_file: file("token", &format!("{REVIEWER}\n")),
        };
        let url = "https://kubernetes.default.svc.cluster.local".to_owned();
        let mut config = config();
        config.issuer = vec![IssuerConfig {
            issuer: url.clone(),
            jwks_url: Some(format!("{}{JWKS}", cluster.url)),
            ca: Some(file("ca.pem", &authority.pem)),
            token_review: Some(token_review),
            ..issuer()
        }];
        let claims = [("/kubernetes.io/namespace".to_owned(), vec!["ci".to_owned()])].into();
        config.role = vec![RoleConfig { subjects: vec![SUBJECT.to_owned()], claims, ..role() }];
        let keystore = keystore(&[]);
        create(&keystore, "release");
        Self { service: Service::start(keystore, config), cluster, key, issuer: url, folder }
    }

    /// The claims of a pod's JWT.
    fn claims(&self) -> Value {
        json!({
            "iss": self.issuer, "aud": "bulla", "sub": SUBJECT, "exp": now() + 600, "iat": now(),
            "kubernetes.io": { "namespace": "ci", "serviceaccount": { "name": "builder", "uid": "uid-1" } },
        })
    }

    fn login(&self, claims: &Value) -> Answer {
        log_in(&self.service, "release", &self.key.jwt("1", claims))
    }

    #[track_caller]
    fn refused(&self, claims: &Value, words: &str) {
        let answer = self.login(claims);
        assert_eq!(answer.error(), (403, "forbidden".to_owned()), "{words}");
        assert!(answer.text().contains(words), "{}", answer.text());
    }
}

#[test]
fn the_cluster_says_at_each_login_whether_a_jwt_still_counts() {
    let tested = Tested::new();
    let made = tested.login(&tested.claims()).ok();
    assert_eq!(made["holder"], format!("ci/{SUBJECT}"));
    tested.login(&tested.claims()).ok();
    assert_eq!(tested.cluster.reviews(), 2);
    let body = json!({ "role": "release", "jwt": tested.key.jwt("1", &tested.claims()) });
    let auth = tested.service.post(None, "/v1/auth/kubernetes/login", &body).ok();
    assert_eq!(auth["auth"]["metadata"]["role"], "release");
    // The service account is deleted, and one of the same name is made.
    for accounts in [vec![], vec![(SUBJECT.to_owned(), "uid-2".to_owned())]] {
        tested.cluster.state.lock().unwrap().accounts = accounts;
        tested.refused(&tested.claims(), "the cluster does not accept the JWT any more");
    }
    let refused = tested.service.post(None, "/v1/auth/kubernetes/login", &body);
    assert_eq!((refused.status, &refused.json()["errors"]), (403, &json!(["permission denied"])));
}

#[test]
fn a_cluster_is_not_asked_about_jwts_of_strangers() {
    let tested = Tested::new();
    let stranger = SigningKey::p256().jwt("1", &tested.claims());
    assert_eq!(log_in(&tested.service, "release", &stranger).error().0, 403);
    let with = |field: &str, value: Value| {
        let mut claims = tested.claims();
        claims[field] = value;
        claims
    };
    tested.refused(&with("aud", json!("else")), "another audience");
    tested.refused(&with("exp", json!(now() - 60)), "expired");
    tested.refused(&with("sub", json!("system:serviceaccount:ci:other")), "`sub`");
    assert_eq!(tested.cluster.reviews(), 0);
}

#[test]
fn a_cluster_that_gives_no_verdict_lets_nobody_in() {
    let tested = Tested::new();
    tested.login(&tested.claims()).ok();
    let text = |json: Value| Behavior::Saying(json.to_string());
    for behavior in [
        Behavior::Failing(401),
        Behavior::Failing(403),
        Behavior::Failing(404),
        Behavior::Failing(429),
        Behavior::Failing(500),
        Behavior::Failing(302),
        Behavior::Closing,
        Behavior::Saying(String::new()),
        Behavior::Saying(failure(403, "Forbidden")),
        text(json!({ "apiVersion": "v1", "kind": "TokenReview", "status": { "authenticated": true } })),
    ] {
        tested.cluster.set(behavior);
        assert_eq!(tested.login(&tested.claims()).error(), (503, "unavailable".to_owned()));
    }
    tested.cluster.set(Behavior::WithoutAudiences);
    tested.refused(&tested.claims(), "the cluster says that the JWT is for another audience");
    tested.cluster.set(Behavior::Healthy);
    tested.login(&tested.claims()).ok();
}

#[test]
fn the_reviewers_token_is_read_again_for_each_question() {
    let tested = Tested::new();
    tested.login(&tested.claims()).ok();
    tested.cluster.state.lock().unwrap().reviewer = "another".to_owned();
    let file = tested.folder.path().join("token");
    for token in ["reviewer", "", "two\nlines"] {
        std::fs::write(&file, token).unwrap();
        assert_eq!(tested.login(&tested.claims()).error().0, 503, "{token}");
    }
    std::fs::write(&file, "another").unwrap();
    tested.login(&tested.claims()).ok();
}
