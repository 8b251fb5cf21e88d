//! The suite of `go/`: every Go module below it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{
    install::{self, DebianTool},
    quiet,
};
use ignore::WalkBuilder;

use super::runner::Runner;

/// The linter, pinned; `go run` fetches it through the module proxy.
const STATICCHECK: &str = "honnef.co/go/tools/cmd/staticcheck@v0.8.2";

/// One Go module.
struct Module {
    /// Its folder in the repository, such as `go/bench`.
    name: String,
    folder: PathBuf,
    has_tests: bool,
    has_purego: bool,
    /// Whether it has the package itself.
    is_library: bool,
    /// Whether it works only in a checkout.
    replaces: bool,
}

impl Module {
    /// The modules below `internal` and those with a `replace` directive are for work on this
    /// repository.
    fn can_be_fetched(&self) -> bool {
        !self.replaces && !self.name.contains("/internal/")
    }
}

pub(super) fn run(runner: &mut Runner<'_>) {
    let modules = match modules(&runner.context.root) {
        Ok(modules) => modules,
        Err(error) => return runner.need("go", |_| Err(error)),
    };
    let root = &runner.context.root;
    let (licenses, vectors) = (licenses(root, &modules), copies_of_vectors(root));
    runner.check("the modules that can be fetched contain the licenses", |_| licenses);
    runner.check("the modules contain the vectors of spec/", |_| vectors);
    for module in &modules {
        let name = &module.name;
        let go = || go(&module.folder);
        runner.check(&format!("gofmt, {name}"), |_| formatted(&module.folder));
        runner.command(&format!("go vet, {name}"), go().args(["vet", "./..."]));
        runner.command(&format!("staticcheck, {name}"), go().args(["run", STATICCHECK, "./..."]));
        if module.has_tests {
            runner.go_test(&format!("go test, {name}"), go().args(["test", "-json", "./..."]));
        }
        if module.is_library {
            kernels_and_races(runner, module);
        }
        if module.has_purego {
            runner.command(&format!("go vet, purego, {name}"), go().args(["vet", "-tags=purego", "./..."]));
            let mut test = go();
            test.args(["test", "-json", "-tags=purego", "./..."]);
            runner.go_test(&format!("go test, purego, {name}"), &mut test);
        }
    }
    as_users_have_them(runner, &modules);
}

/// Tests the published modules as users get them: unpacked from a module proxy's zip, outside of
/// the repository, with `-trimpath`, and with the oldest Go that each module supports.
fn as_users_have_them(runner: &mut Runner<'_>, modules: &[Module]) {
    let folder = runner.context.target.join("go-published");
    let published = runner.context.root.join("go/internal/published");
    let mut fetched = String::new();
    runner.check("go get, from a module proxy of this checkout", |_| {
        fetched = quiet(go(&published).args(["run", "."]).arg(&folder))?;
        let (got, want) =
            (fetched.lines().count(), modules.iter().filter(|module| module.can_be_fetched()).count());
        ensure!(got == want, "{got} modules were fetched, and {want} can be");
        Ok(())
    });
    for module in fetched.lines().map(Path::new) {
        let oldest = match oldest_go(module) {
            Ok(oldest) => oldest,
            Err(error) => return runner.need("go.mod", |_| Err(error)),
        };
        let name = module.strip_prefix(&folder).unwrap_or(module).display();
        let mut test = go(module);
        test.args(["test", "-json", "-trimpath", "./..."]).env("GOTOOLCHAIN", &oldest);
        runner.go_test(&format!("go test, fetched, -trimpath, {oldest}, {name}"), &mut test);
    }
}

/// The toolchain that the module's `go` line names. The `go` command downloads it through the
/// module proxy.
fn oldest_go(module: &Path) -> Result<String> {
    let text = std::fs::read_to_string(module.join("go.mod"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("go ")).context("go.mod has no line `go`")?;
    Ok(format!("go{}", line.trim()))
}

/// The license of a module must be in its own folder: its zip has no files from parent folders.
fn licenses(root: &Path, modules: &[Module]) -> Result<()> {
    for module in modules.iter().filter(|module| module.can_be_fetched()) {
        let path = module.folder.join("LICENSE");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let whole = std::fs::read_to_string(root.join(name))?;
            ensure!(text.contains(whole.trim()), "{} lacks the text of {name}", path.display());
        }
    }
    Ok(())
}

/// A fetched module has no `spec/` above it, so the modules hold copies of the files that their
/// tests read.
fn copies_of_vectors(root: &Path) -> Result<()> {
    for folder in ["go/internal/vectors/testdata", "go/readers/testdata"] {
        let mut files = 0;
        for entry in std::fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {folder}"))? {
            let name = entry?.file_name();
            let source = root.join("spec/vectors").join(&name);
            let (copy, source) = (std::fs::read(root.join(folder).join(&name))?, std::fs::read(source)?);
            let name = name.display();
            ensure!(copy == source, "{folder}/{name} is not current: cp spec/vectors/{name} {folder}/");
            files += 1;
        }
        ensure!(files > 0, "{folder} is empty");
    }
    Ok(())
}

/// The variable that forces a kernel.
const FORCE: &str = "BULLA_BLAKE3_FORCE_KERNEL";

/// Tests that take minutes under the race detector and start no goroutine.
const SERIAL: &str = "EveryLength|SumMany|Vectors|StateRoundTrip|AnyLength";

/// Tests the packages above the kernels again with each kernel forced, and under the race detector.
/// (The tests of the kernels themselves run all kernels in one process.)
fn kernels_and_races(runner: &mut Runner<'_>, module: &Module) {
    const ABOVE: [&str; 4] = ["./blake3", "./bao", "./compat/...", "./cmd/..."];
    for kernel in kernels() {
        let mut test = go(&module.folder);
        // Go's cache of results does not notice a variable that is read before main.
        test.args(["test", "-json", "-count=1"]).args(ABOVE).env(FORCE, kernel);
        runner.go_test(&format!("go test, {kernel}, {}", module.name), &mut test);
    }
    let mut test = go(&module.folder);
    test.args(["test", "-json", "-race", "-skip", SERIAL]).args(ABOVE).env("CGO_ENABLED", "1");
    runner.need("gcc", |_| install::debian(&DebianTool { program: "gcc", package: "gcc" }));
    runner.go_test(&format!("go test, race detector, {}", module.name), &mut test);
}

/// The kernels of this machine, without the one that is chosen by default.
fn kernels() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let avx512 = is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl");
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2");
        let all = [("x86_64/sse4.1", avx2), ("x86_64/avx2", avx512)];
        all.into_iter().filter(|(_, better)| *better).map(|(name, _)| name).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

/// All modules, the main one first.
fn modules(root: &Path) -> Result<Vec<Module>> {
    if !install::on_path("go") {
        bail!("go is missing: install Go 1.26 or newer from https://go.dev/dl/");
    }
    let mut files = Vec::new();
    for entry in WalkBuilder::new(root.join("go")).hidden(false).require_git(false).build() {
        files.push(entry?.into_path());
    }
    let folders = files.iter().filter(|file| file.ends_with("go.mod")).filter_map(|file| file.parent());
    let mut folders: Vec<_> = folders.map(Path::to_owned).collect();
    folders.sort();
    if folders.is_empty() {
        bail!("the folder go/ has no go.mod");
    }
    let belongs = |file: &Path, folder: &Path| {
        folders.iter().filter(|other| file.starts_with(other)).max_by_key(|other| other.as_os_str().len())
            == Some(&folder.to_owned())
    };
    let mut modules = Vec::new();
    for folder in &folders {
        let own: Vec<_> = files.iter().filter(|file| belongs(file, folder)).collect();
        let is_go = |file: &&&PathBuf| file.extension().is_some_and(|extension| extension == "go");
        let mut has_purego = false;
        for file in own.iter().filter(is_go) {
            let source =
                std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            has_purego |=
                source.lines().any(|line| line.starts_with("//go:build ") && line.contains("purego"));
        }
        modules.push(Module {
            name: folder.strip_prefix(root)?.display().to_string(),
            has_tests: own.iter().any(|file| file.to_string_lossy().ends_with("_test.go")),
            has_purego,
            is_library: folder.join("blake3").is_dir(),
            replaces: std::fs::read_to_string(folder.join("go.mod"))?.contains("replace "),
            folder: folder.clone(),
        });
    }
    Ok(modules)
}

pub(super) fn formatted(folder: &Path) -> Result<()> {
    let files = quiet(Command::new("gofmt").args(["-l", "."]).current_dir(folder))?;
    if !files.trim().is_empty() {
        bail!("gofmt would change: {}", files.split_whitespace().collect::<Vec<_>>().join(", "));
    }
    Ok(())
}

pub(super) fn go(folder: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(folder);
    command
}
