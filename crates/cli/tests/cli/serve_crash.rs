//! A service that is killed while it rotates keys and signs.

use crate::serving::{Serving, settings};
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
    home.run(["keys", "init"]).exits(0);
    settings(&home, "");
    let mut acknowledged = Acknowledged { head: 1, ..Acknowledged::default() };
    for run in 0..=runs {
        let serving = Serving::start(&home);
        check(&serving, &acknowledged);
        if run < runs {
            // Delays of all lengths, which no period of the work divides.
            let delay = Duration::from_millis(20 + run * 37 % 200);
            acknowledged = load_and_kill(serving, acknowledged.head, delay);
        }
    }
}

/// Everything acknowledged is there, and no signature is by a version that is not.
fn check(serving: &Serving<'_>, acknowledged: &Acknowledged) {
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
}

/// Rotates and signs until the service is killed after `delay`.
fn load_and_kill(mut serving: Serving<'_>, head: u64, delay: Duration) -> Acknowledged {
    let (mut rotating, mut signing) = (serving.connect(), serving.connect());
    std::thread::scope(|scope| {
        let rotations = scope.spawn(move || {
            let mut newest = head;
            while let Ok((status, key)) =
                rotating.send("POST", "/api/v1/keys/default/rotate", &[], &Value::Null)
            {
                assert_eq!(status, 200, "{key}");
                newest = key["head"].as_u64().unwrap();
            }
            newest
        });
        let signatures = scope.spawn(move || {
            let (mut signatures, body) = (Vec::new(), json!({ "message": "eA==" }));
            while let Ok((status, signed)) = signing.send("POST", "/api/v1/keys/default/sign", &[], &body) {
                assert_eq!(status, 200, "{signed}");
                signatures.push((
                    signed["version"].as_u64().unwrap(),
                    signed["signature"].as_str().unwrap().to_owned(),
                ));
            }
            signatures
        });
        std::thread::sleep(delay);
        serving.signal(Signal::KILL);
        serving.ends();
        let mut signatures = signatures.join().unwrap();
        // The newest ones are by the versions that were stored last.
        signatures.drain(..signatures.len().saturating_sub(500));
        Acknowledged { head: rotations.join().unwrap(), signatures }
    })
}
