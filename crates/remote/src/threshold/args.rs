//! The flags of `bulla threshold`.

use bulla_cli::keystore::KeystoreArgs;
use bulla_cli::remote::{PublicKeyFormat, ReportArgs};
use bulla_command::color::ColorWhen;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;

/// Sign with keys that no single machine holds
///
/// A group of people has one key. Each has a share of it, and a number of them sign together: 2 of
/// 3, 3 of 5. Fewer can do nothing. The signature is an ordinary one: bulla, minisign and OpenSSH
/// verify it.
///
/// bulla sends nothing. Each step writes a file and tells you who needs it. Send it by mail, by
/// chat or on a stick: it shows no secret, and the others notice if it was changed.
#[derive(Parser)]
#[command(name = "bulla-remote", bin_name = "bulla threshold", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  bulla threshold card ann > ann.card              each person; send it to the one who starts
  bulla threshold new 2-of-3 --name releases ann.card bob.card carol.card
  bulla threshold join releases.threshold          each person, until bulla says it is complete
  bulla threshold export-public releases > releases.pub
  bulla threshold sign app.tar.gz                  one of them asks for a signature
  bulla threshold approve app.tar.gz.threshold     the others look at the file, and approve

Exit status: 0 done, 2 not done.")]
pub(crate) struct ThresholdCli {
    /// When to use color
    ///
    /// The variables NO_COLOR, CLICOLOR and CLICOLOR_FORCE are respected.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    #[command(subcommand)]
    pub(crate) command: ThresholdCommand,
}

#[derive(Subcommand)]
pub(crate) enum ThresholdCommand {
    Card(ThresholdCardArgs),
    New(ThresholdNewArgs),
    Join(ThresholdJoinArgs),
    List(ThresholdListArgs),
    ExportPublic(ThresholdExportPublicArgs),
    Refresh(ThresholdRefreshArgs),
    Repair(ThresholdRepairArgs),
    Sign(ThresholdSignArgs),
    Approve(ThresholdApproveArgs),
}

/// Print your card, by which others know you in a group
///
/// The first time, bulla makes your keys for this and keeps them in the keystore's folder,
/// encrypted. NAME is yours in all groups. A card is public, but it must arrive unchanged: compare
/// its fingerprint by phone.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla threshold card ann > ann.card
  bulla threshold card

Exit status: 0 printed, 2 not printed.")]
pub(crate) struct ThresholdCardArgs {
    /// Your name in groups, the first time: a-z, 0-9, and - _ . after the first character
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// How many of how many sign together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupSize {
    pub(crate) threshold: u16,
    pub(crate) participants: usize,
}

impl FromStr for GroupSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (threshold, participants) = text.split_once("-of-")?;
            Some(Self { threshold: threshold.parse().ok()?, participants: participants.parse().ok()? })
        };
        parse().ok_or_else(|| format!("{text:?} is not a size: write for example 2-of-3"))
    }
}

/// Start a group: the first step of making a key together
///
/// bulla writes NAME.threshold to the current folder. Send it to the others, who run `bulla
/// threshold join` on it. Nobody ever has the whole key, and bulla cannot make more shares of it
/// later: choose a number of people that still works when one of them has lost a share.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla threshold new 2-of-3 --name releases ann.card bob.card carol.card

Exit status: 0 started, 2 not started.")]
pub(crate) struct ThresholdNewArgs {
    /// How many sign together, and how many there are: 2-of-3
    #[arg(value_name = "T-of-N")]
    pub(crate) size: GroupSize,

    /// The group's name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,

    /// The cards of all, also yours
    #[arg(required = true, value_name = "CARD")]
    pub(crate) cards: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Join a group, and go on with making its key, with a refresh or with a repair
///
/// bulla shows who is in the group, and asks whether these are the right people. It adds your part
/// to FILE: send it to the others again. Repeat this with what comes back until bulla says that the
/// key is complete, two or three times. With several files, bulla puts them together in the first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla threshold join releases.threshold
  bulla threshold join releases.threshold from-bob.threshold
  bulla threshold join releases.refresh.threshold
  bulla threshold join releases.repair.threshold

Exit status: 0 done as far as possible, 2 not done.")]
pub(crate) struct ThresholdJoinArgs {
    /// Files of the group
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Do not ask: you have compared the fingerprints
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// List the groups in which you have a share
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla threshold list

Exit status: 0 listed, 2 not listed.")]
pub(crate) struct ThresholdListArgs {
    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Print the public key of a group, with which others verify
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla threshold export-public releases > releases.pub
  bulla threshold export-public releases --format minisign --output minisign.pub
  bulla threshold export-public releases --format openssh

Exit status: 0 printed, 2 not printed.")]
pub(crate) struct ThresholdExportPublicArgs {
    /// The group's name
    #[arg(value_name = "GROUP")]
    pub(crate) group: String,

    /// The format of the public key
    #[arg(long, value_enum, default_value_t = PublicKeyFormat::Bulla)]
    pub(crate) format: PublicKeyFormat,

    /// Write the public key to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,
}

/// Give everybody a new share of the same key
///
/// Old shares sign no more with new ones: whoever has copied a share loses it by this. With
/// --leave-out, somebody gets no new share. The public key stays.
///
/// bulla writes GROUP.refresh.threshold to the current folder. Send it to all who keep a share:
/// each of them runs `bulla threshold join` on it, until bulla says that the shares are refreshed,
/// two or three times. Until then the old shares sign. Nobody's old share is replaced before
/// everybody has confirmed a new one.
///
/// Destroy the backups of old shares afterwards: as many of them as sign together still sign.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla threshold refresh releases
  bulla threshold refresh releases --leave-out carol
  bulla threshold refresh releases --cancel

Exit status: 0 started, 2 not started.")]
pub(crate) struct ThresholdRefreshArgs {
    /// The group's name
    #[arg(value_name = "GROUP")]
    pub(crate) group: String,

    /// Somebody who gets no new share; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) leave_out: Vec<String>,

    /// Give up a refresh that has begun, and keep the old share
    #[arg(long, conflicts_with = "leave_out")]
    pub(crate) cancel: bool,

    /// Do not ask before you give up a refresh
    #[arg(long, requires = "cancel")]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Give somebody a lost share again, together with others
///
/// Somebody who has a share runs this, and names the one who lost theirs. As many as sign together
/// must help. The one who lost the share still needs the keys of their card: if these are lost
/// too, refresh the shares without that person.
///
/// bulla writes GROUP.repair.threshold to the current folder. It goes to the one who lost the
/// share, then to the helpers, and back: each runs `bulla threshold join` on it. Nobody sees the
/// share but its owner.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla threshold repair releases --for carol
  bulla threshold repair releases --for carol --helper ann --helper dave

Exit status: 0 started, 2 not started.")]
pub(crate) struct ThresholdRepairArgs {
    /// The group's name
    #[arg(value_name = "GROUP")]
    pub(crate) group: String,

    /// The one who lost the share
    #[arg(long = "for", value_name = "NAME")]
    pub(crate) lost: String,

    /// Somebody who helps; may be given several times [default: you and the first others]
    #[arg(long, value_name = "NAME")]
    pub(crate) helper: Vec<String>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// The format of a signature file that a group makes. What signify signs is the whole file, and
/// does not go round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThresholdFormat {
    /// FILE.bulla
    Bulla,
    /// FILE.minisig; minisign verifies it
    Minisign,
    /// FILE.sig; `ssh-keygen -Y verify` verifies it
    Ssh,
}

/// Ask the others to sign a file with you
///
/// bulla writes FILE.threshold, with your approval in it. Send it, and FILE, to the others. They
/// run `bulla threshold approve` and send it back; then name the file that came back, until bulla
/// has written the signature.
///
/// Leave the command running meanwhile. What it needs for this signature is in its memory alone and
/// is used once, so that no backup can bring it back. If it ends, nothing is lost but time: ask
/// again.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla threshold sign app.tar.gz
  bulla threshold sign app.tar.gz --group releases --format minisign
  bulla threshold sign app.tar.gz --format ssh
  bulla threshold sign app.tar.gz --comment 'release 1.2'

Exit status: 0 signed, 2 not signed.")]
pub(crate) struct ThresholdSignArgs {
    /// The file to sign
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The group that signs; needed if you are in several
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,

    /// The format of the signature file
    #[arg(long, value_enum, default_value_t = ThresholdFormat::Bulla)]
    pub(crate) format: ThresholdFormat,

    /// One line of text; the signature covers it too
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,

    /// With --format ssh: what the signature is for; verifiers must expect the same [default: file]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    #[command(flatten)]
    pub(crate) keystore: KeystoreArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// Look at what is to be signed, and approve it
///
/// bulla shows the file, its size, the digest that is signed, and who has approved already. It
/// reads your own copy of the file, beside REQUEST or named by --file, and refuses if its content
/// is another one. Then it asks you, adds your approval to REQUEST, and says where to send it. If
/// more approvals are needed first, leave the command running and name the file that comes back:
/// see `bulla threshold sign`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla threshold approve app.tar.gz.threshold
  bulla threshold approve app.tar.gz.threshold --file ~/build/app.tar.gz
  bulla threshold approve app.tar.gz.threshold --without-file

Exit status: 0 approved, 2 not approved.")]
pub(crate) struct ThresholdApproveArgs {
    /// What somebody sent you
    #[arg(value_name = "REQUEST")]
    pub(crate) request: PathBuf,

    /// Your copy of the file [default: the file of that name beside REQUEST]
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
