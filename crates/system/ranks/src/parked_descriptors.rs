// SPDX-License-Identifier: Apache-2.0
//! Moves descriptors that only the simulator needs to high numbers.
//!
//! The descriptor table of a new process then need not contain them: with one or more per rank, copying and closing
//! them dominated the start of many ranks.

use std::os::fd::{OwnedFd, RawFd};
use std::sync::LazyLock;

/// Numbers reserved for other descriptors that the simulator opens.
const OTHERS: RawFd = 64;

/// First number of the parked descriptors, above all initial descriptors, which ranks inherit.
static FIRST: LazyLock<RawFd> = LazyLock::new(|| {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = open.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    numbers.max().unwrap_or_default().saturating_add(OTHERS)
});

/// Returns the first number of the parked descriptors.
pub fn first() -> RawFd {
    *FIRST
}

/// Moves a descriptor to a parked number, or keeps its number if none is free.
pub fn park(descriptor: OwnedFd) -> OwnedFd {
    rustix::io::fcntl_dupfd_cloexec(&descriptor, first()).unwrap_or(descriptor)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn parking_raises_the_descriptor_number() {
        let (read, mut write) = std::io::pipe().unwrap();
        let mut read = std::fs::File::from(park(read.into()));
        assert!(read.as_raw_fd() >= first(), "{}", read.as_raw_fd());
        write.write_all(b"text").unwrap();
        drop(write);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }
}
