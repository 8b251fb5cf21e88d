//! Capability tokens: the client's own, and minting, attenuating and revoking them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hyper::header::HeaderValue;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::client::Client;
use crate::encoding::{format_time, optional_seconds, optional_time, seconds, secret_text, time, wiped};
use crate::error::{BoxError, Error, ErrorKind, Result};
use crate::middleware::BoxFuture;
use crate::operation::Operation;
use crate::request::Call;

/// A capability token. It is never shown, and is wiped from memory with its last copy.
#[derive(Clone)]
pub struct Token(HeaderValue);

impl Token {
    /// Reads a token. White space around it is ignored.
    ///
    /// ```no_run
    /// use bulla_client::{Client, Token};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let token = Token::new(&std::env::var("BULLA_TOKEN")?)?;
    /// let client = Client::builder("https://keys.example.org".parse()?).token(token).build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if the text cannot be a token.
    pub fn new(text: &str) -> Result<Self> {
        const PREFIX: &[u8] = b"Bearer ";
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = "this is not a token: a token has visible ASCII characters only";
            return Err(Error::invalid_argument(message));
        }
        // The capacity is enough: the buffer does not move and leaves no copy.
        let mut header = Zeroizing::new(Vec::with_capacity(PREFIX.len() + token.len()));
        header.extend_from_slice(PREFIX);
        header.extend_from_slice(token.as_bytes());
        let mut value = HeaderValue::from_maybe_shared(wiped(header))
            .map_err(|_| Error::invalid_argument("this is not a token"))?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Gives the token of each request, for tokens with a short lifetime.
///
/// ```no_run
/// use bulla_client::{BoxError, BoxFuture, Token, TokenProvider};
///
/// /// Reads the token from a file, which another program writes again before the token expires.
/// struct TokenFile(std::path::PathBuf);
///
/// impl TokenProvider for TokenFile {
///     fn token(&self) -> BoxFuture<'_, Result<Token, BoxError>> {
///         Box::pin(async { Ok(Token::new(&std::fs::read_to_string(&self.0)?)?) })
///     }
/// }
/// # fn main() -> bulla_client::Result<()> {
/// let client = bulla_client::Client::builder("https://keys.example.org".parse()?)
///     .token_provider(TokenFile("/run/secrets/bulla-token".into()))
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub trait TokenProvider: Send + Sync + 'static {
    /// The token for the next request. It is asked for before every attempt: keep the token until
    /// shortly before it expires.
    ///
    /// # Errors
    /// There is no token. The call ends with [`ErrorKind::TokenProvider`], and this error is its
    /// source: it must not contain a secret.
    fn token(&self) -> BoxFuture<'_, Result<Token, BoxError>>;
}

/// Where the client's token comes from.
#[derive(Clone)]
pub(crate) enum TokenSource {
    None,
    Fixed(Token),
    Provider(Arc<dyn TokenProvider>),
}

impl TokenSource {
    /// The header that carries the token.
    pub(crate) async fn header(&self) -> Result<Option<HeaderValue>> {
        let failed = |error| Error::new(ErrorKind::TokenProvider, "there is no token").with_source(error);
        match self {
            Self::None => Ok(None),
            Self::Fixed(token) => Ok(Some(token.0.clone())),
            Self::Provider(provider) => Ok(Some(provider.token().await.map_err::<Error, _>(failed)?.0)),
        }
    }
}

/// What a token to mint permits.
#[derive(Clone, Debug, Serialize)]
pub struct Grant {
    /// The operations, for example `sign` and `read`: [spec/tokens.md] lists them. The caller must
    /// be permitted them, too.
    ///
    /// [spec/tokens.md]: https://github.com/bulla-dev/bulla/blob/main/spec/tokens.md
    pub operations: Vec<String>,
    /// The keys, by their labels or key ids. None means all keys of the tenant, and the operations
    /// that concern no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// The token's lifetime. The service counts whole seconds.
    #[serde(rename = "expires_in_seconds", with = "seconds")]
    pub lifetime: Duration,
    /// The name of the person or program that gets the token, for the audit log and for approvers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
}

/// The restrictions of a weaker token. An absent field restricts nothing.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Attenuation {
    /// Only these operations: see [`Grant::operations`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    /// Only these keys, by their labels or key ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// A lifetime that is no longer than this. The service counts whole seconds.
    #[serde(
        rename = "expires_in_seconds",
        skip_serializing_if = "Option::is_none",
        serialize_with = "optional_seconds::serialize"
    )]
    pub lifetime: Option<Duration>,
}

/// A token that was made. It works for anyone who holds it.
#[non_exhaustive]
#[derive(Clone, Deserialize)]
pub struct MintedToken {
    /// The token.
    #[serde(deserialize_with = "secret_text")]
    pub token: Zeroizing<String>,
    /// The id that revokes it, and all tokens that are made from it.
    pub revocation_id: String,
    /// When it expires, at the latest.
    #[serde(default, deserialize_with = "optional_time")]
    pub expires: Option<SystemTime>,
}

/// The token of a caller who has logged in.
#[non_exhaustive]
#[derive(Clone, Deserialize)]
pub struct LoginToken {
    /// The token.
    #[serde(deserialize_with = "secret_text")]
    pub token: Zeroizing<String>,
    /// The id that revokes it, and all tokens that are made from it.
    pub revocation_id: String,
    /// When it expires: log in again before.
    #[serde(deserialize_with = "time")]
    pub expires: SystemTime,
    /// The caller's name in the audit log: the issuer's name, and the subject of the JWT.
    pub holder: String,
    /// What the token permits.
    pub operations: Vec<String>,
}

/// Shows no token.
impl std::fmt::Debug for LoginToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginToken").field("holder", &self.holder).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Login<'a> {
    role: &'a str,
    jwt: &'a str,
}

/// Shows no token.
impl std::fmt::Debug for MintedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MintedToken").field("revocation_id", &self.revocation_id).finish_non_exhaustive()
    }
}

/// What a caller's credential permits.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize)]
pub struct Permissions {
    /// The caller's name in the audit log.
    pub name: String,
    /// The tenant whose keys the caller uses.
    pub tenant: String,
    /// What the caller may do.
    pub operations: Vec<String>,
    /// The keys. None means all keys of the tenant, and the operations that concern no key.
    pub keys: Option<Vec<String>>,
    /// When they end; none for a caller without a token.
    #[serde(default, deserialize_with = "optional_time")]
    pub expires: Option<SystemTime>,
    /// Whether the caller may mint tokens, and revoke those of others.
    pub can_mint_tokens: bool,
    /// The ids that revoke the token: the last id names this token, the others those that it was
    /// made from.
    pub revocation_ids: Vec<String>,
}

#[derive(Serialize)]
struct Revoke<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    revocation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

impl Client {
    /// Mints a token of the caller's tenant. Only callers that the service's configuration names
    /// may do this.
    ///
    /// If the answer is lost, so is the token: nobody can use it.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::Grant;
    /// use std::time::Duration;
    ///
    /// let operations = vec!["sign".to_owned(), "read".to_owned()];
    /// let grant = Grant { operations, keys: None, lifetime: Duration::from_secs(3600), holder: None };
    /// let minted = client.mint_token(&grant).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn mint_token(&self, grant: &Grant) -> Result<MintedToken> {
        self.call(Call::new(Operation::MintToken).body(grant)).await
    }

    /// Logs in with a JWT of the platform on which the program runs. The service's configuration
    /// says which JWTs give which role. The client goes on with its own token:
    /// [`LoginProvider`](crate::LoginProvider) is for clients that log in by themselves.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use bulla_client::{Client, Token};
    ///
    /// let service = || Client::builder("https://keys.example.org".parse().unwrap());
    /// let jwt = std::fs::read_to_string("/var/run/secrets/tokens/bulla")?;
    /// let login = service().build()?.log_in("release", &jwt).await?;
    /// let client = service().token(Token::new(&login.token)?).build()?;
    /// println!("{} may {}", login.holder, login.operations.join(", "));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn log_in(&self, role: &str, jwt: &str) -> Result<LoginToken> {
        let body = Login { role, jwt: jwt.trim() };
        self.call(Call::new(Operation::LogIn).secret_body(&body, role.len() + jwt.len() + 32)).await
    }

    /// Makes a weaker token from the client's own.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::Attenuation;
    ///
    /// let keys = Some(vec!["invoices".to_owned()]);
    /// let weaker = client.attenuate_token(&Attenuation { keys, ..Attenuation::default() }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn attenuate_token(&self, limits: &Attenuation) -> Result<MintedToken> {
        self.call(Call::new(Operation::AttenuateToken).body(limits)).await
    }

    /// Reads what the client's credential permits.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let permissions = client.permissions().await?;
    /// println!("{} may {}", permissions.name, permissions.operations.join(", "));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn permissions(&self) -> Result<Permissions> {
        self.call(Call::new(Operation::Permissions)).await
    }

    /// Revokes the client's own token, and all tokens that were made from it.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// client.revoke_own_token().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn revoke_own_token(&self) -> Result<()> {
        self.revoke(&Revoke { revocation_id: None, expires: None }).await
    }

    /// Revokes a token by its revocation id, for callers who may mint tokens. If the service knows
    /// when the token expires, it forgets the id a day later.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: &bulla_client::Client,
    /// #     minted: bulla_client::MintedToken,
    /// # ) -> bulla_client::Result<()> {
    /// client.revoke_token(&minted.revocation_id, minted.expires).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn revoke_token(&self, revocation_id: &str, expires: Option<SystemTime>) -> Result<()> {
        let expires = expires.map(format_time).transpose()?;
        self.revoke(&Revoke { revocation_id: Some(revocation_id), expires }).await
    }

    async fn revoke(&self, body: &Revoke<'_>) -> Result<()> {
        let call = Call::new(Operation::RevokeToken).body(body);
        self.call::<serde::de::IgnoredAny>(call).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_and_never_shown() {
        let token = Token::new(" hunter2\n").unwrap();
        assert_eq!(token.0.as_bytes(), b"Bearer hunter2");
        assert!(!format!("{token:?} {:?}", token.0).contains("hunter2"));
        for text in ["", " ", "a b", "a\nb", "\u{e9}"] {
            let error = Token::new(text).unwrap_err().to_string();
            assert!(!error.contains("a b") && !error.contains('\u{e9}'), "{error}");
        }
    }
}
