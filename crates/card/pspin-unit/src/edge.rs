// SPDX-License-Identifier: Apache-2.0
//! Interface of a unit to its NIC, for both the model and the hardware.

use std::rc::Rc;

use crate::core::{CoreCounters, Hpus};
use crate::cores::Cores;
use crate::counters::Counters;
use crate::cycle::Cycle;
use crate::her::{Busy, ExecutionContext, Her, HpuId};
use crate::observe::Observer;
use crate::pspin::{Outside, Pspin};

/// A PsPIN unit with HPUs that execute the published runtime.
pub trait Unit {
    /// Observer of the unit.
    type Observer: Observer;

    /// Returns the next cycle to simulate.
    fn now(&self) -> Cycle;

    /// Returns the next active cycle; [`Cycle::NEVER`] if the unit is idle.
    fn next(&self) -> Cycle;

    /// Simulates the cycles before `until`, but stops after the first with an output to the surroundings. Returns the
    /// next cycle to simulate.
    fn advance(&mut self, until: Cycle, out: &mut impl Outside) -> Cycle;

    /// Writes bytes into a memory of the unit in zero time. Returns false if they do not all lie inside one memory.
    fn load(&mut self, address: u32, bytes: &[u8]) -> bool;

    /// Reads the bytes at an address in zero time; `None` if they do not all lie in one memory of the unit.
    fn read(&mut self, address: u32, size: u32) -> Option<Vec<u8>>;

    /// Registers a context before its first packet.
    fn prepare(&mut self, context: &Rc<ExecutionContext>);

    /// Writes a packet of the NIC into L2 from cycle `at` on. Returns the first cycle in which its request can be
    /// submitted if no beat stalls behind other writes; `None` if the bytes are not inside the packet buffer.
    fn write_packet(&mut self, at: Cycle, address: u32, bytes: &[u8]) -> Option<Cycle>;

    /// Submits a request in the next cycle to simulate.
    ///
    /// # Errors
    /// If the request has to wait.
    fn submit(&mut self, her: Her) -> Result<(), (Busy, Her)>;

    /// Lets a message queue issue `priority` additional tasks per turn. Returns false if the queue does not exist or
    /// the unit has no priorities, as in the hardware.
    fn set_priority(&mut self, _queue: u32, _priority: u8) -> bool {
        false
    }

    /// Returns the counters.
    fn counters(&self) -> &Counters;

    /// Returns the sum of the counters of all HPUs.
    fn core_counters(&self) -> CoreCounters;

    /// Returns the number of instructions executed by all HPUs so far.
    fn instructions(&self) -> u64;

    /// Returns the observer.
    fn observer(&mut self) -> &mut Self::Observer;

    /// Takes the lines printed by HPUs since the previous call, without line ends.
    fn take_output(&mut self) -> Vec<(HpuId, Vec<u8>)>;

    /// Returns the instruction of the handler that the watchdog last killed on `_hpu`; `None` if unknown.
    fn killed_at(&self, _hpu: HpuId) -> Option<u32> {
        None
    }

    /// Returns the error that stopped the simulation of the unit itself, if any.
    fn failure(&self) -> Option<&str> {
        None
    }
}

impl<O: Observer> Unit for Pspin<Hpus, O> {
    type Observer = O;

    fn now(&self) -> Cycle {
        self.now()
    }

    fn next(&self) -> Cycle {
        self.next()
    }

    fn advance(&mut self, until: Cycle, out: &mut impl Outside) -> Cycle {
        self.advance(until, out)
    }

    fn load(&mut self, address: u32, bytes: &[u8]) -> bool {
        let target = self.memory().write(address, bytes.len() as u32);
        target.map(|target| target.copy_from_slice(bytes)).is_some()
    }

    fn read(&mut self, address: u32, size: u32) -> Option<Vec<u8>> {
        self.memory().read(address, size).map(<[u8]>::to_vec)
    }

    fn prepare(&mut self, _context: &Rc<ExecutionContext>) {}

    fn write_packet(&mut self, at: Cycle, address: u32, bytes: &[u8]) -> Option<Cycle> {
        self.write_packet(at, address, bytes)
    }

    fn submit(&mut self, her: Her) -> Result<(), (Busy, Her)> {
        self.submit(her)
    }

    fn set_priority(&mut self, queue: u32, priority: u8) -> bool {
        self.set_priority(queue, priority)
    }

    fn counters(&self) -> &Counters {
        self.counters()
    }

    fn core_counters(&self) -> CoreCounters {
        self.cores().total()
    }

    fn instructions(&self) -> u64 {
        self.cores().instructions()
    }

    fn observer(&mut self) -> &mut O {
        self.observer()
    }

    fn take_output(&mut self) -> Vec<(HpuId, Vec<u8>)> {
        self.cores_mut().take_output()
    }

    fn killed_at(&self, hpu: HpuId) -> Option<u32> {
        self.cores().killed_at(hpu)
    }
}
