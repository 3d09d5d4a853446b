// SPDX-License-Identifier: Apache-2.0
//! Data that ranks write to the shared memory are not trusted.

mod common;

use abi::mailbox::{self, SLOTS, Slot};
use common::{Program, compile_with, spec};
use ranks::Job;
use std::mem::offset_of;
use std::path::Path;
use std::time::{Duration, Instant};
use world::{End, World};

/// Compiles a C program that maps the memory file: `slot(rank, k)` is a slot, `END` the size of the file.
fn compile(main: &str, ranks: usize) -> Program {
    let head = format!(
        r#"
        #define _GNU_SOURCE
        #include <errno.h>
        #include <fcntl.h>
        #include <portals4.h>
        #include <spin.h>
        #include <stdint.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <sys/wait.h>
        #include <unistd.h>
        enum {{ CLAIMED = {}, HEADER = {}, SLOT = {}, SLOTS = {SLOTS}, PID = {}, POSTED = {}, POSTS = {}, END = {} }};
        static char *file;
        static int fd;
        static void map_file(void) {{
            char path[100];
            snprintf(path, sizeof path, "/proc/%s/fd/%s", getenv("SPIN_SIM_PID"), getenv("SPIN_SIM_FD"));
            fd = open(path, O_RDWR);
            file = mmap(NULL, END, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            if (file == MAP_FAILED) exit(80);
        }}
        static inline uint32_t *claimed(int rank) {{ return (uint32_t *)(file + CLAIMED) + rank; }}
        static inline void *slot(int rank, int k) {{ return file + HEADER + (rank * SLOTS + k) * SLOT; }}
        static ptl_handle_ni_t ni;
        static void open_interface(void) {{
            int options = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
            if (PtlInit() || PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &ni)) exit(81);
        }}
        "#,
        mailbox::claimed_offset(0),
        mailbox::slot_offset(ranks, 0, 0),
        size_of::<Slot>(),
        offset_of!(Slot, pid),
        offset_of!(Slot, posted),
        offset_of!(Slot, posts),
        mailbox::file_size(ranks),
    );
    compile_with(&(head + main), &["-Wno-unused"])
}

/// Runs a job with a time limit.
fn run(program: &Program, ranks: usize, arguments: &[String], limit: Duration) -> End {
    let mut spec = spec(program, ranks);
    spec.args = arguments.iter().map(Into::into).collect();
    let mut job = Job::new(spec).unwrap();
    job.set_deadline(Some(Instant::now() + limit));
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    let machine = machine::Machine::load("sc17-int", &[machines], &[]).unwrap();
    let machine = nic::CardModel::new(machine).unwrap();
    World::new(machine, job, sim::trace::Trace::off(), Box::new(|_| ())).unwrap().run().unwrap()
}

#[test]
fn a_rank_cannot_name_another_process() {
    // Rank 0 claims to be the simulator, and that the destination of rank 1's message is an address there.
    static VICTIM: [u8; 8] = [7; 8];
    let program = compile(
        r#"
        int main(int argc, char **argv) {
            open_interface();
            map_file();
            ptl_pt_index_t pt;
            ptl_handle_me_t entry;
            if (PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt)) return 82;
            ptl_process_t zero;
            if (PtlGetPhysId(ni, &zero)) return 86;
            zero.phys.nid = 0;
            ptl_me_t me = {.start = (void *)strtoull(argv[1], NULL, 0), .length = 8, .ct_handle = PTL_CT_NONE,
                           .uid = PTL_UID_ANY, .options = PTL_ME_OP_PUT,
                           .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}}};
            if (spin_rank() == 0) {
                uint32_t *pid = (uint32_t *)((char *)slot(0, 0) + PID);
                *pid = atoi(argv[2]);
                if (PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &entry)) return 83;
            }
            spin_barrier();
            static char data[8] = "written!";
            ptl_handle_md_t md;
            ptl_md_t all = {.start = data, .length = 8, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
            if (PtlMDBind(ni, &all, &md)) return 84;
            if (spin_rank() == 1 && PtlPut(md, 0, 8, PTL_NO_ACK_REQ, zero, pt, 0, 0, NULL, 0)) return 85;
            spin_host_compute(1000000);
            spin_barrier();
            return 0;
        }"#,
        2,
    );
    let address = format!("{:#x}", VICTIM.as_ptr() as usize);
    // This process, init, no process, and an impossible one.
    for pid in [std::process::id().to_string(), "1".into(), "0".into(), "-5".into()] {
        let named = pid.parse::<i32>().unwrap() as u32;
        match run(&program, 2, &[address.clone(), pid], Duration::from_secs(60)) {
            End::BadProgram { rank: 0, message } => {
                assert_eq!(message, format!("its slot for calls names process {named}, which is none of the rank's"));
            }
            other => panic!("{other:?}"),
        }
    }
    // SAFETY: a static of this test; a volatile read sees changes unknown to the compiler.
    assert_eq!(unsafe { std::ptr::from_ref(&VICTIM).read_volatile() }, [7; 8]);
}

#[test]
fn calls_that_do_not_exist_end_the_run() {
    // A thread that repeats such a call must not keep the simulator busy, either.
    let program = compile(
        r#"
        #include <pthread.h>
        static void *calls(void *words) {
            for (;;) __atomic_store_n((uint32_t *)words, 2, __ATOMIC_SEQ_CST);
            return NULL;
        }
        int main(void) {
            open_interface();
            map_file();
            uint32_t *words = slot(0, 1);
            words[1] = getpid(), words[2] = 999;
            *claimed(0) |= 1 << 1;
            pthread_t thread;
            if (pthread_create(&thread, NULL, calls, words)) return 82;
            for (;;) spin_barrier();
            return 0;
        }"#,
        1,
    );
    match run(&program, 1, &[], Duration::from_secs(60)) {
        End::BadProgram { rank: 0, message } => {
            assert_eq!(message, "its slot for calls holds call 999, which does not exist");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn impossible_posted_calls_end_the_run() {
    let program = compile(
        r#"
        int main(int argc, char **argv) {
            open_interface();
            map_file();
            uint32_t *call = (uint32_t *)((char *)slot(0, 0) + POSTS);
            call[0] = atoi(argv[1]);
            *(uint32_t *)((char *)slot(0, 0) + POSTED) = atoi(argv[2]);
            spin_barrier();
            return 0;
        }"#,
        1,
    );
    let run = |call: &str, posted: &str| run(&program, 1, &[call.into(), posted.into()], Duration::from_secs(60));
    let refused = |code| {
        format!(
            "PtlPut was refused (return code {code}) although one like it was accepted before; --post-ahead 0 makes each call at its time"
        )
    };
    let put = abi::calls::Op::PtlPut as u32;
    // An impossible number of posted calls counts as the maximum; its first call is refused.
    for (call, posted, message) in [
        ("999", "1", "it has posted call 999, which does not exist".into()),
        (&*put.to_string(), "1", refused(1)),
        (&*put.to_string(), "4000000000", refused(1)),
    ] {
        assert_eq!(run(call, posted), End::BadProgram { rank: 0, message }, "{call} {posted}");
    }
}

#[test]
fn a_child_of_a_rank_may_call() {
    let program = compile(
        r#"
        int main(int argc, char **argv) {
            if (argc == 1 && fork()) { int status; wait(&status); return WEXITSTATUS(status); }
            setpgid(0, 0); // a new process group
            open_interface();
            ptl_pt_index_t pt;
            ptl_handle_me_t entry;
            ptl_handle_ct_t ct;
            ptl_ct_event_t event;
            static volatile char to[8];
            static char from[8] = "written!";
            if (PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt) || PtlCTAlloc(ni, &ct)) return 82;
            ptl_me_t me = {.start = (void *)to, .length = 8, .ct_handle = ct, .uid = PTL_UID_ANY,
                           .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                           .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}}};
            ptl_md_t all = {.start = from, .length = 8, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
            ptl_handle_md_t md;
            ptl_process_t self;
            if (PtlGetPhysId(ni, &self) || PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &entry)) return 83;
            if (PtlMDBind(ni, &all, &md)) return 83;
            if (PtlPut(md, 0, 8, PTL_NO_ACK_REQ, self, pt, 0, 0, NULL, 0) || PtlCTWait(ct, 1, &event)) return 84;
            return memcmp((void *)to, from, 8) != 0;
        }"#,
        1,
    );
    assert_eq!(run(&program, 1, &[], Duration::from_secs(60)), End::Finished);
}

#[test]
fn the_memory_file_keeps_its_size() {
    let program = compile(
        r#"
        int main(void) {
            open_interface();
            map_file();
            if (ftruncate(fd, 0) != -1 || errno != EPERM) return 82;
            if (ftruncate(fd, (off_t)END * 2) != -1 || errno != EPERM) return 83;
            if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) != -1) return 84;
            spin_barrier();
            return 0;
        }"#,
        2,
    );
    assert_eq!(run(&program, 2, &[], Duration::from_secs(60)), End::Finished);
}

#[test]
fn garbage_in_slots_does_no_harm() {
    // Rank 0 writes plausible and random numbers to the slots of all ranks, between its own calls; the other ranks
    // behave correctly.
    let program = compile(
        r#"
        static uint64_t state;
        static uint64_t next(void) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            return state;
        }
        int main(int argc, char **argv) {
            open_interface();
            map_file();
            state = strtoull(argv[1], NULL, 0) * 0x9e3779b97f4a7c15u + 1;
            int rank = spin_rank(), size = spin_size();
            ptl_handle_ct_t ct;
            ptl_ct_event_t event;
            for (int round = 0; round < 300; round++) {
                if (rank == 0)
                    *claimed(next() % size) = next();
                for (int k = 0; rank == 0 && k < 40; k++) {
                    uint32_t *words = slot(next() % size, next() % (next() % 4 ? 2 : SLOTS));
                    uint32_t values[] = {next(), next() % 8, next() % 140, 0, ~0u, 2, 2, getpid(), getppid()};
                    uint64_t at = next() % 3 ? next() % 8 : next() % (SLOT / 4);
                    words[at] = values[next() % (sizeof values / sizeof *values)];
                }
                if (PtlCTAlloc(ni, &ct) == PTL_OK)
                    PtlCTInc(ct, (ptl_ct_event_t){1, 0}), PtlCTGet(ct, &event), PtlCTFree(ct);
                spin_host_compute(100);
            }
            return 0;
        }"#,
        3,
    );
    let mut ends = Vec::new();
    for seed in 0..24 {
        ends.push(match run(&program, 3, &[seed.to_string()], Duration::from_secs(3)) {
            End::BadProgram { .. } => "refused",
            End::RankFailed { .. } => "failed",
            End::TimedOut { .. } => "timed out",
            End::Deadlock { .. } => "deadlock",
            other => panic!("seed {seed}: {other:?}"),
        });
    }
    assert!(ends.iter().filter(|&&end| end == "refused").count() > 3, "{ends:?}");
}
