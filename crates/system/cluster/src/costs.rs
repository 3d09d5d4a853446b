// SPDX-License-Identifier: Apache-2.0
//! CPU costs of using a card and of moving memory.

use machine::{Host, Machine};
use nic::Completion;
use sim::Time;

/// A piece of CPU work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Name in the timeline.
    pub name: &'static str,
    /// Duration.
    pub span: Time,
}

impl Work {
    /// Returns the program's own computation.
    pub fn compute(span: Time) -> Work {
        Work { name: "compute", span }
    }
}

/// Memory traffic of a host's CPU in bytes, as reported by the program (`spin_host_memory`, `spin_host_copy`).
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

/// CPU costs of using a card. Only this type implements the host's cost model.
///
/// Passing an operation to the card costs LogGP's o (a *post*), and reading a completion or a status register costs a
/// *poll*. On rdma cards, list entries and triggered operations are in the library: describing one costs nothing, and
/// the CPU pays later, when it completes the message: it polls, matches, and posts the operations that the message
/// triggers (sPIN §4.4.1).
#[derive(Clone, Debug)]
pub struct HostCosts {
    post: Work,
    poll: Work,
    matching: Work,
    host: Host,
    completes: bool,
}

impl HostCosts {
    /// Returns the costs on `machine`.
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

    /// Returns true if the CPU completes messages (rdma cards); other cards complete them themselves.
    pub fn cpu_completes(&self) -> bool {
        self.completes
    }

    /// Returns the cost of passing an operation to the card.
    pub fn post(&self) -> Work {
        self.post
    }

    /// Returns the cost of describing an entry or a triggered operation to the card; rdma cards leave these to the
    /// library.
    pub fn describe(&self) -> Option<Work> {
        (!self.completes).then_some(self.post)
    }

    /// Returns the cost of reading a completion or a register once.
    pub fn poll(&self) -> Work {
        self.poll
    }

    /// Returns the cost of noticing an awaited completion. On rdma cards the CPU notices a message by completing it.
    pub fn notice(&self) -> Option<Work> {
        (!self.completes).then_some(self.poll)
    }

    /// Returns the cost of work that an rdma card leaves to the CPU.
    pub fn complete(&self, completion: &Completion) -> impl Iterator<Item = Work> + Clone + use<> {
        let (first, second) = match completion {
            Completion::Arrived(_) => (self.poll, Some(self.matching)),
            Completion::Operation(..) => (self.poll, None),
            Completion::Triggered(..) => (self.post, None),
        };
        std::iter::once(first).chain(second)
    }

    /// Returns the cost of reading and writing DRAM; `read` and `written` are in bytes.
    pub fn memory(&self, read: u64, written: u64) -> Work {
        Work { name: "memory", span: self.host.memory_time(read, written) }
    }

    /// Returns the initial part of a memory access, before data flows.
    pub fn memory_latency(&self) -> Time {
        self.host.dram_latency
    }

    /// Returns the cost of copying a contiguous block in DRAM.
    pub fn copy(&self, bytes: u64) -> Work {
        Work { name: "copy", span: self.host.copy_time(bytes) }
    }
}
