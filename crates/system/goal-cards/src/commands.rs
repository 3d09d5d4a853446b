// SPDX-License-Identifier: Apache-2.0
//! Translates Portals and sPIN operations to card commands.

use abi::portals::{self as ptl, AckReq, CtEvent, Handle, List, Process, ReturnCode, md, me};
use goal::{Append, NicOp, Verb};
use nic::{NewEntry, Region, Target, TriggeredOp};
use sim::Time;

use crate::error::{CardError, RunError};
use crate::memory::buffer;
use crate::rank_state::{Cluster, Scripts, Task, WorkList};

/// Portal table index of Portals operations.
pub(crate) const PORTAL: u32 = 0;
/// Maximum size of a message or entry, in bytes.
pub(crate) const MOST: u64 = 1 << 32;

impl Scripts<'_> {
    /// Passes an operation to its rank's card. Returns the work of the CPU.
    pub(crate) fn command(&mut self, cluster: &mut Cluster, op: u32, nic: &NicOp) -> Result<WorkList, RunError> {
        match &nic.verb {
            Verb::Append(append) => self.append(cluster, op, nic, append),
            Verb::Put { bytes, to } => {
                let ack = if nic.counter.is_some() { AckReq::Ct } else { AckReq::None };
                self.transfer(cluster, op, nic, *bytes, *to, Some(ack))
            }
            Verb::Get { bytes, from } => self.transfer(cluster, op, nic, *bytes, *from, None),
            // A test is no card command: the CPU reads the counter.
            Verb::Test { .. } => Ok([None; 2]),
        }
    }

    fn append(&mut self, cluster: &mut Cluster, op: u32, nic: &NicOp, append: &Append) -> Result<WorkList, RunError> {
        let (rank, ni) = (self.schedule.rank(op), self.ni);
        let ct = match nic.counter {
            Some(number) => self.counter(cluster, op, rank, number)?,
            None => ptl::CT_NONE,
        };
        let start = buffer(nic.tag);
        let mut handlers = None;
        if append.handlers.iter().any(Option::is_some) {
            let state = initial_state(nic);
            let memory = match append.memory.unwrap_or(state.len() as u64) {
                0 => ptl::INVALID_HANDLE,
                bytes => self.hpu_memory(cluster, op, rank, bytes)?,
            };
            let names = append.handlers.each_ref().map(|name| name.as_deref());
            let installed =
                cluster.card(rank as usize).handlers_by_name(names, memory, &state, Region::range(start, MOST), 0);
            handlers = Some(installed.map_err(|code| self.refused(cluster, op, "PtlMEAppend", code))?);
        }
        let once = if append.use_once { me::USE_ONCE } else { 0 };
        let le = ptl::Le {
            start,
            length: append.bytes,
            ct_handle: ct,
            uid: ptl::ID_ANY,
            options: me::OP_PUT | me::OP_GET | me::EVENT_CT_COMM | me::EVENT_CT_OVERFLOW | once,
            pad: 0,
        };
        let match_id = Process { nid: append.allowed.unwrap_or(ptl::ID_ANY), pid: 0 };
        let me = ptl::Me { le, match_id, match_bits: u64::from(nic.tag), ..ptl::Me::default() };
        let new = NewEntry { me, matching: true, pt_index: PORTAL, user_ptr: u64::from(op) };
        let list = match append.list {
            goal::List::Priority => List::Priority,
            goal::List::Overflow => List::Overflow,
        } as u64;
        let (call, appended) = match nic.when {
            None => ("PtlMEAppend", self.act(cluster, rank, |card, ports| card.append(ni, new, list, handlers, ports))),
            Some((counter, reaches)) => {
                let trigger = (self.counter(cluster, op, rank, counter)?, reaches);
                let appended = self
                    .act(cluster, rank, |card, ports| card.append_triggered(ni, new, list, handlers, trigger, ports));
                ("PtlTriggeredMEAppend", appended)
            }
        };
        appended.map_err(|code| self.refused(cluster, op, call, code))?;
        Ok([cluster.costs().describe(), None])
    }

    /// Starts or describes a put, with the requested acknowledgement, or a get.
    fn transfer(
        &mut self,
        cluster: &mut Cluster,
        op: u32,
        nic: &NicOp,
        bytes: u64,
        peer: u32,
        put: Option<AckReq>,
    ) -> Result<WorkList, RunError> {
        let rank = self.schedule.rank(op);
        let ct = match nic.counter {
            Some(number) => self.counter(cluster, op, rank, number)?,
            None => ptl::CT_NONE,
        };
        let trigger = match nic.when {
            Some((counter, reaches)) => Some((self.counter(cluster, op, rank, counter)?, reaches)),
            None => None,
        };
        let options = if put.is_some() { md::EVENT_CT_ACK } else { md::EVENT_CT_REPLY };
        let md = Memory { start: buffer(nic.tag), bytes, options, eq: ptl::EQ_NONE, ct };
        let target = Target {
            process: Process { nid: peer, pid: 0 },
            pt_index: PORTAL,
            match_bits: u64::from(nic.tag),
            remote_offset: 0,
            user_ptr: 0,
            hdr_data: nic.args[0].unwrap_or(0),
        };
        match trigger {
            None => {
                self.move_data(cluster, op, md, put, target, Time::ZERO)?;
                Ok([Some(cluster.costs().post()), None])
            }
            Some((counter, reaches)) => {
                let transfer = self.bind(cluster, op, md, put, target)?;
                let (interface, action) = (transfer.interface, TriggeredOp::Transfer(transfer));
                let call = if put.is_some() { "PtlTriggeredPut" } else { "PtlTriggeredGet" };
                self.act(cluster, rank, |card, ports| card.trigger(interface, counter, reaches, action, ports))
                    .map_err(|code| self.refused(cluster, op, call, code))?;
                Ok([cluster.costs().describe(), None])
            }
        }
    }

    /// Starts a put or get that the CPU passes to the card after `delay` and a post.
    pub(crate) fn move_data(
        &mut self,
        cluster: &mut Cluster,
        op: u32,
        memory: Memory,
        put: Option<AckReq>,
        target: Target,
        delay: Time,
    ) -> Result<(), RunError> {
        let transfer = self.bind(cluster, op, memory, put, target)?;
        let at = cluster.now() + delay + cluster.costs().post().span;
        self.act(cluster, self.schedule.rank(op), |card, ports| card.start(transfer, at, ports));
        Ok(())
    }

    /// Prepares a put or get. Its memory descriptor lives as long as the operation.
    fn bind(
        &mut self,
        cluster: &mut Cluster,
        op: u32,
        memory: Memory,
        put: Option<AckReq>,
        target: Target,
    ) -> Result<nic::RmaOp, RunError> {
        let (rank, ni) = (self.schedule.rank(op), self.ni);
        let Memory { start, bytes, options, eq, ct } = memory;
        let options = options | md::EVENT_SEND_DISABLE;
        let md = ptl::Md { start, length: bytes, options, eq_handle: eq, ct_handle: ct, pad: 0 };
        let bound = self.act(cluster, rank, |card, ports| card.md_bind(ni, md, ports));
        let md = bound.map_err(|code| self.refused(cluster, op, "PtlMDBind", code))?;
        let card = cluster.card(rank as usize);
        let (call, transfer) = match put {
            Some(ack) => ("PtlPut", card.portals_mut().put(md, 0, bytes, ack as u64, target)),
            None => ("PtlGet", card.portals_mut().get(md, 0, bytes, target)),
        };
        let released = card.portals_mut().md_release(md);
        debug_assert!(released.is_ok());
        transfer.map_err(|code| self.refused(cluster, op, call, code))
    }

    /// Returns the card's counter for a number of the schedule, and allocates it on first use.
    pub(crate) fn counter(
        &mut self,
        cluster: &mut Cluster,
        op: u32,
        rank: u32,
        number: u32,
    ) -> Result<Handle, RunError> {
        let counters = &self.ranks[rank as usize].counters;
        let place = counters.partition_point(|(other, _)| *other < number);
        if let Some((_, handle)) = counters.get(place).filter(|(other, _)| *other == number) {
            return Ok(*handle);
        }
        let handle = cluster.card(rank as usize).portals_mut().ct_alloc(self.ni);
        let handle = handle.map_err(|code| self.refused(cluster, op, "PtlCTAlloc", code))?;
        self.ranks[rank as usize].counters.insert(place, (number, handle));
        Ok(handle)
    }

    /// Returns the value of a counter; zero if its number is unused.
    pub(crate) fn counter_value(&mut self, cluster: &mut Cluster, rank: u32, number: u32) -> CtEvent {
        let counters = &self.ranks[rank as usize].counters;
        let Ok(place) = counters.binary_search_by_key(&number, |(other, _)| *other) else { return CtEvent::default() };
        let handle = counters[place].1;
        cluster.card(rank as usize).portals_mut().ct_value(handle).unwrap_or_default()
    }

    /// Resumes the tests that wait for a changed counter.
    pub(crate) fn look_at_tests(&mut self, cluster: &mut Cluster, rank: u32) {
        let tests = std::mem::take(&mut self.ranks[rank as usize].tests);
        for test in tests {
            if self.counter_value(cluster, rank, test.counter).success < test.reaches {
                self.ranks[rank as usize].tests.push(test);
            } else {
                self.enqueue(test.op, Task::Look(test.op));
            }
        }
    }

    /// Allocates HPU memory. If it is exhausted, the memory of removed entries is freed first.
    fn hpu_memory(&mut self, cluster: &mut Cluster, op: u32, rank: u32, bytes: u64) -> Result<Handle, RunError> {
        let (card, memories) = (cluster.card(rank as usize), &mut self.ranks[rank as usize].memories);
        let mut memory = card.hpu_alloc(bytes, self.ni);
        if memory == Err(ReturnCode::NoSpace) {
            memories.retain(|memory| card.hpu_free(*memory).is_err());
            memory = card.hpu_alloc(bytes, self.ni);
        }
        let memory = memory.map_err(|code| self.refused(cluster, op, "PtlHPUAllocMem", code))?;
        self.ranks[rank as usize].memories.push(memory);
        Ok(memory)
    }

    /// Returns the error for an operation refused by the card.
    pub(crate) fn refused(&self, cluster: &Cluster, op: u32, call: &'static str, code: ReturnCode) -> RunError {
        CardError::Refused { operation: self.schedule.describe(op), call, code, at: cluster.now() }.into()
    }
}

/// Local memory of a put or get, and the queue and counter for its events.
pub(crate) struct Memory {
    pub start: u64,
    pub bytes: u64,
    /// `PTL_MD_*`
    pub options: u32,
    pub eq: Handle,
    pub ct: Handle,
}

/// Returns the initial contents of the handlers' memory: the arguments as 64-bit words, up to the last one given.
/// Omitted arguments in between are 0.
pub(crate) fn initial_state(nic: &NicOp) -> Vec<u8> {
    let given = nic.args.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    nic.args[..given].iter().flat_map(|arg| arg.unwrap_or(0).to_le_bytes()).collect()
}
