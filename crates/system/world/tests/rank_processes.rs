// SPDX-License-Identifier: Apache-2.0
//! Ranks as processes: calls, memory, failures, output, threads.

mod common;

use abi::calls::{self, Op};
use abi::portals::{self, Event, Md, NiLimits, ReturnCode};
use common::{Program, Sink, compile, exit_code, job, libraries, spec};
use ranks::{Call, Job, JobError, JobSpec, MemoryFault, Pause, Reply};
use rustix::process::{Pid, Signal, kill_process};
use sim::Time;
use std::io::{self, BufRead};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn call(pause: Pause, op: Op) -> Call {
    match pause {
        Pause::Call(call) if call.op == op => call,
        other => panic!("expected {op:?}, not {other:?}"),
    }
}

/// Replies to a call with `PTL_OK` at time zero.
fn ok(job: &mut Job, call: &Call) -> Pause {
    job.resume(call.caller, Time::ZERO, &Reply::new(ReturnCode::Ok))
}

#[test]
fn calls_pass_arguments_and_results() {
    let program = compile(
        r#"
        #include <portals4.h>
        #include <spin.h>
        int main(void) {
            ptl_handle_ni_t ni;
            ptl_ni_limits_t want = {.max_entries = 7, .max_cycles_per_byte = 9}, have;
            if (PtlNIFini(1) != PTL_NO_INIT || PtlInit() != PTL_OK) return 1;
            if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, &want, &have, &ni)) return 2;
            if (ni != 0x12345678 || have.max_entries != 8 || have.max_cycles_per_byte != 10) return 3;
            ptl_md_t md = {.start = (void *)16, .length = 32, .options = 1, .eq_handle = PTL_EQ_NONE, .ct_handle = 5};
            ptl_handle_md_t mdh = 99;
            if (PtlMDBind(ni, &md, &mdh) != PTL_NO_SPACE || mdh != 99) return 4;
            if (PtlMDBind(ni, NULL, &mdh) != PTL_ARG_INVALID) return 5;
            ptl_process_t target = {.phys = {.nid = 3, .pid = 4}};
            if (PtlPut(1, 2, 3, PTL_CT_ACK_REQ, target, 5, 6, 7, (void *)8, 9) != PTL_OK) return 6;
            ptl_event_t event;
            if (PtlEQWait(1, &event) != PTL_EQ_DROPPED || event.type != PTL_EVENT_ACK || event.mlength != 77) return 7;
            if (event.initiator.phys.pid != 6 || spin_time_ps() != 5000) return 8;
            ptl_ct_event_t inc = {11, 12};
            if (PtlTriggeredCTInc(1, inc, 2, 3) != PTL_OK) return 9;
            PtlFini();
            return spin_rank() == 0 && spin_size() == 1 ? 42 : 10;
        }"#,
    );
    let mut job = job(&program, 1);
    let refused = call(job.start(0).unwrap(), Op::SpinRefuse);
    assert_eq!(refused.args[..2], [Op::PtlNIFini as u64, ReturnCode::NoInit as u64]);
    let attach = call(ok(&mut job, &refused), Op::SpinAttach);
    let init = call(ok(&mut job, &attach), Op::PtlNIInit);
    assert_eq!(init.args[..4], [0, 5, u64::from(portals::ID_ANY), 1]);
    let mut limits: NiLimits = job.data(init.caller);
    assert_eq!((limits.max_entries, limits.max_cycles_per_byte), (7, 9));
    (limits.max_entries, limits.max_cycles_per_byte) = (8, 10);

    let actual = calls::PtlNIInit::read(&init.args).actual;
    let pause = job.resume(init.caller, Time::ZERO, &Reply::value(0x1234_5678).with(actual, &limits));
    let bind = call(pause, Op::PtlMDBind);
    assert_eq!(bind.args[0], 0x1234_5678);
    let md = Md { start: 16, length: 32, options: 1, eq_handle: portals::EQ_NONE, ct_handle: 5, pad: 0 };
    assert_eq!(Md { pad: 0, ..job.data::<Md>(bind.caller) }, md);

    let refused = call(job.resume(bind.caller, Time::ZERO, &Reply::new(ReturnCode::NoSpace)), Op::SpinRefuse);
    assert_eq!(refused.args[..2], [Op::PtlMDBind as u64, ReturnCode::ArgInvalid as u64]);
    let put = call(ok(&mut job, &refused), Op::PtlPut);
    assert_eq!(put.args[..10], [1, 2, 3, 2, 3 | 4 << 32, 5, 6, 7, 8, 9]);

    let wait = call(ok(&mut job, &put), Op::PtlEQWait);
    let mut event = Event { kind: portals::EventKind::Ack as u8, mlength: 77, ..Event::default() };
    event.initiator.pid = 6;
    let dropped = Reply::new(ReturnCode::EqDropped).with(calls::PtlEQWait::read(&wait.args).event, &event);
    let pause = job.resume(wait.caller, Time::from_ns(5), &dropped);
    let inc = call(pause, Op::PtlTriggeredCTInc);
    assert_eq!(inc.args[..3], [1, 2, 3]);
    assert_eq!(job.data::<portals::CtEvent>(inc.caller), portals::CtEvent { success: 11, failure: 12 });
    let detach = call(ok(&mut job, &inc), Op::SpinDetach);
    assert_eq!(exit_code(ok(&mut job, &detach)), Some(42));
}

/// A program whose first call passes two of its addresses: 16 bytes of data, and a read-only page.
const MEMORY: &str = r#"
    #include <portals4.h>
    #include <string.h>
    #include <sys/mman.h>
    int main(void) {
        static char big[200000];
        memset(big, 'x', sizeof big);
        void *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(page, 'p', 4096);
        mprotect(page, 4096, PROT_READ);
        mprotect((char *)page + 4096, 4096, PROT_NONE);
        if (PtlInit() || PtlSetMap(0, (ptl_size_t)big, page)) return 1;
        for (int i = 0; i < 200000; i++) if (big[i] != (char)i) return 2;
        return 0;
    }"#;

fn memory_both_ways(serve_copies: bool) {
    let program = compile(MEMORY);
    let mut job = Job::new(JobSpec { serve_copies, ..spec(&program, 1) }).unwrap();
    let attach = call(job.start(0).unwrap(), Op::SpinAttach);
    let map = call(ok(&mut job, &attach), Op::PtlSetMap);
    let (big, page) = (map.args[1], map.args[2]);

    let mut bytes = vec![0; 200_000];
    job.read(0, big, &mut bytes).unwrap();
    assert!(bytes.iter().all(|&byte| byte == b'x'));
    bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
    job.write(0, big, &bytes).unwrap();

    let mut four = [0; 4];
    job.read(0, page + 4092, &mut four).unwrap();
    assert_eq!(&four, b"pppp");
    let fault = |address, write| MemoryFault { rank: 0, address, length: 4, write };
    assert_eq!(job.read(0, 0, &mut four), Err(fault(0, false)));
    assert_eq!(job.read(0, page + 4094, &mut four), Err(fault(page + 4094, false)), "half of it is not readable");
    assert_eq!(job.read(0, u64::MAX - 1, &mut four), Err(fault(u64::MAX - 1, false)));
    assert_eq!(job.write(0, page, &four), Err(fault(page, true)), "read-only");
    assert_eq!(job.write(0, 8, &four).unwrap_err().to_string(), "rank 0: 4 bytes at 0x8 cannot be written");

    let detach = ok(&mut job, &map);
    assert_eq!(exit_code(detach), Some(0), "faults harm nothing, and the writes are there");
    assert_eq!(job.read(0, big, &mut four), Err(fault(big, false)), "the rank is gone");
}

/// A process with much memory loses it long before it counts as ended.
#[test]
fn writes_to_a_killed_rank_are_dropped() {
    let program = compile(
        r#"
        #include <portals4.h>
        #include <stdlib.h>
        #include <string.h>
        int main(void) {
            char *memory = malloc(64 << 20);
            memset(memory, 1, 64 << 20);
            return PtlInit() || PtlSetMap(0, (ptl_size_t)memory, (void *)memory) || PtlNIFini(0);
        }"#,
    );
    for _ in 0..3 {
        let mut job = job(&program, 2);
        let attached: Vec<Call> = (0..2).map(|rank| call(job.start(rank).unwrap(), Op::SpinAttach)).collect();
        let maps: Vec<Call> = attached.iter().map(|attach| call(ok(&mut job, attach), Op::PtlSetMap)).collect();
        for word in 0..100 {
            job.write(0, maps[0].args[1] + 8 * word, &[7; 8]).unwrap();
        }
        assert_eq!(job.end_rank(0).signal(), Some(Signal::KILL.as_raw()));
        call(ok(&mut job, &maps[1]), Op::PtlNIFini);
    }
}

#[test]
fn memory_is_copied_by_the_kernel() {
    memory_both_ways(false);
}

#[test]
fn memory_is_copied_by_the_rank() {
    memory_both_ways(true);
}

#[test]
fn a_rank_that_never_calls_runs_to_its_end() {
    let program = compile("int main(int c, char **v) { return c == 3 && v[2][0] == 'b' ? 7 : 1; }");
    let mut job = Job::new(JobSpec { args: vec!["a".into(), "b".into()], ..spec(&program, 1) }).unwrap();
    assert_eq!(exit_code(job.start(0).unwrap()), Some(7));
}

#[test]
fn a_crash_names_rank_and_signal() {
    let program = compile(
        "#include <portals4.h>
        #include <spin.h>
        int main(void) { PtlInit(); if (spin_rank() == 1) *(volatile int *)8 = 1; PtlFini(); }",
    );
    let mut job = job(&program, 2);
    let first = call(job.start(0).unwrap(), Op::SpinAttach);
    let second = call(job.start(1).unwrap(), Op::SpinAttach);
    match ok(&mut job, &second) {
        Pause::Exited { rank: 1, status } => assert_eq!(status.signal(), Some(libc::SIGSEGV)),
        other => panic!("{other:?}"),
    }
    call(ok(&mut job, &first), Op::SpinDetach);
}

#[test]
fn programs_that_cannot_start_are_named() {
    for (program, why) in [("/no/such/program", "No such file"), ("/etc/passwd", "Permission denied")] {
        let spec = JobSpec { program: program.into(), ranks: 1, ..JobSpec::default() };
        let error = Job::new(spec).unwrap().start(0).unwrap_err().to_string();
        assert!(error.contains(program) && error.contains(why), "{error}");
    }
    assert!(matches!(Job::new(JobSpec::default()), Err(JobError::Ranks(0))));
}

/// Runs a job of one rank, and answers every call with `PTL_OK`. Returns its calls and exit code.
fn run(spec: JobSpec) -> (Vec<Op>, Option<i32>) {
    let mut job = Job::new(spec).unwrap();
    let (mut ops, mut pause) = (Vec::new(), job.start(0).unwrap());
    while let Pause::Call(call) = &pause {
        ops.push(call.op);
        pause = ok(&mut job, call);
    }
    (ops, exit_code(pause))
}

/// Runs a shell script with the program as `$0`.
fn shell(script: &str, program: &Program) -> JobSpec {
    let args = vec!["-c".into(), script.into(), program.path.clone().into()];
    JobSpec { program: "sh".into(), args, ranks: 1, ..JobSpec::default() }
}

#[test]
fn ranks_may_run_inside_a_wrapper() {
    let program = compile("#include <portals4.h>\nint main(void) { PtlInit(); PtlFini(); return 3; }");
    let session = [Op::SpinAttach, Op::SpinDetach];
    assert_eq!(run(shell("$0; exit $((1 + $?))", &program)), (session.to_vec(), Some(4)));
    // More successive processes than the rank has slots.
    let many = run(shell("for i in 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0; do $0; done", &program));
    assert_eq!(many, (session.repeat(20), Some(3)));
    // Processes left behind by a rank end with it: this one would otherwise keep the test's output open.
    assert_eq!(run(shell("sleep 1000 & exit 5", &program)), (vec![], Some(5)));
}

#[test]
fn a_wrapped_program_that_crashes_ends_with_its_wrapper() {
    let program = compile("#include <portals4.h>\n#include <stdlib.h>\nint main(void) { PtlInit(); abort(); }");
    let (ops, code) = run(shell("$0 2>/dev/null; exit $?", &program));
    assert_eq!((ops, code), (vec![Op::SpinAttach], Some(128 + libc::SIGABRT)));
}

#[test]
fn output_is_tagged_line_by_line() {
    let program = compile(
        r#"
        #include <portals4.h>
        #include <spin.h>
        #include <stdio.h>
        #include <unistd.h>
        int main(void) {
            printf("hello from %d\nhalf ", spin_rank());
            fflush(stdout);
            spin_barrier();
            printf("a line\n");
            fflush(stdout);
            for (int i = 0; i < 20000; i++) fprintf(stderr, "a line that fills the pipe %d\n", i);
            printf("no end");
            return 0;
        }"#,
    );
    let mut job = Job::new(JobSpec { tag_output: true, ..spec(&program, 2) }).unwrap();
    let (out, err) = (Sink::default(), Sink::default());
    job.set_output(Box::new(out.clone()), Box::new(err.clone()));
    let attached: Vec<Call> = (0..2).map(|rank| call(job.start(rank).unwrap(), Op::SpinAttach)).collect();
    let barriers: Vec<Call> = attached.iter().map(|attach| call(ok(&mut job, attach), Op::SpinBarrier)).collect();
    for barrier in barriers.iter().rev() {
        assert_eq!(exit_code(ok(&mut job, barrier)), Some(0));
    }
    let expected = "[0] hello from 0\n[1] hello from 1\n\
                    [1] half a line\n[1] no end\n[0] half a line\n[0] no end\n";
    assert_eq!(out.text(), expected);
    let err = err.text();
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines.len(), 40_000);
    assert_eq!(
        (lines[19_999], lines[39_999]),
        ("[1] a line that fills the pipe 19999", "[0] a line that fills the pipe 19999")
    );
}

#[test]
fn threads_pause_together_and_in_order() {
    let program = compile(
        r#"
        #include <portals4.h>
        #include <pthread.h>
        static void *thread(void *number) {
            for (ptl_size_t i = 0; i < 50; i++) {
                for (volatile int work = 0; work < 20000 * (int)(3 - (ptl_size_t)number); work++) {}
                PtlCTFree((ptl_handle_ct_t)(ptl_size_t)number);
            }
            return NULL;
        }
        int main(void) {
            pthread_t threads[2];
            PtlInit();
            for (ptl_size_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, thread, (void *)(i + 1));
            for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
            return 0;
        }"#,
    );
    let mut job = job(&program, 1);
    let attach = call(job.start(0).unwrap(), Op::SpinAttach);
    let (mut pause, mut waiting, mut made) = (ok(&mut job, &attach), Vec::new(), Vec::new());
    loop {
        match pause {
            Pause::Call(call) => waiting.push(call),
            Pause::Asleep { rank: 0 } => assert!(job.poll().is_none()),
            exited => break assert_eq!(exit_code(exited), Some(0)),
        }
        waiting.extend(std::iter::from_fn(|| job.pending(0)));
        made.push(waiting.iter().map(|call| call.args[0]).collect::<Vec<_>>());
        // The last one first, so that the first thread waits until the second one has ended.
        let last = waiting.pop().expect("one was just added");
        pause = ok(&mut job, &last);
    }
    let expected = [vec![vec![1, 2]; 50], vec![vec![1]; 50]].concat();
    assert_eq!(made, expected);
}

#[test]
fn too_many_threads_get_an_error() {
    let program = compile(
        r#"
        #include <portals4.h>
        #include <pthread.h>
        static pthread_barrier_t barrier;
        static void *thread(void *failures) {
            int rc = PtlAtomicSync();
            if (rc == PTL_FAIL) __sync_fetch_and_add((int *)failures, 1);
            pthread_barrier_wait(&barrier);
            return NULL;
        }
        int main(void) {
            pthread_t threads[20];
            int failures = 0;
            PtlInit();
            pthread_barrier_init(&barrier, NULL, 20);
            for (int i = 0; i < 20; i++) pthread_create(&threads[i], NULL, thread, &failures);
            for (int i = 0; i < 20; i++) pthread_join(threads[i], NULL);
            return failures == 5 && PtlAtomicSync() == PTL_OK ? 0 : 1;
        }"#,
    );
    let (_, code) = run(spec(&program, 1));
    assert_eq!(code, Some(0), "15 threads beside the main one have slots");
}

#[test]
fn forked_children_cannot_use_the_library() {
    let program = compile(
        "#include <portals4.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            int status;
            PtlInit();
            if (fork() == 0) _exit(PtlAtomicSync() == PTL_FAIL && PtlInit() == PTL_FAIL ? 6 : 1);
            wait(&status);
            return PtlAtomicSync() == PTL_OK ? WEXITSTATUS(status) : 2;
        }",
    );
    assert_eq!(run(spec(&program, 1)), (vec![Op::SpinAttach, Op::PtlAtomicSync], Some(6)));
}

#[test]
fn without_spinrun_init_fails_with_a_message() {
    let program = compile("#include <portals4.h>\nint main(void) { return PtlInit() == PTL_FAIL ? 0 : 1; }");
    let output = Command::new(&program.path).output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("not started by spinrun"));
}

#[test]
fn cpu_time_is_measured_when_it_is_charged() {
    let program = compile(
        "#include <portals4.h>
        #include <spin.h>
        int main(void) {
            PtlInit();
            for (volatile int i = 0; i < 1000000; i++) {}
            if (spin_time_ps() == 0) return 1;
            PtlAtomicSync();
        }",
    );
    for (scale, measured) in [(0, false), (1000, true)] {
        let mut job = Job::new(JobSpec { compute_scale_milli: scale, ..spec(&program, 1) }).unwrap();
        let attach = call(job.start(0).unwrap(), Op::SpinAttach);
        match (ok(&mut job, &attach), measured) {
            (Pause::Call(call), true) => assert!(call.elapsed_ns > 0),
            (pause, measured) => assert_eq!((exit_code(pause), measured), (Some(1), false)),
        }
    }
}

#[test]
fn the_simulated_clock_shows_and_passes_simulated_time() {
    let program = compile(
        r#"
        #define _GNU_SOURCE
        #include <portals4.h>
        #include <stdio.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>
        int main(void) {
            struct timespec now, until, nap = {1, 500};
            struct timeval day;
            PtlInit();
            clock_gettime(CLOCK_MONOTONIC, &now);
            if (now.tv_sec != 3 || now.tv_nsec != 7) return 1;
            gettimeofday(&day, NULL);
            if (day.tv_sec != 1510444803 || time(NULL) != day.tv_sec) return 2;
            nanosleep(&nap, NULL);
            usleep(2000001);
            sleep(4);
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += 5;
            clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
            return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) || now.tv_sec != 3 ? 3 : 0;
        }"#,
    );
    let preload = vec![libraries().join("libsimclock.so")];
    let env = vec![("SPIN_SIMULATED_CLOCK".into(), "1".into())];
    let mut job = Job::new(JobSpec { preload, env, ..spec(&program, 1) }).unwrap();
    let mut pause = job.start(0).unwrap();
    let mut slept = Vec::new();
    while let Pause::Call(call) = &pause {
        if call.op == Op::SpinSleep {
            slept.push(call.args[0]);
        }
        pause = job.resume(call.caller, Time::from_ps(3_000_000_007_900), &Reply::new(ReturnCode::Ok));
    }
    assert_eq!(exit_code(pause), Some(0));
    // The last sleep ends at a whole nanosecond of the clock, which shows 3.000000007 s.
    assert_eq!(slept, [1_000_000_500_000, 2_000_001_000_000, 4_000_000_000_000, 5_000_000_000_000]);
}

#[test]
fn a_deadline_ends_the_wait() {
    let program = compile("int main(void) { for (;;) {} }");
    let mut job = job(&program, 1);
    job.set_deadline(Some(Instant::now() + Duration::from_millis(30)));
    assert!(matches!(job.start(0), Ok(Pause::TimedOut)));
}

/// Acts as the simulator in [`an_interrupt_leaves_no_process`].
#[test]
fn simulator_to_interrupt() {
    let Some(path) = std::env::var_os("TEST_PROGRAM") else { return };
    let args = vec!["-c".into(), "echo PID $$; $0; true".into(), path];
    let mut job = Job::new(JobSpec { program: "sh".into(), args, ranks: 3, ..JobSpec::default() }).unwrap();
    for rank in 0..3 {
        let attach = call(job.start(rank).unwrap(), Op::SpinAttach);
        call(ok(&mut job, &attach), Op::SpinBarrier);
    }
    println!("READY");
    loop {
        match job.wait(0) {
            Pause::Interrupted { signal } => break println!("INTERRUPTED {signal}"),
            Pause::Asleep { rank: 0 } => std::thread::sleep(Duration::from_millis(1)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_interrupt_leaves_no_process() {
    // Prints its process id before the library is loaded, then waits in it.
    let program = compile(
        r#"
        #include <portals4.h>
        #include <spin.h>
        #include <stdio.h>
        #include <unistd.h>
        int main(void) { printf("PID %d\n", getpid()); fflush(stdout); spin_barrier(); return 0; }"#,
    );
    let mut simulator = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "simulator_to_interrupt", "--nocapture"])
        .env("TEST_PROGRAM", &program.path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = io::BufReader::new(simulator.stdout.take().unwrap()).lines().map(Result::unwrap);
    let starting: Vec<String> = lines.by_ref().take_while(|line| line != "READY").collect();
    let pids: Vec<u32> = starting.iter().filter_map(|line| line.strip_prefix("PID ")?.parse().ok()).collect();
    assert_eq!(pids.len(), 6, "three shells and three programs");
    kill_process(Pid::from_child(&simulator), Signal::TERM).unwrap();
    assert!(lines.any(|line| line == format!("INTERRUPTED {}", libc::SIGTERM)));
    assert!(lines.last().is_some(), "its output is closed, so nobody holds it any more");
    assert!(simulator.wait().unwrap().success());
    // A killed program without its shell ends by itself, and then belongs to init.
    let gone = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    while !pids.iter().all(gone) {
        std::thread::sleep(Duration::from_millis(1));
    }
}
