//! Names of places in the code of a process.

use object::{Object, ObjectSegment, ObjectSymbol};
use std::fs;

/// Describes an instruction of a process: its function with an offset, and the file that has it. Without them it is the address.
pub fn describe(pid: u32, address: u64) -> String {
    if address == 0 {
        return "an unknown place".into();
    }
    let known = find(pid, address).map(|(name, path)| match path.rsplit_once('/') {
        Some((_, file)) => format!("{name} in {file}"),
        None => format!("{name} in {path}"),
    });
    known.unwrap_or_else(|| format!("address {address:#x}"))
}

/// Returns the function of an instruction, with an offset, and the path of its file.
fn find(pid: u32, address: u64) -> Option<(String, String)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let (offset, path) = maps.lines().find_map(|line| {
        // "start-end rights offset device inode path" (proc(5))
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        let path = words.nth(2)?;
        (start..end).contains(&address).then(|| (address - start + offset, path.to_owned()))
    })?;
    let name = symbol(&path, offset).unwrap_or_else(|| format!("{offset:#x}"));
    Some((name, path))
}

/// Returns the function that has the byte at this offset of an ELF file, with the distance from its beginning.
fn symbol(path: &str, offset: u64) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let address = file.segments().find_map(|segment| {
        let (start, length) = segment.file_range();
        (start..start + length).contains(&offset).then(|| segment.address() + (offset - start))
    })?;
    let functions =
        file.symbols().chain(file.dynamic_symbols()).filter(|symbol| symbol.kind() == object::SymbolKind::Text);
    let function = functions.filter(|symbol| symbol.address() <= address).max_by_key(ObjectSymbol::address)?;
    let distance = address - function.address();
    let name = function.name().ok()?;
    Some(if distance == 0 { name.to_owned() } else { format!("{name}+{distance:#x}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    #[unsafe(no_mangle)]
    extern "C" fn a_function_with_a_name() -> u32 {
        std::hint::black_box(7)
    }

    #[test]
    fn a_function_is_found_by_its_address() {
        assert_eq!(a_function_with_a_name(), 7);
        let address = a_function_with_a_name as *const () as u64;
        let place = describe(std::process::id(), address);
        assert!(place.starts_with("a_function_with_a_name in host-"), "{place}");
        assert!(describe(std::process::id(), address + 1).starts_with("a_function_with_a_name+0x1 in host-"));
        assert_eq!(describe(std::process::id(), 0), "an unknown place");
        assert_eq!(describe(std::process::id(), 16), "address 0x10");
    }
}
