//! The flags of `bulla approvals`.

use bulla_cli::keystore::KeystoreArgs;
use bulla_cli::remote::{Deadline, ReportArgs, deadline};
use bulla_command::color::ColorWhen;
use bulla_kms::approval::{ApprovalId, Approver};
use clap::{Args, Parser, Subcommand};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Use keys of a service that need the approvals of several people
///
/// A key may have a rule: so many of these people approve each use, within a time. Whoever wants a
/// signature makes a request. The approvers look at it and sign their decision with a key of their
/// own keystore. The service signs when enough of them have approved, once.
#[derive(Parser)]
#[command(name = "bulla-remote", bin_name = "bulla approvals", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  bulla approvals require releases --threshold 2 --within 1d \\
    --approver ann=KEY --approver bob=KEY --approver carol=KEY
  bulla approvals sign app.tar.gz --key releases --reason 'release 1.2' --wait
  bulla approvals list
  bulla approvals approve 0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11 --name ann --file app.tar.gz

Exit status: 0 done, 2 not done.")]
pub(crate) struct ApprovalsCli {
    /// When to use color
    ///
    /// The variables NO_COLOR, CLICOLOR and CLICOLOR_FORCE are respected.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    #[command(subcommand)]
    pub(crate) command: ApprovalsCommand,
}

#[derive(Subcommand)]
pub(crate) enum ApprovalsCommand {
    Require(RequireArgs),
    Sign(SignArgs),
    List(ListArgs),
    Show(ShowArgs),
    Approve(DecideArgs),
    Reject(DecideArgs),
}

/// NAME=PUBLIC-KEY
fn approver(text: &str) -> Result<Approver, String> {
    let (name, key) = text.split_once('=').ok_or("write NAME=KEY, where KEY is an Ed25519 public key")?;
    let name = name.parse().map_err(|error: bulla_kms::KmsError| error.message)?;
    let public_key = key.parse().map_err(|error: bulla_kms::KmsError| error.message)?;
    Ok(Approver { name, public_key })
}

/// Let a key be used only with approvals
///
/// The key never loses its rule. If it has one already, the service refuses: another rule needs the
/// approvals of the old one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla approvals require releases --threshold 2 --within 1d \\
    --approver ann=KEY --approver bob=KEY --approver carol=KEY

Exit status: 0 the key has the rule, 2 it has not.")]
pub(crate) struct RequireArgs {
    /// The key of the service: its label or its id
    #[arg(value_name = "LABEL|ID")]
    pub(crate) key: String,

    /// How many of the approvers must approve
    #[arg(long, value_name = "NUMBER")]
    pub(crate) threshold: NonZeroU32,

    /// Somebody whose approval counts, with the public key that signs it, 44 characters of base64;
    /// may be given several times
    ///
    /// NAME is the holder of the person's tokens at the service. `bulla keys show` prints the
    /// public key of a keystore's key.
    #[arg(long = "approver", value_name = "NAME=KEY", value_parser = approver, required = true)]
    pub(crate) approvers: Vec<Approver>,

    /// How long approvals count after the request was made: a number and s, m, h or d, at most 30d
    #[arg(long, value_name = "TIME", value_parser = deadline)]
    pub(crate) within: Deadline,

    /// Whoever makes a request may also be one of those who approve it
    #[arg(long)]
    pub(crate) requester_may_approve: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Ask for the approvals of a file's signature, and write the signature
///
/// The first time, bulla makes the request and says its id. With --wait, it waits until enough
/// people have approved, and writes FILE.bulla. Without --wait, run it again later with --request
/// ID.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla approvals sign app.tar.gz --key releases --reason 'release 1.2' --wait
  bulla approvals sign app.tar.gz --key releases --reason 'release 1.2'
  bulla approvals sign app.tar.gz --key releases --request 0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11

Exit status: 0 signed or requested, 2 neither.")]
pub(crate) struct SignArgs {
    /// The file to sign
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The key of the service: its label or its id
    #[arg(long, value_name = "LABEL|ID")]
    pub(crate) key: String,

    /// Why: approvers and the audit log see it
    #[arg(long, value_name = "TEXT", required_unless_present = "request")]
    pub(crate) reason: Option<String>,

    /// The request that was made before
    #[arg(long, value_name = "ID", conflicts_with = "reason")]
    pub(crate) request: Option<ApprovalId>,

    /// Wait until enough people have approved, or the request has ended
    #[arg(long)]
    pub(crate) wait: bool,

    /// One line of text; the signature covers it too
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) comment: String,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// List the requests that have not ended
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla approvals list
  bulla approvals list --json

Exit status: 0 listed, 2 not listed.")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Show a request, and who has decided about it
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla approvals show 0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11

Exit status: 0 shown, 2 not shown.")]
pub(crate) struct ShowArgs {
    /// The id of the request
    #[arg(value_name = "ID")]
    pub(crate) id: ApprovalId,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Decide about a request, with a key of your own keystore
///
/// bulla shows the request, and who has decided already. To approve, it compares your own copy of
/// the file, and refuses if its content is another one. Then it asks you, and signs your decision.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla approvals approve 0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11 --name ann --file app.tar.gz
  bulla approvals approve 0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11 --name ann --without-file
  bulla approvals reject 0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11 --name ann

Exit status: 0 decided, 2 not decided.")]
pub(crate) struct DecideArgs {
    /// The id of the request
    #[arg(value_name = "ID")]
    pub(crate) id: ApprovalId,

    /// Your name in the key's rule
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,

    /// The key of your keystore that signs: its label or its id
    #[arg(long, value_name = "LABEL|ID", default_value = "default")]
    pub(crate) signing_key: String,

    /// Your copy of what is to be signed or decrypted
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Approve without the file: you trust that the digest is that of what you mean
    #[arg(long, conflicts_with = "file")]
    pub(crate) without_file: bool,

    /// Do not ask: you have looked at the request
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}
