//! git's settings: those that bulla sets, and those that say where bulla's keys are.

use crate::args::{KeystoreArgs, SettingsArgs};
use crate::error::{Error, Result};
use bulla_files::escape_path;
use clap::{CommandFactory as _, Parser as _};
use std::env;
use std::ffi::OsStr;
use std::path::{Path, absolute};
use std::process::{Command, Output};

/// The section of git's settings with the flags that say where bulla's keys are.
pub(super) const SECTION: &str = "bulla";

/// Runs `git config`, or another command of git.
///
/// # Errors
/// git is missing.
pub(super) fn git<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Result<Output> {
    Command::new("git").args(args).output().map_err(|error| {
        Error::io("cannot be run", &error).about("git").hint("install git, or put it on the PATH")
    })
}

/// What a command of git prints, without the newline at its end; None if git exits with status 1,
/// which `git config` does for a setting that is not there.
///
/// # Errors
/// git fails in another way.
pub(super) fn asked(args: &[&str]) -> Result<Option<String>> {
    let output = git(args)?;
    match output.status.code() {
        Some(0) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(Some(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)))
        }
        Some(1) => Ok(None),
        _ => Err(failed(&output)),
    }
}

/// The error for a command of git that failed.
pub(super) fn failed(output: &Output) -> Error {
    let text = String::from_utf8_lossy(&output.stderr);
    let text = text.trim().trim_start_matches("fatal: ").trim_start_matches("error: ");
    let error = Error::new("git_failed", text.replace('\n', "; ")).about("git");
    if text.contains("git directory") || text.contains("git repository") {
        return error.hint("run this in a repository, or with --global");
    }
    error
}

/// Where the keys are, as git's settings say; variables of the environment go first.
///
/// # Errors
/// git has a setting in the section of bulla that is not one of bulla.
pub(super) fn keystore_args() -> Result<KeystoreArgs> {
    let invalid = |message: String| {
        let hint = "`git config --show-origin --get-regexp '^bulla\\.'` shows where it is set";
        Error::new("invalid_setting", message).about("git's settings").hint(hint)
    };
    let flags = SettingsArgs::command();
    let mut words = vec![SECTION.to_owned()];
    let found = asked(&["config", "--null", "--get-regexp", "^bulla\\."])?.unwrap_or_default();
    for setting in found.split('\0').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('\n').unwrap_or((setting, ""));
        let name = name.strip_prefix("bulla.").unwrap_or(name);
        let flag = flags.get_arguments().find(|flag| flag.get_long() == Some(name));
        let flag = flag.ok_or_else(|| invalid(format!("bulla.{name} is no setting of bulla")))?;
        let is_set = |name: &OsStr| env::var_os(name).is_some_and(|value| !value.is_empty());
        // Of two places, the one that a variable names counts.
        let says_where = ["keystore", "server"].contains(&name);
        let is_elsewhere = ["BULLA_KEYSTORE", "BULLA_ADDR"].iter().any(|name| is_set(OsStr::new(name)));
        let is_overridden = flag.get_env().is_some_and(is_set) || says_where && is_elsewhere;
        if !is_overridden {
            words.push(format!("--{name}={value}"));
        }
    }
    let parsed = SettingsArgs::try_parse_from(words);
    parsed.map(|args| args.keystore).map_err(|error| {
        let text = error.to_string();
        invalid(text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
    })
}

/// The settings that say the same as these flags.
///
/// # Errors
/// A file has a name that git's settings cannot have; a secret comes from standard input.
pub(super) fn settings_of(args: &KeystoreArgs) -> Result<Vec<(String, String)>> {
    let server = &args.server;
    if args.pkcs11.is_some() {
        let message = "git's settings do not have the device: its URI may have a PIN";
        return Err(Error::new("usage", message).hint("set BULLA_PKCS11 where you run git"));
    }
    if server.token_file.as_deref() == Some(Path::new("-")) {
        return Err(Error::new("usage", "--token-file - would take the token from git's standard input"));
    }
    let files = [
        ("keystore", &args.keystore),
        ("passphrase-file", &args.passphrase_file),
        ("identity", &args.identity),
        ("server-ca", &server.server_ca),
        ("token-file", &server.token_file),
        ("client-certificate", &server.client_certificate),
        ("client-key", &server.client_key),
    ];
    let mut settings = Vec::new();
    if let Some(address) = server.server.as_ref().filter(|address| !address.is_empty()) {
        // git starts bulla in other folders.
        let address = match address.strip_prefix("unix:") {
            Some(path) => format!("unix:{}", text_of(Path::new(path))?),
            None => address.clone(),
        };
        settings.push((format!("{SECTION}.server"), address));
    }
    for (name, path) in files {
        let Some(path) = path else { continue };
        settings.push((format!("{SECTION}.{name}"), text_of(path)?));
    }
    Ok(settings)
}

/// The absolute path of a file, as text.
///
/// # Errors
/// It is not UTF-8, or has a line break.
pub(super) fn text_of(path: &Path) -> Result<String> {
    let about = |error: Error| error.about(escape_path(path));
    let path = absolute(path).map_err(|error| about(Error::io("cannot be found", &error)))?;
    let text = path.to_str().filter(|text| !text.contains(['\n', '\0']));
    let unusable = || about(Error::new("invalid_path", "has a name that git's settings cannot have"));
    text.map(str::to_owned).ok_or_else(unusable)
}
