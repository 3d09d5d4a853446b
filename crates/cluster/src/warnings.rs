use std::collections::BTreeMap;

use sim::Time;

/// Receives each message for the user when it occurs for the first time.
pub type Listener = Box<dyn FnMut(&str)>;

/// Messages for the user. Messages that differ only in addresses count as one message, which is passed on once and
/// counted.
pub struct Warnings {
    listener: Listener,
    /// The first message of each kind, and their number. The key is the message without addresses.
    counted: BTreeMap<String, (String, u64)>,
    first: Option<(Time, String)>,
}

impl Warnings {
    pub(crate) fn new(listener: Listener) -> Warnings {
        Warnings { listener, counted: BTreeMap::new(), first: None }
    }

    pub(crate) fn add(&mut self, now: Time, message: String) {
        if self.first.is_none() {
            self.first = Some((now, message.clone()));
        }
        let (_, count) = self.counted.entry(without_addresses(&message)).or_insert_with(|| {
            (self.listener)(&message);
            (message, 0)
        });
        *count += 1;
    }

    /// The first message of the run, and its time.
    pub fn first(&self) -> Option<&(Time, String)> {
        self.first.as_ref()
    }

    /// Messages that occurred more than once, with their counts.
    pub fn repeated(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counted.values().filter(|(_, count)| *count > 1).map(|(text, count)| (text.as_str(), *count))
    }
}

/// The message with the digits of its hexadecimal numbers removed.
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
    fn messages_that_differ_in_addresses_are_passed_on_once_and_counted() {
        let heard = Rc::new(RefCell::new(Vec::new()));
        let log = heard.clone();
        let mut warnings = Warnings::new(Box::new(move |message| log.borrow_mut().push(message.to_owned())));
        assert_eq!(warnings.first(), None);
        for (ns, message) in [(3, "fault at 0x1f, pc 0x20"), (4, "other"), (5, "fault at 0xABC, pc 0x0")] {
            warnings.add(Time::from_ns(ns), message.to_owned());
        }
        assert_eq!(*heard.borrow(), ["fault at 0x1f, pc 0x20", "other"]);
        assert_eq!(warnings.repeated().collect::<Vec<_>>(), [("fault at 0x1f, pc 0x20", 2)]);
        assert_eq!(warnings.first(), Some(&(Time::from_ns(3), "fault at 0x1f, pc 0x20".to_owned())));
    }
}
