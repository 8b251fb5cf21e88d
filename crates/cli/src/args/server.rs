//! The flags that name a service.

use bulla_client::Address;
use clap::Args;
use std::path::PathBuf;

/// A service that has the keys, and how to reach it.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Service")]
pub struct ServerArgs {
    /// Use the keys of a service (`bulla serve`) instead of a keystore: https://HOST:PORT,
    /// http://HOST:PORT or unix:PATH
    ///
    /// Files are hashed on this machine: only digests and public data travel. The service sees who
    /// you are by the token in the variable BULLA_TOKEN or in the file of --token-file, by a client
    /// certificate, or by your user on a Unix socket.
    #[arg(long, value_name = "URL", env = "BULLA_ADDR", hide_env_values = true, value_parser = named)]
    pub server: Option<NamedServer>,

    /// Trust only services with a certificate of the authorities in FILE (PEM) [default: the
    /// system's authorities]
    #[arg(long, value_name = "FILE", env = "BULLA_CACERT", hide_env_values = true, hide_short_help = true)]
    pub server_ca: Option<PathBuf>,

    /// Read the token from FILE, or from standard input for `-`, instead of from the variable
    /// BULLA_TOKEN
    ///
    /// A service needs a token, and so does an export of a private key.
    #[arg(
        long,
        value_name = "FILE",
        env = "BULLA_TOKEN_FILE",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub token_file: Option<PathBuf>,

    /// Show the service the client certificate in FILE (PEM); needs --client-key
    #[arg(
        long,
        value_name = "FILE",
        env = "BULLA_CLIENT_CERTIFICATE",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub client_certificate: Option<PathBuf>,

    /// The private key of --client-certificate (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "BULLA_CLIENT_KEY",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub client_key: Option<PathBuf>,
}

/// The value of --server.
#[derive(Clone)]
pub struct NamedServer {
    /// The value as it was given.
    pub text: String,
    /// The address; none for an empty variable, which is as good as an unset one.
    pub address: Option<Address>,
}

impl ServerArgs {
    /// The service that the variable BULLA_ADDR names, with the token of BULLA_TOKEN_FILE, for a program without these flags.
    ///
    /// # Errors
    /// The variable is no address.
    pub fn of_variable() -> Result<Self, bulla_client::Error> {
        let text = std::env::var("BULLA_ADDR").unwrap_or_default();
        let token_file = std::env::var_os("BULLA_TOKEN_FILE").map(PathBuf::from);
        Ok(Self { server: Some(named(&text)?), token_file, ..Self::default() })
    }
}

fn named(text: &str) -> Result<NamedServer, bulla_client::Error> {
    let address = if text.is_empty() { None } else { Some(text.parse()?) };
    Ok(NamedServer { text: text.to_owned(), address })
}
