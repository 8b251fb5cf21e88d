//! Requests for approval, as the service keeps them: a row for each, which all nodes read.
//!
//! A row has the request, the statements of those who decided, and whether it was used. It is used
//! by changing the row, which of several callers and nodes one does, and only then is the key used:
//! a node that is killed between the two leaves a request that counts no more.

use bulla_kms::approval::{
    ApprovalDecision, ApprovalId, ApprovalRequest, ApprovalRule, ApprovalState, ApprovalStatement,
    ApprovedUse, KeyUse,
};
use bulla_kms::signature::Comment;
use bulla_kms::{Code, KeyRef, Keystore, KmsError, Name, Result};
use serde::{Deserialize, Serialize};

use super::rows::{RowFolder, RowInsertion, RowKind, ServiceRow, ServiceRows};

/// How often a change is tried again that others make at the same time.
const MAX_TRIES: usize = 64;

/// A request as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeptRequest {
    pub(crate) request: ApprovalRequest,
    pub(crate) statements: Vec<ApprovalStatement>,
    pub(crate) used: bool,
}

impl KeptRequest {
    /// What the statements say by a rule.
    pub(crate) fn state(&self, rule: &ApprovalRule) -> ApprovalState {
        rule.state(&self.request, &self.statements)
    }
}

/// How a caller wants to use a request.
pub(crate) struct WantedUse<'a> {
    pub(crate) id: ApprovalId,
    /// The name of the caller: a request is used by whoever made it.
    pub(crate) caller: &'a str,
    pub(crate) key: KeyRef<'a>,
    pub(crate) used: KeyUse<'a>,
    /// Why the use is made without approvals; none if it has them.
    pub(crate) override_reason: Option<Comment>,
}

/// The requests about one tenant's keys.
pub(crate) struct Approvals<'a> {
    rows: &'a ServiceRows,
    keystore: &'a Keystore,
    folder: RowFolder,
}

fn not_found(id: ApprovalId) -> KmsError {
    let message = format!("there is no request {id} here, or it has expired");
    KmsError::new(Code::NotFound, message)
}

fn refused(id: ApprovalId, why: &str) -> KmsError {
    KmsError::new(Code::ApprovalRequired, format!("the request {id} {why}"))
}

impl<'a> Approvals<'a> {
    pub(crate) fn new(rows: &'a ServiceRows, keystore: &'a Keystore, tenant: &Name) -> Self {
        Self { rows, keystore, folder: RowFolder::new(keystore, RowKind::Approval, tenant.as_str()) }
    }

    /// Keeps a new request.
    ///
    /// # Errors
    /// Those of writing, and of etcd.
    pub(crate) fn add(&self, request: ApprovalRequest) -> Result<KeptRequest> {
        let (id, expires) = (request.id, request.expires);
        let kept = KeptRequest { request, statements: Vec::new(), used: false };
        match self.rows.insert(self.keystore, &self.folder, &id.to_string(), &text(&kept), Some(expires))? {
            RowInsertion::Added => Ok(kept),
            RowInsertion::Exists => Err(KmsError::new(Code::AlreadyExists, "the request is there already")),
        }
    }

    /// The request with an id.
    ///
    /// # Errors
    /// [`Code::NotFound`]: it is not there, or has expired. Those of reading, and of etcd.
    pub(crate) fn get(&self, id: ApprovalId) -> Result<KeptRequest> {
        self.row(id).map(|(_, kept)| kept)
    }

    /// All requests that have not expired, the oldest first.
    ///
    /// # Errors
    /// Those of reading, and of etcd.
    pub(crate) fn all(&self) -> Result<Vec<KeptRequest>> {
        let rows = self.rows.all(self.keystore, &self.folder)?;
        let mut all = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
        all.sort_by_key(|kept| (kept.request.created, kept.request.id.to_string()));
        Ok(all)
    }

    fn row(&self, id: ApprovalId) -> Result<(ServiceRow, KeptRequest)> {
        let row = self.rows.get(self.keystore, &self.folder, &id.to_string())?;
        let row = row.ok_or_else(|| not_found(id))?;
        let kept = read(&row)?;
        Ok((row, kept))
    }

    /// Adds the statement of an approver, which is recorded first.
    ///
    /// # Errors
    /// [`Code::Conflict`]: the approver has decided already, or the request was used. Those of
    /// [`Keystore::record_decision`], of writing, and of etcd.
    pub(crate) fn decide(&self, id: ApprovalId, statement: &ApprovalStatement) -> Result<KeptRequest> {
        let mut is_recorded = false;
        for _ in 0..MAX_TRIES {
            let (row, mut kept) = self.row(id)?;
            if kept.used {
                return Err(KmsError::new(Code::Conflict, format!("the request {id} was used already")));
            }
            if kept.statements.iter().any(|one| one.approver == statement.approver) {
                let message = format!("{} has decided about {id} already", statement.approver);
                return Err(KmsError::new(Code::Conflict, message));
            }
            if !is_recorded {
                self.keystore.record_decision(&kept.request, statement)?;
                is_recorded = true;
            }
            kept.statements.push(statement.clone());
            if self.rows.replace(self.keystore, &row, &text(&kept))? {
                return Ok(kept);
            }
        }
        Err(busy())
    }

    /// A handle of the keystore that makes the wanted use of a key. Nobody gets another one for the
    /// same request.
    ///
    /// # Errors
    /// [`Code::NotFound`]: the caller has no such request; [`Code::ApprovalRequired`]: it is about
    /// another use, was used, or has too few approvals. Those of writing, and of etcd: then the
    /// request may be used up nonetheless.
    pub(crate) fn use_once(&self, wanted: WantedUse<'_>) -> Result<Keystore> {
        let WantedUse { id, key, .. } = wanted;
        for _ in 0..MAX_TRIES {
            let (row, kept) = self.row(id)?;
            self.check_use(&kept, &wanted)?;
            let used = KeptRequest { used: true, ..kept.clone() };
            if !self.rows.replace(self.keystore, &row, &text(&used))? {
                continue;
            }
            return match wanted.override_reason {
                None => Ok(self.keystore.with_approval(ApprovedUse::new(kept.request, kept.statements))),
                Some(reason) => {
                    let (actor, key) = (self.keystore.actor(), key.key_id());
                    let why = reason.as_str().to_owned();
                    let handle = self.keystore.override_approval(&kept.request, reason)?;
                    tracing::error!(%actor, %key, request = %id, reason = why, "a key is used WITHOUT its approvals");
                    Ok(handle)
                }
            };
        }
        Err(busy())
    }

    /// Whether a request permits a use. It is asked before the request is used up, so that a
    /// mistake costs nothing.
    fn check_use(&self, kept: &KeptRequest, wanted: &WantedUse<'_>) -> Result<()> {
        let KeptRequest { request, used, .. } = kept;
        let id = request.id;
        if request.requester.as_str() != wanted.caller {
            return Err(not_found(id));
        }
        if *used {
            return Err(refused(id, "was used already: make another one"));
        }
        let version = match wanted.key {
            KeyRef::Key(key) => self.keystore.latest_version_id(key)?,
            KeyRef::Version(version) => version.clone(),
        };
        if request.key.key_id() != version.key_id() || !request.subject.covers(wanted.used) {
            return Err(refused(id, "is about something else"));
        }
        let signs_latest = !matches!(wanted.used, KeyUse::Ciphertext(_));
        if signs_latest && request.key != version {
            let why = format!("is about {}, and {version} signs now: make another one", request.key);
            return Err(refused(id, &why));
        }
        if wanted.override_reason.is_some() {
            return Ok(());
        }
        let rule = self.keystore.approval_rule(request.key.key_id())?;
        match rule.map(|rule| (kept.state(&rule), rule)) {
            Some((ApprovalState::Approved, _)) => Ok(()),
            Some((ApprovalState::Waiting, rule)) => {
                let approved = kept.statements.iter().filter(|one| one.decision == ApprovalDecision::Approve);
                let approved = approved.count();
                Err(refused(
                    id,
                    &format!("has {approved} of {} approvals: wait for the others", rule.threshold),
                ))
            }
            _ => Err(refused(id, "was rejected")),
        }
    }
}

fn busy() -> KmsError {
    KmsError::new(Code::Busy, "others change the same request all the time: try again")
}

fn text(kept: &KeptRequest) -> Vec<u8> {
    serde_json::to_vec(kept).unwrap_or_default()
}

fn read(row: &ServiceRow) -> Result<KeptRequest> {
    serde_json::from_slice(&row.content).map_err(|error| {
        KmsError::new(Code::KeystoreCorrupt, format!("a request for approval is malformed: {error}"))
    })
}
