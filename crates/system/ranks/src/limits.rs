// SPDX-License-Identifier: Apache-2.0
//! Checks system limits before a job starts.

use super::job_spec::{JobError, JobSpec};
use super::parked_descriptors;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use std::fs;
use std::path::{Path, PathBuf};

/// Descriptors that the simulator needs in addition to its present ones and those per rank: its own files, and those of
/// a starting rank.
const OTHERS: u64 = 64;

/// Raises the limit of open descriptors as far as permitted, and checks that it and the limits of processes suffice for
/// the job. Returns the number of descriptors that the job does not need.
///
/// # Errors
/// [`JobError::Limit`].
pub fn check(spec: &JobSpec) -> Result<usize, JobError> {
    let limit = getrlimit(Resource::Nofile);
    // Most jobs work with the unchanged limit, too.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let spare = descriptors(spec, getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))?;
    // Ranks in this process need no others.
    let ranks = if spec.embedded.is_some() { 0 } else { spec.processes() as u64 };
    for (limit, name, remedy) in limits_of_processes() {
        if ranks > limit {
            let needs = format!("{ranks} ranks are {ranks} processes");
            return Err(JobError::Limit { needs, name, limit, remedy });
        }
    }
    Ok(usize::try_from(spare).unwrap_or(usize::MAX))
}

/// Returns the number of descriptors that a job leaves of `limit`.
fn descriptors(spec: &JobSpec, limit: u64) -> Result<u64, JobError> {
    let of_process = u64::from(!spec.speaks_no_pmi) + if spec.tag_output { 2 } else { 0 };
    let of_rank = if spec.embedded.is_some() { 0 } else { of_process };
    let needed = spec.processes() as u64 * of_rank + parked_descriptors::first() as u64 + OTHERS;
    if of_rank == 0 || needed <= limit {
        return Ok(limit.saturating_sub(needed));
    }
    let what = match (spec.speaks_no_pmi, spec.tag_output) {
        (false, false) => "one each for PMI",
        (false, true) => "three each for PMI and tagged output",
        (true, _) => "two each for tagged output",
    };
    let needs = format!("{} ranks need {needed} open files ({what})", spec.processes());
    let remedy = format!("raise it, as root by `ulimit -n {needed}`");
    Err(JobError::Limit { needs, name: "open files (ulimit -n)", limit, remedy })
}

/// Returns the limits of the number of processes, with their names and how to raise them.
fn limits_of_processes() -> Vec<(u64, &'static str, String)> {
    let file = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let of_user = getrlimit(Resource::Nproc).current.filter(|_| !geteuid().is_root());
    let setting = |name: &'static str| {
        let limit = file(&Path::new("/proc/sys").join(name.replace('.', "/")))?;
        Some((limit, name, format!("raise it, as root by `sysctl {name}=NUMBER`")))
    };
    let group = group_limit_file();
    let of_group = group.and_then(|path| Some((file(&path)?, "pids.max", format!("raise it in {}", path.display()))));
    let user = of_user.map(|limit| (limit, "processes of a user (ulimit -u)", "raise it by `ulimit -u`".into()));
    [user, setting("kernel.pid_max"), setting("kernel.threads-max"), of_group].into_iter().flatten().collect()
}

/// Returns the file with the process limit of this process's control group (cgroup v2).
fn group_limit_file() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new("/sys/fs/cgroup").join(group).join("pids.max"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(ranks: usize, speaks_no_pmi: bool, tag_output: bool, limit: u64) -> Option<String> {
        let spec = JobSpec { ranks, speaks_no_pmi, tag_output, ..JobSpec::default() };
        descriptors(&spec, limit).err().map(|error| error.to_string())
    }

    #[test]
    fn descriptors_are_checked_against_the_limit() {
        let others = parked_descriptors::first() as u64 + OTHERS;
        assert_eq!(needs(30_000, true, false, 20_000), None, "none a rank");
        assert_eq!(needs(1000, false, false, 1000 + others), None);
        let error = needs(1000, false, false, 999 + others).unwrap();
        let needed = 1000 + others;
        assert!(error.contains(&format!("1000 ranks need {needed} open files (one each for PMI)")), "{error}");
        assert!(error.contains(&format!("open files (ulimit -n) is {}", needed - 1)), "{error}");
        assert!(error.contains(&format!("`ulimit -n {needed}`")), "{error}");
        assert!(needs(1000, true, true, 2000).unwrap().contains("two each for tagged output"));
        assert!(needs(1000, false, true, 3000).unwrap().contains("three each for PMI and tagged output"));
    }

    #[test]
    fn process_limits_are_found() {
        let limits = limits_of_processes();
        for name in ["kernel.pid_max", "kernel.threads-max"] {
            let (limit, ..) = limits.iter().find(|(_, other, _)| *other == name).expect(name);
            assert!(*limit > 300, "{name} is {limit}");
        }
    }
}
