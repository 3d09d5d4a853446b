// SPDX-License-Identifier: Apache-2.0
//! GOAL schedules.

use goal::loggops::{LogGops, Options, run};
use goal::{Schedule, binary as form, text as language};
use sim::Time;
use sim::noise::{Detours, Noise, Trace};

/// Maximum number of operations and ranks of a schedule that is written again or executed.
const SMALL: (usize, u32) = (4096, 256);

/// Parses GOAL text. A valid schedule must survive writing and reading in both forms.
pub fn text(bytes: &[u8]) {
    if let Ok(schedule) = language::read(bytes) {
        survives(&schedule);
    }
}

/// Parses binary GOAL. Corrects the checksum first, because mutations would never match it.
pub fn binary(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    form::seal(&mut bytes);
    if let Ok(schedule) = form::read(&[], &mut &bytes[..]) {
        survives(&schedule);
        executes(&schedule, None);
    }
}

/// Parses the binary form of LogGOPSim. A valid schedule must survive writing and reading in this form, too.
pub fn lgs(bytes: &[u8]) {
    let read = |bytes: &[u8]| goal::lgs::read(&mut &*bytes);
    let Ok(schedule) = read(bytes) else { return };
    survives(&schedule);
    let mut written = Vec::new();
    goal::lgs::write(&schedule, &mut written).expect("no spaces and no cards");
    let again = read(&written[goal::lgs::MAGIC.len()..]).expect("a file of the writer");
    let mut twice = Vec::new();
    goal::lgs::write(&again, &mut twice).expect("no spaces and no cards");
    assert_eq!(written, twice);
}

/// Executes a schedule in LogGOPS, with one thread and with two. The results must be equal.
pub fn execution(bytes: &[u8]) {
    if let Ok(schedule) = language::read(bytes) {
        executes(&schedule, None);
    }
}

/// Parses noise: the period and length of its detours from the first bytes, or measured detours from the text that
/// follows.
pub fn noise(bytes: &[u8]) {
    let Some((numbers, text)) = bytes.split_first_chunk::<17>() else { return };
    let number = |at: usize| {
        let word = u64::from_le_bytes(numbers[at..at + 8].try_into().expect("8 bytes"));
        Time::from_ps(word)
    };
    let (period, length) = (number(0), number(8));
    let detours = match numbers[16] % 3 {
        0 => Detours::Periodic { period, length },
        1 => Detours::Poisson { interval: period, length },
        _ => match std::str::from_utf8(text).ok().and_then(|text| Trace::read(text).ok()) {
            Some(trace) => Detours::Trace(trace),
            None => return,
        },
    };
    if detours.check().is_err() {
        return;
    }
    let schedule =
        language::read(b"num_ranks 2\nrank 0 { a: calc 900 b: send 8b to 1 b requires a }\nrank 1 { recv 8b from 0 }");
    let noise = Noise { detours, seed: u64::from(numbers[16]), co_scheduled: numbers[16] & 4 != 0, ranks: None };
    executes(&schedule.expect("a schedule"), Some(noise));
}

fn is_small(schedule: &Schedule) -> bool {
    schedule.len() <= SMALL.0 && schedule.ranks() <= SMALL.1
}

fn executes(schedule: &Schedule, noise: Option<Noise>) {
    if !is_small(schedule) {
        return;
    }
    let with = |threads: usize| {
        let options = Options { threads, noise: noise.clone(), ..Options::default() };
        run(schedule, &LogGops::default(), &options).map_err(|error| error.to_string())
    };
    let (one, two) = (with(1), with(2));
    match (one, two) {
        (Ok(one), Ok(two)) => {
            assert_eq!(one.ends, two.ends, "one thread and two");
            assert_eq!(one.unreceived, two.unreceived, "one thread and two");
        }
        (one, two) => assert_eq!(one.err(), two.err(), "one thread and two"),
    }
}

pub(crate) fn survives(schedule: &Schedule) {
    if !is_small(schedule) {
        return;
    }
    let text = as_text(schedule);
    let again = language::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(as_text(&again), text);
    let bytes = as_binary(schedule);
    let again = form::read(&[], &mut &bytes[..]).expect("what was written can be read");
    assert_eq!(as_binary(&again), bytes);
    assert_eq!(as_text(&again), text);
}

fn as_text(schedule: &Schedule) -> String {
    let mut out = Vec::new();
    language::write(schedule, 0..schedule.ranks(), &mut out).expect("a vector takes all");
    String::from_utf8(out).expect("GOAL is text")
}

fn as_binary(schedule: &Schedule) -> Vec<u8> {
    let mut out = Vec::new();
    form::write(schedule, &mut out).expect("a vector takes all");
    out
}
