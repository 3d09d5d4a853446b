use sim::Time;

/// The cores of the hosts. Each piece of work takes a core that is free, or else the core that will be free first: the
/// threads of a rank compute concurrently only as far as its host has cores (sPIN §4.2: eight).
#[derive(Debug)]
pub struct Cores {
    count: usize,
    /// For each rank, the times until which the cores that it has used are busy.
    busy_until: Vec<Vec<Time>>,
}

impl Cores {
    pub fn new(ranks: usize, count: u32) -> Cores {
        Cores { count: count as usize, busy_until: vec![Vec::new(); ranks] }
    }

    /// Reserves a core for work that is ready at `now` and takes `span`. Returns when the work starts.
    pub fn reserve(&mut self, rank: usize, now: Time, span: Time) -> Time {
        let cores = &mut self.busy_until[rank];
        if let Some(free) = cores.iter_mut().find(|until| **until <= now) {
            *free = now + span;
            return now;
        }
        if cores.len() < self.count {
            cores.push(now + span);
            return now;
        }
        match cores.iter_mut().min() {
            Some(next) => {
                let start = *next;
                *next = start + span;
                start
            }
            None => now, // not reached: machine files have at least one core
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(count: u64) -> Time {
        Time::from_ns(count)
    }

    #[test]
    fn work_waits_for_the_core_that_is_free_first() {
        let mut cores = Cores::new(2, 2);
        assert_eq!(cores.reserve(0, ns(0), ns(100)), ns(0));
        assert_eq!(cores.reserve(0, ns(10), ns(30)), ns(10));
        assert_eq!(cores.reserve(0, ns(10), ns(70)), ns(40)); // the second core, until 110
        assert_eq!(cores.reserve(0, ns(20), ns(1)), ns(100)); // the first core, until 101
        assert_eq!(cores.reserve(0, ns(101), ns(1)), ns(101));
        assert_eq!(cores.reserve(1, ns(20), ns(1)), ns(20)); // another rank has cores of its own
    }

    #[test]
    fn one_core_does_one_thing_after_the_other() {
        let mut cores = Cores::new(1, 1);
        let starts: Vec<Time> = (0..4).map(|_| cores.reserve(0, ns(5), ns(10))).collect();
        assert_eq!(starts, [ns(5), ns(15), ns(25), ns(35)]);
    }
}
