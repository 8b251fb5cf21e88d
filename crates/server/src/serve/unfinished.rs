//! The memory of what has arrived and is not whole yet: heads of requests and TLS messages.
//!
//! The libraries keep these bytes until the end has come, up to their own limits, and callers who
//! have shown nothing decide when that is. The first bytes of each are free, so what usual callers
//! send never counts. The rest counts as the bodies of such callers do, by address and over all.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::service::{AnonymousBytes, Service};

/// As much of a head does not count: the HTTP library begins with a buffer of this length.
const FREE_HEAD_LEN: usize = 8 << 10;

/// As much of a body is read at once.
const BODY_READ_LEN: usize = 16 << 10;

/// As much of a TLS message does not count: the longest record, and some more.
const FREE_TLS_LEN: usize = 20 << 10;

/// How much longer a head of HTTP/2 may be in memory than its limit, which counts 32 bytes for each
/// header besides its text.
const HTTP2_GROWTH: usize = 4;

/// What a connection holds of a head or a message that has not ended.
pub(super) struct Unfinished {
    service: Arc<Service>,
    /// None for a Unix socket: callers on the network cannot lock out those there.
    address: Option<IpAddr>,
    free: usize,
    /// The bytes since the last end.
    bytes: AtomicUsize,
    /// What of them counts, and how many that are.
    counted: Mutex<Option<(AnonymousBytes, usize)>>,
}

impl Unfinished {
    /// The head of a request.
    pub(super) fn head(service: &Arc<Service>, address: Option<IpAddr>) -> Arc<Self> {
        Self::new(service, address, FREE_HEAD_LEN)
    }

    /// A message of TLS.
    pub(super) fn tls_message(service: &Arc<Service>, address: Option<IpAddr>) -> Arc<Self> {
        Self::new(service, address, FREE_TLS_LEN)
    }

    fn new(service: &Arc<Service>, address: Option<IpAddr>, free: usize) -> Arc<Self> {
        let (service, bytes, counted) = (Arc::clone(service), AtomicUsize::new(0), Mutex::new(None));
        Arc::new(Self { service, address, free, bytes, counted })
    }

    /// It has ended: what comes next is a body, or another one.
    pub(super) fn end(&self) {
        if self.bytes.swap(0, Ordering::Relaxed) > self.free {
            *self.counted.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    fn add(&self, bytes: usize) -> io::Result<()> {
        self.set(self.bytes.load(Ordering::Relaxed) + bytes)
    }

    /// # Errors
    /// All that have not ended would take more memory than they may.
    fn set(&self, bytes: usize) -> io::Result<()> {
        if bytes <= self.free {
            self.end();
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        let (true, Some(address)) = (bytes > self.free, self.address) else { return Ok(()) };
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, own) = counted.get_or_insert_with(|| (self.service.anonymous_memory.begin(address), 0));
        if all.grow(bytes.saturating_sub(*own)) {
            *own = bytes.max(*own);
            return Ok(());
        }
        let why = "heads of requests that have not ended take as much memory as they may";
        self.service.note_closed_connection(why);
        Err(io::Error::other(why))
    }
}

/// The bytes of a connection, with those counted that arrive and are not whole yet.
pub(super) struct Counted<S> {
    stream: S,
    parts: Parts,
}

/// How the bytes tell that something has ended.
enum Parts {
    /// The layer above tells.
    Tls(Arc<Unfinished>),
    Http(Http),
}

struct Http {
    head: Arc<Unfinished>,
    /// Below TLS, what the bytes came in.
    tls: Option<Arc<Unfinished>>,
    version: Version,
    /// The most that a head takes.
    max_head_len: usize,
    /// Whether a request is being answered: then the bytes are its body.
    is_body: Box<dyn Fn() -> bool + Send>,
}

enum Version {
    /// So many bytes of the preface of HTTP/2 have come.
    Preface(usize),
    Http1,
    Http2(Frames),
}

/// What a client of HTTP/2 sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl<S> Counted<S> {
    /// Those of a TLS connection, encrypted.
    pub(super) fn tls(stream: S, message: Arc<Unfinished>) -> Self {
        Self { stream, parts: Parts::Tls(message) }
    }

    /// Those of HTTP. With HTTP/1, [`Unfinished::end`] is called when a request begins, and
    /// `is_body` says whether one is being answered.
    pub(super) fn http(
        stream: S,
        head: Arc<Unfinished>,
        tls: Option<Arc<Unfinished>>,
        max_head_len: usize,
        is_body: impl Fn() -> bool + Send + 'static,
    ) -> Self {
        let version = Version::Preface(0);
        let http = Http { head, tls, version, max_head_len, is_body: Box::new(is_body) };
        Self { stream, parts: Parts::Http(http) }
    }
}

impl Parts {
    /// How many bytes are read at once. Nobody sees how many of them belong to the next head, so
    /// they must not be many.
    fn read_len(&self) -> usize {
        match self {
            Self::Tls(_) => usize::MAX,
            Self::Http(Http { version: Version::Http2(_), .. }) => usize::MAX,
            Self::Http(http) if (http.is_body)() => BODY_READ_LEN,
            Self::Http(_) => FREE_HEAD_LEN,
        }
    }

    fn count(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tls(message) => message.add(bytes.len()),
            Self::Http(http) => http.count(bytes),
        }
    }
}

impl Http {
    fn count(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(tls) = &self.tls {
            tls.end();
        }
        match &mut self.version {
            Version::Preface(seen) => {
                let rest = &PREFACE[*seen..];
                let same = rest.iter().zip(bytes).take_while(|(wanted, byte)| wanted == byte).count();
                if same == rest.len() {
                    self.version = Version::Http2(Frames::default());
                    return self.count(&bytes[same..]);
                }
                self.version =
                    if same == bytes.len() { Version::Preface(*seen + same) } else { Version::Http1 };
                self.head.add(bytes.len())
            }
            Version::Http1 if (self.is_body)() => Ok(()),
            Version::Http1 => self.head.add(bytes.len()),
            Version::Http2(frames) => {
                frames.read(bytes);
                self.head.set(frames.head_len(HTTP2_GROWTH * self.max_head_len))
            }
        }
    }
}

/// The frames of HTTP/2 (RFC 9113, section 4.1), as far as they tell whether a head is open.
#[derive(Default)]
struct Frames {
    /// The nine bytes before the payload of the current frame, as far as they are there.
    start: [u8; 9],
    start_len: usize,
    /// How much of its payload has come.
    payload_len: usize,
    /// Whether a head began in an earlier frame.
    is_open: bool,
}

impl Frames {
    const HEADERS: u8 = 1;
    const CONTINUATION: u8 = 9;
    const END_HEADERS: u8 = 4;

    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() || self.is_whole() {
            if self.is_whole() {
                if self.is_of_head() {
                    self.is_open = self.start[4] & Self::END_HEADERS == 0;
                }
                (self.start_len, self.payload_len) = (0, 0);
                continue;
            }
            let wanted = match self.start_len {
                9 => self.len() - self.payload_len,
                there => 9 - there,
            };
            let (taken, rest) = bytes.split_at(wanted.min(bytes.len()));
            if self.start_len == 9 {
                self.payload_len += taken.len();
            } else {
                self.start[self.start_len..][..taken.len()].copy_from_slice(taken);
                self.start_len += taken.len();
            }
            bytes = rest;
        }
    }

    /// The length of the current frame's payload.
    fn len(&self) -> usize {
        let [high, middle, low, ..] = self.start;
        usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)
    }

    fn is_whole(&self) -> bool {
        self.start_len == 9 && self.payload_len == self.len()
    }

    fn is_of_head(&self) -> bool {
        self.start_len == 9 && [Self::HEADERS, Self::CONTINUATION].contains(&self.start[3])
    }

    /// How much memory the open head takes. The frames that are whole have been decoded, and a head
    /// takes then at most `most`.
    fn head_len(&self, most: usize) -> usize {
        let of_frame = if self.is_of_head() { self.payload_len } else { 0 };
        if self.is_open { most + of_frame } else { of_frame }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, most) = (buffer.filled().len(), self.parts.read_len());
        if buffer.remaining() > most {
            let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut part))?;
            let read = part.filled().len();
            buffer.advance(read);
        } else {
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        }
        Poll::Ready(self.parts.count(&buffer.filled()[before..]))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
