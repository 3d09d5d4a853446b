// SPDX-License-Identifier: Apache-2.0
//! Serialisation buffers of the program (`PMIx_Data_pack`). The real library's functions first query the server for the
//! format, but no server exists.
//!
//! One or more values of a kind are serialised as the kind (2 bytes), the count (4 bytes), and the values: numbers and
//! processes as in memory, texts and bytes behind their length (4 bytes). All ranks run on one computer, so the byte
//! order is the same.

use crate::layout::{Buffer, Bytes, Process, Status, kind, status};
use crate::value::copy;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

/// Result with an error such as `PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER`.
type Result<T> = std::result::Result<T, Status>;

/// Length that stands for a NULL text.
const NULL: u32 = u32::MAX;

/// Returns the size of values that are serialised as in memory.
fn plain(kind: u16) -> Option<usize> {
    if kind == kind::PROCESS { Some(size_of::<Process>()) } else { kind::size_of_number(kind) }
}

fn length(of: usize) -> Result<[u8; 4]> {
    u32::try_from(of).ok().filter(|length| *length != NULL).map(u32::to_le_bytes).ok_or(status::BAD_PARAMETER)
}

/// Serialises values of the program.
///
/// # Errors
/// [`status::NOT_SUPPORTED`] if the kind is not supported, and [`status::BAD_PARAMETER`] if a value is longer than 4
/// GB.
///
/// # Safety
/// `from` must have `count` values of the kind.
pub unsafe fn pack(from: *const c_void, count: usize, kind: u16) -> Result<Vec<u8>> {
    let mut bytes = [&kind.to_le_bytes()[..], &length(count)?].concat();
    for number in 0..count {
        // SAFETY: the caller guarantees the values; texts end with a zero byte.
        unsafe {
            match (kind, plain(kind)) {
                (_, Some(size)) => {
                    bytes.extend(std::slice::from_raw_parts(from.cast::<u8>().add(number * size), size));
                }
                (kind::STRING, _) => match *from.cast::<*const c_char>().add(number) {
                    text if text.is_null() => bytes.extend(NULL.to_le_bytes()),
                    text => {
                        let text = CStr::from_ptr(text).to_bytes();
                        bytes.extend(length(text.len())?);
                        bytes.extend(text);
                    }
                },
                (kind::BYTES, _) => {
                    let Bytes { start, length: held } = *from.cast::<Bytes>().add(number);
                    bytes.extend(length(held)?);
                    if held > 0 {
                        bytes.extend(std::slice::from_raw_parts(start.cast::<u8>(), held));
                    }
                }
                _ => return Err(status::NOT_SUPPORTED),
            }
        }
    }
    Ok(bytes)
}

/// Splits off the first `count` bytes.
fn take<'a>(left: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (taken, rest) = left.split_at_checked(count).ok_or(status::END_OF_BUFFER)?;
    *left = rest;
    Ok(taken)
}

fn number(left: &mut &[u8]) -> Result<u32> {
    let bytes = take(left, 4)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// Deserialises the next values of a buffer, and returns their number.
///
/// # Errors
/// [`status::END_OF_BUFFER`], [`status::OTHER_VALUES`] if the next values are of another kind, or [`status::NO_SPACE`];
/// nothing is read then.
///
/// # Safety
/// `to` must have room for `room` values of the kind.
pub unsafe fn unpack(left: &mut &[u8], to: *mut c_void, room: usize, kind: u16) -> Result<usize> {
    let mut rest = *left;
    if take(&mut rest, 2)? != kind.to_le_bytes() {
        return Err(status::OTHER_VALUES);
    }
    let count = number(&mut rest)? as usize;
    if count > room {
        return Err(status::NO_SPACE);
    }
    for place in 0..count {
        // SAFETY: the caller guarantees room, and no more than `room` values are written.
        unsafe {
            if let Some(size) = plain(kind) {
                let value = take(&mut rest, size)?;
                to.cast::<u8>().add(place * size).copy_from_nonoverlapping(value.as_ptr(), size);
                continue;
            }
            let length = number(&mut rest)?;
            let held = if length == NULL { &[][..] } else { take(&mut rest, length as usize)? };
            match kind {
                kind::STRING if length == NULL => to.cast::<*mut u8>().add(place).write(ptr::null_mut()),
                kind::STRING => to.cast::<*mut u8>().add(place).write(copy(held, 1).ok_or(status::NO_MEMORY)?),
                kind::BYTES => {
                    let start = copy(held, 1).ok_or(status::NO_MEMORY)?.cast();
                    to.cast::<Bytes>().add(place).write(Bytes { start, length: held.len() });
                }
                _ => return Err(status::NOT_SUPPORTED),
            }
        }
    }
    *left = rest;
    Ok(count)
}

impl Buffer {
    /// Appends bytes.
    ///
    /// # Errors
    /// [`status::NO_MEMORY`].
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let read = if self.start.is_null() { 0 } else { self.next as usize - self.start as usize };
        let needed = self.used + bytes.len();
        // SAFETY: the memory is from `malloc`, and has room for the bytes.
        unsafe {
            if needed > self.capacity {
                let larger = libc::realloc(self.start.cast(), 2 * needed).cast::<c_char>();
                if larger.is_null() {
                    return Err(status::NO_MEMORY);
                }
                (self.start, self.capacity) = (larger, 2 * needed);
            }
            self.start.add(self.used).cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            (self.end, self.next, self.used) = (self.start.add(needed), self.start.add(read), needed);
        }
        Ok(())
    }

    /// Returns the unread bytes.
    pub fn left(&self) -> &[u8] {
        if self.start.is_null() {
            return &[];
        }
        let read = self.next as usize - self.start as usize;
        // SAFETY: the memory has that many bytes.
        unsafe { std::slice::from_raw_parts(self.next.cast(), self.used.saturating_sub(read)) }
    }
}

#[cfg(test)]
mod tests {
    use super::{pack, unpack};
    use crate::layout::{kind, status};

    #[test]
    fn what_is_cut_off_is_no_value_and_stays_in_the_buffer() {
        let numbers = [7_u32, 8];
        // SAFETY: the array has two numbers.
        let bytes = unsafe { pack(numbers.as_ptr().cast(), 2, kind::UINT32) }.expect("numbers can be packed");
        assert_eq!(bytes.len(), 2 + 4 + 8);
        for end in 0..=bytes.len() {
            let (mut left, mut read) = (&bytes[..end], [0_u32; 2]);
            // SAFETY: the array has room for two numbers.
            let found = unsafe { unpack(&mut left, read.as_mut_ptr().cast(), 2, kind::UINT32) };
            if end < bytes.len() {
                assert_eq!((found, left.len()), (Err(status::END_OF_BUFFER), end));
            } else {
                assert_eq!((found, left.len(), read), (Ok(2), 0, numbers));
            }
        }
    }
}
