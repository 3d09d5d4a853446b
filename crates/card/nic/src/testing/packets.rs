// SPDX-License-Identifier: Apache-2.0
//! Hand-written messages.

use std::rc::Rc;

use abi::portals::{AckReq, NiFail, Process};

use crate::atomic::MAX_OPERAND;
use crate::message::{Body, Header, MessageId, Packet, Request, RequestKind};

/// Returns a put of `length` bytes from rank 1 to portal table entry 0 of rank 0, with match bits 0 and no
/// acknowledgement.
pub fn put(length: u64) -> Request {
    Request {
        kind: RequestKind::Put,
        pt_index: 0,
        match_bits: 0,
        remote_offset: 0,
        length,
        hdr_data: 0,
        ack: AckReq::None,
        initiator: Process { nid: 1, pid: 0 },
        target: Process { nid: 0, pid: 0 },
        uid: 0,
        op: None,
        operand: [0; MAX_OPERAND],
        fail: NiFail::Ok,
        may_be_lost: false,
    }
}

/// Returns the header of a request from node 1 to node 0, on the logical matching interface.
pub fn header(id: MessageId, request: Request) -> Rc<Header> {
    Rc::new(Header { id, source: 1, target: 0, interface: 0, body: Body::Request(request) })
}

/// Returns the data of a message: each byte is nonzero and depends on its offset.
pub fn data(offset: u64, length: u64) -> Vec<u8> {
    (offset..offset + length).map(|at| (at % 255) as u8 + 1).collect()
}

/// Returns the packets of a message in order.
pub fn packets(header: &Rc<Header>, mtu: u32) -> Vec<Packet> {
    let (length, mtu) = (header.data_length(), u64::from(mtu));
    let offsets = (0..length.max(1)).step_by(mtu as usize);
    let packet = |offset| Packet::new(header.clone(), offset, data(offset, mtu.min(length - offset)));
    offsets.map(packet).collect()
}
