// SPDX-License-Identifier: Apache-2.0
//! Tests the binary form of LogGOPSim and ATLAHS.

use std::path::{Path, PathBuf};

use goal::lgs::{LgsError, LgsWriteError};
use goal::loggops::{LogGops, Options, run};
use goal::{Action, ReadError, Schedule, Wait, lgs, text};

/// One operation of a rank: kind, peer, size, tag, CPU, NIC, its dependents on end and on start, operations it waits
/// for.
struct Node(u8, u32, u64, u32, u8, u8, &'static [u32], &'static [u32], u32);

/// Assembles a file from the description of the form, independent of the writer.
fn file(cpus: u8, nics: u8, ranks: &[&[Node]]) -> Vec<u8> {
    let (mut directory, mut sections) = (Vec::new(), Vec::new());
    for nodes in ranks {
        let start = 6 + 16 * ranks.len() + sections.len();
        let roots: Vec<u32> = (0..).zip(*nodes).filter(|(_, node)| node.8 == 0).map(|(index, _)| index).collect();
        let mut edges: Vec<u32> = Vec::new();
        let mut word = |word: u32| sections.extend(word.to_le_bytes());
        word(nodes.len() as u32);
        word(roots.len() as u32);
        roots.iter().for_each(|root| word(*root));
        for Node(kind, peer, size, tag, cpu, nic, done, started, waits) in *nodes {
            sections.extend(waits.to_le_bytes());
            sections.push(*kind);
            sections.extend(peer.to_le_bytes());
            sections.extend(size.to_le_bytes());
            sections.extend(tag.to_le_bytes());
            sections.extend([*cpu, *nic]);
            for dependents in [done, started] {
                sections.extend((dependents.len() as u32).to_le_bytes());
                sections.extend((edges.len() as u32).to_le_bytes());
                edges.extend(*dependents);
            }
        }
        edges.iter().for_each(|edge| sections.extend(edge.to_le_bytes()));
        directory.extend((start as u64).to_le_bytes());
        directory.extend((6 + 16 * ranks.len() as u64 + sections.len() as u64).to_le_bytes());
    }
    [&4223_u64.to_le_bytes()[..], &(ranks.len() as u32).to_le_bytes(), &[cpus, nics], &directory, &sections].concat()
}

const TEXT: &str = "num_ranks 3
rank 0 {
a: calc 5000000000 cpu 3
b: send 5000000000b to 1 tag 7 nic 2
c: calc 9
b requires a
c irequires b
c requires a
}
rank 1 {
a: recv 5000000000b from any tag any cpu 1
}
rank 2 {
}
";

/// Returns the file of [`TEXT`].
fn expected() -> Vec<u8> {
    let any = u32::MAX;
    file(
        3,
        2,
        &[
            &[
                Node(3, 0, 5_000_000_000, 0, 3, 0, &[1, 2], &[], 0),
                Node(1, 1, 5_000_000_000, 7, 0, 2, &[], &[2], 1),
                Node(3, 0, 9, 0, 0, 0, &[], &[], 2),
            ],
            &[Node(2, any, 5_000_000_000, any, 1, 0, &[], &[], 0)],
            &[],
        ],
    )
}

fn read(bytes: &[u8]) -> Result<Schedule, String> {
    goal::read(&mut &*bytes, Path::new("x.bin")).map_err(|error| error.to_string())
}

fn as_lgs(schedule: &Schedule) -> Result<Vec<u8>, LgsWriteError> {
    let mut out = Vec::new();
    lgs::write(schedule, &mut out).map(|()| out)
}

fn as_text(schedule: &Schedule) -> String {
    let mut out = Vec::new();
    text::write(schedule, 0..schedule.ranks(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_form_is_that_of_its_description_in_both_directions() {
    let schedule = text::read(TEXT.as_bytes()).unwrap();
    assert_eq!(as_lgs(&schedule).unwrap(), expected());
    let found = read(&expected()).unwrap();
    assert_eq!(as_text(&found), as_text(&schedule));
    assert_eq!((found.cpus(), found.nics()), (4, 3));
    let any = Action::Recv { bytes: 5_000_000_000, from: None, tag: None, space: 0 };
    assert_eq!((found.action(3), found.resources(3)), (any, (1, 0)));
    assert_eq!(found.dependents(1).collect::<Vec<_>>(), [(2, Wait::Started)]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.name");
    std::fs::write(&path, expected()).unwrap();
    assert_eq!(as_text(&goal::open(&path).unwrap()), as_text(&schedule));
}

/// Tests that a schedule with known LogGOPSim results has these in the binary form, too. `golden.rs` compares the same
/// texts with LogGOPSim.
#[test]
fn golden_schedules_run_as_their_texts() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/golden/loggops/goal"));
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let from_text = goal::open(&path).unwrap();
        let bytes = as_lgs(&from_text).unwrap();
        let from_lgs = read(&bytes).unwrap();
        let [one, two] =
            [&from_text, &from_lgs].map(|schedule| run(schedule, &LogGops::default(), &Options::default()).unwrap());
        assert_eq!(one, two, "{}", path.display());
        assert_eq!(as_lgs(&from_lgs).unwrap(), bytes);
        compared += 1;
    }
    assert!(compared > 20, "{compared} schedules");
}

#[test]
fn truncated_files_are_errors_that_say_where() {
    let bytes = expected();
    for length in 8..bytes.len() {
        let error = read(&bytes[..length]).unwrap_err();
        assert!(error.starts_with("x.bin: byte ") && error.contains("truncated or damaged"), "{length}: {error}");
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(read(&longer).unwrap_err().contains("bytes follow the section of the last rank"));
}

#[test]
fn contradictions_are_named_with_rank_operation_and_offset() {
    // The first node lies behind number, header, directory, counts, and one root.
    let first = 8 + 6 + 3 * 16 + 8 + 4;
    let changed = |at: usize, byte: u8| {
        let mut bytes = expected();
        bytes[at] = byte;
        read(&bytes).unwrap_err()
    };
    let node = |problem: &str| format!("x.bin: byte {first}: rank 0, operation 1: {problem}");
    let cycle = file(0, 0, &[&[Node(3, 0, 1, 0, 0, 0, &[1], &[], 1), Node(3, 0, 1, 0, 0, 0, &[0], &[], 1)]]);
    for (error, start) in [
        (changed(first + 4, 9), node("kind 9 is none of send (1), recv (2) and calc (3)")),
        (changed(first + 16, 255), node("a calculation of ")),
        (changed(first + 27, 9), node("its dependents are behind the section's end")),
        (changed(first, 1), node("it waits for 1 operations, but 0 name it")),
        (changed(first + 39 + 5, 9), format!("x.bin: byte {}: rank 0, operation 2: rank 9 does not exist", first + 39)),
        (changed(first - 4, 1), format!("x.bin: byte {}: rank 0: its list of operations without", first - 4)),
        (read(&cycle).unwrap_err(), "x.bin: rank 0: cycle of dependencies: operation ".into()),
        (changed(first + 3 * 39, 9), node("its dependent 9 is not among the 3 operations")),
        (changed(8, 0), "x.bin: byte 8: 0 ranks".into()),
        (changed(14, 0), "x.bin: byte 14: the section of rank 0 does not start at byte 62".into()),
        (changed(first - 8 - 4, 250), "x.bin: byte 62: rank 0: its section of ".into()),
    ] {
        assert!(error.starts_with(&start), "{error} instead of {start}");
    }
}

/// The nodes of LogGOPSim 2 have the same fields, then 65 bytes for cards.
/// The text has no longer messages either.
#[test]
fn messages_have_less_than_2_to_the_63_bytes() {
    let longest = 1 << 63;
    let error = read(&file(0, 0, &[&[Node(1, 0, longest, 1, 0, 0, &[], &[], 0)]])).unwrap_err();
    assert!(error.contains("rank 0, operation 1: "), "{error}");
    assert!(error.contains("a message of 9223372036854775808 bytes; the most are 9223372036854775807"), "{error}");
    assert!(read(&file(0, 0, &[&[Node(1, 0, longest - 1, 1, 0, 0, &[], &[], 0)]])).is_ok());
}

#[test]
fn files_of_loggopsim_2_are_named() {
    let plain = file(0, 0, &[&[Node(3, 0, 7, 0, 0, 0, &[], &[], 0), Node(3, 0, 8, 0, 0, 0, &[], &[], 0)]]);
    let section = 8 + 6 + 16;
    let nodes = section + 8 + 2 * 4;
    let long = [&plain[..nodes + 39], &[0; 65], &plain[nodes + 39..], &[0; 65]].concat();
    let mut bytes = long;
    let end = bytes.len() as u64 - 8;
    bytes[22..30].copy_from_slice(&end.to_le_bytes());
    let error = goal::read(&mut &*bytes, Path::new("x.bin")).unwrap_err();
    let ReadError::Lgs { error: lgs::SpillError::File(LgsError::Version2(30)), .. } = error else { panic!("{error}") };
}

#[test]
fn matching_spaces_become_tags_or_are_an_error() {
    let spaces = "num_ranks 2
        rank 0 { send 1b to 1 tag 5 space 3 send 2b to 1 tag 5 }
        rank 1 { recv 2b from any tag 5 recv 1b from 0 tag 5 space 3 }";
    let found = read(&as_lgs(&text::read(spaces.as_bytes()).unwrap()).unwrap()).unwrap();
    let tag = |op| match found.action(op) {
        Action::Send { tag, space: 0, .. } | Action::Recv { tag: Some(tag), space: 0, .. } => tag,
        action => panic!("{action}"),
    };
    assert_eq!([tag(0), tag(1), tag(2), tag(3)], [3 << 3 | 5, 5, 5, 3 << 3 | 5]);
    for (text, problem) in [
        ("rank 0 { send 1b to 0 space 3 recv 1b from 0 tag any }", "rank 0, operation 2 (recv 1b from 0 tag any): "),
        ("rank 0 { send 1b to 0 tag 4294967294 space 1 }", "matching spaces up to 1 and tags up to 4294967294 do not"),
        ("rank 0 { test 4 for 1 }", "rank 0, operation 1 (test 4 for 1): LogGOPSim's binary form has no operations"),
    ] {
        let schedule = text::read(format!("num_ranks 1 {text}").as_bytes()).unwrap();
        let error = as_lgs(&schedule).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{error}");
    }
}
