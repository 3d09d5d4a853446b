// SPDX-License-Identifier: Apache-2.0
//! Compares the protocol model (`goal::protocol`), which computes a card's time for a message, with the card: both must
//! execute the same schedules in the same time, to the picosecond.

use std::path::Path;

use goal::protocol::{Parameters, run};
use goal::{Schedule, text};
use goal_cards::World;
use machine::Machine;
use sim::Time;
use sim::trace::Trace;

/// A machine of each kind of DMA, with our rules and with those of LogGOPSim2.
const MACHINES: [&str; 4] = ["sc17-int", "sc17-dis", "loggopsim2-int", "loggopsim2-dis"];
/// Eager threshold S of all runs.
const EAGER: u64 = 65_536;
/// Message sizes at which no packet waits for the deposit of the previous one.
const SIZES: [u64; 6] = [1, 8, 100, 4096, 20_000, 65_536];

fn machine(name: &str, card: &str) -> Machine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    Machine::load(name, &[folder], &[format!("nic.kind={card}")]).unwrap()
}

fn schedule(send: &str, receive: &str) -> Schedule {
    text::read(format!("num_ranks 2 rank 0 {{ {send} }} rank 1 {{ {receive} }}").as_bytes()).unwrap()
}

/// Returns the end times of both ranks, in the model and with the card.
fn ends(machine: &Machine, schedule: &Schedule) -> [Vec<Time>; 2] {
    let model = run(schedule, &Parameters::new(machine, EAGER)).unwrap();
    let cards = nic::CardModel::new(machine.clone()).unwrap();
    let mut world = World::new(schedule, cards, None, EAGER, Trace::off(), Box::new(|_| ())).unwrap();
    [model.ends, world.run().unwrap().ends]
}

#[test]
fn cards_that_match_take_what_the_model_says() {
    for name in MACHINES {
        for (card, bytes) in ["portals4", "spin"].into_iter().flat_map(|card| SIZES.map(|bytes| (card, bytes))) {
            let machine = machine(name, card);
            let send = format!("send {bytes}b to 1 tag 3");
            let receive = format!("recv {bytes}b from 0 tag 3");
            let [model, found] = ends(&machine, &schedule(&send, &receive));
            assert_eq!(model, found, "{name}, {card}, {bytes} B");
            // The receive is posted long after the message arrives.
            let late = format!("c: calc 1000000 r: {receive} r requires c");
            let [model, found] = ends(&machine, &schedule(&send, &late));
            assert_eq!(model, found, "{name}, {card}, {bytes} B, late receive");
        }
    }
}

/// In the model, the library copies a message from its bounce buffer; the card deposits it in place.
#[test]
fn cards_that_only_move_data_take_what_the_model_says_but_for_the_copy() {
    for name in MACHINES {
        let machine = machine(name, "rdma");
        for bytes in SIZES {
            let copy = machine.host.copy_time(bytes);
            let schedule = schedule(&format!("send {bytes}b to 1 tag 3"), &format!("recv {bytes}b from 0 tag 3"));
            let [model, found] = ends(&machine, &schedule);
            assert_eq!(model, [found[0], found[1] + copy], "{name}, {bytes} B");
        }
    }
}

/// With any source, the CPU fetches the data of a message above S after it reads the header. With the card, the sender
/// also posts an entry for the data, which takes o.
#[test]
fn long_messages_take_what_the_model_says_but_for_the_entry_of_the_sender() {
    for name in MACHINES {
        let machine = machine(name, "portals4");
        for bytes in [2 * EAGER, 1 << 20] {
            let schedule = schedule(&format!("send {bytes}b to 1 tag 3"), &format!("recv {bytes}b from any tag 3"));
            let [model, found] = ends(&machine, &schedule);
            let later: Vec<Time> = model.iter().map(|&end| end + machine.host.overhead).collect();
            assert_eq!(later, found, "{name}, {bytes} B");
        }
    }
}

/// In the model, only the last packet takes time after the transfer. If it is short, it arrives while the card still
/// matches and writes the previous packet, and the card takes longer, by at most the time of that packet.
#[test]
fn short_last_packets_wait_for_the_one_before() {
    let machine = machine("sc17-int", "portals4");
    let most = machine.nic.match_header + machine.dma.gap_per_byte.time(machine.network.mtu.into());
    for bytes in [4097, 20_000] {
        let schedule = schedule(&format!("send {bytes}b to 1 tag 3"), &format!("recv {bytes}b from 0 tag 3"));
        let [model, found] = ends(&machine, &schedule);
        assert!((model[1]..=model[1] + most).contains(&found[1]), "{bytes} B: {} and {}", model[1], found[1]);
    }
}
