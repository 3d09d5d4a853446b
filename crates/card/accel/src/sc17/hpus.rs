use std::collections::VecDeque;

use sim::Time;

/// An HPU. With `n` HPUs, number `i` has the contexts `i`, `i + n`, `i + 2n` and so on.
#[derive(Clone, Debug, Default)]
pub struct Hpu {
    /// The context whose handler occupies the HPU, running or waiting.
    pub running: Option<u16>,
    /// The contexts whose handlers are ready to run.
    pub ready: VecDeque<u16>,
    /// Number of its contexts in which a handler is resident.
    pub resident: u32,
    /// The time for which it was occupied.
    pub busy: Time,
}

/// The HPUs of a unit.
#[derive(Clone, Debug)]
pub struct Hpus(Vec<Hpu>);

impl Hpus {
    /// Creates `count` idle HPUs.
    pub fn new(count: u32) -> Hpus {
        Hpus(vec![Hpu::default(); count as usize])
    }

    /// Number of HPUs.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// The number of the HPU to which a context belongs.
    pub fn of(&self, context: u16) -> u32 {
        u32::from(context) % self.count()
    }

    /// The HPU to which a context belongs.
    pub fn get(&self, context: u16) -> &Hpu {
        &self.0[self.of(context) as usize]
    }

    /// The HPU to which a context belongs.
    pub fn get_mut(&mut self, context: u16) -> &mut Hpu {
        let index = self.of(context) as usize;
        &mut self.0[index]
    }

    /// The time for which all HPUs together were occupied.
    pub fn busy(&self) -> Time {
        self.0.iter().map(|hpu| hpu.busy).sum()
    }

    /// Removes all handlers; the times for which the HPUs were occupied are kept.
    pub fn clear(&mut self) {
        for hpu in &mut self.0 {
            *hpu = Hpu { busy: hpu.busy, ..Hpu::default() };
        }
    }
}
