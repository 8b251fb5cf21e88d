//! Programs that measure: one launch, one process, records on its standard output. The Rust
//! laboratory is built once for each instruction set to which the official crate is restricted.

use std::{
    ffi::OsString,
    fmt, fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{Context, build_program, install, quiet};

/// The kernel of ours that a harness uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// The kernel that detection chooses.
    Default,
    /// The kernel with this name.
    Forced(String),
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => Ok(()),
            Self::Forced(name) => write!(f, ", {name}"),
        }
    }
}

/// The cases to measure. An empty list means no restriction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The sizes of an operation in bytes.
    pub(crate) sizes: Vec<u64>,
    /// Beginnings of the names of cases; after an equals sign, whole names.
    pub(crate) cases: Vec<String>,
}

impl Selection {
    /// Whether it includes a case. A harness in another language may measure more cases.
    pub(crate) fn takes(&self, suite: &str, case: &str, bytes: u64) -> bool {
        let full = format!("{suite}/{case}");
        let begins = |prefix: &String| match prefix.strip_prefix('=') {
            Some(name) => case == name || full == name,
            None => case.starts_with(prefix.as_str()) || full.starts_with(prefix.as_str()),
        };
        (self.sizes.is_empty() || self.sizes.contains(&bytes))
            && (self.cases.is_empty() || self.cases.iter().any(begins))
    }
}

/// A harness that is ready to be launched.
#[derive(Debug)]
pub(crate) struct Harness {
    /// The suite, which every record must name.
    pub(crate) suite: &'static str,
    /// The program to launch.
    pub(crate) program: PathBuf,
    /// Its first arguments.
    pub(crate) arguments: Vec<String>,
    /// The folder in which it runs.
    pub(crate) folder: PathBuf,
    /// The variable that forces a kernel of ours, and the kernel.
    pub(crate) force: (&'static str, Kernel),
    /// How it gets the options of a launch.
    pub(crate) language: Language,
}

/// How a harness gets the options of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// The Rust laboratory, by arguments.
    Laboratory,
    /// Any other, by the variables `BULLA_BENCH_LAUNCH`, `BULLA_BENCH_CASES` and
    /// `BULLA_BENCH_SIZES`.
    Foreign,
}

impl Harness {
    /// The command for one launch.
    pub(crate) fn command(&self, launch: u32, selection: &Selection) -> Command {
        let words =
            [self.program.clone().into()].into_iter().chain(self.arguments.iter().map(OsString::from));
        let words: Vec<OsString> = self.before(launch).into_iter().map(OsString::from).chain(words).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&self.folder);
        let (variable, kernel) = &self.force;
        match kernel {
            Kernel::Forced(name) => command.env(variable, name),
            // A variable from the environment must not change the default.
            Kernel::Default => command.env_remove(variable),
        };
        let sizes = selection.sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let cases: Vec<_> = match self.language {
            Language::Laboratory => selection.cases.clone(),
            // Other harnesses know only beginnings of names; surplus records are dropped.
            Language::Foreign => {
                selection.cases.iter().map(|case| case.trim_start_matches('=').to_owned()).collect()
            }
        };
        let told = [("launch", launch.to_string()), ("sizes", sizes), ("cases", cases.join(","))];
        for (name, value) in told.into_iter().filter(|(_, value)| !value.is_empty()) {
            match self.language {
                Language::Laboratory => command.arg(format!("--{name}")).arg(value),
                Language::Foreign => command.env(format!("BULLA_BENCH_{}", name.to_uppercase()), value),
            };
        }
        command
    }

    /// The command before the program: it gives the program a high priority, if the system permits
    /// that, and one processor, which changes from launch to launch, unless the suite has threads.
    fn before(&self, launch: u32) -> Vec<String> {
        let mut words = Vec::new();
        if may_hurry() {
            words.extend(["nice", "-n", HIGHEST_NICENESS].map(str::to_owned));
        }
        let processors = processors();
        if !THREADED_SUITES.contains(&self.suite) && !processors.is_empty() && install::on_path("taskset") {
            let processor = processors[launch as usize % processors.len()];
            words.extend(["taskset".to_owned(), "-c".to_owned(), processor.to_string()]);
        }
        words
    }
}

/// The niceness of a harness with high priority: the lowest possible one.
const HIGHEST_NICENESS: &str = "-20";

/// Suites that measure threads: they need all processors.
pub(crate) const THREADED_SUITES: [&str; 8] =
    ["threads", "thread-scaling", "ed25519-threads", "kms-threads", "go", "js", "kms-http", "files"];

/// Whether this user may give a process a high priority. `nice` itself only warns.
fn may_hurry() -> bool {
    let probe = Command::new("nice").args(["-n", HIGHEST_NICENESS, "true"]).stdin(Stdio::null()).output();
    probe.is_ok_and(|output| output.status.success() && output.stderr.is_empty())
}

/// The processors that this process may use, if Linux reports them.
fn processors() -> Vec<u32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map(|list| ranges(list.trim())).unwrap_or_default()
}

/// Reads `0-2,5`.
fn ranges(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// The kernels that this machine can run, each forced.
pub(crate) fn laboratory_kernels(context: &Context, suite: &str) -> Result<Vec<Kernel>> {
    let names = quiet(Command::new(build_laboratory(context, &Kernel::Default)?).args(["kernels", suite]))?;
    Ok(names.lines().map(|name| Kernel::Forced(name.to_owned())).collect())
}

/// The features of the laboratory that restrict the official crate to the instruction set of our
/// kernel.
fn peer_features(kernel: &Kernel) -> Result<&'static [&'static str]> {
    const X86: [&str; 4] = ["peer-no-avx512", "peer-no-avx2", "peer-no-sse41", "peer-no-sse2"];
    let Kernel::Forced(name) = kernel else { return Ok(&[]) };
    Ok(match name.as_str() {
        "x86_64/avx512" | "aarch64/neon" | "wasm32/simd128" => &[],
        "x86_64/avx2" => X86.split_at(1).0,
        "x86_64/sse4.1" => X86.split_at(2).0,
        "portable" if cfg!(target_arch = "aarch64") => &["peer-no-neon"],
        // The peer has no vector code for any other machine.
        "portable" if !cfg!(target_arch = "x86_64") => &[],
        "portable" => &X86,
        "powerpc64/vsx" | "s390x/vector" => &[],
        name => bail!("no kernel {name}; kernels are named as in x86_64/avx2, aarch64/neon, portable"),
    })
}

/// Builds the program of a package with the names and frames that a profiler needs, and returns its
/// path.
pub(crate) fn build_with_symbols(context: &Context, package: &str) -> Result<PathBuf> {
    let mut command = context.cargo();
    command.args(["build", "--quiet", "-p", package, "--profile", "flame"]);
    command.args([
        "--config",
        "profile.flame.inherits=\"dist\"",
        "--config",
        "profile.flame.debug=\"line-tables-only\"",
    ]);
    command.args(["--config", "profile.flame.strip=false"]);
    build_program(&mut command)
}

/// Builds the laboratory for `kernel`, and keeps the program under a separate name.
pub(crate) fn build_laboratory(context: &Context, kernel: &Kernel) -> Result<PathBuf> {
    let features = peer_features(kernel)?;
    let mut command = context.cargo();
    command.args([
        "build",
        "--quiet",
        "--profile=dist",
        "-p",
        "bulla-lab",
        "--features",
        &features.join(","),
    ]);
    let built = build_program(&mut command)?;
    // The next build, for another peer, replaces cargo's own copy.
    let folder = context.target.join("lab");
    fs::create_dir_all(&folder)?;
    let name = [&["bulla-lab"], features].concat().join("-");
    let kept = folder.join(name);
    fs::copy(&built, &kept).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(kept)
}

/// Builds the Ed25519 peers, which are a separate workspace. Its script `rustc.sh` lists the crates
/// that are built only for this machine.
pub(crate) fn build_native(context: &Context, folder: &str) -> Result<PathBuf> {
    ensure!(
        has_ifma(),
        "two of the peers have code for AVX-512 IFMA alone, which this machine lacks: measure `cargo xtask bench ed25519` here"
    );
    let folder = context.root.join(folder);
    let target = context.target.join("native-peers");
    let mut command = context.cargo();
    command.args(["build", "--quiet", "--release", "--locked", "--target-dir"]).arg(target);
    command.env("RUSTC_WRAPPER", folder.join("rustc.sh")).env_remove("RUSTFLAGS").current_dir(&folder);
    build_program(&mut command)
}

#[cfg(target_arch = "x86_64")]
fn has_ifma() -> bool {
    std::arch::is_x86_feature_detected!("avx512ifma")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_ifma() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harness(language: Language, kernel: Kernel) -> Harness {
        let force = ("BULLA_BLAKE3_FORCE_KERNEL", kernel);
        let arguments = vec!["measure".to_owned()];
        Harness { suite: "x", program: "harness".into(), arguments, folder: ".".into(), force, language }
    }

    fn selection() -> Selection {
        Selection { sizes: vec![64, 65], cases: vec![] }
    }

    #[test]
    fn the_laboratory_is_told_by_arguments() {
        let command = harness(Language::Laboratory, Kernel::Default).command(3, &selection());
        let arguments: Vec<_> = command.get_args().skip_while(|word| *word != "measure").collect();
        assert_eq!(arguments, ["measure", "--launch", "3", "--sizes", "64,65"]);
        let variables: Vec<_> = command.get_envs().collect();
        assert_eq!(variables, [("BULLA_BLAKE3_FORCE_KERNEL".as_ref(), None)]);
    }

    #[test]
    fn others_are_told_by_variables() {
        let command = harness(Language::Foreign, Kernel::Forced("portable".into())).command(3, &selection());
        let variables: Vec<_> = command.get_envs().map(|(k, v)| (k.to_str().unwrap(), v.unwrap())).collect();
        let expected = [
            ("BULLA_BENCH_LAUNCH", "3"),
            ("BULLA_BENCH_SIZES", "64,65"),
            ("BULLA_BLAKE3_FORCE_KERNEL", "portable"),
        ];
        assert_eq!(variables, expected.map(|(name, value)| (name, value.as_ref())));
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(ranges("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(ranges(""), [0_u32; 0]);
    }

    #[test]
    fn whole_names_are_taken_exactly_and_told_to_others_as_beginnings() {
        let selection = Selection { sizes: vec![], cases: vec!["=hash/64".into()] };
        assert!(selection.takes("go", "hash/64", 64) && !selection.takes("go", "hash/640", 640));
        let command = harness(Language::Foreign, Kernel::Default).command(1, &selection);
        assert!(command.get_envs().any(|(_, value)| value == Some("hash/64".as_ref())));
    }

    #[test]
    fn what_was_not_asked_for_is_not_taken() {
        let selection = Selection { sizes: vec![64], cases: vec!["hash".into(), "go/keyed".into()] };
        assert!(selection.takes("go", "hash/64", 64) && selection.takes("go", "keyed/64", 64));
        assert!(!selection.takes("go", "hash/65", 65) && !selection.takes("go", "many/64", 64));
        assert!(Selection::default().takes("go", "many/64", 64));
    }

    #[test]
    fn the_peer_is_held_to_the_kernels_instruction_set() {
        let features = |name: &str| peer_features(&Kernel::Forced(name.to_owned()));
        assert_eq!(peer_features(&Kernel::Default).unwrap(), &[] as &[&str]);
        assert!(features("x86_64/avx512").unwrap().is_empty());
        assert_eq!(features("x86_64/avx2").unwrap(), ["peer-no-avx512"]);
        assert_eq!(features("x86_64/sse4.1").unwrap(), ["peer-no-avx512", "peer-no-avx2"]);
        assert!(features("x86_64/avx3").is_err());
    }
}
