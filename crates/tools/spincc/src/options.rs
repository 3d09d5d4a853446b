// SPDX-License-Identifier: Apache-2.0
//! Command line. A compiler driver passes unknown options on, which parsers of declared options do not support, so this
//! parser is written by hand. It knows `spincc`'s own options and the relevant ones of GCC and Clang, and passes all
//! others on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Error, Result};

/// Text of `--help`.
pub const HELP: &str = "\
Usage: spincc [options] files

Compiles sPIN programs: all functions for the host, and __handler functions also for the card. Sources (C and C++),
objects and archives can be mixed; with -c, objects contain their device code.

Options of spincc:
  --hpu KIND[,KIND]        HPU kinds to compile for (default: all but those on request)
  --keep                   keep each device program as OUTPUT.KIND.elf
  --disassemble [HANDLER]  print the instructions of the handlers of a built program or of sources
  --layouts                print the layouts of the structures that these handlers use as JSON
  --cflags                 print the flags with which a C compiler finds the headers of the SDK
  --compile-commands       write compile_commands.json for clangd and other editors instead of compiling: how the
                           sources are compiled for the host
  --verbose                print each command before it runs
  --version, --help
  -W[no-]spin-layout       warn when the layout of a structure differs between host and card (on by
                           default); with -Werror=spin-layout it is an error
  -Wno-spin-unmarked       accept functions with the arguments of a handler whose addresses are used
                           without __handler

All other options go to the host compiler. The compiler for the card gets -I, -D, -U, -include and similar ones, -std, -O,
-g and the -f options that change the meaning of C; it compiles with -O3 unless an -O option is given. With -E, -S, -M, -MM
and -fsyntax-only only the host compiler runs.

Environment:
  SPIN_HOST_CC, SPIN_HOST_CXX  host compilers (default: cc, c++)
  SPIN_ZIG                     zig, the compiler for the card
  SPIN_CACHE                   folder of what is kept from run to run, such as zig's cache
  SPIN_LIBDIR                  folder of libportals.so
  SPINKIT_HOME                 folder of the SDK
";

/// Action requested by the command line: help, the version, or a compilation.
pub enum Action {
    /// `--help`
    Help,
    /// `--version`
    Version,
    /// `--cflags`
    Cflags,
    /// Compile, or inspect a program.
    Run(Box<Options>),
}

/// Last step of the compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Link a program or shared library.
    Link,
    /// `-c`
    Compile,
    /// `-E`, `-S`, `-M`, …: the host compiler alone.
    HostOnly,
}

/// Language of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C
    C,
    /// C++
    Cxx,
}

/// A C or C++ file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path as given.
    pub path: PathBuf,
    /// Language, by the name of the file or by `-x`.
    pub language: Language,
}

/// Item of the host linker's command line, whose order matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkItem {
    /// Object of `sources[i]`.
    Source(usize),
    /// Object, archive, library or assembler file.
    File(PathBuf),
    /// Linker option.
    Flag(String),
}

/// Treatment of structures whose layouts differ between host and card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lint {
    /// `-Wno-spin-layout`
    Off,
    /// Print a warning: the default.
    Warn,
    /// `-Werror=spin-layout`
    Error,
}

/// Parsed command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// Last step of the compilation.
    pub mode: Mode,
    /// `-o`
    pub output: Option<PathBuf>,
    /// `--hpu`
    pub kinds: Option<Vec<String>>,
    /// `--keep`
    pub keep: bool,
    /// `--compile-commands`
    pub compile_commands: bool,
    /// `--verbose`
    pub verbose: bool,
    /// `--disassemble`, with the handler if named.
    pub disassemble: Option<Option<String>>,
    /// `--layouts`
    pub layouts: bool,
    /// `-Wspin-layout` and related options.
    pub layout_lint: Lint,
    /// False with `-Wno-spin-unmarked`.
    pub refuses_unmarked: bool,
    /// Set by any form of `-g` but `-g0`.
    pub debug: bool,
    /// `-s`
    pub strip: bool,
    /// `-MD` or `-MMD`: write a dependency file. If a program is linked in the same command, the file is named after
    /// it.
    pub dependencies: bool,
    /// Set if the host objects have no readable DWARF types, because of `-flto`, `-gsplit-dwarf` or `-g1`.
    pub opaque_debug: bool,
    /// Sources in order.
    pub sources: Vec<Source>,
    /// Items of the link in order.
    pub link: Vec<LinkItem>,
    /// Flags for every run of the host compiler.
    pub host_flags: Vec<String>,
    /// Flags for the compiler for the card.
    pub device_flags: Vec<String>,
    /// All arguments except `spincc`'s own options, as given.
    pub host_line: Vec<String>,
}

impl Options {
    /// Returns true if host objects are compiled with debug information for the layouts of structures, and stripped
    /// afterwards.
    pub fn borrows_debug(&self) -> bool {
        !self.debug && !self.opaque_debug
    }

    /// Returns true if the command only prints information about a program.
    pub fn inspects(&self) -> bool {
        self.layouts || self.disassemble.is_some()
    }
}

/// Options of both compilers whose value is attached or the next argument.
const BOTH: &[&str] = &["-I", "-D", "-U", "-include", "-imacros", "-isystem", "-iquote", "-idirafter"];
/// Options of the host compiler whose value is the next argument.
const HOST_VALUE: &[&str] = &["-MF", "-MT", "-MQ", "-Xassembler", "-Xpreprocessor", "--param", "-B", "-wrapper"];
/// Options of the host linker whose value is attached or the next argument.
const LINK_VALUE: &[&str] = &["-L", "-l", "-T", "-u", "-z", "-Xlinker"];
/// Options of the host linker without a separate value.
const LINK: &[&str] =
    &["-shared", "-static", "-rdynamic", "-pie", "-no-pie", "-static-pie", "-nostdlib", "-nodefaultlibs"];
/// `-f` options that change the meaning of a program, or its instructions in ways that users compare, without `no-` and
/// value. All others concern only the host's code.
#[rustfmt::skip]
const MEANING: &[&str] = &[
    "associative-math", "builtin", "char8_t", "common", "coroutines", "exceptions", "fast-math",
    "file-prefix-map", "debug-prefix-map", "macro-prefix-map", "finite-math-only", "fp-contract", "freestanding",
    "gnu89-inline", "inline", "inline-functions", "math-errno", "ms-extensions", "omit-frame-pointer",
    "operator-names", "pack-struct", "permissive", "reciprocal-math", "rounding-math", "rtti", "short-enums",
    "short-wchar", "signed-char", "signed-zeros", "strict-aliasing", "strict-enums", "strict-overflow",
    "template-depth", "constexpr-depth", "trapping-math", "trapv", "tree-slp-vectorize", "tree-vectorize",
    "unroll-loops", "unsafe-math-optimizations", "unsigned-char", "visibility", "visibility-inlines-hidden", "wrapv",
];

/// Parses the command line.
///
/// # Errors
/// [`Error::Usage`] when it is wrong.
pub fn parse(args: impl Iterator<Item = OsString>) -> Result<Action> {
    let mut parser = Parser::new(expand(args)?);
    while let Some(arg) = parser.next() {
        match arg.as_str() {
            "--help" => return Ok(Action::Help),
            "--version" => return Ok(Action::Version),
            "--cflags" => return Ok(Action::Cflags),
            _ => parser.argument(arg)?,
        }
    }
    parser.finish().map(|options| Action::Run(Box::new(options)))
}

struct Parser {
    args: std::vec::IntoIter<String>,
    language: Option<String>,
    stdin: bool,
    options: Options,
}

impl Parser {
    fn new(args: Vec<String>) -> Parser {
        let options = Options {
            mode: Mode::Link,
            output: None,
            kinds: None,
            keep: false,
            compile_commands: false,
            verbose: false,
            disassemble: None,
            layouts: false,
            layout_lint: Lint::Warn,
            refuses_unmarked: true,
            debug: false,
            strip: false,
            dependencies: false,
            opaque_debug: false,
            sources: vec![],
            link: vec![],
            host_flags: vec![],
            device_flags: vec![],
            host_line: vec![],
        };
        Parser { args: args.into_iter(), language: None, stdin: false, options }
    }

    fn next(&mut self) -> Option<String> {
        self.args.next()
    }

    fn value(&mut self, option: &str) -> Result<String> {
        self.next().ok_or_else(|| Error::Usage(format!("{option} needs a value")))
    }

    fn argument(&mut self, arg: String) -> Result<()> {
        if self.own(&arg)? {
            return Ok(());
        }
        let mut words = vec![arg.clone()];
        self.shared(&arg, &mut words)?;
        self.options.host_line.extend(words);
        Ok(())
    }

    /// Parses an option of `spincc` itself.
    fn own(&mut self, arg: &str) -> Result<bool> {
        let (name, attached) = match arg.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (arg, None),
        };
        match name {
            "--hpu" => {
                let list = attached.map_or_else(|| self.value("--hpu"), Ok)?;
                let kinds = list.split(',').filter(|k| !k.is_empty()).map(str::to_owned);
                self.options.kinds.get_or_insert_default().extend(kinds);
                if self.options.kinds.as_deref() == Some(&[]) {
                    return Err(Error::Usage("--hpu needs the name of an HPU kind".into()));
                }
            }
            "--disassemble" => {
                // The name of a handler may follow: a C identifier that is not a file.
                let next = self.args.as_slice().first().filter(|next| is_identifier(next) && !Path::new(next).exists());
                let following = if attached.is_none() { next.cloned() } else { None };
                if following.is_some() {
                    self.next();
                }
                self.options.disassemble = Some(attached.or(following));
            }
            "--keep" => self.options.keep = true,
            "--compile-commands" => self.options.compile_commands = true,
            "--verbose" => self.options.verbose = true,
            "--layouts" => self.options.layouts = true,
            "-Wspin-unmarked" => self.options.refuses_unmarked = true,
            "-Wno-spin-unmarked" => self.options.refuses_unmarked = false,
            "-Wspin-layout" => self.options.layout_lint = Lint::Warn,
            "-Wno-spin-layout" => self.options.layout_lint = Lint::Off,
            "-Werror=spin-layout" => self.options.layout_lint = Lint::Error,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Parses an option of the compilers or a file. Its value is appended to `words`.
    fn shared(&mut self, arg: &str, words: &mut Vec<String>) -> Result<()> {
        if !arg.starts_with('-') || arg == "-" {
            self.input(arg);
            return Ok(());
        }
        if arg == "-undef" {
            self.flag(arg);
        } else if let Some(option) = BOTH.iter().find(|o| arg.starts_with(**o)) {
            self.take(arg, option, words)?;
            self.options.host_flags.extend_from_slice(words);
            self.options.device_flags.extend_from_slice(words);
        } else if HOST_VALUE.contains(&arg) {
            self.take(arg, arg, words)?;
            self.options.host_flags.extend_from_slice(words);
        } else if LINK.contains(&arg) || arg.starts_with("-Wl,") {
            self.options.link.push(LinkItem::Flag(arg.to_owned()));
        } else if let Some(option) = LINK_VALUE.iter().find(|o| arg.starts_with(**o)) {
            self.take(arg, option, words)?;
            self.options.link.extend(words.iter().cloned().map(LinkItem::Flag));
        } else if let Some(attached) = arg.strip_prefix("-o") {
            self.take(arg, "-o", words)?;
            let path = if attached.is_empty() { &words[1] } else { attached };
            self.options.output = Some(path.into());
        } else if let Some(attached) = arg.strip_prefix("-x") {
            self.take(arg, "-x", words)?;
            let language = if attached.is_empty() { &words[1] } else { attached };
            self.language = Some(language.to_owned()).filter(|l| l != "none");
        } else {
            self.flag(arg);
        }
        Ok(())
    }

    /// Appends the next argument to `words` unless the option's value is attached.
    fn take(&mut self, arg: &str, option: &str, words: &mut Vec<String>) -> Result<()> {
        if arg == option {
            words.push(self.value(option)?);
        }
        Ok(())
    }

    fn flag(&mut self, arg: &str) {
        let options = &mut self.options;
        match arg {
            "-c" => {
                if options.mode == Mode::Link {
                    options.mode = Mode::Compile;
                }
                return;
            }
            "-S" | "-E" | "-M" | "-MM" | "-fsyntax-only" => {
                options.mode = Mode::HostOnly;
                return;
            }
            "-s" => {
                options.strip = true;
                return;
            }
            "-g0" => {
                options.debug = false;
                return;
            }
            "-MD" | "-MMD" => options.dependencies = true,
            "-ansi" | "-undef" | "-trigraphs" => options.device_flags.push(arg.to_owned()),
            _ if arg.starts_with("-std=") => options.device_flags.push(arg.to_owned()),
            // Clang's driver inside zig turns -O3 into -O2. Pass the second -O3 to the compiler itself.
            "-O3" => options.device_flags.extend(["-O3", "-Xclang", "-O3"].map(String::from)),
            _ if arg.starts_with("-O") => options.device_flags.push(arg.to_owned()),
            _ if arg.starts_with("-g") => {
                options.debug = true;
                options.opaque_debug |= ["-g1", "-ggdb1", "-gsplit-dwarf", "-gline"].iter().any(|o| arg.starts_with(o));
            }
            _ if arg.starts_with("-flto") => options.opaque_debug = true,
            _ if arg.strip_prefix("-f").is_some_and(changes_meaning) => options.device_flags.push(arg.to_owned()),
            _ => {}
        }
        options.host_flags.push(arg.to_owned());
    }

    fn input(&mut self, arg: &str) {
        self.stdin |= arg == "-";
        let language = match self.language.as_deref() {
            Some("c") => Some(Language::C),
            Some("c++") => Some(Language::Cxx),
            Some(_) => None,
            None => match Path::new(arg).extension().and_then(|e| e.to_str()) {
                Some("c") => Some(Language::C),
                Some("cc" | "cp" | "cpp" | "cxx" | "CPP" | "c++" | "C") => Some(Language::Cxx),
                _ => None,
            },
        };
        let options = &mut self.options;
        options.link.push(match language {
            Some(language) => {
                options.sources.push(Source { path: arg.into(), language });
                LinkItem::Source(options.sources.len() - 1)
            }
            None => LinkItem::File(arg.into()),
        });
    }

    fn finish(self) -> Result<Options> {
        let mut options = self.options;
        let usage = |text: &str| Err(Error::Usage(text.into()));
        let has_inputs = options.link.iter().any(|item| !matches!(item, LinkItem::Flag(_)));
        // Queries to the host compiler, and assembler files.
        let asks = |flag: &String| {
            ["-v", "-###"].contains(&flag.as_str()) || ["-dump", "-print"].iter().any(|p| flag.starts_with(p))
        };
        let only_others = options.mode == Mode::Compile && options.sources.is_empty();
        if (!has_inputs && options.host_flags.iter().any(asks)) || (has_inputs && only_others) {
            options.mode = Mode::HostOnly;
        }
        if options.mode == Mode::HostOnly {
            return if options.inspects() {
                usage("--disassemble and --layouts need a whole compilation")
            } else {
                Ok(options)
            };
        }
        if !has_inputs {
            return usage("no input files (--help lists the options)");
        }
        if options.host_flags.iter().any(|flag| flag == "-r") {
            return usage("-r: spincc links programs and shared libraries only");
        }
        let other =
            options.link.iter().find_map(|item| if let LinkItem::File(path) = item { Some(path) } else { None });
        if let (Mode::Compile, Some(path)) = (options.mode, other) {
            return usage(&format!("-c with {}, which is no C or C++ source", path.display()));
        }
        if self.stdin {
            return usage(
                "cannot compile standard input: every source is compiled once for the host and once for each HPU kind",
            );
        }
        if options.mode == Mode::Compile && options.sources.len() > 1 && options.output.is_some() {
            return usage("-o with -c and several sources");
        }
        options.dependencies &= options.mode == Mode::Link && !options.host_flags.iter().any(|flag| flag == "-MF");
        Ok(options)
    }
}

/// Returns true if the option `-f` with this suffix is for both compilers.
fn changes_meaning(option: &str) -> bool {
    let name = option.strip_prefix("no-").unwrap_or(option);
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    MEANING.contains(&name) || name.starts_with("builtin-")
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Replaces arguments of the form `@file` by the arguments in the file. As in GCC, blanks separate them unless quoted
/// or escaped by a backslash.
fn expand(args: impl Iterator<Item = OsString>) -> Result<Vec<String>> {
    let mut expanded = vec![];
    for arg in args {
        let arg = arg
            .into_string()
            .map_err(|arg| Error::Usage(format!("argument is not UTF-8: {}", arg.to_string_lossy())))?;
        match arg.strip_prefix('@').map(Path::new) {
            Some(path) if path.is_file() => {
                let text = std::fs::read_to_string(path).map_err(Error::read(path))?;
                expanded.extend(expand(words(&text).into_iter().map(OsString::from))?);
            }
            _ => expanded.push(arg),
        }
    }
    Ok(expanded)
}

fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (vec![], None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', q) if q != Some('\'') => word.get_or_insert_default().extend(chars.next()),
            (c, Some(q)) if c == q => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        match parse(line.split_whitespace().map(OsString::from)) {
            Ok(Action::Run(options)) => *options,
            _ => panic!("{line}: no options"),
        }
    }

    fn usage_error(line: &str) -> String {
        match parse(line.split_whitespace().map(OsString::from)) {
            Err(error @ Error::Usage(_)) => error.to_string(),
            _ => panic!("{line}: accepted"),
        }
    }

    #[test]
    fn flags_reach_the_compilers_that_understand_them() {
        let o = options("-O3 -Wall -Iinc -D X=1 -march=native -fPIC -fno-strict-aliasing -std=c11 -pthread a.c");
        assert_eq!(o.device_flags.join(" "), "-O3 -Xclang -O3 -Iinc -D X=1 -fno-strict-aliasing -std=c11");
        assert_eq!(
            o.host_flags.join(" "),
            "-O3 -Wall -Iinc -D X=1 -march=native -fPIC -fno-strict-aliasing -std=c11 -pthread"
        );
    }

    #[test]
    fn the_link_line_keeps_its_order() {
        let o = options("a.c -La -lb x.o -Wl,--as-needed b.cpp -o prog -s");
        let flag = |f: &str| LinkItem::Flag(f.into());
        assert_eq!(
            o.link,
            [
                LinkItem::Source(0),
                flag("-La"),
                flag("-lb"),
                LinkItem::File("x.o".into()),
                flag("-Wl,--as-needed"),
                LinkItem::Source(1)
            ]
        );
        assert_eq!(o.sources[1], Source { path: "b.cpp".into(), language: Language::Cxx });
        assert_eq!((o.output.as_deref(), o.strip, o.mode), (Some(Path::new("prog")), true, Mode::Link));
    }

    #[test]
    fn own_options() {
        let o = options("--hpu rv32imac,rv32imafdc --keep --verbose -Werror=spin-layout --disassemble pong a.c");
        assert_eq!(o.kinds.as_deref(), Some(&["rv32imac".to_owned(), "rv32imafdc".to_owned()][..]));
        assert!(o.keep && o.verbose);
        assert_eq!((o.layout_lint, o.disassemble), (Lint::Error, Some(Some("pong".into()))));
        assert_eq!(o.host_line, ["a.c"]);
        assert_eq!(options("--disassemble ./prog").disassemble, Some(None));
        assert_eq!(options("-x c++ a.h -x none b.c").sources[0].language, Language::Cxx);
    }

    #[test]
    fn wrong_command_lines() {
        assert_eq!(usage_error(""), "no input files (--help lists the options)");
        assert_eq!(usage_error("a.c -o"), "-o needs a value");
        assert_eq!(usage_error("-c a.c b.c -o x.o"), "-o with -c and several sources");
        assert!(usage_error("-x c -").starts_with("cannot compile standard input"));
        assert_eq!(usage_error("-c a.c b.o"), "-c with b.o, which is no C or C++ source");
        assert!(usage_error("-r a.o -o b.o").starts_with("-r:"));
        assert!(usage_error("--hpu= a.c").starts_with("--hpu needs"));
    }

    #[test]
    fn the_host_compiler_alone() {
        for line in ["-E a.c", "-v", "-dumpmachine", "-c a.S -o a.o", "-MM a.c b.c"] {
            assert_eq!(options(line).mode, Mode::HostOnly, "{line}");
            assert_eq!(options(line).host_line.join(" "), line);
        }
    }

    #[test]
    fn response_files_split_as_in_gcc() {
        assert_eq!(words("-D 'A=\"x y\"' b\\ c\n\"d e\" \"\""), ["-D", "A=\"x y\"", "b c", "d e", ""]);
    }
}
