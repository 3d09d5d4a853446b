// SPDX-License-Identifier: Apache-2.0
//! Tests that `libportals.so` exports exactly the functions that the headers declare for the host.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn exported() -> BTreeSet<String> {
    let library = std::env::current_exe().unwrap().with_file_name("libportals.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().expect("binutils are there");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_owned).collect()
}

#[test]
fn exports_are_the_api() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../sdk/include/portals4.h");
    let header = std::fs::read_to_string(header).unwrap();
    let declared: BTreeSet<String> = header
        .lines()
        .map(|line| line.strip_prefix("PTL_CHECKED ").unwrap_or(line))
        .filter_map(|line| line.strip_prefix("int Ptl").or(line.strip_prefix("void Ptl")))
        .filter_map(|rest| Some(format!("Ptl{}", rest.split_once('(')?.0)))
        .collect();
    assert_eq!(declared.len(), 55, "functions of portals4.h");
    let exported = exported();
    assert_eq!(declared.difference(&exported).collect::<Vec<_>>(), Vec::<&String>::new());
    let foreign: Vec<_> =
        exported.iter().filter(|name| !name.starts_with("Ptl") && !name.starts_with("spin_")).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}
