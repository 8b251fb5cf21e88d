//! Authentication and authorization: credentials, rights, and rate limits.

mod authority;
mod expiry_clock;
mod quota;
mod rate_limit;
mod session;

pub(crate) use self::authority::{Authority, OperationSet, grants_access};
pub(crate) use self::expiry_clock::{ExpiryClock, later_expiry};
pub(crate) use self::quota::{BodyCount, TenantQuota, TenantQuotas};
pub use self::quota::{ByteRate, QuotaConfig};
pub use self::rate_limit::RequestRate;
pub(crate) use self::rate_limit::{NodeCount, RateLimiter, TokenRateLimiters};
pub(crate) use self::session::{CredentialDigest, CurrentEpoch, Epoch, Session, SessionCache};
