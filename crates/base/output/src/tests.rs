// SPDX-License-Identifier: Apache-2.0
//! Tests of output files and scratch folders.

use std::os::unix::fs::{FileTypeExt, symlink};
use std::thread;

use super::*;
use rustix::fs::{FileType, Mode};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    write(path, |out| out.write_all(text.as_bytes()))
}

/// Returns the permissions of a file created directly through the system, with `mode`.
fn usual(folder: &Path, mode: u32) -> u32 {
    let path = folder.join("usual");
    OpenOptions::new().write(true).create_new(true).mode(mode).open(&path).unwrap();
    let usual = self::mode(&path);
    fs::remove_file(path).unwrap();
    usual
}

#[test]
fn a_new_file_appears_when_it_is_finished_with_the_usual_permissions() {
    let folder = folder();
    let usual = usual(folder.path(), 0o666);
    for can_be_unnamed in [true, false] {
        let path = folder.path().join(format!("new-{can_be_unnamed}"));
        let mut output = Output::hidden(path.clone(), FILE, can_be_unnamed).unwrap();
        output.write_all(b"text").unwrap();
        output.flush().unwrap();
        assert!(!path.exists());
        output.finish().unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"text".to_vec(), usual));
    }
    assert_eq!(names(folder.path()), ["new-false", "new-true"]);
}

#[test]
fn an_unfinished_file_leaves_nothing_and_a_killed_process_does_not_either() {
    let folder = folder();
    let path = folder.path().join("file");
    fs::write(&path, "before").unwrap();
    let mut output = Output::create(&path).unwrap();
    output.write_all(&[b'x'; 2 * BUFFER]).unwrap();
    if matches!(output.file.get_ref(), Place::Unnamed(_)) {
        // Files that a process killed now would leave behind.
        assert_eq!(names(folder.path()), ["file"]);
    }
    drop(output);
    let mut named = Output::hidden(path.clone(), FILE, false).unwrap();
    named.write_all(b"x").unwrap();
    let [temporary] = &names(folder.path()).into_iter().filter(|name| name != "file").collect::<Vec<_>>()[..] else {
        panic!("there is a temporary file")
    };
    assert!(!temporary.contains(&std::process::id().to_string()), "{temporary}");
    drop(named);
    assert_eq!((names(folder.path()), fs::read_to_string(&path).unwrap()), (vec!["file".into()], "before".into()));
}

#[test]
fn a_regular_file_is_replaced_and_keeps_its_permissions() {
    let folder = folder();
    let path = folder.path().join("file");
    fs::write(&path, "a longer text").unwrap();
    for wanted in [0o640, 0o755, 0o600] {
        fs::set_permissions(&path, Permissions::from_mode(wanted)).unwrap();
        put(&path, "text").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), mode(&path)), ("text".into(), wanted));
    }
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn a_link_stays_and_the_file_behind_it_is_replaced() {
    let (folder, other) = (folder(), folder());
    let (link, file) = (folder.path().join("link"), other.path().join("file"));
    fs::write(&file, "before").unwrap();
    symlink(&file, &link).unwrap();
    let output = Output::create(&link).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    drop(output);
    put(&link, "after").unwrap();
    assert_eq!((fs::read_link(&link).unwrap(), fs::read_to_string(&file).unwrap()), (file.clone(), "after".into()));

    fs::remove_file(&file).unwrap();
    let error = put(&link, "").unwrap_err();
    assert_eq!(error.to_string(), "it is a symbolic link to a file that does not exist");
    assert!(!file.exists() && names(other.path()).is_empty());
}

#[test]
fn pipes_and_devices_are_written_in_place() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    put(&pipe, "through the pipe").unwrap();
    assert_eq!(reader.join().unwrap(), b"through the pipe");
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());

    let link = folder.path().join("null");
    symlink("/dev/null", &link).unwrap();
    for device in [Path::new("/dev/null"), &link] {
        put(device, "text").unwrap();
        Output::create_program(device).unwrap().finish().unwrap();
    }
    assert!(fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());
    assert_eq!(names(folder.path()), ["null", "pipe"]);
    assert!(is_special(&pipe) && is_special(&link) && !is_special(&folder.path().join("nothing")));
    assert_eq!(put(Path::new("/dev/full"), "text").unwrap_err().kind(), ErrorKind::StorageFull);
}

#[test]
fn what_cannot_be_written_is_said_at_once() {
    let folder = folder();
    let kind = |path: &Path| Output::create(path).unwrap_err().kind();
    assert_eq!(kind(&folder.path().join("no/file")), ErrorKind::NotFound);
    assert_eq!(kind(folder.path()), ErrorKind::IsADirectory);
    assert_eq!(kind(&folder.path().join("new/")), ErrorKind::InvalidInput);
    assert_eq!(kind(Path::new("/")), ErrorKind::IsADirectory);
    let file = folder.path().join("file");
    fs::write(&file, "before").unwrap();
    assert_eq!(kind(&file.join("in-a-file")), ErrorKind::NotADirectory);
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn a_file_that_appears_meanwhile_is_replaced_and_a_folder_is_not() {
    let folder = folder();
    let path = folder.path().join("file");
    let mut output = Output::create(&path).unwrap();
    output.write_all(b"mine").unwrap();
    fs::write(&path, "theirs").unwrap();
    output.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");

    fs::remove_file(&path).unwrap();
    let output = Output::create(&path).unwrap();
    fs::create_dir(&path).unwrap();
    output.finish().unwrap_err();
    assert_eq!(names(folder.path()), ["file"]);
}

#[test]
fn programs_can_be_executed_and_replace_those_that_run() {
    let folder = folder();
    let usual = usual(folder.path(), 0o777);
    let path = folder.path().join("program");
    fs::write(&path, "text").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    for _ in 0..2 {
        let mut output = Output::create_program(&path).unwrap();
        output.write_all(&fs::read("/bin/sleep").unwrap()).unwrap();
        output.finish().unwrap();
        assert_eq!(mode(&path), usual);
    }
    let mut running = std::process::Command::new(&path).arg("60").spawn().unwrap();
    Output::create_program(&path).unwrap().finish().unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);

    let link = folder.path().join("link");
    symlink("program", &link).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    Output::create_program(&link).unwrap().finish().unwrap();
    assert_eq!((mode(&path), fs::read_link(&link).unwrap()), (0o750, "program".into()));
}
