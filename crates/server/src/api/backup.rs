//! Backups of the whole keystore, as a stream.

use std::borrow::Cow;
use std::io::{self, Write};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::request::handler::routes;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bulla_kms::encryption::{KeyProvider, Recipient};
use bulla_kms::token::TokenOperation;
use bulla_kms::{BackupSummary, KmsError};
use hyper::body::{Bytes, Frame};
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::operator::check_operator;
use crate::error::{ApiError, ApiErrorCode, ErrorBody, Result};
use crate::request::{BodyBytes, Caller, List, no_store, parse};
use crate::service::Worker;

pub(crate) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new().routes(routes!(backup))
}

/// The bytes that are sent together.
const PIECE_LEN: usize = 64 << 10;
/// How many pieces may wait for the network. Then the backup itself waits.
const MAX_BUFFERED_PIECES: usize = 4;

/// A backup to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MakeBackup<'a> {
    /// Who can open it, 1 to 8: `age1...`, `x-wing:...`, or the public key file of another
    /// keystore's key.
    #[serde(borrow)]
    #[schema(value_type = Vec<String>, min_items = 1, max_items = 8)]
    recipients: List<Cow<'a, str>, 8>,
}

/// A backup: sealed data, which `bulla keystore restore` reads.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code, reason = "it describes what the keystore writes")]
struct BackupFile(Vec<u8>);

/// Make a backup of the whole keystore, encrypted to recipients.
///
/// It has the private keys of all tenants, and those that sign tokens. So a token's holder can have
/// one made only for recipients that the service's configuration names (`backup_recipients`). A
/// caller who may mint tokens names any. If the answer ends early, the backup failed: only a whole
/// one opens. The headers say what the backup has.
#[utoipa::path(post, path = "/api/v1/backup", tag = "operator", request_body = MakeBackup,
    extensions(("x-permission" = json!("operator:backup"))),
    responses((status = 200, description = "The backup", body = BackupFile, content_type = "application/octet-stream", headers(
            ("bulla-backup-keys" = u64, description = "How many keys it has"),
            ("bulla-backup-private-keys" = u64, description = "How many private keys these have"),
            ("bulla-backup-made" = String, description = "When it was made"))),
        (status = "default", body = ErrorBody)))]
async fn backup(
    State(worker): State<Worker>,
    caller: Caller,
    BodyBytes(body): BodyBytes,
) -> Result<Response> {
    check_operator(&worker, &caller, TokenOperation::Backup)?;
    let MakeBackup { recipients } = parse(&body)?;
    let to = recipients.iter().map(|text| text.parse()).collect::<bulla_kms::Result<Vec<Recipient>>>()?;
    check_recipients(&worker, &caller, &to)?;
    let (sender, mut pieces) = mpsc::channel(MAX_BUFFERED_PIECES);
    let (unsealed, session) = (caller.unsealed.clone(), caller.session.clone());
    let timeout = worker.service.limits().body_timeout();
    let mut sink = Sink { sender, network: Handle::current(), buffer: Vec::new(), timeout };
    let (told, summary) = oneshot::channel();
    spawn_blocking(move || {
        let to: Vec<_> = to.iter().map(|recipient| recipient as &dyn KeyProvider).collect();
        let target = &mut sink;
        let begin = move |summary: &BackupSummary| {
            // The caller may have gone away.
            let _ = told.send(*summary);
            target
        };
        let made = unsealed.keystore.on_behalf_of(&session.actor).backup_to(begin, &to);
        // The end is sent only now: a backup that could not be recorded does not open.
        let _ = match made {
            Ok(_) => sink.send_buffer(),
            Err(error) => sink.send(Err(error)),
        };
    });
    let lost = || ApiError::panicked();
    let first = pieces.recv().await.ok_or_else(lost)??;
    let BackupSummary { keys, private_keys, made, .. } = summary.await.map_err(|_| lost())?;
    let mut response = no_store(Response::new(Body::new(Pieces { first: Some(first), rest: pieces })));
    let content_type = HeaderValue::from_static("application/octet-stream");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert("bulla-backup-keys", keys.into());
    headers.insert("bulla-backup-private-keys", private_keys.into());
    headers.insert("bulla-backup-made", HeaderValue::from_str(&made.to_string()).map_err(|_| lost())?);
    Ok(response)
}

/// # Errors
/// The caller holds a token, and the configuration does not name all of the recipients.
fn check_recipients(worker: &Worker, caller: &Caller, recipients: &[Recipient]) -> Result<()> {
    if caller.session.authority.can_mint_tokens {
        return Ok(());
    }
    let named = worker.service.config.service.backup_recipients.iter();
    let named = named.map(|text| text.parse()).collect::<bulla_kms::Result<Vec<Recipient>>>()?;
    if recipients.iter().all(|recipient| named.contains(recipient)) {
        return Ok(());
    }
    let message = "the credential permits backups for the recipients that the service's configuration names, and for no others";
    Err(ApiError::new(ApiErrorCode::Forbidden, message))
}

type Piece = bulla_kms::Result<Bytes>;

/// Sends the bytes that are written to it in pieces. The last piece waits for
/// [`Sink::send_buffer`].
struct Sink {
    sender: mpsc::Sender<Piece>,
    network: Handle,
    buffer: Vec<u8>,
    /// How long a caller may take for a piece.
    timeout: Duration,
}

impl Sink {
    fn send(&self, piece: Piece) -> io::Result<()> {
        let sent = self.network.block_on(self.sender.send_timeout(piece, self.timeout));
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the caller went away, or is too slow"))
    }

    fn send_buffer(&mut self) -> io::Result<()> {
        let piece = mem::take(&mut self.buffer);
        self.send(Ok(piece.into()))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() >= PIECE_LEN {
            self.send_buffer()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The pieces as a body.
struct Pieces {
    first: Option<Bytes>,
    rest: mpsc::Receiver<Piece>,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = KmsError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, KmsError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        self.rest.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_waits_until_it_is_sent() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (sender, mut pieces) = mpsc::channel(MAX_BUFFERED_PIECES);
        let (network, timeout) = (runtime.handle().clone(), Duration::from_secs(60));
        let mut sink = Sink { sender, network, buffer: Vec::new(), timeout };
        sink.write_all(&[1; PIECE_LEN]).unwrap();
        sink.flush().unwrap();
        assert!(pieces.try_recv().is_err());
        sink.write_all(&[2]).unwrap();
        assert_eq!(pieces.try_recv().unwrap().unwrap(), vec![1; PIECE_LEN]);
        sink.flush().unwrap();
        assert!(pieces.try_recv().is_err());
        sink.send_buffer().unwrap();
        assert_eq!(pieces.try_recv().unwrap().unwrap(), vec![2]);
        drop(pieces);
        assert_eq!(sink.send_buffer().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
