// SPDX-License-Identifier: Apache-2.0
//! Tags each line of a rank's output with the rank number.
//!
//! The output of a rank is forwarded before the simulation continues, so the order of lines is the same in every run.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Pipes of all ranks, and the destinations of their output.
pub struct Output {
    /// Tags of the ranks.
    tags: Vec<String>,
    pipes: Vec<[Option<Pipe>; 2]>,
    sinks: [Box<dyn Write>; 2],
}

struct Pipe {
    /// Source of the bytes; `None` if the rank passes them on itself.
    source: Option<File>,
    line: Vec<u8>,
}

impl Output {
    /// Interval at which the pipes of a computing rank are drained.
    pub const PERIOD: Duration = Duration::from_millis(1);

    /// Creates the output of ranks with these tags; it goes to standard output and standard error.
    pub fn new(tags: Vec<String>) -> Output {
        let pipes = std::iter::repeat_with(|| [None, None]).take(tags.len()).collect();
        Output { tags, pipes, sinks: [Box::new(io::stdout()), Box::new(io::stderr())] }
    }

    /// Changes the destinations of the output.
    pub fn set_sinks(&mut self, out: Box<dyn Write>, err: Box<dyn Write>) {
        self.sinks = [out, err];
    }

    /// Adds the pipes of a new rank.
    ///
    /// # Errors
    /// The system's error when they cannot be made non-blocking.
    pub fn add(&mut self, rank: usize, sources: [OwnedFd; 2]) -> io::Result<()> {
        for (pipe, source) in self.pipes[rank].iter_mut().zip(sources) {
            *pipe = Some(Pipe::new(source)?);
        }
        Ok(())
    }

    /// Adds a rank in this process.
    pub fn add_embedded(&mut self, rank: usize) {
        self.pipes[rank] = [(); 2].map(|()| Some(Pipe { source: None, line: Vec::new() }));
    }

    /// Forwards the complete lines of output from a rank in this process.
    pub fn forward(&mut self, rank: usize, output: [Vec<u8>; 2]) {
        for ((pipe, sink), bytes) in self.pipes[rank].iter_mut().zip(&mut self.sinks).zip(output) {
            if let Some(pipe) = pipe.as_mut().filter(|_| !bytes.is_empty()) {
                take_lines(&mut pipe.line, &self.tags[rank], &bytes, sink);
                let _ = sink.flush(); // as in `drain`
            }
        }
    }

    /// Forwards the complete lines that a rank wrote.
    pub fn drain(&mut self, rank: usize) {
        for (pipe, sink) in self.pipes[rank].iter_mut().zip(&mut self.sinks) {
            if let Some(pipe) = pipe {
                pipe.drain(&self.tags[rank], sink);
            }
        }
    }

    /// Forwards the remaining output of an ended rank.
    pub fn finish(&mut self, rank: usize) {
        self.drain(rank);
        for (pipe, sink) in self.pipes[rank].iter_mut().zip(&mut self.sinks) {
            if let Some(pipe) = pipe.take().filter(|pipe| !pipe.line.is_empty()) {
                print(sink, &self.tags[rank], &pipe.line);
            }
        }
    }
}

impl Pipe {
    fn new(source: OwnedFd) -> io::Result<Pipe> {
        rustix::io::ioctl_fionbio(&source, true)?;
        Ok(Pipe { source: Some(source.into()), line: Vec::new() })
    }

    fn drain(&mut self, tag: &str, sink: &mut dyn Write) {
        let Some(mut source) = self.source.as_ref() else { return };
        let mut chunk = [0; 16 * 1024];
        while let Ok(length @ 1..) = source.read(&mut chunk) {
            take_lines(&mut self.line, tag, &chunk[..length], sink);
        }
        // Errors are ignored: with a closed destination, the rank's output would be lost anyway.
        let _ = sink.flush();
    }
}

/// Adds bytes to the current line, and prints complete lines.
fn take_lines(line: &mut Vec<u8>, tag: &str, bytes: &[u8], sink: &mut dyn Write) {
    for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
        match piece.strip_suffix(b"\n") {
            Some(end) => {
                line.extend_from_slice(end);
                print(sink, tag, line);
                line.clear();
            }
            None => line.extend_from_slice(piece),
        }
    }
}

fn print(sink: &mut dyn Write, tag: &str, line: &[u8]) {
    let tagged = [format!("[{tag}] ").as_bytes(), line, b"\n"].concat();
    let _ = sink.write_all(&tagged);
}
