// SPDX-License-Identifier: Apache-2.0
//! Tests that `hwsched.h` and the tables of the integration guide agree with the lists of the PsPIN unit.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use abi::pspin::{LISTS, c_assertions, camel, control, driver, markdown, nic, systemverilog};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn compiles(text: &str) -> (bool, String) {
    let mut compiler = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-x", "c", "-I"])
        .arg(root().join("sdk/pspin/rt/runtime/include"))
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    compiler.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = compiler.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn hwsched_h_has_the_registers() {
    let text = c_assertions();
    assert_eq!(text.matches("_Static_assert").count(), 20);
    let (compiled, messages) = compiles(&text);
    assert!(compiled, "{messages}");
    for (from, to) in [("CMD_ISSUE ==", "CMD_WAIT =="), ("CMD_INFO_NIC == 2u", "CMD_INFO_NIC == 3u")] {
        assert!(text.contains(from));
        assert!(!compiles(&text.replace(from, to)).0, "{to}");
    }
}

#[test]
fn the_integration_guide_has_the_tables() {
    let guide = fs::read_to_string(root().join("docs/pspin-integration.md")).unwrap();
    let (begin, end) = ("<!-- tables of crates/base/abi/src/pspin.rs -->\n\n", "<!-- end of tables -->");
    let (_, rest) = guide.split_once(begin).unwrap();
    let (tables, _) = rest.split_once(end).unwrap();
    if tables != markdown() {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pspin-integration-tables.md");
        fs::write(&path, markdown()).unwrap();
        panic!("docs/pspin-integration.md is out of date; put {} between its comments", path.display());
    }
}

#[test]
fn names_and_registers_are_there_once() {
    let mut names: Vec<String> =
        LISTS.iter().flat_map(|list| list.rows.iter().map(|row| list.prefix.to_owned() + &camel(row.name))).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    let package = systemverilog();
    assert!(names.iter().all(|name| package.matches(&format!(" {name} = ")).count() == 1));
    assert!(package.contains("  localparam logic [31:0] ControlEnable = 32'h0040;"));
    // Registers are words, in ascending order, and fit into the 16 address bits of the control port.
    for list in [driver::LIST, control::LIST, nic::LIST] {
        assert!(list.rows.iter().all(|row| row.value % 4 == 0), "{}", list.title);
        assert!(list.rows.is_sorted_by(|a, b| a.value < b.value), "{}", list.title);
    }
    // NIC registers are behind those of the unit.
    assert!(control::LIST.rows.iter().all(|row| row.value < nic::ID));
    assert!(nic::LIST.rows.iter().all(|row| (nic::ID..1 << 16).contains(&row.value)));
}
