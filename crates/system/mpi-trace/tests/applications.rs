// SPDX-License-Identifier: Apache-2.0
//! Tests that schedules of real programs finish, with several algorithms and as several copies.

use std::path::Path;

use goal::Action;
use goal::loggops::{LogGops, run};
use mpi_trace::{Options, Wildcards, import};

fn simulate(name: &str, options: &Options) -> (u32, usize, u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments/mpi/traces").join(name);
    let import = import(&folder, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(import.warnings, [""; 0]);
    let schedule = import.schedule;
    let is_send = |op: &u32| matches!(schedule.action(*op), Action::Send { .. });
    let sends = (0..schedule.len() as u32).filter(is_send).count();
    let outcome = run(&schedule, &LogGops::default(), &goal::loggops::Options::default())
        .unwrap_or_else(|error| panic!("{name} {options:?}: {error}"));
    assert_eq!(outcome.unreceived, []);
    let computed: u64 = import.ranks.iter().map(|rank| rank.compute_ns).max().unwrap();
    assert!(outcome.end().as_ps() / 1000 > (computed as f64 * options.calc_scale) as u64);
    (schedule.ranks(), sends, import.ranks.iter().map(|rank| rank.messages).sum())
}

#[test]
fn lammps_melt() {
    let (ranks, sends, messages) = simulate("lammps-melt", &Options::default());
    assert_eq!((ranks, messages), (16, 20_736));
    assert!(sends as u64 > messages);
    let more = Options { extrapolate: 4, calc_scale: 0.5, ..Options::default() };
    let (ranks, fourfold, _) = simulate("lammps-melt", &more);
    assert_eq!(ranks, 64);
    assert!(fourfold > 4 * sends);
}

#[test]
fn hpcc_with_wildcards() {
    let (ranks, ..) = simulate("hpcc", &Options::default());
    assert_eq!(ranks, 16);
    let options = Options {
        wildcards: Wildcards::Keep,
        collectives: "allreduce=ring,alltoall=pairwise,bcast=double-tree,allgather=ring".parse().unwrap(),
        ..Options::default()
    };
    simulate("hpcc", &options);
}
