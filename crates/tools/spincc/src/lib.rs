// SPDX-License-Identifier: Apache-2.0
//! `spincc` is to sPIN what nvcc is to CUDA: it compiles each source for the host with the system's compiler and with
//! zig for every HPU kind, links the host part with `libportals`, and embeds the handlers' device program.
//!
//! * [`options`]: the command line, split for the compilers
//! * [`kind`]: HPU kinds, the folders of `sdk/device`
//! * [`compile`]: one source to a host object with its device objects
//! * [`bundle`]: device objects inside host objects and archives
//! * [`device`]: the device link: limits, handlers, and errors in the user's terms ([`undefined`])
//! * `user_headers`: several user headers in a source with the paper's listings
//! * `unmarked`: functions used as handlers without `__handler`
//! * [`layouts`]: structures shared by host and card, from DWARF
//! * [`image`]: the embedded image (`abi::device::image`)
//! * [`link`]: the host link
//! * `error`: errors of the command
//! * `editor`: flags and `compile_commands.json` for editors
//! * `marks`: data among the code of ARM
//! * [`disassemble`]: a handler's instructions with their source lines

#[macro_use]
extern crate command;

pub mod bundle;
pub mod compile;
pub mod device;
pub mod disassemble;
mod dwarf;
mod editor;
mod ends;
mod error;
pub mod image;
pub mod kind;
pub mod layouts;
pub mod link;
mod marks;
pub mod options;
pub mod tool;
pub mod undefined;
mod unmarked;
mod user_headers;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use command::sdk::Sdk;
pub use error::{Error, Result};
use image::Image;
use options::{Action, Mode, Options};
use tool::Tools;

/// Runs `spincc` with these arguments, without the program's name. The exit status is 0, 1 for a program that does not
/// compile, or 2 for a wrong command line.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Reported) => ExitCode::FAILURE,
        Err(error) => {
            for line in error.to_string().lines() {
                eprintln!("spincc: error: {line}");
            }
            if matches!(error, Error::Usage(_)) { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn run(args: impl Iterator<Item = OsString>) -> Result<()> {
    let options = match options::parse(args)? {
        Action::Help => {
            return print(options::HELP);
        }
        Action::Version => {
            return print(concat!("spincc ", env!("CARGO_PKG_VERSION"), "\n"));
        }
        Action::Cflags => {
            return print(&editor::cflags(&Tools::new(Sdk::find()?, false)?));
        }
        Action::Run(options) => options,
    };
    if let Some(built) = inspected_program(&options)? {
        return inspect(&options, &built);
    }
    let tools = Tools::new(Sdk::find()?, options.verbose)?;
    match options.mode {
        _ if options.compile_commands => editor::compile_commands(&tools, &options),
        Mode::HostOnly => tools.host_only(&options),
        Mode::Compile => compile::to_objects(&tools, &options),
        Mode::Link if options.inspects() => {
            let device = link::device_only(&tools, &options)?;
            inspect(&options, &device)
        }
        Mode::Link => link::program(&tools, &options),
    }
}

/// Returns the image of the program named by `--disassemble` or `--layouts`, or `None` if sources are named.
fn inspected_program(options: &Options) -> Result<Option<Image>> {
    let (true, [options::LinkItem::File(path)]) = (options.inspects(), options.link.as_slice()) else {
        return Ok(None);
    };
    let bytes = std::fs::read(path).map_err(Error::read(path))?;
    Image::of_program(&bytes).map_err(|reason| Error::malformed(path, reason))
}

fn inspect(options: &Options, image: &Image) -> Result<()> {
    if options.layouts {
        print(&(serde_json::to_string_pretty(&image.layouts).expect("layouts are plain data") + "\n"))?;
    }
    if let Some(handler) = &options.disassemble {
        print(&disassemble::image(image, options.kinds.as_deref(), handler.as_deref())?)?;
    }
    Ok(())
}

/// Prints to standard output.
fn print(text: &str) -> Result<()> {
    output::print(text).map_err(Error::write(Path::new("standard output")))
}
