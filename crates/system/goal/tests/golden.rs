// SPDX-License-Identifier: Apache-2.0
//! Tests that end times equal those of LogGOPSim to the nanosecond.

use std::fs;
use std::path::PathBuf;

use goal::loggops::{LogGops, Options, run};
use sim::{Time, TimePerByte};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/golden/loggops"))
}

#[test]
fn every_row_is_exact() {
    let table = fs::read_to_string(folder().join("golden.tsv")).unwrap();
    let mut rows = 0;
    for row in table.lines().skip(1) {
        let fields: Vec<&str> = row.split('\t').collect();
        let number = |column: usize| fields[column].parse::<u64>().unwrap();
        let parameters = LogGops {
            latency: Time::from_ns(number(2)),
            overhead: Time::from_ns(number(3)),
            gap: Time::from_ns(number(4)),
            gap_per_byte: TimePerByte::from_fs_per_byte(number(5) * 1_000_000),
            overhead_per_byte: TimePerByte::from_fs_per_byte(number(6) * 1_000_000),
            eager: number(7),
        };
        let text = fs::read(folder().join(fields[0])).unwrap();
        let schedule = goal::text::read(&text).unwrap_or_else(|error| panic!("{row}: {error}"));
        let outcome = run(&schedule, &parameters, &Options::default()).unwrap_or_else(|error| panic!("{row}: {error}"));
        let ends: Vec<Time> = fields[11].split(',').map(|end| Time::from_ns(end.parse().unwrap())).collect();
        assert_eq!(outcome.ends, ends, "{row}");
        assert_eq!((outcome.events, outcome.end()), (number(8), Time::from_ns(number(9))), "{row}");
        assert_eq!(outcome.unreceived, [], "{row}");
        let in_two_threads = run(&schedule, &parameters, &Options { threads: 2, ..Options::default() });
        assert_eq!(in_two_threads, Ok(outcome), "{row}");
        rows += 1;
    }
    assert_eq!(rows, 62);
}
