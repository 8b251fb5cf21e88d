//! Callers that the configuration names, and the evidence by which a connection proves them.

use std::collections::HashMap;
use std::sync::Arc;

use bulla_kms::{Result, Timestamp};
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;

use super::tls::CertificateValidity;
use crate::access::{Authority, OperationSet, RateLimiter, Session, TenantQuotas};
use crate::config::{CallerConfig, Config};
use crate::request::{CertificateChain, ConnectionProof};

/// The evidence of a connection, verified once, when it begins.
#[derive(Clone, Debug)]
pub(super) enum Evidence {
    Nothing,
    /// The user at the other end of a Unix socket.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has such sockets"))]
    User(u32),
    /// A client certificate that an authority of the configuration signed.
    Certificate(Arc<ClientCertificate>),
}

#[derive(Debug)]
pub(super) struct ClientCertificate {
    digest: String,
    validity: Option<CertificateValidity>,
    /// The certificate, and those that lead to its authority.
    chain: CertificateChain,
}

impl ClientCertificate {
    fn is_valid(&self) -> bool {
        let is_valid =
            |validity: CertificateValidity| Timestamp::now().is_ok_and(|now| validity.check(now).is_ok());
        self.validity.is_some_and(is_valid)
    }
}

impl Evidence {
    /// The evidence of a client certificate, with those that lead to its authority.
    pub(super) fn certificate(chain: &[CertificateDer<'_>]) -> Self {
        let Some(own) = chain.first() else { return Self::Nothing };
        let (digest, validity) = (hex::encode(digest(&SHA256, own)), CertificateValidity::of(own));
        let chain = chain.iter().map(|one| one.clone().into_owned()).collect();
        Self::Certificate(Arc::new(ClientCertificate { digest, validity, chain }))
    }

    /// The client certificate, while it is valid, and those that lead to its authority.
    pub(super) fn chain(&self) -> Option<CertificateChain> {
        match self {
            Self::Certificate(certificate) if certificate.is_valid() => Some(Arc::clone(&certificate.chain)),
            _ => None,
        }
    }

    /// How the connection proves its caller.
    pub(super) fn proof(&self) -> ConnectionProof {
        match self {
            Self::Nothing => ConnectionProof::Nothing,
            Self::User(_) | Self::Certificate(_) => ConnectionProof::Connection,
        }
    }
}

/// The callers without a token that the configuration names.
#[derive(Debug, Default)]
pub(super) struct NamedCallers {
    /// Everybody, in development.
    everybody: Option<Arc<Session>>,
    by_uid: HashMap<u32, Arc<Session>>,
    by_certificate: HashMap<String, Arc<Session>>,
}

impl NamedCallers {
    /// Nodes share the rates of the callers, as they share those of the quotas.
    ///
    /// # Errors
    /// The name of a caller is not valid.
    pub(super) fn new(config: &Config, quotas: &TenantQuotas) -> Result<Self> {
        let mut peers = Self::default();
        if config.service.development {
            let authority = Authority {
                tenant: config.service.operator_tenant.clone(),
                operations: OperationSet::ALL,
                keys: None,
                policies: Vec::new(),
                expires: None,
                can_mint_tokens: true,
            };
            let session = Session {
                authority,
                home: None,
                actor: "development".parse()?,
                limiter: None,
                quota: quotas.of(&config.service.operator_tenant),
                revocation_ids: Vec::new(),
                acls: Vec::new(),
            };
            peers.everybody = Some(Arc::new(session));
        }
        for caller in &config.caller {
            let session = Arc::new(session(caller, config, quotas)?);
            if let Some(uid) = caller.uid {
                peers.by_uid.insert(uid, session);
            } else if let Some(digest) = &caller.certificate_sha256 {
                peers.by_certificate.insert(digest.clone(), session);
            }
        }
        Ok(peers)
    }

    /// The caller whose evidence the configuration names. A connection may outlive its certificate,
    /// and proves nothing then.
    pub(super) fn session(&self, evidence: &Evidence) -> Option<Arc<Session>> {
        let named = match evidence {
            Evidence::Nothing => None,
            Evidence::User(uid) => self.by_uid.get(uid),
            Evidence::Certificate(certificate) => {
                self.by_certificate.get(&certificate.digest).filter(|_| certificate.is_valid())
            }
        };
        named.or(self.everybody.as_ref()).cloned()
    }
}

fn session(caller: &CallerConfig, config: &Config, quotas: &TenantQuotas) -> Result<Session> {
    let operations = match &caller.operations {
        None => OperationSet::UNNAMED,
        Some(operations) => operations.iter().collect(),
    };
    let authority = Authority {
        tenant: caller.tenant.clone(),
        operations,
        keys: caller.keys.as_ref().map(|keys| keys.iter().cloned().collect()),
        policies: Vec::new(),
        expires: None,
        can_mint_tokens: caller.can_mint_tokens,
    };
    let limiter = config.limits.request_rate.map(|rate| Arc::new(RateLimiter::new(rate, quotas.nodes())));
    Ok(Session {
        authority,
        home: None,
        actor: caller.name.parse()?,
        limiter,
        quota: quotas.of(&caller.tenant),
        revocation_ids: Vec::new(),
        acls: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use bulla_kms::token::TokenOperation;

    use super::*;
    use crate::access::NodeCount;

    fn no_quotas() -> TenantQuotas {
        TenantQuotas::new(&[], &NodeCount::one(), None)
    }

    fn certificate(end: i32) -> Evidence {
        let mut params = rcgen::CertificateParams::new(vec!["robot".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(end, 1, 1);
        let signed = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        Evidence::certificate(&[signed.der().clone()])
    }

    #[test]
    fn a_caller_exports_private_keys_as_plain_text_only_if_the_settings_say_so() {
        let may_export = |operations: Option<Vec<TokenOperation>>| {
            let caller = CallerConfig {
                name: "robot".to_owned(),
                uid: Some(7),
                certificate_sha256: None,
                tenant: "local".parse().unwrap(),
                operations,
                keys: None,
                can_mint_tokens: true,
            };
            let authority = session(&caller, &Config::default(), &no_quotas()).unwrap().authority;
            let named = [TokenOperation::ExportPlaintext, TokenOperation::OverrideApproval];
            let others = TokenOperation::ALL.iter().filter(|one| !named.contains(one));
            assert!(
                caller.operations.is_some() || others.copied().all(|one| authority.permits_in_tenant(one))
            );
            authority.permits_in_tenant(TokenOperation::ExportPlaintext)
        };
        assert!(!may_export(None) && may_export(Some(vec![TokenOperation::ExportPlaintext])));
    }

    /// A connection is asked again with each request.
    #[test]
    fn a_certificate_that_has_expired_since_the_handshake_proves_nothing() {
        for (end, is_valid) in [(2100, true), (2021, false)] {
            let evidence = certificate(end);
            let Evidence::Certificate(certificate) = &evidence else { panic!("it is a certificate") };
            let caller = CallerConfig {
                name: "robot".to_owned(),
                uid: None,
                certificate_sha256: Some(certificate.digest.clone()),
                tenant: "local".parse().unwrap(),
                operations: None,
                keys: None,
                can_mint_tokens: false,
            };
            let config = Config { caller: vec![caller], ..Config::default() };
            let peers = NamedCallers::new(&config, &no_quotas()).unwrap();
            assert_eq!(peers.session(&evidence).is_some(), is_valid, "until {end}");
        }
    }
}
