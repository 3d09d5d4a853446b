//! The engines that read the data of commands through the NIC–host interconnect (§III-C): the outbound engine of the NIC and
//! the off-cluster DMA engine share its read channel, a beat each in turn.

use std::collections::VecDeque;

use machine::Pspin;
use sim::Clock;

use super::kinds::{Command, Issued, Through};
use crate::pspin::arbiter::RoundRobin;
use crate::pspin::cycle::Cycle;
use crate::pspin::her::Range;
use crate::pspin::memory::{Arena, Place};
use crate::pspin::rate::Rate;

/// A command whose data the engine has, or whose data passes through it from now on.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The command.
    pub issued: Issued,
    /// When it leaves the engine.
    pub at: Cycle,
}

/// One engine: it reads the data of its commands one after the other.
struct Engine {
    commands: VecDeque<(Cycle, Issued)>,
    /// The next beat of the first command, and how many are left; 0 when it has not begun.
    next: u32,
    left: u32,
    /// The next command does not begin before this cycle.
    from: Cycle,
}

impl Engine {
    fn new() -> Engine {
        Engine { commands: VecDeque::new(), next: 0, left: 0, from: Cycle::ZERO }
    }

    /// The cycle in which it wants its next beat.
    fn wake(&self) -> Cycle {
        self.commands.front().map_or(Cycle::NEVER, |(at, _)| if self.left > 0 { *at } else { self.from.max(*at) })
    }
}

/// The two engines and the channel.
pub struct Engines {
    engines: [Engine; 2],
    arbiter: RoundRobin,
    /// The channel takes the next beat not before this cycle.
    free: Cycle,
    beat: u32,
    read_cycles: u64,
    /// Cycles between two packets that the outbound engine reads from L1, and from L2.
    gaps: [u64; 2],
    rate: Rate,
}

/// The outbound engine; the other one is the off-cluster DMA engine.
pub const OUTBOUND: usize = 0;

impl Engines {
    /// Engines without commands.
    pub fn new(unit: &Pspin, clock: Clock) -> Engines {
        Engines {
            engines: [Engine::new(), Engine::new()],
            arbiter: RoundRobin::default(),
            free: Cycle::ZERO,
            beat: unit.nhi.width_bits / 8,
            read_cycles: u64::from(unit.commands.read_cycles),
            gaps: [u64::from(unit.outbound.l1_gap_cycles), u64::from(unit.outbound.l2_gap_cycles)],
            rate: Rate::new(unit.outbound.gap_per_byte, clock),
        }
    }

    /// The next cycle in which a beat could be read.
    #[inline]
    pub fn wake(&self) -> Cycle {
        self.engines[0].wake().min(self.engines[1].wake()).max(self.free)
    }

    /// A command comes to an engine, which reads the first beat in the next cycle at the earliest.
    pub fn push(&mut self, engine: usize, now: Cycle, issued: Issued) {
        self.engines[engine].commands.push_back((now + 1_u64, issued));
    }

    /// Reads a beat in cycle `now`. `port` takes the word in the memory, unless another port has it. Returns the command that
    /// the engine has then.
    pub fn step(&mut self, now: Cycle, mut port: impl FnMut(u32) -> bool) -> Option<Sent> {
        let wants = |index: usize| u64::from(self.engines[index].wake() <= now) << index;
        let choice = self.arbiter.choice(wants(0) | wants(1))? as usize;
        let engine = &mut self.engines[choice];
        let issued = engine.commands.front()?.1;
        let data = issued.command.local().unwrap_or_default();
        if engine.left == 0 {
            (engine.next, engine.left) = (data.address - data.address % self.beat, beats(data, self.beat));
            if choice == OUTBOUND {
                self.rate.take(now, data.size);
            }
        }
        self.free = now + 1_u64;
        self.arbiter.grant(choice as u32);
        if !port(engine.next) {
            return None;
        }
        let is_first = engine.left == beats(data, self.beat);
        engine.next = engine.next.wrapping_add(self.beat);
        engine.left -= 1;
        let is_last = engine.left == 0;
        if is_last {
            engine.commands.pop_front();
            engine.from = now + 1_u64;
            if choice == OUTBOUND {
                let is_l2 = data.address >= Arena::start(Place::Handler);
                engine.from = (engine.from + self.gaps[usize::from(is_l2)]).max(self.rate.free());
            }
        }
        // What the card writes to the host passes through; a packet leaves when all of it has been read.
        let passes = matches!(issued.command, Command::Card { through: Through::OffCluster, .. });
        let is_sent = if passes { is_first } else { is_last };
        is_sent.then_some(Sent { issued, at: now + self.read_cycles })
    }
}

/// The number of beats of a range: the words of `width` bytes that it touches, at least one.
pub fn beats(range: Range, width: u32) -> u32 {
    let last = range.address.wrapping_add(range.size.max(1) - 1) / width;
    last.wrapping_sub(range.address / width) + 1
}
