// SPDX-License-Identifier: Apache-2.0
//! Refused calls: the wrong argument, and the reason.

use crate::harness::{plain, program, spinrun};

/// Messages of `spinrun -v` about the calls of `refused.c`, in order: function, return code and reason.
const REASONS: [(&str, &str, &str); 33] = [
    ("PtlEQAlloc", "NO_INIT", "the process is not between PtlInit and the last PtlFini"),
    ("PtlNIInit", "ARG_INVALID", "iface: 3 is not PTL_IFACE_DEFAULT, the only one"),
    (
        "PtlNIInit",
        "ARG_INVALID",
        "options: 0x1 must have exactly one of PTL_NI_MATCHING and PTL_NI_NO_MATCHING, and one of PTL_NI_LOGICAL and PTL_NI_PHYSICAL",
    ),
    ("PtlNIInit", "ARG_INVALID", "pid: 2000 is above PTL_PID_MAX, 1024"),
    ("PtlNIInit", "ARG_INVALID", "ni_handle: is NULL"),
    ("PtlGetId", "ARG_INVALID", "ni_handle: no map: spin_set_map (PtlSetMap) was not called"),
    ("PtlPut", "ARG_INVALID", "target_id: no map: spin_set_map (PtlSetMap) was not called"),
    ("PtlSetMap", "ARG_INVALID", "mapping: lacks this process (nid 0, pid 1)"),
    ("PtlSetMap", "IGNORED", "ni_handle: the interface has a map already, which stays"),
    ("PtlSetMap", "ARG_INVALID", "ni_handle: the interface is PTL_NI_PHYSICAL and has no map"),
    ("PtlPut", "ARG_INVALID", "length: local_offset 60 + 8 B exceeds the descriptor's 64 B"),
    ("PtlPut", "ARG_INVALID", "ack_req: PTL_ACK_REQ needs an event queue, and the descriptor has none"),
    ("PtlPut", "ARG_INVALID", "pt_index: 64 is above max_pt_index, 63"),
    ("PtlAtomic", "ARG_INVALID", "datatype: PTL_BOR is not defined for PTL_DOUBLE"),
    ("PtlAtomic", "ARG_INVALID", "operation: PTL_CSWAP is for PtlSwap only"),
    ("PtlSwap", "ARG_INVALID", "length: 16 B: PTL_CSWAP takes one item of 8 B"),
    ("PtlPTAlloc", "PT_EQ_NEEDED", "eq_handle: is PTL_EQ_NONE, and PTL_PT_FLOWCTRL needs a queue"),
    ("PtlPTAlloc", "PT_IN_USE", "pt_index_req: portal table entry 0 is in use"),
    ("PtlPTFree", "ARG_INVALID", "pt_index: portal table entry 5 is not allocated (PtlPTAlloc)"),
    ("PtlMEAppend", "ARG_INVALID", "pt_index: portal table entry 5 is not allocated (PtlPTAlloc)"),
    ("PtlMEAppend", "ARG_INVALID", "me: is NULL"),
    ("PtlPTFree", "PT_IN_USE", "pt_index: 1 entry is in the lists of portal table entry 0"),
    ("PtlMEUnlink", "ARG_INVALID", "me_handle: there is no list entry 0x40000000 any more: it was freed or unlinked"),
    ("PtlMDBind", "ARG_INVALID", "md->ct_handle: 0x64000000 is a counter of another interface"),
    ("PtlCTInc", "ARG_INVALID", "increment: success is 1 and failure 1: one of them must be 0"),
    (
        "PtlTriggeredPut",
        "ARG_INVALID",
        "trig_ct_handle: 0x64000000 is a counter of another interface than the operation",
    ),
    ("PtlCTFree", "ARG_INVALID", "ct_handle: 0x30000000 is a memory descriptor, not a counter"),
    ("PtlEQAlloc", "NO_SPACE", "count: 1073741824 events, at most 16777215"),
    ("PtlEQPoll", "ARG_INVALID", "size: 0 is not from 1 to 1048576"),
    ("PtlHPUAllocMem", "NO_SPACE", "length: HPU memory: 4 MiB asked, 1 MiB on this card"),
    ("PtlHPUAllocMem", "ARG_INVALID", "length: is 0"),
    ("PtlMEAppend", "ARG_INVALID", "me->hpu_initial_state_length: 65 B do not fit into the 64 B of me->hpu_memory"),
    ("PtlHPUFreeMem", "IN_USE", "hpu_mem: 0x70000000 is the memory of an entry's handlers: unlink that first"),
];

#[test]
fn each_has_its_argument_and_its_reason() {
    let run = spinrun("-v", &program("refused"), "");
    assert_eq!(run.status, 0, "{}", run.err);
    let told: Vec<_> = run.err.lines().filter_map(|line| line.strip_prefix("spinrun: refused: ")).collect();
    let wanted: Vec<_> = REASONS
        .iter()
        .map(|(name, code, reason)| format!("{name} returns PTL_{code} to rank 0 at : {reason}"))
        .collect();
    let without_time = |line: &str| {
        let (start, rest) = line.split_once(" at ").unwrap();
        let (_, reason) = rest.split_once(" ns").unwrap();
        format!("{start} at {reason}")
    };
    let told: Vec<_> = told.into_iter().map(without_time).collect();
    assert_eq!(told, wanted);
    // The report groups them by function, code and argument.
    let report = spinrun("--json -", &program("refused"), "").out;
    let report: serde_json::Value = serde_json::from_str(&report[report.find('{').unwrap()..]).unwrap();
    let refused = report["refused_calls"].as_array().unwrap();
    let of = |function: &str| refused.iter().find(|call| call["function"] == function).unwrap();
    assert_eq!(refused.len(), REASONS.len());
    assert_eq!(
        (&of("PtlCTInc")["code"], &of("PtlCTInc")["argument"], &of("PtlCTInc")["why"]),
        (&"PTL_ARG_INVALID".into(), &"increment".into(), &"success is 1 and failure 1: one of them must be 0".into())
    );
    assert!(of("PtlCTInc")["at_ps"].as_u64().unwrap() > 0 && of("PtlCTInc")["rank"] == 0);
    // Without `-v` none of this is printed; a stopped handler causes a warning.
    let quiet = spinrun("", &program("refused"), "");
    let lines: Vec<_> = quiet.err.lines().collect();
    assert_eq!(
        lines,
        [
            "libportals: PtlEQAlloc before PtlInit, or after the last PtlFini, returns PTL_NO_INIT",
            "spinrun: warning: rank 0: PtlMEAppend: me->hpu_initial_state_length: 65 B do not fit into the 64 B of me->hpu_memory"
        ]
    );
}

#[test]
fn the_last_one_of_a_rank_that_fails_is_told() {
    let run = spinrun("-n 3", &plain("ends"), "refused");
    run.ended(3, "spinrun:   rank 1's last refused call: PtlPut has returned PTL_ARG_INVALID at 2500.000 ns: target_id: rank 7 of 3\n");
    let run = spinrun("-n 3", &plain("ends"), "exit");
    assert!(!run.err.contains("refused"), "{}", run.err);
}

#[test]
fn a_deadlock_names_counters_that_count_nothing() {
    let run = spinrun("-n 2", &plain("ends"), "uncounted");
    run.ended(
        1,
        " to reach 2, which is 0 (it has not counted 2 messages that have ended on entries with this counter, which lack \
         PTL_ME_EVENT_CT_COMM)\n",
    );
    run.ended(
        1,
        " has this counter, but none of PTL_MD_EVENT_CT_SEND, PTL_MD_EVENT_CT_REPLY and PTL_MD_EVENT_CT_ACK)\n",
    );
}
