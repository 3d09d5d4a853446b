// SPDX-License-Identifier: Apache-2.0
//! Defects of the whole unit, each of which a lockstep run must find: `rtl/tests/lockstep/defects.toml`. One simulator
//! contains all of them and an additional input selects one, so that they need only one build.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pspin_rtl::lockstep::comparison::LockstepError;
use serde::Deserialize;

use super::home;
use super::small_machine::{RUNS, Tiny};

/// Input that selects a defect, and its placeholder in the texts.
const INPUT: &str = "defect_i";
const DEFECT: &str = "DEFECT";
/// File of the harness that gets that input.
const HARNESS: &str = "tests/harness/pspin_harness.sv";
const BEFORE: &str = "  input  logic         rst_ni,\n";

#[derive(Deserialize)]
struct List {
    defect: Vec<Defect>,
}

/// Defect, and the runs that find it.
#[derive(Deserialize)]
struct Defect {
    name: String,
    text: String,
    file: String,
    old: String,
    new: String,
    run: String,
}

/// Copies a folder recursively.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Replaces a text of a file, which must occur once.
fn replace(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert_eq!(text.matches(old).count(), 1, "{} has this text not once: {old}", file.display());
    fs::write(file, text.replace(old, new)).unwrap();
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn each_defect_is_found() {
    let list = fs::read_to_string(home().join("rtl/tests/lockstep/defects.toml")).unwrap();
    let List { defect: defects } = toml::from_str(&list).unwrap();
    let room = tempfile::tempdir().unwrap();
    let rtl = room.path().join("rtl");
    for folder in ["core", "src", "observe", "tests/harness"] {
        copy(&home().join("rtl").join(folder), &rtl.join(folder));
    }
    fs::create_dir_all(room.path().join("out/rtl")).unwrap();
    std::os::unix::fs::symlink(home().join("out/rtl/venv"), room.path().join("out/rtl/venv")).unwrap();
    replace(&rtl.join(HARNESS), BEFORE, &format!("{BEFORE}  input  logic [7:0]   {INPUT},\n"));
    for (number, Defect { file, old, new, .. }) in (1..).zip(&defects) {
        assert!(new.contains(DEFECT), "{new} has no {DEFECT}");
        let is_on = format!("(pspin_harness.{INPUT} == 8'd{number})");
        replace(&rtl.join(file), old, &new.replace(DEFECT, &is_on));
    }
    let names: BTreeSet<&str> = defects.iter().map(|defect| defect.name.as_str()).collect();
    assert_eq!(names.len(), defects.len(), "each defect has a name of its own");
    let mut tiny = Tiny::of(room.path());
    let run = |tiny: &Tiny, wanted: &str| {
        let run = RUNS.iter().find(|(name, _)| *name == wanted);
        run.unwrap_or_else(|| panic!("there is no run {wanted}")).1(tiny)
    };
    tiny.inputs = vec![(INPUT, 0)];
    let runs: BTreeSet<&str> = defects.iter().map(|defect| defect.run.as_str()).collect();
    for name in runs {
        run(&tiny, name).unwrap_or_else(|error| panic!("{name} without a defect: {error}"));
    }
    let mut missed = Vec::new();
    for (number, Defect { name, text, run: wanted, .. }) in (1..).zip(&defects) {
        tiny.inputs = vec![(INPUT, number)];
        match run(&tiny, wanted) {
            Err(LockstepError::Rtl(error)) => panic!("{name}: {error}"),
            Err(error) => println!("{name}: {}", error.to_string().lines().next().unwrap_or_default()),
            Ok(_) => missed.push(format!("{name}: {text}")),
        }
    }
    assert!(missed.is_empty(), "{} defects are not found:\n{}", missed.len(), missed.join("\n"));
}
