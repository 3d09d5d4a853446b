use machine::{Host, Machine};
use nic::Completion;
use sim::Time;

/// A piece of CPU work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Its name in the timeline.
    pub name: &'static str,
    /// Its duration.
    pub span: Time,
}

impl Work {
    /// The program's own computation.
    pub fn compute(span: Time) -> Work {
        Work { name: "compute", span }
    }
}

/// Bytes of memory that the program of a host says that its CPU has moved (`spin_host_memory`,
/// `spin_host_copy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTraffic {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl HostTraffic {
    pub(crate) fn add(&mut self, more: HostTraffic) {
        self.read = self.read.saturating_add(more.read);
        self.written = self.written.saturating_add(more.written);
    }
}

/// The costs that a CPU pays to use its card. Only this type knows the host's cost model.
///
/// Passing an operation to the card costs LogGP's o (a *post*), and reading a completion or a status register costs a
/// *poll*. On rdma cards, list entries and triggered operations are in the library: describing one costs nothing, and
/// the CPU pays later, when it completes the message: it polls, matches, and posts what the message triggers (sPIN
/// §4.4.1).
#[derive(Clone, Debug)]
pub struct HostCosts {
    post: Work,
    poll: Work,
    matching: Work,
    host: Host,
    completes: bool,
}

impl HostCosts {
    /// The costs on `machine`.
    pub fn new(machine: &Machine) -> HostCosts {
        let host = machine.host.clone();
        HostCosts {
            post: Work { name: "post", span: host.overhead },
            poll: Work { name: "poll", span: host.poll },
            matching: Work { name: "match", span: host.matching },
            host,
            completes: !machine.nic.matches_on_card(),
        }
    }

    /// Whether the CPU completes messages (rdma cards); other cards do that themselves.
    pub fn cpu_completes(&self) -> bool {
        self.completes
    }

    /// The cost of passing an operation to the card.
    pub fn post(&self) -> Work {
        self.post
    }

    /// The cost of describing something to the card that rdma cards leave to the library.
    pub fn describe(&self) -> Option<Work> {
        (!self.completes).then_some(self.post)
    }

    /// The cost of reading a completion or a register once.
    pub fn poll(&self) -> Work {
        self.poll
    }

    /// The cost of noticing that an awaited completion has appeared. On rdma cards the CPU notices it by completing it.
    pub fn notice(&self) -> Option<Work> {
        (!self.completes).then_some(self.poll)
    }

    /// The cost of work that an rdma card leaves to the CPU.
    pub fn complete(&self, completion: &Completion) -> impl Iterator<Item = Work> + Clone + use<> {
        let (first, second) = match completion {
            Completion::Arrived(_) => (self.poll, Some(self.matching)),
            Completion::Operation(..) => (self.poll, None),
            Completion::Triggered(..) => (self.post, None),
        };
        std::iter::once(first).chain(second)
    }

    /// The cost of reading and writing this many bytes of DRAM.
    pub fn memory(&self, read: u64, written: u64) -> Work {
        Work { name: "memory", span: self.host.memory_time(read, written) }
    }

    /// The part of the cost of reading or writing memory in which no data flows yet.
    pub fn memory_latency(&self) -> Time {
        self.host.dram_latency
    }

    /// The cost of copying a contiguous block in DRAM.
    pub fn copy(&self, bytes: u64) -> Work {
        Work { name: "copy", span: self.host.copy_time(bytes) }
    }
}
