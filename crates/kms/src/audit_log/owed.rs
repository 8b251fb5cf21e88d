//! A change that was made and could not be recorded, until the log can record it.

use bulla_blake3::Hash;

use super::event::{Actor, AuditEvent, AuditOperation, Outcome};
use crate::error::Result;
use crate::id::KeySelector;
use crate::time::Timestamp;

/// The entry that the log owes for a change.
#[derive(Debug)]
pub(super) struct OwedEntry {
    /// When the change was made.
    pub(super) time: Timestamp,
    who: Actor,
    operation: AuditOperation,
    key: Option<KeySelector>,
    outcome: Outcome,
    digest: Option<Hash>,
}

impl OwedEntry {
    /// # Errors
    /// [`Code::ClockOutOfRange`](crate::Code::ClockOutOfRange).
    pub(super) fn now(event: &AuditEvent<'_>) -> Result<Self> {
        let AuditEvent { who, operation, key, outcome, digest } = event.clone();
        let (time, key) = (Timestamp::now()?, key.map(KeySelector::from));
        Ok(Self { time, who, operation, key, outcome, digest })
    }

    pub(super) fn event(&self) -> AuditEvent<'_> {
        let (who, key) = (self.who.clone(), self.key.as_ref().map(KeySelector::as_ref));
        AuditEvent { who, operation: self.operation, key, outcome: self.outcome, digest: self.digest }
    }
}
