// SPDX-License-Identifier: Apache-2.0
//! Task dispatcher (§III-B1), which chooses the cluster of a task.

use machine::pspin::{Dispatch as Config, DispatchPolicy};

use crate::cycle::Cycle;
use crate::her::Her;
use crate::hpu_cluster::HpuCluster;
use accel::shares::Shares;

/// Task dispatcher. It holds a task until a cluster has room.
pub struct Dispatcher {
    policy: DispatchPolicy,
    /// Latency of a task through the dispatcher in cycles.
    pub cycles: u64,
    /// Set when no permitted cluster has room; cleared when a task leaves a cluster.
    pub is_blocked: bool,
}

impl Dispatcher {
    /// Creates a dispatcher without a task.
    pub fn new(config: &Config) -> Dispatcher {
        Dispatcher { policy: config.policy, cycles: u64::from(config.cycles), is_blocked: false }
    }

    /// Returns the cluster for the task of a request, if one has room.
    #[inline]
    pub fn choose(&self, her: &Her, clusters: &[HpuCluster]) -> Option<usize> {
        let home = (her.message % clusters.len() as u32) as usize;
        let only = |cluster: usize| clusters[cluster].has_room(her.transfer).then_some(cluster);
        match self.policy {
            DispatchPolicy::Pinned => only(her.context.pin.map_or(home, |pin| usize::from(pin) % clusters.len())),
            DispatchPolicy::Home => only(home).or_else(|| least_loaded(clusters, her.transfer)),
            DispatchPolicy::LeastLoaded => least_loaded(clusters, her.transfer),
        }
    }
}

/// Returns the cluster for the task of a request if tenants are separated: the home cluster while the tenant has fewer
/// tasks there than its part of the HPUs, else the cluster with the fewest of its tasks. A tenant occupies at most its part
/// of a packet buffer, but may have one packet there.
pub fn choose_apart(
    dispatcher: &Dispatcher,
    now: Cycle,
    her: &Her,
    clusters: &[HpuCluster],
    shares: &Shares,
) -> Option<usize> {
    let tenant = her.context.tenant;
    let has_room = |cluster: &HpuCluster| {
        let bytes = cluster.used_by(tenant).bytes;
        let part = shares.part(now.0, tenant, cluster.packet_buffer_bytes());
        cluster.has_room(her.transfer) && (bytes == 0 || bytes + her.transfer <= part)
    };
    let home = (her.message % clusters.len() as u32) as usize;
    let only = |cluster: usize| has_room(&clusters[cluster]).then_some(cluster);
    let least = || {
        let with_room = clusters.iter().enumerate().filter(|(_, cluster)| has_room(cluster));
        with_room.min_by_key(|(_, cluster)| (cluster.used_by(tenant).tasks, cluster.tasks())).map(|(index, _)| index)
    };
    let is_open = |cluster: &HpuCluster| cluster.used_by(tenant).tasks < shares.part(now.0, tenant, cluster.hpus());
    match dispatcher.policy {
        DispatchPolicy::Pinned => only(her.context.pin.map_or(home, |pin| usize::from(pin) % clusters.len())),
        DispatchPolicy::Home if is_open(&clusters[home]) => only(home).or_else(least),
        DispatchPolicy::Home | DispatchPolicy::LeastLoaded => least(),
    }
}

fn least_loaded(clusters: &[HpuCluster], transfer: u32) -> Option<usize> {
    let with_room = clusters.iter().enumerate().filter(|(_, cluster)| cluster.has_room(transfer));
    with_room.min_by_key(|(_, cluster)| cluster.tasks()).map(|(index, _)| index)
}
