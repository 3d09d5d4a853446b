// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal run nic`

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use abi::device::image::SECTION;
use goal::{RunProgress, Schedule};
use goal_cards::World;
use machine::Machine;
use nic::api::MAX_VOLATILE_SIZE;
use nic::{CardModel, CardProgram, DeviceProgram, HandlerStats};
use object::{Object, ObjectSection};
use serde_json::{Map, Value, json};
use sim::noise::Noise;
use sim::trace::Trace;

use super::super::error::GoalError;
use super::common::{Common, Eager, Network};
use super::report::Report;
use command::card_messages;
use command::noise;
use command::units::json_ns;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    threshold: Eager,
    /// Size of the largest message that the CPU injects with the descriptor, so that the card does not read it from memory
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=MAX_VOLATILE_SIZE))]
    inject: u64,
    /// Let waiting CPUs poll, as in MPIs, and notice messages at their next poll instead of at once
    #[arg(
        long,
        long_help = "Let waiting CPUs poll, as in MPIs, and notice messages at their next poll instead of at once.\n\n\
        A poll takes host.poll, and the first begins when the CPU begins to wait. Operations that CPUs complete for rdma cards do not \
        wait for a poll."
    )]
    polling: bool,
    /// Write a timeline of CPUs and cards for Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Program or shared library made by spincc with the handlers that the schedule names
    #[arg(long, value_name = "FILE")]
    device: Option<PathBuf>,
    #[command(flatten)]
    noise: noise::Arguments,
}

/// Executes a schedule.
pub fn run(schedule: &Schedule, arguments: &Arguments, trace: Trace) -> Result<Report, GoalError> {
    let (common, eager) = (&arguments.common, arguments.threshold.eager);
    let machine = common.machine_or_default(Network::OfMachine)?;
    let model = CardModel::new(machine)?;
    let machine = model.machine();
    let program = match &arguments.device {
        Some(file) => Some(device(file, machine)?),
        None => None,
    };
    let noise = arguments.noise.noise();
    let parameters = parameters(machine, arguments, noise.as_ref());
    let progress = RunProgress::default();
    let (outcome, took) = common.timed(schedule, &progress, || {
        let mut world = World::new(
            schedule,
            model,
            program,
            eager,
            trace,
            card_messages::listener("spinkit goal", false, Rc::default()),
        )?;
        world.set_inject(arguments.inject);
        if arguments.polling {
            world.set_polling();
        }
        world.report_progress(progress.clone());
        if let Some(noise) = &noise {
            world.set_noise(noise);
        }
        let outcome = world.run();
        outcome.map(|outcome| (outcome, world))
    });
    let (outcome, world) = outcome.map_err(|error| GoalError::run(&common.file, error))?;
    match &arguments.trace {
        Some(path) => world.finish_trace().map_err(GoalError::write(path))?,
        // This process ends soon, which frees the memory of all cards at once, faster than piece by piece.
        None => std::mem::forget(world),
    }
    let details = &outcome.details;
    if details.dropped > 0 {
        eprintln!("spinkit goal: warning: {} messages found no entry and were dropped", details.dropped);
    }
    if details.untriggered > 0 {
        eprintln!("spinkit goal: warning: {} triggered operations never happened", details.untriggered);
    }
    let handlers: Map<String, Value> =
        details.handlers.iter().map(|(name, handler)| (name.clone(), handler_report(handler))).collect();
    let more = json!({
        "last_ns": json_ns(details.last),
        "messages": details.messages,
        "packets": details.packets,
        "bytes": details.bytes,
        "dropped_messages": details.dropped,
        "untriggered_operations": details.untriggered,
        "simulation_steps": details.steps,
        "handlers": handlers,
    });
    let calls: u64 = details.handlers.values().map(|handler| handler.calls).sum();
    Ok(Report {
        model: "nic",
        parameters,
        events: outcome.events,
        ends: outcome.ends,
        took,
        more: if let Value::Object(more) = more { more } else { Map::new() },
        lines: vec![
            ("cards", details.last.to_string()),
            ("messages", details.messages.to_string()),
            ("handlers", format!("{calls} calls")),
        ],
    })
}

fn parameters(machine: &Machine, arguments: &Arguments, noise: Option<&Noise>) -> Value {
    let described = machine
        .describe()
        .into_iter()
        .map(|(key, value, unit)| (key.to_owned(), json!({ "value": value, "unit": unit })));
    let mut parameters: Map<String, Value> = described.collect();
    parameters.insert("machine".into(), machine.name.clone().into());
    parameters.insert("S_bytes".into(), arguments.threshold.eager.into());
    parameters.insert("inject_bytes".into(), arguments.inject.into());
    parameters.insert("polling".into(), arguments.polling.into());
    parameters.insert("noise".into(), noise::describe(noise));
    Value::Object(parameters)
}

fn handler_report(handler: &HandlerStats) -> Value {
    json!({
        "calls": handler.calls,
        "instructions": handler.instructions,
        "cycles": handler.cycles,
        "min_cycles": handler.min_cycles,
        "max_cycles": handler.max_cycles,
        "occupancy_ns": json_ns(handler.occupancy),
        "bytes": handler.bytes,
        "puts": handler.puts,
        "dmas": handler.dmas,
    })
}

/// Reads the device program of a file made by spincc.
fn device(file: &Path, machine: &Machine) -> Result<Rc<CardProgram>, GoalError> {
    if !machine.nic.runs_handlers() {
        return Err(GoalError::Usage(
            "--device: the cards of this machine have no HPUs (nic.kind = \"spin\" has)".into(),
        ));
    }
    let bad = |reason: String| GoalError::Device { file: file.to_owned(), reason };
    let bytes = fs::read(file).map_err(|error| bad(error.to_string()))?;
    let object = object::File::parse(&*bytes).map_err(|error| bad(error.to_string()))?;
    let section = object.section_by_name(SECTION);
    let section =
        section.ok_or_else(|| bad("it has no handlers; link it with spincc, as a program or with -shared".into()))?;
    let image = section.data().map_err(|error| bad(error.to_string()))?;
    let program = DeviceProgram::from_image(image, 0, &machine.hpu.kind).map_err(|error| bad(error.to_string()))?;
    CardProgram::new(program, machine).map_err(|error| bad(error.to_string()))
}
