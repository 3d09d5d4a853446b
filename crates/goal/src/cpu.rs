use std::collections::VecDeque;

/// A CPU does one thing (`T`) after the other, in the order in which it is given them.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Cpu<T> {
    state: State<T>,
    /// Who waits longest: with thousands of CPUs, few of whose tasks wait, that of most is in one line of the cache.
    first: Option<T>,
    others: VecDeque<T>,
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
        Cpu { state: State::Idle, first: None, others: VecDeque::new() }
    }
}

impl<T: Copy + std::fmt::Debug> Cpu<T> {
    /// Adds to what it has to do. Whether it is idle and should look.
    #[inline]
    pub fn add(&mut self, task: T) -> bool {
        if self.first.is_none() {
            self.first = Some(task);
        } else {
            self.others.push_back(task);
        }
        matches!(self.state, State::Idle)
    }

    /// The next thing to do; idle if there is none.
    #[inline]
    pub fn next(&mut self) -> Option<T> {
        let next = self.first.take();
        if next.is_some() {
            self.first = self.others.pop_front();
        }
        self.state = if next.is_some() { State::Looking } else { State::Idle };
        next
    }

    /// Starts what takes time.
    #[inline]
    pub fn begin(&mut self, task: T) {
        self.state = State::Busy(task);
    }

    /// What takes time now.
    #[inline]
    pub fn current(&self) -> Option<T> {
        if let State::Busy(task) = self.state { Some(task) } else { None }
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
