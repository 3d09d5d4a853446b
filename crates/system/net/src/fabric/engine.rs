// SPDX-License-Identifier: Apache-2.0
//! Movement of packets through the fabric.

use sim::{Time, random};

use super::answers::Signal;
use super::links_and_hosts::{Arrival, Edge, Event, Fabric, Frame, Left, ReturnedCredit};
use super::packet::{Hash, Mark, NOWHERE, Packet, Role, Way};
use super::parameters::{Flow, Routing};
use super::queues::{FRAME, HEADERS_IN_A_ROW, Queues, Sending};
use super::route;
use super::statistics::Crossing;
use crate::order::{Class, key, key_of_retransmission};
use crate::topology::RouteState;

impl Fabric {
    /// Queues a packet for its host's link. It leaves at once or, without credit, after the packets before it and as
    /// soon as credit returns.
    #[inline]
    pub fn inject(&mut self, now: Time, packet: u32, edge: &mut impl Edge) {
        let state = &mut self.packets[packet];
        state.joined = now;
        let from = state.from;
        self.join(now, self.topology.first(from), 0, packet, edge);
    }

    /// Handles an event at `now`. Returns a signal for the hosts, if any.
    #[inline]
    #[must_use]
    pub fn handle(&mut self, now: Time, event: Event, edge: &mut impl Edge) -> Option<Signal> {
        match event {
            Event::Hop(packet) => self.hop(now, packet, edge),
            Event::Credit(channel) => self.credit_came(now, channel, edge),
            Event::Retransmit(packet) => {
                self.again(packet);
                if self.packets[packet].marks.is_news() {
                    return Some(Signal::Resend(packet));
                }
                self.inject(now, packet, edge);
            }
            Event::Delivered(packet) => return self.delivered(now, packet, edge),
            Event::Free(link) => self.is_free(now, link, edge),
            Event::Pause(channel) => self.queues.pause(now, channel),
            Event::Resume(channel) => self.resume(now, channel, edge),
        }
        None
    }

    /// Resets a packet for retransmission.
    pub(super) fn again(&mut self, packet: u32) {
        self.resent += 1;
        let state = &mut self.packets[packet];
        (state.channel, state.state) = (NOWHERE, RouteState::default());
        state.marks.set(Mark::Congested, false);
    }

    /// Handles a packet whose head has passed a switch.
    #[inline]
    fn hop(&mut self, now: Time, id: u32, edge: &mut impl Edge) {
        let packet = &self.packets[id];
        if packet.marks.has(Mark::Damaged) {
            return self.discard(now, id, edge);
        }
        let Way { link, vc, class } = if self.is_adaptive() {
            route::adaptive(&self.topology, self.classes, &self.links, now, packet)
        } else {
            packet.way
        };
        let bytes = self.size(packet);
        let kind = *self.kind(link);
        let state = &mut self.links[link as usize];
        let queue = state.queue(now);
        let backlog = queue + kind.transmission(bytes);
        if self.parameters.flow == Flow::Drop && kind.bytes_in(backlog) > self.parameters.buffer {
            return self.lose(now, link, id, edge);
        }
        state.counts.see(backlog);
        if self.answers.has_marks() {
            self.mark(link, id, kind.bytes_in(queue));
        }
        let packet = &mut self.packets[id];
        packet.joined = now;
        packet.state.class = class;
        self.join(now, link, vc, id, edge);
    }

    /// Appends a packet to a queue, or puts it onto the link.
    #[inline]
    pub(super) fn join(&mut self, now: Time, link: u32, vc: u8, id: u32, edge: &mut impl Edge) {
        if self.queues.are_used() {
            return self.enqueue(now, link, vc, id, edge);
        }
        let channel = link * self.vcs + u32::from(vc);
        let has_buffer = self.parameters.flow == Flow::Credits && self.links[link as usize].to >= self.hosts;
        if has_buffer {
            let bytes = self.packets[id].bytes;
            let is_waited_for = self.credits[channel].is_waited_for();
            if is_waited_for || !self.credits.take(channel, now, bytes, self.parameters.buffer) {
                if let Some(last) = self.credits[channel].wait(id) {
                    self.packets[last].next = id;
                }
                let transmission = self.kind(link).transmission(bytes);
                self.links[link as usize].blocked += transmission;
                return self.wake(channel, edge);
            }
        }
        self.transmit(now, link, channel, id, edge);
    }

    /// Sends a packet over its link, for which it has credit.
    #[inline]
    pub(super) fn transmit(&mut self, now: Time, link: u32, channel: u32, id: u32, edge: &mut impl Edge) {
        self.hops += 1;
        let is_damaged = self.damages(link);
        let bytes = self.size(&self.packets[id]);
        let packet = &mut self.packets[id];
        let &mut Packet { token, from, channel: came, kind: came_by, marks, .. } = packet;
        let is_from_host = came == NOWHERE;
        let is_news = marks.is_news();
        let state = &mut self.links[link as usize];
        let kind = self.kinds[state.kind as usize];
        let transmission = kind.transmission(bytes);
        let start = if is_from_host {
            match is_news {
                true => edge.leaves(token, now, state.free, kind),
                false => edge.answers(from, now, state.free, bytes, kind),
            }
        } else if came_by == state.kind {
            now.max(state.free)
        } else {
            let arrival = self.kinds[came_by as usize].transmission(bytes);
            now.max(state.free).max(packet.joined + arrival.saturating_sub(transmission))
        };
        let end = start + transmission;
        state.free = end;
        state.counts.add(start - packet.joined, transmission, bytes);
        if let Some(crossings) = &mut self.crossings {
            crossings.push(Crossing { link, from: packet.from, to: packet.to, bytes, start, end });
        }
        let (to, its_kind) = (state.to, state.kind);
        if to < self.hosts {
            let (first, last) = (start + kind.latency, end + kind.latency);
            if is_damaged {
                self.damaged(last, id, edge);
            } else {
                if is_news && !marks.has(Mark::Trimmed) {
                    edge.arrives(Arrival { token, first, last });
                }
                match self.answers.are_sent() {
                    true => edge.schedule(last, key(Class::Delivered, to), Event::Delivered(id)),
                    false => _ = self.packets.remove(id),
                }
            }
        } else {
            packet.marks.set(Mark::Damaged, is_damaged);
            (packet.channel, packet.kind, packet.at) = (channel, its_kind, to);
            if is_from_host {
                packet.sent = start;
            } else {
                packet.state.hops += 1;
            }
            if self.parameters.routing == Routing::Ecmp {
                let way = route::fixed(&self.topology, to, &self.packets[id]);
                self.packets[id].way = way;
            }
            let at = start + kind.latency + self.parameters.switch;
            if edge.has_vertex(to) {
                edge.schedule(at, key(Class::Hop, channel), Event::Hop(id));
            } else {
                self.export(at, to, id, edge);
            }
        }
        if is_from_host {
            if is_news {
                edge.left(Left { token, start, end, bytes, kind });
            }
        } else if self.parameters.flow == Flow::Credits {
            let back = end + self.kinds[came_by as usize].latency;
            self.give_back(now, came, back, bytes, edge);
        }
    }

    /// Schedules a check of a channel's queue at the return of the next credit, if any packet waits.
    #[inline]
    fn wake(&mut self, channel: u32, edge: &mut impl Edge) {
        if let Some(at) = self.credits.next_wake(channel) {
            edge.schedule(at, key(Class::Credit, channel), Event::Credit(channel));
        }
    }

    fn credit_came(&mut self, now: Time, channel: u32, edge: &mut impl Edge) {
        let link = channel / self.vcs;
        self.credits[channel].woken(now);
        while let Some(id) = self.credits[channel].first() {
            let Packet { bytes, next, .. } = self.packets[id];
            if !self.credits.take(channel, now, bytes, self.parameters.buffer) {
                return self.wake(channel, edge);
            }
            self.credits[channel].stop_waiting(next);
            let transmission = self.kind(link).transmission(bytes);
            let blocked = &mut self.links[link as usize].blocked;
            *blocked = blocked.saturating_sub(transmission);
            self.transmit(now, link, channel, id, edge);
        }
    }

    /// Discards a packet that its last link damaged. Its buffer space is free again once its tail arrives.
    fn discard(&mut self, now: Time, id: u32, edge: &mut impl Edge) {
        let Packet { bytes, channel, kind, .. } = self.packets[id];
        let kind = self.kinds[kind as usize];
        let end = now + kind.transmission(bytes);
        if self.parameters.flow == Flow::Credits {
            self.give_back(now, channel, end + kind.latency, bytes, edge);
        }
        self.damaged(end, id, edge);
    }

    /// Handles a damaged packet, detected at `at`.
    fn damaged(&mut self, at: Time, id: u32, edge: &mut impl Edge) {
        let Packet { token, marks, .. } = self.packets[id];
        if marks.is_news() {
            self.packets.remove(id);
            edge.lost(token, at);
        } else {
            self.lose_answer(at, id, edge);
        }
    }

    fn lose(&mut self, now: Time, link: u32, id: u32, edge: &mut impl Edge) {
        self.drops[link as usize] += 1;
        match self.packets[id].marks.role() {
            Role::Data => self.retransmit(now, id, edge),
            _ => self.lose_answer(now, id, edge),
        }
    }

    /// Returns credit to the sender of a channel at a future time.
    #[inline]
    fn give_back(&mut self, now: Time, channel: u32, at: Time, bytes: u32, edge: &mut impl Edge) {
        if edge.has_link(channel / self.vcs) {
            self.credits.give(channel, now, at, bytes);
            self.wake(channel, edge);
        } else {
            edge.return_credit(channel / self.vcs, ReturnedCredit { channel, at, bytes });
        }
    }

    /// Retransmits a data packet after its time-out, which its host detects a link's latency after the loss or later.
    pub(super) fn retransmit(&mut self, now: Time, id: u32, edge: &mut impl Edge) {
        /// Maximum number of doublings of the time-out.
        const MOST_DOUBLINGS: u8 = 10;
        let packet = &mut self.packets[id];
        let time_out = self.time_out * (1 << packet.losses.min(MOST_DOUBLINGS));
        packet.losses = packet.losses.saturating_add(1);
        let at = (now + self.least_latency).max(packet.sent + time_out);
        let (from, losses) = (packet.from, packet.losses);
        if edge.has_vertex(from) {
            edge.schedule(at, key_of_retransmission(from, losses), Event::Retransmit(id));
        } else {
            let mut packet = self.packets.remove(id);
            packet.joined = at;
            edge.send_back(packet);
        }
    }
}

/// Control packets of the ends.
impl Fabric {
    /// Marks a data packet that finds a queue of `queue` bytes (DCQCN §3.1, Fig. 5: RED with K_min, K_max and P_max).
    pub(super) fn mark(&mut self, link: u32, id: u32, queue: u64) {
        let dcqcn = &self.parameters.transport.dcqcn;
        let (from, all) = (dcqcn.mark_from, dcqcn.mark_all);
        let marks = &mut self.packets[id].marks;
        if marks.role() != Role::Data || queue < from {
            return;
        }
        let share = f64::from(dcqcn.mark_percent) / 100.0 * (queue - from) as f64 / (all - from).max(1) as f64;
        if queue >= all || self.answers.fraction(link) < share {
            self.answers.counts.marked += u64::from(!marks.has(Mark::Congested));
            marks.set(Mark::Congested, true);
        }
    }

    /// Sends a control packet.
    fn answer(&mut self, now: Time, role: Role, from: u32, to: u32, token: u32, edge: &mut impl Edge) {
        let transport = &self.parameters.transport;
        let counts = &mut self.answers.counts;
        let (bytes, count) = match role {
            Role::Ack => (transport.ack, &mut counts.acknowledgements),
            Role::Notification => (transport.dcqcn.notify, &mut counts.notifications),
            Role::Pull => (transport.trim.header, &mut counts.pulls),
            _ => (transport.trim.header, &mut counts.trimmed),
        };
        *count += 1;
        // Data packets do not have these numbers.
        let number = if self.is_adaptive() { !(self.next_number(from) << 3 | role as u64) } else { 0 };
        let hash = Hash::new(self.parameters.seed, from, to, number);
        let id = self.packets.insert(Packet { token, from, to, bytes, hash, marks: role.into(), ..Packet::NEW });
        self.inject(now, id, edge);
    }

    /// Requests one more packet from a host.
    pub fn pull(&mut self, now: Time, from: u32, to: u32, edge: &mut impl Edge) {
        self.answer(now, Role::Pull, to, from, 0, edge);
    }

    /// Handles the arrival of a packet's last byte at its host.
    pub(super) fn delivered(&mut self, now: Time, id: u32, edge: &mut impl Edge) -> Option<Signal> {
        let Packet { token, from, to, marks, .. } = self.packets[id];
        if marks.role() != Role::Data {
            self.packets.remove(id);
        }
        match marks.role() {
            Role::Data => return self.data_came(now, id, edge),
            Role::Ack => _ = self.packets.remove(token),
            Role::Notification => return Some(Signal::Congested(to, from)),
            Role::Refusal => {
                self.again(token);
                self.packets[token].marks.set(Mark::Trimmed, false);
                return Some(Signal::Refused(token));
            }
            Role::Pull => return Some(Signal::Pulled(to, from)),
        }
        None
    }

    fn data_came(&mut self, now: Time, id: u32, edge: &mut impl Edge) -> Option<Signal> {
        let Packet { from, to, marks, .. } = self.packets[id];
        if marks.has(Mark::Congested) {
            // DCQCN §3.1: at most one notification of a flow in N.
            let last = self.answers.notified.insert((from, to), now);
            match last.filter(|last| now < *last + self.parameters.transport.dcqcn.notify_gap) {
                Some(last) => _ = self.answers.notified.insert((from, to), last),
                None => self.answer(now, Role::Notification, to, from, 0, edge),
            }
        }
        let is_trimmed = marks.has(Mark::Trimmed);
        if is_trimmed {
            self.answer(now, Role::Refusal, to, from, id, edge);
        } else if self.parameters.transport.ack > 0 {
            // The sender keeps it until acknowledged.
            self.packets[id].marks.set(Mark::Delivered, true);
            self.answer(now, Role::Ack, to, from, id, edge);
        } else {
            self.packets.remove(id);
        }
        (self.parameters.flow == Flow::Trim).then_some(Signal::Received { from, to, is_trimmed })
    }

    /// Handles the loss of a control packet, or of a retransmitted packet that had already arrived. A missing
    /// acknowledgement causes a retransmission of the data; notifications are not retransmitted.
    pub(super) fn lose_answer(&mut self, now: Time, id: u32, edge: &mut impl Edge) {
        match self.packets[id].marks.role() {
            Role::Data => self.retransmit(now, id, edge),
            role => {
                let Packet { token, .. } = self.packets.remove(id);
                if role == Role::Ack {
                    self.retransmit(now, token, edge);
                }
            }
        }
    }
}

/// Queues of packets that wait until their link is free.
impl Fabric {
    /// Puts a packet into the queue of a link.
    pub(super) fn enqueue(&mut self, now: Time, link: u32, vc: u8, id: u32, edge: &mut impl Edge) {
        let channel = link * self.vcs + u32::from(vc);
        let Packet { channel: came, marks, .. } = self.packets[id];
        if came != NOWHERE && self.parameters.flow == Flow::Pfc {
            let Packet { bytes, kind, .. } = self.packets[id];
            self.store(now, came, kind, bytes, edge);
        }
        let mut is_urgent =
            self.parameters.flow == Flow::Trim && (marks.role() != Role::Data || marks.has(Mark::Trimmed));
        if !is_urgent && came != NOWHERE && self.parameters.flow == Flow::Trim {
            is_urgent = self.trims(link, channel, id);
        }
        self.wait(link, channel, id, is_urgent);
        self.send_next(now, link, edge);
    }

    fn wait(&mut self, link: u32, channel: u32, id: u32, is_urgent: bool) {
        let bytes = self.size(&self.packets[id]);
        let transmission = self.kind(link).transmission(bytes);
        self.links[link as usize].blocked += transmission;
        let port = &mut self.queues.ports[link as usize];
        if is_urgent {
            port.urgent.push(id, &mut self.packets);
        } else {
            port.bytes += u64::from(bytes);
            self.queues.channels[channel as usize].waiting.push(id, &mut self.packets);
        }
    }

    /// Trims a packet if a new data packet finds the queue full: the new one or, with probability 1/2, the last waiting
    /// one (NDP §3.1). Returns true for the new one.
    fn trims(&mut self, link: u32, channel: u32, id: u32) -> bool {
        let bytes = self.packets[id].bytes;
        let port = &mut self.queues.ports[link as usize];
        if port.bytes + u64::from(bytes) <= self.parameters.buffer {
            return false;
        }
        let list = &mut self.queues.channels[channel as usize].waiting;
        let is_last = random::next(&mut self.queues.random) & 1 == 0;
        let last = if is_last { list.last(&self.packets) } else { None };
        // A shorter one would free too little space.
        let Some((before, last)) = last.filter(|(_, last)| self.packets[*last].bytes >= bytes) else {
            self.packets[id].marks.set(Mark::Trimmed, true);
            return true;
        };
        list.remove(before, last, &mut self.packets);
        let freed = self.packets[last].bytes;
        port.bytes -= u64::from(freed);
        let transmission = self.kind(link).transmission(freed);
        self.unblock(link, transmission);
        self.packets[last].marks.set(Mark::Trimmed, true);
        self.wait(link, channel, last, true);
        false
    }

    fn unblock(&mut self, link: u32, transmission: Time) {
        let blocked = &mut self.links[link as usize].blocked;
        *blocked = blocked.saturating_sub(transmission);
    }

    /// Sends the next packet of a link if the link is free.
    fn send_next(&mut self, now: Time, link: u32, edge: &mut impl Edge) {
        if self.queues.ports[link as usize].is_busy {
            return;
        }
        // A host may occupy its link outside of the fabric.
        let mut free = self.links[link as usize].free;
        if free <= now {
            let Some((channel, id)) = self.choose(link) else { return };
            let packet = &self.packets[id];
            let (came, came_by, bytes) = (packet.channel, packet.kind, self.size(packet));
            self.unblock(link, self.kind(link).transmission(bytes));
            let counted = if channel == NOWHERE { 0 } else { bytes };
            self.queues.ports[link as usize].sending = Sending { counted, bytes, came, came_by };
            let channel = if channel == NOWHERE { link * self.vcs } else { channel };
            self.transmit(now, link, channel, id, edge);
            free = self.links[link as usize].free;
        }
        self.queues.ports[link as usize].is_busy = true;
        edge.schedule(free, key(Class::Free, link), Event::Free(link));
    }

    /// Takes the next packet of a link, with its channel, or [`NOWHERE`] if it is urgent.
    fn choose(&mut self, link: u32) -> Option<(u32, u32)> {
        let Queues { ports, channels, .. } = &mut self.queues;
        let port = &mut ports[link as usize];
        let first = (link * self.vcs) as usize;
        let own = &mut channels[first..first + self.vcs as usize];
        let is_ready = |vc: &usize| own[*vc].paused.is_none() && own[*vc].waiting.first().is_some();
        let turn = usize::from(port.turn);
        let vc = (turn..own.len()).chain(0..turn).find(is_ready);
        if (vc.is_none() || port.urgent_in_a_row < HEADERS_IN_A_ROW)
            && let Some(id) = port.urgent.pop(&mut self.packets)
        {
            port.urgent_in_a_row = if vc.is_some() { port.urgent_in_a_row + 1 } else { 0 };
            return Some((NOWHERE, id));
        }
        port.urgent_in_a_row = 0;
        let vc = vc?;
        port.turn = ((vc + 1) % own.len()) as u8;
        let id = own[vc].waiting.pop(&mut self.packets)?;
        Some(((first + vc) as u32, id))
    }

    /// Handles a link that becomes free.
    pub(super) fn is_free(&mut self, now: Time, link: u32, edge: &mut impl Edge) {
        let port = &mut self.queues.ports[link as usize];
        port.is_busy = false;
        let Sending { counted, bytes, came, came_by } = std::mem::replace(&mut port.sending, Sending::NOTHING);
        port.bytes -= u64::from(counted);
        if came != NOWHERE && self.parameters.flow == Flow::Pfc {
            self.release(now, came, came_by, bytes, edge);
        }
        self.send_next(now, link, edge);
    }

    /// Sends a PFC frame to the sender of a channel over a link of this kind. It does not wait for packets of the opposite
    /// direction.
    fn send_frame(&mut self, now: Time, channel: u32, kind: u32, frame: Event, edge: &mut impl Edge) {
        let kind = self.kinds[kind as usize];
        let at = now + kind.transmission(FRAME) + kind.latency;
        if edge.has_link(channel / self.vcs) {
            edge.schedule(at, key(Class::Frame, channel), frame);
        } else {
            edge.send_frame(channel / self.vcs, Frame { channel, at, event: frame });
        }
    }

    /// Counts a packet stored by a switch for a channel, and pauses the channel if necessary.
    fn store(&mut self, now: Time, channel: u32, kind: u32, bytes: u32, edge: &mut impl Edge) {
        let state = &mut self.queues.channels[channel as usize];
        state.stored += u64::from(bytes);
        debug_assert!(state.stored <= self.parameters.buffer, "nothing is lost");
        if state.stored > self.queues.pause && !std::mem::replace(&mut state.is_pausing, true) {
            self.answers.counts.pauses += 1;
            self.send_frame(now, channel, kind, Event::Pause(channel), edge);
        }
    }

    /// Counts a packet whose last byte has left the switch, and resumes the channel if possible.
    fn release(&mut self, now: Time, channel: u32, kind: u32, bytes: u32, edge: &mut impl Edge) {
        let state = &mut self.queues.channels[channel as usize];
        state.stored -= u64::from(bytes);
        if state.is_pausing && state.stored <= self.queues.resume {
            state.is_pausing = false;
            self.send_frame(now, channel, kind, Event::Resume(channel), edge);
        }
    }

    /// Handles a resume frame at the sending end.
    pub(super) fn resume(&mut self, now: Time, channel: u32, edge: &mut impl Edge) {
        if let Some(since) = self.queues.channels[channel as usize].paused.take() {
            self.answers.counts.paused += now - since;
        }
        self.send_next(now, channel / self.vcs, edge);
    }
}

/// Exchange with simulations of other parts of the network.
impl Fabric {
    /// Passes a packet whose head passes the switch `vertex` at `at` to the simulation of that switch.
    fn export(&mut self, at: Time, vertex: u32, id: u32, edge: &mut impl Edge) {
        let mut packet = self.packets.remove(id);
        packet.joined = at;
        // The packet that an answer is about travels with it: the sender's end needs it next.
        let subject = packet.marks.has_subject().then(|| self.packets.remove(packet.token));
        edge.send_packet(vertex, packet, subject);
    }

    /// Accepts a packet from another part, with the packet that it is about.
    pub fn import(&mut self, mut packet: Packet, subject: Option<Packet>, edge: &mut impl Edge) {
        if let Some(subject) = subject {
            packet.token = self.packets.insert(subject);
        }
        let (at, channel) = (packet.joined, packet.channel);
        let id = self.packets.insert(packet);
        edge.schedule(at, key(Class::Hop, channel), Event::Hop(id));
    }

    /// Accepts a packet that must be retransmitted by its host, from another part.
    pub fn import_lost(&mut self, packet: Packet, edge: &mut impl Edge) {
        let key = key_of_retransmission(packet.from, packet.losses);
        let id = self.packets.insert(packet);
        edge.schedule(packet.joined, key, Event::Retransmit(id));
    }

    /// Accepts credit from another part; all events before `now` are handled.
    pub fn import_credit(&mut self, now: Time, credit: ReturnedCredit, edge: &mut impl Edge) {
        let ReturnedCredit { channel, at, bytes } = credit;
        self.credits.give(channel, now, at, bytes);
        self.wake(channel, edge);
    }
}
