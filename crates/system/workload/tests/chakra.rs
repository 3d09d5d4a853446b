// SPDX-License-Identifier: Apache-2.0
//! Tests the import of Chakra execution traces, which the tests write byte by byte.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use goal::loggops::{LogGops, Options as RunOptions, run};
use goal::{Action, Schedule, text};
use workload::chakra::{ChakraError, Files, Import, Options, Roofline, import};

/// Message of Protocol Buffers under construction.
#[derive(Clone, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Message {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    fn attribute(self, name: &str, field: u64, value: u64) -> Message {
        self.bytes(10, &Message::default().bytes(1, name.as_bytes()).number(field, value).0)
    }

    fn text(self, name: &str, value: &str) -> Message {
        self.bytes(10, &Message::default().bytes(1, name.as_bytes()).bytes(29, value.as_bytes()).0)
    }

    /// Adds a list of numbers in the packed form.
    fn packed(self, field: u64, values: &[u64]) -> Message {
        let mut list = Message::default();
        values.iter().for_each(|value| list.varint(*value));
        self.bytes(field, &list.0)
    }
}

fn node(id: u64, kind: u64, after: &[u64]) -> Message {
    Message::default().number(1, id).bytes(2, b"node").number(3, kind).packed(5, after)
}

fn compute(id: u64, micros: u64, after: &[u64]) -> Message {
    node(id, 4, after).number(7, micros).attribute("is_cpu_op", 27, 0)
}

fn collective(id: u64, kind: u64, bytes: u64, after: &[u64]) -> Message {
    node(id, 7, after).attribute("comm_type", 9, kind).attribute("comm_size", 9, bytes)
}

fn file(nodes: &[Message]) -> Vec<u8> {
    let mut all = Message::default();
    for message in [&[Message::default().bytes(1, b"0.0.4")], nodes].concat() {
        all.varint(message.0.len() as u64);
        all.0.extend(message.0);
    }
    all.0
}

fn write(folder: &Path, ranks: &[Vec<Message>]) {
    for (rank, nodes) in ranks.iter().enumerate() {
        fs::write(folder.join(format!("w.{rank}.et")), file(nodes)).unwrap();
    }
}

fn imported(ranks: &[Vec<Message>], options: &Options) -> Result<Import, ChakraError> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), ranks);
    import(&Files::find(folder.path())?.expect("a workload"), options)
}

fn as_text(schedule: &Schedule) -> String {
    let mut out = Vec::new();
    text::write(schedule, 0..schedule.ranks(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn problem(ranks: &[Vec<Message>], options: &Options) -> String {
    imported(ranks, options).unwrap_err().to_string()
}

/// Two ranks compute on their accelerators, add eight bytes, and pass a message on.
fn two_ranks() -> Vec<Vec<Message>> {
    let message = |id, kind, after: &[u64]| {
        node(id, kind, after)
            .attribute("comm_src", 7, 0)
            .attribute("comm_dst", 7, 1)
            .attribute("comm_size", 13, 100)
            .attribute("comm_tag", 7, 3)
    };
    vec![
        vec![compute(1, 5, &[]), collective(2, 0, 8, &[1]), message(3, 5, &[1])],
        vec![compute(1, 7, &[]), collective(2, 0, 8, &[1]), message(3, 6, &[2]), compute(4, 1, &[3])],
    ]
}

#[test]
fn a_trace_equals_the_schedule_made_by_hand() {
    let import = imported(&two_ranks(), &Options::default()).unwrap();
    let by_hand = text::read(
        b"num_ranks 2
        rank 0 {
            compute: calc 5000 cpu 1
            a: send 4b to 1 tag 0 space 1    b: recv 4b from 1 tag 0 space 1
            c: send 4b to 1 tag 0 space 1    d: recv 4b from 1 tag 0 space 1
            message: send 100b to 1 tag 3
            a requires compute  b requires compute  d requires compute  message requires compute
            c requires b
        }
        rank 1 {
            compute: calc 7000 cpu 1
            a: send 4b to 0 tag 0 space 1    b: recv 4b from 0 tag 0 space 1
            c: send 4b to 0 tag 0 space 1    d: recv 4b from 0 tag 0 space 1
            end: calc 0
            message: recv 100b from 0 tag 3
            then: calc 1000 cpu 1
            a requires compute  b requires compute  d requires compute  c requires b
            message requires a  message requires c  message requires d
            then requires message
        }",
    )
    .unwrap();
    let ends = |schedule: &Schedule| run(schedule, &LogGops::default(), &RunOptions::default()).unwrap().ends;
    assert_eq!(ends(&import.schedule), ends(&by_hand));
    let lines = as_text(&import.schedule);
    assert!(lines.contains("l6: send 100b to 1 tag 3\n"), "{lines}");
    let (zero, one) = (import.ranks[0], import.ranks[1]);
    assert_eq!((zero.nodes, zero.compute_ns, zero.messages, zero.message_bytes), (3, 5000, 1, 100));
    assert_eq!((one.nodes, one.compute_ns, one.collectives, one.collective_bytes), (4, 8000, 1, 8));
    assert!(import.warnings.is_empty());
}

#[test]
fn compressed_files_and_prefixes_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [0, 1].map(|rank| file(&two_ranks()[rank]));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&two).unwrap();
    fs::write(folder.path().join("a.b.0.et"), one).unwrap();
    fs::write(folder.path().join("a.b.1.et.gz"), packed.finish().unwrap()).unwrap();
    fs::write(folder.path().join("README"), "").unwrap();
    for path in ["", "a.b", "a.b.1.et.gz"] {
        let files = Files::find(&folder.path().join(path)).unwrap().unwrap();
        assert_eq!(import(&files, &Options::default()).unwrap().schedule.ranks(), 2, "{path}");
    }
    assert!(Files::find(&folder.path().join("other")).unwrap().is_none());
    fs::write(folder.path().join("c.0.et"), "").unwrap();
    let error = Files::find(folder.path()).unwrap_err().to_string();
    assert!(error.contains("workloads a.b, c: name one, such as "), "{error}");
    fs::remove_file(folder.path().join("a.b.0.et")).unwrap();
    let error = Files::find(&folder.path().join("a.b")).unwrap_err().to_string();
    assert!(error.ends_with("the trace of rank 0 (a.b.0.et) is missing"), "{error}");
}

/// Counts messages and their bytes by the formulas of the algorithms.
#[test]
fn algorithms_send_what_they_should() {
    let bytes = 8 * 1024;
    let counts = |kind: u64, options: &str| {
        let ranks = vec![vec![collective(1, kind, bytes, &[])]; 8];
        let options = Options { collectives: options.parse().unwrap(), ..Options::default() };
        let schedule = imported(&ranks, &options).unwrap().schedule;
        let outcome = run(&schedule, &LogGops::default(), &RunOptions::default()).unwrap();
        assert!(outcome.unreceived.is_empty());
        let mut sums = (0, 0);
        for op in 0..schedule.len() as u32 {
            if let Action::Send { bytes, .. } = schedule.action(op) {
                sums = (sums.0 + 1, sums.1 + bytes);
            }
        }
        sums
    };
    assert_eq!(counts(0, "allreduce=ring"), (8 * 14, 14 * bytes));
    assert_eq!(counts(0, "allreduce=tree"), (14, 14 * bytes));
    assert_eq!(counts(0, "allreduce=halving"), (8 * 6, 14 * bytes));
    assert_eq!(counts(0, "allreduce=doubling"), (8 * 3, 24 * bytes));
    // Two nodes of four: three steps of a quarter within, two of an eighth between, three within.
    let within = 8 * 3 * bytes / 4;
    assert_eq!(counts(0, "allreduce=hierarchical,node=4"), (8 * 8, 2 * within + 8 * 2 * bytes / 8));
    assert_eq!(counts(0, "allreduce=hierarchical,node=3"), (8 * 14, 14 * bytes));
    // Two switches of four ranks and their root: each of ten links carries the vector up and down, in four chunks.
    assert_eq!(counts(0, "allreduce=switch,tree=4,chunk=2048"), (4 * 2 * 10, 2 * 10 * bytes));
    assert_eq!(counts(0, "allreduce=card,node=4,chunk=256"), (4 * 8 * 8, 2 * within + 8 * 2 * bytes / 8));
    assert_eq!(counts(0, "channels=2,chunk=256"), (2 * 2 * 8 * 14, 14 * bytes));
    assert_eq!(counts(0, "protocol=ll"), (8 * 14, 2 * 14 * bytes));
    // One message of LL128 has 120 bytes in each line of 128.
    assert_eq!(counts(5, "protocol=ll128"), (7, 7 * bytes.div_ceil(120) * 128));
    assert_eq!(counts(1, "channels=1"), (7, 7 * bytes));
    assert_eq!(counts(2, "channels=1"), (8 * 7, 8 * 7 * bytes));
    assert_eq!(counts(3, "channels=1"), (7, (4 + 2 * 2 + 4) * bytes));
    assert_eq!(counts(4, "channels=1"), (7, (4 + 2 * 2 + 4) * bytes));
    assert_eq!(counts(5, "channels=1"), (7, 7 * bytes));
    assert_eq!(counts(6, "alltoall=linear"), (8 * 7, 7 * bytes));
    assert_eq!(counts(6, "alltoall=pairwise"), (8 * 7, 7 * bytes));
    assert_eq!(counts(7, "channels=1"), (8 * 7, 7 * bytes));
    assert_eq!(counts(9, "channels=8"), (8 * 3, 8 * 3));
    let error = "allreduce=star".parse::<workload::collective::Collectives>().unwrap_err();
    assert!(error.starts_with("allreduce=star: no such choice; there are: allreduce=ring|tree|"), "{error}");
}

#[test]
fn groups_come_from_files_traces_and_dimensions() {
    let partners = |schedule: &Schedule, rank: u32| {
        let mut all: Vec<u32> = schedule
            .of_rank(rank)
            .filter_map(|op| match schedule.action(op) {
                Action::Send { to, .. } => Some(to),
                _ => None,
            })
            .collect();
        all.dedup();
        all
    };
    let named = vec![vec![collective(1, 0, 8, &[]).text("pg_name", "7")]; 2];
    let idle = vec![vec![compute(1, 1, &[])]; 2];
    let ranks = [named.clone(), idle].concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("groups.json");
    fs::write(&path, r#"{"7": [1, 0]}"#).unwrap();
    let options = Options { groups: Some(path.clone()), ..Options::default() };
    let schedule = imported(&ranks, &options).unwrap().schedule;
    assert_eq!(partners(&schedule, 0), [1]);
    assert!(problem(&ranks, &Options::default()).ends_with("group 7 is unknown: give the file of groups (--groups)"));
    fs::write(&path, r#"{"7": [1, 9]}"#).unwrap();
    assert!(problem(&ranks, &options).ends_with("groups.json: group 7: 9 is none of the 4 ranks"));

    let list = r#"['[{"pg_name": "7", "ranks": []}]']"#;
    let metadata = node(9, 1, &[]).bytes(8, &Message::default().bytes(1, list.as_bytes()).0);
    let of_trace = vec![vec![metadata, named[0][0].clone()]; 4];
    assert_eq!(partners(&imported(&of_trace, &Options::default()).unwrap().schedule, 3), [0]);

    let list = Message::default().packed(1, &[0, 1]).0;
    let involved = Message::default().bytes(1, b"involved_dim").bytes(28, &list).0;
    let of_dims = vec![vec![collective(1, 0, 8, &[]).bytes(10, &involved)]; 6];
    let options = Options { dims: vec![2, 3], ..Options::default() };
    let schedule = imported(&of_dims, &options).unwrap().schedule;
    assert_eq!((partners(&schedule, 0), partners(&schedule, 5)), (vec![2], vec![1]));
    assert!(problem(&of_dims, &Options::default()).ends_with("give the sides of the grid of ranks (--dims)"));
    let options = Options { dims: vec![2, 2], ..Options::default() };
    assert!(problem(&of_dims, &options).ends_with("a grid of [2, 2] has not the 6 ranks of the workload"));
}

#[test]
fn accelerators_compute_by_durations_or_by_a_roofline() {
    let work =
        |micros| vec![vec![compute(1, micros, &[]).attribute("num_ops", 9, 4000).attribute("tensor_size", 13, 100)]];
    let ns = |micros, options: &Options| match imported(&work(micros), options).unwrap().schedule.action(0) {
        Action::Calc(ns) => ns,
        action => panic!("{action}"),
    };
    let roofline = |bytes_per_ns| {
        let roofline = Some(Roofline { operations_per_ns: 10.0, bytes_per_ns });
        Options { roofline, ..Options::default() }
    };
    assert_eq!(ns(3, &Options::default()), 3000);
    assert_eq!(ns(3, &roofline(1.0)), 400);
    assert_eq!(ns(0, &roofline(0.1)), 1000);
    assert_eq!(ns(3, &Options { calc_scale: 1.5, ..Options::default() }), 4500);
    assert!(problem(&work(0), &Options::default()).contains("node 1 (node): it has operations but no duration: give"));
}

#[test]
fn mistakes_are_named_with_file_and_node() {
    let one = |nodes: Vec<Message>| problem(&[nodes], &Options::default());
    for (error, end) in [
        (one(vec![compute(1, 1, &[2])]), "w.0.et: node 1 (node): it waits for node 2, which is not in the file"),
        (
            one(vec![compute(1, 1, &[2]), compute(2, 1, &[1])]),
            "node 1 (node): it waits for itself, through other nodes",
        ),
        (one(vec![compute(1, 1, &[]), compute(1, 1, &[])]), "node 1 (node): another node has the same number"),
        (one(vec![node(1, 7, &[])]), "node 1 (node): attribute comm_type is missing; write the trace again"),
        (one(vec![collective(1, 11, 8, &[])]), "comm_type 11 is no collective of the schema (0 to 9)"),
        (one(vec![node(1, 44, &[])]), "type 44 is none of the schema's (0 to 10)"),
        (one(vec![collective(1, 5, 8, &[]).attribute("root", 9, 3)]), "root 3 is not among the 1 members of its group"),
        (one(vec![compute(1, u64::MAX, &[])]), "18446744073709551615 microseconds are beyond the clock"),
        (
            problem(&[vec![collective(1, 0, 8, &[])], vec![collective(1, 0, 9, &[])]], &Options::default()),
            "w.1.et: node 1 (node): collective 1 of group of all ranks is all-reduce of 9 bytes, but all-reduce of 8 \
             bytes on the ranks before: the traces are of different runs",
        ),
        (
            problem(&[vec![collective(1, 0, 8, &[])], vec![]], &Options::default()),
            "w.1.et: rank 1 has 0 of the 1 collectives of group of all ranks: the traces are of different runs",
        ),
    ] {
        assert!(error.ends_with(end), "{error}");
    }
    let mut ranks = two_ranks();
    ranks.swap(0, 1);
    let error = problem(&ranks, &Options::default());
    assert!(error.ends_with("w.0.et: node 3 (node): it receives on rank 1, in the trace of rank 0"), "{error}");
}

#[test]
fn truncated_and_foreign_files_are_errors() {
    let whole = file(&two_ranks()[0]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.0.et");
    let error = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        import(&Files::find(&path).unwrap().unwrap(), &Options::default()).unwrap_err().to_string()
    };
    // A file that ends between two messages is a shorter trace.
    let mut boundaries = vec![whole.len()];
    let mut at = 0;
    while at < whole.len() {
        boundaries.push(at);
        at += 1 + whole[at] as usize;
    }
    for length in (0..whole.len()).filter(|length| *length == 0 || !boundaries.contains(length)) {
        let error = error(&whole[..length]);
        assert!(error.contains("w.0.et: byte "), "{length}: {error}");
    }
    assert!(error(b"num_ranks 2").contains("w.0.et: byte 0: "));
    assert!(error(&[0xff; 12]).ends_with("byte 0: a length of more than 9 bytes, or cut off: the file is damaged"));
    let mut none = Message::default();
    none.varint(two_ranks()[0][0].0.len() as u64);
    none.0.extend(&two_ranks()[0][0].0);
    assert!(error(&none.0).contains("byte 0: no metadata with a version"));
}
