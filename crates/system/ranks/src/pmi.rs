// SPDX-License-Identifier: Apache-2.0
//! Server side of PMI-1, the wire protocol with which ranks exchange addresses under MPICH's process managers.
//! [`crate::pmi_connections`] holds the connections.
//!
//! A client sends lines `cmd=NAME key=value ...`; each is answered with one line. Clients are not trusted: the length
//! of lines, the number of unanswered lines, and the published data are limited.

#![deny(clippy::cast_possible_truncation)] // values come from input

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Alias of the job's only key-value space. `get_my_kvsname` returns another name, which is unique among all jobs.
pub const SPACE: &str = "kvs_spin_0";
/// Maximum size in bytes of lines without a reply, such as those of an `mcmd=spawn` without its `endcmd`.
pub const UNANSWERED: usize = 1 << 20;
/// Maximum size of published data in bytes, per rank of the job.
pub const PUBLISHED: usize = 1 << 20;
/// Maximum length of a line in bytes.
const LINE: usize = 16 * 1024;
/// Maximum lengths in bytes of a space name, a key and a value. MPICH clients have lines of 1,024 bytes.
const MAXES: (usize, usize, usize) = (256, 64, 1024);
/// Fields that may contain blanks and `=`. They come last in their line.
const REST_OF_LINE: [&str; 3] = ["value", "port", "message"];
/// Well-known key for the mapping of ranks to nodes, in blocks of (first node, nodes, ranks per node).
const MAPPING: &str = "PMI_process_mapping";
use abi::placement::{self, Block};
use abi::pmi::PROGRAMS;

/// Data published by the ranks of a job.
pub struct Board {
    ranks: usize,
    space: String,
    /// Set once a client requests the name of the space.
    is_named: bool,
    keys: Published,
    services: BTreeMap<String, String>,
    /// Size of keys, services and their values in bytes.
    published: usize,
}

/// Data received from a client and not processed yet.
#[derive(Default)]
pub struct Talk {
    input: Vec<u8>,
    /// Fields of an unfinished `mcmd=spawn`.
    spawn: Option<BTreeMap<String, String>>,
    /// Size of the lines since the last reply, in bytes.
    unanswered: usize,
    /// Index of the client's program in its job.
    appnum: usize,
}

/// Response to a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Reply with this line, without line end.
    Line(String),
    /// Reply after a later line.
    None,
    /// The client waits until all others reach the barrier. The reply is then [`BARRIER_OUT`].
    Barrier,
    /// End the job with this exit code.
    Abort(i32),
    /// Reply with this line, and tell the user the reason of the refusal.
    Refused(String, &'static str),
}

/// Reply to the clients when a barrier is complete.
pub const BARRIER_OUT: &str = "cmd=barrier_out rc=0";

/// Key-value pairs in order of first publication, for `getbyidx`.
#[derive(Default)]
struct Published {
    places: BTreeMap<String, usize>,
    pairs: Vec<(String, String)>,
}

/// Returns a name for a job's space that no other job uses, concurrently or later. MPICH derives from it the name of
/// the shared memory through which a rank sends messages to itself, so concurrent jobs with equal names would corrupt
/// each other's messages.
fn new_space() -> String {
    static JOBS: AtomicU16 = AtomicU16::new(0);
    let begin = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let job = JOBS.fetch_add(1, Ordering::Relaxed); // number of the job in this process
    // Constant length, so that equal jobs have equal memory layouts.
    format!("kvs_spin_{:08x}_{job:04x}{begin:020x}", std::process::id())
}

/// Returns the mapping of ranks on these nodes.
fn mapping(nodes: &[u32]) -> String {
    let blocks = placement::blocks(nodes);
    let blocks = blocks.iter().map(|Block { first, nodes, ranks }| format!("({first},{nodes},{ranks})"));
    format!("(vector,{})", blocks.collect::<Vec<_>>().join(","))
}

impl Board {
    /// Creates the board of a job whose programs have these numbers of ranks, on these nodes by rank.
    pub fn of_programs(sizes: &[usize], nodes: &[u32]) -> Board {
        let mut board = Board::on_nodes(nodes);
        if sizes.len() > 1 {
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            // A list that is too long for a value is not published, and libsimpmix then knows no application numbers.
            let _ = board.put(SPACE, PROGRAMS, &sizes.join(","));
        }
        board
    }

    /// Creates the board of a job whose ranks have these nodes.
    pub fn on_nodes(nodes: &[u32]) -> Board {
        let ranks = nodes.len();
        let mut board = Board {
            ranks,
            space: new_space(),
            is_named: false,
            keys: Published::default(),
            services: BTreeMap::new(),
            published: 0,
        };
        // A list that is too long for a value names a node for each rank, so that ranks share no memory.
        if board.put(SPACE, MAPPING, &mapping(nodes)).is_err() {
            board.put(SPACE, MAPPING, &format!("(vector,(0,{ranks},1))")).expect("it is short");
        }
        board
    }

    /// Returns the name of the job's space if a client has requested it.
    pub fn known_space(&self) -> Option<&str> {
        Some(self.space.as_str()).filter(|_| self.is_named)
    }

    fn is_space(&self, name: &str) -> bool {
        name == SPACE || name == self.space
    }

    fn answer(&mut self, fields: &BTreeMap<String, String>, appnum: usize) -> Answer {
        let field = |name: &str| fields.get(name).map_or("", String::as_str);
        let command = if fields.contains_key("mcmd") { field("mcmd") } else { field("cmd") };
        Answer::Line(match command {
            // Only version 1.1 is supported. A version 2 client falls back to it when refused.
            "init" => {
                let rc = if field("pmi_version") == "1" { 0 } else { -1 };
                format!("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={rc}")
            }
            "get_maxes" => {
                let (name, key, value) = MAXES;
                format!("cmd=maxes kvsname_max={name} keylen_max={key} vallen_max={value} rc=0")
            }
            "get_my_kvsname" => {
                self.is_named = true;
                format!("cmd=my_kvsname kvsname={} rc=0", self.space)
            }
            "get_appnum" => format!("cmd=appnum appnum={appnum} rc=0"),
            "get_universe_size" => format!("cmd=universe_size size={} rc=0", self.ranks),
            "put" => match self.put(field("kvsname"), field("key"), field("value")) {
                Ok(()) => "cmd=put_result rc=0 msg=success".into(),
                Err(why) => format!("cmd=put_result rc=-1 msg={why}"),
            },
            "get" if !self.is_space(field("kvsname")) => "cmd=get_result rc=-1 msg=no_such_kvs value=unknown".into(),
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
            // A client sends the requests for all programs of a spawn before it reads a reply.
            "spawn" if field("spawnssofar") != field("totspawns") => return Answer::None,
            "spawn" => {
                let answer = "cmd=spawn_result rc=-1 msg=a_simulated_job_has_a_fixed_number_of_ranks".into();
                return Answer::Refused(
                    answer,
                    "it cannot spawn processes: a simulated job has a fixed number of ranks",
                );
            }
            other => format!("cmd={}_result rc=-1 msg=unknown_command", if other.is_empty() { "error" } else { other }),
        })
    }

    fn put(&mut self, space: &str, key: &str, value: &str) -> Result<(), &'static str> {
        match () {
            () if !self.is_space(space) => Err("no_such_kvs"),
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

    /// Accounts for `old` published bytes that `new` ones replace. Fails if the job exceeds its limit.
    fn reserve(&mut self, old: usize, new: usize) -> Result<(), &'static str> {
        let published = self.published - old + new;
        if published > PUBLISHED * self.ranks {
            return Err("no_room");
        }
        self.published = published;
        Ok(())
    }
}

impl Talk {
    /// Creates the state of a client whose program has this index in its job.
    pub fn of_program(appnum: usize) -> Talk {
        Talk { appnum, ..Talk::default() }
    }

    /// Accepts at most 2,048 received bytes. Call it when [`Talk::line`] returned `None`.
    ///
    /// # Errors
    /// A message when the current line is too long.
    pub fn hear(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.input.len() > LINE {
            return Err(format!("a line is longer than {LINE} bytes"));
        }
        self.input.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the next complete line, if any.
    pub fn line(&mut self) -> Option<String> {
        let end = self.input.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.input.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    /// Processes a line.
    ///
    /// # Errors
    /// A message when too many bytes have no reply.
    pub fn answer(&mut self, line: &str, board: &mut Board) -> Result<Answer, String> {
        let answer = self.gather(line).map_or(Answer::None, |fields| board.answer(&fields, self.appnum));
        self.unanswered = if answer == Answer::None { self.unanswered + line.len() + 1 } else { 0 };
        if self.unanswered > UNANSWERED {
            return Err(format!("more than {UNANSWERED} bytes that ask for nothing, such as a spawn without endcmd"));
        }
        Ok(answer)
    }

    /// Drops all unprocessed data.
    pub fn clear(&mut self) {
        *self = Talk::of_program(self.appnum);
    }

    /// Returns the number of buffered bytes of the client.
    pub fn kept(&self) -> usize {
        let fields = self.spawn.iter().flatten();
        self.input.len() + fields.map(|(name, value)| name.len() + value.len()).sum::<usize>()
    }

    /// Returns the fields of a command when its last line arrives. `cmd=...` has all fields in one line; `mcmd=...` has
    /// one line per field, up to `endcmd`.
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
        Some(parse_fields(line)).filter(|_| !line.trim().is_empty())
    }
}

impl Published {
    /// Stores a pair. A later value of a key replaces the earlier one.
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

    /// Returns the pair at an index, and the index of the next one.
    fn at(&self, index: usize) -> Option<(usize, &str, &str)> {
        self.pairs.get(index).map(|(key, value)| (index + 1, key.as_str(), value.as_str()))
    }
}

/// Parses the fields of a line.
fn parse_fields(line: &str) -> BTreeMap<String, String> {
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
