// SPDX-License-Identifier: Apache-2.0
//! PMI-1 between ranks and the simulator.

mod common;

use common::{compile, run, run_until, spec};
use ranks::JobSpec;
use sim::Time;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};
use world::End;

/// A C program that includes the PMI client.
fn pmi_program(main: &str) -> common::Program {
    compile(&format!("#include <portals4.h>\n#include <spin.h>\n{}\n{main}", include_str!("common/pmi.h")))
}

#[test]
fn answers_are_those_of_the_protocol() {
    let program = pmi_program(
        r#"
        static int wrong(const char *answer, const char *expected) {
            if (!strcmp(answer, expected)) return 0;
            fprintf(stderr, "%s\n%s\n", answer, expected);
            return 1;
        }
        int main(void) {
            char own[100];
            pmi_init();
            if (pmi_env("PMI_RANK") != 0 || pmi_env("PMI_ID") != 0 || pmi_env("PMI_SIZE") != 1) return 1;
            if (pmi_env("PMI_SPAWNED") != 0) return 2;
            return wrong(pmi_ask("cmd=init pmi_version=2 pmi_subversion=0\n"),
                         "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1")
                || wrong(pmi_ask("cmd=get_maxes\n"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0")
                || wrong(pmi_ask("cmd=get_appnum\n"), "cmd=appnum appnum=0 rc=0")
                || wrong(pmi_ask("cmd=get_universe_size\n"), "cmd=universe_size size=1 rc=0")
                || sscanf(pmi_ask("cmd=get_my_kvsname\n"), "cmd=my_kvsname kvsname=%99s rc=0", own) != 1
                || !strcmp(own, "kvs_spin_0")
                || wrong(pmi_ask("cmd=get kvsname=%s key=PMI_process_mapping\n", own),
                         "cmd=get_result rc=0 msg=success value=(vector,(0,1,1))")
                || wrong(pmi_ask("cmd=get kvsname=kvs_spin_0 key=PMI_process_mapping\n"),
                         "cmd=get_result rc=0 msg=success value=(vector,(0,1,1))")
                || wrong(pmi_ask("cmd=get kvsname=kvs_spin_0 key=a\n"),
                         "cmd=get_result rc=-1 msg=key_a_not_found value=unknown")
                || wrong(pmi_ask("cmd=put kvsname=kvs_spin_0 key=a value=1=2\n"), "cmd=put_result rc=0 msg=success")
                || wrong(pmi_ask("cmd=put kvsname=kvs_spin_0 key=b value=3\n"), "cmd=put_result rc=0 msg=success")
                || wrong(pmi_ask("cmd=put kvsname=kvs_spin_0 key=a value=4\n"), "cmd=put_result rc=0 msg=success")
                || wrong(pmi_ask("cmd=get kvsname=kvs_spin_0 key=a\n"), "cmd=get_result rc=0 msg=success value=4")
                || wrong(pmi_ask("cmd=put kvsname=kvs_spin_0 key=d value= two words,  x=y \n"),
                         "cmd=put_result rc=0 msg=success")
                || wrong(pmi_ask("cmd=get kvsname=kvs_spin_0 key=d\n"),
                         "cmd=get_result rc=0 msg=success value= two words,  x=y ")
                || wrong(pmi_ask("cmd=put kvsname=other key=a value=1\n"), "cmd=put_result rc=-1 msg=no_such_kvs")
                || wrong(pmi_ask("cmd=put kvsname=kvs_spin_0 key=%065d value=1\n", 0),
                         "cmd=put_result rc=-1 msg=bad_key_length")
                || wrong(pmi_ask("cmd=put kvsname=kvs_spin_0 key=c value=%01025d\n", 0),
                         "cmd=put_result rc=-1 msg=value_too_long")
                || wrong(pmi_ask("cmd=getbyidx kvsname=kvs_spin_0 idx=1\n"),
                         "cmd=getbyidx_results rc=0 nextidx=2 key=a val=4")
                || wrong(pmi_ask("cmd=getbyidx kvsname=kvs_spin_0 idx=4\n"),
                         "cmd=getbyidx_results rc=-2 reason=no_more_keyvals")
                || wrong(pmi_ask("cmd=publish_name service=s port=p\n"), "cmd=publish_result rc=0 info=ok")
                || wrong(pmi_ask("cmd=lookup_name service=s\n"), "cmd=lookup_result rc=0 info=ok port=p")
                || wrong(pmi_ask("cmd=unpublish_name service=s\n"), "cmd=unpublish_result rc=0 info=ok")
                || wrong(pmi_ask("cmd=lookup_name service=s\n"), "cmd=lookup_result rc=-1 info=no_such_service")
                || wrong(pmi_ask("mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=2\nspawnssofar=1\nendcmd\n"
                                 "mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=2\nspawnssofar=2\narg1=x y=z\nendcmd\n"),
                         "cmd=spawn_result rc=-1 msg=a_simulated_job_has_a_fixed_number_of_ranks")
                || wrong(pmi_ask("cmd=dance now=1\n"), "cmd=dance_result rc=-1 msg=unknown_command")
                || wrong(pmi_ask("nonsense\n"), "cmd=error_result rc=-1 msg=unknown_command");
        }"#,
    );
    assert_eq!(run(spec(&program, 1)).end, End::Finished);
}

/// Ranks exchange their ids through PMI, build a logical map of them, and put their rank into the memory of the next
/// one.
const RING: &str = r#"
    #define CHECK(call) do { int rc_ = (call); if (rc_ != PTL_OK) exit(10 + rc_); } while (0)
    int main(void) {
        pmi_init();
        int rank = pmi_env("PMI_RANK"), size = pmi_env("PMI_SIZE");
        char kvs[300];
        pmi_ask("cmd=get_my_kvsname\n");
        strcpy(kvs, pmi_field("kvsname"));

        ptl_handle_ni_t ni;
        ptl_process_t me;
        CHECK(PtlInit());
        CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
        CHECK(PtlGetPhysId(ni, &me));
        spin_host_compute(1000 * (rank + 1));
        pmi_ask("cmd=put kvsname=%s key=id-%d value=%u:%u\n", kvs, rank, me.phys.nid, me.phys.pid);
        if (strcmp(pmi_field("rc"), "0")) return 1;
        pmi_barrier();
        if (spin_time_ps() != 1000000ull * size) return 2;
        ptl_process_t *map = calloc(size, sizeof *map);
        for (int i = 0; i < size; i++) {
            pmi_ask("cmd=get kvsname=%s key=id-%d\n", kvs, i);
            if (sscanf(pmi_field("value"), "%u:%u", &map[i].phys.nid, &map[i].phys.pid) != 2) return 3;
        }
        CHECK(PtlSetMap(ni, size, map));

        static int word = -1;
        ptl_pt_index_t pt;
        ptl_handle_ct_t ct;
        ptl_handle_me_t entry;
        ptl_handle_md_t md;
        ptl_ct_event_t event;
        CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 4, &pt));
        CHECK(PtlCTAlloc(ni, &ct));
        ptl_me_t accept = {.start = &word, .length = sizeof word, .ct_handle = ct, .uid = PTL_UID_ANY,
                           .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, .match_id = {.rank = PTL_RANK_ANY}};
        CHECK(PtlMEAppend(ni, pt, &accept, PTL_PRIORITY_LIST, NULL, &entry));
        ptl_md_t all = {.start = NULL, .length = PTL_SIZE_MAX, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
        CHECK(PtlMDBind(ni, &all, &md));
        pmi_barrier();
        ptl_process_t next = {.rank = (rank + 1) % size};
        CHECK(PtlPut(md, (ptl_size_t)&rank, sizeof rank, PTL_NO_ACK_REQ, next, pt, 0, 0, NULL, 0));
        CHECK(PtlCTWait(ct, 1, &event));
        if (word != (rank + size - 1) % size) return 4;
        pmi_barrier();
        PtlFini();
        pmi_finalize();
        return 0;
    }"#;

#[test]
fn ranks_find_each_other_by_pmi() {
    let program = pmi_program(RING);
    for ranks in [1, 2, 5] {
        let (first, second) = (run(spec(&program, ranks)), run(spec(&program, ranks)));
        assert_eq!(first.end, End::Finished, "{ranks} ranks");
        assert_eq!(first.ends, second.ends, "simulated times are the same in every run");
    }
}

#[test]
fn many_ranks_meet() {
    let program = pmi_program("int main(void) { pmi_init(); pmi_barrier(); pmi_finalize(); return 0; }");
    assert_eq!(run(spec(&program, 256)).end, End::Finished);
}

#[test]
fn an_incomplete_barrier_is_a_deadlock() {
    let program = pmi_program(
        "int main(void) { pmi_init(); if (pmi_env(\"PMI_RANK\") == 1) pmi_barrier(); PtlInit(); PtlFini(); return 0; }",
    );
    let waits = vec!["rank 0 has ended".into(), "rank 1 waits in a PMI barrier, where 1 of 2 ranks have come".into()];
    assert_eq!(run(spec(&program, 2)).end, End::Deadlock { at: Time::ZERO, waits, polls: 0 });
}

#[test]
fn the_connection_passes_through_wrappers() {
    let program = pmi_program("int main(void) { pmi_init(); pmi_barrier(); pmi_finalize(); return 0; }");
    let args = vec!["-c".into(), "$0 && exit 7".into(), program.path.clone().into()];
    let spec = ranks::JobSpec { program: "sh".into(), args, ranks: 2, ..Default::default() };
    match run(spec).end {
        End::RankFailed { rank: 0, status, .. } => assert_eq!(status.code(), Some(7)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_barrier_waits_while_other_threads_call() {
    let program = pmi_program(
        r#"
        #include <pthread.h>
        static void *compute(void *unused) {
            (void)unused;
            for (int i = 0; i < 20; i++) spin_host_compute(500);
            return NULL;
        }
        int main(void) {
            pthread_t thread;
            PtlInit();
            pmi_init();
            pthread_create(&thread, NULL, compute, NULL);
            pmi_barrier();
            pthread_join(thread, NULL);
            PtlFini();
            return spin_time_ps() == 10000000 ? 0 : 1;
        }"#,
    );
    assert_eq!(run(spec(&program, 2)).end, End::Finished);
}

#[test]
fn an_abort_ends_the_job_with_its_code() {
    // A client may exit before its line is read. The low byte of a code is its status, but only code 0 means success.
    for (code, expected) in [(9, 9), (7, 7), (256, 1), (-1, 255), (0, 0)] {
        for how in ["pmi_ask", "pmi_leave"] {
            let program = pmi_program(&format!(
                r#"
            static __attribute__((unused)) void pmi_leave(const char *line) {{
                exit(write(pmi_fd, line, strlen(line)) < 0);
            }}
            int main(void) {{
                pmi_init();
                if (pmi_env("PMI_RANK") == 1) {how}("cmd=abort exitcode={code} message=because exitcode=3\n");
                pmi_barrier();
                return 0;
            }}"#
            ));
            match run(spec(&program, 3)).end {
                End::RankFailed { rank: 1, status, at: Time::ZERO } => assert_eq!(status.into_raw(), expected << 8),
                End::Aborted { rank: 1 } => assert_eq!(expected, 0),
                other => panic!("{how} {code}: {other:?}"),
            }
        }
    }
}

#[test]
fn unterminated_input_is_refused() {
    let refused = |text: &str, why: &str| {
        let main = format!("int main(void) {{ char line[1100]; *line = 0; pmi_init(); {text} return 0; }}");
        match run(spec(&pmi_program(&main), 2)).end {
            End::BadProgram { rank: 0, message } => assert!(message.starts_with(why), "{message}"),
            other => panic!("{other:?}"),
        }
    };
    refused(
        r#"for (int i = 0;; i++) {
            sprintf(line, i ? "arg%d=%0900d\n" : "mcmd=spawn\nnprocs=%d\nexecname=%0900d\n", i, i);
            if (write(pmi_fd, line, strlen(line)) < 0) pause();
        }"#,
        "PMI: more than 1048576 bytes that ask for nothing",
    );
    refused(
        r#"for (;;) if (write(pmi_fd, "   \n", 4) < 0) pause();"#,
        "PMI: more than 1048576 bytes that ask for nothing",
    );
    refused(r#"for (;;) if (write(pmi_fd, "cmd=x", 5) < 0) pause();"#, "PMI: a line is longer than 16384 bytes");
    refused(r#"for (;;) if (write(pmi_fd, "cmd=get_appnum\n", 15) < 0) pause();"#, "PMI: it does not read its answers");
}

#[test]
fn published_data_is_limited() {
    // 1 MiB per rank holds 1,023 pairs of 8 + 1,016 bytes and the 33 bytes of PMI_process_mapping with its value.
    let program = pmi_program(
        r#"
        static const char *put(int key, int length) {
            pmi_ask("cmd=put kvsname=kvs_spin_0 key=key%05d value=%0*d\n", key, length, 7);
            return pmi_field("msg");
        }
        int main(void) {
            pmi_init();
            int count = 0;
            while (count < 5000 && !strcmp(put(count, 1016), "success")) count++;
            if (count != 1023 || strcmp(put(count, 1016), "no_room")) return 1;
            // A later value of a key replaces the earlier one.
            if (strcmp(put(7, 1016), "success") || strcmp(put(7, 10), "success")) return 2;
            if (strcmp(put(count, 1016), "success") || strcmp(put(count + 1, 1016), "no_room")) return 3;
            pmi_ask("cmd=publish_name service=s port=%01020d\n", 1);
            return strcmp(pmi_field("info"), "no_room") ? 4 : 0;
        }"#,
    );
    assert_eq!(run(spec(&program, 1)).end, End::Finished);
}

#[test]
fn the_library_of_pmi_does_what_its_header_says() {
    let program = common::compile_with(include_str!("common/libpmi.c"), &["-Wl,--no-as-needed", "-lpmi"]);
    match run(spec(&program, 3)).end {
        End::Aborted { rank: 2 } => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_thread_is_not_followed_into_a_barrier() {
    // A rank's second thread calls the library while the first one is about to block in the barrier. The barrier can
    // only end when the simulator continues.
    let program = pmi_program(
        r#"
        #include <pthread.h>
        static void *poll(void *interface) {
            ptl_handle_ct_t ct;
            ptl_ct_event_t event;
            ptl_size_t never = 1;
            unsigned which;
            PtlCTAlloc(*(ptl_handle_ni_t *)interface, &ct);
            for (int i = 0; i < 60; i++) PtlCTPoll(&ct, &never, 1, 1, &event, &which);
            return NULL;
        }
        int main(void) {
            ptl_handle_ni_t ni;
            pthread_t thread;
            pmi_init();
            PtlInit();
            PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni);
            pthread_create(&thread, NULL, poll, &ni);
            for (int i = 0; i < 60; i++) {
                static const char ask[] = "cmd=barrier_in\n";
                char answer[256];
                if (write(pmi_fd, ask, sizeof ask - 1) != sizeof ask - 1) return 5;
                for (volatile int work = 0; work < i * 1000; work++) {}
                if (read(pmi_fd, answer, sizeof answer) <= 0) return 6;
            }
            pthread_join(thread, NULL);
            PtlFini();
            return 0;
        }"#,
    );
    let quick = JobSpec { busy_wait_quantum: Some(Duration::from_nanos(1)), ..spec(&program, 2) };
    assert_eq!(run_until(quick, Instant::now() + Duration::from_secs(60)).end, End::Finished);
}
