// SPDX-License-Identifier: Apache-2.0
//! Compiles the card side of a program: its sources and the runtime of `sdk/pspin`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};

use super::words::Line;
use command::sdk::Sdk;
use spincc::kind;
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
    // The cores load and store words at any address, and the fields of packed headers are words, which the compiler
    // would otherwise load byte by byte. With this feature the published ping-pong takes the published 34 cycles,
    // otherwise 52.
    let cpu = format!("-mcpu={}+unaligned_scalar_mem", kind.cpu);
    let target = Target {
        compile: &kind.compile_target,
        link: &kind.link_target,
        flags: std::iter::once(cpu).chain(kind.flags.iter().cloned()).collect(),
        runtime: ["start.S", "io.c", "library.c"].map(|name| Path::new("runtime/src").join(name)).to_vec(),
        script: "linker/pspin.ld",
        link_flags: &["-Wl,-z,max-page-size=16"],
        position: "-fno-pic",
    };
    let elf = link(&tools, &target, &line)?;
    device::check_sizes(kind, &elf)?;
    device::check_loads(kind, &elf)?;
    output::write(&line.output, |out| std::io::Write::write_all(out, &elf)).map_err(Error::write(&line.output))
}

/// Compiles and links a program for this computer. Returns the executable, whose pointers have 32 bits (x32).
///
/// # Errors
/// When a source does not compile, or the program does not fit.
pub fn native(line: &Line) -> Result<Vec<u8>> {
    let tools = Tools::new(Sdk::find()?, line.is_verbose)?;
    let runtime = ["native/native.c", "runtime/src/io.c", "runtime/src/library.c"].map(PathBuf::from).to_vec();
    let target = Target {
        compile: "x86_64-linux-muslx32",
        link: "x86_64-linux-muslx32",
        flags: ["-mcpu=native", "-DSPIN_NATIVE"].map(str::to_owned).to_vec(),
        runtime,
        script: "linker/native.ld",
        link_flags: &["-nostdlib", "-Wl,-z,max-page-size=4096"],
        // Required by the compiler for these pointers, although the linker fixes all addresses.
        position: "-fpie",
    };
    link(&tools, &target, line)
}

/// Target of a compilation.
struct Target<'a> {
    compile: &'a str,
    link: &'a str,
    flags: Vec<String>,
    /// Sources of the runtime, in `sdk/pspin/rt`.
    runtime: Vec<PathBuf>,
    /// Linker script in that folder.
    script: &'a str,
    link_flags: &'a [&'a str],
    /// Option for position-independent code.
    position: &'a str,
}

/// Compiles the runtime and the sources of the program `line`, and links them.
fn link(tools: &Tools, target: &Target<'_>, line: &Line) -> Result<Vec<u8>> {
    let own = folder(&tools.listed);
    let shared = tools.listed.device_dir().join("runtime/memory.c");
    let sources: Vec<PathBuf> = target.runtime.iter().map(|name| own.join(name)).chain([shared]).collect();
    let all: Vec<(&PathBuf, Option<&Line>)> = sources
        .iter()
        .map(|source| (source, None))
        .chain(line.sources.iter().map(|source| (source, Some(line))))
        .collect();
    // The linker script knows the runtime by its name.
    let object = |index: usize, source: &Path| {
        let name = source.file_stem().unwrap_or_default().to_string_lossy();
        tools.temp_path(if index < sources.len() { format!("runtime-{name}.o") } else { format!("{index}.o") })
    };
    std::thread::scope(|scope| {
        let jobs = all.iter().enumerate().map(|(index, (source, line))| {
            let object = object(index, source);
            scope.spawn(move || one(tools, target, *line, source, &object))
        });
        let running: Vec<_> = jobs.collect();
        running.into_iter().try_for_each(|job| job.join().expect("compiler threads do not panic"))
    })?;
    let mut command = cc(tools, target, target.link)?;
    command.args(["-O3", "-static"]).args(target.link_flags);
    command.arg(format!("-Wl,-T,{}", own.join(target.script).display()));
    command.args(line.flags.iter().filter(|flag| flag.to_string_lossy().starts_with("-flto")));
    command.args(all.iter().enumerate().map(|(index, (source, _))| object(index, source)));
    let program = tools.temp_path("program.elf");
    tools.run(command.arg("-o").arg(&program))?;
    let elf = std::fs::read(&program).map_err(Error::read(&program))?;
    let lost = lost_handlers(&line.sources, &elf)?;
    if lost.is_empty() {
        return Ok(elf);
    }
    // Link-time optimisation drops handlers that no function names, although drivers find them by name.
    command.args(lost.iter().map(|name| format!("-Wl,-u,{name}")));
    tools.run(&mut command)?;
    std::fs::read(&program).map_err(Error::read(&program))
}

/// Returns the handlers (`__handler__`) of the sources that a linked program lacks.
fn lost_handlers(sources: &[PathBuf], elf: &[u8]) -> Result<Vec<String>> {
    let Ok(file) = object::File::parse(elf) else { return Ok(Vec::new()) };
    let known: BTreeSet<&str> = file.symbols().filter_map(|symbol| symbol.name().ok()).collect();
    let mut lost = Vec::new();
    for source in sources {
        let text = std::fs::read(source).map_err(Error::read(source))?;
        let text = String::from_utf8_lossy(&text);
        for declaration in text.split("__handler__").skip(1) {
            let name = declaration.split('(').next().and_then(|before| before.split_whitespace().last());
            let name = name.unwrap_or_default().trim_start_matches('*');
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if is_name && !known.contains(name) {
                lost.push(name.to_owned());
            }
        }
    }
    Ok(lost)
}

fn folder(sdk: &Sdk) -> PathBuf {
    sdk.library_dir().join("pspin/rt")
}

fn cc(tools: &Tools, target: &Target<'_>, triple: &str) -> Result<Command> {
    let mut command = tools.zig()?;
    command.args(["cc", "-target", triple]).args(&target.flags);
    Ok(command)
}

/// Compiles a source of the program `line`, or one of the runtime.
fn one(tools: &Tools, target: &Target<'_>, line: Option<&Line>, source: &Path, object: &Path) -> Result<()> {
    let mut command = cc(tools, target, target.compile)?;
    command.args([
        "-g",
        // Addresses are fixed, nothing unwinds, and checks that need a run-time library are disabled.
        target.position,
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
        None => {
            let include = folder(&tools.listed).join("runtime/include");
            command.args(["-O2", "-ffreestanding", "-fno-builtin"]).arg("-isystem").arg(include);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is no program loses nothing, and neither do sources without handlers.
    #[test]
    fn only_missing_handlers_are_linked_again() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("h.c");
        std::fs::write(&source, "__handler__ void one_ph(handler_args_t *a) {}\nvoid other(void) {}\n").unwrap();
        assert!(lost_handlers(std::slice::from_ref(&source), b"text").unwrap().is_empty());
        let elf = object::write::Object::new(
            object::BinaryFormat::Elf,
            object::Architecture::Riscv32,
            object::Endianness::Little,
        );
        assert_eq!(lost_handlers(&[source], &elf.write().unwrap()).unwrap(), ["one_ph"]);
    }
}
