// SPDX-License-Identifier: Apache-2.0
//! Stopped handlers of a card in gdb's remote protocol: each is a thread.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use gdbstub::common::{Signal, Tid};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadRangeStepping, MultiThreadRangeSteppingOps, MultiThreadResume, MultiThreadResumeOps,
    MultiThreadSchedulerLocking, MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint, SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::target_description_xml_override::{
    TargetDescriptionXmlOverride, TargetDescriptionXmlOverrideOps,
};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use nic::{Halted, Resident};

use super::registers::{self, Hpu, HpuRegisters, Layout};

/// Extent of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A single instruction.
    One,
    /// To the first instruction outside of this range of addresses.
    Out(u32, u32),
}

/// State set by gdb, and a copy of the card that it reads and changes while the simulation is stopped.
#[derive(Default)]
pub struct Card {
    pub breakpoints: BTreeSet<u32>,
    /// Last seen contents of watched memory, by address and length.
    pub watched: BTreeMap<(u32, u32), Vec<u8>>,
    /// Contexts whose handlers step; others run.
    pub steps: BTreeMap<u32, Step>,
    pub residents: Vec<Resident>,
    /// Registers of the processors.
    layout: Layout,
    memory: BTreeMap<u32, Vec<u8>>,
    written: Vec<(u32, Vec<u8>)>,
    changed: BTreeSet<u32>,
}

impl Card {
    /// Creates an empty copy of a card whose processors have these registers.
    pub fn new(layout: Layout) -> Card {
        Card { layout, ..Card::default() }
    }

    /// Copies the state that gdb may read.
    pub fn look(&mut self, card: &mut dyn Halted) {
        (self.residents, self.memory) = (card.residents(), card.memory());
    }

    /// Writes gdb's changes back.
    pub fn apply(&mut self, card: &mut dyn Halted) {
        for (address, bytes) in self.written.drain(..) {
            card.write(address, &bytes);
        }
        for context in std::mem::take(&mut self.changed) {
            if let Some(resident) = self.residents.iter().find(|resident| resident.context == context) {
                card.set_registers(context, &resident.registers);
            }
        }
    }

    /// Returns the address of watched memory that changed since the last call.
    pub fn changed(&mut self) -> Option<u32> {
        let places: Vec<(u32, u32)> = self.watched.keys().copied().collect();
        let mut first = None;
        for place in places {
            let now = self.bytes(place);
            if self.watched.insert(place, now.clone()) != Some(now) {
                first.get_or_insert(place.0);
            }
        }
        first
    }

    /// Returns the bytes of a range, up to the end of mapped memory.
    fn bytes(&mut self, (address, length): (u32, u32)) -> Vec<u8> {
        self.piece(address).map_or_else(Vec::new, |piece| piece[..piece.len().min(length as usize)].to_vec())
    }

    fn resident(&mut self, tid: Tid) -> TargetResult<&mut Resident, Card> {
        let context = context(tid);
        self.residents.iter_mut().find(|resident| resident.context == context).ok_or(TargetError::NonFatal)
    }

    /// Returns the memory from `address` to the end of its piece.
    fn piece(&mut self, address: u32) -> Option<&mut [u8]> {
        let (start, bytes) = self.memory.range_mut(..=address).next_back()?;
        bytes.get_mut((address - start) as usize..).filter(|rest| !rest.is_empty())
    }
}

/// Returns the thread number of a context; gdb reserves thread 0.
pub fn tid(context: u32) -> Tid {
    Tid::new(context as usize + 1).unwrap_or(Tid::MIN)
}

/// Returns the context of a thread; a number beyond all contexts for an unknown thread.
fn context(tid: Tid) -> u32 {
    u32::try_from(tid.get() - 1).unwrap_or(u32::MAX)
}

impl Target for Card {
    type Arch = Hpu;
    type Error = Infallible;

    fn base_ops(&mut self) -> BaseOps<'_, Hpu, Infallible> {
        BaseOps::MultiThread(self)
    }

    fn support_target_description_xml_override(&mut self) -> Option<TargetDescriptionXmlOverrideOps<'_, Card>> {
        Some(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Card>> {
        Some(self)
    }
}

impl TargetDescriptionXmlOverride for Card {
    fn target_description_xml(
        &self,
        annex: &[u8],
        offset: u64,
        length: usize,
        out: &mut [u8],
    ) -> TargetResult<usize, Card> {
        if annex != b"target.xml" {
            return Err(TargetError::NonFatal);
        }
        let text = registers::description(self.layout);
        let rest = usize::try_from(offset).ok().and_then(|offset| text.as_bytes().get(offset..)).unwrap_or_default();
        let length = rest.len().min(length).min(out.len());
        out[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

impl MultiThreadBase for Card {
    fn read_registers(&mut self, registers: &mut HpuRegisters, tid: Tid) -> TargetResult<(), Card> {
        registers.layout = self.layout;
        registers.all = self.resident(tid)?.registers.clone();
        Ok(())
    }

    fn write_registers(&mut self, registers: &HpuRegisters, tid: Tid) -> TargetResult<(), Card> {
        let resident = self.resident(tid)?;
        resident.registers = registers.all.clone();
        let context = resident.context;
        self.changed.insert(context);
        Ok(())
    }

    fn read_addrs(&mut self, start: u32, out: &mut [u8], _: Tid) -> TargetResult<usize, Card> {
        let piece = self.piece(start).ok_or(TargetError::NonFatal)?;
        let length = piece.len().min(out.len());
        out[..length].copy_from_slice(&piece[..length]);
        Ok(length)
    }

    fn write_addrs(&mut self, start: u32, bytes: &[u8], _: Tid) -> TargetResult<(), Card> {
        let piece = self.piece(start).and_then(|piece| piece.get_mut(..bytes.len())).ok_or(TargetError::NonFatal)?;
        piece.copy_from_slice(bytes);
        self.written.push((start, bytes.to_vec()));
        Ok(())
    }

    fn list_active_threads(&mut self, is_active: &mut dyn FnMut(Tid)) -> Result<(), Infallible> {
        self.residents.iter().for_each(|resident| is_active(tid(resident.context)));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Card>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Card>> {
        Some(self)
    }
}

impl ThreadExtraInfo for Card {
    fn thread_extra_info(&self, tid: Tid, out: &mut [u8]) -> Result<usize, Infallible> {
        let resident = self.residents.iter().find(|resident| resident.context == context(tid));
        let text = resident.map_or_else(String::new, |resident| format!("HPU {} {}", resident.hpu, resident.handler));
        let length = text.len().min(out.len());
        out[..length].copy_from_slice(&text.as_bytes()[..length]);
        Ok(length)
    }
}

impl MultiThreadResume for Card {
    fn resume(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), Infallible> {
        self.steps.clear();
        Ok(())
    }

    fn set_resume_action_continue(&mut self, _: Tid, _: Option<Signal>) -> Result<(), Infallible> {
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Card>> {
        Some(self)
    }

    fn support_range_step(&mut self) -> Option<MultiThreadRangeSteppingOps<'_, Card>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Card>> {
        Some(self)
    }
}

/// gdb requests this when it steps the only known thread. Other handlers continue regardless: they share the simulated
/// time.
impl MultiThreadSchedulerLocking for Card {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl MultiThreadSingleStep for Card {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Infallible> {
        self.steps.insert(context(tid), Step::One);
        Ok(())
    }
}

impl MultiThreadRangeStepping for Card {
    fn set_resume_action_range_step(&mut self, tid: Tid, start: u32, end: u32) -> Result<(), Infallible> {
        self.steps.insert(context(tid), Step::Out(start, end));
        Ok(())
    }
}

impl Breakpoints for Card {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Card>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Card>> {
        Some(self)
    }
}

impl HwWatchpoint for Card {
    fn add_hw_watchpoint(&mut self, address: u32, length: u32, kind: WatchKind) -> TargetResult<bool, Card> {
        if kind != WatchKind::Write {
            return Ok(false); // only writes are observable
        }
        let bytes = self.bytes((address, length));
        let is_there = bytes.len() == length as usize;
        if is_there {
            self.watched.insert((address, length), bytes);
        }
        Ok(is_there)
    }

    fn remove_hw_watchpoint(&mut self, address: u32, length: u32, _: WatchKind) -> TargetResult<bool, Card> {
        Ok(self.watched.remove(&(address, length)).is_some())
    }
}

impl SwBreakpoint for Card {
    fn add_sw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Card> {
        self.breakpoints.insert(address);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Card> {
        Ok(self.breakpoints.remove(&address))
    }
}
