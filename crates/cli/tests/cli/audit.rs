//! `bulla audit`: what it prints, and the exit status that a build in CI rests on.

use crate::support::{BULLA, Home};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// `bulla audit` in the folder of `home`, with the environment as it is: cargo needs its own.
fn audit(home: &Home, args: &[&str]) -> Output {
    let mut command = Command::new(BULLA);
    command.arg("audit").args(args).current_dir(home.work());
    for (name, _) in std::env::vars_os() {
        // Flags of the build that runs this test are none of the project's.
        let text = name.to_string_lossy().into_owned();
        if text.contains("RUSTFLAGS") || text.starts_with("CARGO_PROFILE_") {
            command.env_remove(name);
        }
    }
    command.output().expect("bulla runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A small program of the system.
fn program() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("true")).find(|path| path.is_file());
    found.expect("`true` is on the PATH").display().to_string()
}

#[test]
fn a_program_is_audited_and_compared_with_what_json_said_of_it() {
    let home = Home::new();
    let program = program();
    let plain = audit(&home, &[&program]);
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain));
    assert!(text(&plain).contains("xmm") && text(&plain).contains("verdict: ok"));
    let json = audit(&home, &["--json", &program]);
    home.write("good.json", &json.stdout);
    let compared = audit(&home, &[&program, "--baseline", "good.json"]);
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared));
    assert!(text(&compared).contains("compared with"));
}

#[test]
fn a_kernel_that_is_required_and_absent_fails_the_build() {
    let home = Home::new();
    home.write("audit.toml", "require = [\"blake3/avx512\"]\n");
    let output = audit(&home, &[&program(), "--config", "audit.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("kernel lost: blake3/avx512"), "{}", text(&output));
}

#[test]
fn files_that_cannot_be_audited_are_named_and_the_others_still_are() {
    let home = Home::new();
    home.write("notes.txt", "no program");
    let output = audit(&home, &["--json", "notes.txt", "absent", ".", &program()]);
    assert_eq!(output.status.code(), Some(2));
    let lines: Vec<_> = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 4);
    assert!(text(&output).contains("\"code\":\"format\"") && text(&output).contains("\"total\""));
}

#[cfg(unix)]
#[test]
fn a_fifo_is_refused_and_not_waited_for() {
    let home = Home::new();
    let path: PathBuf = home.path("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a fifo");
    let output = audit(&home, &["fifo"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("not a regular file"));
}

#[test]
fn wrong_rules_configurations_and_baselines_are_errors_with_the_name_of_the_file() {
    let home = Home::new();
    home.write("bad", "{ not what it should be");
    for flag in ["--rules", "--config", "--baseline"] {
        let output = audit(&home, &[&program(), flag, "bad"]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(text(&output).contains("bulla: bad: "), "{flag}: {}", text(&output));
    }
}

#[test]
fn a_project_is_scanned_and_affected_when_it_is_built_for_one_cpu() {
    let home = Home::new();
    home.write(
        "Cargo.toml",
        "[package]\nname = \"project\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n",
    );
    home.write(
        "src/lib.rs",
        "pub fn fast() -> bool {\n    #[cfg(target_feature = \"avx2\")]\n    return true;\n    std::is_x86_feature_detected!(\"avx2\")\n}\n",
    );
    let latent = audit(&home, &["--crates"]);
    assert_eq!(latent.status.code(), Some(0), "{}", text(&latent));
    assert!(text(&latent).contains("lib.rs:2"), "{}", text(&latent));
    fs::create_dir(home.path(".cargo")).expect("a folder");
    home.write(".cargo/config.toml", "[build]\nrustflags = [\"-Ctarget-cpu=native\"]\n");
    let affected = audit(&home, &["--crates", "--json"]);
    assert_eq!(affected.status.code(), Some(1), "{}", text(&affected));
    assert!(text(&affected).contains("\"risk\":\"affected\""));
}
