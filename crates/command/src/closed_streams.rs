//! Standard streams that are closed when the process begins.
//!
//! Before `main`, Rust's runtime opens `/dev/null` in the place of each closed stream, and its
//! `Stdin` and `Stdout` take the error for a closed stream as success. Then the digest of nothing
//! would be printed for `bulla sum - <&-`, and results would go nowhere without an error. So a
//! function that runs before the runtime puts something there that cannot be used in that
//! direction: reads and writes fail. The command reads and writes the streams as files, which
//! report it: docs/decisions/0255.

use rustix::fs::{Mode, OFlags, open};
use std::os::fd::AsRawFd as _;

/// A new file has the lowest number that is free. If that is a stream's number, the stream was
/// closed.
#[ctor::ctor]
fn keep_closed() {
    for (stream, direction) in [(0, OFlags::WRONLY), (1, OFlags::RDONLY)] {
        match open(c"/dev/null", direction | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) if file.as_raw_fd() == stream => std::mem::forget(file),
            Ok(_) | Err(_) => {}
        }
    }
}
