// SPDX-License-Identifier: Apache-2.0
//! State of the trace file reader, and fields common to several records.

use std::collections::HashMap;
use std::ops::Range;

use super::numbers::Numbers;
use crate::error::Damage;
use crate::event::{Event, RankTrace, What};

/// First bytes of a trace file.
pub const MAGIC: &[u8] = b"SPINTRC1";

pub(super) const START: u8 = 1;
pub(super) const END: u8 = 2;
pub(super) const COMM: u8 = 3;
pub(super) const OTHER: u8 = 4;
pub(super) const SEND: u8 = 16;
pub(super) const ISEND: u8 = 17;
pub(super) const RECV: u8 = 18;
pub(super) const IRECV: u8 = 19;
pub(super) const SENDRECV: u8 = 20;
pub(super) const WAIT: u8 = 21;
pub(super) const FREE: u8 = 22;
pub(super) const ISENDRECV: u8 = 23;
pub(super) const FIRST_COLLECTIVE: u8 = 32;
pub(super) const RMA: u8 = 50;
pub(super) const WIN_CREATE: u8 = 51;
pub(super) const WIN_FREE: u8 = 52;
pub(super) const WIN_FENCE: u8 = 53;
pub(super) const WIN_POST: u8 = 54;
pub(super) const WIN_START: u8 = 55;
pub(super) const WIN_COMPLETE: u8 = 56;
pub(super) const WIN_WAIT: u8 = 57;
pub(super) const WIN_LOCK: u8 = 58;
pub(super) const WIN_UNLOCK: u8 = 59;
pub(super) const WIN_FLUSH: u8 = 60;
pub(super) const WIN_FLUSH_LOCAL: u8 = 61;
pub(super) const RMA_REQUEST: u8 = RMA | NONBLOCKING;
pub(super) const NONBLOCKING: u8 = 64;

/// First record of a trace file: the rank, the number of ranks, and the traced MPI library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    pub rank: u32,
    pub ranks: u32,
    pub library: String,
}

/// Reads the records of a trace file.
pub(super) struct Reader<'a> {
    pub(super) numbers: Numbers<'a>,
    pub(super) start: Start,
    pub(super) resolve: bool,
    pub(super) trace: RankTrace,
    /// Events of each open request.
    pub(super) open: HashMap<u64, Range<usize>>,
    /// Number of communicators with these processes so far.
    pub(super) seen: HashMap<(Vec<u32>, Option<Vec<u32>>), u32>,
}

impl Reader<'_> {
    /// Reads the index of a communicator in [`RankTrace::comms`].
    pub(super) fn comm_place(&mut self) -> Result<u32, Damage> {
        let number = self.numbers.number()?;
        match u32::try_from(number) {
            Ok(place) if (place as usize) < self.trace.comms.len() => Ok(place),
            _ => Err(self.numbers.damage(format!("communicator {number} was not described"))),
        }
    }

    /// Reads a rank of MPI_COMM_WORLD, or 0 for none.
    pub(super) fn peer(&mut self) -> Result<Option<u32>, Damage> {
        match self.numbers.number()? {
            0 => Ok(None),
            peer => match u32::try_from(peer - 1) {
                Ok(rank) if rank < self.start.ranks => Ok(Some(rank)),
                _ => Err(self.numbers.damage(format!("rank {} of {} ranks", peer - 1, self.start.ranks))),
            },
        }
    }

    /// Reads a tag, or 0 for none.
    pub(super) fn tag(&mut self) -> Result<Option<u32>, Damage> {
        match self.numbers.number()? {
            0 => Ok(None),
            tag => match u32::try_from(tag - 1) {
                Ok(tag) if tag < u32::MAX => Ok(Some(tag)),
                _ => Err(self.numbers.damage(format!("tag {}", tag - 1))),
            },
        }
    }

    /// Reads the request of the events from `first` on.
    pub(super) fn request(&mut self, first: usize) -> Result<(), Damage> {
        let request = self.numbers.number()?;
        self.opened(request, first)
    }

    /// Assigns the events from `first` on to a request.
    pub(super) fn opened(&mut self, request: u64, first: usize) -> Result<(), Damage> {
        if self.open.insert(request, first..self.trace.events.len()).is_some() {
            return Err(self.numbers.damage(format!("request {request} is open already")));
        }
        Ok(())
    }

    /// Adds an event without computation before it.
    pub(super) fn push(&mut self, what: What) {
        self.trace.events.push(Event::at_once(what));
    }
}
