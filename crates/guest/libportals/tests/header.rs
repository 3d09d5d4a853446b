// SPDX-License-Identifier: Apache-2.0
//! Tests that `sdk/include/portals4.h` agrees with the `abi` crate: every structure, field and constant, in C and in
//! C++.

use abi::portals::*;
use std::fmt::Write;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// Collects the assertions for one structure: its size, and the offset of each field under its C name.
macro_rules! structure {
    ($out:ident, $c:literal, $rust:ty { $($field:literal = $($path:ident).+),+ $(,)? }) => {
        claim(&mut $out, format!("sizeof({})", $c), size_of::<$rust>() as u64);
        $(claim(&mut $out, format!("offsetof({}, {})", $c, $field), offset_of!($rust, $($path).+) as u64);)+
    };
}

fn claim(out: &mut String, expression: String, value: u64) {
    writeln!(out, "ASSERT(({expression}) == {value}u, \"{expression}\");").unwrap();
}

/// Returns one assertion per line, as calls of a macro `ASSERT(claim, text)`.
fn assertions() -> String {
    let mut out = String::new();
    for (value, name) in ReturnCode::ALL {
        claim(&mut out, (*name).into(), *value as u64);
    }
    macro_rules! codes { ($($code:ident),+) => { $(for (value, name) in $code::ALL {
        claim(&mut out, (*name).into(), *value as u64);
    })+ }; }
    codes!(EventKind, NiFail, List, SearchOp, AckReq, AtomicOp, Datatype, StatusRegister);
    for (value, name) in [ni::ALL, feature::ALL, pt::ALL, md::ALL, me::ALL].concat() {
        claim(&mut out, name.into(), value.into());
        // `PTL_LE_x` equals `PTL_ME_x` for options of list entries.
        if let (Some(rest), true) = (name.strip_prefix("PTL_ME_"), value & LE_OPTIONS_MASK != 0) {
            claim(&mut out, format!("PTL_LE_{rest}"), value.into());
        }
    }
    for (name, value) in [
        ("PTL_NI_INIT_OPTIONS_MASK", ni::MASK),
        ("PTL_PT_ALLOC_OPTIONS_MASK", pt::MASK),
        ("PTL_MD_OPTIONS_MASK", md::MASK),
        ("PTL_LE_APPEND_OPTIONS_MASK", LE_OPTIONS_MASK),
        ("PTL_ME_APPEND_OPTIONS_MASK", me::MASK),
        ("PTL_INVALID_HANDLE", INVALID_HANDLE),
        ("PTL_EQ_NONE", EQ_NONE),
        ("PTL_CT_NONE", CT_NONE),
        ("PTL_TIME_FOREVER", TIME_FOREVER),
        ("PTL_PT_ANY", PT_ANY),
        ("PTL_RANK_ANY", ID_ANY),
        ("PTL_NID_ANY", ID_ANY),
        ("PTL_PID_ANY", ID_ANY),
        ("PTL_UID_ANY", ID_ANY),
        ("PTL_PID_MAX", PID_MAX),
        ("PTL_STATUS_LAST", ReturnCode::ALL.len() as u32),
        ("PTL_SR_LAST", StatusRegister::ALL.len() as u32),
        ("PTL_OP_LAST", AtomicOp::ALL.len() as u32),
        ("PTL_DATATYPE_LAST", Datatype::ALL.len() as u32),
        ("PTL_IFACE_DEFAULT", 0),
    ] {
        claim(&mut out, name.into(), value.into());
    }
    claim(&mut out, "PTL_SIZE_MAX".into(), SIZE_MAX);

    structure!(out, "ptl_process_t", Process { "rank" = nid, "phys.nid" = nid, "phys.pid" = pid });
    structure!(out, "ptl_iovec_t", Iovec { "iov_base" = base, "iov_len" = len });
    structure!(out, "ptl_md_t", Md {
        "start" = start, "length" = length, "options" = options, "eq_handle" = eq_handle, "ct_handle" = ct_handle,
    });
    structure!(out, "ptl_le_t", Le {
        "start" = start, "length" = length, "ct_handle" = ct_handle, "uid" = uid, "options" = options,
    });
    structure!(out, "ptl_me_t", Me {
        "start" = le.start, "length" = le.length, "ct_handle" = le.ct_handle, "uid" = le.uid,
        "options" = le.options, "match_id" = match_id, "match_bits" = match_bits, "ignore_bits" = ignore_bits,
        "min_free" = min_free, "header_handler" = header_handler, "payload_handler" = payload_handler,
        "completion_handler" = completion_handler, "hpu_initial_state" = hpu_initial_state,
        "hpu_initial_state_length" = hpu_initial_state_length, "handler_host_mem_start" = handler_host_mem_start,
        "handler_host_mem_length" = handler_host_mem_length, "user_hdr_size" = user_hdr_size,
        "hpu_memory" = hpu_memory,
    });
    structure!(out, "ptl_ct_event_t", CtEvent { "success" = success, "failure" = failure });
    structure!(out, "ptl_event_t", Event {
        "start" = start, "user_ptr" = user_ptr, "hdr_data" = hdr_data, "match_bits" = match_bits,
        "rlength" = rlength, "mlength" = mlength, "remote_offset" = remote_offset, "initiator" = initiator,
        "uid" = uid, "pt_index" = pt_index, "type" = kind, "ptl_list" = ptl_list, "ni_fail_type" = ni_fail_type,
        "atomic_operation" = atomic_operation, "atomic_type" = atomic_type,
    });
    structure!(out, "ptl_ni_limits_t", NiLimits {
        "max_entries" = max_entries, "max_unexpected_headers" = max_unexpected_headers, "max_mds" = max_mds,
        "max_cts" = max_cts, "max_eqs" = max_eqs, "max_pt_index" = max_pt_index, "max_iovecs" = max_iovecs,
        "max_list_size" = max_list_size, "max_triggered_ops" = max_triggered_ops, "max_msg_size" = max_msg_size,
        "max_atomic_size" = max_atomic_size, "max_fetch_atomic_size" = max_fetch_atomic_size,
        "max_waw_ordered_size" = max_waw_ordered_size, "max_war_ordered_size" = max_war_ordered_size,
        "max_volatile_size" = max_volatile_size, "features" = features, "max_user_hdr_size" = max_user_hdr_size,
        "max_payload_size" = max_payload_size, "max_handler_mem" = max_handler_mem,
        "max_initial_state" = max_initial_state, "min_fragmentation_limit" = min_fragmentation_limit,
        "max_cycles_per_byte" = max_cycles_per_byte,
    });
    out
}

fn compile(language: &str, options: &[&str], assert: &str) {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("assertions");
    let text = format!("#include <portals4.h>\n#include <stddef.h>\n{assert}\n{}", assertions());
    std::fs::write(&file, text).unwrap();
    let status = Command::new("cc")
        .args(["-x", language, "-pedantic", "-Wall", "-Werror", "-fsyntax-only"])
        .args(options)
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../sdk/include"))
        .arg(file)
        .status()
        .expect("a C compiler is there");
    assert!(status.success());
}

#[test]
fn the_header_agrees_in_c() {
    // C99 has no static assertion: an array of negative size instead.
    let assert = "#define JOIN(a, b) a##b\n#define NAME(line) JOIN(assertion_, line)\n\
                  #define ASSERT(claim, text) extern char NAME(__LINE__)[(claim) ? 1 : -1]";
    compile("c", &["-std=c99"], assert);
}

#[test]
fn the_header_agrees_in_cpp() {
    compile("c++", &["-std=c++17", "-Wno-invalid-offsetof"], "#define ASSERT(claim, text) static_assert(claim, text)");
}
