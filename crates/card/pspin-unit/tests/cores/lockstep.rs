// SPDX-License-Identifier: Apache-2.0
//! Lockstep of HPUs that execute short handlers from warm instruction caches, and cores that only count cycles: all
//! events of the unit are equal.

use std::rc::Rc;

use accel::testing::code::*;
use pspin_unit::cores::Cores;
use pspin_unit::her::{ExecutionContext, Her, Range, Role};
use pspin_unit::observe::{Noted, Observer};
use pspin_unit::{Cycle, Pspin};
use sim::Clock;

use crate::fixed::Fixed;
use crate::rig::{Nic, PACKET, Rig, machine};

/// Log of all events except those of instructions.
#[derive(Default)]
struct Log(Vec<(u64, String)>);

impl Observer for Log {
    fn note(&mut self, at: Cycle, what: Noted<'_>) {
        if !matches!(what, Noted::Miss { .. }) {
            self.0.push((at.0, format!("{what:?}")));
        }
    }
}

/// A booted unit, and the number of packets submitted to it.
struct Unit<C: Cores> {
    unit: Pspin<C, Log>,
    nic: Nic,
    context: Rc<ExecutionContext>,
    packets: u32,
}

impl<C: Cores> Unit<C> {
    fn new(mut unit: Pspin<C, Log>, context: ExecutionContext) -> Unit<C> {
        let mut nic = Nic::default();
        while unit.advance(Cycle(10_000), &mut nic) < Cycle(10_000) {}
        Unit { unit, nic, context: Rc::new(context), packets: 0 }
    }

    /// Submits a packet as a complete message once the unit accepts it, and then waits `pause` cycles.
    fn submit(&mut self, size: u32, pause: u64) {
        let packet = Range { address: PACKET + self.packets % 1024 * 2048, size };
        self.packets += 1;
        let (message, context) = (self.packets, self.context.clone());
        let mut her = Her { message, flow: 0, eom: true, packet, transfer: size, context, user: 0 };
        while let Err((_, refused)) = self.unit.submit(her) {
            her = refused;
            self.wait(1);
        }
        self.wait(pause);
    }

    fn wait(&mut self, cycles: u64) {
        let until = self.unit.now() + cycles;
        while self.unit.advance(until, &mut self.nic) < until {}
    }

    /// Submits single packets to fill the instruction caches, and then many with varying pauses. Returns the events
    /// since the caches are full.
    fn run(mut self) -> Vec<(u64, String)> {
        (0..8).for_each(|_| self.submit(64, 1_000));
        self.unit.observer().0.clear();
        let mut random = 1_u32;
        for _ in 0..2_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let size = [64, 64, 64, 200, 1024, 0][(random >> 8) as usize % 6];
            let pause = [0, 0, 0, 1, 2, 7, 60][(random >> 16) as usize % 7];
            self.submit(size, pause);
        }
        self.wait(10_000);
        let mut events = std::mem::take(&mut self.unit.observer().0);
        // The order of HPUs within a cycle is arbitrary.
        events.sort();
        events
    }
}

#[test]
fn what_hpus_know_by_heart_is_what_happens() {
    for count in [0, 1, 6, 50] {
        let rig = Rig::watched(machine("pspin-400g", &[]), &[vec![NOP; count], vec![RET]].concat(), Log::default());
        let context = rig.context.clone();
        let executed = Unit::new(rig.unit, context.clone()).run();

        let config = Rc::new(machine("pspin-400g", &[]));
        // The runtime's loop and the return take as long as with one instruction.
        let instructions = move |_: Role, _: u32| count as u64 + 1;
        let cores = Fixed::new(config.units.clusters, config.units.hpus, instructions);
        let mut unit = Pspin::new(config, Clock::from_khz(1_000_000), cores, Log::default());
        unit.boot();
        let counted = Unit::new(unit, context).run();

        assert_eq!(executed.len(), counted.len());
        for (executed, counted) in executed.iter().zip(&counted) {
            assert_eq!(executed, counted, "{count} instructions");
        }
        assert!(executed.len() > 2_000 * 7);
    }
}
