//! What a debugger sees and changes while a handler is stopped.

use std::collections::BTreeMap;

use super::unit::Unit;
use crate::debug::{Halt, Halted, Resident};

impl Unit {
    /// Lets the debugger, if there is one, look at a handler that has stopped.
    pub(super) fn halt(&mut self, context: u16, halt: Halt) {
        if let Some(mut debugger) = self.debugger.take() {
            debugger.stopped(u32::from(context), halt, self);
            self.debugger = Some(debugger);
        }
    }
}

impl Halted for Unit {
    fn residents(&self) -> Vec<Resident> {
        let contexts =
            (0..).zip(&self.contexts).filter_map(|(context, resident)| Some((context, resident.as_deref()?)));
        let resident = contexts.map(|(context, resident)| Resident {
            context: u32::from(context),
            hpu: self.hpus.of(context),
            handler: resident.task.handler.name.clone(),
            registers: std::array::from_fn(|register| resident.thread.register(register as u8)),
            pc: resident.thread.pc(),
        });
        resident.collect()
    }

    fn memory(&mut self) -> BTreeMap<u32, Vec<u8>> {
        let windows = self.contexts.iter().flatten().flat_map(|resident| &resident.windows);
        let ranges: BTreeMap<u32, u32> = windows.map(|window| (window.base, window.len)).collect();
        let bytes =
            ranges.into_iter().filter_map(|(base, len)| Some((base, self.memories.slice(base, len).ok()?.to_vec())));
        bytes.collect()
    }

    fn write(&mut self, address: u32, bytes: &[u8]) {
        if let Ok(memory) = self.memories.slice(address, bytes.len() as u32) {
            memory.copy_from_slice(bytes);
        }
    }

    fn set_registers(&mut self, context: u32, registers: &[u32; 32], pc: u32) {
        let Some(resident) = self.contexts.get_mut(context as usize).and_then(Option::as_deref_mut) else { return };
        for (register, value) in (1..32_u8).zip(&registers[1..]) {
            resident.thread.set_register(register, *value);
        }
        if resident.thread.pc() != pc {
            resident.thread.set_pc(pc);
        }
    }
}
