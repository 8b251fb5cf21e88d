//! BLAKE3 of input in pieces, in memory that the caller allocates.

use crate::args;
use crate::kernels::ready;
use crate::pool::pool;
use crate::status::{BULLA_ERROR_LENGTH, BULLA_ERROR_STATE, Failure, bulla_status, guard};
use bulla_blake3::hazmat::Mode;
use bulla_blake3::{CompactHasher, SavedState, kernel};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use zeroize::Zeroize as _;

/// Bytes of a bulla_blake3_state.
pub const BULLA_BLAKE3_STATE_SIZE: usize = 1920;
/// The alignment of a bulla_blake3_state in bytes.
pub const BULLA_BLAKE3_STATE_ALIGN: usize = 8;

/// A BLAKE3 hasher in memory that the caller allocates, for example on the stack.
///
/// bulla_blake3_init and the like initialize it. Nothing has to be freed. A copy of the bytes is
/// another hasher in the same state, but the bytes mean nothing to another version of this library:
/// to save a state, use bulla_blake3_save. It holds one block of input, so that bulla_blake3_hasher
/// is faster for pieces of less than about 16 KiB. One thread at a time may use a state; calls that
/// take it as const may run at the same time.
#[repr(C)]
pub struct bulla_blake3_state {
    /// Private.
    pub opaque: [u64; 240],
}

/// The memory of an initialized state.
#[repr(C)]
struct StateMemory {
    /// [`MAGIC`], if it was initialized: most memory that was not does not begin like that.
    magic: u64,
    hasher: CompactHasher,
}

const _: () = assert!(
    size_of::<bulla_blake3_state>() == BULLA_BLAKE3_STATE_SIZE
        && align_of::<bulla_blake3_state>() == BULLA_BLAKE3_STATE_ALIGN
        && size_of::<StateMemory>() <= BULLA_BLAKE3_STATE_SIZE
        && align_of::<StateMemory>() <= BULLA_BLAKE3_STATE_ALIGN
);

const MAGIC: u64 = u64::from_le_bytes(*b"bullaB3\x01");

/// # Safety
///
/// If `at` is not NULL, it must have room for a state.
#[inline(always)]
unsafe fn init(
    at: *mut bulla_blake3_state,
    make: impl FnOnce(&mut MaybeUninit<CompactHasher>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    args::aligned(at)?;
    let at = at.cast::<StateMemory>();
    // SAFETY: the caller promised the room, which is aligned.
    unsafe {
        make(&mut *(&raw mut (*at).hasher).cast())?;
        (&raw mut (*at).magic).write(MAGIC);
    }
    Ok(())
}

/// # Safety
///
/// If `at` is not NULL, nobody may change it meanwhile.
#[inline(always)]
unsafe fn state<'a>(at: *const bulla_blake3_state) -> Result<&'a CompactHasher, Failure> {
    args::aligned(at)?;
    // SAFETY: the caller promised the memory. If it begins like a state, it was initialized, or is
    // a copy of one that was.
    unsafe {
        let at = at.cast::<StateMemory>();
        if (&raw const (*at).magic).read() == MAGIC { Ok(&(*at).hasher) } else { Err(not_a_state()) }
    }
}

/// # Safety
///
/// If `at` is not NULL, nobody else may use it meanwhile.
#[inline(always)]
unsafe fn state_mut<'a>(at: *mut bulla_blake3_state) -> Result<&'a mut CompactHasher, Failure> {
    args::aligned(at)?;
    // SAFETY: see `state`.
    unsafe {
        let at = at.cast::<StateMemory>();
        if (&raw const (*at).magic).read() == MAGIC { Ok(&mut (*at).hasher) } else { Err(not_a_state()) }
    }
}

#[cold]
fn not_a_state() -> Failure {
    Failure::new(BULLA_ERROR_STATE, "this memory was not initialized as a BLAKE3 state, or was wiped")
}

/// Initializes a state for plain hashing. Thread-safe.
///
/// # Safety
///
/// `state` has room for a state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_init(state: *mut bulla_blake3_state) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the room.
        unsafe {
            init(state, |place| {
                CompactHasher::init(place, Mode::Hash);
                Ok(())
            })
        }
    })
}

/// Initializes a state for hashing under a key of 32 bytes. Thread-safe.
///
/// # Safety
///
/// `state` has room for a state, `key` has 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_init_keyed(
    state: *mut bulla_blake3_state,
    key: *const u8,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the room and the key.
        unsafe {
            let key = args::array(key)?;
            init(state, |place| {
                CompactHasher::init(place, Mode::KeyedHash(&key));
                Ok(())
            })
        }
    })
}

/// Initializes a state for key derivation: the input is the key material. The context should be
/// text. Thread-safe.
///
/// # Safety
///
/// `state` has room for a state, `context` has `context_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_init_derive_key(
    state: *mut bulla_blake3_state,
    context: *const c_void,
    context_len: usize,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the room and the context.
        unsafe {
            let context = args::bytes(context, context_len)?;
            init(state, |place| {
                CompactHasher::init_derive_key_raw(place, kernel::active(), context);
                Ok(())
            })
        }
    })
}

/// Hashes more input, on this thread. One thread at a time for each state.
///
/// # Safety
///
/// `state` was initialized, `input` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_update(
    state: *mut bulla_blake3_state,
    input: *const c_void,
    len: usize,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the state and the input.
        unsafe { state_mut(state)?.update(args::bytes(input, len)?) };
        Ok(())
    })
}

/// Hashes more input, on all threads of the pool: see bulla_start_threads. Input under 64 KiB is
/// hashed on this thread. One thread at a time for each state.
///
/// # Safety
///
/// `state` was initialized, `input` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_update_threads(
    state: *mut bulla_blake3_state,
    input: *const c_void,
    len: usize,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the state and the input.
        let (state, input) = unsafe { (state_mut(state)?, args::bytes(input, len)?) };
        match pool(len) {
            Some(pool) => state.update_in_pool_by(kernel::active(), pool, input),
            None => state.update(input),
        };
        Ok(())
    })
}

/// Writes `out_len` bytes of output from position `seek` on. The digest is the first 32 bytes from
/// position 0. The state does not change, and can take more input. Several threads may call this at
/// once.
///
/// # Safety
///
/// `state` was initialized, `out` has room for `out_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_finalize(
    state: *const bulla_blake3_state,
    seek: u64,
    out: *mut u8,
    out_len: usize,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the state and the room.
        let (state, out) = unsafe { (self::state(state)?, args::output(out, out_len)?) };
        match <&mut [u8; 32]>::try_from(&mut *out) {
            Ok(digest) if seek == 0 => state.finalize_into(kernel::active(), digest),
            _ => {
                let mut reader = state.finalize_xof();
                reader.set_position(seek);
                reader.fill(out);
            }
        }
        Ok(())
    })
}

/// Resets the state: same mode, same key, no input. One thread at a time for each state.
///
/// # Safety
///
/// `state` was initialized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_reset(state: *mut bulla_blake3_state) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the state.
        unsafe { state_mut(state) }?.reset();
        Ok(())
    })
}

/// The number of bytes hashed so far; 0 if the memory is not a state. Several threads may call this
/// at once.
///
/// # Safety
///
/// `state` was initialized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_count(state: *const bulla_blake3_state) -> u64 {
    // SAFETY: the caller promised the state.
    unsafe { self::state(state) }.map_or(0, CompactHasher::count)
}

/// Saves the state for bulla_blake3_restore, on any machine: version 2 of `spec/blake3-state.md`.
/// Writes its length to `saved_len`, and the state to `saved`, which has room for `room` bytes;
/// BULLA_BLAKE3_MAX_SAVED_LEN is always enough. Fails with BULLA_ERROR_LENGTH if there is too
/// little room, and then still writes the length. bulla_blake3_hasher_restore does not take it.
///
/// **The saved state contains the key of a keyed hash and the last bytes of the input.** Several
/// threads may call this at once.
///
/// # Safety
///
/// `state` was initialized, `saved` has room for `room` bytes, `saved_len` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_save(
    state: *const bulla_blake3_state,
    saved: *mut u8,
    room: usize,
    saved_len: *mut usize,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the state, the room and the number.
        unsafe { give_saved(self::state(state)?.save(), saved, room, saved_len) }
    })
}

/// Writes a saved state and its length, and clears our copy.
///
/// # Safety
///
/// If they are not NULL, `saved` must have room for `room` bytes, and `saved_len` must point to a
/// number.
pub(crate) unsafe fn give_saved(
    mut state: SavedState,
    saved: *mut u8,
    room: usize,
    saved_len: *mut usize,
) -> Result<(), Failure> {
    // SAFETY: the caller promised the room and the number.
    let result = unsafe { args::object_mut(saved_len).and_then(|len| Ok((len, args::output(saved, room)?))) };
    let result = result.and_then(|(len, to)| {
        *len = state.len();
        to.get_mut(..state.len()).map(|to| to.copy_from_slice(&state)).ok_or_else(|| {
            Failure::new(
                BULLA_ERROR_LENGTH,
                format!("the state has {len} bytes, and there is room for {room}"),
            )
        })
    });
    state.zeroize();
    result
}

/// Initializes a state with one that bulla_blake3_save or bulla_blake3_hasher_save has saved. Fails
/// with BULLA_ERROR_STATE if the bytes are not exactly one, and then does not change `state`.
/// Thread-safe.
///
/// # Safety
///
/// `saved` has `len` bytes, `state` has room for a state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_restore(
    saved: *const u8,
    len: usize,
    state: *mut bulla_blake3_state,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the bytes and the room.
        unsafe {
            let saved = args::bytes(saved.cast(), len)?;
            init(state, |place| {
                let restored = CompactHasher::restore(saved)
                    .map_err(|error| Failure::new(BULLA_ERROR_STATE, error.to_string()))?;
                place.write(restored);
                Ok(())
            })
        }
    })
}

/// Overwrites a state with zeros, so that neither the key nor the input is left in memory. One
/// thread at a time for each state.
///
/// # Safety
///
/// `state` has room for a state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake3_wipe(state: *mut bulla_blake3_state) -> bulla_status {
    // SAFETY: the caller promised the room; zeros are a value of the type that C sees.
    guard(|| unsafe { args::wipe(state) })
}
