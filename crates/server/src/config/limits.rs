//! What a caller may ask for at most.

use std::time::Duration;

use bulla_kms::{Code, KmsError, Result};
use serde::{Deserialize, Serialize};

use crate::access::Rate;

/// The most items that a batch may be permitted: so many are read before they are counted.
pub(crate) const MAX_ITEMS: usize = 100_000;

/// The limits of requests, in size and in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The longest body of a request, in bytes.
    pub body_bytes: usize,
    /// The longest head of a request, in bytes.
    pub header_bytes: usize,
    /// The most bytes that the bodies of all requests take together.
    pub total_body_bytes: usize,
    /// The most items of a batch, at most 100,000.
    pub items: usize,
    /// How many seconds a TLS handshake or the head of a request may take, and a connection may be
    /// idle.
    pub header_seconds: u64,
    /// How many seconds the body of a request may take to arrive.
    pub body_seconds: u64,
    /// The most connections of each listener at once.
    pub connections: usize,
    /// The rate of each token and each identity; none by default.
    pub rate: Option<Rate>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            total_body_bytes: 256 << 20,
            header_bytes: 64 << 10,
            items: 10_000,
            header_seconds: 60,
            body_seconds: 30,
            connections: 20_000,
            rate: None,
        }
    }
}

impl Limits {
    /// The smallest limit of a head: the HTTP library does not accept less.
    const LEAST_HEADER_BYTES: usize = 8 << 10;

    /// # Errors
    /// [`Code::InvalidArgument`] for a limit that no request passes.
    pub(super) fn check(&self) -> Result<()> {
        let zero = [self.body_bytes, self.items, self.connections].contains(&0)
            || self.header_seconds == 0
            || self.body_seconds == 0;
        if zero || self.header_bytes < Self::LEAST_HEADER_BYTES {
            let message = format!(
                "[limits]: every limit must be at least 1, and header_bytes at least {}",
                Self::LEAST_HEADER_BYTES
            );
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        if self.items > MAX_ITEMS {
            let message = format!("[limits]: items must be at most {MAX_ITEMS}");
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        if self.total_body_bytes < self.body_bytes {
            let message = "[limits]: total_body_bytes must be at least body_bytes";
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        Ok(())
    }

    pub(crate) fn header_time(&self) -> Duration {
        Duration::from_secs(self.header_seconds)
    }

    pub(crate) fn body_time(&self) -> Duration {
        Duration::from_secs(self.body_seconds)
    }
}
