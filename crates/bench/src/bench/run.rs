//! A run: several launches of a harness, whose records are completed, shown and kept.

use std::{
    fs::{self, File},
    hash::{BuildHasher as _, RandomState},
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, Echo, quiet, stream};
use bulla_record::{
    archive,
    lane::{self, Machine},
    record::Record,
};

use super::harness::{Harness, Selection};

/// The common fields of all records of a run, which no harness knows.
#[derive(Debug)]
pub(crate) struct Run {
    id: String,
    commit: String,
    dirty: bool,
    toolchain: String,
    flags: String,
    lane: String,
}

impl Run {
    /// A new run of the checkout in its current state.
    pub(crate) fn begin(context: &Context) -> Result<Self> {
        let git = |arguments: &[&str]| quiet(Command::new("git").args(arguments).current_dir(&context.root));
        // Outside a repository, as in an unpacked archive, there is no commit to name.
        let commit = git(&["rev-parse", "HEAD"]).unwrap_or_default().trim().to_owned();
        let changed = git(&["status", "--porcelain", "--untracked-files=no"]).unwrap_or_default();
        let version = quiet(Command::new("rustc").arg("--version").current_dir(&context.root))?;
        let toolchain = version.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let salt = RandomState::new().hash_one(0) & 0xffff;
        Ok(Self {
            id: format!("{}-{salt:04x}", bulla_record::record::utc_now()),
            dirty: !commit.is_empty() && !changed.trim().is_empty(),
            commit,
            toolchain: toolchain.trim().to_owned(),
            flags: std::env::var("RUSTFLAGS").unwrap_or_default(),
            lane: lane::of(&Machine::this())?.name,
        })
    }

    /// Launches `harness` once and returns its records, complete.
    ///
    /// # Errors
    /// The harness fails, prints something other than a record of its suite, or measures nothing.
    pub(crate) fn launch(
        &self,
        harness: &Harness,
        selection: &Selection,
        launch: u32,
        progress: &str,
        echo: Echo,
    ) -> Result<Vec<Record>> {
        let terminal = std::io::stderr().is_terminal();
        let mut records = Vec::new();
        let mut wrong = None;
        let mut command = harness.command(launch, selection);
        let status = stream(&mut command, Echo::Hide, |line| {
            let taken = match self.complete(line, harness.suite, launch) {
                Ok(record) => selection.takes(&record.suite, &record.case, record.bytes).then_some(record),
                Err(error) => {
                    wrong.get_or_insert(error);
                    return;
                }
            };
            let Some(record) = taken else { return };
            if echo == Echo::Show
                && let Ok(line) = record.line()
            {
                println!("{line}");
            }
            if terminal {
                eprint!("\r\x1b[K{progress}, {}", record.case);
            }
            records.push(record);
        })?;
        if terminal {
            eprint!("\r\x1b[K");
        }
        ensure!(status.success(), "the harness of {} failed: {status}", harness.suite);
        if let Some(error) = wrong {
            return Err(error
                .context(format!("the harness of {} printed a line that is not a record", harness.suite)));
        }
        ensure!(!records.is_empty(), "the harness of {} measured no such case", harness.suite);
        Ok(records)
    }

    /// Reads a harness's line, and fills in its empty fields.
    fn complete(&self, line: &str, suite: &str, launch: u32) -> Result<Record> {
        let mut record = Record::parse(line)?;
        ensure!(record.suite == suite, "a record of the suite {}", record.suite);
        record.run.clone_from(&self.id);
        record.commit.clone_from(&self.commit);
        record.dirty = self.dirty;
        record.launch = launch;
        if record.cores == 0 {
            record.cores = lane::cores();
        }
        if record.lane.is_empty() {
            record.lane.clone_from(&self.lane);
        }
        if record.toolchain.is_empty() {
            record.toolchain.clone_from(&self.toolchain);
            record.flags.clone_from(&self.flags);
        }
        Ok(record)
    }
}

/// Writes the records to a new file in `lab/runs`, all or nothing, and returns its path below the
/// root.
///
/// # Errors
/// The file cannot be written, or one with this name exists: a kept run is never replaced.
pub(crate) fn keep(context: &Context, suite: &str, mut records: Vec<Record>) -> Result<PathBuf> {
    let folder = context.root.join("lab/runs");
    fs::create_dir_all(&folder)?;
    let run = &records.first().context("nothing was measured")?.run;
    let name = format!("{}-{suite}.jsonl", run.replace(':', ""));
    let fresh = folder.join(format!("{name}.new"));
    records.iter_mut().for_each(Record::round);
    let text = archive::write(&records)?;
    let write = || {
        let mut file = File::create_new(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        // Unlike a rename, a link does not replace.
        fs::hard_link(&fresh, folder.join(&name))?;
        File::open(&folder)?.sync_all()
    };
    let written = write();
    let _ = fs::remove_file(&fresh);
    written.with_context(|| format!("cannot write lab/runs/{name}"))?;
    Ok(PathBuf::from("lab/runs").join(name))
}

/// Writes the raw samples to a new file in the build folder and returns its path.
///
/// # Errors
/// The file cannot be written, or one with this name exists.
pub(crate) fn keep_samples(context: &Context, suite: &str, records: &[Record]) -> Result<PathBuf> {
    let folder = context.target.join("bench-samples");
    fs::create_dir_all(&folder)?;
    let run = &records.first().context("nothing was measured")?.run;
    let path = folder.join(format!("{}-{suite}.jsonl", run.replace(':', "")));
    let mut text = String::new();
    for record in records {
        text.push_str(&record.line()?);
        text.push('\n');
    }
    let write = || File::create_new(&path)?.write_all(text.as_bytes());
    write().with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"schema":2,"run":"","time":"","suite":"go","case":"sum/64","bytes":64,"implementation":"bulla go",
        "version":"0.1.0","role":"ours","kernel":"","forced":false,"held_to":"","lane":"","cpu":"c","features":[],"ghz":3.0,
        "toolchain":"go1.26.0","flags":"","commit":"","dirty":false,"launch":1,"iterations":1,"samples_ns":[12.34],"load":0.0}"#;

    fn example() -> Run {
        let flags = "-C target-cpu=native".to_owned();
        Run {
            id: "run".into(),
            commit: "c".into(),
            dirty: true,
            toolchain: "rustc 1.95.0".into(),
            flags,
            lane: "amd-zen4".into(),
        }
    }

    #[test]
    fn what_a_harness_left_empty_is_filled_in_and_its_own_toolchain_stays() {
        let record = example().complete(LINE, "go", 4).unwrap();
        assert_eq!((record.run.as_str(), record.commit.as_str(), record.launch), ("run", "c", 4));
        assert_eq!(record.lane, "amd-zen4");
        assert_eq!((record.toolchain.as_str(), record.flags.as_str(), record.dirty), ("go1.26.0", "", true));
        let ours = example().complete(&LINE.replace("go1.26.0", ""), "go", 4).unwrap();
        assert_eq!((ours.toolchain.as_str(), ours.flags.as_str()), ("rustc 1.95.0", "-C target-cpu=native"));
    }

    #[test]
    fn records_of_another_suite_are_refused() {
        assert!(example().complete(LINE, "js", 1).is_err());
        assert!(example().complete("ok", "go", 1).is_err());
    }

    #[test]
    fn what_is_kept_is_rounded_and_never_replaced() {
        let root = std::env::temp_dir().join(format!("bulla-runs-{}", std::process::id()));
        let context = Context::new(root.clone(), root.join("target"));
        let records = || vec![example().complete(LINE, "go", 1).unwrap()];
        let path = root.join(keep(&context, "go", records()).unwrap());
        let kept = fs::read_to_string(&path).unwrap();
        assert!(kept.contains("[12.3,12.3,12.3,12.3,12.3]") && kept.ends_with("}\n"), "{kept}");
        let samples = keep_samples(&context, "go", &records()).unwrap();
        assert!(samples.starts_with(&context.target));
        assert!(fs::read_to_string(samples).unwrap().contains("\"samples_ns\":[12.34]"));
        assert!(keep(&context, "go", records()).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), kept);
        assert_eq!(fs::read_dir(root.join("lab/runs")).unwrap().count(), 1);
        fs::remove_dir_all(&root).unwrap();
    }
}
