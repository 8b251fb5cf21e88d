//! The programs beside `bulla`: where bulla finds them, and what they get.

use crate::support::{Done, Home, bulla};

/// Copies bulla into the folder `own`, and writes a program that says where it is and what it got.
fn copy_bulla(home: &Home) {
    home.write("own/README", "");
    Done::of(home.program("cp").args([bulla(), "own/bulla"])).exits(0);
}

fn write_program(home: &Home, folder: &str) {
    write_named(home, folder, "bulla-audit");
}

fn write_named(home: &Home, folder: &str, program: &str) {
    let name = format!("{folder}/{program}");
    home.write(&name, format!("#!/bin/sh\necho {folder}: \"$@\"\ntimeout 9 cat\nexit 7\n"));
    home.chmod(&name, 0o755);
}

#[test]
fn a_program_beside_bulla_is_started_before_one_on_the_path() {
    let home = Home::new();
    copy_bulla(&home);
    write_program(&home, "own");
    write_program(&home, "on-path");
    let path = format!("{}:{}", home.path("on-path").display(), std::env::var("PATH").unwrap_or_default());
    let run =
        || Done::of(home.program(home.path("own/bulla")).env("PATH", &path).args(["audit", "--json", "a b"]));
    run().exits(7).says("own: --json a b\n");
    std::fs::remove_file(home.path("own/bulla-audit")).expect("it is there");
    run().exits(7).says("on-path: --json a b\n");
}

#[test]
fn a_program_in_the_current_folder_is_not_started_and_the_error_says_what_is_missing() {
    let home = Home::new();
    copy_bulla(&home);
    write_program(&home, ".");
    for path in ["", ".", "/usr/bin:", ":/bin"] {
        let done = Done::of(home.program(home.path("own/bulla")).env("PATH", path).arg("audit")).exits(2);
        done.complains("bulla: the program bulla-audit is missing").complains("cargo install bulla-audit");
    }
}

#[test]
fn a_program_is_found_beside_the_file_that_a_link_leads_to() {
    let home = Home::new();
    copy_bulla(&home);
    write_program(&home, "own");
    std::os::unix::fs::symlink("own/bulla", home.path("link")).expect("a link");
    Done::of(home.program(home.path("link")).args(["help", "audit"])).exits(7).says("own: --help\n");
}

#[test]
fn help_completions_and_manual_pages_show_the_commands_of_all_programs() {
    let home = Home::new();
    let list = home.run(["--help"]).exits(0).stdout;
    for (command, program) in [
        ("audit", "bulla-audit"),
        ("serve", "bulla-serve"),
        ("token", "bulla-remote"),
        ("threshold", "bulla-remote"),
        ("approvals", "bulla-remote"),
        ("x509", "bulla-remote"),
        ("kms-plugin", "bulla-remote"),
        ("age-plugin", "bulla-remote"),
        ("policy", "bulla-serve"),
    ] {
        let own_name = (program == "bulla-remote" || command == "policy").then_some(command);
        let program = crate::support::program(program);
        let help = Done::of(home.program(&program).args(own_name).arg("--help")).exits(0).stdout;
        assert_eq!(home.run([command, "--help"]).exits(0).stdout, help);
        assert_eq!(home.run(["help", command]).exits(0).stdout, help);
        assert!(help.contains(&format!("Usage: bulla {command}")), "{help}");
        // The list of commands has the first line of the command's own help.
        let about = help.lines().next().expect("a line");
        assert!(list.lines().any(|line| line.trim().starts_with(command) && line.ends_with(about)), "{list}");
    }
    home.run(["man", "audit"]).exits(0).says(".TH BULLA-AUDIT 1").says("manifest\\-path");
    home.run(["man", "serve", "init"]).exits(0).says(".TH BULLA-SERVE-INIT 1");
    home.run(["man", "token", "new"]).exits(0).says(".TH BULLA-TOKEN-NEW 1");
    home.run(["man", "threshold", "approve"]).exits(0).says(".TH BULLA-THRESHOLD-APPROVE 1");
    home.run(["man", "policy", "explain"]).exits(0).says(".TH BULLA-POLICY-EXPLAIN 1");
    home.run(["man", "age-plugin"]).exits(0).says(".TH BULLA-AGE-PLUGIN 1");
    home.run(["man", "kms-plugin"]).exits(0).says(".TH BULLA-KMS-PLUGIN 1").says("socket");
    for shell in ["bash", "zsh", "fish", "powershell"] {
        home.run(["completions", shell])
            .exits(0)
            .says("manifest-path")
            .says("print-openapi")
            .says("attenuate");
    }
}

#[test]
fn the_keys_of_a_service_are_used_by_bulla_remote_which_gets_all_arguments_and_the_input() {
    let home = Home::new();
    copy_bulla(&home);
    write_named(&home, "own", "bulla-remote");
    for args in [
        &["sign", "--server", "unix:socket", "-"][..],
        &["verify", "-", "--signature", "a b", "--server", "unix:socket"],
        &["decrypt", "-", "--server", "unix:socket"],
        &[
            "keys",
            "import",
            "-",
            "label",
            "--format",
            "raw",
            "--algorithm",
            "ed25519",
            "--server",
            "unix:socket",
        ],
        &["keys", "list", "--server", "unix:socket"],
        &["--color", "never", "log", "checkpoint", "--server", "unix:socket"],
        &["keys", "export", "label", "--to", "key"],
        &["token", "inspect", "-"],
        &["threshold", "join", "a b", "--yes"],
        &["kms-plugin", "--socket", "a", "--key", "b", "--server", "unix:socket"],
        &["age-plugin", "key"],
    ] {
        let done = Done::with_input(home.program(home.path("own/bulla")).args(args), b"the input\n");
        assert_eq!(done.exits(7).stdout, format!("own: {}\nthe input\n", args.join(" ")));
    }
}

#[test]
fn without_bulla_remote_a_command_says_so_only_if_it_needs_the_keys_of_a_service() {
    let home = Home::new();
    copy_bulla(&home);
    home.run(["keys", "export-public"]).exits(2);
    home.run(["sign", "own/README"]).exits(0);
    home.write("key", home.run(["keys", "export-public"]).exits(0).stdout);
    let run = |args: &[&str]| {
        let mut command = home.program(home.path("own/bulla"));
        Done::of(command.env("PATH", "").env("BULLA_ADDR", "unix:socket").args(args))
    };
    for args in [
        &["sign", "own/README"][..],
        &["keys", "list"],
        &["verify", "own/README"],
        &["token", "inspect", "a"],
    ] {
        let done = run(args).exits(2);
        let done =
            done.complains("bulla: the program bulla-remote is missing: bulla starts it for tokens, and");
        done.complains("cargo install bulla-remote");
    }
    run(&["threshold", "list"]).exits(2).complains("missing: `bulla threshold` starts it");
    run(&["sum", "own/README"]).exits(0);
    run(&["verify", "own/README", "--public-key", "key"]).exits(0);
    run(&["keystore", "init"]).exits(2).complains("this command needs a keystore on this machine");
    let keystore = home.keystore();
    run(&["keys", "list", "--keystore", keystore.to_str().expect("plain names")]).exits(0).says("default");
}
