//! A service that lies: the command checks everything that it can check.

use crate::support::{Done, Home};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// An answer of the service: the end of a path, a status and a body.
type Answers = Vec<(&'static str, u16, Value)>;

/// Starts a service with these answers, and returns its address.
fn lying(answers: Answers) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answers = answers.clone();
            thread::spawn(move || answer(BufReader::new(stream.unwrap()), &answers));
        }
    });
    url
}

fn answer(mut stream: BufReader<TcpStream>, answers: &Answers) {
    loop {
        let (mut path, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end();
            if path.is_empty() {
                path = line.split(' ').nth(1).unwrap().to_owned();
            } else if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            } else if line.is_empty() {
                break;
            }
        }
        stream.read_exact(&mut vec![0; length]).unwrap();
        let found = answers.iter().find(|(end, ..)| path.ends_with(end));
        let (_, status, body) = found.unwrap_or_else(|| panic!("nobody expected {path}"));
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status} It\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.get_mut().write_all((head + &body).as_bytes()).unwrap();
    }
}

fn refused() -> Value {
    json!({ "code": "forbidden", "message": "no", "retryable": false })
}

fn text(home: &Home, name: &str) -> String {
    String::from_utf8(home.read(name)).unwrap()
}

#[test]
fn a_signature_of_something_else_is_not_written() {
    let home = Home::new();
    home.write("a", "content");
    home.write("b", "another");
    home.run(["sign", "b", "--comment", "a word"]).exits(0);
    let good = text(&home, "b.bulla");
    let sign = |file: &str, args: &[&str]| {
        let key = good.lines().find_map(|line| line.strip_prefix("key: ")).unwrap();
        let signed = json!({ "key": key, "version": 1, "signature_file": file });
        let url = lying(vec![("/sign-statement", 200, signed), ("/default", 403, refused())]);
        home.run([&["sign", "--server", &url], args].concat())
    };
    let lie = "the signature in it is not the one that was asked for";
    let (comment, output) = (["--comment", "a word"], ["--output", "copy"]);
    // It is believed where it is true.
    sign(&good, &[&comment[..], &output, &["b"]].concat()).exits(0);
    assert_eq!(text(&home, "copy"), good);
    sign(&good, &[&comment[..], &["a"]].concat()).exits(2).complains(lie);
    sign(&good, &["b", "--output", "other"]).exits(2).complains(lie);
    sign(&good, &["b", "--comment", "a word", "--prehash", "blake3", "--output", "other"])
        .exits(2)
        .complains(lie);
    let (begin, signature) = good.split_once("signature: ").unwrap();
    let swapped = if signature.starts_with('A') { "B" } else { "A" };
    let forged = format!("{begin}signature: {swapped}{}", &signature[1..]);
    sign(&forged, &["b", "--comment", "a word", "--output", "other"]).exits(2).complains(lie);
    sign("nonsense", &["b", "--output", "other"]).exits(2).complains("it is not a signature file");
    assert!(!home.path("a.bulla").exists() && !home.path("other").exists());
}

#[test]
fn an_attestation_that_does_not_verify_is_not_printed() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    let mut attested = home.run(["keys", "attest"]).exits(0).json().remove(0);
    let attest = |attested: &Value| {
        let url = lying(vec![("/attest", 200, attested.clone())]);
        home.run(["keys", "attest", "--server", &url])
    };
    attested["attestation"]["revision"] = json!(99);
    attest(&attested).exits(2).complains("not one of the key that it names");
    attest(&json!({ "attestation": "good" })).exits(2).complains("it is not an attestation");
}

#[test]
fn a_log_that_forked_is_found_by_proofs() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["log", "init"]).exits(0);
    let checkpoint = |home: &Home, name: &str| {
        home.run(["log", "checkpoint", "--output", name]).exits(0);
    };
    checkpoint(&home, "old.note");
    // Two logs with the same beginning.
    let fork = crate::both::copied(&home);
    fork.run(["keys", "create", "there"]).exits(0);
    checkpoint(&fork, "fork.note");
    home.run(["keys", "create", "here"]).exits(0);
    home.run(["keys", "rotate", "here"]).exits(0);
    checkpoint(&home, "new.note");
    home.write("fork.note", fork.read("fork.note"));
    home.run(["log", "prove", "--since", "old.note", "--output", "growth.json"]).exits(0);
    home.run(["keys", "export-public", "audit-log", "--output", "audit.pub"]).exits(0);
    let growth: Value = serde_json::from_str(&text(&home, "growth.json")).unwrap();
    let newest = json!({ "log": "", "size": 5, "root": "", "time": "2026-01-31T00:00:00Z", "key": "", "checkpoint": text(&home, "new.note") });
    let said = json!({ "valid": true, "entries": 5, "checkpoints": 3, "signed_entries": 5, "problems": [], "checkpoint": newest });
    // The service reports success for every question, with a valid proof of something else.
    let url = lying(vec![("/audit-log/verify", 200, said), ("/consistency", 200, growth)]);
    let verify = |name: &str| {
        let args = ["log", "verify", "--server", &url, "--public-key", "audit.pub", "--checkpoint", name];
        Done::of(home.command().args(args))
    };
    verify("old.note").exits(0);
    verify("fork.note").exits(1).says("truncated").says("cannot prove");
}
