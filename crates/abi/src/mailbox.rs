//! The shared memory between the simulator and the ranks' library.
//!
//! The simulator makes one memory file a job: a [`Header`], then `ranks * SLOTS` [`Slot`]s (slot `rank * SLOTS + k`
//! is the k-th thread of the rank that called the library), then one bounce area of [`BOUNCE`] bytes a rank.
//! A rank finds it as `/proc/$SPIN_SIM_PID/fd/$SPIN_SIM_FD`, so nothing is left behind whatever ends the run.
//!
//! A call: the rank fills `op`, `args` and `data`, sets `state` to [`state::REQUEST`], rings the doorbell, and waits on
//! `state`. The simulator answers in `result`, `out` and `data` and sets [`state::REPLY`]. While a rank waits, the
//! simulator may also set [`state::COPY`]: the rank then copies `copy_len` bytes between `copy_addr` and its bounce area
//! (by `pwrite` and `pread` on the memory file, so that a bad address is an error and not a crash), sets `copy_result`,
//! sets [`state::COPIED`] and rings the doorbell. That serves NIC DMA where `process_vm_readv` is not permitted.
//!
//! Neither side trusts the other's words: a rank can write all of the file at any time. The simulator reads each word of a
//! call once, and finds out by itself which process it deals with. The size of the file is sealed.
//!
//! Nobody makes a system call to wake a peer that does not sleep: who goes to sleep sets [`state::SLEEPS`] in the word
//! it waits for ([`DOORBELL_SLEEPS`] in the doorbell) and waits for that value; who changes a word that has the bit wakes.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// First word of the memory file: "SPINMBX" and the version of this layout.
pub const MAGIC: u64 = 0x5350_494e_4d42_5801;
/// Threads of one rank that may be inside the library at once.
pub const SLOTS: usize = 16;
/// Bytes of the bounce area of one rank.
pub const BOUNCE: usize = 64 * 1024;
/// Bytes of structure data that travel with a call.
pub const DATA: usize = 1024;
/// Bit of [`Header::doorbell`]: the simulator sleeps until it changes.
pub const DOORBELL_SLEEPS: u32 = 1;
/// What ringing adds to [`Header::doorbell`].
pub const DOORBELL_RING: u32 = 2;
/// Words of arguments of a call.
pub const ARGS: usize = 20;

/// Environment of a rank.
pub mod env {
    /// The rank of the process, from 0.
    pub const RANK: &str = "SPIN_RANK";
    /// The number of ranks of the job.
    pub const SIZE: &str = "SPIN_SIZE";
    /// Process id of the simulator.
    pub const SIM_PID: &str = "SPIN_SIM_PID";
    /// Number of the memory file among the simulator's descriptors.
    pub const SIM_FD: &str = "SPIN_SIM_FD";
}

/// Values of [`Slot::state`].
pub mod state {
    /// No thread owns the slot.
    pub const FREE: u32 = 0;
    /// The thread runs its own code.
    pub const RUNNING: u32 = 1;
    /// A call waits for the simulator.
    pub const REQUEST: u32 = 2;
    /// The answer is there.
    pub const REPLY: u32 = 3;
    /// The simulator asks the waiting thread to copy memory.
    pub const COPY: u32 = 4;
    /// The copy is done; the thread still waits for the answer.
    pub const COPIED: u32 = 5;
    /// The run is over: the thread writes out what the process has buffered, and ends it.
    pub const END: u32 = 6;
    /// Bit beside one of the values above: the thread sleeps until the word changes (futex).
    pub const SLEEPS: u32 = 0x100;
}

/// Start of the memory file.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// Ranks add [`DOORBELL_RING`] whenever a slot has something for the simulator, and wake it (futex) when it had
    /// [`DOORBELL_SLEEPS`].
    pub doorbell: AtomicU32,
    /// Simulated time of the running rank in picoseconds.
    pub now_ps: AtomicU64,
    /// Simulated picoseconds charged for each nanosecond of a rank's own CPU time, times 1000; 0 charges nothing
    /// (`--compute measured:SCALE`).
    pub compute_scale_milli: AtomicU64,
}

/// One thread's place for calls.
#[repr(C, align(64))]
pub struct Slot {
    /// One of [`state`]; a futex.
    pub state: AtomicU32,
    /// Process id of the owner, as the kernel of the simulator's namespace sees it where they share one.
    pub pid: AtomicU32,
    /// An [`Op`].
    pub op: u32,
    /// Return code of the call, an [`Rc`](crate::portals::Rc).
    pub result: i32,
    /// CPU nanoseconds of this thread since its last answer; 0 unless the header asks for it.
    pub elapsed_ns: u64,
    /// Arguments, one word each in the order of the C prototype; see [`Op`].
    pub args: [u64; ARGS],
    /// Results other than the return code, one word each in the order of the C prototype's output pointers.
    pub out: [u64; 4],
    /// Structure arguments, then structure results.
    pub data: [u8; DATA],
    /// Address in the rank for [`state::COPY`].
    pub copy_addr: u64,
    /// Bytes, at most [`BOUNCE`].
    pub copy_len: u32,
    /// 0: rank's memory to bounce area; 1: bounce area to rank's memory.
    pub copy_write: u32,
    /// 0, or the errno of the failed copy.
    pub copy_result: i32,
    /// Thread id of the caller, 0 while its process has never had a second thread.
    pub tid: u32,
}

/// How long to look at a word before sleeping on it, learnt from how that went before: a peer on another CPU answers within
/// the looks, and one that shares this CPU, or computes, only runs once we sleep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    misses: u32,
}

impl Patience {
    /// Looks at most: about ten microseconds.
    const SPINS: u32 = 500;
    /// Misses in a row before looking is given up.
    const TRIES: u32 = 4;
    /// Misses between two attempts after that; a power of two.
    const RETRY: u32 = 64;

    /// A new patience.
    pub const fn new() -> Patience {
        Patience { misses: 0 }
    }

    /// How often to look (with a pause of `spin_loop`) before sleeping.
    pub fn spins(self) -> u32 {
        if self.misses < Self::TRIES || self.misses & (Self::RETRY - 1) == 0 { Self::SPINS } else { 0 }
    }

    /// The word changed while we looked.
    pub fn hit(&mut self) {
        self.misses = 0;
    }

    /// It did not.
    pub fn miss(&mut self) {
        self.misses = self.misses.wrapping_add(1);
    }
}

/// Offset of slot `k` of `rank` in the memory file.
pub fn slot_offset(rank: usize, k: usize) -> usize {
    size_of::<Header>() + (rank * SLOTS + k) * size_of::<Slot>()
}

/// Offset of the bounce area of `rank` in a job of `ranks`.
pub fn bounce_offset(ranks: usize, rank: usize) -> usize {
    let slots_end = slot_offset(ranks, 0);
    slots_end.next_multiple_of(4096) + rank * BOUNCE
}

/// Size of the memory file of a job of `ranks`.
pub fn file_size(ranks: usize) -> usize {
    bounce_offset(ranks, ranks)
}

macro_rules! ops {
    ($($name:ident = $value:literal),+ $(,)?) => {
        /// Which call a slot holds. One word of `args` for each scalar argument of the C prototype, in its order;
        /// `ptl_process_t` is one word (nid or rank low, pid high); output pointers take no word. Structures
        /// (`ptl_md_t`, `ptl_le_t`, `ptl_me_t`, `ptl_ct_event_t`, `ptl_ni_limits_t`) are in `data` and take no word;
        /// arrays are passed as the address and read from the rank's memory. Structure results (`ptl_event_t`,
        /// `ptl_ct_event_t`, `ptl_ni_limits_t`) come back in `data`, scalar results in `out`. Results are delivered with
        /// `PTL_OK` and `PTL_EQ_DROPPED` only. `PtlNIInit` has a fourth word, 1 when `desired` is in `data`;
        /// `PtlHPUFreeMem` has the handle itself. `SpinAttach` carries [`MAGIC`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Op { $(#[allow(missing_docs)] $name = $value),+ }

        impl Op {
            /// Every operation.
            pub const ALL: &'static [Op] = &[$(Op::$name),+];

            /// The operation with this number.
            pub fn from_raw(raw: u32) -> Option<Op> {
                match raw { $($value => Some(Op::$name),)+ _ => None }
            }

            /// The C function that makes it.
            pub fn c_name(self) -> &'static str {
                match self { $(Op::$name => stringify!($name)),+ }
            }
        }
    };
}

ops! {
    // the first call of a process, and that of its last PtlFini (another SpinAttach may follow)
    SpinAttach = 1, SpinDetach = 2,
    // simulated time and host work: args in picoseconds or bytes
    SpinHostCompute = 3, SpinHostMemory = 4, SpinSleep = 5, SpinYield = 6,
    // job-wide barriers outside of Portals: of the library, and of PMI, which comes by the rank's PMI socket
    SpinBarrier = 7, PmiBarrier = 9,
    // device code: address, length and first handler address of an image, see `device::image`
    SpinRegisterImage = 8,

    PtlNIInit = 20, PtlNIFini = 21, PtlNIStatus = 22, PtlNIHandle = 23, PtlSetMap = 24, PtlGetMap = 25,
    PtlGetUid = 26, PtlGetId = 27, PtlGetPhysId = 28, PtlAbort = 29,
    PtlPTAlloc = 30, PtlPTFree = 31, PtlPTDisable = 32, PtlPTEnable = 33,
    PtlMDBind = 40, PtlMDRelease = 41,
    PtlLEAppend = 42, PtlLEUnlink = 43, PtlLESearch = 44,
    PtlMEAppend = 45, PtlMEUnlink = 46, PtlMESearch = 47, PtlMEAppendHandlers = 48,
    PtlPut = 60, PtlGet = 61, PtlAtomic = 62, PtlFetchAtomic = 63, PtlSwap = 64, PtlAtomicSync = 65,
    PtlStartBundle = 66, PtlEndBundle = 67,
    PtlEQAlloc = 80, PtlEQFree = 81, PtlEQGet = 82, PtlEQWait = 83, PtlEQPoll = 84,
    PtlCTAlloc = 90, PtlCTFree = 91, PtlCTCancelTriggered = 92, PtlCTGet = 93, PtlCTWait = 94, PtlCTPoll = 95,
    PtlCTSet = 96, PtlCTInc = 97,
    PtlTriggeredPut = 110, PtlTriggeredGet = 111, PtlTriggeredAtomic = 112, PtlTriggeredFetchAtomic = 113,
    PtlTriggeredSwap = 114, PtlTriggeredCTInc = 115, PtlTriggeredCTSet = 116, PtlTriggeredMEAppend = 117,
    PtlTriggeredMEUnlink = 118,
    PtlHPUAllocMem = 130, PtlHPUFreeMem = 131,
}
