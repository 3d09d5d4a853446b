// SPDX-License-Identifier: Apache-2.0
//! `--trace`: a timeline of the CPUs and NICs of the ranks, for Perfetto.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use goal::packet::{self, Phase, Window};
use goal::{Action, Schedule, loggops};
use sim::Time;
use sim::trace::{CounterId, ProcessId, SliceExtras, Trace, TrackId};

use command::units::parse_ns;

#[derive(Debug, clap::Args)]
#[group(id = "timeline")]
#[command(next_help_heading = "Timeline")]
pub struct Arguments {
    /// Write a timeline for Perfetto: CPUs and NICs of each rank, arrows from send to receive
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Leave out what ends before this time [default: 0]
    #[arg(long, value_name = "NS", value_parser = parse_ns, requires = "trace")]
    trace_from: Option<Time>,
    /// Leave out what starts after this time
    #[arg(long, value_name = "NS", value_parser = parse_ns, requires = "trace")]
    trace_to: Option<Time>,
    /// Show only these ranks: A-B, or A
    #[arg(long, value_name = "A-B", value_parser = parse_ranks, requires = "trace")]
    trace_ranks: Option<(u32, u32)>,
}

fn parse_ranks(text: &str) -> Result<(u32, u32), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => Err("is like 0-15".into()),
    }
}

/// Rows of a rank in the timeline: one for each CPU, and `N` for each NIC.
struct Rows<N> {
    cpus: Vec<TrackId>,
    nics: Vec<N>,
}

impl<N> Rows<N> {
    fn of_all(
        trace: &mut Trace,
        schedule: &Schedule,
        ranks: RangeInclusive<u32>,
        of_nic: impl Fn(&mut Trace, ProcessId, usize) -> N,
    ) -> BTreeMap<u32, Rows<N>> {
        let rows = ranks.map(|rank| {
            let process = trace.process(&format!("rank {rank}"));
            let cpus = (0..schedule.cpus()).map(|cpu| trace.track(process, &format!("CPU {cpu}"))).collect();
            (rank, Rows { cpus, nics: (0..schedule.nics()).map(|nic| of_nic(trace, process, nic)).collect() })
        });
        rows.collect()
    }
}

impl Arguments {
    /// Returns the file to write, if any.
    pub fn file(&self) -> Option<&Path> {
        self.trace.as_deref()
    }

    /// Returns the part of the run to show.
    pub fn window(&self, schedule: &Schedule) -> Window {
        let (from, to) = (self.trace_from.unwrap_or(Time::ZERO), self.trace_to.unwrap_or(Time::MAX));
        Window { ranks: self.ranks(schedule), from, to }
    }

    fn ranks(&self, schedule: &Schedule) -> RangeInclusive<u32> {
        let (first, last) = self.trace_ranks.unwrap_or((0, u32::MAX));
        first..=last.min(schedule.ranks() - 1)
    }

    /// Writes the file of a run in the LogGOPS model.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&self, mut trace: Trace, schedule: &Schedule, outcome: &loggops::Outcome) -> io::Result<()> {
        let Window { from, to, .. } = self.window(schedule);
        let rows = Rows::of_all(&mut trace, schedule, self.ranks(schedule), |trace, process, nic| {
            ["out", "in"].map(|side| trace.track(process, &format!("NIC {nic} {side}")))
        });
        for span in &outcome.details.spans {
            let Some(rows) = rows.get(&span.rank) else { continue };
            if span.start > to || span.cpu_end.max(span.nic_end) < from {
                continue;
            }
            let (cpu, nic) = schedule.resources(span.op);
            let action = schedule.action(span.op);
            let is_calc = matches!(action, Action::Calc(_));
            let action = action.to_string();
            let name =
                if span.is_message { format!("receive from {}: {action}", schedule.rank(span.op)) } else { action };
            let flow = (!is_calc).then_some(u64::from(span.op) + 1);
            let (flow_in, flow_out) = if span.is_message { (flow, None) } else { (None, flow) };
            let extras = SliceExtras { flow_in, flow_out, args: &[] };
            trace.slice(rows.cpus[cpu], &name, span.start, span.cpu_end, extras);
            if !is_calc {
                let side = usize::from(span.is_message);
                trace.slice(rows.nics[nic][side], &name, span.start, span.nic_end, SliceExtras::default());
            }
        }
        trace.finish()
    }

    /// Writes the file of a run over packets: the tasks of CPUs, messages in flight, arrows from each message to the
    /// next of the same send, and for each NIC the number of bytes in flight.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write_packets(
        &self,
        mut trace: Trace,
        schedule: &Schedule,
        eager: u64,
        spans: &[packet::Span],
    ) -> io::Result<()> {
        let mut rows = Rows::of_all(&mut trace, schedule, self.ranks(schedule), |trace, process, nic| {
            let messages = trace.track(process, &format!("NIC {nic}"));
            let bytes = trace.counter_track(process, &format!("NIC {nic} on the way"), "bytes");
            OnTheWay { messages, bytes, changes: Vec::new() }
        });
        for span in spans {
            let Some(rows) = rows.get_mut(&span.rank) else { continue };
            let (cpu, nic) = schedule.resources(span.op);
            let (action, sender) = (schedule.action(span.op), schedule.rank(span.op));
            let (bytes, is_send) = if let Action::Send { bytes, .. } = action { (bytes, true) } else { (0, false) };
            let carries_data = span.phase == Phase::Data || bytes <= eager;
            let what = match span.phase {
                Phase::Operation => "",
                Phase::Message if carries_data => "message: ",
                Phase::Message => "request: ",
                Phase::Data => "data: ",
                Phase::Clear => "clear to send: ",
            };
            let is_first = span.phase == Phase::Operation;
            let is_received = !is_first && !span.is_on_its_way;
            let from = if is_received { format!("from {sender}, ") } else { String::new() };
            // Arrows lead from the send over its messages to the CPU that receives the data.
            let flow = is_send.then_some(u64::from(span.op) + 1);
            let flow_in = flow.filter(|_| !is_first);
            let flow_out = flow.filter(|_| !(is_received && carries_data));
            let extras = SliceExtras { flow_in, flow_out, args: &[] };
            let row = if span.is_on_its_way { rows.nics[nic].messages } else { rows.cpus[cpu] };
            trace.slice(row, &format!("{from}{what}{action}"), span.start, span.end, extras);
            if span.is_on_its_way && carries_data {
                rows.nics[nic].changes.extend([(span.start, bytes, true), (span.end, bytes, false)]);
            }
        }
        rows.into_values().flat_map(|rows| rows.nics).for_each(|nic| nic.count(&mut trace));
        trace.finish()
    }
}

/// Messages of a NIC in flight.
struct OnTheWay {
    messages: TrackId,
    bytes: CounterId,
    /// Times and numbers of bytes, added (true) or removed (false).
    changes: Vec<(Time, u64, bool)>,
}

impl OnTheWay {
    fn count(mut self, trace: &mut Trace) {
        self.changes.sort_unstable();
        let mut bytes = 0u64;
        for of_one_time in self.changes.chunk_by(|one, other| one.0 == other.0) {
            for &(_, more, is_more) in of_one_time {
                bytes = if is_more { bytes.wrapping_add(more) } else { bytes.wrapping_sub(more) };
            }
            trace.counter(self.bytes, of_one_time[0].0, i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }
}
