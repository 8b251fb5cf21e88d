//! The buffer for input that a hasher has not hashed yet.
//!
//! With the standard library, 1024 bytes are inside the hasher. For more input, there is also a
//! buffer on the heap for a group of chunks, together with the tree's groups. A thread keeps the
//! last such buffer for its next hasher. The hasher's owner cannot reach that buffer, so the data
//! that a mode with a key leaves in it is cleared first. Without the standard library, both are
//! inside the hasher, and the buffer is smaller.

use crate::keyed_kernel::KeyedKernel;
#[cfg(feature = "std")]
use crate::keyed_kernel::Secrecy;
use crate::spec::CHUNK_LEN;
use crate::tree::{Groups, Stack, max_next_chunks};
use core::mem::MaybeUninit;

/// Bytes in the buffer: a group of the widest kernel, or, where it is part of the hasher, four
/// chunks.
const BUFFER_LEN: usize = if cfg!(feature = "std") { 16 * CHUNK_LEN } else { 4 * CHUNK_LEN };

/// An array of bytes of which the first `len` are initialized.
struct Bytes<const N: usize> {
    room: [MaybeUninit<u8>; N],
    len: usize,
}

impl<const N: usize> Bytes<N> {
    #[inline(always)]
    fn new() -> Self {
        Bytes { room: [const { MaybeUninit::uninit() }; N], len: 0 }
    }

    /// Adds `input`, for which there must be room.
    #[inline(always)]
    fn extend(&mut self, input: &[u8]) {
        let n = input.len();
        let to = self.room[self.len..][..n].as_mut_ptr().cast::<u8>();
        let from = input.as_ptr();
        // SAFETY: both are n bytes long and do not overlap; every piece is within the n bytes.
        unsafe {
            match n {
                // Without a call, because small updates are frequent.
                16..=32 => {
                    from.copy_to_nonoverlapping(to, 16);
                    from.add(n - 16).copy_to_nonoverlapping(to.add(n - 16), 16);
                }
                33..=64 => {
                    from.copy_to_nonoverlapping(to, 32);
                    from.add(n - 32).copy_to_nonoverlapping(to.add(n - 32), 32);
                }
                // Copy the first block separately: `memcpy` writes overlapping pieces, and a kernel
                // that loads the block soon would wait for them.
                65.. => {
                    from.copy_to_nonoverlapping(to, 32);
                    from.add(32).copy_to_nonoverlapping(to.add(32), 32);
                    from.add(64).copy_to_nonoverlapping(to.add(64), n - 64);
                }
                _ => from.copy_to_nonoverlapping(to, n),
            }
        }
        self.len += n;
    }

    #[inline(always)]
    fn filled(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are initialized.
        unsafe { core::slice::from_raw_parts(self.room.as_ptr().cast(), self.len) }
    }
}

/// The large part of a buffer: for input of more than one chunk.
pub(crate) struct WideBuffer {
    pub(crate) groups: Groups,
    bytes: Bytes<BUFFER_LEN>,
    /// The number of bytes that may be held at the tree's current position.
    limit: usize,
    /// The largest number of bytes that were held at once.
    #[cfg(feature = "std")]
    max_held: usize,
    #[cfg(feature = "std")]
    secrecy: Secrecy,
}

impl WideBuffer {
    /// Sets the limit after the tree has grown, or shrunk.
    pub(crate) fn update_limit(&mut self, kernel: &KeyedKernel, stack: &Stack) {
        let position = stack.chunks + self.groups.chunks(kernel);
        self.limit = (max_next_chunks(kernel, position) * CHUNK_LEN).min(BUFFER_LEN);
        #[cfg(feature = "std")]
        {
            self.secrecy = kernel.secrecy();
        }
    }

    /// Forgets the held bytes.
    pub(crate) fn drain(&mut self) {
        #[cfg(feature = "std")]
        {
            self.max_held = self.max_held.max(self.bytes.len);
        }
        self.bytes.len = 0;
    }

    /// Takes as much of `input` as fits, and returns the rest.
    pub(crate) fn fill<'i>(&mut self, input: &'i [u8]) -> &'i [u8] {
        let (taken, rest) = input.split_at(input.len().min(self.limit - self.bytes.len));
        self.bytes.extend(taken);
        rest
    }

    /// The held bytes, and the groups to hash them into.
    pub(crate) fn parts(&mut self) -> (&[u8], &mut Groups) {
        (self.bytes.filled(), &mut self.groups)
    }

    fn clear(&mut self) {
        self.groups.clear();
        self.drain();
        self.limit = 0;
    }

    fn copy_from(&mut self, other: &WideBuffer) {
        self.groups.copy_from(&other.groups);
        self.drain();
        self.bytes.extend(other.bytes.filled());
        self.limit = other.limit;
        #[cfg(feature = "std")]
        {
            self.secrecy = other.secrecy;
        }
    }
}

#[cfg(feature = "zeroize")]
mod zeroizing {
    use super::*;
    use zeroize::Zeroize;

    impl<const N: usize> Zeroize for Bytes<N> {
        fn zeroize(&mut self) {
            self.room.zeroize();
            self.len = 0;
        }
    }

    impl Zeroize for WideBuffer {
        fn zeroize(&mut self) {
            // Only what was written, and not byte by byte: of the 20 KiB, most hashers use little.
            #[cfg(feature = "std")]
            self.wipe();
            #[cfg(not(feature = "std"))]
            {
                self.groups.zeroize();
                self.bytes.zeroize();
                self.limit = 0;
            }
        }
    }
}

#[cfg(feature = "std")]
mod storage {
    use super::*;
    use core::cell::Cell;

    std::thread_local! {
        /// The thread's spare buffer: allocating 20 KiB takes a tenth of the time of hashing 2 KiB.
        static SPARE_BUFFER: Cell<Option<Box<WideBuffer>>> = const { Cell::new(None) };
    }

    pub(crate) struct Buffer {
        head: Bytes<CHUNK_LEN>,
        wide: Option<Box<WideBuffer>>,
    }

    impl Drop for Buffer {
        #[inline]
        fn drop(&mut self) {
            if let Some(mut wide) = self.wide.take() {
                if wide.secrecy == Secrecy::Secret {
                    wide.wipe();
                }
                // A thread that is ending keeps none.
                let _ = SPARE_BUFFER.try_with(|spare| spare.set(Some(wide)));
            }
        }
    }

    impl Buffer {
        #[inline(always)]
        pub(crate) fn new() -> Self {
            Buffer { head: Bytes::new(), wide: None }
        }

        /// Takes in `input` if there is room for it beside what is held.
        #[inline(always)]
        pub(crate) fn try_extend(&mut self, input: &[u8]) -> bool {
            match &mut self.wide {
                None if input.len() <= CHUNK_LEN - self.head.len => self.head.extend(input),
                Some(wide) if input.len() <= wide.limit.saturating_sub(wide.bytes.len) => {
                    wide.bytes.extend(input)
                }
                _ => return false,
            }
            true
        }

        /// The large part, with the bytes that were held so far.
        pub(crate) fn widen(&mut self) -> &mut WideBuffer {
            let head = &self.head;
            self.wide.get_or_insert_with(|| {
                let mut wide = new_wide();
                wide.bytes.extend(head.filled());
                wide
            })
        }

        pub(crate) fn wide(&self) -> Option<&WideBuffer> {
            self.wide.as_deref()
        }

        /// The bytes that are held.
        pub(crate) fn held(&self) -> &[u8] {
            match &self.wide {
                Some(wide) => wide.bytes.filled(),
                None => self.head.filled(),
            }
        }

        /// Forgets the held bytes. Allocated memory stays for the next input.
        pub(crate) fn clear(&mut self) {
            self.head.len = 0;
            if let Some(wide) = &mut self.wide {
                wide.clear();
            }
        }
    }

    #[cfg(feature = "zeroize")]
    impl zeroize::Zeroize for Buffer {
        fn zeroize(&mut self) {
            self.head.zeroize();
            if let Some(wide) = &mut self.wide {
                wide.zeroize();
            }
        }
    }

    /// An empty large part.
    fn new_wide() -> Box<WideBuffer> {
        match SPARE_BUFFER.try_with(Cell::take) {
            Ok(Some(mut spare)) => {
                spare.clear();
                spare
            }
            _ => allocate_wide(),
        }
    }

    /// Allocates a large part, and initializes only the fields that must have a value.
    fn allocate_wide() -> Box<WideBuffer> {
        let mut wide = Box::<WideBuffer>::new_uninit();
        let at = wide.as_mut_ptr();
        // SAFETY: all fields that are not MaybeUninit are written.
        unsafe {
            Groups::clear_at(&raw mut (*at).groups);
            (&raw mut (*at).bytes.len).write(0);
            (&raw mut (*at).limit).write(0);
            (&raw mut (*at).max_held).write(0);
            (&raw mut (*at).secrecy).write(Secrecy::Plain);
            wide.assume_init()
        }
    }

    impl WideBuffer {
        /// Overwrites the input and the chaining values in this buffer with zeros.
        pub(super) fn wipe(&mut self) {
            self.clear();
            self.bytes.room[..self.max_held].fill(MaybeUninit::new(0));
            self.max_held = 0;
            self.groups.wipe();
            // The compiler may remove stores that are never read, for example before the memory is
            // freed. It cannot see what reads this.
            core::hint::black_box(self);
        }
    }

    impl Clone for Buffer {
        fn clone(&self) -> Self {
            let mut head = Bytes::new();
            head.extend(self.head.filled());
            let wide = self.wide.as_deref().map(|from| {
                let mut wide = new_wide();
                wide.copy_from(from);
                wide
            });
            Buffer { head, wide }
        }
    }

    /// Tests what hashers leave behind in the memory that a thread keeps.
    #[cfg(test)]
    mod tests {
        use super::{SPARE_BUFFER, WideBuffer};
        use crate::{DeriveKey, Hasher};
        use std::{boxed::Box, vec};

        /// Gives this thread a zeroed large part, so that every byte of it may be read.
        fn plant() {
            // SAFETY: zeros are valid for every field: lengths, bits and the first variant of an
            // enum.
            SPARE_BUFFER.set(Some(unsafe { Box::<WideBuffer>::new_zeroed().assume_init() }));
        }

        /// Lets hashers use such a part, and returns how many of its bytes and words are not zero
        /// afterwards.
        fn left_behind(run: impl FnOnce()) -> usize {
            plant();
            run();
            let wide = SPARE_BUFFER.take().expect("the last hasher gave its own back");
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
        fn use_up(hasher: &mut Hasher, max_len: usize) {
            let input = vec![0xA5; max_len];
            for piece in
                [1000, 90, 700, 2000, 16_384, 50_000, 9000].into_iter().take_while(|piece| *piece <= max_len)
            {
                hasher.update(&input[..piece]);
            }
            if !cfg!(miri) {
                hasher.finalize();
            }
        }

        /// In Miri, the input ends early in the second chunk: the paths of chunks have their own
        /// tests there.
        const MAX_LEN: usize = if cfg!(miri) { 1000 } else { 50_000 };

        #[test]
        fn a_plain_hasher_leaves_its_input() {
            // The control: without clearing, the search finds the data.
            assert!(left_behind(|| use_up(&mut Hasher::new(), MAX_LEN)) > MAX_LEN / 40);
        }

        #[test]
        fn a_keyed_hasher_leaves_nothing() {
            let key = [7; 32];
            assert_eq!(left_behind(|| use_up(&mut Hasher::new_keyed(&key), MAX_LEN)), 0);
            assert_eq!(
                left_behind(|| use_up(&mut Hasher::new_derive_key("bulla test 2026-11-23"), MAX_LEN)),
                0
            );
            assert_eq!(
                left_behind(|| use_up(&mut DeriveKey::new("bulla test 2026-11-23").hasher(), MAX_LEN)),
                0
            );
        }

        #[cfg(feature = "zeroize")]
        #[test]
        fn a_plain_hasher_that_is_wiped_leaves_nothing() {
            let left = left_behind(|| {
                let mut hasher = Hasher::new();
                use_up(&mut hasher, MAX_LEN);
                zeroize::Zeroize::zeroize(&mut hasher);
            });
            assert_eq!(left, 0);
        }

        #[test]
        fn neither_does_one_that_began_anew() {
            let left = left_behind(|| {
                let mut hasher = Hasher::new_keyed(&[7; 32]);
                use_up(&mut hasher, MAX_LEN);
                use_up(hasher.reset(), 10);
            });
            assert_eq!(left, 0);
        }

        #[test]
        fn a_copy_leaves_nothing_either() {
            let left = left_behind(|| {
                let mut hasher = Hasher::new_keyed(&[7; 32]);
                use_up(&mut hasher, MAX_LEN);
                plant();
                let copy = hasher.clone();
                drop(hasher);
                // The thread keeps the part of the hasher that is dropped last.
                drop(copy);
            });
            assert_eq!(left, 0);
        }
    }
}

#[cfg(not(feature = "std"))]
mod storage {
    use super::*;

    pub(crate) struct Buffer {
        wide: WideBuffer,
    }

    impl Buffer {
        #[inline(always)]
        pub(crate) fn new() -> Self {
            Buffer { wide: WideBuffer { groups: Groups::new(), bytes: Bytes::new(), limit: 0 } }
        }

        /// Takes in `input` if there is room for it beside what is held.
        #[inline(always)]
        pub(crate) fn try_extend(&mut self, input: &[u8]) -> bool {
            let wide = &mut self.wide;
            let small = input.len() <= wide.limit.saturating_sub(wide.bytes.len);
            if small {
                wide.bytes.extend(input);
            }
            small
        }

        pub(crate) fn widen(&mut self) -> &mut WideBuffer {
            &mut self.wide
        }

        pub(crate) fn wide(&self) -> Option<&WideBuffer> {
            Some(&self.wide)
        }

        /// The bytes that are held.
        pub(crate) fn held(&self) -> &[u8] {
            self.wide.bytes.filled()
        }

        /// Forgets the held bytes.
        pub(crate) fn clear(&mut self) {
            self.wide.clear();
        }
    }

    #[cfg(feature = "zeroize")]
    impl zeroize::Zeroize for Buffer {
        fn zeroize(&mut self) {
            self.wide.zeroize();
        }
    }

    impl Clone for Buffer {
        fn clone(&self) -> Self {
            let mut buffer = Buffer::new();
            buffer.wide.copy_from(&self.wide);
            buffer
        }
    }
}

pub(crate) use storage::Buffer;
