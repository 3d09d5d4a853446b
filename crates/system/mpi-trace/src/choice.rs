// SPDX-License-Identifier: Apache-2.0
//! Algorithms of collectives, by user selection or by default.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use goal::generate::Pattern;
use thiserror::Error;

use crate::event::Operation;

/// User-selected algorithms of collectives. Other collectives get the default algorithm for their size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collectives(BTreeMap<Operation, Pattern>);

/// Error of an invalid selection.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{word}: {problem}; there are: {}", there())]
pub struct ChoiceError {
    word: String,
    problem: &'static str,
}

/// Names of the algorithms of each collective; the first is the default for small messages. Variants such as those with
/// `v` use the selection for the plain collective if possible.
const ALGORITHMS: &[(Operation, &[(&str, Pattern)])] = &[
    (Operation::Barrier, &[("dissemination", Pattern::Dissemination)]),
    (
        Operation::Bcast,
        &[
            ("binomial", Pattern::Bcast),
            ("pipeline", Pattern::BcastPipeline),
            ("double-tree", Pattern::BcastDoubleTree),
            ("scatter-allgather", Pattern::BcastScatterAllgather),
        ],
    ),
    (Operation::Reduce, &[("binomial", Pattern::Reduce)]),
    (
        Operation::Allreduce,
        &[
            ("recursive-doubling", Pattern::AllreduceRecursiveDoubling),
            ("rabenseifner", Pattern::AllreduceRabenseifner),
            ("ring", Pattern::AllreduceRing),
            ("dissemination", Pattern::Dissemination),
        ],
    ),
    (Operation::Scan, &[("doubling", Pattern::Scan)]),
    (
        Operation::Allgather,
        &[
            ("bruck", Pattern::AllgatherBruck),
            ("ring", Pattern::AllgatherRing),
            ("dissemination", Pattern::Dissemination),
        ],
    ),
    (Operation::Alltoall, &[("linear", Pattern::Alltoall), ("pairwise", Pattern::AlltoallPairwise)]),
    (Operation::Gather, &[("binomial", Pattern::GatherBinomial), ("linear", Pattern::Gather)]),
    (Operation::Scatter, &[("binomial", Pattern::ScatterBinomial), ("linear", Pattern::Scatter)]),
    (Operation::ReduceScatter, &[("ring", Pattern::ReduceScatterRing)]),
];

fn there() -> String {
    let mut text = String::new();
    for (index, (operation, algorithms)) in ALGORITHMS.iter().enumerate() {
        let names: Vec<&str> = algorithms.iter().map(|algorithm| algorithm.0).collect();
        let comma = if index > 0 { ", " } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{}={}", operation.name(), names.join("|"));
    }
    text
}

impl std::str::FromStr for Collectives {
    type Err = ChoiceError;

    /// Parses `allreduce=ring,bcast=binomial`.
    fn from_str(text: &str) -> Result<Collectives, ChoiceError> {
        let mut chosen = BTreeMap::new();
        for word in text.split(',') {
            let wrong = |problem| ChoiceError { word: word.into(), problem };
            let (collective, algorithm) = word.split_once('=').ok_or(wrong("say COLLECTIVE=ALGORITHM"))?;
            let row = ALGORITHMS.iter().find(|row| row.0.name() == collective);
            let (operation, algorithms) = row.ok_or(wrong("no such collective"))?;
            let found = algorithms.iter().find(|row| row.0 == algorithm);
            chosen.insert(*operation, found.ok_or(wrong("no such algorithm"))?.1);
        }
        Ok(Collectives(chosen))
    }
}

impl Collectives {
    /// Returns the pattern of a collective of `bytes` bytes (as in its call) on `ranks` ranks. The size limits are
    /// those of MPICH (Thakur, Rabenseifner, Gropp 2005).
    pub(crate) fn pattern(&self, operation: Operation, bytes: u64, ranks: u32) -> Pattern {
        const KIB: u64 = 1024;
        let chosen = |like: Operation, usual: Pattern| self.0.get(&like).copied().unwrap_or(usual);
        match operation {
            Operation::Barrier => Pattern::Dissemination,
            Operation::Bcast if bytes < 12 * KIB || ranks < 8 => chosen(operation, Pattern::Bcast),
            Operation::Bcast => chosen(operation, Pattern::BcastScatterAllgather),
            Operation::Reduce => Pattern::Reduce,
            Operation::Allreduce if bytes <= 2 * KIB => chosen(operation, Pattern::AllreduceRecursiveDoubling),
            Operation::Allreduce => chosen(operation, Pattern::AllreduceRabenseifner),
            Operation::Scan | Operation::Exscan => Pattern::Scan,
            Operation::Allgather if bytes.saturating_mul(ranks.into()) < 512 * KIB => {
                chosen(operation, Pattern::AllgatherBruck)
            }
            Operation::Allgather => chosen(operation, Pattern::AllgatherRing),
            Operation::Allgatherv => Pattern::AllgatherRing,
            Operation::Alltoall if bytes > 32 * KIB => chosen(operation, Pattern::AlltoallPairwise),
            Operation::Alltoall | Operation::Alltoallv => chosen(Operation::Alltoall, Pattern::Alltoall),
            Operation::Gather => chosen(operation, Pattern::GatherBinomial),
            Operation::Scatter => chosen(operation, Pattern::ScatterBinomial),
            Operation::Gatherv => Pattern::Gather,
            Operation::Scatterv => Pattern::Scatter,
            Operation::ReduceScatterBlock | Operation::ReduceScatter => Pattern::ReduceScatterRing,
            // The trace lists its messages individually.
            Operation::Neighbor => Pattern::Alltoall,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_replace_the_usual_algorithm() {
        let usual = Collectives::default();
        assert_eq!(usual.pattern(Operation::Allreduce, 8, 16), Pattern::AllreduceRecursiveDoubling);
        assert_eq!(usual.pattern(Operation::Allreduce, 4096, 16), Pattern::AllreduceRabenseifner);
        let chosen: Collectives = "allreduce=ring,alltoall=pairwise".parse().unwrap();
        assert_eq!(chosen.pattern(Operation::Allreduce, 8, 16), Pattern::AllreduceRing);
        assert_eq!(chosen.pattern(Operation::Alltoallv, 8, 16), Pattern::AlltoallPairwise);
        assert_eq!(chosen.pattern(Operation::Bcast, 8, 16), Pattern::Bcast);
    }

    #[test]
    fn wrong_choices_are_named() {
        for (text, error) in [
            ("allreduce", "allreduce: say COLLECTIVE=ALGORITHM; there are: barrier=dissemination, "),
            ("reduceall=ring", "reduceall=ring: no such collective; there are: "),
            ("bcast=ring", "bcast=ring: no such algorithm; there are: "),
        ] {
            let found = text.parse::<Collectives>().unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
