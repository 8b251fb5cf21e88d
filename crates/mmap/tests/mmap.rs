//! Files that shrink while they are read, and signals that are not ours.
#![cfg(target_os = "linux")]

use bulla_mmap::MappedFile;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};

const LEN: u64 = 1 << 20;

fn file_of(len: u64) -> File {
    let mut file = tempfile::tempfile().unwrap();
    let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
    file.write_all(&bytes).unwrap();
    file
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte)).sum()
}

/// Whether this system has `MADV_POPULATE_READ`: without it, every answer is `None`.
fn has_maps() -> bool {
    let file = file_of(1);
    MappedFile::new(&file, 1).unwrap().with_pages(0..1, sum).is_some()
}

#[test]
fn any_range_has_the_bytes_of_the_file() {
    let file = file_of(LEN + 7);
    let map = MappedFile::new(&file, LEN + 7).unwrap();
    for range in [0..1, 0..0, 4095..4097, 5000..5000, 1..LEN + 7, LEN + 7..LEN + 7] {
        let expected: Vec<u8> = range.clone().map(|i| (i % 251) as u8).collect();
        let seen = map.with_pages(range.clone(), <[u8]>::to_vec);
        assert_eq!(seen, has_maps().then_some(expected), "{range:?}");
    }
}

#[test]
fn a_page_that_is_gone_before_it_is_read_is_no_signal() {
    let file = file_of(LEN);
    let map = MappedFile::new(&file, LEN).unwrap();
    file.set_len(8192).unwrap();
    assert_eq!(map.with_pages(4096..LEN, sum), None);
}

#[test]
fn a_page_that_goes_while_it_is_read_is_no_signal() {
    // Within the first page, at its end, and far from it.
    for left in [0, 1, 4096, LEN - 1, LEN / 2 + 5] {
        let file = file_of(LEN);
        let map = MappedFile::new(&file, LEN).unwrap();
        let shrink_and_read = |bytes: &[u8]| {
            let before = sum(bytes);
            file.set_len(left).unwrap();
            (before, sum(bytes))
        };
        let answer = map.with_pages(0..LEN, shrink_and_read);
        let last_page_stays = left > LEN - 4096;
        // The system clears what is behind the end in the last page that stays: no signal.
        assert_eq!(answer.is_some(), last_page_stays && has_maps(), "{left} bytes");
        assert!(last_page_stays || map.with_pages(0..1, sum).is_none(), "a damaged map stays damaged");
    }
}

#[test]
fn threads_that_read_one_map_all_learn_that_it_is_damaged() {
    let file = file_of(LEN);
    let map = MappedFile::new(&file, LEN).unwrap();
    let both_read = std::sync::Barrier::new(2);
    let read = |shrinks: bool| {
        map.with_pages(0..LEN, |bytes| {
            both_read.wait();
            if shrinks {
                file.set_len(0).unwrap();
            }
            both_read.wait();
            sum(bytes)
        })
    };
    if has_maps() {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| read(false));
            assert_eq!(read(true), None);
            assert_eq!(other.join().unwrap(), None);
        });
    }
}

#[test]
fn a_map_needs_a_length_and_a_file() {
    let file = file_of(10);
    assert_eq!(MappedFile::new(&file, 0).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(MappedFile::new(&file, u64::MAX).unwrap_err().kind(), ErrorKind::InvalidInput);
    let (reader, _writer) = std::io::pipe().unwrap();
    let pipe = File::from(std::os::fd::OwnedFd::from(reader));
    assert!(MappedFile::new(&pipe, 10).is_err());
}

#[test]
#[should_panic = "the range is within the map"]
fn a_range_behind_the_end_is_a_mistake_of_the_caller() {
    let file = file_of(10);
    MappedFile::new(&file, 10).unwrap().with_pages(0..11, sum);
}

/// Set in a process that this program has started again.
const ALONE: &str = "BULLA_MMAP_ALONE";

/// Does `work` in a process of its own, which runs only the test that calls this, and returns how
/// it ends.
fn alone(test: &str, work: impl FnOnce()) -> ExitStatus {
    if std::env::var_os(ALONE).is_some() {
        work();
        std::process::exit(0);
    }
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(ALONE, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
}

#[test]
fn the_number_of_maps_has_a_bound() {
    let ended = alone("the_number_of_maps_has_a_bound", || {
        let file = file_of(10);
        let mut maps: Vec<MappedFile> = (0..64).map(|_| MappedFile::new(&file, 10).unwrap()).collect();
        assert_eq!(MappedFile::new(&file, 10).unwrap_err().kind(), ErrorKind::ResourceBusy);
        maps.pop();
        MappedFile::new(&file, 10).unwrap();
    });
    assert!(ended.success(), "{ended}");
}

#[test]
fn a_signal_of_another_process_is_not_ours() {
    let ended = alone("a_signal_of_another_process_is_not_ours", || {
        let file = file_of(10);
        let _map = MappedFile::new(&file, 10).unwrap();
        // The first signal ends the standard library's handler, the second one the process.
        for _ in 0..2 {
            // SAFETY: the call sends a signal.
            unsafe { libc::raise(libc::SIGBUS) };
        }
    });
    assert_eq!(ended.signal(), Some(libc::SIGBUS), "{ended}");
}

#[test]
fn a_signal_of_a_map_of_somebody_else_is_not_ours() {
    let ended = alone("a_signal_of_a_map_of_somebody_else_is_not_ours", || {
        let file = file_of(LEN);
        let _map = MappedFile::new(&file, LEN).unwrap();
        // SAFETY: the system chooses an address that nothing uses.
        let bytes = unsafe {
            let fd = file.as_raw_fd();
            libc::mmap(std::ptr::null_mut(), LEN as usize, libc::PROT_READ, libc::MAP_SHARED, fd, 0)
        };
        assert_ne!(bytes, libc::MAP_FAILED);
        file.set_len(0).unwrap();
        // SAFETY: the address is mapped. Its page is gone, which is what the test needs.
        unsafe { std::ptr::read_volatile(bytes.cast::<u8>()) };
    });
    assert_eq!(ended.signal(), Some(libc::SIGBUS), "{ended}");
}
