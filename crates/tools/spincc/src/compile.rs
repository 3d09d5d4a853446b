// SPDX-License-Identifier: Apache-2.0
//! Compiles one source: first for the host, whose compiler's messages the user sees, then for each HPU kind.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};

use super::bundle::{self, Part};
use super::kind::{self, Kind};
use super::layouts::{self, Scope};
use super::options::{Language, Options, Source};
use super::tool::Tools;
use super::{Error, Result, unmarked, user_headers};
use command::listable::Listable;

/// Compiles every source to a host object that contains its device objects (`-c`).
///
/// # Errors
/// When a source does not compile, or a file cannot be read or written.
pub fn to_objects(tools: &Tools, options: &Options) -> Result<()> {
    let kinds = kind::choose(kind::installed(&tools.listed.device_dir())?, options.kinds.as_deref())?;
    for source in &options.sources {
        let object = match &options.output {
            Some(output) => output.clone(),
            None => PathBuf::from(source.path.file_name().unwrap_or_default()).with_extension("o"),
        };
        // A device such as /dev/null can be neither read nor removed.
        let special = output::is_special(&object);
        let built = if special { tools.temp_path("output.o") } else { object.clone() };
        let part = one(tools, options, &kinds, source, &built)?;
        part.attach(tools, &built, options.borrows_debug()).inspect_err(|_| drop(std::fs::remove_file(&built)))?;
        if special {
            let bytes = std::fs::read(&built).map_err(Error::read(&built))?;
            output::write(&object, |out| out.write_all(&bytes)).map_err(Error::write(&object))?;
        }
    }
    Ok(())
}

/// Compiles `source` for the host to `object`, which keeps its debug information, and for the card.
///
/// # Errors
/// When the source does not compile, or a file cannot be read or written.
pub fn one(tools: &Tools, options: &Options, kinds: &[Kind], source: &Source, object: &Path) -> Result<Part> {
    let headers = user_headers(tools, options, source)?;
    tools.run(host(tools, options, source).args(&headers).arg("-o").arg(object))?;
    // Types hidden by the user's flags are read from a second object compiled without them.
    let twin = tools.temp_path("twin.o");
    let visible = if options.opaque_debug { &twin } else { object };
    if options.opaque_debug {
        let mut command = host(tools, options, source);
        command.args(&headers).args(["-w", "-O0", "-g2", "-gno-split-dwarf", "-fno-lto", "-o"]);
        tools.run(command.arg(&twin))?;
    }
    let bytes = std::fs::read(visible).map_err(Error::read(visible))?;
    let file = object::File::parse(&*bytes).map_err(|e| Error::malformed(visible, e))?;
    refuse_unmarked(tools, options, source, &headers, &bytes)?;
    let own = |file: &str| tools.is_users(file);
    let mut part = Part {
        origin: source.path.display().to_string(),
        host_layouts: layouts::read(&bytes, Scope::All, &own).map_err(|reason| Error::malformed(visible, reason))?,
        ..bundle::inspect(&file)
    };

    // All kinds are compiled in parallel.
    let objects: Vec<PathBuf> = kinds.iter().map(|k| tools.temp_path(format!("device.{}.o", k.name))).collect();
    let headers = &headers;
    let outputs: Vec<Result<_>> = std::thread::scope(|scope| {
        let jobs = kinds.iter().zip(&objects);
        let running: Vec<_> = jobs
            .map(|(kind, object)| scope.spawn(move || device(tools, options, kind, source, object, headers)))
            .collect();
        running.into_iter().map(|r| r.join().expect("compiler threads do not panic")).collect()
    });
    let mut warnings = String::new();
    for ((kind, object), output) in kinds.iter().zip(&objects).zip(outputs) {
        let Compiled { accepted, messages } = output?;
        if accepted {
            part.devices.insert(kind.name.clone(), std::fs::read(object).map_err(Error::read(object))?);
            // The compilations for the other kinds print the same.
            if warnings.is_empty() {
                warnings = messages;
            }
        } else if part.has_handlers {
            eprint!("{messages}");
            eprintln!(
                "spincc: note: this is the compilation for the card ({}), where __SPIN_DEVICE__ is defined",
                kind.name
            );
            return Err(Error::Reported);
        } else {
            // A file without handlers need not compile for the card.
            part.devices.clear();
            part.left_out = Some(messages);
            return Ok(part);
        }
    }
    eprint!("{warnings}");
    Ok(part)
}

fn host(tools: &Tools, options: &Options, source: &Source) -> Command {
    let mut command = tools.host(source.language);
    if options.borrows_debug() {
        command.arg("-g");
    }
    command.args(&options.host_flags);
    if options.dependencies {
        // The dependency file names the program, not the temporary object.
        let file = Path::new(source.path.file_name().unwrap_or_default()).with_extension("d");
        let program = options.output.clone().unwrap_or_else(|| "a.out".into());
        command.arg("-MF").arg(file).arg("-MQ").arg(program);
    }
    command.args(["-x", if source.language == Language::C { "c" } else { "c++" }, "-c"]).arg(&source.path);
    command
}

/// Returns the flags for several typedefs of `<spin/paper.h>`'s user header in one source.
fn user_headers(tools: &Tools, options: &Options, source: &Source) -> Result<Vec<String>> {
    let text = std::fs::read(&source.path).map_err(Error::read(&source.path))?;
    if source.language != Language::C || !String::from_utf8_lossy(&text).contains("spin/paper.h") {
        return Ok(vec![]);
    }
    let mut command = tools.host(source.language);
    let mut flags = options.host_flags.iter();
    while let Some(flag) = flags.next() {
        match flag.as_str() {
            "-MF" | "-MT" | "-MQ" => drop(flags.next()),
            _ if flag.starts_with("-M") => {}
            _ => drop(command.arg(flag)),
        }
    }
    command.args(["-w", user_headers::SCAN, "-E", "-x", "c"]).arg(&source.path);
    let output = tools.capture(&mut command)?;
    // The compilation reports the errors of a source that has some.
    Ok(user_headers::flags(&String::from_utf8_lossy(&output.stdout)))
}

/// Refuses functions that are used as handlers but lack `__handler`; `bytes` is the host object with debug information.
fn refuse_unmarked(tools: &Tools, options: &Options, source: &Source, headers: &[String], bytes: &[u8]) -> Result<()> {
    let malformed = |reason| Error::malformed(&source.path, reason);
    let candidates = unmarked::candidates(bytes).map_err(malformed)?;
    if !options.refuses_unmarked || candidates.is_empty() {
        return Ok(());
    }
    let plain = tools.temp_path("unmarked.o");
    let mut command = host(tools, options, source);
    command.args(headers).args(["-w", "-O0", "-ffunction-sections", "-fplt", "-fno-lto", "-o"]);
    tools.run(command.arg(&plain))?;
    let object = std::fs::read(&plain).map_err(Error::read(&plain))?;
    let used = unmarked::taken(&object, &candidates).map_err(malformed)?;
    if used.is_empty() {
        return Ok(());
    }
    Err(Error::Program(used.into_iter().map(unmarked::Function::refusal).collect::<Vec<_>>().join("\n")))
}

/// Outcome of a compilation for the card.
struct Compiled {
    accepted: bool,
    messages: String,
}

/// Compiles for the card.
fn device(
    tools: &Tools,
    options: &Options,
    kind: &Kind,
    source: &Source,
    object: &Path,
    headers: &[String],
) -> Result<Compiled> {
    let mut command = tools.device(kind, source.language, &kind.compile_target)?;
    let host_has = |flag: &str| options.host_flags.iter().any(|given| given == flag);
    let silent = ["-w", "-Wno-format"].into_iter().any(host_has);
    command.args([
        // The host compiler prints the warnings, except for the formats of spin_printf, which <spin.h> enables.
        if silent { "-w" } else { "-Wno-everything" },
        "-fstandalone-debug",
        // Nothing unwinds on the card. With -g, .debug_frame suffices to find the calls that led to a fault.
        "-fno-unwind-tables",
        "-fno-asynchronous-unwind-tables",
        // The link compares the stack frames of functions with the stack.
        "-fstack-size-section",
        // Do not replace printf by simpler functions, so that messages name the user's call.
        "-fno-builtin-printf",
        "-fno-builtin-fprintf",
        "-fno-builtin-puts",
        // zig defines NDEBUG when it optimises; a failed assertion must end the handler.
        "-UNDEBUG",
        // Shared structures store char with the host's signedness.
        if cfg!(target_arch = "x86_64") { "-fsigned-char" } else { "-funsigned-char" },
    ]);
    if source.language == Language::Cxx {
        // The host part may throw and catch exceptions. On the card they cause neither an error nor code.
        command.args(["-fno-threadsafe-statics", "-Xclang", "-fignore-exceptions"]);
    }
    if !options.device_flags.iter().any(|flag| flag.starts_with("-O")) {
        command.args(["-O3", "-Xclang", "-O3"]);
    }
    command.args(&options.device_flags).args(headers);
    if host_has("-Werror") {
        command.args(["-Werror", "-D__SPIN_WERROR__"]);
    }
    let folder = source.path.parent().unwrap_or(Path::new(""));
    let listed = Listable::new(folder.to_owned()).map_err(Error::read(folder))?;
    Tools::keep_name(&mut command, listed.name(), folder);
    command.arg("-c").arg(listed.name().join(source.path.file_name().unwrap_or_default())).arg("-o").arg(object);
    let mut output = tools.capture(&mut command)?;
    if !silent && output.status.success() && output.stderr.is_empty() && prints(object)? {
        // zig does not repeat the warnings of a cached compilation.
        let fresh = tools.temp_path(format!("fresh.{}", kind.name));
        output = tools.capture(command.env("ZIG_LOCAL_CACHE_DIR", fresh))?;
    }
    let mut messages = plain(&String::from_utf8_lossy(&output.stderr));
    if listed.name() != folder {
        messages = messages.replace(&*listed.name().to_string_lossy(), &folder.to_string_lossy());
    }
    Ok(Compiled { accepted: output.status.success(), messages })
}

/// Returns true if an object calls `spin_printf`, whose formats have warnings.
fn prints(object: &Path) -> Result<bool> {
    let bytes = std::fs::read(object).map_err(Error::read(object))?;
    let file = object::File::parse(&*bytes).map_err(|error| Error::malformed(object, error))?;
    Ok(file.symbols().any(|symbol| symbol.is_undefined() && symbol.name() == Ok("spin_printf")))
}

/// Returns a compiler's messages without its remarks about the macro `spin_printf`, and without their number.
fn plain(messages: &str) -> String {
    let starts = |line: &str| [": error: ", ": warning: ", ": note: "].iter().any(|kind| line.contains(kind));
    let mut left_out = false;
    let mut kept = String::new();
    for line in messages.lines() {
        let counts = line.ends_with(" generated.") && line.starts_with(|first: char| first.is_ascii_digit());
        if starts(line) || counts {
            left_out = counts || line.ends_with("note: expanded from macro 'spin_printf'");
        }
        if !left_out {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_macro_of_the_sdk_is_not_told() {
        let messages = "\
a.c:2:25: warning: format specifies type 'int'
    2 |     spin_printf(\"%d\", x);
spin.h:6:43: note: expanded from macro 'spin_printf'
    6 |         int spin_printed_ = (spin_printf)(__VA_ARGS__); \\
      |                                           ^~~~~~~~~~~
a.c:9:1: warning: more '%' conversions
1 warning generated.
";
        let kept = "a.c:2:25: warning: format specifies type 'int'\n    2 |     spin_printf(\"%d\", x);\n\
                    a.c:9:1: warning: more '%' conversions\n";
        assert_eq!(super::plain(messages), kept);
    }
}
