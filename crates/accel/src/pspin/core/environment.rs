//! What differs between HPUs whose runtime is code and HPUs of P4sPIN: the environment in which handlers run.

use std::fmt::Debug;

use hpu::{Access, Fault};

use super::hpus::Hpus;
use crate::pspin::cores::ClusterSide;
use crate::pspin::cycle::Cycle;
use crate::pspin::her::HpuId;
use crate::pspin::observe::Observer;

/// The environment of handlers: how a task begins on its HPU, what calls and the end of a handler mean, and what happens when it
/// fails. Instructions, accesses to memory, and the instruction cache are the same in all environments.
pub trait Environment: Sized {
    /// Something that an HPU does in a cycle and that has to do with the environment.
    type Act: Copy + Debug;
    /// What an HPU has for the environment.
    type Own;

    /// What an HPU does, and in which cycle, that makes this access, which is not to a memory of its handler; `None` when
    /// nothing is there.
    fn register(own: &Self::Own, access: &Access) -> Option<(Self::Act, u64)>;

    /// An HPU does something in cycle `now`.
    fn act<O: Observer>(hpus: &mut Hpus<Self>, id: HpuId, act: Self::Act, now: Cycle, side: &mut ClusterSide<'_, O>);

    /// The thread of an HPU calls its environment.
    fn call(hpus: &mut Hpus<Self>, id: HpuId, number: u32, argument: u32);

    /// The thread of an HPU returns a value.
    fn returned(hpus: &mut Hpus<Self>, id: HpuId, value: u32);

    /// An instruction of an HPU's thread fails.
    fn fail(hpus: &mut Hpus<Self>, id: HpuId, fault: Fault);

    /// The driver of an HPU has a task from cycle `at` on.
    fn task(hpus: &mut Hpus<Self>, id: HpuId, at: Cycle);

    /// What an HPU waited for is there in cycle `at`.
    fn resume(hpus: &mut Hpus<Self>, id: HpuId, at: Cycle);

    /// The watchdog kills the handler of an HPU in cycle `at`.
    fn kill(hpus: &mut Hpus<Self>, id: HpuId, at: Cycle);
}
