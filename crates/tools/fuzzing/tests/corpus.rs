// SPDX-License-Identifier: Apache-2.0
//! Runs every input of `fuzz/corpus` through its target: inputs kept by the fuzzers for their coverage, and inputs that
//! once caused an error.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_input_passes() {
    let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/corpus"));
    let targets: BTreeSet<String> = fuzzing::TARGETS.iter().map(|target| target.0.to_owned()).collect();
    assert_eq!(names(corpus), targets, "one folder a target");
    let mut failed = Vec::new();
    for (target, run) in fuzzing::TARGETS {
        let folder = corpus.join(target);
        let inputs = names(&folder);
        assert!(!inputs.is_empty(), "no inputs for {target}");
        for input in inputs {
            let bytes = fs::read(folder.join(&input)).unwrap();
            if catch_unwind(AssertUnwindSafe(|| run(&bytes))).is_err() {
                failed.push(format!("{target}/{input}"));
            }
        }
    }
    assert_eq!(failed, [""; 0], "inputs of fuzz/corpus");
}
