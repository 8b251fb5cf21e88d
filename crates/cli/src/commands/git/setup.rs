//! `bulla git setup`: what git needs to sign with a key of bulla.

use super::settings::{asked, failed, git, settings_of, text_of};
use crate::args::GitSetupArgs;
use crate::commands::ssh_keys::SshSigningKey;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::files::atomic;
use crate::output::Out;
use crate::store::KeySource;
use bulla_files::{create_folder, escape_path, escape_text, folder_of, quote_for_shell};
use bulla_formats::ssh::{AllowedSigners, SshKey};
use bulla_keystore::DEFAULT_LABEL;
use etcetera::{BaseStrategy as _, base_strategy};
use serde::Serialize;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

const ALLOWED_SIGNERS: &str = "gpg.ssh.allowedSignersFile";

pub(crate) fn run(args: &GitSetupArgs) -> Result<Exit> {
    let scope = if args.global { Scope::Global } else { Scope::Local };
    // Before a keystore is made: this may be no repository.
    let allowed = AllowedFile::find(scope)?;
    let key = signing_key(args)?;
    let line = line_of(&key.key)?;
    let mut wanted = vec![
        ("gpg.format".to_owned(), "ssh".to_owned()),
        ("gpg.ssh.program".to_owned(), text_of(&own_path()?)?),
        ("user.signingkey".to_owned(), format!("key::{}", key.key)),
        ("commit.gpgsign".to_owned(), "true".to_owned()),
    ];
    wanted.extend(settings_of(&args.keystore)?);
    if !allowed.is_set {
        wanted.push((ALLOWED_SIGNERS.to_owned(), text_of(&allowed.path)?));
    }
    let added = allowed.add(&line, &key.key)?;
    let done = Setup { scope, settings: set_all(scope, wanted)?, allowed, line, added };
    done.print(args)
}

/// Where git keeps the settings.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Scope {
    Global,
    Local,
}

impl Scope {
    fn flag(self) -> &'static str {
        match self {
            Self::Global => "--global",
            Self::Local => "--local",
        }
    }
}

/// The key that signs. Only the keystore of the user is made on first use.
fn signing_key(args: &GitSetupArgs) -> Result<SshSigningKey> {
    let source = match &*args.key {
        DEFAULT_LABEL => KeySource::existing_or_new(&args.keystore)?,
        _ => KeySource::existing(&args.keystore)?,
    };
    SshSigningKey::of(&source.read()?.key(&args.key)?, &args.key)
}

/// The line of the user's key in the list of allowed signers.
fn line_of(key: &SshKey) -> Result<String> {
    let address = asked(&["config", "--get", "user.email"])?.filter(|address| !address.is_empty());
    let address = address.ok_or_else(|| {
        Error::new("no_address", "git does not know your address, by which others know your key")
            .hint("set it with `git config --global user.email ADDRESS`")
    })?;
    let line = format!("{address} namespaces=\"git\" {key}");
    // Some characters have a meaning in the list.
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !"*?!,\"#".contains(c);
    if !address.chars().all(is_plain) || AllowedSigners::parse(line.as_bytes()).is_err() {
        let message = format!("user.email is {}, which no list of signers can have", escape_text(&address));
        return Err(Error::new("invalid_address", message).hint("set another one with `git config`"));
    }
    Ok(line)
}

/// The program that git starts: this one, by the name that stays when it is updated.
fn own_path() -> Result<PathBuf> {
    let own = env::current_exe().map_err(|error| Error::io("cannot find the program bulla", &error))?;
    let (Some(name), Ok(real)) = (own.file_name(), own.canonicalize()) else { return Ok(own) };
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut named = env::split_paths(&folders).map(|folder| folder.join(name));
    Ok(named
        .find(|path| path.is_absolute() && path.canonicalize().is_ok_and(|path| path == real))
        .unwrap_or(own))
}

/// The file with the allowed signers.
struct AllowedFile {
    path: PathBuf,
    /// Whether git has a setting for it already, in any scope.
    is_set: bool,
}

impl AllowedFile {
    /// The file that git uses, or a new one: in the repository's folder of git, or in the user's.
    fn find(scope: Scope) -> Result<Self> {
        let set = asked(&["config", "--type=path", "--get", ALLOWED_SIGNERS])?;
        // This says for each scope whether there is a place for settings.
        let folder = match scope {
            Scope::Local => {
                let folder = asked(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
                PathBuf::from(folder.unwrap_or_default())
            }
            Scope::Global => {
                let folders = base_strategy::choose_base_strategy();
                let none = |error: etcetera::HomeDirError| Error::new("no_home", error.to_string());
                folders.map_err(none)?.config_dir().join("git")
            }
        };
        let is_set = set.is_some();
        let path = set.map_or_else(|| folder.join("allowed_signers"), PathBuf::from);
        // A link stays a link.
        Ok(Self { path: path.canonicalize().unwrap_or(path), is_set })
    }

    /// Adds a line, if the file does not have its key.
    fn add(&self, line: &str, key: &SshKey) -> Result<bool> {
        let about = |what: &str, error: &_| Error::io(what, error).about(escape_path(&self.path));
        let mut text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(about("cannot read the allowed signers", &error)),
        };
        let listed = String::from_utf8_lossy(&text);
        let base64 = key.to_string();
        let base64 = base64.split(' ').nth(1).unwrap_or_default();
        let mut lines = listed.lines().filter(|line| !line.trim_start().starts_with('#'));
        if lines.any(|line| line.split_ascii_whitespace().any(|word| word == base64)) {
            return Ok(false);
        }
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
        let folder = folder_of(&self.path);
        if !folder.exists() {
            create_folder(folder).map_err(|error| about("cannot be made", &error))?;
        }
        atomic::write(&self.path, |sink| sink.write_all(&text))?;
        Ok(true)
    }
}

/// A setting that was changed.
#[derive(Serialize)]
struct Setting {
    name: String,
    value: String,
    previous: Option<String>,
}

impl Setting {
    /// The command that takes the change back.
    fn undo(&self, scope: Scope) -> Vec<String> {
        let words = match &self.previous {
            Some(previous) => vec![&*self.name, previous],
            None => vec!["--unset", &self.name],
        };
        ["git", "config", scope.flag()].into_iter().chain(words).map(str::to_owned).collect()
    }
}

/// Sets what is not set already. If a setting fails, those before it are taken back.
fn set_all(scope: Scope, wanted: Vec<(String, String)>) -> Result<Vec<Setting>> {
    let mut settings: Vec<Setting> = Vec::new();
    let mut set = |name: String, value: String| -> Result<()> {
        let previous = asked(&["config", scope.flag(), "--get", &name])?;
        if previous.as_ref() == Some(&value) {
            return Ok(());
        }
        let output = git(["config", scope.flag(), &name, &value])?;
        if !output.status.success() {
            return Err(failed(&output));
        }
        settings.push(Setting { name, value, previous });
        Ok(())
    };
    let done = wanted.into_iter().try_for_each(|(name, value)| set(name, value));
    if let Err(error) = done {
        for setting in settings.iter().rev() {
            git(&setting.undo(scope)[1..])?;
        }
        return Err(error);
    }
    Ok(settings)
}

/// What was done.
struct Setup {
    scope: Scope,
    settings: Vec<Setting>,
    allowed: AllowedFile,
    line: String,
    added: bool,
}

impl Setup {
    fn print(&self, args: &GitSetupArgs) -> Result<Exit> {
        let undo: Vec<_> = self.settings.iter().map(|setting| self.undo_line(setting)).collect();
        let mut out = Out::after("git's settings were changed");
        if args.report.json {
            #[derive(Serialize)]
            struct Line<'a> {
                scope: Scope,
                settings: &'a [Setting],
                allowed_signers: &'a str,
                line: &'a str,
                is_added: bool,
                undo: &'a [String],
            }
            out.json(&Line {
                scope: self.scope,
                settings: &self.settings,
                allowed_signers: &text_of(&self.allowed.path)?,
                line: &self.line,
                is_added: self.added,
                undo: &undo,
            })?;
        } else if !args.report.quiet {
            let path = escape_path(&self.allowed.path);
            for Setting { name, value, .. } in &self.settings {
                out.line(format_args!("{name} = {}", escape_text(value)))?;
            }
            match self.added {
                true => out.line(format_args!("{path}: added {}", self.line))?,
                false => out.line(format_args!("{path}: has the key already"))?,
            }
            if !undo.is_empty() {
                out.line("to undo this:")?;
            }
            for line in &undo {
                out.line(format_args!("  {line}"))?;
            }
            if self.added {
                out.line(format_args!("and take the line out of {path}"))?;
            }
        }
        out.flush()?;
        Ok(Exit::Ok)
    }

    fn undo_line(&self, setting: &Setting) -> String {
        let words = setting.undo(self.scope);
        words.iter().map(|word| quote_for_shell(word.as_ref())).collect::<Vec<_>>().join(" ")
    }
}
