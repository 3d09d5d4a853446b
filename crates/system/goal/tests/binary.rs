// SPDX-License-Identifier: Apache-2.0
//! Tests the conversion from text to binary and back, and errors in binary files.

use std::fs;
use std::path::Path;

use goal::loggops::{LogGops, Options, run};
use goal::{Schedule, binary, text};

const ALL: &str = "num_ranks 3
rank 0 {
a: calc 18446744073709550 cpu 3
b: send 5000000000b to 1 tag 7 nic 2
c: recv 4b from any tag any space 9
b requires a
c irequires b
append 8b to priority_list hh first ph 7 arg2 9 mem 64 allowed any ct 3 use_once tag 5
tput 9b to 2 when 3 reaches 2 arg1 1 ct 4 tag 6
test 4 for 1
}
rank 1 {
a: recv 5000000000b from 0 tag 7
b: send 1b to 0 space 9
a requires b
}
rank 2 {
}
";

fn as_text(schedule: &Schedule) -> String {
    let mut out = Vec::new();
    text::write(schedule, 0..schedule.ranks(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn as_binary(schedule: &Schedule) -> Vec<u8> {
    let mut out = Vec::new();
    binary::write(schedule, &mut out).unwrap();
    out
}

fn from_binary(bytes: &[u8]) -> Result<Schedule, binary::BinaryError> {
    binary::read(&[], &mut &bytes[..])
}

#[test]
fn everything_survives_both_conversions() {
    let schedule = text::read(ALL.as_bytes()).unwrap();
    let normal = as_text(&schedule);
    assert!(normal.contains("l2: send 5000000000b to 1 tag 7 nic 2\n"), "{normal}");
    assert!(normal.contains("l3: recv 4b from any tag any space 9\n"), "{normal}");
    assert!(normal.contains("l3 irequires l2\n"), "{normal}");
    assert!(
        normal.contains("l4: append 8b to priority_list hh first ph 7 arg2 9 mem 64 allowed any ct 3 use_once tag 5\n")
    );
    assert!(normal.contains("l5: tput 9b to 2 when 3 reaches 2 arg1 1 ct 4 tag 6\nl6: test 4 for 1\n"), "{normal}");
    assert_eq!(as_text(&text::read(normal.as_bytes()).unwrap()), normal);
    let bytes = as_binary(&schedule);
    assert_eq!(as_text(&from_binary(&bytes).unwrap()), normal);
    assert_eq!(as_binary(&from_binary(&bytes).unwrap()), bytes);
}

#[test]
fn a_mapped_file_runs_as_its_text() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/loggops/goal");
    let folder = tempfile::tempdir().unwrap();
    for name in ["linbarrier_16.goal", "arrd_8_1048576.goal"] {
        let schedule = goal::open(&golden.join(name)).unwrap();
        let file = folder.path().join(name);
        fs::write(&file, as_binary(&schedule)).unwrap();
        let mapped = goal::open(&file).unwrap();
        let [one, two] = [&schedule, &mapped].map(|schedule| run(schedule, &LogGops::default(), &Options::default()));
        assert_eq!(one.unwrap(), two.unwrap());
    }
}

#[test]
fn truncated_and_damaged_files_are_errors() {
    let bytes = as_binary(&text::read(ALL.as_bytes()).unwrap());
    for len in 0..bytes.len() {
        assert!(from_binary(&bytes[..len]).is_err(), "{len} bytes");
    }
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << (place % 8);
        assert!(from_binary(&damaged).is_err(), "byte {place}");
    }
    let error = from_binary(&bytes[..bytes.len() - 1]).unwrap_err();
    let expected = format!("{} bytes, but its header says {}: truncated or damaged", bytes.len() - 1, bytes.len());
    assert_eq!(error.to_string(), expected);
    let mut other = bytes;
    other[8] = 9;
    assert!(from_binary(&other).unwrap_err().to_string().starts_with("binary GOAL of version 9"));
}
