// SPDX-License-Identifier: Apache-2.0
//! Traces of MPI programs and of AI workloads. An input holds the files of all ranks, separated by [`BETWEEN`].

use std::fs;

use mpi_trace::{Options, Wildcards, import};

/// Separator between the files of two ranks.
const BETWEEN: &[u8] = b"\n\x1c\n";
/// Magic bytes of a trace file of `libspintrace.so`. Blocks of records follow, each after its length.
const MAGIC: &[u8] = b"SPINTRC1";
/// Maximum number of ranks of an input.
const RANKS: usize = 16;

/// Imports traces of liballprof.
pub fn liballprof(bytes: &[u8]) {
    imports(split(bytes).map(<[u8]>::to_vec), |rank| format!("pmpi-trace-rank-{rank}.txt"));
}

/// Imports traces of `libspintrace.so`: files, or only their records.
pub fn tracer(bytes: &[u8]) {
    let wrapped = split(bytes).map(|records| match records.starts_with(MAGIC) {
        true => records.to_vec(),
        false => [MAGIC, &(records.len() as u32).to_le_bytes(), records].concat(),
    });
    imports(wrapped, |rank| format!("rank-{rank}.spintrace"));
}

/// Imports Chakra execution traces.
pub fn chakra(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    for (rank, file) in split(bytes).take(RANKS).enumerate() {
        fs::write(folder.path().join(format!("w.{rank}.et")), file).expect("a file");
    }
    let files = workload::chakra::Files::find(folder.path()).expect("one workload").expect("files");
    if let Ok(import) = workload::chakra::import(&files, &workload::chakra::Options::default()) {
        crate::schedules::survives(&import.schedule);
    }
}

/// Imports a connection matrix of htsim.
pub fn connections(bytes: &[u8]) {
    let has_large_number = bytes.windows(5).any(|digits| digits.iter().all(u8::is_ascii_digit));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if !has_large_number && let Ok(import) = workload::connections::import(text) {
        crate::schedules::survives(&import.schedule);
    }
}

fn imports(files: impl Iterator<Item = Vec<u8>>, name: impl Fn(usize) -> String) {
    let folder = tempfile::tempdir().expect("a folder");
    for (rank, file) in files.take(RANKS).enumerate() {
        fs::write(folder.path().join(name(rank)), file).expect("a file");
    }
    for wildcards in [Wildcards::Resolve, Wildcards::Keep] {
        let options = Options { wildcards, ..Options::default() };
        if let Ok(import) = import(folder.path(), &options) {
            crate::schedules::survives(&import.schedule);
        }
    }
}

fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let all = rest?;
        let end = all.windows(BETWEEN.len()).position(|window| window == BETWEEN);
        rest = end.map(|end| &all[end + BETWEEN.len()..]);
        Some(&all[..end.unwrap_or(all.len())])
    })
}
