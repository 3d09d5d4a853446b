// SPDX-License-Identifier: Apache-2.0
//! Debugger access to a stopped handler, and reports of the sanitizer.

use std::collections::BTreeMap;

use super::context::{OwnMemory, span};
use super::paper_unit::Unit;
use super::space::Space;
use super::told::{Place, Told};
use crate::accelerator::Env;
use crate::convention::HandlerMemory;
use crate::debug::{Halt, Halted, Registers, Resident};
use crate::fault::{self, Span};
use crate::sanitize::Finding;

impl Unit {
    /// Gives control to the attached debugger, if any, at a stopped handler.
    pub(super) fn halt(&mut self, context: u16, halt: Halt) {
        if let Some(mut debugger) = self.debugger.take() {
            debugger.stopped(u32::from(context), halt, self);
            self.debugger = Some(debugger);
        }
    }
}

impl Unit {
    /// Returns true if no finding about the same source lines was reported before. Several accesses of one line count
    /// as one mistake.
    fn is_new(&mut self, space: usize, finding: &Finding) -> bool {
        let space = &mut self.spaces[space];
        let Some(loaded) = &space.program else { return false };
        let program = &loaded.program.device().program;
        let place = |pc| Place {
            pc,
            function: program.function(pc).map(str::to_owned),
            line: program.line(pc).map(|line| (line.file.to_owned(), line.line)),
        };
        let told = match *finding {
            Finding::Race { pc, earlier_pc, .. } => Told { is_race: true, places: [place(pc), place(earlier_pc)] },
            Finding::Unwritten { pc, .. } => Told { is_race: false, places: [place(pc), place(pc)] },
        };
        let is_new = !space.told.iter().any(|before| before.is_like(&told));
        space.told.extend(is_new.then_some(told));
        is_new
    }

    /// Reports the sanitizer's findings about a process to the user.
    pub(super) fn tell_findings(&mut self, space: usize, env: &mut dyn Env) {
        let found = self.spaces[space].sanitizer.as_mut().map(|sanitizer| sanitizer.take()).unwrap_or_default();
        for (context, finding) in found {
            if !self.is_new(space, &finding) {
                continue;
            }
            let resident = self.contexts.get(context as usize).and_then(Option::as_deref);
            let Space { program, memories, .. } = &mut self.spaces[space];
            let (Some(resident), Some(loaded)) = (resident, program) else { continue };
            let mut memory = OwnMemory { memories, windows: &resident.windows };
            let program = &loaded.program.device().program;
            let mut place = |pc| fault::place(program, &resident.thread, pc, |address| memory.word(address));
            let task = &resident.task;
            let spans: Vec<Span> = resident.windows.iter().map(span).collect();
            let what = |address| fault::within(address, &spans, program);
            let access = |write| if write { "write" } else { "read" };
            let (role, name) = (task.role().name(), &task.handler.name);
            let mistake = match finding {
                Finding::Race { address, bytes, write, pc, earlier_writes, earlier_pc, earlier_role } => format!(
                    "data race on {bytes} B at {address:#010x}{}: {} by {role} handler '{name}'{}; {} by a {} handler{}; nothing \
                     orders them (PtlHandlerFAdd, PtlHandlerCAS and atomic operations do)",
                    what(address),
                    access(write),
                    place(pc),
                    access(earlier_writes),
                    earlier_role.name(),
                    loaded.program.suffix(earlier_pc),
                ),
                Finding::Unwritten { address, bytes, pc } => format!(
                    "{role} handler '{name}' reads {bytes} B at {address:#010x}{} that was never written{}; they are 0 here, and \
                     sPIN does not guarantee this (App. B.2)",
                    what(address),
                    place(pc),
                ),
            };
            env.found(space as u32, mistake);
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
            registers: Registers {
                integer: std::array::from_fn(|register| resident.thread.register(register as u8)),
                float: std::array::from_fn(|register| resident.thread.float_register(register as u8)),
                pc: resident.thread.pc(),
            },
        });
        resident.collect()
    }

    fn memory(&mut self) -> BTreeMap<u32, Vec<u8>> {
        let windows = self.contexts.iter().flatten().flat_map(|resident| &resident.windows);
        let ranges: BTreeMap<u32, u32> = windows.map(|window| (window.base, window.len)).collect();
        let bytes = ranges
            .into_iter()
            .filter_map(|(base, len)| Some((base, self.space_mut().memories.slice(base, len).ok()?.to_vec())));
        bytes.collect()
    }

    fn write(&mut self, address: u32, bytes: &[u8]) {
        if let Ok(memory) = self.space_mut().memories.slice(address, bytes.len() as u32) {
            memory.copy_from_slice(bytes);
        }
    }

    fn set_registers(&mut self, context: u32, registers: &Registers) {
        let Some(resident) = self.contexts.get_mut(context as usize).and_then(Option::as_deref_mut) else { return };
        for (register, value) in (1..32_u8).zip(&registers.integer[1..]) {
            resident.thread.set_register(register, *value);
        }
        for (register, bits) in (0..32_u8).zip(&registers.float) {
            resident.thread.set_float_register(register, *bits);
        }
        if resident.thread.pc() != registers.pc {
            resident.thread.set_pc(registers.pc);
        }
    }
}
