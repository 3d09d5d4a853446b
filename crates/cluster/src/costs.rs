use machine::{Host, Machine};
use nic::Completion;
use sim::Time;

/// A piece of CPU work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Its name in the timeline.
    pub name: &'static str,
    /// How long it takes.
    pub span: Time,
}

impl Work {
    /// The program's own computation.
    pub fn compute(span: Time) -> Work {
        Work { name: "compute", span }
    }
}

/// What a CPU pays to use its card. This is the one place where the host's cost model is written down.
///
/// To hand an operation to the card costs LogGP's o (a *post*), and to look at a completion or a status register costs a
/// *poll*. On rdma cards, list entries and triggered operations live in the library: to describe one costs nothing, and
/// the CPU pays later, when it completes the message: it polls, matches, and posts what the message triggers (sPIN §4.4.1).
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

    /// The cost to hand an operation to the card.
    pub fn post(&self) -> Work {
        self.post
    }

    /// The cost to hand the card something that rdma cards leave to the library.
    pub fn describe(&self) -> Option<Work> {
        (!self.completes).then_some(self.post)
    }

    /// The cost of one look at a completion or a register.
    pub fn poll(&self) -> Work {
        self.poll
    }

    /// The cost to notice that an awaited completion has appeared. On rdma cards the CPU has noticed it by completing it.
    pub fn notice(&self) -> Option<Work> {
        (!self.completes).then_some(self.poll)
    }

    /// The cost of the work that an rdma card has left to the CPU.
    pub fn complete(&self, completion: &Completion) -> impl Iterator<Item = Work> + Clone + use<> {
        let (first, second) = match completion {
            Completion::Arrived(_) => (self.poll, Some(self.matching)),
            Completion::Operation(..) => (self.poll, None),
            Completion::Triggered(..) => (self.post, None),
        };
        std::iter::once(first).chain(second)
    }

    /// The cost for one core to read and write this many bytes of DRAM.
    pub fn memory(&self, name: &'static str, read: u64, written: u64) -> Work {
        Work { name, span: self.host.memory_time(read, written) }
    }
}
