// SPDX-License-Identifier: Apache-2.0
//! Shares of tenants (`accelerator.sharing`): the use of HPUs by each tenant, and the order and limits that follow.
//!
//! OSMOSIS (ATC'24) keeps for each message queue its average number of busy HPUs while it has work, divided by its
//! weight: the queue with the lowest quotient goes first, and a queue beyond its part of the HPUs waits. Here the unit
//! of account is the tenant, so a tenant with many messages gets no more than one with few. Times are cycles.

use machine::{Scheduler, Sharing};

/// Entitlement of a tenant (`accelerator.sharing`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Weight among tenants with work.
    pub weight: u32,
    /// Priority of a strict scheduler; higher first.
    pub priority: u8,
}

impl Default for Share {
    fn default() -> Share {
        Share { weight: 1, priority: 0 }
    }
}

/// Account of one tenant.
#[derive(Clone, Copy, Debug)]
struct Account {
    weight: u32,
    priority: u8,
    /// Requests accepted and not fed back.
    inside: u32,
    /// Requests that wait in message queues.
    waiting: u32,
    /// Tasks in clusters, waiting or on an HPU.
    sent: u32,
    /// Tasks on HPUs.
    running: u32,
    /// Sum of `running` over all cycles up to `updated`.
    occupied: u64,
    /// Cycles with work up to `updated`.
    active: u64,
    updated: u64,
    /// Cycle until which the tenant counts as active although it has no work.
    held: u64,
}

impl Account {
    const NEW: Account = Account {
        weight: 1,
        priority: 0,
        inside: 0,
        waiting: 0,
        sent: 0,
        running: 0,
        occupied: 0,
        active: 0,
        updated: 0,
        held: 0,
    };

    fn settle(&mut self, now: u64) {
        let cycles = now.saturating_sub(self.updated);
        self.occupied += cycles * u64::from(self.running);
        self.active += if self.inside > 0 { cycles } else { 0 };
        self.updated = self.updated.max(now);
    }

    /// Returns numerator and denominator of the weighted use: busy HPUs in an active cycle, over the weight.
    fn used(&self, now: u64) -> (u128, u128) {
        let mut settled = *self;
        settled.settle(now);
        (settled.occupied.into(), u128::from(settled.active.max(1)) * u128::from(self.weight))
    }
}

/// Resources that tenants share.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// HPUs, or handler contexts of HPUs with several.
    pub hpus: u32,
    /// Places for tasks near the HPUs, waiting or running.
    pub places: u32,
    /// Places for waiting requests.
    pub cells: u32,
}

/// Accounts of all tenants, and the rule that compares them.
pub struct Shares {
    scheduler: Scheduler,
    hold_cycles: u64,
    hpus: u32,
    /// Places for tasks in all clusters.
    places: u32,
    /// Cells for waiting requests that all queues share.
    cells: u32,
    accounts: Vec<Account>,
}

impl Shares {
    /// Creates accounts, if the scheduler separates tenants.
    pub fn new(sharing: &Sharing, Shared { hpus, places, cells }: Shared) -> Option<Shares> {
        let (scheduler, hold_cycles) = (sharing.separated()?, sharing.hold_cycles());
        Some(Shares { scheduler, hold_cycles, hpus, places, cells, accounts: Vec::new() })
    }

    fn account(&mut self, tenant: u32) -> &mut Account {
        let index = tenant as usize;
        if self.accounts.len() <= index {
            self.accounts.resize(index + 1, Account::NEW);
        }
        &mut self.accounts[index]
    }

    fn known(&self, tenant: u32) -> Account {
        self.accounts.get(tenant as usize).copied().unwrap_or(Account::NEW)
    }

    /// Records an accepted request of a tenant, whose message queue has this priority.
    pub fn accept(&mut self, now: u64, tenant: u32, share: Share, priority: u8) {
        let hold = self.hold_cycles;
        let account = self.account(tenant);
        account.settle(now);
        // OSMOSIS divides by the priority of the message queue; its default 0 counts as 1 here.
        account.weight = share.weight.max(1) * u32::from(priority.max(1));
        account.priority = share.priority.max(priority);
        account.inside += 1;
        account.waiting += 1;
        account.held = now + hold;
    }

    /// Records that a waiting request leaves its queue.
    pub fn pop(&mut self, tenant: u32) {
        self.account(tenant).waiting -= 1;
    }

    /// Records a task that goes to a cluster.
    pub fn send(&mut self, tenant: u32) {
        self.account(tenant).sent += 1;
    }

    /// Records a task that gets an HPU.
    pub fn start(&mut self, now: u64, tenant: u32) {
        let account = self.account(tenant);
        account.settle(now);
        account.running += 1;
    }

    /// Records a task that leaves its HPU.
    pub fn stop(&mut self, now: u64, tenant: u32) {
        let account = self.account(tenant);
        account.settle(now);
        account.running -= 1;
    }

    /// Records the end of a task; `is_sent` if it was in a cluster, `feeds_back` if its packet is done.
    pub fn end(&mut self, now: u64, tenant: u32, is_sent: bool, feeds_back: bool) {
        let hold = self.hold_cycles;
        let account = self.account(tenant);
        account.settle(now);
        account.sent -= u32::from(is_sent);
        account.inside -= u32::from(feeds_back);
        account.held = now + hold;
    }

    fn is_active(&self, now: u64, account: &Account) -> bool {
        account.inside > 0 || account.held > now
    }

    /// Returns the part of `all` to which a tenant is entitled beside the active ones, rounded up; all of it if no other
    /// tenant is active.
    pub fn part(&self, now: u64, tenant: u32, all: u32) -> u32 {
        let own = u64::from(self.known(tenant).weight);
        let others = self.accounts.iter().enumerate().filter(|(index, _)| *index != tenant as usize);
        let others = others.filter(|(_, account)| self.is_active(now, account));
        let sum = own + others.map(|(_, account)| u64::from(account.weight)).sum::<u64>();
        (u64::from(all) * own).div_ceil(sum) as u32
    }

    /// Returns true if another request of the tenant may wait.
    pub fn may_wait(&self, now: u64, tenant: u32) -> bool {
        self.known(tenant).waiting < self.part(now, tenant, self.cells).max(1)
    }

    /// Returns true if another task of the tenant may go to a cluster.
    pub fn may_send(&self, now: u64, tenant: u32) -> bool {
        self.known(tenant).sent < self.part(now, tenant, self.places).max(1)
    }

    /// Returns true if another task of the tenant may get one of the `hpus` HPUs of a cluster, where `running` of its
    /// tasks run. The limit in each cluster leaves HPUs for other tenants everywhere.
    pub fn may_start(&self, now: u64, tenant: u32, running: u32, hpus: u32) -> bool {
        match self.scheduler {
            Scheduler::Weighted => {
                let fits = |running, hpus| running < self.part(now, tenant, hpus);
                fits(self.known(tenant).running, self.hpus) && fits(running, hpus)
            }
            _ => true,
        }
    }

    /// Returns true if tenant `a` goes before tenant `b`.
    pub fn precedes(&self, now: u64, a: u32, b: u32) -> bool {
        let (a, b) = (self.known(a), self.known(b));
        if self.scheduler == Scheduler::Strict {
            return a.priority > b.priority;
        }
        let ((used_a, per_a), (used_b, per_b)) = (a.used(now), b.used(now));
        used_a.saturating_mul(per_b) < used_b.saturating_mul(per_a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(scheduler: Scheduler) -> Shares {
        let sharing = Sharing { scheduler: Some(scheduler), ..Sharing::default() };
        Shares::new(&sharing, Shared { hpus: 32, places: 80, cells: 128 }).unwrap()
    }

    fn weight(weight: u32) -> Share {
        Share { weight, priority: 0 }
    }

    #[test]
    fn other_schedulers_keep_no_accounts() {
        let shared = Shared { hpus: 32, places: 80, cells: 128 };
        assert!(Shares::new(&Sharing::default(), shared).is_none());
        let fifo = Sharing { scheduler: Some(Scheduler::Fifo), ..Sharing::default() };
        assert!(Shares::new(&fifo, shared).is_none());
    }

    /// Weights 3 and 1 get 24 and 8 of 32 HPUs, and a tenant alone gets all. A tenant without work keeps its part for
    /// 10,000 cycles.
    #[test]
    fn parts_follow_the_weights_of_active_tenants() {
        let mut shares = shares(Scheduler::Weighted);
        shares.accept(0, 0, weight(3), 0);
        assert_eq!(shares.part(0, 0, 32), 32);
        shares.accept(0, 1, weight(1), 0);
        assert_eq!((shares.part(5, 0, 32), shares.part(5, 1, 32)), (24, 8));
        shares.pop(1);
        shares.end(100, 1, false, true);
        assert_eq!((shares.part(10_099, 0, 32), shares.part(10_100, 0, 32)), (24, 32));
        // A message queue's priority is its weight (OSMOSIS).
        shares.accept(20_000, 1, weight(1), 3);
        assert_eq!(shares.part(20_000, 0, 32), 16);
    }

    /// Two HPUs for 100 cycles at weight 2 equal one HPU at weight 1; a third HPU tips the balance.
    #[test]
    fn the_lower_weighted_use_goes_first() {
        let mut shares = shares(Scheduler::Weighted);
        shares.accept(0, 0, weight(2), 0);
        shares.accept(0, 1, weight(1), 0);
        [0, 0, 1].into_iter().for_each(|tenant| shares.start(0, tenant));
        assert!(!shares.precedes(100, 0, 1) && !shares.precedes(100, 1, 0));
        shares.start(100, 0);
        assert!(shares.precedes(101, 1, 0) && !shares.precedes(101, 0, 1));
        let before = (0..32).take_while(|_| {
            let may = shares.may_start(101, 1, 0, 8);
            shares.start(101, 1);
            may
        });
        assert_eq!(before.count(), 11 - 1);
    }

    #[test]
    fn strict_priorities_ignore_the_use() {
        let mut shares = shares(Scheduler::Strict);
        shares.accept(0, 0, weight(1), 2);
        shares.accept(0, 1, weight(1), 7);
        (0..40).for_each(|_| shares.start(0, 1));
        assert!(shares.precedes(100, 1, 0) && shares.may_start(100, 1, 8, 8));
    }
}
