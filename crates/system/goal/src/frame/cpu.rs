// SPDX-License-Identifier: Apache-2.0
//! CPU with a first-come-first-served task queue.

use std::collections::VecDeque;

use sim::Time;

/// A CPU that executes tasks of type `T` in sequence, first come first served.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Cpu<T> {
    state: State<T>,
    /// Oldest waiting task, stored inline: of thousands of CPUs, few have more than one waiting task, so a whole CPU
    /// usually fits into one cache line.
    first: Option<T>,
    others: VecDeque<T>,
}

#[derive(Debug)]
enum State<T> {
    /// Idle since this time.
    Idle(Time),
    /// Choosing its next task.
    Choosing,
    Busy(T),
}

impl<T> Default for Cpu<T> {
    /// Creates a CPU that is idle from the start.
    fn default() -> Cpu<T> {
        Cpu { state: State::Idle(Time::ZERO), first: None, others: VecDeque::new() }
    }
}

impl<T: Copy + std::fmt::Debug> Cpu<T> {
    /// Adds a task. If the CPU is idle, returns the time since which it is idle; the CPU must then choose this task.
    #[inline]
    pub fn add(&mut self, task: T) -> Option<Time> {
        if self.first.is_none() {
            self.first = Some(task);
        } else {
            self.others.push_back(task);
        }
        if let State::Idle(since) = self.state { Some(since) } else { None }
    }

    /// Takes the next task, or becomes idle without one.
    #[inline]
    pub fn next(&mut self, now: Time) -> Option<T> {
        let next = self.first.take();
        if next.is_some() {
            self.first = self.others.pop_front();
        }
        self.state = if next.is_some() { State::Choosing } else { State::Idle(now) };
        next
    }

    /// Returns the task that waits behind `before` others, if any.
    #[inline]
    pub fn waiting(&self, before: usize) -> Option<T> {
        match before {
            0 => self.first,
            _ => self.others.get(before - 1).copied(),
        }
    }

    /// Starts a task that takes time.
    #[inline]
    pub fn begin(&mut self, task: T) {
        self.state = State::Busy(task);
    }

    /// Returns the task that occupies the CPU.
    #[inline]
    pub fn current(&self) -> Option<T> {
        if let State::Busy(task) = self.state { Some(task) } else { None }
    }

    /// Ends and returns the task that occupies the CPU; `None` if the CPU is not busy.
    #[inline]
    pub fn end(&mut self) -> Option<T> {
        match std::mem::replace(&mut self.state, State::Choosing) {
            State::Busy(task) => Some(task),
            State::Idle(_) | State::Choosing => None,
        }
    }
}
