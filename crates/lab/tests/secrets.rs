//! The gate on the machine code of the Ed25519 steps that see secrets, as users build it.

use std::{path::Path, process::Command};

use bulla_lab::code::{
    image::{Image, Units, library},
    secrets::{self, STEPS},
};

#[test]
fn no_branch_and_no_address_depends_on_a_secret() {
    for units in [Units::Default, Units::One] {
        let image = Image::read(&library("bulla-ed25519", units).unwrap()).unwrap();
        let steps = secrets::find(&image).unwrap();
        assert_eq!(steps.iter().map(|step| step.name).collect::<Vec<_>>(), STEPS);
        for step in steps {
            assert!(step.instructions > 100, "{}: too short to be the step", step.name);
            assert!(step.faults.is_empty(), "{units:?}\n  {}", step.faults.join("\n  "));
        }
    }
}

#[test]
fn the_program_says_what_it_read_and_refuses_other_files() {
    let secrets_code = |file: &Path| {
        Command::new(env!("CARGO_BIN_EXE_bulla-lab")).arg("secrets-code").arg(file).output().unwrap()
    };
    let read = secrets_code(&library("bulla-ed25519", Units::Default).unwrap());
    assert!(read.status.success());
    let text = String::from_utf8(read.stdout).unwrap();
    assert!(STEPS.iter().all(|step| text.contains(step)), "{text}");
    for file in [Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"), "no such file".into()] {
        let refused = secrets_code(&file);
        assert!(!refused.status.success() && refused.stdout.is_empty());
        assert!(String::from_utf8(refused.stderr).unwrap().contains(&*file.to_string_lossy()));
    }
}
