//! The program `bulla-audit`: what it prints, and the exit status that a build in CI rests on.
#![cfg(unix)]

use bulla_testing::{Home, bulla};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// `bulla audit` in the folder of `home`, with the environment as it is: cargo needs its own.
fn audit(home: &Home, args: &[&str]) -> Output {
    let mut command = Command::new(bulla_testing::program("bulla-audit"));
    command.args(args).current_dir(home.work());
    for (name, _) in std::env::vars_os() {
        // Flags of the build that runs this test are none of the project's.
        let text = name.to_string_lossy().into_owned();
        if text.contains("RUSTFLAGS") || text.starts_with("CARGO_PROFILE_") {
            command.env_remove(name);
        }
    }
    command.output().expect("bulla-audit runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A small program of the system.
fn system_program() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("true")).find(|path| path.is_file());
    found.expect("`true` is on the PATH").display().to_string()
}

#[test]
fn a_program_is_audited_and_compared_with_what_json_said_of_it() {
    let home = Home::new();
    let program = system_program();
    let plain = audit(&home, &[&program]);
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain));
    assert!(text(&plain).contains("xmm") && text(&plain).contains("verdict: ok"));
    let json = audit(&home, &["--json", &program]);
    home.write("good.json", &json.stdout);
    let compared = audit(&home, &[&program, "--baseline", "good.json"]);
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared));
    assert!(text(&compared).contains("compared with"));
}

/// `bulla` itself has every kernel of ours, and the rules for all others as data.
#[test]
fn this_program_has_its_kernels_and_has_lost_none() {
    let home = Home::new();
    let json = audit(&home, &["--json", bulla()]);
    assert_eq!(json.status.code(), Some(0), "{}", findings(&json));
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let rules = report["rules"].as_array().expect("rules");
    let own: Vec<_> = rules
        .iter()
        .filter(|rule| rule["crate"].as_str().is_some_and(|name| name.starts_with("bulla_")))
        .collect();
    assert!(own.len() >= 14, "{own:?}");
    for rule in own {
        assert_eq!(rule["verdict"], "present", "{rule}");
    }
    let official = |rule: &&serde_json::Value| {
        ["blake3", "blake2b_simd", "blake2s_simd"].iter().any(|name| rule["crate"] == *name)
    };
    for rule in rules.iter().filter(official) {
        assert_eq!(rule["verdict"], "not_linked", "{rule}");
    }
}

#[test]
fn this_program_without_its_symbols_has_lost_no_kernel() {
    let home = Home::new();
    let mut bytes = fs::read(bulla()).expect("the program");
    forget_symbols(&mut bytes);
    home.write("stripped", &bytes);
    let json = audit(&home, &["--json", "stripped"]);
    assert_eq!(json.status.code(), Some(0), "{}", findings(&json));
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_ne!(report["symbols"], "all");
}

fn findings(json: &Output) -> String {
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap_or_default();
    report["findings"].to_string() + &String::from_utf8_lossy(&json.stderr)
}

/// Turns the table of symbols of a 64-bit ELF file into none, as `strip` does. Section headers have
/// 64 bytes, with the type in byte 4.
fn forget_symbols(elf: &mut [u8]) {
    const SYMBOLS: u32 = 2;
    let field =
        |elf: &[u8], at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().expect("8 bytes")) as usize;
    let headers = field(elf, 40);
    let count = field(elf, 60) & 0xffff;
    for at in (0..count).map(|i| headers + 64 * i) {
        if elf[at + 4..at + 8] == SYMBOLS.to_le_bytes() {
            elf[at + 4..at + 8].fill(0);
        }
    }
}

#[test]
fn standard_input_is_audited_as_a_file_is() {
    let home = Home::new();
    let program = system_program();
    let by_name = audit(&home, &["--json", &program]);
    let piped = |bytes: &[u8]| {
        let mut command = Command::new(bulla_testing::program("bulla-audit"));
        command.args(["--json", "-"]).current_dir(home.work());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("bulla-audit runs");
        child.stdin.take().expect("a pipe").write_all(bytes).expect("it reads");
        child.wait_with_output().expect("it ends")
    };
    let output = piped(&fs::read(&program).expect("a program"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let expected = String::from_utf8_lossy(&by_name.stdout).replace(&format!("{program:?}"), "\"-\"");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let nothing = piped(b"");
    assert_eq!(nothing.status.code(), Some(2));
    assert!(text(&nothing).contains("empty"), "{}", text(&nothing));
}

#[test]
fn a_stripped_program_in_c_gets_one_answer_for_all_kernels() {
    let output = audit(&Home::new(), &[&system_program()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let said = text(&output);
    assert!(!said.contains("unknown"), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("bulla-blake3/avx2")).count(), 1, "{said}");
}

#[test]
fn a_kernel_that_is_required_and_absent_fails_the_build() {
    let home = Home::new();
    home.write("audit.toml", "require = [\"blake3/avx512\"]\n");
    let output = audit(&home, &[&system_program(), "--config", "audit.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("kernel lost: blake3/avx512"), "{}", text(&output));
}

#[test]
fn files_that_cannot_be_audited_are_named_and_the_others_still_are() {
    let home = Home::new();
    home.write("notes.txt", "no program");
    let output = audit(&home, &["--json", "notes.txt", "absent", ".", &system_program()]);
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
        let output = audit(&home, &[&system_program(), flag, "bad"]);
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
