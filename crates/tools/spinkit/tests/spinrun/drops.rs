// SPDX-License-Identifier: Apache-2.0
//! Undelivered messages: their reports to the program, to the user and in the JSON report.

use serde_json::{Value, json};

use crate::harness::{Run, command, plain, program, reported, spinrun};

const NICS: [&str; 3] = ["rdma", "portals4", "spin"];

/// Returns the time of the first drop, and the rest of the report's entry.
fn split(mut drops: Value) -> (u64, Value) {
    let at = drops["first"].as_object_mut().unwrap().remove("at_ps").unwrap();
    (at.as_u64().unwrap(), drops)
}

/// Returns the sentence about `drops.c`, whose first message was dropped at `at_ps`.
fn sentence(at_ps: u64) -> String {
    format!(
        "no entry matched: 3 messages lost 3 packets with 24 bytes; the first was a put of 8 bytes from rank 2 for portal \
         table entry 4 of rank 1, match bits 0x10, at {}.{:03} ns (append the entry before messages come, check match bits \
         and PTL_ME_USE_ONCE, or append to the overflow list)",
        at_ps / 1000,
        at_ps % 1000
    )
}

#[test]
fn lost_messages_are_reported_once_a_run() {
    for nic in NICS {
        let (run, report) = reported(&format!("-n 3 --nic {nic}"), &plain("drops"), "well");
        let (at, drops) = split(report["drops"]["no_entry"].clone());
        let first = json!({"operation": "put", "source": 2, "target": 1, "portal_table_entry": 4, "match_bits": 16,
                           "length": 8});
        assert_eq!(drops, json!({"messages": 3, "packets": 3, "bytes": 24, "first": first}), "{nic}");
        assert_eq!((report["drops"].as_object().unwrap().len(), run.status), (1, 0), "{nic}");
        assert_eq!(report["cards"][1]["drops"], report["drops"], "{nic}");
        assert_eq!((&report["cards"][0]["drops"], &report["cards"][2]["drops"]), (&json!({}), &json!({})), "{nic}");
        assert_eq!(run.err, format!("spinrun: warning: {}\n", sentence(at)), "{nic}");
        assert!(at > 0, "{nic}");
    }
}

#[test]
fn a_loss_that_the_initiator_permits_is_counted_without_a_warning() {
    for nic in NICS {
        let (run, report) = reported(&format!("-n 3 --nic {nic} --fail-on-drop"), &plain("drops"), "permitted");
        let (_, drops) = split(report["drops"]["unreliable"].clone());
        assert_eq!((&drops["messages"], &drops["bytes"]), (&json!(3), &json!(24)), "{nic}");
        assert_eq!(report["drops"].as_object().unwrap().len(), 1, "{nic}");
        assert_eq!((run.status, run.err.as_str()), (0, ""), "{nic}");
    }
}

#[test]
fn a_deadlock_report_names_lost_messages() {
    let (run, report) = reported("-n 3", &plain("drops"), "deadlock");
    let (at, _) = split(report["drops"]["no_entry"].clone());
    run.ended(1, "deadlock at ");
    let last = run.err.lines().last().unwrap();
    assert_eq!(last, format!("spinrun:   {}", sentence(at)));
    assert_eq!(run.err.matches("no entry matched").count(), 1, "{}", run.err);
    assert_eq!(report["end"]["how"], "deadlock");
}

#[test]
fn drops_are_told_as_they_happen() {
    let (run, report) = reported("-n 3 -v", &plain("drops"), "deadlock");
    let (at, _) = split(report["drops"]["no_entry"].clone());
    let told: Vec<_> = run.err.lines().filter(|line| line.starts_with("spinrun: dropped: ")).collect();
    assert_eq!(told.len() as u64, report["drops"]["no_entry"]["packets"].as_u64().unwrap(), "{}", run.err);
    // The first is the one of the report.
    let first = sentence(at);
    let first = first.split_once("the first was ").unwrap().1.split(" (").next().unwrap();
    assert!(told[0].ends_with(&format!(" of {first}: no entry matched")), "{} {first}", told[0]);
}

#[test]
fn runs_can_fail_because_of_lost_messages() {
    let run = spinrun("-n 3 --fail-on-drop", &plain("drops"), "well");
    run.ended(1, "drops: the run fails because messages were dropped (--fail-on-drop)\n");
    // Messages dropped on purpose by a handler are counted, without a warning.
    let (run, report) = reported("-n 2 --fail-on-drop --fail-on-handler-error", &program("handlers"), "drop");
    run.ok();
    let drops = &report["drops"]["handler_dropped"];
    assert_eq!([&drops["messages"], &drops["packets"], &drops["bytes"]], [1, 3, 8292], "{drops}");
    let (run, report) = reported("-n 2 --fail-on-drop", &program("handlers"), "drop_packets");
    run.ok();
    let drops = &report["drops"]["handler_dropped"];
    assert_eq!([&drops["messages"], &drops["packets"], &drops["bytes"]], [1, 1, 4096], "{drops}");
}

#[test]
fn runs_can_fail_because_of_failed_handlers() {
    let run = |options: &str| -> Run { spinrun(&format!("-n 2 {options}"), &program("errors"), "payload fail") };
    assert_eq!(run("--fail-on-drop").status, 0, "it is the other option's");
    let run = run("--fail-on-handler-error");
    run.ended(1, "errors: the run fails because handlers failed: 1 (--fail-on-handler-error)\n");
}

/// A failed handler is easily overlooked where nobody reads the output.
#[test]
fn failed_handlers_fail_runs_of_continuous_integration() {
    let with = |variables: &[(&str, &str)]| {
        let mut command = command("-n 2", &program("errors"), "payload fail");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    const VARIABLE: &str = "SPIN_FAIL_ON_HANDLER_ERROR";
    for (variables, cause) in [
        (&[("CI", "true")] as &[_], "(CI=true; SPIN_FAIL_ON_HANDLER_ERROR=0 turns this off)\n"),
        (&[(VARIABLE, "1"), ("CI", "")], "(SPIN_FAIL_ON_HANDLER_ERROR)\n"),
    ] {
        let (status, err) = with(variables);
        assert!(status == Some(1) && err.contains("handlers failed: 1 ") && err.ends_with(cause), "{status:?} {err}");
    }
    for variables in [&[("CI", "true"), (VARIABLE, "0")] as &[_], &[("CI", "1")], &[(VARIABLE, ""), ("CI", "")]] {
        assert_eq!(with(variables).0, Some(0), "{variables:?}");
    }
}

/// The name of each reason: the cases of `portals.c` cause most of them.
#[test]
fn reasons_have_names() {
    let (run, report) = reported("-n 2", &plain("portals"), "failures");
    assert_eq!(run.status, 0, "{}", run.err);
    let names: Vec<_> = report["drops"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        names,
        [
            "no_entry",
            "no_portal_table_entry",
            "operation_violation",
            "permission_violation",
            "portal_table_entry_disabled"
        ]
    );
    for drops in report["drops"].as_object().unwrap().values() {
        assert_eq!(drops["messages"], 2, "{drops}");
    }
}
