// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal gen`

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use goal::generate::{Pattern, Spec, generate};

use super::error::GoalError;
use super::files::{self, Format};
use command::units;

#[derive(Clone, Copy, Debug)]
struct Name(Pattern);

impl ValueEnum for Name {
    fn value_variants<'a>() -> &'a [Name] {
        const ALL: [Name; Pattern::ALL.len()] = {
            let mut all = [Name(Pattern::Bcast); Pattern::ALL.len()];
            let mut index = 0;
            while index < all.len() {
                all[index] = Name(Pattern::ALL[index]);
                index += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The pattern
    #[arg(value_enum)]
    pattern: Name,
    /// Number of ranks
    #[arg(short = 'n', long, value_name = "N")]
    ranks: u32,
    /// Size in bytes of the vector, or of a message in all-to-all, gather, scatter, halo and sweep
    #[arg(long, value_name = "BYTES", default_value_t = 1)]
    size: u64,
    /// Root of broadcast, reduce, gather and scatter
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    root: u32,
    /// Tag of the messages
    #[arg(long, default_value_t = 0)]
    tag: u32,
    /// Computation in ns after each receive, or in each step of halo and sweep
    #[arg(long, value_name = "NS", default_value_t = 0)]
    calc: u64,
    /// Size in bytes of a segment of pipelined broadcasts [default: the whole message]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    segment: Option<u64>,
    /// k of a k-nomial tree
    #[arg(long, value_name = "K", default_value_t = 2)]
    radix: u32,
    /// Grid of halo and sweep, such as 8x4 [default: two dimensions of nearly equal size]
    #[arg(long, value_name = "AxB", value_parser = units::parse_dims)]
    dims: Option<units::Dims>,
    /// Computation in ns of a halo step that overlaps its messages
    #[arg(long, value_name = "NS", default_value_t = 0)]
    overlap: u64,
    /// Post the receives of a halo step before the computation of the previous step
    #[arg(long)]
    early_receives: bool,
    /// Make the grid of a halo exchange a torus
    #[arg(long)]
    periodic: bool,
    /// Number of steps of halo and sweep
    #[arg(long, value_name = "N", default_value_t = 1)]
    iterations: u32,
    /// The file to write, or `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Format to write [default: binary for .bin, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

/// Executes the command.
pub fn run(arguments: &Arguments) -> Result<(), GoalError> {
    let spec = Spec {
        ranks: arguments.ranks,
        bytes: arguments.size,
        root: arguments.root,
        tag: arguments.tag,
        calc_ns: arguments.calc,
        segment: arguments.segment.unwrap_or(0),
        radix: arguments.radix,
        dims: arguments.dims.as_ref().map_or(Vec::new(), |dims| dims.0.clone()),
        overlap_ns: arguments.overlap,
        early_receives: arguments.early_receives,
        periodic: arguments.periodic,
        iterations: arguments.iterations,
    };
    let schedule = generate(arguments.pattern.0, &spec)?;
    let format = arguments.format.or_else(|| Format::of(&arguments.out)).unwrap_or(Format::Text);
    files::save(&schedule, &arguments.out, format)
}
