// SPDX-License-Identifier: Apache-2.0
//! Extensions for which a program was compiled, from the flags of the ELF header and the attributes section (RISC-V ELF
//! psABI, "File Header" and "Attributes").

use object::elf::{EF_RISCV_FLOAT_ABI_DOUBLE, EF_RISCV_FLOAT_ABI_SINGLE, EF_RISCV_FLOAT_ABI_SOFT, EF_RISCV_RVC};
use object::read::elf::{AttributesSection, FileHeader};
use object::{LittleEndian, Object, ObjectSection};

use super::extensions::{C, D, Extensions, F, I};
use crate::isa::interface::DeviceElf;

/// Name of the attributes section.
const ATTRIBUTES: &str = ".riscv.attributes";
/// Vendor of the attributes that the psABI defines.
const VENDOR: &[u8] = b"riscv";
/// Attribute with the architecture string. Attributes with odd numbers have text values, the others integers.
const TAG_ARCH: u64 = 5;

/// Checks a program against the extensions of a core.
///
/// # Errors
/// Returns the missing extension as a clause about the program.
pub fn check(elf: &DeviceElf<'_>, core: Extensions) -> Result<(), String> {
    let flags = elf.elf_header().e_flags(LittleEndian);
    let (needed, convention) = match flags.riscv_float_abi() {
        EF_RISCV_FLOAT_ABI_SOFT => (I, ""),
        EF_RISCV_FLOAT_ABI_SINGLE => (F, "floating-point registers (calling convention ilp32f)"),
        EF_RISCV_FLOAT_ABI_DOUBLE => (D, "double-precision floating-point registers (calling convention ilp32d)"),
        _ => return Err("it passes arguments in quadruple-precision registers, which no core has".into()),
    };
    let lacks = |what: String| Err(format!("{what}, which {core} cores do not have"));
    if !core.contain(needed) {
        return lacks(format!("it passes arguments in {convention}"));
    }
    if flags.contains(EF_RISCV_RVC) && !core.contain(C) {
        return lacks("it has compressed instructions (extension C)".into());
    }
    match architecture(elf).map_err(|error| format!("its section {ATTRIBUTES} is broken: {error}"))? {
        Some(text) => check_architecture(&text, core).or_else(|part| lacks(format!("it was compiled for {part}"))),
        None => Ok(()),
    }
}

/// Checks an architecture string such as "rv32i2p1_m2p0_zicsr2p0": base and extensions, each with a version.
///
/// # Errors
/// Returns the first part that the core lacks.
fn check_architecture(text: &str, core: Extensions) -> Result<(), String> {
    let mut parts = text.split('_').map(without_version);
    let first = parts.next().unwrap_or_default();
    let Some(letters) = first.strip_prefix("rv32i") else {
        return Err(first.to_owned());
    };
    // Without versions the letters are adjacent: "rv32imac".
    let letters = letters.char_indices().map(|(at, letter)| &letters[at..at + letter.len_utf8()]);
    for part in letters.chain(parts).filter(|part| !part.is_empty()) {
        if !Extensions::of_part(part).is_some_and(|extension| core.contain(extension)) {
            return Err(format!("extension {}", part.to_uppercase()));
        }
    }
    Ok(())
}

/// Returns "zicsr" for "zicsr2p0".
fn without_version(part: &str) -> &str {
    let Some((name, minor)) = part.rsplit_once('p') else { return part };
    let major = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if minor.is_empty() || !minor.bytes().all(|b| b.is_ascii_digit()) || major.len() == name.len() {
        return part;
    }
    major
}

/// Returns the architecture string of the file's attributes.
fn architecture(elf: &DeviceElf<'_>) -> object::Result<Option<String>> {
    let Some(section) = elf.section_by_name(ATTRIBUTES) else { return Ok(None) };
    let attributes = AttributesSection::<object::elf::FileHeader32<LittleEndian>>::new(LittleEndian, section.data()?)?;
    let mut subsections = attributes.subsections()?;
    while let Some(subsection) = subsections.next()? {
        if subsection.vendor() != VENDOR {
            continue;
        }
        let mut parts = subsection.subsubsections();
        while let Some(part) = parts.next()? {
            let mut reader = part.attributes();
            while let Some(tag) = reader.read_tag()? {
                if tag % 2 == 0 {
                    reader.read_integer()?;
                    continue;
                }
                let value = reader.read_string()?;
                if tag == TAG_ARCH {
                    return Ok(Some(String::from_utf8_lossy(value).into_owned()));
                }
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architecture_strings() {
        let [plain, float] = ["rv32imac", "rv32imafdc"].map(|name| Extensions::of_name(name).unwrap());
        for text in [
            "rv32i2p1",
            "rv32imac",
            "rv32i2p1_m2p0_a2p1_c2p0_zicsr2p0_zmmul1p0_zaamo1p0_zalrsc1p0_zca1p0",
            "rv32i2p1_zifencei2p0",
        ] {
            assert_eq!(check_architecture(text, plain), Ok(()), "{text}");
            assert_eq!(check_architecture(text, float), Ok(()), "{text}");
        }
        for (text, lacks) in [
            ("rv32i2p1_m2p0_f2p2_c2p0", "F"),
            ("rv32i2p1_m2p0_d2p2", "D"),
            ("rv32i2p1_zca1p0_zcf1p0", "ZCF"),
            ("rv32imafdc", "F"),
        ] {
            let error = format!("extension {lacks}");
            assert_eq!(check_architecture(text, plain), Err(error), "{text}");
            assert_eq!(check_architecture(text, float), Ok(()), "{text}");
        }
        for (text, error) in [
            ("rv32i2p1_zba1p0", "extension ZBA"),
            ("rv32i2p1_v1p0", "extension V"),
            ("rv64i2p1_m2p0", "rv64i"),
            ("rv32e2p0", "rv32e"),
            ("", ""),
        ] {
            assert_eq!(check_architecture(text, float), Err(error.into()), "{text}");
        }
    }
}
