//! Descriptors that only the simulator needs. They have numbers above all others, so that the table of a new process need not contain
//! them: with one or more for each rank, copying and closing them took most of the start of many ranks.

use std::os::fd::{OwnedFd, RawFd};
use std::sync::LazyLock;

/// How many numbers are left for what the simulator opens besides.
const OTHERS: RawFd = 64;

/// The first number of the parked descriptors: above those with which the process has begun, which ranks inherit.
static FIRST: LazyLock<RawFd> = LazyLock::new(|| {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = open.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    numbers.max().unwrap_or_default().saturating_add(OTHERS)
});

/// Returns the first number of the parked descriptors.
pub fn first() -> RawFd {
    *FIRST
}

/// Gives a descriptor a number among the parked ones. It keeps its own where there is none.
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
