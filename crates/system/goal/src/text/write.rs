// SPDX-License-Identifier: Apache-2.0
//! Writer of GOAL text.

use std::io::{self, Write};

use crate::schedule::{Schedule, Wait};

/// Writes ranks of a schedule as text; labels are `l` and the operation's index in its rank.
///
/// # Errors
/// If writing fails.
pub fn write(schedule: &Schedule, ranks: impl Iterator<Item = u32>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "num_ranks {}", schedule.ranks())?;
    for rank in ranks {
        let ops = schedule.of_rank(rank);
        writeln!(out, "\nrank {rank} {{")?;
        for op in ops.clone() {
            write!(out, "l{}: {}", op - ops.start + 1, schedule.action(op))?;
            let (cpu, nic) = schedule.resources(op);
            if cpu != 0 {
                write!(out, " cpu {cpu}")?;
            }
            if nic != 0 {
                write!(out, " nic {nic}")?;
            }
            out.write_all(b"\n")?;
        }
        for earlier in ops.clone() {
            for (later, wait) in schedule.dependents(earlier) {
                let word = if wait == Wait::Done { "requires" } else { "irequires" };
                writeln!(out, "l{} {word} l{}", later - ops.start + 1, earlier - ops.start + 1)?;
            }
        }
        out.write_all(b"}\n")?;
    }
    Ok(())
}
