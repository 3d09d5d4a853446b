// SPDX-License-Identifier: Apache-2.0
//! A step of the training of a large language model with data, tensor, pipeline and expert parallelism.
//!
//! Sizes and schedule are those of Megatron-LM (Narayanan et al., SC'21): `docs/workloads.md` lists them. CPU 0 of a rank
//! executes messages, CPU 1 the computation of its accelerator.

use goal::generate::SpecError;
use goal::{Action, Builder, MAX_CALC_NS, MAX_RANKS, Schedule, Wait};
use thiserror::Error;

use crate::collective::{Call, Collectives, Operation, join};
use crate::switches::Switches;

/// CPU of the accelerator's computation.
const ACCELERATOR: u8 = 1;

/// Matching spaces of the groups; groups of the same kind are disjoint. Messages between stages have space 0.
const TENSOR: u16 = 1;
const DATA: u16 = 2;
const EXPERT: u16 = 3;
const EXPERT_DATA: u16 = 4;

/// Shape of the model and of its distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Llm {
    /// Copies of the model, which train with different data.
    pub data: u32,
    /// Ranks that share each layer.
    pub tensor: u32,
    /// Stages of consecutive layers.
    pub pipeline: u32,
    /// Ranks among the copies that share the experts of a layer; a divisor of `data`.
    pub expert: u32,
    /// Layers of the model.
    pub layers: u32,
    /// Hidden size.
    pub hidden: u64,
    /// Tokens of a sequence.
    pub sequence: u64,
    /// Sequences of a micro-batch.
    pub micro_batch: u64,
    /// Micro-batches of a step, for each copy of the model.
    pub micro_batches: u32,
    /// Entries of the vocabulary.
    pub vocabulary: u64,
    /// Experts of a layer; 1 for a dense model.
    pub experts: u64,
    /// Experts that process a token.
    pub top_k: u64,
    /// Bytes of an activation.
    pub activation_bytes: u64,
    /// Bytes of a gradient.
    pub gradient_bytes: u64,
    /// Floating-point operations of an accelerator in a nanosecond.
    pub operations_per_ns: f64,
    /// Algorithms of collectives.
    pub collectives: Collectives,
}

impl Default for Llm {
    /// Returns a dense model of one layer on one rank.
    fn default() -> Llm {
        Llm {
            data: 1,
            tensor: 1,
            pipeline: 1,
            expert: 1,
            layers: 1,
            hidden: 4096,
            sequence: 2048,
            micro_batch: 1,
            micro_batches: 1,
            vocabulary: 51_200,
            experts: 1,
            top_k: 1,
            activation_bytes: 2,
            gradient_bytes: 2,
            operations_per_ns: 400_000.0,
            collectives: Collectives::default(),
        }
    }
}

/// Error of an impossible model.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LlmError {
    /// A number is zero, or not divisible.
    #[error("{0}")]
    Shape(String),
    /// A collective cannot be generated.
    #[error(transparent)]
    Collective(#[from] SpecError),
    /// The schedule is too large.
    #[error(transparent)]
    Build(#[from] goal::BuildError),
}

/// Sizes of a model on one rank, in bytes and operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Vector of an all-reduce among tensor-parallel ranks, two for each layer and direction.
    pub tensor_bytes: u64,
    /// Message between stages, for each micro-batch and direction.
    pub stage_bytes: u64,
    /// Data that a rank sends in an all-to-all of experts, two for each layer and direction.
    pub expert_bytes: u64,
    /// Gradients of a layer that all copies share.
    pub layer_gradient_bytes: u64,
    /// Gradients of the experts of a layer.
    pub expert_gradient_bytes: u64,
    /// Gradients of the embedding, on the first and the last stage.
    pub embedding_gradient_bytes: u64,
    /// Operations of half a layer in the forward direction; twice as many backward.
    pub half_layer_operations: [u64; 2],
    /// Operations of the logits, on the last stage.
    pub logit_operations: u64,
}

impl Llm {
    /// Returns the number of ranks, without switches.
    pub fn ranks(&self) -> u64 {
        u64::from(self.data) * u64::from(self.tensor) * u64::from(self.pipeline)
    }

    /// Returns the sizes on a rank.
    pub fn sizes(&self) -> Sizes {
        let product = |factors: &[u64]| factors.iter().fold(1u64, |product, factor| product.saturating_mul(*factor));
        let tokens = product(&[self.sequence, self.micro_batch]);
        let (hidden, tensor) = (self.hidden, u64::from(self.tensor));
        let activations = product(&[tokens, hidden, self.activation_bytes]);
        let local_experts = self.experts / u64::from(self.expert);
        let attention =
            product(&[8, tokens, hidden, hidden]).saturating_add(product(&[4, tokens, self.sequence, hidden]));
        let is_dense = self.experts == 1;
        let gradients = |parameters: u64| product(&[parameters, self.gradient_bytes]) / tensor;
        let square = product(&[hidden, hidden]);
        Sizes {
            tensor_bytes: activations,
            stage_bytes: activations / tensor,
            expert_bytes: if is_dense { 0 } else { product(&[activations, self.top_k]) },
            layer_gradient_bytes: gradients(square.saturating_mul(if is_dense { 12 } else { 4 })),
            expert_gradient_bytes: if is_dense { 0 } else { gradients(product(&[8, square, local_experts])) },
            embedding_gradient_bytes: gradients(product(&[self.vocabulary, hidden])),
            half_layer_operations: [
                attention / tensor,
                product(&[16, tokens, square, if is_dense { 1 } else { self.top_k }]) / tensor,
            ],
            logit_operations: product(&[2, tokens, hidden, self.vocabulary]) / tensor,
        }
    }

    fn check(&self) -> Result<(), LlmError> {
        let wrong = |problem: String| Err(LlmError::Shape(problem));
        let counts = [
            ("--dp", u64::from(self.data)),
            ("--tp", self.tensor.into()),
            ("--pp", self.pipeline.into()),
            ("--ep", self.expert.into()),
            ("--layers", self.layers.into()),
            ("--hidden", self.hidden),
            ("--seq", self.sequence),
            ("--micro-batch", self.micro_batch),
            ("--micro-batches", self.micro_batches.into()),
            ("--vocab", self.vocabulary),
            ("--experts", self.experts),
            ("--top-k", self.top_k),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return wrong(format!("{name} is at least 1"));
        }
        let ranks =
            u32::try_from(self.ranks()).map_or(self.ranks(), |ranks| self.collectives.switches(ranks).all_ranks());
        if ranks > MAX_RANKS.into() {
            return wrong(format!("{ranks} ranks: at most {MAX_RANKS}"));
        }
        for (whole, whole_name, part, part_name) in [
            (u64::from(self.layers), "--layers", u64::from(self.pipeline), "--pp"),
            (self.data.into(), "--dp", self.expert.into(), "--ep"),
            (self.experts, "--experts", self.expert.into(), "--ep"),
            (self.hidden, "--hidden", self.tensor.into(), "--tp"),
        ] {
            if whole % part != 0 {
                return wrong(format!("{whole_name} {whole} is not divisible by {part_name} {part}"));
            }
        }
        if self.top_k > self.experts {
            return wrong(format!("--top-k {} is more than --experts {}", self.top_k, self.experts));
        }
        match self.operations_per_ns.is_finite() && self.operations_per_ns > 0.0 {
            true => Ok(()),
            false => wrong("--tflops is above 0".into()),
        }
    }

    /// Generates the schedule of a step.
    ///
    /// # Errors
    /// See [`LlmError`].
    pub fn generate(&self) -> Result<Schedule, LlmError> {
        self.check()?;
        let ranks = u32::try_from(self.ranks()).unwrap_or(MAX_RANKS);
        let mut switches = self.collectives.switches(ranks);
        let mut builder = Builder::new(u32::try_from(switches.all_ranks()).unwrap_or(MAX_RANKS));
        let sizes = self.sizes();
        for rank in 0..ranks {
            builder.begin_rank(rank);
            Rank::new(self, &sizes, rank, &mut switches, &mut builder).step()?;
            builder.end_rank()?;
        }
        switches.add(&mut builder)?;
        Ok(builder.finish()?)
    }
}

/// Group of ranks, and this rank's index in it.
struct Group {
    members: Vec<u32>,
    me: u32,
    space: u16,
    calls: u32,
}

/// One rank under construction.
struct Rank<'a> {
    model: &'a Llm,
    sizes: &'a Sizes,
    switches: &'a mut Switches,
    builder: &'a mut Builder,
    rank: u32,
    stage: u32,
    tensor: Group,
    data: Group,
    expert: Group,
    expert_data: Group,
    /// Ends of gradients' collectives.
    gradients: Vec<u32>,
}

impl<'a> Rank<'a> {
    fn new(
        model: &'a Llm,
        sizes: &'a Sizes,
        rank: u32,
        switches: &'a mut Switches,
        builder: &'a mut Builder,
    ) -> Rank<'a> {
        // Tensor-parallel ranks are neighbours, then the copies, then the stages.
        let (tensor, data) = (model.tensor, model.data);
        let (in_tensor, copy, stage) = (rank % tensor, rank / tensor % data, rank / tensor / data);
        let base = stage * tensor * data;
        let at = |copy: u32, tensor_rank: u32| base + copy * tensor + tensor_rank;
        let (in_expert, expert_group) = (copy % model.expert, copy / model.expert);
        let group = |members: Vec<u32>, me: u32, space: u16| Group { members, me, space, calls: 0 };
        Rank {
            model,
            sizes,
            switches,
            builder,
            rank,
            stage,
            tensor: group((0..tensor).map(|other| at(copy, other)).collect(), in_tensor, TENSOR),
            data: group((0..data).map(|other| at(other, in_tensor)).collect(), copy, DATA),
            expert: group(
                (0..model.expert).map(|other| at(expert_group * model.expert + other, in_tensor)).collect(),
                in_expert,
                EXPERT,
            ),
            expert_data: group(
                (0..data / model.expert).map(|other| at(other * model.expert + in_expert, in_tensor)).collect(),
                expert_group,
                EXPERT_DATA,
            ),
            gradients: Vec::new(),
        }
    }

    /// Adds the step: one forward and one backward pass alternate once the pipeline is full (1F1B).
    fn step(&mut self) -> Result<(), LlmError> {
        let batches = self.model.micro_batches;
        let warm_up = (self.model.pipeline - 1 - self.stage).min(batches);
        let mut last = Vec::new();
        for batch in 0..warm_up {
            last = self.forward(batch, last)?;
        }
        for batch in warm_up..batches {
            last = self.forward(batch, last)?;
            last = self.backward(batch - warm_up, last)?;
        }
        for batch in batches - warm_up..batches {
            last = self.backward(batch, last)?;
        }
        Ok(())
    }

    fn layers(&self) -> u32 {
        self.model.layers / self.model.pipeline
    }

    fn forward(&mut self, batch: u32, last: Vec<u32>) -> Result<Vec<u32>, LlmError> {
        let mut last = self.receive_from_stage(batch, false, last)?;
        for _ in 0..self.layers() {
            for half in 0..2 {
                last = self.half_layer(half, 1, last)?;
            }
        }
        if self.stage + 1 == self.model.pipeline {
            return self.compute(self.sizes.logit_operations, last);
        }
        self.send_to_stage(batch, false, &last)?;
        Ok(last)
    }

    fn backward(&mut self, batch: u32, last: Vec<u32>) -> Result<Vec<u32>, LlmError> {
        let is_last_batch = batch + 1 == self.model.micro_batches;
        let mut last = self.receive_from_stage(batch, true, last)?;
        if self.stage + 1 == self.model.pipeline {
            last = self.compute(self.sizes.logit_operations.saturating_mul(2), last)?;
        }
        for _ in 0..self.layers() {
            for half in [1, 0] {
                last = self.half_layer(half, 2, last)?;
            }
            if is_last_batch {
                self.reduce_gradients(self.sizes.layer_gradient_bytes, &last)?;
                if self.sizes.expert_gradient_bytes > 0 {
                    let bytes = self.sizes.expert_gradient_bytes;
                    let ends = self.collective(|rank| &mut rank.expert_data, Operation::AllReduce, bytes, &last)?;
                    self.gradients.extend(ends);
                }
            }
        }
        if self.stage > 0 {
            self.send_to_stage(batch, true, &last)?;
        }
        if is_last_batch && (self.stage == 0 || self.stage + 1 == self.model.pipeline) {
            self.reduce_gradients(self.sizes.embedding_gradient_bytes, &last)?;
        }
        Ok(last)
    }

    /// Adds an all-reduce of gradients, beside which computation continues.
    fn reduce_gradients(&mut self, bytes: u64, after: &[u32]) -> Result<(), LlmError> {
        let ends = self.collective(|rank| &mut rank.data, Operation::AllReduce, bytes, after)?;
        self.gradients.extend(ends);
        Ok(())
    }

    /// Adds attention (`half` 0) or MLP (1) of a layer, with `passes` times the forward operations.
    fn half_layer(&mut self, half: usize, passes: u64, last: Vec<u32>) -> Result<Vec<u32>, LlmError> {
        let is_expert = half == 1 && self.sizes.expert_bytes > 0;
        let exchange = |rank: &mut Self, last: Vec<u32>| match is_expert {
            true => rank.collective(|rank| &mut rank.expert, Operation::AllToAll, rank.sizes.expert_bytes, &last),
            false => Ok(last),
        };
        let last = exchange(self, last)?;
        let last = self.compute(self.sizes.half_layer_operations[half].saturating_mul(passes), last)?;
        let last = exchange(self, last)?;
        self.collective(|rank| &mut rank.tensor, Operation::AllReduce, self.sizes.tensor_bytes, &last)
    }

    fn compute(&mut self, operations: u64, after: Vec<u32>) -> Result<Vec<u32>, LlmError> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; larger times saturate")]
        let ns = (operations as f64 / self.model.operations_per_ns).round() as u64;
        Ok(vec![self.add(Action::Calc(ns.min(MAX_CALC_NS)), ACCELERATOR, &after)?])
    }

    fn add(&mut self, action: Action, cpu: u8, after: &[u32]) -> Result<u32, LlmError> {
        let op = self.builder.add(action, cpu, 0)?;
        after.iter().for_each(|earlier| self.builder.depend(op, *earlier, Wait::Done));
        Ok(op)
    }

    /// Adds the receive of a micro-batch from the neighbouring stage, which computation waits for.
    fn receive_from_stage(&mut self, batch: u32, backward: bool, last: Vec<u32>) -> Result<Vec<u32>, LlmError> {
        let Some(from) = self.neighbour(!backward) else { return Ok(last) };
        let (bytes, tag) = (self.sizes.stage_bytes, batch * 2 + u32::from(backward));
        let recv = self.add(Action::Recv { bytes, from: Some(from), tag: Some(tag), space: 0 }, 0, &[])?;
        Ok(join([last, vec![recv]].concat(), self.builder)?)
    }

    fn send_to_stage(&mut self, batch: u32, backward: bool, after: &[u32]) -> Result<(), LlmError> {
        let Some(to) = self.neighbour(backward) else { return Ok(()) };
        let (bytes, tag) = (self.sizes.stage_bytes, batch * 2 + u32::from(backward));
        self.add(Action::Send { bytes, to, tag, space: 0 }, 0, after).map(drop)
    }

    /// Returns the same rank of the previous or the next stage, if any.
    fn neighbour(&self, previous: bool) -> Option<u32> {
        let stride = self.model.tensor * self.model.data;
        match previous {
            true => self.rank.checked_sub(stride),
            false => (self.stage + 1 < self.model.pipeline).then(|| self.rank + stride),
        }
    }

    fn collective(
        &mut self,
        group: impl Fn(&mut Self) -> &mut Group,
        operation: Operation,
        bytes: u64,
        after: &[u32],
    ) -> Result<Vec<u32>, LlmError> {
        let chosen = group(self);
        let (number, me, space) = (chosen.calls, chosen.me, chosen.space);
        chosen.calls += 1;
        let members = std::mem::take(&mut chosen.members);
        let call = Call { operation, bytes, root: 0, members: &members, me, space, number };
        let ends = self.model.collectives.add(&call, after, self.switches, self.builder);
        group(self).members = members;
        Ok(join(ends?, self.builder)?)
    }
}
