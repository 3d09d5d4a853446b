//! The task dispatcher (§III-B1), which chooses the cluster of a task.

use machine::pspin::{Dispatch as Config, DispatchPolicy};

use crate::cluster::Cluster;
use crate::her::Her;

/// The dispatcher. It holds the task until a cluster has room for it.
pub struct Dispatcher {
    policy: DispatchPolicy,
    /// Cycles that a task takes through it.
    pub cycles: u64,
    /// No cluster that may have the task has room; the dispatcher waits until one is done with a task.
    pub is_blocked: bool,
}

impl Dispatcher {
    /// A dispatcher without a task.
    pub fn new(config: &Config) -> Dispatcher {
        Dispatcher { policy: config.policy, cycles: u64::from(config.cycles), is_blocked: false }
    }

    /// The cluster for the task of a request, if one has room for it.
    #[inline]
    pub fn choose(&self, her: &Her, clusters: &[Cluster]) -> Option<usize> {
        let home = (her.message % clusters.len() as u32) as usize;
        let only = |cluster: usize| clusters[cluster].has_room(her.transfer).then_some(cluster);
        match self.policy {
            DispatchPolicy::Pinned => only(her.context.pin.map_or(home, |pin| usize::from(pin) % clusters.len())),
            DispatchPolicy::Home => only(home).or_else(|| least_loaded(clusters, her.transfer)),
            DispatchPolicy::LeastLoaded => least_loaded(clusters, her.transfer),
        }
    }
}

fn least_loaded(clusters: &[Cluster], transfer: u32) -> Option<usize> {
    let with_room = clusters.iter().enumerate().filter(|(_, cluster)| cluster.has_room(transfer));
    with_room.min_by_key(|(_, cluster)| cluster.tasks()).map(|(index, _)| index)
}
