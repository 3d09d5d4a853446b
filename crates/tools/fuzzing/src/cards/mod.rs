// SPDX-License-Identifier: Apache-2.0
//! Three cards in one process: arbitrary library calls in any order, arbitrary handlers, and injected packets.
//!
//! Every access to host memory is checked against the ranges named by the program ([`world`]). At the end nothing may
//! be in flight, counts must agree, and no handle of a closed interface may be valid. Two executions of an input must
//! have the same outcome.

pub mod program;
pub mod world;

use std::cell::RefCell;
use std::rc::Rc;

use abi::portals::{self as ptl, AckReq, AtomicOp, CtEvent, Datatype, Handle, Iovec, Le, Md, Me, NiFail, NiLimits};
use abi::portals::{Process, md, me, ni, pt};
use arbitrary::{Result, Unstructured};
use bytemuck::{bytes_of, pod_read_unaligned};
use nic::{AtomicSpec, CardModel, Header, NewEntry, Nic, Packet, RequestKind, RmaOp, Target, TriggeredOp};
use sim::Time;

use program::{STATE, TWINS};
use world::{BYTES, START, World};

/// Number of cards, and of further nodes missing from the network.
pub const NODES: u32 = 3;
/// Maximum number of calls of an input.
pub const CALLS: usize = 300;
/// Number of events between two checks for the end, and limit of a run: handlers may send messages forever.
pub const EVENTS: usize = 20_000;
/// Packet size of the machines.
const MTU: u64 = 256;
/// Host address of descriptions that calls read: an iovec, an initial state.
const IOVEC: u64 = START + BYTES as u64 - 256;
const INITIAL: u64 = IOVEC - STATE as u64;

/// Kinds of objects in [`Program::handles`].
const MD: usize = 0;
pub const ENTRY: usize = 1;
pub const EQ: usize = 2;
pub const CT: usize = 3;
const HPU: usize = 4;
pub const NI: usize = 5;

/// Fuzzes arbitrary calls.
pub fn calls(bytes: &[u8]) {
    assert_eq!(play(bytes), play(bytes), "the same input, played twice");
}

/// Sends a message with an acknowledgement from one card to another.
pub fn ping(machine: &Rc<CardModel>) {
    let length = (3 * u64::from(machine.network.mtu) + 100).min(BYTES as u64 / 4);
    let mut world = World::new(machine, 2);
    let mut program = Program::default();
    for node in 0..2 {
        program.open(&mut world, node, ni::MATCHING | ni::LOGICAL);
    }
    let ni = program.handles[1][NI][0];
    let le = Le { start: START, length, ct_handle: ptl::CT_NONE, uid: ptl::ID_ANY, options: me::OP_PUT, pad: 0 };
    let me = Me { le, match_id: Process { nid: ptl::ID_ANY, pid: ptl::ID_ANY }, ..Me::default() };
    program.append(&mut world, 1, ni, me, 0, Append::Now);
    let ct = program.handles[0][CT][0];
    let md = Md { start: START, length, options: md::EVENT_CT_ACK, eq_handle: ptl::EQ_NONE, ct_handle: ct, pad: 0 };
    let md = program.bind(&mut world, 0, program.handles[0][NI][0], md).expect("a memory descriptor");
    let process = Process { nid: 1, pid: 0 };
    let target = Target { process, pt_index: 0, match_bits: 0, remote_offset: 0, user_ptr: 0, hdr_data: 0 };
    world.act(0, |card, ports| {
        let transfer = card.portals_mut().put(md, 0, length, AckReq::Ct as u64, target).expect("a put");
        card.start(transfer, Time::ZERO, ports);
    });
    assert!(world.run(EVENTS), "a message without end");
    assert_eq!(
        world.bench.cards[0].portals_mut().ct_value(ct),
        Ok(CtEvent { success: 1, failure: 0 }),
        "the acknowledgement"
    );
    world.check_counts();
}

/// Returns a machine of one of the three kinds of card, with enough packet buffers or with only two.
pub fn machine(choice: u8) -> Rc<CardModel> {
    thread_local! {
        static MACHINES: RefCell<Vec<Rc<CardModel>>> = const { RefCell::new(Vec::new()) };
    }
    MACHINES.with_borrow_mut(|machines| {
        if machines.is_empty() {
            for nic in ["spin", "portals4", "rdma"] {
                for buffers in [64, 2] {
                    let set = [
                        format!("nic.kind=\"{nic}\""),
                        format!("network.mtu_bytes={MTU}"),
                        format!("accelerator.packet_buffer_bytes={}", buffers * MTU),
                        "accelerator.watchdog_cycles=3000".into(),
                    ];
                    let machine = crate::base::beside("base = \"sc17-int\"", &set);
                    machines.push(Rc::new(CardModel::new(machine).expect("a card with these HPUs")));
                }
            }
        }
        machines[[0, 0, 0, 1, 1, 2, 3, 4][usize::from(choice % 8)]].clone()
    })
}

/// Executes an input. Returns a digest of its outcome.
fn play(bytes: &[u8]) -> u64 {
    let mut u = Unstructured::new(bytes);
    let machine = machine(u.arbitrary().unwrap_or_default());
    let mut world = World::new(&machine, NODES);
    let mut program = Program::default();
    if machine.nic.runs_handlers() {
        let length = u.int_in_range(0..=64).unwrap_or_default();
        let code = u.bytes(length).unwrap_or_default();
        if let Some(device) = program::program(&machine, code) {
            for card in &mut world.bench.cards {
                card.share_program(device.clone()).expect("the program was prepared for these cards");
            }
        }
    }
    for node in 0..NODES as usize {
        program.open(&mut world, node, ni::MATCHING | ni::LOGICAL);
    }
    for _ in 0..CALLS {
        // An input that ends within a call makes no further one.
        if u.is_empty() || program.call(&mut world, &mut u).is_err() {
            break;
        }
    }
    if world.run(EVENTS) {
        program.end(&mut world);
    }
    world.digest()
}

/// Time at which an entry is added to its list.
#[derive(Clone, Copy)]
pub enum Append {
    Now,
    Triggered(Handle, u64),
}

/// Objects that a program created on each node.
#[derive(Default)]
pub struct Program {
    /// Every allocated handle, by node and kind.
    pub handles: [[Vec<Handle>; 6]; NODES as usize],
    /// Handles of closed interfaces.
    pub closed: [Vec<Handle>; NODES as usize],
    /// Number of nodes at the end that make no arbitrary calls.
    pub bystanders: usize,
}

impl Program {
    /// Returns the number of nodes that make arbitrary calls.
    fn callers(&self) -> usize {
        NODES as usize - self.bystanders
    }

    /// Opens an interface with a few objects of each kind.
    pub fn open(&mut self, world: &mut World, node: usize, options: u32) {
        self.init(world, node, options, None);
        let Some(ni) = self.handles[node][NI].last().copied() else { return };
        let nodes = world.bench.cards.len() as u32;
        let map: Rc<[Process]> = (0..nodes).map(|nid| Process { nid, pid: nic::api::DEFAULT_PID }).collect();
        let card = &mut world.bench.cards[node];
        let _ = card.portals_mut().set_map(ni, map);
        for (kind, handle) in [
            (EQ, card.portals_mut().eq_alloc(ni, 8)),
            (CT, card.portals_mut().ct_alloc(ni)),
            (CT, card.portals_mut().ct_alloc(ni)),
        ] {
            self.keep(node, kind, handle);
        }
        let eq = self.handles[node][EQ].last().copied().unwrap_or(ptl::EQ_NONE);
        for options in [0, pt::FLOWCTRL] {
            let _ = card.portals_mut().pt_alloc(ni, options, eq, ptl::PT_ANY);
        }
        let memory = card.hpu_alloc(STATE as u64, ni);
        self.keep(node, HPU, memory);
    }

    fn init(&mut self, world: &mut World, node: usize, options: u32, desired: Option<NiLimits>) {
        let made = world.bench.cards[node].portals_mut().ni_init(ptl::IFACE_DEFAULT, options, ptl::ID_ANY, desired);
        self.keep(node, NI, made.map(|(ni, _)| ni));
    }

    fn keep(&mut self, node: usize, kind: usize, made: std::result::Result<Handle, ptl::ReturnCode>) -> Option<Handle> {
        let handle = made.ok()?;
        self.handles[node][kind].push(handle);
        Some(handle)
    }

    /// Returns a handle, most likely a valid one; or no handle, or an arbitrary word.
    fn any(&self, u: &mut Unstructured<'_>, node: usize, kind: usize) -> Result<Handle> {
        let handles = &self.handles[node][kind];
        Ok(match u.arbitrary::<u8>()? {
            255 => u.arbitrary()?,
            254 if kind == EQ => ptl::EQ_NONE,
            254 if kind == CT => ptl::CT_NONE,
            choice => handles.iter().rev().nth(usize::from(choice) % handles.len().max(1)).copied().unwrap_or(0),
        })
    }

    fn bind(&mut self, world: &mut World, node: usize, ni: Handle, md: Md) -> Option<Handle> {
        let made = world.act(node, |card, ports| card.md_bind(ni, md, ports));
        let handle = self.keep(node, MD, made)?;
        name(world, node, (md.start, md.length, md.options & md::IOVEC != 0), Some(handle));
        Some(handle)
    }

    pub fn append(&mut self, world: &mut World, node: usize, ni: Handle, me: Me, list: u64, when: Append) {
        let matching = ni >> 26 & 2 == 0;
        let pt_index = me.pad;
        let new = NewEntry { me: Me { pad: 0, ..me }, matching, pt_index, user_ptr: 0x1234 };
        if me.hpu_initial_state != 0 {
            world.host(node).name(me.hpu_initial_state, me.hpu_initial_state_length, None);
        }
        let made = world.act(node, |card, ports| {
            let handlers = card.handlers(ni, &new.me, ports)?;
            match when {
                Append::Now => card.append(ni, new, list, handlers, ports),
                Append::Triggered(ct, threshold) => {
                    card.append_triggered(ni, new, list, handlers, (ct, threshold), ports)
                }
            }
        });
        if let Some(handle) = self.keep(node, ENTRY, made) {
            name(world, node, (me.le.start, me.le.length, me.le.options & me::IOVEC != 0), Some(handle));
            name(world, node, (me.handler_host_mem_start, me.handler_host_mem_length, false), Some(handle));
        }
    }

    /// Makes a call, or lets some time pass.
    pub fn call(&mut self, world: &mut World, u: &mut Unstructured<'_>) -> Result<()> {
        let node = u.choose_index(self.callers())?;
        let ni = self.any(u, node, NI)?;
        let index = u32::from(u.arbitrary::<u8>()? % 4);
        let now = world.bench.now;
        match u.arbitrary::<u8>()? % 32 {
            0 => {
                let options = [5, 9, 6, 10, 5, 0, 15, 21][u.choose_index(8)?];
                let desired = u.arbitrary::<bool>()?.then(|| limits(u)).transpose()?;
                self.init(world, node, options, desired);
            }
            1 => self.fini(world, node, ni),
            2 => {
                let options = [5, 9, 6, 10][u.choose_index(4)?];
                self.open(world, node, options);
            }
            3 => {
                let (options, eq) = (u.arbitrary::<u32>()? & 63, self.any(u, node, EQ)?);
                let wanted = if u.arbitrary()? { ptl::PT_ANY } else { u.arbitrary::<u16>()?.into() };
                let _ = world.bench.cards[node].portals_mut().pt_alloc(ni, options, eq, wanted);
            }
            4 => drop(world.bench.cards[node].portals_mut().pt_free(ni, index)),
            5 => drop(world.bench.cards[node].portals_mut().pt_disable(ni, index)),
            6 => drop(world.bench.cards[node].portals_mut().pt_enable(ni, index)),
            7 | 8 => {
                let (start, length, iovec) = range(world, node, u)?;
                let options = (u.arbitrary::<u32>()? & md::MASK & !md::IOVEC) | if iovec { md::IOVEC } else { 0 };
                let (eq_handle, ct_handle) = (self.any(u, node, EQ)?, self.any(u, node, CT)?);
                self.bind(world, node, ni, Md { start, length, options, eq_handle, ct_handle, pad: 0 });
            }
            9 => drop(world.bench.cards[node].portals_mut().md_release(self.any(u, node, MD)?)),
            10..=13 => {
                let me = self.entry(world, node, index, u)?;
                let list = u64::from(u.arbitrary::<u8>()? % 4 == 3);
                let when = match u.arbitrary::<u8>()? % 4 {
                    3 => Append::Triggered(self.any(u, node, CT)?, threshold(u)?),
                    _ => Append::Now,
                };
                self.append(world, node, ni, me, list, when);
            }
            14 => drop(world.bench.cards[node].portals_mut().unlink(self.any(u, node, ENTRY)?)),
            15 => {
                let me = self.entry(world, node, index, u)?;
                let new = NewEntry { me: Me { pad: 0, ..me }, matching: true, pt_index: index, user_ptr: 1 };
                let op = u.arbitrary::<u8>()?.into();
                let _ = world.act(node, |card, ports| card.search(ni, new, op, ports));
            }
            16 => {
                let made = world.bench.cards[node].portals_mut().eq_alloc(ni, u.arbitrary::<u8>()?.into());
                self.keep(node, EQ, made);
            }
            17 => drop(world.bench.cards[node].portals_mut().eq_free(self.any(u, node, EQ)?)),
            18 => drop(world.bench.cards[node].portals_mut().eq_take(self.any(u, node, EQ)?)),
            19 => {
                let made = world.bench.cards[node].portals_mut().ct_alloc(ni);
                self.keep(node, CT, made);
            }
            20 => {
                let ct = self.any(u, node, CT)?;
                let free = u.arbitrary::<bool>()?;
                let _ = if free {
                    world.bench.cards[node].portals_mut().ct_free(ct)
                } else {
                    world.bench.cards[node].portals_mut().ct_cancel(ct)
                };
            }
            21 => {
                let (ct, value) = (self.any(u, node, CT)?, count(u)?);
                let set = u.arbitrary::<bool>()?;
                let _ =
                    world.act(
                        node,
                        |card, ports| {
                            if set { card.ct_set(ct, value, ports) } else { card.ct_inc(ct, value, ports) }
                        },
                    );
            }
            22..=25 => {
                if let Some(transfer) = self.transfer(world, node, index, u)? {
                    world.act(node, |card, ports| card.start(transfer, now + Time::from_ns(65), ports));
                }
            }
            26 => {
                let (ct, threshold) = (self.any(u, node, CT)?, threshold(u)?);
                let op = match u.arbitrary::<u8>()? % 4 {
                    0 => TriggeredOp::CtInc(self.any(u, node, CT)?, count(u)?),
                    1 => TriggeredOp::CtSet(self.any(u, node, CT)?, count(u)?),
                    2 => TriggeredOp::Unlink(self.any(u, node, ENTRY)?),
                    _ => match self.transfer(world, node, index, u)? {
                        Some(transfer) => TriggeredOp::Transfer(transfer),
                        None => return Ok(()),
                    },
                };
                self.trigger(world, node, ct, threshold, op);
            }
            27 => {
                if u.arbitrary()? {
                    let made = world.bench.cards[node].hpu_alloc(u.arbitrary::<u16>()?.into(), ni);
                    self.keep(node, HPU, made);
                } else {
                    let _ = world.bench.cards[node].hpu_free(self.any(u, node, HPU)?);
                }
            }
            28 => _ = world.bench.complete(node),
            29 if u.arbitrary::<u8>()? % 16 == 0 => {
                world.host(node).dead = true;
                world.act(node, |card, ports| card.reset(ports));
            }
            30 => foreign_message(world, (NODES + 1, node), index, u)?,
            _ => {
                let events = usize::from(u.arbitrary::<u8>()?);
                world.run(if events == 255 { EVENTS } else { events });
            }
        }
        Ok(())
    }

    fn fini(&mut self, world: &mut World, node: usize, ni: Handle) {
        let closed = world.act(node, |card, ports| card.ni_fini(ni, ports));
        if closed.is_ok() && world.bench.cards[node].portals_mut().ni_status(ni, 0).is_err() {
            let of_interface = |handle: &&Handle| **handle >> 26 & 3 == ni >> 26 & 3;
            for handles in &mut self.handles[node][..NI] {
                self.closed[node].extend(handles.iter().filter(of_interface));
                handles.retain(|handle| !of_interface(&handle));
            }
        }
    }

    /// Turns an operation into one triggered by a counter, as the library's calls do.
    fn trigger(&mut self, world: &mut World, node: usize, ct: Handle, threshold: u64, op: TriggeredOp) {
        let card = &mut world.bench.cards[node];
        let interface = match &op {
            TriggeredOp::Transfer(transfer) => Ok(transfer.interface),
            TriggeredOp::CtInc(other, amount) => {
                nic::api::check_increment(*amount).and_then(|()| card.portals_mut().ct_interface(*other))
            }
            TriggeredOp::CtSet(other, _) => card.portals_mut().ct_interface(*other),
            TriggeredOp::Append(entry, _) | TriggeredOp::Unlink(entry) => card.portals_mut().entry_interface(*entry),
        };
        if let Ok(interface) = interface {
            let _ = world.act(node, |card, ports| card.trigger(interface, ct, threshold, op, ports));
        }
    }

    /// Makes an entry for portal `index`, stored in `pad`.
    fn entry(&mut self, world: &mut World, node: usize, index: u32, u: &mut Unstructured<'_>) -> Result<Me> {
        let (start, length, iovec) = range(world, node, u)?;
        let mut options = u.arbitrary::<u32>()? & me::MASK & !me::IOVEC;
        options |= if iovec { me::IOVEC } else { 0 } | if u.arbitrary()? { me::OP_PUT | me::OP_GET } else { 0 };
        let ct_handle = self.any(u, node, CT)?;
        let uid = if u.arbitrary()? { ptl::ID_ANY } else { 7 };
        let anybody = Process { nid: ptl::ID_ANY, pid: ptl::ID_ANY };
        let mut me = Me {
            le: Le { start, length, ct_handle, uid, options, pad: 0 },
            match_id: anybody,
            match_bits: (u.arbitrary::<u8>()? % 4).into(),
            ignore_bits: if u.arbitrary()? { u64::MAX } else { 0 },
            min_free: u.arbitrary::<u8>()?.into(),
            hpu_memory: ptl::INVALID_HANDLE,
            pad: index,
            ..Me::default()
        };
        let roles = u.arbitrary::<u8>()?;
        if roles & 0xf != 0 {
            let twin = |role: u8| if roles >> role & 1 == 0 { 0 } else { TWINS[usize::from(role)] };
            (me.header_handler, me.payload_handler, me.completion_handler) = (twin(0), twin(1), twin(2));
            // The input's own code, in any role.
            match roles >> 4 & 3 {
                1 => me.header_handler = TWINS[3],
                2 => me.payload_handler = TWINS[3],
                3 => me.completion_handler = TWINS[3],
                _ => {}
            }
            me.hpu_memory = self.any(u, node, HPU)?;
            me.user_hdr_size = (u.arbitrary::<u8>()? % 40).into();
            me.handler_host_mem_start = START + u64::from(u.arbitrary::<u8>()?) * 64;
            me.handler_host_mem_length = u.arbitrary::<u8>()?.into();
            let changes = u.int_in_range(0..=12)?;
            let state = program::state(u.bytes(3 * changes)?);
            let at = (INITIAL - START) as usize;
            world.host(node).memory[at..at + STATE].copy_from_slice(&state);
            (me.hpu_initial_state, me.hpu_initial_state_length) = (INITIAL, STATE as u64);
        }
        Ok(me)
    }

    fn transfer(
        &mut self,
        world: &mut World,
        node: usize,
        pt_index: u32,
        u: &mut Unstructured<'_>,
    ) -> Result<Option<RmaOp>> {
        let md = self.any(u, node, MD)?;
        let process = Process { nid: u32::from(u.arbitrary::<u8>()?) % (NODES + 1), pid: nic::api::DEFAULT_PID };
        let target = Target {
            process,
            pt_index,
            match_bits: (u.arbitrary::<u8>()? % 4).into(),
            remote_offset: size(u)?,
            user_ptr: 1,
            hdr_data: u.arbitrary()?,
        };
        let (offset, length, ack) = (size(u)?, size(u)?, u64::from(u.arbitrary::<u8>()? % 5));
        let kind = u.arbitrary::<u8>()? % 8;
        let spec = if kind > 4 { spec(u)? } else { AtomicSpec { op: AtomicOp::Sum, datatype: Datatype::Int8 } };
        let card = &mut world.bench.cards[node];
        let made = match kind {
            0..=2 => card.portals_mut().put(md, offset, length, ack, target),
            3 | 4 => card.portals_mut().get(md, offset, length, target),
            5 => card.portals_mut().atomic(md, offset, length, ack, target, spec),
            kind => {
                let operand = (kind == 7).then_some([3; nic::MAX_OPERAND]);
                let put = (self.any(u, node, MD)?, size(u)?);
                card.portals_mut().fetch_atomic((md, offset), put, length, target, spec, operand)
            }
        };
        Ok(made.ok())
    }

    /// Checks the invariants when nothing is left to do, then closes everything.
    pub fn end(&mut self, world: &mut World) {
        world.check_counts();
        for node in 0..NODES as usize {
            let interfaces = self.handles[node][NI].clone();
            for &ni in &interfaces {
                let card = &mut world.bench.cards[node];
                let idle = (0..512).all(|index| card.portals_mut().pt_idle(ni, index));
                assert!(idle, "a message is under way to card {node}, and nothing is left to do");
            }
            for ni in interfaces {
                self.fini(world, node, ni);
            }
            let card = &mut world.bench.cards[node];
            assert_eq!(card.portals().triggered_left(), 0, "triggered operations of closed interfaces");
            assert_eq!(card.exposed().count(), 0, "memory of closed interfaces");
        }
        assert!(world.run(EVENTS), "cards without interfaces do not come to rest");
        for node in 0..NODES as usize {
            for options in [5, 9, 6, 10] {
                self.open(world, node, options);
            }
            for &handle in &self.closed[node] {
                check_dead(&mut world.bench.cards[node], handle);
            }
        }
    }
}

/// Checks that a handle of a closed interface stays invalid while new ones are open: generations of handles continue.
fn check_dead(card: &mut Nic, handle: Handle) {
    let valid = match handle >> 28 {
        5 => card.portals_mut().eq_take(handle).is_ok(),
        6 => card.portals_mut().ct_value(handle).is_ok(),
        _ => card.ni_handle(handle).is_ok(),
    };
    assert!(!valid, "handle {handle:#x} of a closed interface is valid");
}

/// Names a range, or the ranges of an iovec, and for this call the memory of the iovec itself.
fn name(world: &mut World, node: usize, (start, length, iovec): (u64, u64, bool), holder: Option<Handle>) {
    if !iovec {
        return world.host(node).name(start, length, holder);
    }
    let at = (IOVEC - START) as usize;
    let elements = world.host(node).memory[at..at + 16 * length as usize].to_vec();
    for element in elements.chunks_exact(16).map(pod_read_unaligned::<Iovec>) {
        world.host(node).name(element.base, element.len, holder);
    }
}

/// Returns a range of host memory, or an iovec of a few ranges in memory that the next call may read.
fn range(world: &mut World, node: usize, u: &mut Unstructured<'_>) -> Result<(u64, u64, bool)> {
    let mut part = || Ok((START + u64::from(u.arbitrary::<u16>()?), size(u)?));
    let (start, length) = part()?;
    let count = u64::from(u.arbitrary::<u8>()?);
    if count < 240 {
        // Some entries cover all memory, or everything from an address on.
        return Ok(match count {
            230 => (0, ptl::SIZE_MAX, false),
            231 => (start, ptl::SIZE_MAX, false),
            _ => (start, length, false),
        });
    }
    let count = count - 240;
    for element in 0..count {
        let mut part = || Ok((START + u64::from(u.arbitrary::<u16>()?), u64::from(u.arbitrary::<u8>()?)));
        let (base, len) = part()?;
        let at = (IOVEC - START + 16 * element) as usize;
        world.host(node).memory[at..at + 16].copy_from_slice(bytes_of(&Iovec { base, len }));
    }
    world.host(node).name(IOVEC, 16 * count, None);
    Ok((IOVEC, count, true))
}

/// Returns lengths and offsets near those of packets.
fn size(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match u.arbitrary::<u8>()? {
        255 => u.arbitrary()?,
        choice @ 248.. => MTU * u64::from(choice - 247) + u64::from(u.arbitrary::<u8>()? % 3) - 1,
        choice @ 200.. => 8 * u64::from(choice - 200),
        choice => choice.into(),
    })
}

fn threshold(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(if u.ratio(1, 16)? { u.arbitrary()? } else { u64::from(u.arbitrary::<u8>()? % 4) })
}

fn count(u: &mut Unstructured<'_>) -> Result<CtEvent> {
    Ok(CtEvent { success: threshold(u)?, failure: if u.ratio(1, 4)? { threshold(u)? } else { 0 } })
}

fn spec(u: &mut Unstructured<'_>) -> Result<AtomicSpec> {
    let (op, datatype) = (u.choose(AtomicOp::ALL)?.0, u.choose(Datatype::ALL)?.0);
    Ok(AtomicSpec { op, datatype })
}

fn limits(u: &mut Unstructured<'_>) -> Result<NiLimits> {
    let mut small = || Ok::<_, arbitrary::Error>(i32::from(u.arbitrary::<i8>()?));
    Ok(NiLimits {
        max_entries: small()?,
        max_unexpected_headers: small()?,
        max_mds: small()?,
        max_cts: small()?,
        max_eqs: small()?,
        max_pt_index: small()?,
        max_iovecs: small()?,
        max_list_size: small()?,
        max_triggered_ops: small()?,
        max_msg_size: size(u)?,
        max_atomic_size: size(u)?,
        max_fetch_atomic_size: size(u)?,
        ..NiLimits::default()
    })
}

/// Injects a put without an acknowledgement from a source that need not exist.
pub fn foreign_message(
    world: &mut World,
    (source, node): (u32, usize),
    pt_index: u32,
    u: &mut Unstructured<'_>,
) -> Result<()> {
    let request = nic::Request {
        kind: RequestKind::Put,
        pt_index,
        match_bits: (u.arbitrary::<u8>()? % 4).into(),
        remote_offset: size(u)?,
        length: size(u)? % (8 * MTU),
        hdr_data: u.arbitrary()?,
        ack: AckReq::None,
        initiator: Process { nid: u.arbitrary()?, pid: u.arbitrary()? },
        target: Process { nid: u.arbitrary::<u8>()?.into(), pid: u.arbitrary::<u8>()?.into() },
        uid: u.arbitrary()?,
        op: None,
        operand: [0; nic::MAX_OPERAND],
        fail: NiFail::Ok,
        may_be_lost: false,
    };
    let header = Rc::new(Header {
        id: world.foreign_id(), // message ids are unique in the network
        source,
        target: node as u32,
        interface: u.arbitrary::<u8>()? % 4,
        body: nic::Body::Request(request),
    });
    let packet = |offset: u64| {
        let data = vec![0x5a; MTU.min(request.length - offset) as usize];
        Packet::new(header.clone(), offset, data)
    };
    let mut packets: Vec<Packet> = (0..request.length.max(1)).step_by(MTU as usize).map(packet).collect();
    if request.hdr_data % 2 == 1 {
        packets.reverse(); // packets may precede their header
    }
    packets.into_iter().for_each(|packet| world.inject(packet));
    Ok(())
}
