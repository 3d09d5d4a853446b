//! Unexpected messages: what lands on the overflow list, and the appends and searches that find it
//! (Portals 4.3 §3.11, §3.12.3).

use abi::portals::{self as ptl, Event, EventKind, Handle, List, NiFail, Rc as Code, SearchOp, me};

use crate::atomic::MAX_OPERAND;
use crate::card::Card;
use crate::complete::{FAILURE, plain_event, success};
use crate::entry::Entry;
use crate::message::{MessageId, Request, RequestKind};
use crate::ports::Ports;

/// What an entry that takes an unexpected header wants to know about it.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    user_ptr: u64,
    options: u32,
    ct: Handle,
    /// Whether an AUTO_UNLINK follows.
    unlink: bool,
}

impl Claim {
    fn of(entry: &Entry, unlink: bool) -> Claim {
        Claim { user_ptr: entry.user_ptr, options: entry.options, ct: entry.ct, unlink }
    }
}

/// What became of an entry offered to the unexpected list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It is used up and never linked.
    UsedUp,
    /// It is to be linked.
    Link,
}

impl Card {
    /// Offers a new priority entry to the unexpected headers, oldest first.
    pub(crate) fn offer_to_unexpected(&mut self, index: u8, entry: &mut Entry, ports: &mut impl Ports) -> Offered {
        let counts_up = entry.options & (me::MANAGE_LOCAL | me::LOCAL_INC_UH_RLENGTH)
            == me::MANAGE_LOCAL | me::LOCAL_INC_UH_RLENGTH;
        while let Some((position, length)) = self.find_unexpected(index, entry, 0) {
            if counts_up {
                entry.local_offset = entry.local_offset.saturating_add(length);
            }
            // Without LOCAL_INC_UH_RLENGTH a header takes no room: min_free is for what arrives later.
            let used_up = entry.has(me::USE_ONCE) || counts_up && entry.used_up();
            self.claim(index, entry.pt_index, position, Claim::of(entry, used_up), ports);
            if used_up {
                return Offered::UsedUp;
            }
        }
        Offered::Link
    }

    /// `PtlMESearch` and `PtlLESearch`.
    pub(crate) fn search_unexpected(
        &mut self,
        index: u8,
        entry: &Entry,
        op: SearchOp,
        ports: &mut impl Ports,
    ) -> Result<(), Code> {
        let once = entry.has(me::USE_ONCE);
        let (mut from, mut found) = (0, false);
        while let Some((position, _)) = self.find_unexpected(index, entry, from) {
            found = true;
            match op {
                SearchOp::Delete => self.claim(index, entry.pt_index, position, Claim::of(entry, false), ports),
                SearchOp::Only => {
                    from = position + 1;
                    self.report_search(index, entry, position, ports);
                }
            }
            if once {
                return Ok(());
            }
        }
        if !found {
            let eq = self.interface(index).ok_or(Code::ArgInvalid)?.portal(entry.pt_index)?.eq;
            let mut event = plain_event(EventKind::Search, entry.pt_index, entry.user_ptr);
            event.ni_fail_type = NiFail::NoMatch as u8;
            self.post(index, eq, event, ports);
        }
        if entry.has(me::EVENT_CT_OVERFLOW) {
            self.count(index, entry.ct, FAILURE, ports);
        }
        Ok(())
    }

    fn report_search(&mut self, index: u8, entry: &Entry, position: usize, ports: &mut impl Ports) {
        let Some(Ok(portal)) = self.interface(index).map(|interface| interface.portal(entry.pt_index)) else { return };
        let mut event = portal.unexpected[position].event;
        let (eq, amount) = (portal.eq, if entry.has(me::EVENT_CT_BYTES) { event.mlength } else { 1 });
        event.kind = EventKind::Search as u8;
        event.user_ptr = entry.user_ptr;
        self.post(index, eq, event, ports);
        if entry.has(me::EVENT_CT_OVERFLOW) {
            self.count(index, entry.ct, success(amount), ports);
        }
    }

    /// Position and requested length of the first unexpected header from `from` on that `entry` matches.
    fn find_unexpected(&mut self, index: u8, entry: &Entry, from: usize) -> Option<(usize, u64)> {
        let interface = self.interface(index)?;
        let (matching, logical) = (interface.matching(), interface.logical());
        let portal = interface.portal(entry.pt_index).ok()?;
        portal.unexpected.iter().enumerate().skip(from).find_map(|(position, header)| {
            entry.matches(&request_of(&header.event), matching, logical).then_some((position, header.event.rlength))
        })
    }

    /// Takes a header off the list for an entry; the event waits until the data has landed.
    fn claim(&mut self, index: u8, pt_index: u32, position: usize, claim: Claim, ports: &mut impl Ports) {
        let Some(interface) = self.interface(index) else { return };
        let Ok(portal) = interface.portal(pt_index) else { return };
        let Some(header) = portal.unexpected.remove(position) else { return };
        if header.complete {
            self.report_overflow(index, header.event, claim, ports);
        } else if let Some(delivery) = self.delivery(header.message) {
            delivery.claim = Some(claim);
        }
        self.drop_header(index, header.entry, ports);
        if header.complete {
            self.report_claim_unlink(index, pt_index, claim, ports);
        }
    }

    fn drop_header(&mut self, index: u8, entry: Handle, ports: &mut impl Ports) {
        let Some(interface) = self.interface(index) else { return };
        interface.unexpected_headers -= 1;
        if let Ok(overflow) = interface.entries.get_mut(entry) {
            overflow.unexpected -= 1;
        }
        self.release_entry(index, entry, ports);
    }

    /// A message that landed on the overflow list, and that no entry has taken yet, is done. It stays on the list of
    /// unexpected headers with what `event` says of it, unless handlers have dropped it.
    pub(crate) fn unexpected_complete(
        &mut self,
        index: u8,
        message: MessageId,
        event: Event,
        dropped: bool,
        ports: &mut impl Ports,
    ) {
        let Some(Ok(portal)) = self.interface(index).map(|interface| interface.portal(event.pt_index)) else { return };
        let Some(position) = portal.unexpected.iter().position(|header| header.message == message) else { return };
        if dropped {
            if let Some(header) = portal.unexpected.remove(position) {
                self.drop_header(index, header.entry, ports);
            }
        } else {
            (portal.unexpected[position].event, portal.unexpected[position].complete) = (event, true);
        }
    }

    /// Tells of a header that an appended entry or a search has taken, when the message is done.
    pub(crate) fn report_overflow(&mut self, index: u8, mut event: Event, claim: Claim, ports: &mut impl Ports) {
        let Some(Ok(portal)) = self.interface(index).map(|interface| interface.portal(event.pt_index)) else { return };
        let eq = portal.eq;
        event.kind += 1; // every communication event is followed by its overflow twin
        event.user_ptr = claim.user_ptr;
        if claim.options & me::EVENT_OVER_DISABLE == 0 {
            self.post(index, eq, event, ports);
        }
        if claim.options & me::EVENT_CT_OVERFLOW != 0 {
            let amount = if claim.options & me::EVENT_CT_BYTES != 0 { event.mlength } else { 1 };
            let ok = event.ni_fail_type == NiFail::Ok as u8;
            self.count(index, claim.ct, if ok { success(amount) } else { FAILURE }, ports);
        }
    }

    /// Tells that the appended entry is used up by the header that it has taken: after the news of the overflow entry that
    /// the header came from (AUTO_FREE), as the reference implementation does.
    pub(crate) fn report_claim_unlink(&mut self, index: u8, pt_index: u32, claim: Claim, ports: &mut impl Ports) {
        if claim.unlink && claim.options & me::EVENT_UNLINK_DISABLE == 0 {
            let eq = self.interface(index).and_then(|ni| ni.portal(pt_index).ok()).map_or(ptl::EQ_NONE, |pt| pt.eq);
            self.post(index, eq, plain_event(EventKind::AutoUnlink, pt_index, claim.user_ptr), ports);
        }
    }
}

/// The request that an unexpected header's event tells of, as far as matching looks at it.
fn request_of(event: &Event) -> Request {
    Request {
        kind: RequestKind::Put, // every kind matches alike
        pt_index: event.pt_index,
        match_bits: event.match_bits,
        remote_offset: event.remote_offset,
        length: event.rlength,
        hdr_data: event.hdr_data,
        ack: ptl::AckReq::None,
        initiator: event.initiator,
        target: ptl::Process::default(),
        uid: event.uid,
        op: None,
        operand: [0; MAX_OPERAND],
        fail: NiFail::Ok,
    }
}

const _: () = assert!(List::Overflow as u8 == 1 && EventKind::PutOverflow as u8 == EventKind::Put as u8 + 1);
