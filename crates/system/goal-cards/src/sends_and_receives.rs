// SPDX-License-Identifier: Apache-2.0
//! `send` and `recv` over Portals matching, with a separate portal table entry.
//!
//! A receive is an entry in the priority list, matched by source, tag and space. Eager messages are puts. An eager
//! message that arrives before its receive lands in one of two large overflow entries, and the CPU copies it out. A
//! message above the eager limit is announced by an empty put, and the receiver fetches it with a get.

use abi::portals::{self as ptl, AckReq, Event, EventKind, List, Process, md, me};
use goal::Action;
use nic::{NewEntry, Target};
use sim::Time;

use crate::commands::Memory;
use crate::error::RunError;
use crate::memory::buffer;
use crate::rank_state::{After, Cluster, Scripts, Task, WorkList};

/// Portal table index of messages.
const MESSAGES: u32 = 1;
/// Portal table index of data to be fetched.
const DATA: u32 = 2;
/// Size of each half of the memory below the first buffer, which takes unexpected messages: while one half is in use,
/// the other is renewed.
const HALF: u64 = 1 << 31;
/// `user_ptr` of the overflow entry for the first half; one less for the second half.
const OVERFLOW: u64 = u64::MAX;
/// Capacity of a rank's event queue.
const EVENTS: u64 = (1 << 24) - 1;

impl Scripts<'_> {
    /// Prepares all ranks for messages.
    pub(crate) fn open_messages(&mut self, cluster: &mut Cluster) {
        let ni = self.ni;
        for rank in 0..self.schedule.ranks() {
            let card = cluster.card(rank as usize);
            let queue = card.portals_mut().eq_alloc(ni, EVENTS).expect("the first queue of a card");
            for portal in [MESSAGES, DATA] {
                card.portals_mut().pt_alloc(ni, 0, queue, portal).expect("the portal table is empty there");
            }
            self.ranks[rank as usize].queue = Some(queue);
            for half in 0..2 {
                self.renew_overflow(cluster, rank, OVERFLOW - half);
            }
        }
    }

    /// Appends an overflow entry.
    fn renew_overflow(&mut self, cluster: &mut Cluster, rank: u32, user_ptr: u64) {
        let quiet = me::EVENT_COMM_DISABLE | me::EVENT_LINK_DISABLE;
        let le = ptl::Le {
            start: (OVERFLOW - user_ptr) * HALF,
            length: HALF,
            ct_handle: ptl::CT_NONE,
            uid: ptl::ID_ANY,
            options: me::OP_PUT | me::MANAGE_LOCAL | quiet,
            pad: 0,
        };
        // The next message may be as large as the eager limit.
        let min_free = self.eager.clamp(1, HALF);
        let match_id = Process { nid: ptl::ID_ANY, pid: 0 };
        let me = ptl::Me { le, match_id, ignore_bits: u64::MAX, min_free, ..ptl::Me::default() };
        let new = NewEntry { me, matching: true, pt_index: MESSAGES, user_ptr };
        let ni = self.ni;
        let appended = self.act(cluster, rank, |card, ports| card.append(ni, new, List::Overflow as u64, None, ports));
        appended.expect("two overflow entries fit in any list");
    }

    /// Starts a send.
    pub(crate) fn send(
        &mut self,
        cluster: &mut Cluster,
        op: u32,
        bytes: u64,
        to: u32,
        (space, tag): (u16, u32),
    ) -> Result<(WorkList, After), RunError> {
        let rendezvous = bytes > self.eager;
        let mut offered = None;
        if rendezvous {
            self.offer(cluster, op, bytes, to, tag)?;
            offered = cluster.costs().describe();
        }
        let delay = offered.map_or(Time::ZERO, |work| work.span);
        let mut memory = quiet(buffer(tag), if rendezvous { 0 } else { bytes });
        if bytes <= self.inject {
            memory.options |= md::VOLATILE;
        }
        let target = Target {
            process: Process { nid: to, pid: 0 },
            pt_index: MESSAGES,
            match_bits: bits(space, tag),
            remote_offset: 0,
            user_ptr: 0,
            hdr_data: if rendezvous { announced(op) } else { 0 },
        };
        self.move_data(cluster, op, memory, Some(AckReq::None), target, delay)?;
        let work = [offered, Some(cluster.costs().post())];
        if !rendezvous {
            return Ok((work, After::Done(op)));
        }
        self.ranks[self.schedule.rank(op) as usize].messages.push(op);
        Ok((work, After::Nothing))
    }

    /// Appends an entry from which the receiver fetches the data of a send.
    fn offer(&mut self, cluster: &mut Cluster, op: u32, bytes: u64, to: u32, tag: u32) -> Result<(), RunError> {
        let le = ptl::Le {
            start: buffer(tag),
            length: bytes,
            ct_handle: ptl::CT_NONE,
            uid: ptl::ID_ANY,
            options: me::OP_GET | me::USE_ONCE | me::EVENT_LINK_DISABLE | me::EVENT_UNLINK_DISABLE,
            pad: 0,
        };
        let me = ptl::Me { le, match_id: Process { nid: to, pid: 0 }, match_bits: announced(op), ..ptl::Me::default() };
        self.post_entry(cluster, op, DATA, me)
    }

    /// Starts a receive.
    pub(crate) fn receive(
        &mut self,
        cluster: &mut Cluster,
        op: u32,
        bytes: u64,
        from: Option<u32>,
        (space, tag): (u16, Option<u32>),
    ) -> Result<(WorkList, After), RunError> {
        let le = ptl::Le {
            start: place(tag),
            length: bytes,
            ct_handle: ptl::CT_NONE,
            uid: ptl::ID_ANY,
            options: me::OP_PUT | me::USE_ONCE | me::EVENT_LINK_DISABLE | me::EVENT_UNLINK_DISABLE,
            pad: 0,
        };
        let me = ptl::Me {
            le,
            match_id: Process { nid: from.unwrap_or(ptl::ID_ANY), pid: 0 },
            match_bits: bits(space, tag.unwrap_or(0)),
            ignore_bits: if tag.is_none() { u64::from(u32::MAX) } else { 0 },
            ..ptl::Me::default()
        };
        self.ranks[self.schedule.rank(op) as usize].messages.push(op);
        self.post_entry(cluster, op, MESSAGES, me)?;
        Ok(([cluster.costs().describe(), None], After::Nothing))
    }

    fn post_entry(&mut self, cluster: &mut Cluster, op: u32, pt_index: u32, me: ptl::Me) -> Result<(), RunError> {
        let (rank, ni) = (self.schedule.rank(op), self.ni);
        let new = NewEntry { me, matching: true, pt_index, user_ptr: u64::from(op) };
        let appended = self.act(cluster, rank, |card, ports| card.append(ni, new, List::Priority as u64, None, ports));
        appended.map(|_| ()).map_err(|code| self.refused(cluster, op, "PtlMEAppend", code))
    }

    /// Handles the events of a rank's sends and receives.
    pub(crate) fn take_events(&mut self, cluster: &mut Cluster, rank: u32) -> Result<(), RunError> {
        let Some(queue) = self.ranks[rank as usize].queue else { return Ok(()) }; // the schedule has no send or receive
        let take = |cluster: &mut Cluster| {
            let taken = cluster.card(rank as usize).portals_mut().eq_take(queue);
            taken.map_err(|code| RunError::Internal(format!("the event queue of rank {rank} is gone ({code:?})")))
        };
        while let Some((event, _)) = take(cluster)? {
            if event.user_ptr >= OVERFLOW - 1 {
                if event.kind == EventKind::AutoUnlink as u8 {
                    self.renew_overflow(cluster, rank, event.user_ptr);
                }
                continue;
            }
            let op = event.user_ptr as u32;
            if event.hdr_data != 0 || event.kind == EventKind::PutOverflow as u8 {
                self.enqueue(op, Task::Arrived(op, Box::new(event)));
            } else {
                // The whole message has arrived in place, or has left.
                self.ranks[rank as usize].messages.retain(|other| *other != op);
                self.enqueue(op, Task::Look(op));
            }
        }
        Ok(())
    }

    /// Returns the work of a CPU for a receive whose message, or its announcement, is in an overflow entry, and the
    /// action after it.
    pub(crate) fn arrived(
        &mut self,
        cluster: &mut Cluster,
        op: u32,
        event: &Event,
    ) -> Result<(WorkList, After), RunError> {
        let Action::Recv { bytes, tag, .. } = self.schedule.action(op) else {
            return Err(RunError::Internal(format!("a message arrived for {}", self.schedule.describe(op))));
        };
        let rank = self.schedule.rank(op);
        let notice = cluster.costs().notice();
        if event.hdr_data != 0 {
            let sender = (event.hdr_data - 1) as u32;
            let Action::Send { bytes: sent, .. } = self.schedule.action(sender) else {
                return Err(RunError::Internal(format!("data is announced by {}", self.schedule.describe(sender))));
            };
            let delay = notice.map_or(Time::ZERO, |work| work.span);
            let queue = self.ranks[rank as usize].queue.unwrap_or(ptl::EQ_NONE);
            let memory = Memory { eq: queue, ..quiet(place(tag), sent.min(bytes)) };
            let target = Target {
                process: event.initiator,
                pt_index: DATA,
                match_bits: event.hdr_data,
                remote_offset: 0,
                user_ptr: u64::from(op),
                hdr_data: 0,
            };
            self.move_data(cluster, op, memory, None, target, delay)?;
            return Ok(([notice, Some(cluster.costs().post())], After::Nothing));
        }
        let length = event.mlength.min(bytes);
        self.memory.copy(rank, event.start, place(tag), length);
        self.memory.forget(rank, event.start, event.mlength);
        self.ranks[rank as usize].messages.retain(|other| *other != op);
        Ok(([notice, Some(cluster.costs().copy(length))], After::Done(op)))
    }
}

/// Returns the memory descriptor of an operation without progress events.
fn quiet(start: u64, bytes: u64) -> Memory {
    Memory { start, bytes, options: 0, eq: ptl::EQ_NONE, ct: ptl::CT_NONE }
}

/// Returns the address of a receive's data. Receives with any tag share the buffer of tag `u32::MAX - 1`.
fn place(tag: Option<u32>) -> u64 {
    buffer(tag.unwrap_or(u32::MAX - 1))
}

/// Returns the match bits of a message.
fn bits(space: u16, tag: u32) -> u64 {
    u64::from(space) << 32 | u64::from(tag)
}

/// Returns the header data that announces a send; also the match bits of its data.
fn announced(op: u32) -> u64 {
    u64::from(op) + 1
}
