//! The same inputs give the same bytes: standard output, report and timeline.

use std::path::Path;

use crate::harness::{ping_pong, plain, scratch, spinrun};

fn twice(name: &str, options: &str, program: &Path, arguments: &str) {
    let run = |number: u32| {
        let (json, trace) =
            (scratch().join(format!("{name}.{number}.json")), scratch().join(format!("{name}.{number}.trace")));
        let options = format!("{options} --json {} --trace {}", json.display(), trace.display());
        let out = spinrun(&options, program, arguments).ok();
        (out, std::fs::read(json).unwrap(), std::fs::read(trace).unwrap())
    };
    let (first, second) = (run(1), run(2));
    assert!(first.2.len() > 1000, "{name}: an empty trace");
    assert_eq!(first.0, second.0, "{name}");
    assert!(first.1 == second.1, "{name}: reports differ");
    assert!(first.2 == second.2, "{name}: traces differ");
}

#[test]
fn ping_pong_modes() {
    for (mode, nic) in [("rdma", "rdma"), ("triggered", "portals4"), ("store", "spin"), ("stream", "spin")] {
        twice(mode, &format!("-n 2 --nic {nic}"), &ping_pong(), &format!("--mode {mode} --sizes 8,5000,65536"));
    }
}

#[test]
fn all_to_all() {
    for nic in ["rdma", "portals4", "spin"] {
        twice(&format!("all-{nic}"), &format!("-n 16 --nic {nic}"), &plain("alltoall"), "5000");
    }
}
