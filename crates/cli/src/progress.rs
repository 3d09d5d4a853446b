//! How far something long is, told on standard error: on a terminal all the time, elsewhere a line now and then.

mod display;
mod pace;

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use display::Display;
pub use display::say;
use pace::Pace;
use sim::Time;

use crate::clock;

/// When to tell on a terminal first; what is over sooner needs no word.
const TERMINAL_FIRST: Duration = Duration::from_secs(1);
/// And how often from then on.
const TERMINAL_EVERY: Duration = Duration::from_millis(100);
/// Where lines stay.
const LINES_EVERY: Duration = Duration::from_secs(10);

/// Whether and when to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Never
    Off,
    /// After so long, and without a terminal so often
    Every(Duration),
}

impl When {
    /// Of an option: `off`, or seconds.
    ///
    /// # Errors
    /// What the option may be.
    pub fn parse(text: &str) -> Result<When, String> {
        let every = || Duration::try_from_secs_f64(text.parse().ok()?).ok().filter(|every| !every.is_zero());
        match text {
            "off" => Ok(When::Off),
            _ => every().map(When::Every).ok_or("is a number of seconds above 0, or `off`".into()),
        }
    }
}

/// What takes long.
pub enum Task<'a> {
    /// Nobody knows how long; in words
    Unknown(String),
    /// Operations
    Counted {
        /// How many are done
        done: &'a (dyn Fn() -> u64 + Sync),
        /// Of how many
        all: u64,
    },
    /// A simulation whose end nobody knows
    Simulated {
        /// Its time
        now: &'a (dyn Fn() -> Time + Sync),
        /// Its events so far
        events: &'a (dyn Fn() -> u64 + Sync),
    },
}

/// Does something, and meanwhile, from another thread, tells how far it is. Also returns the CPU time that telling took.
/// Without an interval given, the usual one.
pub fn watch<T>(program: &str, when: Option<When>, task: &Task<'_>, work: impl FnOnce() -> T) -> (T, Duration) {
    // A dumb terminal, such as an editor's, cannot go back in a line.
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
