//! What holds for all commands: help, completions, manual pages, colors, closed pipes.

use crate::support::{Done, Home, bulla};
use rustix::fs::{Mode, OFlags};
use rustix::termios::LocalModes;
use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const COMMANDS: [&str; 16] = [
    "sign",
    "verify",
    "keys",
    "token",
    "sum",
    "check",
    "kernels",
    "completions",
    "man",
    "encrypt",
    "decrypt",
    "rekey",
    "keygen",
    "keystore",
    "log",
    "version",
];

#[test]
fn every_command_has_help_with_examples() {
    let home = Home::new();
    let help = home.run(["--help"]).exits(0);
    for command in COMMANDS {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{command}");
        home.run([command, "--help"]).exits(0).says("Examples:\n  bulla ").says("Usage: bulla ");
    }
    let keys = ["create", "list", "show", "rotate", "disable", "enable", "export-public", "policy"];
    for command in keys.into_iter().chain(["revoke", "destroy", "cancel-destruction", "import", "export"]) {
        home.run(["keys", command, "--help"]).exits(0).says(&format!("Usage: bulla keys {command} "));
    }
    for command in ["init", "rekey", "guard", "backup", "restore"] {
        home.run(["keystore", command, "--help"]).exits(0).says(&format!("Usage: bulla keystore {command} "));
    }
    for [name, alias] in
        [["encrypt", "seal"], ["decrypt", "open"], ["rekey", "reseal"], ["keygen", "identity"]]
    {
        home.run([alias, "--help"]).exits(0).says(&format!("Usage: bulla {name} "));
    }
    home.run(["--version"]).exits(0).says("bulla 0.");
    home.run(["version", "--verbose"]).exits(0).says("bulla 0.").says("\ncommit    ").says("\nkernel    ");
    assert_eq!(home.run(["version", "--json"]).exits(0).json()[0]["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn wrong_usage_is_exit_2_and_names_the_mistake() {
    let home = Home::new();
    home.run::<&str>([]).exits(2).complains("Usage: bulla");
    home.run(["frobnicate"]).exits(2).complains("frobnicate");
    home.run(["sign"]).exits(2).complains("PATH");
    home.run(["sign", "a", "b", "-o", "c"]).exits(2).complains("--output");
    home.run(["sign", "-", "a"]).exits(2).complains("standard input");
    home.run(["sign", "-", "--json"]).exits(2).complains("--output FILE");
    home.run(["verify", "a", "b", "-s", "c"]).exits(2).complains("--signature");
    // As b3sum: what is wrong with the files and not with the flags is status 1.
    home.run(["sum", "--raw", "a", "b"]).exits(1).complains("--raw");
    home.run(["sum", "--check", "--tag", "a"]).exits(2).complains("--tag");
}

#[test]
fn completions_are_scripts_that_the_shells_read() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        home.run(["completions", shell]).exits(0).says("export-public");
    }
    let script = home.run(["completions", "bash"]).stdout;
    Done::with_input(home.program("bash").args(["-n", "/dev/stdin"]), script.as_bytes()).exits(0);
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let home = Home::new();
    home.run(["man"]).exits(0).says(".TH BULLA 1").says(".ad l\n.SH NAME");
    for command in COMMANDS {
        home.run(["man", command]).exits(0).says(&format!(".TH BULLA-{} 1", command.to_uppercase()));
    }
    home.run(["man", "keys", "rotate"]).exits(0).says(".TH BULLA-KEYS-ROTATE 1");
    home.run(["man", "nothing"]).exits(2).complains("there is no command `nothing`");
}

#[test]
fn color_is_used_on_request_only() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    let escape = "\u{1b}[";
    assert!(!home.run(["verify", "a"]).exits(0).stdout.contains(escape));
    assert!(home.run(["verify", "a", "--color", "always"]).exits(0).stdout.contains(escape));
    let forced = Done::of(home.command().env("CLICOLOR_FORCE", "1").args(["verify", "a"])).exits(0);
    assert!(forced.stdout.contains(escape));
    for never in [["NO_COLOR", "1"], ["CLICOLOR", "0"]] {
        let done = Done::of(home.command().env(never[0], never[1]).args(["verify", "a", "b"])).exits(2);
        assert!(!done.stdout.contains(escape) && !done.stderr.contains(escape));
    }
    assert!(!home.run(["sum", "a", "--color", "always"]).exits(0).stdout.contains(escape));
    assert!(!home.run(["--help"]).exits(0).stdout.contains(escape));
    let forced = Done::of(home.command().env("CLICOLOR_FORCE", "1").arg("--help")).exits(0);
    assert!(forced.stdout.contains(escape));
}

#[test]
fn nothing_but_results_and_errors_is_printed_off_a_terminal() {
    let home = Home::new();
    home.write("a", vec![0; 100 << 20]);
    let done = home.run(["sum", "a"]).exits(0);
    assert_eq!(done.stderr, "");
}

/// Whether a terminal shows what is typed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Typing {
    Shown,
    Hidden,
}

/// A command line on a terminal of its own, by the program `script` of util-linux. Each answer is
/// typed once `ask` has been shown as often as there were answers before, and once more, and once
/// the terminal shows or hides what is typed, as `typing` says.
fn on_a_terminal(home: &Home, line: &str, ask: &str, typing: Typing, answers: &[&str]) -> Done {
    let mut child = home
        .program("script")
        .args(["-qec", &format!("tty; {line}"), "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("`script` of util-linux runs");
    let mut keyboard = child.stdin.take().unwrap();
    let mut screen = BufReader::new(child.stdout.take().unwrap());
    let mut terminal = String::new();
    screen.read_line(&mut terminal).unwrap();
    let mut shown = Vec::new();
    for (index, answer) in answers.iter().enumerate() {
        while String::from_utf8_lossy(&shown).matches(ask).count() <= index {
            let mut bytes = [0; 1024];
            let len = screen.read(&mut bytes).unwrap();
            assert!(len > 0, "{ask:?} was not asked: {}", String::from_utf8_lossy(&shown));
            shown.extend_from_slice(&bytes[..len]);
        }
        // The prompt is printed just before the terminal begins to hide what is typed.
        let start = Instant::now();
        while typing_on(terminal.trim()) != typing {
            assert!(start.elapsed() < Duration::from_secs(60), "the terminal does not change");
            std::thread::sleep(Duration::from_millis(5));
        }
        writeln!(keyboard, "{answer}").unwrap();
    }
    screen.read_to_end(&mut shown).unwrap();
    let mut output = child.wait_with_output().unwrap();
    output.stdout = shown;
    Done::from(output)
}

fn typing_on(terminal: &str) -> Typing {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(terminal, flags, Mode::empty()).expect("the terminal opens");
    let modes = rustix::termios::tcgetattr(file).expect("it is a terminal").local_modes;
    if modes.contains(LocalModes::ECHO) { Typing::Shown } else { Typing::Hidden }
}

#[test]
fn long_work_shows_progress_on_a_terminal() {
    let home = Home::new();
    fs::File::create(home.path("long")).unwrap().set_len(1 << 40).unwrap();
    // Progress appears after half a second; the work itself would take minutes, were it not for
    // Ctrl-C. That is ignored where the tests run in the background of a shell.
    let line = format!("env --default-signal=INT {bulla} sum --no-mmap long", bulla = bulla());
    let done = on_a_terminal(&home, &line, "left", Typing::Shown, &["\u{3}"]).exits(130);
    assert!(done.stdout.contains("1.00 TiB"), "{:?}", done.stdout);
}

#[test]
fn a_passphrase_is_asked_for_on_a_terminal_and_never_shown() {
    let home = Home::new();
    let run = |line: &str, answers: &[&str]| {
        on_a_terminal(&home, &format!("{bulla} {line}", bulla = bulla()), ": ", Typing::Hidden, answers)
    };
    let init = run("keystore init --passphrase", &["correct horse", "correct horse"]).exits(0);
    let list = run("keys list", &["correct horse"]).exits(0).says("default");
    let wrong = run("keys list", &["wrong horse"]).exits(2).says("passphrase");
    let slip = run("keystore init --passphrase --keystore other", &["correct horse", "other horse"]).exits(2);
    for done in [init, list, wrong, slip.says("the two passphrases differ")] {
        assert!(done.stdout.contains("Passphrase of the keystore"), "{}", done.stdout);
        assert!(!done.stdout.contains("horse"), "{}", done.stdout);
    }
    assert!(!home.path("other").exists());
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let home = Home::new();
    for index in 0..200 {
        home.write(format!("{index}"), format!("{index}"));
    }
    let commands: [&[&str]; 4] = [&["sum"], &["sum", "--json"], &["sum", "--tag"], &["sum", "--no-mmap"]];
    for args in commands {
        let names = (0..20_000).map(|index| (index % 200).to_string());
        let mut child = home
            .command()
            .args(args)
            .args(names)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let done = Done::from(child.wait_with_output().unwrap());
        assert_eq!((done.code, done.stderr.as_str()), (Some(141), ""), "{args:?}");
    }
}

#[test]
fn the_printed_command_works_without_bulla_on_the_path() {
    let home = Home::new();
    home.write("a", "a");
    let here = std::env::current_dir().unwrap();
    let relative = pathdiff(bulla(), &here);
    let mut script = Command::new("script");
    script.current_dir(&here).env("XDG_DATA_HOME", home.path("../home"));
    let sign = format!("{relative} sign {}", home.path("a").display());
    let done = crate::sign::on_a_terminal(&mut script, &sign);
    let line = &crate::sign::hinted_lines(&done)[0];
    let mut verify = Command::new("sh");
    verify.current_dir(&here).env("XDG_DATA_HOME", home.path("../home")).args(["-c", line]);
    Done::of(&mut verify).exits(0).says(": OK");
}

/// `path` as seen from `base`: as many steps up as `base` has, then down.
fn pathdiff(path: &str, base: &std::path::Path) -> String {
    format!("{}{}", "../".repeat(base.components().count() - 1), path.trim_start_matches('/'))
}
