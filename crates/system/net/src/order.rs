// SPDX-License-Identifier: Apache-2.0
//! Keys of simultaneous events, for a [`sim::DelayQueue`].
//!
//! Simultaneous events of different places do not affect each other: all effects on other places take a link's latency.
//! Events of one place run in the order of their class, and within a class in the order of the link on which they came.
//! So the order depends only on the place's past, and is the same in simulations of different parts of the network.

/// Class of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    /// Credit returns to a channel.
    Credit,
    /// A packet's head arrives on a channel. It finds the queue as it was before a packet's tail leaves it.
    Hop,
    /// A pause or resume frame arrives for a channel, before its link sends the next packet.
    Frame,
    /// A link becomes free.
    Free,
    /// A packet's last byte arrives at a host.
    Delivered,
    /// A host must retransmit a packet.
    Retransmit,
    /// A message arrives at a host.
    Arrived,
    /// A message has left a host.
    Sent,
    /// A host may pull.
    Pull,
    /// A host continues to send.
    Send,
}

/// Number of classes of the network. The events of an executor have higher classes, so that they follow.
const CLASSES: u8 = 16;

/// Position of the class in a key of [56 bits](sim::DelayQueue::push()), above place and losses.
const CLASS_SHIFT: u32 = 48;

/// Returns the key of an event that an executor adds, with its class, counted from 0, and place.
#[inline]
pub fn key_of_executor(class: u8, place: u32) -> u64 {
    u64::from(CLASSES + class) << CLASS_SHIFT | u64::from(place)
}

/// Returns the key of an event of a link, channel or host.
#[inline]
pub(crate) fn key(class: Class, place: u32) -> u64 {
    (class as u64) << CLASS_SHIFT | u64::from(place)
}

/// Returns the key of a retransmission by a host. Two of them are simultaneous if one packet was lost more often than
/// the other.
pub(crate) fn key_of_retransmission(host: u32, losses: u8) -> u64 {
    key(Class::Retransmit, host) | u64::from(losses) << 32
}
