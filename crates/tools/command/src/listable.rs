// SPDX-License-Identifier: Apache-2.0
//! Folders for programs that restrict folder names: the loader splits `LD_PRELOAD` at blanks and colons and replaces
//! words with a dollar sign, libfabric splits `FI_PROVIDER_PATH` at colons, and zig splits options at commas and cannot
//! read its own lists of files with colons, quotes or backslashes.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Folder under a name that is allowed in a list.
#[derive(Debug)]
pub struct Listable {
    name: PathBuf,
    /// Open folder behind the name, if the name is not its own.
    _folder: Option<File>,
}

impl Listable {
    /// Returns true if a folder's own name is allowed in a list.
    pub fn is_plain(folder: &Path) -> bool {
        !folder
            .as_os_str()
            .as_bytes()
            .iter()
            .any(|byte| matches!(byte, b' ' | b',' | b':' | b'$' | b'"' | b'\'' | b'\\'))
    }

    /// Returns a folder under its own name, if that is allowed in a list, or else under one that lasts as long as the
    /// result.
    ///
    /// # Errors
    /// The system's error when it cannot be opened.
    pub fn new(folder: PathBuf) -> io::Result<Listable> {
        if Listable::is_plain(&folder) {
            return Ok(Listable { name: folder, _folder: None });
        }
        // The name stands for the innermost part of the path that is not allowed, so that `..` still leads out of the
        // folders below it.
        let ends_oddly = |part: &&Path| part.file_name().is_some_and(|name| !Listable::is_plain(Path::new(name)));
        let innermost = folder.ancestors().find(ends_oddly).unwrap_or(&folder);
        let below = folder.strip_prefix(innermost).unwrap_or(Path::new(""));
        let open = File::open(innermost)?;
        Ok(Listable { name: name_of(&open).join(below), _folder: Some(open) })
    }

    /// Returns the name.
    pub fn name(&self) -> &Path {
        &self.name
    }
}

/// Returns the path by which this user's processes can open a file that this process has open.
pub fn name_of(file: &impl AsRawFd) -> PathBuf {
    Path::new("/proc").join(std::process::id().to_string()).join("fd").join(file.as_raw_fd().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_with_any_name_can_be_listed() {
        let room = tempfile::tempdir().unwrap();
        for (name, is_own) in
            [("plain", true), ("käse", true), ("a b", false), ("a:b", false), ("$LIB", false), ("\"", false)]
        {
            let folder = room.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("file"), name).unwrap();
            let listed = Listable::new(folder.clone()).unwrap();
            assert_eq!(listed.name() == folder, is_own, "{name}");
            assert!(Listable::is_plain(listed.name()));
            assert_eq!(std::fs::read_to_string(listed.name().join("file")).unwrap(), name);
        }
        let below = room.path().join("a b/c:d/e/f");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(room.path().join("a b/c:d/g"), "").unwrap();
        let listed = Listable::new(below).unwrap();
        assert!(Listable::is_plain(listed.name()) && listed.name().ends_with("e/f"));
        assert!(listed.name().ancestors().nth(2).unwrap().join("g").exists(), "names lead out of the folder");
        assert!(Listable::new(room.path().join("not there")).is_err());
    }
}
