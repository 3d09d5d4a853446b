// SPDX-License-Identifier: Apache-2.0
//! Explains undefined symbols of handlers in the user's terms. lld names the symbol and the referring line and
//! function; the relocations of the objects lead from there back to a handler.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use abi::device::image::HANDLERS_SECTION;
use object::{
    Architecture, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionIndex, SectionKind,
    SymbolKind,
};

use super::bundle::Part;
use super::kind::Kind;

/// Explains the linker's messages about undefined symbols in `objects`. `parts` may name omitted sources.
pub fn explain(messages: &str, kind: &Kind, objects: &[(PathBuf, &Part)], parts: &[Part]) -> String {
    let references = without_streams(references(messages));
    if references.is_empty() {
        return format!("cannot link the program for {}:\n{}", kind.name, messages.trim_end());
    }
    let graph = Graph::new(objects.iter().map(|(_, part)| part.devices[&kind.name].as_slice()));
    let mut lines = BTreeSet::new();
    for reference in &references {
        // A member of an archive has no folder.
        let name = Path::new(&reference.object).file_name();
        let object = objects.iter().position(|(path, _)| path.file_name() == name);
        lines.insert(reference.explain(object, &graph, objects));
    }
    let mut lines: Vec<String> = lines.into_iter().collect();
    for part in parts {
        if let Some(reason) = &part.left_out {
            let first = reason.lines().next().unwrap_or_default();
            lines.push(format!("{} is not in the card's program, because it does not compile: {first}", part.origin));
        }
    }
    lines.join("\n")
}

/// Returns messages about data used by handlers and set by constructors, which run on the host only.
pub fn set_by_constructors(kind: &Kind, objects: &[(PathBuf, &Part)]) -> Vec<String> {
    let graph = Graph::new(objects.iter().map(|(_, part)| part.devices[&kind.name].as_slice()));
    let used = graph.constructed().into_iter().filter_map(|node| Some((node, graph.path(node).into_iter().next()?)));
    used.map(|(node, handler)| {
        let Node { object, name, .. } = &graph.nodes[node];
        format!(
            "{}: handler '{}' uses '{}', which a constructor sets; constructors do not run on the card",
            objects[*object].1.origin,
            readable(&handler),
            readable(name)
        )
    })
    .collect()
}

/// Returns a symbol as written by the user. Only names of C++ functions are decoded, because a C name can look like the
/// encoding of a type.
pub fn readable(symbol: &str) -> String {
    let mangled = symbol.starts_with("_Z").then(|| cpp_demangle::Symbol::new(symbol).ok()).flatten();
    let demangled = mangled.and_then(|s| s.demangle().ok());
    demangled.unwrap_or_else(|| symbol.to_owned())
}

/// Returns true if a section lists functions that an operating system runs before `main` or after it.
pub fn is_constructor_list(section: &str) -> bool {
    [".init_array", ".fini_array", ".ctors", ".dtors"].iter().any(|prefix| section.starts_with(prefix))
}

/// Place that refers to an undefined symbol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reference {
    symbol: String,
    /// "file.c:12"
    line: Option<String>,
    object: String,
    function: String,
}

impl Reference {
    fn place(&self) -> (Option<String>, String, String) {
        (self.line.clone(), self.object.clone(), self.function.clone())
    }

    fn explain(&self, object: Option<usize>, graph: &Graph, objects: &[(PathBuf, &Part)]) -> String {
        let place = match (&self.line, object) {
            (Some(line), _) => line.clone(),
            (None, Some(i)) => objects[i].1.origin.clone(),
            (None, None) => self.object.clone(),
        };
        let symbol = &self.symbol;
        let node = object.and_then(|object| graph.function(object, &self.function));
        let verb = if node.is_some_and(|node| graph.calls(node, &self.symbol)) { "calls" } else { "uses" };
        let path = node.map(|node| graph.path(node)).unwrap_or_default();
        let advice = if prints(symbol) || is_stream(symbol) { "; use spin_printf" } else { "" };
        match path.split_first() {
            None => format!("{place}: '{}' {verb} '{symbol}', which the card does not have{advice}", self.function),
            Some((handler, helpers)) => {
                let through: String = helpers.iter().map(|helper| format!(" through '{}'", readable(helper))).collect();
                let handler = readable(handler);
                format!("{place}: handler '{handler}' {verb} '{symbol}'{through}, which the card does not have{advice}")
            }
        }
    }
}

/// Returns true if a function of the C library prints to a stream.
fn prints(symbol: &str) -> bool {
    let names =
        ["printf", "fprintf", "vprintf", "vfprintf", "puts", "fputs", "putchar", "fputc", "putc", "perror", "fwrite"];
    names.contains(&symbol)
}

fn is_stream(symbol: &str) -> bool {
    ["stdout", "stderr"].contains(&symbol)
}

/// Omits streams passed to a function of the C library that the card lacks, too: that is one mistake.
fn without_streams(references: Vec<Reference>) -> Vec<Reference> {
    let printed: BTreeSet<_> =
        references.iter().filter(|reference| prints(&reference.symbol)).map(Reference::place).collect();
    let is_told = |reference: &Reference| is_stream(&reference.symbol) && printed.contains(&reference.place());
    let others: Vec<bool> = references.iter().map(|reference| !is_told(reference)).collect();
    references.into_iter().zip(others).filter_map(|(reference, other)| other.then_some(reference)).collect()
}

/// Parses lld's messages: `ld.lld: error: undefined symbol: S`, then for each place `>>> referenced by FILE:LINE
/// (PATH:LINE)`, left out without debug information, and `>>> OBJECT:(FUNCTION)`, with ` in archive PATH` where it is a
/// member.
fn references(messages: &str) -> Vec<Reference> {
    let mut found = vec![];
    let mut symbol = None;
    let mut line = None;
    for text in messages.lines() {
        if let Some((_, name)) = text.split_once("undefined symbol: ") {
            symbol = Some(name.trim().to_owned());
            continue;
        }
        let (Some(symbol), Some(rest)) = (&symbol, text.strip_prefix(">>> ")) else { continue };
        let rest = rest.trim().strip_prefix("referenced by ").unwrap_or(rest.trim());
        let rest = rest.split(" in archive ").next().unwrap_or(rest);
        if let Some((object, function)) = rest.strip_suffix(')').and_then(|r| r.split_once(":(")) {
            let (object, function) = (object.to_owned(), function.to_owned());
            found.push(Reference { symbol: symbol.clone(), line: line.take(), object, function });
        } else if let Some((_, path)) = rest.strip_suffix(')').and_then(|r| r.split_once(" (")) {
            line = Some(path.to_owned());
        } else if rest.contains(':') {
            line = Some(rest.to_owned());
        }
    }
    found
}

/// Function or variable, and its references.
struct Node {
    object: usize,
    name: String,
    section: SectionIndex,
    range: std::ops::Range<u64>,
    is_handler: bool,
    /// Set for writable data.
    is_variable: bool,
    targets: Vec<Target>,
}

/// Target of a relocation: a symbol by name, or a node of the same object.
struct Target {
    name: Option<String>,
    node: Option<usize>,
    is_call: bool,
}

struct Graph {
    nodes: Vec<Node>,
    globals: BTreeMap<String, usize>,
    /// Functions that an operating system would run before `main`.
    constructors: Vec<usize>,
}

impl Graph {
    fn new<'a>(objects: impl Iterator<Item = &'a [u8]>) -> Graph {
        let mut graph = Graph { nodes: vec![], globals: BTreeMap::new(), constructors: vec![] };
        for (i, bytes) in objects.enumerate() {
            // An unreadable object has no nodes; the linker has reported it.
            if let Ok(file) = object::File::parse(bytes) {
                graph.add(i, &file);
            }
        }
        graph
    }

    fn add(&mut self, object: usize, file: &object::File) {
        let first = self.nodes.len();
        let handlers = file.section_by_name(HANDLERS_SECTION).map(|s| s.index());
        for symbol in file.symbols() {
            let is_code_or_data = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data);
            let (Some(section), Ok(name), true) = (symbol.section_index(), symbol.name(), is_code_or_data) else {
                continue;
            };
            if symbol.is_global() {
                self.globals.insert(name.into(), self.nodes.len());
            }
            self.nodes.push(Node {
                object,
                name: name.into(),
                section,
                range: symbol.address()..symbol.address() + symbol.size().max(1),
                is_handler: Some(section) == handlers,
                is_variable: file
                    .section_by_index(section)
                    .is_ok_and(|s| matches!(s.kind(), SectionKind::Data | SectionKind::UninitializedData)),
                targets: vec![],
            });
        }
        let nodes = &mut self.nodes[first..];
        for section in file.sections() {
            let lists_constructors = section.name().is_ok_and(is_constructor_list);
            if !lists_constructors && !nodes.iter().any(|node| node.section == section.index()) {
                continue;
            }
            for (offset, relocation) in section.relocations() {
                let from = find(nodes, section.index(), offset);
                if from.is_none() && !lists_constructors {
                    continue;
                }
                let RelocationTarget::Symbol(index) = relocation.target() else { continue };
                let Ok(symbol) = file.symbol_by_index(index) else { continue };
                let local = symbol.section_index().and_then(|s| {
                    let addend = if symbol.kind() == SymbolKind::Section { relocation.addend() as u64 } else { 0 };
                    find(nodes, s, symbol.address().wrapping_add(addend))
                });
                let Some(from) = from else {
                    self.constructors.extend(local.map(|n| first + n));
                    continue;
                };
                let name = symbol.name().ok().filter(|name| !name.is_empty()).map(str::to_owned);
                let is_call = is_call(file.architecture(), relocation.flags());
                nodes[from].targets.push(Target { name, node: local.map(|n| first + n), is_call });
            }
        }
    }

    /// Returns the node of a function by its name demangled by lld.
    fn function(&self, object: usize, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.object == object && readable(&node.name) == name)
    }

    fn calls(&self, node: usize, symbol: &str) -> bool {
        self.nodes[node].targets.iter().any(|t| t.is_call && t.name.as_deref().map(readable).as_deref() == Some(symbol))
    }

    /// Returns the variables to which constructors refer directly.
    fn constructed(&self) -> BTreeSet<usize> {
        let targets = self.constructors.iter().flat_map(|n| &self.nodes[*n].targets);
        targets.filter_map(|t| self.resolve(t)).filter(|n| self.nodes[*n].is_variable).collect()
    }

    fn resolve(&self, target: &Target) -> Option<usize> {
        target.node.or_else(|| self.globals.get(target.name.as_ref()?).copied())
    }

    /// Returns the names on a shortest path from a handler to `goal`, both included. Empty if no handler leads there.
    fn path(&self, goal: usize) -> Vec<String> {
        let mut queue: VecDeque<usize> = (0..self.nodes.len()).filter(|n| self.nodes[*n].is_handler).collect();
        let mut from: BTreeMap<usize, Option<usize>> = queue.iter().map(|n| (*n, None)).collect();
        while let Some(node) = queue.pop_front() {
            for target in &self.nodes[node].targets {
                if let Some(next) = self.resolve(target) {
                    from.entry(next).or_insert_with(|| {
                        queue.push_back(next);
                        Some(node)
                    });
                }
            }
        }
        let mut path = vec![];
        let mut at = Some(goal).filter(|goal| from.contains_key(goal));
        while let Some(node) = at {
            path.push(self.nodes[node].name.clone());
            at = from[&node];
        }
        path.reverse();
        path
    }
}

fn find(nodes: &[Node], section: SectionIndex, offset: u64) -> Option<usize> {
    nodes.iter().position(|node| node.section == section && node.range.contains(&offset))
}

fn is_call(architecture: Architecture, flags: RelocationFlags) -> bool {
    use object::elf::{R_ARM_CALL, R_ARM_JUMP24, R_RISCV_CALL, R_RISCV_CALL_PLT, R_RISCV_JAL};
    let RelocationFlags::Elf { r_type } = flags else { return false };
    match architecture {
        Architecture::Riscv32 | Architecture::Riscv64 => {
            [R_RISCV_CALL, R_RISCV_CALL_PLT, R_RISCV_JAL].contains(&r_type)
        }
        Architecture::Arm => [R_ARM_CALL, R_ARM_JUMP24].contains(&r_type),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linker_messages() {
        let text = "\
ld.lld: error: undefined symbol: printf
>>> referenced by t.c:8
>>>               /tmp/0.o:(foo)
>>> referenced by u.c:9 (dir/u.c:9)
>>>               /tmp/1.o:(bar)
>>> referenced 3 more times

ld.lld: error: undefined symbol: stdin
>>> referenced by 1.o:(deep) in archive /tmp/l.a
";
        let reference = |symbol: &str, line: Option<&str>, object: &str, function: &str| Reference {
            symbol: symbol.into(),
            line: line.map(str::to_owned),
            object: object.into(),
            function: function.into(),
        };
        assert_eq!(
            references(text),
            [
                reference("printf", Some("t.c:8"), "/tmp/0.o", "foo"),
                reference("printf", Some("dir/u.c:9"), "/tmp/1.o", "bar"),
                reference("stdin", None, "1.o", "deep"),
            ]
        );
    }

    #[test]
    fn a_stream_is_no_second_mistake() {
        let reference = |symbol: &str, line: &str| Reference {
            symbol: symbol.into(),
            line: Some(line.into()),
            object: "0.o".into(),
            function: "pay".into(),
        };
        let all = ["t.c:1", "t.c:2"].map(|line| [reference("stderr", line), reference("fprintf", line)]).concat();
        let kept = [reference("fprintf", "t.c:1"), reference("fprintf", "t.c:2")];
        assert_eq!(without_streams(all), kept);
        assert_eq!(without_streams(vec![reference("stderr", "t.c:1")]).len(), 1);
    }
}
