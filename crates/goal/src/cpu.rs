use std::collections::VecDeque;

/// A CPU does one thing (`T`) after the other, in the order in which it is given them.
#[derive(Debug)]
pub(crate) struct Cpu<T> {
    waiting: VecDeque<T>,
    state: State<T>,
}

#[derive(Debug)]
enum State<T> {
    Idle,
    /// Looks for something to do.
    Looking,
    Busy(T),
}

impl<T> Default for Cpu<T> {
    /// Idle.
    fn default() -> Cpu<T> {
        Cpu { waiting: VecDeque::new(), state: State::Idle }
    }
}

impl<T: std::fmt::Debug> Cpu<T> {
    /// Adds to what it has to do. Whether it is idle and should look.
    #[inline]
    pub fn add(&mut self, task: T) -> bool {
        self.waiting.push_back(task);
        matches!(self.state, State::Idle)
    }

    /// The next thing to do; idle if there is none.
    #[inline]
    pub fn next(&mut self) -> Option<T> {
        let next = self.waiting.pop_front();
        self.state = if next.is_some() { State::Looking } else { State::Idle };
        next
    }

    /// Starts what takes time.
    #[inline]
    pub fn begin(&mut self, task: T) {
        self.state = State::Busy(task);
    }

    /// Ends it.
    #[inline]
    pub fn end(&mut self) -> T {
        match std::mem::replace(&mut self.state, State::Looking) {
            State::Busy(task) => task,
            state => unreachable!("the end of nothing: {state:?}"),
        }
    }
}
