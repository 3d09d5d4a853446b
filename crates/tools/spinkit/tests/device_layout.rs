// SPDX-License-Identifier: Apache-2.0
//! `crates/base/abi` and `spin.h` define the same layouts: assertions made from the former are compiled against the latter,
//! for the host and for every HPU kind.

use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use abi::device::{
    AssertCmd, AtomicCmd, CasCmd, DmaAtomicCmd, DmaCmd, FetchAddCmd, FetchAtomicCmd, HeaderArgs, PayloadArgs, PrintCmd,
    PutCmd, cmd, err, ret,
};

/// C assertions that the size and fields of a structure (`"C name" = rust name`) equal those of a Rust type.
macro_rules! structure {
    ($text:ident, $rust:ty, $c:literal, { $($field:literal = $name:ident),+ $(,)? }) => {
        writeln!($text, "_Static_assert(sizeof({}) == {}, \"{}\");", $c, size_of::<$rust>(), $c).unwrap();
        $(
            let (field, offset) = ($field, offset_of!($rust, $name));
            writeln!($text, "_Static_assert(offsetof({}, {field}) == {offset}, \"{} {field}\");", $c, $c).unwrap();
            let size = { fn size<T, F>(_: impl Fn(&T) -> &F) -> usize { size_of::<F>() } size(|s: &$rust| &s.$name) };
            writeln!($text, "_Static_assert(sizeof((({} *)0)->{field}) == {size}, \"{} {field}\");", $c, $c).unwrap();
        )+
    };
}

macro_rules! numbers {
    ($text:ident, $module:ident, $prefix:expr, $($name:ident),+ $(,)?) => { $(
        let name = format!("{}{}", $prefix, stringify!($name));
        writeln!($text, "_Static_assert((int){name} == {}, \"{name}\");", $module::$name).unwrap();
    )+ };
}

fn assertions() -> String {
    let mut text =
        String::from("struct my_hdr { int a; };\n#define PTL_USER_HEADER struct my_hdr\n#include <spin.h>\n");
    let user = size_of::<HeaderArgs>();
    writeln!(text, "_Static_assert(offsetof(ptl_header_t, user_hdr) == {user}, \"user_hdr\");").unwrap();
    for prefix in ["PTL_HANDLER_", ""] {
        numbers!(
            text,
            ret,
            prefix,
            DROP,
            DROP_PENDING,
            PROCESS_DATA,
            PROCESS_DATA_PENDING,
            PROCEED,
            PROCEED_PENDING,
            SUCCESS,
            SUCCESS_PENDING,
            FAIL,
            SEGV
        );
    }
    text += &header_fields().replace("sizeof(ptl_header_t)", "offsetof(ptl_header_t, user_hdr)");
    writeln!(text, "_Static_assert(PTL_HANDLER_IOVEC == {}u, \"iovec\");", abi::portals::ME_HANDLER_IOVEC).unwrap();
    numbers!(text, err, "SPIN_ERR_", INVALID, FAILED);
    text += "#ifdef __SPIN_DEVICE__\n";
    numbers!(
        text,
        cmd,
        "SPIN_CMD_",
        PUT_FROM_DEVICE,
        PUT_FROM_HOST,
        DMA_TO_HOST,
        DMA_FROM_HOST,
        DMA_TEST,
        DMA_WAIT,
        YIELD,
        CT_INC,
        CT_GET,
        CT_SET,
        MY_HPU,
        NUM_HPUS,
        ABORT,
        GET_TO_HOST,
        GET_TO_DEVICE,
        ATOMIC_FROM_DEVICE,
        ATOMIC_FROM_HOST,
        DMA_CAS,
        DMA_FETCH_ADD,
        CAS,
        FETCH_ADD,
        PRINT,
        ASSERT,
        FETCH_ATOMIC
    );
    structure!(text, PayloadArgs, "ptl_payload_t", { "length" = length, "offset" = offset, "base" = base });
    structure!(text, PutCmd, "struct spin_put_cmd", {
        "local" = local, "len" = len, "match_bits" = match_bits, "remote_offset" = remote_offset,
        "hdr_data" = hdr_data, "target_id" = target_id, "user_ptr" = user_ptr, "ct" = ct, "ack_req" = ack_req,
    });
    structure!(text, DmaCmd, "struct spin_dma_cmd", {
        "offset" = offset, "local" = local, "len" = len, "options" = options, "handle" = handle,
    });
    structure!(text, AtomicCmd, "struct spin_atomic_cmd", {
        "put" = put, "operation" = operation, "datatype" = datatype,
    });
    structure!(text, FetchAtomicCmd, "struct spin_fetch_atomic_cmd", {
        "atomic" = atomic, "operand" = operand, "result" = result,
    });
    structure!(text, DmaAtomicCmd, "struct spin_dma_atomic_cmd", {
        "offset" = offset, "value" = value, "swap" = swap, "result" = result, "datatype" = datatype,
        "options" = options, "handle" = handle,
    });
    structure!(text, CasCmd, "struct spin_cas_cmd", { "compare" = compare, "swap" = swap, "address" = address });
    structure!(text, FetchAddCmd, "struct spin_fetch_add_cmd", {
        "increment" = increment, "before" = before, "address" = address,
    });
    structure!(text, PrintCmd, "struct spin_print_cmd", { "format" = format, "arguments" = arguments });
    structure!(text, AssertCmd, "struct spin_assert_cmd", {
        "expression" = expression, "file" = file, "function" = function, "line" = line,
    });
    // With a handler, the file must compile for the card.
    text += "#endif\n__handler int h(const ptl_header_t h, void *state) { return PROCEED; }\n";
    text
}

fn header_fields() -> String {
    let mut text = String::new();
    structure!(text, HeaderArgs, "ptl_header_t", {
        "type" = kind, "length" = length, "target_id" = target_id, "source_id" = source_id,
        "match_bits" = match_bits, "offset" = offset, "hdr_data" = hdr_data,
    });
    text
}

fn compile(text: &str) -> (bool, String) {
    let room = tempfile::tempdir().unwrap();
    std::fs::write(room.path().join("layout.c"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_spincc"))
        .args(["-c", "layout.c"])
        .current_dir(room.path())
        .env("SPINKIT_HOME", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.."))
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn headers_agree_with_abi() {
    let text = assertions();
    // Names: 10 return codes twice, 2 errors, 24 commands, 1 option; user_hdr; and a size, then two for each field.
    let fields = [7, 3, 9, 5, 3, 3, 7, 3, 3, 2, 4].map(|fields| 1 + 2 * fields);
    let expected = 2 * 10 + 2 + 24 + 1 + 1 + fields.iter().sum::<usize>();
    assert_eq!(text.matches("_Static_assert").count(), expected);
    let (compiled, messages) = compile(&text);
    assert!(compiled, "{messages}");
    // The assertions reach both compilers.
    for (from, to) in [("SPIN_CMD_ABORT == 13", "SPIN_CMD_ABORT == 14"), ("int)SEGV == 9", "int)SEGV == 8")] {
        assert!(text.contains(from));
        assert!(!compile(&text.replace(from, to)).0, "{to}");
    }
}
