//! PMI-1, the wire protocol by which programs written for MPICH's process managers learn about each other.
//!
//! A rank has one end of a socket pair (`PMI_FD`) and sends lines `cmd=NAME key=value ...`; each is answered with one
//! line. Requests are answered at once and take no simulated time. A barrier holds the rank, as a library call would:
//! it is handed out as [`Op::PmiBarrier`](abi::mailbox::Op::PmiBarrier), and its answer is `barrier_out`.
//!
//! The rank blocks in `read`, outside of the library, so its requests come as a signal (SIGIO) that rings the doorbell.

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
/// A well-known key: which ranks share a node. Blocks of (first node, nodes, ranks a node); here none do.
const MAPPING: &str = "PMI_process_mapping";

/// The ranks' connections, and what they have published.
pub struct Pmi {
    ranks: Vec<Option<Client>>,
    keys: Published,
    services: BTreeMap<String, String>,
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
    in_barrier: bool,
    aborted: Option<i32>,
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
    /// Connections for so many ranks, none of which is there yet.
    pub fn new(ranks: usize) -> Pmi {
        let keys = Published::default();
        let mut pmi = Pmi { ranks: (0..ranks).map(|_| None).collect(), keys, services: BTreeMap::new() };
        pmi.keys.put(MAPPING, &format!("(vector,(0,{ranks},1))"));
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
            in_barrier: false,
            aborted: None,
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
        let mut served = false;
        while let Some(line) = self.ranks[rank].as_mut().and_then(Client::line) {
            served = true;
            let Some(client) = &mut self.ranks[rank] else { break };
            let fields = match client.gather(&line) {
                Some(fields) => fields,
                None => continue,
            };
            match self.answer(&fields) {
                Answer::Line(answer) => self.send(rank, &answer),
                Answer::None => {}
                Answer::Barrier => self.client(rank).in_barrier = true,
                Answer::Abort(code) => self.client(rank).aborted = Some(code),
            }
        }
        served
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

    /// Forgets a rank that has ended.
    pub fn disconnect(&mut self, rank: usize) {
        self.ranks[rank] = None;
    }

    fn client(&mut self, rank: usize) -> &mut Client {
        self.ranks[rank].as_mut().expect("it has just sent a line")
    }

    fn send(&mut self, rank: usize, answer: &str) {
        let Some(client) = &mut self.ranks[rank] else { return };
        // One write a line, as clients read it. A client that does not read its answers is cut off.
        if client.stream.write_all(format!("{answer}\n").as_bytes()).is_err() {
            let _ = client.stream.shutdown(std::net::Shutdown::Both);
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
            "publish_name" => {
                self.services.insert(field("service").into(), field("port").into());
                "cmd=publish_result rc=0 info=ok".into()
            }
            "lookup_name" => match self.services.get(field("service")) {
                Some(port) => format!("cmd=lookup_result rc=0 info=ok port={port}"),
                None => "cmd=lookup_result rc=-1 info=no_such_service".into(),
            },
            "unpublish_name" => match self.services.remove(field("service")) {
                Some(_) => "cmd=unpublish_result rc=0 info=ok".into(),
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
                self.keys.put(key, value);
                Ok(())
            }
        }
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
                    let _ = self.stream.shutdown(std::net::Shutdown::Both);
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
        let pairs = line.split_whitespace().filter_map(split);
        Some(pairs.collect()).filter(|_| !line.trim().is_empty())
    }
}

fn split(field: &str) -> Option<(String, String)> {
    field.split_once('=').map(|(name, value)| (name.into(), value.into()))
}
