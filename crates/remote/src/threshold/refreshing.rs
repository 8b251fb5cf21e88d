//! `bulla threshold refresh`: new shares of the same key.
//!
//! Everybody keeps the old share until all have confirmed a new one, so a refresh that stops
//! changes nothing. A participant who has all confirmations writes them to the file that goes round
//! before the old share is replaced: whatever the others need to follow is in it.

use super::args::{ThresholdJoinArgs, ThresholdRefreshArgs};
use super::folder::{OpenThresholdFolder, ThresholdFolder};
use super::generating::advance;
use super::{JsonGroup, check_absent, confirm, failed, listed, only_one};
use bulla_cli::keystore::LocalKeystore;
use bulla_cli::remote::{ReportArgs, parse_name};
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_command::output::Out;
use bulla_kms::Name;
use bulla_threshold::{KeyGeneration, KeyShare, Message, ParticipantKeys};
use std::path::PathBuf;

pub(super) fn refresh(args: &ThresholdRefreshArgs) -> Result<()> {
    let folder = ThresholdFolder::of(LocalKeystore::existing(&args.keystore)?);
    if args.cancel {
        return cancel(args, &folder);
    }
    let opened = folder.open()?;
    let keys = opened.keys()?;
    let share = opened.share(Some(&args.group))?;
    if opened.find_refresh(&share, &keys)?.is_some() {
        return Err(another_has_begun(share.group().name()));
    }
    let members = remaining(&share, &args.leave_out)?;
    let file = PathBuf::from(format!("{}.refresh.threshold", args.group));
    check_absent(&file)?;
    let opening = KeyGeneration::propose_refresh(&keys, &share, &members).map_err(failed)?;
    show(&share, &opening);
    let generation = KeyGeneration::join_refresh(&keys, share, &opening).map_err(failed)?;
    advance(&opened, &keys, generation, &file, args.report)
}

/// Who keeps a share.
fn remaining(share: &KeyShare, leave_out: &[String]) -> Result<Vec<Name>> {
    let mut members = share.members();
    for name in leave_out {
        let name = parse_name(name)?;
        if name == *share.holder() {
            return Err(Error::new("usage", "you cannot leave yourself out: somebody who stays starts it")
                .hint("ask another member to run this command"));
        }
        let Some(index) = members.iter().position(|member| *member == name) else {
            let message = format!("{name} has no share of this key: {} have", listed(&share.members()));
            return Err(Error::new("usage", message));
        };
        members.remove(index);
    }
    Ok(members)
}

fn another_has_begun(group: &Name) -> Error {
    Error::new("already_exists", "another refresh of this group has begun")
        .about(group.as_str())
        .hint("join its file; or give it up: `bulla threshold refresh GROUP --cancel`")
}

/// Shows on standard error who keeps a share and who does not.
fn show(share: &KeyShare, opening: &Message) {
    let kept = opening.refreshed_members().unwrap_or_default();
    let left: Vec<_> = share.members().into_iter().filter(|name| !kept.contains(name)).collect();
    note_line(&format!("{} refreshes the shares of {}", opening.sender(), share.group().name()));
    note_line(&format!("  new shares     {}", listed(kept)));
    if !left.is_empty() {
        note_line(&format!("  no share       {}", listed(&left)));
    }
}

/// What a participant has when a file with a refresh arrives.
struct JoinedRefresh {
    keys: ParticipantKeys,
    share: KeyShare,
    kept: Option<KeyGeneration>,
}

impl JoinedRefresh {
    fn in_folder(opened: &OpenThresholdFolder<'_>, opening: &Message) -> Result<Self> {
        let keys = opened.keys()?;
        let share = opened.find_share_of(opening.session())?.ok_or_else(|| {
            Error::new("unknown_group", "it refreshes the shares of a group in which you have no share")
                .hint("if you lost yours, ask a member: `bulla threshold repair GROUP --for YOU`")
        })?;
        let kept = opened.find_refresh(&share, &keys)?;
        if kept.as_ref().is_some_and(|kept| Some(kept.session()) != opening.opens()) {
            return Err(another_has_begun(share.group().name()));
        }
        Ok(Self { keys, share, kept })
    }
}

/// `bulla threshold join` with the file of a refresh.
pub(super) fn join(args: &ThresholdJoinArgs, messages: &[Message]) -> Result<()> {
    let no_refresh = || Error::new("malformed_message", "the file does not begin a refresh");
    let opening = only_one(messages, |message| message.refreshed_members().is_some(), no_refresh)?;
    let folder = ThresholdFolder::of(LocalKeystore::existing(&args.keystore)?);
    let JoinedRefresh { keys, share, kept } = JoinedRefresh::in_folder(&folder.open()?, opening)?;
    let own = || {
        let is_own = |message: &&Message| message.sender() == keys.name();
        messages.iter().filter(|one| Some(one.session()) == opening.opens()).filter(is_own)
    };
    if own().any(|message| message.confirms() == Some(share.shares_id())) {
        return report_complete(&share, args.report);
    }
    if kept.is_none() {
        // Refuses what this share cannot join, before a person is asked.
        let copy = KeyShare::from_secret_bytes(&share.to_secret_bytes()).map_err(failed)?;
        KeyGeneration::join_refresh(&keys, copy, opening).map_err(failed)?;
        if own().next().is_some() {
            let message = "you have joined this refresh before, and your part of it is missing";
            return Err(Error::new("wrong_session", message).about(share.group().name().as_str()).hint(
                "restore a newer copy of your keystore's folder; or start another refresh; or, if the others have finished, let your share be repaired",
            ));
        }
        show(&share, opening);
        if !args.yes {
            confirm("Is this what you agreed on?")?;
        }
    }
    // A person may think about a question for long: meanwhile the keystore is closed, and another
    // process may have joined.
    let opened = folder.open()?;
    let JoinedRefresh { keys, share, kept } = JoinedRefresh::in_folder(&opened, opening)?;
    let mut generation = match kept {
        Some(kept) => kept,
        None => KeyGeneration::join_refresh(&keys, share, opening).map_err(failed)?,
    };
    for message in messages.iter().filter(|message| *message != opening) {
        generation.receive(message).map_err(failed)?;
    }
    advance(&opened, &keys, generation, &args.files[0], args.report)
}

/// Gives up a refresh. Whoever has confirmed one may need the new share.
fn cancel(args: &ThresholdRefreshArgs, folder: &ThresholdFolder) -> Result<()> {
    let found = {
        let opened = folder.open()?;
        let share = opened.share(Some(&args.group))?;
        opened.find_refresh(&share, &opened.keys()?)?
    };
    let Some(refresh) = found else {
        return Err(Error::new("not_found", "no refresh of this group has begun").about(args.group.as_str()));
    };
    if refresh.shares_id().is_some() {
        note_line("you have confirmed your new share, so others may have replaced their old ones already");
        note_line("if one has, your old share signs with nobody, until it is repaired");
        if !args.yes {
            confirm("Do you know that nobody has?")?;
        }
    }
    folder.open()?.remove_refresh(refresh.group().name())?;
    if !args.report.quiet {
        note_line("the refresh is given up, and your share is as before; tell the others");
    }
    Ok(())
}

pub(super) fn report_complete(share: &KeyShare, report: ReportArgs) -> Result<()> {
    let group = JsonGroup::of(share);
    let mut out = Out::after("the shares are refreshed");
    if report.json {
        out.json(&group)?;
    } else if !report.quiet {
        out.line(format_args!(
            "the shares of {} are refreshed: epoch {}, {} sign",
            group.group,
            group.epoch,
            listed(&share.members())
        ))?;
        out.line("destroy the backups of older shares")?;
    }
    out.flush()
}
