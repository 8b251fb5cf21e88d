//! The official crate behind the thinnest interface that there is: input is copied to [`buffer`],
//! results are at [`out_ptr`].

#![no_std]

use blake3::Hasher;
use core::cell::UnsafeCell;

#[panic_handler]
fn trap(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

struct Single<T>(UnsafeCell<T>);

// SAFETY: an instance of the module has one thread.
unsafe impl<T> Sync for Single<T> {}

/// Room for results.
static OUT: Single<[u8; 64]> = Single(UnsafeCell::new([0; 64]));

/// The hasher under way.
static HASHER: Single<Option<Hasher>> = Single(UnsafeCell::new(None));

/// Where input begins: everything after the module's own data.
static mut BUFFER: usize = 0;

/// Where `len` bytes of input go; the memory grows to hold them.
#[unsafe(no_mangle)]
pub extern "C" fn buffer(len: usize) -> usize {
    const PAGE: usize = 65536;
    // SAFETY: one thread.
    unsafe {
        if BUFFER == 0 {
            BUFFER = core::arch::wasm32::memory_size(0) * PAGE;
        }
        let there = core::arch::wasm32::memory_size(0) * PAGE - BUFFER;
        if there < len {
            core::arch::wasm32::memory_grow(0, (len - there).div_ceil(PAGE));
        }
        BUFFER
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn out_ptr() -> *mut u8 {
    OUT.0.get().cast()
}

/// # Safety
///
/// `buffer` was asked for at least as many bytes.
#[inline(always)]
unsafe fn input(len: usize) -> &'static [u8] {
    // SAFETY: the memory is there, and belongs to nobody else.
    unsafe { core::slice::from_raw_parts(BUFFER as *const u8, len) }
}

#[unsafe(no_mangle)]
pub extern "C" fn hash(len: usize) {
    // SAFETY: one thread; the caller asked for the buffer.
    unsafe { *OUT.0.get().cast::<[u8; 32]>() = *blake3::hash(input(len)).as_bytes() }
}

#[unsafe(no_mangle)]
pub extern "C" fn hash64(len: usize) {
    // SAFETY: one thread; the caller asked for the buffer.
    unsafe { Hasher::new().update(input(len)).finalize_xof().fill(&mut *OUT.0.get()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn begin() {
    // SAFETY: one thread.
    unsafe { *HASHER.0.get() = Some(Hasher::new()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn update(len: usize) {
    // SAFETY: one thread; the caller asked for the buffer.
    if let Some(hasher) = unsafe { &mut *HASHER.0.get() } {
        // SAFETY: as above.
        hasher.update(unsafe { input(len) });
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn finalize() {
    // SAFETY: one thread.
    unsafe {
        if let Some(hasher) = &*HASHER.0.get() {
            *OUT.0.get().cast::<[u8; 32]>() = *hasher.finalize().as_bytes();
        }
    }
}
