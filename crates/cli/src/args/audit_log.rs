//! The arguments of `bulla audit-log`.

use super::shared::{KeystoreArgs, ReportArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Record what is done with keys, and prove that the record is whole
///
/// The log lies in the folder `audit-log` of the keystore. Once it is there, every command that makes, uses or changes a private key
/// records who did it, with which key, and how it ended; of what was signed, only a digest. Each entry is chained to those
/// before it, and from time to time the key `audit-log` signs all of them: a checkpoint.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla audit-log init                         begin to record
  bulla audit-log show
  bulla audit-log checkpoint > head.note       keep this elsewhere: it shows if the log is ever cut
  bulla audit-log verify --checkpoint head.note
  bulla audit-log prove 17 > entry-17.json     one entry, for who has only the public key
  bulla audit-log verify --proof entry-17.json --public-key audit.pub")]
pub(crate) struct AuditLogArgs {
    #[command(subcommand)]
    pub(crate) command: AuditLogCommand,
}

#[derive(Subcommand)]
pub(crate) enum AuditLogCommand {
    /// Begin a log, and make the key `audit-log` that signs it
    Init(AuditLogInitArgs),
    Verify(AuditLogVerifyArgs),
    /// Print all entries
    Show(AuditLogShowArgs),
    Prove(AuditLogProveArgs),
    Checkpoint(AuditLogCheckpointArgs),
}

#[derive(Args)]
pub(crate) struct AuditLogInitArgs {
    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Prove that nothing in the log was altered, removed or moved
///
/// Prints one line for everything that is wrong. The versions of the keystore's key `audit-log` are trusted or, with --public-key, that
/// key alone, and no keystore is needed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla audit-log verify
  bulla audit-log verify --checkpoint head.note
  bulla audit-log verify --log copy-of-the-log --public-key audit.pub --json

Exit status: 0 all is as it was written, 1 something is not, 2 it could not be found out.")]
pub(crate) struct AuditLogVerifyArgs {
    /// The folder of the log [default: `audit-log` in the keystore's folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) log: Option<PathBuf>,

    /// Trust this public key alone: a file, or the key itself in base64
    #[arg(short, long, value_name = "FILE|KEY")]
    pub(crate) public_key: Option<String>,

    /// A checkpoint that was kept elsewhere, which the log must still have
    #[arg(short, long, value_name = "FILE", conflicts_with = "proof")]
    pub(crate) checkpoint: Vec<PathBuf>,

    /// Check what `bulla audit-log prove` printed, instead of a log
    #[arg(long, value_name = "FILE", conflicts_with = "log")]
    pub(crate) proof: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[derive(Args)]
pub(crate) struct AuditLogShowArgs {
    /// The folder of the log [default: `audit-log` in the keystore's folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) log: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    /// Print one JSON object a line instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prove one entry, or that the log only grew, to who does not have it
///
/// The proof is JSON. It leads to the newest checkpoint.
#[derive(Args)]
pub(crate) struct AuditLogProveArgs {
    /// The number of the entry
    #[arg(value_name = "ENTRY", required_unless_present = "since", conflicts_with = "since")]
    pub(crate) entry: Option<u64>,

    /// Prove that the log begins with what this older checkpoint seals
    #[arg(long, value_name = "FILE")]
    pub(crate) since: Option<PathBuf>,

    /// The folder of the log [default: `audit-log` in the keystore's folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) log: Option<PathBuf>,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Sign all entries so far, and print the checkpoint
///
/// It is a signed note. Keep it elsewhere: `bulla audit-log verify --checkpoint` then finds if the log was cut or replaced.
#[derive(Args)]
pub(crate) struct AuditLogCheckpointArgs {
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    /// Print one JSON object instead of the note
    #[arg(long, conflicts_with = "output")]
    pub(crate) json: bool,
}
