//! Output of ranks with their numbers before each line.
//!
//! What a rank has written is passed on before the simulation goes on, so the order of lines is the same in every run.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{ChildStderr, ChildStdout};
use std::time::Duration;

/// The pipes of all ranks and where they lead.
pub struct Output {
    pipes: Vec<[Option<Pipe>; 2]>,
    sinks: [Box<dyn Write>; 2],
}

struct Pipe {
    source: File,
    line: Vec<u8>,
}

impl Output {
    /// How often to look into the pipes of a rank that computes.
    pub const PERIOD: Duration = Duration::from_millis(1);

    /// Nothing yet, leading to standard output and error.
    pub fn new(ranks: usize) -> Output {
        let pipes = std::iter::repeat_with(|| [None, None]).take(ranks).collect();
        Output { pipes, sinks: [Box::new(io::stdout()), Box::new(io::stderr())] }
    }

    /// Leads elsewhere.
    pub fn set_sinks(&mut self, out: Box<dyn Write>, err: Box<dyn Write>) {
        self.sinks = [out, err];
    }

    /// The pipes of a new rank.
    pub fn add(&mut self, rank: usize, out: Option<ChildStdout>, err: Option<ChildStderr>) -> io::Result<()> {
        let sources = [out.map(OwnedFd::from), err.map(OwnedFd::from)];
        for (pipe, source) in self.pipes[rank].iter_mut().zip(sources) {
            *pipe = source.map(Pipe::new).transpose()?;
        }
        Ok(())
    }

    /// Passes on the whole lines that a rank has written.
    pub fn drain(&mut self, rank: usize) {
        for (pipe, sink) in self.pipes[rank].iter_mut().zip(&mut self.sinks) {
            if let Some(pipe) = pipe {
                pipe.drain(rank, sink);
            }
        }
    }

    /// Passes on everything that is left of a rank that has ended.
    pub fn finish(&mut self, rank: usize) {
        self.drain(rank);
        for (pipe, sink) in self.pipes[rank].iter_mut().zip(&mut self.sinks) {
            if let Some(pipe) = pipe.take().filter(|pipe| !pipe.line.is_empty()) {
                print(sink, rank, &pipe.line);
            }
        }
    }
}

impl Pipe {
    fn new(source: OwnedFd) -> io::Result<Pipe> {
        // SAFETY: sets a flag of our own descriptor.
        if unsafe { libc::fcntl(source.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Pipe { source: source.into(), line: Vec::new() })
    }

    fn drain(&mut self, rank: usize, sink: &mut dyn Write) {
        let mut chunk = [0; 16 * 1024];
        while let Ok(length @ 1..) = self.source.read(&mut chunk) {
            for piece in chunk[..length].split_inclusive(|&byte| byte == b'\n') {
                match piece.strip_suffix(b"\n") {
                    Some(end) => {
                        self.line.extend_from_slice(end);
                        print(sink, rank, &self.line);
                        self.line.clear();
                    }
                    None => self.line.extend_from_slice(piece),
                }
            }
        }
        // Nobody to tell when our own output is closed; the rank's would go nowhere either.
        let _ = sink.flush();
    }
}

fn print(sink: &mut dyn Write, rank: usize, line: &[u8]) {
    let tagged = [format!("[{rank}] ").as_bytes(), line, b"\n"].concat();
    let _ = sink.write_all(&tagged);
}
