//! `bulla threshold sign` and `approve`. One file goes round: the request, approvals, and signature
//! shares. The nonces of a participant are in the memory of the command that approved.

use super::args::{ThresholdApproveArgs, ThresholdFormat, ThresholdSignArgs};
use super::folder::ThresholdFolder;
use super::job::{Job, NextStep, SignatureForm};
use super::{confirm, failed, key_id, listed, read_line, read_messages, write_messages};
use bulla_cli::file::{atomic, sidecar};
use bulla_cli::keystore::LocalKeystore;
use bulla_cli::remote::ReportArgs;
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_command::output::Out;
use bulla_files::{escape_path, escape_text};
use bulla_kms::signature::Comment;
use bulla_threshold::{ErrorCode, Message, ParticipantKeys, SigningSession, ThresholdError, Waiting};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What a command needs while the file goes round.
struct Round<'a> {
    keys: ParticipantKeys,
    session: SigningSession,
    job: Job,
    /// The file that goes round.
    file: PathBuf,
    /// Where the signature goes, for the requester.
    signature: Option<PathBuf>,
    report: &'a ReportArgs,
}

#[derive(Serialize)]
struct JsonStep<'a> {
    status: &'static str,
    group: &'a str,
    file: String,
    /// What the signature covers, and so the own copy is compared with.
    digest: String,
    approved: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

pub(super) fn sign(args: &ThresholdSignArgs) -> Result<()> {
    let comment: Comment = args.comment.as_deref().unwrap_or_default().parse()?;
    check_usage(args)?;
    let folder = ThresholdFolder::of(LocalKeystore::existing(&args.keystore)?);
    let (keys, share) = {
        let opened = folder.open()?;
        (opened.keys()?, opened.share(args.group.as_deref())?)
    };
    let job = Job::of(&args.file, args.format, comment, args.namespace.as_deref())?;
    let signature = sidecar(&args.file, job.form.extension())?;
    check_signature_file(&signature)?;
    let file = sidecar(&args.file, ".threshold")?;
    let request = SigningSession::request(&keys, &share, &job.to_text(), job.form.steps()).map_err(failed)?;
    let mut session = SigningSession::open(&keys, share, &request).map_err(failed)?;
    session.approve(&keys).map_err(failed)?;
    Round { keys, session, job, file, signature: Some(signature), report: &args.report }.run()
}

fn check_usage(args: &ThresholdSignArgs) -> Result<()> {
    let message = match (args.format, &args.comment, &args.namespace) {
        (ThresholdFormat::Ssh, Some(_), _) => {
            "--comment works only for bulla and minisign: no signature of OpenSSH covers one"
        }
        (ThresholdFormat::Bulla | ThresholdFormat::Minisign, _, Some(_)) => {
            "--namespace works only with --format ssh: no other format has namespaces"
        }
        (_, _, Some(namespace)) => {
            let checked = bulla_formats::ssh::check_namespace(namespace);
            return checked.map_err(|error| Error::new("usage", format!("--namespace: {error}")));
        }
        _ => return Ok(()),
    };
    Err(Error::new("usage", message))
}

/// The signature may replace an older signature, and nothing else.
fn check_signature_file(path: &Path) -> Result<()> {
    let starts = ["bulla signature v", "untrusted comment:", "-----BEGIN SSH SIGNATURE-----"];
    let is_one = |found: &[u8]| starts.iter().any(|start| found.starts_with(start.as_bytes()));
    atomic::check_replaceable(path, "a signature", is_one)?;
    atomic::check_folder_of(path)
}

pub(super) fn approve(args: &ThresholdApproveArgs) -> Result<()> {
    let messages = read_messages(&args.request)?;
    let request = request(&messages).map_err(|error| error.about(escape_path(&args.request)))?;
    let folder = ThresholdFolder::of(LocalKeystore::existing(&args.keystore)?);
    let (keys, shares) = {
        let opened = folder.open()?;
        (opened.keys()?, opened.shares()?)
    };
    let share = shares.into_iter().find(|share| share.group_id() == request.session()).ok_or_else(|| {
        Error::new("unknown_group", "it is a request to a group in which you have no share")
            .about(escape_path(&args.request))
    })?;
    let mut session = SigningSession::open(&keys, share, request).map_err(|error| {
        let is_refreshed = error.code == ErrorCode::WrongSession;
        let error = failed(error).about(escape_path(&args.request));
        match is_refreshed {
            true => error.hint("run `bulla threshold join` on the file of the refresh, both of you"),
            false => error,
        }
    })?;
    let job = Job::parse(session.job()).map_err(|error| error.about(escape_path(&args.request)))?;
    receive(&mut session, &messages)?;
    show(&session, &job);
    if args.without_file {
        note_line("you did not compare the file: whoever made the request chose this digest");
    } else {
        let path = args.file.clone().unwrap_or_else(|| args.request.with_file_name(&job.file));
        if args.file.is_none() && !path.is_file() {
            return Err(Error::new("not_found", "you do not have the file that you are asked to approve")
                .about(escape_text(&job.file))
                .hint(
                    "get it and name it with --file FILE; or approve the digest alone with --without-file",
                ));
        }
        job.check_file(&path)?;
        note_line(&format!("your copy {} has this content", escape_path(&path)));
    }
    if !args.yes {
        confirm("Do you approve?")?;
    }
    session.approve(&keys).map_err(failed)?;
    let file = args.request.clone();
    Round { keys, session, job, file, signature: None, report: &args.report }.run()
}

/// The one request among the messages.
fn request(messages: &[Message]) -> Result<&Message> {
    let mut requests = messages.iter().filter(|message| message.kind() == "request");
    let first = requests.next().ok_or_else(|| {
        Error::new("malformed_message", "does not ask for a signature")
            .hint("ask for the file that `bulla threshold sign` wrote")
    })?;
    match requests.find(|message| *message != first) {
        None => Ok(first),
        Some(_) => Err(Error::new("wrong_session", "has several requests: approve them one by one")),
    }
}

fn receive(session: &mut SigningSession, messages: &[Message]) -> Result<()> {
    let id = session.session();
    for message in messages.iter().filter(|message| message.opens() != Some(id)) {
        session.receive(message).map_err(failed)?;
    }
    Ok(())
}

/// Shows on standard error what is to be signed.
fn show(session: &SigningSession, job: &Job) {
    let line = |label: &str, value: &str| note_line(&format!("  {label:<10} {value}"));
    note_line(&format!("{} asks {} to sign", session.requester(), session.share().group().name()));
    line("file", &escape_text(&job.file));
    line("size", &format!("{} bytes", job.size));
    let (function, digest) = job.signed_digest();
    line(function, &digest);
    line("format", job.form.name());
    match &job.form {
        SignatureForm::Bulla { comment } | SignatureForm::Minisign { comment, .. }
            if !comment.as_str().is_empty() =>
        {
            line("comment", comment.as_str());
        }
        SignatureForm::Ssh { namespace, .. } => line("namespace", &escape_text(namespace)),
        _ => {}
    }
    line("requested", &job.time.to_string());
    let approvals = session.approvals();
    line(
        "approved",
        if approvals.is_empty() { "nobody yet".to_owned() } else { listed(&approvals) }.as_str(),
    );
}

impl Round<'_> {
    /// Goes on with each file that comes back, until the signature is there, or until the others
    /// need nothing more from this participant.
    fn run(mut self) -> Result<()> {
        let key = key_id(self.session.share())?;
        let public_key = self.session.share().public_key();
        loop {
            let job = &self.job;
            self.session
                .advance(&self.keys, |before| match job.next(&key, &public_key, before) {
                    Ok(NextStep::Message(message)) => Ok(message),
                    Ok(NextStep::File(_)) => Err(ThresholdError::invalid_job("nothing more is to be signed")),
                    Err(error) => Err(ThresholdError::invalid_job(error.to_string())),
                })
                .map_err(failed)?;
            let about =
                format!("A request to sign {}. Run: bulla threshold approve FILE", escape_text(&job.file));
            write_messages(&self.file, &about, self.session.messages())?;
            if let Some(signatures) = self.session.signatures() {
                let text = match job.next(&key, &public_key, signatures) {
                    Ok(NextStep::File(text)) => text,
                    _ => return Err(Error::new("not_signed", "the format wants another signature")),
                };
                return self.finish(&text);
            }
            if self.signature.is_none() && self.session.has_signed() {
                return self.report("approved", None);
            }
            self.report("waiting", None)?;
            self.read_next()?;
        }
    }

    /// Reads the file that the user names, once it has come back.
    fn read_next(&mut self) -> Result<()> {
        loop {
            let Some(line) = read_line()? else {
                return Err(Error::new("ended", "the input ended before everybody had signed").hint(
                    "nothing is lost, but this approval: run the command again, and leave it running",
                ));
            };
            let path = if line.is_empty() { self.file.clone() } else { PathBuf::from(line) };
            let received = read_messages(&path).and_then(|messages| receive(&mut self.session, &messages));
            match received {
                Ok(()) => return Ok(()),
                // A wrong name is no reason to lose the nonces.
                Err(error) => error.print(),
            }
        }
    }

    fn finish(&self, text: &str) -> Result<()> {
        let Some(path) = &self.signature else { return self.report("approved", None) };
        check_signature_file(path)?;
        atomic::write(path, |file| file.write_all(text.as_bytes()))?;
        self.report("signed", Some(path))
    }

    fn report(&self, status: &'static str, signature: Option<&Path>) -> Result<()> {
        let approvals = self.session.approvals();
        let mut out = match signature {
            Some(_) => Out::after("the signature was written"),
            None => Out::stdout(),
        };
        if self.report.json {
            out.json(&JsonStep {
                status,
                group: self.session.share().group().name().as_str(),
                file: self.file.to_string_lossy().into_owned(),
                digest: self.job.signed_digest().1,
                approved: approvals.iter().map(ToString::to_string).collect(),
                signature: signature.map(|path| path.to_string_lossy().into_owned()),
            })?;
            return out.flush();
        }
        let file = escape_path(&self.file);
        match (signature, status) {
            (Some(path), _) => {
                out.line(format_args!("signed by {}: {}", listed(&approvals), escape_path(path)))?
            }
            (None, "approved") => {
                out.line(format_args!("approved: send {file} to {}", self.session.requester()))?;
            }
            (None, _) => {
                let next = match self.session.waits_for() {
                    Waiting::Approvals(count) => {
                        format!("{count} more must approve: send {file} to the others")
                    }
                    Waiting::Shares(names) => format!("send {file} to {}", listed(&names)),
                    Waiting::Elsewhere(names) => {
                        format!("{} signed together with others: start again", listed(&names))
                    }
                    _ => String::new(),
                };
                out.line(next)?;
                out.line("leave this running; type the name of the file that comes back, or only Enter if it replaced this one:")?;
            }
        }
        out.flush()
    }
}
