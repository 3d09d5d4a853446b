// SPDX-License-Identifier: Apache-2.0
//! The machine of a switch's accelerator.

use sim::Time;

use crate::Machine;
use crate::accelerator::Accelerator;

impl Machine {
    /// Returns the machine of a switch's accelerator, with its own number of HPUs and bandwidth.
    pub fn of_switch(&self) -> Machine {
        let mut machine = self.clone();
        let cards = &self.network.switch_cards;
        machine.network.gap_per_byte = cards.gap_per_byte(self.network.gap_per_byte);
        machine.network.gap = Time::from_ps(self.network.gap.as_ps() / u64::from(cards.speedup.unwrap_or(1)));
        if let (Accelerator::Sc17(unit), Some(hpus)) = (&mut machine.accelerator, cards.hpus) {
            unit.contexts = unit.contexts.max(hpus);
            unit.hpus = hpus;
        }
        machine
    }
}
