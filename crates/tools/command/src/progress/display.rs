// SPDX-License-Identifier: Apache-2.0
//! Progress display: a line on a terminal, or lines elsewhere.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::pace::Told;

/// Number of steps of a full bar.
const FULL: u64 = 1000;
/// Terminal codes to return to the start of the line and clear it.
const CLEAR: &str = "\r\x1b[K";

/// Set while the terminal's last line shows progress.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// Line updated on a terminal and cleared at the end, or permanent lines.
pub enum Display {
    Bar(ProgressBar),
    Lines { program: String },
}

impl Display {
    pub fn new(program: &str, is_terminal: bool) -> Display {
        if !is_terminal {
            return Display::Lines { program: program.to_owned() };
        }
        clear_when_interrupted();
        SHOWN.store(true, Ordering::Relaxed);
        let target = ProgressDrawTarget::stderr();
        Display::Bar(ProgressBar::with_draw_target(Some(FULL), target))
    }

    pub fn show(&self, told: &Told) {
        match self {
            Display::Bar(bar) => {
                let template = if told.fraction.is_some() { "{bar:15} {wide_msg}" } else { "{wide_msg}" };
                let style = ProgressStyle::with_template(template).expect("a template of ours");
                bar.set_style(style);
                bar.set_message(told.words.clone());
                bar.set_position((told.fraction.unwrap_or(0.0) * FULL as f64) as u64);
            }
            Display::Lines { program } => say(&format!("{program}: {}", told.words)),
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Display::Bar(bar) = self {
            bar.finish_and_clear();
            SHOWN.store(false, Ordering::Relaxed);
        }
    }
}

/// Writes a message to standard error, above the progress line if there is one. Errors of writing are ignored.
pub fn say(message: &str) {
    let clear = if SHOWN.load(Ordering::Relaxed) { CLEAR } else { "" };
    // One write, so that no update of the progress line intervenes.
    let _ = io::stderr().write_all(format!("{clear}{message}\n").as_bytes());
}

/// Makes SIGINT and SIGTERM clear the progress line before they end this process.
fn clear_when_interrupted() {
    extern "C" fn clear_and_end(signal: libc::c_int) {
        // SAFETY: both functions are async-signal-safe. This handler is no longer installed, so the signal ends the process.
        unsafe {
            if SHOWN.load(Ordering::Relaxed) {
                libc::write(libc::STDERR_FILENO, CLEAR.as_ptr().cast(), CLEAR.len());
            }
            libc::raise(signal);
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: all pointers are valid, and an all-zero action is valid: no flags, an empty mask.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                let mut before: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = clear_and_end as extern "C" fn(libc::c_int) as usize;
                // The handler raises the signal again: its action is then the default, and it is not blocked.
                action.sa_flags = libc::SA_RESETHAND | libc::SA_NODEFER;
                libc::sigaction(signal, std::ptr::null(), &mut before);
                // A signal that was ignored (nohup) stays ignored.
                if before.sa_sigaction == libc::SIG_DFL {
                    libc::sigaction(signal, &action, std::ptr::null_mut());
                }
            }
        }
    });
}
