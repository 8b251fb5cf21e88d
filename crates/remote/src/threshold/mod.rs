//! `bulla threshold`: keys that no single machine holds. `bulla-threshold` has the protocol; here
//! are its files, its questions, and the formats of signatures.

mod args;
mod folder;
mod generating;
mod job;
mod refreshing;
mod repairing;
mod signing;

pub(crate) use self::args::ThresholdCli;

use self::args::{ThresholdCommand, ThresholdExportPublicArgs, ThresholdListArgs};
use self::folder::ThresholdFolder;
use bulla_cli::file::atomic;
use bulla_cli::keystore::LocalKeystore;
use bulla_cli::remote::ReportArgs;
use bulla_cli::remote::{public_key_text, write_public_key};
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_command::exit::Exit;
use bulla_command::output::Out;
use bulla_files::{escape_path, quote_for_shell};
use bulla_kms::{KeyVersionId, Name};
use bulla_threshold::{KeyShare, MAX_MESSAGE_LEN, Message, ThresholdError};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead as _, Read as _};
use std::path::Path;

pub(crate) fn run(command: &ThresholdCommand) -> Result<Exit> {
    match command {
        ThresholdCommand::Card(args) => generating::card(args),
        ThresholdCommand::New(args) => generating::new(args),
        ThresholdCommand::Join(args) => generating::join(args),
        ThresholdCommand::List(args) => list(args),
        ThresholdCommand::ExportPublic(args) => export_public(args),
        ThresholdCommand::Refresh(args) => refreshing::refresh(args),
        ThresholdCommand::Repair(args) => repairing::repair(args),
        ThresholdCommand::Sign(args) => signing::sign(args),
        ThresholdCommand::Approve(args) => signing::approve(args),
    }
    .map(|()| Exit::Ok)
}

/// An error of a session as one of the command.
fn failed(error: ThresholdError) -> Error {
    let culprits: Vec<_> = error.culprits.iter().map(Name::as_str).collect();
    let hint = match culprits.is_empty() {
        true => None,
        false => Some(format!(
            "ask {} what happened, over another channel; then start again, without them if it was no accident",
            culprits.join(" and ")
        )),
    };
    let converted = Error::new(error.code.as_str(), error.message);
    match hint {
        Some(hint) => converted.hint(hint),
        None => converted,
    }
}

/// The most bytes of a file with messages.
const MAX_FILE_LEN: u64 = 16 << 20;

/// Reads the messages in a file.
fn read_messages(path: &Path) -> Result<Vec<Message>> {
    let about = |error: Error| error.about(escape_path(path));
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_LEN).read_to_string(&mut text));
    read.map_err(|error| about(Error::io("cannot read", &error)))?;
    Message::parse_all(&text).map_err(|error| about(failed(error)))
}

/// The text of a file with messages, which begins with what a person should know of it.
fn file_text<'a>(about: &str, messages: impl IntoIterator<Item = &'a Message>) -> String {
    let lines = messages.into_iter().map(|message| format!("{message}\n"));
    format!(
        "# {about}\n# Made by `bulla threshold`. It has no secret that another can read.\n{}",
        lines.collect::<String>()
    )
}

/// Writes a file with messages. It replaces only such a file.
fn write_messages<'a>(
    path: &Path,
    about: &str,
    messages: impl IntoIterator<Item = &'a Message>,
) -> Result<()> {
    let is_one = |found: &[u8]| {
        // Of a long file, the last line may be cut.
        let start = &found[..found.len().min(2 * MAX_MESSAGE_LEN)];
        start.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"bulla-threshold-v"))
    };
    atomic::check_replaceable(path, "a file of `bulla threshold`", is_one)?;
    let text = file_text(about, messages);
    atomic::write(path, |file| file.write_all(text.as_bytes()))
}

/// The one message among several that a command begins with.
///
/// # Errors
/// There is none, which `missing` says, or there are different ones.
fn only_one(
    messages: &[Message],
    is_one: impl Fn(&Message) -> bool,
    missing: impl FnOnce() -> Error,
) -> Result<&Message> {
    let mut found = messages.iter().filter(|message| is_one(message));
    let first = found.next().ok_or_else(missing)?;
    match found.find(|message| *message != first) {
        None => Ok(first),
        Some(_) => Err(Error::new("wrong_session", "the files belong to different groups or sessions")
            .hint("join them one by one")),
    }
}

/// Refuses a path at which there is something already.
fn check_absent(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(_) => Err(Error::new("already_exists", "exists already; bulla does not replace it")
            .about(escape_path(path))
            .hint("move it away")),
    }
}

/// Whose turn it is.
#[derive(Serialize)]
struct JsonWaiting<'a> {
    group: &'a str,
    file: String,
    round: u8,
    waiting_for: Vec<String>,
    complete: bool,
}

/// Says to whom a file goes next.
fn report_waiting(
    group: &Name,
    file: &Path,
    (round, rounds): (u8, u8),
    missing: &[Name],
    report: ReportArgs,
) -> Result<()> {
    let mut out = Out::stdout();
    if report.json {
        out.json(&JsonWaiting {
            group: group.as_str(),
            file: file.to_string_lossy().into_owned(),
            round,
            waiting_for: missing.iter().map(ToString::to_string).collect(),
            complete: false,
        })?;
    } else if !report.quiet {
        let (names, quoted) = (listed(missing), quote_for_shell(file.as_os_str()));
        out.line(format_args!("round {round} of {rounds} waits for {names}"))?;
        out.line(format_args!(
            "send {} to {names}, who run: bulla threshold join {quoted}",
            escape_path(file)
        ))?;
        out.line("when it comes back, run the same command again")?;
    }
    out.flush()
}

/// Asks a person, who must type `yes`.
pub(crate) fn confirm(question: &str) -> Result<()> {
    note_line(&format!("{question} Type yes:"));
    match read_line()?.as_deref() {
        Some("yes") => Ok(()),
        _ => Err(Error::new("not_confirmed", "you did not type yes, and nothing was done")),
    }
}

/// A line of standard input, without its end. None at the end of the input.
fn read_line() -> Result<Option<String>> {
    let mut line = String::new();
    let read = io::stdin().lock().take(1 << 16).read_line(&mut line);
    match read.map_err(|error| Error::io("cannot read standard input", &error))? {
        0 => Ok(None),
        _ => Ok(Some(line.trim().to_owned())),
    }
}

/// Names in a sentence.
fn listed(names: &[Name]) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}

/// The group's key as bulla's own formats name it.
fn key_id(share: &KeyShare) -> Result<KeyVersionId> {
    let id = share.group_id().to_string();
    let uuid = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..32]].join("-");
    Ok(format!("threshold/{}/ed25519/{uuid}/v1", share.group().name()).parse()?)
}

#[derive(Serialize)]
struct JsonGroup {
    group: String,
    threshold: u16,
    members: Vec<String>,
    holder: String,
    epoch: u32,
    public_key: String,
    complete: bool,
    /// A refresh has begun, and the old share signs until it is complete.
    refreshing: bool,
}

impl JsonGroup {
    fn of(share: &KeyShare) -> Self {
        Self {
            refreshing: false,
            group: share.group().name().to_string(),
            threshold: share.group().threshold(),
            members: share.members().iter().map(Name::to_string).collect(),
            holder: share.holder().to_string(),
            epoch: share.epoch(),
            public_key: share.public_key().to_string(),
            complete: true,
        }
    }
}

fn list(args: &ThresholdListArgs) -> Result<()> {
    let folder = ThresholdFolder::of(LocalKeystore::existing(&args.keystore)?);
    let opened = folder.open()?;
    let keys = opened.find_keys()?;
    let shares = opened.shares()?;
    let mut out = Out::stdout();
    for share in &shares {
        let refresh = keys.as_ref().map(|keys| opened.find_refresh(share, keys)).transpose()?.flatten();
        if args.report.json {
            out.json(&JsonGroup { refreshing: refresh.is_some(), ..JsonGroup::of(share) })?;
        } else {
            let (group, members) = (share.group(), share.members());
            out.line(format_args!(
                "{}: {} of {} sign ({}); you are {}; public key {}{}{}",
                group.name(),
                group.threshold(),
                members.len(),
                listed(&members),
                share.holder(),
                share.public_key(),
                match share.epoch() {
                    0 => String::new(),
                    epoch => format!("; epoch {epoch}"),
                },
                refresh.map_or("", |_| "; a refresh has begun"),
            ))?;
        }
    }
    if shares.is_empty() && !args.report.quiet {
        note_line("you have no share of any key: see `bulla threshold --help`");
    }
    out.flush()
}

fn export_public(args: &ThresholdExportPublicArgs) -> Result<()> {
    let folder = ThresholdFolder::of(LocalKeystore::existing(&args.keystore)?);
    let share = folder.open()?.share(Some(&args.group))?;
    let text = public_key_text(key_id(&share)?, share.public_key(), args.format)?;
    write_public_key(&text, args.output.as_deref())
}
