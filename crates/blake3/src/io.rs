//! Input from readers, writers and files.

use crate::Hasher;
use crate::keyed_kernel::Secrecy;
use std::io::{self, ErrorKind, Read, Write};

/// The number of bytes to read at a time: several times the widest kernel's width, and small enough
/// for the second-level cache.
const READ_LEN: usize = 64 * 1024;

impl Hasher {
    /// Hashes the rest of `reader`.
    ///
    /// # Errors
    ///
    /// The reader's errors, except interruptions, after which it reads again. Input before an error
    /// stays hashed.
    ///
    /// ```
    /// let file = std::fs::File::open("Cargo.toml")?;
    /// let digest = bulla_blake3::Hasher::new().update_reader(file)?.finalize();
    /// assert_eq!(digest, bulla_blake3::hash(&std::fs::read("Cargo.toml")?));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn update_reader(&mut self, mut reader: impl Read) -> io::Result<&mut Self> {
        // The first bytes are read into memory that nothing has written yet: to overwrite it with
        // zeros first takes as long as to hash 8 KiB. After that, all of it is initialized.
        let mut buffer = Vec::with_capacity(READ_LEN);
        let mut end = reader.by_ref().take(READ_LEN as u64).read_to_end(&mut buffer).map(drop);
        self.update(&buffer);
        // With fewer bytes, the reader is at its end.
        while end.is_ok() && buffer.len() == READ_LEN {
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => drop(self.update(&buffer[..n])),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => end = Err(error),
            }
        }
        if self.kernel.secrecy() == Secrecy::Secret {
            buffer.fill(0);
            // Without this, the compiler may remove the overwriting, because the memory is freed
            // next.
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

    /// Smaller files are read: a map would cost more than it saves.
    const MIN_MAP_LEN: u64 = 192 * 1024;

    /// Maps the file, if it can be mapped and is large enough. Otherwise, the file's position is
    /// its beginning.
    fn map(file: &mut File) -> io::Result<Option<Mmap>> {
        // For a short file, this one system call fails without an effect, and it is cheaper than
        // reading the metadata. It also finds the length of a block device, which the metadata
        // lack. A pipe has no length, and pseudo-files have a short one or none.
        let Ok(position) = file.seek(SeekFrom::End(1 - MIN_MAP_LEN.cast_signed())) else { return Ok(None) };
        if position == 0 {
            return Ok(None);
        }
        if let Ok(len) = usize::try_from(position + MIN_MAP_LEN - 1) {
            // SAFETY: a map of a file that another process changes is shared memory that changes.
            // The bytes are read once, by code that does not depend on their values; the digest may
            // then belong to no state that the file ever had. Truncation raises SIGBUS. The
            // documentation says both.
            if let Ok(map) = unsafe { MmapOptions::new().len(len).map(&*file) } {
                return Ok(Some(map));
            }
        }
        // Some file systems cannot map.
        file.rewind()?;
        Ok(None)
    }

    impl Hasher {
        /// Hashes the file at `path` through a memory map, or reads it if it is short or cannot be
        /// mapped.
        ///
        /// If another process writes to the file meanwhile, the digest may belong to no state that
        /// the file ever had; if it truncates the file, the operating system may end this process
        /// (SIGBUS). If that can happen, read the file instead:
        /// [`update_reader`](Hasher::update_reader).
        ///
        /// # Errors
        ///
        /// Errors of opening and reading.
        ///
        /// ```
        /// let digest = bulla_blake3::Hasher::new().update_mmap("Cargo.toml")?.finalize();
        /// assert_eq!(digest, bulla_blake3::hash(&std::fs::read("Cargo.toml")?));
        /// # Ok::<(), std::io::Error>(())
        /// ```
        pub fn update_mmap(&mut self, path: impl AsRef<Path>) -> io::Result<&mut Self> {
            let mut file = File::open(path)?;
            match map(&mut file)? {
                Some(map) => Ok(self.update(&map)),
                None => self.update_reader(file),
            }
        }

        /// Like [`update_mmap`](Hasher::update_mmap), on all threads of the current rayon pool.
        ///
        /// On spinning disks this is slower than one thread, because it reads many parts of the
        /// file at once.
        ///
        /// # Errors
        ///
        /// Errors of opening and reading.
        ///
        /// ```
        /// let digest = bulla_blake3::Hasher::new().update_mmap_rayon("Cargo.toml")?.finalize();
        /// assert_eq!(digest, bulla_blake3::hash(&std::fs::read("Cargo.toml")?));
        /// # Ok::<(), std::io::Error>(())
        /// ```
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
