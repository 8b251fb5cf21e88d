//! `cargo xtask dist check`: two builds in two folders, compared; then trials of what was built.

use std::{fs, path::Path, time::Instant};

use anyhow::{Result, bail, ensure};
use bulla_devtools::Context;

use super::{build, files, platform::Platform, source::Source, trial};

/// Where each build is. The names have different lengths, so that a path in a program moves what
/// follows it.
const FOLDERS: [&str; 2] = ["dist-first", "dist-check/the-second"];

/// Builds and compares. What was built is in the folder `dist-files` of the build folder, ready to
/// be signed.
pub(super) fn run(context: &Context, platforms: &[Platform]) -> Result<()> {
    let source = Source::head(context)?;
    let out = context.target.join("dist-files");
    files::fresh(&out)?;
    for platform in platforms {
        let mut outs = Vec::new();
        for folder in FOLDERS {
            let work = context.target.join(folder);
            let to = work.join("out");
            files::fresh(&to)?;
            let start = Instant::now();
            build::one(context, *platform, &source, &work, &to)?;
            println!("built in {} s", start.elapsed().as_secs());
            outs.push(to);
        }
        same(&outs[0], &outs[1])?;
        for file in files::list(&outs[0])? {
            files::copy(&file, &out.join(file.file_name().unwrap_or_default()))?;
        }
        trial::platform(context, *platform, &source.version, &out)?;
        println!("{}: the same bytes twice, and it works", platform.triple());
    }
    for folder in FOLDERS {
        fs::remove_dir_all(context.target.join(folder))?;
    }
    if platforms.contains(&Platform::LinuxX86) {
        trial::signatures(context, &out)?;
    }
    for file in files::list(&out)? {
        let name = file.file_name().unwrap_or_default().display();
        println!("{}  {:>9}  {name}", files::sha256(&file)?, fs::metadata(&file)?.len());
    }
    println!("{} {}: {}", source.version, source.commit, out.display());
    Ok(())
}

/// Whether two folders have the same files with the same bytes.
fn same(first: &Path, second: &Path) -> Result<()> {
    let names = |folder: &Path| {
        files::list(folder).map(|files| files.iter().filter_map(|f| f.file_name().map(Into::into)).collect())
    };
    let (ours, theirs): (Vec<std::ffi::OsString>, Vec<_>) = (names(first)?, names(second)?);
    ensure!(!ours.is_empty() && ours == theirs, "two builds wrote {ours:?} and {theirs:?}");
    for name in &ours {
        let (ours, theirs) = (first.join(name), second.join(name));
        if fs::read(&ours)? != fs::read(&theirs)? {
            bail!(
                "two builds differ: compare {} and {}, for example with diffoscope",
                ours.display(),
                theirs.display()
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_differs_is_found() {
        let folder = std::env::temp_dir().join(format!("bulla-xtask-same-{}", std::process::id()));
        let (one, two) = (folder.join("one"), folder.join("two"));
        files::write(&one.join("a"), "x").unwrap();
        files::write(&two.join("a"), "x").unwrap();
        same(&one, &two).unwrap();
        files::write(&two.join("a"), "y").unwrap();
        assert!(same(&one, &two).is_err());
        files::write(&two.join("a"), "x").unwrap();
        files::write(&two.join("b"), "x").unwrap();
        assert!(same(&one, &two).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
