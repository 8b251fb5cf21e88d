//! What `deny.toml` says of the dependencies: which licenses they may have, and where they may come
//! from. `cargo metadata` knows both, and the crate `spdx` reads expressions of licenses.
//!
//! cargo-deny, whose file this is, also knows the advisories. Only `cargo xtask advisories`
//! needs it, which may wait for its build.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{
    Context,
    install::{self, CARGO_DENY},
    quiet,
};
use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

/// The parts of `deny.toml` that this reads.
#[derive(Deserialize)]
struct Rules {
    licenses: Licenses,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A package, as `cargo metadata` describes it.
#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// None for a package in a folder.
    source: Option<String>,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    /// Its folder, if it has one.
    path: Option<String>,
}

/// Fails if a package that cargo could build, for any target and with any feature, is not as
/// `deny.toml` says.
pub(crate) fn check(context: &Context) -> Result<()> {
    let rules = fs::read_to_string(context.root.join("deny.toml")).context("cannot read deny.toml")?;
    let rules: Rules = toml::from_str(&rules).context("deny.toml")?;
    let said = quiet(context.cargo().args(["metadata", "--format-version=1", "--all-features"]))?;
    let metadata: Metadata = serde_json::from_str(&said)?;
    ensure!(metadata.packages.len() > 100, "cargo knows only {} packages", metadata.packages.len());
    let root = context.root.display().to_string();
    let wrong = problems(&rules, &metadata, &root)?;
    ensure!(wrong.is_empty(), "see deny.toml:\n{}", wrong.join("\n"));
    Ok(())
}

/// A line for each thing that the rules do not allow.
fn problems(rules: &Rules, metadata: &Metadata, root: &str) -> Result<Vec<String>> {
    let allowed = rules.licenses.allow.iter().map(|license| Licensee::parse(license));
    let allowed: Vec<_> = allowed.collect::<Result<_, _>>().context("the allowed licenses")?;
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let found = [package.license_problem(&allowed), package.source_problem(&rules.sources, root)];
        let found = found.into_iter().flatten().chain(package.wildcards());
        wrong.extend(found.map(|problem| format!("{} {}: {problem}", package.name, package.version)));
    }
    Ok(wrong)
}

impl Package {
    fn license_problem(&self, allowed: &[Licensee]) -> Option<String> {
        let Some(license) = &self.license else { return Some("it names no license".to_owned()) };
        // Old packages write `MIT/Apache-2.0`.
        match Expression::parse_mode(license, ParseMode::LAX) {
            Err(error) => Some(format!("the license {license:?} cannot be read: {error}")),
            Ok(expression) => {
                let is_allowed =
                    expression.evaluate(|one| allowed.iter().any(|license| license.satisfies(one)));
                (!is_allowed).then(|| format!("the license {license} is not allowed"))
            }
        }
    }

    fn source_problem(&self, sources: &Sources, root: &str) -> Option<String> {
        match &self.source {
            None if self.manifest_path.starts_with(root) => None,
            None => Some(format!("{} is outside of the repository", self.manifest_path)),
            Some(source) => {
                let registry = source.strip_prefix("registry+").unwrap_or_default();
                let is_allowed = sources.allow_registry.iter().any(|allowed| allowed == registry);
                (!is_allowed).then(|| format!("it may not come from {source}"))
            }
        }
    }

    /// Its dependencies without a version. Those in a folder need none.
    fn wildcards(&self) -> impl Iterator<Item = String> {
        let wild = self.dependencies.iter().filter(|one| one.req == "*" && one.path.is_none());
        wild.map(|one| format!("the dependency {} names no version", one.name))
    }
}

/// The packages of a `Cargo.lock`.
#[derive(Deserialize)]
struct Lock {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    version: String,
}

/// Fails if a fuzz target is built with another version of a package than the programs are. Then it
/// would look for defects in code that nobody gets.
pub(crate) fn check_fuzz_locks(context: &Context) -> Result<()> {
    let shipped = read_lock(&context.root)?;
    let mut wrong = Vec::new();
    let mut found = 0;
    for folder in fs::read_dir(context.root.join("crates"))? {
        let folder = folder?.path().join("fuzz");
        if folder.is_dir() {
            let others = other_versions(&shipped, &read_lock(&folder)?);
            wrong.extend(others.into_iter().map(|line| format!("{}: {line}", folder.display())));
            found += 1;
        }
    }
    ensure!(found > 0, "there is none");
    ensure!(wrong.is_empty(), "run `cargo update -p NAME --precise VERSION` there:\n{}", wrong.join("\n"));
    Ok(())
}

fn read_lock(folder: &Path) -> Result<Lock> {
    let path = folder.join("Cargo.lock");
    let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("{}", path.display()))
}

/// A line for each package that both have, in a version that only the second one has.
fn other_versions(shipped: &Lock, fuzzed: &Lock) -> Vec<String> {
    let mut versions: HashMap<&str, HashSet<&str>> = HashMap::new();
    for package in &shipped.package {
        versions.entry(&package.name).or_default().insert(&package.version);
    }
    let differs = |package: &&LockedPackage| {
        let known = versions.get(package.name.as_str());
        known.is_some_and(|known| !known.contains(package.version.as_str()))
    };
    let line = |package: &LockedPackage| format!("{} {} is not what we ship", package.name, package.version);
    fuzzed.package.iter().filter(differs).map(line).collect()
}

/// What `cargo xtask advisories` takes.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask advisories\n\n\
    It needs GitHub, so it is not a test: docs/decisions/0355-dependencies-by-metadata.md. Run it before a release, and when a dependency changes.\n\n\
    Exit status: 0 no dependency has an advisory, 1 one has, or the database could not be read.")]
pub(crate) struct AdvisoriesArgs {}

/// `cargo xtask advisories`: asks the database of RustSec about every dependency, and has
/// cargo-deny check the rest of `deny.toml` too.
pub(crate) fn advisories(_: &AdvisoriesArgs) -> Result<ExitCode> {
    let context = Context::find()?;
    let program = install::cargo_tool(&context, &CARGO_DENY)?;
    let status = Command::new(program)
        .current_dir(&context.root)
        // Two versions of one crate are a warning. Its inclusion graphs are long and add nothing.
        .args(["check", "--hide-inclusion-graph"])
        .status()
        .context("cannot start cargo-deny")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        confidence-threshold = 0.9

        [sources]
        unknown-git = "deny"
        allow-registry = ["https://example.org/index"]
    "#;

    /// What is wrong with a package that `change` makes from one that is as it should be.
    fn wrong(change: impl FnOnce(&mut serde_json::Value)) -> Vec<String> {
        let mut package = serde_json::json!({
            "name": "a",
            "version": "1.2.3",
            "license": "MIT",
            "source": "registry+https://example.org/index",
            "manifest_path": "/cache/a/Cargo.toml",
            "dependencies": [{ "name": "b", "req": "^1", "path": null }],
        });
        change(&mut package);
        let metadata = serde_json::from_value(serde_json::json!({ "packages": [package] })).unwrap();
        problems(&toml::from_str(RULES).unwrap(), &metadata, "/repository").unwrap()
    }

    #[test]
    fn licenses_are_expressions() {
        for allowed in
            ["MIT", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "(MIT AND Apache-2.0) OR GPL-2.0-only"]
        {
            assert_eq!(wrong(|package| package["license"] = allowed.into()), Vec::<String>::new());
        }
        for refused in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "Apache-2.0 WITH LLVM-exception", "mine"] {
            let found = wrong(|package| package["license"] = refused.into());
            assert!(found.len() == 1 && found[0].starts_with("a 1.2.3: the license"), "{refused}: {found:?}");
        }
        let nameless = wrong(|package| package["license"] = serde_json::Value::Null);
        assert_eq!(nameless, ["a 1.2.3: it names no license"]);
    }

    #[test]
    fn packages_come_from_the_registry_or_from_the_repository() {
        for refused in [
            "registry+https://example.org/other",
            "git+https://example.org/index#1",
            "https://example.org/index",
        ] {
            let found = wrong(|package| package["source"] = refused.into());
            assert_eq!(found, [format!("a 1.2.3: it may not come from {refused}")]);
        }
        let folder = |path: &'static str| {
            wrong(|package| {
                package["source"] = serde_json::Value::Null;
                package["manifest_path"] = path.into();
            })
        };
        assert_eq!(folder("/repository/crates/a/Cargo.toml"), Vec::<String>::new());
        assert_eq!(folder("/other/Cargo.toml"), ["a 1.2.3: /other/Cargo.toml is outside of the repository"]);
    }

    #[test]
    fn a_fuzz_target_has_the_versions_that_we_ship() {
        let lock = |packages: &[(&str, &str)]| Lock {
            package: packages
                .iter()
                .map(|&(name, version)| LockedPackage { name: name.to_owned(), version: version.to_owned() })
                .collect(),
        };
        let shipped = lock(&[("a", "1.0.0"), ("a", "2.0.0"), ("b", "1.0.0")]);
        // It needs fewer packages, and others.
        assert!(other_versions(&shipped, &lock(&[("a", "2.0.0"), ("c", "1.0.0")])).is_empty());
        let found = other_versions(&shipped, &lock(&[("a", "2.0.1"), ("b", "1.0.0")]));
        assert_eq!(found, ["a 2.0.1 is not what we ship"]);
    }

    #[test]
    fn dependencies_have_a_version_or_a_folder() {
        let found = wrong(|package| package["dependencies"][0]["req"] = "*".into());
        assert_eq!(found, ["a 1.2.3: the dependency b names no version"]);
        let found = wrong(|package| {
            package["dependencies"][0] =
                serde_json::json!({ "name": "b", "req": "*", "path": "/repository/b" });
        });
        assert_eq!(found, Vec::<String>::new());
    }
}
