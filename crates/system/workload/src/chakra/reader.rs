// SPDX-License-Identifier: Apache-2.0
//! Reader of a file: messages after their lengths.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use prost::Message;

use super::error::ChakraError;
use super::node::Node;
use super::proto;

/// Largest length of a message in bytes; Protocol Buffers have the same limit.
const MAX_MESSAGE: u64 = 1 << 31;
/// First bytes of a file compressed by gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads the nodes of a trace from a stream, which `gzip` may have compressed; `path` is its name in errors.
///
/// # Errors
/// See [`ChakraError`].
pub fn nodes(stream: impl Read, path: &Path) -> Result<usize, ChakraError> {
    Ok(read(stream, path)?.len())
}

/// Reads the nodes of a file.
pub(super) fn open(path: &Path) -> Result<Vec<Node>, ChakraError> {
    read(File::open(path).map_err(|error| ChakraError::Io { path: path.into(), error })?, path)
}

pub(super) fn read(stream: impl Read, path: &Path) -> Result<Vec<Node>, ChakraError> {
    let mut stream = BufReader::new(stream);
    let start = stream.fill_buf().map_err(|error| ChakraError::Io { path: path.into(), error })?;
    if start.starts_with(&GZIP) {
        return messages(BufReader::new(flate2::bufread::MultiGzDecoder::new(stream)), path);
    }
    messages(stream, path)
}

fn messages(mut stream: impl BufRead, path: &Path) -> Result<Vec<Node>, ChakraError> {
    let failed = |error| ChakraError::Io { path: path.into(), error };
    let damaged = |at, problem: &str| ChakraError::Damaged { path: path.into(), at, problem: problem.into() };
    let (mut at, mut nodes, mut message) = (0, Vec::new(), Vec::new());
    let mut is_first = true;
    loop {
        let start = at;
        let Some(length) = length(&mut stream, &mut at).map_err(failed)? else {
            return match (at == start, is_first) {
                (true, false) => Ok(nodes),
                (true, true) => Err(damaged(0, "the file is empty; write the trace again")),
                (false, _) => Err(damaged(start, "a length of more than 9 bytes, or cut off: the file is damaged")),
            };
        };
        if length > MAX_MESSAGE {
            return Err(damaged(start, "a message beyond 2 GiB: the file is damaged, or no Chakra trace"));
        }
        message.clear();
        let read = (&mut stream).take(length).read_to_end(&mut message).map_err(failed)?;
        at += read as u64;
        if read as u64 != length {
            return Err(damaged(start, "the file ends within a message: truncated; write the trace again"));
        }
        if std::mem::take(&mut is_first) {
            let metadata = proto::GlobalMetadata::decode(&*message);
            if !metadata.is_ok_and(|metadata| !metadata.version.is_empty()) {
                return Err(damaged(
                    start,
                    "no metadata with a version: no Chakra trace of schema 0.0.4 or later (Chakra's tools convert \
                     earlier ones and those of PyTorch)",
                ));
            }
            continue;
        }
        let node = proto::Node::decode(&*message)
            .map_err(|error| damaged(start, &format!("no node of a Chakra trace: {error}")))?;
        nodes.push(Node::new(node, path)?);
    }
}

/// Reads a length: 7 bits a byte, the lowest first. Returns `None` at the end of the file, or if it is invalid.
fn length(stream: &mut impl BufRead, at: &mut u64) -> io::Result<Option<u64>> {
    let mut length = 0;
    for shift in (0..63).step_by(7) {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        *at += 1;
        length |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Ok(Some(length));
        }
    }
    Ok(None)
}
