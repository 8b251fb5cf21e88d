//! Tests what hashers leave behind in the memory that a thread keeps.

use super::{SPARE, Wide};
use crate::{DeriveKey, Hasher};
use std::{boxed::Box, vec};

/// Gives this thread a zeroed large part, so that every byte of it may be read.
fn plant() {
    // SAFETY: zeros are valid for every field: lengths, bits and the first variant of an enum.
    SPARE.set(Some(unsafe { Box::<Wide>::new_zeroed().assume_init() }));
}

/// Lets hashers use such a part, and returns how many of its bytes and words are not zero
/// afterwards.
fn left_behind(run: impl FnOnce()) -> usize {
    plant();
    run();
    let wide = SPARE.take().expect("the last hasher gave its own back");
    // SAFETY: all bytes were zeros at first, and only bytes were written since.
    let bytes = wide.bytes.room.iter().map(|byte| unsafe { byte.assume_init() });
    // SAFETY: as above.
    let groups = wide.groups.room().iter().flat_map(|group| unsafe { group.assume_init() }.0);
    // Miri takes seconds to check all of them, so it checks a sample.
    let step = if cfg!(miri) { 31 } else { 1 };
    bytes.step_by(step).filter(|byte| *byte != 0).count()
        + groups.step_by(step).filter(|word| *word != 0).count()
}

/// Updates that leave input in the buffer, bypass it, and make groups.
fn use_up(hasher: &mut Hasher, most: usize) {
    let input = vec![0xA5; most];
    for piece in [1000, 90, 700, 2000, 16_384, 50_000, 9000].into_iter().take_while(|piece| *piece <= most) {
        hasher.update(&input[..piece]);
    }
    if !cfg!(miri) {
        hasher.finalize();
    }
}

/// In Miri, the input ends early in the second chunk: the paths of chunks have their own tests
/// there.
const MOST: usize = if cfg!(miri) { 1000 } else { 50_000 };

#[test]
fn a_plain_hasher_leaves_its_input() {
    // The control: without clearing, the search finds the data.
    assert!(left_behind(|| use_up(&mut Hasher::new(), MOST)) > MOST / 40);
}

#[test]
fn a_keyed_hasher_leaves_nothing() {
    let key = [7; 32];
    assert_eq!(left_behind(|| use_up(&mut Hasher::new_keyed(&key), MOST)), 0);
    assert_eq!(left_behind(|| use_up(&mut Hasher::new_derive_key("bulla test 2026-11-23"), MOST)), 0);
    assert_eq!(left_behind(|| use_up(&mut DeriveKey::new("bulla test 2026-11-23").hasher(), MOST)), 0);
}

#[cfg(feature = "zeroize")]
#[test]
fn a_plain_hasher_that_is_wiped_leaves_nothing() {
    let left = left_behind(|| {
        let mut hasher = Hasher::new();
        use_up(&mut hasher, MOST);
        zeroize::Zeroize::zeroize(&mut hasher);
    });
    assert_eq!(left, 0);
}

#[test]
fn neither_does_one_that_began_anew() {
    let left = left_behind(|| {
        let mut hasher = Hasher::new_keyed(&[7; 32]);
        use_up(&mut hasher, MOST);
        use_up(hasher.reset(), 10);
    });
    assert_eq!(left, 0);
}

#[test]
fn a_copy_leaves_nothing_either() {
    let left = left_behind(|| {
        let mut hasher = Hasher::new_keyed(&[7; 32]);
        use_up(&mut hasher, MOST);
        plant();
        let copy = hasher.clone();
        drop(hasher);
        // The thread keeps the part of the hasher that is dropped last.
        drop(copy);
    });
    assert_eq!(left, 0);
}
