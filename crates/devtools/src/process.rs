//! Child processes whose output is shown immediately and read at the same time.

use std::{
    io::{BufRead, BufReader, Write as _},
    process::{Command, ExitStatus, Stdio},
};

use anyhow::{Context as _, Result};

/// Whether a line of a child's standard output is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// Print it on our standard output at once.
    Show,
    /// The reader of the line decides what to print.
    Hide,
}

/// Runs `command`, passes each line of its standard output to `line`, and forwards its standard
/// error.
///
/// # Errors
/// The program cannot be started. It is not an error if the program fails: see the status.
pub fn stream(command: &mut Command, echo: Echo, mut line: impl FnMut(&str)) -> Result<ExitStatus> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let mut reader = BufReader::new(child.stdout.take().context("the child has no standard output")?);
    let mut bytes = Vec::new();
    // Read bytes: a test may print text that is not UTF-8, and that must not stop the count.
    while reader.read_until(b'\n', &mut bytes).with_context(|| format!("cannot read from {program}"))? > 0 {
        if echo == Echo::Show {
            let mut out = std::io::stdout().lock();
            out.write_all(&bytes)?;
            out.flush()?;
        }
        line(String::from_utf8_lossy(&bytes).trim_end());
        bytes.clear();
    }
    child.wait().with_context(|| format!("cannot wait for {program}"))
}

/// Runs `command` to its end without showing anything.
///
/// # Errors
/// The program cannot be started or fails. The message contains the end of its output.
pub fn quiet(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {program}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    anyhow::bail!("{program} failed ({}): {last}", output.status)
}
