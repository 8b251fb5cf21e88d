//! Facts about a project before its sources are read: the packages of its builds, by `cargo
//! metadata`, and the flags and profiles that make a difference.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::Error;

/// A flag or a line of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its effect.
    pub kind: SettingKind,
    /// Its text, as written.
    pub text: String,
    /// The file, or the environment variable.
    pub place: String,
    /// The line, from 1; 0 for a variable.
    pub line: u64,
}

/// The effect of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// It compiles all code for one kind of CPU: `target-cpu`, `target-feature`.
    Target,
    /// Link-time optimization.
    Lto,
}

/// The settings for the workspace in `root`: its profiles, cargo's configuration from there upwards
/// and at home, and the environment.
pub(super) fn find_settings(root: &Path) -> Result<Vec<Setting>, Error> {
    let mut settings = Vec::new();
    in_file(&root.join("Cargo.toml"), &mut settings)?;
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let folders = root.ancestors().map(|folder| folder.join(".cargo")).chain(home);
    let mut seen = Vec::new();
    for folder in folders {
        for name in ["config.toml", "config"] {
            let path = folder.join(name);
            if path.is_file() && !seen.contains(&path) {
                in_file(&path, &mut settings)?;
                seen.push(path);
                break;
            }
        }
    }
    in_environment(
        env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        &mut settings,
    );
    Ok(settings)
}

fn in_file(path: &Path, settings: &mut Vec<Setting>) -> Result<(), Error> {
    let what = |error: &dyn std::fmt::Display| {
        Error::Project(format!("{}: {}", path.display(), error.to_string().trim_end()))
    };
    let text = fs::read_to_string(path).map_err(|error| what(&error))?;
    let table: Table = toml::from_str(&text).map_err(|error| what(&error))?;
    in_table(&table, &text, &path.display().to_string(), settings);
    Ok(())
}

fn in_table(table: &Table, text: &str, place: &str, settings: &mut Vec<Setting>) {
    let profiles = table.get("profile").and_then(Value::as_table);
    for (name, profile) in profiles.into_iter().flatten() {
        let Some(lto) = profile.get("lto") else { continue };
        let value = match lto {
            Value::Boolean(value) => value.to_string(),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        if is_lto(&value) {
            let line = line_of(text, &format!("[profile.{name}]"), "lto");
            settings.push(Setting {
                kind: SettingKind::Lto,
                text: format!("profile.{name}: lto = {value}"),
                place: place.to_owned(),
                line,
            });
        }
    }
    let build = table.get("build").and_then(|build| build.get("rustflags")).into_iter();
    let targets = table.get("target").and_then(Value::as_table).into_iter().flatten();
    for flags in build.chain(targets.filter_map(|(_, target)| target.get("rustflags"))) {
        let flags = match flags {
            Value::String(flags) => flags.split_whitespace().map(str::to_owned).collect(),
            Value::Array(flags) => flags.iter().filter_map(|flag| Some(flag.as_str()?.to_owned())).collect(),
            _ => Vec::new(),
        };
        in_flags(&flags, place, |flag| line_of(text, "", flag), settings);
    }
}

fn in_environment(variables: impl Iterator<Item = (String, String)>, settings: &mut Vec<Setting>) {
    for (name, value) in variables {
        let is_target = name.starts_with("CARGO_TARGET_") && name.ends_with("_RUSTFLAGS");
        if name == "CARGO_ENCODED_RUSTFLAGS" {
            let flags: Vec<_> = value.split('\u{1f}').map(str::to_owned).collect();
            in_flags(&flags, &name, |_| 0, settings);
        } else if name == "RUSTFLAGS" || name == "CARGO_BUILD_RUSTFLAGS" || is_target {
            let flags: Vec<_> = value.split_whitespace().map(str::to_owned).collect();
            in_flags(&flags, &name, |_| 0, settings);
        } else if name.starts_with("CARGO_PROFILE_") && name.ends_with("_LTO") && is_lto(&value) {
            settings.push(Setting { kind: SettingKind::Lto, text: value, place: name, line: 0 });
        }
    }
}

fn is_lto(value: &str) -> bool {
    matches!(value, "true" | "fat" | "thin")
}

fn in_flags(flags: &[String], place: &str, line: impl Fn(&str) -> u64, settings: &mut Vec<Setting>) {
    for flag in flags {
        let kind = match flag.trim_start_matches("-C") {
            flag if flag.starts_with("target-cpu")
                && !flag.ends_with("=generic")
                && !flag.ends_with("=x86-64") =>
            {
                SettingKind::Target
            }
            flag if flag.starts_with("target-feature") && flag.contains('+') => SettingKind::Target,
            flag if flag
                .strip_prefix("lto")
                .is_some_and(|rest| rest.is_empty() || is_lto(rest.trim_start_matches('='))) =>
            {
                SettingKind::Lto
            }
            _ => continue,
        };
        settings.push(Setting { kind, text: flag.clone(), place: place.to_owned(), line: line(flag) });
    }
}

/// The line, from 1, of the first `word` after the first `after`.
fn line_of(text: &str, after: &str, word: &str) -> u64 {
    let start = text.find(after).unwrap_or(0);
    let at = text[start..].find(word).map_or(start, |at| start + at);
    text[..at].matches('\n').count() as u64 + 1
}

#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) packages: Vec<Package>,
    /// The ids of the packages.
    pub(super) workspace_members: Vec<String>,
    pub(super) workspace_root: PathBuf,
    pub(super) resolve: Option<Resolve>,
}

#[derive(Deserialize)]
pub(super) struct Package {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) manifest_path: PathBuf,
}

/// The dependencies of a package in this project.
#[derive(Deserialize)]
pub(super) struct Resolve {
    pub(super) nodes: Vec<Node>,
}

#[derive(Deserialize)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) deps: Vec<Dependency>,
    pub(super) features: BTreeSet<String>,
}

#[derive(Deserialize)]
pub(super) struct Dependency {
    /// The id of the package.
    pub(super) pkg: String,
    pub(super) dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
pub(super) struct DependencyKind {
    /// `dev` or `build`; `None` for a normal dependency.
    pub(super) kind: Option<String>,
}

/// Runs `cargo metadata` for the project of `manifest`, or of the current folder. If this runs
/// under a `cargo`, it uses the same one.
pub(super) fn read_metadata(manifest: Option<&Path>) -> Result<Metadata, Error> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1"]);
    if let Some(path) = manifest {
        command.arg("--manifest-path").arg(path);
    }
    let output = command.output().map_err(|error| Error::Project(format!("cargo cannot be run: {error}")))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Project(message.trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Error::Project(format!("cargo metadata cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(toml: &str) -> Vec<(SettingKind, u64)> {
        let mut found = Vec::new();
        in_table(&toml::from_str(toml).unwrap(), toml, "config.toml", &mut found);
        found.iter().map(|setting| (setting.kind, setting.line)).collect()
    }

    #[test]
    fn profiles_and_flags_of_files_are_found_with_their_lines() {
        use SettingKind::{Lto, Target};
        assert_eq!(settings("[profile.release]\nopt-level = 3\nlto = \"fat\"\n"), [(Lto, 3)]);
        assert_eq!(settings("[profile.release]\nlto = true\n[profile.dev]\nlto = \"off\"\n"), [(Lto, 2)]);
        assert_eq!(settings("[build]\nrustflags = [\"-C\", \"target-cpu=native\"]\n"), [(Target, 2)]);
        assert_eq!(
            settings("[target.x86_64-unknown-linux-gnu]\nrustflags = \"-Ctarget-feature=+avx2\"\n"),
            [(Target, 2)]
        );
        assert_eq!(
            settings("[build]\nrustflags = [\"-Ctarget-feature=-avx2\", \"-Ctarget-cpu=generic\"]\n"),
            []
        );
    }

    #[test]
    fn the_environment_is_read_as_cargo_reads_it() {
        let variables = [
            ("RUSTFLAGS", "-C target-cpu=native -Clto"),
            ("CARGO_ENCODED_RUSTFLAGS", "-C\u{1f}target-feature=+avx512f"),
            ("CARGO_PROFILE_RELEASE_LTO", "thin"),
            ("CARGO_PROFILE_DEV_LTO", "off"),
            ("OTHER", "target-cpu=native"),
        ];
        let mut found = Vec::new();
        in_environment(
            variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())),
            &mut found,
        );
        let found: Vec<_> =
            found.iter().map(|setting| (setting.place.as_str(), setting.text.as_str())).collect();
        assert_eq!(
            found,
            [
                ("RUSTFLAGS", "target-cpu=native"),
                ("RUSTFLAGS", "-Clto"),
                ("CARGO_ENCODED_RUSTFLAGS", "target-feature=+avx512f"),
                ("CARGO_PROFILE_RELEASE_LTO", "thin")
            ]
        );
    }
}
