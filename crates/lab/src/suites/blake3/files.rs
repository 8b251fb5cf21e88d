//! Files in the page cache: the speed that remains after opening, reading and mapping.

use std::rc::Rc;

use super::{
    case::{KIB, MIB, case, peer},
    operations::{official, ours},
    test_file::{Access, TestFile},
};
use crate::suites::suite::Case;

/// The lengths of files.
const SIZES: [usize; 6] = [KIB, 16 * KIB, 128 * KIB, MIB, 16 * MIB, 64 * MIB];

/// Every contender of a case hashes the same file.
pub(super) fn cases() -> Vec<Case> {
    let of = |(access, bytes): (Access, usize)| {
        let file = Rc::new(TestFile::new(bytes));
        let same = Rc::clone(&file);
        let peers = vec![peer(move || official::file(access, &same))];
        Case { input: 0, ..case(access.name(), bytes, move || ours::file(access, &file), peers) }
    };
    Access::ALL.into_iter().flat_map(|access| SIZES.map(|bytes| (access, bytes))).map(of).collect()
}
