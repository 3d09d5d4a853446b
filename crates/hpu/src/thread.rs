use abi::device::map;

use crate::Program;

/// Index that swallows what instructions write to `x0`.
pub(crate) const SINK: u8 = 32;
const REGISTERS: usize = 64;

/// One invocation of a handler: its registers, and the cycles and instructions it has used.
#[derive(Clone, Debug)]
pub struct Thread {
    /// 32 registers, [`SINK`], and padding to a power of two, so that a masked index needs no check.
    x: [u32; REGISTERS],
    /// Floating-point registers; a single is boxed (RISC-V Unpriv. 21.2).
    f: [u64; 32],
    /// Where it started.
    pub(crate) entry: u32,
    pub(crate) pc: u32,
    pub(crate) cycles: u64,
    pub(crate) instructions: u64,
    /// Cycles of the current block that depend on data: divisions and accesses across words on the in-order core.
    pub(crate) data_cycles: u32,
    /// Address and value that the last LR read.
    pub(crate) reservation: Option<(u32, u32)>,
    /// The time of the synchronising instruction at `pc` has come.
    pub(crate) granted: bool,
    /// Whether it waits in a loop of plain loads.
    pub(crate) attention: crate::watch::Attention,
    /// State of the pipeline, in the engine's memo.
    pub(crate) pipeline: crate::timing::Position,
}

impl Thread {
    /// A handler at its first instruction (an address from [`Program::entry`]), with up to three arguments, a stack that
    /// grows down from `stack_top`, and a return address that ends it.
    pub fn new(program: &Program, entry: u32, stack_top: u32, args: [u32; 3]) -> Thread {
        let mut x = [0; REGISTERS];
        x[1] = map::RETURN;
        x[2] = stack_top;
        x[3] = program.global_pointer();
        x[10..13].copy_from_slice(&args);
        Thread {
            x,
            f: [0; 32],
            entry,
            pc: entry & !1,
            cycles: 0,
            instructions: 0,
            data_cycles: 0,
            reservation: None,
            granted: false,
            attention: Default::default(),
            pipeline: Default::default(),
        }
    }

    /// Cycles since the handler started, up to the completion of its latest instruction.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Instructions that have completed.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Sets `a0`, the answer to a [`Stop::Call`](crate::Stop::Call).
    pub fn set_result(&mut self, a0: u32) {
        self.x[10] = a0;
    }

    /// The card has done something for the handler: it does not wait in a loop.
    pub fn note_work(&mut self) {
        self.attention.rest();
    }

    /// Address of the next instruction, or of the one that failed.
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Integer register `index` (0 to 31), for debuggers and tests.
    pub fn register(&self, index: u8) -> u32 {
        self.x(index & 31)
    }

    /// Bits of floating-point register `index` (0 to 31), for debuggers and tests.
    pub fn float_register(&self, index: u8) -> u64 {
        self.f(index)
    }

    #[inline(always)]
    pub(crate) fn x(&self, index: u8) -> u32 {
        self.x[usize::from(index) % REGISTERS]
    }

    #[inline(always)]
    pub(crate) fn set_x(&mut self, index: u8, value: u32) {
        self.x[usize::from(index) % REGISTERS] = value;
    }

    #[inline(always)]
    pub(crate) fn f(&self, index: u8) -> u64 {
        self.f[usize::from(index) % 32]
    }

    #[inline(always)]
    pub(crate) fn set_f(&mut self, index: u8, bits: u64) {
        self.f[usize::from(index) % 32] = bits;
    }
}
