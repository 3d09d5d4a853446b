//! The messages of simulated cards on the terminal.

use host::{Listener, Message};

use crate::progress;

/// Prints the messages for the user of `command`: warnings, and what handlers print.
pub fn listener(command: &'static str) -> Listener {
    Box::new(move |message| match message {
        Message::Warning(text) => progress::say(&format!("{command}: warning: {text}")),
        Message::Printed(node, printed) => {
            let place = format!("[{node} HPU {} {} {}]", printed.hpu, printed.handler, printed.at);
            let lines = printed.text.strip_suffix('\n').unwrap_or(&printed.text).split('\n');
            lines.for_each(|line| progress::say(&format!("{place} {line}")));
        }
    })
}
