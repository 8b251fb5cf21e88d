//! The Go modules, as the `go` command finds them: by tags of this repository, and then by a module
//! proxy of files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, quiet};

use crate::{files, source::Source};

/// The modules that are published: their folders, which are also the prefixes of their tags.
const MODULES: [&str; 3] = ["go", "go/kms", "go/readers"];

/// Where the repository will be.
const REPOSITORY: &str = "github.com/bulla-dev/bulla";

pub(super) fn run(context: &Context, source: &Source) -> Result<()> {
    let folder = context.target.join("dist-go");
    files::fresh(&folder)?;
    let version = format!("v{}", source.version);
    let repository = tagged(context, &folder, source, &version)?;
    // Caches below our own folder: another run may have fetched another commit under this version.
    let cache = folder.join("cache");
    for module in MODULES {
        let path = format!("{REPOSITORY}/{module}@{version}");
        let user = folder.join("by-tag").join(module.replace('/', "-"));
        let mut get = go(&user, &cache)?;
        get.env("GONOPROXY", format!("{REPOSITORY}/*,{REPOSITORY}")).env("GIT_CONFIG_COUNT", "1");
        get.env("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", repository.display()));
        get.env("GIT_CONFIG_VALUE_0", format!("https://{REPOSITORY}"));
        quiet(get.args(["get", &path])).with_context(|| format!("{path} by its tag"))?;
        let place = builds(&user, &cache, module)?;
        println!("{path}: {}", place.display());
    }
    // What Go has downloaded has the layout of a proxy. A user who has nothing gets the modules
    // from it. The usual proxy is behind it, for the public list of digests.
    let usual = quiet(Command::new("go").args(["env", "GOPROXY"]))?;
    let proxy = format!("file://{},{}", cache.join("cache/download").display(), usual.trim());
    for module in MODULES {
        let path = format!("{REPOSITORY}/{module}@{version}");
        let user = folder.join("by-proxy").join(module.replace('/', "-"));
        let own = folder.join("by-proxy-cache").join(module.replace('/', "-"));
        let mut get = go(&user, &own)?;
        get.env("GOPROXY", &proxy).env("GONOPROXY", "none");
        quiet(get.args(["get", &path])).with_context(|| format!("{path} by {proxy}"))?;
        let place = builds(&user, &own, module)?;
        let oldest = tests(&user, &own, module, &place)?;
        println!("{path}: passes its tests with {oldest}");
    }
    println!("{} modules by their tags, and by a proxy of files", MODULES.len());
    Ok(())
}

/// A copy of the repository in which the commit has the tags of a release.
fn tagged(context: &Context, folder: &Path, source: &Source, version: &str) -> Result<PathBuf> {
    let repository = folder.join("repository.git");
    quiet(Command::new("git").args(["clone", "--quiet", "--bare"]).arg(&context.root).arg(&repository))?;
    for module in MODULES {
        let tag = format!("{module}/{version}");
        quiet(Command::new("git").args(["tag", "--force", &tag, &source.commit]).current_dir(&repository))?;
    }
    Ok(repository)
}

/// `go` in a new module, with caches of its own.
fn go(user: &Path, cache: &Path) -> Result<Command> {
    if !user.exists() {
        files::write(&user.join("go.mod"), "module user\n")?;
    }
    let mut command = Command::new("go");
    command.current_dir(user).env("GOMODCACHE", cache).env("GOWORK", "off");
    // The folder can be removed; nothing of ours is in the public list of digests yet; no other Go
    // is downloaded.
    command.env("GOFLAGS", "-modcacherw").env("GONOSUMDB", format!("{REPOSITORY}/*,{REPOSITORY}"));
    Ok(command)
}

/// Builds all packages of a module that was fetched, and checks that its license came along.
/// Returns its folder.
fn builds(user: &Path, cache: &Path, module: &str) -> Result<PathBuf> {
    let path = format!("{REPOSITORY}/{module}");
    let place = quiet(go(user, cache)?.args(["list", "-m", "-f", "{{.Dir}}", &path]))?;
    let place = PathBuf::from(place.trim());
    let license = fs::read_to_string(place.join("LICENSE")).with_context(|| format!("{path}: LICENSE"))?;
    ensure!(license.contains("MIT License") && license.contains("Apache License"), "{path}: LICENSE");
    quiet(go(&place, cache)?.args(["build", "./..."])).with_context(|| format!("cannot build {path}"))?;
    Ok(place)
}

/// Runs the tests of a module that was fetched, with the oldest Go that it is for, which the `go`
/// command downloads. Returns its name.
fn tests(user: &Path, cache: &Path, module: &str, place: &Path) -> Result<String> {
    let path = format!("{REPOSITORY}/{module}");
    let version = quiet(go(user, cache)?.args(["list", "-m", "-f", "{{.GoVersion}}", &path]))?;
    let oldest = format!("go{}", version.trim());
    // The usual cache, which may have that Go already.
    let mut test = Command::new("go");
    test.args(["test", "./..."]).current_dir(place).env("GOWORK", "off").env("GOTOOLCHAIN", &oldest);
    let status = test.status().context("cannot start go")?;
    ensure!(status.success(), "the tests of {path} with {oldest}: {status}");
    Ok(oldest)
}
