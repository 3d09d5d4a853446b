//! The timeline of a run: a process for each rank, rows for its CPU, its card's ports, DMA engine and HPUs.

use machine::{Machine, NicKind};
use nic::{Slice, Track};
use sim::Time;
use sim::trace::{SliceExtras, Trace, TrackId, Value};

/// Where slices go; nothing happens when no trace was asked for.
pub struct Timeline {
    trace: Trace,
    rows: Vec<Rows>,
}

struct Rows {
    cpu: TrackId,
    nic_in: TrackId,
    nic_out: TrackId,
    dma: TrackId,
    hpus: Vec<TrackId>,
}

impl Timeline {
    pub fn new(mut trace: Trace, ranks: usize, machine: &Machine) -> Timeline {
        let hpus = if machine.nic.kind == NicKind::Spin { machine.hpu.count } else { 0 };
        let mut rows = Vec::new();
        for rank in 0..if trace.is_on() { ranks } else { 0 } {
            let process = trace.process(&format!("rank {rank}"));
            rows.push(Rows {
                cpu: trace.track(process, "CPU"),
                nic_in: trace.track(process, "NIC in"),
                nic_out: trace.track(process, "NIC out"),
                dma: trace.track(process, "DMA"),
                hpus: (0..hpus).map(|hpu| trace.track(process, &format!("HPU {hpu}"))).collect(),
            });
        }
        Timeline { trace, rows }
    }

    pub fn is_on(&self) -> bool {
        self.trace.is_on()
    }

    /// Work of a rank's CPU.
    pub fn cpu(&mut self, rank: usize, start: Time, end: Time, name: &str) {
        if self.is_on() && end > start {
            self.slice(rank, Slice { track: Track::Cpu, start, end, name, message: None, bytes: None });
        }
    }

    /// A slice of a rank. An arrow leads from a message's departure over its arrival to the handlers and transfers that
    /// it causes.
    pub fn slice(&mut self, rank: usize, slice: Slice<'_>) {
        let Some(rows) = self.rows.get(rank) else { return };
        let track = match slice.track {
            Track::Cpu => rows.cpu,
            Track::NicIn => rows.nic_in,
            Track::NicOut => rows.nic_out,
            Track::Dma => rows.dma,
            Track::Hpu(hpu) => rows.hpus[hpu as usize],
        };
        let mut args = Vec::new();
        if let Some(message) = slice.message {
            // The number that people see: sender and its count.
            args.push(("sender", Value::Uint(message >> 40)));
            args.push(("message", Value::Uint(message & ((1 << 40) - 1))));
        }
        if let Some(bytes) = slice.bytes {
            args.push(("bytes", Value::Uint(bytes)));
        }
        let flow_out = slice.message.filter(|_| slice.track == Track::NicOut || slice.track == Track::NicIn);
        let flow_in = slice.message.filter(|_| slice.track != Track::NicOut);
        let extras = SliceExtras { flow_in, flow_out, args: &args };
        self.trace.slice(track, slice.name, slice.start, slice.end, extras);
    }

    pub fn finish(self) -> std::io::Result<()> {
        self.trace.finish()
    }
}
