// SPDX-License-Identifier: Apache-2.0
//! The HPUs of a unit and their ready queues.

use std::collections::VecDeque;

/// An HPU. With `n` HPUs, HPU `i` has the contexts `i`, `i + n`, `i + 2n` and so on.
#[derive(Clone, Debug, Default)]
pub struct Hpu {
    /// Context of the handler that occupies the HPU, running or waiting.
    pub running: Option<u16>,
    /// Contexts of the handlers that are ready to run.
    pub ready: VecDeque<u16>,
    /// Number of resident handlers.
    pub resident: u32,
}

/// HPUs of a unit.
#[derive(Clone, Debug)]
pub struct Hpus(Vec<Hpu>);

impl Hpus {
    /// Creates `count` idle HPUs.
    pub fn new(count: u32) -> Hpus {
        Hpus(vec![Hpu::default(); count as usize])
    }

    /// Returns the number of HPUs.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns the number of the context's HPU.
    pub fn of(&self, context: u16) -> u32 {
        u32::from(context) % self.count()
    }

    /// Returns the context's HPU.
    pub fn get(&self, context: u16) -> &Hpu {
        &self.0[self.of(context) as usize]
    }

    /// Returns the context's HPU.
    pub fn get_mut(&mut self, context: u16) -> &mut Hpu {
        let index = self.of(context) as usize;
        &mut self.0[index]
    }

    /// Removes all handlers.
    pub fn clear(&mut self) {
        self.0.fill(Hpu::default());
    }
}
