// SPDX-License-Identifier: Apache-2.0
//! Copies memory between this process and another one (process_vm_readv(2)), for which rustix has no functions.

use std::io;

/// Copies from `address` in process `pid` to `out`. Returns the number of bytes copied.
///
/// # Errors
/// The system's error when the first byte cannot be read.
pub fn read(pid: i32, address: u64, out: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: out.len() };
    // SAFETY: `out` is valid for writing; the kernel checks the other side.
    let copied = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(copied).map_err(|_| io::Error::last_os_error())
}

/// Copies `bytes` to `address` in process `pid`. Returns the number of bytes copied.
///
/// # Errors
/// The system's error when the first byte cannot be written.
pub fn write(pid: i32, address: u64, bytes: &[u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: bytes.len() };
    // SAFETY: `bytes` is valid and only read; the kernel checks the other side.
    let copied = unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(copied).map_err(|_| io::Error::last_os_error())
}

/// Copies `bytes` to at most 1024 pieces of the memory of process `pid`, given by address and length. Returns the
/// number of bytes copied.
///
/// # Errors
/// The system's error when the first byte cannot be written.
pub fn write_pieces(pid: i32, pieces: &[(u64, usize)], bytes: &[u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let piece = |&(address, length): &(u64, usize)| libc::iovec { iov_base: address as *mut _, iov_len: length };
    let remote: Vec<libc::iovec> = pieces.iter().map(piece).collect();
    // SAFETY: `bytes` is valid and only read; the kernel checks the other side.
    let copied =
        unsafe { libc::process_vm_writev(pid, &raw const local, 1, remote.as_ptr(), remote.len() as libc::c_ulong, 0) };
    usize::try_from(copied).map_err(|_| io::Error::last_os_error())
}
