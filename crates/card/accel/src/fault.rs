// SPDX-License-Identifier: Apache-2.0
//! Diagnostics of a failed handler: the memory next to a failed access, and the call stack.

use std::fmt::Write as _;

use abi::device::map;
use hpu::{Fault, Program, Thread};

/// Memory range that a handler may access.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Card address of the first byte.
    pub start: u32,
    /// Length in bytes.
    pub length: u32,
    /// Use of the range by the handler.
    pub purpose: Purpose,
}

/// Use of a memory range by a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Stack of the handler.
    Stack,
    /// Handler arguments: the header of a message, or the description of a packet.
    Arguments,
    /// Data of the handler's packet.
    Packet,
    /// HPU memory of the handler's entry.
    State,
    /// Static data of the program.
    Data,
    /// Code and constants of the program.
    Program,
}

/// Maximum distance in bytes at which an address is reported relative to a range.
const NEAR: u32 = 64 << 10;
/// Limit below which an address counts as a member of a structure at address 0.
const NULL: u32 = 4096;

impl Span {
    /// Returns the name for a message; for static data or code, the nearest preceding variable or constant, if known.
    fn name(&self, program: &Program) -> String {
        let length = self.length;
        match self.purpose {
            Purpose::Stack => format!("its stack ({length} B)"),
            Purpose::Arguments => "its arguments".into(),
            Purpose::Packet => format!("its packet ({length} B)"),
            Purpose::State => format!("its HPU memory ({length} B)"),
            Purpose::Data | Purpose::Program => {
                let object = program.object(self.start + length - 1);
                let object = object.filter(|(_, start, _)| *start >= self.start);
                let what = if self.purpose == Purpose::Data { "static data" } else { "program" };
                object.map_or_else(
                    || format!("the {what} ({length} B)"),
                    |(name, _, bytes)| format!("'{name}' ({bytes} B), the last of the {what}"),
                )
            }
        }
    }
}

/// Describes the memory next to a failed access, as the continuation of a sentence; empty if nothing is known.
/// `stack_pointer` is the handler's.
pub fn missed(fault: Fault, spans: &[Span], stack_pointer: u32, program: &Program) -> String {
    let (addr, len, writes) = match fault {
        Fault::Load { addr, len, .. } => (addr, len, false),
        Fault::Store { addr, len, .. } => (addr, len, true),
        _ => return String::new(),
    };
    let end = |span: &Span| span.start + span.length;
    let inside = |span: &&Span| addr >= span.start && addr < end(span);
    // A function's frame may exceed the space below the stack, so its accesses may be anywhere in between.
    let overflown = |span: &&Span| {
        span.purpose == Purpose::Stack && stack_pointer < span.start && (stack_pointer..end(span)).contains(&addr)
    };
    if let Some(stack) = spans.iter().find(overflown) {
        return needs_stack(stack);
    }
    if let Some(span) = spans.iter().find(inside) {
        if addr.saturating_add(len) > end(span) {
            return format!(", across the end of {}", span.name(program));
        }
        if writes && matches!(span.purpose, Purpose::Program | Purpose::Arguments) {
            let constant = program.object(addr).filter(|(_, start, bytes)| addr - start < *bytes);
            let name = constant.map_or_else(|| span.name(program), |(name, ..)| format!("'{name}'"));
            return format!(", in {name}, which cannot be written");
        }
        return String::new();
    }
    if addr < NULL {
        return ", by a null pointer".into();
    }
    // An access below a stack is an overflow; above a stack are other handlers' arguments.
    let below = |span: &Span| span.start.checked_sub(addr);
    let above = |span: &Span| addr.checked_sub(end(span)).filter(|_| span.purpose != Purpose::Stack);
    let distance = |span: &Span| below(span).or_else(|| above(span)).filter(|distance| *distance < NEAR);
    let Some(near) = spans.iter().filter(|span| distance(span).is_some()).min_by_key(|span| distance(span)) else {
        return if is_card_memory(addr) { String::new() } else { ", where the card has no memory".into() };
    };
    let name = near.name(program);
    match (near.purpose, below(near), above(near)) {
        (Purpose::Stack, ..) => needs_stack(near),
        (_, Some(distance), _) => format!(", {distance} B before {name}"),
        (_, None, Some(0)) => format!(", just past the end of {name}"),
        (_, None, distance) => format!(", {} B past the end of {name}", distance.unwrap_or_default()),
    }
}

fn needs_stack(stack: &Span) -> String {
    format!("; it needs more than {} bytes of stack (accelerator.stack_bytes)", stack.length)
}

/// Describes the position of an address in a handler's memory, as the continuation of a sentence: ", 8 B into its HPU
/// memory (64 B)".
pub fn within(address: u32, spans: &[Span], program: &Program) -> String {
    let Some(span) = spans.iter().find(|span| (span.start..span.start + span.length).contains(&address)) else {
        return String::new();
    };
    let object = program.object(address).filter(|(_, start, bytes)| address - start < *bytes);
    match object.filter(|_| span.purpose == Purpose::Data) {
        Some((name, start, bytes)) => format!(", {} B into '{name}' ({bytes} B)", address - start),
        None => format!(", {} B into {}", address - span.start, span.name(program)),
    }
}

fn is_card_memory(address: u32) -> bool {
    (map::HPU_MEMORY..map::RETURN).contains(&address)
}

/// Describes the source location of the instruction at `pc` and its call stack, as the end of a message: ", FILE:LINE
/// in inner, called by handler (FILE:LINE)". Tail calls are missing. Empty if the function is unknown. `read` reads a
/// word of the handler's memory.
pub fn place(program: &Program, thread: &Thread, pc: u32, read: impl FnMut(u32) -> Option<u32>) -> String {
    let frames = program.calls(thread, pc, read);
    let Some((innermost, callers)) = frames.split_first() else { return String::new() };
    let mut text = match innermost.place {
        Some(place) => format!(", {}:{} in {}", place.file, place.line, innermost.function),
        // The compiler moved the instruction away from its source line.
        None if callers.is_empty() && innermost.function == "?" => return String::new(),
        None => format!(", in {}", innermost.function),
    };
    let mut separator = ", called by";
    for same in callers.chunk_by(|a, b| a == b) {
        _ = write!(text, "{separator} {}", same[0].function);
        separator = ",";
        if let Some(place) = same[0].place {
            _ = write!(text, " ({}:{})", place.file, place.line);
        }
        if same.len() > 1 {
            _ = write!(text, " {} times", same.len());
        }
    }
    text
}
