// SPDX-License-Identifier: Apache-2.0
//! An accelerator that is created on first use.

use std::cell::OnceCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use accel::Accelerator;
use accel::sc17::Quota;

use crate::accelerator::CardModel;

/// Accelerator of a card, created on first use: most cards of a large simulation may never run a handler.
pub struct LazyAccelerator {
    model: Rc<CardModel>,
    made: OnceCell<Box<dyn Accelerator>>,
}

impl LazyAccelerator {
    /// Prepares the accelerator of a node's card, without a program. A debugger needs the accelerator at once.
    pub fn new(model: Rc<CardModel>, node: u32) -> LazyAccelerator {
        let made = match model.take_debugger(node) {
            Some(debugger) => OnceCell::from(model.accelerator(Some(debugger))),
            None => OnceCell::new(),
        };
        LazyAccelerator { model, made }
    }

    /// Creates the accelerator for processes that share it with these quotas.
    pub fn divide(&mut self, quotas: &[Quota]) {
        self.made = OnceCell::from(self.model.divided(quotas));
    }

    /// Returns the accelerator, if it has been used.
    pub fn made(&self) -> Option<&dyn Accelerator> {
        self.made.get().map(|made| &**made)
    }

    /// Returns the accelerator, if it has been used.
    pub fn made_mut(&mut self) -> Option<&mut Box<dyn Accelerator>> {
        self.made.get_mut()
    }
}

impl Deref for LazyAccelerator {
    type Target = dyn Accelerator;

    fn deref(&self) -> &(dyn Accelerator + 'static) {
        &**self.made.get_or_init(|| self.model.accelerator(None))
    }
}

impl DerefMut for LazyAccelerator {
    fn deref_mut(&mut self) -> &mut (dyn Accelerator + 'static) {
        self.made.get_or_init(|| self.model.accelerator(None));
        &mut **self.made.get_mut().expect("it has just been made")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use machine::Machine;

    use super::*;
    use crate::card::Nic;

    #[test]
    fn a_card_makes_its_accelerator_when_that_is_first_used() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
        let machine = Machine::load("sc17-int", &[folder], &[]).unwrap();
        let model = Rc::new(CardModel::new(machine).unwrap());
        let mut card = Nic::all(&model, 0..2, 2, 0).last().unwrap();
        card.trim();
        card.spin.unload();
        assert_eq!((card.stats().packet_buffer_peak, card.stats().hpu_busy.as_ps()), (0, 0));
        assert!(card.spin.accelerator.made().is_none() && card.spin.accelerator.made_mut().is_none());
        assert!(card.spin.accelerator.packet_buffers() > 0);
        assert!(card.spin.accelerator.made().is_some() && card.spin.accelerator.made_mut().is_some());
    }
}
