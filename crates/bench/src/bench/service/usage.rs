//! What a process uses of the machine.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};

fn of(process: u32, file: &str) -> PathBuf {
    ["/proc", &process.to_string(), file].iter().collect()
}

/// The memory that a process holds, in MB.
pub(super) fn memory(process: u32) -> Result<f64> {
    let status = fs::read_to_string(of(process, "status"))?;
    Ok(number(&status, "VmRSS:")? / 1000.0)
}

/// The most memory that a process ever held, in MB.
pub(super) fn most_memory(process: u32) -> Result<f64> {
    let status = fs::read_to_string(of(process, "status"))?;
    Ok(number(&status, "VmHWM:")? / 1000.0)
}

/// The bytes that a process has written, and that the system has passed on to a disk.
pub(super) fn written(process: u32) -> Result<f64> {
    number(&fs::read_to_string(of(process, "io"))?, "write_bytes:")
}

/// The seconds for which the threads of a process have computed. Those of threads that have ended
/// are not in it.
///
/// `/proc/PID/stat` has them too, but counts hundredths of a second: an idle node uses fewer.
pub(super) fn computed(process: u32) -> Result<f64> {
    let mut nanoseconds = 0.0;
    for thread in fs::read_dir(of(process, "task"))? {
        // A thread may end meanwhile.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanoseconds += text.split(' ').next().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(nanoseconds / 1e9)
}

/// The number in the line that begins with `name`.
fn number(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let digits = line.and_then(|line| line.split_whitespace().next());
    digits.and_then(|digits| digits.parse().ok()).with_context(|| format!("no {name}"))
}

#[cfg(test)]
mod tests {
    use std::{process, time::Instant};

    use super::*;

    #[test]
    fn this_process_has_memory_and_computes() {
        let this = process::id();
        assert!(memory(this).unwrap() > 0.1);
        assert!(most_memory(this).unwrap() >= memory(this).unwrap() / 2.0);
        let before = computed(this).unwrap();
        let start = Instant::now();
        while start.elapsed().as_millis() < 50 {}
        assert!(computed(this).unwrap() > before);
        assert!(written(this).unwrap() >= 0.0);
    }

    #[test]
    fn a_number_is_the_first_word_after_its_name() {
        assert_eq!(number("a: 1\nVmRSS:\t 512 kB\n", "VmRSS:").unwrap(), 512.0);
        assert!(number("VmRSS:\tmuch\n", "VmRSS:").is_err());
    }
}
