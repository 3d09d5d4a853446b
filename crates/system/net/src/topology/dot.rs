// SPDX-License-Identifier: Apache-2.0
//! Parser of the DOT language of Graphviz: nodes, edges and their attributes.

use std::collections::HashMap;
use std::iter::Peekable;
use std::rc::Rc;
use std::str::CharIndices;

use crate::NetError;

/// Contents of a DOT file.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub directed: bool,
    /// Names in order of first appearance.
    pub nodes: Vec<String>,
    /// Edges in file order.
    pub edges: Vec<Edge>,
}

/// An edge from one node to another; its own attributes override those of `edge [...]`.
#[derive(Debug)]
pub(super) struct Edge {
    pub from: u32,
    pub to: u32,
    /// Attributes, shared by all edges of a statement.
    pub attributes: Rc<Attributes>,
}

/// Supported attributes of an edge, as text.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    pub capacity: Option<Rc<str>>,
    pub latency: Option<Rc<str>>,
    pub comment: Option<Rc<str>>,
}

/// Maximum number of edges of a file: a statement with two groups of nodes creates an edge for each pair.
const MOST_EDGES: usize = 1 << 23;

/// Maximum depth of nested braces.
const DEEPEST: u32 = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Id(String),
    /// `{ } [ ] ; , = : +`
    Mark(char),
    /// `->` or `--`
    Edge(&'static str),
    End,
}

impl Token {
    fn describe(&self) -> String {
        match self {
            Token::Id(name) => format!("`{name}`"),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::Edge(arrow) => format!("`{arrow}`"),
            Token::End => "the end of the file".into(),
        }
    }

    /// Compares a word with a keyword, ignoring case.
    fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Id(name) if name.eq_ignore_ascii_case(word))
    }
}

struct Lexer<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
}

impl<'a> Lexer<'a> {
    fn error(&self, at: usize, what: impl Into<String>) -> NetError {
        let before = &self.text[..at];
        NetError::Dot {
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
            what: what.into(),
        }
    }

    fn skip_while(&mut self, goes_on: impl Fn(char) -> bool) -> usize {
        while self.chars.next_if(|&(_, c)| goes_on(c)).is_some() {}
        self.chars.peek().map_or(self.text.len(), |&(at, _)| at)
    }

    /// Returns true if only blanks precede this position in its line.
    fn starts_line(&self, at: usize) -> bool {
        let before = self.text[..at].trim_end_matches(|c: char| c != '\n' && c.is_whitespace());
        before.is_empty() || before.ends_with('\n')
    }

    /// Skips blanks, comments, and lines of the C preprocessor.
    fn skip_blanks(&mut self) -> Result<usize, NetError> {
        loop {
            let at = self.skip_while(char::is_whitespace);
            let rest = &self.text[at..];
            if rest.starts_with("//") || (rest.starts_with('#') && self.starts_line(at)) {
                self.skip_while(|c| c != '\n');
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let length = comment.find("*/").ok_or_else(|| self.error(at, "this comment has no end"))?;
                while self.chars.next_if(|&(place, _)| place < at + length + 4).is_some() {}
            } else {
                return Ok(at);
            }
        }
    }

    /// Returns the next token and its position.
    fn next(&mut self) -> Result<(usize, Token), NetError> {
        let at = self.skip_blanks()?;
        let Some((_, first)) = self.chars.next() else { return Ok((at, Token::End)) };
        let token = match first {
            '{' | '}' | '[' | ']' | ';' | ',' | '=' | ':' | '+' => Token::Mark(first),
            '"' => self.quoted(at)?,
            '<' => self.html(at)?,
            '-' if self.chars.next_if(|&(_, c)| c == '>').is_some() => Token::Edge("->"),
            '-' if self.chars.next_if(|&(_, c)| c == '-').is_some() => Token::Edge("--"),
            '-' | '.' | '0'..='9' => {
                let end = self.skip_while(|c| c.is_ascii_digit() || c == '.');
                let number = &self.text[at..end];
                if number.parse::<f64>().is_err() {
                    return Err(self.error(at, format!("`{number}` is no number")));
                }
                Token::Id(number.into())
            }
            c if c.is_alphanumeric() || c == '_' => {
                let end = self.skip_while(|c| c.is_alphanumeric() || c == '_');
                Token::Id(self.text[at..end].into())
            }
            c => return Err(self.error(at, format!("unexpected character `{c}`"))),
        };
        Ok((at, token))
    }

    fn quoted(&mut self, start: usize) -> Result<Token, NetError> {
        let mut name = String::new();
        while let Some((_, c)) = self.chars.next() {
            match c {
                '"' => return Ok(Token::Id(name)),
                '\\' if self.chars.next_if(|&(_, c)| c == '"').is_some() => name.push('"'),
                '\\' if self.chars.next_if(|&(_, c)| c == '\n').is_some() => {}
                _ => name.push(c),
            }
        }
        Err(self.error(start, "this string has no end"))
    }

    fn html(&mut self, start: usize) -> Result<Token, NetError> {
        let mut depth = 1;
        for (at, c) in self.chars.by_ref() {
            depth += i32::from(c == '<') - i32::from(c == '>');
            if depth == 0 {
                return Ok(Token::Id(self.text[start..=at].into()));
            }
        }
        Err(self.error(start, "this HTML string has no end"))
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    at: usize,
    token: Token,
    graph: Graph,
    numbers: HashMap<String, u32>,
    depth: u32,
}

/// Reads a DOT file.
pub(super) fn parse(text: &str) -> Result<Graph, NetError> {
    let mut lexer = Lexer { text, chars: text.char_indices().peekable() };
    let (at, token) = lexer.next()?;
    let mut parser = Parser { lexer, at, token, graph: Graph::default(), numbers: HashMap::new(), depth: 0 };
    parser.file()?;
    Ok(parser.graph)
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<Token, NetError> {
        let (at, token) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn wanted<T>(&self, what: &str) -> Result<T, NetError> {
        Err(self.lexer.error(self.at, format!("expected {what}, found {}", self.token.describe())))
    }

    fn take(&mut self, mark: char) -> Result<bool, NetError> {
        if self.token != Token::Mark(mark) {
            return Ok(false);
        }
        self.advance()?;
        Ok(true)
    }

    fn expect(&mut self, mark: char) -> Result<(), NetError> {
        if self.take(mark)? { Ok(()) } else { self.wanted(&format!("`{mark}`")) }
    }

    fn name(&mut self, what: &str) -> Result<String, NetError> {
        if !matches!(self.token, Token::Id(_)) {
            return self.wanted(what);
        }
        let Token::Id(mut name) = self.advance()? else { unreachable!("just seen") };
        while self.take('+')? {
            if !matches!(self.token, Token::Id(_)) {
                return self.wanted("a string");
            }
            let Token::Id(more) = self.advance()? else { unreachable!("just seen") };
            name += &more;
        }
        Ok(name)
    }

    fn file(&mut self) -> Result<(), NetError> {
        if self.token.is_word("strict") {
            self.advance()?;
        }
        self.graph.directed = self.token.is_word("digraph");
        if !self.graph.directed && !self.token.is_word("graph") {
            return self.wanted("`graph` or `digraph`");
        }
        self.advance()?;
        if matches!(self.token, Token::Id(_)) {
            self.name("a name")?;
        }
        self.block(&Rc::default())?;
        if self.token == Token::End { Ok(()) } else { self.wanted("the end of the file") }
    }

    /// Parses statements in braces; returns the nodes that they name.
    fn block(&mut self, edge_defaults: &Rc<Attributes>) -> Result<Vec<u32>, NetError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.lexer.error(self.at, format!("braces more than {DEEPEST} deep")));
        }
        self.expect('{')?;
        let (mut defaults, mut nodes) = (Rc::clone(edge_defaults), Vec::new());
        while !self.take('}')? {
            if !self.take(';')? {
                self.statement(&mut defaults, &mut nodes)?;
            }
        }
        self.depth -= 1;
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }

    fn statement(&mut self, defaults: &mut Rc<Attributes>, nodes: &mut Vec<u32>) -> Result<(), NetError> {
        for word in ["graph", "node", "edge"] {
            if self.token.is_word(word) {
                self.advance()?;
                let mut ignored = Rc::default();
                return self.attributes(if word == "edge" { defaults } else { &mut ignored });
            }
        }
        let start = self.at;
        let mut ends = vec![self.nodes(defaults)?];
        if ends[0].is_none() {
            return Ok(());
        }
        while let Token::Edge(arrow) = self.token {
            let (right, kind) = if self.graph.directed { ("->", "digraph") } else { ("--", "graph") };
            if arrow != right {
                return Err(self.lexer.error(self.at, format!("a {kind} has `{right}`, not `{arrow}`")));
            }
            self.advance()?;
            ends.push(self.nodes(defaults)?);
        }
        let mut attributes = Rc::clone(defaults);
        self.attributes(&mut attributes)?;
        let count = |end: &Option<Vec<u32>>| end.as_ref().map_or(0, Vec::len);
        let more: usize = ends.windows(2).map(|pair| count(&pair[0]) * count(&pair[1])).sum();
        if self.graph.edges.len() + more > MOST_EDGES {
            let most = format!("with this statement the file has more than {MOST_EDGES} edges");
            return Err(self.lexer.error(start, most));
        }
        for pair in ends.windows(2) {
            for &from in pair[0].iter().flatten() {
                for &to in pair[1].iter().flatten() {
                    self.graph.edges.push(Edge { from, to, attributes: Rc::clone(&attributes) });
                }
            }
        }
        nodes.extend(ends.into_iter().flatten().flatten());
        Ok(())
    }

    /// Parses a node or a group of nodes; returns `None` for `name = value`.
    fn nodes(&mut self, defaults: &Rc<Attributes>) -> Result<Option<Vec<u32>>, NetError> {
        let is_subgraph = self.token.is_word("subgraph");
        if is_subgraph {
            self.advance()?;
            if matches!(self.token, Token::Id(_)) {
                self.name("a name")?;
            }
        }
        if is_subgraph || self.token == Token::Mark('{') {
            return self.block(defaults).map(Some);
        }
        let name = self.name("a node, an edge or `}`")?;
        if self.take('=')? {
            self.name("a value")?;
            return Ok(None);
        }
        // A position on the node's outline, for drawing.
        while self.take(':')? {
            self.name("a port")?;
        }
        let fresh = self.graph.nodes.len();
        let number = *self.numbers.entry(name.clone()).or_insert(fresh as u32);
        if number as usize == fresh {
            self.graph.nodes.push(name);
        }
        Ok(Some(vec![number]))
    }

    fn attributes(&mut self, all: &mut Rc<Attributes>) -> Result<(), NetError> {
        while self.take('[')? {
            while !self.take(']')? {
                let name = self.name("an attribute or `]`")?;
                let value = if self.take('=')? { self.name("a value")? } else { "true".into() };
                let all = Rc::make_mut(all);
                match name.as_str() {
                    "capacity" => all.capacity = Some(value.into()),
                    "latency" => all.latency = Some(value.into()),
                    "comment" => all.comment = Some(value.into()),
                    _ => {}
                }
                if !self.take(',')? {
                    self.take(';')?;
                }
            }
        }
        Ok(())
    }
}
