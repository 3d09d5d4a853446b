// SPDX-License-Identifier: Apache-2.0
//! The messages of simulated cards on the terminal.

use std::cell::Cell;
use std::rc::Rc;

use cluster::{Listener, Message};

use crate::drops;
use crate::progress;

/// Prints the messages for the user of `command`: warnings, what handlers print, mistakes that the sanitizer has found, which it
/// counts in `found`, and, if it is verbose, what is dropped and what is
/// refused.
pub fn listener(command: &'static str, is_verbose: bool, found: Rc<Cell<u64>>) -> Listener {
    Box::new(move |message| match message {
        Message::Warning(text) => progress::say(&format!("{command}: warning: {text}")),
        Message::Dropped(reason, dropped) if is_verbose => {
            progress::say(&format!("{command}: dropped: {}", drops::now(reason, dropped)));
        }
        Message::Refused(text) if is_verbose => progress::say(&format!("{command}: refused: {text}")),
        Message::Dropped(..) | Message::Refused(_) => {}
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
