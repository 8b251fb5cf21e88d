//! The committed vectors are what the generator writes.

use std::{fs, path::Path, process::Command};

#[test]
fn the_vectors_are_what_their_generator_writes() {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let fresh = tempfile::tempdir().unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_bulla-vectors")).arg(fresh.path()).status().unwrap();
    assert!(done.success(), "{done}");
    let mut compared = 0;
    for entry in fs::read_dir(committed).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path.file_name().unwrap();
        let written = fs::read(fresh.path().join(name)).unwrap_or_default();
        assert!(written == fs::read(&path).unwrap(), "{} is not what the generator writes", name.display());
        compared += 1;
    }
    assert!(compared > 0, "there are no vectors");
    assert_eq!(fs::read_dir(fresh.path()).unwrap().count(), compared, "a file is not committed");
}
