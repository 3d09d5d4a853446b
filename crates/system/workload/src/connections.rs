// SPDX-License-Identifier: Apache-2.0
//! Connection matrices of htsim (`.cm`): flows between nodes, with start times or triggers.
//!
//! A node is a rank. CPU 1 of a rank waits for start times, CPU 0 executes the messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use goal::{Action, Builder, MAX_CALC_NS, MAX_RANKS, Schedule, Wait};
use thiserror::Error;

/// CPU that waits for start times.
const TIMER: u8 = 1;
/// Matching space of the messages that carry triggers between nodes.
const TRIGGERS: u16 = 1;

/// Error of a file, with its line.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConnectionError {
    /// A line is wrong.
    #[error("{line}: {problem}")]
    Line {
        /// Line, from 1
        line: usize,
        /// Problem and remedy
        problem: String,
    },
    /// The schedule is impossible.
    #[error("0: {0}")]
    Build(#[from] goal::BuildError),
}

/// Schedule of a file, and its counts.
#[derive(Debug)]
pub struct Import {
    /// Schedule.
    pub schedule: Schedule,
    /// Number of connections.
    pub connections: usize,
    /// Bytes of all connections.
    pub bytes: u128,
    /// Warnings about parts that the schedule omits.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug)]
struct Connection {
    line: usize,
    from: u32,
    to: u32,
    bytes: u64,
    start: Start,
    /// Trigger that fires when the last byte has left, or has arrived.
    sent: Option<u64>,
    received: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Start {
    /// Nanoseconds.
    At(u64),
    Trigger(u64),
}

/// Trigger: number of events that fire it.
#[derive(Clone, Copy, Debug)]
struct Trigger {
    line: usize,
    /// `None` for a trigger that fires on each of its events.
    barrier: Option<u64>,
}

#[derive(Debug, Default)]
struct Matrix {
    nodes: u32,
    connections: Vec<Connection>,
    triggers: BTreeMap<u64, Trigger>,
    stated: HashMap<&'static str, (usize, u64)>,
    priorities: usize,
    failures: usize,
}

/// Reads a file and makes its schedule.
///
/// # Errors
/// See [`ConnectionError`].
pub fn import(text: &str) -> Result<Import, ConnectionError> {
    let matrix = Matrix::read(text)?;
    let mut warnings = Vec::new();
    for (count, name) in [(matrix.priorities, "priorities"), (matrix.failures, "failures of switches")] {
        if count > 0 {
            warnings.push(format!("{count} {name} are not in the schedule"));
        }
    }
    let (connections, bytes) =
        (matrix.connections.len(), matrix.connections.iter().map(|one| u128::from(one.bytes)).sum());
    Ok(Import { schedule: matrix.schedule()?, connections, bytes, warnings })
}

/// Returns true if a text is a connection matrix: its first line with contents states the number of nodes.
pub fn is_matrix(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| line.starts_with("Nodes ")) && text.contains("Connections ")
}

fn wrong<T>(line: usize, problem: impl Into<String>) -> Result<T, ConnectionError> {
    Err(ConnectionError::Line { line, problem: problem.into() })
}

fn number(line: usize, name: &str, word: Option<&str>) -> Result<u64, ConnectionError> {
    match word.map(str::parse) {
        Some(Ok(number)) => Ok(number),
        Some(Err(_)) => wrong(line, format!("{name} is a whole number, not {}", word.unwrap_or_default())),
        None => wrong(line, format!("{name} has no number")),
    }
}

impl Matrix {
    fn read(text: &str) -> Result<Matrix, ConnectionError> {
        let mut matrix = Matrix::default();
        for (line, content) in (1..).zip(text.lines()) {
            let mut words = content.split_whitespace();
            let Some(first) = words.next().filter(|word| !word.starts_with('#')) else { continue };
            match first {
                "Nodes" => {
                    let count = number(line, "Nodes", words.next())?;
                    let nodes = u32::try_from(count).ok().filter(|count| (1..=MAX_RANKS).contains(count));
                    let Some(nodes) = nodes else { return wrong(line, format!("1 to {MAX_RANKS} nodes, not {count}")) };
                    matrix.nodes = nodes;
                }
                "Connections" | "Triggers" | "Failures" => {
                    let name = ["Connections", "Triggers", "Failures"].into_iter().find(|name| *name == first);
                    let count = number(line, first, words.next())?;
                    matrix.stated.insert(name.unwrap_or_default(), (line, count));
                }
                "trigger" => matrix.trigger(line, words)?,
                "failure" => matrix.failures += 1,
                ends => match ends.split_once("->") {
                    Some((from, to)) => matrix.connection(line, from, to, words)?,
                    None => {
                        return wrong(
                            line,
                            format!(
                                "{first}: neither Nodes, Connections, Triggers, Failures, \
                                                        a connection FROM->TO, trigger nor failure"
                            ),
                        );
                    }
                },
            }
        }
        if matrix.nodes == 0 {
            return wrong(1, "no nodes: the file begins with Nodes N");
        }
        for (name, found) in [
            ("Connections", matrix.connections.len()),
            ("Triggers", matrix.triggers.len()),
            ("Failures", matrix.failures),
        ] {
            if let Some((line, stated)) = matrix.stated.get(name)
                && *stated != found as u64
            {
                return wrong(*line, format!("{name} {stated}, but the file has {found}"));
            }
        }
        Ok(matrix)
    }

    fn connection<'a>(
        &mut self,
        line: usize,
        from: &str,
        to: &str,
        mut words: impl Iterator<Item = &'a str>,
    ) -> Result<(), ConnectionError> {
        let node = |name: &str| {
            let found = name.parse().ok().filter(|node: &u32| *node < self.nodes);
            let problem = || ConnectionError::Line {
                line,
                problem: format!("{name} is none of the {} nodes, which are numbered from 0", self.nodes),
            };
            found.ok_or_else(problem)
        };
        let (from, to) = (node(from)?, node(to)?);
        let (mut start, mut bytes, mut sent, mut received) = (None, None, None, None);
        while let Some(word) = words.next() {
            match word {
                "start" => {
                    // htsim reads a decimal fraction of picoseconds.
                    let value = words.next().unwrap_or_default();
                    let ps = value.parse::<f64>().ok().filter(|ps| ps.is_finite() && *ps >= 0.0);
                    let Some(ps) = ps else { return wrong(line, format!("start is a time in ps, not {value:?}")) };
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, saturates")]
                    let ns = ((ps / 1000.0).round() as u64).min(MAX_CALC_NS);
                    if start.replace(Start::At(ns)).is_some() {
                        return wrong(line, "a connection has one start or trigger");
                    }
                }
                "trigger" => {
                    if start.replace(Start::Trigger(number(line, word, words.next())?)).is_some() {
                        return wrong(line, "a connection has one start or trigger");
                    }
                }
                "size" => bytes = Some(number(line, word, words.next())?),
                "id" => drop(number(line, word, words.next())?),
                "send_done_trigger" => sent = Some(number(line, word, words.next())?),
                "recv_done_trigger" => received = Some(number(line, word, words.next())?),
                "prio" => {
                    number(line, word, words.next())?;
                    self.priorities += 1;
                }
                _ => {
                    return wrong(
                        line,
                        format!(
                            "{word}: a connection has id, start, trigger, size, send_done_trigger, \
                                                 recv_done_trigger and prio"
                        ),
                    );
                }
            }
        }
        let Some(start) = start else { return wrong(line, "a connection needs start or trigger") };
        let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else {
            return wrong(line, "a connection needs a size above 0 (endless flows have no schedule)");
        };
        self.connections.push(Connection { line, from, to, bytes, start, sent, received });
        Ok(())
    }

    fn trigger<'a>(&mut self, line: usize, mut words: impl Iterator<Item = &'a str>) -> Result<(), ConnectionError> {
        let (mut id, mut kind, mut count) = (None, None, None);
        while let Some(word) = words.next() {
            match word {
                "id" => id = Some(number(line, word, words.next())?),
                "count" => count = Some(number(line, word, words.next())?),
                "oneshot" | "multishot" | "barrier" => kind = Some(word),
                _ => return wrong(line, format!("{word}: a trigger has id, oneshot, multishot or barrier, and count")),
            }
        }
        let Some(id) = id else { return wrong(line, "a trigger needs an id") };
        let barrier = match (kind, count) {
            (Some("barrier"), Some(count)) => Some(count),
            (Some("barrier"), None) => return wrong(line, "a barrier needs a count"),
            (Some(_), _) => None,
            (None, _) => return wrong(line, "a trigger is oneshot, multishot or barrier"),
        };
        match self.triggers.insert(id, Trigger { line, barrier }) {
            None => Ok(()),
            Some(other) => wrong(line, format!("trigger {id} is also on line {}", other.line)),
        }
    }

    /// Returns the connections that fire each trigger, with true for their arrival.
    fn events(&self) -> Result<HashMap<u64, Vec<(usize, bool)>>, ConnectionError> {
        let mut events: HashMap<u64, Vec<(usize, bool)>> = HashMap::new();
        for (index, one) in self.connections.iter().enumerate() {
            for (trigger, arrives) in [(one.sent, false), (one.received, true)] {
                let Some(trigger) = trigger else { continue };
                if !self.triggers.contains_key(&trigger) {
                    return wrong(one.line, format!("trigger {trigger} has no line"));
                }
                events.entry(trigger).or_default().push((index, arrives));
            }
        }
        for one in &self.connections {
            let Start::Trigger(trigger) = one.start else { continue };
            let count = events.get(&trigger).map_or(0, Vec::len) as u64;
            match self.triggers.get(&trigger) {
                None => return wrong(one.line, format!("trigger {trigger} has no line")),
                Some(_) if count == 0 => {
                    return wrong(one.line, format!("no connection fires trigger {trigger}, so this one never starts"));
                }
                Some(Trigger { line, barrier: Some(needed) }) if *needed != count => {
                    return wrong(*line, format!("the barrier counts {needed}, but {count} connections fire it"));
                }
                Some(Trigger { line, barrier: None }) if count > 1 => {
                    let problem =
                        format!("{count} connections fire trigger {trigger}; schedules have only barriers of several");
                    return wrong(*line, problem);
                }
                Some(_) => {}
            }
        }
        Ok(events)
    }

    fn schedule(&self) -> Result<Schedule, ConnectionError> {
        let events = self.events()?;
        // Messages that carry a trigger: event, and the node that waits for it.
        let mut carried: HashSet<(usize, bool, u32)> = HashSet::new();
        for one in &self.connections {
            let Start::Trigger(trigger) = one.start else { continue };
            for &(event, arrives) in &events[&trigger] {
                let other = &self.connections[event];
                let at = if arrives { other.to } else { other.from };
                if at != one.from {
                    carried.insert((event, arrives, one.from));
                }
            }
        }
        let mut carried: Vec<_> = carried.into_iter().collect();
        carried.sort_unstable();
        let mut of_node: Vec<Vec<usize>> = vec![Vec::new(); self.nodes as usize];
        for (index, one) in self.connections.iter().enumerate() {
            of_node[one.from as usize].push(index);
            if one.to != one.from {
                of_node[one.to as usize].push(index);
            }
        }
        let mut of_trigger: Vec<Vec<usize>> = vec![Vec::new(); self.nodes as usize];
        for (index, &(event, arrives, to)) in carried.iter().enumerate() {
            let other = &self.connections[event];
            of_trigger[if arrives { other.to } else { other.from } as usize].push(index);
            of_trigger[to as usize].push(index);
        }
        let mut builder = Builder::new(self.nodes);
        for node in 0..self.nodes {
            builder.begin_rank(node);
            let mine = &of_node[node as usize];
            self.node(node, mine, &carried, &of_trigger[node as usize], &events, &mut builder)?;
            builder.end_rank()?;
        }
        Ok(builder.finish()?)
    }

    fn node(
        &self,
        node: u32,
        mine: &[usize],
        carried: &[(usize, bool, u32)],
        of_trigger: &[usize],
        events: &HashMap<u64, Vec<(usize, bool)>>,
        builder: &mut Builder,
    ) -> Result<(), ConnectionError> {
        let tag = |index: usize| u32::try_from(index).unwrap_or(u32::MAX - 1);
        let (mut sends, mut recvs, mut arrived) = (HashMap::new(), HashMap::new(), HashMap::new());
        for &index in mine {
            let one = &self.connections[index];
            if one.to == node {
                let action = Action::Recv { bytes: one.bytes, from: Some(one.from), tag: Some(tag(index)), space: 0 };
                recvs.insert(index, builder.add(action, 0, 0)?);
            }
        }
        for &index in mine.iter().filter(|index| self.connections[**index].from == node) {
            let one = &self.connections[index];
            let action = Action::Send { bytes: one.bytes, to: one.to, tag: tag(index), space: 0 };
            sends.insert(index, builder.add(action, 0, 0)?);
        }
        for &index in of_trigger {
            let (event, arrives, to) = carried[index];
            let other = &self.connections[event];
            let at = if arrives { other.to } else { other.from };
            if at == node {
                let message = Action::Send { bytes: 1, to, tag: tag(index), space: TRIGGERS };
                let op = builder.add(message, 0, 0)?;
                builder.depend(op, if arrives { recvs[&event] } else { sends[&event] }, Wait::Done);
            } else {
                let message = Action::Recv { bytes: 1, from: Some(at), tag: Some(tag(index)), space: TRIGGERS };
                arrived.insert((event, arrives), builder.add(message, 0, 0)?);
            }
        }
        // Timers in the order of their times.
        let mut starts: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for &index in mine.iter().filter(|index| self.connections[**index].from == node) {
            match self.connections[index].start {
                Start::At(0) => {}
                Start::At(ns) => starts.entry(ns).or_default().push(index),
                Start::Trigger(trigger) => {
                    for &(event, arrives) in &events[&trigger] {
                        let local = if arrives { recvs.get(&event) } else { sends.get(&event) };
                        let cause = arrived.get(&(event, arrives)).or(local).copied();
                        if let Some(cause) = cause {
                            builder.depend(sends[&index], cause, Wait::Done);
                        }
                    }
                }
            }
        }
        let (mut now, mut last) = (0, None);
        for (ns, connections) in starts {
            let timer = builder.add(Action::Calc(ns - now), TIMER, 0)?;
            if let Some(last) = last {
                builder.depend(timer, last, Wait::Done);
            }
            connections.iter().for_each(|index| builder.depend(sends[index], timer, Wait::Done));
            (now, last) = (ns, Some(timer));
        }
        Ok(())
    }
}
