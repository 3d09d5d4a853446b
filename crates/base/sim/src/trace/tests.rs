// SPDX-License-Identifier: Apache-2.0
//! Tests of timelines: decode the written file and compare its rows and events.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use prost::Message;

use super::proto::{
    AnnotationValue, CLEARED, Data, EXPLICIT, NEEDS_STATE, TracePacket, TrackDescriptor, TrackEvent, Type,
};
use super::*;

/// trace.proto
#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

/// Returns the bytes of the trace that `make` records.
fn record(make: impl FnOnce(&mut Trace)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.perfetto-trace");
    let mut trace = Trace::to_file(&path).unwrap();
    make(&mut trace);
    assert!(!path.exists());
    trace.finish().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    fs::read(path).unwrap()
}

/// A decoded file: rows and their events.
#[derive(Default)]
struct Picture {
    descriptors: BTreeMap<u64, TrackDescriptor>,
    names: BTreeMap<u64, String>,
    keys: BTreeMap<u64, String>,
    values: BTreeMap<u64, String>,
    events: Vec<(u64, TrackEvent)>,
}

impl Picture {
    fn read(bytes: &[u8]) -> Picture {
        let mut picture = Picture::default();
        for (number, packet) in File::decode(bytes).unwrap().packet.into_iter().enumerate() {
            assert_eq!(packet.trusted_packet_sequence_id, Some(1));
            assert_eq!(packet.sequence_flags, Some(if number == 0 { CLEARED } else { NEEDS_STATE }));
            let interned = packet.interned_data.unwrap_or_default();
            for (into, from) in [
                (&mut picture.names, interned.event_names),
                (&mut picture.keys, interned.debug_annotation_names),
                (&mut picture.values, interned.debug_annotation_string_values),
            ] {
                for entry in from {
                    assert_eq!(into.insert(entry.iid.unwrap(), entry.text.unwrap()), None, "introduced once");
                }
            }
            match packet.data.unwrap() {
                Data::TrackDescriptor(track) => {
                    assert!(picture.events.is_empty());
                    assert_eq!(picture.descriptors.insert(track.uuid.unwrap(), track), None);
                }
                Data::TrackEvent(event) => picture.events.push((packet.timestamp.unwrap(), event)),
            }
        }
        picture
    }

    fn row(&self, uuid: u64) -> String {
        let track = &self.descriptors[&uuid];
        let thread = track.thread.as_ref().and_then(|thread| thread.thread_name.clone());
        let process = track.process.as_ref().and_then(|process| process.process_name.clone());
        thread.or(process).or(track.name.clone()).unwrap()
    }

    /// Returns one line for each event: `ns row: name`.
    fn lines(&self) -> Vec<String> {
        let line = |(ns, event): &(u64, TrackEvent)| {
            let row = self.row(event.track_uuid.unwrap());
            let mut line = match event.r#type() {
                Type::SliceBegin => format!("{ns} {row}: begin {}", self.names[&event.name_iid.unwrap()]),
                Type::SliceEnd => format!("{ns} {row}: end"),
                Type::Counter => format!("{ns} {row}: = {}", event.counter_value.unwrap()),
                Type::Unspecified => unreachable!(),
            };
            for annotation in &event.debug_annotations {
                let value = match annotation.value.unwrap() {
                    AnnotationValue::Uint(value) => value.to_string(),
                    AnnotationValue::StringIid(iid) => self.values[&iid].clone(),
                };
                line += &format!(" {}={value}", self.keys[&annotation.name_iid.unwrap()]);
            }
            event.flow_ids.iter().for_each(|flow| line += &format!(" flow {flow}"));
            event.terminating_flow_ids.iter().for_each(|flow| line += &format!(" flow end {flow}"));
            line
        };
        self.events.iter().map(line).collect()
    }
}

fn ps(ps: u64) -> Time {
    Time::from_ps(ps)
}

fn ping(trace: &mut Trace) {
    let ranks = [trace.process("rank 0"), trace.process("rank 1")];
    let cpu = trace.track(ranks[0], "CPU");
    let nic = trace.track(ranks[1], "NIC in");
    let waiting = trace.counter_track(ranks[1], "packets waiting", "packets");
    let out = SliceExtras { flow_out: Some(7), ..SliceExtras::default() };
    let args = [("bytes", Value::Uint(8)), ("from", Value::Text("rank 0")), ("at", Value::Uint(16))];
    let through = SliceExtras { flow_in: Some(7), flow_out: Some(7), args: &args };
    let into = SliceExtras { flow_in: Some(7), ..SliceExtras::default() };
    // Recorded in reverse order.
    trace.slice(nic, "deliver", ps(200_000), ps(200_400), into);
    trace.counter(waiting, ps(200_400), 0);
    trace.counter(waiting, ps(181_800), 1);
    trace.slice(nic, "put", ps(181_800), ps(190_499), through);
    trace.slice(cpu, "PtlPut", ps(0), ps(65_000), out);
}

#[test]
fn a_file_says_what_was_recorded() {
    let bytes = record(ping);
    let picture = Picture::read(&bytes);
    assert_eq!(
        picture.lines(),
        [
            "0 CPU: begin PtlPut start_ps=0 dur_ps=65000 flow 7",
            "65 CPU: end",
            "182 packets waiting: = 1",
            "182 NIC in: begin put start_ps=181800 dur_ps=8699 bytes=8 from=rank 0 at=16 flow 7",
            "190 NIC in: end",
            "200 NIC in: begin deliver start_ps=200000 dur_ps=400 flow end 7",
            "200 packets waiting: = 0",
            "200 NIC in: end",
        ]
    );
    assert_eq!(bytes, record(ping), "the same events give the same bytes");
}

#[test]
fn rows_belong_to_their_process_and_keep_their_order() {
    let picture = Picture::read(&record(ping));
    let root = &picture.descriptors[&0];
    assert_eq!((root.process_ordering, root.thread_ordering), (Some(EXPLICIT), Some(EXPLICIT)));
    let rows: Vec<_> = (1..=5).map(|uuid| (picture.row(uuid), picture.descriptors[&uuid].clone())).collect();
    let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["rank 0", "rank 1", "CPU", "NIC in", "packets waiting"]);
    assert_eq!(
        rows.iter().map(|(_, row)| row.parent_uuid).collect::<Vec<_>>(),
        [None, None, Some(1), Some(2), Some(2)]
    );
    assert_eq!(rows.iter().map(|(_, row)| row.sibling_order_rank.unwrap()).collect::<Vec<_>>(), [0, 1, 0, 1, 0]);
    assert_eq!(rows[1].1.process.as_ref().unwrap().pid, Some(2));
    let thread = rows[3].1.thread.as_ref().unwrap();
    assert_eq!((thread.pid, thread.tid), (Some(2), Some(4)));
    assert_eq!(rows[4].1.counter.as_ref().unwrap().unit_name.as_deref(), Some("packets"));
}

#[test]
fn overlapping_slices_get_lanes_and_contained_ones_nest() {
    let picture = Picture::read(&record(|trace| {
        let rank = trace.process("rank 0");
        let (dma, cpu) = (trace.track(rank, "DMA"), trace.track(rank, "CPU"));
        let mut slice = |track, name, start, end| {
            trace.slice(track, name, Time::from_ns(start), Time::from_ns(end), SliceExtras::default());
        };
        slice(dma, "a", 0, 50);
        slice(dma, "b", 10, 60);
        slice(dma, "c", 20, 40);
        slice(dma, "d", 55, 70);
        slice(dma, "e", 70, 70);
        slice(dma, "f", 70, 70);
        slice(cpu, "g", 0, 50);
        slice(cpu, "h", 0, 50);
    }));
    let lines: Vec<String> =
        picture.lines().iter().map(|line| line.split(" start_ps").next().unwrap().into()).collect();
    assert_eq!(
        lines,
        [
            "0 DMA: begin a",
            "0 CPU: begin h",
            "0 CPU: begin g",
            "10 DMA 2: begin b",
            "20 DMA: begin c",
            "40 DMA: end",
            "50 DMA: end",
            "50 CPU: end",
            "50 CPU: end",
            "55 DMA: begin d",
            "60 DMA 2: end",
            "70 DMA: end",
            "70 DMA: begin e",
            "70 DMA: end",
            "70 DMA: begin f",
            "70 DMA: end",
        ]
    );
    assert_eq!((2..=4).map(|uuid| picture.row(uuid)).collect::<Vec<_>>(), ["DMA", "DMA 2", "CPU"]);
}

#[test]
fn a_trace_that_is_off_records_nothing() {
    let mut trace = Trace::off();
    assert!(!trace.is_on());
    ping(&mut trace);
    trace.finish().unwrap();
}

#[test]
fn nothing_half_written_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.perfetto-trace");
    let mut trace = Trace::to_file(&path).unwrap();
    ping(&mut trace);
    drop(trace);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let mut trace = Trace::to_file(&path).unwrap();
    ping(&mut trace);
    fs::create_dir(&path).unwrap(); // The folder occupies the file's name.
    trace.finish().unwrap_err();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    assert_eq!(Trace::to_file(&folder.path().join("no/t")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(Trace::to_file(Path::new("/")).unwrap_err().kind(), io::ErrorKind::IsADirectory);
}

proptest! {
    /// Timestamps never decrease, every end closes the innermost slice of its row, and slices keep their lengths.
    #[test]
    fn any_slices_make_a_well_formed_picture(slices in prop::collection::vec((0u64..20_000, 0u64..6_000), 0..40)) {
        let picture = Picture::read(&record(|trace| {
            let rank = trace.process("rank 0");
            let track = trace.track(rank, "HPU 0");
            for (number, &(start, length)) in slices.iter().enumerate() {
                trace.slice(track, &number.to_string(), ps(start), ps(start + length), SliceExtras::default());
            }
        }));
        prop_assert!(picture.events.is_sorted_by_key(|(ns, _)| *ns));
        let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut closed = vec![false; slices.len()];
        for (ns, event) in &picture.events {
            let stack = open.entry(event.track_uuid.unwrap()).or_default();
            if event.r#type() == Type::SliceBegin {
                let number: usize = picture.names[&event.name_iid.unwrap()].parse().unwrap();
                prop_assert_eq!(*ns, (slices[number].0 + 500) / 1000);
                stack.push(number);
            } else {
                let number = stack.pop().unwrap();
                prop_assert_eq!(*ns, (slices[number].0 + slices[number].1 + 500) / 1000);
                closed[number] = true;
            }
        }
        prop_assert!(open.values().all(Vec::is_empty));
        prop_assert!(closed.into_iter().all(|closed| closed));
    }
}
