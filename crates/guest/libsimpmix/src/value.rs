// SPDX-License-Identifier: Apache-2.0
//! Serialised values: two bytes of the kind, then the value.

use crate::layout::{Bytes, Data, Value, kind};
use std::ffi::CStr;
use std::ptr;

/// Serialises a value of the program. `None` if its kind is not supported: kinds with pointers other than strings and
/// bytes.
///
/// # Safety
/// Pointers in the value must be valid as its kind requires.
pub unsafe fn pack(value: &Value) -> Option<Vec<u8>> {
    let mut bytes = value.kind.to_le_bytes().to_vec();
    // SAFETY: the kind selects the member, and the caller guarantees valid pointers.
    unsafe {
        match value.kind {
            kind::STRING if value.data.string.is_null() => return None,
            kind::STRING => bytes.extend(CStr::from_ptr(value.data.string).to_bytes()),
            kind::BYTES if value.data.bytes.length > 0 => {
                let Bytes { start, length } = value.data.bytes;
                bytes.extend(std::slice::from_raw_parts(start.cast::<u8>(), length));
            }
            kind::BYTES => {}
            other => bytes.extend(&value.data.number[..kind::size_of_number(other)?]),
        }
    }
    Some(bytes)
}

/// Deserialises a value from the bytes of [`pack`]. As with the functions of PMIx, `PMIx_Value_free` frees it. `None`
/// if the bytes are no value, or memory is exhausted.
pub fn unpack(bytes: &[u8]) -> Option<*mut Value> {
    let (kind, content) = bytes.split_first_chunk()?;
    let kind = u16::from_le_bytes(*kind);
    let data = match kind {
        kind::STRING => Data { string: copy(content, 1)?.cast() },
        kind::BYTES if content.is_empty() => Data { bytes: Bytes { start: ptr::null_mut(), length: 0 } },
        kind::BYTES => Data { bytes: Bytes { start: copy(content, 0)?.cast(), length: content.len() } },
        other => {
            let size = kind::size_of_number(other).filter(|size| *size == content.len())?;
            let mut number = [0; 8];
            number[..size].copy_from_slice(content);
            Data { number }
        }
    };
    // SAFETY: it is written before it is read; zeros are a valid value.
    unsafe {
        let value = libc::calloc(1, size_of::<Value>()).cast::<Value>();
        if value.is_null() {
            return None;
        }
        value.write(Value { kind, data });
        Some(value)
    }
}

/// Copies bytes to memory from `malloc`, and appends `zeros` zero bytes.
pub fn copy(content: &[u8], zeros: usize) -> Option<*mut u8> {
    // SAFETY: the memory has room for the bytes.
    unsafe {
        let memory = libc::calloc(1, content.len() + zeros).cast::<u8>();
        if memory.is_null() {
            return None;
        }
        memory.copy_from_nonoverlapping(content.as_ptr(), content.len());
        Some(memory)
    }
}

/// Serialises a two-byte number.
pub fn of_u16(number: u16) -> Vec<u8> {
    [kind::UINT16.to_le_bytes(), number.to_le_bytes()].concat()
}

/// Serialises a four-byte number.
pub fn of_u32(number: u32) -> Vec<u8> {
    [&kind::UINT32.to_le_bytes()[..], &number.to_le_bytes()].concat()
}

/// Serialises a string.
pub fn of_text(text: &str) -> Vec<u8> {
    [&kind::STRING.to_le_bytes()[..], text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::{of_text, of_u16, of_u32, pack, unpack};
    use crate::layout::kind;

    #[test]
    fn values_come_back_as_they_were() {
        let bytes = [&kind::BYTES.to_le_bytes()[..], &[0, 1, 255]].concat();
        let nothing = kind::BYTES.to_le_bytes().to_vec();
        for packed in [of_u16(65_535), of_u32(1 << 31), of_text(""), of_text("two words"), bytes, nothing] {
            let value = unpack(&packed).expect("it is a value");
            // SAFETY: the value is valid; the test keeps its contents.
            assert_eq!(unsafe { pack(&*value) }, Some(packed));
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let mut short = of_u32(7);
        short.pop();
        assert!(
            [&[][..], &[3], &short, &[0, 0], &[31, 0, 1, 2, 3, 4, 5, 6, 7, 8]]
                .into_iter()
                .all(|bytes| unpack(bytes).is_none())
        );
    }
}
