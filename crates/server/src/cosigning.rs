//! The key that signs the audit log's checkpoints, and the witnesses that cosign them.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bulla_client::Address;
use bulla_client::blocking::Witness;
use bulla_kms::audit_log::{AuditLog, WitnessAnswer, WitnessReport, WitnessTransport, Witnesses};
use bulla_kms::{Code, KeyId, KeyVersionId, Keystore, KmsError, PublicKey, Result, VersionState};

use crate::config::{Config, WitnessConfig};

/// The key that signs checkpoints.
///
/// # Errors
/// There is none.
pub(crate) fn log_key(keystore: &Keystore, log: &AuditLog) -> Result<KeyId> {
    let missing = || KmsError::new(Code::KeyNotFound, "the keystore has no key that signs the audit log");
    let (tenant, label) = log.signer().ok_or_else(missing)?;
    keystore.find(tenant, label)?.ok_or_else(missing)
}

/// The public keys whose checkpoints count: those of the key that signs them, without its revoked
/// versions.
///
/// # Errors
/// Those of [`log_key`].
pub(crate) fn trusted_log_keys(
    keystore: &Keystore,
    log: &AuditLog,
) -> Result<Vec<(KeyVersionId, PublicKey)>> {
    let versions = keystore.attest(&log_key(keystore, log)?)?.versions.into_iter();
    let usable = versions.filter(|version| version.state != VersionState::Revoked);
    Ok(usable.filter_map(|version| Some((version.id, version.public_key?))).collect())
}

/// How often a log without new entries is cosigned again: so the time of the newest cosignature
/// says that nothing was added.
const MAX_COSIGN_AGE: Duration = Duration::from_secs(60 * 60);

/// The witnesses that the settings name; none if they name none.
///
/// # Errors
/// [`Code::InvalidArgument`] for a witness that cannot be asked.
pub fn configured_witnesses(config: &Config) -> Result<Option<Witnesses>> {
    if config.witness.is_empty() {
        return Ok(None);
    }
    let all = config.witness.iter().map(|witness| Ok((witness.key.clone(), witness_transport(witness)?)));
    Ok(Some(Witnesses::new(all.collect::<Result<_>>()?, config.cosignature_quorum())))
}

fn witness_transport(witness: &WitnessConfig) -> Result<Box<WitnessTransport>> {
    let invalid = |error: bulla_client::Error| {
        let message = format!("the witness {}: {error:#}", witness.key.name());
        KmsError::new(Code::InvalidArgument, message)
    };
    let address: Address = witness.url.parse().map_err(invalid)?;
    let (name, client) = (witness.key.name().to_owned(), Witness::new(address).map_err(invalid)?);
    Ok(Box::new(move |request| match client.add_checkpoint(request) {
        Ok(answer) => Ok(WitnessAnswer { status: answer.status, body: answer.body }),
        Err(error) => Err(KmsError::new(Code::Unavailable, format!("the witness {name}: {error:#}"))),
    }))
}

/// The thread that asks the witnesses. It ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct CosigningThread {
    _running: SyncSender<()>,
}

impl CosigningThread {
    /// Starts the thread, if the settings name witnesses.
    ///
    /// # Errors
    /// Those of [`configured_witnesses`]; a thread cannot be started.
    pub(crate) fn start(
        config: &Config,
        keystore: &Arc<Keystore>,
        log: &Arc<AuditLog>,
    ) -> Result<Option<Self>> {
        let Some(witnesses) = configured_witnesses(config)? else { return Ok(None) };
        let (running, stopped) = sync_channel(0);
        let interval = Duration::from_secs(config.audit.witness_interval_seconds);
        let (keystore, log) = (Arc::downgrade(keystore), Arc::downgrade(log));
        let run = move || run(&keystore, &log, witnesses, interval, &stopped);
        let started = std::thread::Builder::new().name("bulla-witness".to_owned()).spawn(run);
        let cannot = |error| KmsError::new(Code::Io, format!("cannot start a thread: {error}"));
        started.map(drop).map_err(cannot)?;
        Ok(Some(Self { _running: running }))
    }
}

fn run(
    keystore: &Weak<Keystore>,
    log: &Weak<AuditLog>,
    mut witnesses: Witnesses,
    interval: Duration,
    stopped: &Receiver<()>,
) {
    let mut last: Option<(u64, Instant)> = None;
    let mut troubles = BTreeMap::new();
    loop {
        let Some((keystore, log)) = keystore.upgrade().zip(log.upgrade()) else { return };
        let is_new = last.is_none_or(|(size, time)| size != log.len() || time.elapsed() >= MAX_COSIGN_AGE);
        if is_new {
            let outcome = log_key(&keystore, &log).and_then(|key| witnesses.witness(&log, &*keystore, &key));
            last = log_outcome(outcome, &mut troubles).map(|size| (size, Instant::now()));
        }
        drop((keystore, log));
        if let Err(RecvTimeoutError::Disconnected) = stopped.recv_timeout(interval) {
            return;
        }
    }
}

/// Logs the outcome of a round where it changed. Returns how many entries all witnesses have
/// cosigned.
fn log_outcome(outcome: Result<WitnessReport>, troubles: &mut BTreeMap<String, String>) -> Option<u64> {
    let (failed, size) = match outcome {
        Ok(WitnessReport { checkpoint, failed, .. }) => {
            let size = failed.is_empty().then(|| checkpoint.size());
            (failed, size)
        }
        Err(error) => (vec![(String::new(), error)], None),
    };
    let now: BTreeMap<_, _> =
        failed.into_iter().map(|(name, error)| (name, (error.code, error.message))).collect();
    for (name, (code, message)) in &now {
        if troubles.get(name) != Some(message) {
            let code = code.as_str();
            if code == Code::AuditLogCorrupt.as_str() {
                tracing::error!(code, "the audit log's checkpoint was not cosigned: {message}");
            } else {
                tracing::warn!(code, "the audit log's checkpoint was not cosigned: {message}");
            }
        }
    }
    if !troubles.is_empty() && now.is_empty() {
        tracing::info!("all witnesses cosign the audit log's checkpoints again");
    }
    *troubles = now.into_iter().map(|(name, (_, message))| (name, message)).collect();
    size
}
