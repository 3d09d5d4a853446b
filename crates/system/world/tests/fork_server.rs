// SPDX-License-Identifier: Apache-2.0
//! Ranks forked from one process behave like ranks that execute the program.

mod common;

use common::{Program, Sink, compile_with, exit_code, libraries, run, spec};
use ranks::{Job, JobError, JobSpec, Pause};
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use world::End;

fn compile(main: &str) -> Program {
    let head = r#"
        #define _GNU_SOURCE
        #include <dirent.h>
        #include <errno.h>
        #include <pthread.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/prctl.h>
        #include <sys/types.h>
        #include <unistd.h>
        #define RANK atoi(getenv("SPIN_RANK"))
    "#;
    compile_with(&format!("{head}{main}"), &["-Wno-unused", "-Wl,--no-as-needed"])
}

fn specs(program: &Program, ranks: usize) -> [JobSpec; 2] {
    let preload = vec![libraries().join("libsimclock.so")];
    [false, true].map(|forks| JobSpec { preload: preload.clone(), forks, ..spec(program, ranks) })
}

/// Runs ranks that make no calls, one after the other. Returns their statuses, standard output and error output.
fn outcome(spec: JobSpec) -> (Vec<ExitStatus>, [String; 2]) {
    let mut job = Job::new(JobSpec { tag_output: true, ..spec }).unwrap();
    let (out, err) = (Sink::default(), Sink::default());
    job.set_output(Box::new(out.clone()), Box::new(err.clone()));
    let statuses = (0..job.ranks()).map(|rank| match job.start(rank).unwrap() {
        Pause::Exited { rank: ended, status } if ended == rank => status,
        other => panic!("expected the end of rank {rank}, not {other:?}"),
    });
    (statuses.collect(), [out.text(), err.text()])
}

/// Returns the child processes of this test that are not reaped.
fn children() -> Vec<i32> {
    let path = format!("/proc/self/task/{}/children", rustix::thread::gettid().as_raw_nonzero());
    std::fs::read_to_string(path).unwrap().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Properties that a rank can observe about itself.
#[test]
fn a_forked_rank_equals_an_executed_rank() {
    let program = compile(
        r#"
        static int built;
        __attribute__((constructor)) static void build(void) { built = 100 + RANK; }
        static const char *in(char **variables, const char *name) {
            size_t length = strlen(name);
            for (; *variables; variables++)
                if (!strncmp(*variables, name, length) && (*variables)[length] == '=') return *variables + length + 1;
            return "none";
        }
        int main(int argc, char **argv, char **variables) {
            int death = 0, open = 0;
            char byte, own[4096];
            for (const char **name = (const char *[]){"SPIN_RANK", "PMI_RANK", "PMI_ID", "PMI_SIZE", "NAME", 0}; *name; name++)
                printf("%s %s %s\n", *name, getenv(*name), in(variables, *name));
            FILE *file = fopen("/proc/self/environ", "r");
            size_t length = fread(own, 1, sizeof own - 1, file);
            fclose(file);
            for (size_t at = 0; at < length; at += strlen(own + at) + 1)
                if (!strncmp(own + at, "SPIN_RANK=", 10)) printf("%s\n", own + at);
            DIR *folder = opendir("/proc/self/fd");
            while (readdir(folder)) open++;
            prctl(PR_GET_PDEATHSIG, &death);
            printf("%d %s %s built %d\n", argc, argv[1], argv[2], built);
            printf("descriptors %d, death %d, group %d\n", open, death, getpgrp() == getpid());
            printf("parent %d, input %zd\n", getppid() == atoi(getenv("SPIN_SIM_PID")), RANK ? read(0, &byte, 1) : 0);
            fprintf(stderr, "an error\n");
            raise(RANK == 11 ? SIGUSR1 : 0); /* needs the thread's own id */
            return 0;
        }"#,
    );
    let outcomes = specs(&program, 12).map(|spec| {
        let (args, env) = (vec!["one".into(), "two".into()], vec![("NAME".into(), "value".into())]);
        outcome(JobSpec { args, env, ..spec })
    });
    assert_eq!(outcomes[0], outcomes[1]);
    let (statuses, [out, err]) = &outcomes[1];
    assert_eq!((statuses[10].code(), statuses[11].signal()), (Some(0), Some(libc::SIGUSR1)));
    for line in
        ["SPIN_RANK 10 10", "PMI_RANK 10 10", "PMI_ID 10 10", "PMI_SIZE 12 12", "NAME value value", "SPIN_RANK=10"]
    {
        assert!(out.contains(&format!("[10] {line}\n")), "{line} is not in {out}");
    }
    for line in ["3 one two built 110", "death 9, group 1", "parent 1, input 0"] {
        assert!(out.contains(&format!("{line}\n")), "{line} is not in {out}");
    }
    assert_eq!(err.lines().count(), 12);
}

/// The kernel's per-thread data exist: the thread id, through which others wait for its end, and the list of robust
/// mutexes.
#[test]
fn the_thread_of_a_copy_is_one_of_the_c_library() {
    let program = compile(
        r#"
        static pthread_mutex_t mutex;
        static pthread_t first;
        static void *wait_for_it(void *nothing) {
            if (pthread_join(first, NULL)) _exit(1);
            _exit(pthread_mutex_lock(&mutex) == EOWNERDEAD ? 42 : 2);
        }
        int main(void) {
            pthread_t second;
            pthread_mutexattr_t kind;
            pthread_mutexattr_init(&kind);
            pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
            pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
            pthread_mutex_init(&mutex, &kind);
            first = pthread_self();
            if (pthread_mutex_lock(&mutex) || pthread_create(&second, NULL, wait_for_it, NULL)) return 3;
            pthread_exit(NULL);
        }"#,
    );
    for spec in specs(&program, 4) {
        assert_eq!(outcome(spec).0, [ExitStatus::from_raw(42 << 8); 4]);
    }
}

#[test]
fn ranks_end_as_they_would() {
    let program = compile(
        r#"
        int main(void) {
            printf("rank %d", RANK);
            if (RANK == 1) abort();
            if (RANK == 2) kill(getpid(), SIGKILL);
            if (RANK == 3) *(volatile int *)16 = 1;
            if (RANK == 4) for (;;) fork() ? _exit(5) : pause(); /* what is left of its group ends, too */
            return RANK;
        }"#,
    );
    let outcomes = specs(&program, 6).map(outcome);
    assert_eq!(outcomes[0], outcomes[1]);
    let ends: Vec<_> = outcomes[1].0.iter().map(|status| (status.code(), status.signal())).collect();
    let signals = [libc::SIGABRT, libc::SIGKILL, libc::SIGSEGV].map(|signal| (None, Some(signal)));
    assert_eq!(ends, [[(Some(0), None)].as_slice(), &signals, &[(Some(5), None), (Some(5), None)]].concat());
}

#[test]
fn crashes_before_main_are_reported() {
    let program =
        compile("__attribute__((constructor)) static void build(void) { abort(); } int main(void) { return 0; }");
    for spec in specs(&program, 4) {
        let mut job = Job::new(spec).unwrap();
        match job.start(0) {
            Ok(Pause::Exited { rank: 0, status }) => assert_eq!(status.signal(), Some(libc::SIGABRT)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn unexecutable_programs_are_reported() {
    for (program, kind) in [("/nowhere", io::ErrorKind::NotFound), ("/etc/passwd", io::ErrorKind::PermissionDenied)] {
        let mut job =
            Job::new(JobSpec { program: program.into(), ranks: 4, forks: true, ..JobSpec::default() }).unwrap();
        match job.start(0) {
            Err(JobError::Spawn { rank: 0, source, .. }) => assert_eq!(source.kind(), kind),
            other => panic!("{other:?}"),
        }
        assert_eq!(children(), []);
    }
}

/// A server that fails causes an error of the rank that it should fork.
#[test]
fn failures_of_the_server_are_reported() {
    let program = compile("int main(void) { return 0; }");
    let why = |harm: &dyn Fn(Pid)| {
        let mut job = Job::new(specs(&program, 4)[1].clone()).unwrap();
        assert_eq!(exit_code(job.start(0).unwrap()), Some(0));
        let server = children();
        assert_eq!(server.len(), 1, "rank 0 has ended, and the server waits");
        harm(Pid::from_raw(server[0]).unwrap());
        match job.start(1) {
            Err(error @ JobError::Spawn { rank: 1, .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let killed = why(&|server| kill_process(server, Signal::KILL).unwrap());
    assert!(killed.starts_with("cannot start") && killed.contains("as rank 1: "), "{killed}");
    let few = why(&|server| {
        let limit = libc::rlimit { rlim_cur: 5, rlim_max: 5 };
        let pid = server.as_raw_nonzero().get();
        // SAFETY: a limit of a child of this test.
        assert_eq!(unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()) }, 0);
    });
    assert!(few.contains("as rank 1: Too many open files"), "{few}");
    assert_eq!(children(), [], "the server has ended with its job");
}

#[test]
fn the_server_ends_when_all_ranks_have_started() {
    let program = compile("int main(void) { pause(); return 0; }");
    let mut job = Job::new(specs(&program, 3)[1].clone()).unwrap();
    job.set_deadline(Some(std::time::Instant::now()));
    for rank in 0..3 {
        assert!(matches!(job.start(rank), Ok(Pause::TimedOut)));
    }
    assert_eq!(children().len(), 3);
    drop(job);
    assert_eq!(children(), []);
}

/// Ranks speak PMI with the simulator; ranks known not to speak it have no connection.
#[test]
fn copies_speak_pmi() {
    let pmi = include_str!("common/pmi.h");
    let main = r#"
        int main(void) {
            pmi_init();
            pmi_ask("cmd=get_my_kvsname\n");
            return strcmp(pmi_ask("cmd=barrier_in\n"), "cmd=barrier_out rc=0");
        }"#;
    let program = compile(&format!("{pmi}{main}"));
    for spec in specs(&program, 5) {
        assert_eq!(run(spec).end, End::Finished);
    }
    let main = r#"
        int main(void) {
            char path[40];
            snprintf(path, sizeof path, "/proc/self/fd/%s", getenv("SPIN_SIM_FD"));
            return getenv("PMI_FD") || !access(path, F_OK) ? 1 : 42;
        }"#;
    let program = compile(main);
    for spec in specs(&program, 5) {
        let statuses = outcome(JobSpec { speaks_no_pmi: true, ..spec }).0;
        assert_eq!(statuses, [ExitStatus::from_raw(42 << 8); 5]);
    }
}
