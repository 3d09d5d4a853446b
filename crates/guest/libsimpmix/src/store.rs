// SPDX-License-Identifier: Apache-2.0
//! Values that the ranks publish, and fixed values of each rank.
//!
//! A published value is one pair of the job's key-value space, or several if it is long. The key is the rank, the PMIx
//! key and the part number; the value is the bytes in hexadecimal. A prefix `+` means that another part follows, `.`
//! that this is the last one.

use crate::layout::{ALL_RANKS, Status, status};
use crate::nodes::Nodes;
use crate::value;
use abi::pmi::{Answer, Job, PROGRAMS, lost};
use std::collections::BTreeMap;
use std::fmt::Write;

/// This process's view of its job.
pub struct Store {
    job: Job,
    /// Values stored for this process alone, by rank and key.
    own: BTreeMap<(u32, String), Vec<u8>>,
    /// Number of ranks of each program of the job, in rank order.
    programs: Vec<u32>,
    nodes: Nodes,
}

/// A result: a value, or an error of [`status`].
pub type Result<T = ()> = std::result::Result<T, Status>;

/// Prints a message for the user.
pub fn complain(what: &str) {
    abi::pmi::say(&format!("libsimpmix: {what}"));
}

impl Store {
    /// Joins the job of this process.
    ///
    /// # Errors
    /// The reason, for the user.
    pub fn join() -> std::result::Result<Store, String> {
        let mut store =
            Store { job: Job::join()?, own: BTreeMap::new(), programs: Vec::new(), nodes: Nodes::default() };
        store.nodes = Nodes::of_job(store.job.size);
        let line = format!("cmd=get kvsname={} key={PROGRAMS}", store.job.space);
        let answer = store.job.connection.ask(&line, "get_result").map_err(|error| lost(&error))?;
        store.programs = programs(answer.text("value").filter(|_| answer.is_ok()), store.job.size);
        Ok(store)
    }

    /// Returns the name of the job, as a namespace.
    pub fn namespace(&self) -> &str {
        &self.job.space
    }

    /// Returns the rank of this process.
    pub fn rank(&self) -> u32 {
        self.job.rank
    }

    /// Returns true if ranks share nodes.
    pub fn shares_nodes(&self) -> bool {
        self.nodes.are_shared()
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        self.job.size
    }

    fn ask(&mut self, line: &str, expected: &str) -> Result<Answer> {
        self.job.connection.ask(line, expected).map_err(|error| {
            complain(&lost(&error));
            status::LOST_CONNECTION
        })
    }

    /// Waits until all ranks of the job call this.
    ///
    /// # Errors
    /// If the simulator has ended.
    pub fn meet_all(&mut self) -> Result {
        self.ask("cmd=barrier_in", "barrier_out").map(drop)
    }

    /// Reports the failure of the job to the simulator.
    pub fn abort(&mut self, code: i32) {
        // The process ends even if the simulator is unreachable.
        let _ = self.job.connection.tell(&format!("cmd=abort exitcode={code}"));
    }

    /// Requests more processes.
    ///
    /// # Errors
    /// [`status::NOT_SUPPORTED`] always, unless the simulator has ended.
    pub fn spawn(&mut self) -> Result {
        self.ask("cmd=spawn totspawns=1 spawnssofar=1", "spawn_result").and(Err(status::NOT_SUPPORTED))
    }

    /// Publishes a value of this process. All ranks see it at once.
    ///
    /// # Errors
    /// If the key is too long or has blanks, or the job has published too much.
    pub fn publish(&mut self, key: &str, bytes: &[u8]) -> Result {
        let of_part = (self.job.maxes[2].saturating_sub(1) / 2).max(1);
        let parts = bytes.chunks(of_part).count().max(1);
        for (number, part) in bytes.chunks(of_part).enumerate() {
            let key = self.key(self.job.rank, key, number)?;
            let mark = if number + 1 < parts { '+' } else { '.' };
            let line = format!("cmd=put kvsname={} key={key} value={mark}{}", self.job.space, hexadecimal(part));
            if !self.ask(&line, "put_result")?.is_ok() {
                return Err(status::NO_ROOM);
            }
        }
        Ok(())
    }

    /// Stores a value of a rank for this process alone.
    pub fn keep(&mut self, rank: u32, key: &str, bytes: Vec<u8>) {
        self.own.insert((rank, key.into()), bytes);
    }

    /// Returns a value of a rank, or of the whole job: one stored by this process, one that every job has, or one
    /// published by the rank.
    ///
    /// # Errors
    /// [`status::NOT_FOUND`], or an error if the simulator has ended.
    pub fn get(&mut self, rank: u32, key: &str) -> Result<Vec<u8>> {
        if let Some(bytes) = self.own.get(&(rank, key.into())) {
            return Ok(bytes.clone());
        }
        if let Some(bytes) = self.known(rank, key) {
            return Ok(bytes);
        }
        if key.starts_with("pmix.") || rank >= self.job.size {
            return Err(status::NOT_FOUND); // so no rank has published it
        }
        let mut bytes = Vec::new();
        for number in 0.. {
            let key = self.key(rank, key, number)?;
            let answer = self.ask(&format!("cmd=get kvsname={} key={key}", self.job.space), "get_result")?;
            let text = answer.text("value").filter(|_| answer.is_ok()).ok_or(status::NOT_FOUND)?;
            let part = text.get(1..).and_then(binary).ok_or(status::NOT_FOUND)?;
            bytes.extend(part);
            if !text.starts_with('+') {
                break;
            }
        }
        Ok(bytes)
    }

    /// Returns a fixed value of every job.
    fn known(&self, rank: u32, key: &str) -> Option<Vec<u8>> {
        let rank = if rank == ALL_RANKS { self.job.rank } else { rank };
        let program = program_of(&self.programs, rank);
        match key {
            "pmix.job.size" | "pmix.univ.size" | "pmix.max.size" => Some(value::of_u32(self.job.size)),
            "pmix.num.nodes" => Some(value::of_u32(self.nodes.count(self.job.size))),
            "pmix.local.size" => Some(value::of_u32(self.nodes.local(rank).len() as u32)),
            "pmix.job.napps" => Some(value::of_u32(self.programs.len() as u32)),
            "pmix.appnum" => Some(value::of_u32(program as u32)),
            "pmix.app.size" => Some(value::of_u32(self.programs[program])),
            "pmix.nodeid" => Some(value::of_u32(self.nodes.node(rank))),
            "pmix.lrank" | "pmix.nrank" => {
                let place = self.nodes.local(rank).iter().position(|local| *local == rank)?;
                Some(value::of_u16(place as u16))
            }
            "pmix.lpeers" => {
                let local: Vec<String> = self.nodes.local(rank).iter().map(u32::to_string).collect();
                Some(value::of_text(&local.join(",")))
            }
            // Without these folders, an MPI library creates its own, and leaves them behind if the job fails.
            "pmix.tmpdir" | "pmix.nsdir" | "pmix.pdir" => Some(value::of_text(&std::env::temp_dir().to_string_lossy())),
            _ => None,
        }
    }

    fn key(&self, rank: u32, key: &str, part: usize) -> Result<String> {
        let name = format!("pmix.{rank}.{part}.{key}");
        if key.contains([' ', '=', '\n']) || name.len() > self.job.maxes[1] {
            complain(&format!("the key `{key}` has blanks, or is longer than spinrun can publish"));
            return Err(status::BAD_PARAMETER);
        }
        Ok(name)
    }
}

/// Returns the number of ranks of each program from the job's list of them; a job without a list has one program.
fn programs(list: Option<&str>, size: u32) -> Vec<u32> {
    let sizes: Option<Vec<u32>> = list.and_then(|list| list.split(',').map(|size| size.parse().ok()).collect());
    sizes.filter(|sizes| sizes.iter().sum::<u32>() == size).unwrap_or_else(|| vec![size])
}

/// Returns the index of a rank's program. Ranks beyond the last belong to the last.
fn program_of(programs: &[u32], rank: u32) -> usize {
    let mut left = rank;
    let found = programs.iter().position(|size| left.checked_sub(*size).map(|rest| left = rest).is_none());
    found.unwrap_or(programs.len() - 1)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn binary(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{binary, hexadecimal, program_of, programs};

    #[test]
    fn the_list_of_programs_gives_the_program_of_each_rank() {
        let sizes = programs(Some("2,1,3"), 6);
        assert_eq!([0, 1, 2, 3, 5, 9].map(|rank| program_of(&sizes, rank)), [0, 0, 1, 2, 2, 2]);
        for list in [None, Some(""), Some("2,x"), Some("2,5")] {
            assert_eq!(programs(list, 6), [6], "{list:?}");
        }
    }

    #[test]
    fn bytes_come_back_from_their_digits() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(binary(&hexadecimal(&bytes)), Some(bytes));
        assert_eq!([binary(""), binary("0"), binary("0g"), binary("00é")], [Some(Vec::new()), None, None, None]);
    }
}
