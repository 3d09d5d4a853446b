use std::collections::VecDeque;
use std::rc::Rc;

use accel::{Accelerator, Finished, HpuMemory, Issued};
use machine::Machine;

use crate::portals::slab::{Kind, Slab};

/// What an accelerator has left to its card.
#[derive(Debug)]
pub(super) enum Work {
    /// To execute a command of a handler.
    Issued(Issued),
    /// To act on the outcome of a handler.
    Finished(Finished),
}

/// What a card has for handlers.
pub struct Spin {
    /// What runs handlers.
    pub accelerator: Box<dyn Accelerator>,
    /// The HPU memory that the program has allocated, by interface.
    pub(super) hpu_memory: [Slab<Rc<HpuMemory>>; 4],
    /// What the accelerator has left to the card.
    pub(super) work: VecDeque<Work>,
    /// Whether the card is at this work.
    pub(super) working: bool,
}

impl Spin {
    /// Creates the accelerator of a machine, without a program.
    pub fn new(machine: &Machine) -> Spin {
        Spin {
            accelerator: accel::create(machine),
            hpu_memory: [0, 1, 2, 3].map(|interface| Slab::new(Kind::Hpu, interface)),
            work: VecDeque::new(),
            working: false,
        }
    }
}
