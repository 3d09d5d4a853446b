// SPDX-License-Identifier: Apache-2.0
//! Arriving packets: their messages, and their delivery to handlers or memory.

use std::rc::Rc;

use abi::portals::NiFail;
use machine::MatchOverlaps;
use sim::Time;

use super::nic::Nic;
use crate::drops::{DropReason, Part};
use crate::event::NicEvent;
use crate::message::{Body, Header, MessageId, Packet, Request};
use crate::pipeline::{Delivery, EarlyPackets, Lookup, RxMessage, Sink};
use crate::portals::{InternalError, Operation};
use crate::ports::{Ports, Slice, Track};
use crate::spin::{Owner, SpinMessage};

/// Start and end of a packet's reception at the port, and the end of its match.
struct Reception {
    start: Time,
    end: Time,
    matched: Time,
}

impl Nic {
    /// Handles the arrival of a packet's first byte at the port.
    pub(super) fn arrive(&mut self, packet: Box<Packet>, ports: &mut impl Ports) -> Result<(), InternalError> {
        if packet.place == 0 {
            return self.take(packet, ports);
        }
        let source = packet.header.source;
        self.pipeline.stats.packets_held += u64::from(self.orders.come(packet));
        self.take_in_order(source, ports)
    }

    /// Receives the packets of a card that are in sequence.
    pub(super) fn take_in_order(&mut self, source: u32, ports: &mut impl Ports) -> Result<(), InternalError> {
        while let Some(packet) = self.orders.next(source) {
            self.take(packet, ports)?;
        }
        Ok(())
    }

    /// Receives a packet. The port receives one at a time.
    pub(super) fn take(&mut self, packet: Box<Packet>, ports: &mut impl Ports) -> Result<(), InternalError> {
        let (id, bytes) = (packet.header.id, packet.data.len() as u64);
        if self.messages.is_abandoned(id) {
            return Ok(());
        }
        let Reception { start, end, matched } = match self.pipeline.machine.nic.match_overlaps {
            MatchOverlaps::Reception => self.receive_beside_match(&packet, ports.now()),
            MatchOverlaps::Gap => self.receive_and_match(&packet, ports.now()),
        };
        let stats = &mut self.pipeline.stats;
        stats.packets_received += 1;
        stats.bytes_received += bytes;
        if packet.is_header() {
            stats.messages_received += 1;
            self.messages.start_matching(id, matched)?;
        }
        if ports.tracing() {
            let name = packet.header.name();
            ports.slice(Slice { track: Track::NicIn, start, end, name, packet: Some(packet.id()), bytes: Some(bytes) });
        }
        ports.schedule(matched, NicEvent::Received(packet));
        Ok(())
    }

    /// Reserves the port for a packet; the next one is received while this one is matched (sPIN §4.2).
    fn receive_beside_match(&mut self, packet: &Packet, now: Time) -> Reception {
        let network = &self.pipeline.machine.network;
        let gap = if packet.is_header() { network.gap } else { Time::ZERO };
        let (start, end) = self.rx.reserve(now, packet.data.len() as u64, network.gap_per_byte, gap);
        let found = match self.messages.lookup(packet.header.id) {
            Lookup::Matching(until) if !packet.is_header() => end.max(until),
            Lookup::Matching(_) | Lookup::NoHeader | Lookup::Open(_) => end,
        };
        Reception { start, end, matched: found + self.match_time(packet) }
    }

    /// Reserves the port for a packet and its matching (LogGOPSim2, `P4SMPMod::recvpkt`): the gap g between messages
    /// delays the next message only as far as it exceeds the matching time.
    fn receive_and_match(&mut self, packet: &Packet, now: Time) -> Reception {
        let (network, nic) = (&self.pipeline.machine.network, &self.pipeline.machine.nic);
        let bytes = packet.data.len() as u64;
        let (time, matching) = (network.gap_per_byte.time(bytes.saturating_sub(1)), self.match_time(packet));
        let later = packet.offset / u64::from(network.mtu);
        let first = if matches!(packet.header.body, Body::Request(_)) { nic.match_header } else { nic.match_reply };
        let rest = network.gap.saturating_sub(first + nic.match_cam * later);
        let occupied = time + matching + if packet.is_last() { rest } else { Time::ZERO };
        let (start, _) = self.rx.reserve(now, bytes, network.gap_per_byte, occupied);
        Reception { start, end: start + time, matched: start + time + matching }
    }

    /// Returns the time to match a packet, or to look it up.
    fn match_time(&self, packet: &Packet) -> Time {
        let nic = &self.pipeline.machine.nic;
        match (packet.is_header(), &packet.header.body) {
            (true, Body::Request(_)) => nic.match_header,
            (true, Body::Response(_)) => nic.match_reply,
            (false, _) => nic.match_cam,
        }
    }

    /// Handles a packet that is received and matched or looked up.
    pub(super) fn received(&mut self, packet: Box<Packet>, ports: &mut impl Ports) -> Result<(), InternalError> {
        let (id, bytes) = (packet.header.id, packet.data.len() as u64);
        if self.messages.is_abandoned(id) {
            return Ok(());
        }
        if packet.is_header() {
            let rx = self.open(&packet.header, ports)?;
            let early = self.messages.open(rx)?;
            self.release_early(id, early, ports)?;
        }
        let rx = match self.messages.lookup(id) {
            Lookup::Open(rx) => rx,
            // The header packet arrived while this earlier packet was looked up.
            Lookup::Matching(until) => {
                ports.schedule(until + self.pipeline.machine.nic.match_cam, NicEvent::Received(packet));
                return Ok(());
            }
            Lookup::NoHeader => {
                let has_room = self.messages.keep_early(*packet, self.spin.accelerator.packet_buffers())?;
                let stats = &mut self.pipeline.stats;
                *(if has_room { &mut stats.packets_held } else { &mut stats.packets_dropped }) += 1;
                return Ok(());
            }
        };
        rx.remaining -= bytes;
        let fail = packet.header.body.fail();
        let is_first = packet.is_header() || rx.fail == NiFail::Ok;
        rx.fails(fail); // detected after the first packet left
        // A request lacks data in this way only if its process died.
        let reason = (fail == NiFail::Dropped).then_some(DropReason::SenderDied);
        match (&rx.sink, fail == NiFail::Ok) {
            (Sink::Nowhere, true) => {}
            // The refused message is already counted.
            (Sink::Nowhere, false) if rx.header.body.fail() == NiFail::Ok => {}
            (Sink::Entry(delivery), true) if delivery.spin.is_some() => {
                self.spin.packet(rx, packet, &mut self.pipeline, ports)?;
            }
            // Data that could not be read at the source is not written.
            (Sink::Entry(delivery), false) if delivery.spin.is_some() => {
                self.pipeline.drop_data(rx, reason, packet.offset, bytes, ports)?;
            }
            (_, false) => {
                if let Some(reason) = reason {
                    let part = Part { is_first, packets: 1, bytes };
                    self.pipeline.count_part(reason, &packet.header, part, ports);
                }
            }
            (Sink::Entry(_), true) => self.pipeline.act(rx, packet, ports)?,
            (Sink::Operation(token, _), true) => match self.pipeline.portals.operation(*token)?.card {
                Some(place) => {
                    let address = place.start + packet.offset as u32;
                    self.spin.accelerator.deliver(place.command, address, &packet.data)?;
                }
                None => self.pipeline.act(rx, packet, ports)?,
            },
        }
        self.finish_if_done(id, ports)
    }

    /// Determines the receiver of a message from its header packet.
    fn open(&mut self, header: &Rc<Header>, ports: &mut impl Ports) -> Result<RxMessage, InternalError> {
        let mut rx = RxMessage::new(header.clone());
        if !self.pipeline.portals.accepts(header.source) {
            rx.fail = NiFail::PermViolation;
            self.pipeline.portals.note_violation(header.interface);
            self.pipeline.count_dropped(DropReason::Foreign, header, ports);
            return Ok(rx);
        }
        match header.body {
            Body::Response(response) => {
                rx.fail = response.fail;
                // An answer may arrive after its operation was abandoned.
                let is_awaited = |operation: &mut Operation| operation.message == response.to;
                if self.pipeline.portals.operations.get_mut(response.op).is_some_and(is_awaited) {
                    rx.sink = Sink::Operation(response.op, response);
                }
            }
            Body::Request(Request { fail, .. }) if fail != NiFail::Ok => rx.fail = fail,
            Body::Request(request) => {
                let taken = self.pipeline.portals.match_request(header.id, header.interface, &request);
                self.pipeline.apply(ports)?;
                match taken {
                    Ok(taken) => {
                        let handlers = taken.handlers.clone();
                        let (tenant, share) = self.pipeline.portals.tenant(request.pt_index);
                        let owner = Owner { process: self.pipeline.portals.index(), tenant, share };
                        let spin = handlers.map(|handlers| SpinMessage::new(handlers, request.kind, owner));
                        rx.sink = Sink::Entry(Delivery { taken, spin });
                    }
                    Err((fail, reason)) => {
                        rx.fail = fail;
                        self.pipeline.count_dropped(reason, header, ports);
                    }
                }
            }
        }
        Ok(rx)
    }

    /// Processes the packets that arrived before their header packet, once that is matched. If some were lost, the
    /// message fails, and flow control stops the portal table entry, as when packets for handlers find no buffer (sPIN
    /// §3.2).
    fn release_early(
        &mut self,
        id: MessageId,
        early: EarlyPackets,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let found = ports.now() + self.pipeline.machine.nic.match_cam;
        for packet in early.waiting {
            ports.schedule(found, NicEvent::Received(Box::new(packet)));
        }
        if early.lost.is_empty() {
            return Ok(());
        }
        let rx = self.messages.live(id)?;
        rx.remaining -= early.lost.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let is_entry = matches!(rx.sink, Sink::Entry(_));
        rx.fails(if is_entry { NiFail::PtDisabled } else { NiFail::Dropped });
        for (number, (offset, bytes)) in early.lost.into_iter().enumerate() {
            if rx.handlers().is_some() {
                self.pipeline.drop_data(rx, Some(DropReason::NoBuffer), offset, bytes, ports)?;
            } else {
                let part = Part { is_first: number == 0, packets: 1, bytes };
                self.pipeline.count_part(DropReason::NoBuffer, &rx.header, part, ports);
            }
        }
        match rx.header.body {
            Body::Request(request) if is_entry => {
                self.pipeline.stop_portal(rx.header.interface, request.pt_index, ports)
            }
            _ => Ok(()),
        }
    }
}
