// SPDX-License-Identifier: Apache-2.0
//! A cluster whose ranks are lists of steps instead of processes. The expected times are explicit sums of the
//! parameters of the sPIN paper's integrated machine.

mod sc17;

use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;

use abi::portals::{self as ptl, AckReq, Handle, List, Process, md, me, ni};
use cluster::{Access, Cluster, HostMemory, InternalError, Ranks, Work};
use machine::Machine;
use nic::{CardModel, MemoryFault, MessageId, NewEntry, Nic, NicEvent, Ports, Target};
use sc17::{CAM, DMA, DMA_8, MATCH, NETWORK, O, POLL, PORT_8, PUT_8};
use sim::Time;
use sim::trace::Trace;

/// A step of a rank's thread.
#[derive(Clone, Copy)]
enum Step {
    /// Computes for a number of picoseconds.
    Compute(u64),
    /// Copies a number of bytes within memory.
    Move(u64),
    /// Puts 8 bytes of this value to a rank; the counter counts the acknowledgement.
    Put(u32, u8),
    /// Waits until the counter reaches this value.
    Wait(u64),
    /// Reports to the rank's card the departure of a reply for an unknown message.
    Confuse(MessageId),
}

use Step::{Compute, Confuse, Move, Put, Wait};

struct Thread {
    rank: usize,
    steps: VecDeque<Step>,
    waits: bool,
    end: Time,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    /// A thread executes its next step.
    Next(usize),
    /// The uncontended time of a thread's copy has passed.
    Moved(usize, Access),
    /// The CPU of a rank has completed a message.
    Completed(usize),
}

struct Memory(Vec<[u8; 16]>);

impl HostMemory for Memory {
    fn read(&mut self, rank: u32, address: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let fault = MemoryFault { addr: address, len: out.len() as u64 };
        let bytes = self.0[rank as usize].get(address as usize..).and_then(|bytes| bytes.get(..out.len()));
        out.copy_from_slice(bytes.ok_or(fault)?);
        Ok(())
    }

    fn write(&mut self, rank: u32, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let fault = MemoryFault { addr: address, len: bytes.len() as u64 };
        let place = self.0[rank as usize].get_mut(address as usize..).and_then(|place| place.get_mut(..bytes.len()));
        place.ok_or(fault)?.copy_from_slice(bytes);
        Ok(())
    }
}

struct Scripts {
    threads: Vec<Thread>,
    memory: Memory,
    ni: Handle,
    ct: Handle,
    completing: Vec<bool>,
    /// Events of ranks with their times.
    log: Vec<(Time, Event)>,
}

impl Scripts {
    fn completes(&mut self, cluster: &mut Cluster<Event>, rank: usize) {
        if self.completing[rank] {
            return;
        }
        if let Some(work) = cluster.completion(rank) {
            let delay = cluster.charge(rank, work);
            self.completing[rank] = true;
            cluster.schedule(delay, Event::Completed(rank));
        }
    }

    /// Handles the notices of a card to its host.
    fn look(&mut self, cluster: &mut Cluster<Event>, rank: usize) {
        cluster.clear_notices();
        for number in 0..self.threads.len() {
            let thread = &mut self.threads[number];
            let Some(&Wait(reaches)) = thread.steps.front() else { continue };
            if thread.rank == rank
                && thread.waits
                && cluster.card(rank).portals_mut().ct_value(self.ct).unwrap().success >= reaches
            {
                thread.waits = false;
                thread.steps.pop_front();
                let delay = cluster.charge(rank, cluster.costs().notice());
                cluster.schedule(delay, Event::Next(number));
            }
        }
        self.completes(cluster, rank);
    }

    fn put(&mut self, cluster: &mut Cluster<Event>, rank: usize, to: u32, value: u8) -> Time {
        self.memory.write(rank as u32, 0, &[value; 8]).unwrap();
        let (ni, ct) = (self.ni, self.ct);
        let options = md::EVENT_SEND_DISABLE | md::EVENT_CT_ACK;
        let md = ptl::Md { start: 0, length: 8, options, eq_handle: ptl::EQ_NONE, ct_handle: ct, pad: 0 };
        let target = Target {
            process: Process { nid: to, pid: 0 },
            pt_index: 0,
            match_bits: 0,
            remote_offset: 0,
            user_ptr: 0,
            hdr_data: 0,
        };
        let delay = cluster.charge(rank, [cluster.costs().post()]);
        let start = cluster.now() + delay;
        cluster.act(rank, &mut self.memory, |card: &mut Nic, ports| {
            let md = card.md_bind(ni, md, ports).unwrap();
            let transfer = card.portals_mut().put(md, 0, 8, AckReq::Ct as u64, target).unwrap();
            card.start(transfer, start, ports);
        });
        delay
    }

    fn next(&mut self, cluster: &mut Cluster<Event>, number: usize) {
        let rank = self.threads[number].rank;
        let delay = match self.threads[number].steps.pop_front() {
            None => {
                self.threads[number].end = cluster.now();
                return;
            }
            Some(Compute(ps)) => cluster.charge(rank, [Work::compute(Time::from_ps(ps))]),
            Some(Move(bytes)) => {
                let (delay, access) = cluster.charge_copy(rank, bytes);
                return cluster
                    .schedule(delay, access.map_or(Event::Next(number), |access| Event::Moved(number, access)));
            }
            Some(Put(to, value)) => self.put(cluster, rank, to, value),
            Some(Confuse(message)) => {
                cluster.act(rank, &mut self.memory, |_, ports| {
                    ports.schedule(ports.now(), NicEvent::ResponseDone(message));
                });
                Time::ZERO
            }
            Some(wait @ Wait(_)) => {
                self.threads[number].steps.push_front(wait);
                self.threads[number].waits = true;
                return self.look(cluster, rank);
            }
        };
        cluster.schedule(delay, Event::Next(number));
    }
}

impl Ranks for Scripts {
    type Event = Event;
    type Memory = Memory;
    type End = Time;
    type Error = String;

    fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    fn rank_of(&self, event: &Event) -> usize {
        match event {
            Event::Next(number) | Event::Moved(number, _) => self.threads[*number].rank,
            Event::Completed(rank) => *rank,
        }
    }

    fn start(&mut self, cluster: &mut Cluster<Event>) -> Result<(), String> {
        (0..self.threads.len()).for_each(|number| cluster.schedule(Time::ZERO, Event::Next(number)));
        Ok(())
    }

    fn end(&mut self) -> Option<Time> {
        None
    }

    fn act_between_events(&mut self, _: &mut Cluster<Event>) -> Result<bool, String> {
        Ok(false)
    }

    fn handle(&mut self, event: Event, cluster: &mut Cluster<Event>) -> Result<(), String> {
        self.log.push((cluster.now(), event));
        match event {
            Event::Next(number) => self.next(cluster, number),
            Event::Moved(number, access) => match cluster.time_left(access) {
                Some(delay) => cluster.schedule(delay, event),
                None => self.next(cluster, number),
            },
            Event::Completed(rank) => {
                self.completing[rank] = false;
                cluster.act(rank, &mut self.memory, |card, ports| card.process_completion(ports));
                self.look(cluster, rank);
            }
        }
        Ok(())
    }

    fn card_has_acted(&mut self, rank: usize, cluster: &mut Cluster<Event>) -> Result<(), String> {
        if cluster.notices().iter().any(|(node, _)| *node as usize == rank) {
            self.look(cluster, rank);
        }
        Ok(())
    }

    fn card_has_failed(&mut self, error: InternalError) -> String {
        error.to_string()
    }

    fn event_is_over(&mut self, cluster: &mut Cluster<Event>) -> Result<(), String> {
        assert!(cluster.notices().is_empty(), "every notice is handled at once");
        Ok(())
    }

    fn is_out_of_time(&mut self, rank: usize, _: &mut Cluster<Event>) -> Result<(), String> {
        Err(format!("rank {rank} is out of time"))
    }

    fn no_event_is_left(&mut self, cluster: &mut Cluster<Event>) -> Result<Option<Time>, String> {
        let waiting: Vec<usize> = self.threads.iter().filter(|thread| thread.waits).map(|thread| thread.rank).collect();
        if waiting.is_empty() { Ok(Some(cluster.now())) } else { Err(format!("deadlock of ranks {waiting:?}")) }
    }
}

struct Run {
    result: Result<Time, String>,
    /// End of each thread, in ps.
    ends: Vec<u64>,
    memory: Vec<[u8; 16]>,
    log: Vec<(Time, Event)>,
    events: u64,
}

/// Runs two ranks whose threads execute these steps, with changed parameters. Each rank has an entry for 8 bytes at
/// address 8. One counter counts the messages of the entry and the rank's acknowledgements.
fn run(settings: &[&str], threads: &[(usize, &[Step])]) -> Run {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let machine = Machine::load("sc17-int", &[folder], &settings).unwrap();
    let mut cluster = Cluster::new(CardModel::new(machine).unwrap(), 2, 0, Trace::off(), Box::new(|_| ())).unwrap();
    let threads = threads.iter().map(|(rank, steps)| Thread {
        rank: *rank,
        steps: steps.iter().copied().collect(),
        waits: false,
        end: Time::ZERO,
    });
    let mut scripts = Scripts {
        threads: threads.collect(),
        memory: Memory(vec![[0; 16]; 2]),
        ni: ptl::INVALID_HANDLE,
        ct: ptl::CT_NONE,
        completing: vec![false; 2],
        log: Vec::new(),
    };
    let map: Rc<[Process]> = (0..2).map(|nid| Process { nid, pid: nic::api::DEFAULT_PID }).collect();
    for rank in 0..2 {
        let card = cluster.card(rank);
        let (ni, _) =
            card.portals_mut().ni_init(ptl::IFACE_DEFAULT, ni::MATCHING | ni::LOGICAL, ptl::ID_ANY, None).unwrap();
        card.portals_mut().set_map(ni, map.clone()).unwrap();
        card.portals_mut().pt_alloc(ni, 0, ptl::EQ_NONE, 0).unwrap();
        let ct = card.portals_mut().ct_alloc(ni).unwrap();
        let options = me::OP_PUT | me::EVENT_CT_COMM;
        let le = ptl::Le { start: 8, length: 8, ct_handle: ct, uid: ptl::ID_ANY, options, pad: 0 };
        let me = ptl::Me { le, match_id: Process { nid: ptl::ID_ANY, pid: 0 }, ..ptl::Me::default() };
        let new = NewEntry { me, matching: true, pt_index: 0, user_ptr: 0 };
        cluster
            .act(rank, &mut scripts.memory, |card, ports| card.append(ni, new, List::Priority as u64, None, ports))
            .unwrap();
        cluster.clear_notices();
        (scripts.ni, scripts.ct) = (ni, ct);
    }
    let result = cluster.run(&mut scripts);
    let ends = scripts.threads.iter().map(|thread| thread.end.as_ps()).collect();
    Run { result, ends, memory: scripts.memory.0, log: scripts.log, events: cluster.events() }
}

#[test]
fn a_put_and_its_acknowledgement() {
    let run = run(&[], &[(0, &[Put(1, 7), Wait(1)]), (1, &[Wait(1)])]);
    let there = O + PUT_8;
    // An empty DMA write reports the acknowledgement to the host.
    let acknowledged = there + NETWORK + CAM + DMA;
    assert_eq!(run.ends, [acknowledged + POLL, there + POLL]);
    assert_eq!(run.result, Ok(Time::from_ps(acknowledged + POLL)));
    assert_eq!(run.memory[1], [0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7]);
}

#[test]
fn on_rdma_cards_the_cpu_polls_and_matches() {
    let run = run(&["nic.kind=rdma"], &[(0, &[Put(1, 7)]), (1, &[Wait(1)])]);
    assert_eq!(run.ends, [O, O + PUT_8 + POLL + MATCH]);
}

#[test]
fn completions_wait_for_each_other() {
    // Two messages arrive while the CPU completes the first.
    let run = run(&["nic.kind=rdma"], &[(0, &[Put(1, 1), Put(1, 2)]), (1, &[Wait(2)])]);
    // The second post ends 65 ns after the first, and the completion of a message takes 81 ns.
    assert_eq!(run.ends, [2 * O, O + PUT_8 + 2 * (POLL + MATCH)]);
    assert_eq!(run.memory[1][8..], [2; 8]);
}

#[test]
fn the_threads_of_a_rank_share_the_cores_of_its_host() {
    let steps: &[(usize, &[Step])] =
        &[(0, &[Compute(1_000)]), (0, &[Compute(700)]), (0, &[Compute(10)]), (1, &[Compute(5)])];
    let ends = |cores: &str| run(&[&format!("host.cores={cores}")], steps).ends;
    assert_eq!(ends("8"), [1_000, 700, 10, 5]);
    assert_eq!(ends("2"), [1_000, 700, 710, 5]);
    assert_eq!(ends("1"), [1_000, 1_700, 1_710, 5]);
}

/// A copy of 10,000 bytes at DRAM speed has a latency of 51 ns, and takes 2 * 10,000 * 6.7 ps = 134 ns.
#[test]
fn copies_share_the_bandwidth_of_their_hosts_memory() {
    let ends =
        |shared: bool, threads| run(&["host.copy_lines=80", &format!("host.shared_memory={shared}")], threads).ends;
    let both: &[(usize, &[Step])] = &[(0, &[Move(10_000)]), (0, &[Move(10_000)]), (1, &[Move(10_000)])];
    assert_eq!(ends(false, both), [185_000; 3]);
    assert_eq!(ends(true, both), [51_000 + 2 * 134_000, 51_000 + 2 * 134_000, 185_000]);
    // The second copy begins when the first has 67 of its 134 ns left. Each is delayed by half of the shared work.
    let later: &[(usize, &[Step])] = &[(0, &[Move(10_000)]), (0, &[Compute(67_000), Move(10_000)])];
    assert_eq!(ends(true, later), [185_000 + 67_000, 67_000 + 185_000 + 67_000]);
    // Computation uses no memory.
    let beside: &[(usize, &[Step])] = &[(0, &[Move(10_000)]), (0, &[Compute(1_000_000)])];
    assert_eq!(ends(true, beside), [185_000, 1_000_000]);
}

/// Rank 1 copies a million bytes in 13.4 us when the 8 bytes arrive. Each of these takes 6.7 ps longer than alone, on
/// the memory controller and behind PCI Express. The copy loses half of the shared time.
#[test]
fn a_packet_shares_memory_with_a_copy() {
    let put: &[(usize, &[Step])] = &[(0, &[Put(1, 7)]), (1, &[Wait(1)]), (1, &[Move(1_000_000)])];
    for (rate, alone, shared, copy) in [("6.7", DMA_8, 108, 54), ("15.6", 125, 179, 54)] {
        let (rate, lines) = (format!("dma.G_ps_per_byte={rate}"), "host.copy_lines=80");
        let there = |bytes| O + 2 * DMA + alone + PORT_8 + NETWORK + MATCH + DMA + bytes + POLL;
        let run = |shared| run(&[&rate, lines, shared], put);
        let (off, on) = (run("host.shared_memory=false"), run("host.shared_memory=true"));
        assert_eq!(off.ends[1..], [there(alone), 51_000 + 13_400_000], "{rate}");
        assert_eq!(on.ends[1..], [there(shared), 51_000 + 13_400_000 + copy], "{rate}");
        assert_eq!(on.memory[1][8..], [7; 8]);
    }
}

#[test]
fn memory_that_only_cards_use_delays_nobody() {
    let steps: &[(usize, &[Step])] = &[(0, &[Put(1, 1), Put(1, 2), Wait(2)]), (1, &[Wait(2)])];
    for kind in ["rdma", "portals4", "spin"] {
        let run = |shared: bool| run(&[&format!("nic.kind={kind}"), &format!("host.shared_memory={shared}")], steps);
        assert_eq!(run(true).log, run(false).log, "{kind}");
    }
}

#[test]
fn ranks_that_wait_for_each_other_are_a_deadlock() {
    let run = run(&[], &[(0, &[Put(1, 7), Wait(2)]), (1, &[Wait(2)])]);
    assert_eq!(run.result, Err("deadlock of ranks [0, 1]".to_owned()));
}

#[test]
fn a_card_in_a_state_that_cannot_occur_ends_the_run() {
    let run = run(&[], &[(0, &[Put(1, 7), Compute(5), Confuse(9), Compute(1)]), (1, &[Wait(1)])]);
    let error = "internal error of the card of node 0 at 65.005 ns: message 0x9 is not under way, please report";
    assert_eq!(run.result, Err(error.to_owned()));
    assert_eq!(run.ends, [0, 0], "nothing happens after that");
}

#[test]
fn an_event_beyond_the_limit_of_time_belongs_to_its_rank() {
    let run = run(&[], &[(0, &[Compute(1)]), (1, &[Compute(u64::MAX)])]);
    assert_eq!(run.result, Err("rank 1 is out of time".to_owned()));
    assert_eq!(run.ends, [1, 0]);
}

#[test]
fn the_same_run_has_the_same_events_in_the_same_order() {
    let steps: &[(usize, &[Step])] =
        &[(0, &[Put(1, 1), Put(1, 2), Wait(4)]), (1, &[Put(0, 3), Compute(9), Put(0, 4), Wait(4)])];
    for kind in ["rdma", "portals4", "spin"] {
        let setting = format!("nic.kind={kind}");
        let (one, other) = (run(&[&setting], steps), run(&[&setting], steps));
        assert!(one.result.is_ok(), "{kind}: {:?}", one.result);
        assert_eq!((one.log, one.events), (other.log, other.events), "{kind}");
    }
}

#[test]
fn simultaneous_events_happen_in_the_order_of_their_insertion() {
    let run = run(&[], &[(1, &[Compute(5)]), (0, &[Compute(5)])]);
    let at = Time::from_ps;
    let expected = [(0, 0), (0, 1), (5, 0), (5, 1)].map(|(ps, thread)| (at(ps), Event::Next(thread)));
    assert_eq!(run.log, expected);
}
