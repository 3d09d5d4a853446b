// SPDX-License-Identifier: Apache-2.0
//! Tests of the cache. `tests/python/test_neighbours.py` tests its variables and other users.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::*;

fn set_mode(folder: &Path, mode: u32) {
    fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
}

fn mode(folder: &Path) -> u32 {
    fs::metadata(folder).unwrap().mode() & 0o7777
}

#[test]
fn folders_of_a_cache_are_for_the_user_alone() {
    let room = tempfile::tempdir().unwrap();
    let cache = Cache::at(&room.path().join("a/b")).unwrap();
    assert!(!room.path().join("a").exists());
    let folder = cache.folder("x/y").unwrap();
    assert_eq!(folder, room.path().join("a/b/x/y"));
    for made in ["a", "a/b", "a/b/x", "a/b/x/y"] {
        assert_eq!(mode(&room.path().join(made)), 0o700, "{made}");
    }
    assert_eq!(cache.folder("").unwrap(), room.path().join("a/b"));
}

#[test]
fn a_cache_that_others_may_write_is_refused() {
    let room = tempfile::tempdir().unwrap();
    let root = room.path().join("cache");
    let cache = Cache::at(&root).unwrap();
    let part = cache.folder("part").unwrap();
    for (folder, wrong) in [(&root, 0o720), (&root, 0o702), (&part, 0o777)] {
        set_mode(folder, wrong);
        let error = cache.folder("part").unwrap_err().to_string();
        let start = format!("{} may be written by other users (mode {wrong:o})", folder.display());
        assert!(error.starts_with(&start) && error.ends_with("set SPIN_CACHE to another folder"), "{error}");
        set_mode(folder, 0o755);
    }
    assert!(cache.folder("part").is_ok());
    // Other users could replace the folder, unless its parent is sticky like /tmp.
    set_mode(room.path(), 0o777);
    let error = Cache::at(&root).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{} may be written", room.path().display())), "{error}");
    assert!(
        Cache { root: root.clone(), owner: Some(geteuid().as_raw()) }.checked().is_ok(),
        "that of a checkout there"
    );
    set_mode(room.path(), 0o1777);
    assert!(Cache::at(&root).is_ok());
}

#[test]
fn a_cache_that_cannot_be_made_names_the_variable() {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("file");
    fs::write(&file, "").unwrap();
    for folder in [file.clone(), file.join("below")] {
        let error = Cache::at(&folder).and_then(|cache| cache.folder("")).unwrap_err().to_string();
        assert!(error.starts_with(&file.display().to_string()), "{error}");
        assert!(error.ends_with("; set SPIN_CACHE to a folder that you may write"), "{error}");
    }
}

#[test]
fn only_whole_files_are_used() {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("libx.so");
    assert!(!is_whole(&file));
    fs::write(&file, "library").unwrap();
    assert!(!is_whole(&file), "it was not sealed");
    seal(&file).unwrap();
    assert!(is_whole(&file));
    for wrong in ["", "libr", "librarx", "library "] {
        fs::write(&file, wrong).unwrap();
        assert!(!is_whole(&file), "{wrong:?}");
    }
    fs::remove_file(&file).unwrap();
    assert!(!is_whole(&file));
}
