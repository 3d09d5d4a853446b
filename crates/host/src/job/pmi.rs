//! PMI-1, the wire protocol by which programs written for MPICH's process managers learn about each other.
//!
//! A rank has one end of a socket pair (`PMI_FD`) and sends lines `cmd=NAME key=value ...`; each is answered with one
//! line. Requests are answered at once and take no simulated time. A barrier blocks the rank, as a library call would:
//! it is handed out as [`Op::PmiBarrier`](abi::mailbox::Op::PmiBarrier), and its answer is `barrier_out`.
//!
//! The rank blocks in `read`, outside of the library, so its requests come as a signal (SIGIO) that rings the doorbell.
//!
//! What a rank sends is not trusted: lines, unanswered lines, and what a job publishes have bounds.

use super::signals;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

/// Name of the only key-value space.
const SPACE: &str = "kvs_spin_0";
/// Longest name of a space, key and value: MPICH clients have lines of 1,024 bytes.
const MAXES: (usize, usize, usize) = (256, 64, 1024);
/// Longest line that is read.
const LINE: usize = 16 * 1024;
/// Most bytes of lines that lead to no answer, such as those of an `mcmd=spawn` without its `endcmd`.
const UNANSWERED: usize = 1 << 20;
/// Most bytes that a job publishes, for each of its ranks.
const PUBLISHED: usize = 1 << 20;
/// Lines that are answered in one go; the simulator then looks after other things.
const LINES: usize = 1024;
/// Fields that come last in their line and may hold blanks and `=`.
const REST_OF_LINE: [&str; 3] = ["value", "port", "message"];
/// A well-known key: which ranks share a node. Blocks of (first node, nodes, ranks a node); here none do.
const MAPPING: &str = "PMI_process_mapping";

/// The ranks' connections, and what they have published.
pub struct Pmi {
    ranks: Vec<Option<Client>>,
    keys: Published,
    services: BTreeMap<String, String>,
    /// Bytes of keys, services and their values.
    published: usize,
    /// A rank whose first line was the first of all ranks, until somebody asks for it.
    first: Option<usize>,
    spoken: bool,
}

/// Keys in the order in which they came, for `getbyidx`.
#[derive(Default)]
struct Published {
    places: BTreeMap<String, usize>,
    pairs: Vec<(String, String)>,
}

struct Client {
    stream: UnixStream,
    /// [`signals::inputs`] at the last look.
    seen: u32,
    input: Vec<u8>,
    /// The lines of an unfinished `mcmd=spawn`.
    spawn: Option<BTreeMap<String, String>>,
    /// Bytes of lines since the last answer.
    unanswered: usize,
    in_barrier: bool,
    aborted: Option<i32>,
    fault: Option<String>,
}

/// What a line leads to.
enum Answer {
    Line(String),
    /// An answer comes with a later line.
    None,
    Barrier,
    Abort(i32),
}

impl Pmi {
    /// Connections for this number of ranks, none of which is there yet.
    pub fn new(ranks: usize) -> Pmi {
        let keys = Published::default();
        let ranks_without = (0..ranks).map(|_| None).collect();
        let mut pmi =
            Pmi { ranks: ranks_without, keys, services: BTreeMap::new(), published: 0, first: None, spoken: false };
        pmi.put(SPACE, MAPPING, &format!("(vector,(0,{ranks},1))")).expect("it is short");
        pmi
    }

    /// Gives a rank that is about to start its connection: the descriptor to pass on as number `fd`.
    pub fn connect(&mut self, rank: usize, command: &mut Command, fd: i32) -> io::Result<OwnedFd> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        signals::on_input(ours.as_raw_fd())?;
        self.ranks[rank] = Some(Client {
            stream: ours,
            seen: signals::inputs(),
            input: Vec::new(),
            spawn: None,
            unanswered: 0,
            in_barrier: false,
            aborted: None,
            fault: None,
        });
        command
            .env("PMI_FD", fd.to_string())
            .env("PMI_RANK", rank.to_string())
            .env("PMI_ID", rank.to_string())
            .env("PMI_SIZE", self.ranks.len().to_string())
            .env("PMI_SPAWNED", "0")
            .env_remove("PMI_PORT"); // of a process manager around spinrun
        Ok(theirs.into())
    }

    /// Answers what a rank has asked; whether that was anything. Free while nothing has come for any rank.
    pub fn serve(&mut self, rank: usize) -> bool {
        let inputs = signals::inputs();
        match &mut self.ranks[rank] {
            Some(client) if client.seen != inputs => client.seen = inputs,
            _ => return false,
        }
        self.answer_lines(rank)
    }

    /// Answers the lines that have come from a rank; whether there were any.
    fn answer_lines(&mut self, rank: usize) -> bool {
        for count in 0..LINES {
            let Some(line) = self.ranks[rank].as_mut().and_then(Client::line) else { return count > 0 };
            if !std::mem::replace(&mut self.spoken, true) {
                self.first = Some(rank);
            }
            let fields = self.client(rank).gather(&line);
            let answer = fields.map_or(Answer::None, |fields| self.answer(&fields));
            let client = self.client(rank);
            client.unanswered = if matches!(answer, Answer::None) { client.unanswered + line.len() + 1 } else { 0 };
            if client.unanswered > UNANSWERED {
                client
                    .fail(format!("more than {UNANSWERED} bytes that ask for nothing, such as a spawn without endcmd"));
            }
            match answer {
                Answer::Line(answer) => self.send(rank, &answer),
                Answer::None => {}
                Answer::Barrier => client.in_barrier = true,
                Answer::Abort(code) => client.aborted = Some(code),
            }
        }
        signals::expect_input();
        true
    }

    /// Whether a rank may have asked something that [`Pmi::serve`] has not seen.
    pub fn has_input(&self, rank: usize) -> bool {
        self.ranks[rank].as_ref().is_some_and(|client| client.seen != signals::inputs())
    }

    /// Whether a rank waits in a barrier.
    pub fn in_barrier(&self, rank: usize) -> bool {
        self.ranks[rank].as_ref().is_some_and(|client| client.in_barrier)
    }

    /// Lets a rank leave its barrier.
    pub fn leave_barrier(&mut self, rank: usize) {
        if self.ranks[rank].as_mut().is_some_and(|client| std::mem::take(&mut client.in_barrier)) {
            self.send(rank, "cmd=barrier_out rc=0");
        }
    }

    /// The exit code with which a rank has asked to end the job.
    pub fn aborted(&self, rank: usize) -> Option<i32> {
        self.ranks[rank].as_ref()?.aborted
    }

    /// Whether this rank was the first to speak; told once.
    pub fn has_begun(&mut self, rank: usize) -> bool {
        self.first.take_if(|first| *first == rank).is_some()
    }

    /// Whether any rank has sent a line.
    pub fn has_spoken(&self) -> bool {
        self.spoken
    }

    /// Why a rank's connection cannot go on.
    pub fn fault(&mut self, rank: usize) -> Option<String> {
        self.ranks[rank].as_mut()?.fault.take()
    }

    /// Forgets a rank that has ended. The exit code with which it has asked to end the job, perhaps at the very last.
    pub fn disconnect(&mut self, rank: usize) -> Option<i32> {
        self.answer_lines(rank);
        self.ranks[rank].take()?.aborted
    }

    fn client(&mut self, rank: usize) -> &mut Client {
        self.ranks[rank].as_mut().expect("it has just sent a line")
    }

    fn send(&mut self, rank: usize, answer: &str) {
        let Some(client) = &mut self.ranks[rank] else { return };
        // One write a line, as clients read it.
        match client.stream.write_all(format!("{answer}\n").as_bytes()) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => client.fail("it does not read its answers".into()),
            // When it has closed its end, its own end is what there is to tell.
            _ => {}
        }
    }

    fn answer(&mut self, fields: &BTreeMap<String, String>) -> Answer {
        let field = |name: &str| fields.get(name).map_or("", String::as_str);
        let command = if fields.contains_key("mcmd") { field("mcmd") } else { field("cmd") };
        Answer::Line(match command {
            // Version 1.1 is all we speak; a client of version 2 falls back when it is refused.
            "init" => {
                let rc = if field("pmi_version") == "1" { 0 } else { -1 };
                format!("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={rc}")
            }
            "get_maxes" => {
                let (name, key, value) = MAXES;
                format!("cmd=maxes kvsname_max={name} keylen_max={key} vallen_max={value} rc=0")
            }
            "get_my_kvsname" => format!("cmd=my_kvsname kvsname={SPACE} rc=0"),
            "get_appnum" => "cmd=appnum appnum=0 rc=0".into(),
            "get_universe_size" => format!("cmd=universe_size size={} rc=0", self.ranks.len()),
            "put" => match self.put(field("kvsname"), field("key"), field("value")) {
                Ok(()) => "cmd=put_result rc=0 msg=success".into(),
                Err(why) => format!("cmd=put_result rc=-1 msg={why}"),
            },
            "get" if field("kvsname") != SPACE => "cmd=get_result rc=-1 msg=no_such_kvs value=unknown".into(),
            "get" => match self.keys.get(field("key")) {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                None => format!("cmd=get_result rc=-1 msg=key_{}_not_found value=unknown", field("key")),
            },
            "getbyidx" => match field("idx").parse().ok().and_then(|index: usize| self.keys.at(index)) {
                Some((next, key, value)) => format!("cmd=getbyidx_results rc=0 nextidx={next} key={key} val={value}"),
                None => "cmd=getbyidx_results rc=-2 reason=no_more_keyvals".into(),
            },
            "barrier_in" => return Answer::Barrier,
            "finalize" => "cmd=finalize_ack rc=0".into(),
            "abort" => return Answer::Abort(field("exitcode").parse().unwrap_or(1)),
            "publish_name" => match self.publish(field("service"), field("port")) {
                Ok(()) => "cmd=publish_result rc=0 info=ok".into(),
                Err(why) => format!("cmd=publish_result rc=-1 info={why}"),
            },
            "lookup_name" => match self.services.get(field("service")) {
                Some(port) => format!("cmd=lookup_result rc=0 info=ok port={port}"),
                None => "cmd=lookup_result rc=-1 info=no_such_service".into(),
            },
            "unpublish_name" => match self.services.remove(field("service")) {
                Some(port) => {
                    self.published -= field("service").len() + port.len();
                    "cmd=unpublish_result rc=0 info=ok".into()
                }
                None => "cmd=unpublish_result rc=-1 info=no_such_service".into(),
            },
            // A client asks for all programs of a spawn before it reads one answer.
            "spawn" if field("spawnssofar") != field("totspawns") => return Answer::None,
            "spawn" => "cmd=spawn_result rc=-1 msg=a_simulated_job_has_a_fixed_number_of_ranks".into(),
            other => format!("cmd={}_result rc=-1 msg=unknown_command", if other.is_empty() { "error" } else { other }),
        })
    }

    fn put(&mut self, space: &str, key: &str, value: &str) -> Result<(), &'static str> {
        match () {
            () if space != SPACE => Err("no_such_kvs"),
            () if key.is_empty() || key.len() > MAXES.1 => Err("bad_key_length"),
            () if value.len() > MAXES.2 => Err("value_too_long"),
            () => {
                let old = self.keys.get(key).map_or(0, |value| key.len() + value.len());
                self.reserve(old, key.len() + value.len())?;
                self.keys.put(key, value);
                Ok(())
            }
        }
    }

    fn publish(&mut self, service: &str, port: &str) -> Result<(), &'static str> {
        let old = self.services.get(service).map_or(0, |port| service.len() + port.len());
        self.reserve(old, service.len() + port.len())?;
        self.services.insert(service.into(), port.into());
        Ok(())
    }

    /// Counts what replaces `old` published bytes by `new` ones, if the job may publish that many.
    fn reserve(&mut self, old: usize, new: usize) -> Result<(), &'static str> {
        let published = self.published - old + new;
        if published > PUBLISHED * self.ranks.len() {
            return Err("no_room");
        }
        self.published = published;
        Ok(())
    }
}

impl Published {
    /// A later value of a key replaces the earlier one.
    fn put(&mut self, key: &str, value: &str) {
        match self.places.get(key) {
            Some(&place) => self.pairs[place].1 = value.into(),
            None => {
                self.places.insert(key.into(), self.pairs.len());
                self.pairs.push((key.into(), value.into()));
            }
        }
    }

    fn get(&self, key: &str) -> Option<&str> {
        Some(&self.pairs[*self.places.get(key)?].1)
    }

    /// The pair at an index, and the index of the next one.
    fn at(&self, index: usize) -> Option<(usize, &str, &str)> {
        self.pairs.get(index).map(|(key, value)| (index + 1, key.as_str(), value.as_str()))
    }
}

impl Client {
    /// Ends the connection.
    fn fail(&mut self, why: String) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        self.input.clear();
        self.fault.get_or_insert(why);
    }

    /// The next whole line, if one has come.
    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.input.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.input.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let mut chunk = [0; 2048];
            match self.stream.read(&mut chunk) {
                Ok(1..) if self.input.len() > LINE => {
                    self.fail(format!("a line is longer than {LINE} bytes"));
                    return None;
                }
                Ok(length @ 1..) => self.input.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return None,
            }
        }
    }

    /// The fields of a command, once its last line is there. One line holds `cmd=...` and all its fields; `mcmd=...`
    /// has a line for each, up to `endcmd`.
    fn gather(&mut self, line: &str) -> Option<BTreeMap<String, String>> {
        if let Some(mut fields) = self.spawn.take() {
            if line.trim() == "endcmd" {
                return Some(fields);
            }
            fields.extend(split(line));
            self.spawn = Some(fields);
            return None;
        }
        if line.starts_with("mcmd=") {
            self.spawn = Some(split(line).into_iter().collect());
            return None;
        }
        Some(words(line)).filter(|_| !line.trim().is_empty())
    }
}

/// The fields of a line.
fn words(line: &str) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if let Some((name, value)) = rest.split_once('=').filter(|(name, _)| REST_OF_LINE.contains(name)) {
            fields.insert(name.into(), value.into());
            break;
        }
        fields.extend(split(word));
        rest = after.trim_start();
    }
    fields
}

fn split(field: &str) -> Option<(String, String)> {
    field.split_once('=').map(|(name, value)| (name.into(), value.into()))
}
