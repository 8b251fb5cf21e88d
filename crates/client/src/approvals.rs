//! Keys that are used only with approvals: requests, decisions, and the approved use.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::Client;
use crate::encoding::Base64;
use crate::error::Result;
use crate::operation::Operation;
use crate::pages::Pages;
use crate::request::Call;
use crate::signing::{Signature, SignedStatement, Statement, StatementBody};

/// Who must approve each use of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRule {
    /// How many people must approve.
    pub threshold: u32,
    /// The people whose approvals count.
    pub approvers: Vec<Approver>,
    /// Approvals count for so many seconds after the request was made.
    pub max_seconds: u64,
    /// Whether the person who made a request may be one of those who approve it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requester_may_approve: bool,
}

/// A person whose approval counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approver {
    /// The name by which the service knows the person: the holder of their tokens.
    pub name: String,
    /// The Ed25519 key that signs their approvals, base64.
    pub public_key: String,
}

/// A request to make.
#[derive(Clone, Debug, Serialize)]
pub struct NewApproval<'a> {
    /// The key.
    pub key: &'a str,
    /// What it is to be used for.
    pub subject: ApprovalSubject<'a>,
    /// Why. Approvers and the audit log see it.
    pub reason: &'a str,
    /// How many seconds the request counts; as long as the key's rule says when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// What a key is to be used for, once.
#[non_exhaustive]
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum ApprovalSubject<'a> {
    /// To sign a message: [`Client::sign_approved`].
    Sign {
        /// The BLAKE3 digest of the message, 64 hexadecimal digits.
        digest: String,
        /// Its length in bytes.
        size: u64,
        /// The name of the file.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    },
    /// To sign a statement: [`Client::sign_statement_approved`].
    SignStatement(StatementSubject<'a>),
    /// To decrypt or decapsulate a ciphertext.
    Decrypt {
        /// The BLAKE3 digest of the ciphertext, 64 hexadecimal digits.
        digest: String,
        /// Its length in bytes.
        size: u64,
    },
    /// To give the key another rule.
    ChangeRule {
        /// The new rule.
        rule: &'a ApprovalRule,
    },
}

/// A statement, as approvers see it.
#[derive(Clone, Debug, Serialize)]
pub struct StatementSubject<'a> {
    kind: crate::signing::StatementKind,
    digest: String,
    size: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    comment: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prehash: Option<crate::signing::Prehash>,
}

impl<'a> From<&Statement<'a>> for ApprovalSubject<'a> {
    fn from(statement: &Statement<'a>) -> Self {
        let &Statement { kind, ref digest, size, comment, name, prehash } = statement;
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::SignStatement(StatementSubject { kind, digest, size, comment, name, prehash })
    }
}

/// A request for approval, and who has decided about it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Approval {
    /// The request as the service writes it: `bulla_kms::approval::ApprovalRequest` reads it.
    /// Approvers sign it.
    pub request: Value,
    /// Where it is.
    pub state: ApprovalState,
    /// How many people must approve.
    pub threshold: u32,
    /// Who has decided, in the order of their decisions.
    pub statements: Vec<ApprovalStatement>,
}

impl Approval {
    /// The id of the request.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let mut approvals = client.approvals();
    /// while let Some(approval) = approvals.try_next().await? {
    ///     println!("{} {:?}", approval.id(), approval.state);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn id(&self) -> &str {
        self.request["id"].as_str().unwrap_or_default()
    }
}

/// A page of requests for approval.
#[non_exhaustive]
#[derive(Clone, Debug, Deserialize)]
pub struct ApprovalPage {
    /// The requests, the oldest first.
    pub approvals: Vec<Approval>,
    /// The argument of [`Client::approval_page`] for the next page; none on the last.
    pub next: Option<String>,
}

/// Where a request for approval is.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Too few people have decided.
    Waiting,
    /// The key may be used once.
    Approved,
    /// Too few people are left to approve it.
    Rejected,
    /// The key was used.
    Used,
    /// A state that this client does not know.
    #[serde(other)]
    Unknown,
}

/// What an approver said.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ApprovalStatement {
    /// The name of the approver.
    pub approver: String,
    /// `approve` or `reject`.
    pub decision: String,
    /// Their signature, base64.
    pub signature: String,
}

/// The decision of an approver: either their signature of the request, or their own key in the
/// service.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Decision<'a> {
    /// The name of the approver in the key's rule.
    pub approver: &'a str,
    /// Their signature, base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<&'a str>,
    /// Their own key, if it is one of the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing_key: Option<&'a str>,
}

/// The request by which a key is used.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct UseApproval<'a> {
    /// The id of the request.
    #[serde(rename = "approval")]
    pub id: &'a str,
    /// Why the key is used without the approvals, in an emergency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub override_reason: Option<&'a str>,
}

#[derive(Serialize)]
struct Approved<'a, T> {
    #[serde(flatten)]
    body: &'a T,
    #[serde(flatten)]
    approval: &'a UseApproval<'a>,
}

impl Client {
    /// Requests the approvals that one use of a key needs.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// use bulla_client::{ApprovalSubject, NewApproval, UseApproval};
    ///
    /// let digest = "d74981efa70a0c880b8d8c1985d075dbcbf679b99a5f9914e5aaf96b831a9e24".to_owned();
    /// let subject = ApprovalSubject::Sign { digest, size: 5, name: None };
    /// let (key, reason) = ("releases", "release 1.0");
    /// let new = NewApproval { key, subject, reason, expires_in_seconds: None };
    /// let approval = client.request_approval(&new).await?;
    /// // When enough people have approved it:
    /// let approved = UseApproval { id: approval.id(), override_reason: None };
    /// let signature = client.sign_approved("releases", b"hello", &approved).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn request_approval(&self, new: &NewApproval<'_>) -> Result<Approval> {
        self.call(Call::new(Operation::RequestApproval).body(new)).await
    }

    /// Lists the requests for approval that have not expired, about keys that the caller may read,
    /// the oldest first. It reads the next page when the requests of the page before have been
    /// taken.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let mut approvals = client.approvals();
    /// while let Some(approval) = approvals.try_next().await? {
    ///     println!("{}", approval.id());
    /// }
    /// let approvals: Vec<_> = client.approvals().try_collect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn approvals(&self) -> Pages<Approval> {
        let client = self.clone();
        Pages::new(move |next: Option<String>| {
            let client = client.clone();
            Box::pin(async move {
                let page = client.approval_page(next.as_deref()).await?;
                Ok((page.approvals, page.next))
            })
        })
    }

    /// Lists up to 1,000 of these requests: the oldest ones, or those after the `next` of the page
    /// before.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client) -> bulla_client::Result<()> {
    /// let first = client.approval_page(None).await?;
    /// let second = client.approval_page(first.next.as_deref()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn approval_page(&self, after: Option<&str>) -> Result<ApprovalPage> {
        let call = Call::new(Operation::Approvals).query("limit", "1000");
        self.call(match after {
            Some(after) => call.query("after", after),
            None => call,
        })
        .await
    }

    /// A request for approval.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client, id: &str) -> bulla_client::Result<()> {
    /// println!("{:?}", client.approval(id).await?.state);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn approval(&self, id: &str) -> Result<Approval> {
        self.call(Call::new(Operation::Approval).path_param("{id}", id)).await
    }

    /// Approves a request, with the signature of an approver.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client, id: &str) -> bulla_client::Result<()> {
    /// use bulla_client::Decision;
    ///
    /// let decision = Decision { approver: "ann", signature: None, signing_key: Some("anns") };
    /// client.approve(id, &decision).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn approve(&self, id: &str, decision: &Decision<'_>) -> Result<Approval> {
        self.call(Call::new(Operation::Approve).path_param("{id}", id).body(decision)).await
    }

    /// Rejects a request, with the signature of an approver.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client, id: &str) -> bulla_client::Result<()> {
    /// use bulla_client::Decision;
    ///
    /// let decision = Decision { approver: "ann", signature: None, signing_key: Some("anns") };
    /// client.reject(id, &decision).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reject(&self, id: &str, decision: &Decision<'_>) -> Result<Approval> {
        self.call(Call::new(Operation::Reject).path_param("{id}", id).body(decision)).await
    }

    /// Signs a message as [`Client::sign`] does, with an approved request of this caller.
    ///
    /// ```no_run
    /// # async fn example(client: &bulla_client::Client, id: &str) -> bulla_client::Result<()> {
    /// use bulla_client::UseApproval;
    ///
    /// let approved = UseApproval { id, override_reason: None };
    /// let signature = client.sign_approved("releases", b"hello", &approved).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign_approved(
        &self,
        key: &str,
        message: &[u8],
        approval: &UseApproval<'_>,
    ) -> Result<Signature> {
        #[derive(Serialize)]
        struct Message<'a> {
            message: Base64<'a>,
        }
        let body = &Message { message: Base64(message) };
        self.call(Call::of_key(Operation::Sign, key).body(&Approved { body, approval })).await
    }

    /// Signs a statement as [`Client::sign_statement`] does, with an approved request of this
    /// caller.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: &bulla_client::Client,
    /// #     statement: &bulla_client::Statement<'_>,
    /// #     id: &str,
    /// # ) -> bulla_client::Result<()> {
    /// use bulla_client::UseApproval;
    ///
    /// let approved = UseApproval { id, override_reason: None };
    /// let signed = client.sign_statement_approved("releases", statement, &approved).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sign_statement_approved(
        &self,
        key: &str,
        statement: &Statement<'_>,
        approval: &UseApproval<'_>,
    ) -> Result<SignedStatement> {
        let body = &StatementBody::from(statement);
        self.call(Call::of_key(Operation::SignStatement, key).body(&Approved { body, approval })).await
    }
}
