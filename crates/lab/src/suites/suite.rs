//! What a suite is: cases, each of ours beside its peers.

use anyhow::Result;

use crate::measure::Subject;

/// A set of cases about one subject.
pub struct Suite {
    /// The name on the command line.
    pub name: &'static str,
    /// All cases, in the order of the table.
    pub cases: fn() -> Vec<Case>,
    /// The kernel of ours that is in use; an error if the environment forces one that this machine lacks.
    pub active_kernel: fn() -> Result<Active>,
    /// The kernels of ours that this machine can run.
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

/// Makes an implementation of a case, fresh for a launch.
pub type Make = Box<dyn Fn() -> Box<dyn Subject>>;

/// One case of a suite: ours beside one peer or several.
pub struct Case {
    /// The name within the suite, such as `hash/64`: a group, and what varies within it.
    pub id: String,
    /// How many bytes one operation reads, or for extendable output, writes.
    pub bytes: usize,
    /// The length of the random input.
    pub input: usize,
    /// The length of each input, for cases of many.
    pub part: Option<usize>,
    /// Ours.
    pub ours: Make,
    /// The peers, at least one. The first one also runs as the control.
    pub peers: Vec<Peer>,
}

/// What ours is compared with.
pub struct Peer {
    /// Its name, for a crate that of the package.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// The instruction set that it was held back to, such as `avx2`, or empty.
    pub held_to: &'static str,
    /// Makes it.
    pub make: Make,
}

impl Peer {
    /// A crate of the lock file, free to use all that the machine has.
    pub fn of_package(name: &'static str, make: impl Fn() -> Box<dyn Subject> + 'static) -> Self {
        Self { name, version: locked_version(name).to_owned(), held_to: "", make: Box::new(make) }
    }
}

/// The version of a package that the laboratory depends on, by the workspace's lock file: the one that this build has.
pub(crate) fn locked_version(package: &str) -> &'static str {
    version_in(include_str!("../../../../Cargo.lock"), "bulla-lab", package)
}

/// The version of `package` that `dependent` depends on, by a lock file. Where there are several, the list of dependencies says which.
pub fn version_in<'a>(lock: &'a str, dependent: &str, package: &str) -> &'a str {
    let entry = |name: &str| {
        lock.split("[[package]]").find(|entry| entry.contains(&format!("\nname = \"{name}\"\n")))
    };
    let among = |dependent: &'a str| dependent.split_once(&format!("\n \"{package} "))?.1.split_once('"');
    let only = |package: &'a str| package.split_once("\nversion = \"")?.1.split_once('"');
    let version = entry(dependent).and_then(among).or_else(|| entry(package).and_then(only));
    version.map_or("of unknown version", |(version, _)| version)
}
