// SPDX-License-Identifier: Apache-2.0
//! Handlers: their scheduling, and the effects on their message (sPIN §3.2, App. B).
//!
//! The handlers have a few instructions. Their cycles come from the card's statistics, and all other times follow: a
//! cycle takes 0.4 ns, a packet of 4096 bytes 81.92 ns at the port, the match of a header 30 ns and the lookup of
//! another packet 2 ns.

use abi::device::{DmaCmd, PutCmd, cmd, map, ret};
use abi::portals::{AckReq, Event, EventKind, Handle, List, NiFail, Process, me};
use bytemuck::bytes_of;
use nic::testing::code::{A0, A7, ECALL, RET, SPIN, T0, ZERO, addi, bnez, commands, lui, program, returns, sw, twin};
use nic::testing::packets::{data, header, packets, put};
use nic::testing::{Recorder, any_entry};
use nic::{Body, DropReason, NewEntry, Nic, Packet, Request, Track};
use sim::Time;

use crate::rig::{NI, Rig, cards, machine};

const TO: u64 = 0x10_0000;
/// Address of the initial HPU memory state in host memory.
const STATE: u64 = 0x90_0000;
/// Times at which the header packet of the first message is matched and the later packets are looked up, in ps.
const FOUND: [u64; 5] = [111_920, 165_840, 247_760, 329_680, 411_600];
/// Duration of a cycle in ps.
const CYCLE: u64 = 400;

/// Assembles a handler that counts down from `rounds` and returns `code`.
fn works(rounds: i32, code: u32) -> Vec<u32> {
    vec![addi(T0, ZERO, rounds), addi(T0, T0, -1), bnez(T0, -1), addi(A0, ZERO, code as i32), RET]
}

/// Creates a card with an entry that has these handlers: "header", "payload" and "completion".
fn card(settings: &[&str], handlers: [Option<Vec<u32>>; 3]) -> (Rig, Handle) {
    with_state(settings, handlers, &[], 0)
}

/// Creates a [`card`] with HPU memory that starts with `state`, and additional options of the entry.
fn with_state(settings: &[&str], handlers: [Option<Vec<u32>>; 3], state: &[u8], options: u32) -> (Rig, Handle) {
    let settings = [&["hpu.timing=inorder", "hpu.kind=rv32imac"][..], settings].concat();
    let mut rig = cards(1, &settings, Recorder::default());
    let names = ["header", "payload", "completion"];
    let given: Vec<_> = names.into_iter().zip(handlers).filter_map(|(name, code)| Some((name, code?))).collect();
    rig.cards[0].share_program(program(&machine(&settings), &given)).unwrap();
    let twin_of = |name| given.iter().position(|(other, _)| *other == name).map_or(0, twin);
    let eq = rig.cards[0].portals_mut().eq_alloc(NI, 32).unwrap();
    rig.portal(0, NI, 0, 0, eq);
    let mut new: NewEntry = any_entry(TO, 1 << 16, me::EVENT_LINK_DISABLE | options);
    (new.me.header_handler, new.me.payload_handler, new.me.completion_handler) =
        (twin_of("header"), twin_of("payload"), twin_of("completion"));
    if !state.is_empty() {
        rig.around.store(0, STATE, state);
        new.me.hpu_memory = rig.cards[0].hpu_alloc(state.len().max(256) as u64, NI).unwrap();
        (new.me.hpu_initial_state, new.me.hpu_initial_state_length) = (STATE, state.len() as u64);
    }
    rig.append(0, NI, List::Priority, new);
    (rig, eq)
}

/// Delivers the back-to-back packets of a message, from time 0.
fn receive(rig: &mut Rig, bytes: u64) {
    let request = Request { ack: AckReq::Ack, op: Some(5), ..put(bytes) };
    packets(&header(1, request), 4096).into_iter().for_each(|packet| rig.arrive(Time::ZERO, packet));
    rig.run();
}

/// Returns outcome and length of the acknowledgement.
fn acknowledgement(rig: &Rig) -> (NiFail, u64) {
    let [.., last] = &rig.around.departures[..] else { panic!("nothing has left") };
    match last.packet.header.body {
        Body::Response(response) => (response.fail, response.mlength),
        Body::Request(_) => panic!("a request has left last"),
    }
}

/// Returns the duration of each call of a handler in ps; all calls take equally long.
fn duration(rig: &Rig, name: &str) -> u64 {
    let stats = rig.cards[0].stats().handlers[name];
    assert_eq!(stats.min_cycles, stats.max_cycles, "{name}");
    stats.min_cycles * CYCLE
}

/// Returns HPU, start and end in ps of each time that a handler occupied an HPU.
fn stays(rig: &Rig, name: &str) -> Vec<(u32, u64, u64)> {
    let stay = |(track, start, end): (Track, Time, Time)| match track {
        Track::Hpu { hpu, .. } => (hpu, start.as_ps(), end.as_ps()),
        other => panic!("{name} ran on {other:?}"),
    };
    rig.around.named(name).into_iter().map(stay).collect()
}

fn kinds(rig: &mut Rig, eq: Handle) -> Vec<u8> {
    rig.events(0, eq).iter().map(|event| event.kind).collect()
}

/// Returns the only event, an error, and the only warning.
fn error(rig: &mut Rig, eq: Handle) -> (Event, String) {
    let events = rig.events(0, eq);
    let [warning] = &rig.around.warnings[..] else { panic!("warnings: {:?}", rig.around.warnings) };
    assert_eq!(events.iter().map(|event| event.kind).collect::<Vec<_>>(), [EventKind::HandlerError as u8]);
    (events[0], warning.clone())
}

/// The header handler runs alone although all packets have arrived; then the payload handlers run concurrently on
/// different HPUs; the completion handler follows the last of them.
#[test]
fn header_handler_then_payload_handlers_in_parallel_then_completion_handler() {
    let handlers = [works(1000, ret::PROCESS_DATA), works(500, ret::SUCCESS), works(10, ret::SUCCESS)];
    let (mut rig, eq) = card(&[], handlers.map(Some));
    receive(&mut rig, 3 * 4096);
    let [head, payload, completion] = ["header", "payload", "completion"].map(|name| duration(&rig, name));
    assert!(head > FOUND[2], "the packets wait for the header handler");
    let decided = FOUND[0] + head;
    let done = decided + payload;
    assert_eq!(stays(&rig, "header"), [(0, FOUND[0], decided)]);
    assert_eq!(stays(&rig, "payload"), [0, 1, 2].map(|hpu| (hpu, decided, done)));
    assert_eq!(stays(&rig, "completion"), [(0, done, done + completion)]);
    assert_eq!(kinds(&mut rig, eq), [EventKind::Put as u8]);
    assert_eq!(rig.around.written(0), 0, "payload handlers take the place of the deposit");
    assert_eq!(acknowledgement(&rig), (NiFail::Ok, 3 * 4096));
    // The notification of the completion takes 50 ns to the host.
    assert_eq!(rig.around.departures[0].at.as_ps(), done + completion + 50_000);
}

#[test]
fn a_packet_waits_until_an_hpu_is_free() {
    let (mut rig, _) = card(&[], [None, Some(works(1500, ret::SUCCESS)), None]);
    receive(&mut rig, 5 * 4096);
    let payload = duration(&rig, "payload");
    assert!(FOUND[0] + payload > FOUND[4], "the fifth packet waits");
    let mut expected: Vec<_> = (0..4).map(|hpu| (hpu as u32, FOUND[hpu], FOUND[hpu] + payload)).collect();
    expected.push((0, FOUND[0] + payload, FOUND[0] + 2 * payload));
    assert_eq!(stays(&rig, "payload"), expected);
}

/// A handler that waits for its DMA read yields its HPU to another handler with a context there.
#[test]
fn a_waiting_handler_leaves_its_hpu_to_one_with_another_context() {
    let dma = DmaCmd { offset: 0, local: map::HPU_MEMORY + 64, len: 32, ..DmaCmd::default() };
    let argument = map::HPU_MEMORY;
    let mut code = vec![lui(A0, argument), addi(A7, ZERO, cmd::DMA_FROM_HOST as i32), ECALL];
    code.extend([lui(T0, argument), nic::testing::code::lw(A0, T0, 20), addi(A7, ZERO, cmd::DMA_WAIT as i32), ECALL]);
    code.extend(works(200, ret::SUCCESS));
    for contexts in [1, 2] {
        let settings = ["accelerator.hpus=1", &format!("accelerator.contexts={contexts}")];
        let (mut rig, _) = with_state(&settings, [None, Some(code.clone()), None], bytes_of(&dma), 0);
        receive(&mut rig, 2 * 4096);
        let stays = stays(&rig, "payload");
        let first_read = rig.around.named("from host")[0].1.as_ps();
        // Round trip over the host's interconnect, and 32 bytes at 6.7 ps each.
        let back = first_read + 100_000 + 215;
        match contexts {
            1 => {
                assert_eq!(stays.len(), 2, "{stays:?}");
                assert!(stays[0].2 > back, "{stays:?}");
                assert_eq!(stays[1].1, stays[0].2, "the second handler has no context until the first ends");
            }
            _ => {
                assert!(stays.len() > 2, "{stays:?}");
                // The second packet arrives while the first handler waits, and gets the HPU immediately.
                assert_eq!((stays[0].2, stays[1].1), (FOUND[1], FOUND[1]));
                assert!(FOUND[1] < back);
            }
        }
    }
}

/// With two contexts of one HPU, a handler that yields runs again when the other yields.
#[test]
fn handlers_that_yield_take_turns() {
    let mut code = Vec::new();
    for _ in 0..2 {
        code.extend([addi(T0, ZERO, 400), addi(T0, T0, -1), bnez(T0, -1)]);
        code.extend([addi(A7, ZERO, cmd::YIELD as i32), ECALL]);
    }
    code.extend(returns(ret::SUCCESS));
    let (mut rig, _) = card(&["accelerator.hpus=1", "accelerator.contexts=2"], [None, Some(code), None]);
    receive(&mut rig, 2 * 4096);
    let offsets: Vec<u64> = rig
        .around
        .slices
        .iter()
        .filter(|slice| slice.name == "payload")
        .map(|slice| slice.packet.unwrap().offset)
        .collect();
    assert_eq!(offsets, [0, 4096, 0, 4096, 0, 4096]);
    let stays = stays(&rig, "payload");
    assert!(stays.windows(2).all(|pair| pair[0].2 == pair[1].1), "the HPU is never idle: {stays:?}");
}

#[test]
fn the_watchdog_kills_a_handler_that_does_not_end() {
    let (mut rig, eq) = card(&["accelerator.watchdog_cycles=1000"], [None, Some(vec![SPIN]), None]);
    receive(&mut rig, 8);
    let (event, warning) = error(&mut rig, eq);
    assert_eq!((event.ni_fail_type, event.start), (NiFail::HandlerTimeout as u8, 1000));
    assert_eq!(warning, "node 0: payload handler 'payload' was killed after 1000 cycles (accelerator.watchdog_cycles)");
    // 8 bytes occupy the port for 160 ps; the loop is a jump of three cycles, and its 334th iteration exceeds the
    // limit.
    let started = 30_160;
    assert_eq!(stays(&rig, "payload"), [(0, started, started + 3 * 334 * CYCLE)]);
    assert_eq!(acknowledgement(&rig).0, NiFail::HandlerTimeout);
}

/// The portal table entry stops with the handler (sPIN §7), and accepts messages again once the program enables it.
#[test]
fn the_watchdog_may_stop_the_portal() {
    let settings = ["accelerator.watchdog_cycles=1000", "accelerator.watchdog_flow_control=true"];
    let (mut rig, eq) = card(&settings, [None, Some(vec![SPIN]), None]);
    receive(&mut rig, 8);
    assert_eq!(acknowledgement(&rig).0, NiFail::HandlerTimeout);
    assert_eq!(kinds(&mut rig, eq).last(), Some(&(EventKind::PtDisabled as u8)));
    assert_eq!(rig.cards[0].stats().flow_control, 1);
    let again = |rig: &mut Rig, message| {
        let request = Request { ack: AckReq::Ack, op: Some(5), ..put(8) };
        packets(&header(message, request), 4096).into_iter().for_each(|packet| rig.arrive(rig.now, packet));
        rig.run();
        acknowledgement(rig).0
    };
    assert_eq!(again(&mut rig, 2), NiFail::PtDisabled);
    rig.cards[0].portals_mut().pt_enable(NI, 0).unwrap();
    assert_eq!(again(&mut rig, 3), NiFail::HandlerTimeout);
}

#[test]
fn a_handler_that_touches_memory_that_is_not_its_own_fails() {
    for (address, what) in
        [(0x2000_0000, "nobody's memory"), (map::PROGRAM, "its own code"), (map::HPU_MEMORY, "no state")]
    {
        let code = [vec![lui(T0, address), sw(ZERO, T0, 8)], returns(ret::SUCCESS)].concat();
        let (mut rig, eq) = card(&[], [None, Some(code), None]);
        receive(&mut rig, 8);
        let (event, warning) = error(&mut rig, eq);
        assert_eq!((event.ni_fail_type, event.start), (NiFail::Segv as u8, u64::from(address) + 8), "{what}");
        assert!(warning.starts_with("node 0: payload handler 'payload' failed: "), "{what}: {warning}");
        assert_eq!(acknowledgement(&rig), (NiFail::Segv, 0), "{what}");
        assert_eq!(rig.cards[0].stats().counts.drops[&DropReason::HandlerFailed].bytes, 8, "{what}");
    }
}

#[test]
fn return_codes_that_a_handler_does_not_have_are_errors() {
    for (code, fail, message) in [
        (ret::FAIL, NiFail::HandlerFail, "returned FAIL"),
        (ret::SEGV, NiFail::Segv, "returned SEGV"),
        (ret::PROCESS_DATA, NiFail::HandlerFail, "returned 2, which is no return code of a payload handler"),
    ] {
        let (mut rig, eq) = card(&[], [None, Some(returns(code)), None]);
        receive(&mut rig, 8);
        let (event, warning) = error(&mut rig, eq);
        assert_eq!((event.ni_fail_type, event.start), (fail as u8, u64::from(code)));
        assert_eq!(warning, format!("node 0: payload handler 'payload' {message}"));
    }
}

/// Verdicts of the header handler: execution of the payload handler, written data, and success of the message.
#[test]
fn verdicts_of_header_handlers() {
    for (code, payload_runs, written, told) in [
        (ret::PROCESS_DATA, true, 0, Some(NiFail::Ok)),
        (ret::PROCEED, false, 100, Some(NiFail::Ok)),
        (ret::DROP, false, 0, Some(NiFail::Dropped)),
        (ret::PROCESS_DATA_PENDING, true, 0, None),
        (ret::PROCEED_PENDING, false, 100, None),
        (ret::DROP_PENDING, false, 0, None),
    ] {
        let (mut rig, eq) = card(&[], [Some(returns(code)), Some(returns(ret::SUCCESS)), None]);
        receive(&mut rig, 100);
        assert_eq!(!rig.around.named("payload").is_empty(), payload_runs, "{code}");
        assert_eq!(rig.around.written(0), written, "{code}");
        let events = rig.events(0, eq);
        let fails: Vec<u8> = events.iter().map(|event| event.ni_fail_type).collect();
        assert_eq!(fails, told.map(|fail| fail as u8).into_iter().collect::<Vec<_>>(), "{code}");
        let dropped = matches!(code, ret::DROP | ret::DROP_PENDING);
        let expected = if dropped { (NiFail::Dropped, 0) } else { (NiFail::Ok, 100) };
        assert_eq!(acknowledgement(&rig), expected, "{code}");
    }
}

/// A header handler that returns PENDING keeps a use-once entry linked.
#[test]
fn a_pending_message_does_not_use_its_entry_up() {
    let (mut rig, eq) = with_state(&[], [Some(returns(ret::PROCEED_PENDING)), None, None], &[], me::USE_ONCE);
    for id in [1, 2] {
        packets(&header(id, put(8)), 4096).into_iter().for_each(|packet| rig.arrive(rig.now, packet));
        rig.run();
    }
    assert_eq!((kinds(&mut rig, eq), rig.cards[0].stats().counts.drops.len()), (vec![], 0));
    assert_eq!(rig.around.written(0), 16);
}

/// Two packet buffers, and handlers that never release theirs in time: the third packet is lost, the portal table entry
/// stops, the message fails, and the completion handler is notified.
#[test]
fn packets_without_a_buffer_are_lost_and_stop_the_portal() {
    let code = [works(2000, ret::SUCCESS), returns(ret::SUCCESS)];
    let [payload, _] = code;
    // The completion handler stores its first two arguments: lost bytes, and the flow-control flag.
    let completion =
        [vec![lui(T0, map::HPU_MEMORY), sw(A0, T0, 0), sw(nic::testing::code::A1, T0, 4)], commands_to_host()];
    let (mut rig, eq) = with_state(
        &["accelerator.packet_buffer_bytes=8192", "accelerator.hpus=2", "accelerator.contexts=2"],
        [None, Some(payload), Some(completion.concat())],
        &dma_to_host(),
        0,
    );
    receive(&mut rig, 3 * 4096);
    assert_eq!(acknowledgement(&rig), (NiFail::PtDisabled, 2 * 4096));
    assert_eq!(kinds(&mut rig, eq), [EventKind::Put as u8, EventKind::PtDisabled as u8]);
    let stats = rig.cards[0].stats();
    assert_eq!(
        (stats.counts.packets_dropped, stats.flow_control, stats.counts.drops[&DropReason::NoBuffer].bytes),
        (1, 1, 4096)
    );
    assert_eq!(rig.around.load(0, TO, 8), [4096u32.to_le_bytes(), 1u32.to_le_bytes()].concat());
}

/// Returns a DMA command, 64 bytes into the state, that writes the state's first 8 bytes to the start of the entry.
fn dma_to_host() -> Vec<u8> {
    let dma = DmaCmd { offset: 0, local: map::HPU_MEMORY, len: 8, ..DmaCmd::default() };
    [&[0; 64], bytes_of(&dma)].concat()
}

fn commands_to_host() -> Vec<u32> {
    commands(cmd::DMA_TO_HOST, map::HPU_MEMORY + 64, ret::SUCCESS)
}

/// A handler's write to host memory, 2048 bytes at 6.7 ps each, is complete before the message's end is reported,
/// although the handler did not wait for it. The notification takes 50 ns: after the card learns of the write's
/// completion, or directly behind the data.
#[test]
fn a_message_ends_when_its_handlers_writes_are_in_host_memory() {
    let written = data(7, 2048);
    let local = map::HPU_MEMORY + size_of::<DmaCmd>() as u32;
    let state = [bytes_of(&DmaCmd { offset: 0, local, len: 2048, ..DmaCmd::default() }), &written].concat();
    let handler = commands(cmd::DMA_TO_HOST, map::HPU_MEMORY, ret::SUCCESS);
    for (handlers, news) in [
        ("transfers", "after-writes"),
        ("transfers", "behind-writes"),
        ("requests", "after-writes"),
        ("requests", "behind-writes"),
    ] {
        let rules = [&*format!("dma.handlers={handlers}"), &*format!("dma.news={news}")];
        let (mut rig, _) = with_state(&rules, [None, Some(handler.clone()), None], &state, 0);
        let request = Request { ack: AckReq::Ack, op: Some(5), ..put(8) };
        packets(&header(1, request), 4096).into_iter().for_each(|packet| rig.arrive(Time::ZERO, packet));
        while rig.around.departures.is_empty() {
            assert!(rig.step(), "{rules:?}: nothing is acknowledged");
        }
        assert!(rig.around.load(0, TO, 2048) == written, "{rules:?}: the data is not there");
        let (_, began, left) = rig.around.named("to host")[0];
        let (_, _, ended) = *stays(&rig, "payload").last().unwrap();
        let (began, left) = (began.as_ps(), left.as_ps());
        assert_eq!(left - began, if handlers == "transfers" { 13_722 } else { 13_715 });
        assert!(ended < left, "{rules:?}: the handler does not wait for its write");
        let behind = if news == "after-writes" { left + 50_000 } else { left };
        assert_eq!(rig.around.departures[0].at.as_ps(), behind + 50_000, "{rules:?}");
    }
}

/// A put from HPU memory blocks the handler until the packet leaves, unless the machine disables that.
#[test]
fn a_put_from_the_card_blocks_its_handler_until_it_has_left() {
    let put = PutCmd {
        local: u64::from(map::HPU_MEMORY) + 128,
        len: 64,
        match_bits: 3,
        target_id: Process { nid: 0, pid: 0 },
        ..PutCmd::default()
    };
    let state = [bytes_of(&put), &vec![0; 128 - size_of::<PutCmd>()], &data(0, 64)].concat();
    let handler = commands(cmd::PUT_FROM_DEVICE, map::HPU_MEMORY, ret::SUCCESS);
    let ends = [true, false].map(|blocks| {
        let (mut rig, _) =
            with_state(&[&format!("accelerator.put_blocks={blocks}")], [None, Some(handler.clone()), None], &state, 0);
        receive(&mut rig, 8);
        let left = &rig.around.departures[0];
        let Body::Request(request) = left.packet.header.body else { panic!("an answer has left first") };
        assert_eq!((request.match_bits, request.length, &left.packet.data), (3, 64, &data(0, 64)));
        let last = *stays(&rig, "payload").last().unwrap();
        (left.at.as_ps(), last.2)
    });
    let [(left, blocked), (also_left, free)] = ends;
    assert_eq!(left, also_left);
    assert_eq!(blocked - free, 64 * 20, "64 bytes of 20 ps");
}

/// Closing the interface ends the handlers, frees their HPUs, and notifies the initiator.
#[test]
fn an_interface_closed_while_handlers_run() {
    let (mut rig, _) = card(&[], [None, Some(works(1500, ret::SUCCESS)), None]);
    let request = Request { ack: AckReq::Ack, op: Some(5), ..put(6 * 4096) };
    let six: Vec<Packet> = packets(&header(1, request), 4096);
    six.into_iter().for_each(|packet| rig.arrive(Time::ZERO, packet));
    rig.run_until(Time::from_ns(450));
    rig.act(0, |card, ports| card.ni_fini(NI, ports)).unwrap();
    rig.run();
    let closed = 450_000;
    let expected: Vec<_> = (0..4).map(|hpu| (hpu as u32, FOUND[hpu], closed)).collect();
    assert_eq!(stays(&rig, "payload"), expected, "the fifth and the sixth packet never have an HPU");
    assert_eq!(acknowledgement(&rig).0, NiFail::Dropped);
    assert_eq!(rig.cards[0].stats().counts.drops[&DropReason::Closed].messages, 1);
}

/// Packets that precede their header wait on the card, and no handler processes them before the header handler has run.
#[test]
fn the_header_handler_is_first_although_its_packet_is_last() {
    let handlers = [returns(ret::PROCESS_DATA), returns(ret::SUCCESS)].map(Some);
    let [head, payload] = handlers;
    let (mut rig, eq) = card(&[], [head, payload, None]);
    let packets = packets(&header(1, put(3 * 4096)), 4096);
    for packet in packets.into_iter().rev() {
        rig.arrive(rig.now, packet);
        rig.run();
    }
    let (_, _, decided) = stays(&rig, "header")[0];
    assert!(stays(&rig, "payload").iter().all(|(_, start, _)| *start >= decided));
    assert_eq!(rig.cards[0].stats().handlers["payload"].calls, 3);
    assert_eq!(kinds(&mut rig, eq), [EventKind::Put as u8]);
}

/// A switch runs handlers and sends their puts; commands that need a host are refused, with one warning for each.
#[test]
fn handlers_on_a_switch_have_no_host() {
    let dma = DmaCmd { offset: 0, local: map::HPU_MEMORY, len: 8, ..DmaCmd::default() };
    for (command, state, what) in [
        (cmd::DMA_TO_HOST, bytes_of(&dma).to_vec(), "a DMA write"),
        (cmd::DMA_FROM_HOST, bytes_of(&dma).to_vec(), "a DMA read"),
        (cmd::PUT_FROM_HOST, bytes_of(&PutCmd { len: 8, ..PutCmd::default() }).to_vec(), "a put from host memory"),
    ] {
        for has_host in [true, false] {
            let settings = ["hpu.timing=inorder", "hpu.kind=rv32imac"];
            let machine = machine(&settings);
            let mut rig = cards(1, &settings, Recorder::default());
            if !has_host {
                rig.cards[0] = Nic::of_switch(machine.clone(), 0, 1, 0);
                assert_eq!(rig.open(0), NI);
            }
            // The handler returns the error code of its command: FAIL for 0.
            let mut code = vec![lui(A0, map::HPU_MEMORY), addi(A7, ZERO, command as i32), ECALL];
            code.extend([
                addi(T0, A0, 0),
                addi(A0, ZERO, ret::SUCCESS as i32),
                bnez(T0, 2),
                addi(A0, ZERO, ret::FAIL as i32),
                RET,
            ]);
            rig.cards[0].share_program(program(&machine, &[("payload", code)])).unwrap();
            rig.portal(0, NI, 0, 0, abi::portals::EQ_NONE);
            let mut new: NewEntry = any_entry(TO, 1 << 16, me::EVENT_LINK_DISABLE);
            new.me.payload_handler = twin(0);
            rig.around.store(0, STATE, &state);
            new.me.hpu_memory = rig.cards[0].hpu_alloc(256, NI).unwrap();
            (new.me.hpu_initial_state, new.me.hpu_initial_state_length) = (STATE, state.len() as u64);
            rig.append(0, NI, List::Priority, new);
            receive(&mut rig, 8);
            let refusal = "node 0: handler 'payload' uses host memory or a counter of the host, and a switch has no host: the call returns \
                 SPIN_ERR_INVALID";
            let warnings = &rig.around.warnings;
            match has_host {
                true => assert!(!warnings.iter().any(|warning| warning == refusal), "{what}: {warnings:?}"),
                false => {
                    assert_eq!(warnings[..], [refusal], "{what}");
                    assert_eq!(rig.around.written(0), 0, "{what}");
                    assert!(rig.around.named("from host").is_empty(), "{what}");
                }
            }
        }
    }
}
