// SPDX-License-Identifier: Apache-2.0
//! Resources of each tenant (sPIN §2: "resources are accounted for on a per-application basis"), and the fairness of
//! their division.

use pspin_unit::Cycle;
use pspin_unit::command::Command;
use pspin_unit::her::ExecutionContext;

use crate::report::{Latencies, Tenant};

/// Account of one tenant during a run.
#[derive(Clone, Debug, Default)]
struct Account {
    resources: Tenant,
    l2_bytes: u64,
    /// Cycles of the handlers of all tenants at its latest feedback.
    shared: Vec<u64>,
}

/// Times of a tenant's packets.
#[derive(Clone, Debug, Default)]
pub struct Times {
    latencies: Latencies,
    first: Option<u64>,
    last: u64,
}

impl Times {
    /// Adds a packet from its first byte, in cycle `arrived`, to its feedback.
    pub fn add(&mut self, arrived: Cycle, at: Cycle) {
        self.latencies.add(at - arrived);
        self.first = Some(self.first.map_or(arrived.0, |first| first.min(arrived.0)));
        self.last = at.0;
    }
}

/// Accounts of all tenants.
#[derive(Clone, Debug, Default)]
pub struct Accounts(Vec<Account>);

impl Accounts {
    fn of(&mut self, tenant: u32) -> &mut Account {
        let index = tenant as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, Account::default);
        }
        &mut self.0[index]
    }

    /// Adds a packet whose request is accepted.
    pub fn accept(&mut self, context: &ExecutionContext, bytes: u32) {
        let account = self.of(context.tenant);
        let resources = &mut account.resources;
        resources.tenant = context.tenant;
        resources.weight = context.share.weight;
        resources.handler_memory_bytes = context.handler_memory.size.into();
        resources.scratchpad_bytes = context.scratchpads.iter().map(|range| u64::from(range.size)).sum();
        account.l2_bytes += u64::from(bytes);
        resources.l2_peak_bytes = resources.l2_peak_bytes.max(account.l2_bytes);
    }

    /// Adds a task that copies `bytes` to L1.
    pub fn copy(&mut self, tenant: u32, bytes: u32) {
        self.of(tenant).resources.l1_copy_bytes += u64::from(bytes);
    }

    /// Adds a command.
    pub fn command(&mut self, tenant: u32, command: &Command) {
        let resources = &mut self.of(tenant).resources;
        match command {
            Command::Send { data, .. } => resources.sent_bytes += u64::from(data.size),
            Command::ToHost { data, .. } | Command::FromHost { data, .. } => {
                resources.host_bytes += u64::from(data.size);
            }
            Command::HostDirect { size, .. } | Command::HostDirectRead { size, .. } => {
                resources.host_bytes += u64::from(*size);
            }
            Command::Card { .. } => (),
        }
    }

    /// Adds the cycles of a handler, and whether it failed.
    pub fn handler(&mut self, tenant: u32, cycles: u64, has_failed: bool) {
        let resources = &mut self.of(tenant).resources;
        resources.hpu_cycles += cycles;
        resources.failed += u64::from(has_failed);
    }

    /// Adds a packet that is fed back; `running` are the tenants of running handlers with their cycles so far.
    pub fn feed_back(&mut self, tenant: u32, bytes: u32, running: impl Iterator<Item = (u32, u64)>) {
        let account = self.of(tenant);
        account.l2_bytes -= u64::from(bytes);
        account.resources.packets += 1;
        account.resources.bytes += u64::from(bytes);
        if self.0.len() < 2 {
            return;
        }
        let mut shared = std::mem::take(&mut self.of(tenant).shared);
        shared.clear();
        shared.extend(self.0.iter().map(|account| account.resources.hpu_cycles));
        running.for_each(|(tenant, cycles)| shared[tenant as usize] += cycles);
        self.of(tenant).shared = shared;
    }

    /// Returns the resources of all tenants with packets, whose times are `times`, with cycles of `ns` nanoseconds; none
    /// if fewer than two had packets.
    pub fn report(&self, ns: f64, times: &[Times]) -> Vec<Tenant> {
        let all: Vec<(usize, &Account, &Times)> =
            (0..).zip(&self.0).zip(times).map(|((index, a), t)| (index, a, t)).collect();
        let all: Vec<_> = all.into_iter().filter(|(_, account, _)| account.resources.packets > 0).collect();
        if all.len() < 2 {
            return Vec::new();
        }
        // The first tenant to finish ends the time in which all have work.
        let end = all.iter().min_by_key(|(_, _, times)| times.last);
        let shared = end.map_or(&[][..], |(_, account, _)| &account.shared);
        let tenant = |(index, account, times): &(usize, &Account, &Times)| Tenant {
            latency_ns: times.latencies.percentiles(ns),
            completion_ns: (times.last - times.first.unwrap_or_default()) as f64 * ns,
            shared_cycles: shared.get(*index).copied().unwrap_or_default(),
            ..account.resources.clone()
        };
        all.iter().map(tenant).collect()
    }
}

/// Returns Jain's index of the tenants' cycles over their weights: 1 if all get the same, 1/n if one of n gets all.
pub fn jain(tenants: &[Tenant]) -> Option<f64> {
    let all: Vec<f64> =
        tenants.iter().map(|tenant| tenant.shared_cycles as f64 / f64::from(tenant.weight.max(1))).collect();
    let (sum, squares) = (all.iter().sum::<f64>(), all.iter().map(|cycles| cycles * cycles).sum::<f64>());
    (all.len() > 1 && squares > 0.0).then(|| sum * sum / (all.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pspin_unit::her::Share;

    fn context(tenant: u32, weight: u32) -> ExecutionContext {
        ExecutionContext { tenant, share: Share { weight, priority: 0 }, ..ExecutionContext::default() }
    }

    fn packet(accounts: &mut Accounts, times: &mut [Times], tenant: u32, cycles: u64, at: u64) {
        accounts.accept(&context(tenant, 1), 64);
        accounts.handler(tenant, cycles, false);
        times[tenant as usize].add(Cycle(0), Cycle(at));
        accounts.feed_back(tenant, 64, std::iter::empty());
    }

    /// Tenant 0 has its last feedback first, in cycle 200: later cycles of tenant 1 do not count for the fairness.
    #[test]
    fn fairness_ends_with_the_first_tenant() {
        let (mut accounts, mut times) = (Accounts::default(), [Times::default(), Times::default()]);
        packet(&mut accounts, &mut times, 0, 100, 100);
        packet(&mut accounts, &mut times, 1, 300, 150);
        packet(&mut accounts, &mut times, 0, 200, 200);
        packet(&mut accounts, &mut times, 1, 5_000, 900);
        let report = accounts.report(1.0, &times);
        assert_eq!(report.iter().map(|tenant| tenant.shared_cycles).collect::<Vec<_>>(), [300, 300]);
        assert_eq!((report[1].hpu_cycles, report[1].packets, report[1].bytes), (5_300, 2, 128));
        assert_eq!(jain(&report), Some(1.0));
        assert_eq!(report[1].latency_ns.unwrap().p50, 150.0);
    }

    #[test]
    fn jains_index_weighs_tenants() {
        let tenant = |weight, shared_cycles| Tenant { weight, shared_cycles, ..Tenant::default() };
        assert_eq!(jain(&[tenant(1, 100), tenant(1, 0)]), Some(0.5));
        assert_eq!(jain(&[tenant(3, 300), tenant(1, 100)]), Some(1.0));
        assert_eq!(jain(&[tenant(1, 100)]), None);
    }

    #[test]
    fn a_single_tenant_has_no_report() {
        let (mut accounts, mut times) = (Accounts::default(), [Times::default(), Times::default()]);
        packet(&mut accounts, &mut times, 0, 100, 100);
        assert_eq!(accounts.report(1.0, &times), []);
    }
}
