//! Switches that run handlers.

use sim::{Time, TimePerByte};

use crate::Machine;
use crate::accelerator::Accelerator;

/// `[network.switch]`: switches that run handlers (sPIN §7). Every key may be omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchCards {
    /// `handlers`: names of the switches with an accelerator, as reports print them; `*` stands for any characters.
    /// Default: none.
    pub handlers: Vec<String>,
    /// `hpus`: number of HPUs of each such accelerator (only of the kind "sc17"). Default: as many as those of the hosts'
    /// cards have.
    pub hpus: Option<u32>,
    /// `lanes`: the bandwidth between a switch and its accelerator, in links. Default: 1.
    pub lanes: Option<u32>,
}

impl SwitchCards {
    /// The inverse bandwidth between a switch and its accelerator, where a link has this one.
    pub fn gap_per_byte(&self, of_link: TimePerByte) -> TimePerByte {
        TimePerByte::from_fs_per_byte(of_link.as_fs_per_byte() / u64::from(self.lanes.unwrap_or(1)))
    }
}

impl Machine {
    /// The machine as the accelerator of a switch has it: with its own number of HPUs and bandwidth.
    pub fn of_switch(&self) -> Machine {
        let mut machine = self.clone();
        let cards = &self.network.switch_cards;
        machine.network.gap_per_byte = cards.gap_per_byte(self.network.gap_per_byte);
        machine.network.gap = Time::from_ps(self.network.gap.as_ps() / u64::from(cards.lanes.unwrap_or(1)));
        if let (Accelerator::Sc17(unit), Some(hpus)) = (&mut machine.accelerator, cards.hpus) {
            unit.contexts = unit.contexts.max(hpus);
            unit.hpus = hpus;
        }
        machine
    }
}
