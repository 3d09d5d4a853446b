// SPDX-License-Identifier: Apache-2.0
//! Messages of simulated cards on the terminal.

use std::cell::Cell;
use std::rc::Rc;

use cluster::{Listener, Message};

use crate::drops;
use crate::progress;

/// Returns a listener that prints messages for the user of `command`: warnings, output of handlers, sanitizer reports,
/// which it counts in `found`, and, if `is_verbose`, drops and refused calls.
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
