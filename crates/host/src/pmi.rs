//! PMI-1, the wire protocol by which programs written for MPICH's process managers learn about each other: what the
//! simulator answers to the bytes of its clients. [`crate::job`] has the connections.
//!
//! A client sends lines `cmd=NAME key=value ...`; each is answered with one line. What a client sends is not trusted: lines,
//! unanswered lines, and what a job publishes have bounds.

use std::collections::BTreeMap;

/// Name of the only key-value space.
pub const SPACE: &str = "kvs_spin_0";
/// Most bytes of lines that lead to no answer, such as those of an `mcmd=spawn` without its `endcmd`.
pub const UNANSWERED: usize = 1 << 20;
/// Most bytes that a job publishes, for each of its ranks.
pub const PUBLISHED: usize = 1 << 20;
/// Longest line that is read.
const LINE: usize = 16 * 1024;
/// Longest name of a space, key and value: MPICH clients have lines of 1,024 bytes.
const MAXES: (usize, usize, usize) = (256, 64, 1024);
/// Fields that come last in their line and may hold blanks and `=`.
const REST_OF_LINE: [&str; 3] = ["value", "port", "message"];
/// A well-known key: which ranks share a node. Blocks of (first node, nodes, ranks a node); here none do.
const MAPPING: &str = "PMI_process_mapping";

/// What the ranks of a job have published.
pub struct Board {
    ranks: usize,
    keys: Published,
    services: BTreeMap<String, String>,
    /// Bytes of keys, services and their values.
    published: usize,
}

/// What one client has sent and has not been answered to.
#[derive(Default)]
pub struct Talk {
    input: Vec<u8>,
    /// The lines of an unfinished `mcmd=spawn`.
    spawn: Option<BTreeMap<String, String>>,
    /// Bytes of lines since the last answer.
    unanswered: usize,
}

/// What a line leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// This line, without its end.
    Line(String),
    /// An answer comes with a later line.
    None,
    /// The client waits for all others; the answer is then [`BARRIER_OUT`].
    Barrier,
    /// The client asks to end the job with this exit code.
    Abort(i32),
}

/// The answer to a barrier that is complete.
pub const BARRIER_OUT: &str = "cmd=barrier_out rc=0";

/// Keys in the order in which they came, for `getbyidx`.
#[derive(Default)]
struct Published {
    places: BTreeMap<String, usize>,
    pairs: Vec<(String, String)>,
}

impl Board {
    /// A board for a job with this number of ranks, with what is known from the start.
    pub fn new(ranks: usize) -> Board {
        let mut board = Board { ranks, keys: Published::default(), services: BTreeMap::new(), published: 0 };
        board.put(SPACE, MAPPING, &format!("(vector,(0,{ranks},1))")).expect("it is short");
        board
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
            "get_universe_size" => format!("cmd=universe_size size={} rc=0", self.ranks),
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
        if published > PUBLISHED * self.ranks {
            return Err("no_room");
        }
        self.published = published;
        Ok(())
    }
}

impl Talk {
    /// Takes bytes that have come, at most 2,048, after [`Talk::line`] has given `None`.
    ///
    /// # Errors
    /// When the line that they go on with is too long.
    pub fn hear(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.input.len() > LINE {
            return Err(format!("a line is longer than {LINE} bytes"));
        }
        self.input.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole line, if one has come.
    pub fn line(&mut self) -> Option<String> {
        let end = self.input.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.input.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    /// What a line leads to.
    ///
    /// # Errors
    /// When too many lines have led to nothing.
    pub fn answer(&mut self, line: &str, board: &mut Board) -> Result<Answer, String> {
        let answer = self.gather(line).map_or(Answer::None, |fields| board.answer(&fields));
        self.unanswered = if answer == Answer::None { self.unanswered + line.len() + 1 } else { 0 };
        if self.unanswered > UNANSWERED {
            return Err(format!("more than {UNANSWERED} bytes that ask for nothing, such as a spawn without endcmd"));
        }
        Ok(answer)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Talk::default();
    }

    /// Bytes that are kept of what the client has sent.
    pub fn kept(&self) -> usize {
        let fields = self.spawn.iter().flatten();
        self.input.len() + fields.map(|(name, value)| name.len() + value.len()).sum::<usize>()
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
