// SPDX-License-Identifier: Apache-2.0
//! Compiles the card side of a program: its sources and the runtime of `sdk/pspin`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::words::Line;
use command::sdk::Sdk;
use spincc::kind::{self, Kind};
use spincc::tool::Tools;
use spincc::{Error, Result, device};

/// Compiles and links a program.
///
/// # Errors
/// When a source does not compile, the program does not fit, or a file cannot be read or written.
pub fn compile(line: Line) -> Result<()> {
    let tools = Tools::new(Sdk::find()?, line.is_verbose)?;
    let kinds = kind::choose(kind::installed(&tools.listed.device_dir())?, Some(std::slice::from_ref(&line.kind)))?;
    let kind = &kinds[0];
    let object = |index: usize| tools.temp_path(format!("{index}.o"));
    let sources = runtime(&tools.listed);
    let (own, count) = (sources.len(), sources.len() + line.sources.len());
    std::thread::scope(|scope| {
        let jobs = sources.iter().chain(&line.sources).enumerate().map(|(index, source)| {
            let (tools, line) = (&tools, (index >= own).then_some(&line));
            scope.spawn(move || one(tools, kind, line, source, &object(index)))
        });
        let running: Vec<_> = jobs.collect();
        running.into_iter().try_for_each(|job| job.join().expect("compiler threads do not panic"))
    })?;
    let mut command = cc(&tools, kind, &kind.link_target)?;
    command.args(["-O3", "-static", "-Wl,-z,max-page-size=16"]);
    command.arg(format!("-Wl,-T,{}", folder(&tools.listed).join("linker/pspin.ld").display()));
    command.args(line.flags.iter().filter(|flag| flag.to_string_lossy().starts_with("-flto")));
    command.args((0..count).map(object));
    let program = tools.temp_path("program.elf");
    tools.run(command.arg("-o").arg(&program))?;
    let elf = std::fs::read(&program).map_err(Error::read(&program))?;
    device::check_sizes(kind, &elf)?;
    device::check_loads(kind, &elf)?;
    output::write(&line.output, |out| std::io::Write::write_all(out, &elf)).map_err(Error::write(&line.output))
}

fn folder(sdk: &Sdk) -> PathBuf {
    sdk.library_dir().join("pspin/rt")
}

/// Returns the sources of the runtime.
fn runtime(sdk: &Sdk) -> Vec<PathBuf> {
    let own = folder(sdk).join("runtime/src");
    let shared = sdk.device_dir().join("runtime/memory.c");
    ["start.S", "io.c", "library.c"].iter().map(|name| own.join(name)).chain([shared]).collect()
}

fn cc(tools: &Tools, kind: &Kind, target: &str) -> Result<Command> {
    let mut command = tools.zig()?;
    // The cores load and store words at any address, and the fields of packed headers are words, which the compiler
    // would otherwise load byte by byte. With this feature the published ping-pong takes the published 34 cycles,
    // otherwise 52.
    let cpu = format!("-mcpu={}+unaligned_scalar_mem", kind.cpu);
    command.args(["cc", "-target", target]).arg(cpu).args(&kind.flags);
    Ok(command)
}

/// Compiles a source of the program `line`, or one of the runtime.
fn one(tools: &Tools, kind: &Kind, line: Option<&Line>, source: &Path, object: &Path) -> Result<()> {
    let mut command = cc(tools, kind, &kind.compile_target)?;
    command.args([
        "-g",
        // Addresses are fixed, nothing unwinds, and checks that need a run-time library are disabled.
        "-fno-pic",
        "-fomit-frame-pointer",
        "-fno-stack-protector",
        "-fno-asynchronous-unwind-tables",
        "-fno-sanitize=all",
        "-fno-delete-null-pointer-checks",
        "-fno-strict-return",
        "-mllvm",
        "-trap-unreachable",
    ]);
    match line {
        None => drop(command.args(["-O2", "-ffreestanding", "-fno-builtin"])),
        Some(line) => {
            command.arg("-isystem").arg(folder(&tools.listed).join("runtime/include"));
            command.args([
                // The default of RISC-V GCC.
                "-std=gnu11",
                "-funsigned-char",
                // The compiler of the published programs only warned about these.
                "-Wno-error=implicit-function-declaration",
                "-Wno-error=int-conversion",
                "-Wno-error=incompatible-pointer-types",
                "-Wno-error=return-type",
            ]);
            // zig's -O3 is -O2.
            let is_o3 = line.flags.iter().any(|flag| flag == "-O3");
            command.args(&line.flags).args(if is_o3 { &["-Xclang", "-O3"][..] } else { &[] });
        }
    }
    tools.run(command.arg("-c").arg(source).arg("-o").arg(object))
}
