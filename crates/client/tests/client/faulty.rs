//! A proxy that makes faults: it treats the first requests as a test says, and forwards all others.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What happens to a request.
#[derive(Clone, Copy)]
pub(crate) enum Fault {
    /// The proxy gives this answer. The service does not get the request.
    Answer(Canned),
    /// The answer is cut short. The service does not get the request.
    Short,
    /// The connection ends. The service does not get the request.
    Cut,
    /// There is no answer.
    Silence,
    /// The service gets the request, and the connection ends before its answer.
    Lost,
    /// The service gets the request, and its answer is passed on. Then the connection ends.
    Last,
}

/// An answer: its status, how many seconds it asks to wait, and its body.
#[derive(Clone, Copy)]
pub(crate) struct Canned(pub(crate) u16, pub(crate) u32, pub(crate) &'static str);

impl Canned {
    fn text(self) -> String {
        let Self(status, seconds, body) = self;
        let length = body.len();
        format!("HTTP/1.1 {status} It\r\ncontent-length: {length}\r\nretry-after: {seconds}\r\n\r\n{body}")
    }
}

pub(crate) struct Faulty {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The number of its connection.
    pub(crate) connection: usize,
    head: String,
    body: Vec<u8>,
}

impl Request {
    /// The path and the query.
    pub(crate) fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

impl Faulty {
    /// A proxy before the service at `url`.
    pub(crate) fn before(url: &str, faults: &[Fault]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let service = url.strip_prefix("http://").unwrap().to_owned();
        let faults = Arc::new(Mutex::new(VecDeque::from(faults.to_vec())));
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let requests = Arc::clone(&seen);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (service, faults, seen) = (service.clone(), Arc::clone(&faults), Arc::clone(&requests));
                thread::spawn(move || serve(stream.unwrap(), number, &service, &faults, &seen));
            }
        });
        Self { url: format!("http://{address}"), seen }
    }

    /// The requests that came.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(
    client: TcpStream,
    connection: usize,
    service: &str,
    faults: &Mutex<VecDeque<Fault>>,
    seen: &Mutex<Vec<Request>>,
) {
    let mut client = BufReader::new(client);
    while let Some((head, body)) = read(&mut client) {
        seen.lock().unwrap().push(Request { connection, head: head.clone(), body: body.clone() });
        let fault = faults.lock().unwrap().pop_front();
        match fault {
            Some(Fault::Answer(answer)) => client.get_mut().write_all(answer.text().as_bytes()).unwrap(),
            Some(Fault::Short) => {
                client.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{").unwrap();
                break;
            }
            Some(Fault::Cut) => break,
            Some(Fault::Silence) => continue,
            fault => {
                let answer = ask(service, &head, &body);
                if matches!(fault, Some(Fault::Lost)) {
                    break;
                }
                client.get_mut().write_all(&answer).unwrap();
                if matches!(fault, Some(Fault::Last)) {
                    break;
                }
            }
        }
    }
    let _ = client.get_ref().shutdown(Shutdown::Both);
}

/// The service's answer.
fn ask(service: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let mut service = BufReader::new(TcpStream::connect(service).unwrap());
    service.get_mut().write_all(&[head.as_bytes(), body].concat()).unwrap();
    let (head, body) = read(&mut service).unwrap();
    [head.as_bytes(), &body].concat()
}

/// A head and its body; none at the end.
fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let begin = head.len();
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
        let line = head[begin..].trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}

impl PartialEq for Request {
    /// Whether the two are the same, except for the connection.
    fn eq(&self, other: &Self) -> bool {
        (&self.head, &self.body) == (&other.head, &other.body)
    }
}
