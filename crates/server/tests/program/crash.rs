//! A service that is killed while it rotates keys and signs.

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
}

#[test]
fn a_service_that_is_killed_loses_nothing_that_it_acknowledged() {
    let runs = std::env::var("BULLA_CRASH_RUNS").map_or(RUNS, |runs| runs.parse().expect("a number of runs"));
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    settings(&home, "");
    let mut acknowledged = Acknowledged { head: 1, ..Acknowledged::default() };
    let (mut verified, mut unanswered) = (0, 0);
    for run in 0..=runs {
        let serving = Serving::start(&home);
        unanswered += check(&serving, &acknowledged);
        verified += acknowledged.signatures.len();
        if run < runs {
            // Delays of all lengths, which no period of the work divides.
            let delay = Duration::from_millis(20 + run * 37 % 200);
            let head = acknowledged.head;
            acknowledged = load_and_kill(serving, head, delay);
        }
    }
    let versions = acknowledged.head;
    println!(
        "{runs} kills: {versions} versions, {unanswered} of them stored and not answered, {verified} signatures verified"
    );
    assert!(versions > runs && verified > 0, "there was no load");
}

/// Everything acknowledged is there, and no signature is by a version that is not. Tells how many
/// versions are there beyond.
fn check(serving: &Serving<'_>, acknowledged: &Acknowledged) -> u64 {
    let mut connection = serving.connect();
    let (status, key) = connection.send("GET", "/api/v1/keys/default", &[], &Value::Null).unwrap();
    assert_eq!(status, 200, "{key}");
    let head = key["head"].as_u64().unwrap();
    assert!(
        head >= acknowledged.head,
        "version {} was acknowledged, the newest is {head}",
        acknowledged.head
    );
    assert_eq!(key["versions"].as_array().map(Vec::len), Some(head as usize));
    for (version, signature) in &acknowledged.signatures {
        assert!(*version <= head, "version {version} signed, and the newest is {head}");
        let body = json!({ "message": "eA==", "signature": signature, "version": version });
        let (_, verified) = connection.send("POST", "/api/v1/keys/default/verify", &[], &body).unwrap();
        assert_eq!(verified["valid"], true, "version {version} of {head}: {verified}");
    }
    head - acknowledged.head
}

/// How many clients rotate, and how many sign, at the same time.
const ROTATING: usize = 2;
const SIGNING: usize = 3;

/// How many of a client's newest signatures are verified.
const KEPT: usize = 200;

/// Rotates and signs until the service is killed after `delay`.
fn load_and_kill(mut serving: Serving<'_>, head: u64, delay: Duration) -> Acknowledged {
    let connections: Vec<_> = (0..ROTATING + SIGNING).map(|_| serving.connect()).collect();
    std::thread::scope(|scope| {
        let mut connections = connections.into_iter();
        let rotating: Vec<_> =
            connections.by_ref().take(ROTATING).map(|one| scope.spawn(move || rotate(one, head))).collect();
        let signing: Vec<_> = connections.map(|one| scope.spawn(move || sign(one))).collect();
        std::thread::sleep(delay);
        serving.signal(Signal::KILL);
        serving.ends();
        let heads = rotating.into_iter().map(|client| client.join().unwrap());
        let head = heads.max().unwrap();
        let signatures = signing.into_iter().flat_map(|client| client.join().unwrap());
        Acknowledged { head, signatures: signatures.collect() }
    })
}

/// Rotates a key until the service ends. Returns the latest version that the service acknowledged.
/// Each rotation made a new version.
fn rotate(mut connection: Connection, head: u64) -> u64 {
    let mut newest = head;
    while let Ok((status, key)) = connection.send("POST", "/api/v1/keys/default/rotate", &[], &Value::Null) {
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
    signatures.drain(..signatures.len().saturating_sub(KEPT));
    signatures
}
