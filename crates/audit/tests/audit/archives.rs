//! Static archives, and archives in them.

use std::fs;
use std::process::Command;

use bulla_audit::{Error, Limits, Options, Rules, audit_file};
use tempfile::TempDir;

use crate::support::{RET, VPADDQ_YMM, audited_file, elf, output, repeat, width};

/// A folder with `files`, and in it an archive of them that `ar` makes.
fn archive(files: &[(&str, Vec<u8>)], flags: &str) -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).expect("a file");
    }
    let names = files.iter().map(|(name, _)| *name);
    output(Command::new("ar").args([flags, "all.a"]).args(names).current_dir(folder.path()));
    let path = folder.path().join("all.a");
    (folder, path)
}

fn object(vectors: usize) -> Vec<u8> {
    elf(&[("f", [repeat(VPADDQ_YMM, vectors), RET.to_vec()].concat())])
}

#[test]
fn the_members_of_an_archive_count_together() {
    let (_folder, path) = archive(&[("a.o", object(3)), ("b.o", object(4))], "rc");
    let report = audited_file(&path);
    assert_eq!((report.objects, width(&report, "ymm"), report.total.instructions), (2, 7, 9));
}

#[test]
fn archives_in_archives_are_opened_and_other_files_are_named() {
    let (_inner_folder, inner) = archive(&[("a.o", object(3))], "rc");
    let inner = fs::read(inner).expect("an archive");
    let bitcode = b"BC\xc0\xde and more".to_vec();
    let (_folder, path) = archive(&[("inner.a", inner), ("b.o", object(1)), ("c.bc", bitcode)], "rc");
    let report = audited_file(&path);
    assert_eq!((report.objects, width(&report, "ymm")), (2, 4));
    assert!(
        report.notes.iter().any(|note| note.contains("c.bc") && note.contains("bitcode")),
        "{:?}",
        report.notes
    );
}

#[test]
fn a_thin_archive_is_an_error_that_says_what_to_do() {
    let (_folder, path) = archive(&[("a.o", object(3))], "rcT");
    let rules = Rules::built_in();
    let options = Options { rules: &rules, limits: Limits::default(), progress: &|_| () };
    match audit_file(&path, &options) {
        Err(Error::Format(what)) => assert!(what.contains("thin archive"), "{what}"),
        other => panic!("{other:?}"),
    }
}
