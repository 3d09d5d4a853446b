//! The interconnect by which HPUs reach what is not in their own L1: a word at a time (§III-C).

use std::collections::VecDeque;

use machine::Pspin;

use crate::pspin::cycle::Cycle;
use crate::pspin::memory::Place;

/// When an access by the interconnect happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The cycle in which the memory is read or written.
    pub access: Cycle,
    /// The cycle in which the HPU has the answer.
    pub answer: Cycle,
}

/// The ports of the clusters and of the memories.
pub struct PeInterconnect {
    clusters: Vec<Port>,
    /// When L2 handler memory, L2 packet buffer and program memory, and then the L1 of each cluster, take another access.
    memories: Vec<Cycle>,
    port_bytes: u32,
    remote_l1: u64,
    l2: u64,
    in_flight: usize,
}

#[derive(Default)]
struct Port {
    free: Cycle,
    answers: VecDeque<Cycle>,
}

impl PeInterconnect {
    /// An idle interconnect.
    pub fn new(unit: &Pspin) -> PeInterconnect {
        let clusters = unit.units.clusters as usize;
        PeInterconnect {
            clusters: (0..clusters).map(|_| Port::default()).collect(),
            memories: vec![Cycle::ZERO; 3 + clusters],
            port_bytes: unit.pe.width_bits / 8,
            remote_l1: u64::from(unit.pe.remote_l1_cycles),
            l2: u64::from(unit.pe.l2_cycles),
            in_flight: unit.pe.in_flight as usize,
        }
    }

    /// An HPU of a cluster asks in cycle `now` for `bytes` of a memory.
    pub fn ask(&mut self, cluster: u16, now: Cycle, place: Place, bytes: u32) -> Remote {
        let (memory, latency) = match place {
            Place::Handler => (0, self.l2),
            Place::Packet => (1, self.l2),
            Place::Program => (2, self.l2),
            Place::L1(other) => (3 + usize::from(other), self.remote_l1),
        };
        let port = &mut self.clusters[usize::from(cluster)];
        while port.answers.front().is_some_and(|answer| *answer <= now) {
            port.answers.pop_front();
        }
        let mut start = now.max(port.free);
        // With all transactions in flight the next one begins when the first of them ends.
        if let Some(index) = port.answers.len().checked_sub(self.in_flight) {
            start = start.max(port.answers[index]);
        }
        port.free = start + bytes.div_ceil(self.port_bytes).max(1);
        let access = (start + latency / 2).max(self.memories[memory]);
        self.memories[memory] = access + 1_u64;
        let answer = access + (latency - latency / 2);
        // Answers come in the order of the questions.
        let answer = port.answers.back().map_or(answer, |last| answer.max(*last));
        port.answers.push_back(answer);
        Remote { access, answer }
    }
}

/// The port of the program memory, which refills the instruction caches (§III-C: single port, half duplex).
pub struct ProgramPort {
    free: Cycle,
    port_bytes: u32,
    line: u32,
    miss_cycles: u64,
}

impl ProgramPort {
    /// An idle port.
    pub fn new(unit: &Pspin) -> ProgramPort {
        ProgramPort {
            free: Cycle::ZERO,
            port_bytes: unit.program.port_bits / 8,
            line: unit.icache.line,
            miss_cycles: u64::from(unit.icache.miss_cycles),
        }
    }

    /// A cluster asks for a line in cycle `now`. Returns when it is there.
    pub fn fetch(&mut self, now: Cycle) -> Cycle {
        let start = now.max(self.free);
        self.free = start + self.line.div_ceil(self.port_bytes);
        start + self.miss_cycles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> Pspin {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
        match machine::Machine::load("pspin-400g", &[folder], &[]).unwrap().accelerator {
            machine::Accelerator::Pspin(unit) => *unit,
            other => panic!("{}", other.kind()),
        }
    }

    #[test]
    fn remote_accesses_take_turns() {
        let mut pe = PeInterconnect::new(&unit());
        let at = |remote: Remote| (remote.access.0, remote.answer.0);
        assert_eq!(at(pe.ask(0, Cycle(100), Place::L1(1), 4)), (108, 116));
        // The same port in the same cycle: a word a cycle. The same memory from another cluster: an access a cycle.
        assert_eq!(at(pe.ask(0, Cycle(100), Place::Handler, 4)), (110, 119));
        assert_eq!(at(pe.ask(1, Cycle(101), Place::Handler, 4)), (111, 120));
        assert_eq!(at(pe.ask(2, Cycle(101), Place::Packet, 4)), (110, 119));
    }

    #[test]
    fn a_cluster_has_eight_transactions_in_flight() {
        let mut pe = PeInterconnect::new(&unit());
        let answers: Vec<u64> = (0..10).map(|_| pe.ask(3, Cycle(0), Place::Packet, 4).answer.0).collect();
        assert_eq!(answers, [18, 19, 20, 21, 22, 23, 24, 25, 36, 37]);
    }

    #[test]
    fn lines_come_one_after_the_other() {
        let mut port = ProgramPort::new(&unit());
        // 32 B at 8 B a cycle.
        assert_eq!([5, 5, 30].map(|at| port.fetch(Cycle(at)).0), [17, 21, 42]);
    }
}
