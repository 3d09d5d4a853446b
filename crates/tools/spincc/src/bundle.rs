// SPDX-License-Identifier: Apache-2.0
//! Data added to a host object by `spincc -c`: its device objects (`.spin_device.KIND`) and the layouts of its
//! structures on the host (`.spin_layouts`). The sections are marked as excluded from programs, so every linker drops
//! them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use abi::device::image::{DEVICE_SECTION_PREFIX, HANDLERS_SECTION};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection, ObjectSymbol};

use super::layouts::Structure;
use super::tool::{self, Tools};
use super::{Error, Result};

const LAYOUTS_SECTION: &str = ".spin_layouts";

/// Card part of one source.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Source or object, for messages: "lib.a(member.o)" in an archive.
    pub origin: String,
    /// Archive that contains it.
    pub archive: Option<PathBuf>,
    /// Set if the host object has handlers.
    pub has_handlers: bool,
    /// Set if the host object needs the C++ library.
    pub is_cxx: bool,
    /// Device object of each HPU kind.
    pub devices: BTreeMap<String, Vec<u8>>,
    /// Host layouts of the structures in the user's files.
    pub host_layouts: Vec<Structure>,
    /// Messages of the compiler, if there are no device objects.
    pub left_out: Option<String>,
}

impl Part {
    /// Adds this part to the host object at `object`, and removes its debug information if `strip_debug`.
    ///
    /// # Errors
    /// When the object cannot be read or written.
    pub fn attach(&self, tools: &Tools, object: &Path, strip_debug: bool) -> Result<()> {
        let mut sections: Vec<(String, Vec<u8>)> =
            self.devices.iter().map(|(kind, elf)| (format!("{DEVICE_SECTION_PREFIX}{kind}"), elf.clone())).collect();
        if !sections.is_empty() {
            let layouts = serde_json::to_vec(&self.host_layouts).expect("layouts are plain data");
            sections.push((LAYOUTS_SECTION.into(), layouts));
        }
        // Debug information does no harm on a computer without binutils.
        if sections.is_empty() && (!strip_debug || !tool::is_on_path("objcopy")) {
            return Ok(());
        }
        let mut objcopy = Command::new("objcopy");
        if strip_debug {
            objcopy.arg("--strip-debug");
        }
        for (i, (name, content)) in sections.iter().enumerate() {
            let path = tools.temp_path(format!("section{i}"));
            std::fs::write(&path, content).map_err(Error::write(&path))?;
            objcopy.arg(format!("--add-section={name}={}", path.display()));
            objcopy.arg(format!("--set-section-flags={name}=readonly,exclude"));
        }
        tools.run(objcopy.arg(object))
    }
}

/// Reads the parts of an object or of an archive's members. Other linker inputs have none.
///
/// # Errors
/// When the file cannot be read, or is a damaged object.
pub fn read(path: &Path) -> Result<Vec<Part>> {
    let bytes = std::fs::read(path).map_err(Error::read(path))?;
    let origin = path.display().to_string();
    let Ok(archive) = ArchiveFile::parse(&*bytes) else { return Ok(part(&bytes, origin)?.into_iter().collect()) };
    if archive.is_thin() {
        return Err(Error::malformed(path, "thin archives are not supported; name the objects, or make it without T"));
    }
    let mut parts = vec![];
    for member in archive.members() {
        let member = member.map_err(|e| Error::malformed(path, e))?;
        let content = member.data(&*bytes).map_err(|e| Error::malformed(path, e))?;
        let part = part(content, format!("{origin}({})", String::from_utf8_lossy(member.name())))?;
        parts.extend(part.map(|part| Part { archive: Some(path.to_owned()), ..part }));
    }
    Ok(parts)
}

fn part(bytes: &[u8], origin: String) -> Result<Option<Part>> {
    let Ok(file) = object::File::parse(bytes) else { return Ok(None) };
    if file.kind() != object::ObjectKind::Relocatable {
        return Ok(None);
    }
    let malformed = |reason: String| Error::malformed(Path::new(&origin), reason);
    let mut part = Part { origin: origin.clone(), ..inspect(&file) };
    for section in file.sections() {
        let name = section.name().map_err(|e| malformed(e.to_string()))?;
        let content = || section.data().map_err(|e| malformed(e.to_string()));
        if let Some(kind) = name.strip_prefix(DEVICE_SECTION_PREFIX) {
            let device = content()?.to_vec();
            // An object for link-time optimization does not contain the host's section of handlers.
            part.has_handlers |=
                object::File::parse(&*device).is_ok_and(|d| d.section_by_name(HANDLERS_SECTION).is_some());
            part.devices.insert(kind.to_owned(), device);
        } else if name == LAYOUTS_SECTION {
            part.host_layouts = serde_json::from_slice(content()?).map_err(|e| malformed(e.to_string()))?;
        }
    }
    if part.has_handlers && part.devices.is_empty() {
        let message = format!("{origin}: has handlers, but no code for the card; compile it with spincc");
        return Err(Error::Program(message));
    }
    Ok(Some(part))
}

/// Returns properties of a host object.
pub fn inspect(file: &object::File) -> Part {
    let runtime = ["__gxx_personality_v0", "_Zn", "_Zd", "_ZSt", "_ZNSt", "_ZNKSt", "_ZTV", "__cxa_"];
    let is_cxx = file.symbols().filter(|s| s.is_undefined()).any(|s| {
        let name = s.name().unwrap_or_default();
        name != "__cxa_finalize" && runtime.iter().any(|prefix| name.starts_with(prefix))
    });
    Part { has_handlers: file.section_by_name(HANDLERS_SECTION).is_some(), is_cxx, ..Part::default() }
}
