// SPDX-License-Identifier: Apache-2.0
//! Tests of the trace file reader.

use super::reader::*;
use super::*;

/// Compares with the numbers in `sdk/tracer/format.h`.
#[test]
fn kinds_are_those_of_the_tracer() {
    let header = include_str!("../../../../../sdk/tracer/format.h");
    let number = |name: &str| -> u8 {
        let start = header.find(&format!("{name} = ")).unwrap_or_else(|| panic!("no {name}")) + name.len() + 3;
        header[start..].split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    for (name, value) in [
        ("SPT_START", START),
        ("SPT_END", END),
        ("SPT_COMM", COMM),
        ("SPT_OTHER", OTHER),
        ("SPT_SEND", SEND),
        ("SPT_ISEND", ISEND),
        ("SPT_RECV", RECV),
        ("SPT_IRECV", IRECV),
        ("SPT_SENDRECV", SENDRECV),
        ("SPT_WAIT", WAIT),
        ("SPT_FREE", FREE),
        ("SPT_ISENDRECV", ISENDRECV),
        ("SPT_RMA", RMA),
        ("SPT_WIN_CREATE", WIN_CREATE),
        ("SPT_WIN_FREE", WIN_FREE),
        ("SPT_WIN_FENCE", WIN_FENCE),
        ("SPT_WIN_POST", WIN_POST),
        ("SPT_WIN_START", WIN_START),
        ("SPT_WIN_COMPLETE", WIN_COMPLETE),
        ("SPT_WIN_WAIT", WIN_WAIT),
        ("SPT_WIN_LOCK", WIN_LOCK),
        ("SPT_WIN_UNLOCK", WIN_UNLOCK),
        ("SPT_WIN_FLUSH", WIN_FLUSH),
        ("SPT_WIN_FLUSH_LOCAL", WIN_FLUSH_LOCAL),
        ("SPT_NONBLOCKING", NONBLOCKING),
    ] {
        assert_eq!(number(name), value, "{name}");
    }
    for (value, operation) in (FIRST_COLLECTIVE..).zip(Operation::ALL) {
        assert_eq!(number(&format!("SPT_{}", operation.name().to_uppercase())), value);
    }
}

/// Returns a file of one block.
fn file(records: &[&[u64]]) -> Vec<u8> {
    let mut payload = Vec::new();
    for record in records {
        for &number in *record {
            let mut rest = number;
            while rest >= 0x80 {
                payload.push(rest.to_le_bytes()[0] | 0x80);
                rest >>= 7;
            }
            payload.push(rest.to_le_bytes()[0]);
        }
    }
    let mut file = MAGIC.to_vec();
    file.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
    file.extend(payload);
    file
}

/// First records of a trace: rank 1 of 3, and MPI_COMM_WORLD.
const HEAD: [&[u64]; 2] = [&[1, 1, 3, 1, b'x' as u64], &[3, 0, 0, 1, 0, 3, 2]];
const TAIL: &[u64] = &[2, 70, 1_000_000, 900_000];

fn trace(records: &[&[u64]], resolve: bool) -> Result<RankTrace, Damage> {
    read(&file(&[&HEAD, records, &[TAIL]].concat()), resolve)
}

#[test]
fn records_become_events() {
    // An isend to 2 and an irecv from any, with a wait for both.
    let records: &[&[u64]] =
        &[&[17, 500, 2, 0, 3, 8, 64, 5], &[19, 9, 1, 0, 0, 0, 99, 6], &[21, 300, 7, 2, 20, 26, 1, 5]];
    let read = trace(records, true).unwrap();
    assert!(!read.truncated);
    assert_eq!((read.calls, read.tail_ns, read.total_ns), (3, 70, 1_000_000));
    assert_eq!(read.comms[0].local, [0, 1, 2]);
    let [send, recv, first, second] = &read.events[..] else { panic!("{:?}", read.events) };
    assert!(matches!(send.what, What::Send { comm: 0, to: 2, tag: 7, bytes: 64, blocking: false }));
    assert_eq!((send.gap_ns, send.wall_ns), (500, 2000));
    assert!(matches!(recv.what, What::Recv { from: Some(0), tag: Some(4), bytes: 99, blocking: false, .. }));
    assert!(matches!((&first.what, &second.what), (What::Wait(0), What::Wait(1))));
    assert_eq!((first.gap_ns, second.gap_ns), (300, 0));
    let kept = trace(records, false).unwrap();
    assert!(matches!(kept.events[1].what, What::Recv { from: None, tag: None, .. }));
    // A cancelled receive receives no message.
    let cancelled = trace(&[&[19, 9, 1, 0, 0, 0, 99, 6], &[21, 0, 0, 1, 25]], true).unwrap();
    assert!(matches!(cancelled.events[0].what, What::Nothing));
}

#[test]
fn a_request_may_be_of_two_messages() {
    // A send to 2, and a receive from any rank, which received from 0 with tag 4.
    let records: &[&[u64]] = &[&[23, 0, 0, 0, 3, 8, 64, 0, 5, 99, 6], &[21, 0, 0, 1, 26, 1, 5]];
    let read = trace(records, true).unwrap();
    let [send, recv, first, second] = &read.events[..] else { panic!("{:?}", read.events) };
    assert!(matches!(send.what, What::Send { comm: 0, to: 2, tag: 7, bytes: 64, blocking: false }));
    assert!(matches!(recv.what, What::Recv { from: Some(0), tag: Some(4), bytes: 99, blocking: false, .. }));
    assert!(matches!((&first.what, &second.what), (What::Wait(0), What::Wait(1))));
}

#[test]
fn a_file_that_is_cut_off_holds_its_whole_blocks() {
    let whole = file(&[&HEAD[..], &[&[16, 1, 1, 0, 3, 8, 64]]].concat());
    for cut in [whole.clone(), [&whole[..], &[9, 0, 0]].concat(), [&whole[..], &[9, 0, 0, 0, 1, 2]].concat()] {
        let read = read(&cut, true).unwrap();
        assert!(read.truncated);
        assert_eq!(read.events.len(), 1);
    }
}

#[test]
fn damage_is_named() {
    for (records, what) in [
        (&[&[120u64][..]][..], "a record of unknown kind 120"),
        (&[&[16, 0, 0, 4, 1, 1, 1]], "communicator 4 was not described"),
        (&[&[16, 0, 0, 0, 7, 1, 1]], "rank 6 of 3 ranks"),
        (&[&[16, 0, 0, 0, 0, 1]], "a send to any"),
        (&[&[16, 0, 0, 0, 1, 1, u64::MAX]], "a message of 18446744073709551615 bytes"),
        (&[&[21, 0, 0, 1, 12]], "request 3 is not open"),
        (&[&[3, 1, 0, 1, 0, 9, 2]], "a communicator of more than 3 ranks"),
        (&[&[33, 0, 0, 0, 9, 1]], "root 8 of 3 ranks"),
        (&[&[43, 0, 0, 0, 2, 1, 1]], "2 sizes for 3 ranks"),
    ] {
        let found = trace(records, true).unwrap_err().to_string();
        assert!(found.starts_with("byte ") && found.ends_with(what), "{found}");
    }
    let mut short = file(&HEAD);
    short.extend([2, 0, 0, 0, 16, 1]);
    assert!(read(&short, true).unwrap_err().to_string().ends_with("a record is cut off within a block"));
    assert_eq!(read(b"SPINTRC9", true).unwrap_err().to_string(), "byte 0: no trace file of libspintrace.so");
}
