//! Logins: a caller shows a JWT of an issuer that the settings name, and gets a token for minutes.
//!
//! - [`Logins`] has the issuers and the roles of the settings.
//! - [`IssuerKeys`] are an issuer's public keys. They come from a file, or are fetched.
//!
//! `docs/login.md` says how roles are written.

mod approles;
mod certificates;
mod claims;
mod fetched_keys;
mod https;
mod keys;
mod secret_ids;
mod signatures;
mod token_review;

use std::collections::HashMap;
use std::sync::Arc;
use std::{fmt, fs};

use bulla_kms::token::Holder;
use bulla_kms::{Code, KmsError, Name, Timestamp};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use rustls::pki_types::CertificateDer;
use serde_json::Value;

use self::approles::AppRoles;
pub(crate) use self::certificates::CertificateNames;
use self::certificates::CertificateRole;
use self::claims::BoundClaim;
pub(crate) use self::claims::{Claims, Pattern};
use self::fetched_keys::FetchedKeys;
pub(crate) use self::keys::IssuerKeys;
pub(crate) use self::secret_ids::{
    MAX_SECRET_ID_LEN, MIN_SECRET_ID_LEN, NewSecretId, SecretId, SecretIds, is_in, random_secret_id, role_id,
};
use self::token_review::TokenReviewer;
use crate::config::{CertificateRoleConfig, Config, IssuerConfig, JwtUse, RoleConfig};

/// The issuers and the roles of the settings.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    issuers: HashMap<Name, Arc<Issuer>>,
    /// By their names, and then by tenant.
    roles: HashMap<Name, HashMap<Name, Arc<Role>>>,
    approles: AppRoles,
    certificate_roles: Vec<Arc<CertificateRole>>,
}

#[derive(Debug)]
struct Issuer {
    config: IssuerConfig,
    keys: KeySource,
    /// Asks the cluster, if it is one that shall be asked.
    reviewer: Option<Arc<TokenReviewer>>,
}

#[derive(Debug)]
enum KeySource {
    File(IssuerKeys),
    Server(FetchedKeys),
}

#[derive(Debug)]
struct Role {
    config: RoleConfig,
    subjects: Vec<Pattern>,
    claims: Vec<BoundClaim>,
}

/// A caller who has logged in: the role, and the name for the audit log.
#[derive(Debug)]
pub(crate) struct LoggedIn {
    pub(crate) role: RoleConfig,
    pub(crate) holder: Holder,
    /// The JWT, if the role accepts it once.
    pub(crate) once: Option<OneTimeJwt>,
}

/// A JWT that is accepted once.
#[derive(Debug)]
pub(crate) struct OneTimeJwt {
    pub(crate) issuer: Name,
    /// The claim `jti`.
    pub(crate) id: String,
    /// When nobody accepts it any more, because it has expired.
    pub(crate) expires: Timestamp,
}

/// Why a login is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The JWT is not one of the issuer, or there is no such role. The caller learns no more: the
    /// text is for the log.
    NotProven(String),
    /// The issuer has signed the JWT, but the role asks for something else, which the caller may
    /// know.
    NotPermitted(String),
    /// The issuer's keys are not there.
    NoKeys,
    /// The API server of the issuer, a cluster, does not say whether the JWT still counts.
    NoReview,
}

impl Refusal {
    fn unproven(reason: impl fmt::Display) -> Self {
        Self::NotProven(reason.to_string())
    }
}

impl Logins {
    /// Reads the files of keys, and starts to fetch the keys of the other issuers. Issuers that
    /// `before` has with the same settings are kept with their keys.
    ///
    /// # Errors
    /// A file cannot be used; a thread cannot be started.
    pub(crate) fn new(settings: &Config, before: &Self) -> bulla_kms::Result<Self> {
        let Config { issuer: issuers, role: roles, approle, certificate_role, .. } = settings;
        signatures::install();
        let issuer = |config: &IssuerConfig| {
            let same = before.issuers.get(&config.name).filter(|issuer| issuer.config == *config);
            let issuer = match same {
                Some(same) if matches!(same.keys, KeySource::Server(_)) => Arc::clone(same),
                _ => Arc::new(Issuer::new(config)?),
            };
            Ok((config.name.clone(), issuer))
        };
        Ok(Self {
            issuers: issuers.iter().map(issuer).collect::<bulla_kms::Result<_>>()?,
            roles: by_name(roles),
            approles: AppRoles::new(approle),
            certificate_roles: certificate_role
                .iter()
                .map(|role| CertificateRole::new(role).map(Arc::new))
                .collect::<bulla_kms::Result<_>>()?,
        })
    }

    /// The first role that accepts a certificate, among those of a tenant and of a name if these
    /// are given, and the caller's name for the audit log. `chain` has the certificate, and those
    /// that lead to its authority.
    pub(crate) fn login_by_certificate(
        &self,
        tenant: Option<&str>,
        role: Option<&str>,
        chain: &[CertificateDer<'_>],
    ) -> Option<(CertificateRoleConfig, CertificateNames, Holder)> {
        let names = CertificateNames::read(chain.first()?)?;
        let is_named = |one: &&Arc<CertificateRole>| {
            role.is_none_or(|role| one.config.name.as_str() == role)
                && tenant.is_none_or(|tenant| one.config.tenant.as_str() == tenant)
        };
        let mut roles = self.certificate_roles.iter().filter(is_named);
        let role = roles.find(|role| role.accepts(chain, &names))?;
        let holder = role.holder(&names);
        Some((role.config.clone(), names, holder))
    }

    /// The role of a name: that of a tenant, or the only one.
    fn role(&self, tenant: Option<&str>, name: &str) -> Result<Arc<Role>, Refusal> {
        let none = || Refusal::unproven("there is no such role");
        let of_name = name.parse::<Name>().ok().and_then(|name| self.roles.get(&name)).ok_or_else(none)?;
        let role = match tenant {
            Some(tenant) => tenant.parse::<Name>().ok().and_then(|tenant| of_name.get(&tenant)),
            None if of_name.len() > 1 => {
                let message = format_args!(
                    "{} tenants have the role {name}: name the tenant (X-Vault-Namespace, or TENANT/{name})",
                    of_name.len()
                );
                return Err(Refusal::unproven(message));
            }
            None => of_name.values().next(),
        };
        role.map(Arc::clone).ok_or_else(none)
    }

    /// The AppRoles.
    pub(crate) fn approles(&self) -> &AppRoles {
        &self.approles
    }

    /// Verifies a JWT, compares it with what the role asks for, and asks the cluster about it if
    /// the settings say so. If the JWT names a key that is not known, it waits until the keys are
    /// fetched again. Without a tenant, only one may have a role of this name.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub(crate) async fn login(
        &self,
        tenant: Option<&str>,
        role: &str,
        jwt: &str,
    ) -> Result<LoggedIn, Refusal> {
        let role = self.role(tenant, role)?;
        let issuer = self.issuers.get(&role.config.issuer);
        let issuer = Arc::clone(issuer.ok_or_else(|| Refusal::unproven("there is no such issuer"))?);
        let claims = issuer.claims(jwt, &role.config).await?;
        let subject = role.check(&claims)?;
        if let Some(reviewer) = &issuer.reviewer {
            Arc::clone(reviewer).review(jwt, &role.config.audiences, &claims).await?;
        }
        let holder = Holder::named(issuer.config.name.as_str(), subject);
        let once = match role.config.jwt_use {
            JwtUse::Repeated => None,
            JwtUse::Once => Some(OneTimeJwt::new(&issuer.config, &claims)?),
        };
        Ok(LoggedIn { role: role.config.clone(), holder, once })
    }
}

/// The latest end of a JWT, in seconds since 1970: the last one of the year 9998.
const LATEST_SECONDS: u64 = 253_370_764_799;

/// The roles by their names, and then by tenant.
fn by_name(roles: &[RoleConfig]) -> HashMap<Name, HashMap<Name, Arc<Role>>> {
    let mut all: HashMap<_, HashMap<_, _>> = HashMap::new();
    for role in roles {
        all.entry(role.name.clone()).or_default().insert(role.tenant.clone(), Arc::new(Role::new(role)));
    }
    all
}

/// A used JWT is remembered for a day more than it lives: a clock may be corrected meanwhile.
const USED_JWT_GRACE_SECONDS: u64 = 86_400;

impl OneTimeJwt {
    /// # Errors
    /// The JWT has no `jti`.
    fn new(issuer: &IssuerConfig, claims: &Value) -> Result<Self, Refusal> {
        let missing = || Refusal::NotPermitted("the JWT has no claim `jti`".to_owned());
        let id = claims.get("jti").and_then(Value::as_str).filter(|id| !id.is_empty()).ok_or_else(missing)?;
        // The role has compared it with the latest time.
        let end = claims.get("exp").and_then(Value::as_f64).unwrap_or_default().ceil() as u64;
        let kept = end.saturating_add(issuer.leeway_seconds).saturating_add(USED_JWT_GRACE_SECONDS);
        let expires =
            Timestamp::from_unix_millis(kept.min(LATEST_SECONDS) * 1000).map_err(Refusal::unproven)?;
        Ok(Self { issuer: issuer.name.clone(), id: id.to_owned(), expires })
    }
}

impl Issuer {
    fn new(config: &IssuerConfig) -> bulla_kms::Result<Self> {
        let keys = match &config.keys_file {
            None => KeySource::Server(FetchedKeys::start(config)?),
            Some(file) => {
                let unusable = |why: String| {
                    let message =
                        format!("the keys of the issuer {}: {}: {why}", config.name, file.display());
                    KmsError::new(Code::InvalidArgument, message)
                };
                let text = fs::read(file).map_err(|error| unusable(error.to_string()))?;
                KeySource::File(IssuerKeys::read(&text).map_err(unusable)?)
            }
        };
        let reviewer = config.token_review.as_ref().map(|review| TokenReviewer::new(config, review));
        Ok(Self { config: config.clone(), keys, reviewer: reviewer.transpose()?.map(Arc::new) })
    }

    /// The claims of a JWT that this issuer has signed, for one of the audiences.
    async fn claims(&self, jwt: &str, role: &RoleConfig) -> Result<Value, Refusal> {
        let (id, algorithm) = header(jwt)?;
        let expected = self.expected(role, algorithm);
        match &self.keys {
            KeySource::File(keys) => {
                verify(jwt, keys, id.as_deref(), &expected).unwrap_or_else(|| Err(unknown_key()))
            }
            KeySource::Server(keys) => {
                let verify = |fetched: &FetchedKeys| {
                    let keys = fetched.current()?;
                    verify(jwt, &keys.0, id.as_deref(), &expected)
                };
                if let Some(verdict) = verify(keys) {
                    return verdict;
                }
                keys.fetched_again().await;
                let missing = || if keys.current().is_none() { Refusal::NoKeys } else { unknown_key() };
                verify(keys).unwrap_or_else(|| Err(missing()))
            }
        }
    }

    fn expected(&self, role: &RoleConfig, algorithm: Algorithm) -> Validation {
        let mut expected = Validation::new(algorithm);
        expected.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        expected.set_issuer(&[&self.config.issuer]);
        expected.set_audience(&role.audiences);
        expected.leeway = self.config.leeway_seconds;
        expected.validate_nbf = true;
        expected
    }
}

fn unknown_key() -> Refusal {
    Refusal::unproven("the issuer has no key that could have signed it")
}

/// Types of JWTs that say nothing about what a JWT is for, or that it grants access. A JWT of
/// another type (`logout+jwt`, `dpop+jwt`) has the same issuer and audience, and is no login (RFC
/// 8725, section 3.11).
const TYPES: [&str; 3] = ["JWT", "JOSE", "at+jwt"];

/// The name of the key, and the algorithm.
fn header(jwt: &str) -> Result<(Option<String>, Algorithm), Refusal> {
    let [encoded, _, _] = jwt.split('.').collect::<Vec<_>>()[..] else {
        return Err(Refusal::unproven("it has not three parts"));
    };
    let header = decode_header(jwt).map_err(Refusal::unproven)?;
    if !signatures::ALGORITHMS.contains(&header.alg) {
        return Err(Refusal::unproven(format_args!("the algorithm {:?} is not accepted", header.alg)));
    }
    // The library takes the last of two members that it does not know.
    let all = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(encoded).map_err(Refusal::unproven)?;
    let _: Claims = serde_json::from_slice(&all).map_err(Refusal::unproven)?;
    // Nothing that a header can say is critical to us, so whatever it says is unknown.
    if header.crit.is_some() || header.zip.is_some() || header.enc.is_some() {
        return Err(Refusal::unproven("the header has `crit`, `zip` or `enc`"));
    }
    // The payload would be another text (RFC 7797), or a JWT.
    if header.extras.inner().contains_key("b64") || header.cty.is_some() {
        return Err(Refusal::unproven("the header has `b64` or `cty`"));
    }
    let is_known = |kind: &str| {
        let kind = match kind.split_once('/') {
            Some((begin, rest)) if begin.eq_ignore_ascii_case("application") => rest,
            _ => kind,
        };
        TYPES.iter().any(|known| kind.eq_ignore_ascii_case(known))
    };
    if !header.typ.as_deref().is_none_or(is_known) {
        return Err(Refusal::unproven("the header has another `typ` than JWT, JOSE or at+jwt"));
    }
    Ok((header.kid, header.alg))
}

/// Reads keys, and the claims of a JWT under them; for the fuzzers.
pub(crate) fn fuzz(keys: &[u8], jwt: &str) {
    signatures::install();
    let (keys, header) = (IssuerKeys::read(keys), header(jwt));
    if let (Ok(keys), Ok((id, algorithm))) = (keys, header) {
        let _ = verify(jwt, &keys, id.as_deref(), &Validation::new(algorithm));
    }
}

/// The verdict about a JWT; none if no key of that name is known.
fn verify(
    jwt: &str,
    keys: &IssuerKeys,
    id: Option<&str>,
    expected: &Validation,
) -> Option<Result<Value, Refusal>> {
    let algorithm = *expected.algorithms.first()?;
    let mut verdict = None;
    for key in keys.candidates(id, algorithm) {
        match decode::<Claims>(jwt, key, expected) {
            Ok(decoded) => return Some(Ok(Value::Object(decoded.claims.0))),
            // Another key may have signed it.
            Err(error) if *error.kind() == ErrorKind::InvalidSignature => {
                verdict = Some(Err(Refusal::unproven(error)));
            }
            Err(error) => return Some(Err(refused(&error))),
        }
    }
    verdict
}

/// A JWT with a good signature says something else, or cannot be read.
fn refused(error: &jsonwebtoken::errors::Error) -> Refusal {
    let reason = match error.kind() {
        ErrorKind::ExpiredSignature => "the JWT has expired",
        ErrorKind::ImmatureSignature => "the JWT is not valid yet",
        ErrorKind::InvalidAudience => "the JWT is for another audience",
        ErrorKind::InvalidIssuer => "the JWT is of another issuer",
        ErrorKind::MissingRequiredClaim(claim) => {
            return Refusal::NotPermitted(format!("the JWT has no claim `{claim}`"));
        }
        ErrorKind::InvalidClaimFormat(claim) => {
            return Refusal::NotPermitted(format!("the claim `{claim}` of the JWT has a wrong form"));
        }
        _ => return Refusal::unproven(error),
    };
    Refusal::NotPermitted(reason.to_owned())
}

impl Role {
    fn new(config: &RoleConfig) -> Self {
        Self {
            config: config.clone(),
            subjects: config.subjects.iter().map(|text| Pattern::new(text)).collect(),
            claims: config.claims.iter().map(|(name, patterns)| BoundClaim::new(name, patterns)).collect(),
        }
    }

    /// The subject of a JWT with these claims.
    ///
    /// # Errors
    /// A claim is not what the role asks for.
    fn check<'a>(&self, claims: &'a Value) -> Result<&'a str, Refusal> {
        let other = |claim: &str| {
            Refusal::NotPermitted(format!("the claim `{claim}` of the JWT is not what the role asks for"))
        };
        // The library takes a list of issuers, too.
        if !claims.get("iss").is_some_and(Value::is_string) {
            return Err(other("iss"));
        }
        let now = Timestamp::now().map_err(Refusal::unproven)?.unix_millis() / 1000;
        let is_later = |at: &Value| at.as_f64().is_none_or(|at| at > (now + 600) as f64);
        if claims.get("iat").is_some_and(is_later) {
            return Err(other("iat"));
        }
        // The issuer has not said when it ends.
        if claims.get("exp").and_then(Value::as_f64).is_none_or(|end| end > LATEST_SECONDS as f64) {
            return Err(other("exp"));
        }
        let subject = claims.get("sub").and_then(Value::as_str).filter(|text| !text.is_empty());
        let subject = subject.ok_or_else(|| other("sub"))?;
        if !self.subjects.is_empty() && !self.subjects.iter().any(|pattern| pattern.matches(subject)) {
            return Err(other("sub"));
        }
        match self.claims.iter().find(|bound| !bound.is_in(claims)) {
            Some(bound) => Err(other(&bound.name)),
            None => Ok(subject),
        }
    }
}
