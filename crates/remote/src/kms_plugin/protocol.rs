//! The protocol: the messages of `v2.KeyManagementService`, and its three methods over gRPC.
//!
//! <https://kubernetes.io/docs/tasks/administer-cluster/kms-provider/>

use super::provider::Provider;
use prost::Message;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tonic::codegen::{Body, BoxFuture, Service, StdError, http};
use tonic::server::{Grpc, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use zeroize::Zeroize as _;

/// The longest request. The API server sends annotations of at most 32 KiB, and a ciphertext and a
/// key id of at most 1 KiB each.
const MAX_REQUEST_LEN: usize = 64 << 10;
/// The time for a request that states none, or a longer one.
const MAX_TIME: Duration = Duration::from_secs(30);

/// Asks whether the plugin works, and for the current key id.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusRequest {}

/// That it works, and the current key id.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    /// The version of the protocol.
    #[prost(string, tag = "1")]
    pub(super) version: String,
    /// `ok`.
    #[prost(string, tag = "2")]
    pub(super) healthz: String,
    /// The key that encrypts. When it changes, the API server makes a new secret, has that
    /// encrypted, and uses it for whatever is written from then on.
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
}

/// Asks to encrypt.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct EncryptRequest {
    /// The secret from which the API server derives keys.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plaintext: Vec<u8>,
    /// The request in the API server's log.
    #[prost(string, tag = "2")]
    pub(super) uid: String,
}

/// A ciphertext, and what the API server keeps beside it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) ciphertext: Vec<u8>,
    /// The key that encrypted.
    #[prost(string, tag = "2")]
    pub(super) key_id: String,
    /// More that the plugin would need to decrypt. This one needs nothing.
    #[prost(map = "string, bytes", tag = "3")]
    pub(super) annotations: HashMap<String, Vec<u8>>,
}

/// Asks to decrypt what a response to an [`EncryptRequest`] had.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) ciphertext: Vec<u8>,
    /// The request in the API server's log.
    #[prost(string, tag = "2")]
    pub(super) uid: String,
    #[prost(string, tag = "3")]
    pub(super) key_id: String,
    #[prost(map = "string, bytes", tag = "4")]
    pub(super) annotations: HashMap<String, Vec<u8>>,
}

/// What was encrypted.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plaintext: Vec<u8>,
}

/// Shows no plaintext.
impl fmt::Debug for EncryptRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptRequest").field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// Shows no plaintext.
impl fmt::Debug for DecryptResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecryptResponse").finish_non_exhaustive()
    }
}

impl Drop for EncryptRequest {
    fn drop(&mut self) {
        self.plaintext.zeroize();
    }
}

impl Drop for DecryptResponse {
    fn drop(&mut self) {
        self.plaintext.zeroize();
    }
}

/// The service, as the server calls it.
#[derive(Clone)]
pub(super) struct KeyManagementService(pub(super) Arc<Provider>);

impl<B> Service<http::Request<B>> for KeyManagementService
where
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let provider = Arc::clone(&self.0);
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/v2.KeyManagementService/Status" => {
                    let status = |_: StatusRequest, time| async move { provider.status(time).await };
                    answer(request, status).await
                }
                "/v2.KeyManagementService/Encrypt" => {
                    answer(request, |asked, time| async move { provider.encrypt(&asked, time).await }).await
                }
                "/v2.KeyManagementService/Decrypt" => {
                    answer(request, |asked, time| async move { provider.decrypt(&asked, time).await }).await
                }
                _ => {
                    let message = "the plugin has the methods of v2.KeyManagementService only: \
                                   set apiVersion: v2 in the EncryptionConfiguration";
                    Status::unimplemented(message).into_http()
                }
            })
        })
    }
}

/// Reads the request's message, and writes the answer. The method also gets the time that it has.
async fn answer<Asked, Answered, B, F>(
    request: http::Request<B>,
    method: impl FnOnce(Asked, Duration) -> F + Send,
) -> http::Response<tonic::body::Body>
where
    Asked: Message + Default + Send + 'static,
    Answered: Message + Default + Send + 'static,
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
    F: Future<Output = Result<Answered, Status>> + Send + 'static,
{
    Grpc::new(ProstCodec::<Answered, Asked>::default())
        .max_decoding_message_size(MAX_REQUEST_LEN)
        .unary(Method(Some(method)), request)
        .await
}

/// A function as the library calls it, once.
struct Method<M>(Option<M>);

impl<Asked, Answered, M, F> UnaryService<Asked> for Method<M>
where
    Answered: Send + 'static,
    M: FnOnce(Asked, Duration) -> F,
    F: Future<Output = Result<Answered, Status>> + Send + 'static,
{
    type Response = Answered;
    type Future = BoxFuture<Response<Answered>, Status>;

    fn call(&mut self, request: Request<Asked>) -> Self::Future {
        let timeout = request.metadata().get("grpc-timeout").and_then(|text| parse_timeout(text.as_bytes()));
        let time = timeout.unwrap_or(MAX_TIME).min(MAX_TIME);
        let answered = self.0.take().map(|method| method(request.into_inner(), time));
        Box::pin(async move {
            match answered {
                Some(answered) => answered.await.map(Response::new),
                None => Err(Status::internal("a request has one message")),
            }
        })
    }
}

/// The time for which a client waits, as gRPC writes it: 1 to 8 digits, and a unit.
fn parse_timeout(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_up_to_eight_digits_and_a_unit() {
        for (text, expected) in [
            ("3S", Duration::from_secs(3)),
            ("2999893u", Duration::from_micros(2_999_893)),
            ("10m", Duration::from_millis(10)),
            ("7n", Duration::from_nanos(7)),
            ("2M", Duration::from_secs(120)),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
        ] {
            assert_eq!(parse_timeout(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", "S", "3", "3s", "+3S", "-3S", "3.5S", "123456789S", " 3S", "3\u{665}S"] {
            assert_eq!(parse_timeout(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn messages_show_no_plaintext() {
        let plaintext = b"secret".to_vec();
        let asked = EncryptRequest { plaintext: plaintext.clone(), uid: "uid".to_owned() };
        for shown in [format!("{asked:?}"), format!("{:?}", DecryptResponse { plaintext })] {
            assert!(!shown.contains("115") && !shown.contains("secret"), "{shown}");
        }
    }
}
