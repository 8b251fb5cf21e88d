//! The arguments of `bulla audit`.

use bulla_command::color::ColorWhen;
use clap::Parser;
use std::path::PathBuf;

/// Show which vector instructions and kernels a compiled binary really contains
///
/// bulla reads ELF, Mach-O and PE executables, libraries, object files and static archives for
/// x86-64 and AArch64. It counts the instructions that name each kind of vector register: in total,
/// per crate and per function. For each known kernel it says whether the kernel is present,
/// inlined, lost, or not linked.
///
/// With --baseline, bulla compares BINARY with a good build of the same program. It reports
/// `bloated` if BINARY has many times the vector instructions, `kernel lost` if a kernel is
/// missing, and `wide vectors outside known kernels` if the compiler generated many wide vector
/// instructions of its own. The baseline is a binary, or the --json output for one.
///
/// With --crates, bulla searches the sources of a project's dependencies for code that makes
/// compilers lose kernels.
#[derive(Parser)]
#[command(name = "bulla-audit", bin_name = "bulla audit", version, max_term_width = 100)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  bulla audit target/release/node
  bulla audit node --baseline node-official         compare with a good build
  bulla audit node --json > good.json               save the report on a good build ...
  bulla audit node --baseline good.json             ... and compare with it in CI
  bulla audit node --rules my-kernels.toml --markdown
  bulla audit --crates --manifest-path ../node/Cargo.toml

Exit status: 0 no problem found, 1 a kernel is lost, a binary is bloated, or a dependency is affected, 2 something could not be read.")]
pub(crate) struct AuditArgs {
    /// The binaries to audit, or `-` for standard input
    #[arg(required_unless_present = "crates", conflicts_with = "crates", value_name = "BINARY")]
    pub(crate) binaries: Vec<PathBuf>,

    /// Compare with this binary, or with the --json output for it
    #[arg(short, long, value_name = "FILE", conflicts_with = "crates")]
    pub(crate) baseline: Option<PathBuf>,

    /// Also look for the kernels that FILE describes in TOML; a rule replaces the built-in rule of
    /// the same name
    #[arg(short, long, value_name = "FILE", conflicts_with = "crates")]
    pub(crate) rules: Vec<PathBuf>,

    /// Read the thresholds and the list of required kernels from FILE in TOML
    #[arg(short, long, value_name = "FILE", conflicts_with = "crates")]
    pub(crate) config: Option<PathBuf>,

    /// The number of crates and of functions to print; --json prints all
    #[arg(short, long, value_name = "N", default_value_t = 10, conflicts_with = "crates")]
    pub(crate) top: usize,

    /// The maximum number of threads; 0 means RAYON_NUM_THREADS, or else the number of processors
    #[arg(long, value_name = "NUM", default_value_t = 0, hide_default_value = true)]
    pub(crate) num_threads: usize,

    /// Search the sources of a project's dependencies instead of reading a binary
    #[arg(long)]
    pub(crate) crates: bool,

    /// The project's Cargo.toml [default: the one in the current folder or in a folder above it]
    #[arg(long, value_name = "PATH", requires = "crates")]
    pub(crate) manifest_path: Option<PathBuf>,

    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,

    /// Print JSON Lines, one object per line, instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// When to use color; NO_COLOR, CLICOLOR and CLICOLOR_FORCE are respected
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_command::tree::CommandTree;
    use clap::CommandFactory;

    #[test]
    fn the_help_has_examples_and_exit_statuses() {
        let tree = CommandTree::of(&AuditArgs::command());
        assert_eq!(tree.missing_help("bulla audit"), Vec::<String>::new());
    }
}
