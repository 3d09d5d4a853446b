// SPDX-License-Identifier: Apache-2.0
//! Formats of `spin_printf`, which are those of C's printf (C17 7.21.6.1). This module locates the arguments; the
//! host's C library formats each value.

use std::ffi::CString;

use super::HandlerMemory;

/// Maximum length of a format and of a printed string in bytes, without the final NUL.
const LONGEST: usize = 4096;
/// Maximum width and precision, so that a handler cannot flood the user's terminal.
const WIDEST: i32 = 1024;

/// Formats the text of a `spin_printf`. `arguments` is the address of the first argument in the handler's memory: each
/// argument takes 4 bytes, or 8 at a multiple of 8 (`va_list` of RISC-V's calling convention ilp32).
///
/// # Errors
/// Returns a description of the error, as the continuation of a sentence that begins with the handler's name.
pub(super) fn format(format: u32, arguments: u32, memory: &mut dyn HandlerMemory) -> Result<String, String> {
    let text = string(format, LONGEST, memory)
        .ok_or_else(|| format!("printed with a format at {format:#x}, {NOT_ITS_OWN}"))?;
    let mut arguments = Arguments { next: arguments, memory };
    let mut out = Vec::new();
    let mut rest = text.as_slice();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        out.extend_from_slice(&rest[..at]);
        let end = rest[at + 1..].iter().position(|byte| !b"#0- +'123456789.*hlLqjzt".contains(byte));
        let Some(length) = end.map(|end| end + 2) else {
            return Err("printed with a format that ends within a conversion".into());
        };
        let (conversion, after) = rest[at..].split_at(length);
        one(conversion, &mut arguments, &mut out)?;
        rest = after;
    }
    out.extend_from_slice(rest);
    Ok(String::from_utf8_lossy(&out).into_owned())
}

const NOT_ITS_OWN: &str = "which is not its own";

/// Remaining arguments of a call.
struct Arguments<'a> {
    next: u32,
    memory: &'a mut dyn HandlerMemory,
}

impl Arguments<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let at = self.next.next_multiple_of(N as u32);
        self.next = at + N as u32;
        let bytes = self.memory.read(at, N as u32).and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| "printed with fewer arguments than its format has".into())
    }

    fn word(&mut self) -> Result<u32, String> {
        self.take().map(u32::from_le_bytes)
    }
}

/// Value of a conversion, with the type that C's printf expects.
enum Value {
    Int(i32),
    Long(i64),
    Double(f64),
    Text(CString),
}

/// Formats one conversion, starting at its `%`.
fn one(conversion: &[u8], arguments: &mut Arguments<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    let (kind, options) = (conversion[conversion.len() - 1], &conversion[1..conversion.len() - 1]);
    let flags = options.iter().take_while(|byte| b"#0- +'".contains(byte)).count();
    let size = options.iter().position(|byte| b"hlLqjzt".contains(byte)).unwrap_or(options.len());
    let (flags, numbers, size) = (&options[..flags], &options[flags.min(size)..size], &options[size..]);
    let unknown =
        || format!("printed with {}, which is no conversion of spin_printf", String::from_utf8_lossy(conversion));

    let mut limits = numbers.splitn(2, |byte| *byte == b'.');
    let width = number(limits.next().unwrap_or_default(), arguments)?;
    let precision = match limits.next() {
        Some(digits) => Some(number(digits, arguments)?.unwrap_or(0)),
        None => None,
    };
    // The C library gets the flags, the width and precision, and the host's size of the value.
    let mut passed = vec![b'%'];
    passed.extend_from_slice(flags);
    passed.extend(width.map(|width| width.clamp(-WIDEST, WIDEST).to_string()).unwrap_or_default().bytes());
    if let Some(precision) = precision.filter(|precision| *precision >= 0) {
        passed.extend(format!(".{}", precision.min(WIDEST)).bytes());
    }
    let is_long = matches!(size, b"ll" | b"q" | b"j");
    let value = match (kind, size) {
        (b'%', b"") => {
            out.push(b'%');
            return Ok(());
        }
        (b'd' | b'i' | b'u' | b'x' | b'X' | b'o', _) if is_long => {
            passed.extend(*b"ll");
            Value::Long(i64::from_le_bytes(arguments.take()?))
        }
        (b'd' | b'i' | b'u' | b'x' | b'X' | b'o', b"" | b"l" | b"z" | b"t" | b"h" | b"hh") => {
            passed.extend(size.iter().filter(|byte| **byte == b'h'));
            Value::Int(arguments.word()? as i32)
        }
        (b'c', b"") => Value::Int(arguments.word()? as i32),
        (b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A', b"" | b"l") => {
            Value::Double(f64::from_le_bytes(arguments.take()?))
        }
        (b's', b"") => {
            let at = arguments.word()?;
            let most = precision.filter(|most| *most >= 0).map_or(LONGEST, |most| (most as usize).min(LONGEST));
            let text = string(at, most, arguments.memory);
            let text = text.ok_or_else(|| format!("printed a string at {at:#x}, {NOT_ITS_OWN}"))?;
            Value::Text(CString::new(text).map_err(|_| unknown())?)
        }
        (b'p', b"") => {
            passed.push(b's');
            let text = format!("{:#010x}", arguments.word()?);
            out.extend(printed(&passed, &Value::Text(CString::new(text).map_err(|_| unknown())?)));
            return Ok(());
        }
        _ => return Err(unknown()),
    };
    passed.push(kind);
    out.extend(printed(&passed, &value));
    Ok(())
}

/// Parses a width or precision: digits, an argument, or nothing.
fn number(digits: &[u8], arguments: &mut Arguments<'_>) -> Result<Option<i32>, String> {
    match digits {
        b"" => Ok(None),
        b"*" => Ok(Some(arguments.word()? as i32)),
        digits => {
            let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            let text = || format!("printed with {} as a width or precision", String::from_utf8_lossy(digits));
            number.map(Some).ok_or_else(text)
        }
    }
}

/// Formats one value with C's snprintf.
fn printed(conversion: &[u8], value: &Value) -> Vec<u8> {
    // Width, precision and string length are limited. A double has up to 309 digits before its point.
    let mut buffer = vec![0_u8; LONGEST + 2 * WIDEST as usize];
    let Ok(format) = CString::new(conversion) else { return Vec::new() };
    let (to, room, format) = (buffer.as_mut_ptr().cast::<libc::c_char>(), buffer.len(), format.as_ptr());
    // SAFETY: `to` has `room` bytes, and `one` built the format with a single conversion for a value of this type.
    let length = unsafe {
        match value {
            Value::Int(value) => libc::snprintf(to, room, format, *value),
            Value::Long(value) => libc::snprintf(to, room, format, *value),
            Value::Double(value) => libc::snprintf(to, room, format, *value),
            Value::Text(value) => libc::snprintf(to, room, format, value.as_ptr()),
        }
    };
    buffer.truncate(usize::try_from(length).unwrap_or_default().min(room - 1));
    buffer
}

/// Reads a NUL-terminated string of at most `most` bytes from the handler's memory; `None` if it is outside that
/// memory.
pub(super) fn string(at: u32, most: usize, memory: &mut dyn HandlerMemory) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    while text.len() < most {
        match *memory.read(at.checked_add(text.len() as u32)?, 1)?.first()? {
            0 => break,
            byte => text.push(byte),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that starts at address 0x100.
    struct Bytes(Vec<u8>);

    impl HandlerMemory for Bytes {
        fn read(&mut self, address: u32, length: u32) -> Option<Vec<u8>> {
            let at = address.checked_sub(0x100)? as usize;
            self.0.get(at..at + length as usize).map(<[u8]>::to_vec)
        }

        fn write(&mut self, _: u32, _: &[u8]) {}
    }

    /// Formats `text` (placed at 0x200) with `arguments` (placed at 0x100).
    fn print(text: &str, arguments: &[u8]) -> Result<String, String> {
        let mut bytes = arguments.to_vec();
        bytes.resize(0x100, 0);
        bytes.extend(text.bytes());
        bytes.push(0);
        format(0x200, 0x100, &mut Bytes(bytes))
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn conversions_are_those_of_c() {
        let int = |text, value: u32| print(text, &words(&[value])).unwrap();
        assert_eq!(int("%d|", -5_i32 as u32), "-5|");
        assert_eq!(int("%u", -5_i32 as u32), "4294967291");
        assert_eq!(int("%#010x", 0xbeef), "0x0000beef");
        assert_eq!(int("%hhd %%", 0x1ff), "-1 %");
        assert_eq!(int("%-5c|", b'x'.into()), "x    |");
        assert_eq!(int("%+.3d", 7), "+007");
        assert_eq!(int("%zu bytes", 12), "12 bytes");
        assert_eq!(int("%p", 0x1c00_0040), "0x1c000040");
        let float = |text, value: f64| print(text, &value.to_le_bytes()).unwrap();
        assert_eq!(float("%.2f", 2.345_678), "2.35");
        assert_eq!(float("%e", 12_345.0), "1.234500e+04");
        assert_eq!(float("%a", 1.5), "0x1.8p+0");
        assert_eq!(float("%g", f64::NAN), "nan");
        assert_eq!(float("%.0f", f64::MAX).len(), 309);
    }

    #[test]
    fn arguments_are_where_the_calling_convention_has_them() {
        // An 8-byte value starts at a multiple of 8, so the second word is padding.
        let mut bytes = words(&[1, 0xffff_ffff]);
        bytes.extend((-2_i64).to_le_bytes());
        bytes.extend(words(&[4, 0x20c]));
        assert_eq!(print("%d %lld %*s\0xyz", &bytes).unwrap(), "1 -2  xyz");
        let text = "%*.*s;\0....value";
        assert_eq!(print(text, &words(&[6, 3, 0x20b])).unwrap(), "   val;");
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(print("%n", &[]).unwrap_err(), "printed with %n, which is no conversion of spin_printf");
        assert_eq!(print("%Lf", &[]).unwrap_err(), "printed with %Lf, which is no conversion of spin_printf");
        assert_eq!(print("50%", &[]).unwrap_err(), "printed with a format that ends within a conversion");
        assert_eq!(print("%s", &words(&[0x10])).unwrap_err(), "printed a string at 0x10, which is not its own");
        let none = format(0x10, 0x100, &mut Bytes(Vec::new())).unwrap_err();
        assert_eq!(none, "printed with a format at 0x10, which is not its own");
        let few = format(0x100, 0x200, &mut Bytes(b"%d\0".to_vec())).unwrap_err();
        assert_eq!(few, "printed with fewer arguments than its format has");
    }
}
