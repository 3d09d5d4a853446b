//! The connections over which ranks speak PMI-1 ([`crate::pmi`]).
//!
//! A rank has one end of a socket pair (`PMI_FD`). Requests are answered at once and take no simulated time. A barrier
//! blocks the rank as a library call would: it is returned as [`Op::PmiBarrier`](abi::calls::Op::PmiBarrier), and its
//! answer is [`BARRIER_OUT`].
//!
//! The rank blocks in `read`, outside of the library, so a request raises a signal (SIGIO) that rings the doorbell.

use super::leftovers;
use super::parked_descriptors::park;
use super::signals;
use crate::pmi::{Answer, BARRIER_OUT, Board, Talk};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

/// The number of lines that are answered before the simulator handles other things.
const LINES: usize = 1024;

/// The connections of all ranks, and the data that they have published.
pub struct Pmi {
    ranks: Vec<Option<Client>>,
    board: Board,
    /// The rank that sent the first line of all, until [`Pmi::has_begun`] has reported it.
    first: Option<usize>,
    spoken: bool,
    /// The rank that has asked to abort the job.
    aborter: Option<usize>,
    /// What was refused, by rank, until [`Pmi::refusals`] has reported it.
    refusals: Vec<(usize, &'static str)>,
}

struct Client {
    stream: UnixStream,
    /// The value of [`signals::inputs`] when the connection was last read.
    seen: u32,
    talk: Talk,
    in_barrier: bool,
    aborted: Option<i32>,
    fault: Option<String>,
}

impl Pmi {
    /// Makes the connections of a job with this number of ranks, none of which is connected yet.
    pub fn new(ranks: usize) -> Pmi {
        let clients = (0..ranks).map(|_| None).collect();
        Pmi {
            ranks: clients,
            board: Board::new(ranks),
            first: None,
            spoken: false,
            aborter: None,
            refusals: Vec::new(),
        }
    }

    /// Connects a rank that is about to start. Returns the descriptor that the rank must get.
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
            talk: Talk::default(),
            in_barrier: false,
            aborted: None,
            fault: None,
        });
        Ok(theirs.into())
    }

    /// Adds the variables of PMI to those of a rank, whose connection, if it has one, gets the number `fd`.
    pub fn add_variables(command: &mut Command, rank: &str, ranks: usize, fd: Option<i32>) {
        command
            .env("PMI_RANK", rank)
            .env("PMI_ID", rank)
            .env("PMI_SIZE", ranks.to_string())
            .env("PMI_SPAWNED", "0")
            .env_remove("PMI_PORT"); // of a process manager around spinrun
        match fd {
            Some(fd) => command.env("PMI_FD", fd.to_string()),
            None => command.env_remove("PMI_FD"),
        };
    }

    /// Answers the requests of a rank. Returns whether there were any. Costs nothing while no rank has sent anything.
    pub fn serve(&mut self, rank: usize) -> bool {
        let inputs = signals::inputs();
        match &mut self.ranks[rank] {
            Some(client) if client.seen != inputs => client.seen = inputs,
            _ => return false,
        }
        self.answer_lines(rank)
    }

    /// Answers the lines that have arrived from a rank. Returns whether there were any.
    fn answer_lines(&mut self, rank: usize) -> bool {
        for count in 0..LINES {
            let Some(client) = &mut self.ranks[rank] else { return count > 0 };
            let Some(line) = client.line() else { return count > 0 };
            if !std::mem::replace(&mut self.spoken, true) {
                self.first = Some(rank);
            }
            match client.talk.answer(&line, &mut self.board) {
                Ok(Answer::Line(answer)) => client.send(&answer),
                Ok(Answer::None) => {}
                Ok(Answer::Barrier) => client.in_barrier = true,
                Ok(Answer::Abort(code)) => {
                    client.aborted = Some(code);
                    self.aborter.get_or_insert(rank);
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

    /// Whether a rank may have sent a request since the last [`Pmi::serve`].
    pub fn has_input(&self, rank: usize) -> bool {
        self.ranks[rank].as_ref().is_some_and(|client| client.seen != signals::inputs())
    }

    /// Whether a rank waits in a barrier.
    pub fn in_barrier(&self, rank: usize) -> bool {
        self.ranks[rank].as_ref().is_some_and(|client| client.in_barrier)
    }

    /// Lets a rank leave its barrier.
    pub fn leave_barrier(&mut self, rank: usize) {
        let Some(client) = &mut self.ranks[rank] else { return };
        if std::mem::take(&mut client.in_barrier) {
            client.send(BARRIER_OUT);
        }
    }

    /// Returns the exit code with which a rank has asked to abort the job.
    pub fn aborted(&self, rank: usize) -> Option<i32> {
        self.ranks[rank].as_ref()?.aborted
    }

    /// Whether this rank has asked to abort the job, also when it has ended since.
    pub fn has_aborted(&self, rank: usize) -> bool {
        self.aborter == Some(rank)
    }

    /// Whether this rank was the first to send a line. Returns true only once.
    pub fn has_begun(&mut self, rank: usize) -> bool {
        self.first.take_if(|first| *first == rank).is_some()
    }

    /// Whether any rank has sent a line.
    pub fn has_spoken(&self) -> bool {
        self.spoken
    }

    /// Returns the ranks to which something was refused, and why, once.
    pub fn refusals(&mut self) -> Vec<(usize, &'static str)> {
        std::mem::take(&mut self.refusals)
    }

    /// Removes what MPICH has left of the job's shared memory. Call it when all ranks have ended.
    pub fn remove_leftovers(&self) {
        if let Some(space) = self.board.known_space() {
            leftovers::remove(space, self.ranks.len());
        }
    }

    /// Returns why a rank's connection was closed, once.
    pub fn fault(&mut self, rank: usize) -> Option<String> {
        self.ranks[rank].as_mut()?.fault.take()
    }

    /// Removes the connection of a rank that has ended. Returns the exit code with which it has asked to abort the job,
    /// which may be its last line.
    pub fn disconnect(&mut self, rank: usize) -> Option<i32> {
        self.answer_lines(rank);
        self.ranks[rank].take()?.aborted
    }
}

impl Client {
    fn send(&mut self, answer: &str) {
        // Each line is one write, as clients expect.
        match self.stream.write_all(format!("{answer}\n").as_bytes()) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.fail("it does not read its answers".into()),
            // Other errors mean that the rank has closed the connection. Its exit will be reported.
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
