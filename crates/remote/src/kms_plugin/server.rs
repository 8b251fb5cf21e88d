//! The plugin's socket, and its life.

use super::protocol::KeyManagementService;
use super::provider::Provider;
use crate::args::KmsPluginCli;
use crate::connection::{client_builder, error_of, given_token, parse_token};
use bulla_cli::keystore::ServerArgs;
use bulla_client::{BoxError, BoxFuture, Token, TokenProvider};
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_command::exit::Exit;
use bulla_command::interrupt;
use bulla_files::{SocketFile, escape_path, folder_of, listen_unix};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

/// The owner and the group may connect.
const SOCKET_MODE: u32 = 0o660;
/// The API server has one connection.
const BACKLOG: i32 = 64;
/// How many requests of a connection are answered at a time; others wait.
const MAX_REQUESTS: usize = 64;
/// The longest head of a request: far more than gRPC needs.
const MAX_HEAD_LEN: u32 = 16 << 10;
/// The first pause before a request to the service is repeated, and how often that is done: 1.6
/// seconds at most in all. The API server waits for 3 seconds, unless its configuration says
/// otherwise.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
const MAX_RETRIES: u32 = 5;

pub(super) fn run(cli: &KmsPluginCli) -> Result<Exit> {
    let provider = Provider::new(client(&cli.server)?, cli.key.clone());
    let (listener, file) = listen(&cli.socket)?;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::io("cannot start", &error))?;
    runtime.block_on(serve(listener, provider, file.path()))?;
    Ok(Exit::Ok)
}

async fn serve(listener: UnixListener, provider: Provider, path: &Path) -> Result<()> {
    let cannot = |error: &std::io::Error| Error::io("cannot listen", error).about(escape_path(path));
    let listener = tokio::net::UnixListener::from_std(listener).map_err(|error| cannot(&error))?;
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    interrupt::handle_signals_with(move || stopped.notify_one(), || {});
    note_line(&format!("listening on unix://{}", path.display()));
    let service = KeyManagementService(Arc::new(provider));
    Server::builder()
        .concurrency_limit_per_connection(MAX_REQUESTS)
        .http2_max_header_list_size(MAX_HEAD_LEN)
        .serve_with_incoming_shutdown(service, UnixListenerStream::new(listener), stop.notified())
        .await
        .map_err(|error| Error::new("io", format!("the plugin ends: {error}")))
}

/// The client of the service. It is not asked anything yet: it may start later than the plugin.
fn client(args: &ServerArgs) -> Result<bulla_client::Client> {
    let Some(address) = args.server.as_deref().filter(|address| !address.is_empty()) else {
        let hint = "name it with --server or BULLA_ADDR: the plugin has no keys of its own";
        return Err(Error::new("usage", "no service is given").hint(hint));
    };
    if args.token_file.as_deref() == Some(Path::new("-")) {
        let hint = "name a file: the plugin reads it again for each request";
        return Err(Error::new("usage", "the token cannot come from standard input").hint(hint));
    }
    let mut builder = client_builder(address, args)?;
    // A token that cannot be used is found now.
    if given_token(args)?.is_some() {
        builder = builder.token_provider(GivenToken::of(args)?);
    }
    let client =
        builder.initial_backoff(INITIAL_BACKOFF).max_retries(MAX_RETRIES).build().map_err(error_of)?;
    if client.address().is_exposed() {
        let message = format!("the secrets of the API server would travel unencrypted to {address}");
        return Err(Error::new("unencrypted", message).hint("use https or a Unix socket"));
    }
    Ok(client)
}

/// The token, which another program may replace in its file.
struct GivenToken(ServerArgs);

impl GivenToken {
    fn of(args: &ServerArgs) -> Result<Self> {
        let given = Self(args.clone());
        given.read()?;
        Ok(given)
    }

    fn read(&self) -> Result<Token> {
        let missing = || Error::new("invalid_token", "there is no token any more");
        let (token, subject) = given_token(&self.0)?.ok_or_else(missing)?;
        parse_token(&token, subject)
    }
}

impl TokenProvider for GivenToken {
    fn token(&self) -> BoxFuture<'_, Result<Token, BoxError>> {
        let read = self.read().map_err(|error| BoxError::from(error.to_string()));
        Box::pin(std::future::ready(read))
    }
}

/// Listens at `path`, where no other program listens, and nobody else can put a socket.
fn listen(path: &Path) -> Result<(UnixListener, SocketFile)> {
    let folder = folder_of(path);
    let metadata = folder.metadata().map_err(|error| {
        Error::io("cannot find the folder", &error)
            .about(escape_path(folder))
            .hint("create it for the owner of the plugin, or let systemd do that: RuntimeDirectory=")
    })?;
    const STICKY: u32 = 0o1000;
    if metadata.mode() & (STICKY | 0o002) == 0o002 {
        let message = "other users could replace the socket in this folder, and see secrets";
        let error = Error::new("folder_mode", message).about(escape_path(folder));
        return Err(error.hint("use a folder to which only its owner can write"));
    }
    if path.symlink_metadata().is_ok_and(|file| !file.file_type().is_socket()) {
        let error = Error::new("not_a_socket", "there is a file, and it is not a socket");
        return Err(error.about(escape_path(path)).hint("remove it, or choose another --socket"));
    }
    listen_unix(path, SOCKET_MODE, BACKLOG).map_err(|error| {
        let in_use = error.kind() == std::io::ErrorKind::AddrInUse;
        let shown = Error::io("cannot listen", &error).about(escape_path(path));
        if in_use { shown.hint("another plugin listens there: stop it first") } else { shown }
    })
}
