// SPDX-License-Identifier: Apache-2.0
//! Timeline of a run, for Perfetto: the NIC, the packet scheduler, and for each cluster its DMA engine, HPUs and
//! commands, with arrows from each packet through its handlers to their commands.

use std::io;
use std::path::Path;

use machine::Pspin as Config;
use pspin_unit::Cycle;
use pspin_unit::command::Command;
use pspin_unit::her::{HpuId, Task, TaskOutcome};
use pspin_unit::observe::Noted;
use sim::Clock;
use sim::trace::{CounterId, SliceExtras, Trace, TrackId, Value};

use crate::inbound::Done;
use crate::report;

/// Rows of a cluster.
struct Rows {
    tasks: CounterId,
    dma: TrackId,
    hpus: Vec<TrackId>,
    commands: Vec<TrackId>,
    /// Number of tasks in the cluster.
    count: i64,
}

/// Task under way in a cluster slot.
#[derive(Clone, Copy, Default)]
struct Under {
    start: Cycle,
    /// Number of its packet's arrow.
    arrow: u64,
    /// Bytes to copy.
    bytes: u32,
}

/// Command in flight.
#[derive(Clone, Copy, Default)]
struct Issued {
    start: Cycle,
    arrow: u64,
    name: &'static str,
    bytes: u32,
}

/// Timeline writer.
pub struct Timeline {
    trace: Trace,
    clock: Clock,
    /// Bytes that the inbound engine writes per cycle.
    beat: u32,
    names: Box<dyn Fn(u32) -> String>,
    inbound: TrackId,
    dispatcher: TrackId,
    queued: CounterId,
    inside: CounterId,
    rows: Vec<Rows>,
    /// Requests in the message queues, and all requests without feedback.
    counts: [i64; 2],
    /// Number of the last arrow.
    last_arrow: u64,
    /// Arrow of each packet by NIC number, and whether the packet is in a message queue.
    arrows: Vec<(u64, bool)>,
    copies: Vec<Vec<Under>>,
    handlers: Vec<Vec<Under>>,
    issued: Vec<Vec<[Issued; 8]>>,
}

impl Timeline {
    /// Creates the timeline of a unit and its file; `names` returns the name of a handler by its address.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn to_file(
        path: &Path,
        config: &Config,
        clock: Clock,
        names: impl Fn(u32) -> String + 'static,
    ) -> io::Result<Timeline> {
        let mut trace = Trace::to_file(path)?;
        let nic = trace.process("NIC");
        let inbound = trace.track(nic, "inbound");
        let inside = trace.counter_track(nic, "packets in the unit", "packets");
        let scheduler = trace.process("packet scheduler");
        let queued = trace.counter_track(scheduler, "message queues", "requests");
        let dispatcher = trace.track(scheduler, "dispatcher");
        let (clusters, hpus) = (config.units.clusters as usize, config.units.hpus as usize);
        let rows = (0..clusters).map(|cluster| {
            let process = trace.process(&format!("cluster {cluster}"));
            let tasks = trace.counter_track(process, "tasks", "tasks");
            let dma = trace.track(process, "DMA");
            let (mut runs, mut commands) = (Vec::new(), Vec::new());
            for hpu in 0..hpus {
                runs.push(trace.track(process, &format!("HPU {hpu}")));
                commands.push(trace.track(process, &format!("HPU {hpu} commands")));
            }
            Rows { tasks, dma, hpus: runs, commands, count: 0 }
        });
        let rows = rows.collect();
        Ok(Timeline {
            trace,
            clock,
            beat: config.nhi.width_bits / 8,
            names: Box::new(names),
            inbound,
            dispatcher,
            queued,
            inside,
            rows,
            counts: [0; 2],
            last_arrow: 0,
            arrows: Vec::new(),
            copies: vec![Vec::new(); clusters],
            handlers: vec![vec![Under::default(); hpus]; clusters],
            issued: vec![vec![Default::default(); hpus]; clusters],
        })
    }

    fn slice(&mut self, row: TrackId, name: &str, from: Cycle, to: Cycle, extras: SliceExtras<'_>) {
        let [from, to] = [from, to.max(from)].map(|cycle| self.clock.time(cycle.0));
        self.trace.slice(row, name, from, to, extras);
    }

    fn count(&mut self, row: CounterId, at: Cycle, value: i64) {
        self.trace.counter(row, self.clock.time(at.0), value);
    }

    /// Draws the write of a packet into L2.
    pub fn packet(&mut self, done: &Done) {
        let beats = done.bytes.div_ceil(self.beat);
        let args = [("bytes", Value::Uint(done.bytes.into())), ("number", Value::Uint(done.user))];
        let extras = SliceExtras { args: &args, ..SliceExtras::default() };
        let begin = Cycle(done.written.0.saturating_sub(beats.into()));
        self.slice(self.inbound, "packet to L2", begin, done.written, extras);
    }

    fn arrow(&self, task: &Task) -> u64 {
        self.arrows.get(task.her.user as usize).map_or(0, |(arrow, _)| *arrow)
    }

    /// Records that a packet leaves its message queue.
    fn leaves_queue(&mut self, at: Cycle, number: u64) {
        if let Some((_, waits)) = self.arrows.get_mut(number as usize)
            && std::mem::take(waits)
        {
            self.counts[0] -= 1;
            self.count(self.queued, at, self.counts[0]);
        }
    }

    /// Returns the name of a task's handler.
    fn name(&self, task: &Task) -> String {
        task.her.context.entry(task.role).map_or_else(String::new, &self.names)
    }

    /// Draws an event of the unit.
    pub fn note(&mut self, at: Cycle, what: &Noted<'_>) {
        match *what {
            Noted::HerAccepted(her) => {
                let index = her.user as usize;
                if self.arrows.len() <= index {
                    self.arrows.resize(index + 1, (0, false));
                }
                self.last_arrow += 1;
                self.arrows[index] = (self.last_arrow, true);
                self.counts = self.counts.map(|count| count + 1);
                self.count(self.queued, at, self.counts[0]);
                self.count(self.inside, at, self.counts[1]);
            }
            Noted::TaskSent { cluster, place, task } => self.sent(at, cluster, place, task),
            Noted::DmaDone { cluster, place } => {
                let Under { start, arrow, bytes } = self.copies[usize::from(cluster)][usize::from(place)];
                let args = [("bytes", Value::Uint(bytes.into()))];
                let extras = SliceExtras { flow_in: Some(arrow), flow_out: Some(arrow), args: &args };
                self.slice(self.rows[usize::from(cluster)].dma, "packet to L1", start, at, extras);
            }
            Noted::Start { hpu, task } => {
                let arrow = self.arrow(task);
                let (cluster, hpu) = place_of(hpu);
                self.handlers[cluster][hpu] = Under { start: at, arrow, bytes: task.her.packet.size };
            }
            Noted::End { hpu, task, outcome } => self.ended(at, hpu, task, outcome),
            Noted::Command { hpu, slot, command, .. } => {
                let (name, bytes) = describe(command);
                let (cluster, hpu) = place_of(hpu);
                let arrow = self.handlers[cluster][hpu].arrow;
                let slots = &mut self.issued[cluster][hpu];
                slots[usize::from(slot) % slots.len()] = Issued { start: at, arrow, name, bytes };
            }
            Noted::Response { hpu, slot } => {
                let (cluster, hpu) = place_of(hpu);
                let slots = &self.issued[cluster][hpu];
                let Issued { start, arrow, name, bytes } = slots[usize::from(slot) % slots.len()];
                let args = [("bytes", Value::Uint(bytes.into()))];
                let extras = SliceExtras { flow_in: Some(arrow), flow_out: Some(arrow), args: &args };
                self.slice(self.rows[cluster].commands[hpu], name, start, at, extras);
            }
            Noted::Feedback(feedback) => {
                self.leaves_queue(at, feedback.user);
                self.counts[1] -= 1;
                self.count(self.inside, at, self.counts[1]);
            }
            Noted::DmaStart { .. }
            | Noted::Assigned { .. }
            | Noted::Conflict { .. }
            | Noted::Miss { .. }
            | Noted::Held { .. }
            | Noted::Printed { .. }
            | Noted::Idle { .. } => {}
        }
    }

    /// Draws the arrival of a task at a cluster.
    fn sent(&mut self, at: Cycle, cluster: u16, place: u8, task: &Task) {
        let arrow = self.arrow(task);
        let copies = &mut self.copies[usize::from(cluster)];
        if copies.len() <= usize::from(place) {
            copies.resize(usize::from(place) + 1, Under::default());
        }
        copies[usize::from(place)] = Under { start: at, arrow, bytes: task.her.transfer };
        let name = self.name(task);
        let args = [
            ("message", Value::Uint(task.her.message.into())),
            ("cluster", Value::Uint(cluster.into())),
            ("bytes", Value::Uint(task.her.packet.size.into())),
        ];
        let extras = SliceExtras { flow_out: Some(arrow), args: &args, ..SliceExtras::default() };
        self.slice(self.dispatcher, &name, Cycle(at.0.saturating_sub(1)), at, extras);
        self.leaves_queue(at, task.her.user);
        let rows = &mut self.rows[usize::from(cluster)];
        rows.count += 1;
        let (row, count) = (rows.tasks, rows.count);
        self.count(row, at, count);
    }

    /// Draws the end of a handler.
    fn ended(&mut self, at: Cycle, hpu: HpuId, task: &Task, outcome: TaskOutcome) {
        let (cluster, hpu) = place_of(hpu);
        let Under { start, arrow, bytes } = self.handlers[cluster][hpu];
        let (name, outcome) = (self.name(task), report::outcome(outcome));
        let args = [
            ("message", Value::Uint(task.her.message.into())),
            ("packet bytes", Value::Uint(bytes.into())),
            ("outcome", Value::Text(&outcome)),
        ];
        let extras = SliceExtras { flow_in: Some(arrow), flow_out: Some(arrow), args: &args };
        self.slice(self.rows[cluster].hpus[hpu], &name, start, at, extras);
        let rows = &mut self.rows[cluster];
        rows.count -= 1;
        let (row, count) = (rows.tasks, rows.count);
        self.count(row, at, count);
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When the file cannot be written; no new file exists then.
    pub fn finish(self) -> io::Result<()> {
        self.trace.finish()
    }
}

fn place_of(hpu: HpuId) -> (usize, usize) {
    (hpu.cluster.into(), hpu.hpu.into())
}

/// Returns the name of a command, and the bytes that it transfers.
fn describe(command: &Command) -> (&'static str, u32) {
    match command {
        Command::Send { data, .. } => ("send", data.size),
        Command::ToHost { data, .. } => ("to host", data.size),
        Command::FromHost { data, .. } => ("from host", data.size),
        Command::HostDirect { size, .. } => ("host direct write", (*size).into()),
        Command::HostDirectRead { size, .. } => ("host direct read", (*size).into()),
        Command::Card { data, .. } => ("command of the card", data.map_or(0, |data| data.size)),
    }
}
