// SPDX-License-Identifier: Apache-2.0
//! Links sources, objects and archives to a program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use output::Output;

use super::bundle::{self, Part};
use super::device::{self, Program};
use super::image::{Device, Handler, Image};
use super::kind::{self, Kind};
use super::layouts::{self, Scope, Structure};
use super::options::{Language, LinkItem, Lint, Options};
use super::tool::Tools;
use super::{Error, Result, compile, ends};

/// Builds the program or shared library.
///
/// # Errors
/// When a source does not compile, the link fails, or a file cannot be read or written.
pub fn program(tools: &Tools, options: &Options) -> Result<()> {
    let inputs = Inputs::gather(tools, options)?;
    for object in &inputs.objects {
        Part::default().attach(tools, object, options.borrows_debug())?;
    }
    let output = options.output.clone().unwrap_or_else(|| "a.out".into());
    let mut image = device_image(tools, options, &inputs, options.debug)?;
    if options.keep {
        for program in &image.programs {
            let path = with_suffix(&output, &format!(".{}.elf", program.kind.name));
            output::write(&path, |out| out.write_all(&program.elf)).map_err(Error::write(&path))?;
        }
    }

    let cxx = inputs.parts.iter().any(|p| p.is_cxx) || options.sources.iter().any(|s| s.language == Language::Cxx);
    let mut command = tools.host(if cxx { Language::Cxx } else { Language::C });
    command.args(&options.host_flags);
    for item in &options.link {
        match item {
            LinkItem::Source(i) => command.arg(&inputs.objects[*i]),
            LinkItem::File(path) => command.arg(path),
            LinkItem::Flag(flag) => command.arg(flag),
        };
    }
    if !image.programs.is_empty() {
        command.arg(image_object(tools, options, &image.image)?);
    }
    let lib_dir = tools.sdk.lib_dir()?;
    // Not through -Wl, which splits at commas.
    command.arg("-L").arg(&lib_dir).args(["-lportals", "-Xlinker", "-rpath", "-Xlinker"]).arg(&lib_dir);
    // Link in a temporary folder, so that only a complete program replaces an existing output.
    let linked = tools.temp_path("program");
    tools.run(command.arg("-o").arg(&linked))?;
    if !image.programs.is_empty() {
        let mut bytes = std::fs::read(&linked).map_err(Error::read(&linked))?;
        image.image.place(&mut bytes).map_err(|reason| Error::malformed(&output, reason))?;
        std::fs::write(&linked, bytes).map_err(Error::write(&linked))?;
    }
    if options.strip {
        tools.run(Command::new("strip").arg(&linked))?;
    }
    let bytes = std::fs::read(&linked).map_err(Error::read(&linked))?;
    let write = |mut file: Output| file.write_all(&bytes).and_then(|()| file.finish());
    Output::create_program(&output).and_then(write).map_err(Error::write(&output))
}

/// Returns the image of sources and objects with debug information, for inspection.
///
/// # Errors
/// When a source does not compile, or the device link fails.
pub fn device_only(tools: &Tools, options: &Options) -> Result<Image> {
    let inputs = Inputs::gather(tools, options)?;
    Ok(device_image(tools, options, &inputs, true)?.image)
}

/// Inputs of the link, compiled and read.
struct Inputs {
    kinds: Vec<Kind>,
    /// Host objects of `options.sources`.
    objects: Vec<PathBuf>,
    /// Parts of all objects and archive members.
    parts: Vec<Part>,
}

impl Inputs {
    fn gather(tools: &Tools, options: &Options) -> Result<Inputs> {
        let kinds = kind::choose(kind::installed(&tools.listed.device_dir())?, options.kinds.as_deref())?;
        let mut inputs = Inputs { kinds, objects: vec![], parts: vec![] };
        let mut libraries = Libraries::default();
        for item in &options.link {
            match item {
                LinkItem::Source(i) => {
                    let object = tools.temp_path(format!("{i}.o"));
                    let part = compile::one(tools, options, &inputs.kinds, &options.sources[*i], &object)?;
                    inputs.parts.push(part);
                    inputs.objects.push(object);
                }
                LinkItem::File(path) => inputs.parts.extend(bundle::read(path)?),
                LinkItem::Flag(flag) => {
                    if let Some(archive) = libraries.flag(flag) {
                        inputs.parts.extend(bundle::read(&archive)?);
                    }
                }
            }
        }
        Ok(inputs)
    }
}

/// Search for the user's archives, which may hold handlers, by `-L` and `-l`.
#[derive(Default)]
struct Libraries {
    folders: Vec<PathBuf>,
    /// Option whose value is the next argument.
    pending: Option<&'static str>,
}

impl Libraries {
    /// Processes the next linker flag. Returns the archive that it names, if any.
    fn flag(&mut self, flag: &str) -> Option<PathBuf> {
        let (option, value) = match self.pending.take() {
            Some(option) => (option, flag),
            None => (["-L", "-l"].into_iter().find(|o| flag.starts_with(o))?, &flag[2..]),
        };
        if value.is_empty() {
            self.pending = Some(option);
        } else if option == "-L" {
            self.folders.push(value.into());
        } else {
            // As for the linker, the first folder with either of them decides, and a shared library precedes an
            // archive.
            let file = |folder: &PathBuf, suffix: &str| folder.join(format!("lib{value}.{suffix}"));
            let folder = self.folders.iter().find(|f| file(f, "so").exists() || file(f, "a").exists())?;
            return Some(file(folder, "a")).filter(|_| !file(folder, "so").exists());
        }
        None
    }
}

#[derive(Default)]
struct DeviceImage {
    /// `None` without handlers.
    programs: Vec<Program>,
    image: Image,
}

fn device_image(tools: &Tools, options: &Options, inputs: &Inputs, debug: bool) -> Result<DeviceImage> {
    if !inputs.parts.iter().any(|part| part.has_handlers) {
        return Ok(DeviceImage::default());
    }
    let candidates = device::candidates(&inputs.parts)?;
    let kinds = common_kinds(options, inputs)?;
    let programs: Vec<Result<Program>> = std::thread::scope(|scope| {
        let running: Vec<_> =
            kinds.iter().map(|kind| scope.spawn(move || device::link(tools, kind, &inputs.parts))).collect();
        running.into_iter().map(|r| r.join().expect("linker threads do not panic")).collect()
    });
    let programs = programs.into_iter().collect::<Result<Vec<Program>>>()?;

    let handlers = device::linked(&candidates, &programs[0])?;
    programs.iter().try_for_each(|program| ends::check(program, &handlers))?;
    if handlers.is_empty() {
        return Ok(DeviceImage::default());
    }
    let mut image = Image {
        handlers: handlers.into_iter().map(|name| Handler { name, host_offset: None }).collect(),
        ..Image::default()
    };
    let mut warnings = vec![];
    for program in &programs {
        let kind = program.kind.name.clone();
        let own = |file: &str| tools.is_users(file);
        let used = layouts::read(&program.elf, Scope::Linked, &own)
            .map_err(|reason| Error::Program(format!("device program for {kind}: {reason}")))?;
        warnings.extend(used.iter().flat_map(|card| mismatches(card, &inputs.parts)));
        if image.layouts.is_empty() {
            image.layouts = used.into_iter().map(|s| Structure { file: String::new(), ..s }).collect();
            image.layouts.dedup();
        }
        let elf = device::embeddable(&program.elf, debug)?;
        device::check_loads(&program.kind, &elf)?;
        image.devices.push(Device { kind, elf });
    }
    report(options.layout_lint, warnings)?;
    device::large_frames(&programs)?.iter().for_each(|warning| eprintln!("spincc: warning: {warning}"));
    Ok(DeviceImage { programs, image })
}

/// Returns the kinds to link for: those of `--hpu`, else those for which every object with handlers is compiled.
fn common_kinds(options: &Options, inputs: &Inputs) -> Result<Vec<Kind>> {
    let with_handlers = || inputs.parts.iter().filter(|part| part.has_handlers);
    if options.kinds.is_some() {
        for kind in &inputs.kinds {
            if let Some(part) = with_handlers().find(|part| !part.devices.contains_key(&kind.name)) {
                let (origin, name) = (&part.origin, &kind.name);
                return Err(Error::Program(format!(
                    "{origin} was not compiled for {name}; compile it with --hpu {name}"
                )));
            }
        }
    }
    let in_all = |kind: &&Kind| with_handlers().all(|part| part.devices.contains_key(&kind.name));
    let kinds: Vec<Kind> = inputs.kinds.iter().filter(in_all).cloned().collect();
    if kinds.is_empty() {
        let each: Vec<String> = with_handlers()
            .map(|p| format!("{} ({})", p.origin, p.devices.keys().cloned().collect::<Vec<_>>().join(", ")))
            .collect();
        return Err(Error::Program(format!("no HPU kind is common to all objects: {}", each.join(", "))));
    }
    Ok(kinds)
}

/// Describes the differences of the structure `card` on the host, in any source that declares it.
fn mismatches(card: &Structure, parts: &[Part]) -> Vec<String> {
    // The two compilers write paths of headers differently.
    let file = |s: &Structure| Path::new(&s.file).file_name().map(|name| name.to_owned());
    let hosts = parts.iter().flat_map(|p| &p.host_layouts).filter(|h| h.name == card.name && file(h) == file(card));
    let sentence =
        |difference: String| format!("{}: struct {}: {difference}; use fixed-width types", card.file, card.name);
    hosts.flat_map(|host| layouts::differences(host, card)).map(sentence).collect()
}

fn report(lint: Lint, mut warnings: Vec<String>) -> Result<()> {
    warnings.sort();
    warnings.dedup();
    match lint {
        Lint::Error if !warnings.is_empty() => return Err(Error::Program(warnings.join("\n"))),
        Lint::Warn => {
            for warning in warnings {
                eprintln!("spincc: warning: {warning} [-Wspin-layout]");
            }
        }
        _ => {}
    }
    Ok(())
}

/// Makes a host object with the image and a constructor that registers it.
fn image_object(tools: &Tools, options: &Options, image: &Image) -> Result<PathBuf> {
    let (data, source, object) = (tools.temp_path("image"), tools.temp_path("image.c"), tools.temp_path("image.o"));
    std::fs::write(&data, image.to_bytes()).map_err(Error::write(&data))?;
    // If the host linker takes no handler, the section of handlers and the symbol of its start are absent.
    let text = format!(
        r#"__asm__(".pushsection {section},\"a\"\n.balign 16\n.hidden spin_image\nspin_image:\n.incbin \"{data}\"\n.popsection");
extern const char spin_image[] __attribute__((visibility("hidden")));
extern const char __start_{handlers}[] __attribute__((weak, visibility("hidden")));
void spin_register_image(const void *image, const void *handlers_start);
__attribute__((constructor)) static void spin_register(void) {{
    spin_register_image(spin_image, __start_{handlers});
}}
"#,
        section = abi::device::image::SECTION,
        handlers = abi::device::image::HANDLERS_SECTION,
        data = data.display().to_string().replace('\\', r"\\\\").replace('"', r#"\\\""#),
    );
    std::fs::write(&source, text).map_err(Error::write(&source))?;
    let mut command = tools.host(Language::C);
    // Use only the user's flags that choose the target and the kind of code, which must be those of the program.
    let target =
        options.host_flags.iter().filter(|f| f.starts_with("-m") || f.starts_with("-fPI") || f.starts_with("-fpi"));
    command.args(target).args(["-w", "-x", "c", "-c"]).arg(&source).arg("-o").arg(&object);
    tools.run(&mut command)?;
    Ok(object)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
