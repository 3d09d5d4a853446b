// SPDX-License-Identifier: Apache-2.0
//! The timeline of a run: a process for each rank, rows for its CPU, its card's ports, DMA engine and HPUs.

use std::collections::HashMap;

use machine::Machine;
use sim::Time;
use sim::trace::{ProcessId, SliceExtras, Trace, TrackId, Value};

use crate::ports::{PacketId, Slice, Track};

/// Recorder of slices; inactive without a requested trace.
pub struct Timeline {
    trace: Trace,
    rows: Vec<Rows>,
    /// Rows of links by number, and their trace process.
    links: HashMap<u32, TrackId>,
    network: Option<ProcessId>,
    /// Arrow numbers of packets, by message and offset.
    flows: HashMap<(u64, u64), u64>,
}

/// A packet on a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkSlice {
    /// Time at which its first byte enters the link.
    pub start: Time,
    /// Time at which its last byte has entered the link.
    pub end: Time,
    /// Sending node of the packet.
    pub from: u32,
    /// Receiving node of the packet.
    pub to: u32,
    /// Bytes of data.
    pub bytes: u32,
}

struct Rows {
    /// CPU row; `None` for a switch.
    cpu: Option<TrackId>,
    nic_in: TrackId,
    nic_out: TrackId,
    dma: Option<TrackId>,
    hpus: Vec<TrackId>,
}

impl Timeline {
    /// Creates a timeline with rows for the nodes of `machine`, and for the accelerators of `switches`, which have
    /// machine `of_switch`. `names` are those of the nodes; empty for "rank N".
    pub fn new(
        mut trace: Trace,
        ranks: usize,
        names: &[String],
        machine: &Machine,
        switches: &[String],
        of_switch: &Machine,
    ) -> Timeline {
        let (mut rows, is_on) = (Vec::new(), trace.is_on());
        let mut add = |name: &str, machine: &Machine, has_host: bool| {
            let hpus = if machine.nic.runs_handlers() { machine.accelerator.hpus() } else { 0 };
            let process = trace.process(name);
            rows.push(Rows {
                cpu: has_host.then(|| trace.track(process, "CPU")),
                nic_in: trace.track(process, "NIC in"),
                nic_out: trace.track(process, "NIC out"),
                dma: has_host.then(|| trace.track(process, "DMA")),
                hpus: (0..hpus).map(|hpu| trace.track(process, &format!("HPU {hpu}"))).collect(),
            });
        };
        if is_on {
            for rank in 0..ranks {
                let name = names.get(rank).cloned().unwrap_or_else(|| format!("rank {rank}"));
                add(&name, machine, true);
            }
            switches.iter().for_each(|switch| add(switch, of_switch, false));
        }
        Timeline { trace, rows, links: HashMap::new(), network: None, flows: HashMap::new() }
    }

    /// Returns true if the timeline is recorded.
    pub fn is_on(&self) -> bool {
        self.trace.is_on()
    }

    /// Adds work of a rank's CPU, with its packet, if any.
    pub fn cpu(&mut self, rank: usize, start: Time, end: Time, name: &str, packet: Option<PacketId>) {
        if self.is_on() && end > start {
            self.slice(rank, Slice { track: Track::Cpu, start, end, name, packet, bytes: None });
        }
    }

    /// Returns the number of a packet's arrows.
    fn flow(&mut self, packet: PacketId) -> u64 {
        let next = self.flows.len() as u64 + 1;
        *self.flows.entry((packet.message, packet.offset)).or_insert(next)
    }

    /// Adds a slice of a rank. Arrows connect a packet's slices: from the CPU that posts its message, or its fetch,
    /// over departure and arrival to its handlers or its deposit.
    pub fn slice(&mut self, rank: usize, slice: Slice<'_>) {
        let Some(rows) = self.rows.get(rank) else { return };
        let track = match slice.track {
            Track::Cpu => rows.cpu,
            Track::NicIn => Some(rows.nic_in),
            Track::NicOut => Some(rows.nic_out),
            Track::Dma => rows.dma,
            Track::Hpu { hpu, .. } => rows.hpus.get(hpu as usize).copied(),
        };
        let Some(track) = track else { return };
        let mut args = Vec::new();
        if let Some(packet) = slice.packet {
            // The number shown to users: sender and its count.
            args.push(("sender", Value::Uint(packet.message >> 40)));
            args.push(("message", Value::Uint(packet.message & ((1 << 40) - 1))));
            args.push(("offset", Value::Uint(packet.offset)));
        }
        if let Some(bytes) = slice.bytes {
            args.push(("bytes", Value::Uint(bytes)));
        }
        let flow = slice.packet.map(|packet| self.flow(packet));
        let extras = SliceExtras { flow_in: flow, flow_out: flow, args: &args };
        self.trace.slice(track, slice.name, slice.start, slice.end, extras);
    }

    /// Adds a packet on a link of the network; `name` is the link's.
    pub fn link(&mut self, link: u32, name: impl Fn() -> String, slice: LinkSlice) {
        let LinkSlice { start, end, from, to, bytes } = slice;
        let Timeline { trace, links, network, .. } = self;
        let track = *links.entry(link).or_insert_with(|| {
            let process = *network.get_or_insert_with(|| trace.process("network"));
            trace.track(process, &name())
        });
        let args = [("bytes", Value::Uint(bytes.into()))];
        let extras = SliceExtras { flow_in: None, flow_out: None, args: &args };
        trace.slice(track, &format!("{from} to {to}"), start, end, extras);
    }

    /// Writes the trace.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn finish(self) -> std::io::Result<()> {
        self.trace.finish()
    }
}
