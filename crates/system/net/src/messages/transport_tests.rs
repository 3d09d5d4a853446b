// SPDX-License-Identifier: Apache-2.0
//! Tests acknowledgements, rates, trimming and pause frames, with times and counts computed by hand.

use sim::Time;

use super::tests::{G, MTU, SWITCH, WIRE, all_to_all, sc17, simulate};
use crate::Topology;
use crate::fabric::{Flow, Parameters, RateControl, Routing, Transport};
use crate::messages::MessageNetwork;

/// Time of a full packet on a link, and latency of a path through one switch.
const PACKET: u64 = MTU * G;
const PATH: u64 = SWITCH + 2 * WIRE;

fn switch(hosts: usize) -> Topology {
    Topology::single_switch(hosts).unwrap()
}

fn with(change: impl FnOnce(&mut Parameters)) -> Parameters {
    let mut parameters = sc17();
    change(&mut parameters);
    parameters
}

#[test]
fn acknowledgements_take_their_place_on_the_way_back() {
    let acked = with(|parameters| parameters.transport.ack = 1024);
    let (arrivals, report) = simulate(switch(2), &acked, &[(0, 0, 1, 3 * MTU)]);
    assert_eq!(arrivals, [3 * PACKET + PATH]);
    assert_eq!((report.packets, report.packet_hops, report.answers.acknowledgements), (3, 12, 3));
    // Traffic in both directions: the acknowledgement of the first packet is sent between the third and the fourth
    // packet.
    let both = [(0, 0, 1, 4 * MTU), (0, 1, 0, 4 * MTU)];
    let (arrivals, report) = simulate(switch(2), &acked, &both);
    assert_eq!(arrivals, [4 * PACKET + 1024 * G + PATH; 2]);
    assert_eq!((report.packets, report.packet_hops, report.answers.acknowledgements), (8, 32, 8));
    // Acknowledgements without weight are not sent.
    let (arrivals, report) = simulate(switch(2), &sc17(), &both);
    assert_eq!((arrivals, report.answers), (vec![4 * PACKET + PATH; 2], Default::default()));
}

#[test]
fn data_is_sent_again_when_its_acknowledgement_is_lost() {
    // Acknowledgements to host 0 must cross the queue that loses packets for it.
    let mut messages: Vec<_> = (1..12).map(|from| (0, from, 0, 40 * MTU)).collect();
    messages.extend((1..12).map(|to| (0, 0, to, 4 * MTU)));
    let acked = with(|parameters| {
        (parameters.flow, parameters.buffer, parameters.transport.ack) = (Flow::Drop, 4 * MTU, MTU as u32);
    });
    let (_, report) = simulate(switch(12), &acked, &messages);
    assert_eq!(report.packets, 11 * 44);
    // Each acknowledgement in excess of the packets replaces a lost one.
    let lost = report.answers.acknowledgements - report.packets;
    assert!(lost > 0, "{:?}", report.answers);
    assert_eq!(report.drops, report.resent);
    assert_eq!(simulate(switch(12), &acked, &messages).1, report);
}

/// Returns parameters that mark every packet that finds four packets or more.
fn dcqcn() -> Parameters {
    with(|parameters| {
        parameters.buffer = 1 << 24;
        parameters.transport.rate_control = RateControl::Dcqcn;
        (parameters.transport.dcqcn.mark_from, parameters.transport.dcqcn.mark_all) = (4 * MTU, 4 * MTU);
    })
}

#[test]
fn a_long_queue_halves_the_rate_of_its_senders() {
    // The packets of two senders arrive in pairs. Pair i, from 0 on, finds i and i + 1 packets; so the first sender's
    // are marked from pair 4 on, the second's from pair 3 on. Each sender is notified once in 50 us.
    let (arrivals, report) = simulate(switch(3), &dcqcn(), &[(0, 1, 0, 200 * MTU), (0, 2, 0, 200 * MTU)]);
    assert_eq!(report.answers.notifications, 2);
    let queue = report.longest_queue.unwrap().longest_queue;
    // Packet 8 of the second sender and 9 of the first leave the port at 8 and 9 T; notifications take 64 bytes and two
    // paths. Until then one packet joins the queue each T, from then on each sender has half of the link.
    let notified = |packet: u64| (packet * PACKET + SWITCH + 2 * WIRE) + 64 * G + PATH;
    let joined = notified(9).div_ceil(PACKET) + 1;
    assert!((joined - 2..=joined + 2).contains(&(queue / MTU)), "{queue} bytes, {joined} packets");
    // The link always has a packet, and both senders end together.
    assert_eq!(arrivals.iter().max(), Some(&(400 * PACKET + PATH)));
    assert!(arrivals[0].abs_diff(arrivals[1]) < 12 * PACKET, "{arrivals:?}");
}

#[test]
fn flows_share_a_link_and_the_queue_stays_short() {
    let messages = [(0, 1, 0, 2000 * MTU), (0, 2, 0, 2000 * MTU), (0, 3, 0, 2000 * MTU), (0, 4, 0, 2000 * MTU)];
    let free = with(|parameters| parameters.buffer = 1 << 24);
    let (_, without) = simulate(switch(5), &free, &messages);
    let (arrivals, report) = simulate(switch(5), &dcqcn(), &messages);
    let (end, least) = (*arrivals.iter().max().unwrap(), 8000 * PACKET + PATH);
    // Without rates three quarters of all packets queue. The first notifications leave each sender half of the link,
    // twice its share, and the next ones come 50 us or 610 packets later. From then on the queue only shrinks.
    assert_eq!(without.longest_queue.unwrap().longest_queue, 6001 * MTU);
    assert!(report.longest_queue.as_ref().unwrap().longest_queue < 700 * MTU);
    // While that queue is long, notifications slow the senders down further, and 655 us are only twelve timers of
    // recovery.
    assert!((least..least * 2).contains(&end), "{end} {least}");
    assert!(arrivals.iter().all(|arrival| *arrival > end * 7 / 10), "{arrivals:?}");
    assert!(report.answers.marked >= report.answers.notifications && report.answers.notifications > 8);
    assert_eq!(simulate(switch(5), &dcqcn(), &messages), (arrivals, report));
}

#[test]
fn a_flow_that_waits_does_not_hold_up_the_others_of_its_host() {
    // Host 1 is slowed down on its way to 0, to which 2 also sends; meanwhile 1 sends to 3.
    let messages = [(0, 1, 0, 300 * MTU), (0, 2, 0, 300 * MTU), (0, 1, 3, 100 * MTU)];
    let (arrivals, _) = simulate(switch(4), &dcqcn(), &messages);
    assert!(arrivals[2] < 300 * PACKET, "{arrivals:?}");
    // Without congestion, rate control has no effect.
    let alone = [(0, 1, 0, 300 * MTU), (0, 1, 3, 100 * MTU)];
    assert_eq!(simulate(switch(4), &dcqcn(), &alone).0, simulate(switch(4), &sc17(), &alone).0);
}

fn trim(buffer: u64, window: u32) -> Parameters {
    with(|parameters| {
        (parameters.flow, parameters.buffer) = (Flow::Trim, buffer);
        parameters.transport.trim.window = window;
    })
}

#[test]
fn what_a_full_queue_trims_is_pulled() {
    // The packets of two senders arrive in pairs, one each T, and the port sends one in T. It holds four, so one of
    // each pair from the third on is trimmed. The first NACK and pull reach their sender before 5 T; up to four packets
    // each have left by then, and retransmitted ones arrive one in T and find room.
    let run =
        |packets: u64| simulate(switch(3), &trim(4 * MTU, 30), &[(0, 1, 0, packets * MTU), (0, 2, 0, packets * MTU)]);
    for packets in [2, 3, 4] {
        let (arrivals, report) = run(packets);
        let trimmed = packets - 2;
        assert_eq!((report.answers.trimmed, report.resent, report.answers.pulls), (trimmed, trimmed, trimmed));
        // All packets and all headers cross the last link; it may idle for a round trip of the last NACK.
        let (end, busy) = (*arrivals.iter().max().unwrap(), 2 * packets * PACKET + trimmed * 64 * G + PATH);
        assert!((busy..=busy + 2 * PATH + 3 * 64 * G).contains(&end), "{packets}: {end} {busy}");
    }
    // Longer messages: retransmitted packets meet the rest of the first windows.
    for packets in [10, 30, 100] {
        let (arrivals, report) = run(packets);
        assert!((packets.min(30) - 2..2 * packets).contains(&report.answers.trimmed), "{packets}: {report:?}");
        assert_eq!((report.packets, report.drops, report.resent), (2 * packets, 0, report.answers.trimmed));
        let end = *arrivals.iter().max().unwrap();
        assert!((2 * packets * PACKET..(2 * packets + 20) * PACKET).contains(&end), "{packets}: {}", end / PACKET);
        // The waiting data is at most the buffer, plus headers.
        let queue = report.longest_queue.unwrap().longest_queue;
        assert!((3 * MTU..=5 * MTU + 64).contains(&queue), "{queue}");
    }
    // With room for all, no packet is trimmed, and the last link is never idle.
    let (arrivals, report) = simulate(switch(3), &trim(1 << 20, 30), &[(0, 1, 0, 9 * MTU), (0, 2, 0, 9 * MTU)]);
    assert_eq!((report.answers.trimmed, report.answers.pulls), (0, 0));
    assert_eq!(arrivals.iter().max(), Some(&(18 * PACKET + PATH)));
}

#[test]
fn a_window_lets_a_sender_send_one_packet_a_round_trip() {
    let (arrivals, report) = simulate(switch(2), &trim(1 << 20, 1), &[(0, 0, 1, 5 * MTU)]);
    // The pull leaves when the packet arrives.
    let round = PACKET + PATH + 64 * G + PATH;
    assert_eq!(arrivals, [4 * round + PACKET + PATH]);
    assert_eq!((report.answers.pulls, report.packets), (4, 5));
    // A window of the round trip keeps the link busy.
    let window = (round.div_ceil(PACKET) + 1) as u32;
    assert_eq!(simulate(switch(2), &trim(1 << 20, window), &[(0, 0, 1, 50 * MTU)]).0, [50 * PACKET + PATH]);
}

/// Returns parameters that pause a channel above two packets, and resume it at one.
fn pfc() -> Parameters {
    with(|parameters| {
        (parameters.flow, parameters.buffer) = (Flow::Pfc, 1 << 16);
        (parameters.transport.pfc.pause, parameters.transport.pfc.resume) = (Some(2 * MTU), Some(MTU));
    })
}

#[test]
fn senders_are_paused_and_go_on() {
    // The switch stores the third packet of the second sender at 2 T (from the first one's head on), of the first
    // sender at 3 T. One packet leaves each T, alternately; the second sender has one left at 6 T, the first at 7 T.
    // Frames take equally long, so both are paused for 4 T. By then the second has sent four packets and the first
    // five.
    let messages = |packets| [(0, 1, 0, packets * MTU), (0, 2, 0, packets * MTU)];
    let (arrivals, report) = simulate(switch(3), &pfc(), &messages(5));
    assert_eq!((report.answers.pauses, report.answers.paused), (2, Time::from_ps(8 * PACKET)));
    // The second sender's last packet leaves its host at the resume frame, and waits for two others.
    assert_eq!(arrivals, [9 * PACKET + PATH, 10 * PACKET + PATH]);
    // Longer messages: the link never idles, and neither sender is favoured.
    let (arrivals, report) = simulate(switch(3), &pfc(), &messages(500));
    assert_eq!(arrivals.iter().max(), Some(&(1000 * PACKET + PATH)));
    assert!(arrivals.iter().all(|arrival| *arrival > 995 * PACKET), "{arrivals:?}");
    assert_eq!((report.drops, report.resent), (0, 0));
    // The queue is bounded by the bytes that both may have stored before they stop.
    assert!(report.longest_queue.unwrap().longest_queue <= 2 * 4 * MTU);
}

#[test]
fn pauses_spread_backwards_and_nothing_is_lost() {
    let tightest = with(|parameters| {
        parameters.flow = Flow::Pfc;
        // Two wires, a switch and a frame are 5,904 bytes.
        parameters.buffer = 5_904 + 2 * MTU + 1;
    });
    for (topology, hosts) in [
        (Topology::fat_tree(4, 1, 16).unwrap(), 16),
        (Topology::torus(&[4, 4], 1).unwrap(), 16),
        (Topology::dragonfly(crate::Dragonfly::for_hosts(16)).unwrap(), 16),
    ] {
        for routing in [Routing::Ecmp, Routing::Adaptive] {
            let parameters = Parameters { routing, ..tightest.clone() };
            let (arrivals, report) = simulate(topology.clone(), &parameters, &all_to_all(hosts, 5 * MTU));
            assert_eq!((report.packets, report.drops), (16 * 15 * 5, 0));
            assert!(report.answers.pauses > 0, "{}", report.description);
            let again = simulate(topology.clone(), &parameters, &all_to_all(hosts, 5 * MTU));
            assert_eq!(again, (arrivals, report));
        }
    }
}

#[test]
fn all_options_deliver_everything_in_every_topology() {
    let both = [(Flow::Credits, 64), (Flow::Drop, 64), (Flow::Pfc, 64), (Flow::Trim, 64), (Flow::Trim, 0)];
    for topology in [Topology::fat_tree(4, 2, 16).unwrap(), Topology::torus(&[4, 4], 1).unwrap()] {
        for ((flow, ack), rate_control) in both
            .iter()
            .flat_map(|&both| [RateControl::None, RateControl::Dcqcn].map(|rate_control| (both, rate_control)))
        {
            if (flow, rate_control) == (Flow::Trim, RateControl::Dcqcn) {
                continue;
            }
            let parameters = with(|parameters| {
                (parameters.flow, parameters.buffer, parameters.routing) = (flow, 4 * MTU, Routing::Adaptive);
                (parameters.transport.ack, parameters.transport.rate_control) = (ack, rate_control);
            });
            let messages = all_to_all(16, 3 * MTU + 1);
            let (_, report) = simulate(topology.clone(), &parameters, &messages);
            assert_eq!(report.packets, 16 * 15 * 4, "{flow:?} {ack} {rate_control:?}");
            assert_eq!(report.answers.acknowledgements >= report.packets, ack > 0);
            assert_eq!(report.answers.trimmed + report.drops, report.resent, "{flow:?} {ack} {rate_control:?}");
            assert_eq!(simulate(topology.clone(), &parameters, &messages).1, report);
        }
    }
}

#[test]
fn impossible_parameters_are_refused_with_their_key() {
    let usual = Transport::USUAL;
    let refused = |change: &dyn Fn(&mut Parameters)| {
        MessageNetwork::new(switch(2), with(|parameters| change(parameters))).unwrap_err().to_string()
    };
    for (error, change) in [
        (
            "network.fabric.ack_bytes must be at most a packet of 4096 bytes (mtu), is 4097",
            &(|parameters: &mut Parameters| parameters.transport.ack = 4097) as &dyn Fn(&mut Parameters),
        ),
        ("network.fabric.pfc decides nothing without network.fabric.flow = \"pfc\"", &|parameters| {
            parameters.transport.pfc.pause = Some(1);
        }),
        ("network.fabric.trim decides nothing without network.fabric.flow = \"trim\"", &|parameters| {
            parameters.transport.trim.window = 3;
        }),
        ("network.fabric.dcqcn decides nothing without network.fabric.rate_control = \"dcqcn\"", &|parameters| {
            parameters.transport.dcqcn.recovery = 3;
        }),
        ("buffer must be more than 14096 bytes, which come before a pause begins, is 14096", &|parameters| {
            (parameters.flow, parameters.buffer) = (Flow::Pfc, 14_096);
        }),
        (
            "network.fabric.pfc.pause_bytes must be at most 904: 14096 of 15000 bytes come before a pause begins; is 905",
            &|parameters| {
                (parameters.flow, parameters.buffer, parameters.transport.pfc.pause) = (Flow::Pfc, 15_000, Some(905));
            },
        ),
        ("network.fabric.pfc.resume_bytes must be less than the 904 of a pause, is 904", &|parameters| {
            (parameters.flow, parameters.buffer, parameters.transport.pfc.resume) = (Flow::Pfc, 15_000, Some(904));
        }),
        (
            "network.fabric.rate_control \"dcqcn\" is not for network.fabric.flow = \"trim\", in which receivers set the pace",
            &|parameters| {
                (parameters.flow, parameters.transport.rate_control) = (Flow::Trim, RateControl::Dcqcn);
            },
        ),
        ("G must be more than 0 for the rates of network.fabric.rate_control = \"dcqcn\"", &|parameters| {
            parameters.gap_per_byte = sim::TimePerByte::INFINITE;
            parameters.transport = Transport { rate_control: RateControl::Dcqcn, ..usual.clone() };
        }),
    ] {
        assert_eq!(refused(change), error);
    }
}

#[test]
fn the_last_link_of_a_long_way_has_a_channel() {
    // Packets change their channel with each hop, as links of the ring could wait for each other; the path from h0 to h2
    // has as many links between switches as there are channels.
    let ring = "graph { a -- b -- c -- d -- e -- a h0 -- a h1 -- b h2 -- c h3 -- d h4 -- e }";
    for flow in [Flow::Pfc, Flow::Trim, Flow::Credits] {
        let parameters = with(|parameters| (parameters.flow, parameters.buffer) = (flow, 1 << 16));
        let topology = || Topology::from_dot(ring).unwrap();
        let (arrivals, report) = simulate(topology(), &parameters, &[(0, 0, 2, MTU)]);
        assert_eq!(arrivals, [PACKET + 3 * SWITCH + 4 * WIRE]);
        assert_eq!(report.packet_hops - report.answers.pulls, 4, "{flow:?}");
        assert_eq!(simulate(topology(), &parameters, &all_to_all(5, 5 * MTU)).1.packets, 5 * 4 * 5);
    }
}
