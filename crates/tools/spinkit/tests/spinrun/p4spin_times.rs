// SPDX-License-Identifier: Apache-2.0
//! Times of the effects of calls for handlers, and their occupation of the HPU, as sums of the machine's parameters
//! (docs/handler-guide.md, "Commands and their cost").

use serde_json::Value;

use crate::harness::{program, reported};
use crate::times::Machine;

/// The card reads and writes 64-bit words for the atomics of these tests.
const WORD: u64 = 8;

/// Maximum number of cycles of a call's instructions.
const CALL: u64 = 60;

/// Run of `p4spin_times.c`.
struct Timed {
    m: Machine,
    /// Time at which rank 0 called `PtlPut` for the message that starts the handler.
    start: u64,
    /// Time at which the effect was observed.
    seen: Option<u64>,
    /// Cycles of the handler before and after the call, and before and after a wait for it.
    cycles: [u64; 4],
    /// Time in which the handler occupied its HPU without running.
    waited: u64,
}

fn timed(options: &str, call: &str, bytes: u64) -> Timed {
    let (run, report) = reported(&format!("-n 2 {options}"), &program("p4spin_times"), &format!("{call} {bytes}"));
    let out = run.ok();
    let find = |name: &str| out.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let number = |text: &str| text.parse::<u64>().unwrap();
    let cycles: Vec<u64> = find("cycles").unwrap().split(' ').map(number).collect();
    let m = Machine::of(&report);
    let result = if matches!(call, "NumHpus") { "4 0" } else { "0 0" };
    let expected = if call == "CAS" { "1 0" } else { result };
    assert_eq!(find("result"), Some(expected), "{call}");
    let handler: &Value = &report["handlers"]["timed"];
    let (occupied, ran) = (handler["occupancy_ps"].as_u64().unwrap(), handler["cycles"].as_u64().unwrap());
    let waited = occupied - ran * m.cycle;
    let (start, seen) = (number(find("start").unwrap()), find("seen").map(number));
    assert!(cycles[1] - cycles[0] <= CALL, "{call}: {cycles:?}");
    Timed { m, start, seen, cycles: cycles.try_into().unwrap(), waited }
}

impl Timed {
    /// Returns the start of the payload handler: a message of 8 bytes was sent, arrived and was matched.
    fn began(&self) -> u64 {
        self.start + self.m.o + self.m.first_packet(8) + self.m.match_header
    }

    /// Checks that the effect was observed `time` after a moment within the call.
    fn took(&self, call: &str, time: u64) {
        let at = self.seen.unwrap() - time - self.began();
        let [before, after, ..] = self.cycles.map(|cycles| cycles * self.m.cycle);
        assert!(at.is_multiple_of(self.m.cycle) && (before..=after).contains(&at), "{call}: {at} {:?}", self.cycles);
    }

    /// Checks that the wait ended `time` after a moment within the call.
    fn waited_for(&self, call: &str, time: u64) {
        let [before, after, before_wait, after_wait] = self.cycles.map(|cycles| cycles * self.m.cycle);
        let between = time - self.waited;
        let range = before_wait - after..=after_wait - before;
        assert!(
            between.is_multiple_of(self.m.cycle) && range.contains(&between),
            "{call}: {between} {:?}",
            self.cycles
        );
    }
}

/// Runs the test on both cards, with small and full packets.
fn everywhere(call: &str, sizes: &[u64], check: impl Fn(&Timed, u64)) {
    for options in ["", "--machine sc17-dis", "--set hpu.timing=inorder"] {
        for bytes in sizes {
            check(&timed(options, call, *bytes), *bytes);
        }
    }
}

/// The call blocks until the last byte leaves the card; from then on it is a put like others.
#[test]
fn put_from_device() {
    everywhere("PutFromDevice", &[8, 4096], |t, bytes| {
        assert_eq!(t.waited, t.m.wire(bytes));
        t.took("PutFromDevice", t.m.network + t.m.wire(bytes) + t.m.match_header + t.m.dma_write(bytes) + t.m.poll);
    });
    let free = timed("--set accelerator.put_blocks=false", "PutFromDevice", 4096);
    assert_eq!(free.waited, 0);
}

/// The call does not block: the card fetches the data as for a put of the host.
#[test]
fn put_from_host() {
    everywhere("PutFromHost", &[8, 4096], |t, bytes| {
        assert_eq!(t.waited, 0);
        t.took("PutFromHost", t.m.to_host(bytes, 0) + t.m.poll);
    });
}

/// Returns the time of the request, the target's read and the reply.
fn round_trip(m: &Machine, bytes: u64) -> u64 {
    m.network + m.match_header + m.first_packet(bytes) + m.cam
}

#[test]
fn get_to_host() {
    everywhere("GetToHost", &[8, 4096], |t, bytes| {
        assert_eq!(t.waited, 0);
        t.took("GetToHost", round_trip(&t.m, bytes) + t.m.dma_write(bytes) + t.m.poll);
    });
}

#[test]
fn get_to_device() {
    everywhere("GetToDevice", &[8, 4096], |t, bytes| assert_eq!(t.waited, round_trip(&t.m, bytes)));
}

/// Returns the time in which the target reads the operands and writes the result.
fn combine(m: &Machine, bytes: u64) -> u64 {
    m.match_header + m.dma_read(bytes) + m.dma_write(bytes) + m.poll
}

#[test]
fn atomic_from_device() {
    everywhere("AtomicFromDevice", &[8, 512], |t, bytes| {
        assert_eq!(t.waited, t.m.wire(bytes));
        t.took("AtomicFromDevice", t.m.network + t.m.wire(bytes) + combine(&t.m, bytes));
    });
}

#[test]
fn atomic_from_host() {
    everywhere("AtomicFromHost", &[8, 512], |t, bytes| {
        assert_eq!(t.waited, 0);
        t.took("AtomicFromHost", t.m.first_packet(bytes) + combine(&t.m, bytes));
    });
}

/// A posted write blocks the HPU until the data leaves (App. C.3.2): s G.
#[test]
fn dma_to_host() {
    everywhere("DMAToHostB", &[8, 4096], |t, bytes| {
        // The few cycles from the start of the transfer to the wait for it do not count as waiting.
        let left = t.m.dma_write(bytes) - t.m.dma_latency;
        let [before, after, ..] = t.cycles;
        let between = left.saturating_sub(t.waited);
        assert!(between <= (after - before) * t.m.cycle, "{} {left} {:?}", t.waited, t.cycles);
    });
    everywhere("DMAToHostNB", &[4096], |t, bytes| {
        t.waited_for("DMAToHostNB", t.m.dma_write(bytes) - t.m.dma_latency);
    });
}

/// A read takes two latencies: 2 L + s G.
#[test]
fn dma_from_host() {
    everywhere("DMAFromHostB", &[8, 4096], |t, bytes| {
        let between = t.m.dma_read(bytes) - t.waited;
        let [before, after, ..] = t.cycles;
        assert!(
            between.is_multiple_of(t.m.cycle) && between < (after - before) * t.m.cycle,
            "{between} {:?}",
            t.cycles
        );
    });
    everywhere("DMAFromHostNB", &[8, 4096], |t, bytes| t.waited_for("DMAFromHostNB", t.m.dma_read(bytes)));
}

/// Atomics on host memory are executed there: a round trip with the word.
#[test]
fn dma_atomics() {
    for call in ["DMACASB", "DMAFetchAddB"] {
        everywhere(call, &[WORD], |t, _| {
            let between = t.m.dma_read(WORD) - t.waited;
            let [before, after, ..] = t.cycles;
            assert!(between.is_multiple_of(t.m.cycle) && between < (after - before) * t.m.cycle, "{call} {between}");
        });
    }
    for call in ["DMACASNB", "DMAFetchAddNB"] {
        everywhere(call, &[WORD], |t, _| t.waited_for(call, t.m.dma_read(WORD)));
    }
}

/// Counters change at once; the host sees it after a poll.
#[test]
fn counters() {
    for call in ["CTInc", "CTSet"] {
        everywhere(call, &[0], |t, _| {
            assert_eq!(t.waited, 0);
            t.took(call, t.m.poll);
        });
    }
}

/// Calls that stay inside the card take only the time of their instructions.
#[test]
fn calls_that_do_not_block() {
    for call in ["DMATest", "CAS", "FAdd", "Yield", "CTGet", "MyHpu", "NumHpus"] {
        everywhere(call, &[8], |t, _| assert_eq!(t.waited, 0, "{call}"));
    }
}
