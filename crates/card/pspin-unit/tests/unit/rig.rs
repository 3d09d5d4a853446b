// SPDX-License-Identifier: Apache-2.0
//! A unit with its NIC: tests submit packets in given cycles, and the rig records all outputs.

use std::path::Path;
use std::rc::Rc;

use machine::{Accelerator, Machine};
use pspin_unit::command::Send;
use pspin_unit::cores::Cores;
use pspin_unit::her::{
    Busy, Convention, DriverEvent, ExecutionContext, Feedback, Her, HostRange, HpuId, Range, Role, Task, TaskOutcome,
};
use pspin_unit::memory::{Arena, Place, Ring};
use pspin_unit::observe::{Noted, Observer};
use pspin_unit::{By, Cycle, HostFault, Outside, Pspin};
use sim::Clock;

use crate::fixed::{Act, Fixed};

/// Returns the unit of a machine file.
pub fn machine(name: &str, set: &[&str]) -> Rc<machine::Pspin> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
    match Machine::load(name, &[folder], &set).unwrap().accelerator {
        Accelerator::Pspin(unit) => Rc::from(unit),
        other => panic!("{}", other.kind()),
    }
}

/// Returns a context with handlers for the given roles, each at a different address.
pub fn context(roles: &[Role]) -> ExecutionContext {
    let mut handlers = [Range::default(); 3];
    for role in roles {
        handlers[*role as usize] = Range { address: 0x1d00_0100 + 0x100 * *role as u32, size: 0x100 };
    }
    ExecutionContext {
        handler_memory: Range { address: 0x1c00_0000, size: 4096 },
        host: HostRange { address: 0x10_0000, size: 4096 },
        handlers,
        scratchpads: Vec::new(),
        code: vec![Range { address: 0x1d00_0000, size: 0x1000 }],
        watchdog_cycles: 1_000_000,
        idle_cycles: u64::MAX,
        descriptor: 0,
        tenant: 0,
        share: pspin_unit::her::Share::default(),
        convention: Convention::Pspin,
        pin: None,
    }
}

/// Observed events, in order, with the numbers that the tests compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Accepted(u64),
    Sent { user: u64, role: Role, cluster: u16 },
    DmaDone,
    Assigned { cluster: u16, hpu: u16 },
    Start { user: u64, role: Role },
    End { user: u64, role: Role, outcome: TaskOutcome },
    Feedback { user: u64, outcome: TaskOutcome },
}

#[derive(Default)]
pub struct Log(pub Vec<(u64, Seen)>);

impl Observer for Log {
    fn note(&mut self, at: Cycle, what: Noted<'_>) {
        let seen = match what {
            Noted::HerAccepted(her) => Seen::Accepted(her.user),
            Noted::TaskSent { cluster, task, .. } => Seen::Sent { user: task.her.user, role: task.role, cluster },
            Noted::DmaDone { .. } => Seen::DmaDone,
            Noted::Assigned { hpu, .. } => Seen::Assigned { cluster: hpu.cluster, hpu: hpu.hpu },
            Noted::Start { task, .. } => Seen::Start { user: task.her.user, role: task.role },
            Noted::End { task, outcome, .. } => Seen::End { user: task.her.user, role: task.role, outcome },
            Noted::Feedback(feedback) => Seen::Feedback { user: feedback.user, outcome: feedback.outcome },
            _ => return,
        };
        self.0.push((at.0, seen));
    }
}

/// NIC and driver.
#[derive(Default)]
pub struct Nic {
    pub feedback: Vec<(u64, Feedback)>,
    pub events: Vec<(u64, DriverEvent)>,
    /// Packets sent, host writes, and host reads, in order.
    pub sent: Vec<(u64, Send, Vec<u8>)>,
    pub written: Vec<(u64, u64, Vec<u8>)>,
    pub reads: Vec<(u64, u64)>,
    /// Returns true for cycles in which the NIC refuses feedback.
    pub refuses: Option<fn(u64) -> bool>,
}

impl Outside for Nic {
    fn feedback(&mut self, at: Cycle, feedback: &Feedback) -> bool {
        if self.refuses.is_some_and(|refuses| refuses(at.0)) {
            return false;
        }
        self.feedback.push((at.0, *feedback));
        true
    }

    fn raise(&mut self, at: Cycle, event: DriverEvent) {
        self.events.push((at.0, event));
    }

    fn send(&mut self, at: Cycle, _hpu: HpuId, send: Send, packet: &[u8]) {
        self.sent.push((at.0, send, packet.to_vec()));
    }

    fn host_write(&mut self, at: Cycle, _by: By<'_>, address: u64, data: &[u8]) -> Result<(), HostFault> {
        registered(address, data.len())?;
        self.written.push((at.0, address, data.to_vec()));
        Ok(())
    }

    /// Each byte of the host equals the low byte of its address.
    fn host_read(&mut self, at: Cycle, _by: By<'_>, address: u64, data: &mut [u8]) -> Result<(), HostFault> {
        registered(address, data.len())?;
        self.reads.push((at.0, address));
        (address..).zip(data).for_each(|(address, byte)| *byte = address as u8);
        Ok(())
    }
}

/// Memory registered by the host.
pub const HOST: std::ops::Range<u64> = 0x10_0000..0x20_0000;

fn registered(address: u64, size: usize) -> Result<(), HostFault> {
    if HOST.contains(&address) && address + size as u64 <= HOST.end { Ok(()) } else { Err(HostFault) }
}

/// A packet for the unit.
#[derive(Clone)]
pub struct Packet {
    pub message: u32,
    pub size: u32,
    pub eom: bool,
    pub context: Rc<ExecutionContext>,
}

/// A unit of a machine with its NIC. The NIC has a ring in L2, which feedback frees. It submits at most one request per
/// cycle, in order, as soon as the unit accepts it.
pub struct Rig<C: Cores, O: Observer = Log> {
    pub unit: Pspin<C, O>,
    pub nic: Nic,
    ring: Ring,
    pieces: Vec<Option<pspin_unit::memory::Allocation>>,
    /// Number of refusals of requests, by reason.
    pub refused: [u64; 3],
    /// Number of packets dropped because L2 was full.
    pub no_room: u64,
    /// True if packets have contents, see [`byte`].
    pub fills: bool,
}

/// Returns the byte of a packet at an offset.
pub fn byte(user: u64, at: u32) -> u8 {
    (user as u32).wrapping_mul(31).wrapping_add(at * 7 + at / 256) as u8
}

impl<F: Fn(Role, u32) -> u64> Rig<Fixed<F>> {
    /// Creates a unit whose handlers execute this number of instructions each, and which records all events.
    pub fn fixed(name: &str, set: &[&str], instructions: F) -> Rig<Fixed<F>> {
        Rig::new(machine(name, set), Log::default(), instructions)
    }
}

impl<F: Fn(Role, u32) -> u64, O: Observer> Rig<Fixed<F>, O> {
    pub fn new(config: Rc<machine::Pspin>, observer: O, instructions: F) -> Rig<Fixed<F>, O> {
        let (clusters, hpus) = (config.units.clusters, config.units.hpus);
        Rig::with_cores(config.clone(), observer, Fixed::new(clusters, hpus, instructions))
    }

    /// Creates a unit whose handlers perform actions at their end.
    pub fn acting(
        config: Rc<machine::Pspin>,
        observer: O,
        instructions: F,
        acts: fn(&Task, Range) -> Vec<Act>,
    ) -> Rig<Fixed<F>, O> {
        let mut cores = Fixed::new(config.units.clusters, config.units.hpus, instructions);
        cores.acts = acts;
        Rig::with_cores(config, observer, cores)
    }

    fn with_cores(config: Rc<machine::Pspin>, observer: O, mut cores: Fixed<F>) -> Rig<Fixed<F>, O> {
        cores.trap = u64::from(config.cluster.trap_cycles);
        let ring = Ring::new(config.l2_packet.bytes, 64);
        let mut unit = Pspin::new(config, Clock::from_khz(1_000_000), cores, observer);
        unit.boot();
        Rig { unit, nic: Nic::default(), ring, pieces: Vec::new(), refused: [0; 3], no_room: 0, fills: false }
    }
}

impl<C: Cores, O: Observer> Rig<C, O> {
    /// Writes a packet into L2. The packet's number is the NIC's tag.
    fn place(&mut self, packet: &Packet) -> Her {
        let user = self.pieces.len() as u64;
        let piece = self.ring.allocate(packet.size).expect("room in L2");
        let address = Arena::start(Place::Packet) + piece.start;
        if self.fills {
            let bytes: Vec<u8> = (0..packet.size).map(|at| byte(user, at)).collect();
            self.unit.memory().write(address, packet.size).expect("L2").copy_from_slice(&bytes);
        }
        self.pieces.push(Some(piece));
        Her {
            message: packet.message,
            flow: packet.message,
            eom: packet.eom,
            packet: Range { address, size: packet.size },
            transfer: packet.size,
            context: packet.context.clone(),
            user,
        }
    }

    /// Submits a packet; a refused one is removed from L2.
    pub fn submit(&mut self, packet: &Packet) -> Result<(), Busy> {
        let her = self.place(packet);
        self.unit.submit(her).map_err(|(busy, _)| {
            if let Some(Some(piece)) = self.pieces.pop() {
                self.ring.free(piece);
            }
            self.refused[busy as usize] += 1;
            busy
        })
    }

    /// Writes a packet into L2 from this cycle on, and submits its request as soon as that is done.
    pub fn arrive(&mut self, packet: &Packet) {
        let address = Arena::start(Place::Packet) + self.ring.used();
        let at = self.unit.write_packet(self.unit.now(), address, &vec![0; packet.size as usize]).expect("L2");
        self.run_until(at);
        self.submit(packet).unwrap();
    }

    /// Submits a packet, or drops it. Returns true if it was accepted.
    pub fn offer(&mut self, packet: &Packet) -> bool {
        let has_room = self.ring.has_room(packet.size);
        self.no_room += u64::from(!has_room);
        has_room && self.submit(packet).is_ok()
    }

    /// Runs until a cycle, and frees packets as they are fed back.
    pub fn run_until(&mut self, until: Cycle) {
        loop {
            let seen = self.nic.feedback.len();
            let reached = self.unit.advance(until, &mut self.nic);
            for (_, feedback) in &self.nic.feedback[seen..] {
                let piece = self.pieces[feedback.user as usize].take().expect("each packet is fed back once");
                self.ring.free(piece);
            }
            if reached >= until {
                return;
            }
        }
    }

    /// Advances to the next active cycle.
    fn wait(&mut self) {
        let next = self.unit.next();
        self.run_until(next + 1_u64);
    }

    /// Runs until the unit is idle.
    pub fn finish(&mut self) {
        while self.unit.next() != Cycle::NEVER {
            let next = self.unit.next();
            self.run_until(next + 1_u64);
        }
    }

    /// Submits packets as fast as the unit accepts them, and runs to the end. Returns the cycles of the first request
    /// and of the last feedback.
    pub fn flood(&mut self, packets: impl IntoIterator<Item = Packet>) -> (u64, u64) {
        let start = self.unit.now().0;
        for packet in packets {
            while !self.ring.has_room(packet.size) {
                self.wait();
            }
            let mut her = self.place(&packet);
            while let Err((busy, back)) = self.unit.submit(her) {
                self.refused[busy as usize] += 1;
                her = back;
                self.wait();
            }
            let next = self.unit.now() + 1_u64;
            self.run_until(next);
        }
        self.finish();
        (start, self.nic.feedback.last().map_or(start, |(at, _)| *at))
    }

    /// Checks that every packet was fed back, and that the unit is empty.
    pub fn check_accounts(&self) {
        let counters = self.unit.counters();
        assert_eq!(counters.accepted, self.pieces.len() as u64);
        assert_eq!((self.unit.inside(), self.ring.used()), (0, 0));
        assert_eq!(counters.fed_back(), counters.accepted);
        assert!(self.pieces.iter().all(Option::is_none));
    }
}
