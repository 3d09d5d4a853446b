// SPDX-License-Identifier: Apache-2.0
//! Sorts arriving frames: for handlers, for the host, dropped; and answers ARP where no host does.

use std::collections::VecDeque;

use frames::address::{Mac, Network};
use packets::frame::{Frame, Link};
use packets::matcher::{Fate, Matcher, Ready};
use packets::rules::Rule;
use pspin_nic::network::Sorted;

use super::card::Packet;

/// Destination of an arriving frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Handlers, perhaps later: [`Sorter::next_ready`].
    Handlers,
    /// The host behind the card.
    Host,
    /// Nothing.
    Dropped,
}

/// Match-action table of a live card.
pub struct Sorter {
    matcher: Matcher<Vec<u8>>,
    ready: VecDeque<Packet>,
    sorted: Sorted,
}

impl Sorter {
    /// Creates a table that holds at most `most_held` packets until the header packets of their messages arrive.
    pub fn new(rules: Vec<Rule>, most_held: u32) -> Sorter {
        let matcher = Matcher::new(rules, most_held as usize);
        Sorter { matcher, ready: VecDeque::new(), sorted: Sorted::default() }
    }

    /// Sorts an arriving frame. Frames with unreadable headers go to the host, whose stack may know them.
    pub fn arrive(&mut self, bytes: &[u8]) -> Verdict {
        let Ok(frame) = Frame::parse(Link::Ethernet, bytes) else {
            self.sorted.to_host += 1;
            return Verdict::Host;
        };
        match self.matcher.arrive(&frame, bytes.to_vec()) {
            Fate::Ready | Fate::Held => {}
            Fate::Host(_) => {
                self.sorted.to_host += 1;
                return Verdict::Host;
            }
            Fate::Dropped(_) => {
                self.sorted.dropped += 1;
                return Verdict::Dropped;
            }
            Fate::Overtook(_) => {
                self.sorted.overtook += 1;
                return Verdict::Dropped;
            }
        }
        while let Some(Ready { packet: bytes, rule, message, is_last, transfer, .. }) = self.matcher.next_ready() {
            self.ready.push_back(Packet { bytes, rule, message, is_last, transfer });
        }
        Verdict::Handlers
    }

    /// Returns the next packet for handlers.
    pub fn next_ready(&mut self) -> Option<Packet> {
        self.ready.pop_front()
    }

    /// Forgets a message that was given up.
    pub fn forget(&mut self, message: u64) {
        self.sorted.overtook += self.matcher.forget(message).len() as u64;
    }

    /// Returns the counts of frames that handlers did not get.
    pub fn sorted(&self) -> Sorted {
        let held = self.matcher.held() as u64;
        Sorted { overtook: self.sorted.overtook + held, ..self.sorted }
    }
}

/// Bytes of an ARP message for IPv4 over Ethernet (RFC 826), and of its frame's header.
const ARP: usize = 28;
const ETHERNET: usize = 14;

/// Returns the answer to an ARP request for the card's address (RFC 826); `None` for other frames.
pub fn arp_answer(frame: &[u8], card: Network, mac: Mac) -> Option<Vec<u8>> {
    let request = frame.get(ETHERNET..ETHERNET + ARP)?;
    // Ethernet, IPv4, their sizes, and the operation 1: request.
    let is_request = frame[12..14] == [0x08, 0x06] && request[..8] == [0, 1, 8, 0, 6, 4, 0, 1];
    if !is_request || request[24..28] != card.address.octets() {
        return None;
    }
    let sender = &request[8..18];
    let mut answer = Vec::with_capacity(60);
    answer.extend(&sender[..6]);
    answer.extend(mac.0);
    answer.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 2]);
    answer.extend(mac.0);
    answer.extend(card.address.octets());
    answer.extend(sender);
    // Least size of an Ethernet frame without its check sequence.
    answer.resize(60, 0);
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arp_requests_for_the_card_are_answered() {
        let card: Network = "10.0.0.1/24".parse().unwrap();
        let (mac, asker) = (Mac([2, 0x50, 10, 0, 0, 1]), [2, 0, 0, 0, 0, 9]);
        let mut request = vec![0xff; 6];
        request.extend(asker);
        request.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        request.extend(asker);
        request.extend([10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
        let answer = arp_answer(&request, card, mac).unwrap();
        let mut expected = asker.to_vec();
        expected.extend(mac.0);
        expected.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
        expected.extend(mac.0);
        expected.extend([10, 0, 0, 1]);
        expected.extend(asker);
        expected.extend([10, 0, 0, 2]);
        assert_eq!(answer[..42], expected);
        assert_eq!(answer.len(), 60);
        request[41] = 3;
        assert_eq!(arp_answer(&request, card, mac), None);
        assert_eq!(arp_answer(&request[..30], card, mac), None);
        request[41] = 1;
        request[21] = 2;
        assert_eq!(arp_answer(&request, card, mac), None, "an answer is no request");
    }
}
