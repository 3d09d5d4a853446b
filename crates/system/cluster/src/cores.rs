// SPDX-License-Identifier: Apache-2.0
//! Assignment of CPU work to the cores of a host.

use sim::Time;
use sim::memory::push_frugally;
use sim::noise::{CpuTime, Noise, NoisyCpus};

/// Cores of the hosts. Each piece of work takes a free core, or else the core that becomes free first: the threads of a
/// rank compute concurrently only on the cores of its host (sPIN §4.2: eight). Noise delays the work.
#[derive(Debug)]
pub struct Cores {
    count: usize,
    hosts: Vec<HostCores>,
    /// Detours of each rank's cores, followed by those of its threads that poll memory.
    noise: Option<NoisyCpus>,
}

/// Cores of one host. Most of the many hosts use one core, so its state is stored inline.
#[derive(Clone, Debug, Default)]
struct HostCores {
    /// Time until which the first core is busy.
    first: Time,
    /// Total delay of the rank's work by noise.
    delay: Time,
    /// Times until which the other used cores are busy.
    further: Vec<Time>,
}

/// A core of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core {
    host: usize,
    number: usize,
}

impl Cores {
    pub fn new(hosts: usize, count: u32) -> Cores {
        Cores { count: count as usize, hosts: vec![HostCores::default(); hosts], noise: None }
    }

    /// Adds noise to the cores.
    pub fn set_noise(&mut self, noise: &Noise) {
        self.noise = Some(NoisyCpus::new(noise, self.hosts.len(), self.count + 1));
    }

    /// Returns true if work takes the same time whenever it begins, and starts at `now` on a host's first core.
    pub fn is_free(&self, host: usize, now: Time) -> bool {
        self.noise.is_none() && self.hosts[host].first <= now
    }

    /// Returns the core that does work which is ready at `now`, and when it begins.
    pub fn choose(&mut self, host: usize, now: Time) -> (Core, Time) {
        let HostCores { first, further, .. } = &mut self.hosts[host];
        if *first <= now {
            return (Core { host, number: 0 }, now);
        }
        let (number, free) = match further.iter().position(|until| *until <= now) {
            Some(place) => (place + 1, now),
            None if further.len() + 1 < self.count => {
                push_frugally(further, now);
                (further.len(), now)
            }
            None => {
                let all = std::iter::once(*first).chain(further.iter().copied());
                all.enumerate().min_by_key(|(_, until)| *until).unwrap_or_default()
            }
        };
        (Core { host, number }, free)
    }

    /// Returns the core of a host's threads that poll memory; it is never busy.
    pub fn polling(&self, host: usize) -> Core {
        Core { host, number: self.count }
    }

    /// Executes work on a core from `start` on, before the work that already waits for it. Returns its end.
    pub fn work(&mut self, core: Core, start: Time, span: Time) -> Time {
        let Core { host, number } = core;
        let cpu = host * (self.count + 1) + number;
        let end = Time::from_ps(self.noise.end(cpu, start.as_ps(), span.as_ps()));
        let cores = &mut self.hosts[host];
        cores.delay += end - (start + span);
        let until = match number.checked_sub(1) {
            None => Some(&mut cores.first),
            Some(place) => cores.further.get_mut(place),
        };
        if let Some(until) = until {
            *until = end.max(*until + (end - start));
        }
        end
    }

    /// Returns the total delay of each host by noise.
    pub fn delays(&self) -> impl Iterator<Item = Time> {
        self.hosts.iter().map(|host| host.delay)
    }
}

#[cfg(test)]
mod tests {
    use sim::noise::Detours;

    use super::*;

    fn ns(count: u64) -> Time {
        Time::from_ns(count)
    }

    /// Executes work on the core that becomes free first. Returns its start.
    fn reserve(cores: &mut Cores, rank: usize, now: Time, span: Time) -> Time {
        let (core, start) = cores.choose(rank, now);
        assert_eq!(cores.work(core, start, span), start + span);
        start
    }

    #[test]
    fn work_waits_for_the_core_that_is_free_first() {
        let mut cores = Cores::new(2, 2);
        assert!(cores.is_free(0, ns(0)));
        assert_eq!(reserve(&mut cores, 0, ns(0), ns(100)), ns(0));
        assert_eq!(reserve(&mut cores, 0, ns(10), ns(30)), ns(10));
        assert!(!cores.is_free(0, ns(99)) && cores.is_free(0, ns(100)));
        assert_eq!(reserve(&mut cores, 0, ns(10), ns(70)), ns(40)); // the second core, until 110
        assert_eq!(reserve(&mut cores, 0, ns(20), ns(1)), ns(100)); // the first core, until 101
        assert_eq!(reserve(&mut cores, 0, ns(101), ns(1)), ns(101));
        assert_eq!(reserve(&mut cores, 1, ns(20), ns(1)), ns(20)); // another rank has its own cores
    }

    #[test]
    fn one_core_does_one_thing_after_the_other() {
        let mut cores = Cores::new(1, 1);
        let starts: Vec<Time> = (0..4).map(|_| reserve(&mut cores, 0, ns(5), ns(10))).collect();
        assert_eq!(starts, [ns(5), ns(15), ns(25), ns(35)]);
    }

    #[test]
    fn noise_lengthens_the_work_of_the_ranks_that_have_it() {
        // Half of the time is detours of 10 ns each, so 100 ns of work contain 10 detours for any start.
        let detours = Detours::Periodic { period: ns(20), length: ns(10) };
        let noise = Noise { detours, seed: 1, co_scheduled: false, ranks: Some(vec![1..=1]) };
        let mut cores = Cores::new(2, 1);
        cores.set_noise(&noise);
        assert!(!cores.is_free(0, ns(3)));
        let (quiet, noisy) = (cores.choose(0, ns(3)), cores.choose(1, ns(3)));
        assert_eq!(cores.work(quiet.0, quiet.1, ns(100)), ns(103));
        let end = cores.work(noisy.0, noisy.1, ns(100));
        assert_eq!((quiet.1, noisy.1), (ns(3), ns(3)));
        assert!((193..=203).contains(&(end.as_ps() / 1000)), "{end}");
        assert_eq!(cores.choose(1, ns(4)).1, end);
        // A polling thread does not wait for the core, and has its own detours.
        let polling = cores.polling(1);
        assert!(cores.work(polling, ns(4), ns(100)) >= ns(194));
        assert_eq!(cores.choose(1, ns(4)).1, end);
        let delays: Vec<Time> = cores.delays().collect();
        assert_eq!(delays[0], Time::ZERO);
        assert!((180..=210).contains(&(delays[1].as_ps() / 1000)));
    }
}
