// SPDX-License-Identifier: Apache-2.0
//! Writes recorded events as the packets of a Perfetto trace.

use std::io::{self, Write};

use prost::Message;

use super::order::{Lane, Step, order};
use super::proto::{
    AnnotationValue, CLEARED, CounterDescriptor, Data, DebugAnnotation, EXPLICIT, InternedData, InternedText,
    NEEDS_STATE, ProcessDescriptor, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent, Type,
};
use super::record::{Event, Recorder, Stored, Texts};
use crate::Time;

/// Sequence of all packets.
const SEQUENCE: u32 = 1;

pub(super) fn write(mut recorder: Recorder) -> io::Result<()> {
    let (lanes, steps) = order(&recorder.events, recorder.tracks.len());
    let start_ps = recorder.texts.number("start_ps");
    let dur_ps = recorder.texts.number("dur_ps");
    recorder.samples.sort_by_key(|sample| (sample.at, sample.counter));

    let uuids = Uuids { processes: recorder.processes.len() as u64, lanes: lanes.len() as u64 };
    let mut writer = Writer::new(recorder.texts, recorder.output);
    writer.descriptor(TrackDescriptor {
        uuid: Some(0),
        process_ordering: Some(EXPLICIT),
        thread_ordering: Some(EXPLICIT),
        ..TrackDescriptor::default()
    })?;
    for (number, name) in (0u32..).zip(&recorder.processes) {
        writer.descriptor(TrackDescriptor {
            uuid: Some(uuids.process(number)),
            process: Some(ProcessDescriptor { pid: Some(pid(number)), process_name: Some(name.clone()) }),
            sibling_order_rank: Some(number as i32),
            ..TrackDescriptor::default()
        })?;
    }
    for (number, &Lane { track, number: lane }) in (0u32..).zip(&lanes) {
        let track = &recorder.tracks[track as usize];
        let name = if lane == 0 { track.name.clone() } else { format!("{} {}", track.name, lane + 1) };
        writer.descriptor(TrackDescriptor {
            uuid: Some(uuids.lane(number)),
            parent_uuid: Some(uuids.process(track.process)),
            thread: Some(ThreadDescriptor {
                pid: Some(pid(track.process)),
                // Perfetto shows a thread whose number equals its process's as the main thread.
                tid: Some(i64::from(number) + recorder.processes.len() as i64 + 1),
                thread_name: Some(name),
            }),
            sibling_order_rank: Some(number as i32),
            ..TrackDescriptor::default()
        })?;
    }
    for (number, counter) in (0u32..).zip(&recorder.counters) {
        writer.descriptor(TrackDescriptor {
            uuid: Some(uuids.counter(number)),
            parent_uuid: Some(uuids.process(counter.track.process)),
            name: Some(counter.track.name.clone()),
            counter: Some(CounterDescriptor { unit_name: Some(counter.unit.clone()) }),
            sibling_order_rank: Some(number as i32),
            ..TrackDescriptor::default()
        })?;
    }

    let mut samples = recorder.samples.iter().peekable();
    for Step { at, lane, event, end } in steps {
        while let Some(sample) = samples.next_if(|sample| sample.at <= at) {
            writer.counter(uuids.counter(sample.counter), sample.at, sample.value)?;
        }
        let Event { name, start, end: ends, flows: (flow_in, flow_out), args: (first, count), .. } =
            recorder.events[event as usize];
        let track_uuid = Some(uuids.lane(lane));
        if end {
            let r#type = Some(Type::SliceEnd.into());
            writer.event(at, TrackEvent { r#type, track_uuid, ..TrackEvent::default() })?;
            continue;
        }
        let (mut flow_ids, mut terminating_flow_ids) = (Vec::new(), Vec::new());
        writer.annotate(start_ps, Stored::Uint(start.as_ps()));
        writer.annotate(dur_ps, Stored::Uint(ends.saturating_sub(start).as_ps()));
        terminating_flow_ids.extend(flow_in.filter(|_| flow_in != flow_out));
        flow_ids.extend(flow_out);
        for &(name, value) in &recorder.args[first..first + count] {
            writer.annotate(name, value);
        }
        let (name_iid, r#type) = (Some(writer.event_name(name)), Some(Type::SliceBegin.into()));
        let debug_annotations = std::mem::take(&mut writer.annotations);
        let event = TrackEvent {
            debug_annotations,
            r#type,
            name_iid,
            track_uuid,
            flow_ids,
            terminating_flow_ids,
            ..TrackEvent::default()
        };
        writer.event(at, event)?;
    }
    for sample in samples {
        writer.counter(uuids.counter(sample.counter), sample.at, sample.value)?;
    }
    writer.output.finish()
}

/// Returns the process id in the file; Perfetto shows 0 as the idle process.
fn pid(process: u32) -> i32 {
    process as i32 + 1
}

/// Numbers of all tracks of the file: 0 is the root; processes, lanes and counters follow.
struct Uuids {
    processes: u64,
    lanes: u64,
}

impl Uuids {
    fn process(&self, number: u32) -> u64 {
        1 + u64::from(number)
    }

    fn lane(&self, number: u32) -> u64 {
        1 + self.processes + u64::from(number)
    }

    fn counter(&self, number: u32) -> u64 {
        1 + self.processes + self.lanes + u64::from(number)
    }
}

struct Writer<W> {
    texts: Texts,
    output: W,
    buffer: Vec<u8>,
    started: bool,
    /// Texts that the next packet must introduce.
    interned: InternedData,
    /// Arguments of the event under construction.
    annotations: Vec<DebugAnnotation>,
    /// For each text, true if it was introduced: as an event name, as an annotation name, as a value.
    known: [Vec<bool>; 3],
}

impl<W: Write> Writer<W> {
    fn new(texts: Texts, output: W) -> Writer<W> {
        let known = [(); 3].map(|()| vec![false; texts.texts.len()]);
        let (buffer, annotations) = (Vec::new(), Vec::new());
        Writer { texts, output, buffer, started: false, interned: InternedData::default(), annotations, known }
    }

    fn event_name(&mut self, text: u32) -> u64 {
        let [known, ..] = &mut self.known;
        intern(&self.texts, known, &mut self.interned.event_names, text)
    }

    fn annotate(&mut self, name: u32, value: Stored) {
        let [_, names, values] = &mut self.known;
        let value = match value {
            Stored::Uint(value) => AnnotationValue::Uint(value),
            Stored::Text(text) => {
                let introduced = &mut self.interned.debug_annotation_string_values;
                AnnotationValue::StringIid(intern(&self.texts, values, introduced, text))
            }
        };
        let name_iid = intern(&self.texts, names, &mut self.interned.debug_annotation_names, name);
        self.annotations.push(DebugAnnotation { name_iid: Some(name_iid), value: Some(value) });
    }

    fn descriptor(&mut self, descriptor: TrackDescriptor) -> io::Result<()> {
        self.packet(None, Data::TrackDescriptor(descriptor))
    }

    fn event(&mut self, at: Time, event: TrackEvent) -> io::Result<()> {
        self.packet(Some(at), Data::TrackEvent(event))
    }

    fn counter(&mut self, track: u64, at: Time, value: i64) -> io::Result<()> {
        let r#type = Some(Type::Counter.into());
        let (track_uuid, counter_value) = (Some(track), Some(value));
        self.event(at, TrackEvent { r#type, track_uuid, counter_value, ..TrackEvent::default() })
    }

    fn packet(&mut self, at: Option<Time>, data: Data) -> io::Result<()> {
        let interned = std::mem::take(&mut self.interned);
        let packet = TracePacket {
            timestamp: at.map(nearest_ns),
            trusted_packet_sequence_id: Some(SEQUENCE),
            interned_data: (interned != InternedData::default()).then_some(interned),
            sequence_flags: Some(if self.started { NEEDS_STATE } else { CLEARED }),
            data: Some(data),
        };
        self.started = true;
        self.buffer.clear();
        // A file is one `Trace` message; this is the key of its field `packet`.
        prost::encoding::encode_key(1, prost::encoding::WireType::LengthDelimited, &mut self.buffer);
        packet.encode_length_delimited(&mut self.buffer).expect("a Vec grows");
        self.output.write_all(&self.buffer)
    }
}

fn intern(texts: &Texts, known: &mut [bool], introduced: &mut Vec<InternedText>, text: u32) -> u64 {
    let iid = u64::from(text) + 1;
    if !std::mem::replace(&mut known[text as usize], true) {
        let text = texts.texts[text as usize].to_string();
        introduced.push(InternedText { iid: Some(iid), text: Some(text) });
    }
    iid
}

/// Rounds to the nearest nanosecond; the rounding is monotonic.
fn nearest_ns(at: Time) -> u64 {
    (at.as_ps() / 1000) + u64::from(at.as_ps() % 1000 >= 500)
}
