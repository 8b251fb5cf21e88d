//! Callers of a service: one that sends requests one after another on one connection, and the load
//! of many, by `wrk` and `h2load`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::quiet;
use serde_json::{Value, json};

use super::{
    cases::{Case, KEYS, Request, Way, label, message, to_sign},
    served::{LOAD, ROLE, Served},
};

/// How long each measurement takes.
const SECONDS: u32 = 5;

/// One request, to be made as often as possible or at a rate.
pub(super) struct Load<'a> {
    pub(super) url: String,
    pub(super) body: String,
    pub(super) connections: usize,
    pub(super) token: &'a str,
    /// Where the request is written for the programs that make the load.
    pub(super) folder: &'a Path,
}

impl<'a> Load<'a> {
    /// The request of a case. What it verifies was signed by the service before.
    pub(super) fn of(case: &Case, way: Way, served: &'a Served) -> Result<Self> {
        let (path, body) = match case.request {
            Request::Sign | Request::SignMany => to_sign_by_one_key(case)?,
            Request::Verify => {
                let key = format!("/api/v1/keys/{}", label(0));
                let signed = served.post(&(key.clone() + "/sign"), &json!({ "message": message(0) }))?;
                let signature = &signed["signature"];
                (key + "/verify", json!({ "message": message(0), "signature": signature }))
            }
            Request::Login => ("/api/v1/login".to_owned(), json!({ "role": ROLE, "jwt": served.jwt()? })),
            Request::VerifyMany(keys) => {
                let keys = keys.min(KEYS);
                let signed = served.post("/api/v1/sign", &to_sign(case.items, |item| label(item % keys)))?;
                let results = signed["results"].as_array().context("no results")?;
                let items = results.iter().enumerate().map(|(item, signed)| {
                    json!({ "key": signed["key"], "message": message(item), "signature": signed["signature"] })
                });
                ("/api/v1/verify".to_owned(), json!({ "items": items.collect::<Vec<_>>() }))
            }
        };
        let answer = served.post(&path, &body)?;
        let verdicts = answer["results"].as_array().cloned().unwrap_or_else(|| vec![answer]);
        ensure!(
            verdicts.iter().all(|one| one.get("error").is_none() && one["valid"] != false),
            "{}: {verdicts:?}",
            case.name
        );
        let url = match way {
            Way::Tls => format!("https://{}{path}", served.tls_address),
            _ => format!("http://{}{path}", served.address),
        };
        let (token, folder) = (&served.token, &served.folder);
        Ok(Self { url, body: body.to_string(), connections: case.connections, token, folder })
    }

    /// Requests a second, when the next one follows each answer at once.
    pub(super) fn full(&self) -> Result<f64> {
        self.full_from(LOAD, SECONDS)
    }

    /// Makes the load from these processors, for that long.
    pub(super) fn full_from(&self, processors: &str, seconds: u32) -> Result<f64> {
        let script = self.folder.join("request.lua");
        let token = self.token;
        let headers = format!("wrk.headers[\"Authorization\"] = \"Bearer {token}\"");
        fs::write(&script, format!("wrk.method = \"POST\"\nwrk.body = [[{}]]\n{headers}\n", self.body))?;
        let mut wrk = Command::new("taskset");
        wrk.args([
            "-c",
            processors,
            "wrk",
            "-t1",
            &format!("-c{}", self.connections),
            &format!("-d{seconds}s"),
            "-s",
        ]);
        let said = quiet(wrk.arg(script).arg(&self.url))?;
        ensure!(!said.contains("Non-2xx"), "the service refuses requests:\n{said}");
        let rate = said.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
        Ok(rate.context("wrk says no rate")?.trim().parse()?)
    }

    /// Milliseconds within which 99 of 100 requests are answered, at so many requests a second.
    pub(super) fn p99_at(&self, rate: f64) -> Result<f64> {
        let (body, log) = (self.folder.join("request.json"), self.folder.join("times.tsv"));
        fs::write(&body, &self.body)?;
        if log.exists() {
            fs::remove_file(&log)?;
        }
        let per_connection = (rate / self.connections as f64).max(1.0);
        let mut h2load = Command::new("taskset");
        h2load.args(["-c", LOAD, "h2load", "--h1", "-t1", &format!("-c{}", self.connections)]);
        h2load.args([format!("-D{SECONDS}"), format!("--rps={per_connection:.0}")]);
        h2load.arg("-d").arg(&body).arg(format!("--log-file={}", log.display()));
        h2load.args(["-H", &format!("authorization: Bearer {}", self.token)]).arg(&self.url);
        quiet(&mut h2load)?;
        p99(&log)
    }
}

/// The path and the body of a request to sign by one key.
pub(super) fn to_sign_by_one_key(case: &Case) -> Result<(String, Value)> {
    if case.request == Request::Sign {
        return Ok((format!("/api/v1/keys/{}/sign", label(0)), json!({ "message": message(0) })));
    }
    let mut body = to_sign(case.items, |_| label(0));
    for item in body["items"].as_array_mut().into_iter().flatten() {
        item.as_object_mut().context("an item is an object")?.remove("key");
    }
    body["key"] = Value::String(label(0));
    Ok(("/api/v1/sign".to_owned(), body))
}

/// From the times of all requests, as h2load writes them: begin, status, microseconds.
fn p99(log: &PathBuf) -> Result<f64> {
    let text = fs::read_to_string(log)?;
    let mut times = Vec::new();
    for line in text.lines() {
        let mut columns = line.split('\t').skip(1);
        let (status, time) = (columns.next(), columns.next());
        ensure!(status == Some("200"), "a request was answered {status:?}");
        times.push(time.context("h2load writes no time")?.parse::<u64>()?);
    }
    times.sort_unstable();
    let place = times.len() * 99 / 100;
    Ok(*times.get(place).context("there was no request")? as f64 / 1000.0)
}

/// A caller, and the connection that it keeps.
pub(super) struct Caller {
    stream: BufReader<Box<dyn Stream>>,
    /// The header that names the caller, or nothing.
    authorization: String,
}

trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

impl Caller {
    /// The holder of a token, at an address.
    pub(super) fn of(address: &str, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self::new(Box::new(stream), format!("authorization: Bearer {token}\r\n")))
    }

    /// This user, at a socket.
    pub(super) fn at(socket: &Path) -> Result<Self> {
        Ok(Self::new(Box::new(UnixStream::connect(socket)?), String::new()))
    }

    fn new(stream: Box<dyn Stream>, authorization: String) -> Self {
        Self { stream: BufReader::new(stream), authorization }
    }

    /// The service's answer to a request.
    ///
    /// # Errors
    /// The answer is no success; the connection breaks.
    pub(super) fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        let (status, answer) = self.ask("POST", path, &body.to_string())?;
        ensure!((200..300).contains(&status), "{path}: {status} {answer}");
        Ok(serde_json::from_str(&answer)?)
    }

    /// The status and the body of an answer.
    ///
    /// # Errors
    /// The connection breaks.
    pub(super) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let (authorization, length) = (&self.authorization, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{authorization}content-length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.read()
    }

    fn read(&mut self) -> Result<(u16, String)> {
        let (mut status, mut length) = (None, Some(0));
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest.get(..3).and_then(|number| number.parse().ok());
            } else if let Some(number) = line.strip_prefix("content-length: ") {
                length = Some(number.parse()?);
            } else if line == "transfer-encoding: chunked" {
                length = None;
            } else if line.is_empty() {
                break;
            }
        }
        let body = match length {
            Some(length) => self.bytes(length)?,
            None => self.chunks()?,
        };
        Ok((status.context("the service answers no HTTP")?, String::from_utf8(body)?))
    }

    /// A body in chunks, each with its length in hexadecimal before it; the last one is empty.
    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim_end(), 16)?;
            body.extend(self.bytes(length)?);
            // A line ends after each chunk.
            self.bytes(2)?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
