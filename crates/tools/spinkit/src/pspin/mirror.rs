// SPDX-License-Identifier: Apache-2.0
//! Copy of a program's folder, for its build.

use std::collections::HashSet;
use std::fs::{self, Metadata, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use spincc::{Error, Result};

/// Folder at the top of a program's folder in which the published Makefiles build the card's program.
const BUILD: &str = "build";
/// Prefix of the drivers that the published Makefiles build at the top of a program's folder.
const DRIVER: &str = "sim_";

/// Makes `to` a copy of the folder `from`: only differing files are written, so that `make` builds only changes. If
/// `from` lost a file listed in `list` since the last copy, the whole copy is replaced: it may contain products of the
/// lost file.
///
/// Build products in `from` are not copied. Pipes, sockets and devices are skipped with a note.
///
/// # Errors
/// When a file cannot be read or written.
pub fn update(from: &Path, to: &Path, list: &Path) -> Result<()> {
    let mut files = Vec::new();
    find(from, Path::new(""), &mut files)?;
    let names: Vec<&[u8]> = files.iter().map(|(file, _)| file.as_os_str().as_bytes()).collect();
    let before = fs::read(list).unwrap_or_default();
    let known: HashSet<&[u8]> = names.iter().copied().collect();
    let is_lost = |name: &[u8]| !name.is_empty() && !known.contains(name);
    if before.split(|byte| *byte == 0).any(is_lost) {
        remove(to)?;
    }
    fs::create_dir_all(to).map_err(Error::write(to))?;
    for (file, kind) in &files {
        kind.copy(&from.join(file), &to.join(file))?;
    }
    let text = names.join(&0);
    output::write(list, |out| std::io::Write::write_all(out, &text)).map_err(Error::write(list))
}

/// Removes a folder or file if it exists.
fn remove(path: &Path) -> Result<()> {
    let there = fs::symlink_metadata(path);
    let removed = match there {
        Ok(there) if there.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::write(path)(error)),
        _ => Ok(()),
    }
}

/// Kind of an entry in a folder.
enum Kind {
    Folder,
    /// Link to a folder, possibly cyclic: the copy has a link to the same folder.
    Link,
    File,
}

impl Kind {
    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let there = fs::symlink_metadata(to).ok();
        let is_same_kind = there.is_some_and(|there| match self {
            Kind::Folder => there.is_dir(),
            Kind::Link => false,
            Kind::File => there.is_file(),
        });
        if !is_same_kind {
            remove(to)?;
        }
        match self {
            Kind::Folder if is_same_kind => Ok(()),
            Kind::Folder => fs::create_dir(to).map_err(Error::write(to)),
            Kind::Link => {
                let target = from.canonicalize().map_err(Error::read(from))?;
                symlink(target, to).map_err(Error::write(to))
            }
            Kind::File => {
                let bytes = fs::read(from).map_err(Error::read(from))?;
                if !is_same_kind || fs::read(to).map_err(Error::read(to))? != bytes {
                    fs::write(to, bytes).map_err(Error::write(to))?;
                }
                let mode = fs::metadata(from).map_err(Error::read(from))?.permissions().mode();
                fs::set_permissions(to, Permissions::from_mode(mode & 0o777 | 0o600)).map_err(Error::write(to))
            }
        }
    }
}

/// Adds the entries of a folder to copy to `files`, by paths relative to `top`; a folder precedes its contents.
fn find(top: &Path, folder: &Path, files: &mut Vec<(PathBuf, Kind)>) -> Result<()> {
    let here = top.join(folder);
    let entries = fs::read_dir(&here).map_err(Error::read(&here))?;
    let mut names = entries.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>();
    names.as_mut().map_err(|error| Error::read(&here)(std::mem::replace(error, ErrorKind::Other.into())))?.sort();
    for name in names.unwrap_or_default() {
        let (file, path) = (folder.join(&name), here.join(&name));
        let is_link = path.is_symlink();
        // Skip dangling links, which editors create beside files being changed.
        let Ok(there) = fs::metadata(&path) else { continue };
        if folder.as_os_str().is_empty() && is_product(&path, &there) {
            continue;
        }
        if there.is_dir() && is_link {
            files.push((file, Kind::Link));
        } else if there.is_dir() {
            files.push((file.clone(), Kind::Folder));
            find(top, &file, files)?;
        } else if there.is_file() {
            files.push((file, Kind::File));
        } else {
            eprintln!("spinkit pspin run: note: {} is no regular file, and is left out of the build", path.display());
        }
    }
    Ok(())
}

/// Returns true for a build product at the top of a program's folder.
fn is_product(path: &Path, there: &Metadata) -> bool {
    (there.is_dir() && path.file_name().is_some_and(|name| name == BUILD)) || is_driver(path)
}

/// Returns true for a driver built by the published Makefiles.
pub fn is_driver(path: &Path) -> bool {
    let is_named = path.file_name().is_some_and(|name| name.as_bytes().starts_with(DRIVER.as_bytes()));
    let mut magic = [0; 4];
    let mut read = || fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    is_named && path.is_file() && read().is_ok() && magic == *b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a file and its folder.
    fn file(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns the sorted names in a folder; folders end in a slash, links have an arrow.
    fn names(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                found.push(format!("{name}/"));
                found.extend(names(&entry.path()).into_iter().map(|below| format!("{name}/{below}")));
            } else {
                found.push(if kind.is_symlink() { format!("{name}->") } else { name });
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_copy_has_what_the_folder_has_and_keeps_what_was_built() {
        let room = tempfile::tempdir().unwrap();
        let (from, to, list) = (room.path().join("from"), room.path().join("to"), room.path().join("list"));
        let copy = || update(&from, &to, &list).unwrap();
        for name in ["Makefile", "sim_values.h", "handlers/sim_x.c", "handlers/build/y.h", "build/old.o", "sim_old"] {
            file(&from, name, if name == "sim_old" { "\x7fELF" } else { name });
        }
        symlink("..", from.join("handlers/up")).unwrap();
        symlink("nowhere", from.join(".#Makefile")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, from.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        fs::set_permissions(from.join("Makefile"), Permissions::from_mode(0o555)).unwrap();
        let sources = ["Makefile", "handlers/", "handlers/build/", "handlers/build/y.h", "handlers/sim_x.c"];
        let rest = ["handlers/up->", "sim_values.h"];
        copy();
        assert_eq!(names(&to), [&sources[..], &rest[..]].concat());
        assert_eq!(fs::metadata(to.join("Makefile")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_link(to.join("handlers/up")).unwrap(), from.canonicalize().unwrap());

        // Unchanged files and build products stay.
        file(&to, "build/new.o", "");
        let written = fs::metadata(to.join("sim_values.h")).unwrap().modified().unwrap();
        file(&from, "handlers/sim_x.c", "changed");
        copy();
        assert_eq!(fs::read_to_string(to.join("handlers/sim_x.c")).unwrap(), "changed");
        assert_eq!(fs::metadata(to.join("sim_values.h")).unwrap().modified().unwrap(), written);
        assert!(to.join("build/new.o").is_file());

        // A link becomes a folder, and is not written through.
        fs::remove_file(from.join("handlers/up")).unwrap();
        file(&from, "handlers/up/Makefile", "below");
        copy();
        assert_eq!(fs::read_to_string(from.join("Makefile")).unwrap(), "Makefile");
        assert!(to.join("build/new.o").is_file());

        // A lost file may have contributed to build products.
        fs::remove_file(from.join("sim_values.h")).unwrap();
        copy();
        assert!(!to.join("sim_values.h").exists() && !to.join("build").exists());
    }
}
