//! The ranks' connections by which they speak PMI-1 ([`crate::pmi`]).
//!
//! A rank has one end of a socket pair (`PMI_FD`). Requests are answered at once and take no simulated time. A barrier
//! blocks the rank, as a library call would: it is handed out as [`Op::PmiBarrier`](abi::mailbox::Op::PmiBarrier), and its
//! answer is [`BARRIER_OUT`].
//!
//! The rank blocks in `read`, outside of the library, so its requests come as a signal (SIGIO) that rings the doorbell.

use super::signals;
use crate::pmi::{Answer, BARRIER_OUT, Board, Talk};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

/// Lines that are answered in one go; the simulator then looks after other things.
const LINES: usize = 1024;

/// The ranks' connections, and what they have published.
pub struct Pmi {
    ranks: Vec<Option<Client>>,
    board: Board,
    /// A rank whose first line was the first of all ranks, until somebody asks for it.
    first: Option<usize>,
    spoken: bool,
}

struct Client {
    stream: UnixStream,
    /// [`signals::inputs`] at the last look.
    seen: u32,
    talk: Talk,
    in_barrier: bool,
    aborted: Option<i32>,
    fault: Option<String>,
}

impl Pmi {
    /// Connections for this number of ranks, none of which is there yet.
    pub fn new(ranks: usize) -> Pmi {
        let clients = (0..ranks).map(|_| None).collect();
        Pmi { ranks: clients, board: Board::new(ranks), first: None, spoken: false }
    }

    /// Gives a rank that is about to start its connection: the descriptor to pass on as number `fd`.
    pub fn connect(&mut self, rank: usize, command: &mut Command, fd: i32) -> io::Result<OwnedFd> {
        let (ours, theirs) = UnixStream::pair()?;
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
        command
            .env("PMI_FD", fd.to_string())
            .env("PMI_RANK", rank.to_string())
            .env("PMI_ID", rank.to_string())
            .env("PMI_SIZE", self.ranks.len().to_string())
            .env("PMI_SPAWNED", "0")
            .env_remove("PMI_PORT"); // of a process manager around spinrun
        Ok(theirs.into())
    }

    /// Answers what a rank has asked; whether that was anything. Free while nothing has come for any rank.
    pub fn serve(&mut self, rank: usize) -> bool {
        let inputs = signals::inputs();
        match &mut self.ranks[rank] {
            Some(client) if client.seen != inputs => client.seen = inputs,
            _ => return false,
        }
        self.answer_lines(rank)
    }

    /// Answers the lines that have come from a rank; whether there were any.
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
                Ok(Answer::Abort(code)) => client.aborted = Some(code),
                Err(why) => client.fail(why),
            }
        }
        signals::expect_input();
        true
    }

    /// Whether a rank may have asked something that [`Pmi::serve`] has not seen.
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

    /// The exit code with which a rank has asked to end the job.
    pub fn aborted(&self, rank: usize) -> Option<i32> {
        self.ranks[rank].as_ref()?.aborted
    }

    /// Whether this rank was the first to speak; told once.
    pub fn has_begun(&mut self, rank: usize) -> bool {
        self.first.take_if(|first| *first == rank).is_some()
    }

    /// Whether any rank has sent a line.
    pub fn has_spoken(&self) -> bool {
        self.spoken
    }

    /// Why a rank's connection cannot go on.
    pub fn fault(&mut self, rank: usize) -> Option<String> {
        self.ranks[rank].as_mut()?.fault.take()
    }

    /// Forgets a rank that has ended. The exit code with which it has asked to end the job, perhaps at the very last.
    pub fn disconnect(&mut self, rank: usize) -> Option<i32> {
        self.answer_lines(rank);
        self.ranks[rank].take()?.aborted
    }
}

impl Client {
    fn send(&mut self, answer: &str) {
        // One write a line, as clients read it.
        match self.stream.write_all(format!("{answer}\n").as_bytes()) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.fail("it does not read its answers".into()),
            // When it has closed its end, its own end is what there is to tell.
            _ => {}
        }
    }

    /// Ends the connection.
    fn fail(&mut self, why: String) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        self.talk.clear();
        self.fault.get_or_insert(why);
    }

    /// The next whole line, if one has come.
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
