//! The settings that a reload replaces while the service runs: limits, rates, callers,
//! certificates, the list of revoked tokens.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use bulla_kms::{Result, Timestamp};

use super::named_callers::NamedCallers;
use super::tls;
use super::tls::{ListenerTls, LoadedCertificate};
use crate::access::TenantQuotas;
use crate::config::{Config, ListenConfig};
use crate::login::Logins;
use crate::service::{Mounts, Policies, Service};

/// The settings that a reload replaces while the service runs. `Service` has the list of revoked
/// tokens.
pub(super) struct LiveSettings {
    pub(super) service: Arc<Service>,
    pub(super) peers: ArcSwap<NamedCallers>,
    /// For each `[[listen]]` with which the service started.
    tls: Vec<Option<ListenerTls>>,
    /// The settings in force.
    config: Mutex<Config>,
}

impl LiveSettings {
    /// # Errors
    /// A certificate or a key cannot be used; the name of a caller is not valid.
    pub(super) fn new(service: Arc<Service>, config: Config) -> Result<Self> {
        let (peers, now) = (NamedCallers::new(&config, &service.quotas())?, Timestamp::now()?);
        let load = |listen: &ListenConfig| -> Result<Option<ListenerTls>> {
            let Some(settings) = &listen.tls else { return Ok(None) };
            let loaded = tls::load(settings)?;
            // The service starts, because callers on a Unix socket need no certificate.
            loaded.warn_if_expiring(now);
            Ok(Some(ListenerTls::new(loaded)))
        };
        let tls = config.listen.iter().map(load).collect::<Result<_>>()?;
        let live = Self { service, peers: ArcSwap::from_pointee(peers), tls, config: Mutex::new(config) };
        live.report_certificate_expiry();
        Ok(live)
    }

    /// Tells the metrics when the first of the certificates expires.
    fn report_certificate_expiry(&self) {
        let first = self.tls.iter().flatten().map(ListenerTls::end).min();
        self.service.http_metrics.set_certificate_expiry(first);
    }

    /// The TLS of the listener with this number.
    pub(super) fn tls(&self, listener: usize) -> Option<&ListenerTls> {
        self.tls[listener].as_ref()
    }

    /// Takes all of the new settings or, after an error, none. Returns those that need a restart.
    ///
    /// # Errors
    /// The settings contradict each other; a certificate, a key or the list of revoked tokens
    /// cannot be used.
    pub(super) fn reload(&self, mut new: Config) -> Result<Vec<&'static str>> {
        let mut config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        new.service.development = config.service.development;
        let quotas = TenantQuotas::new(&new.quota, self.service.nodes(), Some(&self.service.quotas()));
        let (peers, certificates) = read(&new, &quotas)?;
        let logins = Logins::new(&new, &self.service.logins())?;
        let policies = Policies::new(&new)?;
        self.service.reload_revocations()?;
        for (listen, tls) in config.listen.iter().zip(&self.tls) {
            let same = certificates.iter().find(|(address, _)| *address == listen.address);
            if let (Some(tls), Some((_, loaded))) = (tls, same) {
                tls.replace(loaded.clone());
            }
        }
        self.report_certificate_expiry();
        self.peers.store(Arc::new(peers));
        self.service.set_quotas(quotas);
        self.service.set_mounts(Mounts::new(&new.mount));
        self.service.set_limits(new.limits);
        self.service.set_logins(logins);
        self.service.set_policies(policies);
        self.service.set_jwt(new.jwt.clone());
        let needing_restart = config.needing_restart(&new);
        // The settings that need a restart keep their old values, and the next reload compares with
        // these.
        (config.limits, config.quota, config.caller) = (new.limits, new.quota, new.caller);
        (config.issuer, config.role, config.approle) = (new.issuer, new.role, new.approle);
        (config.certificate_role, config.policy, config.jwt) = (new.certificate_role, new.policy, new.jwt);
        config.mount = new.mount;
        Ok(needing_restart)
    }
}

type Certificates = Vec<(Option<std::net::SocketAddr>, LoadedCertificate)>;

/// The files that the settings name, read before any is used.
///
/// # Errors
/// The settings contradict each other; a certificate or a key cannot be used, or has expired.
pub(super) fn read(config: &Config, quotas: &TenantQuotas) -> Result<(NamedCallers, Certificates)> {
    config.check()?;
    let (peers, now) = (NamedCallers::new(config, quotas)?, Timestamp::now()?);
    let mut certificates = Vec::new();
    for listen in &config.listen {
        if let Some(settings) = &listen.tls {
            let loaded = tls::load(settings)?;
            loaded.check_time(now)?;
            loaded.warn_if_expiring(now);
            certificates.push((listen.address, loaded));
        }
    }
    Ok((peers, certificates))
}
