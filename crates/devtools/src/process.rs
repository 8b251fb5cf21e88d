//! Child processes whose output is shown immediately and read at the same time.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read, Write},
    process::{Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError},
    thread,
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
            let mut out = io::stdout().lock();
            out.write_all(&bytes)?;
            out.flush()?;
        }
        line(String::from_utf8_lossy(&bytes).trim_end());
        bytes.clear();
    }
    child.wait().with_context(|| format!("cannot wait for {program}"))
}

/// How many lines [`stream_both`] returns.
const MAX_END: usize = 20;

/// Runs `command`, passes its standard output and its standard error on, and returns the end of
/// both, mixed as they came.
///
/// # Errors
/// The program cannot be started. It is not an error if the program fails: see the status.
pub fn stream_both(command: &mut Command) -> Result<(ExitStatus, String)> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let end = Mutex::new(VecDeque::new());
    let (out, error) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(|| out.map(|out| pass_on(out, io::stdout(), &end)));
        scope.spawn(|| error.map(|error| pass_on(error, io::stderr(), &end)));
    });
    let status = child.wait().with_context(|| format!("cannot wait for {program}"))?;
    let end = end.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((status, Vec::from(end).join("\n")))
}

/// Passes each line on at once, and keeps the last ones.
fn pass_on(from: impl Read, mut to: impl Write, end: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(from);
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
        // An error means that nobody reads our output any more.
        let _ = to.write_all(&bytes).and_then(|()| to.flush());
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
        if !line.is_empty() {
            end.push_back(line);
        }
        if end.len() > MAX_END {
            end.pop_front();
        }
        bytes.clear();
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_both_outputs_is_returned() {
        let mut shell = Command::new("sh");
        let script = "for i in $(seq 30); do echo $i; done; sleep 0.2; echo why >&2; exit 3";
        let (status, end) = stream_both(shell.args(["-c", script])).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(end.lines().count(), MAX_END);
        assert!(end.starts_with("12\n") && end.ends_with("30\nwhy"), "{end}");
    }
}
