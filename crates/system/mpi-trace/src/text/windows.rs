// SPDX-License-Identifier: Apache-2.0
//! One-sided calls. A line identifies a window by a number valid only on this rank, and which first appears when the
//! window is used. A new number is assigned to the oldest unused window.

use std::collections::HashMap;
use std::sync::Arc;

use super::arguments::Arguments;
use super::calls::{Access as Kind, Call};
use super::line::Line;
use super::reader::Reader;
use crate::error::Damage;
use crate::event::{Access, Group, What, WindowCall, index_of};

/// First number of windows; it distinguishes them from communicators with the same processes.
const FIRST_ORDINAL: u32 = 1 << 31;

/// Windows of a rank, by their indices among its communicators.
#[derive(Debug, Default)]
pub struct Windows {
    /// For each window, in creation order, the address of its variable and its index among the communicators.
    made: Vec<(u64, u32)>,
    used: HashMap<i64, u32>,
    /// Number of windows so far with these processes.
    ordinals: HashMap<Vec<u32>, u32>,
}

impl Windows {
    /// Adds the events of a one-sided call. A new window has the processes of communicator `comm`.
    pub fn call(
        &mut self,
        reader: &mut Reader,
        line: &Line,
        call: Call,
        comm: u32,
        arguments: &Arguments,
    ) -> Result<(), Damage> {
        match call {
            Call::WinCreate => {
                let local = reader.trace.comms[comm as usize].local.clone();
                let before = self.ordinals.entry(local.clone()).or_default();
                let group = Group { local, remote: None, ordinal: FIRST_ORDINAL + *before };
                *before += 1;
                let window = index_of(reader.trace.comms.len());
                reader.trace.comms.push(Arc::new(group));
                reader.trace.has_windows = true;
                self.made.push((arguments.made.unwrap_or(0), window));
                reader.push(What::Window(window, Box::new(WindowCall::Create)));
            }
            Call::WinFree => {
                let place = self.made.iter().rposition(|made| Some(made.0) == arguments.made);
                let place = place.ok_or_else(|| line.damage_in(Some(1), "no window was made there".into()))?;
                let (_, window) = self.made.remove(place);
                self.used.retain(|_, used| *used != window);
                reader.push(What::Window(window, Box::new(WindowCall::Free)));
            }
            Call::Access(kind) => {
                let window = self.used(line, arguments)?;
                let Some(target) = reader.rank(line, window, arguments.ranks[0])? else { return Ok(()) };
                let bytes = |elements: i64, which: usize| reader.bytes_of(line, elements, arguments.types[which]);
                let (bytes, back) = match kind {
                    Kind::Put => (bytes(arguments.counts[0], 0)?, None),
                    Kind::Get => (0, Some(bytes(arguments.counts[0], 0)?)),
                    Kind::Exchange => (bytes(arguments.counts[0], 0)?, Some(bytes(arguments.counts[1], 1)?)),
                    Kind::Fetch => (bytes(1, 0)?, Some(bytes(1, 0)?)),
                    Kind::Compare => (bytes(2, 0)?, Some(bytes(1, 0)?)),
                };
                reader.push(What::Access(Box::new(Access { window, target, bytes, back })));
                let end = index_of(reader.trace.events.len());
                reader.under_way(arguments.request, end - 1..end);
            }
            _ => {
                let window = self.used(line, arguments)?;
                let target = match arguments.ranks.first() {
                    None => None,
                    Some(&rank) => match reader.rank(line, window, rank)? {
                        None => return Ok(()),
                        target => target,
                    },
                };
                let call = match call {
                    Call::Lock => WindowCall::Lock(target),
                    Call::Unlock => WindowCall::Unlock(target),
                    Call::Flush => WindowCall::Flush(target),
                    Call::FlushLocal => WindowCall::FlushLocal(target),
                    _ => WindowCall::Fence,
                };
                reader.push(What::Window(window, Box::new(call)));
            }
        }
        Ok(())
    }

    fn used(&mut self, line: &Line, arguments: &Arguments) -> Result<u32, Damage> {
        let handle = arguments.window.unwrap_or(0);
        if let Some(&window) = self.used.get(&handle) {
            return Ok(window);
        }
        let is_used = |window: u32| self.used.values().any(|&used| used == window);
        let Some(&(_, window)) = self.made.iter().find(|made| !is_used(made.1)) else {
            return Err(line.damage_in(None, format!("window {handle} comes from no call before")));
        };
        self.used.insert(handle, window);
        Ok(window)
    }
}
