// SPDX-License-Identifier: Apache-2.0
//! Finds the libraries that a program links, like the system's loader.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use object::read::elf::{ElfFile64, ProgramHeader};

use super::environment::variable;

/// Search path of the loader.
const FOLDERS: &str = "LD_LIBRARY_PATH";

/// Returns the shared libraries of a program, with their dependencies. A script, a statically linked program or a
/// missing file has none. The system's loader lists them in the environment of the ranks without running the program.
/// It also searches `folder`, if given.
///
/// # Errors
/// The reason, when the program cannot be read or its loader fails: its libraries are then unknown.
pub fn of(
    program: &OsStr,
    environment: &[(OsString, OsString)],
    folder: Option<&Path>,
) -> Result<Vec<PathBuf>, String> {
    let Some(path) = find(program) else { return Ok(Vec::new()) };
    let Some(loader) = loader(&path).map_err(|error| format!("{}: {error}", path.display()))? else {
        return Ok(Vec::new());
    };
    let mut list = Command::new(&loader);
    list.arg("--list").arg(path).envs(environment.iter().map(|(name, value)| (name, value)));
    // With LD_DEBUG the loader writes to standard error, or performs another task than listing.
    list.env_remove("LD_DEBUG");
    if let Some(folder) = folder {
        let mut folders = variable(environment, FOLDERS).unwrap_or_default();
        folders.push(":");
        folders.push(folder);
        list.env(FOLDERS, folders);
    }
    let failed = |why: &str| format!("{} --list: {why}", loader.display());
    let listed = list.output().map_err(|error| failed(&error.to_string()))?;
    if !listed.status.success() {
        let said = String::from_utf8_lossy(&listed.stderr);
        return Err(failed(said.lines().last().unwrap_or(&listed.status.to_string())));
    }
    Ok(String::from_utf8_lossy(&listed.stdout).lines().filter_map(library).collect())
}

/// Returns the path of a program given by path or found in `PATH`.
pub fn find(program: &OsStr) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Some(program.into());
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Returns the loader of an executable; `None` for a file that is not an executable with a loader.
fn loader(program: &Path) -> io::Result<Option<PathBuf>> {
    let bytes = match fs::read(program) {
        Ok(bytes) => bytes,
        // Its start fails, and reports the reason.
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let Ok(file) = ElfFile64::<object::Endianness>::parse(&*bytes) else { return Ok(None) };
    let mut headers = file.elf_program_headers().iter();
    let name = headers.find_map(|header| header.interpreter(file.endian(), &*bytes).ok()?);
    Ok(name.map(|name| OsStr::from_bytes(name).into()))
}

/// Returns the file in a line such as `libm.so.6 => /lib/libm.so.6 (0x00007f…)`, or only its name if it was not found.
/// The line of a file linked by path has no name.
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

    #[test]
    fn a_list_that_cannot_be_made_is_an_error() {
        let of = |program: &Path| of(program.as_os_str(), &[], None);
        let names = |program: &str| of(Path::new(program)).unwrap().iter().any(|path| path.ends_with("libc.so.6"));
        assert!(names("/bin/sh"));
        for none in ["/etc/passwd", "/nowhere", "/etc/passwd/none", "/"] {
            assert_eq!(of(Path::new(none)), Ok(Vec::new()), "{none}");
        }
        // A copy of the program with a missing loader.
        let mut program = fs::read("/bin/sh").unwrap();
        let place = program.windows(6).position(|window| window == b"/lib64").expect("a loader for 64 bits");
        program[place..place + 6].copy_from_slice(b"/no_64");
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("sh");
        fs::write(&path, program).unwrap();
        let why = of(&path).unwrap_err();
        assert!(why.starts_with("/no_64/") && why.contains(" --list: No such file"), "{why}");
    }
}
