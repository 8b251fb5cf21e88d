//! The types of suites: cases, each with ours and its peers.

use anyhow::Result;

use crate::measure::Subject;

/// A set of cases about one subject.
pub struct Suite {
    /// The name on the command line.
    pub name: &'static str,
    /// All cases, in the order of the table.
    pub cases: fn() -> Vec<Case>,
    /// Our kernel in use; an error if the environment forces one that this machine lacks.
    pub active_kernel: fn() -> Result<Active>,
    /// Our kernels that this machine can run.
    pub kernels: fn() -> Vec<String>,
}

/// The kernel in use.
#[derive(Clone, Debug)]
pub struct Active {
    /// Its name, such as `x86_64/avx512`.
    pub name: String,
    /// Whether the environment forced it, rather than detection choosing it.
    pub forced: bool,
}

/// Makes a new implementation of a case for a launch.
pub type Make = Box<dyn Fn() -> Box<dyn Subject>>;

/// One case of a suite: ours and one or more peers.
pub struct Case {
    /// The name within the suite, such as `hash/64`: a group, and what varies within it.
    pub id: String,
    /// The number of bytes that one operation reads or, for extendable output, writes.
    pub bytes: usize,
    /// The length of the random input.
    pub input: usize,
    /// The length of each input, for cases with many inputs.
    pub part: Option<usize>,
    /// Ours.
    pub ours: Make,
    /// The peers, at least one. The first one also runs as the control.
    pub peers: Vec<Peer>,
}

/// An implementation with which ours is compared.
pub struct Peer {
    /// Its name; for a crate, the package's name.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// The instruction set to which it was restricted, such as `avx2`, or empty.
    pub isa_limit: &'static str,
    /// Makes it.
    pub make: Make,
}

impl Peer {
    /// A crate of the lock file, which may use everything that the machine has.
    pub fn of_package(name: &'static str, make: impl Fn() -> Box<dyn Subject> + 'static) -> Self {
        Self { name, version: locked_version(name).to_owned(), isa_limit: "", make: Box::new(make) }
    }
}

/// The version of a package that the laboratory depends on, from the workspace's lock file: the
/// version in this build.
pub(crate) fn locked_version(package: &str) -> &'static str {
    version_in(include_str!("../../../../Cargo.lock"), "bulla-lab", package)
}

/// The version of `package` that `dependent` depends on, from a lock file. If there are several
/// versions, the list of dependencies decides.
pub fn version_in<'a>(lock: &'a str, dependent: &str, package: &str) -> &'a str {
    let entry = |name: &str| {
        lock.split("[[package]]").find(|entry| entry.contains(&format!("\nname = \"{name}\"\n")))
    };
    let among = |dependent: &'a str| dependent.split_once(&format!("\n \"{package} "))?.1.split_once('"');
    let only = |package: &'a str| package.split_once("\nversion = \"")?.1.split_once('"');
    let version = entry(dependent).and_then(among).or_else(|| entry(package).and_then(only));
    version.map_or("of unknown version", |(version, _)| version)
}
