// SPDX-License-Identifier: Apache-2.0
//! Progress of long tasks on standard error: a line updated in place on a terminal, otherwise a new line per period.

mod display;
mod pace;
mod task;

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use display::Display;
pub use display::say;
use pace::Pace;
pub use task::Task;

use crate::clock;

/// Delay before progress is first shown on a terminal. Shorter tasks show nothing.
const TERMINAL_FIRST: Duration = Duration::from_secs(1);
/// Period of updates on a terminal.
const TERMINAL_EVERY: Duration = Duration::from_millis(100);
/// Period of new lines where standard error is not a terminal.
const LINES_EVERY: Duration = Duration::from_secs(10);

/// Schedule of progress reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// No progress.
    Off,
    /// First report after this time, and on anything but a terminal a new line after each such period.
    Every(Duration),
}

impl When {
    /// Parses the value of an option: `off`, or a number of seconds.
    ///
    /// # Errors
    /// A message with the allowed values.
    pub fn parse(text: &str) -> Result<When, String> {
        let every = || Duration::try_from_secs_f64(text.parse().ok()?).ok().filter(|every| !every.is_zero());
        match text {
            "off" => Ok(When::Off),
            _ => every().map(When::Every).ok_or("is a number of seconds above 0, or `off`".into()),
        }
    }
}

/// Runs `work` while another thread shows its progress. Returns the result of `work` and the CPU time of that thread.
/// `when` is `None` for the default periods.
pub fn watch<T>(program: &str, when: Option<When>, task: &Task<'_>, work: impl FnOnce() -> T) -> (T, Duration) {
    // A dumb terminal, such as an editor's, cannot return to the start of a line.
    let terminal = io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb");
    let (first, every) = match (when, terminal) {
        (Some(When::Off), _) => return (work(), Duration::ZERO),
        (Some(When::Every(first)), true) => (first, first.min(TERMINAL_EVERY)),
        (Some(When::Every(every)), false) => (every, every),
        (None, true) => (TERMINAL_FIRST, TERMINAL_EVERY),
        (None, false) => (LINES_EVERY, LINES_EVERY),
    };
    thread::scope(|scope| {
        let (over, is_over) = mpsc::channel::<()>();
        let watcher = scope.spawn(move || {
            let (start, mut wait) = (Instant::now(), first);
            let mut pace = Pace::default();
            let mut display = None;
            while is_over.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                wait = every;
                let display = display.get_or_insert_with(|| Display::new(program, terminal));
                display.show(&pace.tell(start.elapsed(), task));
            }
            clock::of_thread()
        });
        let result = work();
        drop(over);
        (result, watcher.join().unwrap_or_default())
    })
}
