// SPDX-License-Identifier: Apache-2.0
//! The clock of a live cluster: real time, except that it never passes a pending event.

use std::path::Path;
use std::time::{Duration, Instant};

use cluster::Cluster;
use machine::Machine;
use nic::CardModel;
use sim::Time;
use sim::trace::Trace;

const AGE: Duration = Duration::from_secs(10);
const AGE_PS: u64 = 10_000_000_000_000;

/// Returns a cluster whose live run began 10 s ago.
fn live() -> Cluster<u32> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    let model = CardModel::new(Machine::load("sc17-int", &[folder], &[]).unwrap()).unwrap();
    let mut cluster = Cluster::new(model, 2, 0, Trace::off(), Box::new(|_| {})).unwrap();
    cluster.set_live(Instant::now().checked_sub(AGE).unwrap());
    cluster
}

#[test]
fn the_clock_is_real_time_while_nothing_is_pending() {
    let mut cluster = live();
    assert_eq!(cluster.now(), Time::ZERO);
    cluster.keep_pace();
    let first = cluster.now();
    assert!(first >= Time::from_ps(AGE_PS));
    cluster.keep_pace();
    assert!(cluster.now() >= first);
}

#[test]
fn the_clock_stops_at_a_pending_event() {
    let mut cluster = live();
    cluster.schedule(Time::from_ns(7), 1);
    cluster.keep_pace();
    assert_eq!((cluster.now(), cluster.next_event()), (Time::from_ns(7), Some(Time::from_ns(7))));
    assert_eq!(cluster.time_to_timer(), None, "costs of the machine pass at once");
}

#[test]
fn delays_of_programs_pass_in_real_time() {
    let mut cluster = live();
    cluster.schedule_timer(Time::from_ns(3_600_000_000_000), 1);
    cluster.keep_pace();
    assert_eq!(cluster.next_event(), None);
    let left = cluster.time_to_timer().unwrap();
    assert!(left <= Duration::from_secs(3600) && left > Duration::from_secs(1800), "{left:?}");
}

#[test]
fn earlier_events_precede_the_end_of_a_delay() {
    let mut cluster = live();
    cluster.schedule_timer(Time::ZERO, 1); // over, 10 s after the clock's time
    cluster.schedule(Time::from_ns(7), 2);
    cluster.keep_pace();
    assert_eq!(cluster.time_to_timer(), None);
    assert_eq!(cluster.next_event(), Some(Time::from_ns(7)));
    assert_eq!(cluster.now(), Time::from_ns(7));
}
