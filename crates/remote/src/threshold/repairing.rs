//! `bulla threshold repair`: a lost share again, by the help of others.
//!
//! A helper offers it, because the one who lost the share does not know any more which group there
//! is. Then that one asks, the helpers answer twice, and only the owner can put the answers
//! together.

use super::args::{ThresholdJoinArgs, ThresholdRepairArgs};
use super::folder::{OpenThresholdFolder, ThresholdFolder};
use super::generating::{proposal, show_group};
use super::{JsonGroup, check_absent, confirm, failed, listed, only_one, report_waiting, write_messages};
use bulla_cli::keystore::LocalKeystore;
use bulla_cli::remote::{ReportArgs, parse_name};
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_command::output::Out;
use bulla_kms::Name;
use bulla_threshold::{Group, KeyShare, Message, ParticipantKeys, Repair};
use std::path::{Path, PathBuf};

pub(super) fn repair(args: &ThresholdRepairArgs) -> Result<()> {
    let lost = parse_name(&args.lost)?;
    let folder = ThresholdFolder::of(LocalKeystore::existing(&args.keystore)?);
    let opened = folder.open()?;
    let (keys, share) = (opened.keys()?, opened.share(Some(&args.group))?);
    if lost == *keys.name() {
        return Err(Error::new("usage", "you have a share of this key: it is not lost"));
    }
    let helpers = match args.helper.is_empty() {
        true => first_helpers(&share, &lost),
        false => args.helper.iter().map(|name| parse_name(name)).collect::<Result<_>>()?,
    };
    let offer = Repair::offer(&keys, &share, &lost, &helpers).map_err(failed)?;
    let file = PathBuf::from(format!("{}.repair.threshold", args.group));
    check_absent(&file)?;
    write(&file, share.group().name(), [share.proposal(), &offer])?;
    report_waiting(share.group().name(), &file, (1, 4), &[lost], args.report)
}

/// The one who offers, and the others who come first in the group.
fn first_helpers(share: &KeyShare, lost: &Name) -> Vec<Name> {
    let me = share.holder();
    let others = share.members().into_iter().filter(|name| name != me && name != lost);
    let others = others.take(usize::from(share.group().threshold()) - 1);
    std::iter::once(me.clone()).chain(others).collect()
}

fn write<'a>(path: &Path, group: &Name, messages: impl IntoIterator<Item = &'a Message>) -> Result<()> {
    let about = format!("A share of the group {group} is repaired. Run: bulla threshold join FILE");
    write_messages(path, &about, messages)
}

/// What a file of a repair says.
struct RepairFile<'a> {
    path: &'a Path,
    group: Group,
    proposal: &'a Message,
    offer: &'a Message,
    /// Once the one who lost the share has asked.
    request: Option<&'a Message>,
    messages: &'a [Message],
}

impl<'a> RepairFile<'a> {
    fn of(path: &'a Path, messages: &'a [Message]) -> Result<Self> {
        let proposal = proposal(messages)?;
        let is_request = |message: &Message| message.lost_by().is_some() && message.opens().is_some();
        let is_offer = |message: &Message| message.lost_by().is_some() && message.opens().is_none();
        let no_offer = || Error::new("malformed_message", "the file has no offer to repair a share");
        let request = match messages.iter().any(is_request) {
            true => Some(only_one(messages, is_request, no_offer)?),
            false => None,
        };
        Ok(Self {
            path,
            group: Group::of(proposal).map_err(failed)?,
            proposal,
            offer: only_one(messages, is_offer, no_offer)?,
            request,
            messages,
        })
    }

    fn lost(&self) -> &Name {
        self.offer.lost_by().unwrap_or(self.offer.sender())
    }

    /// What others sent after the request.
    fn answers(&self) -> impl Iterator<Item = &Message> {
        let session = self.request.and_then(Message::opens);
        self.messages.iter().filter(move |message| Some(message.session()) == session)
    }

    /// Writes the file again, with the messages of a session.
    fn write_with(&self, repair: &Repair) -> Result<()> {
        write(self.path, self.group.name(), [self.proposal, self.offer].into_iter().chain(repair.messages()))
    }
}

/// `bulla threshold join` with the file of a repair.
pub(super) fn join(args: &ThresholdJoinArgs, messages: &[Message]) -> Result<()> {
    let file = RepairFile::of(&args.files[0], messages)?;
    let folder = ThresholdFolder::of(LocalKeystore::existing(&args.keystore)?);
    let keys = folder.open()?.keys()?;
    match file.lost() == keys.name() {
        true => receive_share(args, &folder, &file, &keys),
        false => help(args, &folder, &file, &keys),
    }
}

/// The side of the one who lost the share: asks, and then puts the answers together.
fn receive_share(
    args: &ThresholdJoinArgs,
    folder: &ThresholdFolder,
    file: &RepairFile<'_>,
    keys: &ParticipantKeys,
) -> Result<()> {
    let made;
    let request = match file.request {
        Some(request) => request,
        None => {
            made = Repair::accept(keys, file.proposal, file.offer).map_err(failed)?;
            &made
        }
    };
    let mut repair = Repair::receive_share(keys, file.proposal, request).map_err(failed)?;
    let known = folder.open()?.find_share(file.group.name())?;
    if let Some(known) = &known {
        if known.proposal() != file.proposal {
            return Err(Error::new("already_exists", "you are in another group of this name already")
                .about(file.group.name().as_str())
                .hint("for that group, use another keystore: --keystore DIR"));
        }
        if known.shares_id() == repair.shares_id() {
            return report_complete(known, args.report);
        }
    }
    if file.request.is_none() {
        show_group(&file.group);
        note_line(&format!("{} help you to get your share again", listed(repair.helpers())));
        if !args.yes {
            confirm("Is this your group, and did you compare the fingerprints with the helpers?")?;
        }
    }
    for message in file.answers() {
        repair.receive(message).map_err(failed)?;
    }
    repair.advance(keys).map_err(failed)?;
    file.write_with(&repair)?;
    let missing = repair.waits_for();
    match repair.into_share() {
        Some(share) => keep(&folder.open()?, known.as_ref(), &share, args.report),
        None => report_waiting(file.group.name(), file.path, (2, 4), &missing, args.report),
    }
}

/// Keeps a repaired share in place of an older one.
fn keep(
    opened: &OpenThresholdFolder<'_>,
    known: Option<&KeyShare>,
    share: &KeyShare,
    report: ReportArgs,
) -> Result<()> {
    if let Some(known) = known {
        if known.public_key() != share.public_key() {
            return Err(Error::new(
                "wrong_key",
                "the repaired share is of another key than the share you have",
            )
            .hint("ask the helpers what happened, over another channel"));
        }
        if known.epoch() > share.epoch() {
            let message = format!(
                "you have a share of epoch {}, and the helpers have older ones, of epoch {}",
                known.epoch(),
                share.epoch()
            );
            return Err(Error::new("wrong_session", message)
                .hint("the helpers run `bulla threshold join` on the file of the refresh first"));
        }
    }
    opened.finish_generation(share.group().name(), share)?;
    report_complete(share, report)
}

fn report_complete(share: &KeyShare, report: ReportArgs) -> Result<()> {
    let group = JsonGroup::of(share);
    let mut out = Out::after("the share is repaired");
    if report.json {
        out.json(&group)?;
    } else if !report.quiet {
        out.line(format_args!("you have your share of {} again: {}", group.group, group.public_key))?;
        out.line("compare this public key with the one that was published")?;
    }
    out.flush()
}

/// The side of a helper.
fn help(
    args: &ThresholdJoinArgs,
    folder: &ThresholdFolder,
    file: &RepairFile<'_>,
    keys: &ParticipantKeys,
) -> Result<()> {
    let lost = file.lost();
    let request = file.request.ok_or_else(|| {
        Error::new("not_ready", format!("{lost} must ask for the repair first"))
            .hint(format!("send the file to {lost}, who runs `bulla threshold join` on it"))
    })?;
    if request.sender() != lost {
        let message = format!("{} asks for the repair, and it was offered to {lost}", request.sender());
        return Err(Error::new("wrong_session", message));
    }
    let is_own = |one: &Message| Some(one.session()) == request.opens() && one.sender() == keys.name();
    let kept = folder.open()?.find_repair(file.group.name())?;
    if !kept.iter().chain(file.answers()).any(is_own) {
        show_group(&file.group);
        note_line(&format!("{lost} lost their share, and asks for your help to get it again"));
        if !args.yes {
            confirm(&format!("Did {lost} tell you so, over another channel?"))?;
        }
    }
    let opened = folder.open()?;
    let share = opened.find_share_of(file.proposal.opens().expect("a proposal opens a session"))?;
    let share = share.ok_or_else(|| {
        Error::new("unknown_group", "it repairs a share of a group in which you have no share")
    })?;
    // Another process may have answered while a person thought.
    let kept = opened.find_repair(file.group.name())?;
    let kept = kept.iter().filter(|one| Some(one.session()) == request.opens());
    let mut repair = Repair::resume(keys, share, request, kept.chain(file.answers())).map_err(failed)?;
    repair.advance(keys).map_err(failed)?;
    opened.write_repair(file.group.name(), repair.messages())?;
    file.write_with(&repair)?;
    let missing = repair.waits_for();
    match missing.is_empty() {
        true => report_waiting(file.group.name(), file.path, (4, 4), std::slice::from_ref(lost), args.report),
        false => report_waiting(file.group.name(), file.path, (3, 4), &missing, args.report),
    }
}
