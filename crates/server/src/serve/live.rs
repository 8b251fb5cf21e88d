//! What a reload replaces while the service runs: limits, rates, identities, certificates.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use bulla_kms::{Result, Timestamp};

use super::peers::Peers;
use super::tls::{self, Loaded, Tls};
use crate::config::{Config, Listen};
use crate::service::Service;

/// What a reload replaces while the service runs.
pub(super) struct Live {
    pub(super) service: Arc<Service>,
    pub(super) peers: ArcSwap<Peers>,
    /// For each `[[listen]]` with which the service started.
    tls: Vec<Option<Tls>>,
    /// The settings in force.
    config: Mutex<Config>,
}

impl Live {
    /// # Errors
    /// A certificate or a key cannot be used; an identity's name is none.
    pub(super) fn new(service: Arc<Service>, config: Config) -> Result<Self> {
        let (peers, now) = (Peers::new(&config)?, Timestamp::now()?);
        let load = |listen: &Listen| -> Result<Option<Tls>> {
            let Some(settings) = &listen.tls else { return Ok(None) };
            let loaded = tls::load(settings)?;
            // Whoever comes by a Unix socket needs no certificate: the service starts.
            loaded.remind(now);
            Ok(Some(Tls::new(loaded)))
        };
        let tls = config.listen.iter().map(load).collect::<Result<_>>()?;
        Ok(Self { service, peers: ArcSwap::from_pointee(peers), tls, config: Mutex::new(config) })
    }

    /// The TLS of the listener with this number.
    pub(super) fn tls(&self, listener: usize) -> Option<&Tls> {
        self.tls[listener].as_ref()
    }

    /// Takes other settings, or none of them. Tells which of them need a restart.
    ///
    /// # Errors
    /// The settings contradict each other; a certificate or a key cannot be used.
    pub(super) fn reload(&self, mut new: Config) -> Result<Vec<&'static str>> {
        let mut config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        new.service.development = config.service.development;
        let (peers, certificates) = read(&new)?;
        for (listen, tls) in config.listen.iter().zip(&self.tls) {
            let same = certificates.iter().find(|(address, _)| *address == listen.address);
            if let (Some(tls), Some((_, loaded))) = (tls, same) {
                tls.replace(loaded.clone());
            }
        }
        self.peers.store(Arc::new(peers));
        self.service.set_limits(new.limits);
        let needing_restart = config.needing_restart(&new);
        // What needs a restart is still as it was, and is compared with that again.
        (config.limits, config.identity) = (new.limits, new.identity);
        Ok(needing_restart)
    }
}

type Certificates = Vec<(Option<std::net::SocketAddr>, Loaded)>;

/// Everything that settings name and that can be read before it is used.
///
/// # Errors
/// The settings contradict each other; a certificate or a key cannot be used, or has expired.
pub(super) fn read(config: &Config) -> Result<(Peers, Certificates)> {
    config.check()?;
    let (peers, now) = (Peers::new(config)?, Timestamp::now()?);
    let mut certificates = Vec::new();
    for listen in &config.listen {
        if let Some(settings) = &listen.tls {
            let loaded = tls::load(settings)?;
            loaded.check_time(now)?;
            loaded.remind(now);
            certificates.push((listen.address, loaded));
        }
    }
    Ok((peers, certificates))
}
