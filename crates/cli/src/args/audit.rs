//! The arguments of `bulla audit`.

use clap::Args;
use std::path::PathBuf;

/// Show which vector instructions and which kernels are really in compiled binaries
///
/// Reads ELF, Mach-O and PE executables, libraries, object files and static archives for x86-64 and AArch64. Prints how many instructions
/// name each kind of vector register, in all, by crate and by function, and for each known kernel whether it is present, inlined, lost, or
/// not linked.
///
/// With --baseline, BINARY is compared with a good build of it: `bloated` when there are many times its vector instructions, `kernel lost`
/// when a kernel is gone, `wide vectors outside known kernels` when the compiler made many of its own. The baseline is a binary, or what
/// --json printed of one.
///
/// With --crates, the sources of a project's dependencies are searched for code that makes compilers lose kernels.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla audit target/release/node
  bulla audit node --baseline node-official         compare with a good build
  bulla audit node --json > good.json               keep what a good build has ...
  bulla audit node --baseline good.json             ... and compare with that, in CI
  bulla audit node --rules my-kernels.toml --markdown
  bulla audit --crates --manifest-path ../node/Cargo.toml

Exit status: 0 all is well, 1 a kernel is lost, the binary is bloated, or a dependency is affected, 2 something could not be read.")]
pub(crate) struct AuditArgs {
    /// The binaries to audit; - is standard input
    #[arg(required_unless_present = "crates", conflicts_with = "crates", value_name = "BINARY")]
    pub(crate) binaries: Vec<PathBuf>,

    /// Compare with this binary, or with what --json printed of it
    #[arg(short, long, value_name = "FILE", conflicts_with = "crates")]
    pub(crate) baseline: Option<PathBuf>,

    /// Look for the kernels that FILE describes in TOML, too; a rule with the name of a built-in one replaces it
    #[arg(short, long, value_name = "FILE", conflicts_with = "crates")]
    pub(crate) rules: Vec<PathBuf>,

    /// Read thresholds, and which kernels must be there, from FILE in TOML
    #[arg(short, long, value_name = "FILE", conflicts_with = "crates")]
    pub(crate) config: Option<PathBuf>,

    /// How many crates and functions to print; --json has all
    #[arg(short, long, value_name = "N", default_value_t = 10, conflicts_with = "crates")]
    pub(crate) top: usize,

    /// The maximum number of threads; 0 means RAYON_NUM_THREADS or the number of processors
    #[arg(long, value_name = "NUM", default_value_t = 0, hide_default_value = true)]
    pub(crate) num_threads: usize,

    /// Search the sources of a project's dependencies instead of a binary
    #[arg(long)]
    pub(crate) crates: bool,

    /// The project's Cargo.toml [default: that of the current folder or one above]
    #[arg(long, value_name = "PATH", requires = "crates")]
    pub(crate) manifest_path: Option<PathBuf>,

    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,

    /// Print one JSON object a line instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
