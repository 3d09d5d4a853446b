// SPDX-License-Identifier: Apache-2.0
//! Partition of a network: the processes of one job, which reach each other and no others.
//!
//! Processes name a node of their partition by its index there, so a job cannot even name the nodes of another one. Nid and
//! pid name a process (Portals 4.3 §2.2), as a node may have several. The card of the initiator translates names, and that
//! of the target refuses messages from processes outside.

use std::cell::Cell;
use std::rc::Rc;

use abi::placement::FIRST_PID as DEFAULT_PID;
use abi::portals::Process;
use accel::Share;
use accel::sc17::Quota;

/// Target of a message to a node of the network outside of the initiator's partition. It is no process.
pub const FOREIGN: u32 = u32::MAX;

/// Processes of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Processes of each node, by the node's index in the partition.
    nodes: Vec<Vec<Resident>>,
    /// True for each process of the network that is in the partition.
    is_inside: Vec<bool>,
    /// Number of nodes in the network.
    network: u32,
}

/// A process of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Resident {
    /// Number of the process in the network.
    process: u32,
    pid: Cell<u32>,
}

/// Place of a process in its partition and on its card.
#[derive(Clone, Debug)]
pub struct Member {
    /// Index of the node.
    pub nid: u32,
    /// Index among the processes that share the card.
    pub index: u32,
    /// Tenant and entitlement of its handlers on a shared card.
    pub tenant: Option<(u32, Share)>,
    /// Part of the card's HPU memory.
    pub quota: Quota,
    /// Its partition.
    pub partition: Rc<Partition>,
}

impl Member {
    /// Returns the place of a process that shares its card with no other.
    pub fn alone(partition: &Rc<Partition>, nid: u32) -> Member {
        Member { nid, index: 0, tenant: None, quota: Quota::ALL, partition: partition.clone() }
    }
}

impl Partition {
    /// Creates the partition of a job in a network of `network` nodes. `nodes` are the processes on each of its nodes.
    pub fn new(nodes: Vec<Vec<u32>>, network: u32) -> Partition {
        let last = nodes.iter().flatten().max().map_or(0, |process| *process as usize);
        let mut is_inside = vec![false; last + 1];
        nodes.iter().flatten().for_each(|process| is_inside[*process as usize] = true);
        let resident = |(pid, process): (u32, u32)| Resident { process, pid: Cell::new(pid) };
        let nodes = nodes.into_iter().map(|processes| (DEFAULT_PID..).zip(processes).map(resident).collect()).collect();
        Partition { nodes, is_inside, network }
    }

    /// Returns the processes on each node, by the node's index in the partition.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = impl Iterator<Item = u32>> {
        self.nodes.iter().map(|node| node.iter().map(|resident| resident.process))
    }

    /// Returns true if a process of the network is in the partition.
    pub fn has(&self, process: u32) -> bool {
        self.is_inside.get(process as usize).copied().unwrap_or(false)
    }

    /// Returns the number of a process, or [`FOREIGN`] if only other jobs have a node of this number, or `nobody`. The
    /// first process of a node answers for pids that none has.
    pub(super) fn find(&self, Process { nid, pid }: Process, nobody: u32) -> u32 {
        let Some(node) = self.nodes.get(nid as usize) else { return if nid < self.network { FOREIGN } else { nobody } };
        let named = node.iter().find(|resident| resident.pid.get() == pid);
        named.or(node.first()).map_or(nobody, |resident| resident.process)
    }

    /// Returns the pid of a process of a node.
    pub(super) fn pid(&self, nid: u32, process: u32) -> Option<u32> {
        Some(self.resident(nid, process)?.pid.get())
    }

    /// Changes the pid of a process of a node.
    pub(super) fn set_pid(&self, nid: u32, process: u32, pid: u32) {
        if let Some(resident) = self.resident(nid, process) {
            resident.pid.set(pid);
        }
    }

    /// Returns true if another process of a node than this one has a pid.
    pub(super) fn is_pid_of_another(&self, nid: u32, process: u32, pid: u32) -> bool {
        let mut residents = self.nodes.get(nid as usize).into_iter().flatten();
        residents.any(|resident| resident.process != process && resident.pid.get() == pid)
    }

    fn resident(&self, nid: u32, process: u32) -> Option<&Resident> {
        self.nodes.get(nid as usize)?.iter().find(|resident| resident.process == process)
    }
}
