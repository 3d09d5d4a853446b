// SPDX-License-Identifier: Apache-2.0
//! Connections over which ranks speak PMI-1 ([`crate::pmi`]).
//!
//! Each rank has one end of a socket pair (`PMI_FD`). Requests are answered at once and take no simulated time. A
//! barrier blocks the rank as a library call would: it is returned as [`Op::PmiBarrier`](abi::calls::Op::PmiBarrier),
//! and its reply is [`BARRIER_OUT`].
//!
//! The rank blocks in `read`, outside of the library, so a request raises a signal (SIGIO) that rings the doorbell.

#![deny(clippy::cast_possible_truncation)] // values come from input

use super::leftovers;
use super::parked_descriptors::park;
use super::seating::Seating;
use super::signals;
use crate::pmi::{Answer, BARRIER_OUT, Board, Talk};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

/// Number of lines processed before the simulator handles other work.
const LINES: usize = 1024;

/// Connections of all ranks, and their published data.
pub struct Pmi {
    ranks: Vec<Option<Client>>,
    seating: Seating,
    /// Published data of each job.
    boards: Vec<Board>,
    /// Ranks that sent the very first lines of their programs, until [`Pmi::has_begun`] reports them.
    firsts: Vec<usize>,
    /// Set for each program whose ranks have sent a line.
    spoken: Vec<bool>,
    /// Ranks that requested an abort of their jobs first.
    aborters: Vec<usize>,
    /// Refused requests by rank, until [`Pmi::refusals`] reports them.
    refusals: Vec<(usize, &'static str)>,
}

struct Client {
    stream: UnixStream,
    /// Value of [`signals::inputs`] when the connection was last read.
    seen: u32,
    talk: Talk,
    in_barrier: bool,
    aborted: Option<i32>,
    fault: Option<String>,
}

impl Pmi {
    /// Creates the table of connections for these ranks, all unconnected.
    pub fn new(seating: &Seating) -> Pmi {
        let programs = (0..seating.jobs()).map(|job| seating.sizes(job).len()).sum();
        Pmi {
            ranks: (0..seating.places()).map(|_| None).collect(),
            boards: (0..seating.jobs())
                .map(|job| Board::of_programs(&seating.sizes(job), &seating.nodes_of_job(job)))
                .collect(),
            seating: seating.clone(),
            firsts: Vec::new(),
            spoken: vec![false; programs],
            aborters: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// Connects a rank that is about to start. Returns the descriptor to pass to the rank.
    ///
    /// # Errors
    /// The system's error when the connection cannot be made.
    pub fn connect(&mut self, rank: usize) -> io::Result<OwnedFd> {
        let (ours, theirs) = UnixStream::pair()?;
        let ours = UnixStream::from(park(ours.into()));
        ours.set_nonblocking(true)?;
        signals::on_input(ours.as_raw_fd())?;
        self.ranks[rank] = Some(Client {
            stream: ours,
            seen: signals::inputs(),
            talk: Talk::of_program(self.seating.appnum(rank)),
            in_barrier: false,
            aborted: None,
            fault: None,
        });
        Ok(theirs.into())
    }

    /// Sets the PMI variables of a rank; `fd` is the number of its connection, if any.
    pub fn add_variables(command: &mut Command, rank: &str, ranks: usize, fd: Option<i32>) {
        command
            .env("PMI_RANK", rank)
            .env("PMI_ID", rank)
            .env("PMI_SIZE", ranks.to_string())
            .env("PMI_SPAWNED", "0")
            .env_remove("PMI_PORT"); // set by a process manager around spinrun
        match fd {
            Some(fd) => command.env("PMI_FD", fd.to_string()),
            None => command.env_remove("PMI_FD"),
        };
    }

    /// Answers the requests of a rank. Returns true if there were any. Costs nothing while no rank sends anything.
    pub fn serve(&mut self, rank: usize) -> bool {
        let inputs = signals::inputs();
        match &mut self.ranks[rank] {
            Some(client) if client.seen != inputs => client.seen = inputs,
            _ => return false,
        }
        self.answer_lines(rank)
    }

    /// Processes the lines that arrived from a rank. Returns true if there were any.
    fn answer_lines(&mut self, rank: usize) -> bool {
        for count in 0..LINES {
            let Some(client) = &mut self.ranks[rank] else { return count > 0 };
            let Some(line) = client.line() else { return count > 0 };
            let Some(seat) = self.seating.at(rank) else { return count > 0 };
            if !std::mem::replace(&mut self.spoken[seat.application], true) {
                self.firsts.push(rank);
            }
            match client.talk.answer(&line, &mut self.boards[seat.job]) {
                Ok(Answer::Line(answer)) => client.send(&answer),
                Ok(Answer::None) => {}
                Ok(Answer::Barrier) => client.in_barrier = true,
                Ok(Answer::Abort(code)) => {
                    client.aborted = Some(code);
                    if !self.aborters.iter().any(|other| self.seating.job_of(*other) == seat.job) {
                        self.aborters.push(rank);
                    }
                }
                Ok(Answer::Refused(answer, why)) => {
                    client.send(&answer);
                    self.refusals.push((rank, why));
                }
                Err(why) => client.fail(why),
            }
        }
        signals::expect_input();
        true
    }

    /// Returns true if a rank may have sent a request since the last [`Pmi::serve`].
    pub fn has_input(&self, rank: usize) -> bool {
        self.ranks[rank].as_ref().is_some_and(|client| client.seen != signals::inputs())
    }

    /// Returns true if a rank waits in a barrier.
    pub fn in_barrier(&self, rank: usize) -> bool {
        self.ranks[rank].as_ref().is_some_and(|client| client.in_barrier)
    }

    /// Releases a rank from its barrier.
    pub fn leave_barrier(&mut self, rank: usize) {
        let Some(client) = &mut self.ranks[rank] else { return };
        if std::mem::take(&mut client.in_barrier) {
            client.send(BARRIER_OUT);
        }
    }

    /// Returns the exit code with which a rank requested a job abort.
    pub fn aborted(&self, rank: usize) -> Option<i32> {
        self.ranks[rank].as_ref()?.aborted
    }

    /// Returns true if this rank requested a job abort, even if it has ended since.
    pub fn has_aborted(&self, rank: usize) -> bool {
        self.aborters.contains(&rank)
    }

    /// Returns true, once, if this rank was the first of its program to send a line.
    pub fn has_begun(&mut self, rank: usize) -> bool {
        let place = self.firsts.iter().position(|first| *first == rank);
        place.map(|place| self.firsts.swap_remove(place)).is_some()
    }

    /// Returns true if any rank has sent a line.
    pub fn has_spoken(&self) -> bool {
        self.spoken.contains(&true)
    }

    /// Returns the ranks with refused requests and the reasons. Each refusal is returned once.
    pub fn refusals(&mut self) -> Vec<(usize, &'static str)> {
        std::mem::take(&mut self.refusals)
    }

    /// Removes the jobs' shared memory that MPICH left behind. Call it after all ranks ended.
    pub fn remove_leftovers(&self) {
        for (job, board) in self.boards.iter().enumerate() {
            if let Some(space) = board.known_space() {
                leftovers::remove(space, self.seating.members(job).len());
            }
        }
    }

    /// Returns, once, the reason why a rank's connection was closed.
    pub fn fault(&mut self, rank: usize) -> Option<String> {
        self.ranks[rank].as_mut()?.fault.take()
    }

    /// Removes the connection of an ended rank. Returns the exit code of its abort request, which may be its last line.
    pub fn disconnect(&mut self, rank: usize) -> Option<i32> {
        self.answer_lines(rank);
        self.ranks[rank].take()?.aborted
    }
}

impl Client {
    fn send(&mut self, answer: &str) {
        // One write per line, as clients expect.
        match self.stream.write_all(format!("{answer}\n").as_bytes()) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.fail("it does not read its answers".into()),
            // Other errors mean that the rank closed the connection. Its exit is reported later.
            _ => {}
        }
    }

    /// Closes the connection.
    fn fail(&mut self, why: String) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        self.talk.clear();
        self.fault.get_or_insert(why);
    }

    /// Returns the next complete line, if one has arrived.
    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.talk.line() {
                return Some(line);
            }
            let mut chunk = [0; 2048];
            match self.stream.read(&mut chunk) {
                Ok(length @ 1..) => {
                    if let Err(why) = self.talk.hear(&chunk[..length]) {
                        self.fail(why);
                        return None;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return None,
            }
        }
    }
}
