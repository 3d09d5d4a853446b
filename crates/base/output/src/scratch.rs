// SPDX-License-Identifier: Apache-2.0
//! Folders for temporary files. A killed process cannot remove its folder, so the next process with the same prefix
//! does.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use tempfile::{Builder, TempDir};

/// A folder for temporary files, removed when this value is dropped and locked while its process lives.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    /// Creates a folder in the system's folder for temporary files. Removes this user's folders with the same prefix
    /// whose processes are dead.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(prefix: &str) -> io::Result<Scratch> {
        Scratch::within(&env::temp_dir(), prefix)
    }

    fn within(room: &Path, prefix: &str) -> io::Result<Scratch> {
        remove_abandoned(room, prefix);
        loop {
            let folder = Builder::new().prefix(prefix).tempdir_in(room)?;
            match locked(folder.path()) {
                // Another process may have removed the folder as abandoned before it was locked.
                Ok(Some(lock)) if folder.path().exists() => return Ok(Scratch { folder, _lock: lock }),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Locks a folder. Returns `None` if another process holds the lock.
fn locked(folder: &Path) -> io::Result<Option<File>> {
    let opened = open(folder, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(opened.into())),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes the folders of dead processes. One that cannot be removed stays; it does no harm.
fn remove_abandoned(room: &Path, prefix: &str) {
    let user = rustix::process::geteuid().as_raw();
    let is_ours = |path: &PathBuf| {
        let has_prefix = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(prefix.as_bytes()));
        has_prefix && fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user)
    };
    let entries = fs::read_dir(room).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    for folder in entries.filter(is_ours) {
        if let Ok(Some(_lock)) = locked(&folder) {
            _ = fs::remove_dir_all(&folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_process_removes_what_a_killed_one_has_left() {
        let room = tempfile::tempdir().unwrap();
        let killed = Scratch::within(room.path(), "kind-").unwrap();
        fs::write(killed.path().join("file"), "x").unwrap();
        // Like a kill, this releases the lock but removes nothing.
        let Scratch { folder, _lock } = killed;
        let abandoned = folder.keep();
        drop(_lock);
        let others: Vec<PathBuf> = ["other-1", "kind"].iter().map(|name| room.path().join(name)).collect();
        for other in &others {
            fs::create_dir(other).unwrap();
        }
        std::os::unix::fs::symlink(&others[0], room.path().join("kind-link")).unwrap();
        fs::write(room.path().join("kind-file"), "x").unwrap();

        let first = Scratch::within(room.path(), "kind-").unwrap();
        let second = Scratch::within(room.path(), "kind-").unwrap();
        assert!(!abandoned.exists());
        assert!(first.path().is_dir() && second.path().is_dir() && first.path() != second.path());
        assert!(others.iter().all(|other| other.is_dir()));
        assert!(room.path().join("kind-file").exists() && room.path().join("kind-link").exists());
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }
}
