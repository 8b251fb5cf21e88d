//! The suite of `python/`: the wheel, installed by the oldest and the newest Python of this
//! machine, alone and beside the tests.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{Context, install, quiet};

use super::runner::Runner;

/// The oldest Python that the wheel is for: 3.11. Its stable interface is the first with buffers.
const OLDEST: u32 = 11;

/// The newest that is looked for.
const NEWEST: u32 = 19;

/// The profile of `python/Cargo.toml` that builds quickly.
const PROFILE: &str = "quick";

/// The package whose interface the class `blake3` has, and whose tests it must pass.
const OFFICIAL: &str = "blake3==1.0.11";

/// How many tests that package has, at least.
const OFFICIAL_TESTS: usize = 20;

/// What Python imports only if the package is complete and needs nothing else.
const ALONE: &str = "import bulla_hash, sys\n\
    assert bulla_hash.blake3(b'abc').hexdigest().startswith('6437b3ac38465133')\n\
    assert not {'numpy', 'typing_extensions', 'blake3'} & set(sys.modules)";

/// A Python of this machine.
#[derive(Debug)]
struct Python {
    /// Its version is 3.`minor`.
    minor: u32,
    program: PathBuf,
}

/// An environment that has the wheel and nothing else, and the packages of the tests beside it.
struct Environment {
    python: PathBuf,
    packages: PathBuf,
}

pub(super) fn run(runner: &mut Runner<'_>) {
    let context = runner.context;
    let (tools, pythons) = match prepare(context) {
        Ok(prepared) => prepared,
        Err(error) => return runner.need("python", |_| Err(error)),
    };
    let (oldest, newest) = (&pythons[0], &pythons[pythons.len() - 1]);
    let named = |what: &str, python: &Python| format!("{what}, Python 3.{}", python.minor);
    runner.command("clippy", &mut clippy(context, oldest));
    let wheel = match wheel(context, &tools, oldest) {
        Ok(wheel) => wheel,
        Err(error) => return runner.need("the wheel", |_| Err(error)),
    };
    for python in &pythons {
        println!("Python 3.{}: {}", python.minor, python.program.display());
        runner.check(&named("the wheel alone", python), |context| {
            let environment = alone(context, &tools, python, &wheel)?;
            quiet(Command::new(environment).args(["-I", "-W", "error", "-c", ALONE])).map(drop)
        });
    }
    for python in [oldest, newest] {
        match Environment::new(context, &tools, python) {
            Ok(environment) => {
                runner.pytest(&named("pytest", python), &mut environment.tests(context));
            }
            Err(error) => runner.need(&named("the tests", python), |_| Err(error)),
        }
    }
    let environment = match Environment::new(context, &tools, newest) {
        Ok(environment) => environment,
        Err(error) => return runner.need("the tests", |_| Err(error)),
    };
    match official_tests(context, &tools) {
        Ok(tests) => {
            let name = format!("the tests of {OFFICIAL}");
            runner.pytest(
                &name,
                environment.module("pytest").args(["-q", "--import-mode=importlib"]).arg(tests),
            );
        }
        Err(error) => runner.need("the tests of the official package", |_| Err(error)),
    }
    let package = context.root.join("python");
    runner.command("mypy", environment.module("mypy").current_dir(&package));
    let config = ["--mypy-config-file", "pyproject.toml", "bulla_hash"];
    runner.command("stubtest", environment.module("mypy.stubtest").args(config).current_dir(&package));
    client(runner);
}

/// The client of the service, alone: `server` tests it against a service.
fn client(runner: &mut Runner<'_>) {
    match client_tests(runner.context) {
        Ok(mut test) => runner.pytest("pytest, the client of the service", test.arg("tests/test_client.py")),
        Err(error) => return runner.need("the client of the service", |_| Err(error)),
    }
    runner.check("mypy, the client of the service", |context| {
        let mut mypy = client_module(context, "mypy")?;
        quiet(mypy.env("MYPY_CACHE_DIR", target(context).join("mypy-client"))).map(drop)
    });
    runner.check("the package of the client, installed alone", |context| {
        let tools = client_python(context)?;
        let folder = target(context).join("client");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let mut wheel = Command::new(&tools);
        wheel.args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]);
        quiet(wheel.arg(&folder).arg(context.root.join("python/kms")))?;
        let wheel = fs::read_dir(&folder)?.next().context("pip built no wheel")??.path();
        let installed = folder.join("installed");
        let mut install = Command::new(&tools);
        install.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(&installed);
        quiet(install.arg(&wheel))?;
        let used = "import bulla_kms; bulla_kms.Client('http://localhost:8200').close()";
        quiet(Command::new(&tools).args(["-W", "error", "-c", used]).env("PYTHONPATH", &installed)).map(drop)
    });
}

/// The Python with the packages that the client and its tests need.
pub(super) fn client_python(context: &Context) -> Result<PathBuf> {
    install::python_packages(
        context,
        "python-client",
        &context.root.join("python/kms/tests/requirements.txt"),
    )
}

fn client_module(context: &Context, module: &str) -> Result<Command> {
    let mut command = Command::new(client_python(context)?);
    command.args(["-m", module]).current_dir(context.root.join("python/kms"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONPATH", "src");
    Ok(command)
}

/// pytest with the client.
pub(super) fn client_tests(context: &Context) -> Result<Command> {
    let mut command = client_module(context, "pytest")?;
    command.arg("-q");
    Ok(command)
}

/// The tools, and the usable versions of Python in ascending order: at least two.
fn prepare(context: &Context) -> Result<(PathBuf, Vec<Python>)> {
    let requirements = context.root.join("python/tests/requirements.txt");
    let tools = install::python_packages(context, "python-package", &requirements)?;
    let pythons = pythons();
    ensure!(
        pythons.len() > 1 && pythons[0].minor == OLDEST,
        "the wheel must be tested with Python 3.{OLDEST} and with a newer one. This machine has {}: install the others with pyenv, or in the PATH",
        match pythons.iter().map(|python| format!("3.{}", python.minor)).collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "none".to_owned(),
            some => some,
        }
    );
    Ok((tools, pythons))
}

/// The versions of Python on the `PATH` and in pyenv, one of each.
fn pythons() -> Vec<Python> {
    let pyenv =
        env::var_os("PYENV_ROOT").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".pyenv")));
    let versions = pyenv.and_then(|root| fs::read_dir(root.join("versions")).ok());
    let by_pyenv: Vec<_> =
        versions.into_iter().flatten().flatten().map(|version| version.path().join("bin/python3")).collect();
    let on_path = |minor: u32| PathBuf::from(format!("python3.{minor}"));
    (OLDEST..=NEWEST)
        .filter_map(|minor| {
            let candidates = [on_path(minor)].into_iter().chain(by_pyenv.iter().cloned());
            let program = candidates.into_iter().find(|program| is_version(program, minor))?;
            Some(Python { minor, program })
        })
        .collect()
}

/// Whether it is that version of Python, of the build with the interpreter's lock: the other one
/// needs a wheel of its own.
fn is_version(program: &Path, minor: u32) -> bool {
    let asks = "import sys, sysconfig, venv; print(sys.version_info[1], sysconfig.get_config_var('Py_GIL_DISABLED') or 0)";
    quiet(Command::new(program).args(["-c", asks])).is_ok_and(|said| said.trim() == format!("{minor} 0"))
}

/// Cargo's build folder. The crate is a workspace of its own.
fn target(context: &Context) -> PathBuf {
    context.target.join("python")
}

fn clippy(context: &Context, python: &Python) -> Command {
    let mut command = context.cargo();
    command.args([
        "clippy",
        "--quiet",
        "--locked",
        "--profile",
        PROFILE,
        "--all-targets",
        "--features",
        "pyo3/abi3-py311",
    ]);
    command.arg("--manifest-path").arg(context.root.join("python/Cargo.toml"));
    command.arg("--target-dir").arg(target(context)).args(["--", "-D", "warnings"]);
    command.env("PYO3_PYTHON", &python.program);
    command
}

/// Builds the wheel like the one that is published, and returns its path.
fn wheel(context: &Context, tools: &Path, python: &Python) -> Result<PathBuf> {
    let folder = target(context).join("wheel");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut command = Command::new(tools.with_file_name("maturin"));
    command.args(["build", "--quiet", "--profile", PROFILE, "--locked", "--manifest-path"]);
    command.arg(context.root.join("python/Cargo.toml")).arg("--out").arg(&folder);
    command.arg("--target-dir").arg(target(context)).arg("--interpreter").arg(&python.program);
    quiet(&mut command)?;
    let mut wheels = fs::read_dir(&folder)?.map(|entry| entry.map(|entry| entry.path()));
    let (Some(wheel), None) = (wheels.next().transpose()?, wheels.next()) else {
        bail!("maturin built no wheel, or several");
    };
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ensure!(name.contains(&format!("-cp3{OLDEST}-abi3-")), "{name} is not a wheel for every Python");
    println!("{name}: {} KiB", fs::metadata(&wheel)?.len() / 1024);
    Ok(wheel)
}

/// Where the environment of that Python is.
fn place(context: &Context, python: &Python) -> PathBuf {
    target(context).join(format!("environment-3.{}", python.minor))
}

/// Makes a new environment without any package, installs the wheel in it without an index, and
/// returns the path of its Python.
fn alone(context: &Context, tools: &Path, python: &Python, wheel: &Path) -> Result<PathBuf> {
    let place = place(context, python);
    quiet(Command::new(&python.program).args(["-m", "venv", "--clear", "--without-pip"]).arg(&place))?;
    let program = place.join("bin/python");
    let mut pip = Command::new(tools);
    pip.args(["-m", "pip", "--python"]).arg(&program).args(["install", "--quiet", "--no-index"]).arg(wheel);
    quiet(&mut pip)?;
    Ok(program)
}

impl Environment {
    /// The environment that [`alone`] made, and the packages of the tests for its version of
    /// Python.
    fn new(context: &Context, tools: &Path, python: &Python) -> Result<Self> {
        let requirements = context.root.join("python/tests/requirements.txt");
        let wanted = fs::read_to_string(&requirements)?;
        let packages = context.tools().join(format!("python-package-3.{}", python.minor));
        let program = place(context, python).join("bin/python");
        let stamp = packages.join("requirements.txt");
        if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            let mut pip = Command::new(tools);
            pip.args(["-m", "pip", "--python"]).arg(&program).args([
                "install",
                "--quiet",
                "--upgrade",
                "--target",
            ]);
            quiet(pip.arg(&packages).arg("--requirement").arg(&requirements))?;
            fs::write(&stamp, wanted)?;
        }
        Ok(Self { python: program, packages })
    }

    /// A module of the tests' packages, as a program.
    fn module(&self, name: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.args(["-P", "-m", name]).env("PYTHONPATH", &self.packages);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("MYPY_CACHE_DIR", self.python.with_file_name("mypy"));
        command
    }

    /// Our tests, and the examples of the documents.
    fn tests(&self, context: &Context) -> Command {
        let folder = context.root.join("python");
        let mut command = self.module("pytest");
        command.args(["-q", "--doctest-glob=README.md", "--doctest-modules", "tests", "README.md"]);
        command.args(["--pyargs", "bulla_hash"]).current_dir(folder);
        command.env("HYPOTHESIS_STORAGE_DIRECTORY", self.python.with_file_name("hypothesis"));
        command.env("BULLA_VECTORS", context.root.join("spec/vectors"));
        command
    }
}

/// Fetches the source of the official package, and returns the path of its tests, which import our
/// package instead.
fn official_tests(context: &Context, tools: &Path) -> Result<PathBuf> {
    let source = context.tools().join(format!("python-{OFFICIAL}"));
    if !source.join("tests").is_dir() {
        fetch(tools, &source)?;
    }
    let folder = target(context).join("official-tests");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let (mut changed, mut tests) = (0, 0);
    for entry in fs::read_dir(source.join("tests"))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        let ours = text.replace("from blake3 import", "from bulla_hash import");
        changed += usize::from(ours != text);
        tests += ours.lines().filter(|line| line.starts_with("def test_")).count();
        fs::write(folder.join(path.file_name().unwrap_or_default()), ours)?;
    }
    ensure!(changed > 0 && tests >= OFFICIAL_TESTS, "{OFFICIAL} has {tests} tests in {changed} files");
    Ok(folder)
}

/// Unpacks the source package into `folder`. pip asks its build backend, maturin, for its metadata.
fn fetch(tools: &Path, folder: &Path) -> Result<()> {
    let work = folder.with_extension("fetch");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    let mut path = OsString::from(tools.parent().context("a program without a folder")?);
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let mut pip = Command::new(tools);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation", "--no-binary=:all:"]);
    quiet(pip.arg("--dest").arg(&work).arg(OFFICIAL).env("PATH", path))?;
    let archive = fs::read_dir(&work)?.next().context("pip fetched nothing")??.path();
    let mut tar = Command::new("tar");
    quiet(tar.arg("-xzf").arg(&archive).arg("-C").arg(&work).arg("--strip-components=1"))?;
    fs::rename(&work, folder).with_context(|| format!("cannot make {}", folder.display()))
}
