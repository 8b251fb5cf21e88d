//! Input from readers, writers and files.

use crate::Hasher;
use crate::instance::Secrecy;
use std::io::{self, ErrorKind, Read, Write};

/// Bytes asked of a reader at a time: enough for the widest kernel several times over, small enough for the second-level cache.
const READ: usize = 64 * 1024;

impl Hasher {
    /// Hashes everything that `reader` still has.
    ///
    /// # Errors
    ///
    /// The reader's, but not interruptions: those are tried again. What was read before stays hashed.
    pub fn update_reader(&mut self, mut reader: impl Read) -> io::Result<&mut Self> {
        let mut buffer = vec![0; READ];
        let mut most = 0;
        let end = loop {
            match reader.read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(n) => {
                    most = most.max(n);
                    self.update(&buffer[..n]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        if self.instance.secrecy() == Secrecy::Secret {
            buffer[..most].fill(0);
            // Else the compiler may leave this out, since the memory is freed next.
            core::hint::black_box(&mut buffer);
        }
        end.map(|()| self)
    }
}

impl Write for Hasher {
    /// Takes everything; never fails.
    fn write(&mut self, input: &[u8]) -> io::Result<usize> {
        self.update(input);
        Ok(input.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(feature = "mmap")]
mod map {
    use super::*;
    use memmap2::{Mmap, MmapOptions};
    use std::fs::File;
    use std::io::{Seek as _, SeekFrom};
    use std::path::Path;

    /// Files below this are read: a map costs more than it saves.
    const SMALLEST_MAP: u64 = 16 * 1024;

    /// A map of the file if it is one that can be mapped and is worth it; else it can be read from its beginning.
    fn map(file: &mut File) -> io::Result<Option<Mmap>> {
        // One call of the system that fails without an effect where the file is short, and is cheaper than asking for all that is known of
        // it. Of a block device it finds the length, which its metadata lack; a pipe has none, and pseudo-files have a short one or none.
        let Ok(position) = file.seek(SeekFrom::End(1 - SMALLEST_MAP.cast_signed())) else { return Ok(None) };
        if position == 0 {
            return Ok(None);
        }
        if let Ok(len) = usize::try_from(position + SMALLEST_MAP - 1) {
            // SAFETY: a map of a file that another process changes is shared memory that changes. The bytes are read once, by code that
            // makes nothing of their values; the digest is then one of no state that the file ever had. Truncation raises
            // SIGBUS. Both are in the documentation.
            if let Ok(map) = unsafe { MmapOptions::new().len(len).map(&*file) } {
                return Ok(Some(map));
            }
        }
        // Some file systems cannot map.
        file.rewind()?;
        Ok(None)
    }

    impl Hasher {
        /// Hashes the file at `path` through a memory map; without one where it is short or cannot be mapped.
        ///
        /// If another process writes to the file meanwhile, the digest may belong to no state that the file ever had; if it truncates
        /// the file, the operating system may end this process (SIGBUS). Where that is a danger read the file instead:
        /// [`update_reader`](Hasher::update_reader).
        ///
        /// # Errors
        ///
        /// Those of opening and reading.
        pub fn update_mmap(&mut self, path: impl AsRef<Path>) -> io::Result<&mut Self> {
            let mut file = File::open(path)?;
            match map(&mut file)? {
                Some(map) => Ok(self.update(&map)),
                None => self.update_reader(file),
            }
        }

        /// As [`update_mmap`](Hasher::update_mmap), on all threads of the current rayon pool.
        ///
        /// On spinning disks this reads all over the file and is slower than one thread.
        ///
        /// # Errors
        ///
        /// Those of opening and reading.
        #[cfg(feature = "rayon")]
        pub fn update_mmap_rayon(&mut self, path: impl AsRef<Path>) -> io::Result<&mut Self> {
            let mut file = File::open(path)?;
            match map(&mut file)? {
                Some(map) => Ok(self.update_rayon(&map)),
                None => self.update_reader(file),
            }
        }
    }
}
