// SPDX-License-Identifier: Apache-2.0
//! Registers of an HPU in gdb's numbering: `x0` to `x31` and `pc`; if present, `f0` to `f31` and their three control
//! registers, whose values are unknown.

use gdbstub::arch::{Arch, Registers};

/// Names of the integer and floating-point registers in the calling convention.
const INTEGER: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "s2",
    "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];
const FLOAT: [&str; 32] = [
    "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5",
    "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
];
/// Floating-point control registers and their numbers.
const CONTROL: [(&str, u32); 3] = [("fflags", 66), ("frm", 67), ("fcsr", 68)];

/// Processor with 32-bit RISC-V instructions.
pub enum Hpu {}

impl Arch for Hpu {
    type Usize = u32;
    type Registers = HpuRegisters;
    type BreakpointKind = usize;
    type RegId = ();
}

/// Registers of a handler in the order of transmission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HpuRegisters {
    pub all: nic::Registers,
    /// Set if they include floating-point registers.
    pub has_floats: bool,
}

impl Registers for HpuRegisters {
    type ProgramCounter = u32;

    fn pc(&self) -> u32 {
        self.all.pc
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let words = self.all.integer.iter().chain([&self.all.pc]);
        words.flat_map(|word| word.to_le_bytes()).for_each(|byte| write_byte(Some(byte)));
        if self.has_floats {
            self.all.float.iter().flat_map(|bits| bits.to_le_bytes()).for_each(|byte| write_byte(Some(byte)));
            CONTROL.iter().flat_map(|_| [None; 4]).for_each(write_byte);
        }
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        let (words, rest) = bytes.split_at_checked(4 * (self.all.integer.len() + 1)).ok_or(())?;
        let mut words = words.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        self.all.integer = std::array::from_fn(|_| words.next().unwrap_or_default());
        self.all.pc = words.next().unwrap_or_default();
        self.has_floats = !rest.is_empty();
        let floats = rest.as_chunks().0;
        if self.has_floats {
            let floats: &[[u8; 8]; 32] = floats.first_chunk().ok_or(())?;
            self.all.float = floats.map(u64::from_le_bytes);
        }
        Ok(())
    }
}

/// Returns true if processors of a kind, named by its instruction set, have floating-point registers.
pub fn has_floats(kind: &str) -> bool {
    kind.trim_start_matches("rv32").contains('d')
}

/// Returns the register description in gdb's format (GDB manual, "RISC-V Features").
pub fn description(has_floats: bool) -> String {
    let mut text =
        String::from("<?xml version=\"1.0\"?><target version=\"1.0\"><architecture>riscv:rv32</architecture>");
    let mut feature = |name: &str, registers: &mut dyn Iterator<Item = (&str, u32, &str, u32)>| {
        text += &format!("<feature name=\"org.gnu.gdb.riscv.{name}\">");
        for (name, bits, kind, number) in registers {
            text += &format!("<reg name=\"{name}\" bitsize=\"{bits}\" type=\"{kind}\" regnum=\"{number}\"/>");
        }
        text += "</feature>";
    };
    let kind = |name: &str| match name {
        "ra" | "pc" => "code_ptr",
        "sp" | "gp" | "tp" | "fp" => "data_ptr",
        _ => "int",
    };
    let integer = INTEGER.into_iter().chain(["pc"]).zip(0..);
    feature("cpu", &mut integer.map(|(name, number)| (name, 32, kind(name), number)));
    if has_floats {
        let float = FLOAT.into_iter().zip(33..).map(|(name, number)| (name, 64, "ieee_double", number));
        feature("fpu", &mut float.chain(CONTROL.map(|(name, number)| (name, 32, "int", number))));
    }
    text + "</target>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_sent_in_the_order_of_their_numbers() {
        let all = nic::Registers {
            integer: std::array::from_fn(|index| u32::try_from(index).unwrap() + 1),
            float: std::array::from_fn(|index| (index as f64).to_bits()),
            pc: 0x1234,
        };
        for has_floats in [false, true] {
            let registers = HpuRegisters { all: all.clone(), has_floats };
            let mut sent = Vec::new();
            registers.gdb_serialize(|byte| sent.push(byte));
            assert_eq!(sent.len(), if has_floats { 33 * 4 + 32 * 8 + 3 * 4 } else { 33 * 4 });
            let described = description(has_floats);
            assert_eq!(described.matches("<reg ").count(), if has_floats { 68 } else { 33 });
            assert_eq!(
                described.contains("name=\"fa0\" bitsize=\"64\" type=\"ieee_double\" regnum=\"43\""),
                has_floats
            );
            assert_eq!(sent[4..8], [2, 0, 0, 0].map(Some));
            assert_eq!(sent[128..132], [0x34, 0x12, 0, 0].map(Some));
            let bytes: Vec<u8> = sent.iter().map(|byte| byte.unwrap_or(0)).collect();
            let mut back = HpuRegisters::default();
            back.gdb_deserialize(&bytes).unwrap();
            let float = if has_floats { all.float } else { [0; 32] };
            assert_eq!(back, HpuRegisters { all: nic::Registers { float, ..all.clone() }, has_floats });
            assert!(back.gdb_deserialize(&bytes[..100]).is_err());
        }
        assert!(has_floats("rv32imafdc") && !has_floats("rv32imac"));
    }
}
