//! Requests for approval, as the service keeps them: a row for each, which all nodes read.
//!
//! A row has the request, the statements of those who decided, and whether it was used. It is used
//! by changing the row, which of several callers and nodes one does, and only then is the key used:
//! a node that is killed between the two leaves a request that counts no more.
//!
//! Another row says which requests a requester has: nobody fills a tenant's folder alone.

use std::ops::ControlFlow;

use bulla_kms::approval::{
    ApprovalDecision, ApprovalId, ApprovalRequest, ApprovalRule, ApprovalState, ApprovalStatement,
    ApprovedUse, KeyUse,
};
use bulla_kms::audit_log::Actor;
use bulla_kms::signature::Comment;
use bulla_kms::{Code, KeyRef, Keystore, KmsError, Name, Result, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rows::{RowFolder, RowInsertion, RowKind, ServiceRow, ServiceRows};

/// How often a change is tried again that others make at the same time.
const MAX_TRIES: usize = 64;
/// The most requests of one requester that are neither used nor rejected, nor expired.
const MAX_OPEN: usize = 100;
/// The most requests of one requester that have not expired: a tenth of a tenant's.
const MAX_UNEXPIRED: usize = 1_000;

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

/// A request that counts for its requester, until it expires.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CountedRequest {
    id: ApprovalId,
    expires: Timestamp,
    /// Whether it was used or rejected.
    is_over: bool,
}

/// Why a requester makes no more requests for now.
#[derive(Debug)]
pub(crate) struct TooManyRequests(pub(crate) String);

/// Whether a requester with these requests may make one more.
fn check_room(requester: &Actor, counted: &[CountedRequest]) -> Result<(), TooManyRequests> {
    if counted.iter().filter(|one| !one.is_over).count() >= MAX_OPEN {
        return Err(TooManyRequests(format!(
            "{requester} has {MAX_OPEN} requests for approval that are neither used nor rejected: use some, let approvers reject some, or wait until they expire"
        )));
    }
    if counted.len() >= MAX_UNEXPIRED {
        return Err(TooManyRequests(format!(
            "{requester} has {MAX_UNEXPIRED} requests for approval that have not expired: wait, and let requests expire sooner (`expires_in_seconds`)"
        )));
    }
    Ok(())
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
    /// Which requests each requester has.
    requesters: RowFolder,
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
        let folder = |kind| RowFolder::new(keystore, kind, tenant.as_str());
        let (requests, requesters) = (folder(RowKind::Approval), folder(RowKind::Requester));
        Self { rows, keystore, folder: requests, requesters }
    }

    /// Whether a requester may make one more request.
    ///
    /// # Errors
    /// Those of reading, and of etcd.
    pub(crate) fn check_room(&self, requester: &Actor) -> Result<Result<(), TooManyRequests>> {
        Ok(check_room(requester, &self.counted(requester)?.1))
    }

    /// Keeps a new request, if its requester has room for it. Of several that are made at the same
    /// time, on whichever nodes, so many are kept as there is room for.
    ///
    /// # Errors
    /// Those of writing, and of etcd.
    pub(crate) fn add(&self, request: ApprovalRequest) -> Result<Result<KeptRequest, TooManyRequests>> {
        if let Err(too_many) = self.count(&request)? {
            return Ok(Err(too_many));
        }
        let (id, expires) = (request.id, request.expires);
        let kept = KeptRequest { request, statements: Vec::new(), used: false };
        match self.rows.insert(self.keystore, &self.folder, &id.to_string(), &text(&kept), Some(expires)) {
            Ok(RowInsertion::Added) => Ok(Ok(kept)),
            Ok(RowInsertion::Exists) => {
                Err(KmsError::new(Code::AlreadyExists, "the request is there already"))
            }
            Err(error) => {
                // The tenant has no room. After another error, the row may be there nonetheless.
                if error.code == Code::Busy {
                    self.change_counted(&kept.request, |all| all.retain(|one| one.id != id));
                }
                Err(error)
            }
        }
    }

    /// The row of a requester, if there is one, and which of their requests have not expired.
    fn counted(&self, requester: &Actor) -> Result<(Option<ServiceRow>, Vec<CountedRequest>)> {
        let row = self.rows.get(self.keystore, &self.requesters, requester.as_str())?;
        let mut counted: Vec<CountedRequest> = row.as_ref().map(read).transpose()?.unwrap_or_default();
        let now = Timestamp::now()?;
        counted.retain(|one| one.expires > now);
        Ok((row, counted))
    }

    /// Counts a request for its requester, if there is room.
    fn count(&self, request: &ApprovalRequest) -> Result<Result<(), TooManyRequests>> {
        let &ApprovalRequest { id, expires, ref requester, .. } = request;
        for _ in 0..MAX_TRIES {
            let (row, mut counted) = self.counted(requester)?;
            if let Err(too_many) = check_room(requester, &counted) {
                return Ok(Err(too_many));
            }
            counted.push(CountedRequest { id, expires, is_over: false });
            let end = counted.iter().map(|one| one.expires).fold(expires, Timestamp::max);
            let (keystore, text) = (self.keystore, text(&counted));
            let is_counted = match row {
                Some(row) => self.rows.replace_until(keystore, &row, &text, end)?,
                None => {
                    let (folder, name) = (&self.requesters, requester.as_str());
                    self.rows.insert(keystore, folder, name, &text, Some(end))? == RowInsertion::Added
                }
            };
            if is_counted {
                return Ok(Ok(()));
            }
        }
        Err(busy())
    }

    /// A request was used or rejected.
    fn end(&self, request: &ApprovalRequest) {
        self.change_counted(request, |all| {
            all.iter_mut().filter(|one| one.id == request.id).for_each(|one| one.is_over = true);
        });
    }

    /// Changes how a request counts for its requester. If that fails, it counts as before until it
    /// expires.
    fn change_counted(&self, request: &ApprovalRequest, change: impl Fn(&mut Vec<CountedRequest>)) {
        let try_to = || -> Result<()> {
            for _ in 0..MAX_TRIES {
                let (Some(row), mut counted) = self.counted(&request.requester)? else { return Ok(()) };
                change(&mut counted);
                if self.rows.replace(self.keystore, &row, &text(&counted))? {
                    return Ok(());
                }
            }
            Err(busy())
        };
        if let Err(error) = try_to() {
            tracing::warn!(id = %request.id, "a request for approval counts for its requester until it expires: {error}");
        }
    }

    /// The request with an id.
    ///
    /// # Errors
    /// [`Code::NotFound`]: it is not there, or has expired. Those of reading, and of etcd.
    pub(crate) fn get(&self, id: ApprovalId) -> Result<KeptRequest> {
        self.row(id).map(|(_, kept)| kept)
    }

    /// Up to `most` requests that have not expired and that somebody sees, the oldest first: the
    /// first ones, or those after a request, which may have expired. No later request is read.
    ///
    /// # Errors
    /// Those of reading, and of etcd.
    pub(crate) fn page(
        &self,
        after: Option<ApprovalId>,
        most: usize,
        sees: impl Fn(&KeptRequest) -> bool,
    ) -> Result<Vec<KeptRequest>> {
        let (after, mut found) = (after.map(|id| id.to_string()), Vec::new());
        self.rows.scan(self.keystore, &self.folder, after.as_deref(), |row| {
            found.extend(Some(read(&row)?).filter(&sees));
            Ok(if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(found)
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
                let rule = self.keystore.approval_rule(kept.request.key.key_id())?;
                if rule.is_some_and(|rule| kept.state(&rule) == ApprovalState::Rejected) {
                    self.end(&kept.request);
                }
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
            self.end(&kept.request);
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

fn text(content: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(content).unwrap_or_default()
}

fn read<T: DeserializeOwned>(row: &ServiceRow) -> Result<T> {
    serde_json::from_slice(&row.content).map_err(|error| {
        KmsError::new(Code::KeystoreCorrupt, format!("a request for approval is malformed: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::num::{NonZeroU32, NonZeroU64};

    use bulla_kms::approval::{ApprovalSubject, Approver};
    use bulla_kms::{Algorithm, NewKey};

    use super::*;

    #[test]
    fn requests_after_a_page_are_not_read() {
        let (keystore, rows) = (Keystore::in_memory().unwrap(), ServiceRows::new(None, None));
        let tenant: Name = "local".parse().unwrap();
        let new = NewKey::new(tenant.clone(), "files".parse().unwrap(), Algorithm::Ed25519);
        let own = keystore.create_key(new.clone()).unwrap();
        let public_key = keystore.public_key(&own).unwrap();
        let ann = Approver { name: "ann".parse().unwrap(), public_key };
        let rule = ApprovalRule::new(NonZeroU32::MIN, vec![ann], NonZeroU64::new(3600).unwrap());
        let key = keystore.create_key(new.approval(rule)).unwrap();
        let approvals = Approvals::new(&rows, &keystore, &tenant);
        let ids: Vec<_> = (0..5)
            .map(|size| {
                let subject = ApprovalSubject::Sign { digest: bulla_blake3::hash(b""), size, name: None };
                let (requester, reason) = ("ci".parse().unwrap(), "r".parse().unwrap());
                let made = keystore.request_approval(&key, subject, &requester, reason, None).unwrap();
                approvals.add(made).unwrap().unwrap().request.id
            })
            .collect();
        let read = Cell::new(0);
        let sees = |_: &KeptRequest| {
            read.set(read.get() + 1);
            true
        };
        let page = approvals.page(None, 2, sees).unwrap();
        assert_eq!((page.len(), read.get()), (2, 2));
        let all = approvals.page(None, usize::MAX, |_| true).unwrap();
        let next = approvals.page(Some(page[1].request.id), 2, sees).unwrap();
        assert_eq!((next.len(), read.get()), (2, 4));
        let listed: Vec<_> = all.iter().map(|kept| kept.request.id).collect();
        let in_pages: Vec<_> = page.iter().chain(&next).map(|kept| kept.request.id).collect();
        assert_eq!(in_pages, listed[..4]);
        assert!(listed.len() == ids.len() && ids.iter().all(|id| listed.contains(id)));
    }

    #[test]
    fn requests_that_are_over_have_a_larger_bound() {
        let requester = "ci".parse().unwrap();
        let id: ApprovalId = "0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11".parse().unwrap();
        let one = |is_over| CountedRequest { id, expires: Timestamp::default(), is_over };
        let room = |open: usize, over: usize| {
            let all: Vec<_> = (0..open + over).map(|place| one(place >= open)).collect();
            check_room(&requester, &all).map_err(|TooManyRequests(why)| why)
        };
        assert_eq!((room(99, 900), room(0, 999)), (Ok(()), Ok(())));
        assert!(room(100, 0).unwrap_err().contains("ci has 100 requests"));
        assert!(room(99, 901).unwrap_err().contains("ci has 1000 requests"));
    }
}
