//! Makes a folder of files with random content, for trying bulla.
//!
//! ```text
//! cargo run --release -p bulla --example make_tree -- DIR COUNT [MIN MAX]
//! ```
//!
//! The files have MIN to MAX bytes (by default 0 to 1 MiB), a hundred to a subfolder. The same
//! arguments give the same files: 10,000 files by `make_tree DIR 10000`, one of 2 GiB by `make_tree
//! DIR 1 2147483648 2147483648`.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| match args.get(index) {
        Some(text) => text.parse().ok(),
        None => Some(default),
    };
    let (Some(folder), Some(count), Some(min), Some(max)) =
        (args.first(), number(1, 10_000), number(2, 0), number(3, 1 << 20))
    else {
        eprintln!("usage: make_tree DIR COUNT [MIN MAX]");
        return ExitCode::from(2);
    };
    match (0..count).try_for_each(|index| make_file(Path::new(folder), index, min, max)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("make_tree: {folder}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes file number `index`. Its size and content are the extended output of BLAKE3 for that
/// number.
fn make_file(folder: &Path, index: u64, min: u64, max: u64) -> io::Result<()> {
    let mut random = bulla_blake3::Hasher::new().update(&index.to_le_bytes()).finalize_xof();
    let mut choice = [0; 8];
    random.fill(&mut choice);
    let size = min + u64::from_le_bytes(choice) % (max.saturating_sub(min) + 1);
    let folder = folder.join(format!("{:04}", index / 100));
    std::fs::create_dir_all(&folder)?;
    io::copy(&mut random.take(size), &mut File::create(folder.join(format!("{index:06}")))?)?;
    Ok(())
}
