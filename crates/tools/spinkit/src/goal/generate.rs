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
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    workload: Option<Workload>,
    /// The pattern
    #[arg(value_enum, required = true)]
    pattern: Option<Name>,
    /// Number of ranks
    #[arg(short = 'n', long, value_name = "N", required = true)]
    ranks: Option<u32>,
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

#[derive(Debug, clap::Subcommand)]
enum Workload {
    /// A step of the training of a large language model
    Llm(Llm),
}

/// Options of a training step.
#[derive(Debug, clap::Args)]
struct Llm {
    /// Copies of the model (data parallelism)
    #[arg(long, value_name = "N", default_value_t = 1)]
    dp: u32,
    /// Ranks that share each layer (tensor parallelism)
    #[arg(long, value_name = "N", default_value_t = 1)]
    tp: u32,
    /// Stages of consecutive layers (pipeline parallelism)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pp: u32,
    /// Ranks among the copies that share the experts of a layer (expert parallelism)
    #[arg(long, value_name = "N", default_value_t = 1)]
    ep: u32,
    /// Layers of the model
    #[arg(long, value_name = "N")]
    layers: u32,
    /// Hidden size
    #[arg(long, value_name = "N")]
    hidden: u64,
    /// Tokens of a sequence
    #[arg(long, value_name = "N", default_value_t = 2048)]
    seq: u64,
    /// Sequences of a micro-batch
    #[arg(long, value_name = "N", default_value_t = 1)]
    micro_batch: u64,
    /// Micro-batches of a step, for each copy of the model
    #[arg(long, value_name = "N", default_value_t = 1)]
    micro_batches: u32,
    /// Entries of the vocabulary
    #[arg(long, value_name = "N", default_value_t = 51_200)]
    vocab: u64,
    /// Experts of a layer; 1 is a dense model
    #[arg(long, value_name = "N", default_value_t = 1)]
    experts: u64,
    /// Experts that process a token
    #[arg(long, value_name = "N", default_value_t = 1)]
    top_k: u64,
    /// Bytes of an activation
    #[arg(long, value_name = "BYTES", default_value_t = 2)]
    activation_bytes: u64,
    /// Bytes of a gradient
    #[arg(long, value_name = "BYTES", default_value_t = 2)]
    gradient_bytes: u64,
    /// Rate of an accelerator in 10^12 operations/s, as it is reached
    #[arg(long, value_name = "X", default_value_t = 400.0)]
    tflops: f64,
    /// Algorithms of collectives, such as allreduce=tree,channels=4,chunk=524288 [default: rings, one channel, whole parts]
    #[arg(long, value_name = "KEY=VALUE,…", default_value = "allreduce=ring")]
    collectives: workload::collective::Collectives,
    /// The file to write, or `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Format to write [default: binary for .bin, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

impl Llm {
    fn run(&self) -> Result<(), GoalError> {
        let model = workload::llm::Llm {
            data: self.dp,
            tensor: self.tp,
            pipeline: self.pp,
            expert: self.ep,
            layers: self.layers,
            hidden: self.hidden,
            sequence: self.seq,
            micro_batch: self.micro_batch,
            micro_batches: self.micro_batches,
            vocabulary: self.vocab,
            experts: self.experts,
            top_k: self.top_k,
            activation_bytes: self.activation_bytes,
            gradient_bytes: self.gradient_bytes,
            operations_per_ns: self.tflops * 1e3,
            collectives: self.collectives,
        };
        let format = self.format.or_else(|| Format::of(&self.out)).unwrap_or(Format::Text);
        files::save(&model.generate()?, &self.out, format)
    }
}

/// Executes the command.
pub fn run(arguments: &Arguments) -> Result<(), GoalError> {
    if let Some(Workload::Llm(llm)) = &arguments.workload {
        return llm.run();
    }
    let (Some(pattern), Some(ranks)) = (arguments.pattern, arguments.ranks) else {
        return Err(GoalError::Usage("a pattern and --ranks are needed".into()));
    };
    let spec = Spec {
        ranks,
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
    let schedule = generate(pattern.0, &spec)?;
    let format = arguments.format.or_else(|| Format::of(&arguments.out)).unwrap_or(Format::Text);
    files::save(&schedule, &arguments.out, format)
}
