//! A service that is killed while it rotates keys, signs and encrypts.

use crate::serving::{Connection, Serving, settings};
use crate::support::Home;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// How often the service is killed; `BULLA_CRASH_RUNS` asks for another number.
const RUNS: u64 = 6;

/// What the service acknowledged before it was killed.
#[derive(Default)]
struct Acknowledged {
    head: u64,
    /// Signatures, with their versions.
    signatures: Vec<(u64, String)>,
    /// The latest version of the key `rows`, which encrypts.
    rows_head: u64,
    /// Ciphertexts of all runs, with their versions.
    ciphertexts: Vec<(u64, String)>,
}

#[test]
fn a_service_that_is_killed_loses_nothing_that_it_acknowledged() {
    let runs = std::env::var("BULLA_CRASH_RUNS").map_or(RUNS, |runs| runs.parse().expect("a number of runs"));
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "create", "rows", "--algorithm", "aes-256-gcm"]).exits(0);
    settings(&home, "");
    let mut acknowledged = Acknowledged { head: 1, rows_head: 1, ..Acknowledged::default() };
    let (mut verified, mut unanswered) = (0, 0);
    for run in 0..=runs {
        let serving = Serving::start(&home);
        unanswered += check(&serving, &acknowledged);
        verified += acknowledged.signatures.len();
        if run < runs {
            // Delays of all lengths, which no period of the work divides.
            let delay = Duration::from_millis(20 + run * 37 % 200);
            let before = std::mem::take(&mut acknowledged.ciphertexts);
            acknowledged = load_and_kill(serving, &acknowledged, delay);
            acknowledged.ciphertexts.extend(before);
        }
    }
    let (versions, decrypted) = (acknowledged.head + acknowledged.rows_head, acknowledged.ciphertexts.len());
    println!(
        "{runs} kills: {versions} versions, {unanswered} of them stored and not answered, {verified} signatures verified, {decrypted} ciphertexts decrypted"
    );
    assert!(acknowledged.head > runs && verified > 0, "there was no load");
    assert!(acknowledged.rows_head > runs && decrypted > 0, "there was no load of encryptions");
}

/// The latest version of a key, which has all versions up to it, at least the acknowledged ones.
fn head(connection: &mut Connection, key: &str, acknowledged: u64) -> u64 {
    let (status, key) = connection.send("GET", &format!("/api/v1/keys/{key}"), &[], &Value::Null).unwrap();
    assert_eq!(status, 200, "{key}");
    let head = key["head"].as_u64().unwrap();
    assert!(head >= acknowledged, "version {acknowledged} was acknowledged, the newest is {head}");
    assert_eq!(key["versions"].as_array().map(Vec::len), Some(head as usize));
    head
}

/// Everything acknowledged is there, no signature is by a version that is not, and everything that
/// was encrypted in any run is decrypted. Tells how many versions are there beyond.
fn check(serving: &Serving<'_>, acknowledged: &Acknowledged) -> u64 {
    let mut connection = serving.connect();
    let rows_head = head(&mut connection, "rows", acknowledged.rows_head);
    for (version, ciphertext) in &acknowledged.ciphertexts {
        let body = json!({ "ciphertext": ciphertext });
        let (_, found) = connection.send("POST", "/api/v1/keys/rows/decrypt", &[], &body).unwrap();
        assert_eq!((&found["plaintext"], &found["version"]), (&json!("eA=="), &json!(version)), "{found}");
    }
    let head = head(&mut connection, "default", acknowledged.head);
    for (version, signature) in &acknowledged.signatures {
        assert!(*version <= head, "version {version} signed, and the newest is {head}");
        let body = json!({ "message": "eA==", "signature": signature, "version": version });
        let (_, verified) = connection.send("POST", "/api/v1/keys/default/verify", &[], &body).unwrap();
        assert_eq!(verified["valid"], true, "version {version} of {head}: {verified}");
    }
    (head - acknowledged.head) + (rows_head - acknowledged.rows_head)
}

/// How many clients rotate a key, and how many sign or encrypt with it, at the same time.
const ROTATING: usize = 2;
const WORKING: usize = 3;

/// How many of a client's newest signatures are verified, and of its newest ciphertexts decrypted.
const KEPT_SIGNATURES: usize = 200;
const KEPT_CIPHERTEXTS: usize = 40;

/// Rotates, signs and encrypts until the service is killed after `delay`.
fn load_and_kill(mut serving: Serving<'_>, before: &Acknowledged, delay: Duration) -> Acknowledged {
    let connect = |count| (0..count).map(|_| serving.connect()).collect::<Vec<_>>();
    let rotating = [("default", before.head), ("rows", before.rows_head)].map(|key| (key, connect(ROTATING)));
    let working = [sign as fn(Connection) -> _, encrypt].map(|work| (work, connect(WORKING)));
    std::thread::scope(|scope| {
        let rotating = rotating.map(|((key, head), connections)| {
            let start = |one| scope.spawn(move || rotate(one, key, head));
            connections.into_iter().map(start).collect::<Vec<_>>()
        });
        let working = working.map(|(work, connections)| {
            connections.into_iter().map(|one| scope.spawn(move || work(one))).collect::<Vec<_>>()
        });
        std::thread::sleep(delay);
        serving.signal(Signal::KILL);
        serving.ends();
        let [head, rows_head] =
            rotating.map(|clients| clients.into_iter().map(|client| client.join().unwrap()).max().unwrap());
        let [signatures, ciphertexts] =
            working.map(|clients| clients.into_iter().flat_map(|client| client.join().unwrap()).collect());
        Acknowledged { head, signatures, rows_head, ciphertexts }
    })
}

/// Rotates a key until the service ends. Returns the latest version that the service acknowledged.
/// Each rotation made a new version.
fn rotate(mut connection: Connection, key: &str, head: u64) -> u64 {
    let (mut newest, path) = (head, format!("/api/v1/keys/{key}/rotate"));
    while let Ok((status, key)) = connection.send("POST", &path, &[], &Value::Null) {
        assert_eq!(status, 200, "{key}");
        let made = key["head"].as_u64().unwrap();
        assert!(made > newest, "{made} after {newest}");
        newest = made;
    }
    newest
}

/// Signs until the service ends. Returns the signatures and the versions that made them.
fn sign(mut connection: Connection) -> Vec<(u64, String)> {
    let (mut signatures, body) = (Vec::new(), json!({ "message": "eA==" }));
    while let Ok((status, signed)) = connection.send("POST", "/api/v1/keys/default/sign", &[], &body) {
        assert_eq!(status, 200, "{signed}");
        let signature = signed["signature"].as_str().unwrap().to_owned();
        signatures.push((signed["version"].as_u64().unwrap(), signature));
    }
    // The newest ones are by the versions that were stored last.
    signatures.drain(..signatures.len().saturating_sub(KEPT_SIGNATURES));
    signatures
}

/// Encrypts until the service ends. Returns the newest ciphertexts and the versions that made them.
fn encrypt(mut connection: Connection) -> Vec<(u64, String)> {
    let (mut ciphertexts, body) = (Vec::new(), json!({ "plaintext": "eA==" }));
    while let Ok((status, made)) = connection.send("POST", "/api/v1/keys/rows/encrypt", &[], &body) {
        assert_eq!(status, 200, "{made}");
        let ciphertext = made["ciphertext"].as_str().unwrap().to_owned();
        ciphertexts.push((made["version"].as_u64().unwrap(), ciphertext));
    }
    ciphertexts.drain(..ciphertexts.len().saturating_sub(KEPT_CIPHERTEXTS));
    ciphertexts
}
