// SPDX-License-Identifier: Apache-2.0
//! Nodes of a trace, with the attributes that schedules need.

use std::path::Path;

use super::error::ChakraError;
use super::proto::{self, Value};
use crate::collective::Operation;

/// Node of a trace.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub id: u64,
    pub name: String,
    /// Nodes that must have ended.
    pub after: Vec<u64>,
    pub duration_ns: u64,
    pub work: Work,
}

/// Work of a node.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// No work.
    Nothing,
    /// Process groups of PyTorch, in JSON.
    Groups(String),
    /// Computation.
    Compute {
        on_cpu: bool,
        operations: u64,
        bytes: u64,
    },
    /// Access to memory outside the rank.
    Memory {
        bytes: u64,
    },
    /// Work that only its duration describes: storage, batch, checkpoint.
    Other(&'static str),
    Send {
        from: Option<u64>,
        to: u64,
        bytes: u64,
        tag: u64,
    },
    Recv {
        from: u64,
        to: Option<u64>,
        bytes: u64,
        tag: u64,
    },
    Collective {
        operation: Operation,
        bytes: u64,
        group: String,
        root: u64,
        involved: Vec<bool>,
    },
}

impl Node {
    /// Converts a message.
    pub fn new(node: proto::Node, path: &Path) -> Result<Node, ChakraError> {
        let name = if node.name.is_empty() { "unnamed".into() } else { node.name.clone() };
        let error = |problem: String| ChakraError::Node { path: path.into(), id: node.id, name: name.clone(), problem };
        let attributes = Attributes(&node.attributes);
        let needed = |name: &str| {
            let value = attributes.whole(name).map_err(error)?;
            value.ok_or_else(|| error(format!("attribute {name} is missing; write the trace again")))
        };
        let or_zero = |name: &str| attributes.whole(name).map(Option::unwrap_or_default).map_err(error);
        let work = match node.kind {
            0 => Work::Nothing,
            1 => match &node.inputs {
                Some(inputs) if inputs.values.contains("pg_name") => Work::Groups(inputs.values.clone()),
                _ => Work::Nothing,
            },
            2 | 3 => Work::Memory { bytes: or_zero("tensor_size")? },
            4 => Work::Compute {
                on_cpu: attributes.truth("is_cpu_op").unwrap_or(false),
                operations: or_zero("num_ops")?,
                bytes: or_zero("tensor_size")?,
            },
            5 => Work::Send {
                from: attributes.whole("comm_src").map_err(error)?,
                to: needed("comm_dst")?,
                bytes: needed("comm_size")?,
                tag: or_zero("comm_tag")?,
            },
            6 => Work::Recv {
                from: needed("comm_src")?,
                to: attributes.whole("comm_dst").map_err(error)?,
                bytes: needed("comm_size")?,
                tag: or_zero("comm_tag")?,
            },
            7 => {
                let operation = match needed("comm_type")? {
                    0 => Operation::AllReduce,
                    1 => Operation::Reduce,
                    2 => Operation::AllGather,
                    3 => Operation::Gather,
                    4 => Operation::Scatter,
                    5 => Operation::Broadcast,
                    6 => Operation::AllToAll,
                    7 | 8 => Operation::ReduceScatter,
                    9 => Operation::Barrier,
                    other => return Err(error(format!("comm_type {other} is no collective of the schema (0 to 9)"))),
                };
                Work::Collective {
                    operation,
                    bytes: if operation == Operation::Barrier { 0 } else { needed("comm_size")? },
                    group: attributes.text("pg_name").unwrap_or_default(),
                    root: or_zero("root")?,
                    involved: attributes.list("involved_dim"),
                }
            }
            8 => Work::Other("storage"),
            9 => Work::Other("batch"),
            10 => Work::Other("checkpoint"),
            other => return Err(error(format!("type {other} is none of the schema's (0 to 10)"))),
        };
        let after = node.ctrl_deps.iter().chain(&node.data_deps).copied().collect();
        let duration_ns = node.duration_micros.checked_mul(1000).filter(|ns| *ns <= goal::MAX_CALC_NS);
        let duration_ns =
            duration_ns.ok_or_else(|| error(format!("{} microseconds are beyond the clock", node.duration_micros)))?;
        Ok(Node { id: node.id, name, after, duration_ns, work })
    }

    /// Returns an error about this node.
    pub fn error(&self, path: &Path, problem: impl Into<String>) -> ChakraError {
        ChakraError::Node { path: path.into(), id: self.id, name: self.name.clone(), problem: problem.into() }
    }
}

struct Attributes<'a>(&'a [proto::Attribute]);

impl Attributes<'_> {
    fn value(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }

    /// Returns a whole number of any type of the schema.
    fn whole(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = match *value {
            Value::Int32(number) | Value::Sint32(number) | Value::Sfixed32(number) => u64::try_from(number).ok(),
            Value::Int64(number) | Value::Sint64(number) | Value::Sfixed64(number) => u64::try_from(number).ok(),
            Value::Uint32(number) | Value::Fixed32(number) => Some(number.into()),
            Value::Uint64(number) | Value::Fixed64(number) => Some(number),
            Value::Double(number) => whole(number),
            Value::Float(number) => whole(number.into()),
            Value::Bool(_) | Value::BoolList(_) | Value::Text(_) => None,
        };
        number.map(Some).ok_or_else(|| format!("attribute {name} is no whole number from 0 to 2^64"))
    }

    fn truth(&self, name: &str) -> Option<bool> {
        match *self.value(name)? {
            Value::Bool(truth) => Some(truth),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    fn list(&self, name: &str) -> Vec<bool> {
        match self.value(name) {
            Some(Value::BoolList(list)) => list.values.clone(),
            _ => Vec::new(),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and in range")]
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..9.0e15).contains(&number)).then_some(number as u64)
}
