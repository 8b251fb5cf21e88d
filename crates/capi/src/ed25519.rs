//! Ed25519: signing, and strict verification of one or many.

use crate::args;
use crate::blake3::bulla_bytes;
use crate::kernels;
use crate::status::{
    BULLA_ED25519_KEY_NOT_A_POINT, BULLA_ED25519_KEY_OF_SMALL_ORDER, BULLA_ED25519_MISMATCH,
    BULLA_ED25519_R_OF_SMALL_ORDER, BULLA_ED25519_SCALAR_NOT_CANONICAL, BULLA_ERROR_LENGTH,
    BULLA_ERROR_RANDOM, BULLA_ERROR_SIGNATURES, BULLA_OK, Failure, bulla_status, guard,
};
use bulla_ed25519::{
    InvalidReason, SignItem, Signer as _, SigningKey, Verdict, VerifyItem, sign_many_into, verify_many_into,
};
use std::ffi::c_void;
use std::ptr;

/// Bytes in the seed of a private key, which RFC 8032 calls the private key.
pub const BULLA_ED25519_SEED_LEN: usize = 32;
/// Bytes in a public key.
pub const BULLA_ED25519_PUBLIC_KEY_LEN: usize = 32;
/// Bytes in a signature.
pub const BULLA_ED25519_SIGNATURE_LEN: usize = 64;

/// How many signatures are passed on at once.
const BATCH_LEN: usize = 64;

/// A private key, which bulla_ed25519_key_free wipes and frees. Several threads may use it at once.
pub struct bulla_ed25519_key {
    inner: SigningKey,
}

/// A signature to verify.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct bulla_ed25519_item {
    /// The public key: 32 bytes.
    pub public_key: *const u8,
    /// The message. May be NULL if `message_len` is 0.
    pub message: *const c_void,
    /// The length of the message in bytes.
    pub message_len: usize,
    /// The signature: 64 bytes.
    pub signature: *const u8,
}

kernels::kernel_check!(bulla_ed25519);

/// Fills `seed` with 32 bytes from the operating system: a new private key. Keep it secret.
/// Thread-safe.
///
/// # Safety
///
/// `seed` has room for 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_ed25519_new_seed(seed: *mut u8) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the room.
        let seed = unsafe { args::output(seed, BULLA_ED25519_SEED_LEN) }?;
        getrandom::fill(seed).map_err(|error| Failure::new(BULLA_ERROR_RANDOM, error.to_string()))
    })
}

/// Makes the private key of a seed of 32 bytes. This costs as much as a signature: keep the key.
/// Thread-safe.
///
/// # Safety
///
/// `seed` has 32 bytes, `key` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_ed25519_key_new(
    seed: *const u8,
    key: *mut *mut bulla_ed25519_key,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the seed and room for a pointer.
        unsafe {
            let to = args::object_mut(key)?;
            let mut seed = args::array(seed)?;
            let inner = SigningKey::from_bytes(&seed);
            zeroize::Zeroize::zeroize(&mut seed);
            *to = Box::into_raw(Box::new(bulla_ed25519_key { inner }));
        }
        Ok(())
    })
}

/// Wipes and frees a private key. NULL is allowed. No other thread may use it any more.
///
/// # Safety
///
/// `key` is a key that was not freed, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_ed25519_key_free(key: *mut bulla_ed25519_key) {
    if key.is_null() {
        return;
    }
    let _ = guard(|| {
        // SAFETY: it came from `Box::into_raw`, and the caller promised that it was not freed. It
        // wipes itself.
        drop(unsafe { Box::from_raw(key) });
        Ok(())
    });
}

/// Writes the public key: 32 bytes. Thread-safe.
///
/// # Safety
///
/// `key` is a key, `public_key` has room for 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_ed25519_public_key(
    key: *const bulla_ed25519_key,
    public_key: *mut u8,
) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the key and the room.
        unsafe { args::write(public_key, args::object(key)?.inner.as_ref().as_bytes()) }
    })
}

/// Signs a message: 64 bytes (RFC 8032, Ed25519). The same key and message give the same signature.
/// Thread-safe.
///
/// # Safety
///
/// `key` is a key, `message` has `len` bytes, `signature` has room for 64.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_ed25519_sign(
    key: *const bulla_ed25519_key,
    message: *const c_void,
    len: usize,
    signature: *mut u8,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the key, the message and the room.
        unsafe {
            let made = args::object(key)?.inner.sign(args::bytes(message, len)?);
            args::write(signature, &made.to_bytes())
        }
    })
}

/// Signs `n` messages by one key, side by side in the vectors of the CPU: 64 bytes each, at
/// `signatures`, in order, which must not overlap the messages. Thread-safe.
///
/// # Safety
///
/// `key` is a key; `messages` has `n` elements, each with its bytes; `signatures` has room for 64
/// `n` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_ed25519_sign_many(
    key: *const bulla_ed25519_key,
    messages: *const bulla_bytes,
    n: usize,
    signatures: *mut u8,
) -> bulla_status {
    guard(|| {
        ready()?;
        // SAFETY: the caller promised the key, the messages and the room.
        let (key, messages) = unsafe { (&args::object(key)?.inner, args::elements(messages, n)?) };
        for message in messages {
            // SAFETY: as above. Nothing is signed before all messages are checked.
            unsafe { args::bytes(message.data, message.len) }?;
        }
        let room = n.checked_mul(BULLA_ED25519_SIGNATURE_LEN);
        let room = room.ok_or_else(|| Failure::new(BULLA_ERROR_LENGTH, "so many signatures fit nowhere"))?;
        // SAFETY: as above.
        let out = unsafe { args::output(signatures, room) }?;
        for (messages, out) in messages.chunks(BATCH_LEN).zip(out.as_chunks_mut().0.chunks_mut(BATCH_LEN)) {
            let mut items = [SignItem { key, message: &[] }; BATCH_LEN];
            for (item, message) in items.iter_mut().zip(messages) {
                // SAFETY: as above.
                item.message = unsafe { args::bytes(message.data, message.len) }?;
            }
            sign_many_into(&items[..messages.len()], out);
        }
        Ok(())
    })
}

/// Verifies one signature: BULLA_OK if it is valid, otherwise the reason (BULLA_ED25519_MISMATCH
/// and so on) or an error. The predicate is strict: no key or R of small order, S below the order,
/// no cofactor. It needs about 96 KiB of stack. Thread-safe.
///
/// # Safety
///
/// `public_key` has 32 bytes, `message` has `len`, `signature` has 64.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_ed25519_verify(
    public_key: *const u8,
    message: *const c_void,
    len: usize,
    signature: *const u8,
) -> bulla_status {
    guard(|| {
        let item = bulla_ed25519_item { public_key, message, message_len: len, signature };
        let mut verdict = BULLA_ED25519_MISMATCH;
        // SAFETY: the caller promised the key, the message and the signature.
        match unsafe { verify(&[item], &raw mut verdict) } {
            Err(_) if verdict != BULLA_OK && verdict != UNDECIDED => {
                Err(Failure::new(verdict, "the signature is not valid"))
            }
            result => result,
        }
    })
}

/// Verifies `n` signatures, side by side in the vectors of the CPU, and writes a verdict for each:
/// BULLA_OK, or the reason why it is not valid. Each verdict is that of bulla_ed25519_verify,
/// whatever its neighbors.
///
/// Returns BULLA_OK only if all are valid, and BULLA_ERROR_SIGNATURES if at least one is not. It
/// needs about 96 KiB of stack. Thread-safe.
///
/// # Safety
///
/// `items` has `n` elements, each with its key, message and signature; `verdicts` has room for `n`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_ed25519_verify_many(
    items: *const bulla_ed25519_item,
    n: usize,
    verdicts: *mut bulla_status,
) -> bulla_status {
    guard(|| {
        // SAFETY: the caller promised the items and room for the verdicts.
        unsafe { verify(args::elements(items, n)?, verdicts) }
    })
}

/// The verdict before there is one.
const UNDECIDED: bulla_status = -1;

/// # Safety
///
/// The items must have their keys, messages and signatures, and there must be room for as many
/// verdicts.
unsafe fn verify(items: &[bulla_ed25519_item], verdicts: *mut bulla_status) -> Result<(), Failure> {
    if items.is_empty() {
        return Ok(());
    }
    args::aligned(verdicts)?;
    // A caller who does not look at the status must not find an old verdict.
    for i in 0..items.len() {
        // SAFETY: the caller promised the room.
        unsafe { verdicts.add(i).write(UNDECIDED) };
    }
    ready()?;
    let mut all_valid = true;
    for (number, items) in items.chunks(BATCH_LEN).enumerate() {
        let mut slices = [VerifyItem { public_key: &[0; 32], message: &[], signature: &[0; 64] }; BATCH_LEN];
        for (slice, item) in slices.iter_mut().zip(items) {
            // SAFETY: the caller promised what the items point to; arrays of bytes have no
            // alignment.
            unsafe {
                *slice = VerifyItem {
                    public_key: args::object(item.public_key.cast())?,
                    message: args::bytes(item.message, item.message_len)?,
                    signature: args::object(item.signature.cast())?,
                };
            }
        }
        let mut found = [Verdict::Invalid(InvalidReason::Mismatch); BATCH_LEN];
        verify_many_into(&slices[..items.len()], &mut found[..items.len()]);
        let codes = found.map(code);
        all_valid &= codes[..items.len()].iter().all(|code| *code == BULLA_OK);
        // SAFETY: there is room for all verdicts, and these are the next ones.
        unsafe { ptr::copy_nonoverlapping(codes.as_ptr(), verdicts.add(BATCH_LEN * number), items.len()) };
    }
    if all_valid { Ok(()) } else { Err(Failure::new(BULLA_ERROR_SIGNATURES, "at least one is not valid")) }
}

fn code(verdict: Verdict) -> bulla_status {
    match verdict {
        Verdict::Valid => BULLA_OK,
        Verdict::Invalid(InvalidReason::ScalarNotCanonical) => BULLA_ED25519_SCALAR_NOT_CANONICAL,
        Verdict::Invalid(InvalidReason::KeyNotAPoint) => BULLA_ED25519_KEY_NOT_A_POINT,
        Verdict::Invalid(InvalidReason::KeyOfSmallOrder) => BULLA_ED25519_KEY_OF_SMALL_ORDER,
        Verdict::Invalid(InvalidReason::ROfSmallOrder) => BULLA_ED25519_R_OF_SMALL_ORDER,
        // Mismatch; a reason that has no number yet is reported as one too.
        Verdict::Invalid(_) => BULLA_ED25519_MISMATCH,
    }
}
