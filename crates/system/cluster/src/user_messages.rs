// SPDX-License-Identifier: Apache-2.0
//! Messages for the user, with repeated ones counted.

use std::collections::BTreeMap;

use nic::{DropReason, Drops, Printed};
use sim::Time;

/// A message for the user.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// A warning.
    Warning(&'a str),
    /// A message or a part of it was dropped. `messages` of the drops is 0 for a further part of a message.
    Dropped(DropReason, &'a Drops),
    /// A rank's call was refused, for the first time with this return code.
    Refused(&'a str),
    /// An error in a handler, found by the sanitizer on the card of this node.
    Found(&'a str, &'a str),
    /// A text printed by a handler on the card of this node; the name is like "rank 3".
    Printed(&'a str, &'a Printed),
}

/// Receives each printed text and each drop, and the first occurrence of each warning and refusal.
pub type Listener = Box<dyn FnMut(Message<'_>)>;

/// Messages for the user. Messages that differ only in addresses are passed on once and counted.
pub struct Messages {
    listener: Listener,
    /// First warning of each kind, and number of warnings. The key is the message without addresses.
    counted: BTreeMap<String, (String, u64)>,
    first: Option<(Time, String)>,
}

impl Messages {
    pub(crate) fn new(listener: Listener) -> Messages {
        Messages { listener, counted: BTreeMap::new(), first: None }
    }

    pub(crate) fn warn(&mut self, now: Time, message: String) {
        if self.first.is_none() {
            self.first = Some((now, message.clone()));
        }
        let (_, count) = self.counted.entry(without_addresses(&message)).or_insert_with(|| {
            (self.listener)(Message::Warning(&message));
            (message, 0)
        });
        *count += 1;
    }

    pub(crate) fn print(&mut self, node: &str, printed: &Printed) {
        (self.listener)(Message::Printed(node, printed));
    }

    pub(crate) fn dropped(&mut self, reason: DropReason, drops: &Drops) {
        (self.listener)(Message::Dropped(reason, drops));
    }

    pub(crate) fn refused(&mut self, text: &str) {
        (self.listener)(Message::Refused(text));
    }

    pub(crate) fn found(&mut self, node: &str, mistake: &str) {
        (self.listener)(Message::Found(node, mistake));
    }

    /// Returns the first warning of the run, and its time.
    pub fn first_warning(&self) -> Option<&(Time, String)> {
        self.first.as_ref()
    }

    /// Returns the warnings that occurred more than once, with their counts.
    pub fn repeated_warnings(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counted.values().filter(|(_, count)| *count > 1).map(|(text, count)| (text.as_str(), *count))
    }
}

/// Returns the message without the digits of its hexadecimal numbers.
fn without_addresses(message: &str) -> String {
    let mut parts = message.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("0x");
        text.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit()));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn warnings_that_differ_in_addresses_are_passed_on_once_and_counted() {
        let heard = Rc::new(RefCell::new(Vec::new()));
        let log = heard.clone();
        let mut messages = Messages::new(Box::new(move |message| match message {
            Message::Warning(text) => log.borrow_mut().push(text.to_owned()),
            _ => unreachable!("nothing but warnings"),
        }));
        assert_eq!(messages.first_warning(), None);
        for (ns, message) in [(3, "fault at 0x1f, pc 0x20"), (4, "other"), (5, "fault at 0xABC, pc 0x0")] {
            messages.warn(Time::from_ns(ns), message.to_owned());
        }
        assert_eq!(*heard.borrow(), ["fault at 0x1f, pc 0x20", "other"]);
        assert_eq!(messages.repeated_warnings().collect::<Vec<_>>(), [("fault at 0x1f, pc 0x20", 2)]);
        assert_eq!(messages.first_warning(), Some(&(Time::from_ns(3), "fault at 0x1f, pc 0x20".to_owned())));
    }
}
