//! Finds the libraries that a program links, as the system's loader does.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use object::read::elf::{ElfFile64, ProgramHeader};

/// Returns the shared libraries of a program, and those that they link. A script or a statically linked program has
/// none. The system's loader lists them in the environment of the ranks without running the program.
pub fn of(program: &OsStr, environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let Some((path, loader)) = find(program).and_then(|path| Some((path.clone(), loader(&path)?))) else {
        return Vec::new();
    };
    let variables = environment.iter().map(|(name, value)| (name, value));
    let listed = Command::new(loader).arg("--list").arg(path).envs(variables).output();
    let text = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(library).collect()
}

/// Returns the path of a program that is named by a path or searched in `PATH`.
pub fn find(program: &OsStr) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Some(program.into());
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Returns the loader that an executable names.
fn loader(program: &Path) -> Option<PathBuf> {
    let bytes = fs::read(program).ok()?;
    let file = ElfFile64::<object::Endianness>::parse(&*bytes).ok()?;
    let name =
        file.elf_program_headers().iter().find_map(|header| header.interpreter(file.endian(), &*bytes).ok()?)?;
    Some(std::str::from_utf8(name).ok()?.into())
}

/// Returns the file in a line such as `libm.so.6 => /lib/libm.so.6 (0x00007f…)`, or only its name if it was not found. A file that is
/// linked by its path has a line without a name.
fn library(line: &str) -> Option<PathBuf> {
    let line = line.trim();
    let (name, place) = line.split_once(" => ").unwrap_or((line, line));
    let path = place.rsplit_once(" (").map_or(name, |(path, _)| path);
    (line.contains(" => ") || path.contains('/')).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_lines_name_files() {
        let file = |line| library(line).map(|path| path.to_str().unwrap().to_owned());
        assert_eq!(file("\tlibm.so.6 => /lib/libm.so.6 (0x00007f22)").as_deref(), Some("/lib/libm.so.6"));
        assert_eq!(file("\tlibnone.so => not found").as_deref(), Some("libnone.so"));
        assert_eq!(file("\t/opt/a b/libx.so (0x00007f22)").as_deref(), Some("/opt/a b/libx.so"));
        assert_eq!(file("\tlinux-vdso.so.1 (0x00007f22)"), None);
        assert_eq!(file("\tstatically linked"), None);
    }
}
