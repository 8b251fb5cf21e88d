//! The hashers of the C libraries agree with the official crate after any calls, and a call that
//! fails changes nothing.
#![no_main]

use arbitrary::Arbitrary;
use bulla_c::blake3::bulla_blake3_context_key;
use bulla_c::hasher::*;
use bulla_c::official::*;
use bulla_c::state::*;
use bulla_c::status::*;
use libfuzzer_sys::fuzz_target;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut, read};
use std::sync::LazyLock;

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Mode {
    Hash,
    Keyed,
    DeriveKey,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Update {
        len: u32,
        threads: bool,
    },
    Output {
        seek: u64,
        len: u16,
    },
    Copy,
    /// Saves, and goes on with what was restored.
    Save,
    /// Restores a state with some bytes changed, perhaps cut off or longer.
    Damaged {
        changes: Vec<(u16, u8)>,
        new_len: Option<u16>,
    },
    Reset,
    Wrong,
}

#[derive(Arbitrary, Debug)]
struct Case {
    mode: Mode,
    key: [u8; 32],
    context: String,
    steps: Vec<Step>,
}

/// Room for the longest update at any of its starts. It is made once: making it takes longer than
/// most cases.
static INPUT: LazyLock<Vec<u8>> = LazyLock::new(|| (0..401_000).map(|i| (i % 251) as u8).collect());

/// One hasher in the three forms that C has.
struct Hashers {
    heap: *mut bulla_blake3_hasher,
    state: Box<MaybeUninit<bulla_blake3_state>>,
    names: Box<MaybeUninit<blake3_hasher>>,
}

fn ok(status: bulla_status) {
    assert_eq!(status, BULLA_OK);
}

impl Hashers {
    fn new(case: &Case) -> Self {
        let (mut heap, mut state, mut names) = (null_mut(), Box::new_uninit(), Box::new_uninit());
        let (key, context) = (case.key.as_ptr(), &case.context);
        // SAFETY: there is room for the hashers, and the key and the context are readable.
        unsafe {
            match case.mode {
                Mode::Hash => {
                    ok(bulla_blake3_hasher_new(&mut heap));
                    ok(bulla_blake3_init(state.as_mut_ptr()));
                    blake3_hasher_init(names.as_mut_ptr());
                }
                Mode::Keyed => {
                    ok(bulla_blake3_hasher_new_keyed(key, &mut heap));
                    ok(bulla_blake3_init_keyed(state.as_mut_ptr(), key));
                    blake3_hasher_init_keyed(names.as_mut_ptr(), key);
                }
                Mode::DeriveKey => {
                    let (at, len) = (context.as_ptr().cast(), context.len());
                    let mut of_context = [0; 32];
                    ok(bulla_blake3_context_key(at, len, of_context.as_mut_ptr()));
                    let mode = BULLA_BLAKE3_DERIVE_KEY;
                    ok(bulla_blake3_hasher_new_with(mode, of_context.as_ptr(), null(), &mut heap));
                    ok(bulla_blake3_init_derive_key(state.as_mut_ptr(), at, len));
                    blake3_hasher_init_derive_key_raw(names.as_mut_ptr(), at, len);
                }
            }
        }
        Hashers { heap, state, names }
    }

    fn update(&mut self, input: &[u8], threads: bool) {
        let (at, len) = (input.as_ptr().cast(), input.len());
        // SAFETY: the hashers are initialized, the input is readable.
        unsafe {
            if threads {
                ok(bulla_blake3_hasher_update_threads(self.heap, at, len));
                ok(bulla_blake3_update_threads(self.state.as_mut_ptr(), at, len));
                blake3_hasher_update_tbb(self.names.as_mut_ptr(), at, len);
            } else {
                ok(bulla_blake3_hasher_update(self.heap, at, len));
                ok(bulla_blake3_update(self.state.as_mut_ptr(), at, len));
                blake3_hasher_update(self.names.as_mut_ptr(), at, len);
            }
        }
    }

    /// The output of all three, which must be the same.
    fn output(&self, seek: u64, len: usize) -> Vec<u8> {
        let (mut heap, mut state, mut names) = (vec![1; len], vec![2; len], vec![0; len]);
        // SAFETY: the hashers are initialized, and there is room for the output.
        unsafe {
            ok(bulla_blake3_hasher_finalize(self.heap, seek, heap.as_mut_ptr(), len));
            ok(bulla_blake3_finalize(self.state.as_ptr(), seek, state.as_mut_ptr(), len));
            blake3_hasher_finalize_seek(self.names.as_ptr(), seek, names.as_mut_ptr(), len);
        }
        assert_eq!(heap, state);
        assert_eq!(heap, names);
        heap
    }

    fn count(&self) -> u64 {
        // SAFETY: the hashers are initialized.
        let counts =
            unsafe { (bulla_blake3_hasher_count(self.heap), bulla_blake3_count(self.state.as_ptr())) };
        assert_eq!(counts.0, counts.1);
        counts.0
    }

    /// Goes on with copies, after the originals have taken something else.
    fn copy(&mut self) {
        let mut copy = null_mut();
        // SAFETY: the hashers are initialized. A hasher in the caller's memory may be copied.
        unsafe {
            ok(bulla_blake3_hasher_clone(self.heap, &mut copy));
            let (state, names) = (read(&*self.state), read(&*self.names));
            self.update(b"other", false);
            bulla_blake3_hasher_free(self.heap);
            self.heap = copy;
            (*self.state, *self.names) = (state, names);
        }
    }

    fn save_state(&self) -> Vec<u8> {
        let (mut saved, mut len) = (vec![0; BULLA_BLAKE3_MAX_SAVED_LEN], 0);
        // SAFETY: the state is initialized, and there is room.
        unsafe {
            ok(bulla_blake3_save(self.state.as_ptr(), saved.as_mut_ptr(), saved.len(), &mut len));
            assert_eq!(
                bulla_blake3_save(self.state.as_ptr(), saved.as_mut_ptr(), len - 1, &mut len),
                BULLA_ERROR_LENGTH
            );
        }
        saved.truncate(len);
        saved
    }

    fn save_hasher(&self) -> Vec<u8> {
        let (mut saved, mut len) = (vec![0; BULLA_BLAKE3_MAX_SAVED_LEN], 0);
        // SAFETY: the hasher is one, and there is room.
        unsafe { ok(bulla_blake3_hasher_save(self.heap, saved.as_mut_ptr(), saved.len(), &mut len)) };
        saved.truncate(len);
        saved
    }

    /// Goes on with what was restored: the state from its own form and from the hasher's.
    fn save_and_restore(&mut self) {
        let (state, hasher) = (self.save_state(), self.save_hasher());
        let mut restored = null_mut();
        // SAFETY: the bytes are readable, and there is room for the hashers.
        unsafe {
            ok(bulla_blake3_hasher_restore(hasher.as_ptr(), hasher.len(), &mut restored));
            bulla_blake3_hasher_free(self.heap);
            self.heap = restored;
            ok(bulla_blake3_wipe(self.state.as_mut_ptr()));
            ok(bulla_blake3_restore(state.as_ptr(), state.len(), self.state.as_mut_ptr()));
            assert_eq!(self.save_state(), state);
            ok(bulla_blake3_restore(hasher.as_ptr(), hasher.len(), self.state.as_mut_ptr()));
            assert_eq!(self.save_state(), state);
        }
    }

    /// What is restored from changed bytes is exactly what they say, or nothing.
    fn restore_damaged(&mut self, changes: &[(u16, u8)], new_len: Option<u16>) {
        let before = self.save_state();
        let mut bytes = before.clone();
        for (at, change) in changes {
            // Mostly in the header: the rest has no structure.
            let at = usize::from(*at) % bytes.len().min(72);
            bytes[at] ^= change;
        }
        if let Some(len) = new_len {
            bytes.resize(usize::from(len % 4096), 0);
        }
        let mut hasher = null_mut();
        // SAFETY: the bytes are readable, and there is room for the state.
        unsafe {
            match bulla_blake3_restore(bytes.as_ptr(), bytes.len(), self.state.as_mut_ptr()) {
                BULLA_OK if bytes[8] == 2 => assert_eq!(self.save_state(), bytes),
                BULLA_OK => drop(self.save_state()),
                status => {
                    assert_eq!(status, BULLA_ERROR_STATE);
                    assert_eq!(self.save_state(), before, "a failure changed the state");
                }
            }
            ok(bulla_blake3_restore(before.as_ptr(), before.len(), self.state.as_mut_ptr()));
            if bulla_blake3_hasher_restore(bytes.as_ptr(), bytes.len(), &mut hasher) == BULLA_OK {
                bulla_blake3_hasher_free(hasher);
            } else {
                assert!(hasher.is_null());
            }
        }
    }

    fn reset(&mut self) {
        // SAFETY: the hashers are initialized.
        unsafe {
            ok(bulla_blake3_hasher_reset(self.heap));
            ok(bulla_blake3_reset(self.state.as_mut_ptr()));
            blake3_hasher_reset(self.names.as_mut_ptr());
        }
    }

    /// Arguments that no call can use.
    fn wrong(&mut self) {
        let (mut byte, mut len) = (0_u8, 0);
        let (state, at) = (self.state.as_mut_ptr(), &raw mut byte);
        // SAFETY: no function uses memory of a length that cannot be there, or memory at NULL or at
        // an odd address.
        unsafe {
            let odd = state.cast::<u8>().add(1).cast::<bulla_blake3_state>();
            assert_eq!(bulla_blake3_hasher_update(self.heap, null(), 1), BULLA_ERROR_NULL);
            assert_eq!(bulla_blake3_hasher_update(self.heap, at.cast(), usize::MAX), BULLA_ERROR_LENGTH);
            assert_eq!(bulla_blake3_hasher_update(null_mut(), at.cast(), 1), BULLA_ERROR_NULL);
            assert_eq!(bulla_blake3_hasher_finalize(self.heap, 0, null_mut(), 1), BULLA_ERROR_NULL);
            assert_eq!(bulla_blake3_update(state, null(), 1), BULLA_ERROR_NULL);
            assert_eq!(bulla_blake3_update(state, at.cast(), usize::MAX), BULLA_ERROR_LENGTH);
            assert_eq!(bulla_blake3_update(odd, at.cast(), 1), BULLA_ERROR_ARGUMENT);
            assert_eq!(bulla_blake3_finalize(odd, 0, at, 1), BULLA_ERROR_ARGUMENT);
            assert_eq!(bulla_blake3_save(state, null_mut(), 9999, &mut len), BULLA_ERROR_NULL);
            assert_eq!(bulla_blake3_restore(null(), 64, state), BULLA_ERROR_NULL);
            blake3_hasher_update(self.names.as_mut_ptr(), null(), 5);
            blake3_hasher_update(null_mut(), at.cast(), 1);
            blake3_hasher_finalize(self.names.as_ptr(), null_mut(), 5);
        }
    }
}

impl Drop for Hashers {
    fn drop(&mut self) {
        // SAFETY: the hasher is one, and is not used any more.
        unsafe { bulla_blake3_hasher_free(self.heap) };
    }
}

fuzz_target!(|case: Case| {
    let mut ours = Hashers::new(&case);
    let mut theirs = match case.mode {
        Mode::Hash => blake3::Hasher::new(),
        Mode::Keyed => blake3::Hasher::new_keyed(&case.key),
        Mode::DeriveKey => blake3::Hasher::new_derive_key(&case.context),
    };
    for step in case.steps.iter().take(32) {
        match step {
            Step::Update { len, threads } => {
                // All lengths, and mostly short ones.
                let len = *len as usize % [100, 5_000, 70_000, 400_000][*len as usize >> 30];
                let at = theirs.count() as usize % 1000;
                ours.update(&INPUT[at..at + len], *threads);
                theirs.update(&INPUT[at..at + len]);
            }
            Step::Output { seek, len } => {
                let (seek, len) = (seek >> (seek % 64), usize::from(len % 300));
                let seek = seek.min(u64::MAX - 300);
                let mut expected = vec![0; len];
                let mut reader = theirs.finalize_xof();
                reader.set_position(seek);
                reader.fill(&mut expected);
                assert_eq!(ours.output(seek, len), expected);
            }
            Step::Copy => ours.copy(),
            Step::Save => ours.save_and_restore(),
            Step::Damaged { changes, new_len } => ours.restore_damaged(changes, *new_len),
            Step::Reset => {
                ours.reset();
                theirs.reset();
            }
            Step::Wrong => ours.wrong(),
        }
        assert_eq!(ours.count(), theirs.count());
    }
    assert_eq!(ours.output(0, 32), theirs.finalize().as_bytes());
});
