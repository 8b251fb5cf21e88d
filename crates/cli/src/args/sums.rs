//! The flags of `bulla sum` and `bulla check`.

use super::TrustArgs;
use super::shared::{ReportArgs, WorkArgs, size};
use crate::algorithm::{Algorithm, parser};
use clap::Args;
use std::path::PathBuf;

/// How bulla reads files.
#[derive(Args, Clone, Copy)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) work: WorkArgs,

    /// Read one file after another, each from start to end, with one thread: best for spinning
    /// disks
    ///
    /// Otherwise all threads share a large file. Where mapping it into memory is quicker than
    /// reading it, bulla maps it. The flag has the name that b3sum gives it.
    #[arg(long)]
    pub(crate) no_mmap: bool,
}

/// Which folders are walked, and how.
#[derive(Args, Clone)]
#[command(next_help_heading = "Folders")]
pub(crate) struct WalkArgs {
    /// Hash all files in folders; other flags leave some out
    ///
    /// bulla visits a folder's content sorted by the bytes of the paths. Fifos, sockets, devices
    /// and links are left out.
    #[arg(short, long)]
    pub(crate) recursive: bool,

    #[command(flatten)]
    pub(crate) filters: FilterArgs,
}

/// Which files of a folder count.
#[derive(Args, Clone)]
#[command(next_help_heading = "Folders")]
pub(crate) struct FilterArgs {
    /// Only files that match GLOB, as in .gitignore; after `!`, only files that do not; may be
    /// given several times
    #[arg(short, long, value_name = "GLOB")]
    pub(crate) glob: Vec<String>,

    /// Only files of this type, for example rust, py or jpeg: the types of ripgrep; may be given
    /// several times
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,

    /// Only files of at least SIZE: a number of bytes, or with K, M, G or T for powers of 1024
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) min_size: Option<u64>,

    /// Only files of at most SIZE
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_size: Option<u64>,

    /// Leave out what .gitignore and git's other lists of ignored files name, and .git
    #[arg(long)]
    pub(crate) gitignore: bool,

    /// Leave out files and folders whose names begin with a dot
    #[arg(long)]
    pub(crate) no_hidden: bool,

    /// Follow symbolic links; a link that leads back to a folder around it is an error
    #[arg(short = 'L', long)]
    pub(crate) follow: bool,

    /// Stay on the file system of each folder that was named
    #[arg(short = 'x', long)]
    pub(crate) one_file_system: bool,
}

impl FilterArgs {
    /// The first of these flags that was given.
    pub(crate) fn first(&self) -> Option<&'static str> {
        let given = [
            ("--glob", !self.glob.is_empty()),
            ("--type", !self.types.is_empty()),
            ("--min-size", self.min_size.is_some()),
            ("--max-size", self.max_size.is_some()),
            ("--gitignore", self.gitignore),
            ("--no-hidden", self.no_hidden),
            ("--follow", self.follow),
            ("--one-file-system", self.one_file_system),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }
}

/// Print BLAKE3 checksums like b3sum, or BLAKE2 and SHA-2 checksums like b2sum, sha256sum and
/// sha512sum
///
/// Without FILE, or if FILE is `-`, bulla reads standard input. A file that changes while bulla
/// reads it is an error.
///
/// Flags, output and exit status are the same as in b3sum 1.8, with these differences. With
/// --check, an empty list is an error (b3sum: success), and only regular files and standard input
/// are read. If a list cannot be read, bulla still checks the lists after it (b3sum stops). Control
/// characters in names are escaped on a terminal, and always with --check. The messages on standard
/// error are worded differently, and --version prints bulla's version.
///
/// With --recursive, folders are walked; a file in them that takes the output is left out. With
/// --tree, bulla prints one digest for each folder. It covers the names, kinds, executable bits and
/// contents of everything in the folder, so a file in it cannot take the output. An interrupt
/// (Ctrl-C) ends the command when the files at hand are done: what was printed is complete up to
/// there. With --resume, the same command goes on later.
#[derive(Args)]
#[command(
    version,
    after_help = "\
Examples:
  bulla sum *.iso > SUMS
  bulla sum -r photos > SUMS
  bulla sum -r src --glob '*.rs' --gitignore
  bulla sum -r /archive --idle --resume SUMS     begin SUMS; after an interrupt, go on with it
  find . -newer SUMS -type f -print0 | bulla sum --files0-from -
  bulla sum --tree release-1.2
  bulla sum disk.img --outboard disk.img.obao
  tar c src | bulla sum
  bulla sum --length 64 --no-names file
  bulla sum --keyed file < key.bin
  bulla sum --algorithm sha256 *.iso > SHA256SUMS

Exit status: 0 everything hashed, 1 something could not be hashed or (with --check) does not match, 2 wrong flags, 130 interrupted."
)]
pub(crate) struct SumArgs {
    /// Files to hash, and with --recursive or --tree folders; with --check, lists of checksums
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The hash function [default: blake3; with --check, the one that the line names]
    #[arg(short, long, value_parser = parser(), value_name = "NAME")]
    pub(crate) algorithm: Option<Algorithm>,

    /// Use BLAKE3's keyed mode; bulla reads the 32-byte key from standard input
    #[arg(long, requires = "files")]
    pub(crate) keyed: bool,

    /// Use BLAKE3's key derivation mode, with this context string
    #[arg(long, value_name = "CONTEXT", conflicts_with = "keyed")]
    pub(crate) derive_key: Option<String>,

    /// The number of output bytes, before hex encoding [default: 32; blake2b, blake2bp and sha512:
    /// 64]
    #[arg(short, long, value_name = "LEN")]
    pub(crate) length: Option<u64>,

    /// The offset of the first output byte, before hex encoding; BLAKE3 only
    #[arg(long, value_name = "SEEK", default_value_t = 0)]
    pub(crate) seek: u64,

    #[command(flatten)]
    pub(crate) walk: WalkArgs,

    /// Print one digest for each folder, with everything in it; `bulla check` checks it
    #[arg(long, conflicts_with_all = ["algorithm", "keyed", "derive_key", "length", "seek", "recursive", "raw"])]
    pub(crate) tree: bool,

    /// Also hash the files that FILE names, each name with a zero byte at its end; `-` for standard
    /// input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["keyed", "raw", "tree"])]
    pub(crate) files0_from: Option<PathBuf>,

    /// Append the lines to LIST, but only for files that it does not name yet: so an interrupted
    /// run goes on
    ///
    /// The first run begins LIST, and the same command goes on with it, also after the process was
    /// killed. A last line that is not complete is removed. Files that LIST names are not read
    /// again, even if they have changed since: `bulla check --update` finds those.
    #[arg(long, value_name = "LIST", conflicts_with_all = ["check", "tree", "raw", "json", "no_names"])]
    pub(crate) resume: Option<PathBuf>,

    /// Also write FILE's tree of hashes to OUT: with it, `bulla verify --range` verifies a part of
    /// FILE and reads nothing else
    ///
    /// OUT has 0.4 % of the size of FILE. It is not secret, and needs no protection: a wrong tree
    /// verifies nothing. Only with one FILE.
    #[arg(long, value_name = "OUT", requires = "files", conflicts_with_all = ["check", "tree", "recursive", "files0_from", "resume", "algorithm", "keyed", "derive_key", "length", "seek"])]
    pub(crate) outboard: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) read: ReadArgs,

    /// Do not print file names
    #[arg(long)]
    pub(crate) no_names: bool,

    /// Write raw bytes instead of hex; only with one FILE
    #[arg(long)]
    pub(crate) raw: bool,

    /// Print lines of the form `BLAKE3 (FILE) = HASH`, with the hash function's name
    #[arg(long)]
    pub(crate) tag: bool,

    /// End each line with a zero byte, and do not escape names; with --check, expect such lines
    #[arg(short, long, conflicts_with_all = ["raw", "json"])]
    pub(crate) zero: bool,

    /// Check the checksums in each FILE, as `bulla check` does
    #[arg(short, long, conflicts_with_all = ["derive_key", "keyed", "length", "raw", "tag", "no_names", "recursive", "tree", "files0_from"])]
    pub(crate) check: bool,

    /// With --check, do not print OK for each file
    #[arg(short, long, requires = "check")]
    pub(crate) quiet: bool,

    /// Print JSON Lines, one object per line, instead of text
    #[arg(long, conflicts_with_all = ["raw", "tag", "no_names"])]
    pub(crate) json: bool,
}

/// Check files against the checksums that bulla, b3sum, b2sum, sha256sum or BSD's programs printed
///
/// Without FILE, or if FILE is `-`, bulla reads the checksums from standard input. A line has one
/// of the forms `HASH  NAME`, `HASH *NAME`, `HASH NAME`, `BLAKE3 (NAME) = HASH` and `SHA256(NAME)=
/// HASH`, or it is a line of `bulla sum --json`. Blanks before a line, blank lines, and lines that
/// begin with # or ; are skipped. So is an OpenPGP signature around the list, which bulla does not
/// verify; then lines outside of it do not count. With --signature, bulla verifies the signature of
/// the list first, with the keys of your keystore or the given ones.
///
/// A line that does not name its function may be of two: a checksum of 64 digits is BLAKE3 or
/// SHA-256, one of 128 digits BLAKE2b or SHA-512. bulla tries both, unless --algorithm says which.
/// It first tries the one that the list's name or the line before tells.
///
/// A line that bulla does not understand, and a file that is missing, count as failures. Only
/// regular files are read, and standard input for the name `-`: a list cannot have bulla wait for a
/// fifo, or read a device without end.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla check SUMS
  bulla check --quiet SUMS && echo unchanged
  bulla check --signature SUMS.sig --public-key signer.pub SUMS
  bulla check --signature SHA256.sig --public-key signify.pub
  bulla check --algorithm sha256 list.txt
  bulla check --compare photos SUMS
  bulla check --compare photos --glob '!.DS_Store' SUMS
  bulla check --compare photos --update SUMS

Exit status: 0 all files match, 1 a file does not match, 2 a list could not be read or is empty (1 if both happened), 130 interrupted.
With --update: 0 the list now says what the files are, 1 files are missing, or the list stays as it is.")]
pub(crate) struct CheckArgs {
    /// Lists of checksums
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The hash function for lines that do not name one [default: the one of two by which the file
    /// matches]
    #[arg(short, long, value_parser = parser(), value_name = "NAME")]
    pub(crate) algorithm: Option<Algorithm>,

    /// The offset of the first output byte: the --seek with which the checksums were made; BLAKE3
    /// only
    #[arg(long, value_name = "SEEK", default_value_t = 0)]
    pub(crate) seek: u64,

    /// First verify the list's signature in FILE, and check nothing if it does not verify
    ///
    /// FILE may have any format that `bulla verify` knows. If the list itself is in FILE, as in the
    /// files of `signify -C`, name no list.
    #[arg(long, value_name = "FILE", conflicts_with = "update")]
    pub(crate) signature: Option<PathBuf>,

    /// With --signature: accept a list that had another name when it was signed
    #[arg(long, requires = "signature")]
    pub(crate) any_name: bool,

    #[command(flatten)]
    pub(crate) trust: TrustArgs,

    #[command(flatten)]
    pub(crate) read: ReadArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,

    /// Print nothing; only the exit status tells
    #[arg(long, conflicts_with_all = ["json", "quiet"])]
    pub(crate) status: bool,

    /// Skip files that do not exist; if no file of a list was verified, the check fails
    #[arg(long, conflicts_with_all = ["update", "compare"])]
    pub(crate) ignore_missing: bool,

    /// Accepted because sha256sum has it: bulla always fails for a line that it does not understand
    #[arg(long)]
    pub(crate) strict: bool,

    /// Accepted because sha256sum has it: bulla always names a line that it does not understand
    #[arg(short, long)]
    pub(crate) warn: bool,

    /// Lines end with a zero byte, and names are not escaped
    #[arg(short, long)]
    pub(crate) zero: bool,

    /// Also find files in FOLDER that no list names: new ones, and moved ones; may be given several
    /// times
    #[arg(long, value_name = "FOLDER")]
    pub(crate) compare: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) filters: FilterArgs,

    /// Write the changes into the list: new digests for changed files, and with --compare lines for
    /// new files and new names for moved ones
    ///
    /// All other lines stay as they are, also comments, and those of missing files. bulla replaces
    /// the list in one step, and only if something changed. The list stays as it is if a file could
    /// not be read, a line is malformed, none of its files exists, a folder is empty, or nothing
    /// tells the hash function of its lines.
    #[arg(long)]
    pub(crate) update: bool,

    /// With --update, also remove the lines of files that do not exist
    #[arg(long, requires = "update")]
    pub(crate) remove_missing: bool,
}
