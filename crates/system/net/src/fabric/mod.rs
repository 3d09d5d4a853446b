// SPDX-License-Identifier: Apache-2.0
//! A simulation of packets that queue for the links of a [`Topology`](crate::Topology).
//!
//! - **Switches cut through.** The simulation follows a packet's head: it incurs the wire's latency and the switching
//!   delay, joins the first-come-first-served queue of its output port, and leaves when the link is free; its bytes
//!   follow at the link's rate. So a message pays its bytes once and the path's latency once, as in the sPIN paper's
//!   network (§4.2) and LogGP. A blocked packet is stored as a whole (virtual cut-through). Before a faster link the
//!   head waits until the tail cannot fall behind.
//! - **Credits.** With [`Flow::Credits`] every virtual channel of every link has a buffer at its far end. A packet
//!   leaves only if the buffer has room for it; otherwise all packets of its channel wait behind it. The space returns
//!   one wire latency after the packet's tail leaves that buffer. No packet is lost, and congestion spreads backwards,
//!   up to the sending hosts. Channels and routes prevent cyclic waits between links (see the topologies).
//! - **Drop.** With [`Flow::Drop`] each output port of a switch has a buffer, and a packet that finds no room is lost.
//!   Its host retransmits it after a time-out longer than any packet's flight, doubled with each further loss.
//!   Acknowledgements have no weight.
//!
//! - **Pause frames.** With [`Flow::Pfc`] a switch counts the bytes that it stores from each virtual channel of each
//!   link, and pauses a channel that has too many (IEEE 802.1Qbb). Buffers have headroom for the bytes still in flight.
//! - **Trimming.** With [`Flow::Trim`] a packet that finds an output port's queue full loses its data; its header
//!   overtakes the queue, and the receiver requests the data again (NDP, SIGCOMM 2017).
//! - **Control packets.** [`Transport`] has acknowledgements, and marks with notifications for the senders (ECN, CNP).
//!
//! A hop is one event; with pause frames and trimming, the end of a packet on a link is another. When a packet's head
//! reaches a port, its departure time is determined, unless it lacks credit: then the return of credit is an event too.
//!
//! The hosts are an [`Edge`]: it decides when a packet leaves its host, and is notified of arrivals.

mod answers;
mod credit;
mod engine;
mod link;
mod links_and_hosts;
mod packet;
mod parameters;
mod prefetch;
mod queues;
mod report;
mod route;
mod statistics;

pub use answers::Counts;
pub(crate) use answers::Signal;
pub(crate) use link::Kind;
pub use links_and_hosts::Event;
pub(crate) use links_and_hosts::{Arrival, Edge, Fabric, Frame, Left, ReturnedCredit, Rounding, ranges};
pub(crate) use packet::{NewPacket, Packet};
pub use parameters::{Flow, Parameters, RateControl, Routing, Transport};
pub use statistics::{Crossing, LinkReport, Report, Traffic};
