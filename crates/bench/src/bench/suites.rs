//! The suites, and the harness that measures each.

use std::process::Command;

use anyhow::Result;
use bulla_devtools::{
    Context,
    install::{self, DebianTool, node_packages, rust_target},
    quiet,
};
use bulla_record::LABORATORY;

use super::harness::{self, Harness, Kernel, Language};

/// A suite by its name.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    measured_by: By,
}

#[derive(Debug)]
enum By {
    Laboratory,
    Native(&'static Native),
    Foreign(&'static Foreign),
}

/// A program of the laboratory in a separate workspace, whose peers are built only for this
/// machine.
#[derive(Debug)]
struct Native {
    suite: &'static str,
    folder: &'static str,
    /// The variable that forces a kernel of ours.
    force: &'static str,
}

const ED25519_NATIVE: Native = Native {
    suite: "ed25519-native",
    folder: "crates/lab/ed25519-native",
    force: "BULLA_ED25519_FORCE_KERNEL",
};

/// A harness in another language: a command in a folder. It prints records in the form of
/// `spec/bench-record.md`.
#[derive(Debug)]
struct Foreign {
    suite: &'static str,
    folder: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// The variable that forces a kernel of ours.
    force: &'static str,
    /// Installs or builds what the command needs.
    prepare: fn(&Context) -> Result<()>,
}

static FOREIGN: [Foreign; 3] = [C, GO, JS];

const C: Foreign = Foreign {
    suite: "c",
    folder: "c/bench",
    program: "../../target/c-bench/bench",
    arguments: &[
        "--records",
        "../../target/c-bench/prefix/lib/libbulla.so.0",
        "../../target/c-bench/prefix/lib/libblake3.so.0",
        "../../target/c-bench/libofficial.so",
    ],
    force: BLAKE3,
    prepare: c,
};

const GO: Foreign = Foreign {
    suite: "go",
    folder: "go/bench",
    program: "go",
    arguments: &["run", ".", "-records"],
    force: BLAKE3,
    prepare: |_| Ok(()),
};

const JS: Foreign = Foreign {
    suite: "js",
    folder: "js/bench",
    program: "node",
    arguments: &["main.js"],
    force: BLAKE3,
    prepare: javascript,
};

/// Builds and installs our C libraries, and builds the official one and the harness.
fn c(context: &Context) -> Result<()> {
    for program in ["gcc", "make", "nasm"] {
        install::debian(&DebianTool { program, package: program })?;
    }
    quiet(Command::new("make").arg("--silent").current_dir(context.root.join("c/bench")))?;
    Ok(())
}

/// Builds the npm package, and the official crate as WebAssembly, because no package in the
/// registry has it.
fn javascript(context: &Context) -> Result<()> {
    let folder = context.root.join("js");
    node_packages(&folder)?;
    node_packages(&folder.join("bench"))?;
    quiet(Command::new("node").arg("scripts/build.js").current_dir(&folder))?;
    rust_target("wasm32-unknown-unknown")?;
    let peer = folder.join("bench/official-wasm");
    let mut build = context.cargo();
    build.args([
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--target=wasm32-unknown-unknown",
        "--target-dir=target",
    ]);
    build.env("RUSTFLAGS", "-C target-feature=+simd128 -C link-arg=-zstack-size=65536").current_dir(peer);
    quiet(&mut build)?;
    Ok(())
}

/// The variable that forces a BLAKE3 kernel.
const BLAKE3: &str = "BULLA_BLAKE3_FORCE_KERNEL";

/// Suites of the laboratory whose kernels another variable forces.
const FORCED_BY: [(&str, &str); 5] = [
    ("blake2", "BULLA_BLAKE2_FORCE_KERNEL"),
    ("ed25519", "BULLA_ED25519_FORCE_KERNEL"),
    ("ed25519-threads", "BULLA_ED25519_FORCE_KERNEL"),
    ("kms", "BULLA_ED25519_FORCE_KERNEL"),
    ("kms-threads", "BULLA_ED25519_FORCE_KERNEL"),
];

/// The name for all suites that measure BLAKE3 in Rust.
const ALL_BLAKE3: &str = "blake3";

/// The suite in which every kernel is forced, one after the other.
const BY_KERNEL: &str = "kernel-ab";

/// The names of suites that `cargo xtask bench` accepts.
pub(crate) fn names() -> Vec<&'static str> {
    let foreign = FOREIGN.iter().map(|foreign| foreign.suite);
    [ALL_BLAKE3].into_iter().chain(LABORATORY).chain([ED25519_NATIVE.suite]).chain(foreign).collect()
}

/// Every suite.
pub(crate) fn every() -> Vec<Suite> {
    names().into_iter().filter(|name| *name != ALL_BLAKE3).flat_map(find).collect()
}

/// The suites with this name.
pub(crate) fn find(name: &str) -> Vec<Suite> {
    let is_blake3 = |suite: &str| FORCED_BY.iter().all(|(other, _)| *other != suite);
    let wanted = |suite: &str| suite == name || (name == ALL_BLAKE3 && is_blake3(suite));
    let laboratory = LABORATORY.into_iter().filter(|suite| wanted(suite));
    let native = [&ED25519_NATIVE].into_iter().filter(|native| native.suite == name);
    let foreign = FOREIGN.iter().filter(|foreign| foreign.suite == name);
    laboratory
        .map(|name| Suite { name, measured_by: By::Laboratory })
        .chain(native.map(|native| Suite { name: native.suite, measured_by: By::Native(native) }))
        .chain(foreign.map(|foreign| Suite { name: foreign.suite, measured_by: By::Foreign(foreign) }))
        .collect()
}

impl Suite {
    /// Whether the suite measures every kernel, rather than the one that detection chooses.
    pub(crate) fn is_by_kernel(&self) -> bool {
        self.name == BY_KERNEL
    }

    /// Builds the harness.
    pub(crate) fn prepare(&self, context: &Context, kernel: &Kernel) -> Result<Harness> {
        match self.measured_by {
            By::Laboratory => Ok(Harness {
                suite: self.name,
                program: harness::build_laboratory(context, kernel)?,
                arguments: vec!["measure".to_owned(), self.name.to_owned()],
                folder: context.root.clone(),
                force: (laboratory_force(self.name), kernel.clone()),
                language: Language::Laboratory,
            }),
            By::Native(native) => Ok(Harness {
                suite: self.name,
                program: harness::build_native(context, native.folder)?,
                arguments: vec![],
                folder: context.root.clone(),
                force: (native.force, kernel.clone()),
                language: Language::Foreign,
            }),
            By::Foreign(foreign) => {
                (foreign.prepare)(context)?;
                Ok(Harness {
                    suite: self.name,
                    program: foreign.program.into(),
                    arguments: foreign.arguments.iter().map(|&argument| argument.to_owned()).collect(),
                    folder: context.root.join(foreign.folder),
                    force: (foreign.force, kernel.clone()),
                    language: Language::Foreign,
                })
            }
        }
    }
}

fn laboratory_force(suite: &str) -> &'static str {
    FORCED_BY.iter().find(|(name, _)| *name == suite).map_or(BLAKE3, |(_, variable)| variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_for_suites() {
        for name in names() {
            let found = find(name);
            assert!(!found.is_empty(), "{name}");
            assert!(name == ALL_BLAKE3 || found.len() == 1, "{name}");
        }
        assert!(find("sha1").is_empty());
    }

    #[test]
    fn every_suite_is_there_once() {
        let suites: Vec<_> = every().iter().map(|suite| suite.name).collect();
        assert_eq!(suites, names().split_off(1));
    }

    #[test]
    fn blake3_stands_for_all_of_blake3() {
        let found: Vec<_> = find(ALL_BLAKE3).iter().map(|suite| suite.name).collect();
        assert!(found.starts_with(&["oneshot"]) && found.contains(&BY_KERNEL), "{found:?}");
        assert!(!found.contains(&"go") && !found.contains(&"blake2"), "{found:?}");
    }
}
