//! Traces of `bulla serve`, as a collector gets them.

use crate::serving::{Serving, settings};
use crate::support::Home;
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

/// A collector of traces that takes one request. Gives its address and what it got.
fn collector() -> (String, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let got = std::thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let (mut head, mut length) = (Vec::new(), 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            head.extend_from_slice(line.as_bytes());
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        [head, body].concat()
    });
    (address, got)
}

#[test]
fn a_request_is_a_span_in_the_trace_of_its_caller() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    let (address, got) = collector();
    settings(&home, &format!("[trace]\notlp_endpoint = \"{address}\""));
    let mut serving = Serving::start(&home);
    let trace: [u8; 16] = std::array::from_fn(|index| 0xa0 + index as u8);
    let hex: String = trace.iter().map(|byte| format!("{byte:02x}")).collect();
    let parent = format!("00-{hex}-0102030405060708-01");
    let headers = [("traceparent", parent.as_str()), ("authorization", "Bearer hunter2")];
    let body = json!({ "message": "hunter2" });
    serving.connect().send("POST", "/api/v1/keys/default/sign?hunter2", &headers, &body).unwrap();
    serving.signal(Signal::TERM);
    assert_eq!(serving.ends().code(), Some(0));
    let got = got.join().unwrap();
    let has = |bytes: &[u8]| got.windows(bytes.len()).any(|window| window == bytes);
    assert!(got.starts_with(b"POST /v1/traces HTTP/1.1\r\n"));
    assert!(has(&trace) && has(&[1, 2, 3, 4, 5, 6, 7, 8]), "the caller's trace and span");
    assert!(has(b"/api/v1/keys/default/sign") && has(b"http.response.status_code"));
    assert!(!has(b"hunter2"));
}
