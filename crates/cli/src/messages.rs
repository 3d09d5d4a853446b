//! The messages of simulated cards on the terminal.

use std::cell::Cell;
use std::rc::Rc;

use host::{Listener, Message};

use crate::drops;
use crate::progress;

/// Prints the messages for the user of `command`: warnings, what handlers print, mistakes that the sanitizer has found, which it
/// counts in `found`, and, if asked, what is dropped.
pub fn listener(command: &'static str, shows_drops: bool, found: Rc<Cell<u64>>) -> Listener {
    Box::new(move |message| match message {
        Message::Warning(text) => progress::say(&format!("{command}: warning: {text}")),
        Message::Dropped(reason, dropped) if shows_drops => {
            progress::say(&format!("{command}: dropped: {}", drops::now(reason, dropped)));
        }
        Message::Dropped(..) => {}
        Message::Found(node, mistake) => {
            found.set(found.get() + 1);
            progress::say(&format!("{command}: sanitizer: {node}: {mistake}"));
        }
        Message::Printed(node, printed) => {
            let place = format!("[{node} HPU {} {} {}]", printed.hpu, printed.handler, printed.at);
            let lines = printed.text.strip_suffix('\n').unwrap_or(&printed.text).split('\n');
            lines.for_each(|line| progress::say(&format!("{place} {line}")));
        }
    })
}
