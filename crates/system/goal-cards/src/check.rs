// SPDX-License-Identifier: Apache-2.0
//! Checks that the machine supports the CPUs and operations of a schedule, before the run.

use goal::{Action, NicOp, Schedule, Verb};
use machine::Machine;
use nic::CardProgram;

use crate::commands::{MOST, initial_state};
use crate::error::CardError;

/// Checks the CPUs and every operation.
///
/// # Errors
/// Returns the first operation that these cards cannot execute, and the reason.
pub(crate) fn schedule(schedule: &Schedule, machine: &Machine, program: Option<&CardProgram>) -> Result<(), CardError> {
    if schedule.cpus() > machine.host.cores as usize {
        return Err(CardError::Cores { cpus: schedule.cpus(), cores: machine.host.cores });
    }
    for op in 0..schedule.len() as u32 {
        let complaint = match schedule.action(op) {
            _ if schedule.resources(op).1 > 0 => Some(format!("nic {}: a rank has one card", schedule.resources(op).1)),
            Action::Send { bytes, .. } if bytes > MOST => Some("a message has at most 4 GiB".into()),
            Action::Nic(nic) => command(nic, machine, program),
            _ => None,
        };
        if let Some(reason) = complaint {
            return Err(CardError::Operation { operation: schedule.describe(op), reason });
        }
    }
    Ok(())
}

fn command(nic: &NicOp, machine: &Machine, program: Option<&CardProgram>) -> Option<String> {
    let (bytes, carried) = match &nic.verb {
        Verb::Test { .. } => return None,
        Verb::Put { bytes, .. } => (*bytes, 1),
        Verb::Get { bytes, .. } => (*bytes, 0),
        Verb::Append(append) => (append.bytes, nic.args.len()),
    };
    if bytes > MOST {
        return Some("a message or an entry has at most 4 GiB".into());
    }
    if let Some(arg) = nic.args.iter().skip(carried).position(Option::is_some) {
        let arg = arg + carried + 1;
        return Some(match carried {
            0 => format!("arg{arg}: a get carries nothing to handlers"),
            _ => format!("arg{arg}: a put carries one word to handlers, arg1, as its header data"),
        });
    }
    let Verb::Append(append) = &nic.verb else { return None };
    let state = initial_state(nic).len() as u64;
    let Some(first) = append.handlers.iter().flatten().next() else {
        let idle = state > 0 || append.memory.is_some();
        return idle.then(|| "arguments and memory are for handlers, and the entry has none".into());
    };
    if !machine.nic.runs_handlers() {
        return Some(format!(
            "handler '{first}', but the cards of this machine have no HPUs (nic.kind = \"spin\" has)"
        ));
    }
    let Some(program) = program else {
        return Some(format!("handler '{first}', but no device program was given (--device)"));
    };
    if let Some(unknown) =
        append.handlers.iter().flatten().find(|name| program.handlers().all(|other| other != &***name))
    {
        let known: Vec<&str> = program.handlers().collect();
        return Some(format!("the device program has no handler '{unknown}'; it has {}", known.join(", ")));
    }
    let memory = append.memory.unwrap_or(state);
    let limit = u64::from(machine.accelerator.max_initial_state()).min(memory);
    (state > limit).then(|| format!("arguments of {state} bytes do not fit in handler memory of {memory} bytes"))
}
