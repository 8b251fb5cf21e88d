//! BLAKE2b, BLAKE2s, BLAKE2bp and BLAKE2sp: at once, or in pieces in memory that the caller
//! allocates.

use crate::args;
use crate::kernels;
use crate::status::{
    BULLA_ERROR_ARGUMENT, BULLA_ERROR_LENGTH, BULLA_ERROR_STATE, Failure, bulla_status, guard,
};
use bulla_blake2::blake2b::{self, blake2bp};
use bulla_blake2::blake2s::{self, blake2sp};
use std::ffi::c_void;

/// BLAKE2b: digests and keys of at most 64 bytes, salt and personalization of 16. The fastest one
/// for one input on 64-bit machines.
pub const BULLA_BLAKE2B: u32 = 0;
/// BLAKE2s: digests and keys of at most 32 bytes, salt and personalization of 8.
pub const BULLA_BLAKE2S: u32 = 1;
/// BLAKE2bp: like BLAKE2b, four blocks at once; another digest. No salt and personalization.
pub const BULLA_BLAKE2BP: u32 = 2;
/// BLAKE2sp: like BLAKE2s, eight blocks at once; another digest. No salt and personalization.
pub const BULLA_BLAKE2SP: u32 = 3;

/// The most bytes of a digest of BLAKE2b and BLAKE2bp.
pub const BULLA_BLAKE2B_OUT_LEN: usize = 64;
/// The most bytes of a digest of BLAKE2s and BLAKE2sp.
pub const BULLA_BLAKE2S_OUT_LEN: usize = 32;

/// Bytes of a bulla_blake2_state.
pub const BULLA_BLAKE2_STATE_SIZE: usize = 1792;
/// The alignment of a bulla_blake2_state in bytes.
pub const BULLA_BLAKE2_STATE_ALIGN: usize = 16;

/// The parameters of a BLAKE2 hash. Zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bulla_blake2_params {
    /// BULLA_BLAKE2B and so on.
    pub algorithm: u32,
    /// The length of the digest, which is part of what is hashed. 0 means the most.
    pub out_len: usize,
    /// A key makes the hash a message authentication code. NULL if `key_len` is 0.
    pub key: *const u8,
    /// The length of the key: 0 means none.
    pub key_len: usize,
    /// A salt, padded with zeros. NULL if `salt_len` is 0.
    pub salt: *const u8,
    /// The length of the salt.
    pub salt_len: usize,
    /// A personalization, which names the purpose of the hash; padded with zeros. NULL if
    /// `personal_len` is 0.
    pub personal: *const u8,
    /// The length of the personalization.
    pub personal_len: usize,
}

/// A BLAKE2 hasher in memory that the caller allocates, for example on the stack. bulla_blake2_init
/// initializes it. Nothing has to be freed, and a copy of the bytes is another hasher in the same
/// state. One thread at a time may use a state; calls that take it as const may run at the same
/// time.
#[repr(C, align(16))]
pub struct bulla_blake2_state {
    /// Private.
    pub opaque: [u64; 224],
}

#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "all are in the caller's memory, of one size")]
enum AnyState {
    B(blake2b::State),
    S(blake2s::State),
    Bp(blake2bp::State),
    Sp(blake2sp::State),
}

/// The memory of an initialized state.
#[repr(C)]
struct Blake2Memory {
    /// [`MAGIC`], if it was initialized.
    magic: u64,
    out_len: usize,
    state: AnyState,
}

const _: () = assert!(
    size_of::<bulla_blake2_state>() == BULLA_BLAKE2_STATE_SIZE
        && align_of::<bulla_blake2_state>() == BULLA_BLAKE2_STATE_ALIGN
        && size_of::<Blake2Memory>() <= BULLA_BLAKE2_STATE_SIZE
        && align_of::<Blake2Memory>() <= BULLA_BLAKE2_STATE_ALIGN
        // Copies of the bytes are hashers of their own, and nobody drops them.
        && !std::mem::needs_drop::<Blake2Memory>()
);

const MAGIC: u64 = u64::from_le_bytes(*b"bullaB2\x01");

/// The limits of an algorithm.
struct Limits {
    out: usize,
    salt: usize,
}

fn limits(algorithm: u32) -> Result<Limits, Failure> {
    match algorithm {
        BULLA_BLAKE2B => Ok(Limits { out: 64, salt: 16 }),
        BULLA_BLAKE2S => Ok(Limits { out: 32, salt: 8 }),
        BULLA_BLAKE2BP => Ok(Limits { out: 64, salt: 0 }),
        BULLA_BLAKE2SP => Ok(Limits { out: 32, salt: 0 }),
        _ => Err(Failure::new(BULLA_ERROR_ARGUMENT, format!("there is no algorithm {algorithm}"))),
    }
}

fn check_at_most(name: &str, len: usize, most: usize) -> Result<(), Failure> {
    if len <= most {
        return Ok(());
    }
    Err(Failure::new(BULLA_ERROR_LENGTH, format!("the {name} has {len} bytes, and may have at most {most}")))
}

/// A state with these parameters.
///
/// # Safety
///
/// The key, the salt and the personalization must be readable.
unsafe fn start(params: &bulla_blake2_params) -> Result<(AnyState, usize), Failure> {
    ready()?;
    let most = limits(params.algorithm)?;
    let out_len = if params.out_len == 0 { most.out } else { params.out_len };
    check_at_most("digest", out_len, most.out)?;
    check_at_most("key", params.key_len, most.out)?;
    check_at_most("salt", params.salt_len, most.salt)?;
    check_at_most("personalization", params.personal_len, most.salt)?;
    // SAFETY: the caller promised it.
    let (key, salt, personal) = unsafe {
        (
            args::bytes(params.key.cast(), params.key_len)?,
            args::bytes(params.salt.cast(), params.salt_len)?,
            args::bytes(params.personal.cast(), params.personal_len)?,
        )
    };
    let state = match params.algorithm {
        BULLA_BLAKE2B => AnyState::B(
            blake2b::Params::new().hash_length(out_len).key(key).salt(salt).personal(personal).to_state(),
        ),
        BULLA_BLAKE2S => AnyState::S(
            blake2s::Params::new().hash_length(out_len).key(key).salt(salt).personal(personal).to_state(),
        ),
        BULLA_BLAKE2BP => AnyState::Bp(blake2bp::Params::new().hash_length(out_len).key(key).to_state()),
        _ => AnyState::Sp(blake2sp::Params::new().hash_length(out_len).key(key).to_state()),
    };
    Ok((state, out_len))
}

impl AnyState {
    fn update(&mut self, input: &[u8]) {
        match self {
            AnyState::B(state) => drop(state.update(input)),
            AnyState::S(state) => drop(state.update(input)),
            AnyState::Bp(state) => drop(state.update(input)),
            AnyState::Sp(state) => drop(state.update(input)),
        }
    }

    /// Writes the digest to `out`, which has its length.
    fn finalize(&self, out: &mut [u8]) {
        match self {
            AnyState::B(state) => out.copy_from_slice(state.finalize().as_bytes()),
            AnyState::S(state) => out.copy_from_slice(state.finalize().as_bytes()),
            AnyState::Bp(state) => out.copy_from_slice(state.finalize().as_bytes()),
            AnyState::Sp(state) => out.copy_from_slice(state.finalize().as_bytes()),
        }
    }
}

kernels::kernel_check!(bulla_blake2);

/// The BLAKE2 digest of `len` bytes at `input`: `out_len` bytes, which may be 1 to the most of the
/// algorithm. The length is part of what is hashed: a short digest is not the beginning of a long
/// one. With a key, it is a message authentication code; `key` may be NULL if `key_len` is 0.
/// Thread-safe.
///
/// # Safety
///
/// `key` has `key_len` bytes, `input` has `len`, `out` has room for `out_len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake2(
    algorithm: u32,
    key: *const u8,
    key_len: usize,
    input: *const c_void,
    len: usize,
    out: *mut u8,
    out_len: usize,
) -> bulla_status {
    guard(|| {
        let none = std::ptr::null();
        let (salt, personal) = (none, none);
        let params = bulla_blake2_params {
            algorithm,
            out_len,
            key,
            key_len,
            salt,
            salt_len: 0,
            personal,
            personal_len: 0,
        };
        if out_len == 0 {
            return Err(Failure::new(BULLA_ERROR_LENGTH, "a digest has at least one byte"));
        }
        // SAFETY: the caller promised the key, the input and the room. The input is not used any
        // more when the output is made.
        unsafe {
            let (mut state, out_len) = start(&params)?;
            state.update(args::bytes(input, len)?);
            state.finalize(args::output(out, out_len)?);
        }
        Ok(())
    })
}

/// Initializes a state with these parameters. Thread-safe.
///
/// # Safety
///
/// `state` has room for a state; `params` are parameters, whose key, salt and personalization have
/// their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake2_init(
    state: *mut bulla_blake2_state,
    params: *const bulla_blake2_params,
) -> bulla_status {
    guard(|| {
        args::aligned(state)?;
        // SAFETY: the caller promised the parameters and the room, which is aligned.
        unsafe {
            let (new, out_len) = start(args::object(params)?)?;
            state.cast::<Blake2Memory>().write(Blake2Memory { magic: MAGIC, out_len, state: new });
        }
        Ok(())
    })
}

/// # Safety
///
/// If `at` is not NULL, nobody else may use it meanwhile.
unsafe fn initialized<'a>(at: *mut bulla_blake2_state) -> Result<&'a mut Blake2Memory, Failure> {
    args::aligned(at)?;
    // SAFETY: the caller promised the memory. If it begins like a state, it was initialized, or is
    // a copy of one that was.
    unsafe {
        let at = at.cast::<Blake2Memory>();
        if (&raw const (*at).magic).read() == MAGIC {
            return Ok(&mut *at);
        }
    }
    Err(Failure::new(BULLA_ERROR_STATE, "this memory was not initialized as a BLAKE2 state, or was wiped"))
}

/// Hashes more input. One thread at a time for each state.
///
/// # Safety
///
/// `state` was initialized, `input` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake2_update(
    state: *mut bulla_blake2_state,
    input: *const c_void,
    len: usize,
) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the state and the input.
        unsafe { initialized(state)?.state.update(args::bytes(input, len)?) };
        Ok(())
    })
}

/// Writes the digest of the input so far. `out_len` must be the length from the parameters:
/// BULLA_ERROR_LENGTH otherwise. The state does not change, and can take more input. Several
/// threads may call this at once.
///
/// # Safety
///
/// `state` was initialized, `out` has room for `out_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake2_finalize(
    state: *const bulla_blake2_state,
    out: *mut u8,
    out_len: usize,
) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the state and the room; the reference is only read from.
        let content = unsafe { &*initialized(state.cast_mut())? };
        if out_len != content.out_len {
            let text = format!("the digest has {} bytes, not {out_len}", content.out_len);
            return Err(Failure::new(BULLA_ERROR_LENGTH, text));
        }
        // SAFETY: as above.
        content.state.finalize(unsafe { args::output(out, out_len) }?);
        Ok(())
    })
}

/// Overwrites a state with zeros, so that neither the key nor the input is left in memory. One
/// thread at a time for each state.
///
/// # Safety
///
/// `state` has room for a state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_blake2_wipe(state: *mut bulla_blake2_state) -> bulla_status {
    // SAFETY: the caller promised the room; zeros are a value of the type that C sees.
    guard(|| unsafe { args::wipe(state) })
}
