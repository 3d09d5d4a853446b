// SPDX-License-Identifier: Apache-2.0
//! `[accelerator.sharing]`: division of a card among tenants. All keys are optional; without them a card behaves as in
//! its paper, which has no tenants.

/// `[accelerator.sharing]`: shares of tenants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// `scheduler`: order in which waiting handlers get HPUs; by default that of the accelerator's paper.
    pub scheduler: Option<Scheduler>,
    /// `fragment_bytes`: size of the parts into which transfers to and from the host and sent packets are divided, so
    /// that tenants take turns between parts; by default transfers stay whole.
    pub fragment: Option<u32>,
    /// `hold_cycles`: cycles for which a tenant without work keeps its share of the HPUs reserved, with
    /// [`Scheduler::Weighted`].
    pub hold_cycles: Option<u64>,
}

/// Order in which waiting handlers get HPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// "fifo": in the order of arrival.
    Fifo,
    /// "round-robin": message queues in turn (PsPIN), or tenants in turn (sc17).
    RoundRobin,
    /// "weighted": the tenant with the lowest weighted use of HPUs first, and no tenant above its share while others
    /// have work (OSMOSIS: weight-limited borrowed virtual time).
    Weighted,
    /// "strict": the tenant with the highest priority first.
    Strict,
}

impl Scheduler {
    /// Returns true if the scheduler separates tenants, which then have separate buffers and queues.
    pub fn separates(self) -> bool {
        matches!(self, Scheduler::Weighted | Scheduler::Strict)
    }
}

impl Sharing {
    /// Cycles for which a tenant keeps its share by default: the time between two requests of a tenant at 100,000
    /// requests per second and 1 GHz.
    pub const HOLD_CYCLES: u64 = 10_000;

    /// Returns the scheduler, if tenants have separate buffers and queues.
    pub fn separated(&self) -> Option<Scheduler> {
        self.scheduler.filter(|scheduler| scheduler.separates())
    }

    /// Returns the cycles for which a tenant without work keeps its share.
    pub fn hold_cycles(&self) -> u64 {
        self.hold_cycles.unwrap_or(Sharing::HOLD_CYCLES)
    }

    /// Returns true if no key changes the card of the paper.
    pub fn is_off(&self) -> bool {
        *self == Sharing::default()
    }
}
