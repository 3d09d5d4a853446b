// SPDX-License-Identifier: Apache-2.0
//! Calls answered by the rank itself, with data that came with its last reply.

mod common;

use abi::mailbox::{self, Known, KnownCounter, POSTS, Slot};
use abi::portals::ReturnCode;
use common::{CARDS, PORTALS, Program, compile_with, run_with, spec};
use sim::Time;
use std::mem::offset_of;
use world::End;

/// Two ranks with an event queue for acknowledgements and messages, and a counter of messages. `posted()` returns the
/// number of calls posted since the last reply.
fn program(events: u32, text: &str) -> Program {
    let start = r#"
        #include <fcntl.h>
        #include <sys/mman.h>
        static ptl_handle_md_t md;
        static ptl_handle_ct_t arrived;
        static ptl_process_t peer;
        static uint64_t from = 5, to, sum;
        static char *slot;
        static void open_interface(void) {
            ptl_pt_index_t index;
            ptl_handle_me_t handle;
            CHECK(PtlInit());
            CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
            CHECK(spin_set_map(ni));
            CHECK(PtlEQAlloc(ni, EVENTS, &eq));
            CHECK(PtlCTAlloc(ni, &arrived));
            CHECK(PtlPTAlloc(ni, 0, eq, 0, &index));
            ptl_md_t data = {.start = &from, .length = 8, .options = PTL_MD_EVENT_SEND_DISABLE, .eq_handle = eq,
                             .ct_handle = PTL_CT_NONE};
            CHECK(PtlMDBind(ni, &data, &md));
            ptl_me_t me = {.start = &to, .length = 8, .ct_handle = arrived, .uid = PTL_UID_ANY,
                           .match_id.rank = PTL_RANK_ANY, .hpu_memory = PTL_INVALID_HANDLE,
                           .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM};
            CHECK(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
            peer.rank = 1 - spin_rank();
            char path[100];
            snprintf(path, sizeof path, "/proc/%s/fd/%s", getenv("SPIN_SIM_PID"), getenv("SPIN_SIM_FD"));
            char *file = mmap(NULL, END, PROT_READ | PROT_WRITE, MAP_SHARED, open(path, O_RDWR), 0);
            if (file == MAP_FAILED) exit(80);
            slot = file + HEADER + spin_rank() * RANK;
            CHECK(spin_barrier());
        }
        static unsigned posted(void) { return *(volatile uint32_t *)(slot + POSTED); }
        static void put(ptl_ack_req_t ack, ptl_hdr_data_t number) {
            CHECK(PtlPut(md, 0, 8, ack, peer, 0, 0, 0, NULL, number));
        }
        static void add(const ptl_event_t *event) {
            sum = sum * 1000003 + event->type + 7 * event->hdr_data + 11 * event->mlength + event->ni_fail_type;
        }
    "#;
    let (slots, known) = (mailbox::slot_offset(2, 0, 0), offset_of!(Slot, known));
    let numbers = [
        ("EVENTS", events as usize),
        ("END", mailbox::file_size(2)),
        ("HEADER", slots),
        ("RANK", mailbox::slot_offset(2, 1, 0) - slots),
        ("POSTED", offset_of!(Slot, posted)),
        ("KNOWN_FIRST", known + offset_of!(Known, events)),
        ("KNOWN_SUCCESS", known + offset_of!(Known, counters) + offset_of!(KnownCounter, success)),
    ];
    let numbers = numbers.map(|(name, value)| format!("#define {name} {value}\n")).concat();
    compile_with(&format!("{PORTALS}{numbers}{start}{text}"), &["-Wno-unused"])
}

fn end(program: &Program, card: &str, post_ahead: usize) -> (End, Vec<Time>, Vec<String>) {
    let mut job = spec(program, 2);
    job.post_ahead = post_ahead as u32;
    let run = run_with(job, &[card]);
    (run.end, run.ends, run.warnings)
}

/// Returns the end times of a program's ranks on each card. Checks that they are equal without posting and with
/// different numbers of posted calls.
fn times(program: &Program) -> Vec<Vec<Time>> {
    let of_card = |card: &&str| {
        let (how, ends, warnings) = end(program, card, 0);
        assert_eq!((how, warnings), (End::Finished, Vec::new()), "{card}");
        for ahead in [3, 16, POSTS] {
            assert_eq!(end(program, card, ahead), (End::Finished, ends.clone(), Vec::new()), "{card}, {ahead}");
        }
        ends
    };
    CARDS.iter().map(of_card).collect()
}

/// Acknowledged messages in both directions, 24 in flight. The final waits of the ranks depend on everything that they
/// observed.
const STREAM: &str = r#"
    static unsigned ahead;
    static void take(unsigned number) {
        ptl_event_t event;
        unsigned which = 9;
        switch (number % 3) {
        case 0: CHECK(PtlEQWait(eq, &event)); break;
        case 1: {
            int code;
            while ((code = PtlEQGet(eq, &event)) == PTL_EQ_EMPTY) spin_idle();
            CHECK(code);
            break;
        }
        default: CHECK(PtlEQPoll(&eq, 1, 1000, &event, &which)); if (which != 0) exit(3);
        }
        ahead += posted() > 0;
        add(&event);
    }
    int main(void) {
        enum { MESSAGES = 400, WINDOW = 24 };
        open_interface();
        /* Each message is two events: its acknowledgement, and that of the peer's one. */
        for (unsigned i = 0; i < MESSAGES + WINDOW; i++) {
            if (i >= WINDOW) { take(2 * i); take(2 * i + 1); }
            if (i < MESSAGES) put(PTL_ACK_REQ, i);
            if (i % 97 == 0) spin_host_compute(100 * i);
        }
        for (unsigned i = 1; i < MESSAGES; i++) CHECK(spin_ct_await(arrived, i));
        if (to != 5 || (AHEAD ? ahead < MESSAGES : 0)) return 4;
        spin_host_compute(sum % 100000); /* the time at the end tells whether the events were the same */
        return 0;
    }"#;

#[test]
fn posted_calls_give_the_same_events_and_times() {
    let all = times(&program(1000, &STREAM.replace("AHEAD", "0")));
    assert!(all.iter().flatten().all(|time| *time > Time::from_ns(400 * 65)), "{all:?}");
    assert_ne!(all[0], all[1]);
    // Most events are known before they are requested.
    let (how, _, _) = end(&program(1000, &STREAM.replace("AHEAD", "1")), CARDS[1], POSTS);
    assert_eq!(how, End::Finished);
}

/// Puts triggered by a counter, and increments of counters, immediate and triggered. Setting a counter invalidates its
/// known value.
const TRIGGERED: &str = r#"
    int main(void) {
        enum { ROUNDS = 60 };
        open_interface();
        ptl_handle_ct_t go, echo;
        ptl_ct_event_t counted;
        ptl_event_t event;
        unsigned ahead = 0;
        CHECK(PtlCTAlloc(ni, &go));
        CHECK(PtlCTAlloc(ni, &echo));
        CHECK(spin_barrier());
        for (unsigned i = 1; i <= ROUNDS; i++) {
            CHECK(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, peer, 0, 0, 0, NULL, i, go, i));
            CHECK(PtlTriggeredCTInc(echo, (ptl_ct_event_t){.success = i}, go, i));
            CHECK(PtlCTInc(go, (ptl_ct_event_t){.success = 1}));
            ahead += posted() > 2;
            if (i % 7 == 0) CHECK(PtlCTWait(echo, i * (i + 1) / 2, &counted));
            if (i % 11 == 0) spin_host_compute(10 * i);
        }
        CHECK(PtlCTWait(echo, ROUNDS * (ROUNDS + 1) / 2, &counted));
        if (counted.success != ROUNDS * (ROUNDS + 1) / 2 || (AHEAD ? ahead < ROUNDS - 10 : 0)) return 4;
        for (unsigned i = 1; i <= ROUNDS; i++) {
            CHECK(PtlEQWait(eq, &event));
            if (event.type != PTL_EVENT_PUT || event.hdr_data != i) return 5;
            add(&event);
        }
        CHECK(PtlCTSet(echo, (ptl_ct_event_t){.success = 0}));
        CHECK(PtlCTInc(echo, (ptl_ct_event_t){.success = 1}));
        CHECK(spin_ct_await(echo, 1));
        spin_host_compute(sum % 100000);
        return 0;
    }"#;

#[test]
fn posted_triggers_and_increments_give_the_same_times() {
    let all = times(&program(1000, &TRIGGERED.replace("AHEAD", "0")));
    assert_ne!(all[0], all[1]);
    let (how, _, _) = end(&program(1000, &TRIGGERED.replace("AHEAD", "1")), CARDS[1], POSTS);
    assert_eq!(how, End::Finished, "nearly all calls are posted");
}

/// The rank continues before the lack of space for another triggered operation is known.
#[test]
fn a_triggered_operation_without_room_ends_the_run_when_it_is_posted() {
    let text = r#"
        int main(void) {
            open_interface();
            ptl_handle_ct_t go;
            CHECK(PtlCTAlloc(ni, &go));
            int rc = PTL_OK;
            for (unsigned i = 0; rc == PTL_OK && i < 1 << 20; i++)
                rc = PtlTriggeredCTInc(arrived, (ptl_ct_event_t){.success = 1}, go, 1);
            return rc == PTL_NO_SPACE ? 0 : 3;
        }"#;
    let program = program(16, text);
    assert_eq!(end(&program, CARDS[1], 0).0, End::Finished);
    let End::BadProgram { message, .. } = end(&program, CARDS[1], POSTS).0 else { panic!("it has not ended") };
    let code = ReturnCode::NoSpace as i32;
    assert_eq!(
        message,
        format!(
            "PtlTriggeredCTInc was refused (return code {code}) although one like it was accepted before; --post-ahead 0 makes \
             each call at its time"
        )
    );
}

#[test]
fn a_queue_that_overflows_loses_the_same_events() {
    let text = r#"
        int main(void) {
            open_interface();
            for (unsigned round = 0; round < 3; round++) {
                for (unsigned i = 0; i < 10 + 10 * round; i++) put(PTL_NO_ACK_REQ, i);
                spin_host_compute(100000);
                CHECK(spin_barrier());
                ptl_event_t event;
                int rc;
                unsigned got = 0, lost = 0;
                for (; (rc = PtlEQGet(eq, &event)) != PTL_EQ_EMPTY; got++) {
                    if (rc != PTL_OK && rc != PTL_EQ_DROPPED) return 3;
                    lost += rc == PTL_EQ_DROPPED;
                    add(&event);
                }
                if (got != (round ? 16 : 10) || lost != (round > 0)) return 4;
                CHECK(spin_barrier());
            }
            spin_host_compute(sum % 100000);
            return 0;
        }"#;
    times(&program(16, text));
}

/// An event taken ahead of time is lost before its time.
#[test]
fn an_event_that_was_taken_ahead_and_is_lost_ends_the_run() {
    let text = r#"
        int main(void) {
            open_interface();
            ptl_event_t event;
            for (unsigned i = 0; i < 4; i++) put(PTL_NO_ACK_REQ, i);
            spin_host_compute(100000);
            CHECK(PtlEQGet(eq, &event));
            spin_host_compute(1); /* three events are there */
            for (unsigned i = 0; i < 60; i++) put(PTL_NO_ACK_REQ, i);
            int rc = PtlEQGet(eq, &event);
            CHECK(spin_barrier());
            return rc == PTL_EQ_DROPPED ? 0 : 3;
        }"#;
    let program = program(16, text);
    assert_eq!(end(&program, CARDS[1], 0).0, End::Finished);
    let End::BadProgram { message, .. } = end(&program, CARDS[1], POSTS).0 else { panic!("it has not ended") };
    assert_eq!(
        message,
        format!(
            "PtlEQGet has returned an event ahead of its time that was no longer there (return code {}); \
             --post-ahead 0 makes each call at its time",
            abi::portals::ReturnCode::EqDropped as i32
        )
    );
}

#[test]
fn threads_share_a_queue() {
    let text = r#"
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static unsigned got;
        static void *take(void *all) {
            ptl_event_t event;
            for (unsigned i = 0; i < 20; i++) {
                CHECK(PtlEQWait(eq, &event));
                pthread_mutex_lock(&lock);
                sum += event.hdr_data * event.hdr_data;
                got++;
                pthread_mutex_unlock(&lock);
            }
            return all;
        }
        int main(void) {
            open_interface();
            ptl_event_t event;
            for (unsigned i = 0; i < 50; i++) put(PTL_NO_ACK_REQ, i);
            spin_host_compute(100000);
            for (unsigned i = 0; i < 10; i++) {
                CHECK(PtlEQWait(eq, &event));
                if (event.hdr_data != i) return 3;
                sum += i * i;
            }
            pthread_t thread;
            if (pthread_create(&thread, NULL, take, NULL)) return 2;
            take(NULL);
            pthread_join(thread, NULL);
            return got == 40 && sum == 40425 ? 0 : 4;
        }"#;
    times(&program(1000, text));
}

#[test]
fn wrong_predictions_end_the_run() {
    let change = |what: &str| {
        let text = r#"
            int main(void) {
                open_interface();
                ptl_event_t event;
                for (unsigned i = 0; i < 4; i++) put(PTL_NO_ACK_REQ, i);
                CHECK(spin_ct_await(arrived, 4));
                CHECK(PtlEQGet(eq, &event));
                spin_host_compute(1);
                if (spin_rank() == 1) { WHAT }
                CHECK(spin_barrier());
                return 0;
            }"#;
        program(100, &text.replace("WHAT", what))
    };
    let outcome = |what: &str, ahead| end(&change(what), CARDS[1], ahead).0;
    let event = "((ptl_event_t *)(slot + KNOWN_FIRST))->hdr_data ^= 1; CHECK(PtlEQGet(eq, &event));";
    let counter = "*(uint64_t *)(slot + KNOWN_SUCCESS) = 50; CHECK(spin_ct_await(arrived, 5));";
    let bad = |message: &str| End::BadProgram {
        rank: 1,
        message: format!("{message}; --post-ahead 0 makes each call at its time"),
    };
    assert_eq!(outcome(event, 0), End::Finished);
    let gone = "PtlEQGet has returned an event ahead of its time that was no longer there (return code 0)";
    assert_eq!(outcome(event, POSTS), bad(gone));
    assert!(matches!(outcome(counter, 0), End::Deadlock { .. }));
    assert_eq!(outcome(counter, POSTS), bad("PtlCTWait has returned ahead of its time, when it should have waited"));
    assert_eq!(outcome("CHECK(spin_ct_await(arrived, 4)); CHECK(PtlEQGet(eq, &event));", POSTS), End::Finished);
}
