// SPDX-License-Identifier: Apache-2.0
//! `spinrun --gdb RANK[:HANDLER]`: a gdb remote stub for the handlers of a rank's card.
//!
//! Handlers resident on the card are gdb's threads. While one is stopped, the whole simulation waits, so a run with gdb
//! takes the same simulated time as one without.

#![deny(clippy::cast_possible_truncation)] // values come from input

mod door;
mod registers;
mod target;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use abi::device::image::{Image, SECTION};
use gdbstub::common::Signal;
use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::stub::{DisconnectReason, GdbStub, MultiThreadStopReason};
use gdbstub::target::ext::breakpoints::WatchKind;
use nic::{Debugger, Halt, Halted};
use object::{Object, ObjectSection};

use self::door::{Door, Line, Program};
use self::target::{Card, Step, tid};
use command::progress;

/// Handlers at which a debugger first stops: `RANK` or `RANK:HANDLER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Rank number.
    pub rank: usize,
    /// Handler name; `None` for any.
    pub handler: Option<String>,
}

impl Place {
    /// Parses the option's value.
    ///
    /// # Errors
    /// When it is malformed; the text describes the format.
    pub fn parse(text: &str) -> Result<Place, String> {
        let (rank, handler) = match text.split_once(':') {
            Some((rank, handler)) if !handler.is_empty() => (rank, Some(handler.to_owned())),
            Some((rank, _)) => (rank, None),
            None => (text, None),
        };
        let rank = rank.parse().map_err(|_| "is RANK or RANK:HANDLER, such as 1:payload".to_owned())?;
        Ok(Place { rank, handler })
    }
}

/// Number of instructions between checks for the user's interrupt in gdb.
const PATIENCE: u32 = 4096;

/// Message when a signal ends the run while gdb has stopped it, or before gdb connects.
const ENDS: &str = "a signal ends the run";

type Machine = GdbStubStateMachine<'static, Card, Line>;

/// Debugger of one card.
pub struct Gdb {
    place: Place,
    door: Door,
    /// Device program, for gdb.
    program: Option<Program>,
    card: Card,
    /// Protocol state with gdb, from its first stop on.
    machine: Option<Machine>,
    /// Set after gdb disconnects: nothing stops any longer.
    has_left: bool,
    /// Set until the first stop.
    awaits_first: bool,
    /// Context whose handler stops at its next instruction, because it is the first or is interrupted.
    pending: Option<u32>,
    /// Addresses at which handlers resume after a stop, by context.
    leaving: BTreeMap<u32, u32>,
    instructions: u32,
}

impl Gdb {
    /// Opens a socket for gdb, or a port of this computer. `program` is the host program that contains the device
    /// program.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn new(place: Place, program: &Path, kind: &str, port: Option<u16>) -> io::Result<Gdb> {
        Ok(Gdb {
            place,
            door: port.map_or_else(Door::socket, Door::port)?,
            program: device_program(program, kind)?,
            card: Card::new(registers::Layout::of(kind)),
            machine: None,
            has_left: false,
            awaits_first: true,
            pending: None,
            leaving: BTreeMap::new(),
            instructions: 0,
        })
    }

    /// Waits for gdb at the first stop of a handler.
    fn connect(&mut self, handler: &str) -> io::Result<Line> {
        let address = self.door.address()?;
        let file = self.program.as_ref().map_or_else(String::new, |program| format!(" {}", program.path().display()));
        progress::say(&format!(
            "spinrun: handler '{handler}' of rank {} waits for a debugger:\n    gdb-multiarch -ex 'target remote {address}'{file}",
            self.place.rank
        ));
        self.door.accept()
    }

    /// Serves gdb until it resumes the handlers.
    fn talk(&mut self, reason: MultiThreadStopReason<u32>) {
        let mut next = match self.machine.take() {
            Some(GdbStubStateMachine::Running(running)) => running.report_stop(&mut self.card, reason),
            Some(other) => Ok(other),
            None => return,
        };
        loop {
            next = match next {
                Ok(GdbStubStateMachine::Idle(mut idle)) => match idle.borrow_conn().read() {
                    Ok(Some(byte)) => idle.incoming_data(&mut self.card, byte),
                    Err(error) if error.kind() == ErrorKind::Interrupted => return self.leave(ENDS),
                    Ok(None) | Err(_) => return self.leave("gdb has closed the connection; handlers run on"),
                },
                Ok(GdbStubStateMachine::CtrlCInterrupt(interrupt)) => {
                    interrupt.interrupt_handled(&mut self.card, Some(MultiThreadStopReason::Signal(Signal::SIGINT)))
                }
                Ok(GdbStubStateMachine::Disconnected(gone)) => {
                    if gone.get_reason() == DisconnectReason::Kill {
                        progress::say("spinrun: gdb has ended the run");
                        // SAFETY: raise has no preconditions; SIGINT ends the run as Ctrl-C does.
                        unsafe { libc::raise(libc::SIGINT) };
                    }
                    return self.leave("gdb has detached; handlers run on");
                }
                Ok(running @ GdbStubStateMachine::Running(_)) => {
                    self.machine = Some(running);
                    return;
                }
                Err(error) => return self.leave(&format!("gdb cannot be understood: {error}; handlers run on")),
            }
        }
    }

    fn leave(&mut self, message: &str) {
        progress::say(&format!("spinrun: {message}"));
        self.has_left = true;
        self.card.steps.clear();
        self.card.breakpoints.clear();
        self.card.watched.clear();
    }

    /// Returns true if the handler in a context must stop before its instruction at `pc`.
    fn wants(&self, context: u32, pc: u32) -> bool {
        let steps = match self.card.steps.get(&context) {
            Some(Step::One) => true,
            Some(Step::Out(start, end)) => !(*start..*end).contains(&pc),
            None => false,
        };
        self.pending == Some(context) || steps || self.card.breakpoints.contains(&pc)
    }

    /// Returns true if the user interrupts the handlers (Ctrl-C in gdb).
    fn is_interrupted(&mut self) -> bool {
        let Some(GdbStubStateMachine::Running(running)) = &mut self.machine else { return false };
        running.borrow_conn().take().is_ok_and(|byte| byte.is_some())
    }
}

impl Debugger for Gdb {
    fn starts(&mut self, context: u32, handler: &str) {
        let is_wanted = self.place.handler.as_deref().is_none_or(|wanted| wanted == handler);
        if is_wanted && self.awaits_first {
            self.awaits_first = false;
            self.pending = Some(context);
        }
    }

    fn stops(&mut self, context: u32, pc: u32) -> bool {
        if self.has_left || self.leaving.remove(&context) == Some(pc) {
            return false;
        }
        self.instructions += 1;
        if self.instructions.is_multiple_of(PATIENCE) && self.is_interrupted() {
            self.pending = Some(context);
        }
        // A watched write is reported before the next instruction.
        !self.card.watched.is_empty() || self.wants(context, pc)
    }

    fn stopped(&mut self, context: u32, halt: Halt, card: &mut dyn Halted) {
        if self.has_left || (halt == Halt::Fault && self.machine.is_none()) {
            return;
        }
        self.card.look(card);
        let Some(resident) = self.card.residents.iter().find(|resident| resident.context == context) else { return };
        let (handler, pc) = (resident.handler.clone(), resident.registers.pc);
        self.leaving.insert(context, pc);
        let changed = self.card.changed();
        if halt == Halt::Asked && changed.is_none() && self.machine.is_some() && !self.wants(context, pc) {
            return;
        }
        self.pending = None;
        if self.machine.is_none() {
            let line = match self.connect(&handler) {
                Ok(line) => line,
                Err(error) if error.kind() == ErrorKind::Interrupted => return self.leave(ENDS),
                Err(error) => return self.leave(&format!("no debugger: {error}")),
            };
            match GdbStub::new(line).run_state_machine(&mut self.card) {
                Ok(machine) => self.machine = Some(machine),
                Err(error) => return self.leave(&format!("no debugger: {error}")),
            }
        }
        let signal = |signal| MultiThreadStopReason::SignalWithThread { tid: tid(context), signal };
        self.talk(match halt {
            Halt::Fault => signal(Signal::SIGSEGV),
            Halt::Asked if let Some(addr) = changed => {
                MultiThreadStopReason::Watch { tid: tid(context), kind: WatchKind::Write, addr }
            }
            Halt::Asked if self.card.breakpoints.contains(&pc) => MultiThreadStopReason::SwBreak(tid(context)),
            Halt::Asked => signal(Signal::SIGTRAP),
        });
        self.card.apply(card);
        let pc =
            self.card.residents.iter().find(|resident| resident.context == context).map_or(pc, |now| now.registers.pc);
        self.leaving.insert(context, pc);
    }

    fn ended(&mut self, context: u32) {
        self.card.steps.remove(&context);
        self.leaving.remove(&context);
        self.pending.take_if(|pending| *pending == context);
    }
}

/// The end of the run ends gdb's program.
impl Drop for Gdb {
    fn drop(&mut self) {
        match self.machine.take() {
            Some(GdbStubStateMachine::Running(running)) => {
                _ = running.report_stop(&mut self.card, MultiThreadStopReason::Exited(0));
            }
            None if !self.has_left => progress::say(&format!(
                "spinrun: note: --gdb has stopped at no handler: none{} ran on the card of rank {}",
                self.place.handler.as_ref().map_or_else(String::new, |handler| format!(" called '{handler}'")),
                self.place.rank
            )),
            _ => {}
        }
    }
}

/// Returns the device program in a host program; `None` when it has none, like an interpreter.
fn device_program(host: &Path, kind: &str) -> io::Result<Option<Program>> {
    let bytes = fs::read(host).unwrap_or_default();
    let file = object::File::parse(&*bytes).ok();
    let image = file.as_ref().and_then(|file| file.section_by_name(SECTION)?.data().ok());
    let image = image.and_then(|image| Image::parse(image).ok());
    let found = image.as_ref().and_then(|image| image.devices.iter().find(|(found, _)| *found == kind));
    found.map(|(_, elf)| Program::new(&format!("{kind}.elf"), elf)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_ranks_and_handlers() {
        assert_eq!(Place::parse("3"), Ok(Place { rank: 3, handler: None }));
        assert_eq!(Place::parse("0:pay"), Ok(Place { rank: 0, handler: Some("pay".into()) }));
        assert_eq!(Place::parse("pay").unwrap_err(), "is RANK or RANK:HANDLER, such as 1:payload");
    }
}
