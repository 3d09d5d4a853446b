// SPDX-License-Identifier: Apache-2.0
//! Jobs file (`--jobs`): independent jobs on one simulated cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use abi::portals::ID_ANY;
use command::failures::parse_death;
use command::units::parse_time;
use ranks::Job;
use serde::Deserialize;
use sim::Time;
use thiserror::Error;
use world::Tenant;

use super::plan::{Application, JobDeath, MAX_PROGRAMS, Plan};

/// Largest weight of a job.
const MAX_WEIGHT: u32 = 1000;

/// Reason why a jobs file is unusable.
#[derive(Debug, Error)]
#[error("--jobs: {}: {why}", path.display())]
pub struct JobsError {
    path: PathBuf,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    job: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Option<String>,
    program: Option<Vec<String>>,
    ranks: Option<u32>,
    env: Option<BTreeMap<String, String>>,
    folder: Option<PathBuf>,
    programs: Option<Vec<Part>>,
    user: Option<u32>,
    start: Option<String>,
    nodes: Option<Vec<usize>>,
    weight: Option<u32>,
    priority: Option<u8>,
    fail: Option<Vec<String>>,
    goal: Option<PathBuf>,
}

/// Program of some ranks of a job.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    program: Vec<String>,
    ranks: Option<u32>,
    env: Option<BTreeMap<String, String>>,
    folder: Option<PathBuf>,
}

/// Reads a jobs file. Names of files in it are relative to its folder.
///
/// # Errors
/// [`JobsError`] when it cannot be read, or describes no jobs that can run together.
pub fn read(path: &Path) -> Result<Plan, JobsError> {
    let fails = |why: String| JobsError { path: path.to_owned(), why };
    let text = fs::read_to_string(path).map_err(|error| fails(error.to_string()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    plan(&text, folder).map_err(fails)
}

fn plan(text: &str, folder: &Path) -> Result<Plan, String> {
    let File { job: entries } = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    if entries.is_empty() {
        return Err("it has no [[job]]".into());
    }
    let mut plan = Plan { applications: Vec::new(), jobs: Vec::new(), deaths: Vec::new() };
    let mut chosen = Vec::new();
    for (number, entry) in entries.into_iter().enumerate() {
        let name = entry.name.clone().unwrap_or_else(|| format!("job{number}"));
        if name.is_empty() || name.contains(char::is_control) {
            return Err(format!("job {number}: its name is empty or has control characters"));
        }
        if plan.jobs.iter().any(|job| job.name == name) {
            return Err(format!("two jobs are named {name}: change one of the names"));
        }
        let in_job = |why: String| format!("job {name}: {why}");
        chosen.push(entry.nodes.clone());
        let tenant = tenant(&entry, name.clone()).map_err(in_job)?;
        let deaths = deaths(entry.fail.as_deref().unwrap_or_default(), number).map_err(in_job)?;
        plan.applications.extend(applications(entry, number, folder).map_err(in_job)?);
        let ranks = plan.ranks_of_job(number);
        if let Some(JobDeath { rank, .. }) = deaths.iter().find(|death| death.rank >= ranks) {
            return Err(in_job(format!("fail: there is no rank {rank}; the last is {}", ranks - 1)));
        }
        plan.deaths.extend(deaths);
        plan.jobs.push(tenant);
    }
    place(&mut plan, &chosen)?;
    Ok(plan)
}

fn tenant(entry: &Entry, name: String) -> Result<Tenant, String> {
    let user = entry.user.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    if user == ID_ANY {
        return Err(format!("user = {user} is PTL_UID_ANY: choose a smaller number"));
    }
    let weight = entry.weight.unwrap_or(1);
    if !(1..=MAX_WEIGHT).contains(&weight) {
        return Err(format!("weight = {weight}: a weight is 1 to {MAX_WEIGHT}"));
    }
    let start = match &entry.start {
        None => Time::ZERO,
        Some(text) => parse_time(text).map_err(|why| format!("start = \"{text}\": {why}"))?,
    };
    if start > Time::LIMIT {
        return Err("start: it is beyond the limit of simulated time".into());
    }
    Ok(Tenant { name, user, start, weight, priority: entry.priority.unwrap_or(0) })
}

/// Returns the deaths of processes of a job.
fn deaths(texts: &[String], job: usize) -> Result<Vec<JobDeath>, String> {
    let death = |text: &String| {
        let (rank, at) = parse_death(text).map_err(|why| format!("fail = [\"{text}\"]: {why}"))?;
        Ok(JobDeath { job, rank, at })
    };
    texts.iter().map(death).collect()
}

/// Returns the programs of a job.
fn applications(entry: Entry, job: usize, folder: &Path) -> Result<Vec<Application>, String> {
    if entry.goal.is_some() {
        return Err(
            "goal: schedules as jobs are not supported: run the schedule alone with `spinkit goal run`, or give \
                    the job a program that sends the same messages"
                .into(),
        );
    }
    let parts = match (entry.program, entry.programs) {
        (Some(program), None) => {
            vec![Part { program, ranks: entry.ranks, env: entry.env, folder: entry.folder }]
        }
        (None, Some(parts)) if entry.ranks.is_none() && entry.env.is_none() && entry.folder.is_none() => parts,
        (None, Some(_)) => return Err("ranks, env and folder belong to each entry of programs".into()),
        (Some(_), Some(_)) => return Err("it has both program and programs: give one of them".into()),
        (None, None) => return Err("it has no program: program = [\"./prog\", \"argument\"]".into()),
    };
    if parts.is_empty() || parts.len() > MAX_PROGRAMS {
        return Err(format!("programs has {} entries: a job has 1 to {MAX_PROGRAMS}", parts.len()));
    }
    parts.into_iter().map(|part| application(part, job, folder)).collect()
}

fn application(part: Part, job: usize, folder: &Path) -> Result<Application, String> {
    let ranks = part.ranks.unwrap_or(1);
    if !(1..=Job::MAX_RANKS as u32).contains(&ranks) {
        return Err(format!("ranks = {ranks}: a program has 1 to {} ranks", Job::MAX_RANKS));
    }
    let mut words: Vec<OsString> = part.program.into_iter().map(OsString::from).collect();
    let Some(program) = words.first_mut() else { return Err("program is empty: name the program to run".into()) };
    if program.to_string_lossy().contains('/') && Path::new(program).is_relative() && folder != Path::new("") {
        *program = folder.join(&*program).into_os_string();
    }
    let env = part.env.unwrap_or_default().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let folder = part.folder.map(|part| folder.join(part));
    Ok(Application { words, ranks, env, folder, job, nodes: Vec::new() })
}

/// Chooses the nodes of the programs: those that the jobs name, and for other jobs the first free ones.
fn place(plan: &mut Plan, chosen: &[Option<Vec<usize>>]) -> Result<(), String> {
    let mut named: BTreeSet<usize> = BTreeSet::new();
    for (job, nodes) in chosen.iter().enumerate() {
        let name = &plan.jobs[job].name;
        let of_job = plan.applications.iter().filter(|application| application.job == job);
        let ranks: usize = of_job.map(|application| application.ranks as usize).sum();
        let Some(nodes) = nodes else { continue };
        if nodes.len() != ranks {
            let count = nodes.len();
            return Err(format!("job {name}: nodes has {count} entries for {ranks} ranks: one node for each rank"));
        }
        if let Some(node) = nodes.iter().find(|node| **node >= Job::MAX_RANKS) {
            return Err(format!("job {name}: node {node}: the last node is {}", Job::MAX_RANKS - 1));
        }
        named.extend(nodes.iter().copied());
    }
    let mut free = (0..).filter(|node| !named.contains(node));
    let mut given = chosen.iter().map(|nodes| nodes.clone().map(Vec::into_iter)).collect::<Vec<_>>();
    for application in &mut plan.applications {
        let ranks = application.ranks as usize;
        application.nodes = match &mut given[application.job] {
            Some(nodes) => nodes.take(ranks).collect(),
            None => free.by_ref().take(ranks).collect(),
        };
    }
    let ranks = plan.applications.iter().map(|application| u64::from(application.ranks)).sum::<u64>();
    if ranks > Job::MAX_RANKS as u64 {
        return Err(format!("its jobs have {ranks} ranks: a run has at most {}", Job::MAX_RANKS));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Plan, String> {
        plan(text, Path::new("folder"))
    }

    #[test]
    fn jobs_get_the_nodes_that_they_name_or_the_first_free_ones() {
        let plan = read(
            "[[job]]\nprogram = ['./a', 'x']\nranks = 2\n[[job]]\nname = 'b'\nuser = 7\nstart = '2.5us'\nweight = 3\npriority = 9\nnodes = [3, 1]\n\
             programs = [{ program = ['b'] }, { program = ['/b2'], env = { K = 'v' }, folder = 'f' }]",
        )
        .unwrap();
        let nodes: Vec<_> = plan.applications.iter().map(|application| application.nodes.clone()).collect();
        assert_eq!(nodes, [vec![0, 2], vec![3], vec![1]]);
        let words: Vec<_> = plan.applications.iter().map(|application| application.words[0].clone()).collect();
        assert_eq!(words, ["folder/./a", "b", "/b2"]);
        let last = &plan.applications[2];
        assert_eq!((last.env.as_slice(), last.job), (&[("K".into(), "v".into())][..], 1));
        assert_eq!(last.folder.as_deref(), Some(Path::new("folder/f")));
        assert_eq!(plan.jobs[0].name, "job0");
        let job = &plan.jobs[1];
        assert_eq!((job.user, job.start, job.weight, job.priority), (7, Time::from_ns(2500), 3, 9));
    }

    #[test]
    fn nodes_may_be_shared_within_and_between_jobs() {
        let text = "[[job]]\nprogram = ['a']\nranks = 2\nnodes = [0, 0]\n[[job]]\nprogram = ['b']\nnodes = [0]\n\
                    [[job]]\nprogram = ['c']";
        let nodes: Vec<_> = read(text).unwrap().applications.into_iter().map(|application| application.nodes).collect();
        assert_eq!(nodes, [vec![0, 0], vec![0], vec![1]]);
    }

    #[test]
    fn unusable_files_are_refused_with_the_job_and_the_key() {
        let program = "program = ['a']\n";
        for (text, why) in [
            ("job = []".to_owned(), "it has no [[job]]"),
            ("[[job]]\n".to_owned(), "job job0: it has no program"),
            (format!("[[job]]\n{program}rank = 2"), "unknown field `rank`"),
            (format!("[[job]]\n{program}ranks = 0"), "job job0: ranks = 0: a program has 1 to 65536 ranks"),
            (format!("[[job]]\n{program}weight = 0"), "job job0: weight = 0: a weight is 1 to 1000"),
            (format!("[[job]]\n{program}start = '5 parsecs'"), "job job0: start = \"5 parsecs\""),
            (format!("[[job]]\n{program}user = 4294967295"), "job job0: user = 4294967295 is PTL_UID_ANY"),
            (format!("[[job]]\n{program}nodes = [1, 2]"), "job job0: nodes has 2 entries for 1 ranks"),
            (format!("[[job]]\n{program}nodes = [70000]"), "job job0: node 70000: the last node is 65535"),
            (format!("[[job]]\n{program}fail = ['1@5us']"), "job job0: fail: there is no rank 1; the last is 0"),
            (format!("[[job]]\n{program}fail = ['0']"), "job job0: fail = [\"0\"]: is like 3@5us"),
            (format!("[[job]]\n{program}priority = 256"), "invalid value: integer `256`, expected u8"),
            (format!("[[job]]\n{program}programs = []"), "job job0: it has both program and programs"),
            ("[[job]]\nprograms = []".to_owned(), "job job0: programs has 0 entries"),
            ("[[job]]\nranks = 2\nprograms = [{ program = ['a'] }]".to_owned(), "ranks, env and folder belong to each"),
            ("[[job]]\nprogram = []".to_owned(), "job job0: program is empty"),
            ("[[job]]\ngoal = 'x.goal'".to_owned(), "job job0: goal: schedules as jobs are not supported"),
            (format!("[[job]]\nname = 'a'\n{program}[[job]]\nname = 'a'\n{program}"), "two jobs are named a"),
            (format!("[[job]]\n{program}ranks = 65536\n[[job]]\n{program}"), "its jobs have 65537 ranks"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
