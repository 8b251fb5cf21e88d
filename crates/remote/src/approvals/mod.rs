//! `bulla approvals`: requests to use keys of a service that need the approvals of several people.

mod args;

pub(crate) use self::args::ApprovalsCli;

use self::args::{ApprovalsCommand, DecideArgs, ListArgs, RequireArgs, ShowArgs, SignArgs};
use crate::connection::{ServiceConnection, unexpected};
use crate::keys::{client_statement, read_signature_file};
use crate::threshold::confirm;
use bulla_cli::file::{atomic, sidecar};
use bulla_cli::keystore::{KeystoreArgs, LocalKeystore};
use bulla_client::{Approval, ApprovalState, ApprovalSubject, Decision, KeyUpdate, NewApproval, UseApproval};
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_command::exit::Exit;
use bulla_command::output::Out;
use bulla_command::progress::Progress;
use bulla_files::{escape_path, escape_text};
use bulla_keystore::find_key;
use bulla_kms::approval::{ApprovalDecision, ApprovalRequest, ApprovalSubject as Subject};
use bulla_kms::signature::{Comment, SignedName};
use bulla_kms::{Statement, StatementKind};
use bulla_sums::{Links, Source};
use serde::Serialize;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// How often a waiting command asks the service.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) fn run(command: &ApprovalsCommand) -> Result<Exit> {
    match command {
        ApprovalsCommand::Require(args) => require(args),
        ApprovalsCommand::Sign(args) => sign(args),
        ApprovalsCommand::List(args) => list(args),
        ApprovalsCommand::Show(args) => show(args),
        ApprovalsCommand::Approve(args) => decide(args, ApprovalDecision::Approve),
        ApprovalsCommand::Reject(args) => decide(args, ApprovalDecision::Reject),
    }
    .map(|()| Exit::Ok)
}

/// The service, which every command needs, also beside a keystore.
fn service(args: &KeystoreArgs) -> Result<ServiceConnection> {
    let address = args.server.server.as_deref().filter(|address| !address.is_empty()).ok_or_else(|| {
        Error::new("usage", "approvals are about keys of a service")
            .hint("name it with --server URL or in the variable BULLA_ADDR")
    })?;
    ServiceConnection::new(address, &args.server)
}

/// The request of an answer, every part of which is checked.
fn request_of(approval: &Approval) -> Result<ApprovalRequest> {
    serde_json::from_value(approval.request.clone())
        .map_err(|_| unexpected("it has a request that this version does not know"))
}

#[derive(Serialize)]
struct JsonApproval<'a> {
    request: &'a ApprovalRequest,
    state: &'static str,
    threshold: u32,
    approved: Vec<&'a str>,
    rejected: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

fn state_name(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Waiting => "waiting",
        ApprovalState::Approved => "approved",
        ApprovalState::Rejected => "rejected",
        ApprovalState::Used => "used",
        _ => "unknown",
    }
}

/// Who decided so.
fn who<'a>(approval: &'a Approval, decision: &str) -> Vec<&'a str> {
    let all = approval.statements.iter().filter(|one| one.decision == decision);
    all.map(|one| one.approver.as_str()).collect()
}

fn json(approval: &Approval, signature: Option<&Path>) -> Result<()> {
    let mut out = Out::stdout();
    out.json(&JsonApproval {
        request: &request_of(approval)?,
        state: state_name(approval.state),
        threshold: approval.threshold,
        approved: who(approval, "approve"),
        rejected: who(approval, "reject"),
        signature: signature.map(escape_path),
    })?;
    out.flush()
}

/// What the key is to be used for, in lines for a person.
fn subject_lines(subject: &Subject) -> Vec<String> {
    let what = |verb: &str, digest: &bulla_blake3::Hash, size: u64| {
        vec![format!("to {verb}, {size} bytes"), format!("digest      {digest}")]
    };
    let name = |name: &Option<SignedName>| match name {
        Some(name) => format!("the file {}", escape_text(&name.to_string())),
        None => "a message or file without a name".to_owned(),
    };
    match subject {
        Subject::Sign { digest, size, name: file } => what(&format!("sign {}", name(file)), digest, *size),
        Subject::SignStatement { kind, digest, size, comment, name: file, .. } => {
            let mut lines = what(&format!("sign {} ({kind})", name(file)), digest, *size);
            if !comment.as_str().is_empty() {
                lines.push(format!("comment     {comment}"));
            }
            lines
        }
        Subject::Decrypt { digest, size } => what("decrypt a ciphertext", digest, *size),
        Subject::ChangeRule { rule } => {
            let names: Vec<_> = rule.approvers.iter().map(|one| escape_text(one.name.as_str())).collect();
            let all = names.join(", ");
            vec![format!("to change the rule: {} of {all}, within {} s", rule.threshold, rule.max_seconds)]
        }
        _ => vec!["to do something that this version does not know".to_owned()],
    }
}

/// Shows a request to a person.
fn lines(approval: &Approval) -> Result<Vec<String>> {
    let request = request_of(approval)?;
    let (approved, rejected) = (who(approval, "approve"), who(approval, "reject"));
    let listed = |names: &[&str]| match names.is_empty() {
        true => "nobody yet".to_owned(),
        false => names.iter().map(|name| escape_text(name)).collect::<Vec<_>>().join(", "),
    };
    let mut lines = vec![
        format!("request     {} ({})", request.id, state_name(approval.state)),
        format!("key         {}", request.key),
    ];
    lines.extend(subject_lines(&request.subject));
    lines.push(format!("requester   {}", escape_text(request.requester.as_str())));
    lines.push(format!("reason      {}", request.reason));
    lines.push(format!("until       {}", request.expires));
    lines.push(format!("approved    {} of {}: {}", approved.len(), approval.threshold, listed(&approved)));
    if !rejected.is_empty() {
        lines.push(format!("rejected    {}", listed(&rejected)));
    }
    Ok(lines)
}

fn print(approval: &Approval) -> Result<()> {
    let mut out = Out::stdout();
    for line in lines(approval)? {
        out.line(format_args!("{line}"))?;
    }
    out.flush()
}

fn require(args: &RequireArgs) -> Result<()> {
    let service = service(&args.keystore)?;
    // Some time has passed since the flag was read.
    let within = args.within.remaining()?;
    let max_seconds = within.as_secs() + u64::from(within.subsec_nanos() > 0);
    let approver = |one: &bulla_kms::approval::Approver| bulla_client::Approver {
        name: one.name.to_string(),
        public_key: one.public_key.to_string(),
    };
    let rule = bulla_client::ApprovalRule {
        threshold: args.threshold.get(),
        approvers: args.approvers.iter().map(approver).collect(),
        max_seconds,
        requester_may_approve: args.requester_may_approve,
    };
    let update = KeyUpdate::ApprovalRule(&rule);
    let key = service.ask(|client| client.update_key(&args.key, None, update))?;
    if args.report.json {
        let mut out = Out::stdout();
        out.json(&serde_json::json!({ "key": key.id, "approval_rule": key.approval_rule }))?;
        return out.flush();
    }
    if !args.report.quiet {
        let (needed, all) = (args.threshold, args.approvers.len());
        note_line(&format!("{} is used only when {needed} of {all} people have approved it", key.id));
    }
    Ok(())
}

fn list(args: &ListArgs) -> Result<()> {
    let approvals: Vec<_> = service(&args.keystore)?.ask(|client| client.approvals().collect())?;
    for (place, approval) in approvals.iter().enumerate() {
        if args.report.json {
            json(approval, None)?;
            continue;
        }
        if place > 0 {
            Out::stdout().line(format_args!(""))?;
        }
        print(approval)?;
    }
    if approvals.is_empty() && !args.report.quiet && !args.report.json {
        note_line("there are no requests");
    }
    Ok(())
}

fn show(args: &ShowArgs) -> Result<()> {
    let approval = service(&args.keystore)?.ask(|client| client.approval(&args.id.to_string()))?;
    if args.report.json { json(&approval, None) } else { print(&approval) }
}

/// The digest and the size of a file.
fn read(path: &Path) -> Result<(bulla_blake3::Hash, u64)> {
    let about = |error: Error| error.about(escape_path(path));
    let source = Source::open_file(path, Links::Follow).map_err(|error| about(error.into()))?;
    let (mut hasher, mut size) = (bulla_blake3::Hasher::new(), 0);
    let read = source.for_each(&Progress::new(source.len()), |bytes| {
        size += bytes.len() as u64;
        hasher.update(bytes);
    });
    read.map_err(|error| about(error.into()))?;
    Ok((hasher.finalize(), size))
}

fn sign(args: &SignArgs) -> Result<()> {
    let comment: Comment = args.comment.parse()?;
    let service = service(&args.keystore)?;
    let output = sidecar(&args.file, ".bulla")?;
    atomic::check_replaceable(&output, "a signature", |found| found.starts_with(b"bulla signature v"))?;
    let name = args.file.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
    let (digest, size) = read(&args.file)?;
    let statement = Statement::new(StatementKind::File, digest, size)
        .comment(comment)
        .name(Some(SignedName::from_bytes(name)?));
    let signed_name = statement.name.as_ref().map(ToString::to_string);
    let asked = client_statement(&statement, signed_name.as_deref(), None);
    let mut approval = match (&args.request, &args.reason) {
        (Some(id), _) => service.ask(|client| client.approval(&id.to_string()))?,
        (None, reason) => {
            let reason = reason.as_deref().unwrap_or_default();
            let subject = ApprovalSubject::from(&asked);
            let new = NewApproval { key: &args.key, subject, reason, expires_in_seconds: None };
            service.ask(|client| client.request_approval(&new))?
        }
    };
    let ApprovalRequest { id, key: version, .. } = request_of(&approval)?;
    if approval.state == ApprovalState::Waiting {
        if args.request.is_none() && !args.report.quiet {
            let needed = approval.threshold;
            note_line(&format!("the request is {id}; it needs the approvals of {needed} people, who run"));
            note_line(&format!(
                "  bulla approvals approve {id} --name NAME --file {}",
                escape_path(&args.file)
            ));
        }
        if !args.wait {
            return if args.report.json { json(&approval, None) } else { print(&approval) };
        }
    }
    while approval.state == ApprovalState::Waiting {
        thread::sleep(POLL_INTERVAL);
        approval = service.ask(|client| client.approval(&id.to_string()))?;
    }
    let id = id.to_string();
    let approved = UseApproval { id: &id, override_reason: None };
    let signed = service.ask(|client| client.sign_statement_approved(&args.key, &asked, &approved))?;
    let file = read_signature_file(&signed.signature_file, &statement, None)?;
    if file.key != version {
        return Err(unexpected("the signature in it is not one of the key version that was approved"));
    }
    atomic::write(&output, |file| file.write_all(signed.signature_file.as_bytes()))?;
    if args.report.json {
        let approval = service.ask(|client| client.approval(&id))?;
        return json(&approval, Some(&output));
    }
    if !args.report.quiet {
        note_line(&format!("wrote {}", escape_path(&output)));
    }
    Ok(())
}

fn decide(args: &DecideArgs, decision: ApprovalDecision) -> Result<()> {
    let service = service(&args.keystore)?;
    let id = args.id.to_string();
    let approval = service.ask(|client| client.approval(&id))?;
    let request = request_of(&approval)?;
    if request.id != args.id {
        return Err(unexpected("it is about another request"));
    }
    for line in lines(&approval)? {
        note_line(&line);
    }
    if decision == ApprovalDecision::Approve {
        compare(args, &request)?;
    }
    if !args.yes {
        let question = match decision {
            ApprovalDecision::Approve => "Do you approve?",
            ApprovalDecision::Reject => "Do you reject it?",
        };
        confirm(question)?;
    }
    let mut own = args.keystore.clone();
    own.server.server = None;
    let keystore = LocalKeystore::existing(&own)?.open()?;
    let key = find_key(&keystore, &args.signing_key)?;
    let statement = keystore.sign_approval(key.key_id(), &request, &args.name.parse()?, decision)?;
    let decided = Decision { approver: &args.name, signature: Some(&statement.signature), signing_key: None };
    let approval = service.ask(|client| match decision {
        ApprovalDecision::Approve => client.approve(&id, &decided),
        ApprovalDecision::Reject => client.reject(&id, &decided),
    })?;
    if args.report.json {
        return json(&approval, None);
    }
    if !args.report.quiet {
        let approved = who(&approval, "approve").len();
        let (needed, state) = (approval.threshold, state_name(approval.state));
        note_line(&format!("{approved} of {needed} people have approved; the request is {state}"));
    }
    Ok(())
}

/// Compares the approver's copy of what is to be signed with the request.
fn compare(args: &DecideArgs, request: &ApprovalRequest) -> Result<()> {
    let (digest, size) = match &request.subject {
        Subject::Sign { digest, size, .. }
        | Subject::SignStatement { digest, size, .. }
        | Subject::Decrypt { digest, size } => (*digest, *size),
        // The request shows all of it.
        _ => return Ok(()),
    };
    let Some(path) = &args.file else {
        if args.without_file {
            note_line("you did not compare the file: whoever made the request chose this digest");
            return Ok(());
        }
        return Err(Error::new("usage", "you have not compared what you are asked to approve")
            .hint("name your copy with --file FILE; or approve the digest alone with --without-file"));
    };
    if read(path)? == (digest, size) {
        note_line(&format!("your copy {} has this content", escape_path(path)));
        return Ok(());
    }
    Err(Error::new("changed", "is not what you are asked to approve")
        .about(escape_path(path))
        .hint("ask the requester over another channel"))
}
