//! The program `bulla-audit`, which `bulla audit` starts: it shows what compiled binaries really
//! contain.
#![forbid(unsafe_code)]

mod args;

use crate::args::AuditArgs;
use bulla_audit::scan::{self, Risk, Scan};
use bulla_audit::{Comparison, Config, FileSource, Finding, Limits, Options, Report, Rules, SCHEMA, Style};
use bulla_command::error::{Error, Result};
use bulla_command::exit::Exit;
use bulla_command::output::{JsonError, JsonPath, Out};
use bulla_command::program;
use bulla_command::progress::Progress;
use bulla_files::escape_path;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

fn main() -> ExitCode {
    let args: AuditArgs = match program::parse() {
        Ok(args) => args,
        Err(status) => return status,
    };
    args.color.apply();
    program::exit_code(run(&args))
}

fn run(args: &AuditArgs) -> Result<Exit> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.num_threads).build();
    let pool = pool.map_err(|error| Error::new("threads", format!("cannot start threads: {error}")))?;
    pool.install(|| if args.crates { project(args) } else { binaries(args) })
}

fn binaries(args: &AuditArgs) -> Result<Exit> {
    let rules = rules(args)?;
    let config = match &args.config {
        Some(path) => Config::parse(&text(path)?).map_err(|error| about(path, &error))?,
        None => Config::default(),
    };
    if let Some(unknown) =
        config.require.iter().find(|name| !rules.all().iter().any(|rule| rule.name == **name))
    {
        return Err(Error::new(
            "config",
            format!("the configuration requires the kernel {unknown}, but no rule has that name"),
        ));
    }
    let progress = Progress::new(None);
    let add = |bytes| progress.add(bytes);
    let options = Options { rules: &rules, limits: Limits::default(), progress: &add };
    let baseline = args.baseline.as_deref().map(|path| baseline(path, &options)).transpose()?;
    let mut out = Out::stdout();
    let mut exit = Exit::Ok;
    for path in &args.binaries {
        let audited = audit(path, &options).map_err(|error| about(path, &error)).and_then(|reports| {
            reports
                .into_iter()
                .map(|report| Audited::new(report, baseline.as_deref(), &config))
                .collect::<Result<Vec<_>>>()
        });
        match audited {
            Ok(audited) => {
                for audited in audited {
                    exit = exit.and(if audited.findings.is_empty() { Exit::Ok } else { Exit::Mismatch });
                    progress.suspend(|| audited.print(&mut out, args))?;
                }
            }
            Err(error) => {
                exit = exit.and(Exit::Error);
                progress.suspend(|| error.print());
                if args.json {
                    out.json(&JsonFailure { path: path.as_path().into(), error: (&error).into() })?;
                }
            }
        }
    }
    out.flush()?;
    Ok(exit)
}

/// The reports on the file at `path`; `-` is standard input.
fn audit(path: &Path, options: &Options<'_>) -> std::result::Result<Vec<Report>, bulla_audit::Error> {
    if path != Path::new("-") {
        return bulla_audit::audit_file(path, options);
    }
    // A binary is read at arbitrary positions, which a pipe does not support.
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    bulla_audit::audit(&FileSource::new(file)?, "-", options)
}

fn rules(args: &AuditArgs) -> Result<Rules> {
    let mut rules = Rules::built_in();
    for path in &args.rules {
        rules.add(&text(path)?).map_err(|error| about(path, &error))?;
    }
    Ok(rules)
}

/// Reads a small text file: rules, or a configuration.
fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| Error::io("cannot read", &error).about(escape_path(path)))
}

fn about(path: &Path, error: &bulla_audit::Error) -> Error {
    let plain = match error {
        bulla_audit::Error::Io(error) => Error::io("cannot read", error),
        other => Error::new(other.code(), other.to_string()),
    };
    let plain = plain.about(escape_path(path));
    match error.hint() {
        Some(hint) => plain.hint(hint),
        None => plain,
    }
}

/// The baseline's reports: from the output of `--json`, or from the binary itself.
fn baseline(path: &Path, options: &Options<'_>) -> Result<Vec<Report>> {
    let mut first = [0];
    let is_json = fs::File::open(path).is_ok_and(|mut file| {
        path.is_file() && io::Read::read_exact(&mut file, &mut first).is_ok() && first == [b'{']
    });
    if !is_json {
        return bulla_audit::audit_file(path, options).map_err(|error| about(path, &error));
    }
    let malformed = |error: &serde_json::Error| {
        Error::new("baseline", format!("not what `bulla audit --json` prints: {error}"))
            .about(escape_path(path))
    };
    let mut reports = Vec::new();
    for line in text(path)?.lines() {
        let report: Report = serde_json::from_str(line).map_err(|error| malformed(&error))?;
        if report.schema != SCHEMA {
            let what = format!(
                "another version of bulla made this baseline (its form is {}, this version's is {SCHEMA})",
                report.schema
            );
            return Err(Error::new("baseline", what)
                .about(escape_path(path))
                .hint("make the baseline again from the good binary"));
        }
        reports.push(report);
    }
    Ok(reports)
}

/// A report with its verdict, as `--json` prints it.
#[derive(Serialize)]
struct Audited {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
    findings: Vec<Finding>,
}

impl Audited {
    fn new(report: Report, baseline: Option<&[Report]>, config: &Config) -> Result<Self> {
        let Some(baseline) = baseline else {
            let findings = bulla_audit::check(&report, config);
            return Ok(Self { report, comparison: None, findings });
        };
        let Some(before) = baseline.iter().find(|before| before.arch == report.arch) else {
            let what = format!("{}: the baseline contains no code for {}", report.path, report.arch.name());
            return Err(Error::new("baseline", what));
        };
        let comparison = bulla_audit::compare(&report, before, config);
        let comparison = comparison.map_err(|error| Error::new(error.code(), error.to_string()))?;
        Ok(Self { findings: comparison.findings.clone(), comparison: Some(comparison), report })
    }

    fn print(&self, out: &mut Out, args: &AuditArgs) -> Result<()> {
        if args.json {
            return out.json(self);
        }
        out.line(bulla_audit::render(
            &self.report,
            self.comparison.as_ref(),
            &self.findings,
            style(args),
            args.top,
        ))
    }
}

fn style(args: &AuditArgs) -> Style {
    if args.markdown { Style::Markdown } else { Style::Table }
}

/// The output of `--json` for a file that cannot be audited.
#[derive(Serialize)]
struct JsonFailure {
    #[serde(flatten)]
    path: JsonPath,
    error: JsonError,
}

fn project(args: &AuditArgs) -> Result<Exit> {
    let progress = Progress::new(None);
    let scan = scan::scan(args.manifest_path.as_deref(), &|_| progress.add(0));
    drop(progress);
    let scan = scan.map_err(|error| Error::new(error.code(), error.to_string()))?;
    let mut out = Out::stdout();
    if args.json {
        out.json(&scan)?;
    } else {
        out.line(scan.render(style(args)))?;
    }
    out.flush()?;
    Ok(exit_of(&scan))
}

fn exit_of(scan: &Scan) -> Exit {
    if scan.crates.iter().any(|krate| krate.risk == Risk::Affected) { Exit::Mismatch } else { Exit::Ok }
}
