//! The arguments of `bulla log`.

use super::shared::{KeystoreArgs, ReportArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Keep a tamper-evident log of every key use, and verify it
///
/// The log is in the folder `audit-log` of the keystore. Once it exists, every command that
/// creates, uses or changes a private key adds an entry: who ran it, with which key, and with which
/// result. The entry does not contain the signed data, only its digest. Each entry is chained to
/// the entries before it. From time to time the key `audit-log` signs all entries so far: this
/// signature is a checkpoint.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla log init                         start the log
  bulla log show
  bulla log checkpoint > head.note       keep this file elsewhere: with it you detect a cut log
  bulla log verify --checkpoint head.note
  bulla log prove 17 > entry-17.json     prove entry 17 to somebody who has only the public key
  bulla log verify --proof entry-17.json --public-key audit.pub

Exit status: 0 success, 1 the log or the proof does not verify, 2 the command could not be carried out.")]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    pub(crate) command: LogCommand,
}

#[derive(Subcommand)]
pub(crate) enum LogCommand {
    /// Start the log, and create the key `audit-log` that signs it
    #[command(after_help = "\
Examples:
  bulla log init

Exit status: 0 started, 2 not started.")]
    Init(LogInitArgs),
    Verify(LogVerifyArgs),
    /// Print all entries
    #[command(after_help = "\
Examples:
  bulla log show
  bulla log show --json

Exit status: 0 printed, 1 the log is damaged or was altered, 2 it could not be read.")]
    Show(LogShowArgs),
    Prove(LogProveArgs),
    Checkpoint(LogCheckpointArgs),
    Witness(LogWitnessArgs),
}

#[derive(Args)]
pub(crate) struct LogInitArgs {
    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Check that nobody altered, removed or moved an entry
///
/// bulla prints one line for each problem. It trusts the versions of the keystore's key
/// `audit-log`. With --public-key, it trusts only that key and needs no keystore.
///
/// With --cluster, bulla checks the logs of all nodes that share a keystore in etcd. Each node puts
/// its newest checkpoint into etcd. bulla reads this node's log, the folders of --log and the
/// running nodes of --node, and says which logs nobody has shown it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla log verify
  bulla log verify --checkpoint head.note
  bulla log verify --log copy-of-the-log --public-key audit.pub --json
  bulla log verify --server https://keys.example.org:8200 --token-file token --checkpoint head.note
  bulla log verify --cluster --config /etc/bulla/serve.toml --node https://10.0.0.2:8200 --token-file token

Exit status: 0 the log, all logs of the nodes, or the proof verify, 1 something does not, 2 something could not be checked.")]
pub struct LogVerifyArgs {
    /// The log's folder [default: `audit-log` in the keystore's folder]; with --cluster, more logs,
    /// and may be given several times
    #[arg(long, value_name = "DIR")]
    pub log: Vec<PathBuf>,

    /// Check the logs of all nodes against the checkpoints that the nodes gather in etcd
    #[arg(long, requires = "config", conflicts_with = "proof")]
    pub cluster: bool,

    /// The settings of the service (`bulla serve`): a node's for --cluster, and the witnesses that
    /// must have cosigned the log
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Have this running node verify its log and prove the result; may be given several times
    #[arg(long, value_name = "URL", requires = "cluster")]
    pub node: Vec<String>,

    /// Trust only this public key: a file, or the key itself in base64
    #[arg(short, long, value_name = "FILE|KEY")]
    pub public_key: Option<String>,

    /// A checkpoint that you kept elsewhere; the log must still contain what it signed; may be
    /// given several times
    #[arg(long, value_name = "FILE", conflicts_with = "proof")]
    pub checkpoint: Vec<PathBuf>,

    /// Check the output of `bulla log prove` instead of a log
    #[arg(long, value_name = "FILE", conflicts_with = "log")]
    pub proof: Option<PathBuf>,

    #[command(flatten)]
    pub keystore: KeystoreArgs,

    #[command(flatten)]
    pub report: ReportArgs,
}

#[derive(Args)]
pub(crate) struct LogShowArgs {
    /// The log's folder [default: `audit-log` in the keystore's folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) log: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    /// Print JSON Lines, one object per entry, instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prove an entry, or prove that the log only grew
///
/// The proof is for somebody who does not have the log. It is a JSON object, and it leads to the
/// newest checkpoint. The recipient checks it with `bulla log verify --proof FILE
/// --public-key KEY`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla log prove 17 > entry-17.json
  bulla log prove --since head.note --output growth.json

Exit status: 0 proved, 2 not proved.")]
pub(crate) struct LogProveArgs {
    /// The entry's number
    #[arg(value_name = "ENTRY", required_unless_present = "since", conflicts_with = "since")]
    pub(crate) entry: Option<u64>,

    /// Prove that the log still begins with the entries that this older checkpoint signed
    #[arg(long, value_name = "FILE")]
    pub(crate) since: Option<PathBuf>,

    /// The log's folder [default: `audit-log` in the keystore's folder]
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
/// A checkpoint is a signed note. Keep it outside the keystore: `bulla log verify
/// --checkpoint` then detects a log that was cut or replaced.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla log checkpoint > head.note
  bulla log checkpoint --json

Exit status: 0 signed, 2 not signed.")]
pub(crate) struct LogCheckpointArgs {
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    /// Print a JSON object instead of the note
    #[arg(long, conflicts_with = "output")]
    pub(crate) json: bool,
}

/// Have witnesses cosign all entries so far, and print the cosigned checkpoint
///
/// A witness is somebody else's service that cosigns a log's checkpoints only if the log has grown
/// and nothing else has changed (C2SP tlog-witness). The settings name the witnesses, as for `bulla
/// serve`: tables `[[witness]]` with `url` and `key`, and audit.cosignature_quorum. A service does
/// this by itself. The cosigned checkpoint is stored beside the log, and `bulla log verify
/// --config FILE` checks it. Each witness' operator needs the log's key: --print-key.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla log witness --print-key
  bulla log witness --config /etc/bulla/serve.toml

Exit status: 0 enough witnesses cosigned, 1 a witness has seen another log, 2 not enough witnesses cosigned.")]
pub struct LogWitnessArgs {
    /// The settings that name the witnesses
    #[arg(long, value_name = "FILE", required_unless_present = "print_key")]
    pub config: Option<PathBuf>,

    /// Print the log's keys in the form that witnesses take, and exit: NAME+HASH+KEY, one line for
    /// each version of the key
    #[arg(long, conflicts_with = "config")]
    pub print_key: bool,

    #[command(flatten)]
    pub keystore: KeystoreArgs,
}
