//! The edge of a unit: what the NIC around it does with it, whether it is the model or the hardware.

use std::rc::Rc;

use crate::core::{CoreCounters, Hpus};
use crate::cores::Cores;
use crate::counters::Counters;
use crate::cycle::Cycle;
use crate::her::{Busy, ExecutionContext, Her, HpuId};
use crate::observe::Observer;
use crate::unit::{Outside, Pspin};

/// A PsPIN unit with HPUs that execute the published runtime.
pub trait Unit {
    /// What watches it.
    type Observer: Observer;

    /// The next cycle that has not been simulated.
    fn now(&self) -> Cycle;

    /// The next cycle in which something happens inside; [`Cycle::NEVER`] when the unit is idle.
    fn next(&self) -> Cycle;

    /// Simulates the cycles before `until`, but no further than the end of the first in which something goes out. Returns the
    /// next cycle that has not been simulated.
    fn advance(&mut self, until: Cycle, out: &mut impl Outside) -> Cycle;

    /// Writes bytes into a memory of the unit, without time. Returns whether all of them lie inside.
    fn load(&mut self, address: u32, bytes: &[u8]) -> bool;

    /// The bytes at an address, which are read without time; `None` when not all of them lie in one memory of the unit.
    fn read(&mut self, address: u32, size: u32) -> Option<Vec<u8>>;

    /// Tells the unit about a context before the first packet that it is for.
    fn prepare(&mut self, context: &Rc<ExecutionContext>);

    /// The NIC writes a packet into L2 from cycle `at` on. Returns the first cycle in which its request can be submitted, if its beats
    /// do not wait for other writes; `None` when the bytes are not inside the packet buffer.
    fn write_packet(&mut self, at: Cycle, address: u32, bytes: &[u8]) -> Option<Cycle>;

    /// The NIC submits a request in the next cycle that has not been simulated.
    ///
    /// # Errors
    /// When the request has to wait.
    fn submit(&mut self, her: Her) -> Result<(), (Busy, Her)>;

    /// Lets a message queue give `priority` tasks more in each of its turns. Returns whether the unit has such a queue, and
    /// priorities: the hardware has none.
    fn set_priority(&mut self, _queue: u32, _priority: u8) -> bool {
        false
    }

    /// What has been counted so far.
    fn counters(&self) -> &Counters;

    /// What the HPUs of all clusters have done so far.
    fn core_counters(&self) -> CoreCounters;

    /// The instructions that all HPUs have executed so far.
    fn instructions(&self) -> u64;

    /// The observer.
    fn observer(&mut self) -> &mut Self::Observer;

    /// Takes the lines that HPUs have printed since the last time, without their ends.
    fn take_output(&mut self) -> Vec<(HpuId, Vec<u8>)>;

    /// The instruction at which the watchdog has found the handler that it has killed last on an HPU; `None` when the unit does
    /// not know.
    fn killed_at(&self, _hpu: HpuId) -> Option<u32> {
        None
    }

    /// Why the simulation of the unit itself has failed, if it has: nothing more happens then.
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
