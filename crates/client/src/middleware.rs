//! Code of yours around each request: measurements, more headers, a circuit breaker.
//!
//! A middleware sees each attempt of a call. It sees neither tokens nor bodies, because both are
//! secret.
//!
//! ```
//! use bulla_client::middleware::{Middleware, Next, Request, Response};
//! use bulla_client::{BoxFuture, Client, Result};
//!
//! /// Prints how long each request takes.
//! struct PrintTimes;
//!
//! impl Middleware for PrintTimes {
//!     fn handle<'a>(
//!         &'a self,
//!         request: Request<'a>,
//!         next: Next<'a>,
//!     ) -> BoxFuture<'a, Result<Response>> {
//!         Box::pin(async move {
//!             let (operation, start) = (request.operation(), std::time::Instant::now());
//!             let response = next.run(request).await;
//!             println!("{} took {:?}", operation.id(), start.elapsed());
//!             response
//!         })
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let client = Client::builder("unix:/run/bulla/socket".parse()?).middleware(PrintTimes).build()?;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use hyper::HeaderMap;
use hyper::body::Incoming;

use crate::client::Client;
use crate::connection::Connection;
use crate::error::Result;
use crate::operation::Operation;
use crate::request::Call;

/// A future that a trait object gives.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Code around each request. The module has an example.
pub trait Middleware: Send + Sync + 'static {
    /// Handles a request: it calls [`Next::run`], most often once, and returns its answer.
    ///
    /// # Errors
    /// Those of [`Next::run`]. [`Error::middleware`](crate::Error::middleware) makes others: they
    /// end the call.
    fn handle<'a>(&'a self, request: Request<'a>, next: Next<'a>) -> BoxFuture<'a, Result<Response>>;
}

/// One attempt of a call.
///
/// ```
/// use bulla_client::http::HeaderValue;
/// use bulla_client::middleware::Request;
///
/// /// For a middleware that passes a trace on.
/// fn add_trace(request: &mut Request<'_>, traceparent: HeaderValue) {
///     if request.attempt() == 0 {
///         println!("{} sends {:?}", request.operation().id(), request.headers());
///     }
///     request.headers_mut().insert("traceparent", traceparent);
/// }
/// ```
pub struct Request<'a> {
    pub(crate) call: &'a Call,
    pub(crate) attempt: u32,
    pub(crate) headers: HeaderMap,
}

impl Request<'_> {
    /// What the request asks for.
    pub fn operation(&self) -> Operation {
        self.call.operation
    }

    /// How often the call was tried before: 0 for its first request.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The headers, without the token.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The headers, to add one: `traceparent`, for example.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("operation", &self.operation())
            .field("attempt", &self.attempt)
            .field("headers", &self.headers)
            .finish()
    }
}

/// The head of an answer.
///
/// ```
/// use bulla_client::middleware::Response;
///
/// fn is_cached(response: &Response) -> bool {
///     response.status() == 200 && response.headers().contains_key("age")
/// }
/// ```
pub struct Response {
    pub(crate) answer: hyper::Response<Incoming>,
    pub(crate) connection: Connection,
}

impl Response {
    /// The HTTP status. An error of the service has one of 400 and more.
    pub fn status(&self) -> u16 {
        self.answer.status().as_u16()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.answer.headers()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status())
            .field("headers", self.headers())
            .finish_non_exhaustive()
    }
}

/// The rest of the way to the service: the middlewares that were added later, and the connection.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    pub(crate) client: &'a Client,
    pub(crate) rest: &'a [Arc<dyn Middleware>],
}

impl<'a> Next<'a> {
    /// Sends the request.
    ///
    /// # Errors
    /// There is no answer. An answer with an error of the service is none here:
    /// [`Response::status`].
    pub fn run(self, request: Request<'a>) -> BoxFuture<'a, Result<Response>> {
        let Self { client, rest } = self;
        match rest.split_first() {
            Some((first, rest)) => first.handle(request, Next { client, rest }),
            None => Box::pin(client.send(request)),
        }
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("middlewares", &self.rest.len()).finish_non_exhaustive()
    }
}
