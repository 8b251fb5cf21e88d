//! `bulla threshold card`, `new` and `join`: the key of a group, made by all of them.

use super::args::{ThresholdCardArgs, ThresholdJoinArgs, ThresholdNewArgs};
use super::folder::{OpenThresholdFolder, ThresholdFolder};
use super::{
    JsonGroup, check_absent, confirm, failed, only_one, read_messages, refreshing, repairing, report_waiting,
    write_messages,
};
use bulla_cli::keystore::LocalKeystore;
use bulla_cli::remote::ReportArgs;
use bulla_cli::remote::parse_name;
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_command::output::Out;
use bulla_files::escape_path;
use bulla_threshold::{Card, Group, KeyGeneration, Message, ParticipantKeys};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Serialize)]
struct JsonCard {
    name: String,
    fingerprint: String,
    card: String,
}

pub(super) fn card(args: &ThresholdCardArgs) -> Result<()> {
    let folder = ThresholdFolder::of(LocalKeystore::existing_or_new(&args.keystore)?);
    let opened = folder.open()?;
    let keys = match (opened.find_keys()?, &args.name) {
        (Some(keys), Some(name)) if keys.name().as_str() != name => {
            let message = format!("your name in groups is {} already", keys.name());
            return Err(Error::new("already_exists", message)
                .about(name.clone())
                .hint("leave out the name; for another person, use another keystore: --keystore DIR"));
        }
        (Some(keys), _) => keys,
        (None, Some(name)) => opened.create_keys(parse_name(name)?)?,
        (None, None) => opened.keys()?,
    };
    let fingerprint = keys.card().fingerprint();
    let line = keys.card_message().map_err(failed)?.to_string();
    let mut out = Out::stdout();
    if args.report.json {
        out.json(&JsonCard { name: keys.name().to_string(), fingerprint, card: line })?;
    } else {
        out.line(line)?;
        if !args.report.quiet {
            note_line(&format!(
                "the fingerprint of this card is {fingerprint}: read it to the others by phone"
            ));
        }
    }
    out.flush()
}

pub(super) fn new(args: &ThresholdNewArgs) -> Result<()> {
    let name = parse_name(&args.name)?;
    if args.cards.len() != args.size.participants {
        let message =
            format!("{} cards were given for a group of {}", args.cards.len(), args.size.participants);
        return Err(Error::new("usage", message).hint("give the cards of all participants, also your own"));
    }
    let cards = args.cards.iter().map(|path| read_card(path)).collect::<Result<Vec<_>>>()?;
    let folder = ThresholdFolder::of(LocalKeystore::existing(&args.keystore)?);
    let opened = folder.open()?;
    let keys = opened.keys()?;
    if opened.find_share(&name)?.is_some() || opened.find_generation(&name, &keys)?.is_some() {
        return Err(Error::new("already_exists", "you are in a group of this name already")
            .about(name.as_str())
            .hint("choose another name"));
    }
    let proposal = Group::new(name, args.size.threshold, cards)
        .and_then(|group| group.propose(&keys))
        .map_err(failed)?;
    let file = PathBuf::from(format!("{}.threshold", args.name));
    check_absent(&file)?;
    let generation = KeyGeneration::join(&keys, &proposal).map_err(failed)?;
    show_group(generation.group());
    advance(&opened, &keys, generation, &file, args.report)
}

fn read_card(path: &Path) -> Result<Card> {
    let messages = read_messages(path)?;
    let [message] = &messages[..] else {
        let message = format!("has {} messages, and a card is one", messages.len());
        return Err(Error::new("malformed_message", message).about(escape_path(path)));
    };
    Card::of(message).map_err(|error| failed(error).about(escape_path(path)))
}

/// Shows on standard error who is in a group.
pub(super) fn show_group(group: &Group) {
    let count = group.participants().len();
    note_line(&format!("the group {}: {} of {count} sign together", group.name(), group.threshold()));
    for card in group.participants() {
        note_line(&format!("  {:<16} {}", card.name, card.fingerprint()));
    }
}

pub(super) fn join(args: &ThresholdJoinArgs) -> Result<()> {
    let mut messages = Vec::new();
    for path in &args.files {
        messages.extend(read_messages(path)?);
    }
    if messages.iter().any(|message| message.refreshed_members().is_some()) {
        return refreshing::join(args, &messages);
    }
    if messages.iter().any(|message| message.lost_by().is_some()) {
        return repairing::join(args, &messages);
    }
    let proposal = proposal(&messages)?;
    let group = Group::of(proposal).map_err(failed)?;
    let folder = ThresholdFolder::of(LocalKeystore::existing(&args.keystore)?);
    // A person may think about a question for long: the keystore is not open meanwhile.
    let (keys, share, kept) = {
        let opened = folder.open()?;
        let keys = opened.keys()?;
        let kept = opened.find_generation(group.name(), &keys)?;
        (keys, opened.find_share(group.name())?, kept)
    };
    if let Some(share) = share {
        if share.proposal() != proposal {
            return Err(Error::new("already_exists", "you are in another group of this name already")
                .about(group.name().as_str())
                .hint("ask for another name"));
        }
        return report_complete(&JsonGroup::of(&share), args.report);
    }
    let mut generation = match kept {
        Some(generation) if Some(generation.session()) == proposal.opens() => generation,
        Some(_) => {
            return Err(Error::new("already_exists", "you are joining another group of this name already")
                .about(group.name().as_str())
                .hint("ask for another name"));
        }
        None => {
            show_group(&group);
            if !args.yes {
                confirm("Are these the right people, and did you compare the fingerprints with them?")?;
            }
            let is_own = |message: &&Message| {
                Some(message.session()) == proposal.opens() && message.sender() == keys.name()
            };
            if messages.iter().any(|message| is_own(&message)) {
                return Err(Error::new(
                    "wrong_session",
                    "you have joined this group before, and your part of it is missing",
                )
                .about(group.name().as_str())
                .hint("restore a newer copy of your keystore's folder; or start a new group"));
            }
            KeyGeneration::join(&keys, proposal).map_err(failed)?
        }
    };
    for message in messages.iter().filter(|message| *message != proposal) {
        generation.receive(message).map_err(failed)?;
    }
    advance(&folder.open()?, &keys, generation, &args.files[0], args.report)
}

/// The one proposal among the messages.
pub(super) fn proposal(messages: &[Message]) -> Result<&Message> {
    only_one(
        messages,
        |message| Group::of(message).is_ok(),
        || {
            Error::new("malformed_message", "the file does not begin a group")
                .hint("ask for the file that `bulla threshold new` wrote")
        },
    )
}

/// Goes on as far as possible. What is kept is on the disk before others may see it.
pub(super) fn advance(
    opened: &OpenThresholdFolder<'_>,
    keys: &ParticipantKeys,
    mut generation: KeyGeneration,
    file: &Path,
    report: ReportArgs,
) -> Result<()> {
    let group = generation.group().name().clone();
    generation.advance(keys).map_err(failed)?;
    opened.write_generation(&group, &generation)?;
    let is_refresh = generation.old_share().is_some();
    let about = match is_refresh {
        true => format!("The shares of the group {group} are refreshed. Run: bulla threshold join FILE"),
        false => format!("The key of the group {group} is being made. Run: bulla threshold join FILE"),
    };
    // Before the old share is replaced: the others may need what is in the file.
    write_messages(file, &about, generation.messages())?;
    if !generation.is_complete() {
        let (round, missing) = generation.waits_for();
        return report_waiting(&group, file, (round, 3), &missing, report);
    }
    let share = generation.into_share().expect("it is complete");
    opened.finish_generation(&group, &share)?;
    if !report.quiet && !report.json {
        note_line(&format!(
            "send {} to the others once more: it has what they need to finish",
            escape_path(file)
        ));
    }
    match is_refresh {
        true => refreshing::report_complete(&share, report),
        false => report_complete(&JsonGroup::of(&share), report),
    }
}

fn report_complete(group: &JsonGroup, report: ReportArgs) -> Result<()> {
    let mut out = Out::after("the key is complete");
    if report.json {
        out.json(group)?;
    } else if !report.quiet {
        out.line(format_args!("the key of {} is complete: {}", group.group, group.public_key))?;
        out.line(format_args!("sign with it: bulla threshold sign FILE --group {}", group.group))?;
    }
    out.flush()
}
