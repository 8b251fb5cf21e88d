//! The part of the output of `cargo metadata` that the scan needs.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

use crate::Error;

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
pub(super) fn read(manifest: Option<&Path>) -> Result<Metadata, Error> {
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
