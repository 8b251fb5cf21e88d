//! The buffer for input that a hasher has not hashed yet.
//!
//! With the standard library, 1024 bytes are inside the hasher. For more input, there is also a
//! buffer on the heap for a group of chunks, together with the tree's groups. A thread keeps the
//! last such buffer for its next hasher. The hasher's owner cannot reach that buffer, so the data
//! that a mode with a key leaves in it is cleared first. Without the standard library, both are
//! inside the hasher, and the buffer is smaller.

use crate::instance::KeyedKernel;
#[cfg(feature = "std")]
use crate::instance::Secrecy;
use crate::spec::CHUNK_LEN;
use crate::tree::{Groups, Stack, room};
use core::mem::MaybeUninit;

/// Bytes in the buffer: a group of the widest kernel, or, where it is part of the hasher, four
/// chunks.
const CAPACITY: usize = if cfg!(feature = "std") { 16 * CHUNK_LEN } else { 4 * CHUNK_LEN };

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
pub(crate) struct Wide {
    pub(crate) groups: Groups,
    bytes: Bytes<CAPACITY>,
    /// The number of bytes that may be held at the tree's current position.
    limit: usize,
    /// The largest number of bytes that were held at once.
    #[cfg(feature = "std")]
    most: usize,
    #[cfg(feature = "std")]
    secrecy: Secrecy,
}

impl Wide {
    /// Sets the limit after the tree has grown, or shrunk.
    pub(crate) fn fit(&mut self, instance: &KeyedKernel, stack: &Stack) {
        let position = stack.chunks + self.groups.chunks(instance);
        self.limit = (room(instance, position) * CHUNK_LEN).min(CAPACITY);
        #[cfg(feature = "std")]
        {
            self.secrecy = instance.secrecy();
        }
    }

    /// Forgets the held bytes.
    pub(crate) fn drain(&mut self) {
        #[cfg(feature = "std")]
        {
            self.most = self.most.max(self.bytes.len);
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

    fn copy_from(&mut self, other: &Wide) {
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

    impl Zeroize for Wide {
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
        static SPARE: Cell<Option<Box<Wide>>> = const { Cell::new(None) };
    }

    pub(crate) struct Buffer {
        head: Bytes<CHUNK_LEN>,
        wide: Option<Box<Wide>>,
    }

    impl Drop for Buffer {
        #[inline]
        fn drop(&mut self) {
            if let Some(mut wide) = self.wide.take() {
                if wide.secrecy == Secrecy::Secret {
                    wide.wipe();
                }
                // A thread that is ending keeps none.
                let _ = SPARE.try_with(|spare| spare.set(Some(wide)));
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
        pub(crate) fn take_small(&mut self, input: &[u8]) -> bool {
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
        pub(crate) fn widen(&mut self) -> &mut Wide {
            let head = &self.head;
            self.wide.get_or_insert_with(|| {
                let mut wide = new_wide();
                wide.bytes.extend(head.filled());
                wide
            })
        }

        pub(crate) fn wide(&self) -> Option<&Wide> {
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
    fn new_wide() -> Box<Wide> {
        match SPARE.try_with(Cell::take) {
            Ok(Some(mut spare)) => {
                spare.clear();
                spare
            }
            _ => allocate_wide(),
        }
    }

    /// Allocates a large part, and initializes only the fields that must have a value.
    fn allocate_wide() -> Box<Wide> {
        let mut wide = Box::<Wide>::new_uninit();
        let at = wide.as_mut_ptr();
        // SAFETY: all fields that are not MaybeUninit are written.
        unsafe {
            Groups::clear_at(&raw mut (*at).groups);
            (&raw mut (*at).bytes.len).write(0);
            (&raw mut (*at).limit).write(0);
            (&raw mut (*at).most).write(0);
            (&raw mut (*at).secrecy).write(Secrecy::Plain);
            wide.assume_init()
        }
    }

    impl Wide {
        /// Overwrites the input and the chaining values in this buffer with zeros.
        pub(super) fn wipe(&mut self) {
            self.clear();
            self.bytes.room[..self.most].fill(MaybeUninit::new(0));
            self.most = 0;
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

    #[cfg(test)]
    mod tests;
}

#[cfg(not(feature = "std"))]
mod storage {
    use super::*;

    pub(crate) struct Buffer {
        wide: Wide,
    }

    impl Buffer {
        #[inline(always)]
        pub(crate) fn new() -> Self {
            Buffer { wide: Wide { groups: Groups::new(), bytes: Bytes::new(), limit: 0 } }
        }

        /// Takes in `input` if there is room for it beside what is held.
        #[inline(always)]
        pub(crate) fn take_small(&mut self, input: &[u8]) -> bool {
            let wide = &mut self.wide;
            let small = input.len() <= wide.limit.saturating_sub(wide.bytes.len);
            if small {
                wide.bytes.extend(input);
            }
            small
        }

        pub(crate) fn widen(&mut self) -> &mut Wide {
            &mut self.wide
        }

        pub(crate) fn wide(&self) -> Option<&Wide> {
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
