use std::collections::VecDeque;

/// Something for a CPU to do: an operation, or to take what came of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Task(u32);

/// What is to be done. The numbers also tell the network's messages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// An operation; never a message.
    Operation,
    /// An eager message, or the request to send a longer one.
    Message,
    /// The data of a longer message.
    Data,
    /// The answer that the way is clear.
    Clear,
}

const SHIFT: u32 = 30;

impl Task {
    pub fn new(op: u32, phase: Phase) -> Task {
        Task(op | (phase as u32) << SHIFT)
    }

    /// From the token of a message.
    #[inline]
    pub fn from_token(token: u32) -> Task {
        Task(token)
    }

    #[inline]
    pub fn token(self) -> u32 {
        self.0
    }

    #[inline]
    pub fn op(self) -> u32 {
        self.0 & ((1 << SHIFT) - 1)
    }

    #[inline]
    pub fn phase(self) -> Phase {
        match self.0 >> SHIFT {
            0 => Phase::Operation,
            1 => Phase::Message,
            2 => Phase::Data,
            _ => Phase::Clear,
        }
    }
}

/// A CPU does one thing after the other.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    waiting: VecDeque<Task>,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    /// Looks for something to do.
    Looking,
    Busy(Task),
}

impl Cpu {
    /// Adds to what it has to do. Whether it is idle and should look.
    #[inline]
    pub fn add(&mut self, task: Task) -> bool {
        self.waiting.push_back(task);
        matches!(self.state, State::Idle)
    }

    /// The next thing to do; idle if there is none.
    #[inline]
    pub fn next(&mut self) -> Option<Task> {
        let next = self.waiting.pop_front();
        self.state = if next.is_some() { State::Looking } else { State::Idle };
        next
    }

    /// Starts what takes time.
    #[inline]
    pub fn begin(&mut self, task: Task) {
        self.state = State::Busy(task);
    }

    /// Ends it.
    #[inline]
    pub fn end(&mut self) -> Task {
        match std::mem::replace(&mut self.state, State::Looking) {
            State::Busy(task) => task,
            state => unreachable!("the end of nothing: {state:?}"),
        }
    }
}
