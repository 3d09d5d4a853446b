// SPDX-License-Identifier: Apache-2.0
//! Task dispatcher (§III-B1), which chooses the cluster of a task.

use machine::pspin::{Dispatch as Config, DispatchPolicy};

use crate::her::Her;
use crate::hpu_cluster::HpuCluster;

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

fn least_loaded(clusters: &[HpuCluster], transfer: u32) -> Option<usize> {
    let with_room = clusters.iter().enumerate().filter(|(_, cluster)| cluster.has_room(transfer));
    with_room.min_by_key(|(_, cluster)| cluster.tasks()).map(|(index, _)| index)
}
