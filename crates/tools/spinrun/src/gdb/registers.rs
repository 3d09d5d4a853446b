// SPDX-License-Identifier: Apache-2.0
//! Registers of an HPU in gdb's numbering. RISC-V: `x0` to `x31` and `pc`; if present, `f0` to `f31` and their three control
//! registers, whose values are unknown. ARM: `r0` to `r12`, `sp`, `lr`, `pc`, `cpsr`, `d0` to `d31` and `fpscr`, which is
//! unknown.

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

/// Processor of a card.
pub enum Hpu {}

/// Set of registers of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// RISC-V without floating-point registers.
    #[default]
    RiscV,
    /// RISC-V with double-precision registers.
    RiscVFloat,
    /// ARM with VFP.
    Arm,
}

impl Layout {
    /// Returns the registers of a kind, named by its instruction set.
    pub fn of(kind: &str) -> Layout {
        match kind {
            kind if kind.starts_with("armv7a") => Layout::Arm,
            kind if kind.trim_start_matches("rv32").contains('d') => Layout::RiscVFloat,
            _ => Layout::RiscV,
        }
    }
}

/// Registers of the file that hold the flags N, Z, C, V, Q and GE of ARM (`hpu`, `isa/arm/fields.rs`).
const ARM_FLAGS: [usize; 6] = [16, 17, 18, 19, 20, 21];

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
    /// Registers that the processor has.
    pub layout: Layout,
}

/// Returns CPSR: the flags, in user mode.
fn cpsr(integer: &[u32; 32]) -> u32 {
    let [n, z, c, v, q, ge] = ARM_FLAGS.map(|register| integer[register]);
    n & 0x8000_0000 | u32::from(z == 0) << 30 | c << 29 | v << 28 | q << 27 | ge << 16 | 0x10
}

/// Sets the flags from CPSR.
fn set_cpsr(integer: &mut [u32; 32], cpsr: u32) {
    let bit = |at: u32| cpsr >> at & 1;
    let flags = [cpsr & 0x8000_0000, bit(30) ^ 1, bit(29), bit(28), bit(27), cpsr >> 16 & 15];
    for (register, value) in ARM_FLAGS.into_iter().zip(flags) {
        integer[register] = value;
    }
}

impl Registers for HpuRegisters {
    type ProgramCounter = u32;

    fn pc(&self) -> u32 {
        self.all.pc
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let words: Vec<u32> = match self.layout {
            Layout::Arm => {
                self.all.integer[..15].iter().copied().chain([self.all.pc, cpsr(&self.all.integer)]).collect()
            }
            _ => self.all.integer.iter().copied().chain([self.all.pc]).collect(),
        };
        words.into_iter().flat_map(u32::to_le_bytes).for_each(|byte| write_byte(Some(byte)));
        if self.layout != Layout::RiscV {
            self.all.float.iter().flat_map(|bits| bits.to_le_bytes()).for_each(|byte| write_byte(Some(byte)));
            let unknown = if self.layout == Layout::Arm { 1 } else { CONTROL.len() };
            (0..4 * unknown).for_each(|_| write_byte(None));
        }
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        // gdb returns all registers of the description, so that their size tells the processor.
        self.layout = match bytes.len() {
            length if length == ARM_BYTES => Layout::Arm,
            length if length > RISCV_BYTES => Layout::RiscVFloat,
            _ => Layout::RiscV,
        };
        let integers = if self.layout == Layout::Arm { 15 } else { self.all.integer.len() };
        let others = if self.layout == Layout::Arm { 2 } else { 1 };
        let (words, rest) = bytes.split_at_checked(4 * (integers + others)).ok_or(())?;
        let mut words = words.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        self.all.integer[..integers].iter_mut().for_each(|register| *register = words.next().unwrap_or_default());
        self.all.pc = words.next().unwrap_or_default();
        if self.layout == Layout::Arm {
            set_cpsr(&mut self.all.integer, words.next().unwrap_or_default());
        }
        let floats = rest.as_chunks().0;
        if self.layout != Layout::RiscV {
            let floats: &[[u8; 8]; 32] = floats.first_chunk().ok_or(())?;
            self.all.float = floats.map(u64::from_le_bytes);
        }
        Ok(())
    }
}

/// Sizes of all registers in bytes.
const RISCV_BYTES: usize = 4 * 33;
const ARM_BYTES: usize = 4 * 17 + 8 * 32 + 4;

/// Returns the register description of ARM (GDB manual, "ARM Features").
fn arm_description() -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\"?><target version=\"1.0\"><architecture>arm</architecture><feature \
         name=\"org.gnu.gdb.arm.core\">",
    );
    let mut register = |name: &str, bits: u32, kind: &str, number: usize| {
        text += &format!("<reg name=\"{name}\" bitsize=\"{bits}\" type=\"{kind}\" regnum=\"{number}\"/>");
    };
    (0..13).for_each(|number| register(&format!("r{number}"), 32, "uint32", number));
    register("sp", 32, "data_ptr", 13);
    register("lr", 32, "int", 14);
    register("pc", 32, "code_ptr", 15);
    register("cpsr", 32, "int", 25);
    text += "</feature><feature name=\"org.gnu.gdb.arm.vfp\">";
    let mut register = |name: &str, bits: u32, kind: &str, number: usize| {
        text += &format!("<reg name=\"{name}\" bitsize=\"{bits}\" type=\"{kind}\" regnum=\"{number}\"/>");
    };
    (0..32).for_each(|number| register(&format!("d{number}"), 64, "ieee_double", 26 + number));
    register("fpscr", 32, "int", 58);
    text + "</feature></target>"
}

/// Returns the register description in gdb's format (GDB manual, "RISC-V Features").
pub fn description(layout: Layout) -> String {
    if layout == Layout::Arm {
        return arm_description();
    }
    let has_floats = layout == Layout::RiscVFloat;
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
        for layout in [Layout::RiscV, Layout::RiscVFloat] {
            let has_floats = layout == Layout::RiscVFloat;
            let registers = HpuRegisters { all: all.clone(), layout };
            let mut sent = Vec::new();
            registers.gdb_serialize(|byte| sent.push(byte));
            assert_eq!(sent.len(), if has_floats { 33 * 4 + 32 * 8 + 3 * 4 } else { 33 * 4 });
            let described = description(layout);
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
            assert_eq!(back, HpuRegisters { all: nic::Registers { float, ..all.clone() }, layout });
            assert!(back.gdb_deserialize(&bytes[..100]).is_err());
        }
        let layouts = ["rv32imafdc", "rv32imac", "armv7a"].map(Layout::of);
        assert_eq!(layouts, [Layout::RiscVFloat, Layout::RiscV, Layout::Arm]);
    }

    #[test]
    fn arm_has_flags_in_one_register() {
        let mut all = nic::Registers {
            integer: std::array::from_fn(|index| if index < 15 { u32::try_from(index).unwrap() + 1 } else { 0 }),
            float: std::array::from_fn(|index| index as u64),
            pc: 0x1234,
        };
        // N, C and GE[2]; Z is clear because its register is not zero.
        for (register, value) in [(16, 0x8000_0000), (17, 1), (18, 1), (21, 4)] {
            all.integer[register] = value;
        }
        let registers = HpuRegisters { all, layout: Layout::Arm };
        let mut sent = Vec::new();
        registers.gdb_serialize(|byte| sent.push(byte));
        assert_eq!(sent.len(), ARM_BYTES);
        assert_eq!(sent[60..68], [0x34, 0x12, 0, 0, 0x10, 0, 4, 0xa0].map(Some));
        assert_eq!(description(Layout::Arm).matches("<reg ").count(), 17 + 33);
        let bytes: Vec<u8> = sent.iter().map(|byte| byte.unwrap_or(0)).collect();
        let mut back = HpuRegisters::default();
        back.gdb_deserialize(&bytes).unwrap();
        assert_eq!(back, registers);
    }
}
