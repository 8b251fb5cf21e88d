//! Clients that log in by themselves.

use std::fmt;
use std::time::{Instant, SystemTime};

use tokio::sync::Mutex;
use zeroize::Zeroizing;

use crate::client::Client;
use crate::error::BoxError;
use crate::middleware::BoxFuture;
use crate::token::{Token, TokenProvider};

/// Gives tokens of logins with a JWT of the platform on which the program runs: it logs in before
/// the first request, and again when three quarters of the token's lifetime have passed.
///
/// ```no_run
/// use bulla_client::{Client, LoginProvider};
///
/// # fn main() -> bulla_client::Result<()> {
/// let service = || Client::builder("https://keys.example.org".parse().unwrap());
/// // A pod in Kubernetes has its JWT in a file, which the cluster renews.
/// let jwt = || Ok(std::fs::read_to_string("/var/run/secrets/tokens/bulla")?);
/// let logins = LoginProvider::new(service().build()?, "release", jwt);
/// let client = service().token_provider(logins).build()?;
/// # Ok(())
/// # }
/// ```
pub struct LoginProvider<F> {
    client: Client,
    role: String,
    jwt: F,
    /// The token, and when the next login is due.
    current: Mutex<Option<(Token, Instant)>>,
}

impl<F: Fn() -> Result<String, BoxError> + Send + Sync + 'static> LoginProvider<F> {
    /// Logs in for this role by a client of the same service, which needs no token. `jwt` returns a
    /// JWT that is valid now; what it fails with is the source of the call's error.
    pub fn new(client: Client, role: impl Into<String>, jwt: F) -> Self {
        Self { client, role: role.into(), jwt, current: Mutex::new(None) }
    }
}

impl<F: Fn() -> Result<String, BoxError> + Send + Sync + 'static> TokenProvider for LoginProvider<F> {
    fn token(&self) -> BoxFuture<'_, Result<Token, BoxError>> {
        Box::pin(async move {
            // The requests that come meanwhile wait for the same login.
            let mut current = self.current.lock().await;
            if let Some((token, renewal)) = &*current
                && Instant::now() < *renewal
            {
                return Ok(token.clone());
            }
            let jwt = Zeroizing::new((self.jwt)()?);
            let login = self.client.log_in(&self.role, &jwt).await?;
            let token = Token::new(&login.token)?;
            let left = login.expires.duration_since(SystemTime::now()).unwrap_or_default();
            let renewal = Instant::now().checked_add(left / 4 * 3);
            *current = renewal.map(|renewal| (token.clone(), renewal));
            Ok(token)
        })
    }
}

/// Shows no token.
impl<F> fmt::Debug for LoginProvider<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginProvider").field("role", &self.role).finish_non_exhaustive()
    }
}
